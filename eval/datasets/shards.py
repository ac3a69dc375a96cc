"""Divide a dataset into shards, for as many processes or machines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ...state.errors import UsageError
from .items import Numbered, Reader


class Shard(NamedTuple):
    """Says which part of a dataset is meant: shard ``number`` (from 1) ``of`` so many."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read ``number/of``.

        Raises:
            UsageError: it is no such text, or there is no shard of this number.

        >>> Shard.parse("2/4")
        Shard(number=2, of=4)
        """
        found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text.strip())
        shard = cls(int(found[1]), int(found[2])) if found else None
        if shard is None or not 1 <= shard.number <= shard.of:
            raise UsageError(
                f"--shard {text!r}: give a number and how many there are, from 1/4 to 4/4 for four shards"
            )
        return shard

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @property
    def folder(self) -> str:
        """The name of the folder of its results, such as ``shard-2-of-4``."""
        return f"shard-{self.number}-of-{self.of}"


def sharded(read: Reader, shard: Shard) -> Reader:
    """Return a reader of the items of a shard, in the order of the file.

    Groups are dealt out one after the other as they first occur, so that all texts on one source are judged in the same
    place. An item without a group is a group of its own.
    """

    def items() -> Iterator[Numbered]:
        numbers: dict[str, int] = {}
        met = 0
        for numbered in read():
            group = numbered[1].group
            place = met if group is None else numbers.setdefault(group, met)
            met += place == met
            if place % shard.of == shard.number - 1:
                yield numbered

    return items
