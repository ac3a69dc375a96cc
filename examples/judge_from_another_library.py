"""Move a judge from another library: keep its prompt, and let one scorer or a debate answer it.

Run it with ``python examples/judge_from_another_library.py``. It prints the score of two answers
from one scorer and from a debate. The prompt has the placeholders of openevals, which become
references to the texts. It needs no key: without a model, scores come from word counts and not from
the prompt.
Pass ``model="openai:gpt-4o-mini"`` to ``create_judge`` to use a language model.
"""

from jurygraph import create_judge

PROMPT = "Is {outputs} a correct answer to {inputs}? The right answer is {reference_outputs}."
QUESTION = "When did the mill burn?"
RIGHT = "The mill burned in 1911."
ANSWERS = [RIGHT, "A flood destroyed Paris."]

# Before: create_llm_as_judge(prompt=PROMPT, feedback_key="correctness", model="openai:gpt-4o-mini")
one_scorer = create_judge(prompt=PROMPT, feedback_key="correctness")
debate = create_judge("debate", prompt=PROMPT, feedback_key="correctness", n=1)

for name, judge in [("one scorer", one_scorer), ("debate", debate)]:
    for answer in ANSWERS:
        feedback = judge(inputs=QUESTION, outputs=answer, reference_outputs=RIGHT)
        print(f"{name}: {feedback['key']} {feedback['score']} for {answer!r}")
