"""Index the lines of a results file: their offsets, and which result each holds, in 17 bytes a line."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Lines = NDArray[np.intp]
"""Numbers of lines, counted from 0."""


class Digests:
    """Holds an immutable set of digests, at 8 bytes each."""

    def __init__(self, digests: NDArray[np.uint64]) -> None:
        self._sorted = array("Q", np.sort(digests).tobytes())

    def __contains__(self, digest: int) -> bool:
        place = bisect_left(self._sorted, digest)
        return place < len(self._sorted) and self._sorted[place] == digest

    def __len__(self) -> int:
        return len(self._sorted)


class LineIndex:
    """Holds where the lines of a file begin and which results they are, in their order.

    Attributes:
        digests: the digest of each line's key.
        offsets: where each line begins, in bytes.
        ok: 1 for each line with a verdict, else 0.
        end: where the next line will begin.
    """

    def __init__(self) -> None:
        self.digests = array("Q")
        self.offsets = array("q")
        self.ok = bytearray()
        self.end = 0

    def __len__(self) -> int:
        return len(self.ok)

    def add(self, digest: int, ok: bool, length: int) -> None:
        """Add a line, ``length`` bytes long."""
        self.digests.append(digest)
        self.offsets.append(self.end)
        self.ok.append(ok)
        self.end += length

    def latest(self) -> Lines:
        """Return the last line of each result, in the order in which the results first occur."""
        # `np.unique` finds first occurrences only; on the reversed array they are the last ones.
        digests = np.array(self.digests, dtype=np.uint64)
        _, first = np.unique(digests, return_index=True)
        _, from_the_end = np.unique(digests[::-1], return_index=True)
        return (len(digests) - 1 - from_the_end)[np.argsort(first)]

    def latest_ok(self) -> Digests:
        """Return the digests of the results whose last line has a verdict."""
        lines = self.latest()
        ok = np.array(self.ok, dtype=bool)[lines]
        return Digests(np.array(self.digests, dtype=np.uint64)[lines[ok]])

    def of(self, wanted: Iterable[int]) -> Lines:
        """Return the last line of each wanted result in the order of ``wanted``; those without a line are left out."""
        latest = self.latest()
        known = np.array(self.digests, dtype=np.uint64)[latest]
        order = np.argsort(known)
        asked = np.fromiter(wanted, dtype=np.uint64)
        places = np.searchsorted(known, asked, sorter=order)
        # A digest above all known ones is placed past the end.
        there = places < len(known)
        candidates = order[places[there]]
        found: Lines = latest[candidates[known[candidates] == asked[there]]]
        return found

    def rearranged(self, lines: Lines) -> LineIndex:
        """Return the index of a file that has these lines in this order."""
        fresh = LineIndex()
        # A slice of an array is a copy: `offsets` itself does not grow.
        ends = self.offsets[1:]
        ends.append(self.end)
        for line in lines:
            fresh.add(self.digests[line], bool(self.ok[line]), ends[line] - self.offsets[line])
        return fresh
