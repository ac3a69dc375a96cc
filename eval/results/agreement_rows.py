"""Collect rows of judges' and people's values one at a time: which of them count, and why the others do not.

Of a row that counts a few numbers are kept in typed arrays, some 40 bytes, however long it is.
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

from ...state.errors import DataError
from ...state.verdict import Winner
from ..datasets.items import digest, majority
from ..statistics.alignment import FAILED, NO_NUMBER, UNJUDGED, UNLABELLED, Units, number_groups

NO_PREFERENCE, DUPLICATE, HUMAN_TIE = "not 1, 2 or tie", "duplicate", "human tie"
FLAGGED = "contains a verdict"
"""The reasons for which a row does not count, beside those that hold for all statistics."""

PREFERENCES: tuple[Winner, ...] = ("1", "2", "tie")
Preference = Winner | Literal[""]
Floats = NDArray[np.float64]


def number(value: Any) -> float | None:
    """Read a score, or the mean of those given; ``None`` where there is none, NaN for what is no finite number.

    >>> number("4"), number([1, 2, None]), number(None), number("four"), number(float("inf"))
    (4.0, 1.5, None, nan, nan)
    """
    if type(value) is float and isfinite(value):
        return value  # the common case, before the slower checks
    if _missing(value):
        return None
    if isinstance(value, Sequence) and not isinstance(value, str):
        # Annotators who gave nothing do not count; one value that is no number makes the mean unknown.
        numbers = [read for member in value if (read := number(member)) is not None]
        return float(np.mean(numbers)) if numbers else None
    # float(True) is 1.0, but a truth value is no score.
    if isinstance(value, bool) or not isinstance(value, Real | str):
        return float("nan")
    try:
        converted = float(value)
    except (ValueError, OverflowError):
        return float("nan")
    return converted if isfinite(converted) else float("nan")


def preference(value: Any) -> Preference | None:
    """Read ``1``, ``2`` or ``tie``; ``None`` where there is none, an empty text for what is no preference.

    >>> preference(1), preference("Tie"), preference(None), preference("A")
    ('1', 'tie', None, '')
    """
    if _missing(value):
        return None
    # A column with gaps is often read as floats: 1.0 stands for 1.
    text = f"{value:g}" if isinstance(value, float) else str(value).strip().lower()
    return next((known for known in PREFERENCES if known == text), "")


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, str | list | tuple) and not value)


@dataclass(frozen=True)
class RowTable:
    """Holds the rows of one aspect that count, in columns, and how many do not, by reason.

    Attributes:
        values: the columns of values, the judge's first, then people's.
        units: the number of what each row is drawn with in resampling: its group, else its item.
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
        """Return the table of some of the rows; units are numbered anew."""
        return replace(
            self,
            values=tuple(column[rows] for column in self.values),
            units=number_groups(self.units[rows], rows=len(self.units[rows])),
            grouped=self.grouped[rows],
            repeats=self.repeats[rows],
            left_out=self.left_out if left_out is None else left_out,
        )

    def each_repeat(self) -> list[RowTable]:
        """Return one table for each repeat, in order."""
        return [self.chosen(np.flatnonzero(self.repeats == repeat)) for repeat in np.unique(self.repeats)]


class Rows:
    """Collects rows of one kind: scores (judged, human), or preferences (judged, human, people's votes for 1, 2, tie).

    Args:
        kinds: the type code of each column's array, one letter each.
    """

    def __init__(self, kinds: str) -> None:
        self.left_out: Counter[str] = Counter()
        self._values: tuple[array[Any], ...] = tuple(array(kind) for kind in kinds)
        self._units, self._keys = array("Q"), array("Q")
        self._places, self._repeats = array("Q"), array("Q")
        self._grouped = bytearray()
        self._repeat_numbers: dict[str, int] = {}

    def keep(self, row: Mapping[str, Any], place: int, values: Sequence[float]) -> None:
        """Keep the values of a row that counts."""
        for column, value in zip(self._values, values, strict=True):
            column.append(value)
        # No repeat, an empty one and 0 are the same: the first.
        item, group, repeat = row.get("item"), row.get("group"), str(row.get("repeat") or 0)
        grouped = not _missing(group)
        # A row without an item is a thing of its own: no other row is its duplicate.
        alone = ("row", place) if _missing(item) else ("item", item)
        identity = (
            group,
            row.get("system"),
            row.get("systems"),
            row.get("aspect"),
            row.get("protocol"),
            repeat,
        )
        # Digests of eight bytes stand for names of any length; equal rows are found by comparing these alone.
        self._units.append(digest("group", group) if grouped else digest(*alone))
        self._keys.append(digest(*alone, *identity))
        self._places.append(place)
        self._repeats.append(self._repeat_numbers.setdefault(repeat, len(self._repeat_numbers)))
        self._grouped.append(grouped)

    def table(self, called: str) -> RowTable:
        """Return the rows that count; of rows that are the same, the first.

        Args:
            called: what a row's place is called in messages: ``row``, or the name of a file with ``line``.

        Raises:
            DataError: two rows of the same item, aspect, protocol and repeat that differ.
        """
        units = np.array(self._units, dtype=np.uint64)
        whole = RowTable(
            values=tuple(np.array(column) for column in self._values),
            units=number_groups(units, rows=len(units)),
            # A copy: a bytearray that an array looks into can no longer grow.
            grouped=np.frombuffer(bytes(self._grouped), dtype=np.bool_),
            repeats=np.array(self._repeats, dtype=np.int64),
            left_out=dict(self.left_out),
        )
        _, first, key_numbers = np.unique(
            np.array(self._keys, dtype=np.uint64), return_index=True, return_inverse=True
        )
        if len(first) == len(units):
            return whole
        self._refuse_contradictions(whole, first[key_numbers], called)
        duplicates = {DUPLICATE: len(units) - len(first)}
        # np.unique sorts by key; the rows are to stay in their order.
        return whole.chosen(np.sort(first), left_out={**whole.left_out, **duplicates})

    def _refuse_contradictions(self, whole: RowTable, first: Units, called: str) -> None:
        """Refuse a row that differs from the first one with the same key, since nothing says which of them is right."""
        differs = np.any([column != column[first] for column in whole.values], axis=0)
        if differs.any():
            row = int(np.flatnonzero(differs)[0])
            earlier, later = self._places[first[row]], self._places[row]
            raise DataError(
                f"{called} {earlier} and {called} {later} are of the same item, aspect, protocol and repeat, and say "
                "different things: delete one of them, or tell them apart by item, system, protocol or repeat"
            )


class ScoreRows(Rows):
    """Collects a judge's scores beside people's."""

    def __init__(self) -> None:
        # Two doubles: the judge's score and people's.
        super().__init__("dd")

    def add(self, row: Mapping[str, Any], place: int) -> None:
        """Keep a row, or count why it does not count."""
        judged, human = number(row.get("score")), number(row.get("human"))
        if reason := why_left_out(row, judged, human):
            self.left_out[reason] += 1
        elif judged is None or human is None or isnan(judged) or isnan(human):
            self.left_out[NO_NUMBER] += 1
        else:
            self.keep(row, place, (judged, human))


class PreferenceRows(Rows):
    """Collects a judge's preferences beside that of people's majority and each of their votes."""

    def __init__(self) -> None:
        # The judge's and the majority's preference as indices into PREFERENCES, then the votes for each of these.
        super().__init__("BBQQQ")

    def add(self, row: Mapping[str, Any], place: int) -> None:
        """Keep a row, or count why it does not count."""
        judged = preference(row.get("winner"))
        human, votes = _labels(row)
        if reason := why_left_out(row, judged, human):
            self.left_out[reason] += 1
        elif not judged or not human or "" in votes:
            self.left_out[NO_PREFERENCE] += 1
        else:
            codes = PREFERENCES.index(judged), PREFERENCES.index(human)
            self.keep(row, place, (*codes, *map(votes.count, PREFERENCES)))


class AspectRows:
    """Collects the rows of one aspect, which are of one kind as soon as one of them has a score or a winner."""

    def __init__(self) -> None:
        self._rows: ScoreRows | PreferenceRows | None = None
        self._first_place = 0
        self._without_verdict: Counter[str] = Counter()
        self._labels_are_preferences = False

    def add(self, row: Mapping[str, Any], place: int, called: str) -> None:
        """Keep a row of scores or of preferences, or count why it does not count.

        Raises:
            DataError: a row that has a score and a winner, or one of them where the rows before have the other.
        """
        kind = _kind(row, f"{called} {place}")
        if kind is None:
            self.leave_out(row, str(why_left_out(row, None, row.get("human"))))
            return
        if self._rows is None:
            self._rows, self._first_place = kind(), place
        if not isinstance(self._rows, kind):
            about = f"aspect {row['aspect']!r}" if row.get("aspect") else "no aspect"
            raise DataError(
                f"{called} {place} and {called} {self._first_place}, both of {about}: one has a score and one a "
                "winner; give scores and comparisons aspects of their own, or files of their own"
            )
        self._rows.add(row, place)

    def leave_out(self, row: Mapping[str, Any], reason: str) -> None:
        """Count a row that does not count whatever it says, and keep what kind its label is of."""
        self._without_verdict[reason] += 1
        self._labels_are_preferences |= isinstance(row.get("human"), str) and bool(preference(row["human"]))

    def table(self, called: str) -> RowTable:
        """Return the rows that count; where no row has a verdict, the labels tell what kind they are."""
        kind = PreferenceRows if self._labels_are_preferences else ScoreRows
        table = (self._rows or kind()).table(called)
        left_out = Counter(table.left_out) + self._without_verdict
        return table.chosen(np.arange(len(table)), left_out=dict(left_out))


def _kind(row: Mapping[str, Any], where: str) -> type[ScoreRows | PreferenceRows] | None:
    scored, won = (row.get(name) not in (None, "") for name in ("score", "winner"))
    if scored and won:
        raise DataError(f"{where}: has a score and a winner; it can be a rating or a comparison, not both")
    return ScoreRows if scored else PreferenceRows if won else None


def _labels(row: Mapping[str, Any]) -> tuple[Preference | None, list[Preference]]:
    """Read people's preference (the majority's, where several are given), and each annotator's, where known."""
    human = row.get("human")
    if isinstance(human, list | tuple) and human:
        votes = [preference(vote) or "" for vote in human if not _missing(vote)]
        if not votes:
            return None, []
        readable = [vote for vote in votes if vote]
        # One vote that cannot be read makes the majority unknown: the row is left out as no preference.
        return majority(readable) if len(readable) == len(votes) else "", votes
    given = preference(human)
    return given, [preference(vote) or "" for vote in row.get("annotations") or [given]]


def why_left_out(row: Mapping[str, Any], judged: Any, human: Any) -> str | None:
    """Return why a row cannot count, whatever its values are; ``None`` if it can."""
    if row.get("status") == "failed":
        return FAILED
    if human is None:
        return UNLABELLED
    return UNJUDGED if judged is None else None
