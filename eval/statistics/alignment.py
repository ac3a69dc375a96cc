"""Codes for the clusters of rows, and the reasons why rows do not count.

The bootstrap draws *clusters*: groups of rows that belong together, or single rows.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
"""Integers, such as the cluster code of each row; codes count from 0."""

Reasons = Mapping[str, int]
"""The number of rows that do not count, by reason."""

FAILED = "failed"
UNJUDGED = "not judged"
UNLABELLED = "no label"
"""Reasons why a row of results does not count."""


def number_groups(groups: Sequence[Hashable] | NDArray[Any]) -> Ints:
    """Number the groups from 0 in order of first occurrence.

    Args:
        groups: the group of each row.

    Returns:
        the number of each row's group, of shape (rows,).

    >>> number_groups(["b", "a", "b"])
    array([0, 1, 0])
    """
    if isinstance(groups, np.ndarray):
        # unique() numbers by value. Ranking the first occurrences converts that to the order of
        # appearance.
        _, first, numbers = np.unique(groups, return_index=True, return_inverse=True)
        return np.argsort(np.argsort(first))[numbers]
    number_of: dict[Hashable, int] = {}
    in_order = (number_of.setdefault(group, len(number_of)) for group in groups)
    return np.fromiter(in_order, dtype=np.intp, count=len(groups))


def number_clusters(groups: Sequence[Hashable | None]) -> Ints:
    """Number the clusters of the bootstrap: each group, and each row without a group (``None``).

    >>> number_clusters(["a", None, "a", None])
    array([0, 1, 0, 2])
    """
    # Tuples of different length distinguish a single row's index from a group with the same number.
    return number_groups(
        [(row,) if group is None else ("group", group) for row, group in enumerate(groups)]
    )


def code_count(codes: Ints) -> int:
    """Return the number of different codes, which have no gaps; 0 without rows."""
    # The initial value gives 0 for no rows.
    return int(codes.max(initial=-1)) + 1


def ratio(numerators: NDArray[Any], denominators: NDArray[Any]) -> Floats:
    """Divide columns; NaN if the denominator is not above 0.

    >>> ratio(np.array([1.0, 0.0]), np.array([2.0, 0.0])).tolist()
    [0.5, nan]
    """
    return numerators / np.where(denominators > 0, denominators, np.nan)


Group = TypeVar("Group", bound=Hashable)
Value = TypeVar("Value")


def grouped(pairs: Iterable[tuple[Group, Value]]) -> dict[Group, list[Value]]:
    """Collect the values of each group, with groups in order of first occurrence.

    >>> grouped([("b", 1), ("a", 2), ("b", 3)])
    {'b': [1, 3], 'a': [2]}
    """
    groups: dict[Group, list[Value]] = {}
    for group, value in pairs:
        groups.setdefault(group, []).append(value)
    return groups
