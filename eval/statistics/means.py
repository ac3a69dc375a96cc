"""Means, and other ratios of sums, in every resample: the groundwork of intervals for anything that is averaged."""

from __future__ import annotations

import numpy as np

from .columns import Floats, Units
from .resampling import Resampling


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


def mean_of(values: Floats) -> float | None:
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
