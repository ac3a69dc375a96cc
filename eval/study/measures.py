"""A judge's agreement with people: each measure is resampled once, and all pairs share the resamples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import cast

import numpy as np

from ...state.tasks import TaskKind
from ..statistics.columns import Floats, Units, numbered
from ..statistics.correlation import correlation, correlations_within, resampled
from ..statistics.means import resampled_means, two_sided_p
from ..statistics.resampling import Resampling, Weights
from ..statistics.statistic import Statistic
from .rows import Judged, Row

OVER_ROWS = ("pearson", "spearman", "kendall")
WITHIN = {f"group_{name}": name for name in OVER_ROWS}
MEASURES: dict[TaskKind, tuple[str, ...]] = {
    "score": (*OVER_ROWS, *WITHIN),
    "compare": ("accuracy", "kappa"),
}
"""What is measured: correlations over all rows and within groups; of preferences accuracy and Cohen's kappa."""
MAIN: dict[TaskKind, str] = {"score": "spearman", "compare": "accuracy"}
"""The one measure where there is room for one."""

_WINNERS = {"1": 0, "2": 1, "tie": 2}


class Sample:
    """A judge's verdicts beside people's, on rows in a fixed order.

    Args:
        judged, human: of each row, scores or winners.
        units: of each row, what is drawn in a resample.
        groups: of each row; ``None`` for all where not every row has one.

    Attributes:
        value: of a measure's name, the measure; ``None`` where it does not exist. Each is computed once.
        drawn: of a measure's name, the measure in each resample; NaN where it does not exist.
        each: of the name of a measure within groups, the correlation within each; NaN where it does not exist.
    """

    def __init__(
        self,
        kind: TaskKind,
        judged: Sequence[Judged],
        human: Sequence[Judged],
        units: Units,
        groups: Units | None,
        resampling: Resampling,
    ) -> None:
        self.kind, self.resampling = kind, resampling
        self.judged, self.human = _column(kind, judged), _column(kind, human)
        self.units, self.groups = units, groups
        self.value = cache(self._value)
        self.drawn = cache(self._drawn)
        self.each = cache(self._each)

    def __len__(self) -> int:
        return len(self.judged)

    def statistic(self, measure: str) -> Statistic:
        """The measure with its interval."""
        return self.resampling.interval(self.value(measure), self.drawn(measure))

    def _value(self, measure: str) -> float | None:
        """The measure; ``None`` where it does not exist."""
        if measure in WITHIN:
            each = self.each(measure)
            known = each[~np.isnan(each)]
            return float(known.mean()) if len(known) else None
        if not len(self):
            return None
        if self.kind == "score":
            return correlation(measure, self.judged, self.human)
        if measure == "accuracy":
            return float((self.judged == self.human).mean())
        found = float(_kappas(self._tables().sum(axis=0, keepdims=True))[0])
        return None if np.isnan(found) else found

    def _drawn(self, measure: str) -> Floats:
        """The measure in each resample; NaN where it does not exist."""
        if not len(self):
            return np.full(self.resampling.resamples, np.nan)
        if measure in WITHIN:
            return _mean_of_groups(self.each(measure), self.resampling)
        if self.kind == "score":
            return resampled(measure, self.judged, self.human, self.units, self.resampling)
        if measure == "accuracy":
            return resampled_means((self.judged == self.human).astype(float), self.units, self.resampling)
        tables = self._tables()
        return self.resampling.figures(len(tables), lambda weights: _kappas(weights @ tables))

    def _each(self, measure: str) -> Floats:
        """The correlation within each group."""
        if self.groups is None or not len(self):
            return np.full(0, np.nan)
        return correlations_within(WITHIN[measure], self.judged, self.human, self.groups)

    def _tables(self) -> Floats:
        """How often each unit has each pair of verdicts: shape (units, 9)."""
        cells = np.zeros((int(self.units.max()) + 1, 9))
        np.add.at(cells, (self.units, (3 * self.judged + self.human).astype(np.intp)), 1)
        return cells


def difference(first: Sample, second: Sample, measure: str) -> tuple[Statistic, float | None]:
    """The first's measure less the second's on the same rows, with its interval and p-value from the same resamples.

    Within groups only those count in which both have a correlation. Two that group their rows differently have no
    resamples in common, so no interval, and no groups.
    """
    paired = np.array_equal(first.units, second.units) and (first.groups is None) == (second.groups is None)
    if measure in WITHIN:
        apart = first.each(measure) - second.each(measure) if paired else np.full(0, np.nan)
        known = apart[~np.isnan(apart)]
        value = float(known.mean()) if len(known) else None
        drawn = _mean_of_groups(known, first.resampling)
    else:
        one, other = first.value(measure), second.value(measure)
        value = None if one is None or other is None else one - other
        drawn = first.drawn(measure) - second.drawn(measure)
    found = first.resampling.interval(value, drawn) if paired else Statistic(value)
    return found, None if found.low is None else two_sided_p(drawn)


def sample(
    kind: TaskKind,
    rows: Sequence[Row],
    resampling: Resampling,
    judged: Sequence[Judged] | None = None,
) -> Sample:
    """Of rows that have a label; ``judged`` is what is said of each, where that is not its verdict."""
    units, groups = numbering(rows)
    said = [row.judged for row in rows] if judged is None else judged
    human = [cast("Judged", row.human) for row in rows]
    return Sample(kind, said, human, units, groups, resampling)


def numbering(rows: Sequence[Row]) -> tuple[Units, Units | None]:
    """Of each row the number of its unit, and of its group where every row has one."""
    units = numbered([row.unit for row in rows], rows=len(rows))
    grouped = bool(rows) and all(row.group is not None for row in rows)
    return units, units if grouped else None


def mean_statistic(values: Iterable[float], units: Units, resampling: Resampling) -> Statistic:
    """A mean over rows, with the interval of units drawn with replacement; ``None`` without rows."""
    column = np.fromiter(values, dtype=float)
    if not len(column):
        return Statistic(None)
    return resampling.interval(float(column.mean()), resampled_means(column, units, resampling))


def _mean_of_groups(each: Floats, resampling: Resampling) -> Floats:
    """The mean of the groups' figures in each resample of groups; those that have none do not count."""
    known = ~np.isnan(each)
    values, counts = np.where(known, each, 0.0), known.astype(float)

    def mean(weights: Weights) -> Floats:
        drawn = weights @ counts
        found: Floats = weights @ values / np.where(drawn > 0, drawn, np.nan)
        return found

    return resampling.figures(len(each), mean)


def _column(kind: TaskKind, values: Sequence[Judged]) -> Floats:
    if kind == "score":
        return np.array(values, dtype=float)
    return np.array([_WINNERS[cast("str", value)] for value in values], dtype=float)


def _kappas(tables: Floats) -> Floats:
    """Cohen's kappa of each table of shape (some, 9); NaN where chance agreement is certain, or nothing is there.

    Of counts, not of shares: these are whole numbers, in which chance agreement is told from certainty exactly.
    """
    counts = tables.reshape(-1, 3, 3)
    total = counts.sum(axis=(1, 2))
    agreed = np.trace(counts, axis1=1, axis2=2) / np.where(total > 0, total, np.nan)
    chance = (counts.sum(axis=1) * counts.sum(axis=2)).sum(axis=1)
    room = total**2 - chance
    found: Floats = (agreed * total**2 - chance) / np.where(room > 0, room, np.nan)
    return found
