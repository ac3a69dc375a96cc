"""Agreement corrected for chance: Cohen's kappa (two raters), Krippendorff's alpha (any number).

    kappa = (p_o - p_e) / (1 - p_e)

p_o is the share of cases in which both agree (the accuracy, if one of them counts as correct). p_e
is the expected share by chance for raters with the same class frequencies: the sum over classes of
the product of both shares (Cohen 1960). Kappa does not exist if both always give the same class
(p_e = 1).

    alpha = 1 - D_o / D_e

D_o is the disagreement within units, and D_e the disagreement if all values were distributed at
random. 1 is perfect agreement, 0 is chance, and below 0 is systematic disagreement. Sources:
Krippendorff 2011, Computing Krippendorff's Alpha-Reliability; Hayes and Krippendorff 2007 for the
levels.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from .alignment import Floats, code_count, number_clusters, number_groups, ratio
from .correlation import count_table
from .resampling import Resampling, Statistic, Weights


def accuracies(tables: Floats) -> Floats:
    """Return the diagonal share of each table of shape (some, classes, classes).

    NaN if it is empty.
    """
    return ratio(np.trace(tables, axis1=1, axis2=2), tables.sum(axis=(1, 2)))


def kappas(tables: Floats) -> Floats:
    """Return Cohen's kappa of each table of shape (some, classes, classes); NaN if p_e is 1.

    It is computed from counts instead of shares, because only whole numbers show exactly whether
    p_e is 1.

    >>> kappas(np.array([[[2, 0], [0, 2]], [[4, 0], [0, 0]]])).tolist()
    [1.0, nan]
    """
    total = tables.sum(axis=(1, 2))
    chance = (tables.sum(axis=1) * tables.sum(axis=2)).sum(axis=1)
    return ratio(accuracies(tables) * total**2 - chance, total**2 - chance)


def alphas(tables: Floats) -> Floats:
    """Return Krippendorff's alpha of judge and human, nominal, for each table of counts.

    The tables have the shape (some, classes, classes). NaN if all values are of one class.

    >>> alphas(np.array([[[2, 0], [0, 2]], [[4, 0], [0, 0]]])).tolist()
    [1.0, nan]
    """
    # Each unit has two values, so there are as many disagreeing ordered pairs as values in
    # disagreeing units.
    total = 2 * tables.sum(axis=(1, 2))
    observed = total - 2 * np.trace(tables, axis1=1, axis2=2)
    values = tables.sum(axis=1) + tables.sum(axis=2)
    expected = total**2 - (values**2).sum(axis=1)
    return 1 - ratio((total - 1) * observed, expected)


Level = Literal["nominal", "interval"]


class Reliability(NamedTuple):
    """The agreement of raters.

    Attributes:
        alpha: Krippendorff's alpha; ``None`` if no unit has two values, or all values are equal.
        units: the number of units with two values or more.
    """

    alpha: Statistic
    units: int


def krippendorff_alpha(
    ratings: Iterable[Sequence[Hashable]],
    level: Level = "interval",
    groups: Sequence[Hashable | None] | None = None,
    resampling: Resampling | None = None,
) -> Reliability:
    """Return Krippendorff's alpha of units with any number of values each.

    Args:
        ratings: the values of each unit, in any order; ``None`` and NaN are missing values. It does
            not matter which rater gave which value. Values are numbers, or anything for
            ``nominal``.
        level: the difference of two values: equal or not (``nominal``), or (x - y)^2
            (``interval``).
        groups: the group of each unit (such as candidates of one source); groups are drawn as a
            whole.
        resampling: the settings of the interval.

    >>> krippendorff_alpha([["1", "1"], ["2", "2"], ["1", "tie"], ["2", None]], level="nominal").alpha.value
    0.5454545454545454
    >>> krippendorff_alpha([[4, 4], [4, 4]]).alpha.value is None
    True
    """
    resampling = resampling or Resampling()
    # NaN, a missing value, is the only value that does not equal itself.
    given = [[value for value in unit if value is not None and value == value] for unit in ratings]  # noqa: PLR0124
    # A unit with one value has no pair that could disagree, so it does not count.
    paired = [number for number, unit in enumerate(given) if len(unit) > 1]
    if not paired:
        return Reliability(Statistic(None), 0)
    clusters = number_clusters([None if groups is None else groups[number] for number in paired])
    sizes = np.array([len(given[number]) for number in paired])
    # The unit of each value.
    unit = np.repeat(np.arange(len(paired)), sizes)
    ratings_given = [value for number in paired for value in given[number]]
    if level == "nominal":
        codes = number_groups(ratings_given)
        values = np.arange(code_count(codes), dtype=float)
        # One number for each combination of unit and value; its count is the value's count in the
        # unit.
        unit_values, repeats = np.unique(unit * len(values) + codes, return_counts=True)
        same = np.bincount(unit_values // len(values), repeats.astype(float) ** 2)
        differences = sizes**2 - same
    else:
        values, codes = np.unique(np.array(ratings_given, dtype=float), return_inverse=True)
        # Differences do not change if all scores are shifted. Squares around 0 have the most
        # digits.
        x = (values - values.mean())[codes]
        # For n values, the squared differences of all ordered pairs add up to 2 (n sum x^2 - (sum
        # x)^2).
        differences = 2 * (sizes * np.bincount(unit, x * x) - np.bincount(unit, x) ** 2)
    observed = np.bincount(clusters, differences / (sizes - 1)).astype(float)
    count = code_count(clusters)
    table = count_table(clusters[unit], codes, (count, len(values)))

    def alpha(weights: Weights) -> Floats:
        frequency = (table @ weights.T.astype(float)).T
        total = frequency.sum(axis=1)
        if level == "nominal":
            expected = total**2 - (frequency**2).sum(axis=1)
        else:
            apart = values - (frequency @ values / total)[:, None]
            expected = 2 * total * (frequency * apart**2).sum(axis=1)
        known = np.count_nonzero(frequency, axis=1) > 1
        # Both are sums over ordered pairs: D_o = observed / total and D_e = expected / (total
        # (total - 1)).
        return 1 - ratio((total - 1) * (weights @ observed), np.where(known, expected, 0.0))

    return Reliability(resampling.statistic(count, alpha, bounded=True), len(paired))


def spearman_brown(agreement: float, labels: float) -> float | None:
    """Return the reliability of the mean of several labels from the agreement of single ones.

    The formula is k r / (1 + (k - 1) r) for k labels (Spearman 1910; Brown 1910).

    Args:
        agreement: r, the mean correlation between two annotators.
        labels: k, the number of labels of an item; a mean number need not be whole.

    Returns:
        The reliability; ``None`` for a negative agreement so strong that the formula has no value.

    >>> spearman_brown(0.5, 3)
    0.75
    >>> spearman_brown(-0.5, 3) is None
    True
    """
    below = 1 + (labels - 1) * agreement
    return labels * agreement / below if below > 0 else None
