"""Find out how to read a file: its encoding, its separator, and the fields in its columns.

A UTF-8 file with the documented column names is read directly, without guesses. For any other
file, one notice lists the guesses.
"""

from __future__ import annotations

import csv
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_BE, BOM_UTF32_LE
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from ...state.aspects import ASPECTS
from ...state.data_files import Words, read_toml
from ...state.errors import DataError, UsageError
from ...state.tasks import TaskKind
from ..statistics.alignment import grouped
from .label_reader import (
    NO_CODES,
    LabelCodes,
    UnreadableLabelError,
    is_missing,
    read_score,
    read_winner,
    translated,
)

LOOKED_AT = 50
"""The number of rows that are used to identify the columns of a table."""

ROW_NUMBER = "#"
"""A pseudo-column: the number of the row among the rows read, from 1."""

Columns = Mapping[str, str]
"""The column of each field."""

Table = Sequence[Mapping[str, Any]]
"""Some rows of a table."""

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


class ReadingNotice(UserWarning):
    """A notice of how undocumented data were read, or of aspects that are not judged on them."""


_Field = Literal[
    "id",
    "source",
    "candidate",
    "question",
    "answer_1",
    "answer_2",
    "human",
    "group",
    "system",
    "model_1",
    "model_2",
    "reference",
    "context",
    "annotator",
    "category",
    "criteria",
]
"""A field of an item that may have another name in a table."""

_Fields = Annotated[list[_Field], Field(min_length=1)]


class _ColumnWords(TypedDict):
    labels: Words
    other_numbers: Words


class _Reading(TypedDict):
    """The content of reading.toml, which describes its parts."""

    names: dict[_Field, Words]
    texts: dict[TaskKind, _Fields]
    further: dict[TaskKind, _Fields]
    words: _ColumnWords


_TABLES = read_toml(Path(__file__).with_suffix(".toml"), _Reading)
_NAMES: dict[str, list[str]] = dict(_TABLES["names"].items())
_TEXTS: Mapping[TaskKind, Sequence[str]] = _TABLES["texts"]
_MORE: Mapping[TaskKind, Sequence[str]] = _TABLES["further"]
ANNOTATOR_COLUMNS = ("annotator", *_NAMES["annotator"])
"""The names of columns with the annotator of a row."""
_ANNOTATOR_COLUMNS = frozenset(ANNOTATOR_COLUMNS)
COLUMN_WORDS = _TABLES["words"]
"""Words in the names of columns, by the content of such columns."""
# Longer marks first: the mark of UTF-32 begins with that of UTF-16.
_MARKS = {"utf-32": (BOM_UTF32_LE, BOM_UTF32_BE), "utf-16": (BOM_UTF16_LE, BOM_UTF16_BE)}
_LOOKED_AT_BYTES = 1 << 16


def marked_encoding(beginning: bytes) -> str:
    """Return the encoding that a file's first bytes indicate; UTF-8 by default.

    >>> marked_encoding("id,source".encode("utf-16")), marked_encoding(b"id,source")
    ('utf-16', 'utf-8-sig')
    """
    named = (encoding for encoding, marks in _MARKS.items() if beginning.startswith(marks))
    # "-sig" drops the mark that spreadsheets write before UTF-8. Otherwise it would be part of the
    # first field's name.
    return next(named, "utf-8-sig")


def guessed_encoding(lines: Iterable[bytes], place: str) -> str:
    """Return the encoding of lines without a mark: UTF-8, or the best guess if they are not UTF-8.

    Raises:
        DataError: some of the lines are UTF-8 and others are not, or no encoding fits.
    """
    sample = []
    size = 0
    first = {True: 0, False: 0}
    for number, line in enumerate(lines, start=1):
        if line.isascii():
            continue
        is_utf8 = line.decode(errors="ignore").encode() == line  # drops undecodable bytes
        first[is_utf8] = first[is_utf8] or number
        if all(first.values()):
            raise DataError(
                f"{place}: line {first[True]} is UTF-8 and line {first[False]} is not: a file in "
                "several encodings cannot be read; save each part as UTF-8 and put them together "
                "again"
            )
        if size < _LOOKED_AT_BYTES:
            sample.append(line)
            size += len(line)
    if not first[False]:
        return "utf-8-sig"
    from charset_normalizer import from_bytes

    text = b"".join(sample)
    best = from_bytes(text, cp_isolation=_CODE_PAGES).best()
    # From here on, Windows encodings have letters and Macintosh encodings have signs.
    letters = sum(byte >= 0xC0 for byte in text)
    if (
        best is not None
        and best.encoding == "mac_roman"
        and letters > sum(0x80 <= b < 0xC0 for b in text)
    ):
        best = from_bytes(text, cp_isolation=["cp1252"]).best()
    # Single letters between ASCII letters, as in "café", indicate a Western language. In other
    # languages, such bytes come in groups.
    elif re.search(rb"[A-Za-z][\xc0-\xff]|[\xc0-\xff][A-Za-z]", text) and not re.search(
        rb"[\x80-\xff]{3}", text
    ):
        best = from_bytes(text, cp_isolation=["cp1252"]).best() or best
    western = str(best) if best is not None and best.encoding == "cp1252" else ""
    is_central_european = _CENTRAL_EUROPEAN.search(western) or _is_hungarian(western)
    if best is None or is_central_european:
        best = from_bytes(text, cp_isolation=["cp1250"]).best()
    if best is None:
        raise DataError(
            f"{place}, line {first[False]}: text in an unknown encoding; save the file as UTF-8"
        )
    return best.encoding


# Encodings in which spreadsheets save files somewhere in the world. A list of all code pages would
# lead to wrong guesses for short texts.
_CODE_PAGES = ["cp1252", "cp1251", "cp932", "gb18030", "cp949", "big5", "mac_roman"]

# Central European letters, as they look in a text that was read as Western European.
_CENTRAL_EUROPEAN = re.compile(
    r"""
      # Polish and Slovak letters are no letters at all.
      [a-z] [\xb3\xb9\xbc\xbe\xbf]
    | [\xb3\xb9\xbc\xbe\xbf] [a-z]
      # The Czech ě and ů become ì and ù, which other languages only have at the end of words.
    | [ìù] [a-z]
      # A č becomes an è: at the beginning of a word, or before a vowel.
    | \b è [a-z]
    | è [aeiou]
      # The Romanian ă becomes an ã, which Portuguese has before few letters.
    | ã [bcdfglnprtv]
    """,
    re.VERBOSE,
)


def _is_hungarian(western: str) -> bool:
    """Return whether a text that was read as Western European is Hungarian."""
    # A Hungarian ő becomes an õ. Portuguese has õ before an e, and Estonian in texts without acute
    # accents.
    return bool(re.search("õ[^e]", western) and re.search("[áéíó]", western))


def separator_of(beginning: Sequence[str]) -> str:
    r"""Return the separator of a table's columns: the one that gives the most header columns.

    >>> separator_of(["id;source, or text;candidate\n"]), separator_of(["text\n"])
    (';', ',')
    """

    def columns(separator: str) -> int:
        try:
            return len(next(csv.reader(beginning, delimiter=separator)))
        except (csv.Error, StopIteration):
            return 0

    return max(SEPARATORS, key=columns)


_BARE_ASPECTS = {name.rpartition("/")[2] for name in ASPECTS}

TOGETHER = "+"
"""The sign between columns of several annotators, such as ``coherence_a1+coherence_a2``."""

BETTER = ">"
"""The sign between score columns of answers 1 and 2 (``score_a>score_b``); the higher one wins."""


def columns_in(column: str) -> list[str]:
    """Return the columns that a label is taken from.

    >>> columns_in("coherence_a1+coherence_a2"), columns_in("score_a>score_b"), columns_in("winner")
    (['coherence_a1', 'coherence_a2'], ['score_a', 'score_b'], ['winner'])
    """
    return column.split(BETTER if BETTER in column else TOGETHER)


# The scores of two answers: model_a_score, score_1, rating_response_b.
_SIDE = r"(?: (?:model|answer|response|output) _? )? [ab12]"
_SCORE_OF_SIDE = re.compile(
    rf"""
    (?:human_)?
    (?:
        (?P<before>{_SIDE}) _ (?:score|rating|grade)
      | (?:score|rating|grade) _ (?P<after>{_SIDE})
    )
    """,
    re.VERBOSE,
)

# The part of a column's name that identifies the annotator, before or after the rated aspect.
_ANNOTATOR = r"""
    (?:
        (?: a | r | h | ann | anno | annotator | rater | worker | expert | user | labell?er | coder | evaluator )
        _? \d{1,3}                                       # a1, annotator_2, rater3
      | (?: annotator | rater | worker | expert | coder ) _ [a-z]        # rater_b
      | \d{1,2}                                          # coherence_1
    )
"""
_ANNOTATOR_COLUMN = re.compile(
    rf"""
      (?P<before>{_ANNOTATOR}) _ (?P<rated_after>.+)      # a1_coherence
    | (?P<rated>.+) _ (?P<after>{_ANNOTATOR})             # coherence_a1
    | (?P<alone>{_ANNOTATOR})                             # annotator1, with the winner
    """,
    re.VERBOSE,
)
# Words around the name of an aspect in the name of a column with human scores.
_AROUND_ASPECT = re.compile(
    r"^(?:human|expert|annotator|mean|avg|average)_ | _(?:score|rating|mean|avg|average|human)$",
    re.VERBOSE,
)


def guess_columns(rows: Table, given: Columns, codes: LabelCodes = NO_CODES) -> dict[str, str]:
    """Guess the columns of an item's fields from a table's first rows.

    A column is used only if its name alone makes its content clear. If two columns could be meant,
    neither is used, and the user is asked. A table with all required fields is not changed, except
    for labels of several annotators.

    Args:
        rows: the first rows.
        given: the columns that the user named; these have priority.
        codes: the label for each value, if labels are coded.

    Raises:
        DataError: two columns with labels for one aspect, which are not from several annotators.

    >>> guess_columns([{"Article": "It rained.", "Summary": "Rain.", "Fluency": "4"}], {})
    {'id': '#', 'source': 'Article', 'candidate': 'Summary', 'human.fluency': 'Fluency'}
    """
    if not rows:
        return dict(given)
    simple = grouped(
        (simple_name(name), name) for name in dict.fromkeys(name for row in rows for name in row)
    )
    instructed = len(simple.get("instruction", ())) == len(simple.get("input", ())) == 1
    in_use = {*given.values(), *chain(*map(columns_in, given.values()))}

    def column_of(field: str) -> str | None:
        if field in given or field in simple.get(field, ()):
            return given.get(field, field)
        # A column with the field's own name, however written, is unambiguous.
        named = simple.get(field) or [
            name for known in _NAMES[field] for name in simple.get(known, ())
        ]
        # An object is not a text; tables of crowd workers have column names such as
        # Input.text.
        if field != "criteria":
            named = [name for name in named if not isinstance(rows[0].get(name), Mapping)]
        if len(named) > 1 and field == "source":
            # Documents next to a question are the context of an answer.
            named = [
                name for name in named if simple_name(name) not in _NAMES["context"] + ["context"]
            ]
        if len(named) > 1 and field in ("source", "question") and instructed:
            # The input of an instruction is the text that it refers to.
            named = [name for name in named if name not in simple["input"]]
        if field == "context" and not named and instructed:
            named = simple["input"]
        return named[0] if len(named) == 1 and named[0] not in in_use else None

    kind = _kind_of_columns(given, column_of)
    columns = {"id": column_of("id") or ROW_NUMBER}
    texts = {field: column for field in _TEXTS[kind] if (column := column_of(field))}
    # With other or no text columns, the user is asked for the fields. A column that matches two
    # fields is used for neither.
    if {"messages", "turns"} & simple.keys():
        texts = {}
    elif len({*texts.values()}) < len(_TEXTS[kind]):
        return dict(given)
    labelled = any(name.split(".")[0] == "human" for name in [*chain(*simple.values()), *given])
    if any(column not in (field, given.get(field)) for field, column in texts.items()):
        columns |= texts
        for field in _MORE[kind]:
            column = column_of(field)
            if column and column not in columns.values():
                columns[field] = column
        # A column called "label" may have labels of another kind.
        winner = columns.get("human")
        if winner and not _holds(rows, winner, read_winner, codes):
            del columns["human"]
        if not labelled and "human" not in columns:
            taken = {*columns.values(), *in_use}
            columns |= _labels(kind, simple, rows, taken, codes)
            if (
                kind == "compare"
                and "human" not in columns
                and (both := scores_of_answers(rows, taken))
            ):
                columns["human"] = both
    else:
        # In a table with the documented names, columns of several annotators are unambiguous.
        if not labelled:
            several = _labels(kind, simple, rows, in_use, codes, choose=False)
            columns |= {field: column for field, column in several.items() if TOGETHER in column}
        if annotator := column_of("annotator"):
            columns["annotator"] = annotator
    # Users do not see a blank at the end of a heading.
    columns |= {name.strip(): name for name in chain(*simple.values()) if name.startswith("human.")}
    # A JSON key may look like a path without being one.
    flat = {
        field
        for field in columns
        if field.startswith("human.") and any(field in row for row in rows)
    }
    named = {field: column for field, column in columns.items() if field != column or field in flat}
    return named | dict(given)


def kind_of_mapping(given: Columns) -> TaskKind | None:
    """Return the kind of item that a mapping asks for; ``None`` if its fields fit both kinds.

    Raises:
        UsageError: fields of both kinds.

    >>> kind_of_mapping({"source": "question", "candidate": "answer"}), kind_of_mapping({"group": "topic"})
    ('score', None)
    """
    rated = [
        name
        for name in given
        if name in ("source", "candidate", "fact") or name.startswith("human.")
    ]
    compared = [name for name in given if name in ("question", "turns", "answer_1", "answer_2")]
    if rated and compared:
        raise UsageError(
            f"--columns: {rated[0]!r} is a field of a text to be rated, {compared[0]!r} one of "
            "two answers to be compared; name the fields of one kind"
        )
    return "score" if rated else "compare" if compared else None


def _kind_of_columns(given: Columns, column_of: Callable[[str], str | None]) -> TaskKind:
    """Return the kind in the mapping, else the kind of the texts that exist."""
    kind = kind_of_mapping(given)
    if kind is None:
        return "compare" if column_of("answer_1") and column_of("answer_2") else "score"
    return kind


def simple_name(name: str) -> str:
    """Return a name in lower case, with an underscore between its words."""
    return re.sub(r"[\W_]+", "_", name.strip().lower()).strip("_")


def _labels(
    kind: TaskKind,
    simple: Mapping[str, list[str]],
    rows: Table,
    taken: Collection[str],
    codes: LabelCodes,
    choose: bool = True,
) -> dict[str, str]:
    """Find human labels: columns named for known aspects, and columns of several annotators.

    Args:
        kind: ``score`` to find scores, ``compare`` to find winners.
        simple: the names of all columns, each under its simple form.
        rows: the first rows.
        taken: columns with another meaning.
        codes: the label for each value, if labels are coded.
        choose: whether two columns for one aspect are an error.
    """
    read = read_score if kind == "score" else read_winner
    single: dict[str, list[str]] = {}
    several: dict[str, dict[str, str]] = {}
    for name, columns in simple.items():
        column = columns[0]
        # A few unreadable cells do not exclude the column: reading their rows is an error that
        # names them.
        if len(columns) > 1 or column in taken or not _holds(rows, column, read, codes, least=0.5):
            continue
        match = _ANNOTATOR_COLUMN.fullmatch(name)
        rated = (match["rated"] or match["rated_after"] or "") if match else name
        if field := _label_field(kind, rated, alone=bool(match)):
            if match:
                annotator = match["before"] or match["after"] or match["alone"]
                several.setdefault(field, {})[annotator] = column
            else:
                single.setdefault(field, []).append(column)
    if kind == "compare":
        # Single columns are found only under the names in reading.toml.
        single = {}
    found = {field: TOGETHER.join(columns.values()) for field, columns in several.items()}
    for field, columns in single.items():
        if len(columns) > 1 and field not in found and choose:
            raise DataError(
                f"{columns[0]!r} and {columns[1]!r} may both hold the labels of {field}; "
                f"choose one, such as --columns {field}={columns[0]}; "
                f"if they are two annotators, add --columns {field}={TOGETHER.join(columns)}"
            )
        # If the labels of single annotators exist, a column with their mean adds nothing.
        found.setdefault(field, columns[0])
    return found


def scores_of_answers(rows: Table, taken: Collection[str] = ()) -> str | None:
    """Return the two score columns of answers 1 and 2; ``None`` if there are not exactly two.

    >>> scores_of_answers([{"Model_A_Score": 7, "Model_B_Score": 9, "length": 3}])
    'Model_A_Score>Model_B_Score'
    """
    sides: dict[str, list[str]] = {"1": [], "2": []}
    for name in dict.fromkeys(chain.from_iterable(rows)):
        match = _SCORE_OF_SIDE.fullmatch(simple_name(name))
        if match and name not in taken and _holds(rows, name, read_score, {}):
            side = (match["before"] or match["after"])[-1]
            sides["1" if side in "1a" else "2"].append(name)
    first, second = sides.values()
    return f"{first[0]}{BETTER}{second[0]}" if len(first) == len(second) == 1 else None


def guess_labels(kind: TaskKind, rows: Table, codes: LabelCodes = NO_CODES) -> dict[str, str]:
    """Return the columns with human labels, by the field of an item.

    >>> guess_labels("score", [{"fluency_a1": 4, "fluency_a2": 3, "length": 7}])
    {'human.fluency': 'fluency_a1+fluency_a2'}
    """
    names = dict.fromkeys(chain.from_iterable(rows))
    simple = grouped((simple_name(name), name) for name in names)
    return _labels(kind, simple, rows, (), codes, choose=False)


def _label_field(kind: TaskKind, rated: str, alone: bool) -> str | None:
    """Return the item field for a label column; ``None`` if it is unclear."""
    if kind == "compare":
        return "human" if rated in ("human", *_NAMES["human"]) or (alone and not rated) else None
    aspect = _AROUND_ASPECT.sub("", rated)
    return f"human.{aspect}" if aspect in _BARE_ASPECTS else None


def annotator_names(columns: Sequence[str]) -> tuple[str, ...]:
    """Return the annotators' names: the part in which their label columns differ.

    >>> annotator_names(["coherence_a1", "coherence_a2"]), annotator_names(["winner_1", "winner_2"])
    (('a1', 'a2'), ('annotator 1', 'annotator 2'))
    >>> annotator_names(["ann's score", "bob's score"]), annotator_names(["annotator_1", "annotator_2"])
    (('ann', 'bob'), ('annotator 1', 'annotator 2'))
    """
    words = [re.split(r"[\W_]+", column.strip()) for column in columns]
    start = 0
    while len({tuple(of[: start + 1]) for of in words}) == 1:
        start += 1
    end = 0
    while len({tuple(of[len(of) - end - 1 :]) for of in words}) == 1:
        end += 1
    names = ["_".join(of[start : len(of) - end]) for of in words]
    if len({*names}) < len(names) or not all(names):
        return tuple(columns)
    return tuple(f"annotator {name}" if name.isdecimal() else name for name in names)


def _holds(
    rows: Table, column: str, read: Callable[[Any], Any], codes: LabelCodes, least: float = 1.0
) -> bool:
    """Return whether at least this share of a column's labels is readable, without missing ones."""
    readable = []
    for row in rows:
        try:
            label = read(translated(row.get(column), codes))
            if label is not None:
                readable.append(True)
        except UnreadableLabelError:
            readable.append(False)
    return bool(readable) and sum(readable) >= least * len(readable)


MOST_NAMED = 20
"""The number of columns that a message names."""


def first_names(names: Collection[str]) -> str:
    """List the first names of columns, and count the rest.

    >>> first_names([str(number) for number in range(22)])
    '0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19 and 2 more'
    """
    more = len(names) - MOST_NAMED
    return ", ".join(islice(names, MOST_NAMED)) + (f" and {more:,} more" if more > 0 else "")


def number_columns(rows: Table, besides: Iterable[str]) -> list[str]:
    """Return the other columns with numbers, which may be human scores of an unnamed aspect."""
    columns = dict.fromkeys(name for row in rows for name in row)
    return [
        name for name in columns if name not in {*besides} and _holds(rows, name, read_score, {})
    ]


def annotator_of(row: Mapping[str, Any]) -> str | None:
    """Return the annotator that a row names; ``None`` if there is none.

    >>> annotator_of({"item": "a", "worker_id": 7, "human": 3})
    '7'
    """
    # Most rows have none of these columns, and there may be millions of rows.
    if _ANNOTATOR_COLUMNS.isdisjoint(row):
        return None
    for name in ANNOTATOR_COLUMNS:
        value = row.get(name)
        if not is_missing(value) and isinstance(value, str | int | float):
            return str(value)
    return None


def beginning(rows: Iterable[tuple[int, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the first rows of a table."""
    return [row for _, row in islice(rows, LOOKED_AT)]
