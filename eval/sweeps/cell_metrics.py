"""How well each cell agrees with people, and its further figures."""

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
from ..statistics.resampling import Resampling, Statistic, mean_or_none
from ..statistics.tie_policy import TiePolicy
from .cells import CellResult

AVERAGE, PREFERENCE = "average", "preference"
OF_SCORES, OF_PREFERENCES = ("spearman", "kendall"), ("accuracy", "kappa")


class MetricKey(NamedTuple):
    """Which figure: of which aspect (``preference`` for comparisons, ``average`` over aspects), which statistic."""

    subject: str
    statistic: str


@dataclass(frozen=True)
class Measured:
    """One cell beside people.

    Attributes:
        figures: agreement with people; correlations are means within groups where all rows have a group (``within``),
            else over rows.
        gains: the cell's agreement less the first cell's, over the rows that both have; empty for the first.
        rows: rows that counted, by subject.
        within: whether correlations are means within groups.
    """

    figures: Mapping[MetricKey, Statistic]
    gains: Mapping[MetricKey, Statistic] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)
    within: bool = False


def measure(cells: Sequence[CellResult], resampling: Resampling | None = None) -> tuple[Measured, ...]:
    """Each cell's agreement with people, and its gain over the first.

    Args:
        cells: of one sweep.
        resampling: how intervals are made; default 1000 resamples, 95 %, seed 0.
    """
    resampling = resampling or Resampling()
    tables = [rows_of(one) for one in cells]
    return tuple(
        _measured(table, tables[0] if number else None, resampling, cells[number].evaluation.rule)
        for number, table in enumerate(tables)
    )


class Row(NamedTuple):
    """What a statistic looks at."""

    key: tuple[str, int]
    group: str | None
    judged: Any
    human: Any
    fields: Mapping[str, Any]


Rows = Mapping[str, Sequence[Row]]
"""By subject."""


def rows_of(one: CellResult, category: str | None = None) -> dict[str, list[Row]]:
    """The verdicts of a cell by subject, those of one category of items where one is named."""
    found: dict[str, list[Row]] = {}
    for head in heads(one):
        if head["status"] == "ok" and category in (None, head["category"]):
            subject = PREFERENCE if head["aspect"] is None else head["aspect"]
            judged = head["winner"] if head["aspect"] is None else head["score"]
            row = Row((head["item"], head["repeat"]), head["group"], judged, head["human"], head)
            found.setdefault(subject, []).append(row)
    return found


def heads(one: CellResult) -> Iterator[Mapping[str, Any]]:
    """The fields of each result of a cell."""
    results = one.evaluation.results
    return results.heads() if isinstance(results, StoredResults) else map(fields_of, results)


def agreement_of(
    rows: Iterable[Row], resampling: Resampling, rule: TiePolicy
) -> ScoreAgreement | PreferenceAgreement | None:
    """Agreement of the rows of one subject; none where there are no rows."""
    found = agreement([row.fields for row in rows], resampling, ties=rule.ties, votes=rule.votes)
    return next(iter(found.values()), None)


def figures_of(found: ScoreAgreement | PreferenceAgreement, within: bool) -> dict[str, Statistic]:
    """The figures that papers print, by the statistic's name."""
    if isinstance(found, PreferenceAgreement):
        return {"accuracy": found.accuracy, "kappa": found.kappa}
    chosen = found.per_group if within else found.over_rows
    return {name: chosen[name] for name in OF_SCORES if name in chosen}


def _measured(table: Rows, base: Rows | None, resampling: Resampling, rule: TiePolicy) -> Measured:
    within = all(row.group is not None for rows in table.values() for row in rows)
    figures: dict[MetricKey, Statistic] = {}
    gains: dict[MetricKey, Statistic] = {}
    counted: dict[str, int] = {}
    for subject, rows in table.items():
        found = agreement_of(rows, resampling, rule)
        if found is None or not found.n:
            continue
        counted[subject] = found.n
        for name, value in figures_of(found, within).items():
            figures[MetricKey(subject, name)] = value
            if base is not None:
                gains[MetricKey(subject, name)] = _gain(
                    name, rows, base.get(subject, ()), within, resampling, rule
                )
    if len(counted) > 1:
        averages = _Averages(table, within, resampling)
        names = dict.fromkeys(place.statistic for place in figures)
        figures |= {MetricKey(AVERAGE, name): averages.figure(name, figures) for name in names}
        if base is not None:
            gains |= {MetricKey(AVERAGE, name): averages.gain(name, base) for name in names}
    return Measured(figures, gains, counted, within)


def _gain(
    name: str,
    rows: Sequence[Row],
    base: Sequence[Row],
    within: bool,
    resampling: Resampling,
    rule: TiePolicy,
) -> Statistic:
    """Over the rows that both have."""
    before = {row.key: row for row in base}
    both = [(row, before[row.key]) for row in rows if row.key in before and row.human is not None]
    if not both:
        return Statistic(None)
    judged, earlier = [row.judged for row, _ in both], [row.judged for _, row in both]
    human, groups = [row.human for row, _ in both], [row.group or row.key[0] for row, _ in both]
    found: PairedBootstrap
    if name in OF_PREFERENCES:
        votes = [rule.vote_counts(row.human, row.fields.get("annotations") or ()) for row, _ in both]
        of_both = compare_on_votes(judged, earlier, votes, groups, ties=rule.ties, resampling=resampling)
        found = of_both[name]
    else:
        compare = compare_correlations_within if within else compare_correlations
        found = compare(name, judged, earlier, human, groups, resampling)
    return found.difference


class _Averages:
    """Means over the aspects of a cell; intervals from resamples that all aspects share."""

    def __init__(self, table: Rows, within: bool, resampling: Resampling) -> None:
        self._table = table
        self._within = within
        self._resampling = resampling

    def figure(self, name: str, figures: Mapping[MetricKey, Statistic]) -> Statistic:
        """The mean of a statistic; none where an aspect has none, no interval where aspects have other groups."""
        values = [
            figures[MetricKey(subject, name)].value
            for subject in self._table
            if MetricKey(subject, name) in figures
        ]
        known = [value for value in values if value is not None]
        if len(known) < len(self._table):
            return Statistic(None)
        drawn = self._drawn(name, self._table)
        mean = float(np.mean(known))
        return Statistic(mean) if drawn is None else self._resampling.interval(mean, drawn)

    def gain(self, name: str, base: Rows) -> Statistic:
        """The mean less that of the base, over the rows that both have."""
        keys = {subject: {row.key for row in base.get(subject, ())} for subject in self._table}
        own = {
            subject: [row for row in rows if row.key in keys[subject]]
            for subject, rows in self._table.items()
        }
        there = {subject: {row.key for row in rows} for subject, rows in own.items()}
        others = {
            subject: [row for row in base.get(subject, ()) if row.key in there[subject]] for subject in own
        }
        means = [self._mean(name, rows) for rows in (own, others)]
        drawn = [self._drawn(name, rows) for rows in (own, others)]
        if means[0] is None or means[1] is None:
            return Statistic(None)
        if drawn[0] is None or drawn[1] is None:
            return Statistic(means[0] - means[1])
        return self._resampling.interval(means[0] - means[1], drawn[0] - drawn[1])

    def _mean(self, name: str, table: Rows) -> float | None:
        found = [self._value(name, _columns(rows)) for rows in table.values()]
        known = [value for value in found if value is not None]
        return float(np.mean(known)) if known and len(known) == len(found) else None

    def _value(self, name: str, rows: AlignedRows) -> float | None:
        if self._within:
            return mean_or_none(_known(correlations_within(name, *_pair(rows), rows.units)))
        return correlation(name, *_pair(rows))

    def _drawn(self, name: str, table: Rows) -> Floats | None:
        columns = [_columns(rows) for rows in table.values()]
        if len({rows.groups for rows in columns}) != 1 or not all(map(len, columns)):
            return None
        draw = resampled_mean_within if self._within else resampled_correlation
        found: Floats = np.mean(
            [draw(name, *_pair(rows), rows.units, self._resampling) for rows in columns], axis=0
        )
        return found


def _known(values: Floats) -> Floats:
    found: Floats = values[~np.isnan(values)]
    return found


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
    """A figure of a cell.

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


def advocates_alpha(one: CellResult) -> Statistic:
    """Krippendorff's alpha (interval) of the totals that the defences of one answer got, each scored alone.

    1: all defences of an answer are worth the same; 0: no more alike than defences of different answers.
    Resampled are items.
    """
    units = [(item, totals) for item, side in _sides(one) for totals in [side["totals"]]]
    found = krippendorff_alpha(
        [totals for _, totals in units], groups=[item for item, _ in units], resampling=Resampling()
    )
    return found.alpha


def advocates_spread(one: CellResult) -> Statistic:
    """By how many points the best defence of an answer exceeds the worst one, on average."""
    return _mean([max(side["totals"]) - min(side["totals"]) for _, side in _sides(one)])


def picked_weight(one: CellResult) -> Statistic:
    """The softmax weight of the defence that represents its answer, on average."""
    return _mean([max(side["weights"]) for _, side in _sides(one)])


def _mean(values: list[float]) -> Statistic:
    return Statistic(fsum(values) / len(values) if values else None)


def _sides(one: CellResult) -> Iterator[tuple[str, dict[str, Any]]]:
    """Of each verdict, round and side: the item, and the totals and weights of the side's defences."""
    for result in one.evaluation.results:
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
    """The items' categories, those that a cell is named after first."""
    labels = {label for one in cells for label in one.cell.labels.values()}
    found = dict.fromkeys(head["category"] for one in cells for head in heads(one) if head["category"])
    return sorted(found, key=lambda category: category not in labels)


def all_rows(one: CellResult, category: str) -> list[Row]:
    """The verdicts of a cell on items of one category."""
    return [row for rows in rows_of(one, category).values() for row in rows]


def metric_keys(measured: Sequence[Measured]) -> list[MetricKey]:
    """All figures that any cell has, those of the average first."""
    places = dict.fromkeys(place for found in measured for place in found.figures)
    return sorted(places, key=lambda place: place.subject != AVERAGE)


def leading(places: Iterable[MetricKey]) -> list[MetricKey]:
    """The figures that stand for all: of the average over aspects, else of the only subject, else of each."""
    listed = list(places)
    return [place for place in listed if place.subject == AVERAGE] or listed


def shown(axis: str, label: str) -> str:
    """A value as it is called where its axis is not named: what says little by itself, with its axis.

    >>> shown("n", "3"), shown("tie_breaker", "true"), shown("persona", "plain")
    ('n=3', 'tie_breaker=true', 'plain')
    """
    telling = not label.replace(".", "").isdigit() and label not in ("true", "false")
    return label if telling else f"{axis}={label}"
