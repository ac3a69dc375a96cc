"""Collect the items of which a text states a verdict itself, to count them or to leave them out for all judges."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from ...nodes.replies.shown import flagged_texts


class FlaggedItems:
    """Collects items, and of those that contain a verdict of their own the names of the texts that do.

    An item is flagged if any result on it is: of any protocol, aspect or repeat.

    Args:
        left_out: whether flagged items do not count.
    """

    def __init__(self, left_out: bool = False) -> None:
        self.left_out = left_out
        self._items: set[Hashable] = set()
        self._texts: dict[Hashable, tuple[str, ...]] = {}

    def add(self, item: Hashable, warnings: Iterable[str]) -> None:
        """Take in the warnings of one result on an item."""
        self._items.add(item)
        if texts := flagged_texts(warnings):
            self._texts[item] = texts

    def leaves_out(self, item: Hashable) -> bool:
        """Return whether an item does not count."""
        return self.left_out and item in self._texts

    def note(self) -> str | None:
        """Write how many items are flagged and whether they count; ``None`` if nothing is flagged or left out.

        >>> found = FlaggedItems()
        >>> found.add("a", ["source states a verdict"])
        >>> found.add("b", [])
        >>> found.note()
        '1 of 2 items contains a verdict of its own (source): see --without-flagged'
        """
        flagged, of = len(self._texts), f"of {len(self._items):,} items"
        if not flagged:
            return f"none {of} contains a verdict of its own, so none is left out" if self.left_out else None
        contain = "contains a verdict of its own" if flagged == 1 else "contain a verdict of their own"
        texts = ", ".join(sorted({name for names in self._texts.values() for name in names}))
        return f"{flagged:,} {of} {contain} ({texts}): {'left out' if self.left_out else 'see --without-flagged'}"
