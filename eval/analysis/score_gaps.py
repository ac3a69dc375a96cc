"""Compare the courtroom protocols' gaps between the scores of two answers, and test the theory on a run's own data.

The paper (appendices A and B) assumes that the gap after i rounds, in w of which it grew, follows Beta(alpha + w,
beta + i - w); that what an aggregator makes of a team's defences is worth at least as much as the best of them
(Theorem 2); that several advocates widen the gap towards the answer that is ahead anyway (Theorem 1); and that gaps
grow with the rounds (Theorem 3). It tests none of these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress, permutations
from types import MappingProxyType
from typing import Annotated, Generic, Literal, NamedTuple, TypeVar

import numpy as np

from ...state.errors import UsageError
from ..statistics.alignment import Floats, Ints, Reasons
from ..statistics.resampling import Resampling, Statistic
from ..tables import Column, text_column
from .comparison import PairwiseComparator
from .gap_analysis import (
    FinalGap,
    RoundOfGaps,
    RoundsNeeded,
    fit_prior,
    gaps_by_round,
    iteration_complexity,
    rounds_of,
    rounds_until,
    score_differentiation,
)
from .judges import Subject
from .verdict_columns import Booleans, Verdicts

LOW, HIGH = 6.0, 120.0
"""The ends of the totals of MORE, SAMRE and baseline: six criteria, 1 to 20 each."""

Outcome = Literal["holds", "refuted", "cannot be told"]


class PredictedGap(NamedTuple):
    """Sets the gap that the fitted model predicts after a round beside the one that was observed.

    Attributes:
        judge: whose debates these are.
        alpha, beta: of the prior that makes the observed gaps most likely, one for all rounds.
        round: from 1.
        n: debates that lasted this long.
        observed: the mean gap, as a share of the widest possible one.
        predicted: the model's mean.
        excess: observed less predicted, debate by debate: the model fits if its interval holds 0.
    """

    judge: Annotated[str, text_column("judge")]
    alpha: Annotated[float, Column("alpha", digits=2)]
    beta: Annotated[float, Column("beta", digits=2)]
    round: Annotated[int, Column("round")]
    n: Annotated[int, Column("cases")]
    observed: Annotated[Statistic, Column("observed gap")]
    predicted: Annotated[float, Column("predicted")]
    excess: Annotated[Statistic, Column("observed - predicted")]


class Premise(NamedTuple):
    """Says whether a premise of the paper holds on the data of a study.

    Attributes:
        claim: the premise, with the judges that it was tested on.
        n: debates, or pairs of them on one item.
        figure: above 0 where the premise holds, as a share of the scale of scores.
    """

    claim: Annotated[str, text_column("premise")]
    n: Annotated[int, Column("cases")]
    figure: Annotated[Statistic, Column("figure")]
    """above 0: the premise holds; a share of the scale"""

    @property
    def outcome(self) -> Outcome:
        """What the interval says; one that holds 0, or is not there, tells nothing."""
        low, high = self.figure.low, self.figure.high
        if low is None or high is None or low <= 0 <= high:
            return "cannot be told"
        return "holds" if low > 0 else "refuted"


Row = TypeVar("Row")


class Counted(NamedTuple, Generic[Row]):
    """Holds the rows of a table; ``left_out`` says why debates, or items that not all judged, do not count."""

    rows: tuple[Row, ...] = ()
    left_out: Reasons = MappingProxyType({})


class Courtroom(NamedTuple):
    """Holds the gap analysis of one subject (courtroom paper, appendices A and B; Theorems 1 and 2).

    Attributes:
        subject: what was judged.
        eps: the threshold, as a share of the widest possible gap.
        prior: alpha and beta of the paper's model.
        gaps: by judge, the gap after each round, with the model's tail and the paper's bound.
        differentiation: of each judge the mean gap, on the same items; no rows for a single judge.
        predicted: by the model fitted to each judge's own debates: its gaps beside those observed.
        premises: of the paper's proofs, each tested on these runs where they say something about it.
        complexity: of each judge the rounds until the gap reaches ``eps``, on the same items; no rows likewise. A
            protocol of one round is not in it.
    """

    subject: Subject
    eps: float
    prior: tuple[float, float]
    gaps: Mapping[str, Counted[RoundOfGaps]]
    differentiation: Counted[FinalGap]
    complexity: Counted[RoundsNeeded]
    predicted: tuple[PredictedGap, ...] = ()
    premises: tuple[Premise, ...] = ()


class _Side(NamedTuple):
    """Holds a judge's debates and how they were held.

    Attributes:
        label: the judge's.
        rows: its verdicts.
        gaps: of each verdict the gap after each round, of shape (rows, rounds); NaN after its last round.
        totals: of each verdict both answers' totals, from 0 to 1 on the scale: shape (rows, 2).
        advocates: how many an answer has.
        aggregate: what is made of a team's defences; ``None`` where there are no teams.
        by_round: whether it scores in several rounds.
        resampling: how intervals are made.
    """

    label: str
    rows: Verdicts
    gaps: Floats
    totals: Floats
    advocates: int
    aggregate: str | None
    by_round: bool
    resampling: Resampling

    def mean(self, values: Floats, chosen: Booleans | Ints) -> Statistic:
        """Return the mean of a figure of some of its verdicts."""
        return self.resampling.mean_interval(values, self.rows.clusters[chosen])[0]


def courtroom(comparator: PairwiseComparator, eps: float, prior: tuple[float, float]) -> Courtroom | None:
    """Compute the gap analysis of one subject; ``None`` where none of the protocols with gaps judged it.

    Raises:
        UsageError: an ``eps`` that is not above 0 and at most 1; scores off the scale.
    """
    if not 0 < eps <= 1:
        raise UsageError(f"eps must be above 0 and at most 1, got {eps}")
    if comparator.subject.kind != "compare":
        return None
    how, sides = comparator.resampling, list(_sides(comparator))
    if not sides:
        return None
    by_judge = {}
    for side in sides:
        rounds = gaps_by_round(side.gaps, side.rows.clusters, eps, how, prior)
        unjudged = int((side.rows.path_count == 0).sum())
        by_judge[side.label] = Counted(rounds, {"not judged": unjudged} if unjudged else {})
    differentiation, complexity = Counted[FinalGap](), Counted[RoundsNeeded]()
    if len(sides) > 1:
        final = {side.label: _gaps(side.label, side.rows, side.rows.scores) for side in sides}
        gaps, clusters, missing = _shared(sides, final)
        differentiation = Counted(score_differentiation(gaps, clusters, how), missing)
    of_rounds = [side for side in sides if side.by_round]
    if len(of_rounds) > 1:
        # A debate without a score has no round to reach the threshold in, which is another thing than never.
        debates = ((side, side.rows.path_count > 0) for side in of_rounds)
        until = {side.label: np.where(has, rounds_until(side.gaps, eps), np.nan) for side, has in debates}
        reached, clusters, missing = _shared(of_rounds, until)
        complexity = Counted(iteration_complexity(reached, clusters, how), missing)
    predicted, tested = tuple(_predicted_gaps(sides)), tuple(_premises(sides))
    return Courtroom(comparator.subject, eps, prior, by_judge, differentiation, complexity, predicted, tested)


def _sides(comparator: PairwiseComparator) -> Iterator[_Side]:
    """Yield the judges that give both sides a total; those of several rounds come first, and are compared first."""
    # Imported here: reading and comparing results needs no graphs.
    from ...graphs.registry import protocols

    known = {name: module.protocol for name, module in protocols().items()}
    for name, protocol in sorted(known.items(), key=lambda named: named[1].score_gaps != "by_round"):
        for data in comparator.data if protocol.score_gaps != "none" else ():
            if data.judge.protocol != name or not len(data.rows):
                continue
            settings, label, rows = data.judge.settings, data.judge.label, data.rows
            # NaN after its last round.
            gaps = np.full((len(rows), rows.rounds), np.nan)
            for number in range(rows.rounds):
                lasted = rows.path_count > number
                some = rows.take(lasted)
                gaps[lasted, number] = _gaps(label, some, some.path[some.path_start + number])
            totals = (rows.scores - LOW) / (HIGH - LOW)
            advocates = int(settings.get("advocates", "argues" in protocol.role_kinds.values()))
            by_round = protocol.score_gaps == "by_round"
            aggregate, how = settings.get("aggregate"), comparator.resampling
            yield _Side(label, rows, gaps, totals, advocates, aggregate, by_round, how)


def _gaps(label: str, rows: Verdicts, scores: Floats) -> Floats:
    """Return the gap of each row's two scores, as a share of the widest possible one; NaN where it has none."""
    for row in np.flatnonzero(((scores < LOW) | (scores > HIGH)).any(axis=1))[:1].tolist():
        item = rows.names.items.names()[rows.item[row]][1]
        problem = f"{scores[row].tolist()} is off the scale from {LOW:g} to {HIGH:g}"
        raise UsageError(f"item {item}, {label}: {problem}")
    return np.abs(scores[:, 0] - scores[:, 1]) / (HIGH - LOW)


def _shared(
    sides: Sequence[_Side], figures: Mapping[str, Floats]
) -> tuple[dict[str, Floats], Ints, dict[str, int]]:
    """Return each judge's figures of the rows that all judges have one of, the rows' clusters, and why others lack one.

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


def _predicted_gaps(sides: Sequence[_Side]) -> Iterator[PredictedGap]:
    """Fit the model to each judge's debates and yield its prediction of every round, beside what was observed."""
    for side in sides:
        if (prior := fit_prior(side.gaps)) is None:
            continue
        alpha, beta = prior
        for number, lasted, observed, grown_in in rounds_of(side.gaps):
            predicted = (alpha + grown_in) / (alpha + beta + number)
            gap, excess = side.mean(observed, lasted), side.mean(observed - predicted, lasted)
            n, mean = len(observed), float(predicted.mean())
            yield PredictedGap(side.label, alpha, beta, number, n, gap, mean, excess)


def _premises(sides: Sequence[_Side]) -> Iterator[Premise]:
    """Test each premise on which the runs of a study say something."""
    for first, second in permutations(sides, 2):
        _, mine, theirs = np.intersect1d(first.rows.keys, second.rows.keys, return_indices=True)
        own, other = first.totals[mine], second.totals[theirs]
        if not len(mine):
            continue
        if (first.aggregate, second.aggregate) == ("llm", "best") and first.advocates == second.advocates:
            figure = first.mean(own.mean(axis=1) - other.mean(axis=1), mine)
            claim = f"an aggregate scores no less than the best defence: {first.label} minus {second.label}"
            yield Premise(claim, len(mine), figure)
        if first.advocates > second.advocates:
            # Towards the answer that is ahead with fewer advocates: a lead that turns round is no growth.
            lead = np.sign(other[:, 0] - other[:, 1])
            wider = lead * (own[:, 0] - own[:, 1]) - np.abs(other[:, 0] - other[:, 1])
            figure = first.mean(wider[lead != 0], mine[lead != 0])
            claim = f"more advocates widen the leading answer's gap: {first.label} minus {second.label}"
            yield Premise(claim, int((lead != 0).sum()), figure)
    for side in sides:
        several = np.flatnonzero((~np.isnan(side.gaps)).sum(axis=1) > 1)
        if len(several):
            paths = side.gaps[several]
            # Debates end after different rounds: the last gap of each stands in a column of its own.
            last = paths[np.arange(len(paths)), (~np.isnan(paths)).sum(axis=1) - 1]
            figure = side.mean(last - paths[:, 0], several)
            claim = f"gaps grow with the rounds: {side.label}, last round minus first"
            yield Premise(claim, len(several), figure)
