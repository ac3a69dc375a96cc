"""Compare the courtroom protocols' gaps between the scores of two answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...state.errors import UsageError
from ..statistics.score_differentiation import gaps_by_round, iteration_complexity, score_differentiation
from .comparison import PairwiseComparator
from .equal_cost import JudgeData

if TYPE_CHECKING:
    from ..statistics.score_differentiation import Gaps, IterationComplexity, ScoreDifferentiation


def protocols_with_gaps() -> dict[str, bool]:
    """Return the protocols whose judge gives both sides a total, each with whether it does so in several rounds.

    They come in the order in which they are compared with each other: those of several rounds first.
    """
    # Imported here: reading and comparing results needs no graphs.
    from ...graphs.registry import protocols

    kinds = {name: module.protocol.score_gaps for name, module in protocols().items()}
    by_round = {name: True for name, kind in kinds.items() if kind == "by_round"}
    return by_round | {name: False for name, kind in kinds.items() if kind == "once"}


@dataclass(frozen=True)
class Courtroom:
    """Holds the gap analysis of one subject (courtroom paper, appendices A and B; Theorems 1 and 2).

    Attributes:
        subject: its label.
        eps: the threshold, as a share of the widest possible gap.
        gaps: by judge, the gap after each round, with the model's tail and the paper's bound.
        differentiation: mean gaps beside each other on the same items; ``None`` for a single judge.
        complexity: rounds until the gap reaches ``eps``, on the same items; ``None`` likewise. A protocol of
            one round is not in it.
    """

    subject: str
    eps: float
    gaps: Mapping[str, Gaps]
    differentiation: ScoreDifferentiation | None
    complexity: IterationComplexity | None


def courtroom(comparator: PairwiseComparator, there: Sequence[JudgeData], eps: float) -> Courtroom | None:
    """Compute the gap analysis of one subject; ``None`` where none of the protocols with gaps judged it.

    Raises:
        UsageError: an ``eps`` that is not above 0 and at most 1.
    """
    if not 0 < eps <= 1:
        raise UsageError(f"eps must be above 0 and at most 1, not {eps}")
    known = protocols_with_gaps()
    judges = [each for name in known for each in there if each.judge.protocol == name and each.side.rows]
    if comparator.kind != "compare" or not judges:
        return None
    rows = {each.side.label: list(_rows(each)) for each in judges}
    everything = [row for of_one in rows.values() for row in of_one]
    of_rounds = [each.side.label for each in judges if known[each.judge.protocol]]
    several = len(judges) > 1
    return Courtroom(
        subject=comparator.subject.label,
        eps=eps,
        gaps={
            label: gaps_by_round(own, eps, resampling=comparator.resampling) for label, own in rows.items()
        },
        differentiation=score_differentiation(everything, list(rows), resampling=comparator.resampling)
        if several
        else None,
        complexity=iteration_complexity(
            [row for row in everything if row["protocol"] in of_rounds],
            eps,
            of_rounds,
            resampling=comparator.resampling,
        )
        if len(of_rounds) > 1
        else None,
    )


def _rows(each: JudgeData) -> Iterator[Mapping[str, Any]]:
    """Yield rows as in ``results.jsonl``, under the judge's label."""
    for row in each.side.rows.values():
        yield {
            "item": row.item,
            "repeat": row.repeat,
            "group": row.group,
            # Two runs of one protocol are two judges, which the statistics tell apart by this field.
            "protocol": each.side.label,
            "aspect": None,
            "status": "ok",
            "scores": row.scores,
            "score_by_round": row.path,
        }
