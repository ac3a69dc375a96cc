"""Select columns by name, random samples of items, or the items of one shard."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ...state.checked import did_you_mean, listed
from ...state.errors import DataError, UsageError
from ...state.verdict import Winner
from .files import Row
from .items import FIELDS, Item, Numbered, Reader, digest
from .label_reader import UnreadableLabelError, read_score
from .paths import find
from .reading import BETTER, ROW_NUMBER, TOGETHER, Columns, annotator_names, columns_in, first_names


def parse_columns(text: str, fields: Collection[str] = FIELDS) -> dict[str, str]:
    """Read the mapping of fields to columns.

    Args:
        text: pairs such as ``candidate=summary``, with commas between them.
        fields: the fields that a row may have; by default, those of an item.

    Raises:
        UsageError: invalid syntax or an unknown field.

    >>> parse_columns("candidate=summary,human.fluency=rating")
    {'candidate': 'summary', 'human.fluency': 'rating'}
    """
    columns: dict[str, str] = {}
    for pair in text.split(","):
        field, equals, column = (part.strip() for part in pair.partition("="))
        if not (field and equals and column):
            raise UsageError(f"--columns: {pair!r} is not of the form FIELD=COLUMN")
        if field.partition(".")[0] not in fields:
            known = listed(sorted(fields), field)
            raise UsageError(f"--columns: unknown field {field!r}; fields are {known}")
        if field in columns:
            raise UsageError(
                f"--columns: {field!r} is given two columns, {columns[field]} and {column}"
            )
        columns[field] = column
    return columns


_TEXTS = {
    "source",
    "candidate",
    "fact",
    "context",
    "reference",
    "question",
    "turns",
    "answer_1",
    "answer_2",
    "messages",
}


def renamed(
    rows: Iterable[Row],
    columns: Columns,
    place: str,
    seen: dict[str, None] | None = None,
    line_name: str = "row",
) -> Iterator[Row]:
    """Yield the rows with the fields of an item; an empty cell leaves its field out.

    The column ``#`` is the number of the row among the rows read, from 1. Columns joined with ``+``
    contain the labels of several annotators. For ``score_a>score_b``, the answer with the higher
    score wins.

    Args:
        rows: the rows of a file or frame.
        columns: the column of each field.
        place: the name of the file, for messages.
        seen: collects the names of all columns, if given.
        line_name: the unit of a row's number, for messages.

    Raises:
        DataError: a column is empty in all rows.
        UsageError: annotators are in several columns and also in a column of names.
    """
    together = {field: column for field, column in columns.items() if TOGETHER in column}
    parts = {field: column.split(TOGETHER) for field, column in together.items()}
    sides = columns_in(columns["human"]) if BETTER in columns.get("human", "") else []
    _check_several(columns, parts, sides)
    named = {field: dict(zip(annotator_names(of), of, strict=True)) for field, of in parts.items()}
    annotators = [*dict.fromkeys(chain(*named.values()))]
    found = {ROW_NUMBER}
    # A text that is used for another field is not shown again under its own name.
    moved = (_TEXTS & {*columns.values()}) - columns.keys()
    known: dict[str, None] = {} if seen is None else seen
    for count, (number, row) in enumerate(rows, start=1):
        if not row.keys() <= known.keys():
            known.update(dict.fromkeys(row))
        fields = {field: cell for field, cell in row.items() if field not in moved}
        for field, column in columns.items():
            fields.pop(field, None)
            value: Any = str(count) if column == ROW_NUMBER else find(column, row)
            if sides and field == "human":
                value = _higher(row, sides, f"{place}, {line_name} {number}")
                found.update(side for side in sides if find(side, row) is not None)
            if value is not None:
                found.add(column)
            elif field in named:
                cells = {name: find(of, row) for name, of in named[field].items()}
                found.update(of for name, of in named[field].items() if cells[name] is not None)
                value = [cells.get(name) for name in annotators]
                fields["annotators"] = annotators
            if value is None:
                continue
            outer, _, inner = field.partition(".")
            if inner:
                before = fields.get(outer)
                # Copy, because the original row may be used again.
                value = {**(before if isinstance(before, dict) else {}), inner: value}
            fields[outer] = value
        yield number, fields
    if sides:
        parts["human"] = sides
    wanted = chain(
        *(
            parts.get(field, [column]) if column not in found else ()
            for field, column in columns.items()
        )
    )
    for column in wanted:
        if column not in found:
            raise DataError(
                f"{place}: no row has a value in the column {column!r}; "
                f"columns are {first_names(known)}{did_you_mean(column, [*known])}"
            )


def _check_several(
    columns: Columns, parts: Mapping[str, Sequence[str]], sides: Sequence[str]
) -> None:
    """Check the fields that are taken from several columns.

    Raises:
        UsageError: a field that takes a single column, annotators named twice, or more than two
            scores to compare.
    """
    if strange := [field for field in parts if field.partition(".")[0] != "human"]:
        raise UsageError(
            f"--columns: {strange[0]} takes one column, and only human labels take several"
        )
    if parts and "annotator" in columns:
        raise UsageError(
            f"--columns: {', '.join(next(iter(parts.values())))} are columns of one annotator "
            f"each, so {columns['annotator']!r} cannot name the annotator: leave out one"
        )
    if sides and len(sides) != 2:
        raise UsageError(
            f"--columns: human={columns['human']} names {len(sides)} scores, and must name two"
        )


def _higher(row: Mapping[str, Any], sides: Sequence[str], where: str) -> Winner | None:
    """Return the answer with the higher score; ``None`` if a score is missing.

    Raises:
        DataError: a score that cannot be read.
    """
    scores = []
    for side in sides:
        try:
            scores.append(read_score(find(side, row)))
        except UnreadableLabelError as error:
            raise DataError(f"{where}: column {side!r}: {error}") from None
    first, second = scores
    if first is None or second is None:
        return None
    return "tie" if first == second else "1" if first > second else "2"


class Sample(NamedTuple):
    """A random sample of a dataset's items.

    Attributes:
        size: the requested number of items.
        seed: the random seed.
        of_group: the most items of a group that are drawn before other groups have had their turn;
            ``None``: all.
        spread: whether categories and systems are represented in proportion. Samples of earlier
            versions were not spread.
        shuffled: whether ``of_group`` draws at random within a group. Earlier versions took the
            items of a group in the order of the file.
        labelled: the aspects for which a drawn item has a human label; empty for comparisons.
            ``None``: items without labels are drawn, too.
    """

    size: int
    seed: int
    of_group: int | None = None
    spread: bool = False
    shuffled: bool = False
    labelled: Sequence[str] | None = None

    def described(self) -> dict[str, Any]:
        """Return the description for a manifest, without settings that have no effect."""
        # A list, because JSON has no tuples.
        labelled = None if self.labelled is None else [*self.labelled]
        fields = {**self._asdict(), "labelled": labelled}.items()
        return {name: value for name, value in fields if value is not None and value is not False}


def sampled(read: Reader, sample: Sample) -> tuple[Reader, Sample]:
    """Return a reader of a sample in the order of the file, and the sample as it was drawn.

    Seed and group alone determine the order in which groups are drawn. Items are taken until there
    are enough; the last group may be incomplete. An item without a group is a separate group. So a
    larger sample with the same seed contains the smaller one, and a run can be extended.

    A spread sample is stratified by the category of a group, and by systems for items without
    groups. Each stratum has as many groups as its share of the data: systematic sampling with a
    random start (Cochran 1977, chapter 8), in which each group is equally likely.

    In a shuffled sample, seed and item alone determine the order within a group. So the first items
    of each group, such as those of the same two systems, are not more likely than others.

    A labelled sample is drawn from the items with labels as if there were no others.
    """
    if sample.labelled is not None:
        whole = read
        aspects = sample.labelled
        read = lambda: (one for one in whole() if has_labels(one[1], aspects))  # noqa: E731

    def rank(numbered: Numbered) -> tuple[int, int, int]:
        item = numbered[1]
        group = ("item", item.id) if item.group is None else ("group", item.group)
        drawn = digest(sample.seed, *group)
        category = getattr(item, "category", None)
        systems = [getattr(item, name, None) for name in ("system", "model_1", "model_2")]
        stratum = digest(sample.seed, "stratum", category, *(systems if item.group is None else ()))
        return drawn, digest(sample.seed, "place", item.id) if sample.shuffled else 0, stratum

    kinds = [("drawn", np.uint64), ("place", np.uint64), ("stratum", np.uint64)]
    ranks = np.fromiter(map(rank, read()), dtype=kinds)
    groups, first, group_of = np.unique(ranks["drawn"], return_index=True, return_inverse=True)
    # Groups are sorted by their random rank; the first item determines the stratum.
    strata = ranks["stratum"][first]
    several = np.unique(strata)
    spread = sample.spread and len(several) > 1
    places = np.arange(len(groups), dtype=float)
    for stratum in several if spread else ():
        of_stratum = np.flatnonzero(strata == stratum)
        start = float(stratum) / 2**64
        places[of_stratum] = (np.arange(len(of_stratum)) + start) / len(of_stratum)
    # lexsort is stable: without shuffling, the order of the file applies within a group.
    by_group = np.lexsort((ranks["place"], group_of))
    sizes = np.bincount(group_of)
    starts = np.cumsum(sizes) - sizes
    turn = np.zeros(len(ranks), dtype=np.int64)
    if sample.of_group is not None:
        turn[by_group] = (np.arange(len(ranks)) - starts[group_of[by_group]]) // sample.of_group
    order = np.lexsort((ranks["place"], group_of, places[group_of], turn))
    chosen = set(order[: sample.size].tolist())
    drawn = sample._replace(spread=spread)
    return lambda: (numbered for index, numbered in enumerate(read()) if index in chosen), drawn


def has_labels(item: Item, aspects: Sequence[str]) -> bool:
    """Return whether an item has a human label for each of these aspects.

    Comparisons have no aspects, but one label.
    """
    names: Sequence[str | None] = aspects or (None,)
    return all(item.label(name) is not None for name in names)


class Shard(NamedTuple):
    """A part of a dataset: shard ``number`` (from 1) of ``of`` shards."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read ``number/of``.

        Raises:
            UsageError: invalid syntax, or a number that is out of range.

        >>> Shard.parse("2/4")
        Shard(number=2, of=4)
        """
        digits = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text.strip())
        shard = cls(int(digits[1]), int(digits[2])) if digits else None
        if shard is None or not 1 <= shard.number <= shard.of:
            raise UsageError(
                f"--shard {text!r}: give a shard and the number of shards, from 1/4 to 4/4 for four "
                "shards"
            )
        return shard

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @property
    def folder(self) -> str:
        """The name of the folder for its results, such as ``shard-2-of-4``."""
        return f"shard-{self.number}-of-{self.of}"


def sharded(read: Reader, shard: Shard) -> Iterator[Numbered]:
    """Yield the items of a shard, in the order of the file.

    Groups are dealt out in turn as they first occur, so that all texts on one source are judged in
    the same shard. An item without a group is a separate group.
    """
    places: dict[str, int] = {}
    groups = 0
    for numbered in read():
        group = numbered[1].group
        # Count items without a group, but do not store them: there may be millions.
        place = groups if group is None else places.setdefault(group, groups)
        groups += place == groups
        if place % shard.of == shard.number - 1:
            yield numbered
