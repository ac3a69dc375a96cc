"""Align columns of numbers: tell which rows count, which unit each is drawn with, and why other rows do not count.

A *unit* is what the bootstrap draws: a group of rows that belong together, or a row that stands alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

Column = Sequence[float | None] | Floats
"""A value of each row; ``None`` where there is none."""

Units = NDArray[np.intp]
"""The number of each row's unit, counted from 0."""

Reasons = Mapping[str, int]
"""By reason, the number of rows that do not count for it."""

FAILED, UNJUDGED, UNLABELLED, NO_NUMBER = "failed", "not judged", "no label", "not a number"
"""Reasons for which a row of results does not count."""


@dataclass(frozen=True)
class AlignedRows:
    """Holds the rows that have a value in every column: by name each column, and why other rows do not count."""

    columns: Mapping[str, Floats]
    left_out: Reasons

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))


def align_rows(columns: Mapping[str, Column]) -> AlignedRows:
    """Keep the rows that have a finite number in every column, and count the others by reason.

    Args:
        columns: by name; ``None`` where a row has no value. A row is counted under the first column that lacks one.

    Raises:
        ValueError: columns of different length.

    >>> rows = align_rows({"judge": [3, None, 5], "human": [4, 2, float("nan")]})
    >>> rows.columns["judge"], rows.left_out
    (array([3.]), {'no judge': 1, 'human is not a finite number': 1})
    """
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        described = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise ValueError(f"columns must be equally long: {described}")
    missing: list[tuple[int, str]] = []
    known = np.ones(next(iter(lengths.values())), dtype=np.bool_)
    numbers = {}
    for name, values in columns.items():
        # Columns are looked at in their order: a row that lacks two values is counted once, under the first of them.
        numbers[name] = column = np.array(values, dtype=float)  # None becomes NaN
        lacking = np.flatnonzero(known & ~np.isfinite(column)).tolist()
        missing += [(row, _why_missing(name, values[row])) for row in lacking]
        known &= np.isfinite(column)
    left_out = dict(Counter(reason for _, reason in sorted(missing)))
    return AlignedRows({name: column[known] for name, column in numbers.items()}, left_out)


def _why_missing(name: str, value: float | None) -> str:
    return f"no {name}" if value is None else f"{name} is not a finite number"


def finite_column(values: Iterable[float]) -> Floats:
    """Return finite numbers as an array of one dimension.

    Raises:
        ValueError: NaN or infinite; names the row, counted from 1.
    """
    column = (
        # An array is taken as it is, fast; fromiter reads any other iterable, a generator too, number by number.
        np.asarray(values, dtype=float)
        if isinstance(values, np.ndarray)
        else np.fromiter(values, dtype=float)
    )
    if column.ndim != 1:
        raise ValueError(f"a column has one dimension, not {column.ndim}")
    bad = np.flatnonzero(~np.isfinite(column))
    if len(bad):
        more = f" (and {len(bad) - 1:,} more)" if len(bad) > 1 else ""
        raise ValueError(f"row {bad[0] + 1:,}{more}: not a number, or infinite: {column[bad[0]]}")
    return column


def paired_columns(x: Iterable[float], y: Iterable[float]) -> tuple[Floats, Floats]:
    """Return two columns of finite numbers, equally long, as arrays.

    Raises:
        ValueError: of different length, or NaN or infinite in one of them.
    """
    first, second = finite_column(x), finite_column(y)
    if first.shape != second.shape:
        raise ValueError(f"columns of different length: {len(first)} and {len(second)}")
    return first, second


def number_groups(groups: Sequence[Hashable] | NDArray[Any], rows: int) -> Units:
    """Number the groups from 0, in the order in which they first occur.

    Args:
        groups: of each row, equal where rows belong together.
        rows: how many there must be.

    Returns:
        the number of each row's group, of shape (rows,).

    Raises:
        ValueError: there are not as many groups as rows.

    >>> number_groups(["b", "a", "b"], rows=3)
    array([0, 1, 0])
    """
    if len(groups) != rows:
        raise ValueError(f"{len(groups)} groups for {rows} rows")
    if isinstance(groups, np.ndarray):
        # unique() numbers by value; ranking the first occurrences turns that into the order of appearance.
        _, first, numbers = np.unique(groups, return_index=True, return_inverse=True)
        by_appearance: Units = np.argsort(np.argsort(first))[numbers]
        return by_appearance
    number_of: dict[Hashable, int] = {}
    return np.fromiter(
        (number_of.setdefault(group, len(number_of)) for group in groups), dtype=np.intp, count=rows
    )


def number_units(groups: Sequence[Hashable | None], rows: int) -> Units:
    """Number what the bootstrap draws: each group, and each row that has none (``None``) by itself.

    >>> number_units(["a", None, "a", None], rows=4)
    array([0, 1, 0, 2])
    """
    # Tuples of different length keep a lone row's index apart from a group that is named by the same number.
    keys = [(row,) if group is None else ("group", group) for row, group in enumerate(groups)]
    return number_groups(keys, rows)


def unit_count(units: Units) -> int:
    """Return how many units there are, of numbers from 0 without gaps; 0 without rows."""
    # The initial value stands for the greatest of no rows, which has no maximum.
    return int(units.max(initial=-1)) + 1


def rows_by_unit(units: Units) -> Iterator[Units]:
    """Yield the indices of each unit's rows, unit by unit."""
    # Stable, so that the rows of a unit stay in their own order.
    order = np.argsort(units, kind="stable")
    ends = np.cumsum(np.bincount(units))
    yield from np.split(order, ends[:-1])


def why_unjudged(row: Mapping[str, Any], verdict: object) -> str | None:
    """Return why a row of results has no verdict; ``None`` if it has one."""
    if row.get("status") == "failed":
        return FAILED
    return UNJUDGED if verdict is None else None


def fields_of(row: Any) -> Mapping[str, Any]:
    """Return the fields of a result, given as an object or as the mapping of its fields."""
    return row if isinstance(row, Mapping) else vars(row)


def resampling_unit(row: Mapping[str, Any]) -> Hashable:
    """Return what a row of results is drawn with: its group, else its item (shared by repeats), else the row alone."""
    for name in ("group", "item"):
        if row.get(name) is not None:
            return name, row[name]
    return object()  # equal to nothing but itself
