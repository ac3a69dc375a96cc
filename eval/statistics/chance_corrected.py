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

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from .alignment import Floats, Units, number_groups, number_units, ratio, unit_count
from .coefficients import count_table
from .resampling import Resampling, Statistic, Weights, none_if_nan


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


Level = Literal["nominal", "ordinal", "interval"]
LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval")


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
        level: ``nominal``, ``ordinal`` or ``interval``.
        groups: of each unit, equal where units belong together (candidates of one source); drawn as one.
        resampling: how the interval is made.

    Raises:
        ValueError: an unknown level, values that are no numbers where numbers are needed, groups of another length.

    >>> krippendorff_alpha([["1", "1"], ["2", "2"], ["1", "tie"], ["2", None]], level="nominal").alpha.value
    0.5454545454545454
    >>> krippendorff_alpha([[4, 4], [4, 4]]).alpha.value is None
    True
    """
    resampling = resampling or Resampling()
    if level not in LEVELS:
        raise ValueError(f"unknown level {level!r}; levels are {', '.join(LEVELS)}")
    given = [[value for value in unit if _is_given(value)] for unit in ratings]
    if groups is not None and len(groups) != len(given):
        raise ValueError(f"{len(groups)} groups for {len(given)} units")
    # A unit with one value has no pair to disagree: it counts neither as observed nor as expected.
    paired = [number for number, unit in enumerate(given) if len(unit) > 1]
    clusters = number_units([None if groups is None else groups[number] for number in paired])
    if not paired:
        return Reliability(Statistic(None), 0)
    alpha, count = _Alpha([given[number] for number in paired], level, clusters), unit_count(clusters)
    # The figure itself is that of a resample in which every cluster was drawn once.
    value = none_if_nan(alpha(np.ones((1, count), dtype=np.int64))[0])
    resampled = resampling.figures(count, alpha)
    return Reliability(resampling.studentised(value, resampled, count, bounded=True)[0], len(paired))


class _Alpha:
    """Computes alpha of resamples, from how often each drew each cluster of units.

    Values differ by being another at all (nominal) or by (x - y)^2, where x and y are the values themselves (interval)
    or their mean ranks among all values that count (ordinal).
    """

    def __init__(self, units: Sequence[Sequence[Hashable]], level: Level, clusters: Units) -> None:
        self._level, self._clusters = level, clusters
        self._values, self._code = _coded([value for unit in units for value in unit], level)
        self._counts = np.array([len(unit) for unit in units], dtype=float)
        self._unit = np.repeat(np.arange(len(units)), [len(unit) for unit in units])
        self._table = count_table(clusters[self._unit], self._code, (unit_count(clusters), len(self._values)))
        if level == "nominal":
            self._observed = self._different_pairs()
        elif level == "interval":
            self._observed = self._squared_differences(self._values - self._values.mean())

    def __call__(self, weights: Weights) -> Floats:
        """Return alpha of weights of shape (resamples, clusters); NaN with fewer than two different values."""
        frequency = (self._table @ weights.T.astype(float)).T
        total = frequency.sum(axis=1)
        if self._level == "nominal":
            observed, expected = weights @ self._observed, total**2 - (frequency**2).sum(axis=1)
        else:
            # Differences do not change when all scores are shifted; around 0 their squares keep the most digits.
            if self._level == "interval":
                apart = self._values - (frequency @ self._values / total)[:, None]
                observed = weights @ self._observed
            else:
                # Mean ranks less 1/2: values that are equal share the middle of their ranks. Ranks depend on what was
                # drawn, values do not: only the interval level is computed once for all resamples.
                ranks = np.cumsum(frequency, axis=1) - frequency / 2
                apart = ranks - ((frequency * ranks).sum(axis=1) / total)[:, None]
                drawn = zip(weights, map(self._squared_differences, apart), strict=True)
                observed = np.array([drawn_clusters @ squares for drawn_clusters, squares in drawn])
            expected = 2 * total * (frequency * apart**2).sum(axis=1)
        known = np.count_nonzero(frequency, axis=1) > 1
        # Both are sums over ordered pairs: D_o = observed / total and D_e = expected / (total (total - 1)).
        return 1 - ratio((total - 1) * observed, np.where(known, expected, 0.0))

    def _squared_differences(self, scores: Floats) -> Floats:
        """Sum over each cluster (x - y)^2 of the pairs of values of each unit, over its number of values less one.

        Of n values that sum is 2 (n sum x^2 - (sum x)^2). ``scores`` says what each distinct value counts as.
        """
        x = scores[self._code]
        sums, squares = np.bincount(self._unit, x), np.bincount(self._unit, x * x)
        differences: Floats = 2 * (self._counts * squares - sums**2) / (self._counts - 1)
        return np.bincount(self._clusters, differences).astype(float)

    def _different_pairs(self) -> Floats:
        """Count over each cluster the pairs of values of each unit that differ, over its number of values less one."""
        # One number for each unit and value: how often it occurs is how often the unit has that value.
        unit_values, repeats = np.unique(self._unit * len(self._values) + self._code, return_counts=True)
        same = np.bincount(unit_values // len(self._values), repeats.astype(float) ** 2)
        return np.bincount(self._clusters, (self._counts**2 - same) / (self._counts - 1)).astype(float)


def _is_given(value: object) -> bool:
    return value is not None and not (isinstance(value, float) and math.isnan(value))


def _coded(values: Sequence[Hashable], level: Level) -> tuple[Floats, Units]:
    """Return the distinct values, for ``nominal`` just their numbers, and which of them each value is."""
    if level == "nominal":
        codes = number_groups(values)
        return np.arange(unit_count(codes), dtype=float), codes
    if wrong := [value for value in values if isinstance(value, str)]:
        raise ValueError(f"{wrong[0]!r} is not a number, which level {level!r} needs; use level 'nominal'")
    # Sorted, which the ordinal level relies on: it adds up frequencies to ranks.
    distinct, codes = np.unique(np.array(values, dtype=float), return_inverse=True)
    if not np.isfinite(distinct).all():
        raise ValueError("infinite values among the ratings")
    return distinct, codes
