"""Compute how each judge does on each subject, and on average over a dataset's subjects.

The results first; then ``leaderboard``, which makes them; then the figures of one entry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ...state.errors import UsageError
from ..results.agreement import Agreement, Spread, agreement_of, spread_of
from ..statistics.alignment import FAILED, UNLABELLED
from ..statistics.metrics import of_kind
from ..statistics.resampling import Resampling, Statistic
from ..statistics.sample import Sample, average
from ..statistics.score_distribution import ScoreDistribution, score_distribution
from ..statistics.system_ranking import SystemRanking, rank_by_scores, rank_by_verdicts
from ..statistics.tie_policy import WINNERS
from .annotators import Alphas, alphas_of
from .comparison import PairwiseComparator
from .loading import JudgeAspectData, LoadedJudge
from .verdict_columns import Judged, Verdicts, sample


class Gain(NamedTuple):
    """Says how much a figure exceeds that of the base.

    Attributes:
        absolute: ``None`` where either is missing.
        relative: ``None`` also where the base is not above 0, of which nothing is a share.
    """

    absolute: float | None = None
    """the judge's value minus the base's"""
    relative: float | None = None
    """the same, as a share of the base's value"""


def gain(value: float | None, base: float | None) -> Gain:
    """Return how much a figure exceeds that of the base, absolutely and relatively.

    >>> round(gain(0.89, 0.82).relative, 3)
    0.085
    """
    if value is None or base is None:
        return Gain()
    return Gain(value - base, (value - base) / base if base > 0 else None)


@dataclass(frozen=True)
class LeaderboardEntry:
    """Holds all figures of one judge on one subject.

    Measures are named ``pearson``, ``spearman``, ``kendall`` (over all rows), ``group_pearson``, ``group_spearman``,
    ``group_kendall`` (mean within groups), ``accuracy``, ``kappa``: see ``metrics.METRICS``.

    Attributes:
        judge, subject: their labels.
        agreement: with people, in full (rows that counted, groups skipped, rows left out and why).
        measures: the same figures by the measure's name, each with its interval.
        repeats: by measure, where there are several.
        alphas: Krippendorff's alpha: of agents who judge beside each other, of repeats, and with people.
        systems: the mean score of each system beside people's, of comparisons its strength (with intervals of fewer
            resamples); ``None`` of unknown systems, or where the package that ranks those compared is not there, as
            ``Leaderboard.notes`` says.
        distribution: how often each point of the scale was given, beside people; of comparisons, how often each of
            ``WINNERS``, whose points are their codes. ``None`` for metrics.
        always: the score, or the winner, that it gives every item; ``None`` where it does not say the same of all.
    """

    judge: str
    subject: str
    agreement: Agreement | None
    measures: Mapping[str, Statistic] = field(default_factory=dict)
    repeats: Mapping[str, Spread] = field(default_factory=dict)
    alphas: Alphas | None = None
    systems: SystemRanking | None = None
    distribution: ScoreDistribution | None = None
    always: Judged | None = None


class Average(NamedTuple):
    """Holds one judge's mean over the subjects of one dataset (the papers' ``average`` column).

    Attributes:
        judge: its label.
        subjects: over which the mean is.
        measures: by name; no value where a subject has none, and no interval where subjects have different clusters.
    """

    judge: str
    subjects: tuple[str, ...]
    measures: Mapping[str, Statistic]


class Leaderboard(NamedTuple):
    """Lists all judges on all their subjects.

    Attributes:
        standings: in the order of the judges, then of the subjects.
        averages: of judges with several score subjects in one dataset whose labels differ.
        notes: what a reader should know.
    """

    standings: tuple[LeaderboardEntry, ...]
    averages: tuple[Average, ...]
    notes: tuple[str, ...] = ()

    def standing(self, judge: str, subject: str) -> LeaderboardEntry | None:
        """Return the entry of one judge on one subject, if it judged it."""
        return next((entry for entry in self.on(subject) if entry.judge == judge), None)

    def on(self, subject: str) -> list[LeaderboardEntry]:
        """Return the entries of all judges on one subject."""
        return [entry for entry in self.standings if entry.subject == subject]


NOT_BY_ALL = "not judged by all"
"""The reason for which a judge's row does not count where another judge has no verdict on the item."""

_RANKING_RESAMPLES = 200
"""Resamples of a ranking, at most: each is a fit of its own, by a package that takes a millisecond for it."""


def leaderboard(judges: Sequence[LoadedJudge], comparators: Sequence[PairwiseComparator]) -> Leaderboard:
    """Compute the entries of all judges on all subjects, judge by judge.

    Args:
        judges: in their order.
        comparators: of each subject.
    """
    by_subject = {comparator.subject.label: comparator for comparator in comparators}
    standings: list[LeaderboardEntry] = []
    averages: list[Average] = []
    notes: dict[str, None] = {}
    for judge in judges:
        averaged: dict[str, Sample] = {}
        for data in judge.by_aspect.values():
            comparator = by_subject[data.subject.label]
            standings.append(_entry(comparator, data, notes))
            if comparator.averaged:
                averaged[data.subject.label] = comparator.labelled_sample(data.side)
        # The mean over a single aspect would only repeat it.
        if len(averaged) > 1:
            measures = {name: average([*averaged.values()], name) for name in of_kind("score")}
            averages.append(Average(judge.label, tuple(averaged), measures))
    return Leaderboard(tuple(standings), tuple(averages), tuple(notes))


def _entry(comparator: PairwiseComparator, data: JudgeAspectData, notes: dict[str, None]) -> LeaderboardEntry:
    rows, labelled = comparator.counted(data.rows), comparator.labelled_sample(data.side)
    resampling = comparator.resampling
    return LeaderboardEntry(
        judge=data.judge.label,
        subject=data.subject.label,
        agreement=_agreement(data, rows, labelled),
        measures=labelled.statistics(of_kind(data.subject.kind)),
        repeats=_over_repeats(data, resampling),
        alphas=alphas_of(data, resampling),
        systems=_systems(data, resampling, notes),
        distribution=_distribution(data, resampling),
        always=rows.as_verdicts(rows.judged[:1])[0] if len(rows) > 1 and not np.ptp(rows.judged) else None,
    )


def _systems(data: JudgeAspectData, resampling: Resampling, notes: dict[str, None]) -> SystemRanking | None:
    """Rank the systems that wrote the texts: one a row by mean scores, or two by who beat whom."""
    rows, known, wrote = data.rows, data.rows.names.systems.names(), 1 + (data.subject.kind == "compare")
    names = sorted({name for systems in known for name in systems})
    number = {name: place for place, name in enumerate(names)}
    # A system against itself ranks nothing.
    ranked = [systems if len({*systems}) == len(systems) == wrote else () for systems in known]
    table = [[number[name] for name in systems] or [-1] * wrote for systems in ranked]
    numbers = np.array(table).reshape(-1, wrote)[rows.systems]
    rows, numbers = rows.take(numbers[:, 0] >= 0), numbers[numbers[:, 0] >= 0]
    if not len(rows):
        return None
    columns = rows.judged, rows.human, rows.clusters
    if wrote == 1:
        return rank_by_scores(names, numbers[:, 0], *columns, resampling)
    try:
        fewer = replace(resampling, resamples=min(resampling.resamples, _RANKING_RESAMPLES))
        return rank_by_verdicts(names, numbers, *columns, fewer)
    except UsageError as error:
        notes.setdefault(f"systems are not ranked: {error}")
        return None


def _agreement(data: JudgeAspectData, rows: Verdicts, labelled: Sample) -> Agreement | None:
    """Return the agreement of the rows that count in full, with the figures of their sample."""
    if not len(data.rows) + data.failed:
        return None
    unlabelled, not_by_all = len(data.rows) - len(data.labelled), len(data.labelled) - len(rows)
    reasons = {UNLABELLED: unlabelled, FAILED: data.failed, NOT_BY_ALL: not_by_all}
    left_out = {reason: count for reason, count in reasons.items() if count}
    return agreement_of(labelled, left_out, rows.group[rows.group >= 0], rows.repeat, data.subject.rule.votes)


def _distribution(data: JudgeAspectData, resampling: Resampling) -> ScoreDistribution | None:
    """Count how often each point of the scale, or each winner by its code, comes up."""
    subject, rows = data.subject, data.rows
    if subject.kind == "compare":
        labels, scale = rows.human[:, None], (0.0, len(WINNERS) - 1.0)
    elif not data.judge.models or subject.low is None or subject.high is None:
        return None
    else:
        labels, scale = rows.all_labels, (subject.low, subject.high)
    if not len(rows):
        return None
    return score_distribution(rows.judged, labels, rows.clusters, scale, resampling)


def _over_repeats(data: JudgeAspectData, resampling: Resampling) -> dict[str, Spread]:
    """Compute each measure in each repeat by itself."""
    rows, names = data.labelled, of_kind(data.subject.kind)
    if len(numbers := np.unique(rows.repeat)) < 2:
        return {}
    samples = [sample(data.subject, rows.take(rows.repeat == number), resampling) for number in numbers]
    return {name: spread_of([of_repeat.value(name) for of_repeat in samples]) for name in names}
