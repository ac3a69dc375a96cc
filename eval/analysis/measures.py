"""Compute a judge's agreement with people: each measure is resampled once, and all pairs share the resamples."""

from __future__ import annotations

from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...state.tasks import TaskKind
from ..statistics.alignment import Floats, Units
from ..statistics.chance_corrected import accuracies, kappas
from ..statistics.correlation import correlation, correlations_within, resampled_correlation
from ..statistics.resampling import Resampling, Statistic, Weights, resampled_means, two_sided_p
from ..statistics.tie_policy import DEFAULT_TIE_POLICY, TiePolicy, Ties, confusion_tables, sum_by_unit
from .verdict_columns import Verdicts

OVER_ROWS = ("pearson", "spearman", "kendall")
WITHIN = {f"group_{name}": name for name in OVER_ROWS}

MEASURES: dict[TaskKind, tuple[str, ...]] = {
    "score": (*OVER_ROWS, *WITHIN),
    "compare": ("accuracy", "kappa"),
}
"""The measures by kind of task: correlations over rows and within groups; of preferences accuracy and Cohen's kappa."""

MAIN: dict[TaskKind, str] = {"score": "spearman", "compare": "accuracy"}
"""The measure that is shown where there is room for one."""
_OF_TABLES = {"accuracy": accuracies, "kappa": kappas}


class Sample:
    """Holds a judge's verdicts beside people's, on rows in a fixed order, and measures their agreement.

    Args:
        judged: of each row the score, or the code of the winner.
        human: of each row people's score, or how often they said 1, 2 and tie: shape (rows,) or (rows, 3).
        places: of each row, what is drawn in a resample, and its group; ``None`` for all where not every row has one.
        ties: of preferences, what a human tie is.

    Attributes:
        value: of a measure's name, the measure; ``None`` where it does not exist. Each is computed once.
        drawn: of a measure's name, the measure in each resample; NaN where it does not exist.
        each: of the name of a measure within groups, the correlation within each; NaN where it does not exist.
    """

    def __init__(
        self,
        kind: TaskKind,
        judged: Floats,
        human: Floats,
        places: tuple[Units, Units | None],
        resampling: Resampling,
        ties: Ties = "class",
    ) -> None:
        self.kind, self.resampling, self._ties = kind, resampling, ties
        self.judged, self.human = judged, human
        self.units, self.groups = places
        # A cache for each sample: one on the method would hold every sample ever made, and its resamples.
        self.value = cache(self._value)
        self.drawn = cache(self._drawn)
        self.each = cache(self._each)

    def __len__(self) -> int:
        return len(self.judged)

    def statistic(self, measure: str) -> Statistic:
        """Return the measure with its interval."""
        return self.resampling.interval(self.value(measure), self.drawn(measure))

    def _value(self, measure: str) -> float | None:
        """Compute the measure; ``None`` where it does not exist."""
        if measure in WITHIN:
            each = self.each(measure)
            known = each[~np.isnan(each)]
            return float(known.mean()) if len(known) else None
        if not len(self):
            return None
        if self.kind == "score":
            return correlation(measure, self.judged, self.human)
        found = float(_OF_TABLES[measure](self._tables.sum(axis=0, keepdims=True))[0])
        return None if np.isnan(found) else found

    def _drawn(self, measure: str) -> Floats:
        """Compute the measure in each resample; NaN where it does not exist."""
        if not len(self):
            return np.full(self.resampling.resamples, np.nan)
        if measure in WITHIN:
            return _mean_of_groups(self.each(measure), self.resampling)
        if self.kind == "score":
            return resampled_correlation(measure, self.judged, self.human, self.units, self.resampling)
        # Flat, so that one matrix product adds up the tables of the units that each resample drew.
        flat, of = self._tables.reshape(-1, 9), _OF_TABLES[measure]
        return self.resampling.figures(len(flat), lambda weights: of((weights @ flat).reshape(-1, 3, 3)))

    def _each(self, measure: str) -> Floats:
        """Compute the correlation within each group."""
        if self.groups is None or not len(self):
            return np.full(0, np.nan)
        return correlations_within(WITHIN[measure], self.judged, self.human, self.groups)

    @cached_property
    def _tables(self) -> Floats:
        """Confusion tables: how often in each unit the judge said one thing and people another, (units, 3, 3)."""
        return sum_by_unit(confusion_tables(self.judged, self.human, self._ties), self.units)


def difference(first: Sample, second: Sample, measure: str) -> tuple[Statistic, float | None]:
    """Subtract the second's measure from the first's on the same rows; interval and p-value are of the same resamples.

    Within groups only those count in which both have a correlation. Two that group their rows differently have no
    resamples in common, so no interval, and no groups.
    """
    paired = np.array_equal(first.units, second.units) and (first.groups is None) == (second.groups is None)
    if measure in WITHIN:
        apart = first.each(measure) - second.each(measure) if paired else np.full(0, np.nan)
        known = apart[~np.isnan(apart)]
        value = float(known.mean()) if len(known) else None
        drawn, units = _mean_of_groups(known, first.resampling), len(known)
    else:
        one, other = first.value(measure), second.value(measure)
        value = None if one is None or other is None else one - other
        drawn, units = first.drawn(measure) - second.drawn(measure), len(np.unique(first.units))
    found = first.resampling.interval(value, drawn) if paired else Statistic(value)
    return found, None if found.low is None else two_sided_p(drawn, units)


def sample(
    kind: TaskKind,
    rows: Verdicts,
    resampling: Resampling,
    judged: Floats | None = None,
    rule: TiePolicy = DEFAULT_TIE_POLICY,
) -> Sample:
    """Make the sample of rows that have a label; ``judged`` is what is said of each, where that is not its verdict.

    Of preferences, rows count on which people have a vote that counts.
    """
    said = rows.judged if judged is None else judged
    if kind == "score":
        return Sample(kind, said, rows.human, numbering(rows), resampling)
    votes = rows.votes(rule).astype(float)
    there = np.flatnonzero(votes.sum(axis=1))
    return Sample(kind, said[there], votes[there], numbering(rows.take(there)), resampling, rule.ties)


def right(rows: Verdicts, votes: Floats, rule: TiePolicy) -> Floats:
    """Return the share of people's votes that each winner agrees with: 1 or 0 of a single vote; NaN without any."""
    return accuracies(confusion_tables(rows.judged, votes, rule.ties))


def numbering(rows: Verdicts) -> tuple[Units, Units | None]:
    """Return the number of each row's unit, and that of its group where every row has one."""
    # A unit is the group where there is one, so the same numbers serve for both.
    units = rows.units
    return units, units if len(rows) and bool((rows.group >= 0).all()) else None


def mean_statistic(values: NDArray[Any], units: Units, resampling: Resampling) -> Statistic:
    """Return a mean over rows, with the interval of units drawn with replacement; ``None`` without rows."""
    if not len(values):
        return Statistic(None)
    column = values.astype(float)
    return resampling.interval(float(column.mean()), resampled_means(column, units, resampling))


def _mean_of_groups(each: Floats, resampling: Resampling) -> Floats:
    """Compute the mean of the groups' figures in each resample of groups; those that have none do not count."""
    known = ~np.isnan(each)
    values, counts = np.where(known, each, 0.0), known.astype(float)

    def mean(weights: Weights) -> Floats:
        drawn = weights @ counts
        found: Floats = weights @ values / np.where(drawn > 0, drawn, np.nan)
        return found

    return resampling.figures(len(each), mean)
