"""Correlations of two columns: over all rows, in many resamples at once, and within groups.

Pearson's r, Spearman's rho (Pearson's r of mean ranks) and Kendall's tau-b. A correlation does not
exist if either side is constant or there are fewer than two rows: it is then ``None``, or NaN in
arrays. ``sample`` computes the intervals.

    tau-b = (C - D) / sqrt((P - X)(P - Y))

P is the number of pairs of rows. C of them have the same order in both columns, D the opposite
order, X are tied in ``x``, and Y in ``y`` (Kendall 1945).

Each ``Resampled...`` class prepares two columns once, and is then called with the weights of some
resamples (how often each resample drew each cluster). A resample is never written out row by row.
This is ten times as fast as a loop over scipy's functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .alignment import Floats, Ints, code_count, ratio
from .resampling import AT_ONCE, ByteWeights, Resampling, split_resamples

# The minimum share of its squares that a resample must have as spread. Below it, subtracting sums
# loses three digits or more.
_LITTLE_SPREAD = 1e-3
_SMALL_GROUP = 64


def pearson(x: Floats, y: Floats) -> Floats:
    """Return Pearson's r along the last axis; NaN if either side is constant."""
    a = _centred(x)
    b = _centred(y)
    products, x_squares, y_squares = (
        np.einsum("...i,...i->...", *pair) for pair in ((a, b), (a, a), (b, b))
    )
    # Rounding may put a perfect correlation beyond 1.
    r: Floats = np.clip(products / np.sqrt(x_squares * y_squares), -1, 1)
    return r


def scaled(x: Floats) -> Floats:
    """Divide by a power of two so that the largest value is about 1.

    Otherwise, differences and squares of very large numbers would be infinite. A power of two
    changes no digit.
    """
    divided: Floats = np.ldexp(x, -np.frexp(np.abs(x).max(axis=-1, keepdims=True))[1])
    return divided


def _centred(x: Floats) -> Floats:
    """Subtract the mean and divide by the largest deviation, along the last axis.

    NaN if constant.
    """
    centred = scaled(x)
    # Measure the spread before subtracting the mean, because rounding may give a constant column a
    # small spread.
    constant = np.ptp(centred, axis=-1, keepdims=True) == 0
    centred -= centred.mean(axis=-1, keepdims=True)
    centred /= np.where(constant, np.nan, np.abs(centred).max(axis=-1, keepdims=True))
    return centred


class _Resampled:
    """Computes a coefficient of resamples, some at a time."""

    def __init__(self, x: Floats, y: Floats, clusters: Ints) -> None:
        self._width = len(x)

    def __call__(self, weights: NDArray[Any]) -> Floats:
        """Return the coefficient of each resample; NaN if one side is constant.

        ``weights`` has the shape (resamples, clusters).
        """
        return np.concatenate([*map(self._part, split_resamples(weights, self._width))])

    def _part(self, weights: NDArray[Any]) -> Floats:
        raise NotImplementedError


class ResampledPearson(_Resampled):
    """Pearson's r of resamples, from sums over each cluster.

    Sums lose digits if a resample has almost none of the spread of all rows (all values but one are
    equal, and that one was not drawn). Such a resample is written out row by row and computed
    separately.
    """

    def __init__(self, x: Floats, y: Floats, clusters: Ints) -> None:
        self._x = x
        self._y = y
        self._clusters = clusters
        a = _centred(x)
        b = _centred(y)
        columns = (np.ones(len(x)), a, b, a * a, b * b, a * b)
        self._sums = np.stack([np.bincount(clusters, weights=column) for column in columns], axis=1)
        self._width = len(self._sums)

    def _part(self, weights: ByteWeights) -> Floats:
        n, a, b, aa, bb, ab = (weights.astype(float) @ self._sums).T
        x_spread = aa - a * a / n
        y_spread = bb - b * b / n
        reliable = (x_spread > _LITTLE_SPREAD * aa) & (y_spread > _LITTLE_SPREAD * bb)
        spread = np.where(reliable, x_spread * y_spread, np.nan)
        r: Floats = np.clip((ab - a * b / n) / np.sqrt(spread), -1, 1)
        for resample in np.flatnonzero(~reliable):
            drawn = np.repeat(np.arange(len(self._x)), weights[resample][self._clusters])
            r[resample] = pearson(self._x[drawn], self._y[drawn])
        return r


def spearman(x: Floats, y: Floats) -> Floats:
    """Return Spearman's rho of two columns; NaN if either is constant."""
    return pearson(mean_ranks(x), mean_ranks(y))


def mean_ranks(x: Floats) -> Floats:
    """Return the rank of each value, from 1; equal values get the mean of their ranks.

    >>> mean_ranks(np.array([3.0, 1.0, 3.0]))
    array([2.5, 1. , 2.5])
    """
    _, value_numbers, counts = np.unique(x, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[value_numbers]


class ResampledSpearman(_Resampled):
    """Spearman's rho of resamples: values are sorted once, then only counted.

    Ranks are centred at once. They and all their products are multiples of a quarter, which add up
    without error.
    """

    def __init__(self, x: Floats, y: Floats, clusters: Ints) -> None:
        super().__init__(x, y, clusters)
        self._x = _RankedColumn(x, clusters)
        self._y = _RankedColumn(y, clusters)
        self._y_values_by_x = self._y.values[self._x.order]

    def _part(self, weights: ByteWeights) -> Floats:
        by_x, x_ranks, x_spread = self._x.ranks(weights)
        _, y_ranks, y_spread = self._y.ranks(weights)
        # In place: the weights are not needed again, and the sum is over products of a weight and
        # both ranks.
        by_x *= np.repeat(x_ranks, self._x.lengths, axis=1)
        products = np.einsum("ij,ij->i", by_x, np.take(y_ranks, self._y_values_by_x, axis=1))
        return ratio(products, np.sqrt(x_spread * y_spread)).clip(-1, 1)


class _RankedColumn:
    """One of two columns, prepared for ranking: its order, and its distinct values.

    Attributes:
        order: the rows by value.
        values: the number of each row's value among the distinct ones.
        lengths: the number of rows with each distinct value.
    """

    def __init__(self, x: Floats, clusters: Ints) -> None:
        self.order = np.argsort(x, kind="stable")
        self.values = np.unique(x, return_inverse=True)[1]
        self._clusters = clusters[self.order]
        self._starts = _starts(self.values[self.order])
        self.lengths = np.diff(self._starts, append=len(x))

    def ranks(self, weights: ByteWeights) -> tuple[Floats, Floats, Floats]:
        """Rank the rows of resamples.

        Returns:
            how often each row was drawn, in the order of the values; each value's mean rank,
            centred, of shape (resamples, values); and the sum of its squares over rows. With c of W
            rows at each value, this sum is (W^3 - sum of c^3) / 12.
        """
        drawn = np.take(weights, self._clusters, axis=1).astype(float)
        counts = np.add.reduceat(drawn, self._starts, axis=1)
        ranks = np.cumsum(counts, axis=1)
        total = ranks[:, -1:].copy()
        # In place, in two steps: these arrays are the largest ones, and a copy costs more than the
        # arithmetic.
        ranks -= counts / 2
        ranks -= total / 2
        return (
            drawn,
            ranks,
            (total[:, 0] ** 3 - np.einsum("ij,ij,ij->i", counts, counts, counts)) / 12,
        )


def tau_b(x: Floats, y: Floats) -> float:
    """Return Kendall's tau-b of two columns that are not constant."""
    # All rows belong to one cluster, which is drawn once.
    return float(
        ResampledTau(x, y, np.zeros(len(x), dtype=np.intp))(np.ones((1, 1), dtype=np.uint8))[0]
    )


class ResampledTau(_Resampled):
    """Kendall's tau-b of resamples: rows are sorted once, then only weighted.

    With rows sorted by ``x`` and then ``y``, D is the number of inversions in ``y`` (Knight 1966),
    and C the number of pairs that are neither inverted nor tied. Two ranks first differ in one bit,
    the highest of their differing bits. For each bit from the highest down, the algorithm therefore
    counts, among rows that are equal in the bits above, the rows with the bit before each row
    without it.

    All numbers in these sums are integers.
    """

    def __init__(self, x: Floats, y: Floats, clusters: Ints) -> None:
        super().__init__(x, y, clusters)
        x_ranks, ranks = (np.unique(column, return_inverse=True)[1] for column in (x, y))
        # The column with fewer values has fewer bits. The order of the columns does not change tau.
        if x_ranks.max() < ranks.max():
            x_ranks, ranks = ranks, x_ranks
        # lexsort takes its main key last: by x, then by y, so that a pair tied in x is never an
        # inversion in y.
        order = np.lexsort((ranks, x_ranks))
        x_ranks = x_ranks[order]
        ranks = ranks[order]
        self._clusters = clusters[order]
        self._x_starts = _starts(x_ranks)
        self._both_starts = np.union1d(self._x_starts, _starts(ranks))
        self._bits: list[tuple[Ints, Ints, Ints, Ints, Ints]] = []
        for bit in reversed(range(int(ranks.max()).bit_length())):
            ones = (ranks >> bit) & 1
            starts = _starts(ranks >> (bit + 1))
            zeros = np.flatnonzero(ones == 0)
            up_to = np.cumsum(ones)
            # Only rows with the same upper bits count, so subtract those before the first of them.
            before = np.repeat((up_to - ones)[starts], np.diff(starts, append=len(ranks)))
            # Stable: among rows with equal bits so far, later bits count by the existing order.
            sorted_rows = np.argsort(ranks >> bit, kind="stable")
            self._bits.append(
                (zeros, np.flatnonzero(ones), up_to[zeros], before[zeros], sorted_rows)
            )
            ranks = ranks[sorted_rows]
        self._y_starts = _starts(ranks)

    def _part(self, weights: NDArray[Any]) -> Floats:
        # One line per row, because lines are selected and added up.
        drawn = np.ascontiguousarray(weights.T)[self._clusters].astype(float)
        total = drawn.sum(axis=0) ** 2
        tied_x = _tied(drawn, self._x_starts)
        tied_both = _tied(drawn, self._both_starts)
        discordant = np.zeros(len(weights))
        for zeros, ones, up_to, before, sorted_rows in self._bits:
            counts = np.zeros((len(ones) + 1, len(weights)))
            np.cumsum(drawn[ones], axis=0, out=counts[1:])
            inversions = counts[up_to]
            inversions -= counts[before]
            discordant += np.einsum("ij,ij->j", drawn[zeros], inversions)
            drawn = drawn[sorted_rows]
        tied_y = _tied(drawn, self._y_starts)
        # Ordered pairs, including each row with itself: add pairs tied in both columns back once.
        difference = total - tied_x - tied_y + tied_both - 4 * discordant
        untied = (total - tied_x) * (total - tied_y)
        return ratio(difference, np.sqrt(untied)).clip(-1, 1)


def _starts(ordered: Ints) -> Ints:
    """Return the start positions of runs of equal numbers, which count from 0."""
    return np.flatnonzero(np.diff(ordered, prepend=-1))


def _tied(drawn: Floats, starts: Ints) -> Floats:
    """Sum the squared counts of runs: the number of tied ordered pairs, with self-pairs."""
    squares: Floats = np.square(np.add.reduceat(drawn, starts, axis=0)).sum(axis=0)
    return squares


# With fewer rows for each possible pair, counting the pairs first saves no time.
_ROWS_A_PAIR = 4
_TABLE_CELLS = 1 << 22


class FewValues:
    """Counts the pairs of values in resamples of two columns with few values, such as ratings.

    Pairs with their counts replace the rows: ``ResampledSpearman`` and ``ResampledTau`` take ``x``,
    ``y`` and ``clusters`` as columns, and ``parts`` as weights. The results are equal, because they
    are sums of integers.

    Args:
        x, y: the distinct values of either column.
        pair: the number of each row's pair: the number of its x times the count of distinct y, plus
            the number of its y.
        clusters: the cluster of each row.
    """

    def __init__(self, x: Floats, y: Floats, pair: Ints, clusters: Ints) -> None:
        pairs, pair = np.unique(pair, return_inverse=True)
        self.x = x[pairs // len(y)]
        self.y = y[pairs % len(y)]
        self.clusters: Ints = np.arange(len(pairs))
        table = count_table(clusters, pair, (code_count(clusters), len(pairs)))
        # Products of four-byte numbers take half the time, and integers are exact up to 2^24. With
        # up to a million rows, no resample draws one cluster often enough to exceed this.
        self._table = table.astype(np.float32 if len(pair) < 1 << 20 else np.float64)

    @classmethod
    def of(cls, x: Floats, y: Floats, clusters: Ints) -> FewValues | None:
        """Return the pairs of two columns; ``None`` if there are not much fewer pairs than rows."""
        (xs, x_numbers), (ys, y_numbers) = (
            np.unique(column, return_inverse=True) for column in (x, y)
        )
        few = _ROWS_A_PAIR * len(xs) * len(ys) <= len(x)
        return cls(xs, ys, x_numbers * len(ys) + y_numbers, clusters) if few else None

    def parts(self, weights: ByteWeights) -> Iterator[NDArray[Any]]:
        """Yield how often each resample drew each pair, in parts of shape (some, pairs)."""
        for part in split_resamples(weights, max(len(self.clusters), weights.shape[1])):
            # A sparse table must be the left factor of a product, or it would become dense.
            yield np.ascontiguousarray((self._table @ part.T.astype(self._table.dtype)).T)


def count_table(clusters: Ints, codes: Ints, shape: tuple[int, int]) -> Any:
    """Count how often each cluster has each code: shape (codes, clusters), sparse if large."""
    if (cells := shape[0] * shape[1]) <= _TABLE_CELLS:
        return (
            np.bincount(codes * shape[0] + clusters, minlength=cells)
            .reshape(shape[::-1])
            .astype(float)
        )
    # A local import, because it takes longer to load than numpy.
    from scipy.sparse import csr_array

    return csr_array((np.ones(len(clusters)), (codes, clusters)), shape=shape[::-1])


_Coefficient = Callable[[Floats, Floats], float | Floats]

STATISTICS: dict[str, tuple[_Coefficient, type[_Resampled]]] = {
    "pearson": (pearson, ResampledPearson),
    "spearman": (spearman, ResampledSpearman),
    "kendall": (tau_b, ResampledTau),
}
"""The correlations by name: the function for two columns, and the class for many resamples."""


def correlation(name: str, x: Floats, y: Floats) -> float | None:
    """Return a correlation of two columns of finite numbers; ``None`` if it does not exist."""
    # Scale first: the spread of very large numbers may not be finite.
    if len(x) < 2 or np.ptp(scaled(x)) == 0 or np.ptp(scaled(y)) == 0:
        return None
    return float(STATISTICS[name][0](x, y))


def resampled_correlations(
    names: Sequence[str], x: Floats, y: Floats, clusters: Ints, resampling: Resampling
) -> dict[str, Floats]:
    """Compute correlations over rows in each resample of clusters, with the same resamples for all.

    Args:
        names: any of ``pearson``, ``spearman`` and ``kendall``.
        x, y: finite numbers, of shape (rows,).
        clusters: the number of each row's cluster (a group, or the row itself), from 0 without
            gaps.
        resampling: the settings of the resamples.

    Returns:
        arrays of shape (resamples,) by name; NaN if a resample has no correlation, and everywhere
        with fewer than two clusters.
    """
    count = code_count(clusters)
    # All three correlations exist for the same columns, so one check is enough.
    if count < 2 or not resampling.resamples or correlation("pearson", x, y) is None:
        return {name: np.full(resampling.resamples, np.nan) for name in names}
    of_ranks = [name for name in names if name != "pearson"]
    few = FewValues.of(x, y, clusters) if of_ranks else None
    of_rows = {
        name: STATISTICS[name][1](x, y, clusters) for name in names if not few or name == "pearson"
    }
    of_pairs = (
        {name: STATISTICS[name][1](few.x, few.y, few.clusters) for name in of_ranks} if few else {}
    )
    resampled: dict[str, list[Floats]] = {name: [] for name in names}
    for weights in resampling.blocks(count):
        for name, coefficient in of_rows.items():
            resampled[name].append(coefficient(weights))
        # If there are few pairs of values, correlations of ranks come from their counts.
        for counts in few.parts(weights) if few else ():
            for name, coefficient in of_pairs.items():
                resampled[name].append(coefficient(counts))
    return {name: np.concatenate(parts) for name, parts in resampled.items()}


def correlations_within(name: str, x: Floats, y: Floats, groups: Ints) -> Floats:
    """Compute the correlation within each group, of shape (groups,); NaN if it does not exist.

    Small groups of one size are computed together as lines of a table, because thousands of numpy
    calls would take most of the time.
    """
    # Stable, so that the rows of a group stay in order. Without rows, split would give an empty
    # group.
    order = np.argsort(groups, kind="stable")
    rows = np.split(order, np.cumsum(np.bincount(groups))[:-1]) if len(groups) else []
    by_group = np.full(len(rows), np.nan)
    sizes = np.array([len(of_group) for of_group in rows], dtype=np.intp)
    for size in np.unique(sizes):
        same_size = np.flatnonzero(sizes == size)
        if size > _SMALL_GROUP:
            # The table has all pairs of a group's rows, which takes longer than sorting for a large
            # group.
            one_by_one = [correlation(name, x[rows[group]], y[rows[group]]) for group in same_size]
            by_group[same_size] = np.array(one_by_one, dtype=float)  # None becomes NaN
            continue
        at_once = max(1, AT_ONCE // int(size * size))
        for start in range(0, len(same_size), at_once):
            some = same_size[start : start + at_once]
            table = np.stack([rows[group] for group in some])
            by_group[some] = _correlate_lines(name, x[table], y[table])
    return by_group


def constant_within(x: Floats, groups: Ints) -> NDArray[np.bool_]:
    """Return for each group whether all its values are equal.

    >>> constant_within(np.array([3.0, 3.0, 1.0, 2.0]), np.array([0, 0, 1, 1])).tolist()
    [True, False]
    """
    count = code_count(groups)
    least = np.full(count, np.inf)
    greatest = np.full(count, -np.inf)
    np.minimum.at(least, groups, x)
    np.maximum.at(greatest, groups, x)
    constant: NDArray[np.bool_] = least == greatest
    return constant


def _correlate_lines(name: str, x: Floats, y: Floats) -> Floats:
    """Compute the correlation of each line of two tables of shape (groups, rows).

    The signs of all differences, of shape (groups, rows, rows), contain the ranks: their sums are
    twice the centred mean ranks, and the sum of their products over two columns is twice C - D.
    """
    if name == "pearson":
        return pearson(x, y)
    signs = [np.sign(column[:, :, None] - column[:, None, :]) for column in (scaled(x), scaled(y))]
    if name == "spearman":
        return pearson(signs[0].sum(axis=2), signs[1].sum(axis=2))
    # The squares of the signs add up to twice the number of pairs that are not tied.
    pairs = signs, (signs[0], signs[0]), (signs[1], signs[1])
    products, x_untied, y_untied = (np.einsum("gij,gij->g", a, b) for a, b in pairs)
    return ratio(products, np.sqrt(x_untied * y_untied))
