"""Compute the figures of each judge on each subject, and on average over a dataset's subjects.

The module has the results first, then ``leaderboard``, then the figures of one entry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

import numpy as np

from ...state.errors import UsageError
from ..results.agreement import Agreement, Spread, agreement_of, spread_of
from ..statistics.alignment import FAILED, UNLABELLED, grouped
from ..statistics.metrics import METRICS, of_kind
from ..statistics.resampling import Resampling, Statistic
from ..statistics.sample import Sample, average, tested_average
from ..statistics.score_distribution import ScoreDistribution, score_distribution
from ..statistics.significance import LEVEL, holm
from ..statistics.system_ranking import SystemRanking, rank_by_scores, rank_by_verdicts
from ..statistics.tie_policy import WINNERS
from .annotators import Alphas, alphas_of
from .comparison import PairwiseComparator
from .loading import JudgeAspectData, LoadedJudge
from .verdict_columns import Judged, Verdicts, sample


class Gain(NamedTuple):
    """How much a figure exceeds the base's.

    Attributes:
        absolute: ``None`` if either is missing.
        relative: ``None`` also if the base is not above 0, because a share of it makes no sense.
    """

    absolute: float | None = None
    """the judge's value minus the base's"""
    relative: float | None = None
    """the same, as a share of the base's value"""


def gain(value: float | None, base: float | None) -> Gain:
    """Return how much a figure exceeds the base's, absolutely and relatively.

    >>> round(gain(0.89, 0.82).relative, 3)
    0.085
    """
    if value is None or base is None:
        return Gain()
    return Gain(value - base, (value - base) / base if base > 0 else None)


class AgainstChance(NamedTuple):
    """Whether a judge agrees with the labels better than chance, over all its own rows.

    Attributes:
        rows: the number of rows or votes; with several aspects, on the one with the fewest.
        figure: the leading metric over these rows.
        tested: the tested figure: the same, or kappa for preferences, because accuracy by chance is
            not 0.
        p: two-sided, for ``tested`` being 0; ``None`` without a test.
        adjusted: ``p`` by Holm's method over the judges of the subject.
    """

    rows: int
    figure: Statistic
    tested: Statistic
    p: float | None
    adjusted: float | None = None

    @property
    def better(self) -> bool:
        """Whether the agreement is significantly above chance."""
        return (
            (self.tested.value or 0.0) > 0 and self.adjusted is not None and self.adjusted < LEVEL
        )


@dataclass(frozen=True)
class LeaderboardEntry:
    """All figures of one judge on one subject.

    Metrics are named ``pearson``, ``spearman``, ``kendall`` (over all rows), ``group_pearson``,
    ``group_spearman``, ``group_kendall`` (mean within groups), ``accuracy``, ``kappa``: see
    ``metrics.METRICS``.

    Attributes:
        judge, subject: their labels.
        agreement: agreement with humans in full (rows that counted, groups skipped, rows left out
            and why).
        measures: the same figures by the metric's name, each with its interval.
        repeats: by metric, if there are several repeats.
        alphas: Krippendorff's alpha: of agents that judge in parallel, of repeats, and with humans.
        systems: the mean score of each system and the humans' mean; in comparisons, its strength
            (intervals with fewer resamples). ``None`` if systems are unknown, or if the package
            that ranks compared systems is missing, as ``Leaderboard.notes`` says.
        distribution: how often the judge and humans gave each point of the scale; in comparisons,
            each of ``WINNERS``, whose points are their codes. ``None`` for metrics.
        always: the score or winner that it gives every item; ``None`` if verdicts differ.
        chance: whether it agrees better than chance; ``None`` for a judge that always gives the
            same verdict.
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
    chance: AgainstChance | None = None


class Average(NamedTuple):
    """One judge's mean over the subjects of one dataset (the papers' ``average`` column).

    Attributes:
        judge: its label.
        subjects: the subjects of the mean.
        measures: by name; no value if a subject has none, and no interval if subjects have
            different clusters.
        chance: whether the mean is better than chance; ``None`` for a judge that always gives the
            same verdict.
    """

    judge: str
    subjects: tuple[str, ...]
    measures: Mapping[str, Statistic]
    chance: AgainstChance | None = None


class Leaderboard(NamedTuple):
    """All judges on all their subjects.

    Attributes:
        standings: in the order of the judges, then of the subjects.
        averages: for judges with several score subjects in one dataset whose labels differ.
        notes: the notes for readers.
    """

    standings: tuple[LeaderboardEntry, ...]
    averages: tuple[Average, ...]
    notes: tuple[str, ...] = ()

    def standing(self, judge: str, subject: str) -> LeaderboardEntry | None:
        """Return the entry of one judge on one subject, if it judged the subject."""
        return next((entry for entry in self.on(subject) if entry.judge == judge), None)

    def on(self, subject: str) -> list[LeaderboardEntry]:
        """Return the entries of all judges on one subject."""
        return [entry for entry in self.standings if entry.subject == subject]


NOT_BY_ALL = "not judged by all"
"""The reason why a judge's row does not count: another judge has no verdict on the item."""

_RANKING_RESAMPLES = 200
"""The maximum number of resamples of a ranking.

Each needs a fit, which takes a millisecond.
"""


def leaderboard(
    judges: Sequence[LoadedJudge], comparators: Sequence[PairwiseComparator]
) -> Leaderboard:
    """Compute the entries of all judges on all subjects, by judge.

    Args:
        judges: in their order.
        comparators: one for each subject.
    """
    by_subject = {comparator.subject.label: comparator for comparator in comparators}
    standings: list[LeaderboardEntry] = []
    averages: list[Average] = []
    notes: dict[str, None] = {}
    for judge in judges:
        averaged: dict[str, Sample] = {}
        own: list[Sample] = []
        metric = ""
        for data in judge.by_aspect.values():
            comparator = by_subject[data.subject.label]
            standings.append(_entry(comparator, data, notes))
            if comparator.averaged:
                averaged[data.subject.label] = comparator.sample(data.side)
                own.append(comparator.sample(data.side, own=True))
                metric = comparator.subject.metric
        # The mean over a single aspect would only repeat it.
        if len(averaged) > 1:
            measures = {name: average([*averaged.values()], name) for name in of_kind("score")}
            varied = any(np.ptp(sample.judged) for sample in own if len(sample))
            chance = _against_chance(own, metric) if varied else None
            averages.append(Average(judge.label, tuple(averaged), measures, chance))
    digests = {label: comparator.subject.digest for label, comparator in by_subject.items()}
    return Leaderboard(
        tuple(_adjusted(standings, [entry.subject for entry in standings])),
        tuple(_adjusted(averages, [digests[entry.subjects[0]] for entry in averages])),
        tuple(notes),
    )


Entry = TypeVar("Entry", LeaderboardEntry, Average)


def _adjusted(entries: Sequence[Entry], families: Sequence[str]) -> list[Entry]:
    """Adjust the p-values against chance by Holm's method within each subject or dataset."""
    found = list(entries)
    for places in grouped((family, place) for place, family in enumerate(families)).values():
        chances = [entries[place].chance for place in places]
        p_values = holm([chance and chance.p for chance in chances])
        for place, chance, p in zip(places, chances, p_values, strict=True):
            if chance is not None:
                changed = chance._replace(adjusted=p)
                entry = found[place]
                found[place] = (
                    replace(entry, chance=changed)
                    if isinstance(entry, LeaderboardEntry)
                    else entry._replace(chance=changed)
                )
    return found


def _against_chance(samples: Sequence[Sample], metric: str) -> AgainstChance:
    """Test a judge's own rows on one subject, or the mean over several, against chance."""
    figure = average(samples, metric)
    tested, p = tested_average(samples, METRICS[metric].against_chance)
    return AgainstChance(min(sample.counted for sample in samples), figure, tested, p)


def _entry(
    comparator: PairwiseComparator, data: JudgeAspectData, notes: dict[str, None]
) -> LeaderboardEntry:
    rows = comparator.rows(data.side)
    labelled = comparator.sample(data.side)
    resampling = comparator.resampling
    own = comparator.sample(data.side, own=True)
    varied = len(own) > 0 and np.ptp(own.judged) > 0
    return LeaderboardEntry(
        judge=data.judge.label,
        subject=data.subject.label,
        agreement=_agreement(data, rows, labelled),
        measures=labelled.statistics(of_kind(data.subject.kind)),
        repeats=_over_repeats(data, resampling),
        alphas=alphas_of(data, resampling),
        systems=_systems(data, resampling, notes),
        distribution=_distribution(data, resampling),
        always=rows.as_verdicts(rows.judged[:1])[0]
        if len(rows) > 1 and not np.ptp(rows.judged)
        else None,
        chance=_against_chance([own], data.subject.metric) if varied else None,
    )


def _systems(
    data: JudgeAspectData, resampling: Resampling, notes: dict[str, None]
) -> SystemRanking | None:
    """Rank the systems that wrote the texts: by mean scores, or by wins in comparisons."""
    rows = data.rows
    known = data.rows.names.systems.names()
    wrote = 1 + (data.subject.kind == "compare")
    names = sorted({name for systems in known for name in systems})
    number = {name: place for place, name in enumerate(names)}
    # A comparison of a system with itself ranks nothing.
    ranked = [systems if len({*systems}) == len(systems) == wrote else () for systems in known]
    table = [[number[name] for name in systems] or [-1] * wrote for systems in ranked]
    numbers = np.array(table).reshape(-1, wrote)[rows.systems]
    rows = rows.take(numbers[:, 0] >= 0)
    numbers = numbers[numbers[:, 0] >= 0]
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
    """Return the full agreement over the rows that count, with the figures of their sample."""
    if not len(data.rows) + data.failed:
        return None
    unlabelled = len(data.rows) - len(data.labelled)
    not_by_all = len(data.labelled) - len(rows)
    reasons = {UNLABELLED: unlabelled, FAILED: data.failed, NOT_BY_ALL: not_by_all}
    left_out = {reason: count for reason, count in reasons.items() if count}
    return agreement_of(
        labelled, left_out, rows.group[rows.group >= 0], rows.repeat, data.subject.rule.votes
    )


def _distribution(data: JudgeAspectData, resampling: Resampling) -> ScoreDistribution | None:
    """Count the occurrences of each point of the scale, or of each winner by its code."""
    subject = data.subject
    rows = data.rows
    if subject.kind == "compare":
        labels = rows.human[:, None]
        scale = (0.0, len(WINNERS) - 1.0)
    elif not data.judge.models or subject.low is None or subject.high is None:
        return None
    else:
        labels = rows.all_labels
        scale = (subject.low, subject.high)
    if not len(rows):
        return None
    return score_distribution(rows.judged, labels, rows.clusters, scale, resampling)


def _over_repeats(data: JudgeAspectData, resampling: Resampling) -> dict[str, Spread]:
    """Compute each metric separately in each repeat."""
    rows = data.labelled
    names = of_kind(data.subject.kind)
    if len(numbers := np.unique(rows.repeat)) < 2:
        return {}
    samples = [
        sample(data.subject, rows.take(rows.repeat == number), resampling) for number in numbers
    ]
    return {name: spread_of([of_repeat.value(name) for of_repeat in samples]) for name in names}
