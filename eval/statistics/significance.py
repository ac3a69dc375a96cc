"""Significance tests: t, McNemar's, sign, alternative annotator, dependent correlations; Holm.

The paired t-test over items is that of the courtroom paper (Table 3). McNemar's test is for right
or wrong verdicts. Differences of agreement, which is not a mean over items, are in ``sample``.

Two judges' correlations with human scores share the human scores and the rows. They are therefore
dependent, and a test for independent correlations would be wrong. Steiger (1980, Tests for
comparing elements of a correlation matrix) recommends Williams' t, and a Z from Fisher's
transformation that pools both correlations. Both are here. They assume independent rows. If rows
share a source, use the difference in ``sample`` instead.

The alternative annotator test asks whether a judge could replace one of the human annotators
(Calderon, Reichart and Dror, "The Alternative Annotator Test for LLM-as-a-Judge", ACL 2025): each
annotator is left out in turn, and both the annotator and the judge are compared with the others,
item by item.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from ...state.errors import UsageError
from .alignment import Floats, Ints, number_groups
from .correlation import correlation
from .resampling import Statistic, is_few, mean_or_none, student_interval

LEVEL = 0.05
"""The significance level: a difference with a smaller Holm-adjusted p-value is significant."""


class Test(NamedTuple):
    """A test's statistic (t or z) and its two-sided p-value.

    ``None`` if the test does not exist.
    """

    statistic: float | None = None
    p: float | None = None


def paired_t_test(
    first: Floats, second: Floats, confidence: float = 0.95
) -> tuple[Statistic, Test]:
    """Run Student's paired t-test: t = mean(d) / (sd(d) / sqrt(n)) with d = first - second.

    Args:
        first, second: one value per item, such as 1 for right and 0 for wrong.
        confidence: the confidence level of the interval.

    Returns:
        the mean of the differences with Student's interval, and the test; with fewer than two
        items, or if all differences are equal, only the mean.

    >>> difference, test = paired_t_test(np.array([1, 1, 0, 1, 1]), np.array([0, 1, 0, 0, 1]))
    >>> round(difference.value, 3), round(test.statistic, 3), round(test.p, 3)
    (0.4, 1.633, 0.178)
    """
    differences = np.subtract(first, second)
    mean = mean_or_none(differences)
    n = len(differences)
    if mean is None or n < 2 or np.ptp(differences) == 0:
        return Statistic(mean), Test()
    error = float(differences.std(ddof=1)) / math.sqrt(n)
    low, high, p = student_interval(mean, error, n - 1, confidence)
    return Statistic(mean, low, high), Test(mean / error, p)


def independent(clusters: Ints) -> bool:
    """Return whether no two rows share a cluster, so that a test for independent rows is valid."""
    return len(np.unique(clusters)) == len(clusters)


def sign_test(first: int, second: int, clusters: Ints) -> float | None:
    """Return the exact two-sided p-value of the binomial test of one half.

    Args:
        first, second: the number of rows of either kind; without rows there is no test.
        clusters: the cluster of each row that could have been of either kind. If rows share one,
            there is no test, because it would find far too many differences.

    >>> sign_test(5, 0, np.arange(9)), sign_test(3, 3, np.arange(9)), sign_test(5, 0, np.arange(9) // 3)
    (0.0625, 1.0, None)
    """
    return binomial_test(first, second) if first + second and independent(clusters) else None


def clustered_sign_test(signs: Ints, clusters: Ints) -> float | None:
    """Return the exact two-sided p-value of the sign test over clusters; ``None`` for too few.

    Each cluster counts once, by the sign of its sum, so rows that share a cluster need not be
    independent. Clusters with a sum of 0 are ties, which the sign test leaves out.

    Args:
        signs: 1, 0 or -1 for each row.
        clusters: the cluster of each row.

    >>> clustered_sign_test(np.array([1] * 6 + [0] * 6), np.arange(12))
    0.03125
    >>> clustered_sign_test(np.array([1] * 6 + [0] * 6), np.arange(12) // 3) is None
    True
    """
    sums = np.bincount(number_groups(clusters), signs)
    if not len(sums) or is_few(len(sums)):
        return None
    return binomial_test(int((sums > 0).sum()), int((sums < 0).sum()))


def binomial_test(heads: int, tails: int) -> float:
    """Return the two-sided p-value of a fair coin.

    It is twice the chance of the rarer side's count or fewer, at most 1.
    """
    from scipy.special import bdtr

    throws = heads + tails
    return min(1.0, 2 * float(bdtr(min(heads, tails), throws, 0.5))) if throws else 1.0


TESTED_CORRELATIONS = ("pearson", "spearman")


class DependentCorrelations(NamedTuple):
    """Two tests whether two correlations with the same variable differ.

    Attributes:
        williams: Williams' t, with n - 3 degrees of freedom; no test if both judges are equal up to
            scale.
        steiger: Steiger's Z; no test if a correlation is 1 or -1.
    """

    williams: Test = Test()
    steiger: Test = Test()


def compare_dependent(
    name: str, first: Floats, second: Floats, human: Floats
) -> DependentCorrelations:
    """Test the difference of two judges' correlations with the same human scores.

    Args:
        name: ``pearson``, or ``spearman``, for which the tests are approximate (Pearson's on
            ranks).
        first, second, human: scores of the same rows.

    >>> human = np.array([1.0, 2, 2, 3, 4, 4, 5, 5])
    >>> first, second = np.array([1.0, 2, 3, 3, 4, 5, 5, 4]), np.array([3.0, 1, 2, 2, 5, 1, 4, 3])
    >>> test = compare_dependent("pearson", first, second, human)
    >>> round(test.williams.statistic, 3), round(test.williams.p, 4)
    (1.96, 0.1072)
    """
    pairs = ((first, human), (second, human), (first, second))
    first_r, second_r, between = (correlation(name, *pair) for pair in pairs)
    return difference_of_correlations(first_r, second_r, between, len(human))


def difference_of_correlations(
    first: float | None, second: float | None, between: float | None, n: int
) -> DependentCorrelations:
    """Test the difference of two correlations that share a variable, from all three correlations.

    With the two correlations r1 and r2, the correlation r between the judges, m = (r1 + r2) / 2 and
    D = 1 - r1^2 - r2^2 - r^2 + 2 r1 r2 r:

    - Williams: t = (r1 - r2) sqrt((n-1)(1+r) / (2 D (n-1)/(n-3) + m^2 (1-r)^3)), with n - 3 degrees
      of freedom;
    - Steiger: Z = (atanh r1 - atanh r2) sqrt((n-3) / (2 - 2c)), c = [r(1-2m^2) - m^2
      (1-2m^2-r^2)/2] / (1-m^2)^2.

    >>> test = difference_of_correlations(0.80, 0.72, 0.89, n=26)
    >>> round(test.williams.statistic, 3), round(test.williams.p, 3)
    (1.361, 0.187)
    """
    # A local import, here and above, because scipy.special takes longer to load than numpy.
    from scipy.special import stdtr

    # Both tests divide by n - 3.
    if first is None or second is None or between is None or n < 4:
        return DependentCorrelations()
    difference = first - second
    m2 = ((first + second) / 2) ** 2
    b2 = between**2
    # Rounding may give a value slightly below 0.
    determinant = max(0.0, 1 - first**2 - second**2 - b2 + 2 * first * second * between)
    spread = 2 * determinant * (n - 1) / (n - 3) + m2 * (1 - between) ** 3
    williams = Test()
    # For judges that are equal up to scale (between is 1 or -1), numerator and denominator are 0.
    if spread > 1e-15 and 1 + between > 1e-15:
        t = difference * math.sqrt((n - 1) * (1 + between) / spread)
        williams = Test(t, 2 * float(stdtr(n - 3, -abs(t))))
    # Fisher's transformation of 1 or -1 is infinite.
    if max(abs(first), abs(second), abs(between)) >= 1 - 1e-12:
        return DependentCorrelations(williams)
    # The covariance of the two transformed correlations, both estimated by their mean.
    covariance = (between * (1 - 2 * m2) - m2 * (1 - 2 * m2 - b2) / 2) / (1 - m2) ** 2
    z = (math.atanh(first) - math.atanh(second)) * math.sqrt((n - 3) / (2 - 2 * covariance))
    return DependentCorrelations(williams, Test(z, math.erfc(abs(z) / math.sqrt(2))))


def holm(p_values: Sequence[float | None]) -> tuple[float | None, ...]:
    """Adjust p-values by Holm's method, so that each can be compared with the level.

    Sorted in ascending order, the i-th smallest of m (from 0) is multiplied by m - i. No value may
    be smaller than the one before it, or greater than 1. Source: Holm 1979, A simple sequentially
    rejective multiple test procedure.

    Args:
        p_values: one per comparison; ``None`` without a test. ``None`` stays and does not count in
            m.

    Returns:
        the adjusted values, in the given order.

    >>> holm([0.01, None, 0.04, 0.03])
    (0.03, None, 0.06, 0.06)
    """
    known = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, index) in enumerate(known):
        # The running maximum preserves the order of the p-values.
        highest = max(highest, min(1.0, (len(known) - rank) * p))
        adjusted[index] = highest
    return tuple(adjusted)


Closeness = Literal["accuracy", "rmse"]
"""The closeness of a label to others: share of equal ones, or root mean squared difference."""

FEWEST_ITEMS = 30
"""The test leaves out annotators with fewer items, as the authors' code does, for Student's t."""
FALSE_DISCOVERIES = 0.05
"""The accepted false discovery rate (Benjamini and Yekutieli 2001)."""


class AlternativeAnnotatorTest(NamedTuple):
    """Whether a judge could replace an annotator; ``None`` if none has ``FEWEST_ITEMS`` items.

    Attributes:
        winning_rate: the share of annotators that the judge could replace.
        advantage: the mean chance that the judge is at least as close to the others as a random
            annotator.
    """

    winning_rate: float | None
    advantage: float | None

    @property
    def passed(self) -> bool | None:
        """Whether the judge could replace half of the annotators or more."""
        return None if self.winning_rate is None else self.winning_rate >= 0.5


def alternative_annotator_test(
    judged: Floats, labels: Floats, closeness: Closeness = "accuracy", epsilon: float = 0.1
) -> AlternativeAnnotatorTest:
    """Test whether a judge could replace annotators, that is, wins as often as each, less epsilon.

    A label wins on an item by being at least as close to the others' labels as the other one; both
    may win. p-values are one-sided, and corrected over annotators.

    Args:
        judged: the judge's label of each item, or the label's code; NaN if missing. Of shape
            (items,), or (items, annotators) for a control that answers in the place of each
            annotator.
        labels: the labels of the annotators, of shape (items, annotators).
        closeness: the closeness of a label to others: ``accuracy`` for classes, ``rmse`` for
            numbers on one scale.
        epsilon: how much less often the judge may win, because its labels cost less: the authors
            use .2 for experts, .15 for trained annotators, .1 for crowd workers.

    Raises:
        UsageError: an epsilon that is not between 0 and 1.

    >>> items = np.arange(40.0) % 3
    >>> result = alternative_annotator_test(items, np.stack([items] * 3, axis=1))
    >>> result.winning_rate, result.advantage, result.passed
    (1.0, 1.0, True)
    """
    # Not ``scipy.stats``, whose import takes half as long as a whole report.
    from scipy.special import stdtr

    if not 0 <= epsilon < 1:
        raise UsageError(f"epsilon must be at least 0 and below 1, got {epsilon}")
    p_values = list[float]()
    advantages = list[float]()
    for place in range(labels.shape[1]):
        own = labels[:, place]
        others = np.delete(labels, place, axis=1)
        in_place = judged if judged.ndim == 1 else judged[:, place]
        both = ~np.isnan(own + in_place) & ~np.isnan(others).all(axis=1)
        if both.sum() < FEWEST_ITEMS:
            continue
        of_judge, of_annotator = (
            _close(given[both], others[both], closeness) for given in (in_place, own)
        )
        judge_wins = of_judge >= of_annotator
        annotator_wins = of_annotator >= of_judge
        excess = annotator_wins.astype(float) - judge_wins
        # Without variation, Student's t does not exist, and the mean decides.
        p = float(excess[0] >= epsilon)
        if np.ptp(excess):
            error = excess.std(ddof=1) / math.sqrt(len(excess))
            p = float(stdtr(len(excess) - 1, (excess.mean() - epsilon) / error))
        p_values.append(p)
        advantages.append(float(judge_wins.mean()))
    if not p_values:
        return AlternativeAnnotatorTest(None, None)
    beaten = adjusted_for_discoveries(np.array(p_values)) <= FALSE_DISCOVERIES
    return AlternativeAnnotatorTest(float(beaten.mean()), float(np.mean(advantages)))


def adjusted_for_discoveries(p_values: Floats) -> Floats:
    """Adjust p-values so that their threshold bounds the false discovery rate of dependent tests.

    Source: Benjamini and Yekutieli 2001, theorem 1.3; as ``false_discovery_control`` of SciPy.
    """
    ranks = np.arange(1, len(p_values) + 1)
    order = np.argsort(p_values)
    scaled = p_values[order] * len(p_values) * (1 / ranks).sum() / ranks
    adjusted = np.empty_like(p_values)
    # A smaller p-value is never adjusted to more than a larger one.
    adjusted[order] = np.minimum.accumulate(scaled[::-1])[::-1].clip(0, 1)
    return adjusted


def _close(labels: Floats, others: Floats, closeness: Closeness) -> Floats:
    """Return the closeness of each label to the existing labels of others: higher is closer."""
    apart = others - labels[:, None]
    close: Floats = -np.sqrt(np.nanmean(apart**2, axis=1))
    if closeness == "accuracy":
        close = np.nanmean(np.where(np.isnan(apart), np.nan, apart == 0), axis=1)
    return close
