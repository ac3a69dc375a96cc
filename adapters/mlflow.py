"""A judge as a scorer of ``mlflow.genai.evaluate``."""

from __future__ import annotations

from typing import Any

from .host_judge import AnyJudge, HostJudge

try:
    from mlflow.entities import AssessmentSource, Feedback
    from mlflow.genai.scorers import Scorer
    from mlflow.genai.scorers import scorer as mlflow_scorer
except ImportError as error:
    raise ImportError(
        'jurygraph.adapters.mlflow needs MLflow 3: pip install "jurygraph[mlflow]"'
    ) from error


def scorer(judge: AnyJudge, *, scaled: bool = False) -> Scorer:
    """Return a scorer for ``mlflow.genai.evaluate(scorers=[...])``.

    The judge is shown ``inputs``, ``outputs`` and, as the reference, ``expectations``. The
    feedback has the score as its value, the explanation as its rationale, and the verdict's
    figures as its metadata. A judgement that fails is the feedback's error.

    Args:
        judge: a judge from ``create_judge`` with an aspect.
        scaled: hand over the score from 0 to 1, instead of on the aspect's scale. The metadata has
            both.

    Raises:
        UsageError: it is not such a judge.
    """
    host = HostJudge.of(judge, "mlflow.scorer")

    def judged(inputs: Any = None, outputs: Any = None, expectations: Any = None) -> Feedback:
        found = host.judged(inputs=inputs, outputs=outputs, reference_outputs=expectations or None)
        about = {
            "score": f"{found.score:g}",
            "scale": host.scale,
            "scaled": f"{found.scaled:g}",
            **{
                name: str(found.verdict[name])
                for name in ("protocol", "stop_reason", "calls", "cost_usd")
                if found.verdict.get(name) is not None
            },
        }
        return Feedback(
            name=host.judge.key,
            value=found.scaled if scaled else found.score,
            rationale=found.explanation,
            source=AssessmentSource(
                source_type="LLM_JUDGE", source_id=f"jurygraph/{host.judge.name}"
            ),
            metadata=about,
        )

    made: Scorer = mlflow_scorer(judged, name=host.judge.key)
    return made
