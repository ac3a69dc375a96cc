"""Rows of judges' and people's values, gathered one at a time: which of them count, and why the others do not.

Of a row that counts a few numbers are kept, some 40 bytes, however long it is.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, isnan
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..state.errors import DataError
from ..state.verdict import Winner
from .datasets.items import digest, majority
from .statistics.alignment import FAILED, NO_NUMBER, UNJUDGED, UNLABELLED, Units, number_groups

NO_PREFERENCE, DUPLICATE, HUMAN_TIE = "not 1, 2 or tie", "duplicate", "human tie"
"""Reasons for which a row does not count, beside those that hold for all statistics."""

PREFERENCES: tuple[Winner, ...] = ("1", "2", "tie")
Preference = Winner | Literal[""]
Floats = NDArray[np.float64]


def number(value: Any) -> float | None:
    """A score, or the mean of several; ``None`` where there is none, NaN for what is no finite number.

    >>> number("4"), number([1, 2]), number(None), number("four"), number(float("inf"))
    (4.0, 1.5, None, nan, nan)
    """
    if type(value) is float and isfinite(value):
        return value
    if _missing(value):
        return None
    if isinstance(value, Sequence) and not isinstance(value, str):
        each = [number(one) for one in value]
        return float("nan") if None in each else float(np.mean(np.array(each, dtype=float)))
    if isinstance(value, bool) or not isinstance(value, Real | str):
        return float("nan")
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return float("nan")
    return found if abs(found) < float("inf") else float("nan")


def preference(value: Any) -> Preference | None:
    """``1``, ``2`` or ``tie``; ``None`` where there is none, an empty text for what is no preference.

    >>> preference(1), preference("Tie"), preference(None), preference("A")
    ('1', 'tie', None, '')
    """
    if _missing(value):
        return None
    text = f"{value:g}" if isinstance(value, float) else str(value).strip().lower()
    return next((known for known in PREFERENCES if known == text), "")


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, str | list | tuple) and not value)


@dataclass(frozen=True)
class RowTable:
    """The rows of one aspect that count, in columns; and for what reasons how many do not.

    Attributes:
        values: the judge's and people's.
        units: what each row is drawn with: its group, else its item.
        grouped: whether it has a group.
        repeats: which repeat it is of, numbered in the order in which they come up.
        left_out: reasons, with the number of rows.
    """

    values: tuple[NDArray[Any], ...]
    units: Units
    grouped: NDArray[np.bool_]
    repeats: NDArray[np.int64]
    left_out: Mapping[str, int]

    def __len__(self) -> int:
        return len(self.units)

    def chosen(self, rows: NDArray[Any], left_out: Mapping[str, int] | None = None) -> RowTable:
        """Some of the rows; units are numbered anew."""
        return replace(
            self,
            values=tuple(column[rows] for column in self.values),
            units=number_groups(self.units[rows], rows=len(self.units[rows])),
            grouped=self.grouped[rows],
            repeats=self.repeats[rows],
            left_out=self.left_out if left_out is None else left_out,
        )

    def each_repeat(self) -> list[RowTable]:
        """The rows of each repeat, in order."""
        return [self.chosen(np.flatnonzero(self.repeats == at)) for at in np.unique(self.repeats)]


class Rows:
    """The rows of one aspect, of one kind: scores (judged, human), or preferences (judged, human, votes for each)."""

    def __init__(self, kinds: str) -> None:
        self.left_out: Counter[str] = Counter()
        self._values: tuple[array[Any], ...] = tuple(array(kind) for kind in kinds)
        self._units, self._keys = array("Q"), array("Q")
        self._places, self._repeats = array("Q"), array("Q")
        self._grouped = bytearray()
        self._names: dict[str, int] = {}

    def keep(self, row: Mapping[str, Any], place: int, values: Sequence[float]) -> None:
        """Keep the values of a row that counts."""
        for column, value in zip(self._values, values, strict=True):
            column.append(value)
        item, group, repeat = row.get("item"), row.get("group"), str(row.get("repeat") or 0)
        named = not _missing(group)
        alone = ("row", place) if _missing(item) else ("item", item)
        about = (group, row.get("system"), row.get("systems"), row.get("aspect"), row.get("protocol"), repeat)
        self._units.append(digest("group", group) if named else digest(*alone))
        self._keys.append(digest(*alone, *about))
        self._places.append(place)
        self._repeats.append(self._names.setdefault(repeat, len(self._names)))
        self._grouped.append(named)

    def table(self, called: str) -> RowTable:
        """The rows that count; of rows that are the same, the first.

        Args:
            called: what a row's place is called in messages: ``row``, or the name of a file with ``line``.

        Raises:
            DataError: two rows of the same item, aspect, protocol and repeat that differ.
        """
        units = np.array(self._units, dtype=np.uint64)
        whole = RowTable(
            values=tuple(np.array(column) for column in self._values),
            units=number_groups(units, rows=len(units)),
            grouped=np.frombuffer(bytes(self._grouped), dtype=np.bool_),
            repeats=np.array(self._repeats, dtype=np.int64),
            left_out=dict(self.left_out),
        )
        _, first, places = np.unique(
            np.array(self._keys, dtype=np.uint64), return_index=True, return_inverse=True
        )
        if len(first) == len(units):
            return whole
        self._refuse_contradictions(whole, first[places], called)
        more = {DUPLICATE: len(units) - len(first)}
        return whole.chosen(np.sort(first), left_out={**whole.left_out, **more})

    def _refuse_contradictions(self, whole: RowTable, first: Units, called: str) -> None:
        differs = np.any([column != column[first] for column in whole.values], axis=0)
        if differs.any():
            row = int(np.flatnonzero(differs)[0])
            one, other = self._places[first[row]], self._places[row]
            raise DataError(
                f"{called} {one} and {called} {other} are of the same item, aspect, protocol and repeat, and say "
                "different things: delete one of them, or tell them apart by item, system, protocol or repeat"
            )


class ScoreRows(Rows):
    """A judge's scores, beside people's."""

    def __init__(self) -> None:
        super().__init__("dd")

    def add(self, row: Mapping[str, Any], place: int) -> None:
        """Take in a row, or count why it does not count."""
        judged, human = number(row.get("score")), number(row.get("human"))
        if reason := why_left_out(row, judged, human):
            self.left_out[reason] += 1
        elif judged is None or human is None or isnan(judged) or isnan(human):
            self.left_out[NO_NUMBER] += 1
        else:
            self.keep(row, place, (judged, human))


class PreferenceRows(Rows):
    """A judge's preferences, beside that of people's majority and each of their votes."""

    def __init__(self) -> None:
        super().__init__("BBQQQ")

    def add(self, row: Mapping[str, Any], place: int) -> None:
        """Take in a row, or count why it does not count."""
        judged = preference(row.get("winner"))
        human, votes = _people(row)
        if reason := why_left_out(row, judged, human):
            self.left_out[reason] += 1
        elif not judged or not human or "" in votes:
            self.left_out[NO_PREFERENCE] += 1
        else:
            codes = PREFERENCES.index(judged), PREFERENCES.index(human)
            self.keep(row, place, (*codes, *map(votes.count, PREFERENCES)))


def _people(row: Mapping[str, Any]) -> tuple[Preference | None, list[Preference]]:
    """People's preference (the majority's, where several are given), and what each annotator said, where known."""
    human = row.get("human")
    if isinstance(human, list | tuple) and human:
        votes = [preference(vote) or "" for vote in human]
        readable = [vote for vote in votes if vote]
        return majority(readable) if len(readable) == len(votes) else "", votes
    found = preference(human)
    return found, [preference(vote) or "" for vote in row.get("annotations") or [found]]


def why_left_out(row: Mapping[str, Any], judged: Any, human: Any) -> str | None:
    """Why a row cannot count, whatever its values are; ``None`` if it can."""
    if row.get("status") == "failed":
        return FAILED
    if human is None:
        return UNLABELLED
    return UNJUDGED if judged is None else None
