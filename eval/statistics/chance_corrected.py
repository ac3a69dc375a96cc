"""Measure agreement corrected for chance: Cohen's kappa of two raters, Krippendorff's alpha of any number of them.

    kappa = (p_o - p_e) / (1 - p_e)

p_o being the share of cases in which both agree (the accuracy, where one of them is held to be right), p_e the share
that two raters with the same habits would agree on by chance: the sum over classes of the product of both shares
(Cohen 1960). Kappa does not exist where both always say one and the same thing (p_e = 1).

    alpha = 1 - D_o / D_e

the disagreement observed within units over the one expected if all values were shared out at random. 1 is perfect
agreement, 0 what chance gives, below 0 systematic disagreement. Sources: Krippendorff 2011, Computing Krippendorff's
Alpha-Reliability; Hayes and Krippendorff 2007 for the levels.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from .alignment import Floats, code_count, number_clusters, number_groups, ratio
from .correlation import count_table
from .resampling import Resampling, Statistic, Weights


def accuracies(tables: Floats) -> Floats:
    """Return the share of each table of shape (some, classes, classes) on its diagonal; NaN of an empty table."""
    return ratio(np.trace(tables, axis1=1, axis2=2), tables.sum(axis=(1, 2)))


def kappas(tables: Floats) -> Floats:
    """Return Cohen's kappa of each table of shape (some, classes, classes); NaN where chance agreement is certain.

    Computed from counts, not from shares: whole numbers tell exactly whether chance agreement is certain.

    >>> kappas(np.array([[[2, 0], [0, 2]], [[4, 0], [0, 0]]])).tolist()
    [1.0, nan]
    """
    total = tables.sum(axis=(1, 2))
    chance = (tables.sum(axis=1) * tables.sum(axis=2)).sum(axis=1)
    return ratio(accuracies(tables) * total**2 - chance, total**2 - chance)


Level = Literal["nominal", "interval"]


class Reliability(NamedTuple):
    """Says how far raters agree.

    Attributes:
        alpha: Krippendorff's alpha; ``None`` where no unit has two values, or all values are the same.
        units: units that count, having two values or more.
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
        ratings: of each unit the values that raters gave it, in any order; ``None`` and NaN are values not given. Which
            rater gave which does not matter. Numbers, or for ``nominal`` anything.
        level: how far values differ: by being another at all (``nominal``) or by (x - y)^2 (``interval``).
        groups: of each unit, equal where units belong together (candidates of one source); drawn as one.
        resampling: how the interval is made.

    >>> krippendorff_alpha([["1", "1"], ["2", "2"], ["1", "tie"], ["2", None]], level="nominal").alpha.value
    0.5454545454545454
    >>> krippendorff_alpha([[4, 4], [4, 4]]).alpha.value is None
    True
    """
    resampling = resampling or Resampling()
    # NaN, a value that is not given, is the one value that does not equal itself.
    given = [[value for value in unit if value is not None and value == value] for unit in ratings]  # noqa: PLR0124
    # A unit with one value has no pair to disagree: it counts neither as observed nor as expected.
    paired = [number for number, unit in enumerate(given) if len(unit) > 1]
    if not paired:
        return Reliability(Statistic(None), 0)
    clusters = number_clusters([None if groups is None else groups[number] for number in paired])
    sizes = np.array([len(given[number]) for number in paired])
    # Of each value, the unit that it was given to.
    unit = np.repeat(np.arange(len(paired)), sizes)
    ratings_given = [value for number in paired for value in given[number]]
    if level == "nominal":
        codes = number_groups(ratings_given)
        values = np.arange(code_count(codes), dtype=float)
        # One number for each unit and value: how often it occurs is how often the unit has that value.
        unit_values, repeats = np.unique(unit * len(values) + codes, return_counts=True)
        same = np.bincount(unit_values // len(values), repeats.astype(float) ** 2)
        differences = sizes**2 - same
    else:
        values, codes = np.unique(np.array(ratings_given, dtype=float), return_inverse=True)
        # Differences do not change when all scores are shifted; around 0 their squares keep the most digits.
        x = (values - values.mean())[codes]
        # Of n values the squared differences of all ordered pairs add up to 2 (n sum x^2 - (sum x)^2).
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
        # Both are sums over ordered pairs: D_o = observed / total and D_e = expected / (total (total - 1)).
        return 1 - ratio((total - 1) * (weights @ observed), np.where(known, expected, 0.0))

    return Reliability(resampling.statistic(count, alpha, bounded=True), len(paired))
