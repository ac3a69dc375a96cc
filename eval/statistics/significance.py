"""Is the difference between two judges more than chance? Both judged the same items, so the tests are paired.

The paired t-test over items is that of the courtroom paper (Table 3); McNemar's test is for right or wrong verdicts.
Differences of agreement itself, which is no mean over items, are in ``paired`` and ``dependent``.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from .columns import Floats
from .means import mean_of, resampled_means
from .resampling import Resampling
from .statistic import Statistic
from .together import Reasons, together


@dataclass(frozen=True)
class PairedTTest:
    """Whether two columns differ in their mean.

    Attributes:
        n: items that have both values; ``groups``: how many groups they are of; ``left_out``: the others, by reason.
        first, second: the means; ``None`` without items.
        difference: the mean of first - second, with Student's interval.
        over_groups: the same mean, with the interval of groups drawn with replacement.
        t, df, p: Student's t, degrees of freedom (n - 1) and two-sided p-value; ``None`` for fewer than two items, or
            where all differences are equal.
        resampling: how ``over_groups`` was made; its confidence is also that of ``difference``.
    """

    n: int
    groups: int
    left_out: Reasons
    first: float | None
    second: float | None
    difference: Statistic
    over_groups: Statistic
    t: float | None
    df: int | None
    p: float | None
    resampling: Resampling


@dataclass(frozen=True)
class McNemar:
    """Whether one of two judges is right more often, on the same items.

    Attributes:
        n, groups, left_out: as in ``PairedTTest``.
        both, neither: items on which both were right, or both wrong; they say nothing about a difference.
        only_first, only_second: items on which one alone was right (the counts b and c).
        difference: share of items that first had right, less that of second; interval of groups drawn with replacement.
        p: exact two-sided p-value of b among b + c throws of a fair coin; 1 where b + c = 0, ``None`` without items.
        resampling: how the interval was made.
    """

    n: int
    groups: int
    left_out: Reasons
    both: int
    neither: int
    only_first: int
    only_second: int
    difference: Statistic
    p: float | None
    resampling: Resampling


def paired_t_test(
    first: Sequence[float | None],
    second: Sequence[float | None],
    groups: Sequence[Hashable | None] | None = None,
    resampling: Resampling | None = None,
) -> PairedTTest:
    """Student's paired t-test: t = mean(d) / (sd(d) / sqrt(n)) of the differences d = first - second.

    Args:
        first, second: one value an item, as 1 for right and 0 for wrong; ``None`` where there is none.
        groups: of each item, for the second interval.
        resampling: how that is made; its confidence is used for both.

    Raises:
        ValueError: columns of different length.

    >>> found = paired_t_test([1, 1, 0, 1, 1], [0, 1, 0, 0, 1])
    >>> round(found.difference.value, 3), round(found.t, 3), found.df, round(found.p, 3)
    (0.4, 1.633, 4, 0.178)
    """
    resampling = resampling or Resampling()
    rows = together({"first": first, "second": second}, groups)
    x, y = rows.columns["first"], rows.columns["second"]
    differences = x - y
    mean = mean_of(differences)
    t, p, interval = _student(differences, mean, resampling.confidence)
    return PairedTTest(
        n=len(rows),
        groups=rows.groups,
        left_out=rows.left_out,
        first=mean_of(x),
        second=mean_of(y),
        difference=interval,
        over_groups=resampling.interval(mean, resampled_means(differences, rows.units, resampling)),
        t=t,
        df=len(rows) - 1 if len(rows) > 1 else None,
        p=p,
        resampling=resampling,
    )


def mcnemar(
    first: Sequence[bool | None],
    second: Sequence[bool | None],
    groups: Sequence[Hashable | None] | None = None,
    resampling: Resampling | None = None,
) -> McNemar:
    """McNemar's test, exact: are the items that one judge alone has right shared out as a fair coin would?

    Args:
        first, second: whether either judge was right on each item; ``None`` where that is unknown.
        groups: of each item, for the interval.
        resampling: how the interval is made.

    Source: McNemar 1947; the exact binomial form needs no large counts.

    >>> found = mcnemar([True] * 6 + [False], [False] * 5 + [True] * 2)
    >>> found.only_first, found.only_second, round(found.p, 5)
    (5, 1, 0.21875)
    """
    resampling = resampling or Resampling()
    rows = together({"first": first, "second": second}, groups)
    x, y = rows.columns["first"] != 0, rows.columns["second"] != 0
    only_first, only_second = int((x & ~y).sum()), int((~x & y).sum())
    differences = x.astype(float) - y
    return McNemar(
        n=len(rows),
        groups=rows.groups,
        left_out=rows.left_out,
        both=int((x & y).sum()),
        neither=int((~x & ~y).sum()),
        only_first=only_first,
        only_second=only_second,
        difference=resampling.interval(
            mean_of(differences), resampled_means(differences, rows.units, resampling)
        ),
        p=fair_coin(only_first, only_second) if len(rows) else None,
        resampling=resampling,
    )


def _student(
    differences: Floats, mean: float | None, confidence: float
) -> tuple[float | None, float | None, Statistic]:
    """t, its p-value, and the mean with its interval."""
    from scipy.special import stdtr, stdtrit

    n = len(differences)
    if mean is None or n < 2 or np.ptp(differences) == 0:
        return None, None, Statistic(mean)
    error = float(differences.std(ddof=1)) / math.sqrt(n)
    t = mean / error
    reach = float(stdtrit(n - 1, (1 + confidence) / 2)) * error
    return t, 2 * float(stdtr(n - 1, -abs(t))), Statistic(mean, mean - reach, mean + reach)


def fair_coin(heads: int, tails: int) -> float:
    """Two-sided p-value: twice the chance of as few of the rarer side, or fewer; at most 1."""
    from scipy.special import bdtr

    throws = heads + tails
    return min(1.0, 2 * float(bdtr(min(heads, tails), throws, 0.5))) if throws else 1.0
