"""Find out how a file that others made is to be read: its encoding, what separates its columns, which fields they hold.

A file in UTF-8 whose columns have the names of an item's fields is read as it stands, and nothing is looked for. What
is guessed of any other is told, once, in one sentence.
"""

from __future__ import annotations

import csv
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_BE, BOM_UTF32_LE
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Literal

from ...state.aspects import ASPECTS
from ...state.errors import DataError
from ...state.tasks import TaskKind
from ...state.word_files import words_beside
from ..statistics.alignment import grouped

LOOKED_AT = 50
"""Rows of a table that tell what its columns hold."""

ROW_NUMBER = "#"
"""Stands for a column: the number of the row among those that have been read, from 1."""

Columns = Mapping[str, str]
"""The column that each field is taken from."""

Table = Sequence[Mapping[str, Any]]
"""Some rows of a table."""

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


class ReadingNotice(UserWarning):
    """Says how data were read that do not come in the form that is documented."""


_TABLES = words_beside(__file__)
_NAMES: dict[str, list[str]] = _TABLES["names"]
_TEXTS: dict[TaskKind, list[str]] = _TABLES["texts"]
_MORE: dict[TaskKind, list[str]] = _TABLES["further"]
_ENCODINGS = _TABLES["encodings"]
# Those with more bytes first: the mark of UTF-16 begins that of UTF-32.
_MARKS = {"utf-32": (BOM_UTF32_LE, BOM_UTF32_BE), "utf-16": (BOM_UTF16_LE, BOM_UTF16_BE)}
_LOOKED_AT_BYTES = 1 << 16


def marked_encoding(beginning: bytes) -> str:
    """Return the encoding that a file's first bytes name; UTF-8 if they name none.

    >>> marked_encoding("id,source".encode("utf-16")), marked_encoding(b"id,source")
    ('utf-16', 'utf-8-sig')
    """
    named = (encoding for encoding, marks in _MARKS.items() if beginning.startswith(marks))
    # "-sig" drops the mark that spreadsheets write before UTF-8, which would become part of the first field's name.
    return next(named, "utf-8-sig")


def guessed_encoding(lines: Iterable[bytes], place: str) -> str:
    """Return the encoding of lines that none is named for: UTF-8, or what fits those that are something else.

    Raises:
        DataError: some of the lines are UTF-8 and others are not, or no encoding fits.
    """
    sample, size, first = [], 0, {True: 0, False: 0}
    for number, line in enumerate(lines, start=1):
        if line.isascii():
            continue
        is_utf8 = line.decode(errors="ignore").encode() == line  # what cannot be decoded is dropped
        first[is_utf8] = first[is_utf8] or number
        if all(first.values()):
            mixed = f"line {first[True]} is UTF-8 and line {first[False]} is not"
            remedy = "save each part as UTF-8 and put them together again"
            raise DataError(f"{place}: {mixed}: a file in several encodings cannot be read; {remedy}")
        if size < _LOOKED_AT_BYTES:
            sample.append(line)
            size += len(line)
    if not first[False]:
        return "utf-8-sig"
    from charset_normalizer import from_bytes

    text = b"".join(sample)
    best = from_bytes(text, cp_isolation=_ENCODINGS["code_pages"]).best()
    # From here on, Windows has letters and the Macintosh has signs.
    letters = sum(byte >= 0xC0 for byte in text)
    if best is not None and best.encoding == "mac_roman" and letters > sum(0x80 <= b < 0xC0 for b in text):
        best = from_bytes(text, cp_isolation=["cp1252"]).best()
    western = str(best) if best is not None and best.encoding == "cp1252" else ""
    signs = _ENCODINGS["central_europe"]
    if best is None or any(all(re.search(sign, western) for sign in together) for together in signs):
        best = from_bytes(text, cp_isolation=["cp1250"]).best()
    if best is None:
        raise DataError(f"{place}, line {first[False]}: text in an unknown encoding; save the file as UTF-8")
    return best.encoding


def separator_of(beginning: Sequence[str]) -> str:
    r"""Return what separates the columns of a table, of its first lines: what makes most columns of the header.

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


def guess_columns(rows: Table, given: Columns) -> dict[str, str]:
    """Return which columns the fields of an item are taken from, of a table's first rows.

    A column is taken where its name alone says what it holds. Where two might be meant, none is, and the user is asked.
    A table that has all fields that an item must have is left as it is.

    Args:
        rows: the first rows.
        given: what the user has said, which stands.

    >>> guess_columns([{"Article": "It rained.", "Summary": "Rain.", "Fluency": "4"}], {})
    {'id': '#', 'source': 'Article', 'candidate': 'Summary', 'human.fluency': 'Fluency'}
    """
    if not rows:
        return dict(given)
    simple = grouped((_simple(name), name) for name in dict.fromkeys(name for row in rows for name in row))

    def column_of(field: str) -> str | None:
        if field in given or field in simple.get(field, ()):
            return given.get(field, field)
        # Its own name, however it is written, is not one of several that might be meant.
        named = simple.get(field) or [name for known in _NAMES[field] for name in simple.get(known, ())]
        return named[0] if len(named) == 1 and named[0] not in given.values() else None

    kind: TaskKind = "compare" if column_of("answer_1") and column_of("answer_2") else "score"
    columns = {"id": column_of("id") or ROW_NUMBER}
    texts = {field: column for field in _TEXTS[kind] if (column := column_of(field))}
    # With other names or none the fields are asked for; a column that would be two of them at once is neither.
    if {"messages", "turns"} & simple.keys():
        texts = {}
    elif len({*texts.values()}) < len(_TEXTS[kind]):
        return dict(given)
    if any(column not in (field, given.get(field)) for field, column in texts.items()):
        columns |= texts | {field: column for field in _MORE[kind] if (column := column_of(field))}
        # A column called "label" may have labels of another kind.
        winner = columns.get("human")
        if winner and not all(named_winner(str(row[winner])) for row in rows if row.get(winner) is not None):
            del columns["human"]
        if kind == "score" and not any(name.startswith("human") for name in [*simple, *given]):
            columns |= _labels(simple, rows, [*columns.values(), *given.values()])
    # A blank at the end of a heading is not seen by whoever typed it.
    columns |= {name.strip(): name for name in chain(*simple.values()) if name.startswith("human.")}
    return {field: column for field, column in columns.items() if field != column} | dict(given)


_WINNER = re.compile(r"(?:(?:answer|model|response)[ _]?)?([12ab])(?:\.0)?")


def named_winner(word: str) -> Literal["1", "2", "tie"] | None:
    """Return the winner of a comparison that a word names; ``None`` if it names none.

    >>> named_winner("model_b"), named_winner("Draw"), named_winner("0")
    ('2', 'tie', None)
    """
    word = word.strip().lower()
    if match := _WINNER.fullmatch(word):
        return "1" if match[1] in "1a" else "2"
    return "tie" if word in _TABLES["labels"]["ties"] else None


def _simple(name: str) -> str:
    return re.sub(r"[\W_]+", "_", name.strip().lower()).strip("_")


def _labels(simple: Mapping[str, list[str]], rows: Table, taken: Sequence[str]) -> dict[str, str]:
    """Find people's scores: columns of numbers whose names are those of known aspects."""
    by_field: dict[str, list[str]] = {}
    for name, columns in simple.items():
        aspect = re.sub(_TABLES["labels"]["around"], "", name)
        if aspect in _BARE_ASPECTS and not {*columns} & {*taken}:
            by_field.setdefault(f"human.{aspect}", []).extend(columns)
    single = {field: columns[0] for field, columns in by_field.items() if len(columns) == 1}
    # One cell that is no number does not make others of the rest: it is told with its row when it is read.
    return {field: column for field, column in single.items() if _numbers(rows, column, least=0.5)}


def _numbers(rows: Table, column: str, least: float = 1.0) -> bool:
    """Tell whether at least this share of a column's cells are numbers."""
    cells = [str(row[column]).strip() for row in rows if row.get(column) is not None]
    numbers = sum(re.fullmatch(r"-?\d+([.,]\d+)?", cell) is not None for cell in cells)
    return bool(cells) and numbers >= least * len(cells)


def number_columns(rows: Table, besides: Iterable[str]) -> list[str]:
    """Return the other columns that hold numbers: people's scores, perhaps, of an aspect that is not named."""
    columns = dict.fromkeys(name for row in rows for name in row)
    return [name for name in columns if name not in {*besides} and _numbers(rows, name)]


def beginning(rows: Iterable[tuple[int, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the first rows of a table."""
    return [row for _, row in islice(rows, LOOKED_AT)]
