"""Merge the rows of several annotators of one text, so that they count as one item.

Rows are about one item if everything that a judge sees is equal. The merged item has the id of the
first row.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from ...state.errors import DataError
from .items import Item, Numbered, Reader, ScoreItem, shown_texts
from .label_reader import is_missing

NAMED_IN_NOTICE = 6
"""The number of annotators that a notice names."""


class _Rating(NamedTuple):
    """One annotator's labels of an item.

    Attributes:
        annotator: the name; ``None`` if unknown.
        labels: by aspect; the winner of a comparison is under ``None``.
        number: the line or row.
    """

    annotator: str | None
    labels: Mapping[str | None, Any]
    number: int


@dataclass
class _Ratings:
    """All ratings of one item, from all of its rows."""

    first: int
    ids: set[str] = field(default_factory=set)
    rows: int = 0
    labelled_rows: int = 0
    ratings: list[_Rating] = field(default_factory=list)

    def add(self, number: int, item: Item) -> None:
        found = [*_ratings(number, item)]
        self.ids.add(item.id)
        self.rows += 1
        self.labelled_rows += bool(found)
        self.ratings += found

    @property
    def named(self) -> bool:
        return any(rating.annotator is not None for rating in self.ratings)

    @property
    def is_one_item(self) -> bool:
        """Whether to merge the rows; rows without labels but with different ids stay separate."""
        return self.named or self.labelled_rows > 1 or len(self.ids) < self.rows

    @property
    def differ(self) -> bool:
        """Whether any two rows disagree."""
        return any(rating.labels != self.ratings[0].labels for rating in self.ratings)


def _ratings(number: int, item: Item) -> Iterator[_Rating]:
    """Yield the ratings in one row: one for each annotator who gave a label."""
    if isinstance(item, ScoreItem):
        by_aspect: dict[str | None, Any] = {}
        by_aspect.update(item.human)
        by_aspect.update(item.annotations)
    else:
        by_aspect = {None: item.human}
    lists = {
        name: label if isinstance(label, list) else [label] for name, label in by_aspect.items()
    }
    for place in range(max(map(len, lists.values()), default=0)):
        labels = {name: labels[place] for name, labels in lists.items() if place < len(labels)}
        given = {name: label for name, label in labels.items() if not is_missing(label)}
        if given:
            annotator = item.annotators[place] if place < len(item.annotators) else None
            yield _Rating(annotator, given, number)


class Merged(NamedTuple):
    """Items with the labels of all their annotators.

    Attributes:
        read: reads them.
        notices: what was merged, in sentences.
    """

    read: Reader
    notices: tuple[str, ...]


def merged(read: Reader, identities: array[int], place: str, line_name: str) -> Merged:
    """Merge the rows that are about one item.

    If annotators have no names, rows with equal texts come from different annotators if any of
    their labels differ in the data. If all labels are equal, the rows are duplicates and count
    once.

    Args:
        read: reads the items, one for each row.
        identities: ``shown_texts`` of each.
        place: the name of the file, for messages.
        line_name: what a row's number counts.

    Raises:
        DataError: one annotator gave one item two different labels.
    """
    values, counts = np.unique(np.array(identities, dtype=np.uint64), return_counts=True)
    repeated = set(values[counts > 1].tolist())
    found: dict[int, _Ratings] = {}
    for number, item in read():
        key = shown_texts(item)
        if key in repeated:
            found.setdefault(key, _Ratings(number)).add(number, item)
    together = {key: ratings for key, ratings in found.items() if ratings.is_one_item}
    several = any(ratings.differ for ratings in together.values() if not ratings.named)
    labels: dict[int, Mapping[str, Any]] = {}
    duplicates = 0
    annotated = _Count()
    for key, ratings in together.items():
        kept = _checked(ratings, several, place, line_name)
        labels[key] = _fields(kept)
        if len(kept) > 1:
            annotated.add(ratings.rows, kept)
        else:
            duplicates += ratings.rows - 1

    def read_merged() -> Iterator[Numbered]:
        for number, item in read():
            key = shown_texts(item)
            if key not in labels:
                yield number, item
            elif number == together[key].first:
                yield number, item.model_copy(update=dict(labels[key]))

    notices = [annotated.notice()] if annotated.items else []
    if duplicates:
        first = next(ratings for ratings in together.values() if ratings.rows > 1)
        where = f"the first is of {line_name} {first.first}"
        rows = "1 row repeats" if duplicates == 1 else f"{duplicates:,} rows repeat"
        notices.append(
            f"{rows} the texts and labels of earlier rows ({where}): each is judged once"
        )
    return Merged(read_merged, tuple(notices))


@dataclass
class _Count:
    """Counts merged rows and duplicates for the notice."""

    rows: int = 0
    items: int = 0
    most: int = 0
    names: dict[str, None] = field(default_factory=dict)

    def add(self, rows: int, kept: Sequence[_Rating]) -> None:
        self.rows += rows
        self.items += 1
        self.most = max(self.most, len(kept))
        self.names.update(
            dict.fromkeys(rating.annotator for rating in kept if rating.annotator is not None)
        )

    def notice(self) -> str:
        items = "1 item" if self.items == 1 else f"{self.items:,} items"
        rows = f"{self.rows:,} rows are {items}"
        if not self.names:
            most = f"up to {self.most} annotators each"
            return f"{rows} with {most}, because rows with equal texts and different labels are one item"
        names = ", ".join([*self.names][:NAMED_IN_NOTICE]) + ", ..." * (
            len(self.names) > NAMED_IN_NOTICE
        )
        return f"{rows} with {len(self.names):,} annotators ({names})"


def _checked(ratings: _Ratings, several: bool, place: str, line_name: str) -> list[_Rating]:
    """Return one rating for each annotator of an item.

    If each row has several annotators, their names come from the columns. Another row with the same
    columns may be from other people, so a row with different labels adds annotators.
    """
    ratings = _told_apart(ratings, line_name)
    by_name: dict[str, _Rating] = {}
    unnamed: list[_Rating] = []
    for rating in ratings.ratings:
        name = rating.annotator
        if name is None:
            unnamed.append(rating)
        elif (earlier := by_name.get(name)) is None:
            by_name[name] = rating
        else:
            for aspect, label in rating.labels.items():
                if earlier.labels.get(aspect, label) != label:
                    of = f" for {aspect}" if aspect else ""
                    raise DataError(
                        f"{place}, {line_name} {earlier.number} and {line_name} {rating.number}: annotator "
                        f"{name!r} gave equal texts two labels{of}, {earlier.labels[aspect]} and {label}; "
                        "delete one of the rows"
                    )
            by_name[name] = earlier._replace(labels={**earlier.labels, **rating.labels})
    return [*by_name.values(), *(unnamed if several else unnamed[:1])]


def _told_apart(ratings: _Ratings, line_name: str) -> _Ratings:
    """Rename the annotators of a later row if both rows have several and their labels differ."""
    by_row: dict[int, list[_Rating]] = {}
    for rating in ratings.ratings:
        by_row.setdefault(rating.number, []).append(rating)
    first, *others = by_row.values()
    told = [*first]
    known = [_said(first)]
    for row in others:
        if min(len(first), len(row)) == 1 or row[0].annotator is None:
            told += row
        elif _said(row) not in known:
            known.append(_said(row))
            where = f"{line_name} {row[0].number}"
            told += [
                rating._replace(annotator=rating.annotator and f"{rating.annotator}, {where}")
                for rating in row
            ]
    return replace(ratings, ratings=told)


def _said(row: Sequence[_Rating]) -> list[tuple[str | None, Mapping[str | None, Any]]]:
    return [(rating.annotator, rating.labels) for rating in row]


def _fields(kept: Sequence[_Rating]) -> Mapping[str, Any]:
    """Return the label fields of a merged item: one label, or the list of all labels."""
    named = any(rating.annotator is not None for rating in kept)
    annotators = (
        tuple(rating.annotator or f"unnamed {n}" for n, rating in enumerate(kept, start=1))
        if named
        else ()
    )
    by_aspect: dict[str | None, Any] = {}
    for name in dict.fromkeys(name for rating in kept for name in rating.labels):
        given = [rating.labels.get(name) for rating in kept]
        by_aspect[name] = given if len(kept) > 1 else given[0]
    if None in by_aspect:
        return {"human": by_aspect[None], "annotators": annotators}
    return {"human": by_aspect, "annotations": {}, "annotators": annotators}
