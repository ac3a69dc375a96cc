"""Hold the result of a sweep, lay out its tables, draw its figures, and write both to files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import cycle, starmap
from pathlib import Path
from typing import TYPE_CHECKING

from ...state.errors import UsageError
from ...state.protocols import Ablation
from ..report.chart_style import save
from ..report.charts import Panel, columns, lines
from ..report.labels import interval_note
from ..results.agreement import Agreement, ScoreAgreement
from ..statistics.metrics import METRICS
from ..statistics.resampling import Resampling, Statistic, caution
from ..tables import to_csv, to_latex, to_markdown
from ..tables.grid import CellValue, Column, Grid, share_column, text_column
from .cell_metrics import (
    AVERAGE,
    EXTRAS,
    PREFERENCE,
    Measured,
    MetricKey,
    agreement_by_category,
    leading,
    measure,
    metric_keys,
)
from .cells import Axis, CellResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Sweep:
    """Holds the result of a sweep.

    Attributes:
        axes: what varied.
        cells: those that were begun, in order.
        wanted: how many cells the sweep has when it is done.
        folder: where it is kept, if anywhere.
        calls_made: requests that were answered, over all its starts.
        stopped: why it ended before its work was done; ``None`` if all is done.
        metric: what cells are compared by (one of ``METRICS``); ``None`` for what belongs to the data.
    """

    axes: tuple[Axis, ...]
    cells: tuple[CellResult, ...]
    wanted: int
    folder: Path | None
    calls_made: int
    stopped: str | None = None
    metric: str | None = None

    @property
    def calls_alone(self) -> int:
        """The calls behind all verdicts: what the cells would have taken one by one."""
        return sum(cell.usage.total.calls for cell in self.cells)

    @property
    def failed(self) -> int:
        """Items without a verdict, in all cells."""
        return sum(len(cell.evaluation.failed) for cell in self.cells)

    @property
    def judged_folders(self) -> list[Path]:
        """The folders of the cells that have results."""
        kept = (cell.evaluation for cell in self.cells if len(cell.evaluation.results))
        return [evaluation.folder for evaluation in kept if evaluation.folder]

    @cached_property
    def note(self) -> str | None:
        """The offline judge's disclosure, which must stand at the head of everything shown of the sweep."""
        return next(filter(None, (cell.evaluation.manifest.get("note") for cell in self.cells)), None)

    def measured(self) -> tuple[Measured, ...]:
        """Measure how well each cell agrees with people, and what it gains over the first cell.

        Intervals are made of 1000 resamples, at 95 %, with seed 0.
        """
        return self._measured

    @cached_property
    def _measured(self) -> tuple[Measured, ...]:
        # Kept, since tables, notes and figures all ask for it.
        return measure(self.cells, self.metric)

    @cached_property
    def by_category(self) -> tuple[Mapping[str, Agreement], ...]:
        """Each cell's agreement with people by category of items."""
        return tuple(map(agreement_by_category, self.cells))

    @property
    def categories(self) -> list[str]:
        """The items' categories, those that a cell is named after first."""
        labels = {label for cell in self.cells for label in cell.cell.labels.values()}
        categories = dict.fromkeys(category for of_cell in self.by_category for category in of_cell)
        # False sorts before True, and sorting is stable: the order within both parts stays.
        return sorted(categories, key=lambda category: category not in labels)

    @property
    def accuracies(self) -> list[list[Statistic | None]]:
        """Each cell's accuracy in each of the categories, or rho where scores were given."""

        def accuracy(of: Agreement) -> Statistic:
            return of.over_rows["spearman"] if isinstance(of, ScoreAgreement) else of.accuracy

        names = self.categories
        return [[accuracy(of[name]) if name in of else None for name in names] for of in self.by_category]

    def table(self) -> Grid:
        """Lay out all cells with agreement, its interval, cost per verdict, and the gain over the first cell."""
        return cell_grid(self)

    def figures(self, along: str | None = None) -> dict[str, Figure]:
        """Draw agreement along one axis, a line or a row of bars for each combination of the others.

        By name: ``agreement``, and ``aspects`` of several aspects; nothing without labels.

        Args:
            along: the axis that figures run along; default: the first one of numbers, else the first.

        Raises:
            UsageError: no such axis; matplotlib is not installed.
        """
        named = {axis.name: axis for axis in self.axes}
        if along not in (None, *named):
            raise UsageError(f"the sweep has no axis {along!r}; it has {', '.join(named)}")
        numeric = (axis for axis in self.axes if axis.numbers and len(axis.values) > 1)
        axis = named[along] if along is not None else next(numeric, self.axes[0])
        keys = metric_keys(self.measured())
        if not keys:
            return {}
        # At most four panels: with several aspects their averages lead, and each aspect has a figure of its own.
        drawn = {"agreement": _figure(self, axis, leading(keys)[:4])}
        # Of each aspect the leading metric, which is the first of all.
        of_aspects = [key for key in keys if key.subject != AVERAGE and key.statistic == keys[0].statistic]
        if len(of_aspects) > 1:
            drawn["aspects"] = _figure(self, axis, of_aspects)
        return drawn


SHORT = {name: METRICS[metric.coefficient].short for name, metric in METRICS.items()}
"""Names of metrics for narrow columns; a note below says whether they are means within groups."""


def cell_grid(sweep: Sweep, title: str = "Agreement by cell", extras: Sequence[str] = ()) -> Grid:
    """Lay out a line a cell: its values, agreement over all aspects, gain over the first cell, calls and cost.

    Args:
        sweep: what is shown.
        title: of the table.
        extras: names of further columns (``EXTRAS``).
    """
    measured, usage = sweep.measured(), [cell.usage for cell in sweep.cells]
    lead = leading(metric_keys(measured))
    columns: dict[Column, Sequence[CellValue]] = {
        Column(name_of(key), best="high"): [metrics.figures.get(key) for metrics in measured] for key in lead
    }
    further: dict[Column, Sequence[CellValue]] = {}
    for key in lead[:1]:
        gain = Column(f"gain in {SHORT[key.statistic]}", interval=not extras, about="over the first cell")
        further[gain] = [metrics.gains.get(key) for metrics in measured]
    flips = share_column("flips", about="verdicts that differ from the first cell's")
    further[flips] = [metrics.flips for metrics in measured]
    for extra in map(EXTRAS.__getitem__, extras):
        further[extra] = [extra.of(cell) if extra.of else None for cell in sweep.cells]
    calls = Column("calls each", digits=1, about="model calls per verdict")
    cost = Column("cost each", form="money", about="US dollars per verdict")
    further[Column("failed")] = [len(cell.evaluation.failed) for cell in sweep.cells]
    further |= {calls: [of.calls_each for of in usage], cost: [of.cost_each for of in usage]}
    # Without those that say nothing: no gains of a single cell, no failures where there are none.
    for column, values in further.items():
        if any(value.value is not None if isinstance(value, Statistic) else value for value in values):
            columns[column] = values
    rows = ([values[place] for values in columns.values()] for place in range(len(sweep.cells)))
    return _by_cell(sweep, title, columns, rows)


def aspect_grid(sweep: Sweep) -> Grid:
    """Lay out two lines a cell, one for each statistic, with the aspects side by side."""
    keys, measured = metric_keys(sweep.measured()), sweep.measured()
    subjects, names = (list(dict.fromkeys(of)) for of in zip(*keys, strict=True))
    headings = (text_column("figure"), *(Column(subject, interval=False) for subject in subjects))
    pairs = [(name, metrics.figures) for name in names for metrics in measured]
    rows = [(SHORT[name], *(figures.get(MetricKey(of, name)) for of in subjects)) for name, figures in pairs]
    return _by_cell(sweep, "Agreement by aspect", headings, rows)


def category_grid(sweep: Sweep, title: str) -> Grid:
    """Lay out a line a cell with the categories of items side by side; rows are counted in a note."""
    by_category, names = sweep.by_category, sweep.categories
    most = [max(of_cell[name].n for of_cell in by_category if name in of_cell) for name in names]
    counted = ", ".join(f"{name} {rows}" for name, rows in zip(names, most, strict=True))
    headings = [Column(name, best="high", interval=False) for name in names]
    note = f"Accuracy by category of items; rows: {counted}."
    return _by_cell(sweep, title, headings, sweep.accuracies, note)


def pivot_grid(sweep: Sweep, across: str, title: str) -> Grid:
    """Lay out the values of one axis side by side, a line for each combination of the others and each figure."""
    keys = leading(metric_keys(sweep.measured()))
    (axis,) = (axis for axis in sweep.axes if axis.name == across)
    others = [other.name for other in sweep.axes if other.name != across]
    headings = (*map(text_column, (*others, "figure")), *(Column(shown(across, v)) for v in axis.labels))
    rows = [
        (*dict(at).values(), name_of(key), *(metrics.figures.get(key) for metrics in along))
        for at, along in _lines_along(sweep, axis).items()
        for key in keys
    ]
    return _with_notes(sweep, Grid(title, headings, tuple(rows)))


def _lines_along(sweep: Sweep, axis: Axis) -> dict[tuple[tuple[str, str], ...], list[Measured]]:
    """Return what was measured along an axis, by the other axes with their labels."""
    along: dict[tuple[tuple[str, str], ...], dict[str, Measured]] = {}
    for cell, metrics in zip(sweep.cells, sweep.measured(), strict=True):
        others = dict(cell.cell.labels)
        label = others.pop(axis.name)
        along.setdefault(tuple(others.items()), {})[label] = metrics
    # A sweep that was stopped has no cell yet at some labels.
    return {at: [by.get(label, Measured()) for label in axis.labels] for at, by in along.items()}


def _by_cell(
    sweep: Sweep, title: str, headings: Iterable[Column], rows: Iterable[Iterable[CellValue]], *notes: str
) -> Grid:
    """Lay out a table whose rows begin with the labels of the cells, over again where there are more rows."""
    labels = (text_column(axis.name) for axis in sweep.axes)
    cells = cycle(sweep.cells)
    whole = tuple((*cell.cell.labels.values(), *row) for cell, row in zip(cells, rows, strict=False))
    return _with_notes(sweep, Grid(title, (*labels, *headings), whole, notes))


def name_of(key: MetricKey) -> str:
    """Name a figure in words.

    >>> name_of(MetricKey("fluency", "spearman")), name_of(MetricKey("preference", "accuracy"))
    ('fluency rho', 'accuracy')
    """
    short = SHORT[key.statistic]
    return short if key.subject == PREFERENCE else f"{key.subject} {short}"


def _with_notes(sweep: Sweep, grid: Grid) -> Grid:
    """Add to a table what a reader must know to read the figures."""
    measured = sweep.measured()
    notes = [sweep.note] if sweep.note else []
    if sweep.stopped:
        judged = sum(len(cell.evaluation.results) for cell in sweep.cells) - sweep.failed
        begun = f"{len(sweep.cells)} of {sweep.wanted} cells started"
        notes.append(f"Unfinished ({sweep.stopped}): {begun}, {judged:,} verdicts.")
    if keys := metric_keys(measured):
        if METRICS[keys[0].statistic].kind == "compare":
            notes.append(str(sweep.cells[0].evaluation.rule))
        else:
            how = "means within groups" if METRICS[keys[0].statistic].within else "over all rows"
            names = dict.fromkeys(METRICS[key.statistic].coefficient for key in keys)
            titles = ", ".join(f"{METRICS[name].short} {METRICS[name].title}" for name in names)
            notes.append(f"{titles}: {how}.")
        counts = [count for metrics in measured for count in metrics.rows.values()]
        rows = " to ".join(f"{count:,}" for count in sorted({min(counts), max(counts)}))
        notes.append(f"{rows} rows each.")
        notes += [interval_note(Resampling())] if grid.has_intervals else []
        if len(sweep.cells) > 1:
            notes.append("gains: over the first cell, on the rows that both judged")
        # Cells may have judged different rows: the fewest clusters of each subject count.
        clusters = [metrics.units for metrics in measured]
        subjects = dict.fromkeys(subject for of_cell in clusters for subject in of_cell)
        fewest = {name: min(of[name] for of in clusters if name in of) for name in subjects}
        notes += (f"Caution: {few}." for few in caution(fewest))
    # Beside the calls that the cells would have made one by one.
    alone, made = sweep.calls_alone, sweep.calls_made
    saved = f"; one by one, the cells take {alone:,}: {1 - made / alone:.0%} saved" if alone > made else ""
    return replace(grid, notes=(*grid.notes, *notes, f"{made:,} calls made{saved}."))


def category_figure(sweep: Sweep) -> Figure:
    """Draw accuracy by category of items: a row of bars for each cell."""
    series = {
        ", ".join(starmap(shown, cell.cell.labels.items())): accuracies
        for cell, accuracies in zip(sweep.cells, sweep.accuracies, strict=True)
    }
    return columns([Panel("", METRICS["accuracy"].title, series)], sweep.categories, "category of items")


def shown(axis: str, label: str) -> str:
    """Return a value's label where its axis is not named: a number or a flag is shown with its axis.

    >>> shown("n", "3"), shown("tie_breaker", "true"), shown("persona", "plain")
    ('n=3', 'tie_breaker=true', 'plain')
    """
    speaks_for_itself = not label.replace(".", "").isdigit() and label not in ("true", "false")
    return label if speaks_for_itself else f"{axis}={label}"


def _figure(sweep: Sweep, axis: Axis, keys: Iterable[MetricKey]) -> Figure:
    panels = []
    for key in keys:
        title = "" if key.subject in (PREFERENCE, AVERAGE) else key.subject
        mean = ", mean over aspects" if key.subject == AVERAGE else ""
        series = {
            ", ".join(starmap(shown, at)): [metrics.figures.get(key) for metrics in along]
            for at, along in _lines_along(sweep, axis).items()
        }
        panels.append(Panel(title, f"{METRICS[key.statistic].title}{mean}", series))
    # Labels have no distance from each other, so there is nothing for a line to rise or fall over.
    numbers = axis.numbers
    return columns(panels, axis.labels, axis.name) if numbers is None else lines(panels, numbers, axis.name)


FORMATS: Mapping[str, Callable[[Grid], str]] = {"md": to_markdown, "csv": to_csv, "tex": to_latex}
DRAWN = ("svg", "png", "pdf")


def grids(sweep: Sweep, ablation: Ablation | None = None) -> dict[str, Grid]:
    """Lay out a sweep's tables by name: ``cells``, ``aspects`` if any, ``paper`` if the source has another shape."""
    title = f"{ablation.name}: {ablation.question}" if ablation else "Agreement by cell"
    tables = {"cells": cell_grid(sweep, title, ablation.extras if ablation else ())}
    if any(key.subject == AVERAGE for key in metric_keys(sweep.measured())):
        tables["aspects"] = aspect_grid(sweep)
    if ablation and ablation.by_category:
        tables["paper"] = category_grid(sweep, f"As in {ablation.source}")
    elif ablation and ablation.across:
        tables["paper"] = pivot_grid(sweep, ablation.across, f"As in {ablation.source}")
    return tables


def write_grid(grid: Grid, folder: Path, name: str) -> None:
    """Write a table in all formats."""
    folder.mkdir(parents=True, exist_ok=True)
    for suffix, form in FORMATS.items():
        (folder / f"{name}.{suffix}").write_text(form(grid), encoding="utf-8", errors="replace")


def write_figures(sweep: Sweep, folder: Path, ablation: Ablation | None = None) -> list[Path]:
    """Draw all figures in all formats, and return the files.

    Raises:
        UsageError: matplotlib is not installed.
    """
    drawn = sweep.figures(ablation.along if ablation else None)
    if drawn and ablation and ablation.by_category:
        drawn["categories"] = category_figure(sweep)
    files = ((figure, f"{name}.{suffix}") for name, figure in drawn.items() for suffix in DRAWN)
    return [save(figure, folder / "figures" / file) for figure, file in files]
