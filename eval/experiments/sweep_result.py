"""Define the result of a sweep, lay out its tables, draw its figures, and write both to files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import cycle, starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ...state.errors import UsageError
from ...state.protocols import Ablation
from ..analysis import Study
from ..report.chart_style import save
from ..report.charts import Panel, columns, lines
from ..report.first_screen import first_screens
from ..report.labels import config_hash, interval_note
from ..results.agreement import Agreement, ScoreAgreement
from ..results.experiment_result import ExperimentResult
from ..statistics.metrics import METRICS
from ..statistics.resampling import Resampling, Statistic, caution
from ..tables import to_csv, to_latex, to_markdown
from ..tables.grid import CellValue, Column, Grid, share_column, text_column
from ..tables.screen import FirstScreen
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
from .finding import findings_of
from .sweep_record import FILE, add_result

if TYPE_CHECKING:
    from matplotlib.figure import Figure


MOST_COMPARED = 100
"""The most cells for which all pairs are compared; each pair takes a hundredth of a second."""


@dataclass(frozen=True)
class Sweep(ExperimentResult):
    """The result of a sweep.

    Attributes:
        axes: the settings that varied.
        cells: the started cells, in order.
        wanted: the number of cells of the complete sweep.
        calls_made: the number of answered requests, over all its starts.
        metric: the metric for the comparison of cells (one of ``METRICS``); ``None`` for the
            default of the data.
        ablation: its ready-made plan, if any.
        failed: items without a verdict, in all cells.
    """

    file = FILE
    axes: tuple[Axis, ...]
    cells: tuple[CellResult, ...]
    wanted: int
    calls_made: int
    metric: str | None = None
    ablation: Ablation | None = None
    failed: int = field(init=False)

    def __post_init__(self) -> None:
        failed = sum(len(cell.evaluation.failed) for cell in self.cells)
        object.__setattr__(self, "failed", failed)

    @property
    def calls_alone(self) -> int:
        """The calls behind all verdicts, as if each cell had been run alone."""
        return sum(cell.usage.total.calls for cell in self.cells)

    @property
    def judged_folders(self) -> list[Path]:
        """The folders of the cells that have results."""
        kept = (cell.evaluation for cell in self.cells if len(cell.evaluation.results))
        return [evaluation.folder for evaluation in kept if evaluation.folder]

    @cached_property
    def note(self) -> str | None:
        """The warning about the offline judge, which must precede all output on the sweep."""
        return next(
            filter(None, (cell.evaluation.manifest.get("note") for cell in self.cells)), None
        )

    def measured(self) -> tuple[Measured, ...]:
        """Measure each cell's agreement with humans, and its gain over the first cell.

        Intervals come from 1000 resamples, at 95 %, with seed 0.
        """
        return self._measured

    @cached_property
    def _measured(self) -> tuple[Measured, ...]:
        # Cached, because tables, notes and figures all use it.
        return measure(self.cells, self.metric)

    @cached_property
    def by_category(self) -> tuple[Mapping[str, Agreement], ...]:
        """Each cell's agreement with humans by category of items."""
        return tuple(map(agreement_by_category, self.cells))

    @property
    def categories(self) -> list[str]:
        """The items' categories; categories with a cell of the same name come first."""
        labels = {label for cell in self.cells for label in cell.cell.labels.values()}
        categories = dict.fromkeys(category for of_cell in self.by_category for category in of_cell)
        # False sorts before True, and sorting is stable, so each part preserves its order.
        return sorted(categories, key=lambda category: category not in labels)

    @property
    def accuracies(self) -> list[list[Statistic | None]]:
        """Each cell's accuracy in each category, or rho for scores."""

        def accuracy(of: Agreement) -> Statistic:
            return of.over_rows["spearman"] if isinstance(of, ScoreAgreement) else of.accuracy

        names = self.categories
        return [
            [accuracy(of[name]) if name in of else None for name in names]
            for of in self.by_category
        ]

    def screen(self) -> FirstScreen:
        """Compose the first screen: the cell that agrees best with humans, as in a report."""
        return self._screen

    @cached_property
    def _screen(self) -> FirstScreen:
        folders = self.judged_folders
        if not folders:
            return FirstScreen("", "Nothing was judged yet", Grid("", (), ()))
        if len(folders) > MOST_COMPARED:
            few = f"More than {MOST_COMPARED} cells are not compared with each other: report on some of them."
            return FirstScreen("", "No best cell is named", Grid("", (), ()), few)
        study = Study.of(folders, metric=self.metric)
        # All cells judge the same data, so there is one screen.
        return first_screens(study, [finding.sentence for finding in findings_of(study)])[0]

    def grids(self) -> Iterator[Grid]:
        """Yield the tables of the cells."""
        yield from grids(self, self.ablation).values()

    def to_json(self) -> dict[str, Any]:
        """Return the headline, and all sentences below it."""
        screen = self.screen()
        return {"headline": screen.title, "answers": list(screen.sentences)}

    def write(self) -> Self:
        """Add the result to the record in the folder, and return the result."""
        if self.folder is not None:
            add_result(self.folder, {**self.to_json(), **self.shown()})
        return self

    def table(self) -> Grid:
        """Lay out all cells with agreement, interval, cost per verdict, and gain over the first."""
        return cell_grid(self)

    def figures(self, along: str | None = None) -> dict[str, Figure]:
        """Draw agreement along one axis, with a line or row of bars for each other combination.

        The names are ``agreement``, and ``aspects`` for several aspects; empty without labels.

        Args:
            along: the axis of the figures; default: the first numeric axis, else the first.
                first.

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
        # At most four panels: with several aspects, this figure shows their averages, and another
        # figure shows each aspect.
        drawn = {"agreement": _figure(self, axis, leading(keys)[:4])}
        # The leading metric of each aspect comes first.
        of_aspects = [
            key for key in keys if key.subject != AVERAGE and key.statistic == keys[0].statistic
        ]
        if len(of_aspects) > 1:
            drawn["aspects"] = _figure(self, axis, of_aspects)
        return drawn


SHORT = {name: metric.short.removesuffix(" within") for name, metric in METRICS.items()}
"""Short names of metrics for narrow columns; a note explains means within groups."""


def cell_grid(sweep: Sweep, title: str = "Agreement by cell", extras: Sequence[str] = ()) -> Grid:
    """Lay out one row per cell: its values, agreement over all aspects, gain, calls and cost.

    Args:
        sweep: the sweep.
        title: the title of the table.
        extras: names of extra columns (``EXTRAS``).
    """
    measured = sweep.measured()
    usage = [cell.usage for cell in sweep.cells]
    lead = leading(metric_keys(measured))
    columns: dict[Column, Sequence[CellValue]] = {
        Column(name_of(key), best="high"): [metrics.figures.get(key) for metrics in measured]
        for key in lead
    }
    further: dict[Column, Sequence[CellValue]] = {}
    for key in lead[:1]:
        gain = Column(
            f"gain in {SHORT[key.statistic]}", interval=not extras, about="over the first cell"
        )
        further[gain] = [metrics.gains.get(key) for metrics in measured]
    flips = share_column("flips", about="verdicts that differ from the first cell's")
    further[flips] = [metrics.flips for metrics in measured]
    for extra in map(EXTRAS.__getitem__, extras):
        further[extra] = [extra.of(cell) if extra.of else None for cell in sweep.cells]
    calls = Column("calls each", digits=1, about="model calls per verdict")
    cost = Column("cost each", form="money", about="US dollars per verdict")
    further[Column("failed")] = [len(cell.evaluation.failed) for cell in sweep.cells]
    further |= {calls: [of.calls_each for of in usage], cost: [of.cost_each for of in usage]}
    # Leave out empty columns: gains of a single cell, and failures if there are none.
    for column, values in further.items():
        if any(
            value.value is not None if isinstance(value, Statistic) else value for value in values
        ):
            columns[column] = values
    rows = ([values[place] for values in columns.values()] for place in range(len(sweep.cells)))
    return _by_cell(sweep, title, columns, rows)


def aspect_grid(sweep: Sweep) -> Grid:
    """Lay out two rows per cell, one for each metric, with the aspects side by side."""
    keys = metric_keys(sweep.measured())
    measured = sweep.measured()
    subjects, names = (list(dict.fromkeys(of)) for of in zip(*keys, strict=True))
    headings = (text_column("figure"), *(Column(subject, interval=False) for subject in subjects))
    pairs = [(name, metrics.figures) for name in names for metrics in measured]
    rows = [
        (SHORT[name], *(figures.get(MetricKey(of, name)) for of in subjects))
        for name, figures in pairs
    ]
    return _by_cell(sweep, "Agreement by aspect", headings, rows)


def category_grid(sweep: Sweep, title: str) -> Grid:
    """Lay out one row per cell with the categories side by side, and item counts in a note."""
    by_category = sweep.by_category
    names = sweep.categories
    most = [max(of_cell[name].n for of_cell in by_category if name in of_cell) for name in names]
    counted = ", ".join(f"{name} {rows}" for name, rows in zip(names, most, strict=True))
    headings = [Column(name, best="high", interval=False) for name in names]
    note = f"Accuracy by category of items; rows: {counted}."
    return _by_cell(sweep, title, headings, sweep.accuracies, note)


def pivot_grid(sweep: Sweep, across: str, title: str) -> Grid:
    """Lay out one axis side by side, with a row for each other combination and metric."""
    keys = leading(metric_keys(sweep.measured()))
    (axis,) = (axis for axis in sweep.axes if axis.name == across)
    others = [other.name for other in sweep.axes if other.name != across]
    headings = (
        *map(text_column, (*others, "figure")),
        *(Column(shown(across, v)) for v in axis.labels),
    )
    rows = [
        (*dict(at).values(), name_of(key), *(metrics.figures.get(key) for metrics in along))
        for at, along in _lines_along(sweep, axis).items()
        for key in keys
    ]
    return _with_notes(sweep, Grid(title, headings, tuple(rows)))


def _lines_along(sweep: Sweep, axis: Axis) -> dict[tuple[tuple[str, str], ...], list[Measured]]:
    """Return the measured values along an axis, by the labels of the other axes."""
    along: dict[tuple[tuple[str, str], ...], dict[str, Measured]] = {}
    for cell, metrics in zip(sweep.cells, sweep.measured(), strict=True):
        others = dict(cell.cell.labels)
        label = others.pop(axis.name)
        along.setdefault(tuple(others.items()), {})[label] = metrics
    # A stopped sweep has no cells for some labels.
    return {at: [by.get(label, Measured()) for label in axis.labels] for at, by in along.items()}


def _by_cell(
    sweep: Sweep,
    title: str,
    headings: Iterable[Column],
    rows: Iterable[Iterable[CellValue]],
    *notes: str,
) -> Grid:
    """Lay out a table with one or more rows per cell, each beginning with the cell's labels."""
    labels = (text_column(axis.name) for axis in sweep.axes)
    cells = cycle(sweep.cells)
    whole = tuple(
        (*cell.cell.labels.values(), *row) for cell, row in zip(cells, rows, strict=False)
    )
    return _with_notes(sweep, Grid(title, (*labels, *headings), whole, notes))


def name_of(key: MetricKey) -> str:
    """Name a value in words.

    >>> name_of(MetricKey("fluency", "spearman")), name_of(MetricKey("preference", "accuracy"))
    ('fluency rho', 'accuracy')
    """
    short = SHORT[key.statistic]
    return short if key.subject == PREFERENCE else f"{key.subject} {short}"


def _with_notes(sweep: Sweep, grid: Grid) -> Grid:
    """Add the notes that are needed to interpret the table."""
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
            means = {"rows": "over all rows", "groups": "means within groups"}
            how = means.get(METRICS[keys[0].statistic].unit, "over systems")
            names = dict.fromkeys(key.statistic for key in keys)
            titles = (f"{SHORT[name]} {METRICS[name].coefficient_title}" for name in names)
            notes.append(f"{', '.join(titles)}: {how}.")
        counts = [count for metrics in measured for count in metrics.rows.values()]
        rows = " to ".join(f"{count:,}" for count in sorted({min(counts), max(counts)}))
        notes.append(f"{rows} rows each.")
        notes += [interval_note(Resampling())] if grid.has_intervals else []
        if len(sweep.cells) > 1:
            notes.append("gains: over the first cell, on the rows that both judged")
        # Cells may have judged different rows, so use the fewest clusters of each subject.
        clusters = [metrics.units for metrics in measured]
        subjects = dict.fromkeys(subject for of_cell in clusters for subject in of_cell)
        fewest = {name: min(of[name] for of in clusters if name in of) for name in subjects}
        notes += (f"Caution: {few}." for few in caution(fewest))
    # Compare with the calls of the cells run one by one.
    alone = sweep.calls_alone
    made = sweep.calls_made
    saved = (
        f"; one by one, the cells take {alone:,}: {1 - made / alone:.0%} saved"
        if alone > made
        else ""
    )
    signatures = [
        signature
        for cell in sweep.cells
        for signature in cell.evaluation.manifest.get("signatures", {}).values()
    ]
    return replace(
        grid,
        notes=(*grid.notes, *notes, f"{made:,} calls made{saved}."),
        configs=(config_hash("\n".join(signatures)),),
    )


def category_figure(sweep: Sweep) -> Figure:
    """Draw accuracy by category of items, with a row of bars for each cell."""
    series = {
        ", ".join(starmap(shown, cell.cell.labels.items())): accuracies
        for cell, accuracies in zip(sweep.cells, sweep.accuracies, strict=True)
    }
    return columns(
        [Panel("", METRICS["accuracy"].title, series)], sweep.categories, "category of items"
    )


def shown(axis: str, label: str) -> str:
    """Return a value's label without the axis; numbers and flags include the name of the axis.

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
    # Labels have no order or distance, so a line would have no meaning.
    numbers = axis.numbers
    return (
        columns(panels, axis.labels, axis.name)
        if numbers is None
        else lines(panels, numbers, axis.name)
    )


FORMATS: Mapping[str, Callable[[Grid], str]] = {"md": to_markdown, "csv": to_csv, "tex": to_latex}
DRAWN = ("svg", "png", "pdf")


def grids(sweep: Sweep, ablation: Ablation | None = None) -> dict[str, Grid]:
    """Return a sweep's tables by name: ``cells``, and ``aspects`` and ``paper`` if they apply."""
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
    """Draw all figures in all formats and return the files.

    Raises:
        UsageError: matplotlib is not installed.
    """
    drawn = sweep.figures(ablation.along if ablation else None)
    if drawn and ablation and ablation.by_category:
        drawn["categories"] = category_figure(sweep)
    files = ((figure, f"{name}.{suffix}") for name, figure in drawn.items() for suffix in DRAWN)
    return [save(figure, folder / "figures" / file) for figure, file in files]
