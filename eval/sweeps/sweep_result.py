"""What a sweep came to: its tables, and the files written of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..report.chart_style import save
from ..statistics.resampling import Resampling, Statistic
from ..tables import to_csv, to_latex, to_markdown
from ..tables.grid import CellValue, Column, Grid, text_column
from .cell_metrics import (
    AVERAGE,
    EXTRAS,
    PREFERENCE,
    Measured,
    MetricKey,
    agreement_of,
    all_rows,
    categories_of,
    figures_of,
    leading,
    measure,
    metric_keys,
    shown,
)
from .cells import Axis, CellResult
from .presets import Ablation
from .sweep_charts import category_figure, figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..agreement import PreferenceAgreement, ScoreAgreement
    from .cell_metrics import ExtraMetric


@dataclass(frozen=True)
class Sweep:
    """What a sweep came to.

    Attributes:
        axes: what varied.
        cells: those that were begun, in order.
        wanted: how many cells there are to be.
        folder: where it is kept, if anywhere.
        calls_made: requests that were answered, over all its starts.
        cost_made: the same in US dollars; ``None`` where a price is unknown.
        stopped: why it ended before its work was done; ``None`` if all is done.
    """

    axes: tuple[Axis, ...]
    cells: tuple[CellResult, ...]
    wanted: int
    folder: Path | None
    calls_made: int
    cost_made: float | None
    stopped: str | None = None
    _measured: dict[Any, tuple[Measured, ...]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def calls_alone(self) -> int:
        """The calls behind all verdicts: what the cells would have taken one by one."""
        return sum(one.usage.total.calls for one in self.cells)

    @property
    def failed(self) -> int:
        """Items without a verdict, in all cells."""
        return sum(one.failed for one in self.cells)

    @cached_property
    def note(self) -> str | None:
        """What must stand at the head of everything shown of it."""
        notes = (one.evaluation.manifest.get("note") for one in self.cells)
        return next(filter(None, notes), None)

    @property
    def signatures(self) -> Mapping[str, str]:
        """Of each cell, by its title."""
        return {one.cell.title: one.evaluation.manifest["signatures"][one.protocol] for one in self.cells}

    def measured(self, resampling: Resampling | None = None) -> tuple[Measured, ...]:
        """How well each cell agrees with people, and what it gains over the first cell.

        Args:
            resampling: how intervals are made; default 1000 resamples, 95 %, seed 0.
        """
        if resampling not in self._measured:
            self._measured[resampling] = measure(self.cells, resampling)
        return self._measured[resampling]

    def table(self) -> Grid:
        """All cells with agreement, its interval, what a verdict takes, and the gain over the first cell."""
        return cell_grid(self)

    def figures(self, along: str | None = None) -> dict[str, Figure]:
        """Agreement along one axis, a line or a row of columns for each combination of the others; by name.

        Args:
            along: the axis that figures run along; default: the first one of numbers, else the first.

        Raises:
            UsageError: no such axis; matplotlib is not installed.
        """
        return figures(self.axes, self.cells, self.measured(), along)


SHORT = {"spearman": "rho", "kendall": "tau", "accuracy": "accuracy", "kappa": "kappa"}
"""How statistics are called where there is little room."""


def cell_grid(sweep: Sweep, title: str = "Agreement by cell", extras: Sequence[ExtraMetric] = ()) -> Grid:
    """A line a cell: its values, agreement over all aspects, the gain over the first cell, and what a verdict takes.

    Args:
        sweep: what is shown.
        title: of the table.
        extras: further columns.
    """
    measured = sweep.measured()
    lead = leading(metric_keys(measured))
    columns = (
        *(text_column(axis.name) for axis in sweep.axes),
        *(Column(name_of(place), best="high") for place in lead),
        *(
            Column(f"gain in {SHORT[place.statistic]}", interval=not extras, about="over the first cell")
            for place in lead[:1]
        ),
        *(Column(extra.name, digits=extra.digits, about=extra.about) for extra in extras),
        Column("failed"),
        Column("calls each", digits=1, about="model calls a verdict"),
        Column("cost each", form="money", about="US dollars a verdict"),
    )
    rows = [
        (
            *one.cell.labels.values(),
            *(found.figures.get(place) for place in lead),
            *(found.gains.get(place) for place in lead[:1]),
            *(extra.compute(one) for extra in extras),
            one.failed,
            one.usage.calls_each,
            one.usage.cost_each,
        )
        for one, found in zip(sweep.cells, measured, strict=True)
    ]
    grid = Grid(title, columns, tuple(rows), notes_of(sweep, measured))
    return _without_empty(grid, kept=len(sweep.axes) + len(lead))


def aspect_grid(sweep: Sweep, title: str = "Agreement by aspect") -> Grid:
    """Two lines a cell, one for each statistic; the aspects beside each other."""
    measured = sweep.measured()
    places = metric_keys(measured)
    subjects = list(dict.fromkeys(place.subject for place in places))
    columns = (
        *(text_column(axis.name) for axis in sweep.axes),
        text_column("figure"),
        *(Column(subject, interval=False) for subject in subjects),
    )
    rows = [
        (
            *one.cell.labels.values(),
            SHORT[name],
            *(found.figures.get(MetricKey(each, name)) for each in subjects),
        )
        for name in dict.fromkeys(place.statistic for place in places)
        for one, found in zip(sweep.cells, measured, strict=True)
    ]
    return Grid(title, columns, tuple(rows), notes_of(sweep, measured))


def pivot_grid(sweep: Sweep, across: str, title: str) -> Grid:
    """The values of one axis beside each other, one line for each combination of the others and each figure."""
    measured = sweep.measured()
    (axis,) = (axis for axis in sweep.axes if axis.name == across)
    others = [other.name for other in sweep.axes if other.name != across]
    found: dict[tuple[str, ...], dict[str, Measured]] = {}
    for one, each in zip(sweep.cells, measured, strict=True):
        rest = tuple(one.cell.labels[name] for name in others)
        found.setdefault(rest, {})[one.cell.labels[across]] = each
    beside = (Column(shown(across, label)) for label in axis.labels)
    columns = (*map(text_column, others), text_column("figure"), *beside)
    rows = [
        (*rest, name_of(place), *(_figure(cells.get(label), place) for label in axis.labels))
        for rest, cells in found.items()
        for place in leading(metric_keys(measured))
    ]
    return Grid(title, columns, tuple(rows), notes_of(sweep, measured))


def category_grid(sweep: Sweep, title: str) -> Grid:
    """A line a cell, the items' categories beside each other: in each the first figure that papers print, and rows."""
    categories = categories_of(sweep.cells)
    measured = {
        category: [
            agreement_of(all_rows(one, category), Resampling(), one.evaluation.rule) for one in sweep.cells
        ]
        for category in categories
    }
    rows = []
    for number, one in enumerate(sweep.cells):
        found = [measured[category][number] for category in categories]
        rows.append((*one.cell.labels.values(), *(None if each is None else _first(each) for each in found)))
    counted = ", ".join(
        f"{category} {max((each.n for each in measured[category] if each), default=0)}"
        for category in categories
    )
    columns = (
        *(text_column(axis.name) for axis in sweep.axes),
        *(Column(category, best="high", interval=False) for category in categories),
    )
    notes = notes_of(sweep, sweep.measured())
    return Grid(title, columns, tuple(rows), (f"Accuracy by category of items; rows: {counted}.", *notes))


def _first(found: ScoreAgreement | PreferenceAgreement) -> Statistic:
    return next(iter(figures_of(found, within=False).values()))


def name_of(place: MetricKey) -> str:
    """A figure in words.

    >>> name_of(MetricKey("fluency", "spearman")), name_of(MetricKey("preference", "accuracy"))
    ('fluency rho', 'accuracy')
    """
    short = SHORT[place.statistic]
    return short if place.subject == PREFERENCE else f"{place.subject} {short}"


def notes_of(sweep: Sweep, measured: Sequence[Measured]) -> tuple[str, ...]:
    """What a reader must know to read the figures."""
    notes = [sweep.note] if sweep.note else []
    if sweep.stopped:
        judged = sum(one.judged for one in sweep.cells)
        notes.append(
            f"Unfinished ({sweep.stopped}): {len(sweep.cells)} of {sweep.wanted} cells begun, {judged:,} verdicts."
        )
    if any(found.rows for found in measured):
        subjects = {subject for found in measured for subject in found.rows}
        if subjects - {PREFERENCE}:
            how = "means within groups" if all(found.within for found in measured) else "over all rows"
            notes.append(f"rho Spearman, tau Kendall's tau-b: {how}.")
        counts = {count for found in measured for count in found.rows.values()}
        least, most = min(counts), max(counts)
        notes.append(f"{least:,} rows each." if least == most else f"{least:,} to {most:,} rows each.")
        notes.append(
            "Intervals: 95 %, 1,000 bootstrap resamples of groups, seed 0; gains: over the first cell, paired."
        )
    notes.append(paid(sweep))
    return tuple(notes)


def paid(sweep: Sweep) -> str:
    """What the cells have taken together, beside what they would have taken one by one."""
    alone, made = sweep.calls_alone, sweep.calls_made
    if not alone or made >= alone:
        return f"{made:,} calls made."
    return f"{made:,} calls made, where the cells one by one take {alone:,}: {1 - made / alone:.0%} saved."


def _figure(found: Measured | None, place: MetricKey) -> CellValue:
    return None if found is None else found.figures.get(place, Statistic(None))


def _without_empty(grid: Grid, kept: int) -> Grid:
    """The first columns, and of the others those that say something: no gains of a single cell, no failures of none."""
    wanted = [
        at
        for at in range(len(grid.columns))
        if at < kept or any(_says_something(row[at]) for row in grid.rows)
    ]
    columns = tuple(grid.columns[at] for at in wanted)
    return Grid(grid.title, columns, tuple(tuple(row[at] for at in wanted) for row in grid.rows), grid.notes)


def _says_something(cell: CellValue) -> bool:
    return (cell.value is not None) if isinstance(cell, Statistic) else bool(cell)


TABLES, FIGURES = "tables", "figures"
FORMATS: Mapping[str, Callable[[Grid], str]] = {"md": to_markdown, "csv": to_csv, "tex": to_latex}
DRAWN = ("svg", "png", "pdf")


def grids(sweep: Sweep, ablation: Ablation | None = None) -> dict[str, Grid]:
    """The tables of a sweep by name: ``cells``, ``aspects`` if several, ``paper`` if the source has another shape."""
    extras = [EXTRAS[name] for name in ablation.extras] if ablation else []
    title = f"{ablation.name}: {ablation.question}" if ablation else "Agreement by cell"
    found = {"cells": cell_grid(sweep, title, extras)}
    if any(place.subject == AVERAGE for each in sweep.measured() for place in each.figures):
        found["aspects"] = aspect_grid(sweep)
    if ablation and ablation.by_category:
        found["paper"] = category_grid(sweep, f"As in {ablation.source}")
    elif ablation and ablation.across:
        found["paper"] = pivot_grid(sweep, ablation.across, f"As in {ablation.source}")
    return found


def write_tables(sweep: Sweep, folder: Path, ablation: Ablation | None = None) -> list[Path]:
    """Write all tables in all forms; gives the files."""
    written = []
    (folder / TABLES).mkdir(parents=True, exist_ok=True)
    for name, grid in grids(sweep, ablation).items():
        for suffix, form in FORMATS.items():
            path = folder / TABLES / f"{name}.{suffix}"
            path.write_text(form(grid), encoding="utf-8")
            written.append(path)
    return written


def write_figures(sweep: Sweep, folder: Path, ablation: Ablation | None = None) -> list[Path]:
    """Draw all figures in all forms; gives the files.

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
