"""The texts that were judged, where the data is still where the run found it."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Any

from ...state.errors import JurygraphError
from ..datasets import Dataset, load_again
from ..items import Item, ScoreItem
from .packing import FULL, Block, Place, as_json, packed


def dataset_of(manifest: Mapping[str, Any]) -> Dataset | str:
    """The dataset of a run; or why it is not to be had, in a sentence for readers."""
    data = manifest.get("data") or {}
    name, location = data.get("name"), data.get("location")
    if not name or not location:
        return "The texts are not shown: the run did not write down where its data was."
    where = Path(location)
    if name not in ("demo", "demo-pairs") and not where.exists():
        return f"The texts are not shown: {where.name} is no longer where the run found it."
    try:
        found = load_again(name, location)
    except (JurygraphError, OSError):
        return f"The texts are not shown: {where.name} can no longer be read."
    if found.digest != data.get("digest"):
        return f"The texts are not shown: {where.name} has changed since the run."
    return found


def fields_of(item: Item) -> Iterator[tuple[str, str]]:
    """What a reader needs to see of an item, in the order of reading."""
    named: tuple[tuple[str, str | None], ...]
    if isinstance(item, ScoreItem):
        named = (("source", item.source), ("fact", item.fact), ("candidate", item.candidate))
    else:
        named = (
            *(("question", item.question), ("reference", item.reference)),
            *(("answer_1", item.answer_1), ("answer_2", item.answer_2)),
        )
    return ((name, text) for name, text in named if text)


class TextPacker:
    """Items' texts in blocks; within a block, a text that several items share is kept once."""

    def __init__(self) -> None:
        self.count = 0
        self._items: list[list[tuple[str, int]]] = []
        self._strings: dict[str, int] = {}
        self._size = 0

    @property
    def full(self) -> bool:
        """Whether the block that is being filled should be taken."""
        return self._size >= FULL

    def add(self, item: Item) -> Place:
        """Put in an item's texts; gives where they are to be found."""
        self._items.append([(name, self._place(text)) for name, text in fields_of(item)])
        return Place(self.count, len(self._items) - 1)

    def take(self) -> list[Block]:
        """The block that was being filled: one, or none where nothing was put in."""
        if not self._items:
            return []
        held = {"items": self._items, "strings": list(self._strings)}
        block = Block(f"i{self.count}", packed(as_json(held)))
        self.count += 1
        self._items, self._strings, self._size = [], {}, 0
        return [block]

    def _place(self, text: str) -> int:
        if text not in self._strings:
            self._strings[text] = len(self._strings)
            self._size += len(text)
        return self._strings[text]


def wanted(dataset: Dataset, ids: Container[str]) -> Iterator[Item]:
    """The items of a dataset that were judged; a file that changes meanwhile ends it early."""
    try:
        yield from (item for item in dataset if item.id in ids)
    except JurygraphError:
        return
