"""Columns of numbers, read together: which rows count, and why the others do not."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

Units = NDArray[np.intp]
"""For each row the number of what it belongs to, counted from 0."""


def finite_column(values: Iterable[float]) -> Floats:
    """Finite numbers as an array.

    Raises:
        ValueError: NaN or infinite; names the row, counted from 1.
    """
    found = (
        np.asarray(values, dtype=float)
        if isinstance(values, np.ndarray)
        else np.fromiter(values, dtype=float)
    )
    if found.ndim != 1:
        raise ValueError(f"a column has one dimension, not {found.ndim}")
    bad = np.flatnonzero(~np.isfinite(found))
    if len(bad):
        more = f" (and {len(bad) - 1:,} more)" if len(bad) > 1 else ""
        raise ValueError(f"row {bad[0] + 1:,}{more}: not a number, or infinite: {found[bad[0]]}")
    return found


def paired_columns(x: Iterable[float], y: Iterable[float]) -> tuple[Floats, Floats]:
    """Two columns of finite numbers, equally long.

    Raises:
        ValueError: of different length, or NaN or infinite in one of them.
    """
    first, second = finite_column(x), finite_column(y)
    if first.shape != second.shape:
        raise ValueError(f"columns of different length: {len(first)} and {len(second)}")
    return first, second


def number_groups(groups: Sequence[Hashable] | NDArray[Any], rows: int) -> Units:
    """The groups by number, in the order in which they first come up.

    Args:
        groups: of each row, equal where rows belong together.
        rows: how many there must be.

    Raises:
        ValueError: there are not as many groups as rows.

    >>> number_groups(["b", "a", "b"], rows=3)
    array([0, 1, 0])
    """
    if len(groups) != rows:
        raise ValueError(f"{len(groups)} groups for {rows} rows")
    if isinstance(groups, np.ndarray):
        _, first, places = np.unique(groups, return_index=True, return_inverse=True)
        found: Units = np.argsort(np.argsort(first))[places]
        return found
    numbers: dict[Hashable, int] = {}
    return np.fromiter(
        (numbers.setdefault(group, len(numbers)) for group in groups), dtype=np.intp, count=rows
    )


def number_units(groups: Sequence[Hashable | None], rows: int) -> Units:
    """What the bootstrap draws: groups, and each row that has none (``None``) by itself.

    >>> number_units(["a", None, "a", None], rows=4)
    array([0, 1, 0, 2])
    """
    named = [(at,) if group is None else ("group", group) for at, group in enumerate(groups)]
    return number_groups(named, rows)


def rows_by_unit(units: Units) -> Iterator[Units]:
    """The rows of each unit, unit by unit."""
    order = np.argsort(units, kind="stable")
    ends = np.cumsum(np.bincount(units))
    yield from np.split(order, ends[:-1])


Reasons = Mapping[str, int]
"""Why rows do not count, and how many for each reason."""

FAILED, UNJUDGED, UNLABELLED, NO_NUMBER = "failed", "not judged", "no label", "not a number"
"""Reasons for which a row of results does not count."""


@dataclass(frozen=True)
class AlignedRows:
    """The rows that have a value in every column.

    Attributes:
        columns: by name, each with one number a row.
        units: which unit of the bootstrap each row belongs to, counted from 0: its group, or the row itself.
        groups: how many units there are.
        left_out: the rows that do not count, by reason.
        kept: the places, among all rows given, of those that count.
    """

    columns: Mapping[str, Floats]
    units: Units
    groups: int
    left_out: Reasons
    kept: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.units)


def align_rows(
    columns: Mapping[str, Sequence[float | None]], groups: Sequence[Hashable | None] | None = None
) -> AlignedRows:
    """Keep the rows that have a finite number in every column.

    Args:
        columns: by name; ``None`` where a row has no value. A row is counted under the first column that lacks one.
        groups: of each row, equal where rows belong together; without them each row stands for itself.

    Raises:
        ValueError: columns, or the groups, of different length.

    >>> rows = align_rows({"judge": [3, None, 5], "human": [4, 2, float("nan")]}, ["a", "a", "b"])
    >>> rows.columns["judge"], rows.left_out
    (array([3.]), {'no judge': 1, 'human is not a finite number': 1})
    """
    lengths = {name: len(values) for name, values in columns.items()}
    if groups is not None:
        lengths["groups"] = len(groups)
    if len(set(lengths.values())) > 1:
        described = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise ValueError(f"columns must be equally long: {described}")
    rows = next(iter(lengths.values()))
    reasons: Counter[str] = Counter()
    kept = []
    for at in range(rows):
        reason = next((why for name in columns if (why := _fault(name, columns[name][at]))), None)
        if reason is None:
            kept.append(at)
        else:
            reasons[reason] += 1
    named = [None] * len(kept) if groups is None else [groups[at] for at in kept]
    units = number_units(named, len(kept))
    return AlignedRows(
        columns={
            name: np.array([values[at] for at in kept], dtype=float) for name, values in columns.items()
        },
        units=units,
        groups=int(units.max()) + 1 if len(units) else 0,
        left_out=dict(reasons),
        kept=np.array(kept, dtype=np.intp),
    )


def why_unjudged(row: Mapping[str, Any], verdict: object) -> str | None:
    """Why a row of results has no verdict, if it has none."""
    if row.get("status") == "failed":
        return FAILED
    return UNJUDGED if verdict is None else None


def fields_of(row: Any) -> Mapping[str, Any]:
    """The fields of a result, whether it is one or the mapping of one."""
    return row if isinstance(row, Mapping) else vars(row)


def resampling_unit(row: Mapping[str, Any]) -> Hashable:
    """What a row of results is drawn with: its group, else its item (of several repeats), else the row alone."""
    for what in ("group", "item"):
        if row.get(what) is not None:
            return what, row[what]
    return object()


def _fault(name: str, value: float | None) -> str | None:
    if value is None:
        return f"no {name}"
    return None if math.isfinite(value) else f"{name} is not a finite number"
