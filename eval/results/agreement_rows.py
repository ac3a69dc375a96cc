"""Collects rows of judges' and human values: which of them count, and why others do not.

For a row that counts, a few numbers are stored, about 50 bytes. ``FlaggedItems`` collects the items
with a text that states a verdict itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...nodes.replies.shown import flagged_texts
from ...state.errors import DataError
from ...state.tasks import TaskKind
from ...state.verdict import Winner
from ..datasets.items import LABEL_FIELDS, digest, majority
from ..datasets.label_reader import (
    NO_CODES,
    LabelCodes,
    UnreadableLabelError,
    is_missing,
    read_score,
    read_winner,
    translated,
)
from ..datasets.reading import annotator_of
from ..statistics.alignment import FAILED, UNJUDGED, UNLABELLED
from ..statistics.tie_policy import CODES, WINNERS
from .results import NumberRows

DUPLICATE = "duplicate"
HUMAN_TIE = "human tie"
UNREADABLE = "unreadable value"
FLAGGED = "contains a verdict"
"""Reasons why a row does not count, in addition to those for all statistics."""

Value = TypeVar("Value")


def cluster_digest(group: Any = None, item: Any = None) -> int:
    """Return the digest of a row's cluster: its group, or its item if it has no group.

    Results of a run and rows of a file have the same digests for the same names, so they use the
    same resamples.

    >>> cluster_digest("article 1") == cluster_digest("article 1", "item 7")
    True
    """
    if isinstance(group, str):
        return _digest_of_name("group", group)
    return digest("group", group) if group is not None else digest("item", item)


@lru_cache(maxsize=10_000)
def _digest_of_name(of: str, name: str) -> int:
    """Return the digest of a name that many rows share, such as their group's."""
    return digest(of, name)


class RowTable(NamedTuple):
    """The rows of one aspect that count, in columns, and the number of others by reason.

    Attributes:
        kind: whether these are scores or preferences.
        rows: the columns are ``values``, those of ``AspectRows`` with the judge's first;
            ``cluster``, the digest of the row's cluster for resampling (its group, else its item);
            ``grouped``, whether it has a group; ``unit``, the digest of what is judged, which is
            the same for all protocols; ``repeat``, the number of its repeat in order of
            occurrence; ``system``, the digest of the name of the system that wrote the text, 0 if
            unknown.
        left_out: the number of rows for each reason.
        annotated: the number of merged rows of single annotators, and the number of resulting rows.
    """

    kind: TaskKind
    rows: NDArray[Any]
    left_out: Mapping[str, int]
    annotated: tuple[int, int] = (0, 0)


class AspectRows:
    """Collects the rows of one aspect; the first row with a score or winner determines their kind.

    It stores the values of each row that counts: the judge's and the human score, or the codes of
    both preferences in ``WINNERS`` and the human votes for each.

    Args:
        codes: the meanings of the values of human labels.
        skip_unreadable: whether a row with an unreadable value is left out and counted; otherwise
            it is an error.
    """

    def __init__(self, codes: LabelCodes = NO_CODES, skip_unreadable: bool = False) -> None:
        self._codes = codes
        self._skip_unreadable = skip_unreadable
        self._kind: TaskKind | None = None
        self._first_place = 0
        self._labels_are_preferences = False
        self._left_out = Counter[str]()
        self._rows = _number_rows("score")
        self._repeat_numbers: dict[str, int] = {}

    def add(self, row: Mapping[str, Any], place: int, called: str) -> None:
        """Store a row, or count the reason why it does not count.

        Args:
            row: its fields.
            place: its position.
            called: the name for a row's position in messages: ``row``, or the name of a file with
                ``line``.

        Raises:
            DataError: a row that has a score and a winner, or one of them if earlier rows have the
                other; an unreadable value.
        """
        scored = not is_missing(row.get("score"))
        won = not is_missing(row.get("winner"))
        if scored and won:
            raise DataError(
                f"{called} {place}: has both a score and a winner; a row is either a rating or a comparison"
            )
        kind: TaskKind | None = "score" if scored else "compare" if won else None
        if kind is not None and self._kind is None:
            self._kind = kind
            self._first_place = place
            self._rows = _number_rows(kind)
        if kind not in (None, self._kind):
            about = f"aspect {row['aspect']!r}" if row.get("aspect") else "no aspect"
            raise DataError(
                f"{called} {place} and {called} {self._first_place}, both of {about}: "
                "one has a score and one a winner; give scores and comparisons different "
                "aspects, or separate files"
            )
        try:
            values = self._values(row, kind)
        except _UnreadableFieldError as error:
            if not self._skip_unreadable:
                raise DataError(
                    f"{called} {place}: {error}. To leave out such rows and count them, add "
                    "--skip-unreadable (skip_unreadable=True)"
                ) from None
            values = UNREADABLE
        if isinstance(values, str):
            self.leave_out(row, values)
        else:
            self._keep(row, place, values)

    def leave_out(self, row: Mapping[str, Any], reason: str) -> None:
        """Count a row that does not count, and note the kind of its label."""
        self._left_out[reason] += 1
        human = row.get("human")
        if isinstance(human, str):
            with suppress(UnreadableLabelError):
                self._labels_are_preferences |= (
                    read_winner(translated(human, self._codes)) is not None
                )

    def _keep(self, row: Mapping[str, Any], place: int, values: Sequence[float]) -> None:
        # A missing repeat, an empty one and 0 are the same: the first.
        group = row.get("group")
        repeat = str(row.get("repeat") or 0)
        grouped = group is not None and group != ""
        alone = _about(row, place)
        annotator = annotator_of(row)
        is_list = isinstance(row.get("human"), list | tuple) or bool(row.get("annotations"))
        of_unit = (group, *map(row.get, ("system", "systems", "aspect")), repeat)
        identity = (*of_unit, row.get("protocol"))
        # Digests of eight bytes represent names of any length. Equal rows are found by their
        # digests only.
        cluster = cluster_digest(group) if grouped else digest(*alone)
        number_of_repeat = self._repeat_numbers.setdefault(repeat, len(self._repeat_numbers))
        by = 0 if annotator is None else digest(annotator)
        system = _system(row)
        self._rows.add(
            *values,
            cluster,
            digest(*alone, *identity),
            digest(*alone, *of_unit),
            place,
            number_of_repeat,
            grouped,
            by,
            is_list,
            _digest_of_name("system", system)
            if isinstance(system, str)
            else (0 if system is None else digest("system", system)),
        )

    def table(self, called: str) -> RowTable:
        """Return the rows that count, without duplicates; without verdicts, labels show the kind.

        Args:
            called: as in ``add``.

        Rows of the same item, aspect, protocol and repeat with the same verdict belong to several
        annotators if they name annotators, or if any of their labels differ. Otherwise they are
        duplicates, and one of them counts.

        Raises:
            DataError: two rows of the same item, aspect, protocol and repeat with different
                verdicts, or two labels of one annotator.
        """
        kind = self._kind or ("compare" if self._labels_are_preferences else "score")
        rows = self._rows.table()
        _, first, key_numbers = np.unique(rows["key"], return_index=True, return_inverse=True)
        if len(first) == len(rows):
            return RowTable(kind, rows, dict(self._left_out))
        values = rows["values"]
        first_alike = first[key_numbers]
        differs = (values != values[first_alike]).any(axis=1)
        other_verdict = values[:, 0] != values[first_alike, 0]
        # Lists of labels have all annotators of their item.
        wrong = other_verdict | (differs & (rows["is_list"] | rows["is_list"][first_alike]))
        if wrong.any():
            later = int(np.flatnonzero(wrong)[0])
            problem = "have the same item, aspect, protocol and repeat, but differ"
            remedy = (
                "delete one of them, or give them different items, systems, protocols or repeats"
            )
            self._refuse(rows, int(first_alike[later]), later, called, f"{problem}: {remedy}")
        # Without names of annotators, equal rows are duplicates unless other rows of one item
        # differ.
        several = bool(differs[rows["annotator"] == 0].any())
        kept: list[int] = []
        merged: dict[int, list[int]] = {}
        by_annotator: dict[tuple[int, int], int] = {}
        for place, key in enumerate(key_numbers.tolist()):
            annotator = int(rows["annotator"][place])
            if annotator or not several:
                earlier = by_annotator.setdefault((key, annotator), place)
                if earlier != place:
                    if (values[earlier] != values[place]).any():
                        problem = (
                            "have two labels of one annotator for one item: delete one of them"
                        )
                        self._refuse(rows, earlier, place, called, problem)
                    continue
            merged.setdefault(key, []).append(place)
            kept.append(place)
        # A copy, because more rows may follow.
        values = values.copy()
        for places in merged.values():
            if len(places) > 1:
                values[places[0]] = _together(kind, values[places])
        left = sorted(places[0] for places in merged.values())
        result = rows[left]
        result["values"] = values[left]
        several_each = [places for places in merged.values() if len(places) > 1]
        duplicates = len(rows) - len(kept)
        left_out = {**self._left_out, **({DUPLICATE: duplicates} if duplicates else {})}
        return RowTable(kind, result, left_out, (sum(map(len, several_each)), len(several_each)))

    @staticmethod
    def _refuse(
        rows: NDArray[Any], earlier: int, later: int, called: str, problem: str
    ) -> NoReturn:
        places = rows["place"]
        raise DataError(f"{called} {places[earlier]} and {called} {places[later]} {problem}")

    def _values(self, row: Mapping[str, Any], kind: TaskKind | None) -> tuple[float, ...] | str:
        """Read the judge's and the human score, or both preferences and the human votes.

        Args:
            row: its fields.
            kind: ``None`` for a row without a verdict.

        Returns:
            the values, or the reason why the row does not count.

        Raises:
            _UnreadableFieldError: an unreadable value.
        """
        if row.get("status") == "failed":
            return FAILED
        if is_missing(row.get("human")):
            return UNLABELLED
        if kind is None:
            return UNJUDGED
        if kind == "score":
            return self._scores(row)
        return self._preferences(row)

    def _scores(self, row: Mapping[str, Any]) -> tuple[float, ...] | str:
        human = self._read_labels(row, "human", read_score)
        judged = _read("score", read_score, row.get("score"))
        if not human or judged is None:
            return UNLABELLED if not human else UNJUDGED
        return judged, human[0] if len(human) == 1 else float(np.mean(human))

    def _preferences(self, row: Mapping[str, Any]) -> tuple[float, ...] | str:
        human: list[Winner] = self._read_labels(row, "human", read_winner)
        judged = _read("winner", read_winner, row.get("winner"))
        if not human or judged is None:
            return UNLABELLED if not human else UNJUDGED
        is_list = isinstance(row["human"], list | tuple)
        label = majority(human) if is_list else human[0]
        # Single votes are in the label itself, or next to it, as in the results of a run.
        votes = human if is_list else self._read_labels(row, "annotations", read_winner) or human
        return CODES[judged], CODES[label], *map(votes.count, WINNERS)

    def _read_labels(
        self, row: Mapping[str, Any], field: str, read: Callable[[Any], Value | None]
    ) -> list[Value]:
        """Read a label, or those of several annotators; of labels by aspect, the row's aspect."""
        given = row.get(field)
        if isinstance(given, Mapping):
            if (aspect := row.get("aspect")) not in given:
                raise _UnreadableFieldError(
                    f"field {field!r} has labels of the aspects {', '.join(map(str, given))}; "
                    f"choose one with --columns {field}={field}.{next(iter(given), 'ASPECT')}"
                )
            given = given[aspect]
        labels = given if isinstance(given, list | tuple) else (given,)
        values = [_read(field, read, label, self._codes) for label in labels]
        return [value for value in values if value is not None]


class _UnreadableFieldError(ValueError):
    """A field with an unreadable value."""


def _read(
    field: str, read: Callable[[Any], Value | None], value: Any, codes: LabelCodes = NO_CODES
) -> Value | None:
    try:
        return read(translated(value, codes))
    except UnreadableLabelError as error:
        # --labels is for human labels, not for the judge's values.
        remedy = f"; {error.remedy}" if field in LABEL_FIELDS else ""
        raise _UnreadableFieldError(f"field {field!r}: {error}{remedy}") from None


def _about(row: Mapping[str, Any], place: int) -> tuple[Any, ...]:
    """Return the subject of a row: its item, else its texts; without either, the row itself."""
    for name in IDENTIFYING:
        if not is_missing(row.get(name)):
            return "item", row[name]
    texts = tuple(str(row[name]) for name in TEXTS if not is_missing(row.get(name)))
    return ("texts", *texts) if texts else ("row", place)


def _system(row: Mapping[str, Any]) -> Any:
    """Return the system that wrote the text of a row: in a file, or in the results of a run."""
    if not is_missing(row.get("system")):
        return row["system"]
    systems = row.get("systems")
    return systems[0] if isinstance(systems, list | tuple) and len(systems) == 1 else None


IDENTIFYING = ("item", "item_id", "id")
"""Fields that name the item of a row; the first existing one counts."""

TEXTS = (
    "source",
    "fact",
    "context",
    "reference",
    "candidate",
    "question",
    "turns",
    "answer_1",
    "answer_2",
)
"""Fields that identify the item of a row without a name."""


def _together(kind: TaskKind, values: NDArray[Any]) -> NDArray[Any]:
    """Return the values of one row with the labels of several: the mean, or majority and votes."""
    if kind == "score":
        return np.array([values[0, 0], values[:, 1].mean()])
    votes = values[:, 2:].sum(axis=0)
    given: list[Winner] = [
        winner for winner, count in zip(WINNERS, votes, strict=True) for _ in range(int(count))
    ]
    return np.array([values[0, 0], CODES[majority(given)], *votes])


def _number_rows(kind: TaskKind) -> NumberRows:
    values = 2 if kind == "score" else 2 + len(WINNERS)
    return NumberRows(
        values=f"{values}d",
        cluster="Q",
        key="Q",
        unit="Q",
        place="Q",
        repeat="Q",
        grouped="?",
        annotator="Q",
        is_list="?",
        system="Q",
    )


class FlaggedItems:
    """Collects items, and the names of their texts that contain a verdict themselves.

    An item is flagged if any result on it is, for any protocol, aspect or repeat.

    Args:
        left_out: whether flagged items do not count.
    """

    def __init__(self, left_out: bool = False) -> None:
        self.left_out = left_out
        self._items: set[Hashable] = set()
        self._texts: dict[Hashable, tuple[str, ...]] = {}

    def add(self, item: Hashable, warnings: Iterable[str]) -> None:
        """Add the warnings of one result on an item."""
        self._items.add(item)
        if texts := flagged_texts(warnings):
            self._texts[item] = texts

    def leaves_out(self, item: Hashable) -> bool:
        """Return whether an item does not count."""
        return self.left_out and item in self._texts

    def note(self) -> str | None:
        """Return a note on the flagged items; ``None`` if nothing is flagged or left out.

        >>> flagged = FlaggedItems()
        >>> flagged.add("a", ["source states a verdict"])
        >>> flagged.add("b", [])
        >>> flagged.note()
        '1 of 2 items contains a verdict of its own (source): see --without-flagged'
        """
        flagged = len(self._texts)
        of = f"of {len(self._items):,} items"
        if not flagged:
            return (
                f"none {of} contains a verdict of its own, so none is left out"
                if self.left_out
                else None
            )
        contain = (
            "contains a verdict of its own" if flagged == 1 else "contain a verdict of their own"
        )
        texts = ", ".join(sorted({name for names in self._texts.values() for name in names}))
        return f"{flagged:,} {of} {contain} ({texts}): {'left out' if self.left_out else 'see --without-flagged'}"
