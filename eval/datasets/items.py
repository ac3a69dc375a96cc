"""Define the items to be judged, with their labels, and check and count those of a dataset."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain
from statistics import fmean
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from typing_extensions import TypedDict

from ...state.aggregation import majority as winner_of_most
from ...state.aspects import Aspect
from ...state.checked import field_path
from ...state.conversations import asked_and_answered, read_conversation
from ...state.errors import DataError, UsageError
from ...state.media import Media
from ...state.redaction import redact_all
from ...state.tasks import DEFAULT_CRITERIA, AsText, CompareTask, ScoreTask, TaskKind, texts_of
from ...state.verdict import Winner
from .files import Row
from .reading import named_winner


def _with_point(value: Any) -> Any:
    """Read the comma in "3,5", as spreadsheets write it in much of the world."""
    is_comma = isinstance(value, str) and re.fullmatch(r"\s*-?\d+,\d+\s*", value)
    return value.replace(",", ".") if is_comma else value


Number = Annotated[float, BeforeValidator(_with_point), Field(allow_inf_nan=False)]


class _Item(BaseModel):
    # A dataset may carry columns of its own: they are ignored. Published ids are often numbers: they become text.
    model_config = ConfigDict(frozen=True, extra="ignore", coerce_numbers_to_str=True)

    id: str = Field(min_length=1)
    group: str | None = None
    media: Media = {}

    @model_validator(mode="before")
    @classmethod
    def _messages(cls, fields: Any) -> Any:
        return texts_of(fields)


class About(TypedDict):
    """Holds what a result repeats of its item, so that reading results needs no dataset.

    Attributes:
        systems: the author of the candidate, or of answer 1 and answer 2; empty where it is not known.
        category: the category of the question, if it has one.
        lengths: the number of characters of the candidate, or of answer 1 and answer 2.
        annotations: the label of each annotator, where it is known; ``None`` at the place of one who gave none.
    """

    systems: tuple[str, ...]
    category: str | None
    lengths: tuple[int, ...]
    annotations: tuple[float | Winner | None, ...]


Numbers = list[Number | None]
"""One number an annotator, in the order that all items have; null for one who gave none."""


def _by_annotator(labels: Sequence[float | Winner | None]) -> tuple[float | Winner | None, ...]:
    """Keep each annotator's place; where nobody gave a label, there are no annotators."""
    return tuple(labels) if any(label is not None for label in labels) else ()


class ScoreItem(_Item):
    """Holds a text to be rated, with people's scores by aspect where there are any.

    ``annotations`` holds single annotators' scores where ``human`` has their mean.
    """

    system: str | None = None
    source: Annotated[str, AsText]
    fact: Annotated[str | None, AsText] = None
    candidate: Annotated[str, AsText]
    references: tuple[str, ...] = ()
    human: dict[str, Number | Numbers] = {}
    annotations: dict[str, Numbers] = {}

    def task(self, aspect: Aspect | None) -> ScoreTask:
        """Return the task that a protocol is given."""
        assert aspect is not None  # texts are rated on aspects alone
        texts = {"source": self.source, "candidate": self.candidate, "fact": self.fact}
        return ScoreTask(**texts, aspect=aspect, media=self.media)

    def label(self, aspect: str | None) -> float | None:
        """Return people's score, the mean where several are given; ``None`` without any."""
        label = self.human.get(aspect or "")
        if not isinstance(label, list):
            return label
        given = [number for number in label if number is not None]
        return fmean(given) if given else None

    def about(self, aspect: str | None) -> About:
        """Return what a result of that aspect repeats of the item."""
        label = self.human.get(aspect or "")
        single = _by_annotator(label if isinstance(label, list) else self.annotations.get(aspect or "", ()))
        systems = (self.system,) if self.system else ()
        return About(systems=systems, category=None, lengths=(len(self.candidate),), annotations=single)


def _joined(value: Any) -> Any:
    """Join the turns of a conversation into one text."""
    if isinstance(value, list) and all(isinstance(turn, str) for turn in value):
        return "\n\n".join(f"Turn {number}: {turn}" for number, turn in enumerate(value, start=1))
    return value


def _as_text(value: Any) -> Any:
    """Turn whole numbers into text, and names that others have for a winner ("model_a", "draw") into ours.

    Tables hold 1.0 for 1 in a column with missing cells.
    """
    if isinstance(value, str):
        return named_winner(value) or value
    # Neither True, which is an int, nor NaN and infinity, which differ from their floor.
    whole = isinstance(value, int | float) and not isinstance(value, bool) and value == value // 1
    return f"{value:.0f}" if whole else value


Joined = Annotated[str, AsText, BeforeValidator(_joined)]
Preference = Annotated[Winner, BeforeValidator(_as_text)]


class CompareItem(_Item):
    """Holds two answers to be compared, with people's preference where there is one."""

    category: str | None = None
    question: Joined = Field(min_length=1)
    answer_1: Joined
    answer_2: Joined
    model_1: str | None = None
    model_2: str | None = None
    reference: Joined | None = None
    criteria: tuple[str, ...] = DEFAULT_CRITERIA
    human: Preference | list[Preference | None] | None = None

    def task(self, _aspect: Aspect | None = None) -> CompareTask:
        """Return the task that a protocol is given; like all else of a comparison, it is of no aspect."""
        return CompareTask(**{name: value for name, value in self if name in CompareTask.model_fields})

    def label(self, _aspect: str | None = None) -> Winner | None:
        """Return people's preference: that of the majority, a tie if there is none; ``None`` without labels."""
        if not isinstance(self.human, list):
            return self.human
        given = [vote for vote in self.human if vote is not None]
        return majority(given) if given else None

    def about(self, _aspect: str | None = None) -> About:
        """Return what a result repeats of the item."""
        single = _by_annotator(self.human) if isinstance(self.human, list) else ()
        systems = (self.model_1, self.model_2) if self.model_1 and self.model_2 else ()
        lengths = len(self.answer_1), len(self.answer_2)
        return About(systems=systems, category=self.category, lengths=lengths, annotations=single)


def majority(votes: Sequence[Winner]) -> Winner:
    """Return what more than half of the annotators said; else a tie (ChatEval, section 3.4).

    >>> majority(["1", "1", "tie"]), majority(["1", "2", "tie"])
    ('1', 'tie')
    """
    return winner_of_most(votes) or "tie"


Item = ScoreItem | CompareItem


def parse_item(row: Mapping[str, Any]) -> Item:
    """Make an item of a row; a row with a question, turns or two answers is a comparison.

    ``messages`` are the question of a comparison, and the source of a candidate; of a row without a candidate the last
    answer in them is rated, with the calls of tools that led to it.

    Raises:
        pydantic.ValidationError: names the field that is wrong.
        UsageError: ``messages`` that cannot be read.
    """
    row = dict(row)
    compares = "question" in row or "turns" in row or "answer_1" in row
    material = "question" if compares else "source"
    if "turns" in row:
        row.setdefault("question", row["turns"])
    if row.get("messages") is not None and material not in row:
        if compares or "candidate" in row:
            row[material] = row["messages"]
        else:
            media = row["media"] = dict(row.get("media") or {})
            entries = read_conversation(row["messages"], "messages", media=media)
            row["source"], row["candidate"] = asked_and_answered(entries)
    return (CompareItem if compares else ScoreItem).model_validate(row)


FIELDS = {*ScoreItem.model_fields, *CompareItem.model_fields, "turns", "messages"}
"""All fields that a row of data may have; other columns are left alone."""

# Postgres, many models and terminals take no NUL; halves of surrogate pairs have no UTF-8, so that no file takes them.
_UNUSABLE = re.compile("[\0\ud800-\udfff]")


def unusable_character(row: Mapping[str, Any]) -> str:
    """Describe the first character of a row's texts that can be neither sent nor stored; empty if there is none.

    >>> unusable_character({"id": "a", "source": "Noon.", "candidate": "It rai\\0ned."})
    "field 'candidate' has a NUL character, at position 7 of the text: remove it"
    """
    for name in FIELDS & row.keys():
        for text in _texts(row[name]):
            # Asked first whether the text is plain ASCII, as most are: that takes a fraction of the search.
            match = None if text.isascii() and "\0" not in text else _UNUSABLE.search(text)
            if match:
                kind = "a NUL character" if match[0] == "\0" else f"half a character (U+{ord(match[0]):X})"
                return f"field {name!r} has {kind}, at position {match.start() + 1} of the text: remove it"
    return ""


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _texts(list(chain.from_iterable(value.items())))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)


Numbered = tuple[int, Item]
"""An item and its number: its line in a file, or its position among items in memory."""

Reader = Callable[[], Iterator[Numbered]]
"""Reads the items from the beginning, as often as it is called."""


def parse_rows(rows: Iterable[Row], place: str, line_name: str, columns: bool = False) -> Iterator[Numbered]:
    """Yield the items in rows; ``columns`` says whether the user may name the columns that they are in."""
    for number, row in rows:
        if fault := unusable_character(row):
            raise DataError(f"{place}, {line_name} {number}: {fault}")
        try:
            item = parse_item(row)
        except ValidationError as error:
            raise DataError(f"{place}, {line_name} {number}: {explain(error, row, columns)}") from error
        except UsageError as error:
            raise DataError(f"{place}, {line_name} {number}: field 'messages': {error}") from error
        yield number, item


def explain(error: ValidationError, row: Any = None, columns: bool = False) -> str:
    """Describe the first error that pydantic found in one line: field, fault, value."""
    errors = error.errors(include_url=False)
    first = errors[0]
    field = ".".join(map(str, field_path(first["loc"])))
    message = first["msg"].removeprefix("Value error, ")
    # A validator of our own says in its message what is wrong with the value: it need not be quoted again.
    if not field or first["type"] == "value_error":
        return f"field {field!r}: {message}" if field else message
    if first["type"] == "missing":
        missing = [str(fault["loc"][-1]) for fault in errors if fault["type"] == "missing"]
        # Rows without ids are numbered as soon as their texts are found.
        missing = [name for name in missing if name != "id"] or missing
        has = f"; the row has {', '.join(map(str, row))}" if isinstance(row, dict) else ""
        names = ",".join(f"{name}=COLUMN" for name in missing)
        if "candidate" in missing:
            names += " (and human.ASPECT=COLUMN for human scores)"
        of, it, verb = ("field", "it", "is") if len(missing) == 1 else ("fields", "them", "are")
        named = f"; to read {it} from one of these, use --columns {names}" if columns and has else ""
        if named and len(row) == 1:
            named = "; if that is a title, delete the lines above the column names"
        return f"{of} {' and '.join(map(repr, missing))} {verb} missing{has}{named}"
    if field == "human" and first["type"] == "dict_type":
        message = "scores are given by aspect, as human.coherence (--columns human.ASPECT=COLUMN)"
    # Redacted before it is cut, since half a key is no longer known for one.
    value = repr(redact_all({field: first["input"]})[field])
    return f"field {field!r}: {message}, got {value[:80]}{'...' if len(value) > 80 else ''}"


@dataclass
class LabelRange:
    """Records the first item that has an aspect (counted from 0), and the range of the aspect's labels."""

    first: int
    low: float = math.inf
    high: float = -math.inf


@dataclass
class DatasetProfile:
    """Counts the items of a dataset and records their labels' ranges, in one pass.

    Attributes:
        kind: the kind of task, the same for all items.
        count: the number of items.
        has_labels: whether any item has a label, by people or by the construction of the data.
        has_facts: whether any item comes with a fact to be made use of, as dialogues do.
        aspects: the aspects that have labels, in the order in which they first occur.
    """

    kind: TaskKind
    count: int = 0
    has_labels: bool = False
    has_facts: bool = False
    aspects: dict[str, LabelRange] = field(default_factory=dict)


def profile_items(read: Reader, name: str, line_name: str, longest: float = math.inf) -> DatasetProfile:
    """Check all items, one at a time, and return what is kept of them.

    Args:
        read: a function that reads the items.
        name: the name of the file, for messages.
        line_name: what an item's number counts.
        longest: how many characters the longest text of an item may have.

    Raises:
        DataError: no items, a text that is too long, both kinds, or one id twice; names the place.
    """
    profile: DatasetProfile | None = None
    # Digests of 8 bytes in place of ids: a dataset of millions of items is checked for repeated ids in little memory.
    ids = array("Q")
    for number, item in read():
        where = f"{name}, {line_name} {number}"
        for of_field, text in item:
            if isinstance(text, str) and len(text) > longest:
                long = f"field {of_field!r} has {len(text):,} characters, more than {longest:,}"
                raise DataError(f"{where}: {long}; if that is intended, allow more with --max-chars")
        kind: TaskKind = "score" if isinstance(item, ScoreItem) else "compare"
        profile = profile or DatasetProfile(kind)
        if profile.kind != kind:
            raise DataError(f"{where}: a file cannot hold both texts to be rated and answers to be compared")
        profile.has_labels |= bool(item.human)
        if isinstance(item, ScoreItem):
            profile.has_facts |= bool(item.fact)
            # The item's index from 0, since it is counted only now.
            for aspect in item.human:
                labels = profile.aspects.setdefault(aspect, LabelRange(profile.count))
                if (label := item.label(aspect)) is not None:
                    labels.low, labels.high = min(labels.low, label), max(labels.high, label)
        profile.count += 1
        ids.append(digest(item.id))
    if profile is None:
        raise DataError(f"{name}: holds no items")
    # Only now and only if need be are the items read again: digests say where to look, the ids themselves are compared.
    values, counts = np.unique(np.array(ids, dtype=np.uint64), return_counts=True)
    repeated, seen = set(values[counts > 1].tolist()), dict[str, int]()
    for number, item in read() if repeated else ():
        if item.id in seen:
            where = f"{name}, {line_name} {number}"
            raise DataError(f"{where}: id {item.id!r} is already used in {line_name} {seen[item.id]}")
        if digest(item.id) in repeated:
            seen[item.id] = number
    return profile


def digest(*parts: Any) -> int:
    """Return 64 bits that identify some values: equal values have equal digests, different values different ones.

    Among a million values the chance that any two share theirs is below one in ten million.

    >>> digest("a", None) == digest("a", None), digest("a", None) == digest("a", "None")
    (True, False)
    """
    return int.from_bytes(blake2b(repr(parts).encode(), digest_size=8).digest(), "little")
