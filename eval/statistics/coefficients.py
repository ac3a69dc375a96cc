"""Pearson, Spearman, Kendall: of a table and of many resamples of it.

    tau-b = (C - D) / sqrt((P - X)(P - Y))

over the P pairs of rows: C of them are in the same order on both sides, D in opposite order, X are tied in ``x``, Y in
``y`` (Kendall 1945).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .alignment import Floats, Units
from .resampling import ByteWeights, split_resamples

_DEGENERATE = 1e-3
_PEARSON_CELLS = 1 << 20


def pearson(x: Floats, y: Floats) -> Floats:
    """Pearson's r along the last axis; NaN where either side is constant."""
    a, b = _centred(x), _centred(y)
    products, first, second = (np.einsum("...i,...i->...", *pair) for pair in ((a, b), (a, a), (b, b)))
    found: Floats = np.clip(products / np.sqrt(first * second), -1, 1)
    return found


def scaled(x: Floats) -> Floats:
    """By a power of two, so that the largest is about 1: differences and squares of very large numbers are none."""
    found: Floats = np.ldexp(x, -np.frexp(np.abs(x).max(axis=-1, keepdims=True))[1])
    return found


def _centred(x: Floats) -> Floats:
    """Centred, the largest being 1, along the last axis; NaN where constant."""
    centred = scaled(x)
    constant = np.ptp(centred, axis=-1, keepdims=True) == 0
    centred -= centred.mean(axis=-1, keepdims=True)
    centred /= np.where(constant, np.nan, np.abs(centred).max(axis=-1, keepdims=True))
    return centred


class ResampledPearson:
    """Pearson's r of resamples, told by how often each drew each unit: from sums over each unit.

    Sums lose digits where a resample has next to nothing of the spread that all rows have (all but one value are
    alike, and that one was not drawn); such a resample is made, and computed by itself.
    """

    def __init__(self, x: Floats, y: Floats, units: Units) -> None:
        self._x, self._y, self._units = x, y, units
        a, b = _centred(x), _centred(y)
        columns = (np.ones(len(x)), a, b, a * a, b * b, a * b)
        self._sums = np.stack([np.bincount(units, weights=column) for column in columns], axis=1)

    def __call__(self, weights: ByteWeights) -> Floats:
        """The resamples' r, of weights of shape (resamples, units); NaN where one side is constant."""
        return np.concatenate(
            [self._some(part) for part in split_resamples(weights, len(self._sums), _PEARSON_CELLS)]
        )

    def _some(self, weights: ByteWeights) -> Floats:
        n, a, b, aa, bb, ab = (weights.astype(float) @ self._sums).T
        spread_a, spread_b = aa - a * a / n, bb - b * b / n
        enough = (spread_a > _DEGENERATE * aa) & (spread_b > _DEGENERATE * bb)
        spread = np.where(enough, spread_a * spread_b, np.nan)
        found: Floats = np.clip((ab - a * b / n) / np.sqrt(spread), -1, 1)
        for at in np.flatnonzero(~enough):
            drawn = np.repeat(np.arange(len(self._x)), weights[at][self._units])
            found[at] = pearson(self._x[drawn], self._y[drawn])
        return found


_SPEARMAN_CELLS = 1 << 18


def spearman(x: Floats, y: Floats) -> Floats:
    """Spearman's rho of two columns; NaN where either is constant."""
    return pearson(mean_ranks(x), mean_ranks(y))


def mean_ranks(x: Floats) -> Floats:
    """The rank of each value, from 1; equal values have the mean of theirs.

    >>> mean_ranks(np.array([3.0, 1.0, 3.0]))
    array([2.5, 1. , 2.5])
    """
    _, places, counts = np.unique(x, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - (counts - 1) / 2)[places]
    return ranks


class ResampledSpearman:
    """Spearman's rho of resamples, told by how often each drew each unit: values are sorted once, then counted.

    Ranks are centred at once; they and all their products are whole numbers and quarters.
    """

    def __init__(self, x: Floats, y: Floats, units: Units) -> None:
        self._x, self._y = _RankedColumn(x, units), _RankedColumn(y, units)
        self._values_of_y = self._y.values[self._x.order]

    def __call__(self, weights: ByteWeights) -> Floats:
        """The resamples' rho, of weights of shape (resamples, units); NaN where one side is constant."""
        return np.concatenate(
            [self._some(part) for part in split_resamples(weights, len(self._x.order), _SPEARMAN_CELLS)]
        )

    def _some(self, weights: ByteWeights) -> Floats:
        by_x, by_y = self._x.weights(weights), self._y.weights(weights)
        x_ranks, x_spread = self._x.ranks(by_x)
        y_ranks, y_spread = self._y.ranks(by_y)
        by_x *= self._x.of_rows(x_ranks)
        products = np.einsum("ij,ij->i", by_x, np.take(y_ranks, self._values_of_y, axis=1))
        spread = x_spread * y_spread
        found: Floats = np.clip(products / np.sqrt(np.where(spread > 0, spread, np.nan)), -1, 1)
        return found


class _RankedColumn:
    """One of two columns: its order, and its distinct values.

    Attributes:
        order: the rows by value.
        values: the number of each row's value among the distinct ones.
    """

    def __init__(self, x: Floats, units: Units) -> None:
        self.order = np.argsort(x, kind="stable")
        self.values = np.unique(x, return_inverse=True)[1]
        self._units = units[self.order]
        self._starts = np.flatnonzero(np.diff(self.values[self.order], prepend=-1))
        self._lengths = np.diff(self._starts, append=len(x))
        self._tied = len(self._starts) < len(x)

    def weights(self, weights: ByteWeights) -> Floats:
        """Of each row, in the order of the values."""
        return np.take(weights, self._units, axis=1).astype(float)

    def ranks(self, ordered: Floats) -> tuple[Floats, Floats]:
        """Each value's mean rank, centred, of shape (resamples, values); and the sum of its squares over rows.

        With c of W rows at each value that sum is (W^3 - sum of c^3) / 12.
        """
        counts = np.add.reduceat(ordered, self._starts, axis=1) if self._tied else ordered
        ranks = np.cumsum(counts, axis=1)
        total = ranks[:, -1:].copy()
        ranks -= counts / 2
        ranks -= total / 2
        return ranks, (total[:, 0] ** 3 - np.einsum("ij,ij,ij->i", counts, counts, counts)) / 12

    def of_rows(self, of_values: Floats) -> Floats:
        """What each row has of its value, in the order of the values."""
        return np.repeat(of_values, self._lengths, axis=1) if self._tied else of_values


Ranks = NDArray[np.intp]
_ONE_BIN = 512
_PART, _TOGETHER = 128, 16
_KENDALL_CELLS = 1 << 18


def tau_b(x: Floats, y: Floats) -> float:
    """Kendall's tau-b of two columns, neither of them constant.

    D is what is out of order in ``y`` once the rows are sorted by ``x`` and then ``y`` (Knight 1966), and C all that is
    neither D nor tied.
    """
    xs, ys = ranked(x), ranked(y)
    pairs = len(x) * (len(x) - 1) // 2
    tied_x, tied_y, tied_both = _tied_pairs(xs), _tied_pairs(ys), _tied_pairs(xs * len(ys) + ys)
    discordant = _inversions(ys[np.lexsort((ys, xs))])
    concordant = pairs - tied_x - tied_y + tied_both - discordant
    return (concordant - discordant) / math.sqrt((pairs - tied_x) * (pairs - tied_y))


def ranked(x: Floats) -> Ranks:
    """Each value's place among the distinct values, from 0."""
    return np.unique(x, return_inverse=True)[1]


def _tied_pairs(x: Ranks) -> int:
    counts = np.unique(x, return_counts=True)[1]
    return int((counts * (counts - 1) // 2).sum())


def _inversions(ranks: Ranks) -> int:
    """Pairs of which the greater one stands first.

    Two ranks differ first in some bit, the highest of them. So for each bit, from the highest down, among those that
    are alike in the bits above it: how many that have the bit stand before each one that has not.
    """
    found = 0
    for bit in reversed(range(int(ranks.max()).bit_length())):
        above, ones = ranks >> (bit + 1), (ranks >> bit) & 1
        starts = np.flatnonzero(np.diff(above, prepend=-1))
        before = np.cumsum(ones) - ones
        before -= np.repeat(before[starts], np.diff(starts, append=len(ranks)))
        found += int(before[ones == 0].sum())
        ranks = ranks[np.argsort(ranks >> bit, kind="stable")]
    return found


class ResampledTau:
    """Tau-b of resamples, told by how often each drew each unit; exact, without sorting any of them.

    With w the weights of the rows, C - D is half the quadratic form w' K w, where K holds +1 for each two rows that
    are in the same order on both sides, -1 for opposite order and 0 for a tie. K is never made. Rows are put into bins
    by their rank in ``x``, and again by their rank in ``y``, about as many bins each as a bin has rows, equal values
    together:

    - pairs that share their bin in ``x``: one block of K for each bin;
    - pairs that share their bin in ``y`` but not in ``x``: likewise;
    - all others: their order follows from their bins alone, so the counts in the table of bins are enough.

    All numbers in these sums are whole.
    """

    def __init__(self, x: Floats, y: Floats, units: Units) -> None:
        xs, ys = ranked(x), ranked(y)
        bins = round(0.75 * math.sqrt(len(x))) if len(x) > _ONE_BIN else 1
        x_bins, y_bins = _binned(xs, bins), _binned(ys, bins)
        self._in_x, self._in_y = (
            _BinnedColumn(xs, units, x_bins, xs, ys),
            _BinnedColumn(ys, units, y_bins, x_bins, ys),
        )
        self._shape = int(x_bins.max()) + 1, int(y_bins.max()) + 1
        self._cells = (x_bins * self._shape[1] + y_bins)[self._in_x.order]

    def __call__(self, weights: ByteWeights) -> Floats:
        """The resamples' tau-b, of weights of shape (resamples, units); NaN where one side is constant."""
        by_x = self._in_x.weights(weights)
        total, tied_x = by_x.sum(axis=1, dtype=float) ** 2, self._in_x.tied(by_x)
        difference = self._across_bins(by_x) + self._in_x.within_bins(by_x)
        del by_x
        by_y = self._in_y.weights(weights)
        difference += self._in_y.within_bins(by_y)
        untied = (total - tied_x) * (total - self._in_y.tied(by_y))
        found: Floats = np.clip(difference / np.sqrt(np.where(untied > 0, untied, np.nan)), -1, 1)
        return found

    def _across_bins(self, by_x: ByteWeights) -> Floats:
        """Of the tables of bins: the sum over each two cells of the product of counts, signed by their order."""
        rows, columns = self._shape
        if 1 in self._shape:
            return np.zeros(len(by_x))
        tables = (np.bincount(self._cells, drawn, rows * columns) for drawn in by_x)
        return np.array([_signed(table.reshape(rows, columns)) for table in tables])


def _signed(counts: NDArray[Any]) -> float:
    """Of each cell: how many there are in rows above it less those in rows below; of that: left less right."""
    above: Floats = np.cumsum(counts, axis=0, dtype=float)
    total = above[-1].copy()
    above *= 2
    above -= counts
    above -= total
    found = np.cumsum(above, axis=1)
    total = found[:, -1:].copy()
    found *= 2
    found -= above
    found -= total
    return float(np.vdot(counts, found))


@dataclass(frozen=True)
class _Bin:
    """Rows ``start`` to ``end`` of a side's order, with their ranks on both sides."""

    start: int
    end: int
    x: Ranks
    y: Ranks

    def parts(self) -> Iterator[tuple[slice, slice, NDArray[np.float32]]]:
        """Each two parts of the bin, none of them longer than ``_PART`` rows, with the signs of their pairs.

        K is symmetric: two different parts come up once, and count twice.
        """
        cuts = [slice(start, start + _PART) for start in range(0, self.end - self.start, _PART)]
        for at, one in enumerate(cuts):
            for other in cuts[at:]:
                signs = _signs(self.x[one], self.x[other]) * _signs(self.y[one], self.y[other])
                yield one, other, signs.astype(np.float32) * (1 if one == other else 2)


class _BinnedColumn:
    """One of two columns: its order, its ties, and those of its bins in which two rows differ on both sides."""

    def __init__(self, ranks: Ranks, units: Units, bins: Ranks, x: Ranks, y: Ranks) -> None:
        self.order = np.argsort(ranks, kind="stable")
        ends = np.cumsum(np.bincount(bins))
        spans = zip([0, *ends[:-1]], ends, strict=True)
        every = [(a, b, x[self.order[a:b]], y[self.order[a:b]]) for a, b in spans]
        self._bins = [_Bin(*each) for each in every if np.ptp(each[2]) and np.ptp(each[3])]
        self._units = units[self.order]
        self._values = np.flatnonzero(np.diff(ranks[self.order], prepend=-1))

    def weights(self, weights: ByteWeights) -> ByteWeights:
        """Of each row, in this side's order."""
        return np.take(weights, self._units, axis=1)

    def tied(self, ordered: ByteWeights) -> Floats:
        """The sum over distinct values of their squared counts."""
        return np.concatenate(
            [self._tied(part) for part in split_resamples(ordered, ordered.shape[1], _KENDALL_CELLS)]
        )

    def _tied(self, ordered: ByteWeights) -> Floats:
        counts = ordered.astype(float)
        if len(self._values) < ordered.shape[1]:
            counts = np.add.reduceat(counts, self._values, axis=1)
        found: Floats = np.einsum("ij,ij->i", counts, counts)
        return found

    def within_bins(self, ordered: ByteWeights) -> Floats:
        """w' K w of the bins.

        Single precision is exact here: weights are below 256, so that no number exceeds 2 * 128 * 255^2 < 2^24.
        Products are of small matrices, many at once: a large one is shared out among threads, which on a busy machine
        wait for each other.
        """
        resamples = len(ordered)
        found = np.zeros(-(-resamples // _TOGETHER) * _TOGETHER)
        for each in self._bins:
            drawn = np.zeros((len(found), each.end - each.start), dtype=np.float32)
            drawn[:resamples] = ordered[:, each.start : each.end]
            for one, other, signs in each.parts():
                stacked = drawn[:, one].reshape(-1, _TOGETHER, len(signs))
                products = np.matmul(stacked, signs).reshape(len(found), -1)
                products *= drawn[:, other]
                found += products.sum(axis=1, dtype=np.float64)
        return found[:resamples]


def _binned(ranks: Ranks, bins: int) -> Ranks:
    """The bin of each row: ``len(ranks) / bins`` rows of neighbouring values, or one value that has as many alone."""
    counts = np.bincount(ranks)
    full = -(-len(ranks) // bins)
    bin_of_value = 2 * ((np.cumsum(counts) - counts) // full) + (counts >= full)
    found: Ranks = np.cumsum(np.diff(bin_of_value, prepend=bin_of_value[:1]) != 0)[ranks]
    return found


def _signs(down: Ranks, across: Ranks) -> NDArray[np.int8]:
    """Of each value minus each other."""
    return np.subtract(down[:, None] > across, down[:, None] < across, dtype=np.int8)
