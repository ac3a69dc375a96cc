"""Choose the debates that are most worth reading, of more than a page can have."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..analysis.verdict_columns import Codes


class Interest(NamedTuple):
    """Says how far a verdict is worth reading.

    Attributes:
        judge: whose it is, and on what; each has its share of the page.
        failed: 1 or 0.
        gap: the distance from the label.
        moved: the change in the debate.
    """

    judge: Hashable
    failed: float
    gap: float
    moved: float


def worth_reading(verdicts: Iterable[Interest]) -> NDArray[np.intp]:
    """Return the places of verdicts, those worth reading first.

    Each judge has three lists: what failed, what is farthest from the label, what changed most. The first of each list
    come first, then the second of each, and so on; then all that are on none, in their order.

    >>> one = Interest("a", 0, 0.1, 0)
    >>> worth_reading([one, one, one._replace(failed=1), one._replace(gap=0.9), one._replace(gap=0)]).tolist()
    [2, 3, 0, 1, 4]
    """
    judges = Codes()
    values = ((judges.code(judge), *interest) for judge, *interest in verdicts)
    table = np.fromiter(values, dtype="i4,f8,f8,f8")
    turn = np.full(len(table), len(table))
    for number in range(len(judges)):
        rows = np.flatnonzero(table["f0"] == number)
        for column in (table[name][rows] for name in ("f1", "f2", "f3")):
            # Stable, so that equals stay in their order.
            listed = rows[np.argsort(-column, kind="stable")[: int((column > 0).sum())]]
            turn[listed] = np.minimum(turn[listed], np.arange(len(listed)))
    return np.argsort(turn, kind="stable")


def interests(
    run: str, scales: Mapping[str | None, float], heads: Iterable[Mapping[str, Any]]
) -> Iterator[Interest]:
    """Yield how far each result of a run is worth reading.

    Args:
        run: its name.
        scales: the length of each aspect's scale.
        heads: the fields of the results, which need no transcript.
    """
    for head in heads:
        gap = error(head, scales.get(head["aspect"]))["gap"] or 0.0
        judge = run, head["protocol"], head["aspect"]
        yield Interest(judge, float(head["status"] == "failed"), gap, moved(head) or 0.0)


def error(fields: Mapping[str, Any], scale: float | None) -> dict[str, float | None]:
    """Compute the absolute error of a verdict: ``distance`` in points, and ``gap`` as a share of the scale.

    In comparisons ``gap`` is 0 for the same winner, 0.5 if one of the two is a tie, and 1 for the other winner.
    """
    human, winner, score = fields["human"], fields["winner"], fields["score"]
    distance = gap = None
    if fields["status"] != "failed" and isinstance(human, str):
        gap = 0.0 if winner == human else 0.5 if "tie" in (winner, human) else 1.0
    elif fields["status"] != "failed" and human is not None and score is not None:
        # Rounded: differences of floats such as 0.30000000000000004 would make the index longer for nothing.
        distance = round(abs(score - human), 6)
        gap = round(distance / scale, 6) if scale else distance
    return {"distance": distance, "gap": gap}


def moved(fields: Mapping[str, Any]) -> float | None:
    """Compute the absolute change from first to last score; in comparisons, of the difference of the two scores."""
    path = fields["score_by_round"]
    return None if len(path) < 2 else round(abs(_gap(path[-1]) - _gap(path[0])), 6)


def _gap(score: float | Sequence[float]) -> float:
    return score[0] - score[1] if isinstance(score, Sequence) else score
