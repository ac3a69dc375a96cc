"""Define a table independently of its format: values in rows and columns, which every format lays out alike.

Values are computed elsewhere. This file says how they are written: digits, intervals, money, a dash for a missing one.
A column knows its value in a record, so that a figure is described once. The fields of a record may be columns, too; a
field's docstring says what a reader of the table is told of it::

    @dataclass(frozen=True)
    class Changes:
        n: Annotated[int, Column("verdicts")]
        p: Annotated[float | None, Column("p", form="p")]
        '''sign test of helpful against harmful'''
        labelled: int                                                               # no column
        ended: Annotated[Mapping[str, int], text_column("stop reason", of=counts)]  # written by ``counts``
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import isfinite
from typing import Any, Literal, NamedTuple, get_type_hints

from ...state.checked import field_docstrings
from ..statistics.resampling import Statistic

CellValue = str | int | float | Statistic | None
Form = Literal["plain", "money", "percent", "p", "short"]


@dataclass(frozen=True)
class Column:
    """Describes what a column holds, and how its values are written.

    Attributes:
        name: its heading.
        digits: decimals of a value that is not an integer.
        align: left for text, right for numbers.
        form: ``plain``; ``money`` (US dollars); ``percent`` (of 1); ``p`` (a p-value); ``short`` (as 2.64M).
        best: whether the highest or the lowest value is the best one, which is printed bold.
        interval: whether a terminal or a page prints a statistic's interval beside it.
        about: what the values are; the page shows it as a tooltip. Of a column that a field declares alone, the
            field's docstring says it.
        of: takes the value from a record; of a column that a field declares, makes it of the field's value.
    """

    name: str
    digits: int = 3
    align: Literal["left", "right"] = "right"
    form: Form = "plain"
    best: Literal["high", "low"] | None = None
    interval: bool = True
    about: str = ""
    of: Callable[[Any], CellValue] | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class Grid:
    """Holds a table: a title, columns, rows with a cell for each column, and notes below it.

    ``label`` names the table among those of a report, for files and cross-references; ``judges`` are those that its
    title names.

    Raises:
        ValueError: a row has more or fewer cells than there are columns.

    >>> grid = Grid("Agreement", (text_column("judge"), Column("rho")), (("debate", Statistic(0.5, 0.25, 0.75)),))
    >>> [cell.text for cell in next(grid.written())]
    ['debate', '0.500']
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[CellValue, ...], ...]
    notes: tuple[str, ...] = ()
    label: str = ""
    judges: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows, start=1):
            if len(row) != len(self.columns):
                cells = f"{len(row)} cells for {len(self.columns)} columns"
                raise ValueError(f"{self.title}: row {number} has {cells}: {row!r}")

    @classmethod
    def from_records(
        cls, title: str, columns: Iterable[Column], records: Iterable[Any], notes: Iterable[str] = ()
    ) -> Grid:
        """Make a table with a row for each record.

        >>> Grid.from_records("Words", (text_column("word", of=str), Column("letters", of=len)), ["ab", "c"]).rows
        (('ab', 2), ('c', 1))
        """
        columns = tuple(columns)
        rows = (tuple(of.of(record) if of.of else None for of in columns) for record in records)
        return cls(title, columns, tuple(rows), tuple(notes))

    def without_empty_columns(self) -> Grid:
        """Return the table without the columns that have no value in any row."""
        places = range(len(self.columns))
        return self.only([place for place in places if any(row[place] is not None for row in self.rows)])

    def only(self, places: Sequence[int]) -> Grid:
        """Return the table with the columns at these places."""
        rows = tuple(tuple(row[place] for place in places) for row in self.rows)
        return replace(self, columns=tuple(self.columns[place] for place in places), rows=rows)

    @property
    def has_intervals(self) -> bool:
        """Whether any value has an interval."""
        return any(isinstance(cell, Statistic) and cell.low is not None for row in self.rows for cell in row)

    @property
    def has_values(self) -> bool:
        """Whether any cell beside the first of a row holds something."""
        return any(cell is not None for row in self.rows for cell in row[1:])

    def without_intervals(self) -> Grid:
        """Return the table with the values alone."""
        return self.with_cells(lambda cell: cell.value if isinstance(cell, Statistic) else cell)

    def with_cells(self, change: Callable[[CellValue], CellValue]) -> Grid:
        """Return the table with each cell changed."""
        return replace(self, rows=tuple(tuple(map(change, row)) for row in self.rows))

    def written(self) -> Iterator[tuple[Written, ...]]:
        """Write the rows as text: each cell's text, its interval, and whether it is the best of its column."""
        best: list[float | None] = []
        for place, column in enumerate(self.columns):
            values = {value for row in self.rows if (value := _value(row[place])) is not None}
            # Of values that are all the same none is better than another.
            telling = column.best is not None and len(values) > 1
            best.append((max if column.best == "high" else min)(values) if telling else None)
        for row in self.rows:
            yield tuple(
                written(cell, column)._replace(best=mark is not None and _value(cell) == mark)
                for cell, column, mark in zip(row, self.columns, best, strict=True)
            )


class Written(NamedTuple):
    """Holds a cell as text."""

    text: str
    interval: str = ""
    best: bool = False


def text_column(name: str, about: str = "", of: Callable[[Any], CellValue] | None = None) -> Column:
    """Make a column of text, aligned to the left."""
    return Column(name, align="left", about=about, of=of)


def share_column(name: str, about: str = "", of: Callable[[Any], CellValue] | None = None) -> Column:
    """Make a column of shares, written in whole percent."""
    return Column(name, form="percent", digits=0, about=about, of=of)


Reader = Callable[[Any], Any]
"""What finds a record in another one, such as a part of it; where it finds ``None``, cells stay empty."""


def columns_of(
    record: type, of: Reader | None = None, only: Sequence[str] = (), **instead: Column
) -> tuple[Column, ...]:
    """Return the columns that a type of record declares, in the order of its fields.

    Args:
        record: the type.
        of: finds the record in another one.
        only: the fields whose columns are wanted; default: all.
        instead: by the field, a column that only the table can declare, since its heading depends on the data.

    >>> from dataclasses import make_dataclass
    >>> from typing import Annotated
    >>> Count = make_dataclass("Count", [("agent", str), ("turns", Annotated[int, Column("turns")])])
    >>> Grid.from_records("Turns", columns_of(Count), [Count("critic", 3)]).rows
    ((3,),)
    """
    words, columns = field_docstrings(record), list[Column]()
    for name, hint in get_type_hints(record, include_extras=True).items():
        # A field may declare several columns, such as the figures of a test.
        for mark in [instead[name]] if name in instead else getattr(hint, "__metadata__", ()):
            if isinstance(mark, Column) and (not only or name in only):
                columns += fields_of(of, **{name: replace(mark, about=mark.about or words.get(name, ""))})
    return tuple(columns)


def fields_of(of: Reader | None = None, /, **columns: Column) -> tuple[Column, ...]:
    """Return columns of the fields of a record, or of one that ``of`` finds in it, as ``columns_of``.

    >>> Grid.from_records("Ends", fields_of(lambda row: row[1], start=Column("start")), [("a", slice(3, 5))]).rows
    ((3,),)
    """

    def read(name: str, write: Callable[[Any], CellValue] | None, row: Any) -> CellValue:
        record = row if of is None else of(row)
        value: CellValue = None if record is None else getattr(record, name)
        return value if write is None or value is None else write(value)

    return tuple(replace(column, of=partial(read, name, column.of)) for name, column in columns.items())


def value_at(key: Any, of: Callable[[Any], Mapping[Any, Any] | None]) -> Reader:
    """Return what takes the value at a key from the mapping that ``of`` finds in a record; ``None`` without one.

    >>> value_at("rho", lambda row: row)({"rho": 0.5}), value_at("rho", lambda row: None)(1)
    (0.5, None)
    """
    return lambda row: (of(row) or {}).get(key)


def written(cell: CellValue, column: Column) -> Written:
    """Write a cell as its column wants it; ``best`` stays false, since it depends on the other rows.

    >>> written(Statistic(0.5, 0.25, 0.75), Column("rho", digits=2))
    Written(text='0.50', interval='[0.25, 0.75]', best=False)
    >>> written(None, Column("rho")).text, written(1234, Column("calls")).text
    ('-', '1,234')
    """
    if isinstance(cell, Statistic):
        text = figure(cell.value, column)
        if cell.value is None or cell.low is None or cell.high is None:
            return Written(text)
        return Written(text, f"[{figure(cell.low, column)}, {figure(cell.high, column)}]")
    return Written(printable(cell) if isinstance(cell, str) else figure(cell, column))


def in_words(statistic: Statistic | None) -> str:
    """Write a figure with its interval, as in a sentence.

    >>> in_words(Statistic(0.5, 0.25, 0.75)), in_words(None)
    ('0.500 [0.250, 0.750]', '-')
    """
    cell = written(statistic, Column(""))
    return f"{cell.text} {cell.interval}".strip()


def figure(value: float | None, column: Column) -> str:
    """Write a number as its column wants it; a dash for a missing one.

    >>> figure(0.00021, Column("cost", form="money")), figure(0, Column("cost", form="money"))
    ('$0.0002', '$0')
    >>> figure(0.0004, Column("p", form="p")), figure(0.25, Column("share", form="percent", digits=0))
    ('<0.001', '25%')
    """
    if value is None or not isfinite(value):
        return "-"
    match column.form:
        case "money":
            return money(value)
        case "percent":
            return f"{value:.{column.digits}%}"
        case "p":
            least = 10**-column.digits  # no p-value is 0, and none is printed as if it were
            return f"<{least:.{column.digits}f}" if value < least else f"{value:.{column.digits}f}"
        case "short":
            return short(value)
        case _:
            # ``z`` writes a small negative value as 0.000 and not as -0.000.
            return f"{value:,}" if isinstance(value, int) else f"{value:z.{column.digits}f}"


def money(dollars: float) -> str:
    """Write an amount of US dollars, so that nothing differs from very little.

    >>> money(0), money(0.00021), money(12.5)
    ('$0', '$0.0002', '$12.5000')
    """
    return f"${dollars:.4f}" if dollars else "$0"


def cost_in_words(dollars: float | None) -> str:
    """Write what something cost, where that is known."""
    return "cost unknown" if dollars is None else money(dollars)


def short(count: float, digits: int = 3, least: float = 1_000) -> str:
    """Write a count in some significant digits; in full below ``least``.

    >>> short(182_049), short(950), short(2_638_772), short(1_349, digits=2, least=0)
    ('182k', '950', '2.64M', '1.3k')
    """
    if count < least:
        return f"{count:,.0f}"
    # Rounded before the unit is chosen: 999,950 is 1M and not 1000k.
    rounded = float(f"{count:.{digits}g}")
    sizes = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
    size, letter = next((pair for pair in sizes if rounded >= pair[0]), (1, ""))
    return f"{rounded / size:g}{letter}"


def counts(numbers: Mapping[Any, int]) -> str:
    """Write counts by what is counted.

    >>> counts({1: 4200, 2: 3})
    '1: 4,200, 2: 3'
    """
    return ", ".join(f"{name}: {number:,}" for name, number in numbers.items())


def printable(text: str) -> str:
    """Put a text on one line and replace control characters, which could steer a terminal or a page.

    >>> printable("a\\x1b[31mb\\nc")
    'a�[31mb c'
    """
    return "".join(
        character if character.isprintable() else " " if character in "\n\t" else "\N{REPLACEMENT CHARACTER}"
        for character in text
    )


def _value(cell: CellValue) -> float | None:
    value = cell.value if isinstance(cell, Statistic) else cell
    # Without NaN: the largest of some values would depend on the place at which it stands among them.
    return value if isinstance(value, int | float) and isfinite(value) else None
