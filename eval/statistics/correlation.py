"""Correlate two columns: over all rows, in resamples of these, and within groups. Intervals are made in ``sample``.

Pearson's r, Spearman's rho (Pearson's r of mean ranks) and Kendall's tau-b. A correlation does not exist where either
side is constant or where there are fewer than two rows: it is ``None`` then, or NaN in arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .alignment import Floats, Units, ratio, unit_count
from .coefficients import (
    FewValues,
    ResampledPearson,
    ResampledSpearman,
    ResampledTau,
    pearson,
    scaled,
    spearman,
    tau_b,
)
from .resampling import Resampling

_SMALL_GROUP = 64
# Signs of differences held at once, when groups of one size are computed together.
_CELLS = 1 << 20


_Coefficient = Callable[[Floats, Floats], float | Floats]
_Resampled = Callable[[Floats, Floats, Units], Callable[[Any], Floats]]

STATISTICS: dict[str, tuple[_Coefficient, _Resampled]] = {
    "pearson": (pearson, ResampledPearson),
    "spearman": (spearman, ResampledSpearman),
    "kendall": (tau_b, ResampledTau),
}
"""The correlations by name: of two columns, and of many resamples of them."""


def correlation(name: str, x: Floats, y: Floats) -> float | None:
    """Return a correlation of two columns of finite numbers; ``None`` where it does not exist."""
    # Scaled first: the spread of very large numbers is no finite number.
    if len(x) < 2 or np.ptp(scaled(x)) == 0 or np.ptp(scaled(y)) == 0:
        return None
    return float(STATISTICS[name][0](x, y))


def resampled_correlations(
    names: Sequence[str], x: Floats, y: Floats, units: Units, resampling: Resampling
) -> dict[str, Floats]:
    """Compute correlations over rows in each resample of units; the resamples are drawn once for all of them.

    Args:
        names: of ``pearson``, ``spearman`` and ``kendall``.
        x, y: finite numbers, of shape (rows,).
        units: the number of each row's unit (a group, or the row itself), from 0 on without gaps.
        resampling: which resamples.

    Returns:
        by name, of shape (resamples,); NaN where a resample has no correlation, and everywhere with fewer than two
        units.
    """
    count = unit_count(units)
    # All three correlations exist for the same columns: asking for one tells of all of them.
    if count < 2 or not resampling.resamples or correlation("pearson", x, y) is None:
        return {name: np.full(resampling.resamples, np.nan) for name in names}
    of_ranks = [name for name in names if name != "pearson"]
    few = FewValues.of(x, y, units) if of_ranks else None
    of_rows = {name: STATISTICS[name][1](x, y, units) for name in names if few is None or name == "pearson"}
    of_pairs = {name: STATISTICS[name][1](few.x, few.y, few.units) for name in of_ranks} if few else {}
    resampled: dict[str, list[Floats]] = {name: [] for name in names}
    for weights in resampling.blocks(count):
        for name, coefficient in of_rows.items():
            resampled[name].append(coefficient(weights))
        # Correlations of ranks come from the counts of pairs of values, where there are few of these.
        for counts in few.parts(weights) if few else ():
            for name, coefficient in of_pairs.items():
                resampled[name].append(coefficient(counts))
    return {name: np.concatenate(parts) for name, parts in resampled.items()}


def correlations_within(name: str, x: Floats, y: Floats, groups: Units) -> Floats:
    """Compute the correlation within each group, of shape (groups,); NaN for a group that has none.

    Small groups of one size are computed together, as lines of a table: a call of numpy for each of thousands of
    groups would take most of the time.
    """
    # Stable, so that the rows of a group stay in their own order; without rows, split would give an empty group.
    order = np.argsort(groups, kind="stable")
    rows = np.split(order, np.cumsum(np.bincount(groups))[:-1]) if len(groups) else []
    by_group = np.full(len(rows), np.nan)
    sizes = np.array([len(of_group) for of_group in rows], dtype=np.intp)
    for size in np.unique(sizes):
        same_size = np.flatnonzero(sizes == size)
        if size > _SMALL_GROUP:
            # All pairs of a group's rows, as a table has them, would outgrow the sorting that one group takes.
            one_by_one = [correlation(name, x[rows[group]], y[rows[group]]) for group in same_size]
            by_group[same_size] = np.array(one_by_one, dtype=float)  # None becomes NaN
            continue
        at_once = max(1, _CELLS // int(size * size))
        for start in range(0, len(same_size), at_once):
            some = same_size[start : start + at_once]
            table = np.stack([rows[group] for group in some])
            by_group[some] = _correlate_lines(name, x[table], y[table])
    return by_group


def _correlate_lines(name: str, x: Floats, y: Floats) -> Floats:
    """Compute the correlation of each line of two tables of shape (groups, rows).

    The signs of all differences, of shape (groups, rows, rows), hold what ranks tell: their sums are twice the
    centred mean ranks, and the sum of their products over two columns is twice C - D.
    """
    if name == "pearson":
        return pearson(x, y)
    signs = [np.sign(column[:, :, None] - column[:, None, :]) for column in (scaled(x), scaled(y))]
    if name == "spearman":
        return pearson(signs[0].sum(axis=2), signs[1].sum(axis=2))
    # The squares of the signs add up to twice the pairs that are not tied.
    products, x_untied, y_untied = (
        np.einsum("gij,gij->g", a, b) for a, b in (signs, (signs[0], signs[0]), (signs[1], signs[1]))
    )
    return ratio(products, np.sqrt(x_untied * y_untied))
