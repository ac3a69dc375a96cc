"""Hold the result of a sweep, lay out its tables and figures, and write them to files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..report.chart_style import save
from ..statistics.metrics import METRICS
from ..statistics.resampling import Resampling, Statistic, caution
from ..tables import to_csv, to_latex, to_markdown
from ..tables.grid import CellValue, Column, Grid, text_column
from .cell_metrics import (
    AVERAGE,
    EXTRAS,
    PREFERENCE,
    Measured,
    MetricKey,
    agreement_on_category,
    categories_of,
    first_figure,
    leading,
    measure,
    metric_keys,
    shown,
)
from .cells import Axis, CellResult
from .presets import SweepPreset
from .sweep_charts import category_figure, figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .cell_metrics import ExtraMetric


@dataclass(frozen=True)
class Sweep:
    """Holds the result of a sweep.

    Attributes:
        axes: what varied.
        cells: those that were begun, in order.
        wanted: how many cells the sweep has when it is done.
        folder: where it is kept, if anywhere.
        calls_made: requests that were answered, over all its starts.
        cost_made: the same in US dollars; ``None`` where a price is unknown.
        stopped: why it ended before its work was done; ``None`` if all is done.
        metric: what cells are compared by (one of ``METRICS``); ``None`` for what belongs to the data.
    """

    axes: tuple[Axis, ...]
    cells: tuple[CellResult, ...]
    wanted: int
    folder: Path | None
    calls_made: int
    cost_made: float | None
    stopped: str | None = None
    metric: str | None = None
    # A cache by resampling: tables, notes and figures all ask for the same measures.
    _measured: dict[Any, tuple[Measured, ...]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def calls_alone(self) -> int:
        """The calls behind all verdicts: what the cells would have taken one by one."""
        return sum(cell.usage.total.calls for cell in self.cells)

    @property
    def failed(self) -> int:
        """Items without a verdict, in all cells."""
        return sum(cell.failed for cell in self.cells)

    @cached_property
    def note(self) -> str | None:
        """The offline judge's disclosure, which must stand at the head of everything shown of the sweep."""
        notes = (cell.evaluation.manifest.get("note") for cell in self.cells)
        return next(filter(None, notes), None)

    @property
    def signatures(self) -> Mapping[str, str]:
        """Each cell's signature, by the cell's title."""
        return {cell.cell.title: cell.evaluation.manifest["signatures"][cell.protocol] for cell in self.cells}

    def measured(self, resampling: Resampling | None = None) -> tuple[Measured, ...]:
        """Measure how well each cell agrees with people, and what it gains over the first cell.

        Args:
            resampling: how intervals are made; default 1000 resamples, 95 %, seed 0.
        """
        if resampling not in self._measured:
            self._measured[resampling] = measure(self.cells, resampling, self.metric)
        return self._measured[resampling]

    def table(self) -> Grid:
        """Lay out all cells with agreement, its interval, cost per verdict, and the gain over the first cell."""
        return cell_grid(self)

    def figures(self, along: str | None = None) -> dict[str, Figure]:
        """Draw agreement along one axis, a line or a row of bars for each combination of the others; by name.

        Args:
            along: the axis that figures run along; default: the first one of numbers, else the first.

        Raises:
            UsageError: no such axis; matplotlib is not installed.
        """
        return figures(self.axes, self.cells, self.measured(), along)


SHORT = {name: METRICS[metric.coefficient].short for name, metric in METRICS.items()}
"""Names of metrics for narrow columns; a note below says whether they are means within groups."""


def cell_grid(sweep: Sweep, title: str = "Agreement by cell", extras: Sequence[ExtraMetric] = ()) -> Grid:
    """Lay out a line a cell: its values, agreement over all aspects, gain over the first cell, calls and cost.

    Args:
        sweep: what is shown.
        title: of the table.
        extras: further columns.
    """
    measured = sweep.measured()
    lead = leading(metric_keys(measured))
    columns = (
        *(text_column(axis.name) for axis in sweep.axes),
        *(Column(name_of(key), best="high") for key in lead),
        *(
            Column(f"gain in {SHORT[key.statistic]}", interval=not extras, about="over the first cell")
            for key in lead[:1]
        ),
        *(Column(extra.name, digits=extra.digits, about=extra.about) for extra in extras),
        Column("failed"),
        Column("calls each", digits=1, about="model calls a verdict"),
        Column("cost each", form="money", about="US dollars a verdict"),
    )
    rows = [
        (
            *cell.cell.labels.values(),
            *(metrics.figures.get(key) for key in lead),
            *(metrics.gains.get(key) for key in lead[:1]),
            *(extra.compute(cell) for extra in extras),
            cell.failed,
            cell.usage.calls_each,
            cell.usage.cost_each,
        )
        for cell, metrics in zip(sweep.cells, measured, strict=True)
    ]
    grid = Grid(title, columns, tuple(rows), notes_of(sweep, measured))
    return _without_empty(grid, kept=len(sweep.axes) + len(lead))


def aspect_grid(sweep: Sweep, title: str = "Agreement by aspect") -> Grid:
    """Lay out two lines a cell, one for each statistic, with the aspects side by side."""
    measured = sweep.measured()
    keys = metric_keys(measured)
    subjects = list(dict.fromkeys(key.subject for key in keys))
    columns = (
        *(text_column(axis.name) for axis in sweep.axes),
        text_column("figure"),
        *(Column(subject, interval=False) for subject in subjects),
    )
    rows = [
        (
            *cell.cell.labels.values(),
            SHORT[name],
            *(metrics.figures.get(MetricKey(subject, name)) for subject in subjects),
        )
        for name in dict.fromkeys(key.statistic for key in keys)
        for cell, metrics in zip(sweep.cells, measured, strict=True)
    ]
    return Grid(title, columns, tuple(rows), notes_of(sweep, measured))


def pivot_grid(sweep: Sweep, across: str, title: str) -> Grid:
    """Lay out the values of one axis side by side, a line for each combination of the others and each figure."""
    measured = sweep.measured()
    (axis,) = (axis for axis in sweep.axes if axis.name == across)
    others = [other.name for other in sweep.axes if other.name != across]
    by_others: dict[tuple[str, ...], dict[str, Measured]] = {}
    for cell, metrics in zip(sweep.cells, measured, strict=True):
        rest = tuple(cell.cell.labels[name] for name in others)
        by_others.setdefault(rest, {})[cell.cell.labels[across]] = metrics
    across_columns = (Column(shown(across, label)) for label in axis.labels)
    columns = (*map(text_column, others), text_column("figure"), *across_columns)
    rows = [
        (*rest, name_of(key), *(_figure(cells.get(label), key) for label in axis.labels))
        for rest, cells in by_others.items()
        for key in leading(metric_keys(measured))
    ]
    return Grid(title, columns, tuple(rows), notes_of(sweep, measured))


def category_grid(sweep: Sweep, title: str) -> Grid:
    """Lay out a line a cell with the categories of items side by side; rows are counted in a note."""
    categories = categories_of(sweep.cells)
    measured = {
        category: [agreement_on_category(cell, category) for cell in sweep.cells] for category in categories
    }
    rows = []
    for number, cell in enumerate(sweep.cells):
        results = [measured[category][number] for category in categories]
        figures = (None if result is None else first_figure(result) for result in results)
        rows.append((*cell.cell.labels.values(), *figures))
    counted = ", ".join(
        f"{category} {max((result.n for result in measured[category] if result), default=0)}"
        for category in categories
    )
    columns = (
        *(text_column(axis.name) for axis in sweep.axes),
        *(Column(category, best="high", interval=False) for category in categories),
    )
    notes = notes_of(sweep, sweep.measured())
    return Grid(title, columns, tuple(rows), (f"Accuracy by category of items; rows: {counted}.", *notes))


def name_of(key: MetricKey) -> str:
    """Name a figure in words.

    >>> name_of(MetricKey("fluency", "spearman")), name_of(MetricKey("preference", "accuracy"))
    ('fluency rho', 'accuracy')
    """
    short = SHORT[key.statistic]
    return short if key.subject == PREFERENCE else f"{key.subject} {short}"


def notes_of(sweep: Sweep, measured: Sequence[Measured]) -> tuple[str, ...]:
    """Collect what a reader must know to read the figures."""
    notes = [sweep.note] if sweep.note else []
    if sweep.stopped:
        judged = sum(cell.judged for cell in sweep.cells)
        notes.append(
            f"Unfinished ({sweep.stopped}): {len(sweep.cells)} of {sweep.wanted} cells begun, {judged:,} verdicts."
        )
    if any(metrics.rows for metrics in measured):
        subjects = {subject for metrics in measured for subject in metrics.rows}
        if subjects - {PREFERENCE}:
            how = "means within groups" if all(metrics.within for metrics in measured) else "over all rows"
            names = dict.fromkeys(METRICS[key.statistic].coefficient for key in metric_keys(measured))
            titles = ", ".join(f"{METRICS[name].short} {METRICS[name].title}" for name in names)
            notes.append(f"{titles}: {how}.")
        counts = {count for metrics in measured for count in metrics.rows.values()}
        least, most = min(counts), max(counts)
        notes.append(f"{least:,} rows each." if least == most else f"{least:,} to {most:,} rows each.")
        notes.append(
            "Intervals: 95 %, 1,000 bootstrap resamples of groups, seed 0; gains: over the first cell, paired."
        )
        # Cells may have judged different rows: the fewest units of each subject count.
        fewest: dict[str, int] = {}
        for metrics in measured:
            for subject, units in metrics.units.items():
                fewest[subject] = min(units, fewest.get(subject, units))
        if few := caution(fewest):
            notes.append(f"Caution: {few}.")
    notes.append(paid(sweep))
    return tuple(notes)


def paid(sweep: Sweep) -> str:
    """Say how many calls were made, beside those that the cells would have made one by one."""
    alone, made = sweep.calls_alone, sweep.calls_made
    if not alone or made >= alone:
        return f"{made:,} calls made."
    return f"{made:,} calls made, where the cells one by one take {alone:,}: {1 - made / alone:.0%} saved."


def _figure(metrics: Measured | None, key: MetricKey) -> CellValue:
    return None if metrics is None else metrics.figures.get(key, Statistic(None))


def _without_empty(grid: Grid, kept: int) -> Grid:
    """Keep the first columns, and of the others those with a value: no gains of a single cell, no failures of none."""
    wanted = [
        index
        for index in range(len(grid.columns))
        if index < kept or any(_has_value(row[index]) for row in grid.rows)
    ]
    columns = tuple(grid.columns[index] for index in wanted)
    rows = tuple(tuple(row[index] for index in wanted) for row in grid.rows)
    return Grid(grid.title, columns, rows, grid.notes)


def _has_value(cell: CellValue) -> bool:
    return (cell.value is not None) if isinstance(cell, Statistic) else bool(cell)


TABLES, FIGURES = "tables", "figures"
FORMATS: Mapping[str, Callable[[Grid], str]] = {"md": to_markdown, "csv": to_csv, "tex": to_latex}
DRAWN = ("svg", "png", "pdf")


def grids(sweep: Sweep, ablation: SweepPreset | None = None) -> dict[str, Grid]:
    """Lay out a sweep's tables by name: ``cells``, ``aspects`` if any, ``paper`` if the source has another shape."""
    extras = [EXTRAS[name] for name in ablation.extras] if ablation else []
    title = f"{ablation.name}: {ablation.question}" if ablation else "Agreement by cell"
    tables = {"cells": cell_grid(sweep, title, extras)}
    if any(key.subject == AVERAGE for metrics in sweep.measured() for key in metrics.figures):
        tables["aspects"] = aspect_grid(sweep)
    if ablation and ablation.by_category:
        tables["paper"] = category_grid(sweep, f"As in {ablation.source}")
    elif ablation and ablation.across:
        tables["paper"] = pivot_grid(sweep, ablation.across, f"As in {ablation.source}")
    return tables


def write_tables(sweep: Sweep, folder: Path, ablation: SweepPreset | None = None) -> list[Path]:
    """Write all tables in all formats, and return the files."""
    written = []
    (folder / TABLES).mkdir(parents=True, exist_ok=True)
    for name, grid in grids(sweep, ablation).items():
        for suffix, form in FORMATS.items():
            path = folder / TABLES / f"{name}.{suffix}"
            path.write_text(form(grid), encoding="utf-8")
            written.append(path)
    return written


def write_figures(sweep: Sweep, folder: Path, ablation: SweepPreset | None = None) -> list[Path]:
    """Draw all figures in all formats, and return the files.

    Raises:
        UsageError: matplotlib is not installed.
    """
    drawn = sweep.figures(ablation.along if ablation else None)
    if drawn and ablation and ablation.by_category:
        drawn["categories"] = category_figure(sweep.cells)
    return [
        save(figure, folder / FIGURES / f"{name}.{suffix}")
        for name, figure in drawn.items()
        for suffix in DRAWN
    ]
