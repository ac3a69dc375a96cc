"""Compute Pearson's r, Spearman's rho and Kendall's tau-b of two columns, and of many resamples of them at once.

    tau-b = (C - D) / sqrt((P - X)(P - Y))

over the P pairs of rows: C of them are in the same order in both columns, D in opposite order, X are tied in ``x``, Y
in ``y`` (Kendall 1945).

Each ``Resampled...`` class prepares two columns once, and is then called with the weights of some resamples (how often
each drew each unit): a resample is never laid out row by row. Ten times as fast as a loop over scipy's functions.
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

# The share of its squares that a resample must keep as spread: below it, subtracting sums loses three digits or more.
_LITTLE_SPREAD = 1e-3
# Numbers held at once: 8 MB of weights as floats.
_PEARSON_CELLS = 1 << 20


def pearson(x: Floats, y: Floats) -> Floats:
    """Return Pearson's r along the last axis; NaN where either side is constant."""
    a, b = _centred(x), _centred(y)
    products, x_squares, y_squares = (np.einsum("...i,...i->...", *pair) for pair in ((a, b), (a, a), (b, b)))
    # Rounding may carry a perfect correlation beyond 1.
    r: Floats = np.clip(products / np.sqrt(x_squares * y_squares), -1, 1)
    return r


def scaled(x: Floats) -> Floats:
    """Divide by a power of two so that the largest is about 1.

    Differences and squares of very large numbers would be infinite otherwise; a power of two changes no digit.
    """
    divided: Floats = np.ldexp(x, -np.frexp(np.abs(x).max(axis=-1, keepdims=True))[1])
    return divided


def _centred(x: Floats) -> Floats:
    """Subtract the mean and divide by the largest deviation, along the last axis; NaN where constant."""
    centred = scaled(x)
    # The spread is looked at before the mean is taken away: rounding may leave a constant column a little spread.
    constant = np.ptp(centred, axis=-1, keepdims=True) == 0
    centred -= centred.mean(axis=-1, keepdims=True)
    centred /= np.where(constant, np.nan, np.abs(centred).max(axis=-1, keepdims=True))
    return centred


class ResampledPearson:
    """Pearson's r of resamples, from sums over each unit.

    Sums lose digits where a resample has next to nothing of the spread that all rows have (all but one value are
    alike, and that one was not drawn); such a resample is laid out row by row, and computed by itself.
    """

    def __init__(self, x: Floats, y: Floats, units: Units) -> None:
        self._x, self._y, self._units = x, y, units
        a, b = _centred(x), _centred(y)
        columns = (np.ones(len(x)), a, b, a * a, b * b, a * b)
        self._sums = np.stack([np.bincount(units, weights=column) for column in columns], axis=1)

    def __call__(self, weights: ByteWeights) -> Floats:
        """Return the resamples' r, of weights of shape (resamples, units); NaN where one side is constant."""
        parts = split_resamples(weights, len(self._sums), _PEARSON_CELLS)
        return np.concatenate([self._part(part) for part in parts])

    def _part(self, weights: ByteWeights) -> Floats:
        n, a, b, aa, bb, ab = (weights.astype(float) @ self._sums).T
        x_spread, y_spread = aa - a * a / n, bb - b * b / n
        reliable = (x_spread > _LITTLE_SPREAD * aa) & (y_spread > _LITTLE_SPREAD * bb)
        spread = np.where(reliable, x_spread * y_spread, np.nan)
        r: Floats = np.clip((ab - a * b / n) / np.sqrt(spread), -1, 1)
        for resample in np.flatnonzero(~reliable):
            drawn = np.repeat(np.arange(len(self._x)), weights[resample][self._units])
            r[resample] = pearson(self._x[drawn], self._y[drawn])
        return r


# Fewer than for Pearson: each resample needs several arrays as long as the rows, 2 MB each at this size.
_SPEARMAN_CELLS = 1 << 18


def spearman(x: Floats, y: Floats) -> Floats:
    """Return Spearman's rho of two columns; NaN where either is constant."""
    return pearson(mean_ranks(x), mean_ranks(y))


def mean_ranks(x: Floats) -> Floats:
    """Return the rank of each value, from 1; equal values share the mean of their ranks.

    >>> mean_ranks(np.array([3.0, 1.0, 3.0]))
    array([2.5, 1. , 2.5])
    """
    _, value_numbers, counts = np.unique(x, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - (counts - 1) / 2)[value_numbers]
    return ranks


class ResampledSpearman:
    """Spearman's rho of resamples: values are sorted once, then only counted.

    Ranks are centred at once; they and all their products are whole numbers and quarters, which add up without error.
    """

    def __init__(self, x: Floats, y: Floats, units: Units) -> None:
        self._x, self._y = _RankedColumn(x, units), _RankedColumn(y, units)
        self._y_values_by_x = self._y.values[self._x.order]

    def __call__(self, weights: ByteWeights) -> Floats:
        """Return the resamples' rho, of weights of shape (resamples, units); NaN where one side is constant."""
        parts = split_resamples(weights, len(self._x.order), _SPEARMAN_CELLS)
        return np.concatenate([self._part(part) for part in parts])

    def _part(self, weights: ByteWeights) -> Floats:
        by_x, by_y = self._x.row_weights(weights), self._y.row_weights(weights)
        x_ranks, x_spread = self._x.ranks(by_x)
        y_ranks, y_spread = self._y.ranks(by_y)
        # In place: the weights are not needed again, and the product of a weight and both ranks is what is summed.
        by_x *= self._x.value_to_rows(x_ranks)
        products = np.einsum("ij,ij->i", by_x, np.take(y_ranks, self._y_values_by_x, axis=1))
        spread = x_spread * y_spread
        rho: Floats = np.clip(products / np.sqrt(np.where(spread > 0, spread, np.nan)), -1, 1)
        return rho


class _RankedColumn:
    """Prepares one of two columns for ranking: its order, and its distinct values.

    Attributes:
        order: the rows by value.
        values: the number of each row's value among the distinct ones.
    """

    def __init__(self, x: Floats, units: Units) -> None:
        self.order = np.argsort(x, kind="stable")
        self.values = np.unique(x, return_inverse=True)[1]
        self._units = units[self.order]
        # Values are numbered from 0, so a -1 in front makes the first row a start.
        self._starts = np.flatnonzero(np.diff(self.values[self.order], prepend=-1))
        self._lengths = np.diff(self._starts, append=len(x))
        self._tied = len(self._starts) < len(x)

    def row_weights(self, weights: ByteWeights) -> Floats:
        """Return how often each row was drawn, in the order of the values."""
        return np.take(weights, self._units, axis=1).astype(float)

    def ranks(self, ordered: Floats) -> tuple[Floats, Floats]:
        """Return each value's mean rank, centred, of shape (resamples, values), and the sum of its squares over rows.

        With c of W rows at each value that sum is (W^3 - sum of c^3) / 12.
        """
        # Without ties each value is a row, and the sums over values would only be a copy.
        counts = np.add.reduceat(ordered, self._starts, axis=1) if self._tied else ordered
        ranks = np.cumsum(counts, axis=1)
        total = ranks[:, -1:].copy()
        # In place, in two steps: these arrays are the largest there are, and a copy costs more than the arithmetic.
        ranks -= counts / 2
        ranks -= total / 2
        return ranks, (total[:, 0] ** 3 - np.einsum("ij,ij,ij->i", counts, counts, counts)) / 12

    def value_to_rows(self, per_value: Floats) -> Floats:
        """Return for each row what ``per_value`` has for its value, rows in the order of their values."""
        return np.repeat(per_value, self._lengths, axis=1) if self._tied else per_value


Ranks = NDArray[np.intp]
# Up to so many rows all are in one bin: K is then at most four blocks wide, and needs no table of bins.
_ONE_BIN_ROWS = 512
# 128 is the largest power of two for which single precision is exact, see ``within_bins``.
_BLOCK, _STACK = 128, 16
_KENDALL_CELLS = 1 << 18


def tau_b(x: Floats, y: Floats) -> float:
    """Return Kendall's tau-b of two columns, neither of them constant.

    D is what is out of order in ``y`` once the rows are sorted by ``x`` and then ``y`` (Knight 1966), and C all that is
    neither D nor tied.
    """
    xs, ys = dense_ranks(x), dense_ranks(y)
    pairs = len(x) * (len(x) - 1) // 2
    # Ranks are below len(ys), so that this sum is another number for each pair of ranks.
    tied_x, tied_y, tied_both = _tied_pairs(xs), _tied_pairs(ys), _tied_pairs(xs * len(ys) + ys)
    # lexsort takes its main key last: by x, then by y, so that a pair tied in x is never out of order in y.
    discordant = _inversions(ys[np.lexsort((ys, xs))])
    # Pairs tied in both columns were taken away twice, and are given back once.
    concordant = pairs - tied_x - tied_y + tied_both - discordant
    return (concordant - discordant) / math.sqrt((pairs - tied_x) * (pairs - tied_y))


def dense_ranks(x: Floats) -> Ranks:
    """Return each value's position among the distinct values, from 0."""
    return np.unique(x, return_inverse=True)[1]


def _tied_pairs(x: Ranks) -> int:
    counts = np.unique(x, return_counts=True)[1]
    return int((counts * (counts - 1) // 2).sum())


def _inversions(ranks: Ranks) -> int:
    """Count the pairs of which the greater one stands first.

    Two ranks differ first in some bit, the highest of them. So for each bit, from the highest down, among those that
    are alike in the bits above it: how many that have the bit stand before each one that has not.
    """
    inversions = 0
    for bit in reversed(range(int(ranks.max()).bit_length())):
        above, ones = ranks >> (bit + 1), (ranks >> bit) & 1
        starts = np.flatnonzero(np.diff(above, prepend=-1))
        ones_before = np.cumsum(ones) - ones
        # Only those within the same upper bits count: take away what had come before their first one.
        ones_before -= np.repeat(ones_before[starts], np.diff(starts, append=len(ranks)))
        inversions += int(ones_before[ones == 0].sum())
        # Stable: among those alike in all bits so far, the order of the rows is what later bits count.
        ranks = ranks[np.argsort(ranks >> bit, kind="stable")]
    return inversions


class ResampledTau:
    """Kendall's tau-b of resamples; exact, without sorting any of them.

    With w the weights of the rows, C - D is half the quadratic form w' K w, where K holds +1 for each two rows that
    are in the same order in both columns, -1 for opposite order and 0 for a tie. K is never made. Rows are put into
    bins by their rank in ``x``, and again by their rank in ``y``, about as many bins each as a bin has rows, equal
    values together:

    - pairs that share their bin in ``x``: one block of K for each bin;
    - pairs that share their bin in ``y`` but not in ``x``: likewise;
    - all others: their order follows from their bins alone, so the counts in the table of bins are enough.

    All numbers in these sums are whole.
    """

    def __init__(self, x: Floats, y: Floats, units: Units, bins: int | None = None) -> None:
        xs, ys = dense_ranks(x), dense_ranks(y)
        # As many bins as rows: each value has its own, and the table of bins tells everything.
        bins = bins or (round(0.75 * math.sqrt(len(x))) if len(x) > _ONE_BIN_ROWS else 1)
        x_bins, y_bins = _bin_rows(xs, bins), _bin_rows(ys, bins)
        self._by_x = _BinnedColumn(xs, units, x_bins, xs, ys)
        # Bins of x stand in for its ranks: pairs that share one are 0 here, since the blocks of x have counted them.
        self._by_y = _BinnedColumn(ys, units, y_bins, x_bins, ys)
        self._shape = int(x_bins.max()) + 1, int(y_bins.max()) + 1
        self._cells = (x_bins * self._shape[1] + y_bins)[self._by_x.order]

    def __call__(self, weights: ByteWeights) -> Floats:
        """Return the resamples' tau-b, of weights of shape (resamples, units); NaN where one side is constant."""
        ordered_by_x = self._by_x.row_weights(weights)
        total, tied_x = ordered_by_x.sum(axis=1, dtype=float) ** 2, self._by_x.tied(ordered_by_x)
        difference = self._across_bins(ordered_by_x) + self._by_x.within_bins(ordered_by_x)
        del ordered_by_x  # a byte for each row of each resample, not needed beside that of the other column
        ordered_by_y = self._by_y.row_weights(weights)
        difference += self._by_y.within_bins(ordered_by_y)
        untied = (total - tied_x) * (total - self._by_y.tied(ordered_by_y))
        tau: Floats = np.clip(difference / np.sqrt(np.where(untied > 0, untied, np.nan)), -1, 1)
        return tau

    def _across_bins(self, ordered_by_x: ByteWeights) -> Floats:
        """Sum, over each two cells of the table of bins, the product of their counts, signed by their order."""
        rows, columns = self._shape
        # With a single bin on one side, every pair shares it and was counted within that bin.
        if 1 in self._shape:
            return np.zeros(len(ordered_by_x))
        # One table at a time: those of all resamples together would be large.
        tables = (np.bincount(self._cells, drawn, rows * columns) for drawn in ordered_by_x)
        return np.array([_signed_products(table.reshape(rows, columns)) for table in tables])


def _signed_products(counts: NDArray[Any]) -> float:
    """Sum the products of each two cells' counts, + where both orders agree and - where they do not.

    Of each cell: how many there are in rows above it less those in rows below; of that: left less right. Both are
    running sums, made in place.
    """
    above: Floats = np.cumsum(counts, axis=0, dtype=float)
    total = above[-1].copy()
    above *= 2
    above -= counts
    above -= total
    signed = np.cumsum(above, axis=1)
    total = signed[:, -1:].copy()
    signed *= 2
    signed -= above
    signed -= total
    return float(np.vdot(counts, signed))


@dataclass(frozen=True)
class _RankBin:
    """Rows ``start`` to ``end`` of a column's order, with their ranks in both columns."""

    start: int
    end: int
    x: Ranks
    y: Ranks

    def blocks(self) -> Iterator[tuple[slice, slice, NDArray[np.float32]]]:
        """Yield each two parts of the bin, none of them longer than ``_BLOCK`` rows, with the signs of their pairs.

        K is symmetric: two different parts come up once, and count twice.
        """
        cuts = [slice(start, start + _BLOCK) for start in range(0, self.end - self.start, _BLOCK)]
        for number, rows in enumerate(cuts):
            for columns in cuts[number:]:
                signs = _signs(self.x[rows], self.x[columns]) * _signs(self.y[rows], self.y[columns])
                yield rows, columns, signs.astype(np.float32) * (1 if rows == columns else 2)


class _BinnedColumn:
    """Prepares one of two columns: its order, its ties, and the bins in which some rows differ in both columns."""

    def __init__(self, ranks: Ranks, units: Units, bins: Ranks, x: Ranks, y: Ranks) -> None:
        self.order = np.argsort(ranks, kind="stable")
        ends = np.cumsum(np.bincount(bins))
        spans = zip([0, *ends[:-1]], ends, strict=True)
        all_bins = (_RankBin(a, b, x[self.order[a:b]], y[self.order[a:b]]) for a, b in spans)
        # Where a column is constant within a bin, every pair is tied and adds nothing.
        self._bins = [rank_bin for rank_bin in all_bins if np.ptp(rank_bin.x) and np.ptp(rank_bin.y)]
        self._units = units[self.order]
        self._value_starts = np.flatnonzero(np.diff(ranks[self.order], prepend=-1))

    def row_weights(self, weights: ByteWeights) -> ByteWeights:
        """Return how often each row was drawn, in this column's order."""
        return np.take(weights, self._units, axis=1)

    def tied(self, ordered: ByteWeights) -> Floats:
        """Sum the squared counts of the distinct values: the ordered pairs, with themselves, that are tied."""
        parts = split_resamples(ordered, ordered.shape[1], _KENDALL_CELLS)
        return np.concatenate([self._tied_part(part) for part in parts])

    def _tied_part(self, ordered: ByteWeights) -> Floats:
        counts = ordered.astype(float)
        if len(self._value_starts) < ordered.shape[1]:
            counts = np.add.reduceat(counts, self._value_starts, axis=1)
        squares: Floats = np.einsum("ij,ij->i", counts, counts)
        return squares

    def within_bins(self, ordered: ByteWeights) -> Floats:
        """Compute w' K w over pairs that share a bin.

        Single precision is exact here: weights are below 256, so that no number exceeds 2 * 128 * 255^2 < 2^24.
        Products are of small matrices, many at once: a large one is shared out among threads, which on a busy machine
        wait for each other.
        """
        resamples = len(ordered)
        # Filled up with resamples of no rows to a whole number of stacks; the surplus is cut off at the end.
        sums = np.zeros(-(-resamples // _STACK) * _STACK)
        for rank_bin in self._bins:
            drawn = np.zeros((len(sums), rank_bin.end - rank_bin.start), dtype=np.float32)
            drawn[:resamples] = ordered[:, rank_bin.start : rank_bin.end]
            for rows, columns, signs in rank_bin.blocks():
                stacked = drawn[:, rows].reshape(-1, _STACK, len(signs))
                products = np.matmul(stacked, signs).reshape(len(sums), -1)
                products *= drawn[:, columns]
                sums += products.sum(axis=1, dtype=np.float64)
        return sums[:resamples]


def _bin_rows(ranks: Ranks, bins: int) -> Ranks:
    """Put rows into bins of about ``len(ranks) / bins`` rows of neighbouring values; return the bin of each row.

    Equal values share a bin, and a value that fills one alone has it to itself.
    """
    counts = np.bincount(ranks)
    full = -(-len(ranks) // bins)
    # Even numbers for bins of several values, odd ones for a value alone: only where the number changes matters.
    bin_of_value = 2 * ((np.cumsum(counts) - counts) // full) + (counts >= full)
    bin_of_row: Ranks = np.cumsum(np.diff(bin_of_value, prepend=bin_of_value[:1]) != 0)[ranks]
    return bin_of_row


def _signs(down: Ranks, across: Ranks) -> NDArray[np.int8]:
    """Return the sign of each value minus each other: shape (down, across)."""
    return np.subtract(down[:, None] > across, down[:, None] < across, dtype=np.int8)


# Where there are fewer rows for each possible pair, counting the pairs first is no gain.
_ROWS_A_PAIR = 4
_TABLE_CELLS = 1 << 22
# Below it, whole numbers add up without error in single precision.
_EXACT = 1 << 24


class FewValues:
    """Counts, in resamples, the different pairs of values of two columns that have few of them, such as ratings.

    Pairs with their counts stand for all rows: ``ResampledSpearman`` and ``ResampledTau`` take ``x``, ``y`` and
    ``units`` for columns, and for weights what ``parts`` gives. They add up whole numbers, which come out the same.

    Args:
        x, y: the distinct values of either column.
        pair: of each row, the number of its pair: that of its x times the number of distinct y, and that of its y.
        units: of each row, what it is drawn with.
    """

    def __init__(self, x: Floats, y: Floats, pair: Units, units: Units) -> None:
        pairs, self._pair = np.unique(pair, return_inverse=True)
        self.x, self.y = x[pairs // len(y)], y[pairs % len(y)]
        self.units: Units = np.arange(len(pairs))
        self._units, width = units, len(pairs)
        rows = np.bincount(units)
        self._table: Any = None
        if len(rows) * int(rows.max()) < _EXACT:
            self._table = _count_table(units, self._pair, (len(rows), width))

    @classmethod
    def of(cls, x: Floats, y: Floats, units: Units) -> FewValues | None:
        """Return the pairs of two columns; ``None`` where there are not much fewer of them than rows."""
        (xs, x_numbers), (ys, y_numbers) = (np.unique(column, return_inverse=True) for column in (x, y))
        few = _ROWS_A_PAIR * len(xs) * len(ys) <= len(x)
        return cls(xs, ys, x_numbers * len(ys) + y_numbers, units) if few else None

    def parts(self, weights: ByteWeights) -> Iterator[Floats]:
        """Yield how often each resample drew each pair, some resamples at a time: arrays of shape (some, pairs)."""
        for part in split_resamples(weights, max(len(self.units), weights.shape[1]), _PEARSON_CELLS):
            yield self._counts(part)

    def _counts(self, weights: ByteWeights) -> Floats:
        if self._table is not None:
            # A sparse table stands on the left of a product, or it would be laid out whole.
            drawn_pairs: Floats = (self._table @ weights.T.astype(np.float32)).T.astype(float)
            return np.ascontiguousarray(drawn_pairs)
        width = len(self.units)
        drawn = (np.bincount(self._pair, resample[self._units], width) for resample in weights)
        return np.array(list(drawn)).reshape(-1, width)


def _count_table(units: Units, pairs: Units, shape: tuple[int, int]) -> Any:
    """Count how often each unit has each pair: shape (pairs, units), sparse where most counts are 0."""
    # Imported where it is needed: it takes longer to load than numpy.
    from scipy.sparse import csr_array

    ones = np.ones(len(units), dtype=np.float32)
    table = csr_array((ones, (pairs, units)), shape=shape[::-1])
    return table.toarray() if shape[0] * shape[1] <= _TABLE_CELLS else table
