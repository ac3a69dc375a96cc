"""Measure how well each cell of a sweep agrees with people, its gain over the first cell, and what some sweeps add.

``measure`` is the main function; then the means over aspects, the extra metrics, and what tables and charts share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import Any, Literal, NamedTuple

import numpy as np

from ..agreement import PreferenceAgreement, ScoreAgreement, agreement
from ..run.results import StoredResults
from ..statistics.alignment import AlignedRows, Floats, align_rows, fields_of
from ..statistics.chance_corrected import krippendorff_alpha
from ..statistics.correlation import (
    correlation,
    correlations_within,
    resampled_correlation,
    resampled_mean_within,
)
from ..statistics.paired_bootstrap import (
    PairedBootstrap,
    compare_correlations,
    compare_correlations_within,
    compare_on_votes,
)
from ..statistics.resampling import Resampling, Statistic, mean_or_none, without_nan
from ..statistics.tie_policy import TiePolicy
from .cells import CellResult

AVERAGE, PREFERENCE = "average", "preference"
OF_SCORES, OF_PREFERENCES = ("spearman", "kendall"), ("accuracy", "kappa")


class MetricKey(NamedTuple):
    """Names a figure: its aspect (``preference`` for comparisons, ``average`` over aspects) and its statistic."""

    subject: str
    statistic: str


@dataclass(frozen=True)
class Measured:
    """Says how well one cell agrees with people.

    Attributes:
        figures: agreement with people; correlations are means within groups where all rows have a group (``within``),
            else over rows.
        gains: the cell's agreement less the first cell's, over the rows that both have; empty for the first.
        rows: rows that counted, by subject.
        within: whether correlations are means within groups.
        units: groups or items that intervals draw from, by subject.
    """

    figures: Mapping[MetricKey, Statistic]
    gains: Mapping[MetricKey, Statistic] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)
    within: bool = False
    units: Mapping[str, int] = field(default_factory=dict)


def measure(cells: Sequence[CellResult], resampling: Resampling | None = None) -> tuple[Measured, ...]:
    """Measure each cell's agreement with people, and its gain over the first cell.

    Args:
        cells: of one sweep.
        resampling: how intervals are made; default 1000 resamples, 95 %, seed 0.
    """
    resampling = resampling or Resampling()
    tables = [rows_of(cell) for cell in cells]
    return tuple(
        _measure_cell(table, tables[0] if number else None, resampling, cells[number].evaluation.rule)
        for number, table in enumerate(tables)
    )


class Row(NamedTuple):
    """Holds one verdict, with the fields that statistics read."""

    key: tuple[str, int]
    group: str | None
    judged: Any
    human: Any
    fields: Mapping[str, Any]


Rows = Mapping[str, Sequence[Row]]
"""The rows of a cell by subject."""


def rows_of(cell: CellResult, category: str | None = None) -> dict[str, list[Row]]:
    """Return the verdicts of a cell by subject, those of one category of items where one is named."""
    by_subject: dict[str, list[Row]] = {}
    for head in heads(cell):
        if head["status"] == "ok" and category in (None, head["category"]):
            subject = PREFERENCE if head["aspect"] is None else head["aspect"]
            judged = head["winner"] if head["aspect"] is None else head["score"]
            row = Row((head["item"], head["repeat"]), head["group"], judged, head["human"], head)
            by_subject.setdefault(subject, []).append(row)
    return by_subject


def heads(cell: CellResult) -> Iterator[Mapping[str, Any]]:
    """Yield the fields of each result of a cell; of stored ones without the transcript, which is not parsed."""
    results = cell.evaluation.results
    return results.heads() if isinstance(results, StoredResults) else map(fields_of, results)


def agreement_of(
    rows: Iterable[Row], resampling: Resampling, rule: TiePolicy
) -> ScoreAgreement | PreferenceAgreement | None:
    """Measure the agreement of one subject's rows with people; ``None`` where there are no rows."""
    by_aspect = agreement([row.fields for row in rows], resampling, ties=rule.ties, votes=rule.votes)
    # The rows are of one subject, so there is one entry at most.
    return next(iter(by_aspect.values()), None)


def figures_of(result: ScoreAgreement | PreferenceAgreement, within: bool) -> dict[str, Statistic]:
    """Return the figures that papers print, by the statistic's name."""
    if isinstance(result, PreferenceAgreement):
        return {"accuracy": result.accuracy, "kappa": result.kappa}
    correlations = result.per_group if within else result.over_rows
    return {name: correlations[name] for name in OF_SCORES if name in correlations}


def _measure_cell(table: Rows, base: Rows | None, resampling: Resampling, rule: TiePolicy) -> Measured:
    within = all(row.group is not None for rows in table.values() for row in rows)
    figures: dict[MetricKey, Statistic] = {}
    gains: dict[MetricKey, Statistic] = {}
    counted: dict[str, int] = {}
    units: dict[str, int] = {}
    for subject, rows in table.items():
        result = agreement_of(rows, resampling, rule)
        if result is None or not result.n:
            continue
        counted[subject], units[subject] = result.n, result.units
        for name, value in figures_of(result, within).items():
            figures[MetricKey(subject, name)] = value
            if base is not None:
                gains[MetricKey(subject, name)] = _gain(
                    name, rows, base.get(subject, ()), within, resampling, rule
                )
    if len(counted) > 1:
        averages = _Averages(table, within, resampling)
        names = dict.fromkeys(key.statistic for key in figures)
        figures |= {MetricKey(AVERAGE, name): averages.figure(name, figures) for name in names}
        if base is not None:
            gains |= {MetricKey(AVERAGE, name): averages.gain(name, base) for name in names}
    return Measured(figures, gains, counted, within, units)


def _gain(
    name: str, rows: Sequence[Row], base: Sequence[Row], within: bool, resampling: Resampling, rule: TiePolicy
) -> Statistic:
    """Subtract the base's figure from the cell's, over the rows that both have."""
    base_rows = {row.key: row for row in base}
    # Paired by item and repeat: the cells may have come to different items so far.
    both = [(row, base_rows[row.key]) for row in rows if row.key in base_rows and row.human is not None]
    if not both:
        return Statistic(None)
    judged, base_judged = [row.judged for row, _ in both], [row.judged for _, row in both]
    human, groups = [row.human for row, _ in both], [row.group or row.key[0] for row, _ in both]
    comparison: PairedBootstrap
    if name in OF_PREFERENCES:
        votes = [rule.vote_counts(row.human, row.fields.get("annotations") or ()) for row, _ in both]
        by_name = compare_on_votes(judged, base_judged, votes, groups, ties=rule.ties, resampling=resampling)
        comparison = by_name[name]
    else:
        compare = compare_correlations_within if within else compare_correlations
        comparison = compare(name, judged, base_judged, human, groups, resampling)
    return comparison.difference


class _Averages:
    """Computes means over the aspects of a cell; intervals are from resamples that all aspects share."""

    def __init__(self, table: Rows, within: bool, resampling: Resampling) -> None:
        self._table = table
        self._within = within
        self._resampling = resampling

    def figure(self, name: str, figures: Mapping[MetricKey, Statistic]) -> Statistic:
        """Average a statistic; no value where an aspect has none, no interval where aspects have different groups."""
        values = [
            figures[MetricKey(subject, name)].value
            for subject in self._table
            if MetricKey(subject, name) in figures
        ]
        known = [value for value in values if value is not None]
        if len(known) < len(self._table):
            return Statistic(None)
        resampled = self._resampled(name, self._table)
        mean = float(np.mean(known))
        return Statistic(mean) if resampled is None else self._resampling.interval(mean, resampled)

    def gain(self, name: str, base: Rows) -> Statistic:
        """Subtract the base's mean from the cell's, over the rows that both have."""
        # Subjects in one order on both sides, and the same rows in each: then both share their resamples.
        own, others = _shared_rows(self._table, base), _shared_rows(base, self._table, order=self._table)
        mean, base_mean = self._mean(name, own), self._mean(name, others)
        if mean is None or base_mean is None:
            return Statistic(None)
        resampled, base_resampled = self._resampled(name, own), self._resampled(name, others)
        if resampled is None or base_resampled is None:
            return Statistic(mean - base_mean)
        return self._resampling.interval(mean - base_mean, resampled - base_resampled)

    def _mean(self, name: str, table: Rows) -> float | None:
        values = [self._value(name, _columns(rows)) for rows in table.values()]
        known = [value for value in values if value is not None]
        return float(np.mean(known)) if known and len(known) == len(values) else None

    def _value(self, name: str, rows: AlignedRows) -> float | None:
        if self._within:
            return mean_or_none(without_nan(correlations_within(name, *_pair(rows), rows.units)))
        return correlation(name, *_pair(rows))

    def _resampled(self, name: str, table: Rows) -> Floats | None:
        """Return the mean in each resample; ``None`` where aspects have different groups, so no common resamples."""
        columns = [_columns(rows) for rows in table.values()]
        # The same seed draws the same resamples of as many groups, so that aspects can be averaged one by one.
        if len({rows.groups for rows in columns}) != 1 or not all(map(len, columns)):
            return None
        resample = resampled_mean_within if self._within else resampled_correlation
        means: Floats = np.mean(
            [resample(name, *_pair(rows), rows.units, self._resampling) for rows in columns], axis=0
        )
        return means


def _shared_rows(table: Rows, other: Rows, order: Rows | None = None) -> dict[str, list[Row]]:
    """Return the rows of a table that another one has too, by subject in the order of ``order`` (default: its own)."""
    shared = {}
    for subject in order or table:
        keys = {row.key for row in other.get(subject, ())}
        shared[subject] = [row for row in table.get(subject, ()) if row.key in keys]
    return shared


def _pair(rows: AlignedRows) -> tuple[Floats, Floats]:
    return rows.columns["judge"], rows.columns["human"]


def _columns(rows: Sequence[Row]) -> AlignedRows:
    return align_rows(
        {"judge": [row.judged for row in rows], "human": [row.human for row in rows]},
        [row.group or row.key[0] for row in rows],
    )


Extra = Literal["alpha", "spread", "weight"]


@dataclass(frozen=True)
class ExtraMetric:
    """Computes a further figure of a cell, for the sweeps that ask for it.

    Attributes:
        name: its heading.
        about: what it is, in a sentence.
        compute: of a cell.
        digits: decimals.
    """

    name: str
    about: str
    compute: Callable[[CellResult], Statistic]
    digits: int = 3


def advocates_alpha(cell: CellResult) -> Statistic:
    """Compute Krippendorff's alpha (interval) of the totals that the defences of one answer got, each scored alone.

    1: all defences of an answer are worth the same; 0: no more alike than defences of different answers.
    Resampled are items.
    """
    units = [(item, totals) for item, side in _sides(cell) for totals in [side["totals"]]]
    return krippendorff_alpha(
        [totals for _, totals in units], groups=[item for item, _ in units], resampling=Resampling()
    ).alpha


def advocates_spread(cell: CellResult) -> Statistic:
    """Compute by how many points the best defence of an answer exceeds the worst one, on average."""
    return _mean([max(side["totals"]) - min(side["totals"]) for _, side in _sides(cell)])


def picked_weight(cell: CellResult) -> Statistic:
    """Compute the softmax weight of the defence that represents its answer, on average."""
    return _mean([max(side["weights"]) for _, side in _sides(cell)])


def _mean(values: list[float]) -> Statistic:
    return Statistic(fsum(values) / len(values) if values else None)


def _sides(cell: CellResult) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield for each verdict, round and side the item, and the totals and weights of the side's defences."""
    for result in cell.evaluation.results:
        for round in result.details.get("best", ()):
            for totals, weights in zip(round["totals"], round["weights"], strict=True):
                yield result.item, {"totals": totals, "weights": weights}


EXTRAS: Mapping[Extra, ExtraMetric] = {
    "alpha": ExtraMetric("alpha", "Krippendorff's alpha between the defences of an answer", advocates_alpha),
    "spread": ExtraMetric(
        "spread", "points between an answer's best and worst defence", advocates_spread, digits=1
    ),
    "weight": ExtraMetric(
        "weight of the best", "softmax weight of the defence that is picked", picked_weight
    ),
}


def categories_of(cells: Sequence[CellResult]) -> list[str]:
    """Return the items' categories, those that a cell is named after first."""
    labels = {label for cell in cells for label in cell.cell.labels.values()}
    categories = dict.fromkeys(head["category"] for cell in cells for head in heads(cell) if head["category"])
    # False sorts before True, and sorting is stable: the order within both parts stays.
    return sorted(categories, key=lambda category: category not in labels)


def agreement_on_category(cell: CellResult, category: str) -> ScoreAgreement | PreferenceAgreement | None:
    """Measure a cell's agreement with people on items of one category; ``None`` where it has none of these."""
    rows = [row for of_subject in rows_of(cell, category).values() for row in of_subject]
    return agreement_of(rows, Resampling(), cell.evaluation.rule)


def first_figure(result: ScoreAgreement | PreferenceAgreement) -> Statistic:
    """Return the first of the figures that papers print: rho over rows, or accuracy."""
    return next(iter(figures_of(result, within=False).values()))


def metric_keys(measured: Sequence[Measured]) -> list[MetricKey]:
    """Return the keys of all figures that any cell has, those of the average first."""
    keys = dict.fromkeys(key for cell in measured for key in cell.figures)
    return sorted(keys, key=lambda key: key.subject != AVERAGE)


def leading(keys: Iterable[MetricKey]) -> list[MetricKey]:
    """Return the keys of the averages over aspects; where there are none, those of every subject."""
    listed = list(keys)
    return [key for key in listed if key.subject == AVERAGE] or listed


def shown(axis: str, label: str) -> str:
    """Return a value's label where its axis is not named: a number or a flag is shown with its axis.

    >>> shown("n", "3"), shown("tie_breaker", "true"), shown("persona", "plain")
    ('n=3', 'tie_breaker=true', 'plain')
    """
    speaks_for_itself = not label.replace(".", "").isdigit() and label not in ("true", "false")
    return label if speaks_for_itself else f"{axis}={label}"
