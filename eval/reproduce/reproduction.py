"""Measure the rows of a paper's table, and lay them out beside what it prints."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np

from ...state.errors import UsageError
from ..datasets.catalog import find_source
from ..datasets.dataset import Dataset
from ..datasets.frames import row_file
from ..datasets.items import ScoreItem, profile_items
from ..metrics import Metric
from ..metrics import measure as measure_metrics
from ..plan.plan import Options
from ..statistics.alignment import grouped
from ..statistics.metrics import METRICS
from ..statistics.resampling import Statistic
from ..statistics.significance import paired_t_test
from ..sweeps.cell_metrics import (
    AVERAGE,
    PREFERENCE,
    Measured,
    MetricKey,
    agreement_by_category,
    measure,
)
from ..sweeps.cells import MODEL, Axis, Cell, CellResult
from ..sweeps.sweep_plan import SweepPlan, plan_sweep
from ..tables.grid import CellValue, Column, Grid, text_column
from .tables import Figures, PaperTable, find_table

METHOD = "method"
PEOPLE = "people"
_DIGITS = {"shares": 2, "gains": 1, "cost": 2}

Row = Mapping[tuple[str, str], Statistic | float | None]


@dataclass(frozen=True)
class Reproduction:
    """Holds a table as it was measured, by row and by what measured it, beside what the paper prints.

    Attributes:
        table: the paper's.
        measured: figures of the rows; of judges, with the names of their models.
        rows: how many items counted, by row.
        part: how much of the paper's data is here, where it is not all, or what is in their place.
    """

    table: PaperTable
    measured: Mapping[tuple[str, str], Row]
    rows: Mapping[str, int]
    part: str = ""

    def grid(self) -> Grid:
        """Lay out each row: first what was measured here, then what the paper prints."""
        table, names = self.table, self.table.figure_names
        places = [(column, name) for column in table.columns for name in names]
        heads, digits = list[Column](), _DIGITS.get(table.measure, 3)
        for column, name in places:
            short = METRICS[name].short if name in METRICS else name
            head = f"{column} {short}" if len(table.columns) > 1 else short
            heads.append(Column(head, digits=digits, interval=name == names[0]))
        lines: list[tuple[CellValue, ...]] = []
        for row in dict.fromkeys([*table.judges, *(row for row, _ in self.measured), *table.printed]):
            here = {by: figures for (of, by), figures in self.measured.items() if of == row}
            for by in dict.fromkeys([*here, *table.printed.get(row, ())]):
                printed = table.printed_figures(row, by) if by in table.printed.get(row, ()) else None
                for source, figures in (("here", here.get(by)), ("printed", printed)):
                    if figures is not None:
                        lines.append((row, f"{source}{by and f', {by}'}", *map(figures.get, places)))
        title = f"{table.paper}: {table.title}"
        return Grid(title, (text_column(METHOD), text_column("figures"), *heads), tuple(lines), self.notes())

    def notes(self) -> tuple[str, ...]:
        """Say what is wrong in the paper, what differs here, and of how many items the figures are."""
        counts = [f"{name} {count:,}" for name, count in self.rows.items()]
        counted = [f"rows measured here: {', '.join(counts)}"] if counts else []
        if self.part:
            counted.append(self.part)
        wrong = (f"Erratum: {text}" for text in self.table.errata)
        return (*wrong, *(f"Differs: {text}" for text in self.table.differs), *counted)

    def to_json(self) -> dict[str, Any]:
        """Return all of it as plain JSON."""
        grid = self.grid()
        rows = [[vars(cell) if isinstance(cell, Statistic) else cell for cell in row] for row in grid.rows]
        return {
            "paper": self.table.paper,
            "title": self.table.title,
            "columns": [column.name for column in grid.columns],
            "rows": rows,
            "notes": list(grid.notes),
        }


def without_systems(dataset: Dataset, systems: Sequence[str]) -> Dataset:
    """Return a dataset without the texts of some systems."""
    if not systems:
        return dataset

    def read() -> Iterator[Any]:
        for number, item in dataset.numbered():
            if getattr(item, "system", None) not in systems:
                yield number, item

    return replace(dataset, read=read, survey=profile_items(read, dataset.name, dataset.unit), limit=None)


def plan_table(
    table: PaperTable, dataset: Dataset, options: Options, models: Sequence[str] = ()
) -> SweepPlan | None:
    """Check the runs of a table's judges, each with each of several models; ``None`` where it has none.

    Raises:
        UsageError: bad input; says what and where.
    """
    if not table.judges:
        return None
    if table.repeats > 1 and options.get("repeats", 1) == 1:
        options["repeats"] = table.repeats
    if dataset.kind == "score" and not options.get("aspects"):
        columns, known = [name for name in table.columns if name != AVERAGE], dataset.aspect_names()
        # Of other data than the paper's, those of the aspects that have labels.
        options["aspects"] = [name for name in columns if name in known] or columns
    first = str(next(iter(table.judges.values()))["protocol"])
    axes = [Axis.of(METHOD, table.judges), *([Axis.of(MODEL, models)] if models else [])]
    return plan_sweep(first, axes, dataset, **options)


def reproduce_table(
    table: PaperTable, dataset: Dataset | None, cells: Sequence[CellResult] = ()
) -> Reproduction:
    """Measure a table's rows.

    Args:
        table: the paper's.
        dataset: all of its data, of which rows that need no model are measured; ``None`` for one that has none.
        cells: the judges' results.
    """
    measured: dict[tuple[str, str], Row] = {}
    rows: dict[str, int] = {}
    if table.gains_of:
        measured |= {(row, model): gain for row, model, gain in _printed_gains(table)}
    part = ""
    if dataset is not None:
        part = _part(table, dataset)
        dataset = without_systems(dataset, table.without_systems)
        if table.shares:
            texts = [item for item in dataset if isinstance(item, ScoreItem)]
            given = {column: [item.label(column) for item in texts] for column in table.columns}
            labels = {column: [label for label in of if label is not None] for column, of in given.items()}
            measured[PEOPLE, ""] = _shares(table, labels)
            rows[PEOPLE] = max(map(len, labels.values()))
        others = [_without_model(table, name, dataset) for name in table.rows if name not in table.judges]
        named = [(cell.cell.labels[METHOD], cell.cell.labels.get(MODEL), cell) for cell in (*others, *cells)]
        bases = {model: cell for method, model, cell in named[len(others) :] if method == table.over}
        for method, model, cell in named:
            figures, count = _MEASURES[table.measure](table, cell, bases.get(model))
            if figures:
                measured[method, model or ("" if cell in others else _models(cell))] = figures
                rows[", ".join(cell.cell.labels.values())] = count
    return Reproduction(table, measured, rows, part)


def _part(table: PaperTable, dataset: Dataset) -> str:
    source, parts = find_source(dataset.name), []
    if dataset.name != table.data:
        parts.append(f"in place of {table.data}")
    if source is not None and source.items not in (None, len(dataset)):
        parts.append(f"{len(dataset):,} of the {source.items:,} items that were published")
    if dataset.labels == "none":
        parts.append("no labels, so nothing can be compared with humans")
    return f"{dataset.name} here: {'; '.join(parts)}" if parts else ""


def _models(cell: CellResult) -> str:
    labels = cell.evaluation.manifest["models"][cell.protocol].values()
    return ", ".join(dict.fromkeys(label.partition("?")[0] for label in labels))


def _agreement(table: PaperTable, cell: CellResult, _base: CellResult | None) -> tuple[Row, int]:
    """Return a row's figures, each metric by itself: a table has its own pair of them."""
    figures: dict[tuple[str, str], Statistic | None] = {}
    counted = Measured()
    for metric in table.metrics:
        (counted,) = measure([cell], metric=metric)
        for column in table.columns:
            figures[column, metric] = counted.figures.get(MetricKey(column, metric))
    return figures, max(counted.rows.values(), default=0)


def _without_model(table: PaperTable, name: str, dataset: Dataset) -> CellResult:
    """Measure a row that needs no model: a reference metric, or what the published file has."""
    row, aspects = table.rows[name], [of for of in table.columns if of not in (AVERAGE, PREFERENCE)]
    metric = row.get("metric") or _of_field(str(row["field"]), dataset)
    return CellResult(Cell({METHOD: name}), name, measure_metrics({name: metric}, dataset, aspects=aspects))


def _of_field(field: str, dataset: Dataset) -> Metric:
    """Make a metric of a field of the published file, which has a number for each aspect.

    Raises:
        UsageError: the file has no such field.
    """
    path = Path(dataset.location)
    files = [path] if path.is_file() else sorted(path.glob("*.jsonl*"))
    rows = (row for file in files for _, row in row_file(file).rows() if isinstance(row.get(field), dict))
    by_id = {str(row.get("item_id", row.get("id"))): row[field] for row in rows}
    if not by_id:
        remedy = f"this row needs a copy of {dataset.name} with it (--data-dir)"
        raise UsageError(f"{dataset.location} has no field {field!r}: {remedy}")

    def score(item: ScoreItem, aspects: Sequence[str]) -> dict[str, float]:
        own = by_id.get(item.id, {})
        return {aspect: float(own[aspect]) for aspect in aspects if aspect in own}

    return Metric(field, f"field:{field}", score)


def _scored_shares(table: PaperTable, cell: CellResult, _base: CellResult | None) -> tuple[Row, int]:
    results = cell.evaluation.results
    by_aspect = grouped((its.aspect, its.score) for its in results if its.score is not None)
    scores = {column: by_aspect.get(column, []) for column in table.columns}
    return _shares(table, scores), max(map(len, scores.values()), default=0)


def _shares(table: PaperTable, scores: Mapping[str, Sequence[float]]) -> Figures:
    """Return how often each score is given, in percent; means lie between scores, and are rounded half up."""
    shares: Figures = {}
    for column, given in scores.items():
        rounded = [math.floor(score + 0.5) for score in given]
        for point in table.shares:
            shares[column, str(point)] = 100 * rounded.count(point) / len(rounded) if rounded else None
    return shares


def _printed_gains(table: PaperTable) -> Iterator[tuple[str, str, Figures]]:
    """Yield the gains over a row of another table, in percent, from what that table prints."""
    other = find_table(table.gains_of)
    for row in table.printed:
        for model in other.printed[row]:
            gains, bases = Figures(), other.printed_figures(table.over, model)
            for place, figure in other.printed_figures(row, model).items():
                base = bases[place]
                gains[place[0], "gain"] = None if figure is None or not base else 100 * (figure / base - 1)
            yield row, model, gains


def _by_category(table: PaperTable, cell: CellResult, _base: CellResult | None) -> tuple[Row, int]:
    of_all = agreement_by_category(cell)
    there = [(category, of_all[category]) for category in table.columns if category in of_all]
    figures = {(name, metric): getattr(of, metric, None) for name, of in there for metric in table.metrics}
    return figures, sum(of.n for _, of in there)


def _gains(table: PaperTable, cell: CellResult, base: CellResult | None) -> tuple[Row, int]:
    """Return a judge's gain in accuracy over the base with the same model, in percent of the base's."""
    votes = _votes(cell)
    if base is None or cell is base or not votes:
        return {}, 0
    own, other = (fmean(right for right, _ in of_judge.values()) for of_judge in (votes, _votes(base)))
    return {(table.columns[0], "gain"): 100 * (own / other - 1) if other else None}, len(votes)


def _t_tests(_table: PaperTable, cell: CellResult, base: CellResult | None) -> tuple[Row, int]:
    """Test a judge's accuracy against the base's by Student's paired t, over questions and over votes.

    The votes on one question are not independent: a test over votes finds too much. It stands here because the paper
    does not say over what its own test is.
    """
    if base is None or cell is base:
        return {}, 0
    own, other = _votes(cell), _votes(base)
    differences = [(own[key][1], own[key][0] - other[key][0]) for key in own if key in other]
    by_question = grouped(differences)
    over = {"questions": [*map(fmean, by_question.values())], "votes": [of for _, of in differences]}
    figures: Figures = {}
    for column, values in over.items():
        _, test = paired_t_test(np.array(values), np.zeros(len(values)))
        figures |= {(column, "t"): test.statistic, (column, "p"): test.p}
    return figures, len(differences)


def _votes(cell: CellResult) -> dict[tuple[str, int, int], tuple[float, str]]:
    """Return of each vote, by item, repeat and place, whether the judge agrees with it, and the vote's question."""
    rule, votes = cell.evaluation.rule, {}
    for result in cell.evaluation.results:
        if result.winner is None or result.human is None:
            continue
        given = result.annotations if rule.votes == "each" and result.annotations else (result.human,)
        for place, vote in enumerate(given):
            if vote is not None and not (vote == "tie" and rule.ties == "left_out"):
                right = float(vote == result.winner)
                votes[result.item, result.repeat, place] = right, result.group or result.item
    return votes


def _cost(table: PaperTable, cell: CellResult, _base: CellResult | None) -> tuple[Row, int]:
    """Return what all judgements of a row took: dollars, and the sum of the calls' times in minutes."""
    cost, seconds = cell.usage.total.cost_usd, sum(result.seconds for result in cell.evaluation.results)
    return {(table.columns[0], "USD"): cost, (table.columns[0], "minutes"): seconds / 60}, cell.judged


def _spread(table: PaperTable, cell: CellResult, _base: CellResult | None) -> tuple[Row, int]:
    """Return how far the scores of one item lie apart over its repeats: mean standard deviation, and widest range."""
    results = cell.evaluation.results
    scores = grouped(((its.aspect, its.item), its.score) for its in results if its.score is not None)
    figures: Figures = {}
    for column in table.columns:
        several = [given for (aspect, _), given in scores.items() if aspect == column and len(given) > 1]
        figures[column, "sd"] = fmean(map(stdev, several)) if several else None
        figures[column, "range"] = max(max(given) - min(given) for given in several) if several else None
    return figures, len(scores)


_MEASURES: Mapping[str, Callable[[PaperTable, CellResult, CellResult | None], tuple[Row, int]]] = {
    "agreement": _agreement,
    "category": _by_category,
    "shares": _scored_shares,
    "gains": _gains,
    "t-tests": _t_tests,
    "cost": _cost,
    "spread": _spread,
}
