"""A sweep as tables: every cell with all its figures, and the shape that papers print."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ..export.grid import Cell, Column, Grid, text_column
from ..statistics.resampling import Resampling
from ..statistics.statistic import Statistic
from .measuring import AVERAGE, PREFERENCE, Measured, Place, Row, agreement_of, figures_of, heads, rows_of

if TYPE_CHECKING:
    from ..agreement import PreferenceAgreement, ScoreAgreement
    from .extras import Further
    from .result import CellResult, Sweep

SHORT = {"spearman": "rho", "kendall": "tau", "accuracy": "accuracy", "kappa": "kappa"}
"""How statistics are called where there is little room."""


def cell_grid(sweep: Sweep, title: str = "Agreement by cell", extras: Sequence[Further] = ()) -> Grid:
    """A line a cell: its values, agreement over all aspects, the gain over the first cell, and what a verdict takes.

    Args:
        sweep: what is shown.
        title: of the table.
        extras: further columns.
    """
    measured = sweep.measured()
    lead = leading(places_of(measured))
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
            one.calls_each,
            one.cost_each,
        )
        for one, found in zip(sweep.cells, measured, strict=True)
    ]
    grid = Grid(title, columns, tuple(rows), notes_of(sweep, measured))
    return _without_empty(grid, kept=len(sweep.axes) + len(lead))


def aspect_grid(sweep: Sweep, title: str = "Agreement by aspect") -> Grid:
    """Two lines a cell, one for each statistic; the aspects beside each other."""
    measured = sweep.measured()
    places = places_of(measured)
    subjects = list(dict.fromkeys(place.subject for place in places))
    columns = (
        *(text_column(axis.name) for axis in sweep.axes),
        text_column("figure"),
        *(Column(subject, interval=False) for subject in subjects),
    )
    rows = [
        (*one.cell.labels.values(), SHORT[name], *(found.figures.get(Place(each, name)) for each in subjects))
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
        for place in leading(places_of(measured))
    ]
    return Grid(title, columns, tuple(rows), notes_of(sweep, measured))


def category_grid(sweep: Sweep, title: str) -> Grid:
    """A line a cell, the items' categories beside each other: in each the first figure that papers print, and rows."""
    categories = categories_of(sweep)
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


def categories_of(sweep: Sweep) -> list[str]:
    """The items' categories, those that a cell is named after first."""
    labels = {label for one in sweep.cells for label in one.cell.labels.values()}
    found = dict.fromkeys(head["category"] for one in sweep.cells for head in heads(one) if head["category"])
    return sorted(found, key=lambda category: category not in labels)


def all_rows(one: CellResult, category: str) -> list[Row]:
    """The verdicts of a cell on items of one category."""
    return [row for rows in rows_of(one, category).values() for row in rows]


def _first(found: ScoreAgreement | PreferenceAgreement) -> Statistic:
    return next(iter(figures_of(found, within=False).values()))


def places_of(measured: Sequence[Measured]) -> list[Place]:
    """All figures that any cell has, those of the average first."""
    places = dict.fromkeys(place for found in measured for place in found.figures)
    return sorted(places, key=lambda place: place.subject != AVERAGE)


def leading(places: Iterable[Place]) -> list[Place]:
    """The figures that stand for all: of the average over aspects, else of the only subject, else of each."""
    listed = list(places)
    return [place for place in listed if place.subject == AVERAGE] or listed


def name_of(place: Place) -> str:
    """A figure in words.

    >>> name_of(Place("fluency", "spearman")), name_of(Place("preference", "accuracy"))
    ('fluency rho', 'accuracy')
    """
    short = SHORT[place.statistic]
    return short if place.subject == PREFERENCE else f"{place.subject} {short}"


def shown(axis: str, label: str) -> str:
    """A value as it is called where its axis is not named: what says little by itself, with its axis.

    >>> shown("n", "3"), shown("tie_breaker", "true"), shown("persona", "plain")
    ('n=3', 'tie_breaker=true', 'plain')
    """
    telling = not label.replace(".", "").isdigit() and label not in ("true", "false")
    return label if telling else f"{axis}={label}"


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


def _figure(found: Measured | None, place: Place) -> Cell:
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


def _says_something(cell: Cell) -> bool:
    return (cell.value is not None) if isinstance(cell, Statistic) else bool(cell)
