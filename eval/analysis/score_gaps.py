"""Compare the courtroom protocols' gaps between the scores of two answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
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


def courtroom(comparator: PairwiseComparator, judged_by: Sequence[JudgeData], eps: float) -> Courtroom | None:
    """Compute the gap analysis of one subject; ``None`` where none of the protocols with gaps judged it.

    Raises:
        UsageError: an ``eps`` that is not above 0 and at most 1.
    """
    if not 0 < eps <= 1:
        raise UsageError(f"eps must be above 0 and at most 1, not {eps}")
    known = protocols_with_gaps()
    judges = [
        data for name in known for data in judged_by if data.judge.protocol == name and len(data.side.rows)
    ]
    if comparator.kind != "compare" or not judges:
        return None
    of_rounds = [data for data in judges if known[data.judge.protocol]]
    labels, labels_of_rounds = ([data.side.label for data in those] for those in (judges, of_rounds))
    several = len(judges) > 1
    return Courtroom(
        subject=comparator.subject.label,
        eps=eps,
        gaps={
            data.side.label: gaps_by_round(_rows([data]), eps, resampling=comparator.resampling)
            for data in judges
        },
        differentiation=score_differentiation(_rows(judges), labels, resampling=comparator.resampling)
        if several
        else None,
        complexity=iteration_complexity(
            _rows(of_rounds),
            eps,
            labels_of_rounds,
            resampling=comparator.resampling,
        )
        if len(of_rounds) > 1
        else None,
    )


def _rows(judges: Sequence[JudgeData]) -> Iterator[Mapping[str, Any]]:
    """Yield rows as in ``results.jsonl``, each under its judge's label."""
    for data in judges:
        rows = data.side.rows
        scores = (None if isnan(pair[0]) else tuple(pair) for pair in rows.scores.tolist())
        for row, pair, path in zip(rows.fields(), scores, rows.paths(), strict=True):
            # Two runs of one protocol are two judges, which the statistics tell apart by the label.
            about = {"protocol": data.side.label, "aspect": None, "status": "ok"}
            yield {**row, **about, "scores": pair, "score_by_round": path}
