"""Define the items to be judged and their labels, and check and count a dataset's items."""

from __future__ import annotations

import json
import math
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain
from statistics import fmean
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from typing_extensions import TypedDict

from ...state.aggregation import majority as winner_of_most
from ...state.aspects import OTHER_TEXTS, Aspect
from ...state.checked import field_path, is_blank
from ...state.conversations import asked_and_answered, read_conversation
from ...state.errors import DataError, UsageError
from ...state.media import Media
from ...state.redaction import redact_all
from ...state.rubrics import Criterion, check_ids, check_rubric
from ...state.tasks import (
    DEFAULT_CRITERIA,
    TEXTS,
    AsText,
    CompareTask,
    ScoreTask,
    TaskKind,
    texts_of,
)
from ...state.verdict import Winner
from .files import Row
from .label_reader import (
    NO_CODES,
    LabelCodes,
    UnreadableLabelError,
    is_missing,
    read_score,
    read_winner,
    translated,
)
from .reading import first_names


class _Item(BaseModel):
    # Datasets may have other columns, which are ignored. Published ids are often numbers, which
    # become text.
    model_config = ConfigDict(frozen=True, extra="ignore", coerce_numbers_to_str=True)

    id: str = Field(min_length=1)
    group: str | None = None
    annotators: tuple[str, ...] = ()
    media: Media = {}

    @model_validator(mode="before")
    @classmethod
    def _messages(cls, fields: Any) -> Any:
        return texts_of(fields)


class About(TypedDict):
    """The facts about an item that a result repeats, so that reading results needs no dataset.

    Attributes:
        systems: the author of the candidate, or of answer 1 and answer 2; empty if unknown.
        category: the category of the question, if it has one.
        lengths: the number of characters of the candidate, or of answer 1 and answer 2.
        annotations: the label of each annotator, if known; ``None`` for an annotator without a
            label.
        annotators: the names of these annotators, in the same order; empty if they have no names.
    """

    systems: tuple[str, ...]
    category: str | None
    lengths: tuple[int, ...]
    annotations: tuple[float | Winner | None, ...]
    annotators: tuple[str, ...]


def _read_scores(value: Any) -> Any:
    """Read a score, or the scores of several annotators."""
    return [*map(read_score, value)] if isinstance(value, list | tuple) else read_score(value)


def _read_winners(value: Any) -> Any:
    """Read a winner, or the winners of several annotators."""
    return [*map(read_winner, value)] if isinstance(value, list | tuple) else read_winner(value)


def _present(by_aspect: Any) -> Any:
    """Leave out the aspects without a label."""
    if isinstance(by_aspect, Mapping):
        return {aspect: label for aspect, label in by_aspect.items() if not is_missing(label)}
    return {} if is_missing(by_aspect) else by_aspect


Numbers = list[float | None]
"""One number per annotator, in the same order for all items; null if an annotator gave none."""

ScoreLabel = Annotated[float | Numbers, BeforeValidator(_read_scores)]
ScoreLabels = Annotated[Numbers, BeforeValidator(_read_scores)]
WinnerLabel = Annotated[Winner | list[Winner | None] | None, BeforeValidator(_read_winners)]


class _Annotations(NamedTuple):
    """The labels of single annotators and the annotators' names; both may be unknown."""

    labels: tuple[float | Winner | None, ...] = ()
    annotators: tuple[str, ...] = ()


def _by_annotator(label: Any, annotators: tuple[str, ...]) -> _Annotations:
    """Return the labels in the order of the annotators; empty if no single label is known.

    Args:
        label: a label, or the list of the annotators' labels.
        annotators: their names, if known.
    """
    # A single label belongs to a known annotator only if it comes with a name.
    single = len(annotators) == 1 and label is not None
    labels = tuple(label) if isinstance(label, list | tuple) else (label,) * single
    if all(label is None for label in labels):
        return _Annotations()
    return _Annotations(labels, annotators if len(annotators) == len(labels) else ())


def _passages(value: Any) -> Any:
    """Join the passages of a list, such as retrieved documents, into one text."""
    if (
        isinstance(value, list | tuple)
        and value
        and all(isinstance(passage, str) for passage in value)
    ):
        if len(value) == 1:
            return value[0]
        return "\n\n".join(
            f"Passage {number}: {passage}" for number, passage in enumerate(value, start=1)
        )
    return value or None


Passages = Annotated[str | None, AsText, BeforeValidator(_passages)]


def _criteria(value: Any) -> Any:
    """Read an item's own criteria: a text, a list, or an object such as a text for each score."""
    if isinstance(value, Mapping):
        value = "\n".join(f"{name}: {part}" for name, part in value.items() if not is_missing(part))
    return [value] if isinstance(value, str) else value


Criteria = Annotated[tuple[str, ...], BeforeValidator(_criteria)]


def _is_rubric(value: Any) -> bool:
    """Return whether a value is a rubric: a list with objects, or such a list as JSON text."""
    if isinstance(value, str):
        return value.lstrip().startswith("[{")
    return isinstance(value, list | tuple) and any(isinstance(part, Mapping) for part in value)


def _rubric(value: Any) -> Any:
    """Read a rubric that a cell of a table has as JSON text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError as error:
        raise ValueError(f"must be a list of criteria in JSON: {error}") from error


def _different(rubric: tuple[Criterion, ...]) -> tuple[Criterion, ...]:
    check_ids(rubric)
    return rubric


ItemRubric = Annotated[tuple[Criterion, ...], BeforeValidator(_rubric), AfterValidator(_different)]


class ScoreItem(_Item):
    """A text to be rated, with human scores by aspect if there are any.

    ``annotations`` contains the scores of single annotators if ``human`` has their mean.
    ``criteria`` and ``rubric`` are the item's own, in addition to those of the aspect.
    """

    system: str | None = None
    source: Annotated[str | None, AsText] = None
    fact: Annotated[str | None, AsText] = None
    context: Passages = None
    reference: Annotated[str | None, AsText] = None
    candidate: Annotated[str, AsText]
    references: tuple[str, ...] = ()
    criteria: Criteria = ()
    rubric: ItemRubric = ()
    human: Annotated[dict[str, ScoreLabel], BeforeValidator(_present)] = {}
    annotations: Annotated[dict[str, ScoreLabels], BeforeValidator(_present)] = {}

    def task(self, aspect: Aspect | None) -> ScoreTask:
        """Return the task for a protocol.

        Raises:
            UsageError: the item's rubric and the aspect's do not form a rubric together.
        """
        assert aspect is not None  # texts are rated on aspects alone
        if self.criteria:
            own = "\n".join(self.criteria)
            # The item's own criteria may mention texts of this item only, so only the aspect's
            # criteria determine which texts are required.
            needs = tuple(name for name in OTHER_TEXTS if name in aspect.needed_texts())
            more = {"criteria": f"{aspect.criteria}\nFor this text: {own}", "needs": needs}
            aspect = aspect.model_copy(update=more)
        if self.rubric:
            together = (*aspect.rubric, *self.rubric)
            try:
                check_rubric(together)
            except ValueError as error:
                raise UsageError(f"{self.id!r} on {aspect.name}: {error}") from error
            aspect = aspect.model_copy(update={"rubric": together})
        texts = {name: getattr(self, name) for name in TEXTS if name in ScoreTask.model_fields}
        return ScoreTask(**texts, aspect=aspect, media=self.media, system=self.system)

    def label(self, aspect: str | None) -> float | None:
        """Return the human score, or the mean of several scores; ``None`` if there is none."""
        label = self.human.get(aspect or "")
        if not isinstance(label, list):
            return label
        given = [number for number in label if number is not None]
        return fmean(given) if given else None

    def about(self, aspect: str | None) -> About:
        """Return the facts about the item that a result on this aspect repeats."""
        label = self.human.get(aspect or "")
        known = label if isinstance(label, list) else self.annotations.get(aspect or "", label)
        single = _by_annotator(known, self.annotators)
        return About(
            systems=(self.system,) if self.system else (),
            category=None,
            lengths=(len(self.candidate),),
            annotations=single.labels,
            annotators=single.annotators,
        )


class _SourcedItem(ScoreItem):
    """An item that must have a source."""

    source: Annotated[str, AsText]


def _joined(value: Any) -> Any:
    """Join the turns of a conversation into one text."""
    if isinstance(value, list) and all(isinstance(turn, str) for turn in value):
        return "\n\n".join(f"Turn {number}: {turn}" for number, turn in enumerate(value, start=1))
    return value


Joined = Annotated[str, AsText, BeforeValidator(_joined)]


class CompareItem(_Item):
    """Two answers to be compared, with the human preference if there is one."""

    category: str | None = None
    question: Joined = Field(min_length=1)
    answer_1: Joined
    answer_2: Joined
    model_1: str | None = None
    model_2: str | None = None
    reference: Joined | None = None
    context: Passages = None
    criteria: Criteria = DEFAULT_CRITERIA
    human: WinnerLabel = None

    def task(self, _aspect: Aspect | None = None) -> CompareTask:
        """Return the task for a protocol; comparisons have no aspect."""
        return CompareTask(
            **{name: value for name, value in self if name in CompareTask.model_fields}
        )

    def label(self, _aspect: str | None = None) -> Winner | None:
        """Return the preference of the majority, or a tie without one; ``None`` without labels."""
        if not isinstance(self.human, list):
            return self.human
        given = [vote for vote in self.human if vote is not None]
        return majority(given) if given else None

    def about(self, _aspect: str | None = None) -> About:
        """Return the facts about the item that a result repeats."""
        single = _by_annotator(self.human, self.annotators)
        return About(
            systems=(self.model_1, self.model_2) if self.model_1 and self.model_2 else (),
            category=self.category,
            lengths=(len(self.answer_1), len(self.answer_2)),
            annotations=single.labels,
            annotators=single.annotators,
        )


def majority(votes: Sequence[Winner]) -> Winner:
    """Return the vote of more than half of the annotators, else a tie (ChatEval, section 3.4).

    >>> majority(["1", "1", "tie"]), majority(["1", "2", "tie"])
    ('1', 'tie')
    """
    return winner_of_most(votes) or "tie"


Item = ScoreItem | CompareItem


def parse_item(row: Mapping[str, Any], kind: TaskKind | None = None) -> Item:
    """Make an item of a row.

    The kind depends on the texts in the row: a candidate, or two answers. A row with neither is a
    comparison if it has a question. Other fields do not matter.

    ``messages`` are the question of a comparison and the source of a candidate. Without a
    candidate, the last answer in the messages is rated, with the tool calls that led to it.

    Args:
        row: its fields.
        kind: the kind of item, if known.

    Raises:
        pydantic.ValidationError: names the invalid field.
        UsageError: ``messages`` that cannot be read, or texts of both kinds.
    """
    row = dict(row)
    if not isinstance(row.get("annotations", {}), Mapping):
        # Annotation tools use a key of this name for something else.
        del row["annotations"]
    for name in _JUDGED:
        if isinstance(row.get(name), bool):
            # A model's answer "true" may have been saved as a truth value. Numbers are read as
            # text, too.
            row[name] = str(row[name])
    compares = (kind or _kind_of(row)) == "compare"
    _name_criteria(row, compares)
    annotator = row.pop("annotator", None)
    if not is_missing(annotator):
        row.setdefault("annotators", [annotator])
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
    if compares:
        return CompareItem.model_validate(row)
    # A text with an unknown name may be a misspelt source; without it, the task would change.
    others = [name for name, value in row.items() if isinstance(value, str) and name not in FIELDS]
    if row.get("source") is None and others:
        return _SourcedItem.model_validate(row)
    return ScoreItem.model_validate(row)


def _name_criteria(row: dict[str, Any], compares: bool) -> None:
    """Put criteria with points under ``rubric``, and other criteria under ``criteria``."""
    rubric = row.pop("rubric", None)
    for value in (row.get("criteria"), rubric):
        if _is_rubric(value) and not compares:
            row["rubric"] = value
    if is_missing(row.get("criteria")) or row["criteria"] is row.get("rubric"):
        row.pop("criteria", None)
        if not is_missing(rubric) and "rubric" not in row:
            row["criteria"] = rubric


def _kind_of(row: Mapping[str, Any]) -> TaskKind:
    """Return the kind of item whose texts a row has.

    Raises:
        UsageError: the row has texts of both kinds.
    """
    rated = "candidate" in row
    if rated and "answer_1" in row and "answer_2" in row:
        raise UsageError(
            "the row has a candidate to be rated and two answers to be compared; "
            "say which texts are judged with --columns candidate=candidate or --columns "
            "answer_1=answer_1"
        )
    return "compare" if not rated and {"question", "turns", "answer_1"} & row.keys() else "score"


_FIELDS_OF: Mapping[TaskKind, frozenset[str]] = {
    "score": frozenset({*ScoreItem.model_fields, "rubric", "messages", "annotator"}),
    "compare": frozenset({*CompareItem.model_fields, "rubric", "turns", "messages", "annotator"}),
}


def fields_of(kind: TaskKind) -> frozenset[str]:
    """Return the fields that a row of one kind may have."""
    return _FIELDS_OF[kind]


FIELDS = {*_FIELDS_OF["score"], *_FIELDS_OF["compare"]}
"""All fields that a row of data may have; other columns are ignored."""

# Postgres, many models and terminals reject NUL. Lone surrogates cannot be encoded in UTF-8.
_UNUSABLE = re.compile("[\0\ud800-\udfff]")


def unusable_character(row: Mapping[str, Any]) -> str:
    """Describe the first character that cannot be sent or stored; empty if there is none.

    >>> unusable_character({"id": "a", "source": "Noon.", "candidate": "It rai\\0ned."})
    "field 'candidate' has a NUL character, at position 7 of the text: remove it"
    """
    for name in FIELDS & row.keys():
        value = row[name]
        if isinstance(value, str) and value.isascii() and "\0" not in value:
            continue
        for text in _texts(value):
            # Most texts are plain ASCII, and this check is much faster than the search.
            match = None if text.isascii() and "\0" not in text else _UNUSABLE.search(text)
            if match:
                kind = (
                    "a NUL character"
                    if match[0] == "\0"
                    else f"half a character (U+{ord(match[0]):X})"
                )
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
"""An item and its number: its line in a file, or its position in memory."""

Reader = Callable[[], Iterator[Numbered]]
"""Reads the items from the beginning at each call."""


Empty = Literal["refuse", "judge"]
"""The treatment of an empty candidate or answer: an error, or judged and shown as empty."""

EMPTY_TEXT = "(This answer is empty.)"
"""The text that a judge sees in place of an empty candidate or answer."""

_JUDGED = ("candidate", "answer_1", "answer_2")

LABEL_FIELDS = ("human", "annotations")
"""The fields of a row that contain labels."""


class MissingTextError(DataError):
    """Raised for a row that lacks a required text."""


def parse_rows(  # noqa: PLR0913
    rows: Iterable[Row],
    place: str,
    line_name: str,
    *,
    columns: bool = False,
    codes: LabelCodes = NO_CODES,
    kind: TaskKind | None = None,
    empty: Empty | None = None,
) -> Iterator[Numbered]:
    """Yield the items in rows.

    Args:
        rows: the numbered rows.
        place: the name of the file, for messages.
        line_name: the unit of a row's number.
        columns: whether the user may name the columns of fields.
        codes: the label for each value, if labels are coded.
        kind: the kind of item of all rows, if known.
        empty: the treatment of an empty candidate or answer; ``None`` leaves it unchanged.

    Raises:
        DataError: a row that cannot be used; names file, line and field.
    """
    for number, original in rows:
        try:
            labels = {
                name: translated(original[name], codes) for name in LABEL_FIELDS if name in original
            }
        except UnreadableLabelError as error:
            raise DataError(
                f"{place}, {line_name} {number}: field 'human': {error}; {error.remedy}"
            ) from None
        row = {**original, **labels} if codes else original
        if fault := unusable_character(row):
            raise DataError(f"{place}, {line_name} {number}: {fault}")
        try:
            item = parse_item(row, kind)
        except ValidationError as error:
            missing = error.errors()[0]["type"] == "missing"
            fault_class = MissingTextError if missing else DataError
            raise fault_class(
                f"{place}, {line_name} {number}: {explain(error, row, columns)}"
            ) from error
        except UsageError as error:
            of_field = "field 'messages': " if "messages" in row else ""
            raise DataError(f"{place}, {line_name} {number}: {of_field}{error}") from error
        blank = [name for name in _JUDGED if is_blank(vars(item).get(name, "-"))] if empty else []
        if blank and empty == "refuse":
            raise MissingTextError(
                f"{place}, {line_name} {number}: field {blank[0]!r} is empty; "
                "delete the row, or judge it as an empty answer with --empty judge (empty='judge')"
            )
        yield number, item.model_copy(update=dict.fromkeys(blank, EMPTY_TEXT)) if blank else item


def explain(error: ValidationError, row: Any = None, columns: bool = False) -> str:
    """Describe pydantic's first error in one line: field, problem, value."""
    errors = error.errors(include_url=False)
    first = errors[0]
    field = ".".join(map(str, field_path(first["loc"])))
    message = first["msg"].removeprefix("Value error, ")
    # Our own validators already name the value in their message.
    if not field or first["type"] == "value_error":
        fault = first.get("ctx", {}).get("error")
        if columns and isinstance(fault, UnreadableLabelError):
            message += f"; {fault.remedy}"
        return f"field {field!r}: {message}" if field else message
    if first["type"] == "missing":
        missing = [str(fault["loc"][-1]) for fault in errors if fault["type"] == "missing"]
        # Rows without ids are numbered once their texts are found.
        missing = [name for name in missing if name != "id"] or missing
        if "candidate" in missing and isinstance(row, dict) and "source" not in row:
            missing = ["source", *(name for name in missing if name != "source")]
        has = f"; the row has {first_names([*_names_in(row)])}" if isinstance(row, dict) else ""
        names = ",".join(f"{name}=COLUMN" for name in missing)
        if "candidate" in missing:
            names += " (and human.ASPECT=COLUMN for human scores)"
            pair = (
                "question=COLUMN,answer_1=COLUMN,answer_2=COLUMN (and human=COLUMN for the winner)"
            )
            names += f"; for two answers to be compared, use --columns {pair}"
        elif "answer_1" in missing:
            names += "; for one text to be rated, use --columns source=COLUMN,candidate=COLUMN"
        of, it, verb = ("field", "it", "is") if len(missing) == 1 else ("fields", "them", "are")
        named = (
            f"; to read {it} from one of these, use --columns {names}" if columns and has else ""
        )
        if named and len(row) == 1:
            named = "; if that is a title, delete the lines above the column names"
        return f"{of} {' and '.join(map(repr, missing))} {verb} missing{has}{named}"
    if field == "human" and first["type"] == "dict_type":
        message = "scores are given by aspect, as human.coherence (--columns human.ASPECT=COLUMN)"
    # Redact before shortening, because part of a key is not recognized.
    value = repr(redact_all({field: first["input"]})[field])
    return f"field {field!r}: {message}, got {value[:80]}{'...' if len(value) > 80 else ''}"


def _names_in(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of a row's columns; for an object, the paths of its parts."""
    for name, value in row.items():
        if isinstance(value, Mapping) and value:
            yield from (f"{name}.{inner}" for inner in value)
        else:
            yield str(name)


@dataclass
class LabelRange:
    """The range of an aspect's labels, and the index of its first item (from 0)."""

    first: int
    low: float = math.inf
    high: float = -math.inf


@dataclass
class DatasetProfile:
    """Counts of a dataset's items and ranges of their labels, collected in one pass.

    Attributes:
        kind: the kind of task, the same for all items.
        count: the number of items.
        has_labels: whether any item has a label, from people or from the construction of the data.
        has_facts: whether any item has a fact to be used, as dialogues have.
        aspects: the aspects that have labels, in order of first occurrence.
        without: the place of the first item without a source, fact, context or reference.
        empty: the number of items with an empty candidate or answer, which is shown as empty.
        ids: the digests of the items' ids, in order, in 8 bytes each. So a run that is started
            again finds its judged items without another pass over the data.
    """

    kind: TaskKind
    count: int = 0
    has_labels: bool = False
    has_facts: bool = False
    aspects: dict[str, LabelRange] = field(default_factory=dict)
    without: dict[str, str] = field(default_factory=dict)
    empty: int = 0
    ids: array[int] = field(default_factory=lambda: array("Q"), repr=False)

    def add_texts_and_labels(self, item: ScoreItem, where: str) -> None:
        """Record which texts an item lacks, and the range of its labels."""
        self.has_facts |= bool(item.fact)
        for text in OTHER_TEXTS:
            if not getattr(item, text):
                self.without.setdefault(text, where)
        # The index from 0: the item is counted only later.
        for aspect in item.human:
            labels = self.aspects.setdefault(aspect, LabelRange(self.count))
            if (label := item.label(aspect)) is not None:
                labels.low = min(labels.low, label)
                labels.high = max(labels.high, label)


_NOT_SHOWN = {"id", "group", "human", "annotations", "annotators", "category"}


def shown_texts(item: Item) -> int:
    """Return a digest of the judged texts and the systems that wrote them."""
    return digest(type(item).__name__, *(value for name, value in item if name not in _NOT_SHOWN))


def has_repeated(digests: array[int]) -> bool:
    """Return whether any two digests are equal."""
    return len(np.unique(np.array(digests, dtype=np.uint64))) < len(digests)


def profile_items(
    read: Reader,
    name: str,
    line_name: str,
    longest: float = math.inf,
    identities: array[int] | None = None,
) -> DatasetProfile:
    """Check all items, one at a time, and return their profile.

    Args:
        read: a function that reads the items.
        name: the name of the file, for messages.
        line_name: the unit of an item's number.
        longest: the most characters that a text of an item may have.
        identities: collects ``shown_texts`` of each item, if given. If two are equal, ids are not
            checked, because rows of several annotators will be merged later.

    Raises:
        DataError: no items, a text that is too long, both kinds, or one id twice; names the place.
    """
    profile: DatasetProfile | None = None
    for number, item in read():
        where = f"{name}, {line_name} {number}"
        for of_field, text in item:
            if isinstance(text, str) and len(text) > longest:
                raise DataError(
                    f"{where}: field {of_field!r} has {len(text):,} characters, more than {longest:,}; "
                    "if that is intended, allow more with --max-chars"
                )
        kind: TaskKind = "score" if isinstance(item, ScoreItem) else "compare"
        profile = profile or DatasetProfile(kind)
        if profile.kind != kind:
            raise DataError(
                f"{where}: a file cannot hold both texts to be rated and answers to be compared"
            )
        profile.has_labels |= bool(item.human)
        if isinstance(item, ScoreItem):
            profile.add_texts_and_labels(item, where)
        profile.count += 1
        profile.empty += any(vars(item).get(name) == EMPTY_TEXT for name in _JUDGED)
        profile.ids.append(digest(item.id))
        if identities is not None:
            identities.append(shown_texts(item))
    if profile is None:
        raise DataError(f"{name}: contains no items")
    if identities is not None and has_repeated(identities):
        return profile
    # Read the items again only if digests are repeated, and compare the ids themselves.
    ids = np.frombuffer(profile.ids, dtype=np.uint64)
    values, counts = np.unique(ids, return_counts=True)
    repeated = set(values[counts > 1].tolist())
    seen = dict[str, int]()
    for number, item in read() if repeated else ():
        if item.id in seen:
            where = f"{name}, {line_name} {number}"
            raise DataError(
                f"{where}: id {item.id!r} is already used in {line_name} {seen[item.id]}"
            )
        if digest(item.id) in repeated:
            seen[item.id] = number
    return profile


def digest(*parts: Any) -> int:
    """Return a 64-bit digest of some values, equal for equal values.

    Among a million different values, the chance of two equal digests is below one in ten million.

    >>> digest("a", None) == digest("a", None), digest("a", None) == digest("a", "None")
    (True, False)
    """
    return int.from_bytes(blake2b(repr(parts).encode(), digest_size=8).digest(), "little")
