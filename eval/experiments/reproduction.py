"""Read the tables of the papers, measure their rows, and lay them out beside what they print."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Literal

import numpy as np
from pydantic import TypeAdapter

from ...nodes.yaml_files import read_yaml
from ...state.checked import listed
from ...state.errors import UsageError
from ..datasets.catalog import find_source
from ..datasets.dataset import Dataset
from ..datasets.frames import row_file
from ..datasets.items import ScoreItem, profile_items
from ..metrics import Metric
from ..metrics import measure as measure_metrics
from ..plan.plan import Options
from ..results.folder import model_names
from ..statistics.alignment import grouped
from ..statistics.metrics import METRICS
from ..statistics.resampling import Statistic
from ..statistics.significance import paired_t_test
from ..tables.grid import CellValue, Column, Grid, text_column
from .cell_metrics import AVERAGE, PREFERENCE, MetricKey, agreement_by_category, measure
from .cells import MODEL, Axis, Cell, CellResult, cells
from .presets import ablations
from .sweep_plan import SweepPlan, plan_sweep

METHOD = "method"
PEOPLE = "people"

Figures = dict[tuple[str, str], float | None]
"""Figures by column and metric."""
Row = Mapping[tuple[str, str], Statistic | float | None]

Measure = Literal["agreement", "category", "shares", "gains", "t-tests", "cost", "spread", "none"]
_DIGITS = {"shares": 2, "gains": 1, "cost": 2}


@dataclass(frozen=True)
class PaperTable:
    """Describes a table of a paper; paper_tables.yaml says what the fields mean there.

    Attributes:
        paper: the paper, and which of its tables.
        title: what it is about.
        columns: aspects, ``average`` over them, or ``preference`` of comparisons.
        printed: its figures, by row and by the model that the paper used.
        data: the name of its dataset; none where it is reckoned from another table.
        measure: what its figures are: ``agreement`` in ``metrics`` (by ``category``: each column is one), ``shares``
            of scores in percent, ``gains`` over a row in percent, ``t-tests`` against a row, ``cost`` in dollars and
            minutes, ``spread`` over repeats; or ``none``, where it can only be shown.
        metrics: of agreement, or other figures by name, in each column.
        shares: the scores whose shares it has.
        rows: what is measured here: what a sweep's cell sets, ``metric`` or ``field``.
        plan: the ready-made plan of sweeps whose cells are its rows, instead.
        without_systems: systems whose texts it leaves out.
        gains_of: the table from whose printed figures the gains are reckoned, too.
        over: the row that gains and tests refer to.
        sample, repeats: how many items the paper judged how often, unless all of them once.
        errata: where the paper's labels or sums are wrong.
        differs: what is different here.
    """

    paper: str
    title: str
    columns: tuple[str, ...]
    printed: Mapping[str, Mapping[str, str | float]] = field(default_factory=dict)
    data: str = ""
    measure: Measure = "agreement"
    metrics: tuple[str, ...] = ()
    shares: tuple[int, ...] = ()
    rows: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    plan: str = ""
    without_systems: tuple[str, ...] = ()
    gains_of: str = ""
    over: str = ""
    sample: int | None = None
    repeats: int = 1
    errata: tuple[str, ...] = ()
    differs: tuple[str, ...] = ()

    @property
    def places(self) -> list[tuple[str, str]]:
        """The column and the name of each figure of a row: a metric, say, or a score whose share it is."""
        names = self.metrics or tuple(map(str, self.shares))
        return [(column, name) for column in self.columns for name in names]

    @property
    def judges(self) -> dict[str, Mapping[str, Any]]:
        """The rows for which models are asked."""
        if not self.plan:
            return {name: row for name, row in self.rows.items() if "protocol" in row}
        preset, judges = ablations()[self.plan], dict[str, Mapping[str, Any]]()
        for cell in cells(preset.axes):
            labels = (f"{axis} {value}" if value.isdigit() else value for axis, value in cell.labels.items())
            judges[", ".join(labels)] = {"protocol": preset.protocol, **cell.change}
        return judges

    def printed_figures(self, row: str, model: str) -> Figures:
        """Return the figures that the paper prints in a row for a model.

        >>> find_table("chateval-table3").printed_figures("same roles", "ChatGPT")
        {('preference', 'accuracy'): 0.538, ('preference', 'kappa'): 0.25}
        """
        numbers = str(self.printed[row][model]).split()
        # Where a paper prints a dash, it has no figure.
        pairs = zip(self.places, numbers, strict=True)
        return {place: None if number == "-" else float(number) for place, number in pairs}


@cache
def paper_tables() -> Mapping[str, PaperTable]:
    """Return all tables by name."""
    tables = read_yaml(Path(__file__).with_name("paper_tables.yaml"))
    # Checked like any input: a misspelt field is refused.
    return TypeAdapter(dict[str, PaperTable]).validate_python(tables, extra="forbid")


def find_table(name: str) -> PaperTable:
    """Return a table by its name.

    Raises:
        UsageError: there is none of this name; the nearest one is named.
    """
    if name not in paper_tables():
        raise UsageError(f"no table {name!r}; tables are {listed(paper_tables(), name)}")
    return paper_tables()[name]


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
        table, places = self.table, self.table.places
        heads, digits = list[Column](), _DIGITS.get(table.measure, 3)
        for column, name in places:
            short = METRICS[name].short if name in METRICS else name
            head = f"{column} {short}" if len(table.columns) > 1 else short
            heads.append(Column(head, digits=digits, interval=name == places[0][1]))
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

    # Surveyed anew, since its items, its groups and its digest are those of what is left.
    survey = profile_items(read, dataset.name, dataset.line_name)
    return replace(dataset, read=read, survey=survey, limit=None)


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
    table: PaperTable, dataset: Dataset | None, judged: Sequence[CellResult] = ()
) -> Reproduction:
    """Measure a table's rows.

    Args:
        table: the paper's.
        dataset: all of its data, of which rows that need no model are measured; ``None`` for one that has none.
        judged: the judges' results.
    """
    measured: dict[tuple[str, str], Row] = _printed_gains(table) if table.gains_of else {}
    rows: dict[str, int] = {}
    part = ""
    if dataset is not None:
        part = _part(table, dataset)
        dataset = without_systems(dataset, table.without_systems)
        if table.shares:
            texts = [item for item in dataset if isinstance(item, ScoreItem)]
            labels = {column: [item.label(column) for item in texts] for column in table.columns}
            measured[PEOPLE, ""], rows[PEOPLE] = _shares(table, labels)
        aspects = [column for column in table.columns if column not in (AVERAGE, PREFERENCE)]
        others = []
        for name, row in table.rows.items():
            # A row that needs no model: a reference metric, or what the published file has.
            if name not in table.judges:
                metric = row.get("metric") or _of_field(str(row["field"]), dataset)
                by_metric = measure_metrics({name: metric}, dataset, aspects=aspects)
                others.append(CellResult(Cell({METHOD: name}), name, by_metric))
        named = [(cell.cell.labels[METHOD], cell.cell.labels.get(MODEL), cell) for cell in (*others, *judged)]
        # Rows that need no model are no base: a gain is over a judge that asks the same model.
        bases = {model: cell for method, model, cell in named[len(others) :] if method == table.over}
        for method, model, cell in named:
            figures, count = _MEASURES[table.measure](table, cell, bases.get(model))
            if figures:
                by = () if cell in others else model_names(cell.evaluation.manifest, cell.protocol)
                measured[method, model or ", ".join(by)] = figures
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


def _agreement(table: PaperTable, cell: CellResult, _base: CellResult | None) -> tuple[Row, int]:
    """Return a row's figures, each metric by itself: a table has its own pair of them."""
    # One by one: with a metric comes the one that most papers print beside it, which this table need not have.
    measured = [of for metric in table.metrics for of in measure([cell], metric=metric)]
    by_place = {key: figure for of in measured for key, figure in of.figures.items()}
    rows = max(measured[-1].rows.values(), default=0)
    return {place: by_place.get(MetricKey(*place)) for place in table.places}, rows


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
    by_aspect = grouped((its.aspect, its.score) for its in cell.evaluation.results)
    return _shares(table, {column: by_aspect.get(column, []) for column in table.columns})


def _shares(table: PaperTable, scores: Mapping[str, Sequence[float | None]]) -> tuple[Row, int]:
    """Return how often each score is given, in percent, and the most scores of a column.

    Means lie between scores, and are rounded half up.
    """
    shares, most = Figures(), 0
    for column, given in scores.items():
        rounded = [math.floor(score + 0.5) for score in given if score is not None]
        most = max(most, len(rounded))
        for point in table.shares:
            shares[column, str(point)] = 100 * rounded.count(point) / len(rounded) if rounded else None
    return shares, most


def _printed_gains(table: PaperTable) -> dict[tuple[str, str], Row]:
    """Return the gains over a row of another table, in percent, from what that table prints."""
    other, by_row = find_table(table.gains_of), dict[tuple[str, str], Row]()
    for row in table.printed:
        for model in other.printed[row]:
            gains, bases = Figures(), other.printed_figures(table.over, model)
            for place, figure in other.printed_figures(row, model).items():
                base = bases[place]
                gains[place[0], "gain"] = None if figure is None or not base else 100 * (figure / base - 1)
            by_row[row, model] = gains
    return by_row


def _by_category(table: PaperTable, cell: CellResult, _base: CellResult | None) -> tuple[Row, int]:
    of_all = agreement_by_category(cell)
    known = [(category, of_all[category]) for category in table.columns if category in of_all]
    figures = {(name, metric): getattr(of, metric, None) for name, of in known for metric in table.metrics}
    return figures, sum(of.n for _, of in known)


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
    over = {"questions": [*map(fmean, grouped(differences).values())], "votes": [of for _, of in differences]}
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
            # A tie of humans that the rule leaves out is neither right nor wrong.
            if vote is not None and not (vote == "tie" and rule.ties == "left_out"):
                right = float(vote == result.winner)
                votes[result.item, result.repeat, place] = right, result.group or result.item
    return votes


def _cost(table: PaperTable, cell: CellResult, _base: CellResult | None) -> tuple[Row, int]:
    """Return what all judgements of a row took: dollars, and the sum of the calls' times in minutes."""
    cost, seconds = cell.usage.total.cost_usd, sum(result.seconds for result in cell.evaluation.results)
    judged = len(cell.evaluation.results) - len(cell.evaluation.failed)
    return {(table.columns[0], "USD"): cost, (table.columns[0], "minutes"): seconds / 60}, judged


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
