"""Number the clusters that rows are drawn with, and name the reasons for which rows do not count.

A *cluster* is what the bootstrap draws: a group of rows that belong together, or a row that stands alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
"""Whole numbers, such as the code of each row's cluster; codes count from 0."""

Reasons = Mapping[str, int]
"""By reason, the number of rows that do not count for it."""

FAILED, UNJUDGED, UNLABELLED, NO_NUMBER = "failed", "not judged", "no label", "not a number"
"""Reasons for which a row of results does not count."""


def number_groups(groups: Sequence[Hashable] | NDArray[Any]) -> Ints:
    """Number the groups from 0, in the order in which they first occur.

    Args:
        groups: of each row, equal where rows belong together.

    Returns:
        the number of each row's group, of shape (rows,).

    >>> number_groups(["b", "a", "b"])
    array([0, 1, 0])
    """
    if isinstance(groups, np.ndarray):
        # unique() numbers by value; ranking the first occurrences turns that into the order of appearance.
        _, first, numbers = np.unique(groups, return_index=True, return_inverse=True)
        return np.argsort(np.argsort(first))[numbers]
    number_of: dict[Hashable, int] = {}
    in_order = (number_of.setdefault(group, len(number_of)) for group in groups)
    return np.fromiter(in_order, dtype=np.intp, count=len(groups))


def number_clusters(groups: Sequence[Hashable | None]) -> Ints:
    """Number what the bootstrap draws: each group, and each row that has none (``None``) by itself.

    >>> number_clusters(["a", None, "a", None])
    array([0, 1, 0, 2])
    """
    # Tuples of different length keep a lone row's index apart from a group that is named by the same number.
    return number_groups([(row,) if group is None else ("group", group) for row, group in enumerate(groups)])


def code_count(codes: Ints) -> int:
    """Return how many different codes there are, where they have no gaps; 0 without rows."""
    # The initial value stands for the greatest of no rows, which has no maximum.
    return int(codes.max(initial=-1)) + 1


def ratio(numerators: NDArray[Any], denominators: NDArray[Any]) -> Floats:
    """Divide columns; NaN where the denominator is not above 0.

    >>> ratio(np.array([1.0, 0.0]), np.array([2.0, 0.0])).tolist()
    [0.5, nan]
    """
    return numerators / np.where(denominators > 0, denominators, np.nan)


Group = TypeVar("Group", bound=Hashable)
Value = TypeVar("Value")


def grouped(pairs: Iterable[tuple[Group, Value]]) -> dict[Group, list[Value]]:
    """Gather the values of each group, in the order in which the groups first occur.

    >>> grouped([("b", 1), ("a", 2), ("b", 3)])
    {'b': [1, 3], 'a': [2]}
    """
    groups: dict[Group, list[Value]] = {}
    for group, value in pairs:
        groups.setdefault(group, []).append(value)
    return groups
