"""Compare the courtroom protocols' gaps between the scores of two answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import NamedTuple

import numpy as np

from ...state.errors import UsageError
from ..statistics.alignment import Floats, Reasons, Units
from .comparison import PairwiseComparator
from .courtroom_premises import CourtroomSide, PredictedGap, Premise, predicted_gaps, premises
from .gap_analysis import (
    IterationComplexity,
    RoundOfGaps,
    ScoreDifferentiation,
    gaps_by_round,
    iteration_complexity,
    rounds_until,
    score_differentiation,
)
from .loading import JudgeAspectData
from .verdict_columns import Verdicts

LOW, HIGH = 6.0, 120.0
"""The ends of the totals of MORE, SAMRE and baseline: six criteria, 1 to 20 each."""


def protocols_with_gaps() -> dict[str, bool]:
    """Return the protocols whose judge gives both sides a total, each with whether it does so in several rounds.

    They come in the order in which they are compared with each other: those of several rounds first.
    """
    # Imported here: reading and comparing results needs no graphs.
    from ...graphs.registry import protocols

    kinds = {name: module.protocol.score_gaps for name, module in protocols().items()}
    by_round = {name: True for name, kind in kinds.items() if kind == "by_round"}
    return by_round | {name: False for name, kind in kinds.items() if kind == "once"}


class Gaps(NamedTuple):
    """Holds the gaps of a judge, round by round; ``left_out`` says why debates do not count."""

    rounds: tuple[RoundOfGaps, ...]
    left_out: Reasons


@dataclass(frozen=True)
class Courtroom:
    """Holds the gap analysis of one subject (courtroom paper, appendices A and B; Theorems 1 and 2).

    Attributes:
        subject: its label.
        eps: the threshold, as a share of the widest possible gap.
        prior: alpha and beta of the paper's model.
        gaps: by judge, the gap after each round, with the model's tail and the paper's bound.
        differentiation: mean gaps beside each other on the same items; ``None`` for a single judge.
        predicted: by the model fitted to each judge's own debates: its gaps beside those observed.
        premises: of the paper's proofs, each tested on these runs where they say something about it.
        complexity: rounds until the gap reaches ``eps``, on the same items; ``None`` likewise. A protocol of
            one round is not in it.
    """

    subject: str
    eps: float
    prior: tuple[float, float]
    gaps: Mapping[str, Gaps]
    differentiation: ScoreDifferentiation | None
    complexity: IterationComplexity | None
    predicted: tuple[PredictedGap, ...] = ()
    premises: tuple[Premise, ...] = ()


def courtroom(comparator: PairwiseComparator, eps: float, prior: tuple[float, float]) -> Courtroom | None:
    """Compute the gap analysis of one subject; ``None`` where none of the protocols with gaps judged it.

    Raises:
        UsageError: an ``eps`` that is not above 0 and at most 1; scores off the scale.
    """
    if not 0 < eps <= 1:
        raise UsageError(f"eps must be above 0 and at most 1, got {eps}")
    if comparator.subject.kind != "compare":
        return None
    known, how = protocols_with_gaps(), comparator.resampling
    sides = [
        _side(cell, known[name])
        for name in known
        for cell in comparator.cells
        if cell.judge.protocol == name and len(cell.rows)
    ]
    if not sides:
        return None
    by_judge = {}
    for side in sides:
        rounds = gaps_by_round(side.gaps, side.rows.clusters, eps, how, prior)
        unjudged = int((side.rows.path_count == 0).sum())
        by_judge[side.label] = Gaps(rounds, {"not judged": unjudged} if unjudged else {})
    differentiation = complexity = None
    if len(sides) > 1:
        final = {side.label: _gaps(side.label, side.rows, side.rows.scores) for side in sides}
        differentiation = score_differentiation(*_shared(sides, final), how)
    of_rounds = [side for side in sides if side.by_round]
    if len(of_rounds) > 1:
        # A debate without a score has no round to reach the threshold in, which is another thing than never.
        until = {
            side.label: np.where(side.rows.path_count > 0, rounds_until(side.gaps, eps), np.nan)
            for side in of_rounds
        }
        complexity = iteration_complexity(*_shared(of_rounds, until), eps, how)
    predicted, tested = tuple(predicted_gaps(sides, how)), tuple(premises(sides, how))
    label = comparator.subject.label
    return Courtroom(label, eps, prior, by_judge, differentiation, complexity, predicted, tested)


def _side(cell: JudgeAspectData, by_round: bool) -> CourtroomSide:
    """Say how a judge's debates were held."""
    from ...graphs.registry import protocols

    argues = "argues" in protocols()[cell.judge.protocol].protocol.role_kinds.values()
    settings, label, rows = cell.judge.settings, cell.judge.label, cell.rows
    totals, advocates = (rows.scores - LOW) / (HIGH - LOW), int(settings.get("advocates", argues))
    gaps = _gaps_by_round(label, rows)
    return CourtroomSide(label, rows, gaps, totals, advocates, settings.get("aggregate"), by_round)


def _gaps_by_round(label: str, rows: Verdicts) -> Floats:
    """Return each row's gap after each round, of shape (rows, rounds); NaN after its last round."""
    gaps = np.full((len(rows), rows.rounds), np.nan)
    for number in range(rows.rounds):
        lasted = rows.path_count > number
        some = rows.take(lasted)
        gaps[lasted, number] = _gaps(label, some, some.path[some.path_start + number])
    return gaps


def _gaps(label: str, rows: Verdicts, scores: Floats) -> Floats:
    """Return the gap of each row's two scores, as a share of the widest possible one; NaN where it has none."""
    for row in np.flatnonzero(((scores < LOW) | (scores > HIGH)).any(axis=1))[:1].tolist():
        item = rows.names.items.names()[rows.item[row]][1]
        raise UsageError(
            f"item {item}, {label}: {scores[row].tolist()} is off the scale from {LOW:g} to {HIGH:g}"
        )
    return np.abs(scores[:, 0] - scores[:, 1]) / (HIGH - LOW)


def _shared(
    sides: Sequence[CourtroomSide], figures: Mapping[str, Floats]
) -> tuple[dict[str, Floats], Units, dict[str, int]]:
    """Return each judge's figures of the rows of which all judges have one, the rows' units, and why others lack one.

    Repeats of an item are paired one by one: the first of one judge with the first of the other.
    """
    keys, first = np.unique(np.concatenate([side.rows.keys for side in sides]), return_index=True)
    clusters = np.concatenate([side.rows.clusters for side in sides])
    table = np.full((len(keys), len(sides)), np.nan)
    for place, side in enumerate(sides):
        table[np.searchsorted(keys, side.rows.keys), place] = figures[side.label]
    # In the order of the first judge's rows, not in that of the numbers that keys are.
    table, clusters = table[np.argsort(first)], clusters[np.sort(first)]
    lacking = np.isnan(table)
    shared = ~lacking.any(axis=1)
    missing = Counter(f"no scores of {', '.join(compress(figures, row))}" for row in lacking[~shared])
    return dict(zip(figures, table[shared].T, strict=True)), clusters[shared], dict(missing)
