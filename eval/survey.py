"""One pass over all items of a dataset: each is checked, and no more is kept than a few numbers."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from ..state.errors import DataError
from ..state.tasks import TaskKind
from .digests import digest
from .items import Item, ScoreItem

Numbered = tuple[int, Item]
"""An item and where it stands: its line in a file, or its place among items in memory."""

Reader = Callable[[], Iterator[Numbered]]
"""Reads the items from the beginning, as often as it is called."""


@dataclass
class LabelRange:
    """Where an aspect turns up first (counted from 0), and how far its labels reach."""

    first: int
    low: float = math.inf
    high: float = -math.inf

    def add(self, label: float) -> None:
        """Take in one more label."""
        self.low, self.high = min(self.low, label), max(self.high, label)


@dataclass
class Survey:
    """What is remembered of a dataset's items.

    Attributes:
        kind: what they all are.
        count: how many there are.
        has_labels: whether people, or the construction of the data, said anything of any of them.
        aspects: those that have labels, in the order in which they turn up.
    """

    kind: TaskKind
    count: int = 0
    has_labels: bool = False
    aspects: dict[str, LabelRange] = field(default_factory=dict)

    def add(self, item: Item) -> None:
        """Take in one more item."""
        self.has_labels = self.has_labels or bool(item.human)
        if isinstance(item, ScoreItem):
            for name in item.human:
                labels = self.aspects.setdefault(name, LabelRange(self.count))
                if (label := item.label(name)) is not None:
                    labels.add(label)
        self.count += 1


def survey(read: Reader, name: str, unit: str = "line", *, most_characters: int | None = None) -> Survey:
    """Check all items, one at a time.

    Args:
        read: reads the items.
        name: of the file, for messages.
        unit: what an item's number counts.
        most_characters: the longest text that an item may have.

    Raises:
        DataError: no items, a text that is too long, both kinds, or one id twice; names the place.
    """
    found: Survey | None = None
    ids = array("Q")
    for number, item in read():
        _check_lengths(item, f"{name}, {unit} {number}", most_characters)
        kind: TaskKind = "score" if isinstance(item, ScoreItem) else "compare"
        found = found or Survey(kind)
        if found.kind != kind:
            raise DataError(
                f"{name}, {unit} {number}: texts to be rated and answers to be compared in one file"
            )
        found.add(item)
        ids.append(digest(item.id))
    if found is None:
        raise DataError(f"{name}: holds no items")
    if repeated := _repeated(ids):
        _refuse(repeated, read, name, unit)
    return found


def _check_lengths(item: Item, where: str, most: int | None) -> None:
    for name, text in item.texts():
        if most is not None and len(text) > most:
            raise DataError(
                f"{where}: field {name!r} has {len(text):,} characters, more than {most:,}; "
                "if that is meant, allow more with --max-chars"
            )


def _repeated(ids: array[int]) -> set[int]:
    values, counts = np.unique(np.array(ids, dtype=np.uint64), return_counts=True)
    return set(values[counts > 1].tolist())


def _refuse(repeated: set[int], read: Reader, name: str, unit: str) -> None:
    """Name the first id that stands there twice: digests tell where to look, the ids themselves are compared."""
    seen: dict[str, int] = {}
    for number, item in read():
        if digest(item.id) not in repeated:
            continue
        if item.id in seen:
            where = f"{name}, {unit} {number}"
            raise DataError(f"{where}: id {item.id!r} stands already in {unit} {seen[item.id]}")
        seen[item.id] = number
