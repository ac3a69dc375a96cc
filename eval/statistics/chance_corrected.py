"""Cohen's kappa and Krippendorff's alpha.

    kappa = (p_o - p_e) / (1 - p_e)

p_o being the share of cases in which they agree (the accuracy, where one of them is held to be right), p_e the share
that two raters with the same habits would agree on by chance: the sum over classes of the product of both shares
(Cohen 1960).
Kappa does not exist where both always say one and the same thing (p_e = 1).

alpha = 1 - D_o / D_e, the disagreement observed within units over the one expected if all values were dealt out anew.
1 is perfect agreement, 0 what chance gives, below 0 systematic disagreement. Sources: Krippendorff 2011, Computing
Krippendorff's Alpha-Reliability; Hayes and Krippendorff 2007 for the levels.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from .alignment import Floats, Reasons, Units, number_groups, number_units
from .resampling import Resampling, Statistic, Weights


def cohen_kappa(first: Sequence[Hashable], second: Sequence[Hashable]) -> float | None:
    """Cohen's kappa of two raters over the classes that either uses; ``None`` where there is none.

    Raises:
        ValueError: columns of different length, or empty.

    >>> cohen_kappa(["a", "b", "a", "b"], ["a", "b", "b", "a"])
    0.0
    """
    return rater_agreement(first, second, resampling=Resampling(resamples=0))[1].value


def rater_agreement(
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    groups: Sequence[Hashable | None] | None = None,
    resampling: Resampling | None = None,
) -> tuple[Statistic, Statistic]:
    """The share of cases on which two raters agree, and Cohen's kappa, with their intervals.

    Args:
        first, second: what each said of each case, in classes; equally many.
        groups: which cases belong together and are drawn together; without, each stands alone.
        resampling: how the intervals are made.

    Raises:
        ValueError: columns of different length, or empty.

    >>> [found.value for found in rater_agreement(["a", "b", "a", "b"], ["a", "b", "b", "b"])]
    [0.75, 0.5]
    """
    if len(first) != len(second) or not len(first):
        raise ValueError("kappa needs two equally long, non-empty columns")
    codes = number_groups([*first, *second], rows=2 * len(first))
    classes = int(codes.max()) + 1
    cells = codes[: len(first)] * classes + codes[len(first) :]
    units = np.arange(len(first)) if groups is None else number_units(groups, rows=len(first))
    tables = np.zeros((int(units.max()) + 1, classes * classes))
    np.add.at(tables, (units, cells), 1)
    return accuracy_and_kappa(tables.reshape(-1, classes, classes), resampling or Resampling())


def accuracy_and_kappa(tables: Floats, resampling: Resampling) -> tuple[Statistic, Statistic]:
    """Accuracy and kappa, of what was counted.

    Args:
        tables: of each unit that the bootstrap draws, how often the first rater said one class and the second another:
            shape (units, classes, classes).
        resampling: how the intervals are made.
    """
    units, classes, _ = tables.shape
    flat = tables.reshape(units, classes * classes)

    def resampled(weights: Weights) -> Floats:
        drawn = (weights @ flat).reshape(-1, classes, classes)
        return np.stack([accuracies(drawn), kappas(drawn)], axis=1)

    whole = flat.sum(axis=0).reshape(1, classes, classes)
    figures = resampling.figures(units, resampled)
    if figures.ndim == 1:
        figures = np.stack([figures, figures], axis=1)
    found = (accuracies(whole)[0], kappas(whole)[0])
    accuracy, kappa = (
        resampling.interval(None if np.isnan(value) else float(value), figures[:, at])
        for at, value in enumerate(found)
    )
    return accuracy, kappa


def accuracies(tables: Floats) -> Floats:
    """The share of each table of shape (some, classes, classes) that lies on its diagonal; NaN of an empty one."""
    total = tables.sum(axis=(1, 2))
    agreed = np.trace(tables, axis1=1, axis2=2)
    found: Floats = agreed / np.where(total > 0, total, np.nan)
    return found


def kappas(tables: Floats) -> Floats:
    """Cohen's kappa of each table of shape (some, classes, classes); NaN where chance agreement is certain.

    Of counts, not of shares: of whole numbers, chance agreement is told from certainty exactly.

    >>> kappas(np.array([[[2, 0], [0, 2]], [[4, 0], [0, 0]]])).tolist()
    [1.0, nan]
    """
    total = tables.sum(axis=(1, 2))
    chance = (tables.sum(axis=1) * tables.sum(axis=2)).sum(axis=1)
    room = total**2 - chance
    found: Floats = (accuracies(tables) * total**2 - chance) / np.where(room > 0, room, np.nan)
    return found


Level = Literal["nominal", "ordinal", "interval"]
LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval")


@dataclass(frozen=True)
class Reliability:
    """How far raters agree.

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
    """Krippendorff's alpha of units with any number of values each.

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
    value = table.alpha(np.ones((1, table.drawn), dtype=np.int64))[0] if table.units else np.nan
    known = None if np.isnan(value) else float(value)
    return Reliability(
        alpha=resampling.interval(known, resampling.figures(table.drawn, table.alpha)),
        level=level,
        units=table.units,
        ratings=len(table.unit),
        raters=int(table.counts.max()) if table.units else 0,
        left_out=table.left_out,
        resampling=resampling,
    )


@dataclass(frozen=True)
class _Ratings:
    """Values in one long column, and beside each the unit that it is of.

    Attributes:
        level: how values differ.
        values: the distinct values, sorted; for ``nominal`` just their numbers.
        place: of each rating, which of these values it is.
        unit: of each rating, its unit; in order.
        counts: of each unit, how many ratings it has: two or more.
        cluster: of each unit, what it is drawn with.
        left_out: units with fewer than two values.
    """

    level: Level
    values: Floats
    place: Units
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
        counting = [at for at, unit in enumerate(given) if len(unit) > 1]
        values, place = _coded([value for at in counting for value in given[at]], level)
        counts = np.array([len(given[at]) for at in counting], dtype=float)
        return cls(
            level=level,
            values=values,
            place=place,
            unit=np.repeat(np.arange(len(counting)), counts.astype(np.intp)),
            counts=counts,
            cluster=number_units([None if groups is None else groups[at] for at in counting], len(counting)),
            left_out=_why_left_out(given),
        )

    @property
    def units(self) -> int:
        return len(self.counts)

    @property
    def drawn(self) -> int:
        return int(self.cluster.max()) + 1 if self.units else 0

    def alpha(self, weights: Weights) -> Floats:
        """Alpha in each resample, from how often it drew each cluster: shape (some, clusters) to (some,)."""
        return np.array([self._alpha(drawn[self.cluster].astype(float)) for drawn in weights])

    def _alpha(self, weights: Floats) -> float:
        """From how often each unit counts.

        Values differ by being another at all (nominal) or by (x - y)^2, where x and y are the values themselves
        (interval) or their mean ranks among all values that count (ordinal).
        """
        frequency = np.bincount(self.place, weights[self.unit], len(self.values))
        if np.count_nonzero(frequency) < 2:
            return np.nan
        total = float(frequency.sum())
        if self.level == "nominal":
            within, expected = self._differing, total**2 - float(frequency @ frequency)
        else:
            scores = self.values if self.level == "interval" else np.cumsum(frequency) - frequency / 2
            scores = scores - (frequency @ scores) / total
            within = self._apart if self.level == "interval" else self._squares(scores)
            expected = 2 * total * float(frequency @ scores**2)
        return 1 - (total - 1) * float(weights @ within) / expected

    @cached_property
    def _apart(self) -> Floats:
        return self._squares(self.values - self.values.mean())

    def _squares(self, scores: Floats) -> Floats:
        """Of each unit, the sum of (x - y)^2 over its pairs of values, over its number of values less one.

        That sum is 2 (n sum x^2 - (sum x)^2) of n values. ``scores`` says what each distinct value counts as.
        """
        x = scores[self.place]
        sums, squares = np.bincount(self.unit, x), np.bincount(self.unit, x * x)
        found: Floats = 2 * (self.counts * squares - sums**2) / (self.counts - 1)
        return found

    @cached_property
    def _differing(self) -> Floats:
        """Of each unit, its pairs of values that are not the same, over its number of values less one."""
        pairs, of_pair = np.unique(self.unit * len(self.values) + self.place, return_counts=True)
        same = np.bincount(pairs // len(self.values), of_pair.astype(float) ** 2, self.units)
        differing: Floats = (self.counts**2 - same) / (self.counts - 1)
        return differing


def _is_given(value: object) -> bool:
    return value is not None and not (isinstance(value, float) and math.isnan(value))


def _coded(values: Sequence[Hashable], level: Level) -> tuple[Floats, Units]:
    """The distinct values, and which of them each is."""
    if level == "nominal":
        numbers: dict[Hashable, int] = {}
        place = np.array([numbers.setdefault(value, len(numbers)) for value in values], dtype=np.intp)
        return np.arange(len(numbers), dtype=float), place
    if wrong := [value for value in values if isinstance(value, str)]:
        raise ValueError(f"{wrong[0]!r} is no number, which level {level!r} needs; use level 'nominal'")
    distinct, place = np.unique(np.array(values, dtype=float), return_inverse=True)
    if not np.isfinite(distinct).all():
        raise ValueError("infinite values among the ratings")
    return distinct, place


def _why_left_out(given: Sequence[Sequence[Hashable]]) -> Mapping[str, int]:
    reasons = {"no value": 0, "a single value": 1}
    found = {why: sum(len(unit) == count for unit in given) for why, count in reasons.items()}
    return {why: count for why, count in found.items() if count}
