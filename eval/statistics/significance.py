"""Run tests of significance: paired t-test, McNemar's and sign test, dependent correlations, and Holm's correction.

The paired t-test over items is that of the courtroom paper (Table 3); McNemar's test is for right or wrong verdicts.
Differences of agreement itself, which is no mean over items, are in ``sample``.

Two judges' correlations with people share a variable (the people's scores) and their rows, so they go up and down
together, and a test for independent correlations would be wrong. Steiger (1980, Tests for comparing elements of a
correlation matrix) recommends Williams' t and, from Fisher's transformation, a Z that pools both correlations; both are
here. They take rows to be independent of each other; where rows share a source, the difference in ``sample`` is the one
to look at.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from .alignment import Column, Reasons, align_rows
from .correlation import correlation
from .resampling import Statistic, mean_or_none, student_interval

LEVEL = 0.05
"""The significance level: a difference with a Holm-adjusted p-value below it is significant."""


@dataclass(frozen=True)
class PairedTTest:
    """Tells whether two columns differ in their mean.

    Attributes:
        n: items that have both values; ``left_out``: the others, by reason.
        difference: the mean of first - second, with Student's interval.
        t, df, p: Student's t, degrees of freedom (n - 1) and two-sided p-value; ``None`` for fewer than two items, or
            where all differences are equal.
    """

    n: int
    left_out: Reasons
    difference: Statistic
    t: float | None = None
    df: int | None = None
    p: float | None = None


@dataclass(frozen=True)
class McNemar:
    """Tells whether one of two judges is right more often, on the same items.

    Attributes:
        both, neither: items on which both were right, or both wrong; they say nothing about a difference.
        only_first, only_second: items on which one alone was right (the counts b and c).
        p: exact two-sided p-value of b among b + c throws of a fair coin; 1 where b + c = 0, ``None`` without items.
    """

    both: int
    only_first: int
    only_second: int
    neither: int
    p: float | None


def paired_t_test(first: Column, second: Column, confidence: float = 0.95) -> PairedTTest:
    """Run Student's paired t-test: t = mean(d) / (sd(d) / sqrt(n)) of the differences d = first - second.

    Args:
        first, second: one value an item, as 1 for right and 0 for wrong; ``None`` where there is none.
        confidence: of the interval.

    Raises:
        ValueError: columns of different length.

    >>> test = paired_t_test([1, 1, 0, 1, 1], [0, 1, 0, 0, 1])
    >>> round(test.difference.value, 3), round(test.t, 3), test.df, round(test.p, 3)
    (0.4, 1.633, 4, 0.178)
    """
    rows = align_rows({"first": first, "second": second})
    differences = rows.columns["first"] - rows.columns["second"]
    mean, n = mean_or_none(differences), len(rows)
    if mean is None or n < 2 or np.ptp(differences) == 0:
        return PairedTTest(n, rows.left_out, Statistic(mean), df=n - 1 if n > 1 else None)
    error = float(differences.std(ddof=1)) / math.sqrt(n)
    low, high, p = student_interval(mean, error, n - 1, confidence)
    return PairedTTest(n, rows.left_out, Statistic(mean, low, high), mean / error, n - 1, p)


def mcnemar(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> McNemar:
    """Run McNemar's exact test: are the items that one judge alone has right split as by a fair coin?

    Args:
        first, second: whether either judge was right on each item.

    Source: McNemar 1947; the exact binomial form needs no large counts.

    >>> test = mcnemar(np.array([True] * 6 + [False]), np.array([False] * 5 + [True] * 2))
    >>> test.only_first, test.only_second, round(test.p, 5)
    (5, 1, 0.21875)
    """
    only_first, only_second = int((first & ~second).sum()), int((~first & second).sum())
    return McNemar(
        both=int((first & second).sum()),
        only_first=only_first,
        only_second=only_second,
        neither=int((~first & ~second).sum()),
        p=binomial_test(only_first, only_second) if len(first) else None,
    )


def _t_tail(t: float, df: int) -> float:
    """Return the two-sided p-value of Student's t."""
    # Imported where it is needed, here and below: scipy.special takes longer to load than numpy.
    from scipy.special import stdtr

    return 2 * float(stdtr(df, -abs(t)))


def sign_test(one: int, other: int) -> float | None:
    """Return the exact two-sided p-value of the binomial test of one half; ``None`` without either kind.

    >>> sign_test(5, 0), sign_test(3, 3), sign_test(0, 0)
    (0.0625, 1.0, None)
    """
    return binomial_test(one, other) if one + other else None


def binomial_test(heads: int, tails: int) -> float:
    """Return the two-sided p-value of a fair coin: twice the chance of as few of the rarer side or fewer; at most 1."""
    from scipy.special import bdtr

    throws = heads + tails
    return min(1.0, 2 * float(bdtr(min(heads, tails), throws, 0.5))) if throws else 1.0


TESTED_CORRELATIONS = ("pearson", "spearman")


@dataclass(frozen=True)
class DependentCorrelations:
    """Compares two correlations with the same variable, and tells whether they differ.

    Attributes:
        name: ``pearson`` or ``spearman``.
        n: rows that have all three scores.
        left_out: rows that do not, by reason.
        first, second: the correlation of either judge with people.
        between: that of the judges with each other.
        difference: first - second, with Zou's interval; ``confidence``: of that interval.
        williams_t, df, williams_p: Williams' t, its degrees of freedom (n - 3) and two-sided p-value.
        steiger_z, steiger_p: Steiger's Z and two-sided p-value.
        approximate: whether the tests, made for Pearson's r, were used on ranks.

    Figures that do not exist are ``None``: all of them where a column is constant or there are fewer than four rows;
    t, where both judges are the same up to scale; Z and the interval, where a correlation is 1 or -1.
    """

    name: str
    n: int
    first: float | None
    second: float | None
    between: float | None
    difference: Statistic
    confidence: float
    williams_t: float | None = None
    df: int | None = None
    williams_p: float | None = None
    steiger_z: float | None = None
    steiger_p: float | None = None
    approximate: bool = False
    left_out: Reasons = field(default_factory=dict)


def compare_dependent(
    name: str,
    first: Column,
    second: Column,
    human: Column,
    confidence: float = 0.95,
) -> DependentCorrelations:
    """Test the difference of two judges' correlations with the same people's scores.

    Args:
        name: ``pearson``; or ``spearman``, for which the tests are approximate (they are Pearson's on ranks).
        first, second, human: scores of the same rows; ``None`` where one is missing.
        confidence: of the interval.

    Raises:
        ValueError: another name, or columns of different length.

    >>> human = [1, 2, 2, 3, 4, 4, 5, 5]
    >>> test = compare_dependent("pearson", [1, 2, 3, 3, 4, 5, 5, 4], [3, 1, 2, 2, 5, 1, 4, 3], human)
    >>> round(test.williams_t, 3), round(test.williams_p, 4)
    (1.96, 0.1072)
    """
    if name not in TESTED_CORRELATIONS:
        raise ValueError(f"no test for {name!r}: there is one for {' and '.join(TESTED_CORRELATIONS)}")
    rows = align_rows({"first": first, "second": second, "human": human})
    x, y, shared = rows.columns.values()
    first_r, second_r = correlation(name, x, shared), correlation(name, y, shared)
    test = difference_of_correlations(first_r, second_r, correlation(name, x, y), len(rows), confidence)
    return replace(test, name=name, approximate=name == "spearman", left_out=rows.left_out)


def difference_of_correlations(
    first: float | None, second: float | None, between: float | None, n: int, confidence: float = 0.95
) -> DependentCorrelations:
    """Test the difference of two correlations that share a variable, from the three correlations that papers print.

    With r1 and r2 the two correlations, r the one between, m = (r1 + r2) / 2 and
    D = 1 - r1^2 - r2^2 - r^2 + 2 r1 r2 r:

    - Williams: t = (r1 - r2) sqrt((n-1)(1+r) / (2 D (n-1)/(n-3) + m^2 (1-r)^3)), with n - 3 degrees of freedom;
    - Steiger: Z = (atanh r1 - atanh r2) sqrt((n-3) / (2 - 2c)), c = [r(1-2m^2) - m^2 (1-2m^2-r^2)/2] / (1-m^2)^2;
    - the interval from those of both correlations (Zou 2007, Toward using confidence intervals to compare
      correlations).

    Raises:
        ValueError: a correlation beyond -1 or 1, or three that cannot go together.

    >>> test = difference_of_correlations(0.80, 0.72, 0.89, n=26)
    >>> round(test.williams_t, 3), test.df, round(test.williams_p, 3)
    (1.361, 23, 0.187)
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, not at {confidence}")
    # Both tests divide by n - 3.
    if first is None or second is None or between is None or n < 4:
        difference = None if first is None or second is None else first - second
        return DependentCorrelations("pearson", n, first, second, between, Statistic(difference), confidence)
    determinant = _determinant(first, second, between)
    t = _williams(first, second, between, determinant, n)
    z = _steiger(first, second, between, n)
    return DependentCorrelations(
        name="pearson",
        n=n,
        first=first,
        second=second,
        between=between,
        difference=_zou(first, second, between, n, confidence),
        confidence=confidence,
        williams_t=t,
        df=n - 3,
        williams_p=None if t is None else _t_tail(t, n - 3),
        steiger_z=z,
        steiger_p=None if z is None else math.erfc(abs(z) / math.sqrt(2)),
    )


def _determinant(first: float, second: float, between: float) -> float:
    """Return the determinant of the three correlations' matrix, which is negative for none that data can have."""
    named = {"first": first, "second": second, "between": between}
    for name, value in named.items():
        if not -1 <= value <= 1:
            raise ValueError(f"{name} is {value}: no correlation")
    determinant = 1 - first**2 - second**2 - between**2 + 2 * first * second * between
    # Printed correlations are rounded, so a matrix on the edge of what is possible may come out a little below 0.
    if determinant < -1e-9:
        raise ValueError(f"no data have these three correlations: {named}")
    return max(0.0, determinant)


def _williams(first: float, second: float, between: float, determinant: float, n: int) -> float | None:
    mean = (first + second) / 2
    spread = 2 * determinant * (n - 1) / (n - 3) + mean**2 * (1 - between) ** 3
    # Judges that are the same up to scale (between is 1 or -1) leave 0 in the numerator and the denominator.
    if spread <= 1e-15 or 1 + between <= 1e-15:
        return None
    return (first - second) * math.sqrt((n - 1) * (1 + between) / spread)


def _steiger(first: float, second: float, between: float, n: int) -> float | None:
    if _perfect(first, second, between):
        return None
    m2 = ((first + second) / 2) ** 2
    # The covariance of the two transformed correlations, both estimated by their mean.
    covariance = (between * (1 - 2 * m2) - m2 * (1 - 2 * m2 - between**2) / 2) / (1 - m2) ** 2
    return (math.atanh(first) - math.atanh(second)) * math.sqrt((n - 3) / (2 - 2 * covariance))


def _zou(first: float, second: float, between: float, n: int, confidence: float) -> Statistic:
    if _perfect(first, second, between):
        return Statistic(first - second)
    (low_1, high_1), (low_2, high_2) = _fisher(first, n, confidence), _fisher(second, n, confidence)
    f2, s2, b2 = first**2, second**2, between**2
    # The correlation of the two correlations, which are estimated from the same rows.
    shared = ((between - first * second / 2) * (1 - f2 - s2 - b2) + between**3) / ((1 - f2) * (1 - s2))
    down, up = (first - low_1, high_2 - second), (high_1 - first, second - low_2)
    # Rounding may leave a little less than 0 where the two correlations are nearly one.
    low, high = (math.sqrt(max(0.0, a**2 + b**2 - 2 * shared * a * b)) for a, b in (down, up))
    return Statistic(first - second, first - second - low, first - second + high)


def _perfect(first: float, second: float, between: float) -> bool:
    """Return whether a correlation is 1 or -1, where Fisher's transformation is infinite."""
    return max(abs(first), abs(second), abs(between)) >= 1 - 1e-12


def _fisher(r: float, n: int, confidence: float) -> tuple[float, float]:
    """Return the interval of a correlation by Fisher's transformation."""
    from scipy.special import ndtri

    margin = float(ndtri((1 + confidence) / 2)) / math.sqrt(n - 3)
    return math.tanh(math.atanh(r) - margin), math.tanh(math.atanh(r) + margin)


def holm(p_values: Sequence[float | None]) -> tuple[float | None, ...]:
    """Adjust p-values by Holm's method: each may be compared with the level as it stands, however many there are.

    Sorted upwards, the i-th smallest of m (from 0) is multiplied by m - i, and none may be smaller than the one before
    it nor greater than 1. Source: Holm 1979, A simple sequentially rejective multiple test procedure.

    Args:
        p_values: one a comparison; ``None`` where there was no test. Those stay ``None`` and are not counted in m.

    Returns:
        the adjusted values, in the order given.

    Raises:
        ValueError: a p-value that is not between 0 and 1.

    >>> holm([0.01, None, 0.04, 0.03])
    (0.03, None, 0.06, 0.06)
    """
    known = [(p, index) for index, p in enumerate(p_values) if p is not None]
    for p, index in known:
        if math.isnan(p) or not 0 <= p <= 1:
            raise ValueError(f"p-value {index + 1} is {p}, not between 0 and 1")
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, index) in enumerate(sorted(known)):
        # The running maximum keeps the order: no p-value ends below one that was smaller before.
        highest = max(highest, min(1.0, (len(known) - rank) * p))
        adjusted[index] = highest
    return tuple(adjusted)
