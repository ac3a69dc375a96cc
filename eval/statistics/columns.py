"""Columns of numbers, and which rows belong together: checked once, here, before anything is computed of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Units = NDArray[np.intp]
"""For each row the number of what it belongs to, counted from 0."""


def column(values: Iterable[float]) -> Floats:
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


def columns(x: Iterable[float], y: Iterable[float]) -> tuple[Floats, Floats]:
    """Two columns of finite numbers, equally long.

    Raises:
        ValueError: of different length, or NaN or infinite in one of them.
    """
    first, second = column(x), column(y)
    if first.shape != second.shape:
        raise ValueError(f"columns of different length: {len(first)} and {len(second)}")
    return first, second


def numbered(groups: Sequence[Hashable] | NDArray[Any], rows: int) -> Units:
    """The groups by number, in the order in which they first come up.

    Args:
        groups: of each row, equal where rows belong together.
        rows: how many there must be.

    Raises:
        ValueError: there are not as many groups as rows.

    >>> numbered(["b", "a", "b"], rows=3)
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


def units_of(groups: Sequence[Hashable | None], rows: int) -> Units:
    """What the bootstrap draws: groups, and each row that has none (``None``) by itself.

    >>> units_of(["a", None, "a", None], rows=4)
    array([0, 1, 0, 2])
    """
    named = [(at,) if group is None else ("group", group) for at, group in enumerate(groups)]
    return numbered(named, rows)


def rows_of(units: Units) -> Iterator[Units]:
    """The rows of each unit, unit by unit."""
    order = np.argsort(units, kind="stable")
    ends = np.cumsum(np.bincount(units))
    yield from np.split(order, ends[:-1])
