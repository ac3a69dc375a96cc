"""The bootstrap: statistics with intervals, means in every resample.

Units are what was drawn from the world independently of each other: groups (the candidates of one source text belong
together), or single rows where there are no groups. A resample is told by how often it drew each unit, its *weights*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from .alignment import Floats, Units

Weights = NDArray[np.int64]
"""How often each resample drew each unit: (resamples, units)."""
ByteWeights = NDArray[np.uint8]
AnyWeights = TypeVar("AnyWeights", Weights, ByteWeights)
_CELLS = 1 << 20
_BYTES = 1 << 27

_REMEMBERED = 1 << 22
"""Bytes up to which resamples are kept for the next figure of as many units: a study has hundreds of these."""


@dataclass(frozen=True)
class Resampling:
    """How intervals are made: by the percentile bootstrap (Efron 1979). Part of every result that has some.

    Two figures of the same units under the same resampling are taken from the same resamples, one by one: their
    differences are paired.

    Attributes:
        resamples: how many are drawn; 0 for no intervals.
        confidence: how much of the resampled figures the interval holds.
        seed: of the generator, which nobody else uses.

    Raises:
        ValueError: fewer than 0 resamples, a confidence that is not between 0 and 1, a negative seed.

    >>> scores = np.array([1.0, 2.0, 3.0, 4.0])
    >>> resampling = Resampling(resamples=500)
    >>> means = resampling.figures(len(scores), lambda weights: weights @ scores / 4)
    >>> resampling.interval(2.5, means)
    Statistic(value=2.5, low=1.5, high=3.5)
    """

    resamples: int = 1000
    confidence: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        if self.resamples < 0:
            raise ValueError(f"resamples must be 0 or more, not {self.resamples}")
        if not 0 < self.confidence < 1:
            raise ValueError(f"confidence must lie between 0 and 1, not at {self.confidence}")
        if self.seed < 0:
            raise ValueError(f"seed must be 0 or more, not {self.seed}")

    def weights(self, units: int) -> Iterator[Weights]:
        """Which units each resample drew, some resamples at a time: arrays of shape (some, units).

        Each row sums to ``units``. The rows are the same for the same seed and number of units.
        """
        for block in self.blocks(units):
            for part in split_resamples(block, units, _CELLS):
                yield part.astype(np.int64)

    def blocks(self, units: int) -> Iterator[ByteWeights]:
        """The same in a byte each, many more at a time: 1,000 resamples of 100,000 units in one array.

        That a resample draws a unit more than 255 times has a chance below 1e-500, however many units there are.
        """
        if self.resamples * units <= _REMEMBERED:
            return iter([_remembered(self.seed, self.resamples, units)])
        return _drawn(self.seed, self.resamples, units)

    def figures(self, units: int, figure: Callable[[Weights], Floats]) -> Floats:
        """A figure in each resample.

        Args:
            units: how many there are. Of fewer than two, all resamples are alike: they say nothing, and are all NaN.
            figure: of weights of shape (some, units), the figure in each, of shape (some,); NaN where it has none.

        Returns:
            shape (resamples,).
        """
        if units < 2 or not self.resamples:
            return np.full(self.resamples, np.nan)
        return np.concatenate([figure(block) for block in self.weights(units)])

    def interval(self, value: float | None, resampled: Floats) -> Statistic:
        """The figure with its percentile interval.

        Resamples in which the figure does not exist (NaN) are left out. Where that is more than half of them, or
        where the figure itself does not exist, there is no interval.

        Args:
            value: the figure over all units, as they are.
            resampled: the figure in each resample.
        """
        there = resampled[~np.isnan(resampled)]
        if value is None or not len(there) or 2 * len(there) < len(resampled):
            return Statistic(value)
        tail = (1 - self.confidence) / 2
        low, high = np.quantile(there, (tail, 1 - tail))
        return Statistic(value, float(low), float(high))


def _drawn(seed: int, resamples: int, units: int) -> Iterator[ByteWeights]:
    random = np.random.default_rng(seed)
    at_once = max(1, _BYTES // max(1, units))
    for start in range(0, resamples, at_once):
        block = np.empty((min(at_once, resamples - start), units), dtype=np.uint8)
        for drawn in block:
            drawn[:] = np.bincount(random.integers(0, units, units), minlength=units)
        yield block


@lru_cache(maxsize=8)
def _remembered(seed: int, resamples: int, units: int) -> ByteWeights:
    """All resamples in one array, which nobody may write to."""
    found = np.concatenate([np.empty((0, units), dtype=np.uint8), *_drawn(seed, resamples, units)])
    found.flags.writeable = False
    return found


def split_resamples(weights: AnyWeights, rows: int, cells: int) -> Iterator[AnyWeights]:
    """The resamples a few at a time, so that no more than ``cells`` numbers are held, ``rows`` for each resample."""
    at_once = max(1, cells // max(1, rows))
    return (weights[start : start + at_once] for start in range(0, len(weights), at_once))


@dataclass(frozen=True)
class Statistic:
    """A figure and its confidence interval.

    Attributes:
        value: the figure; ``None`` where it does not exist, as a correlation with a constant.
        low, high: the ends of its interval, in the figure's own unit; ``None`` where there is none. How the interval
            was made (resamples, confidence, seed) is said by the result that holds the figure.

    >>> Statistic(0.51, 0.43, 0.58).high
    0.58
    """

    value: float | None
    low: float | None = None
    high: float | None = None


def resampled_ratios(numerators: Floats, denominators: Floats, resampling: Resampling) -> Floats:
    """The ratio of two sums over units, in each resample.

    Args:
        numerators: of shape (units, k).
        denominators: of shape (units, k), or (units, 1) where all k share theirs.

    Returns:
        shape (resamples, k); NaN where the denominator is 0, and everywhere for fewer than two units.
    """
    units, wide = numerators.shape
    if units < 2 or not resampling.resamples:
        return np.full((resampling.resamples, wide), np.nan)
    found = []
    for weights in resampling.weights(units):
        drawn = weights.astype(float)
        with np.errstate(divide="ignore", invalid="ignore"):
            found.append(drawn @ numerators / (drawn @ denominators))
    ratios = np.concatenate(found)
    ratios[~np.isfinite(ratios)] = np.nan
    return ratios


def resampled_means(values: Floats, units: Units, resampling: Resampling) -> Floats:
    """The mean over rows in each resample of their units.

    Args:
        values: of shape (rows,) or (rows, k).
        units: of each row, counted from 0.

    Returns:
        shape (resamples,) or (resamples, k).

    >>> drawn = resampled_means(np.array([1.0, 3.0]), np.array([0, 1]), Resampling(resamples=200))
    >>> sorted(set(drawn.tolist()))
    [1.0, 2.0, 3.0]
    """
    flat = values.ndim == 1
    table = values[:, None] if flat else values
    units_there = int(units.max()) + 1 if len(units) else 0
    sums = np.zeros((units_there, table.shape[1]))
    np.add.at(sums, units, table)
    rows = np.bincount(units, minlength=units_there).astype(float)[:, None]
    drawn = resampled_ratios(sums, rows, resampling)
    return drawn[:, 0] if flat else drawn


def mean_or_none(values: Floats) -> float | None:
    """The mean; ``None`` of nothing."""
    return float(values.mean()) if len(values) else None


def two_sided_p(differences: Floats) -> float | None:
    """Two-sided bootstrap p-value that a difference is 0, from the difference in each resample.

    Twice the smaller of the shares of resamples on either side of 0 (0 counts for both), each with 1 added above and
    below the line, so that a p-value is never 0; at most 1 (Davison and Hinkley 1997, section 4.2.5).

    >>> two_sided_p(np.array([0.1, 0.2, 0.3, -0.1]))
    0.8
    """
    there = differences[~np.isnan(differences)]
    if not len(there) or 2 * len(there) < len(differences):
        return None
    fewest = min(int((there <= 0).sum()), int((there >= 0).sum()))
    return min(1.0, 2 * (fewest + 1) / (len(there) + 1))
