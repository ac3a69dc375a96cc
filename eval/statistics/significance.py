"""Run tests of significance: t, McNemar's, sign and alternative annotator test, dependent correlations; Holm's method.

The paired t-test over items is that of the courtroom paper (Table 3); McNemar's test is for right or wrong verdicts.
Differences of agreement itself, which is no mean over items, are in ``sample``.

Two judges' correlations with people share a variable (the people's scores) and their rows, so they go up and down
together, and a test for independent correlations would be wrong. Steiger (1980, Tests for comparing elements of a
correlation matrix) recommends Williams' t and, from Fisher's transformation, a Z that pools both correlations; both are
here. They take rows to be independent of each other; where rows share a source, the difference in ``sample`` is the one
to look at.

The alternative annotator test asks whether a judge could take the place of one of the people who label (Calderon,
Reichart and Dror, "The Alternative Annotator Test for LLM-as-a-Judge", ACL 2025): each annotator is left out in turn,
and both the annotator and the judge are compared with the others, item by item.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from ...state.errors import UsageError
from .alignment import Floats, Ints
from .correlation import correlation
from .resampling import Statistic, mean_or_none, student_interval

LEVEL = 0.05
"""The significance level: a difference with a Holm-adjusted p-value below it is significant."""


class Test(NamedTuple):
    """Holds a test's statistic (t or z) and its two-sided p-value; both ``None`` where the test does not exist."""

    statistic: float | None = None
    p: float | None = None


def paired_t_test(first: Floats, second: Floats, confidence: float = 0.95) -> tuple[Statistic, Test]:
    """Run Student's paired t-test: t = mean(d) / (sd(d) / sqrt(n)) of the differences d = first - second.

    Args:
        first, second: one value an item, as 1 for right and 0 for wrong.
        confidence: of the interval.

    Returns:
        the mean of the differences with Student's interval, and the test; of fewer than two items, or where all
        differences are equal, the mean alone.

    >>> difference, test = paired_t_test(np.array([1, 1, 0, 1, 1]), np.array([0, 1, 0, 0, 1]))
    >>> round(difference.value, 3), round(test.statistic, 3), round(test.p, 3)
    (0.4, 1.633, 0.178)
    """
    differences = np.subtract(first, second)
    mean, n = mean_or_none(differences), len(differences)
    if mean is None or n < 2 or np.ptp(differences) == 0:
        return Statistic(mean), Test()
    error = float(differences.std(ddof=1)) / math.sqrt(n)
    low, high, p = student_interval(mean, error, n - 1, confidence)
    return Statistic(mean, low, high), Test(mean / error, p)


def independent(clusters: Ints) -> bool:
    """Tell whether no two rows share a cluster (a group, or an item), so that a test for independent rows is right."""
    return len(np.unique(clusters)) == len(clusters)


def sign_test(first: int, second: int, clusters: Ints) -> float | None:
    """Return the exact two-sided p-value of the binomial test of one half.

    Args:
        first, second: how many rows there are of either kind; without any there is no test.
        clusters: of each row that could have been of one of them, what it was drawn with: where rows share one, the
            test would find far too many differences, and there is none either.

    >>> sign_test(5, 0, np.arange(9)), sign_test(3, 3, np.arange(9)), sign_test(5, 0, np.arange(9) // 3)
    (0.0625, 1.0, None)
    """
    return binomial_test(first, second) if first + second and independent(clusters) else None


def binomial_test(heads: int, tails: int) -> float:
    """Return the two-sided p-value of a fair coin: twice the chance of as few of the rarer side or fewer; at most 1."""
    from scipy.special import bdtr

    throws = heads + tails
    return min(1.0, 2 * float(bdtr(min(heads, tails), throws, 0.5))) if throws else 1.0


TESTED_CORRELATIONS = ("pearson", "spearman")


class DependentCorrelations(NamedTuple):
    """Holds two tests whether two correlations with the same variable differ.

    Attributes:
        williams: Williams' t, with n - 3 degrees of freedom; there is none where both judges are the same up to scale.
        steiger: Steiger's Z; there is none where a correlation is 1 or -1.
    """

    williams: Test = Test()
    steiger: Test = Test()


def compare_dependent(name: str, first: Floats, second: Floats, human: Floats) -> DependentCorrelations:
    """Test the difference of two judges' correlations with the same people's scores.

    Args:
        name: ``pearson``; or ``spearman``, for which the tests are approximate (they are Pearson's on ranks).
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
    """Test the difference of two correlations that share a variable, from the three correlations that papers print.

    With r1 and r2 the two correlations, r the one between, m = (r1 + r2) / 2 and
    D = 1 - r1^2 - r2^2 - r^2 + 2 r1 r2 r:

    - Williams: t = (r1 - r2) sqrt((n-1)(1+r) / (2 D (n-1)/(n-3) + m^2 (1-r)^3)), with n - 3 degrees of freedom;
    - Steiger: Z = (atanh r1 - atanh r2) sqrt((n-3) / (2 - 2c)), c = [r(1-2m^2) - m^2 (1-2m^2-r^2)/2] / (1-m^2)^2.

    >>> test = difference_of_correlations(0.80, 0.72, 0.89, n=26)
    >>> round(test.williams.statistic, 3), round(test.williams.p, 3)
    (1.361, 0.187)
    """
    # Imported where it is needed, here and above: scipy.special takes longer to load than numpy.
    from scipy.special import stdtr

    # Both tests divide by n - 3.
    if first is None or second is None or between is None or n < 4:
        return DependentCorrelations()
    difference, m2 = first - second, ((first + second) / 2) ** 2
    b2 = between**2
    # Rounding may leave a little less than 0.
    determinant = max(0.0, 1 - first**2 - second**2 - b2 + 2 * first * second * between)
    spread = 2 * determinant * (n - 1) / (n - 3) + m2 * (1 - between) ** 3
    williams = Test()
    # Judges that are the same up to scale (between is 1 or -1) leave 0 in the numerator and the denominator.
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
    """Adjust p-values by Holm's method: each may be compared with the level as it stands, however many there are.

    Sorted upwards, the i-th smallest of m (from 0) is multiplied by m - i, and none may be smaller than the one before
    it nor greater than 1. Source: Holm 1979, A simple sequentially rejective multiple test procedure.

    Args:
        p_values: one a comparison; ``None`` where there was no test. Those stay ``None`` and are not counted in m.

    Returns:
        the adjusted values, in the order given.

    >>> holm([0.01, None, 0.04, 0.03])
    (0.03, None, 0.06, 0.06)
    """
    known = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, index) in enumerate(known):
        # The running maximum keeps the order: no p-value ends below one that was smaller before.
        highest = max(highest, min(1.0, (len(known) - rank) * p))
        adjusted[index] = highest
    return tuple(adjusted)


Closeness = Literal["accuracy", "rmse"]
"""How close one label is to those of others: the share of them that are equal, or the root mean squared difference."""

FEWEST_ITEMS = 30
"""Annotators with fewer items are left out of the test, as in the authors' code: Student's t needs about so many."""
FALSE_DISCOVERIES = 0.05
"""The rate of annotators wrongly found replaceable that is accepted (Benjamini and Yekutieli 2001)."""


class AlternativeAnnotatorTest(NamedTuple):
    """Says whether a judge could replace an annotator; ``None`` where no annotator has ``FEWEST_ITEMS`` items.

    Attributes:
        winning_rate: the share of annotators whom the judge could replace.
        advantage: the mean chance that the judge is at least as close to the others as a random annotator.
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
    """Test whether a judge could replace annotators: whether it wins as often as each of them, less epsilon.

    One wins on an item by being at least as close to the others' labels as the other one; both may. p-values are
    one-sided, and corrected over annotators.

    Args:
        judged: the judge's label of each item, or the label's code; NaN where there is none.
        labels: those of the annotators likewise, of shape (items, annotators).
        closeness: how close a label is to others: ``accuracy`` for classes, ``rmse`` for numbers on one scale.
        epsilon: how much less often the judge may win, for its labels cost less: the authors take .2 for experts, .15
            for trained people, .1 for crowd workers.

    Raises:
        UsageError: an epsilon that is not between 0 and 1.

    >>> items = np.arange(40.0) % 3
    >>> result = alternative_annotator_test(items, np.stack([items] * 3, axis=1))
    >>> result.winning_rate, result.advantage, result.passed
    (1.0, 1.0, True)
    """
    from scipy import stats

    if not 0 <= epsilon < 1:
        raise UsageError(f"epsilon must be at least 0 and below 1, got {epsilon}")
    p_values, advantages = list[float](), list[float]()
    for place in range(labels.shape[1]):
        own, others = labels[:, place], np.delete(labels, place, axis=1)
        both = ~np.isnan(own + judged) & ~np.isnan(others).all(axis=1)
        if both.sum() < FEWEST_ITEMS:
            continue
        of_judge, of_annotator = (_close(given[both], others[both], closeness) for given in (judged, own))
        judge_wins, annotator_wins = of_judge >= of_annotator, of_annotator >= of_judge
        excess = annotator_wins.astype(float) - judge_wins
        # Without variation Student's t does not exist, and the mean is all there is to know.
        p = float(excess[0] >= epsilon)
        if np.ptp(excess):
            p = float(stats.ttest_1samp(excess, epsilon, alternative="less").pvalue)
        p_values.append(p)
        advantages.append(float(judge_wins.mean()))
    if not p_values:
        return AlternativeAnnotatorTest(None, None)
    beaten = stats.false_discovery_control(p_values, method="by") <= FALSE_DISCOVERIES
    return AlternativeAnnotatorTest(float(beaten.mean()), float(np.mean(advantages)))


def _close(labels: Floats, others: Floats, closeness: Closeness) -> Floats:
    """Return how close each label is to those of others that there are: the higher the closer."""
    apart = others - labels[:, None]
    close: Floats = -np.sqrt(np.nanmean(apart**2, axis=1))
    if closeness == "accuracy":
        close = np.nanmean(np.where(np.isnan(apart), np.nan, apart == 0), axis=1)
    return close
