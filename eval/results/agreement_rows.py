"""Collect rows of judges' and people's values one at a time: which of them count, and why the others do not.

Of a row that counts a few numbers are kept, some 50 bytes, however long it is. ``FlaggedItems`` are those of which a
text states a verdict itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import isfinite, isnan
from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...nodes.replies.shown import flagged_texts
from ...state.errors import DataError
from ...state.tasks import TaskKind
from ...state.verdict import Winner
from ..datasets.items import digest, majority
from ..statistics.alignment import FAILED, NO_NUMBER, UNJUDGED, UNLABELLED
from ..statistics.tie_policy import CODES, WINNERS
from .results import NumberRows

NO_PREFERENCE, DUPLICATE, HUMAN_TIE = "not 1, 2 or tie", "duplicate", "human tie"
FLAGGED = "contains a verdict"
"""The reasons for which a row does not count, beside those that hold for all statistics."""

Preference = Winner | Literal[""]


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
    return next((known for known in WINNERS if known == text), "")


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, str | list | tuple) and not value)


class RowTable(NamedTuple):
    """Holds the rows of one aspect that count, in columns, and how many do not, by reason.

    Attributes:
        kind: whether these are scores or preferences.
        rows: in these columns: ``values``, those that ``AspectRows`` keeps, the judge's first; ``cluster``, the digest
            of what the row is drawn with in resampling: its group, else its item; ``grouped``, whether it has a group;
            ``repeat``, which repeat it is of, numbered in the order in which they come up.
        left_out: reasons, with the number of rows.
    """

    kind: TaskKind
    rows: NDArray[Any]
    left_out: Mapping[str, int]


class AspectRows:
    """Collects the rows of one aspect, which are of one kind as soon as one of them has a score or a winner.

    Of a row that counts its values are kept: of scores the judge's and people's, of preferences the numbers of both in
    ``WINNERS``, and people's votes for each of these.
    """

    def __init__(self) -> None:
        self._kind: TaskKind | None = None
        self._first_place = 0
        self._labels_are_preferences = False
        self._left_out = Counter[str]()
        self._rows = _number_rows("score")
        self._repeat_numbers: dict[str, int] = {}

    def add(self, row: Mapping[str, Any], place: int, called: str) -> None:
        """Keep a row, or count why it does not count.

        Args:
            row: its fields.
            place: where it stands.
            called: what a row's place is called in messages: ``row``, or the name of a file with ``line``.

        Raises:
            DataError: a row that has a score and a winner, or one of them where the rows before have the other.
        """
        scored, won = (row.get(name) not in (None, "") for name in ("score", "winner"))
        if scored and won:
            problem = "has both a score and a winner; a row is either a rating or a comparison"
            raise DataError(f"{called} {place}: {problem}")
        kind: TaskKind | None = "score" if scored else "compare" if won else None
        if kind is not None and self._kind is None:
            self._kind, self._first_place, self._rows = kind, place, _number_rows(kind)
        if kind not in (None, self._kind):
            about = f"aspect {row['aspect']!r}" if row.get("aspect") else "no aspect"
            both = f"{called} {place} and {called} {self._first_place}, both of {about}"
            remedy = "give scores and comparisons different aspects, or separate files"
            raise DataError(f"{both}: one has a score and one a winner; {remedy}")
        values = _values(row, kind)
        if isinstance(values, str):
            self.leave_out(row, values)
        else:
            self._keep(row, place, values)

    def leave_out(self, row: Mapping[str, Any], reason: str) -> None:
        """Count a row that does not count whatever it says, and keep what kind its label is of."""
        self._left_out[reason] += 1
        self._labels_are_preferences |= isinstance(row.get("human"), str) and bool(preference(row["human"]))

    def _keep(self, row: Mapping[str, Any], place: int, values: Sequence[float]) -> None:
        # No repeat, an empty one and 0 are the same: the first.
        item, group, repeat = row.get("item"), row.get("group"), str(row.get("repeat") or 0)
        grouped = not _missing(group)
        # A row without an item is a thing of its own: no other row is its duplicate.
        alone = ("row", place) if _missing(item) else ("item", item)
        identity = (group, *map(row.get, ("system", "systems", "aspect", "protocol")), repeat)
        # Digests of eight bytes stand for names of any length; equal rows are found by comparing these alone.
        cluster = digest("group", group) if grouped else digest(*alone)
        number_of_repeat = self._repeat_numbers.setdefault(repeat, len(self._repeat_numbers))
        self._rows.add(*values, cluster, digest(*alone, *identity), place, number_of_repeat, grouped)

    def table(self, called: str) -> RowTable:
        """Return the rows that count, of rows that are the same the first; without a verdict, labels tell the kind.

        Args:
            called: as in ``add``.

        Raises:
            DataError: two rows of the same item, aspect, protocol and repeat that differ.
        """
        kind = self._kind or ("compare" if self._labels_are_preferences else "score")
        rows = self._rows.table()
        _, first, key_numbers = np.unique(rows["key"], return_index=True, return_inverse=True)
        # A row that differs from the first one with the same key: nothing says which of them is right.
        values, first_alike = rows["values"], first[key_numbers]
        differs = np.flatnonzero((values != values[first_alike]).any(axis=1))
        if len(differs):
            earlier, later = rows["place"][first_alike[differs[0]]], rows["place"][differs[0]]
            problem = "have the same item, aspect, protocol and repeat, but differ"
            remedy = "delete one of them, or give them different items, systems, protocols or repeats"
            raise DataError(f"{called} {earlier} and {called} {later} {problem}: {remedy}")
        duplicates = {DUPLICATE: len(rows) - len(first)} if len(first) < len(rows) else {}
        # np.unique sorts by key; the rows are to stay in their order.
        return RowTable(kind, rows[np.sort(first)], {**self._left_out, **duplicates})


def _number_rows(kind: TaskKind) -> NumberRows:
    values = 2 if kind == "score" else 2 + len(WINNERS)
    return NumberRows(values=f"{values}d", cluster="Q", key="Q", place="Q", repeat="Q", grouped="?")


def _values(row: Mapping[str, Any], kind: TaskKind | None) -> tuple[float, ...] | str:
    """Read the judge's and people's score, or the codes of their preferences and people's votes.

    Args:
        row: its fields.
        kind: ``None`` for a row without a verdict.

    Returns:
        the values, or why the row does not count.
    """
    judged: Any = None
    human: Any = row.get("human")
    votes: list[Preference] = []
    if kind == "score":
        judged, human = number(row.get("score")), number(human)
    elif kind == "compare":
        judged, (human, votes) = preference(row.get("winner")), _labels(row)
    if row.get("status") == "failed":
        return FAILED
    if human is None or judged is None:
        return UNLABELLED if human is None else UNJUDGED
    if kind == "score":
        return NO_NUMBER if isnan(judged) or isnan(human) else (judged, human)
    if not judged or not human or "" in votes:
        return NO_PREFERENCE
    return (CODES[judged], CODES[human], *map(votes.count, WINNERS))


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

        >>> flagged = FlaggedItems()
        >>> flagged.add("a", ["source states a verdict"])
        >>> flagged.add("b", [])
        >>> flagged.note()
        '1 of 2 items contains a verdict of its own (source): see --without-flagged'
        """
        flagged, of = len(self._texts), f"of {len(self._items):,} items"
        if not flagged:
            return f"none {of} contains a verdict of its own, so none is left out" if self.left_out else None
        contain = "contains a verdict of its own" if flagged == 1 else "contain a verdict of their own"
        texts = ", ".join(sorted({name for names in self._texts.values() for name in names}))
        return f"{flagged:,} {of} {contain} ({texts}): {'left out' if self.left_out else 'see --without-flagged'}"
