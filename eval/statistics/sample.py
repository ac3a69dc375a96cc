"""Measure the agreement of one judge with the labels: every figure of agreement, wherever it is shown, comes from here.

A ``Sample`` holds what a judge said beside what humans said; it gives each metric of ``metrics.METRICS`` with its
interval. Two samples of the same rows give differences, and samples of several aspects give averages. Intervals:

- correlations over rows, and kappa: Student's t with the standard error of the resamples, on Fisher's scale;
- means within groups: Student's t over groups;
- accuracy: the score interval of a share (Wilson 1927), on the effective number of rows where rows share a cluster;
- differences and averages: Student's t with the standard error of paired resamples.

Of fewer than ``FEWEST_CLUSTERS`` clusters only a share has an interval: others would be too narrow.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain

import numpy as np

from ...state.tasks import TaskKind
from .alignment import Floats, Ints, number_groups, ratio
from .chance_corrected import accuracies, kappas
from .correlation import correlation, correlations_within, resampled_correlations
from .metrics import METRICS
from .resampling import (
    FEWEST_CLUSTERS,
    Resampling,
    Statistic,
    mean_or_none,
    none_if_nan,
    share_interval,
    without_nan,
)
from .tie_policy import TIE_CODE, Ties, confusion_tables

_OF_TABLES = {"accuracy": accuracies, "kappa": kappas}


@dataclass(frozen=True)
class GroupedCorrelation(Statistic):
    """Holds the mean over groups of the correlation within each, with Student's interval over groups.

    Attributes:
        value: the mean, or ``None`` where no group has a correlation.
        groups: groups that counted.
        skipped: groups left out, since either side is constant in them or they have a single row.
    """

    groups: int = 0
    skipped: int = 0


@dataclass(eq=False)
class Sample:
    """Holds a judge's verdicts beside the labels, on rows in a fixed order, and measures their agreement.

    Attributes:
        kind: whether these are scores or preferences.
        judged: of each row the score, or the code of the winner.
        human: of each row humans' score, or how often they said 1, 2 and tie: shape (rows,) or (rows, 3). Preferences
            on which humans have no vote that counts are left out.
        clusters: of each row the code of what it is drawn with: its group, or its item where it has none. Given are any
            numbers; they are coded from 0 in the order in which they first occur.
        grouped: whether there are groups, so that there is agreement within them.
        resampling: how intervals are made.
        ties: of preferences, what a human tie is.
        names: of each cluster, the number that was given: it is the same cluster's in other samples, too.
        human_ties: how often humans said tie, whether or not that counts.
        value: of a metric's name, the metric; ``None`` where it does not exist. Each is computed once.
        drawn: of a metric's name, the metric in each resample of clusters; NaN where it does not exist.
        by_group: of the name of a metric within groups, the correlation within each; NaN where it does not exist.
    """

    kind: TaskKind
    judged: Floats
    human: Floats
    clusters: Ints
    grouped: bool
    resampling: Resampling
    ties: Ties = "class"

    def __post_init__(self) -> None:
        self.human_ties = 0
        if self.kind == "compare":
            self.human_ties = int(self.human[:, TIE_CODE].sum())
            votes = self.human * [1, 1, self.ties != "left_out"]
            # A row without a vote must not be drawn: its resamples would have fewer votes than there are.
            voted = votes.any(axis=1)
            self.judged, self.human, self.clusters = self.judged[voted], votes[voted], self.clusters[voted]
        self.names = self.clusters[np.sort(np.unique(self.clusters, return_index=True)[1])]
        self.count, self.clusters = len(self.names), number_groups(self.clusters)
        # A cache for each sample: one on the method would hold every sample ever made, and its resamples.
        self.value = cache(self._value)
        self.drawn = cache(self._drawn)
        self.by_group = cache(self._by_group)
        self._over_rows: dict[str, Floats] = {}

    def __len__(self) -> int:
        return len(self.judged)

    @property
    def counted(self) -> int:
        """The number of rows, or of votes where each vote counts."""
        return len(self) if self.kind == "score" else int(self._tables.sum())

    @property
    def right(self) -> Floats:
        """Of each row of preferences the share of human votes that the judge agrees with: 1 or 0 of a single vote."""
        return accuracies(confusion_tables(self.judged, self.human, self.ties))

    def statistic(self, metric: str) -> Statistic:
        """Return the metric with its interval."""
        value = self.value(metric)
        if metric == "accuracy":
            right, votes = np.trace(self._tables, axis1=1, axis2=2), self._tables.sum(axis=(1, 2))
            return share_interval(right, votes, self.resampling)
        if METRICS[metric].within:
            by_group = without_nan(self.by_group(metric))
            mean = self.resampling.no_point(self.resampling.mean_interval(by_group)[0], len(by_group))
            if mean.value is None or mean.low is None or mean.high is None:
                return mean
            # Correlations are skewed, which Student's interval of ten of them does not know: it held the truth in 92 %.
            margin = (mean.high - mean.value) * math.sqrt(len(by_group) / (len(by_group) - 1))
            return Statistic(mean.value, max(-1.0, mean.value - margin), min(1.0, mean.value + margin))
        if self.count < FEWEST_CLUSTERS:
            return Statistic(value)  # before anything is drawn
        return self.resampling.studentised(value, self.drawn(metric), self.count, bounded=True)[0]

    def within_groups(self, coefficient: str) -> GroupedCorrelation:
        """Return the mean within groups of ``pearson``, ``spearman`` or ``kendall``, and how many groups counted."""
        metric = f"group_{coefficient}"
        mean, skipped = self.statistic(metric), int(np.isnan(self.by_group(metric)).sum())
        groups = len(self.by_group(metric)) - skipped
        return GroupedCorrelation(mean.value, mean.low, mean.high, groups, skipped)

    def statistics(self, metrics: Collection[str]) -> dict[str, Statistic]:
        """Return several metrics by name; correlations over rows share the preparation of their resamples."""
        if self.kind == "score" and self.count >= FEWEST_CLUSTERS:
            self._draw_over_rows(name for name in metrics if not METRICS[name].within)
        return {name: self.statistic(name) for name in metrics}

    def _value(self, metric: str) -> float | None:
        if METRICS[metric].within:
            return mean_or_none(without_nan(self.by_group(metric)))
        if self.kind == "score":
            return correlation(metric, self.judged, self.human)
        return none_if_nan(_OF_TABLES[metric](self._tables.sum(axis=0, keepdims=True))[0])

    def _drawn(self, metric: str) -> Floats:
        if METRICS[metric].within:
            return mean_of_groups(self.by_group(metric), self.resampling)
        if self.kind == "score":
            self._draw_over_rows([metric])
            return self._over_rows[metric]
        # Flat, so that one matrix product adds up the tables of the clusters that each resample drew.
        flat, formula = self._tables.reshape(-1, 9), _OF_TABLES[metric]
        return self.resampling.figures(len(flat), lambda weights: formula((weights @ flat).reshape(-1, 3, 3)))

    def _draw_over_rows(self, metrics: Iterable[str]) -> None:
        new = [name for name in metrics if name not in self._over_rows]
        if new:
            columns = self.judged, self.human, self.clusters
            self._over_rows |= resampled_correlations(new, *columns, self.resampling)

    def _by_group(self, metric: str) -> Floats:
        if not self.grouped:
            return np.full(0, np.nan)
        return correlations_within(METRICS[metric].coefficient, self.judged, self.human, self.clusters)

    @cached_property
    def _tables(self) -> Floats:
        """Confusion tables: how often in each cluster the judge said one thing and humans another, (clusters, 3, 3)."""
        tables = np.zeros((self.count, 3, 3))
        # add.at counts every row of a cluster; ``tables[clusters] += rows`` would keep the last of them.
        np.add.at(tables, self.clusters, confusion_tables(self.judged, self.human, self.ties))
        return tables


Pair = tuple[Sample, Sample]
"""Two judges' samples of the same rows."""


@dataclass(frozen=True)
class Difference:
    """Compares two judges by one metric on the same rows, of one aspect or averaged over several.

    Attributes:
        first, second: each judge's metric. Within groups both are of the groups in which both have a correlation; where
            there is no such group, and so no difference, each has its own.
        difference: the first's less the second's, with its interval.
        p: two-sided, by the same standard error.
        adjusted: ``p`` by Holm's method among all pairs on this subject and metric.
        adjusted_to_base: ``p`` by Holm's method among the pairs with the base on this subject and metric; ``None``
            where neither is the base.
        needed: so many clusters would tell the difference seen from chance, about: at 5 %, four times in five. ``None``
            where the standard error cannot be seen, or there is no difference.
        clusters: how many count; within groups, those in which both have a correlation.
    """

    first: float | None
    second: float | None
    difference: Statistic
    p: float | None = None
    adjusted: float | None = None
    adjusted_to_base: float | None = None
    needed: int | None = None
    clusters: int = 0


def paired_difference(pairs: Sequence[Pair], metric: str) -> Difference:
    """Compare two judges by one metric on the same rows.

    Two that group their rows differently have no resamples in common, and neither have aspects with different clusters:
    then there is no interval and no p-value.

    Args:
        pairs: both judges' samples, one pair for each aspect that is averaged over.
        metric: its name.
    """
    values = zip(*(_compared(*pair, metric) for pair in pairs), strict=True)
    first, second, apart = map(_mean_of_all, values)
    clusters, (mine, theirs) = min(telling_clusters(pair, metric) for pair in pairs), pairs[0]
    how, within, drawn = mine.resampling, METRICS[metric].within, np.zeros(0)
    paired = all(_paired(*pair) for pair in pairs)
    # Of two clusters the resamples say nothing.
    if apart is not None and clusters >= 3 and paired and same_clusters(chain(*pairs)):
        differences = []
        for own, other in pairs:
            if within:
                differences.append(mean_of_groups(own.by_group(metric) - other.by_group(metric), how))
            else:
                differences.append(own.drawn(metric) - other.drawn(metric))
        drawn = np.mean(differences, axis=0)
    if len(pairs) == 1 and within and paired:
        difference, p = how.mean_interval(without_nan(mine.by_group(metric) - theirs.by_group(metric)))
    else:
        difference, p = how.studentised(apart, drawn, clusters)
    # As of two judges that are right on the same items.
    difference = how.no_point(difference, clusters, 1.0 if metric == "accuracy" else 2.0)
    needed, known = None, without_nan(drawn)
    if apart is not None and abs(apart) >= 1e-9 and len(known) > 1:
        # The standard error that was seen shrinks with the square root of their number (Cohen 1988, section 2.4).
        error = float(known.std(ddof=1)) * math.sqrt(clusters / (clusters - 1))
        needed = max(FEWEST_CLUSTERS, math.ceil(clusters * (_BOTH_QUANTILES * error / apart) ** 2))
    return Difference(first, second, difference, p, needed=needed, clusters=clusters)


def _compared(first: Sample, second: Sample, metric: str) -> tuple[float | None, float | None, float | None]:
    """Return both judges' metric on the same rows, and its difference."""
    mine, theirs = first.value(metric), second.value(metric)
    if not METRICS[metric].within:
        return mine, theirs, None if mine is None or theirs is None else mine - theirs
    by_group, of_other = first.by_group(metric), second.by_group(metric)
    if not _paired(first, second) or not (both := ~np.isnan(by_group - of_other)).any():
        return mine, theirs, None
    by_group, of_other = by_group[both], of_other[both]
    return float(by_group.mean()), float(of_other.mean()), float((by_group - of_other).mean())


def _mean_of_all(values: Sequence[float | None]) -> float | None:
    """Average values; ``None`` where one is not there, since means over different aspects cannot be compared."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known and len(known) == len(values) else None


def average(samples: Sequence[Sample], metric: str) -> Statistic:
    """Average a metric over the aspects of one judge; of a single aspect it is the metric itself.

    No value where an aspect has none; no interval where aspects have different clusters, so that they share no
    resamples.
    """
    mean, first = _mean_of_all([sample.value(metric) for sample in samples]), samples[0]
    if len(samples) == 1:
        return first.statistic(metric)
    if not same_clusters(samples):
        return Statistic(mean)
    count = min(telling_clusters((sample,), metric) for sample in samples)
    drawn = np.mean([sample.drawn(metric) for sample in samples], axis=0)
    return first.resampling.studentised(mean, drawn, count, bounded=True)[0]


_BOTH_QUANTILES = 1.959964 + 0.841621
"""The normal quantiles of a test at 5 % on two sides, and of a power of 80 %."""


def _paired(first: Sample, second: Sample) -> bool:
    """Tell whether both draw the same clusters in each resample."""
    return np.array_equal(first.clusters, second.clusters) and first.grouped == second.grouped


def same_clusters(samples: Iterable[Sample]) -> bool:
    """Tell whether all samples, of several aspects perhaps, draw the same clusters in each resample."""
    first, *others = samples
    return all(np.array_equal(sample.names, first.names) for sample in others)


def telling_clusters(samples: Sequence[Sample], metric: str) -> int:
    """Return how many clusters tell of a metric: of one within groups, those in which all samples have a figure."""
    if not METRICS[metric].within:
        return samples[0].count
    figures = [sample.by_group(metric) for sample in samples]
    if len({len(by_group) for by_group in figures}) > 1:
        return 0
    return int((~np.isnan(np.sum(figures, axis=0))).sum())


def mean_of_groups(by_group: Floats, resampling: Resampling) -> Floats:
    """Compute the mean of the groups' figures in each resample of groups; those that have none do not count."""
    known = ~np.isnan(by_group)
    values, counts = np.where(known, by_group, 0.0), known.astype(float)
    return resampling.figures(len(by_group), lambda weights: ratio(weights @ values, weights @ counts))
