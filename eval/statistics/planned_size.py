"""How many groups a study needs to show a difference of two judges, from the variance in a pilot.

The variance of the difference of two judges is that of one group (or item) divided by their number:

    V(n, k) = B + (W + L / k) / m(n)

B is the variance between groups, W that between the items of a group, and L that of single labels; n
is the number of items per group and k that of annotators per item. m(n) is n - 1 for metrics within
groups, because a correlation has no information with one item, and n otherwise. A pilot has V for its
own n and k, V for half of its items, and V for one annotator. The parts follow from these three.

With m tests by Holm's method, g groups show a gain with the chance

    T(gain sqrt(g / V) - t(1 - .05 / 2m))

where T and t are Student's distribution and its quantile at g - 1 degrees of freedom (Cohen 1988,
section 2.5). The pilot only estimates V. The needed number is the smallest g at which the mean chance
over the possible values of V is the power (assurance; O'Hagan, Stevens and Campbell 2005). The
possible values have a scaled inverse chi-squared distribution, with fewer degrees of freedom if the
differences of groups have heavy tails. Its interval gives the range.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .alignment import Floats
from .metrics import METRICS
from .resampling import FEWEST_CLUSTERS, without_nan
from .sample import Pair, same_clusters, spread_out
from .significance import LEVEL

_NONE = 1e-12
"""A variance up to this size is rounding."""
_STEPS = 400
"""The number of possible variances over which the chance is averaged."""


@dataclass(frozen=True)
class PilotVariance:
    """The variance of the difference of two judges in a pilot.

    Attributes:
        each: the variance for one group: the squared standard error times the number of groups.
        clusters: the number of groups of the pilot, or of items without groups.
        effective: the number of independent groups that they are worth for the metric.
        freedom: the degrees of freedom of the variance: one less than the groups, and fewer if
            some groups have much larger differences than others.
    """

    each: float
    clusters: int
    effective: float
    freedom: float

    @property
    def is_zero(self) -> bool:
        """Whether the variance is 0 up to rounding."""
        return self.each < _NONE


def pilot_variance(pairs: Sequence[Pair], metric: str) -> PilotVariance | None:
    """Estimate the variance of the difference of two judges.

    Args:
        pairs: both judges' samples of the same rows, one pair for each aspect of the average.
        metric: a metric with an interval.

    Returns:
        the variance; ``None`` if the difference has none, or if aspects have different groups.
    """
    samples = [sample for pair in pairs for sample in pair]
    first = samples[0]
    if not same_clusters(samples) or first.count < 2:
        return None
    if METRICS[metric].within:
        apart = [mine.by_group(metric) - theirs.by_group(metric) for mine, theirs in pairs]
        known = spread_out(without_nan(np.mean(apart, axis=0)), metric)
        if len(known) < 2:
            return None
        error = float(known.var(ddof=1)) / len(known)
        each = error * first.count
        return PilotVariance(each, first.count, float(len(known)), _freedom(known))
    drawn = [mine.drawn(metric) - theirs.drawn(metric) for mine, theirs in pairs]
    known = without_nan(np.mean(drawn, axis=0))
    effective = min(sample.effective(metric) for sample in samples)
    if len(known) < 2 or effective <= 1:
        return None
    # The spread of resamples is too small by (n - 1) / n.
    error = float(known.var(ddof=1)) * effective / (effective - 1)
    return PilotVariance(error * first.count, first.count, effective, effective - 1)


def _freedom(values: Floats) -> float:
    """Return the degrees of freedom of a variance, from the kurtosis k of its n values.

    The squared relative error of the variance is 2 / (n - 1) + (k - 3) / n, and 2 / f for f degrees
    of freedom (Cramer 1946, section 27.4).
    """
    n = len(values)
    squares = (values - values.mean()) ** 2
    mean = float(squares.mean())
    if mean < _NONE:
        return n - 1.0
    excess = max(0.0, float((squares**2).mean()) / mean**2 - 3)
    return 2 / (2 / (n - 1) + excess / n)


@dataclass(frozen=True)
class VarianceParts:
    """The parts of the variance of the difference of two judges.

    Attributes:
        groups: the variance between groups.
        items: the variance between the items of a group, with labels without error.
        labels: the variance of single labels; 0 if the pilot has one label per item.
        within: whether the metric is within groups.

    >>> round(VarianceParts(0.01, 0.2, 0.3, within=False).each(items=4, annotators=3), 9)
    0.085
    """

    groups: float
    items: float
    labels: float
    within: bool

    def each(self, items: float, annotators: float) -> float:
        """Return the variance of one group for another number of items and annotators."""
        return self.groups + (self.items + self.labels / annotators) / _weight(items, self.within)


def split_variance(
    whole: float,
    half: tuple[float, float] | None,
    one_label: float | None,
    items: float,
    annotators: float,
    within: bool,
) -> VarianceParts:
    """Split the variance of one group into parts.

    Args:
        whole: the variance with all items and labels of the pilot.
        half: that with about half of the items of each group, and their number per group; ``None``
            if groups are too small.
        one_label: that with one annotator per item; ``None`` if there is only one.
        items: the number of items per group.
        annotators: the number of annotators per item.
        within: whether the metric is within groups.

    >>> split_variance(0.085, (0.16, 2), 0.135, 4, 3, within=False)
    VarianceParts(groups=0.01, items=0.2, labels=0.3, within=False)
    """
    weight = _weight(items, within)
    of_items = whole * weight
    if half is not None:
        of_half, half_items = half
        slope = 1 / _weight(half_items, within) - 1 / weight
        of_items = min(of_items, max(0.0, (of_half - whole) / slope))
    groups = round(whole - of_items / weight, 12)
    labels = 0.0
    if one_label is not None and annotators > 1:
        labels = (one_label - whole) * weight / (1 - 1 / annotators)
        labels = min(of_items * annotators, max(0.0, labels))
    rest = of_items - labels / annotators
    return VarianceParts(max(0.0, groups), round(rest, 12), round(labels, 12), within)


def _weight(items: float, within: bool) -> float:
    return max(items - 1, 0.5) if within else items


@dataclass(frozen=True)
class NeededClusters:
    """The number of groups (or items) that a study needs.

    Attributes:
        needed: with the mean chance over the possible variances.
        low, high: for the ends of the confidence interval of the variance.
    """

    needed: int
    low: int
    high: int


def needed_clusters(
    variance: float,
    gain: float,
    power: float = 0.8,
    tests: int = 1,
    freedom: float = math.inf,
    confidence: float = 0.95,
) -> NeededClusters:
    """Return the number of groups at which a difference is significant with a given power.

    Args:
        variance: the variance of the difference for one group.
        gain: the difference.
        power: the chance of a significant result.
        tests: the number of differences that are tested together by Holm's method.
        freedom: the degrees of freedom of the variance, for the range.
        confidence: the confidence level of the range.

    >>> needed_clusters(0.25, 0.1, freedom=29)
    NeededClusters(needed=211, low=127, high=357)
    """
    if math.isinf(freedom):
        known = _needed(np.array([variance]), gain, power, tests)
        return NeededClusters(known, known, known)
    from scipy.special import chdtri

    # chdtri is the inverse of the upper tail. Equal steps of probability give the possible true
    # variances behind the estimate.
    tails = (np.arange(_STEPS) + 0.5) / _STEPS
    possible: Floats = np.asarray(variance * freedom / chdtri(freedom, tails), dtype=np.float64)
    tail = (1 - confidence) / 2
    ends = variance * freedom / chdtri(freedom, np.array([tail, 1 - tail]))
    low, high = (_needed(np.array([float(end)]), gain, power, tests) for end in ends)
    return NeededClusters(_needed(possible, gain, power, tests), low, high)


def _needed(variances: Floats, gain: float, power: float, tests: int) -> int:
    """Return the smallest number of groups at which the mean chance over variances is the power."""
    from scipy.special import stdtr, stdtrit

    def chance(groups: int) -> float:
        critical = float(stdtrit(groups - 1, 1 - LEVEL / (2 * tests)))
        return float(stdtr(groups - 1, gain * np.sqrt(groups / variances) - critical).mean())

    enough = FEWEST_CLUSTERS
    while chance(enough) < power:
        enough *= 2
    few = max(FEWEST_CLUSTERS - 1, enough // 2)
    while enough - few > 1:
        middle = (few + enough) // 2
        if chance(middle) < power:
            few = middle
        else:
            enough = middle
    return enough
