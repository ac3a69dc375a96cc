"""Measure how many corrupted members each rule of a panel withstands.

Ten referees of an ``ensemble`` judge the same items from recorded replies. A growing share of them
is corrupted: they give the highest score to a poor text, and the highest and the lowest score to
the wrong answers of a comparison. The other replies stay. Run this with::

    python -m benchmarks.breakdown

It prints the table of docs/panels.md. No model is called.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, get_args

from jurygraph.graphs import ensemble
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.state.aggregation import Combination

MEMBERS = 10
ITEMS = 10
SHARES = range(0, 60, 10)
RULES: Sequence[Combination] = get_args(Combination)
NAMES = [f"referee_{number}" for number in range(1, MEMBERS + 1)]
WEIGHTS = {name: 1 + number % 2 for number, name in enumerate(NAMES)}
"""For ``weighted``: every other member counts twice, also among the corrupted ones."""

RATING = {
    "kind": "score",
    "candidate": "So.",
    "aspect": {"name": "tact", "criteria": "Is it kind?"},
}
PAIR = {"kind": "compare", "question": "Why?", "answer_1": "So.", "answer_2": "No."}
CORRUPTED = {"score": "Score: 5", "compare": "Score of answer 1: 1\nScore of answer 2: 10"}


class Outcome(NamedTuple):
    """A rule's verdicts with a share of corrupted members.

    Attributes:
        outside: the share of ratings outside the range of the honest members' scores.
        turned: the share of comparisons whose winner is another than with honest members alone.
    """

    outside: float
    turned: float


def recorded(kind: str) -> list[dict[str, str]]:
    """Return an honest reply of each member to each item: poor texts, and better first answers."""
    chance = random.Random(f"breakdown {kind}")
    items = []
    for _ in range(ITEMS):
        if kind == "score":
            replies = [f"Score: {chance.choice([1, 2, 2, 3])}" for _ in NAMES]
        else:
            pairs = [(chance.choice([7, 8, 9]), chance.choice([4, 5, 6])) for _ in NAMES]
            replies = [f"Score of answer 1: {a}\nScore of answer 2: {b}" for a, b in pairs]
        items.append(dict(zip(NAMES, replies, strict=True)))
    return items


@cache
def panel(rule: Combination) -> tuple[dict[str, str], Any]:
    """Return a panel's graph, and the replies by member that it reads from."""
    replies: dict[str, str] = {}
    model = ScriptedModel(script=lambda metadata, _prompt: replies[metadata["agent"]])
    settings: dict[str, Any] = {"weights": WEIGHTS} if rule == "weighted" else {}
    graph = ensemble.build(
        models={"*": model},
        referees=MEMBERS,
        roles="same",
        combine=rule,
        structured="off",
        position_calibration=False,
        **settings,
    )
    return replies, graph.compile()


def judge(kind: str, rule: Combination, honest: Mapping[str, str], corrupted: int) -> Any:
    """Return the verdict on an item whose first members are corrupted."""
    replies, graph = panel(rule)
    replies.update({**honest, **dict.fromkeys(NAMES[:corrupted], CORRUPTED[kind])})
    return graph.invoke({"task": RATING if kind == "score" else PAIR})["verdict"]


def outcome(rule: Combination, share: int) -> Outcome:
    """Return what becomes of all items at a share of corrupted members, in percent."""
    corrupted = MEMBERS * share // 100
    outside = 0
    for replies in recorded("score"):
        honest = [float(text.rpartition(" ")[2]) for text in list(replies.values())[corrupted:]]
        score = judge("score", rule, replies, corrupted)["score"]
        outside += not min(honest) <= score <= max(honest)
    turned = sum(
        judge("compare", rule, replies, corrupted)["winner"] != "1"
        for replies in recorded("compare")
    )
    return Outcome(outside / ITEMS, turned / ITEMS)


def table() -> str:
    """Return the outcomes of all rules as Markdown: ratings outside / winners changed."""
    heads = [f"{share}%" for share in SHARES]
    lines = [f"| rule | {' | '.join(heads)} |", f"|---|{'---|' * len(heads)}"]
    for rule in RULES:
        cells = (outcome(rule, share) for share in SHARES)
        lines.append(
            f"| `{rule}` | "
            + " | ".join(f"{cell.outside:.0%} / {cell.turned:.0%}" for cell in cells)
            + " |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
