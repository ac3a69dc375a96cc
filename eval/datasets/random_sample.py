"""Choose items at random: whole groups, until there are as many as wanted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from .items import Numbered, Reader, digest


class Sample(NamedTuple):
    """Says which sample of its items a dataset is.

    Attributes:
        size: how many items were asked for.
        seed: the seed by which they were chosen.
    """

    size: int
    seed: int

    def described(self) -> dict[str, int]:
        """Return what a manifest records of it."""
        return self._asdict()


def sampled(read: Reader, sample: Sample) -> Reader:
    """Return a reader of the items of a sample, which come in the order of the file.

    Groups are drawn in an order that seed and group alone decide, and their items are taken until there are enough; of
    the last group that may be a part. An item without a group is a group of its own. So a larger sample with the same
    seed holds the smaller one, and a run can be extended.
    """
    ranks = np.fromiter((_rank(item, sample.seed) for item in read()), dtype=np.uint64)
    # Stable: within a group, and among groups that share a rank, the file's order decides.
    chosen = set(np.argsort(ranks, kind="stable")[: sample.size].tolist())

    def chosen_items() -> Iterator[Numbered]:
        return (numbered for index, numbered in enumerate(read()) if index in chosen)

    return chosen_items


def _rank(numbered: Numbered, seed: int) -> int:
    _, item = numbered
    return digest(seed, "item", item.id) if item.group is None else digest(seed, "group", item.group)
