"""Judge one text with a debate, and compare two answers, in ten lines of Python.

Run it with ``python examples/judge_in_ten_lines.py``. It prints the score of a summary with the
words that explain it, then the winner of two answers. It needs no key: without a model, scores come
from word counts. Pass ``model="openai:gpt-4o-mini"`` to ``create_judge`` to use a language model.
"""

from jurygraph import create_judge

judge = create_judge("debate", aspect="consistency", n=2)
feedback = judge(
    inputs="The ferry sank at its moorings on Monday. Nobody was aboard.",
    outputs="The ferry sank on Monday. Forty people drowned.",
)
print("score:", feedback["score"])
print("explanation:", feedback["comment"])

compare = create_judge("samre", jurors=3)
preference = compare(
    inputs="Why is the sky blue?",
    outputs=["Air scatters blue light more than red light.", "No idea."],
)
print("winner:", preference["metadata"]["winner"])
