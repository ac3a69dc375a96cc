"""A judge from ``create_judge`` inside other evaluation and training programs.

    jurygraph.adapters.mlflow.scorer(judge)                  for mlflow.genai.evaluate
    jurygraph.adapters.deepeval.metric(judge, threshold=0.75)  for deepeval's assert_test and evaluate
    jurygraph.adapters.inspect.scorer(judge)                 for Inspect's Task and eval
    jurygraph.adapters.trl.reward(judge)                     for TRL's GRPOTrainer

Each module imports its program, so install the extra of the same name, such as
``jurygraph[mlflow]``. ``trl`` needs nothing. A judgement that fails is an error of the program, or
no reward, and never a score.
"""
