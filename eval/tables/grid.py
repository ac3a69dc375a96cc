"""A table independent of its format: values in rows and columns, which every format renders.

Values are computed elsewhere. This module formats them: digits, intervals, money, a dash for a
missing value. A column can read its value from a record, so that each value is described once.
Fields of a record can declare columns. A field's docstring is the column's explanation for
readers::

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
    """The content of a column and the format of its values.

    Attributes:
        name: its heading.
        digits: decimals of a value that is not an integer.
        align: left for text, right for numbers.
        form: ``plain``; ``money`` (US dollars); ``percent`` (of 1); ``p`` (a p-value); ``short``
            (such as 2.64M).
        best: whether the highest or the lowest value is best, which is printed bold.
        interval: whether a terminal or a page prints a statistic's interval after it.
        about: an explanation of the values, which the page shows as a tooltip. For a column that
            only a field declares, the default is the field's docstring.
        of: returns the value from a record. For a column that a field declares, it converts the
            field's value.
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
    """A table: a title, columns, rows with a cell for each column, and notes below it.

    ``label`` identifies the table in a report, for files and cross-references. ``judges`` are the
    judges in its title. ``significant`` contains the cells (row and column) that lead their column
    significantly: only these are then bold. Without it, the best value of a column is bold, except
    in LaTeX. ``configs`` are the config hashes for the caption of a LaTeX table.

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
    significant: frozenset[tuple[int, int]] | None = None
    configs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows, start=1):
            if len(row) != len(self.columns):
                raise ValueError(
                    f"{self.title}: row {number} has {len(row)} cells for {len(self.columns)} "
                    f"columns: {row!r}"
                )

    @classmethod
    def from_records(
        cls,
        title: str,
        columns: Iterable[Column],
        records: Iterable[Any],
        notes: Iterable[str] = (),
    ) -> Grid:
        """Return a table with a row for each record.

        >>> Grid.from_records("Words", (text_column("word", of=str), Column("letters", of=len)), ["ab", "c"]).rows
        (('ab', 2), ('c', 1))
        """
        columns = tuple(columns)
        rows = (tuple(of.of(record) if of.of else None for of in columns) for record in records)
        return cls(title, columns, tuple(rows), tuple(notes))

    def without_empty_columns(self) -> Grid:
        """Return the table without the columns that have no value in any row."""
        places = range(len(self.columns))
        return self.only(
            [place for place in places if any(row[place] is not None for row in self.rows)]
        )

    def only(self, places: Sequence[int]) -> Grid:
        """Return the table with the columns at these places."""
        rows = tuple(tuple(row[place] for place in places) for row in self.rows)
        bold = self.significant
        if bold is not None:
            number = {place: new for new, place in enumerate(places)}
            bold = frozenset((row, number[column]) for row, column in bold if column in number)
        columns = tuple(self.columns[place] for place in places)
        return replace(self, columns=columns, rows=rows, significant=bold)

    @property
    def has_intervals(self) -> bool:
        """Whether any value has an interval."""
        return any(
            isinstance(cell, Statistic) and cell.low is not None
            for row in self.rows
            for cell in row
        )

    @property
    def has_values(self) -> bool:
        """Whether any cell except the first of a row has a value."""
        return any(cell is not None for row in self.rows for cell in row[1:])

    def without_intervals(self) -> Grid:
        """Return the table without intervals."""
        return self.with_cells(lambda cell: cell.value if isinstance(cell, Statistic) else cell)

    def with_cells(self, change: Callable[[CellValue], CellValue]) -> Grid:
        """Return the table with each cell changed."""
        return replace(self, rows=tuple(tuple(map(change, row)) for row in self.rows))

    def written(self) -> Iterator[tuple[Written, ...]]:
        """Yield the rows as text: each cell's text, interval, and whether it is the best."""
        best: list[float | None] = []
        for place, column in enumerate(self.columns):
            values = {value for row in self.rows if (value := _value(row[place])) is not None}
            # If all values are equal, none is best.
            telling = column.best is not None and len(values) > 1
            best.append((max if column.best == "high" else min)(values) if telling else None)
        for number, row in enumerate(self.rows):
            cells = []
            for place, (cell, column) in enumerate(zip(row, self.columns, strict=True)):
                is_best = best[place] is not None and _value(cell) == best[place]
                if self.significant is not None:
                    is_best = (number, place) in self.significant
                cells.append(written(cell, column)._replace(best=is_best))
            yield tuple(cells)


class Written(NamedTuple):
    """A cell as text."""

    text: str
    interval: str = ""
    best: bool = False


def text_column(name: str, about: str = "", of: Callable[[Any], CellValue] | None = None) -> Column:
    """Return a column of text, aligned to the left."""
    return Column(name, align="left", about=about, of=of)


def share_column(
    name: str, about: str = "", of: Callable[[Any], CellValue] | None = None
) -> Column:
    """Return a column of shares, in whole percent."""
    return Column(name, form="percent", digits=0, about=about, of=of)


Reader = Callable[[Any], Any]
"""Returns a record inside another one; if it returns ``None``, cells stay empty."""


def columns_of(
    record: type, of: Reader | None = None, only: Sequence[str] = (), **instead: Column
) -> tuple[Column, ...]:
    """Return the columns that a type of record declares, in the order of its fields.

    Args:
        record: the type of the records.
        of: returns the record inside another one.
        only: the fields that give columns; default: all.
        instead: columns by field that only the table can declare, because their heading depends on
            the data.

    >>> from dataclasses import make_dataclass
    >>> from typing import Annotated
    >>> Count = make_dataclass("Count", [("agent", str), ("turns", Annotated[int, Column("turns")])])
    >>> Grid.from_records("Turns", columns_of(Count), [Count("critic", 3)]).rows
    ((3,),)
    """
    words = field_docstrings(record)
    columns = list[Column]()
    for name, hint in get_type_hints(record, include_extras=True).items():
        # A field may declare several columns, such as the values of a test.
        for mark in [instead[name]] if name in instead else getattr(hint, "__metadata__", ()):
            if isinstance(mark, Column) and (not only or name in only):
                columns += fields_of(
                    of, **{name: replace(mark, about=mark.about or words.get(name, ""))}
                )
    return tuple(columns)


def fields_of(of: Reader | None = None, /, **columns: Column) -> tuple[Column, ...]:
    """Return columns for the fields of a record, or of a record inside it, as ``columns_of`` does.

    >>> Grid.from_records("Ends", fields_of(lambda row: row[1], start=Column("start")), [("a", slice(3, 5))]).rows
    ((3,),)
    """

    def read(name: str, write: Callable[[Any], CellValue] | None, row: Any) -> CellValue:
        record = row if of is None else of(row)
        value: CellValue = None if record is None else getattr(record, name)
        return value if write is None or value is None else write(value)

    return tuple(
        replace(column, of=partial(read, name, column.of)) for name, column in columns.items()
    )


def value_at(key: Any, of: Callable[[Any], Mapping[Any, Any] | None]) -> Reader:
    """Return a reader of the value at a key of the mapping that ``of`` returns.

    The reader returns ``None`` if there is no such value.

    >>> value_at("rho", lambda row: row)({"rho": 0.5}), value_at("rho", lambda row: None)(1)
    (0.5, None)
    """
    return lambda row: (of(row) or {}).get(key)


def written(cell: CellValue, column: Column) -> Written:
    """Format a cell for its column; ``best`` stays false, because it depends on the other rows.

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
    """Format a statistic with its interval for a sentence.

    >>> in_words(Statistic(0.5, 0.25, 0.75)), in_words(None)
    ('0.500 [0.250, 0.750]', '-')
    """
    cell = written(statistic, Column(""))
    return f"{cell.text} {cell.interval}".strip()


def figure(value: float | None, column: Column) -> str:
    """Format a number for its column; a dash for a missing one.

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
            least = 10**-column.digits  # a p-value is never 0, and must not be printed as 0
            return f"<{least:.{column.digits}f}" if value < least else f"{value:.{column.digits}f}"
        case "short":
            return short(value)
        case _:
            # ``z`` formats a small negative value as 0.000 instead of -0.000.
            return f"{value:,}" if isinstance(value, int) else f"{value:z.{column.digits}f}"


def money(dollars: float) -> str:
    """Format an amount of US dollars so that 0 differs from small amounts.

    >>> money(0), money(0.00021), money(12.5)
    ('$0', '$0.0002', '$12.5000')
    """
    return f"${dollars:.4f}" if dollars else "$0"


def cost_in_words(dollars: float | None) -> str:
    """Format a cost, or state that it is unknown."""
    return "cost unknown" if dollars is None else money(dollars)


def short(count: float, digits: int = 3, least: float = 1_000) -> str:
    """Format a count with some significant digits; in full below ``least``.

    >>> short(182_049), short(950), short(2_638_772), short(1_349, digits=2, least=0)
    ('182k', '950', '2.64M', '1.3k')
    """
    if count < least:
        return f"{count:,.0f}"
    # Round before choosing the unit: 999,950 is 1M, not 1000k.
    rounded = float(f"{count:.{digits}g}")
    sizes = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
    size, letter = next((pair for pair in sizes if rounded >= pair[0]), (1, ""))
    return f"{rounded / size:g}{letter}"


def counts(numbers: Mapping[Any, int]) -> str:
    """Format counts with their names.

    >>> counts({1: 4200, 2: 3})
    '1: 4,200, 2: 3'
    """
    return ", ".join(f"{name}: {number:,}" for name, number in numbers.items())


def printable(text: str) -> str:
    """Put a text on one line and replace control characters.

    These could control a terminal or a page.

    >>> printable("a\\x1b[31mb\\nc")
    'a�[31mb c'
    """
    return "".join(
        character
        if character.isprintable()
        else " "
        if character in "\n\t"
        else "\N{REPLACEMENT CHARACTER}"
        for character in text
    )


def _value(cell: CellValue) -> float | None:
    value = cell.value if isinstance(cell, Statistic) else cell
    # Without NaN, because the largest of some values would depend on NaN's position.
    return value if isinstance(value, int | float) and isfinite(value) else None
