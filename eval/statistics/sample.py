"""The agreement of one judge with the labels; all metrics of agreement are computed here.

A ``Sample`` has a judge's verdicts with the human labels, and returns each metric of
``metrics.METRICS`` with its interval. Two samples of the same rows give differences, and samples of
several aspects give averages. Intervals:

- correlations over rows: Student's t with the standard error of the resamples, on Fisher's scale;
- kappa, and other metrics of confusion tables: Student's t around the metric of a smoothed table,
  with the larger standard error of the resamples and of the smoothed table: if no resample has a
  rare class right, the resamples do not show how far the metric can vary;
- means within groups: Student's t over groups, as a score interval between -1 and 1;
- accuracy: the score interval of a share (Wilson 1927), on the effective number of rows if rows
  share a cluster;
- differences and averages: Student's t with the standard error of paired resamples;
- metrics over systems: none.

With fewer than ``FEWEST_CLUSTERS`` effective clusters (``Sample.effective``), only a share has an
interval, because others would be too narrow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from ...state.tasks import TaskKind
from .alignment import Floats, Ints, ratio
from .chance_corrected import accuracies
from .correlation import constant_within, correlation, correlations_within, resampled_correlations
from .metrics import METRICS, Unit
from .pairwise import GroupPairs
from .resampling import (
    FEWEST_CLUSTERS,
    Resampling,
    Statistic,
    effective_clusters,
    is_few,
    mean_or_none,
    none_if_nan,
    share_interval,
    student_interval,
    without_nan,
)
from .system_ranking import compare_systems
from .tie_policy import TIE_CODE, Ties, confusion_tables


@dataclass(frozen=True)
class GroupedCorrelation(Statistic):
    """The mean over groups of a value within each, with Student's interval over groups.

    Attributes:
        value: the mean, or ``None`` if no group has a value.
        groups: the number of groups that count.
        skipped: the number of groups left out: they have only one row, or, for correlations, equal
            labels.
        one_score: the number of groups that count as 0, because the judge gives all their items the
            same score.
    """

    groups: int = 0
    skipped: int = 0
    one_score: int = 0


@dataclass(eq=False)
class Sample:
    """A judge's verdicts and the labels, on rows in a fixed order, with their agreement.

    Attributes:
        kind: whether these are scores or preferences.
        judged: the score, or the code of the winner, of each row.
        human: the human score of each row, or the human votes for 1, 2 and tie: shape (rows,) or
            (rows, 3). Preferences without a counting human vote are left out.
        clusters: the cluster code of each row: its group, or its item if it has none. Any numbers
            can be given; they are coded from 0 in ascending order, so that the order of the rows
            does not change resamples.
        grouped: whether there are groups, and so agreement within groups.
        resampling: the settings of intervals.
        ties: the meaning of a human tie, for preferences.
        skip_one_score: leave out groups in which the judge gives all items the same score, as in
            the papers' tables. By default, such a group counts as 0 if its labels differ, because
            leaving it out would reward a judge for giving one score when it is unsure.
        systems: the code of the system that wrote the text of each row, below 0 if unknown; ``None``
            if no system is known. Only for scores.
        repeats: the code of each row's repeat, from 0; ``None`` if there is one repeat.
        names: the original number of each cluster; other samples have the same number for the same
            cluster.
        human_ties: the number of human ties, whether or not they count.
        value: returns a metric by name; ``None`` if it does not exist. Each is computed once.
        drawn: returns a metric in each resample of clusters; NaN if it does not exist.
        by_group: returns, for a metric within groups, the correlation within each; NaN for groups
            that do not count.
    """

    kind: TaskKind
    judged: Floats
    human: Floats
    clusters: Ints
    grouped: bool
    resampling: Resampling
    ties: Ties = "class"
    skip_one_score: bool = False
    systems: Ints | None = None
    repeats: Ints | None = None

    def __post_init__(self) -> None:
        self.human_ties = 0
        if self.kind == "compare":
            self.human_ties = int(self.human[:, TIE_CODE].sum())
            votes = self.human * [1, 1, self.ties != "left_out"]
            # A row without a vote must not be drawn, because its resamples would have too few
            # votes.
            voted = votes.any(axis=1)
            self.judged, self.human, self.clusters = (
                self.judged[voted],
                votes[voted],
                self.clusters[voted],
            )
        self.names, self.clusters = np.unique(self.clusters, return_inverse=True)
        self.count = len(self.names)
        # One cache per sample: a cache on the method would store every sample and its resamples.
        self.value = cache(self._value)
        self.drawn = cache(self._drawn)
        self.by_group = cache(self._by_group)
        self._over_rows: dict[str, Floats] = {}

    @property
    def units(self) -> tuple[Unit, ...]:
        """The units over which the metrics of scores exist for these rows."""
        units: list[Unit] = ["rows"]
        if self.grouped:
            units.append("groups")
        if self.systems is not None and len(np.unique(self.systems[self.systems >= 0])) > 1:
            units.append("systems")
        return tuple(units)

    def __len__(self) -> int:
        return len(self.judged)

    @property
    def counted(self) -> int:
        """The number of rows, or of votes if each vote counts."""
        return len(self) if self.kind == "score" else int(self._tables.sum())

    @property
    def right(self) -> Floats:
        """For preferences: the share of human votes in each row that the judge agrees with."""
        return accuracies(confusion_tables(self.judged, self.human, self.ties))

    def statistic(self, metric: str) -> Statistic:
        """Return the metric with its interval."""
        return self.tested(metric)[0]

    def tested(self, metric: str) -> tuple[Statistic, float | None]:
        """Return the metric with its interval, and the two-sided p-value that it is 0.

        There is no p-value with fewer than ``FEWEST_CLUSTERS`` effective clusters, nor for
        shares, which are not 0 by chance, nor for a judge that always gives the same preference,
        whose kappa is 0 for any labels.
        """
        value = self.value(metric)
        if METRICS[metric].interval == "Wilson":
            right = np.trace(self._tables, axis1=1, axis2=2)
            votes = self._tables.sum(axis=(1, 2))
            return share_interval(right, votes, self.resampling), None
        if METRICS[metric].within:
            is_share = METRICS[metric].is_share
            by_group = spread_out(without_nan(self.by_group(metric)), metric)
            return mean_within(by_group, self.resampling, is_share)
        clusters = self.effective(metric)
        if not clusters or is_few(clusters) or (self.kind == "compare" and not np.ptp(self.judged)):
            return Statistic(value), None  # before anything is drawn
        if self.kind == "score":
            return self.resampling.studentised(value, self.drawn(metric), clusters, bounded=True)
        if value is None or not self.resampling.resamples:
            return Statistic(value), None
        centre, error = _smoothed(self._tables.sum(axis=0), self._formula(metric))
        known = without_nan(self.drawn(metric))
        if len(known) > 1:
            error = max(error, float(known.std(ddof=1)) * math.sqrt(clusters / (clusters - 1)))
        low, high, p = student_interval(centre, error, clusters - 1, self.resampling.confidence)
        return Statistic(value, max(-1.0, min(value, low)), min(1.0, max(value, high))), p

    def effective(self, metric: str) -> float:
        """Return the number of independent clusters that the clusters are worth for a metric.

        - Within groups: the groups that count.
        - Over systems: 0, because there is no interval.
        - Otherwise: clusters of one size (Kish).
        - For correlations over rows, fewer if most labels or most verdicts are equal: with a share
          s of others below .3, the part (s / .3)^2 of them. Such a correlation depends on few rows,
          and resamples of these are too similar: with 7 % of others in 100 rows, p was below .05
          for 14 % of random judges. Found by simulation.
        """
        if METRICS[metric].within:
            return len(without_nan(self.by_group(metric)))
        if METRICS[metric].interval == "none":
            return 0.0
        clusters = effective_clusters(np.bincount(self.clusters).astype(float))
        return clusters * self.variation()

    def variation(self) -> float:
        """Return the part of the clusters that counts for correlations over rows.

        It is 1 unless most labels or most verdicts are the same (see ``effective``).
        """
        if self.kind == "compare" or not len(self):
            return 1.0
        return information(min(share_of_others(self.judged), share_of_others(self.human)))

    def within_groups(self, metric: str) -> GroupedCorrelation:
        """Return a metric within groups with the number of groups that count."""
        mean = self.statistic(metric)
        skipped = int(np.isnan(self.by_group(metric)).sum())
        groups = len(self.by_group(metric)) - skipped
        counts_as_0 = not METRICS[metric].is_share and not self.skip_one_score
        one_score = int(self._one_score.sum()) if counts_as_0 else 0
        return GroupedCorrelation(mean.value, mean.low, mean.high, groups, skipped, one_score)

    def statistics(self, metrics: Collection[str]) -> dict[str, Statistic]:
        """Return several metrics by name; correlations over rows share their resamples."""
        if self.kind == "score" and self.count >= FEWEST_CLUSTERS:
            self._draw_over_rows(name for name in metrics if METRICS[name].unit == "rows")
        return {name: self.statistic(name) for name in metrics}

    def _value(self, metric: str) -> float | None:
        if METRICS[metric].within:
            return mean_or_none(without_nan(self.by_group(metric)))
        if METRICS[metric].unit == "systems":
            return self._over_systems[METRICS[metric].coefficient]
        if self.kind == "score":
            return correlation(metric, self.judged, self.human)
        return none_if_nan(self._formula(metric)(self._tables.sum(axis=0, keepdims=True))[0])

    def _drawn(self, metric: str) -> Floats:
        if METRICS[metric].within:
            return mean_of_groups(spread_out(self.by_group(metric), metric), self.resampling)
        if METRICS[metric].interval == "none":
            return np.full(self.resampling.resamples, np.nan)
        if self.kind == "score":
            self._draw_over_rows([metric])
            return self._over_rows[metric]
        # Flat, so that one matrix product adds up the tables of the clusters in each resample.
        flat = self._tables.reshape(-1, 9)
        formula = self._formula(metric)
        return self.resampling.figures(
            len(flat), lambda weights: formula((weights @ flat).reshape(-1, 3, 3))
        )

    @staticmethod
    def _formula(metric: str) -> Callable[[Floats], Floats]:
        """Return the formula of a metric of preferences."""
        formula = METRICS[metric].formula
        assert formula is not None, f"{metric} is a metric of preferences without a formula"
        return formula

    def _draw_over_rows(self, metrics: Iterable[str]) -> None:
        new = [name for name in metrics if name not in self._over_rows]
        if new:
            columns = self.judged, self.human, self.clusters
            self._over_rows |= resampled_correlations(new, *columns, self.resampling)

    def _by_group(self, metric: str) -> Floats:
        if not self.grouped:
            return np.full(0, np.nan)
        coefficient = METRICS[metric].coefficient
        if coefficient == "pairwise":
            pairs = GroupPairs(self.judged, self.human, self.clusters, self.repeats)
            return pairs.cross_fitted()
        by_group = correlations_within(coefficient, self.judged, self.human, self.clusters)
        return by_group if self.skip_one_score else np.where(self._one_score, 0.0, by_group)

    @cached_property
    def _over_systems(self) -> Mapping[str, float | None]:
        """The metrics over systems, by coefficient."""
        systems = self.systems if self.systems is not None else np.full(len(self), -1)
        known = systems >= 0
        return compare_systems(
            self.judged[known], self.human[known], systems[known], self.clusters[known]
        )

    @cached_property
    def _one_score(self) -> NDArray[np.bool_]:
        """Whether each group has one score from the judge, although its labels differ."""
        if not self.grouped:
            return np.zeros(0, dtype=bool)
        return constant_within(self.judged, self.clusters) & ~constant_within(
            self.human, self.clusters
        )

    @cached_property
    def _tables(self) -> Floats:
        """Confusion tables of the judge and humans in each cluster: (clusters, 3, 3)."""
        tables = np.zeros((self.count, 3, 3))
        # add.at counts every row of a cluster. ``tables[clusters] += rows`` would only add the last
        # one.
        np.add.at(tables, self.clusters, confusion_tables(self.judged, self.human, self.ties))
        return tables


_PLENTY = 0.3
"""From this share of less common values, intervals of correlations over rows are calibrated."""


def share_of_others(values: Floats) -> float:
    """Return the share of values that are not the most common one."""
    return 1 - int(np.unique(values, return_counts=True)[1].max()) / len(values)


def information(others: float) -> float:
    """Return the part of the clusters that counts for a correlation of values that hardly vary.

    Args:
        others: the share of values that are not the most common one.

    >>> information(0.4), round(information(0.1), 3)
    (1.0, 0.111)
    """
    return min(1.0, others / _PLENTY) ** 2


def spread_out(by_group: Floats, metric: str) -> Floats:
    """Return values with the same mean, and with the standard error of a metric (``spread``)."""
    known = without_nan(by_group)
    if not len(known) or METRICS[metric].spread == 1.0:
        return by_group
    mean = known.mean()
    spread: Floats = mean + METRICS[metric].spread * (by_group - mean)
    return spread


def mean_within(
    by_group: Floats, resampling: Resampling, is_share: bool = False
) -> tuple[Statistic, float | None]:
    """Return the mean of one value between -1 and 1 per group, with its interval and p-value.

    The values are skewed if the mean is far from 0, which Student's interval ignores: its coverage
    was 85 % in simulations with 12 groups of three. As a share, (1 + value) / 2, the mean has a
    score interval with Student's quantile and the variance of the groups, wider by n / (n - 1). The
    two-sided p-value against 0 comes from the same score.

    Args:
        by_group: the value of each group that counts.
        resampling: its confidence; with 0 resamples there are no intervals.
        is_share: whether the values lie between 0 and 1; then there is no p-value, because a share
            is not 0 by chance.
    """
    from scipy.special import stdtr, stdtrit

    if is_share:
        halved = mean_within(2 * by_group - 1, resampling)[0].times(0.5)
        shifted = (None if end is None else end + 0.5 for end in (halved.low, halved.high))
        return Statistic(mean_or_none(by_group), *shifted), None
    mean = mean_or_none(by_group)
    n = len(by_group)
    if mean is None or n < FEWEST_CLUSTERS or not resampling.resamples:
        return Statistic(mean), None
    share = (1 + mean) / 2
    variance = float(by_group.var(ddof=1)) / 4 / (n - 1)
    if variance < 1e-12:
        # Unseen groups may differ from the given ones.
        figure = resampling.no_point(Statistic(mean, mean, mean), n)
        ends = max(-1.0, figure.low or 0.0), min(1.0, figure.high or 0.0)
        return Statistic(mean, *ends), student_interval(mean, 0.0, n - 1, resampling.confidence)[2]
    votes = share * (1 - share) / variance
    t = float(stdtrit(n - 1, (1 + resampling.confidence) / 2))
    centre = (share + t * t / (2 * votes)) / (1 + t * t / votes)
    margin = t / (1 + t * t / votes) * math.sqrt(variance + t * t / (4 * votes * votes))
    p = 2 * float(stdtr(n - 1, -abs(mean) * math.sqrt(votes)))
    return Statistic(mean, 2 * (centre - margin) - 1, 2 * (centre + margin) - 1), p


def _smoothed(table: Floats, figure: Callable[[Floats], Floats]) -> tuple[float, float]:
    """Return a metric of a smoothed table of counts, and its standard error.

    Smoothing adds two rows, spread over the cells. The standard error is that of the delta method
    for a multinomial sample (as in Fleiss, Cohen and Everitt 1969 for kappa), with numerical
    derivatives.

    Args:
        table: counts, of shape (classes, classes) or with more axes.
        figure: computes the metric of each table of an array.
    """
    axes = range(table.ndim)
    # Unused classes stay empty.
    used = np.max([table.sum(axis=tuple({*axes} - {axis})) > 0 for axis in axes], axis=0)
    cells = np.ones(table.shape)
    for axis in axes:
        shape = [1] * table.ndim
        shape[axis] = -1
        cells = cells * used.reshape(shape)
    counts = table + 2 / cells.sum() * cells
    step = 1e-4
    bumped = counts + step * np.eye(counts.size).reshape(-1, *counts.shape)
    value = float(figure(counts[None])[0])
    slopes = (figure(bumped) - value) / step
    weights = counts.ravel() / counts.sum()
    mean = float((weights * slopes).sum())
    variance = float((weights * (slopes - mean) ** 2).sum()) * float(counts.sum())
    return value, math.sqrt(max(0.0, variance))


def _wider(
    figure: Statistic, p: float | None, value: float, error: float, sample: Sample, clusters: float
) -> tuple[Statistic, float | None]:
    """Return a metric with the wider interval of its own and the smoothed table's.

    The p-value is the greater one of both.
    """
    if figure.low is None or figure.high is None or p is None:
        return figure, p
    low, high, also = student_interval(value, error, clusters - 1, sample.resampling.confidence)
    wide = Statistic(
        figure.value, min(figure.low, max(-1.0, low)), max(figure.high, min(1.0, high))
    )
    return wide, max(p, also)


Pair = tuple[Sample, Sample]
"""Two judges' samples of the same rows."""


@dataclass(frozen=True)
class Difference:
    """A comparison of two judges by one metric on the same rows, of one aspect or averaged.

    Attributes:
        first, second: each judge's metric. Within groups, both use the groups in which both have a
        correlation; if there is no such group, and so no difference, each has its own.
        difference: the first minus the second, with its interval.
        p: the two-sided p-value, from the same standard error.
        adjusted: ``p`` by Holm's method among all pairs on this subject and metric.
        adjusted_to_base: ``p`` by Holm's method among the pairs with the base on this subject and
            metric; ``None`` if neither is the base.
        needed: a lower bound of the number of clusters at which a difference of this size is
            significant with a power of 80 % (``clusters_needed``); ``None`` if the data do not
            show it.
        t: the difference as a multiple of its standard error; ``None`` if that is not known.
        clusters: the number of clusters that count; within groups, those in which both have a
            correlation.
    """

    first: float | None
    second: float | None
    difference: Statistic
    p: float | None = None
    adjusted: float | None = None
    adjusted_to_base: float | None = None
    needed: int | None = None
    t: float | None = None
    clusters: int = 0


def clusters_needed(t: float | None, clusters: int, tests: int = 1) -> int | None:
    """Return the number of clusters at which a difference of this size is significant.

    It is a lower bound for a power of 80 %. The standard error shrinks with the square root of the
    number of clusters (Cohen 1988, section 2.4). So the number for m tests with Holm's correction
    is n (z_(1 - .05 / 2m) + z_.8)^2 / t^2. The observed difference is itself uncertain: below one
    standard error, the number would be arbitrary, so the result is ``None``.

    Args:
        t: the difference as a multiple of its standard error.
        clusters: the number of clusters in which it was observed.
        tests: the number of differences that are tested together.

    >>> clusters_needed(1.4, 100), clusters_needed(1.4, 100, tests=5), clusters_needed(0.9, 100)
    (401, 596, None)
    """
    from scipy.special import ndtri

    if t is None or abs(t) < 1:
        return None
    quantiles = float(ndtri(1 - 0.05 / (2 * tests))) + float(ndtri(POWER))
    return max(FEWEST_CLUSTERS, math.ceil(clusters * (quantiles / t) ** 2))


def paired_difference(pairs: Sequence[Pair], metric: str) -> Difference:
    """Compare two judges by one metric on the same rows.

    If the judges' rows have different groups, or the aspects have different clusters, there are no
    common resamples, and so no interval and no p-value.

    Args:
        pairs: both judges' samples, one pair for each aspect of the average.
        metric: the metric's name.
    """
    values = zip(*(_compared(*pair, metric) for pair in pairs), strict=True)
    first, second, apart = map(_mean_of_all, values)
    clusters, (mine, theirs) = min(telling_clusters(pair, metric) for pair in pairs), pairs[0]
    effective = min(clusters, *(sample.effective(metric) for pair in pairs for sample in pair))
    how = mine.resampling
    within = METRICS[metric].within
    drawn = np.zeros(0)
    paired = all(_paired(*pair) for pair in pairs)
    # Resamples of two clusters have no information.
    if apart is not None and clusters >= 3 and paired and same_clusters(chain(*pairs)):
        differences = []
        for own, other in pairs:
            if within:
                by_group = own.by_group(metric) - other.by_group(metric)
                differences.append(mean_of_groups(spread_out(by_group, metric), how))
            else:
                differences.append(own.drawn(metric) - other.drawn(metric))
        drawn = np.mean(differences, axis=0)
    if len(pairs) == 1 and within and paired:
        by_group = without_nan(mine.by_group(metric) - theirs.by_group(metric))
        difference, p = how.mean_interval(spread_out(by_group, metric))
    else:
        difference, p = how.studentised(apart, drawn, effective)
    # For example, for two judges that are right on the same items.
    difference = how.no_point(difference, clusters, 1.0 if METRICS[metric].is_share else 2.0)
    if p is not None and mine.kind == "compare" and METRICS[metric].interval == "bootstrap":
        difference, p = _wider(
            difference, p, *_smoothed_difference(mine, theirs, metric), mine, effective
        )
    t = None
    known = without_nan(drawn)
    if apart is not None and len(known) > 1 and np.ptp(known) > 1e-12:
        t = apart / (float(known.std(ddof=1)) * math.sqrt(clusters / (clusters - 1)))
    needed = clusters_needed(t, clusters)
    return Difference(first, second, difference, p, needed=needed, t=t, clusters=clusters)


def _smoothed_difference(first: Sample, second: Sample, metric: str) -> tuple[float, float]:
    """Return the smoothed difference of a metric between two judges, as in ``_smoothed``."""
    verdicts = np.eye(3)[first.judged.astype(np.intp)]
    joint = np.einsum(
        "ra,rbh->abh", verdicts, confusion_tables(second.judged, second.human, second.ties)
    )
    formula = METRICS[metric].formula
    assert formula is not None, f"{metric} is a metric of preferences without a formula"

    def apart(tables: Floats) -> Floats:
        difference: Floats = formula(tables.sum(axis=2)) - formula(tables.sum(axis=1))
        return difference

    return _smoothed(joint, apart)


def _compared(
    first: Sample, second: Sample, metric: str
) -> tuple[float | None, float | None, float | None]:
    """Return both judges' metric on the same rows, and its difference."""
    mine = first.value(metric)
    theirs = second.value(metric)
    if not METRICS[metric].within:
        return mine, theirs, None if mine is None or theirs is None else mine - theirs
    by_group = first.by_group(metric)
    of_other = second.by_group(metric)
    if not _paired(first, second) or not (both := ~np.isnan(by_group - of_other)).any():
        return mine, theirs, None
    by_group = by_group[both]
    of_other = of_other[both]
    return float(by_group.mean()), float(of_other.mean()), float((by_group - of_other).mean())


def _mean_of_all(values: Sequence[float | None]) -> float | None:
    """Average values.

    ``None`` if one is missing, as means over different aspects do not compare.
    """
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known and len(known) == len(values) else None


def average(samples: Sequence[Sample], metric: str) -> Statistic:
    """Average a metric over the aspects of one judge; for one aspect, return the metric itself."""
    return tested_average(samples, metric)[0]


def tested_average(samples: Sequence[Sample], metric: str) -> tuple[Statistic, float | None]:
    """Average a metric over the aspects of one judge, and return its p-value against 0.

    There is no value if an aspect has none, and no interval if aspects have different clusters and
    so no common resamples.
    """
    mean = _mean_of_all([sample.value(metric) for sample in samples])
    first = samples[0]
    if len(samples) == 1:
        return first.tested(metric)
    if not same_clusters(samples):
        return Statistic(mean), None
    count = min(sample.effective(metric) for sample in samples)
    drawn = np.mean([sample.drawn(metric) for sample in samples], axis=0)
    return first.resampling.studentised(mean, drawn, count, bounded=True)


POWER = 0.8
"""The chance with which the recommended number of clusters or items shows a difference."""


def _paired(first: Sample, second: Sample) -> bool:
    """Return whether both samples draw the same clusters in each resample."""
    return np.array_equal(first.clusters, second.clusters) and first.grouped == second.grouped


def same_clusters(samples: Iterable[Sample]) -> bool:
    """Return whether all samples, of one or several aspects, draw the same clusters."""
    first, *others = samples
    return all(np.array_equal(sample.names, first.names) for sample in others)


def telling_clusters(samples: Sequence[Sample], metric: str) -> int:
    """Return the number of clusters behind a metric.

    For a metric within groups, these are the groups in which all samples have a correlation.
    """
    if not METRICS[metric].within:
        return samples[0].count
    figures = [sample.by_group(metric) for sample in samples]
    if len({len(by_group) for by_group in figures}) > 1:
        return 0
    return int((~np.isnan(np.sum(figures, axis=0))).sum())


def mean_of_groups(by_group: Floats, resampling: Resampling) -> Floats:
    """Compute the mean over groups in each resample of groups; groups with NaN do not count."""
    known = ~np.isnan(by_group)
    values = np.where(known, by_group, 0.0)
    counts = known.astype(float)
    return resampling.figures(
        len(by_group), lambda weights: ratio(weights @ values, weights @ counts)
    )
