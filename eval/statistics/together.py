"""Columns read together: a row counts where all of them have a value; the rows that do not are counted by reason."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .columns import Floats, Units, units_of

Reasons = Mapping[str, int]
"""Why rows do not count, and how many for each reason."""
FAILED, UNJUDGED, UNLABELLED, NO_NUMBER = "failed", "not judged", "no label", "not a number"
"""Reasons for which a row of results does not count."""


@dataclass(frozen=True)
class Together:
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


def together(
    columns: Mapping[str, Sequence[float | None]], groups: Sequence[Hashable | None] | None = None
) -> Together:
    """Keep the rows that have a finite number in every column.

    Args:
        columns: by name; ``None`` where a row has no value. A row is counted under the first column that lacks one.
        groups: of each row, equal where rows belong together; without them each row stands for itself.

    Raises:
        ValueError: columns, or the groups, of different length.

    >>> found = together({"judge": [3, None, 5], "human": [4, 2, float("nan")]}, ["a", "a", "b"])
    >>> found.columns["judge"], found.left_out
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
    units = units_of(named, len(kept))
    return Together(
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


def unit_of(row: Mapping[str, Any]) -> Hashable:
    """What a row of results is drawn with: its group, else its item (of several repeats), else the row alone."""
    for what in ("group", "item"):
        if row.get(what) is not None:
            return what, row[what]
    return object()


def _fault(name: str, value: float | None) -> str | None:
    if value is None:
        return f"no {name}"
    return None if math.isfinite(value) else f"{name} is not a finite number"
