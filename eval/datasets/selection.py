"""Choose what of a file is read: its columns by name, its items at random, or the items of one shard."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from ...state.checked import listed
from ...state.errors import DataError, UsageError
from .files import Row
from .items import FIELDS, Numbered, Reader, digest
from .reading import ROW_NUMBER, Columns


def parse_columns(text: str) -> dict[str, str]:
    """Read which columns an item's fields are taken from.

    Raises:
        UsageError: it is of another form, or names no field of an item.

    >>> parse_columns("candidate=summary,human.fluency=rating")
    {'candidate': 'summary', 'human.fluency': 'rating'}
    """
    columns: dict[str, str] = {}
    for pair in text.split(","):
        field, equals, column = (part.strip() for part in pair.partition("="))
        if not (field and equals and column):
            raise UsageError(f"--columns: {pair!r} is not of the form FIELD=COLUMN")
        if field.partition(".")[0] not in FIELDS:
            known = listed(sorted(FIELDS), field)
            raise UsageError(f"--columns: unknown field {field!r}; fields are {known}")
        if field in columns:
            raise UsageError(f"--columns: {field!r} is given two columns, {columns[field]} and {column}")
        columns[field] = column
    return columns


_COMPARED = {"question", "turns", "answer_1"}


def renamed(rows: Iterable[Row], columns: Columns, place: str) -> Iterator[Row]:
    """Yield the rows with the fields that an item has; a cell that is empty leaves its field out.

    The column ``#`` is the number of the row among those that are read, from 1.

    Raises:
        DataError: no row has anything in one of the columns.
    """
    unseen, names = set(columns.values()) - {ROW_NUMBER}, dict[str, None]()
    # What is a question elsewhere and the source of a candidate here would make the row a comparison.
    moved = _COMPARED & unseen if {"source", "candidate"} & columns.keys() else set()
    for count, (number, row) in enumerate(rows, start=1):
        fields = {field: cell for field, cell in row.items() if field not in moved}
        for field, column in columns.items():
            fields.pop(field, None)
            value = str(count) if column == ROW_NUMBER else _cell(row, column)
            if value is None:
                continue
            unseen.discard(column)
            outer, _, inner = field.partition(".")
            if inner:
                before = fields.get(outer)
                # A copy, since the row that was read may be used again.
                value = {**(before if isinstance(before, dict) else {}), inner: value}
            fields[outer] = value
        if unseen:
            names.update(dict.fromkeys(row))
        yield number, fields
    if unseen:
        missing = f"no row has a value in the column {min(unseen)!r}"
        raise DataError(f"{place}: {missing}; columns are {', '.join(names)}")


def _cell(row: Mapping[str, Any], column: str) -> Any:
    # The reader has made ``human`` with ``fluency`` of a column ``human.fluency``: the name is a path.
    value: Any = row
    for name in column.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


class Sample(NamedTuple):
    """Says which sample of its items a dataset is.

    Attributes:
        size: how many items were asked for.
        seed: the seed by which they were chosen.
        of_group: how many items of a group are taken before another group's; ``None``: all.
        spread: whether categories and systems have their share of it. Samples of earlier versions were not spread.
    """

    size: int
    seed: int
    of_group: int | None = None
    spread: bool = False

    def described(self) -> dict[str, int]:
        """Return what a manifest records of it: all that is not as usual, where there is nothing to spread over."""
        fields = self._asdict().items()
        return {name: value for name, value in fields if value is not None and value is not False}


def sampled(read: Reader, sample: Sample) -> tuple[Reader, Sample]:
    """Return a reader of the items of a sample, which come in the order of the file, and the sample as it was drawn.

    Groups are drawn in an order that seed and group alone decide, and their items are taken until there are enough; of
    the last group that may be a part. An item without a group is a group of its own. So a larger sample with the same
    seed holds the smaller one, and a run can be extended. A sample that is spread has of each stratum (the category of
    a group; of items without groups also their systems) as many groups as its share of the data: systematic sampling
    with a start at random (Cochran 1977, chapter 8), by which each group is as likely as any other.
    """
    seen: Counter[int] = Counter()

    def rank(numbered: Numbered) -> tuple[int, int, int]:
        item = numbered[1]
        group = ("item", item.id) if item.group is None else ("group", item.group)
        drawn = digest(sample.seed, *group)
        seen[drawn] += sample.of_group is not None
        category = getattr(item, "category", None)
        systems = [getattr(item, name, None) for name in ("system", "model_1", "model_2")]
        stratum = digest(sample.seed, "stratum", category, *(systems if item.group is None else ()))
        return drawn, (seen[drawn] - 1) // sample.of_group if sample.of_group else 0, stratum

    kinds = [("drawn", np.uint64), ("time", np.int64), ("stratum", np.uint64)]
    ranks = np.fromiter(map(rank, read()), dtype=kinds)
    groups, first, group_of = np.unique(ranks["drawn"], return_index=True, return_inverse=True)
    # The groups come sorted by what they drew; a group is in the stratum of its first item.
    strata = ranks["stratum"][first]
    several = np.unique(strata)
    spread = sample.spread and len(several) > 1
    places = np.arange(len(groups), dtype=float)
    for stratum in several if spread else ():
        of_stratum = np.flatnonzero(strata == stratum)
        start = float(stratum) / 2**64
        places[of_stratum] = (np.arange(len(of_stratum)) + start) / len(of_stratum)
    # Stable: within a group the file's order decides.
    order = np.lexsort((group_of, places[group_of], ranks["time"]))
    chosen = set(order[: sample.size].tolist())
    drawn = sample._replace(spread=spread)
    return lambda: (numbered for index, numbered in enumerate(read()) if index in chosen), drawn


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
        digits = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text.strip())
        shard = cls(int(digits[1]), int(digits[2])) if digits else None
        if shard is None or not 1 <= shard.number <= shard.of:
            remedy = "give a shard and the number of shards, from 1/4 to 4/4 for four shards"
            raise UsageError(f"--shard {text!r}: {remedy}")
        return shard

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @property
    def folder(self) -> str:
        """The name of the folder of its results, such as ``shard-2-of-4``."""
        return f"shard-{self.number}-of-{self.of}"


def sharded(read: Reader, shard: Shard) -> Iterator[Numbered]:
    """Yield the items of a shard, in the order of the file.

    Groups are dealt out one after the other as they first occur, so that all texts on one source are judged in the same
    place. An item without a group is a group of its own.
    """
    places: dict[str, int] = {}
    groups = 0
    for numbered in read():
        group = numbered[1].group
        # Items without a group are counted and not remembered: there may be millions of them.
        place = groups if group is None else places.setdefault(group, groups)
        groups += place == groups
        if place % shard.of == shard.number - 1:
            yield numbered
