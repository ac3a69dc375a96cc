"""Spearman's rho: Pearson's r of the ranks, ties ranked by their mean; of a table and of many resamples of it."""

from __future__ import annotations

import numpy as np

from .columns import Floats, Units
from .pearson import pearson
from .resampling import Bytes, parts

_CELLS = 1 << 18


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
        self._x, self._y = _Side(x, units), _Side(y, units)
        self._values_of_y = self._y.values[self._x.order]

    def __call__(self, weights: Bytes) -> Floats:
        """The resamples' rho, of weights of shape (resamples, units); NaN where one side is constant."""
        return np.concatenate([self._some(part) for part in parts(weights, len(self._x.order), _CELLS)])

    def _some(self, weights: Bytes) -> Floats:
        by_x, by_y = self._x.weights(weights), self._y.weights(weights)
        x_ranks, x_spread = self._x.ranks(by_x)
        y_ranks, y_spread = self._y.ranks(by_y)
        by_x *= self._x.of_rows(x_ranks)
        products = np.einsum("ij,ij->i", by_x, np.take(y_ranks, self._values_of_y, axis=1))
        spread = x_spread * y_spread
        found: Floats = np.clip(products / np.sqrt(np.where(spread > 0, spread, np.nan)), -1, 1)
        return found


class _Side:
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

    def weights(self, weights: Bytes) -> Floats:
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
