"""Make tables of records whose fields say which columns they are: a figure is described once, where it is defined.

A field is a column if its type says so, and stands in the table in the order of the fields::

    @dataclass(frozen=True)
    class Changes:
        n: Annotated[int, Column("verdicts")]
        p: Annotated[float | None, Column("p", form="p", about="sign test of helpful against harmful")]
        labelled: int                                        # no column
        ended: Annotated[Mapping[str, int], text_column("stop reason"), counts]     # written by ``counts``
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, get_type_hints

from .grid import CellValue, Column


class _Field(NamedTuple):
    """A field that is a column: its name, the column, and what turns its value into a cell."""

    name: str
    column: Column
    write: Callable[[Any], CellValue] | None


@cache
def _fields(record: type[Any]) -> tuple[_Field, ...]:
    marked = {
        name: getattr(hint, "__metadata__", ())
        for name, hint in get_type_hints(record, include_extras=True).items()
    }
    return tuple(
        _Field(name, marks[0], marks[1] if len(marks) > 1 else None)
        for name, marks in marked.items()
        if marks and isinstance(marks[0], Column)
    )


def columns_of(record: type) -> tuple[Column, ...]:
    """Return the columns that a type of record declares, in the order of its fields.

    >>> from dataclasses import make_dataclass
    >>> from typing import Annotated
    >>> Count = make_dataclass("Count", [("agent", str), ("turns", Annotated[int, Column("turns")])])
    >>> [column.name for column in columns_of(Count)], cells_of(Count("critic", 3))
    (['turns'], (3,))
    """
    return tuple(field.column for field in _fields(record))


def cells_of(record: Any) -> tuple[CellValue, ...]:
    """Return a record's values, a cell for each of its columns."""
    values = ((field, getattr(record, field.name)) for field in _fields(record.__class__))
    return tuple(value if field.write is None else field.write(value) for field, value in values)


def used_columns(
    columns: Sequence[Column], rows: Iterable[Sequence[CellValue]]
) -> tuple[tuple[Column, ...], list[tuple[CellValue, ...]]]:
    """Leave out the columns that are empty in every row: scores and comparisons do not have the same figures."""
    rows = list(rows)
    used = [place for place in range(len(columns)) if any(row[place] is not None for row in rows)]
    return tuple(columns[place] for place in used), [tuple(row[place] for place in used) for row in rows]


def counts(numbers: Mapping[Any, int]) -> str:
    """Write counts by what is counted.

    >>> counts({1: 4200, 2: 3})
    '1: 4,200, 2: 3'
    """
    return ", ".join(f"{name}: {number:,}" for name, number in numbers.items())
