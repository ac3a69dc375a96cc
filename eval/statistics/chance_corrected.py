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
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from .alignment import Floats, Reasons, Units, number_groups, number_units, unit_count
from .resampling import Resampling, Statistic, Weights, none_if_nan


def cohen_kappa(first: Sequence[Hashable], second: Sequence[Hashable]) -> float | None:
    """Return Cohen's kappa of two raters over the classes that either uses; ``None`` where it does not exist.

    Raises:
        ValueError: columns of different length, or empty.

    >>> cohen_kappa(["a", "b", "a", "b"], ["a", "b", "b", "a"])
    0.0
    """
    if len(first) != len(second) or not len(first):
        raise ValueError("kappa needs two equally long, non-empty columns")
    # Both columns are numbered together, so that a class has the same code in each of them.
    codes = number_groups([*first, *second], rows=2 * len(first))
    table = np.zeros((1, int(codes.max()) + 1, int(codes.max()) + 1))
    np.add.at(table[0], (codes[: len(first)], codes[len(first) :]), 1)
    return none_if_nan(kappas(table)[0])


def accuracies(tables: Floats) -> Floats:
    """Return the share of each table of shape (some, classes, classes) on its diagonal; NaN of an empty table."""
    total = tables.sum(axis=(1, 2))
    agreed = np.trace(tables, axis1=1, axis2=2)
    shares: Floats = agreed / np.where(total > 0, total, np.nan)
    return shares


def kappas(tables: Floats) -> Floats:
    """Return Cohen's kappa of each table of shape (some, classes, classes); NaN where chance agreement is certain.

    Computed from counts, not from shares: whole numbers tell exactly whether chance agreement is certain.

    >>> kappas(np.array([[[2, 0], [0, 2]], [[4, 0], [0, 0]]])).tolist()
    [1.0, nan]
    """
    total = tables.sum(axis=(1, 2))
    chance = (tables.sum(axis=1) * tables.sum(axis=2)).sum(axis=1)
    beyond_chance = total**2 - chance
    kappa: Floats = (accuracies(tables) * total**2 - chance) / np.where(
        beyond_chance > 0, beyond_chance, np.nan
    )
    return kappa


Level = Literal["nominal", "ordinal", "interval"]
_MOST_CELLS = 1 << 22
LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval")


@dataclass(frozen=True)
class Reliability:
    """Says how far raters agree, by Krippendorff's alpha.

    Attributes:
        alpha: Krippendorff's alpha; ``None`` where no unit has two values, or all values are the same.
        level: how values differ: ``nominal`` (the same or not), ``ordinal`` (by rank), ``interval`` (by amount).
        units: units that count, having two values or more.
        ratings: values in them.
        raters: the most values that a unit has.
        left_out: units that do not count, by reason.
        resampling: how the interval was made; drawn are units, or the groups that they belong to.
    """

    alpha: Statistic
    level: Level
    units: int
    ratings: int
    raters: int
    left_out: Reasons
    resampling: Resampling


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
        raise ValueError(f"no level {level!r}: there are {', '.join(LEVELS)}")
    table = _Ratings.of(ratings, level, groups)
    # The figure itself is that of a resample in which every cluster was drawn once.
    value = table.alpha(np.ones((1, table.clusters), dtype=np.int64))[0] if table.units else np.nan
    return Reliability(
        alpha=resampling.studentised(
            none_if_nan(value),
            resampling.figures(table.clusters, table.alpha),
            table.clusters,
            bounded=True,
        )[0],
        level=level,
        units=table.units,
        ratings=len(table.unit),
        raters=int(table.counts.max()) if table.units else 0,
        left_out=table.left_out,
        resampling=resampling,
    )


@dataclass(frozen=True)
class _Ratings:
    """Holds all values in one long column, and beside each the unit that it is of.

    Attributes:
        level: how values differ.
        values: the distinct values, sorted; for ``nominal`` just their numbers.
        code: of each rating, which of these values it is.
        unit: of each rating, its unit; in order.
        counts: of each unit, how many ratings it has: two or more.
        cluster: of each unit, what it is drawn with.
        left_out: units with fewer than two values.
    """

    level: Level
    values: Floats
    code: Units
    unit: Units
    counts: Floats
    cluster: Units
    left_out: Reasons

    @classmethod
    def of(
        cls, ratings: Iterable[Sequence[Hashable]], level: Level, groups: Sequence[Hashable | None] | None
    ) -> _Ratings:
        given = [[value for value in unit if _is_given(value)] for unit in ratings]
        if groups is not None and len(groups) != len(given):
            raise ValueError(f"{len(groups)} groups for {len(given)} units")
        # A unit with one value has no pair to disagree: it counts neither as observed nor as expected.
        paired = [number for number, unit in enumerate(given) if len(unit) > 1]
        values, code = _coded([value for number in paired for value in given[number]], level)
        counts = np.array([len(given[number]) for number in paired], dtype=float)
        clusters = [None if groups is None else groups[number] for number in paired]
        return cls(
            level=level,
            values=values,
            code=code,
            unit=np.repeat(np.arange(len(paired)), counts.astype(np.intp)),
            counts=counts,
            cluster=number_units(clusters, len(paired)),
            left_out=_why_left_out(given),
        )

    @property
    def units(self) -> int:
        return len(self.counts)

    @property
    def clusters(self) -> int:
        return unit_count(self.cluster)

    def alpha(self, weights: Weights) -> Floats:
        """Return alpha in each resample, from how often it drew each cluster: shape (some, clusters) to (some,)."""
        if self._values_by_cluster is None or self.level == "ordinal":
            return np.array([self._alpha(drawn[self.cluster].astype(float)) for drawn in weights])
        frequency = weights @ self._values_by_cluster
        total = frequency.sum(axis=1)
        if self.level == "nominal":
            observed, expected = self._nominal_disagreement, total**2 - (frequency**2).sum(axis=1)
        else:
            # Around 0 the squares keep the most digits.
            apart = self.values - (frequency @ self.values / total)[:, None]
            observed, expected = self._interval_disagreement, 2 * total * (frequency * apart**2).sum(axis=1)
        by_cluster = np.bincount(self.cluster, observed, self.clusters)
        known = np.count_nonzero(frequency, axis=1) > 1
        alphas: Floats = 1 - (total - 1) * (weights @ by_cluster) / np.where(known, expected, np.nan)
        return alphas

    @cached_property
    def _values_by_cluster(self) -> Floats | None:
        """How often each cluster has each value, (clusters, values); ``None`` where that would be a large table."""
        shape = self.clusters, len(self.values)
        if shape[0] * shape[1] > _MOST_CELLS:
            return None
        cells = self.cluster[self.unit] * shape[1] + self.code
        return np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape).astype(float)

    def _alpha(self, weights: Floats) -> float:
        """Compute alpha from how often each unit counts; NaN where fewer than two different values are left.

        Values differ by being another at all (nominal) or by (x - y)^2, where x and y are the values themselves
        (interval) or their mean ranks among all values that count (ordinal).
        """
        frequency = np.bincount(self.code, weights[self.unit], len(self.values))
        if np.count_nonzero(frequency) < 2:
            return np.nan
        total = float(frequency.sum())
        if self.level == "nominal":
            observed, expected = self._nominal_disagreement, total**2 - float(frequency @ frequency)
        else:
            # Mean ranks less 1/2: values that are equal share the middle of their ranks.
            scores = self.values if self.level == "interval" else np.cumsum(frequency) - frequency / 2
            # Differences do not change when all scores are shifted; around 0 their squares keep the most digits.
            scores = scores - (frequency @ scores) / total
            # Ranks depend on what was drawn, values do not: only the interval level is computed once for all resamples.
            observed = (
                self._interval_disagreement if self.level == "interval" else self._squared_differences(scores)
            )
            expected = 2 * total * float(frequency @ scores**2)
        # Both are sums over ordered pairs: D_o = observed / total and D_e = expected / (total (total - 1)).
        return 1 - (total - 1) * float(weights @ observed) / expected

    @cached_property
    def _interval_disagreement(self) -> Floats:
        return self._squared_differences(self.values - self.values.mean())

    def _squared_differences(self, scores: Floats) -> Floats:
        """Sum (x - y)^2 over the pairs of values of each unit, over its number of values less one.

        That sum is 2 (n sum x^2 - (sum x)^2) of n values. ``scores`` says what each distinct value counts as.
        """
        x = scores[self.code]
        sums, squares = np.bincount(self.unit, x), np.bincount(self.unit, x * x)
        differences: Floats = 2 * (self.counts * squares - sums**2) / (self.counts - 1)
        return differences

    @cached_property
    def _nominal_disagreement(self) -> Floats:
        """Count the pairs of values of each unit that are not the same, over its number of values less one."""
        # One number for each unit and value: how often it occurs is how often the unit has that value.
        unit_values, repeats = np.unique(self.unit * len(self.values) + self.code, return_counts=True)
        same = np.bincount(unit_values // len(self.values), repeats.astype(float) ** 2, self.units)
        differing: Floats = (self.counts**2 - same) / (self.counts - 1)
        return differing


def _is_given(value: object) -> bool:
    return value is not None and not (isinstance(value, float) and math.isnan(value))


def _coded(values: Sequence[Hashable], level: Level) -> tuple[Floats, Units]:
    """Return the distinct values, and which of them each value is."""
    if level == "nominal":
        numbers: dict[Hashable, int] = {}
        code = np.array([numbers.setdefault(value, len(numbers)) for value in values], dtype=np.intp)
        return np.arange(len(numbers), dtype=float), code
    if wrong := [value for value in values if isinstance(value, str)]:
        raise ValueError(f"{wrong[0]!r} is no number, which level {level!r} needs; use level 'nominal'")
    # Sorted, which the ordinal level relies on: it adds up frequencies to ranks.
    distinct, code = np.unique(np.array(values, dtype=float), return_inverse=True)
    if not np.isfinite(distinct).all():
        raise ValueError("infinite values among the ratings")
    return distinct, code


def _why_left_out(given: Sequence[Sequence[Hashable]]) -> Mapping[str, int]:
    sizes = {"no value": 0, "a single value": 1}
    counts = {reason: sum(len(unit) == size for unit in given) for reason, size in sizes.items()}
    return {reason: count for reason, count in counts.items() if count}
