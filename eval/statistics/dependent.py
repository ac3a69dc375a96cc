"""Is one judge's correlation with people higher than another's, measured on the same rows?

Both correlations share a variable (the people's scores) and their rows, so they go up and down together, and a test
for independent correlations would be wrong. Steiger (1980, Tests for comparing elements of a correlation matrix)
recommends Williams' t and, from Fisher's transformation, a Z that pools both correlations; both are here. They take
rows to be independent of each other; where rows share a source, the bootstrap over groups in ``paired`` is the
one to look at.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from .correlation import correlation
from .statistic import Statistic
from .together import Reasons, together

NAMES = ("pearson", "spearman")


@dataclass(frozen=True)
class DependentCorrelations:
    """Two correlations with the same variable, and whether they differ.

    Attributes:
        name: ``pearson`` or ``spearman``.
        n: rows that have all three scores.
        left_out: rows that do not, by reason.
        first, second: the correlation of either judge with people.
        between: that of the judges with each other.
        difference: first - second, with Zou's interval.
        williams_t, df, williams_p: Williams' t, its degrees of freedom (n - 3) and two-sided p-value.
        steiger_z, steiger_p: Steiger's Z and two-sided p-value.
        approximate: whether the tests, made for Pearson's r, were used on ranks.
        confidence: of the interval.

    Figures that do not exist are ``None``: all of them where a column is constant or there are fewer than four rows;
    t, where both judges are the same up to scale; Z and the interval, where a correlation is 1 or -1.
    """

    name: str
    n: int
    first: float | None
    second: float | None
    between: float | None
    difference: Statistic
    williams_t: float | None
    df: int | None
    williams_p: float | None
    steiger_z: float | None
    steiger_p: float | None
    approximate: bool
    confidence: float
    left_out: Reasons = field(default_factory=dict)


def compare_dependent(
    name: str,
    first: Sequence[float | None],
    second: Sequence[float | None],
    human: Sequence[float | None],
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
    >>> found = compare_dependent("pearson", [1, 2, 3, 3, 4, 5, 5, 4], [3, 1, 2, 2, 5, 1, 4, 3], human)
    >>> round(found.williams_t, 3), round(found.williams_p, 4)
    (1.96, 0.1072)
    """
    if name not in NAMES:
        raise ValueError(f"no test for {name!r}: there is one for {' and '.join(NAMES)}")
    rows = together({"first": first, "second": second, "human": human})
    x, y, shared = rows.columns.values()
    first_r, second_r = correlation(name, x, shared), correlation(name, y, shared)
    found = difference_of_correlations(first_r, second_r, correlation(name, x, y), len(rows), confidence)
    return replace(found, name=name, approximate=name == "spearman", left_out=rows.left_out)


def difference_of_correlations(
    first: float | None, second: float | None, between: float | None, n: int, confidence: float = 0.95
) -> DependentCorrelations:
    """The same from the three correlations themselves, as a paper may print them.

    With r1 and r2 the two correlations, r the one between, m = (r1 + r2) / 2 and
    D = 1 - r1^2 - r2^2 - r^2 + 2 r1 r2 r:

    - Williams: t = (r1 - r2) sqrt((n-1)(1+r) / (2 D (n-1)/(n-3) + m^2 (1-r)^3)), with n - 3 degrees of freedom;
    - Steiger: Z = (atanh r1 - atanh r2) sqrt((n-3) / (2 - 2c)), c = [r(1-2m^2) - m^2 (1-2m^2-r^2)/2] / (1-m^2)^2;
    - the interval from those of both correlations (Zou 2007, Toward using confidence intervals to compare
      correlations).

    Raises:
        ValueError: a correlation beyond -1 or 1, or three that cannot go together.

    >>> found = difference_of_correlations(0.80, 0.72, 0.89, n=26)
    >>> round(found.williams_t, 3), found.df, round(found.williams_p, 3)
    (1.361, 23, 0.187)
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, not at {confidence}")
    if first is None or second is None or between is None or n < 4:
        return _untested(first, second, between, n, confidence)
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
        williams_t=t,
        df=n - 3,
        williams_p=_t_tail(t, n - 3),
        steiger_z=z,
        steiger_p=None if z is None else math.erfc(abs(z) / math.sqrt(2)),
        approximate=False,
        confidence=confidence,
    )


def _untested(
    first: float | None, second: float | None, between: float | None, n: int, confidence: float
) -> DependentCorrelations:
    return DependentCorrelations(
        name="pearson",
        n=n,
        first=first,
        second=second,
        between=between,
        difference=Statistic(None if first is None or second is None else first - second),
        williams_t=None,
        df=None,
        williams_p=None,
        steiger_z=None,
        steiger_p=None,
        approximate=False,
        confidence=confidence,
    )


def _determinant(first: float, second: float, between: float) -> float:
    named = {"first": first, "second": second, "between": between}
    for name, value in named.items():
        if not -1 <= value <= 1:
            raise ValueError(f"{name} is {value}: no correlation")
    determinant = 1 - first**2 - second**2 - between**2 + 2 * first * second * between
    if determinant < -1e-9:
        raise ValueError(f"no data have these three correlations: {named}")
    return max(0.0, determinant)


def _williams(first: float, second: float, between: float, determinant: float, n: int) -> float | None:
    mean = (first + second) / 2
    spread = 2 * determinant * (n - 1) / (n - 3) + mean**2 * (1 - between) ** 3
    if spread <= 1e-15 or 1 + between <= 1e-15:
        return None
    return (first - second) * math.sqrt((n - 1) * (1 + between) / spread)


def _steiger(first: float, second: float, between: float, n: int) -> float | None:
    if _perfect(first, second, between):
        return None
    m2 = ((first + second) / 2) ** 2
    shared = (between * (1 - 2 * m2) - m2 * (1 - 2 * m2 - between**2) / 2) / (1 - m2) ** 2
    return (math.atanh(first) - math.atanh(second)) * math.sqrt((n - 3) / (2 - 2 * shared))


def _zou(first: float, second: float, between: float, n: int, confidence: float) -> Statistic:
    if _perfect(first, second, between):
        return Statistic(first - second)
    (low_1, high_1), (low_2, high_2) = _fisher(first, n, confidence), _fisher(second, n, confidence)
    f2, s2, b2 = first**2, second**2, between**2
    shared = ((between - first * second / 2) * (1 - f2 - s2 - b2) + between**3) / ((1 - f2) * (1 - s2))
    down, up = (first - low_1, high_2 - second), (high_1 - first, second - low_2)
    low, high = (math.sqrt(max(0.0, a**2 + b**2 - 2 * shared * a * b)) for a, b in (down, up))
    return Statistic(first - second, first - second - low, first - second + high)


def _perfect(first: float, second: float, between: float) -> bool:
    return max(abs(first), abs(second), abs(between)) >= 1 - 1e-12


def _fisher(r: float, n: int, confidence: float) -> tuple[float, float]:
    """The interval of a correlation by Fisher's transformation."""
    from scipy.special import ndtri

    reach = float(ndtri((1 + confidence) / 2)) / math.sqrt(n - 3)
    return math.tanh(math.atanh(r) - reach), math.tanh(math.atanh(r) + reach)


def _t_tail(t: float | None, df: int) -> float | None:
    """Two-sided p-value of Student's t."""
    from scipy.special import stdtr

    return None if t is None else 2 * float(stdtr(df, -abs(t)))
