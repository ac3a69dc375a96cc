"""Compare the score gaps of the courtroom protocols, and test the theory on a run's own data.

A gap is the distance between the scores of two answers. The paper (appendices A and B) makes these
assumptions without testing them: the gap after i rounds, in w of which it grew, follows Beta(alpha
+ w, beta + i - w). An aggregate of a team's defences is worth at least as much as the best of them
(Theorem 2). Several advocates widen the gap towards the answer that leads anyway (Theorem 1). Gaps
grow with the rounds (Theorem 3).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress, permutations
from types import MappingProxyType
from typing import Annotated, Generic, Literal, NamedTuple, TypeVar

import numpy as np

from ...state.errors import UsageError
from ..results.known_protocols import known_protocols
from ..statistics.alignment import Floats, Ints, Reasons
from ..statistics.resampling import Resampling, Statistic
from ..statistics.significance import LEVEL, holm
from ..tables import Column, text_column
from .comparison import PairwiseComparator
from .gap_analysis import (
    HOLM,
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

LOW = 6.0
HIGH = 120.0
"""The ends of the totals of MORE, SAMRE and baseline: six criteria, 1 to 20 each."""

Outcome = Literal["holds", "refuted", "undecided"]


class PredictedGap(NamedTuple):
    """The gap after a round: the prediction of the fitted model, and the observed gap.

    Attributes:
        judge: the judge of these debates.
        alpha, beta: the prior with the highest likelihood of the observed gaps, one for all rounds.
        round: from 1.
        n: the number of debates with this round.
        observed: the mean gap, as a share of the widest possible one.
        predicted: the model's mean.
        excess: observed minus predicted, debate by debate; about 0 if the model fits.
        p: two-sided, over groups, for an excess of 0; ``None`` for too few groups.
        adjusted: ``p`` after Holm's correction over all tests of the score gap on this subject.
    """

    judge: Annotated[str, text_column("judge")]
    alpha: Annotated[float, Column("alpha", digits=2)]
    beta: Annotated[float, Column("beta", digits=2)]
    round: Annotated[int, Column("round")]
    n: Annotated[int, Column("cases")]
    observed: Annotated[Statistic, Column("observed gap")]
    predicted: Annotated[float, Column("predicted")]
    excess: Annotated[Statistic, Column("observed - predicted")]
    p: Annotated[float | None, Column("p", form="p")] = None
    """two-sided, over groups: whether observed - predicted is 0"""
    adjusted: Annotated[float | None, Column("p (Holm)", form="p", about=HOLM)] = None


class Premise(NamedTuple):
    """A premise of the paper, tested on the data of a study.

    Attributes:
        claim: the premise, with the judges of the test.
        n: the number of debates, or of pairs of them on one item.
        figure: above 0 if the premise holds, as a share of the scale of scores.
        p: two-sided, over groups, for a figure of 0; ``None`` for too few groups.
        adjusted: ``p`` after Holm's correction over all tests of the score gap on this subject.
    """

    claim: Annotated[str, text_column("premise")]
    n: Annotated[int, Column("cases")]
    figure: Annotated[Statistic, Column("figure")]
    """above 0: the premise holds; a share of the scale"""
    p: Annotated[float | None, Column("p", form="p")] = None
    """two-sided, over groups: whether the figure is 0"""
    adjusted: Annotated[float | None, Column("p (Holm)", form="p", about=HOLM)] = None

    @property
    def outcome(self) -> Outcome:
        """Whether the premise holds, by the adjusted p-value and the sign of the figure."""
        if self.figure.value is None or self.adjusted is None or self.adjusted >= LEVEL:
            return "undecided"
        return "holds" if self.figure.value > 0 else "refuted"


Row = TypeVar("Row")


class Counted(NamedTuple, Generic[Row]):
    """The rows of a table; ``left_out`` has the reasons why debates or items do not count."""

    rows: tuple[Row, ...] = ()
    left_out: Reasons = MappingProxyType({})


class Courtroom(NamedTuple):
    """The gap analysis of one subject (courtroom paper, appendices A and B; Theorems 1 and 2).

    Attributes:
        subject: the judged subject.
        unit: the unit of intervals and tests: groups, or items if no item has a group.
        eps: the threshold, as a share of the widest possible gap.
        prior: alpha and beta of the paper's model.
        gaps: by judge, the gap after each round, with the model's tail and the paper's bound.
        differentiation: for each judge the mean gap, on the same items; no rows for a single judge.
        predicted: observed gaps, and the gaps predicted by the model fitted to each judge's own
            debates.
        premises: the premises of the paper's proofs that these runs can test.
        complexity: for each judge the rounds until the gap reaches ``eps``, on the same items; no
            rows for a single judge. A protocol with one round is not in it.
    """

    subject: Subject
    unit: Literal["groups", "items"]
    eps: float
    prior: tuple[float, float]
    gaps: Mapping[str, Counted[RoundOfGaps]]
    differentiation: Counted[FinalGap]
    complexity: Counted[RoundsNeeded]
    predicted: tuple[PredictedGap, ...] = ()
    premises: tuple[Premise, ...] = ()


class _Side(NamedTuple):
    """A judge's debates and their settings.

    Attributes:
        label: the judge's.
        rows: the judge's verdicts.
        gaps: for each verdict the gap after each round, of shape (rows, rounds); NaN after its last
            round.
        totals: for each verdict both answers' totals, from 0 to 1 on the scale, of shape (rows, 2).
        advocates: the number of advocates for an answer.
        aggregate: how a team's defences are combined; ``None`` without teams.
        by_round: whether it scores in several rounds.
        resampling: how intervals are computed.
    """

    label: str
    rows: Verdicts
    gaps: Floats
    totals: Floats
    advocates: int
    aggregate: str | None
    by_round: bool
    resampling: Resampling

    def mean(self, values: Floats, chosen: Booleans | Ints) -> tuple[Statistic, float | None]:
        """Return the mean of a figure over some verdicts, and its p-value over groups."""
        return self.resampling.mean_interval(values, self.rows.clusters[chosen])


def courtroom(
    comparator: PairwiseComparator, eps: float, prior: tuple[float, float]
) -> Courtroom | None:
    """Compute the gap analysis of one subject.

    Return ``None`` if no protocol with gaps judged it.

    Raises:
        UsageError: ``eps`` is not above 0 and at most 1, or scores are outside the scale.
    """
    if not 0 < eps <= 1:
        raise UsageError(f"eps must be above 0 and at most 1, got {eps}")
    if comparator.subject.kind != "compare":
        return None
    how = comparator.resampling
    sides = list(_sides(comparator))
    if not sides:
        return None
    by_judge = {}
    for side in sides:
        rounds = gaps_by_round(side.gaps, side.rows.clusters, eps, how, prior)
        unjudged = int((side.rows.path_count == 0).sum())
        by_judge[side.label] = Counted(rounds, {"not judged": unjudged} if unjudged else {})
    final_gaps = tuple[FinalGap, ...]()
    gaps_missing = dict[str, int]()
    rounds_needed = tuple[RoundsNeeded, ...]()
    rounds_missing = dict[str, int]()
    if len(sides) > 1:
        final = {side.label: _gaps(side.label, side.rows, side.rows.scores) for side in sides}
        gaps, clusters, gaps_missing = _shared(sides, final)
        final_gaps = score_differentiation(gaps, clusters, how)
    of_rounds = [side for side in sides if side.by_round]
    if len(of_rounds) > 1:
        # A debate without a score has no round that could reach the threshold, which differs from
        # "never".
        debates = ((side, side.rows.path_count > 0) for side in of_rounds)
        until = {
            side.label: np.where(has, rounds_until(side.gaps, eps), np.nan) for side, has in debates
        }
        reached, clusters, rounds_missing = _shared(of_rounds, until)
        rounds_needed = iteration_complexity(reached, clusters, how)
    predicted = tuple(_predicted_gaps(sides))
    premises = tuple(_premises(sides))
    # One family, because a reader sees all of these tests together.
    p_values = [row.p for row in final_gaps]
    p_values += [row.p for row in rounds_needed]
    p_values += [row.p for row in predicted]
    p_values += [row.p for row in premises]
    adjusted = iter(holm(p_values))
    final_gaps = tuple(row._replace(adjusted=next(adjusted)) for row in final_gaps)
    rounds_needed = tuple(row._replace(adjusted=next(adjusted)) for row in rounds_needed)
    return Courtroom(
        subject=comparator.subject,
        unit="groups" if any((side.rows.group >= 0).any() for side in sides) else "items",
        eps=eps,
        prior=prior,
        gaps=by_judge,
        differentiation=Counted(final_gaps, gaps_missing),
        complexity=Counted(rounds_needed, rounds_missing),
        predicted=tuple(row._replace(adjusted=next(adjusted)) for row in predicted),
        premises=tuple(row._replace(adjusted=next(adjusted)) for row in premises),
    )


def _sides(comparator: PairwiseComparator) -> Iterator[_Side]:
    """Yield the judges that give both sides a total, those with several rounds first."""
    known = known_protocols()
    for name, protocol in sorted(
        known.items(), key=lambda named: named[1].score_gaps != "by_round"
    ):
        for data in comparator.data if protocol.score_gaps != "none" else ():
            if data.judge.protocol != name or not len(data.rows):
                continue
            settings = data.judge.settings
            label = data.judge.label
            rows = data.rows
            # NaN after its last round.
            gaps = np.full((len(rows), rows.rounds), np.nan)
            for number in range(rows.rounds):
                lasted = rows.path_count > number
                some = rows.take(lasted)
                gaps[lasted, number] = _gaps(label, some, some.path[some.path_start + number])
            totals = (rows.scores - LOW) / (HIGH - LOW)
            advocates = int(settings.get("advocates", "argues" in protocol.role_kinds.values()))
            by_round = protocol.score_gaps == "by_round"
            aggregate = settings.get("aggregate")
            how = comparator.resampling
            yield _Side(label, rows, gaps, totals, advocates, aggregate, by_round, how)


def _gaps(label: str, rows: Verdicts, scores: Floats) -> Floats:
    """Return the gap of each row's two scores as a share of the widest possible one, or NaN."""
    for row in np.flatnonzero(((scores < LOW) | (scores > HIGH)).any(axis=1))[:1].tolist():
        item = rows.names.items.names()[rows.item[row]][1]
        raise UsageError(
            f"item {item}, {label}: {scores[row].tolist()} is off the scale from {LOW:g} to {HIGH:g}"
        )
    return np.abs(scores[:, 0] - scores[:, 1]) / (HIGH - LOW)


def _shared(
    sides: Sequence[_Side], figures: Mapping[str, Floats]
) -> tuple[dict[str, Floats], Ints, dict[str, int]]:
    """Return each judge's figures on shared rows, the rows' clusters, and why rows are left out.

    Shared rows are those on which all judges have a figure.

    Repeats of an item are paired in order: the first of one judge with the first of the other.
    """
    keys, first = np.unique(np.concatenate([side.rows.keys for side in sides]), return_index=True)
    clusters = np.concatenate([side.rows.clusters for side in sides])
    table = np.full((len(keys), len(sides)), np.nan)
    for place, side in enumerate(sides):
        table[np.searchsorted(keys, side.rows.keys), place] = figures[side.label]
    # In the order of the first judge's rows instead of the numeric order of keys.
    table = table[np.argsort(first)]
    clusters = clusters[np.sort(first)]
    lacking = np.isnan(table)
    shared = ~lacking.any(axis=1)
    missing = Counter(
        f"no scores of {', '.join(compress(figures, row))}" for row in lacking[~shared]
    )
    return dict(zip(figures, table[shared].T, strict=True)), clusters[shared], dict(missing)


def _predicted_gaps(sides: Sequence[_Side]) -> Iterator[PredictedGap]:
    """Fit the model to each judge's debates, and yield predicted and observed gaps by round."""
    for side in sides:
        if (prior := fit_prior(side.gaps)) is None:
            continue
        alpha, beta = prior
        for number, lasted, observed, grown_in in rounds_of(side.gaps):
            predicted = (alpha + grown_in) / (alpha + beta + number)
            gap, _ = side.mean(observed, lasted)
            excess, p = side.mean(observed - predicted, lasted)
            n = len(observed)
            mean = float(predicted.mean())
            yield PredictedGap(side.label, alpha, beta, number, n, gap, mean, excess, p)


def _premises(sides: Sequence[_Side]) -> Iterator[Premise]:
    """Test each premise that the runs of a study can test."""
    for first, second in permutations(sides, 2):
        _, mine, theirs = np.intersect1d(first.rows.keys, second.rows.keys, return_indices=True)
        own = first.totals[mine]
        other = second.totals[theirs]
        if not len(mine):
            continue
        if (first.aggregate, second.aggregate) == (
            "llm",
            "best",
        ) and first.advocates == second.advocates:
            figure, p = first.mean(own.mean(axis=1) - other.mean(axis=1), mine)
            claim = f"an aggregate scores no less than the best defence: {first.label} minus {second.label}"
            yield Premise(claim, len(mine), figure, p)
        if first.advocates > second.advocates:
            # Towards the answer that leads with fewer advocates. A reversed lead is not growth.
            lead = np.sign(other[:, 0] - other[:, 1])
            wider = lead * (own[:, 0] - own[:, 1]) - np.abs(other[:, 0] - other[:, 1])
            figure, p = first.mean(wider[lead != 0], mine[lead != 0])
            claim = (
                f"more advocates widen the leading answer's gap: {first.label} minus {second.label}"
            )
            yield Premise(claim, int((lead != 0).sum()), figure, p)
    for side in sides:
        several = np.flatnonzero((~np.isnan(side.gaps)).sum(axis=1) > 1)
        if len(several):
            paths = side.gaps[several]
            # Debates end after different rounds, so each debate's last gap may be in a different
            # column.
            last = paths[np.arange(len(paths)), (~np.isnan(paths)).sum(axis=1) - 1]
            figure, p = side.mean(last - paths[:, 0], several)
            claim = f"gaps grow with the rounds: {side.label}, last round minus first"
            yield Premise(claim, len(several), figure, p)
