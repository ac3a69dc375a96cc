"""Correlations of two columns: over all rows, and the mean of those within groups; with intervals.

Pearson's r, Spearman's rho (Pearson's r of mean ranks) and Kendall's tau-b. A correlation does not exist where either
side is constant or where there are fewer than two rows: it is ``None`` then, or NaN in arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from .alignment import Floats, Units, number_groups, number_units, paired_columns, rows_by_unit
from .coefficients import ResampledPearson, ResampledSpearman, ResampledTau, pearson, scaled, spearman, tau_b
from .resampling import ByteWeights, Resampling, Statistic, Weights

_SMALL_GROUP = 64
_CELLS = 1 << 20


@dataclass(frozen=True)
class GroupedCorrelation(Statistic):
    """The mean over groups of the correlation within each; the interval is of groups drawn with replacement.

    Attributes:
        value: the mean, or ``None`` where no group has a correlation.
        groups: groups that counted.
        skipped: groups left out, since either side is constant in them or they have a single row.
    """

    groups: int = 0
    skipped: int = 0


STATISTICS: dict[str, Callable[[Floats, Floats], float | Floats]] = {
    "pearson": pearson,
    "spearman": spearman,
    "kendall": tau_b,
}
_RESAMPLED: dict[str, Callable[[Floats, Floats, Units], Callable[[ByteWeights], Floats]]] = {
    "pearson": ResampledPearson,
    "spearman": ResampledSpearman,
    "kendall": ResampledTau,
}


def correlate(
    name: str,
    x: Iterable[float],
    y: Iterable[float],
    groups: Sequence[Hashable | None] | None = None,
    resampling: Resampling | None = None,
) -> Statistic:
    """One correlation of two columns, with its interval.

    Args:
        name: ``pearson``, ``spearman`` or ``kendall``.
        x, y: finite numbers, equally many.
        groups: which rows belong together and are drawn together; without, each row stands alone.
        resampling: how the interval is made.

    Raises:
        ValueError: columns of different length, or what is not a finite number.

    >>> correlate("kendall", [1, 2, 3], [1, 3, 2]).value
    0.3333333333333333
    >>> correlate("pearson", [1, 1, 1], [1, 3, 2])
    Statistic(value=None, low=None, high=None)
    """
    first, second = paired_columns(x, y)
    units = np.arange(len(first)) if groups is None else number_units(groups, rows=len(first))
    resampling = resampling or Resampling()
    return resampling.interval(
        correlation(name, first, second), resampled_correlation(name, first, second, units, resampling)
    )


def correlate_within(
    name: str,
    x: Iterable[float],
    y: Iterable[float],
    groups: Sequence[Hashable],
    resampling: Resampling | None = None,
) -> GroupedCorrelation:
    """The mean over groups of the correlation within each (DEBATE, appendix E.5), with its interval.

    >>> correlate_within("spearman", [1, 2, 5, 5], [3, 4, 1, 2], ["a", "a", "b", "b"])
    GroupedCorrelation(value=1.0, low=None, high=None, groups=1, skipped=1)
    """
    first, second = paired_columns(x, y)
    return mean_within(
        name, first, second, number_groups(groups, rows=len(first)), resampling or Resampling()
    )


def correlation(name: str, x: Floats, y: Floats) -> float | None:
    """A correlation of two columns of finite numbers; ``None`` where there is none."""
    if len(x) < 2 or np.ptp(scaled(x)) == 0 or np.ptp(scaled(y)) == 0:
        return None
    return float(STATISTICS[name](x, y))


def resampled_correlation(name: str, x: Floats, y: Floats, units: Units, resampling: Resampling) -> Floats:
    """The correlation over rows in each resample of units.

    Args:
        name: ``pearson``, ``spearman`` or ``kendall``.
        x, y: finite numbers, of shape (rows,).
        units: the number of each row's unit (a group, or the row itself), from 0 on without gaps.
        resampling: which resamples.

    Returns:
        shape (resamples,); NaN where a resample has no correlation, and everywhere with fewer than two units.
    """
    return resampled_correlations((name,), x, y, units, resampling)[name]


def resampled_correlations(
    names: Sequence[str], x: Floats, y: Floats, units: Units, resampling: Resampling
) -> dict[str, Floats]:
    """Several correlations in the same resamples, which are drawn once; see ``resampled_correlation``."""
    count = int(units.max(initial=-1)) + 1
    if count < 2 or not resampling.resamples or correlation("pearson", x, y) is None:
        return {name: np.full(resampling.resamples, np.nan) for name in names}
    figures = {name: _RESAMPLED[name](x, y, units) for name in names}
    blocks = [{name: figure(block) for name, figure in figures.items()} for block in resampling.blocks(count)]
    return {name: np.concatenate([block[name] for block in blocks]) for name in names}


def resampled_mean_within(name: str, x: Floats, y: Floats, groups: Units, resampling: Resampling) -> Floats:
    """The mean of the groups' correlations in each resample of groups; groups that have none do not count.

    Args and result are those of ``resampled_correlation``, the units being ``groups``.
    """
    return _resampled_mean(correlations_within(name, x, y, groups), resampling)


def mean_within(name: str, x: Floats, y: Floats, groups: Units, resampling: Resampling) -> GroupedCorrelation:
    """The mean over groups of the correlation within each, of checked columns and numbered groups."""
    each = correlations_within(name, x, y, groups)
    known = each[~np.isnan(each)]
    mean = float(known.mean()) if len(known) else None
    found = resampling.interval(mean, _resampled_mean(each, resampling))
    return GroupedCorrelation(found.value, found.low, found.high, len(known), len(each) - len(known))


def correlations_within(name: str, x: Floats, y: Floats, groups: Units) -> Floats:
    """The correlation within each group, of shape (groups,); NaN for a group that has none."""
    rows = list(rows_by_unit(groups)) if len(groups) else []
    found = np.full(len(rows), np.nan)
    sizes = np.array([len(each) for each in rows], dtype=np.intp)
    for size in np.unique(sizes):
        alike = np.flatnonzero(sizes == size)
        if size > _SMALL_GROUP:
            found[alike] = [_or_nan(correlation(name, x[rows[at]], y[rows[at]])) for at in alike]
            continue
        at_once = max(1, _CELLS // int(size * size))
        for start in range(0, len(alike), at_once):
            some = alike[start : start + at_once]
            table = np.stack([rows[at] for at in some])
            found[some] = _of_each(name, x[table], y[table])
    return found


def _or_nan(value: float | None) -> float:
    return np.nan if value is None else value


def _of_each(name: str, x: Floats, y: Floats) -> Floats:
    """The correlation of each line of two tables of shape (groups, rows).

    The signs of all differences, of shape (groups, rows, rows), hold what ranks tell: their sums are twice the
    centred mean ranks, and the sum of their products over two columns is twice C - D.
    """
    if name == "pearson":
        return pearson(x, y)
    signs = [np.sign(column[:, :, None] - column[:, None, :]) for column in (scaled(x), scaled(y))]
    if name == "spearman":
        return pearson(signs[0].sum(axis=2), signs[1].sum(axis=2))
    products, first, second = (
        np.einsum("gij,gij->g", a, b) for a, b in (signs, (signs[0], signs[0]), (signs[1], signs[1]))
    )
    spread = np.sqrt(first * second)
    found: Floats = products / np.where(spread > 0, spread, np.nan)
    return found


def _resampled_mean(each: Floats, resampling: Resampling) -> Floats:
    """The mean of the figures that groups have, in each resample of groups; nothing where only one group has one."""
    known = ~np.isnan(each)
    if known.sum() < 2:
        return np.full(resampling.resamples, np.nan)
    values, counts = np.where(known, each, 0), known.astype(float)

    def mean(weights: Weights) -> Floats:
        drawn = weights @ counts
        found: Floats = weights @ values / np.where(drawn > 0, drawn, np.nan)
        return found

    return resampling.figures(len(each), mean)
