"""Write tables and first screens as plain JSON, and read them again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..statistics.resampling import Statistic
from .grid import CellValue, Column, Grid
from .screen import FirstScreen

_COLUMN = ("name", "digits", "align", "form", "best", "interval", "about")


def grid_to_json(grid: Grid) -> dict[str, Any]:
    """Write a table as plain JSON.

    >>> from .grid import text_column
    >>> grid = Grid("Agreement", (text_column("judge"), Column("rho")), (("debate", Statistic(0.5, 0.25, 0.75)),))
    >>> grid_from_json(grid_to_json(grid)) == grid
    True
    """
    columns = [{name: getattr(column, name) for name in _COLUMN} for column in grid.columns]
    rows = [[_cell_to_json(cell) for cell in row] for row in grid.rows]
    return {"title": grid.title, "columns": columns, "rows": rows, "notes": list(grid.notes)}


def grid_from_json(fields: Mapping[str, Any]) -> Grid:
    """Read a table that ``grid_to_json`` wrote.

    Raises:
        KeyError, TypeError, ValueError: the fields do not describe a table.
    """
    columns = tuple(
        Column(**{name: column[name] for name in _COLUMN}) for column in fields["columns"]
    )
    rows = tuple(tuple(_cell_from_json(cell) for cell in row) for row in fields["rows"])
    return Grid(str(fields["title"]), columns, rows, tuple(map(str, fields["notes"])))


def _cell_to_json(cell: CellValue) -> Any:
    if isinstance(cell, Statistic):
        return {"value": cell.value, "low": cell.low, "high": cell.high}
    return cell


def _cell_from_json(cell: Any) -> CellValue:
    return (
        Statistic(cell["value"], cell["low"], cell["high"]) if isinstance(cell, Mapping) else cell
    )


def screen_to_json(screen: FirstScreen) -> dict[str, Any]:
    """Write a first screen as plain JSON.

    >>> screen = FirstScreen("", "No clear winner between a and b", Grid("", (), ()), warnings=("Demo mode.",))
    >>> screen_from_json(screen_to_json(screen)) == screen
    True
    """
    return {**vars(screen), "table": grid_to_json(screen.table)}


def screen_from_json(fields: Mapping[str, Any]) -> FirstScreen:
    """Read a first screen that ``screen_to_json`` wrote.

    Raises:
        KeyError, TypeError, ValueError: the fields do not describe a first screen.
    """
    return FirstScreen(
        name=str(fields["name"]),
        headline=str(fields["headline"]),
        table=grid_from_json(fields["table"]),
        evidence=str(fields["evidence"]),
        quotable=str(fields["quotable"]),
        warnings=tuple(map(str, fields["warnings"])),
        others=tuple(map(str, fields["others"])),
    )
