"""Pearson's r, of a table as it is and of many resamples of it."""

from __future__ import annotations

import numpy as np

from .columns import Floats, Units
from .resampling import Bytes, parts

_DEGENERATE = 1e-3
_CELLS = 1 << 20


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

    def __call__(self, weights: Bytes) -> Floats:
        """The resamples' r, of weights of shape (resamples, units); NaN where one side is constant."""
        return np.concatenate([self._some(part) for part in parts(weights, len(self._sums), _CELLS)])

    def _some(self, weights: Bytes) -> Floats:
        n, a, b, aa, bb, ab = (weights.astype(float) @ self._sums).T
        spread_a, spread_b = aa - a * a / n, bb - b * b / n
        enough = (spread_a > _DEGENERATE * aa) & (spread_b > _DEGENERATE * bb)
        spread = np.where(enough, spread_a * spread_b, np.nan)
        found: Floats = np.clip((ab - a * b / n) / np.sqrt(spread), -1, 1)
        for at in np.flatnonzero(~enough):
            drawn = np.repeat(np.arange(len(self._x)), weights[at][self._units])
            found[at] = pearson(self._x[drawn], self._y[drawn])
        return found
