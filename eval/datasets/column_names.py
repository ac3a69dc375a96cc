"""Read a file whose columns have names of their own: ``candidate=summary`` takes the candidate from ``summary``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...state.checked import did_you_mean
from ...state.errors import DataError, UsageError
from .files import Row
from .items import FIELDS


def parse_columns(text: str) -> dict[str, str]:
    """Read which columns an item's fields are taken from.

    Raises:
        UsageError: it is of another form, or names no field of an item.

    >>> parse_columns("candidate=summary,human.fluency=rating")
    {'candidate': 'summary', 'human.fluency': 'rating'}
    """
    columns: dict[str, str] = {}
    for pair in text.split(","):
        field, equals, column = (part.strip() for part in pair.partition("="))
        if not (field and equals and column):
            raise UsageError(f"--columns: {pair!r} is not of the form FIELD=COLUMN")
        if field.partition(".")[0] not in FIELDS:
            names = sorted(FIELDS)
            meant = did_you_mean(field, names)
            raise UsageError(f"--columns: an item has no field {field!r}; it has {', '.join(names)}{meant}")
        if field in columns:
            raise UsageError(f"--columns: {field!r} is taken from two columns, {columns[field]} and {column}")
        columns[field] = column
    return columns


def renamed(rows: Iterable[Row], columns: Mapping[str, str], place: str) -> Iterator[Row]:
    """Yield the rows with the fields that an item has; a cell that is empty leaves its field out.

    Raises:
        DataError: no row has anything in one of the columns.
    """
    unseen, names = set(columns.values()), dict[str, None]()
    for number, row in rows:
        made = dict(row)
        for field, column in columns.items():
            path = column.split(".")
            made.pop(field, None)
            if (value := _cell(row, path)) is not None:
                unseen.discard(column)
                _put(made, field, value)
        if unseen:
            names.update(dict.fromkeys(row))
        yield number, made
    if unseen:
        raise DataError(
            f"{place}: no row has anything in the column {min(unseen)!r}; there are {', '.join(names)}"
        )


def _cell(row: Mapping[str, Any], path: Sequence[str]) -> Any:
    """Return a cell by the name of its column; the reader has made ``human`` with ``fluency`` of ``human.fluency``."""
    value: Any = row
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _put(row: dict[str, Any], field: str, value: Any) -> None:
    outer, _, inner = field.partition(".")
    if not inner:
        row[outer] = value
        return
    held = row.get(outer)
    # A copy, since the row that was read may be used again.
    row[outer] = {**(held if isinstance(held, dict) else {}), inner: value}
