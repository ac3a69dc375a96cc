"""Measure the rows of a paper's table, and show them next to the printed numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Self

import numpy as np

from ...state.errors import UsageError
from ..datasets.catalog import find_source
from ..datasets.dataset import Dataset
from ..datasets.frames import row_file
from ..datasets.items import ScoreItem, profile_items
from ..metrics import Metric
from ..metrics import measure as measure_metrics
from ..report.labels import shown_note
from ..results.agreement import figure_name
from ..results.experiment_result import ExperimentResult
from ..results.folder import model_names
from ..statistics.alignment import Floats, grouped, number_clusters, number_groups
from ..statistics.metrics import METRICS
from ..statistics.resampling import Resampling, Statistic, Weights, share_of_rows
from ..statistics.significance import paired_t_test
from ..tables.grid import CellValue, Column, Grid, text_column
from ..tables.screen import FirstScreen
from .cell_metrics import AVERAGE, PREFERENCE, MetricKey, agreement_by_category, measure
from .cells import MODEL, Cell, CellResult
from .errata import errata_of
from .paper_tables import Figures, PaperTable, find_table
from .sweep_result import Sweep, write_grid

MOST_COLUMNS = 4
"""The number of columns on the first screen; its table has all."""
METHOD = "method"
HUMAN = "human"

WORDING = (
    "The prompts are this package's words, not the paper's (docs/prompts.md). --set prompts=papers takes over the "
    "order of blocks and the form of replies of the paper's prompts."
)
"""The differences from the paper in every table with model judges."""

Row = Mapping[tuple[str, str], Statistic | float | None]

_DIGITS = {"shares": 2, "gains": 1, "cost": 2, "none": 0}


@dataclass(frozen=True)
class Reproduction(ExperimentResult):
    """A measured table and the paper's printed one.

    Attributes:
        table: the paper's table.
        measured: measured values, by row and model.
        rows: the number of items used, by row.
        part: the difference between these data and the paper's, if any.
        computed: values computed from another table's printed numbers, by row and model.
        deviations: standard deviations of measured values over repeats, by row and model.
        empty: the reasons for empty cells.
        recorded: whether recorded replies were judged, whose prompts are unknown.
        sweep: the runs of the judges; ``None`` if no model was called.
    """

    file = "reproduce.json"
    table: PaperTable
    measured: Mapping[tuple[str, str], Row]
    rows: Mapping[str, int]
    part: str = ""
    computed: Mapping[tuple[str, str], Row] = field(default_factory=dict)
    deviations: Mapping[tuple[str, str], Figures] = field(default_factory=dict)
    empty: tuple[str, ...] = ()
    recorded: bool = False
    sweep: Sweep | None = None

    def screen(self) -> FirstScreen:
        """Compose the first screen: the first figures of the table."""
        grid = self.grid()
        note = self.sweep.note if self.sweep else None
        lead = "Figures measured here are above those that the paper prints."
        return FirstScreen(
            name="",
            headline=grid.title,
            table=replace(
                grid.only(range(min(MOST_COLUMNS, len(grid.columns)))), title="", notes=()
            ),
            evidence=lead if self.sweep else f"{lead} No model was called.",
            warnings=(shown_note(note),) if note else (),
            others=grid.notes,
        )

    def grids(self) -> Iterator[Grid]:
        """Yield the table."""
        yield self.grid()

    def write(self) -> Self:
        """Write the file, and the table as Markdown, CSV and LaTeX."""
        super().write()
        if self.folder is not None:
            write_grid(self.grid(), self.folder, "table")
        return self

    def grid(self) -> Grid:
        """Lay out each row: measured values, then computed ones, then the printed numbers."""
        table = self.table
        places = self.table.places
        with_sd = bool(table.printed_sd or self.deviations)
        columns = list[Column]()
        digits = _DIGITS.get(table.measure, 3)
        for column, name in places:
            short = METRICS[name].short if name in METRICS else name
            head = f"{column} {short}" if len(table.columns) > 1 else short
            # With two metrics of agreement, a screen has room for the interval of only one.
            shown = name == places[0][1] or table.measure != "agreement"
            columns.append(Column(head, digits=digits, interval=shown))
            if with_sd:
                columns.append(Column(f"{head} sd", digits=digits))
        lines: list[tuple[CellValue, ...]] = []
        for row in dict.fromkeys(
            [*table.judges, *(row for row, _ in (*self.measured, *self.computed)), *table.printed]
        ):
            for source, figures, deviations in self._sources(row):
                cells = list[CellValue]()
                for place in places:
                    cells.append(figures.get(place))
                    if with_sd:
                        cells.append(deviations.get(place))
                lines.append((row, source, *cells))
        title = f"{table.paper}: {table.title}"
        heads = (text_column(METHOD), text_column("figures"), *columns)
        return Grid(title, heads, tuple(lines), self.notes())

    def _sources(self, row: str) -> Iterator[tuple[str, Row, Figures]]:
        """Yield the values of a row with source and standard deviations, model by model."""
        table = self.table
        printed = table.printed.get(row, {})
        known = [model for of, model in (*self.measured, *self.computed) if of == row]
        for model in dict.fromkeys([*known, *printed]):
            name = f", {model}" if model else ""
            key = (row, model)
            if key in self.measured:
                yield f"here{name}", self.measured[key], self.deviations.get(key, {})
            if key in self.computed:
                other = find_table(table.gains_of).paper.rpartition(", ")[2]
                yield f"computed from {other}{name}", self.computed[key], {}
            if model in printed:
                yield (
                    f"printed{name}",
                    table.printed_figures(row, model),
                    table.printed_deviations(row, model),
                )

    def notes(self) -> tuple[str, ...]:
        """Return the paper's errors, our differences, and the data behind the measured values."""
        notes = [f"Erratum: {erratum}" for erratum in errata_of(self.table.name)]
        differs = list(self.table.differs)
        # A table of gains can be shown without a judge of the user's.
        if self.table.judges and not self.recorded and (self.measured or not self.computed):
            differs.append(WORDING)
        notes += [f"Differs: {text}" for text in differs]
        if self.rows:
            notes.append(
                f"rows measured here: {', '.join(f'{name} {count:,}' for name, count in self.rows.items())}"
            )
        if self.part:
            notes.append(self.part)
        if self.deviations:
            notes.append("sd: sample standard deviation over the repeats (n - 1)")
        return (*notes, *self.empty)

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain JSON."""
        grid = self.grid()
        rows = [
            [vars(cell) if isinstance(cell, Statistic) else cell for cell in row]
            for row in grid.rows
        ]
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

    # Compute the profile again: items, groups and digest have changed.
    survey = profile_items(read, dataset.name, dataset.line_name)
    return replace(dataset, read=read, survey=survey, limit=None)


def rows_without_model(
    table: PaperTable, dataset: Dataset
) -> tuple[list[CellResult], dict[str, str]]:
    """Measure the rows without a model: reference metrics and fields of the published file.

    Returns:
        The rows, and why others cannot be measured.
    """
    dataset = without_systems(dataset, table.without_systems)
    columns = [name for name in table.columns if name not in (AVERAGE, PREFERENCE)]
    labelled = dataset.aspect_names()
    aspects = [name for name in columns if name in labelled] or columns
    done = list[CellResult]()
    failed = dict[str, str]()
    for name, row in table.rows.items():
        if name in table.judges:
            continue
        try:
            metric = row.get("metric") or _of_field(str(row["field"]), dataset)
            by_metric = measure_metrics({name: metric}, dataset, aspects=aspects)
        except UsageError as error:
            failed[name] = str(error)
        else:
            done.append(CellResult(Cell({METHOD: name}), name, by_metric))
    return done, failed


def reproduce_table(
    table: PaperTable,
    dataset: Dataset | None,
    judged: Sequence[CellResult] = (),
    *,
    others: tuple[Sequence[CellResult], Mapping[str, str]] | None = None,
    empty: Sequence[str] = (),
) -> Reproduction:
    """Measure a table's rows.

    Args:
        table: the paper's table.
        dataset: all of its data; ``None`` for a table without data, or to measure judges only.
        judged: the judges' results.
        others: the result of ``rows_without_model``, if it exists already.
        empty: the reasons for empty cells of judges (``check_fillable``).

    Raises:
        UsageError: no row can be measured on these data.
    """
    measured = dict[tuple[str, str], Row]()
    deviations = dict[tuple[str, str], Figures]()
    rows = dict[str, int]()
    notes = list(empty)
    without_model: Sequence[CellResult] = ()
    if dataset is not None:
        if table.shares:
            own = without_systems(dataset, table.without_systems)
            texts = [item for item in own if isinstance(item, ScoreItem)]
            labels = {
                column: [(item.label(column), item.group) for item in texts]
                for column in table.columns
            }
            measured[HUMAN, ""], rows[HUMAN] = _shares(table, labels)
        without_model, failed = others or rows_without_model(table, dataset)
        if failed and not (without_model or table.judges):
            raise UsageError("; ".join(failed.values()))
        notes += [f"{name}: stays empty, because {why}" for name, why in failed.items()]
    named = [
        (cell.cell.labels[METHOD], cell.cell.labels.get(MODEL), cell)
        for cell in (*without_model, *judged)
    ]
    # Only judges can be a baseline: a gain compares judges with the same model.
    bases = {
        model: cell for method, model, cell in named[len(without_model) :] if method == table.over
    }
    for method, model, cell in named:
        figures, count = _MEASURES[table.measure](table, cell, bases.get(model))
        if not figures:
            continue
        by = () if cell in without_model else model_names(cell.evaluation.manifest, cell.protocol)
        key = (method, model or ", ".join(by))
        measured[key] = figures
        rows[", ".join(cell.cell.labels.values())] = count
        if table.measure == "agreement" and (over_repeats := _deviations(table, cell)):
            deviations[key] = over_repeats
    recorded = any("replies" in cell.evaluation.manifest for cell in judged)
    return Reproduction(
        table,
        measured,
        rows,
        part=_part(table, dataset) if dataset is not None else "",
        computed=_printed_gains(table) if table.gains_of else {},
        deviations=deviations,
        empty=tuple(notes),
        recorded=recorded,
    )


def _part(table: PaperTable, dataset: Dataset) -> str:
    source = find_source(dataset.name)
    parts = []
    if dataset.name != table.data:
        parts.append(f"in place of {table.data}")
    if source is not None and source.items not in (None, len(dataset)):
        parts.append(f"{len(dataset):,} of the {source.items:,} items that were published")
    if dataset.labels == "none":
        parts.append("no labels, so nothing can be compared with humans")
    return f"{dataset.name} here: {'; '.join(parts)}" if parts else ""


def _agreement(table: PaperTable, cell: CellResult, _base: CellResult | None) -> tuple[Row, int]:
    """Return a row's values, one for each metric of the table."""
    # Measure metrics one by one: measured together, a metric adds the companion that most papers
    # print, which this table may not have. The papers leave out groups in which the judge gives
    # all items the same score (DEBATE, E.5). Only here such groups do not count as 0, so that the
    # values are comparable with the printed ones.
    measured = [
        of for metric in table.metrics for of in measure([cell], metric=metric, skip_one_score=True)
    ]
    by_place = {key: figure for of in measured for key, figure in of.figures.items()}
    rows = max(measured[-1].rows.values(), default=0)
    return {place: by_place.get(MetricKey(*place)) for place in table.places}, rows


def _deviations(table: PaperTable, cell: CellResult) -> Figures:
    """Return the standard deviations of a row over its repeats; empty with a single repeat."""
    rows = cell.evaluation.figures.rows.get(cell.protocol)
    by_column = (
        rows.over_repeats(cell.evaluation.rule, skip_one_score=True) if rows is not None else {}
    )
    deviations: Figures = {}
    for column, metric in table.places:
        name = figure_name(metric)
        columns = [of for of in table.columns if of in by_column] if column == AVERAGE else [column]
        spreads = [
            by_column[of].figures[name]
            for of in columns
            if of in by_column and name in by_column[of].figures
        ]
        if not spreads:
            continue
        # An average over aspects is computed in each repeat first. After a stop, some repeats may
        # lack an aspect.
        if len({len(of.values) for of in spreads}) > 1:
            continue
        each = (
            [value for value in values if value is not None]
            for values in zip(*(of.values for of in spreads), strict=True)
        )
        means = [fmean(values) for values in each if len(values) == len(spreads)]
        deviations[column, metric] = stdev(means) if len(means) > 1 else None
    return deviations


def _of_field(field: str, dataset: Dataset) -> Metric:
    """Make a metric from a field of the published file, which has a number for each aspect.

    Raises:
        UsageError: the file has no such field.
    """
    path = Path(dataset.location)
    files = [path] if path.is_file() else sorted(path.glob("*.jsonl*"))
    rows = (
        row
        for file in files
        for _, row in row_file(file).rows()
        if isinstance(row.get(field), dict)
    )
    by_id = {str(row.get("item_id", row.get("id"))): row[field] for row in rows}
    if not by_id:
        raise UsageError(
            f"{dataset.location} has no field {field!r}: this row needs a copy of {dataset.name} "
            "with it (--data-dir)"
        )

    def score(item: ScoreItem, aspects: Sequence[str]) -> dict[str, float]:
        own = by_id.get(item.id, {})
        return {aspect: float(own[aspect]) for aspect in aspects if aspect in own}

    return Metric(field, f"field:{field}", score)


def _scored_shares(
    table: PaperTable, cell: CellResult, _base: CellResult | None
) -> tuple[Row, int]:
    by_aspect = grouped(
        (its.aspect, (its.score, its.group or its.item)) for its in cell.evaluation.results
    )
    return _shares(table, {column: by_aspect.get(column, []) for column in table.columns})


def _shares(
    table: PaperTable, scores: Mapping[str, Sequence[tuple[float | None, str | None]]]
) -> tuple[Row, int]:
    """Return the share of each score in percent with an interval, and a column's most scores.

    Means between scores are rounded half up. The interval is over groups of texts.

    Args:
        table: the paper's table.
        scores: by column, each score with the group of its text.
    """
    shares = dict[tuple[str, str], Statistic | float | None]()
    most = 0
    for column, given in scores.items():
        known = [(math.floor(score + 0.5), group) for score, group in given if score is not None]
        most = max(most, len(known))
        rounded = np.array([score for score, _ in known])
        clusters = number_clusters([group for _, group in known])
        for point in table.shares:
            share = (
                share_of_rows(rounded == point, clusters, Resampling())
                if known
                else Statistic(None)
            )
            shares[column, str(point)] = share.times(100)
    return shares, most


def _printed_gains(table: PaperTable) -> dict[tuple[str, str], Row]:
    """Return the gains over a row of another table, in percent, from its printed numbers."""
    other = find_table(table.gains_of)
    by_row = dict[tuple[str, str], Row]()
    for row in table.printed:
        for model in other.printed[row]:
            gains = Figures()
            bases = other.printed_figures(table.over, model)
            for place, figure in other.printed_figures(row, model).items():
                base = bases[place]
                gains[place[0], "gain"] = (
                    None if figure is None or not base else 100 * (figure / base - 1)
                )
            by_row[row, model] = gains
    return by_row


def _by_category(table: PaperTable, cell: CellResult, _base: CellResult | None) -> tuple[Row, int]:
    of_all = agreement_by_category(cell)
    known = [(category, of_all[category]) for category in table.columns if category in of_all]
    figures = {
        (name, metric): getattr(of, metric, None) for name, of in known for metric in table.metrics
    }
    return figures, sum(of.n for _, of in known)


def _gains(table: PaperTable, cell: CellResult, base: CellResult | None) -> tuple[Row, int]:
    """Return a judge's gain in accuracy over the baseline with the same model, in percent.

    Both are measured on their common votes. The interval comes from resamples of questions.
    """
    if base is None or cell is base:
        return {}, 0
    own = _votes(cell)
    other = _votes(base)
    shared = [key for key in own if key in other]
    if not shared:
        return {}, 0
    questions = number_groups([own[key][1] for key in shared])
    rights = [np.bincount(questions, [votes[key][0] for key in shared]) for votes in (own, other)]

    def gain(weights: Weights) -> Floats:
        of_own, of_base = (np.asarray(weights @ right, dtype=float) for right in rights)
        ratio: Floats = np.divide(
            of_own, of_base, out=np.full(len(weights), np.nan), where=of_base > 0
        )
        return 100 * (ratio - 1)

    return {(table.columns[0], "gain"): Resampling().statistic(len(rights[0]), gain)}, len(shared)


def _t_tests(_table: PaperTable, cell: CellResult, base: CellResult | None) -> tuple[Row, int]:
    """Compare a judge's accuracy with the baseline's by Student's paired t-test.

    The test is over questions and over votes. Votes on one question are not independent, so a test
    over votes finds too many differences. It is included because the paper does not state the unit
    of its own test.
    """
    if base is None or cell is base:
        return {}, 0
    own = _votes(cell)
    other = _votes(base)
    differences = [(own[key][1], own[key][0] - other[key][0]) for key in own if key in other]
    over = {
        "questions": [*map(fmean, grouped(differences).values())],
        "votes": [of for _, of in differences],
    }
    figures: Figures = {}
    for column, values in over.items():
        _, test = paired_t_test(np.array(values), np.zeros(len(values)))
        figures |= {(column, "t"): test.statistic, (column, "p"): test.p}
    return figures, len(differences)


def _votes(cell: CellResult) -> dict[tuple[str, int, int], tuple[float, str]]:
    """Return agreement with each vote, by item, repeat and place, and its question."""
    rule = cell.evaluation.rule
    votes = {}
    for result in cell.evaluation.results:
        if result.winner is None or result.human is None:
            continue
        given = (
            result.annotations if rule.votes == "each" and result.annotations else (result.human,)
        )
        for place, vote in enumerate(given):
            # A human tie that the rule leaves out is neither right nor wrong.
            if vote is not None and not (vote == "tie" and rule.ties == "left_out"):
                right = float(vote == result.winner)
                votes[result.item, result.repeat, place] = right, result.group or result.item
    return votes


def _cost(table: PaperTable, cell: CellResult, _base: CellResult | None) -> tuple[Row, int]:
    """Return the cost of the paper's number of questions: dollars, and minutes of all calls.

    Values are means over the questions judged here, times the paper's number of questions.
    """
    judged = [result for result in cell.evaluation.results if result.status == "ok"]
    questions = number_clusters([result.item for result in judged])

    def mean(values: Sequence[float | None]) -> Statistic:
        known = np.array([value for value in values if value is not None])
        if len(known) < len(values) or not values:
            return Statistic(None)
        # A free model costs 0 for every question and needs no interval.
        return (
            Resampling().mean_interval(known, questions)[0]
            if np.ptp(known)
            else Statistic(float(known[0]))
        )

    dollars = mean([result.cost_usd for result in judged])
    time = mean([result.seconds / 60 for result in judged])
    column = table.columns[0]
    of_paper = table.questions
    return {
        (column, "USD"): dollars.times(of_paper),
        (column, "minutes"): time.times(of_paper),
    }, len(judged)


def _spread(table: PaperTable, cell: CellResult, _base: CellResult | None) -> tuple[Row, int]:
    """Return the spread of an item's scores over repeats: mean deviation and widest range."""
    of_items = grouped(
        ((its.aspect, its.item, its.group or its.item), its.score)
        for its in cell.evaluation.results
        if its.score is not None
    )
    figures = dict[tuple[str, str], Statistic | float | None]()
    for column in table.columns:
        several = {
            key: given for key, given in of_items.items() if key[0] == column and len(given) > 1
        }
        clusters: list[Hashable] = [group for _, _, group in several]
        deviations = np.array([stdev(given) for given in several.values()])
        figures[column, "sd"] = Resampling().mean_interval(deviations, number_groups(clusters))[0]
        figures[column, "range"] = max(
            (max(given) - min(given) for given in several.values()), default=None
        )
    return figures, len(of_items)


_MEASURES: Mapping[str, Callable[[PaperTable, CellResult, CellResult | None], tuple[Row, int]]] = {
    "agreement": _agreement,
    "category": _by_category,
    "shares": _scored_shares,
    "gains": _gains,
    "t-tests": _t_tests,
    "cost": _cost,
    "spread": _spread,
}
