"""Read and check the rows of a file, one at a time: JSON lines, an array, CSV, TSV or plain text, also compressed."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import os
import re
import stat
import zlib
from codecs import getincrementaldecoder
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from ...state.errors import DataError
from .reading import SEPARATORS, guessed_encoding, marked_encoding, separator_of

LONGEST_LINE = 1 << 26
"""Characters: a longer line or cell is a file of another kind, or a quote that nobody closed, and fills the memory."""

# Whole articles stand in single cells: far more than the csv module's default of 131,072 characters.
csv.field_size_limit(LONGEST_LINE)

Row = tuple[int, dict[str, Any]]
"""A row: its number and its fields."""
_Content = gzip.GzipFile | io.BufferedReader
_CHUNK = 1 << 18
_HEADER_LINES = 20
"""Lines among which a header ends that has line ends in its names."""


class RowFile:
    """Reads a JSONL, JSON, CSV or TSV file (by its name), also ``.gz``, many times, never holding it in memory.

    The first complete pass records a digest of the content; a later pass over other content is an error.
    A JSON array, which has no lines, is the exception: it is read as a whole.

    Attributes:
        path: the path of the file.
        digest: the digest of the decompressed content; empty before the first pass has come to the end.
        line_name: what a row's number counts: ``line`` or ``row``.

    ``takes_text``: whether a ``.txt`` file may be read, as published datasets have them: each line that is not blank
    becomes a row ``{"text": ...}``.
    """

    def __init__(self, path: Path, takes_text: bool = False) -> None:
        self.path, self._takes_text = path, takes_text
        self._name = path.name.removesuffix(".gz").lower()
        self._is_csv = self._name.endswith((".csv", ".tsv", ".tab"))
        self.digest = ""
        self._version: tuple[int, int] | None = None

    @cached_property
    def line_name(self) -> str:
        """Return ``row`` for a JSON array, whose rows are counted from 1, else ``line``."""
        if self._name.endswith(".json"):
            # Where it cannot be read, the error is raised when the rows are.
            with suppress(DataError, OSError, EOFError, zlib.error), self._open() as content:
                # A byte order mark and JSON's white space may stand before the bracket.
                if content.read(_CHUNK).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
                    return "row"
        return "line"

    def rows(self) -> Iterator[Row]:
        """Yield the rows, from the beginning.

        Raises:
            DataError: a file that cannot be read or has changed, a line that is no text, no JSON or no object;
                names file and line.
        """
        # A first pass that was broken off left a version without a digest: there is nothing to compare with yet.
        self._version = self._version if self.digest else None
        try:
            # Opened twice at once: what is hashed is what was read, also where another file takes its place meanwhile.
            with self._open() as content, self._open() as whole:
                for row in self._parsed(content):
                    # After a row was read: a change just before is noticed before the row is used.
                    self._check_version(os.fstat(whole.fileno()))
                    yield row
                digest = _digest(whole)
                # A change behind the last row would give these rows the digest of other ones.
                self._check_version(os.fstat(whole.fileno()))
        except UnicodeDecodeError as error:
            raise self._not_text() from error
        except (OSError, EOFError, zlib.error) as error:
            raise unreadable(self.path, error) from error
        if self.digest not in ("", digest):
            raise self._changed()
        self.digest = digest

    def _parsed(self, content: _Content) -> Iterator[Row]:
        """Yield the rows in the file's content."""
        if self._is_csv:
            yield from self._csv_rows(content)
        elif self.line_name == "row":
            rows = _parsed_json(content.read().decode(self.encoding), str(self.path))
            for number, row in enumerate(rows, start=1):
                yield number, _named_fields(row, f"{self.path}, row {number}")
        else:
            yield from self._rows_by_line(content)

    def _rows_by_line(self, content: _Content) -> Iterator[Row]:
        is_text = self._takes_text and self._name.endswith(".txt")
        if not is_text and not self._name.endswith((".jsonl", ".ndjson", ".json")):
            raise DataError(f"{self.path}: this kind of file cannot be read as a dataset; expected {KINDS}")
        for number, line in enumerate(self._lines(content), start=1):
            if not line.strip():
                continue
            where = f"{self.path}, line {number}"
            if is_text:
                yield number, {"text": line.rstrip("\r\n")}
            elif line.strip() == "[":
                raise DataError(f"{where}: an array, not one row per line: end the file's name with .json")
            else:
                yield number, _named_fields(_parsed_json(line, where), where)

    def _csv_rows(self, content: _Content) -> Iterator[Row]:
        # With newline="" the csv module itself tells line ends from those inside quoted cells. Strict, or it takes a
        # quote that nobody closed for one that ends with the file, and all rows between for one cell.
        reader = csv.reader(self._lines(content, newline=""), strict=True, delimiter=self.separator)
        before = 0
        try:
            columns = next(reader, [])
            if reader.line_num == 1 and re.fullmatch("sep=.?", self.separator.join(columns).strip()):
                columns = next(reader, [])
            before = reader.line_num
            refuse_repeated(filter(None, columns), f"{self.path}, line {before}: ")
            for cells in reader:
                before = reader.line_num
                if cells:  # a blank line has none
                    yield before, named_cells(columns, cells, f"{self.path}, line {before}")
        except csv.Error as error:
            last = f" to {reader.line_num}" if reader.line_num > before + 1 else ""
            hint = "; put a cell that contains a quote into quotes, and double each quote inside it"
            raise DataError(f"{self.path}, line {before + 1}{last}: not CSV: {error}{hint}") from error

    def _lines(self, content: _Content, newline: str = "\n") -> Iterator[str]:
        """Yield the lines, and refuse one that is too long to be a row before it is in memory."""
        with self._text(content, newline) as text:
            for number, line in enumerate(iter(partial(text.readline, LONGEST_LINE), ""), start=1):
                if len(line) == LONGEST_LINE:
                    much = f"has more than {LONGEST_LINE:,} characters, too many for a row"
                    raise DataError(f"{self.path}, line {number}: {much}")
                yield line

    def _text(self, content: _Content, newline: str = "\n") -> io.TextIOWrapper:
        # By default lines end with "\n" alone: texts may hold U+2028 and its kin, which JSON allows inside a string.
        return io.TextIOWrapper(content, encoding=self.encoding, newline=newline)

    @cached_property
    def encoding(self) -> str:
        """Return how the file's text is encoded: as its first bytes say, else UTF-8, of a CSV also what fits.

        Raises:
            DataError: a CSV in no known encoding, or in several.
        """
        with self._open() as content:
            encoding = marked_encoding(content.read(4))
            if encoding == "utf-8-sig" and self._is_csv:
                content.seek(0)
                lines = iter(partial(content.readline, LONGEST_LINE), b"")
                encoding = guessed_encoding(lines, str(self.path))
        return encoding

    @cached_property
    def separator(self) -> str:
        """Return what stands between the columns of a CSV file."""
        with self._open() as content, self._text(content, newline="") as text:
            first = list(islice(text, _HEADER_LINES))
        # The first line by which spreadsheets tell each other.
        stated = re.fullmatch(r"sep=(.)\s*", first[0]) if first else None
        return stated[1] if stated else separator_of(first)

    def form(self) -> list[str]:
        """Say what the file's form is, as far as it is not UTF-8 with the usual sign between columns."""
        words = [] if self.encoding == "utf-8-sig" else [f"as {self.encoding}"]
        usual = "," if self._name.endswith(".csv") else "\t"
        if self._is_csv and self.separator != usual:
            words.append(f"with {SEPARATORS.get(self.separator, repr(self.separator))} between columns")
        return words

    def _open(self) -> _Content:
        if stat.S_ISFIFO(self.path.stat().st_mode):
            raise DataError(f"{self.path}: a pipe can be read only once; write its content to a file")
        return gzip.open(self.path) if self.path.suffix == ".gz" else self.path.open("rb")

    def _check_version(self, status: os.stat_result) -> None:
        """Raise an error if the file has changed since the digest was recorded.

        A new date alone is no change: the content is hashed again before the file is refused.
        """
        version = status.st_size, status.st_mtime_ns
        if self._version not in (None, version):
            with self._open() as content:
                if _digest(content) != self.digest:
                    raise self._changed()
        self._version = version

    def _changed(self) -> DataError:
        remedy = "leave it unchanged and start again"
        return DataError(f"{self.path}: the file has changed since its rows were checked; {remedy}")

    def _not_text(self) -> DataError:
        """Return an error that names the first undecodable byte and its line; the decoder reads ahead and cannot."""
        # Without the suffix a mark counts as a character, as it does among the bytes.
        encoding = self.encoding.removesuffix("-sig")
        number, position, decoder = 1, 0, getincrementaldecoder(encoding)()
        with self._open() as content:
            # Pieces of UTF-16 may end within a character, which is decoded with the next; the last may end the file.
            for piece in chain(content, (b"",)):
                left_over = len(decoder.getstate()[0])
                try:
                    number += decoder.decode(piece, final=not piece).count("\n")
                except UnicodeDecodeError as error:
                    number += error.object[: error.start].decode(error.encoding).count("\n")
                    where = f"byte {position - left_over + error.start}: {error.reason}"
                    problem = f"line {number}: not {encoding.upper()} text ({where})"
                    return DataError(f"{self.path}, {problem}; save the file as UTF-8")
                position += len(piece)
        return self._changed()


def _digest(content: _Content) -> str:
    return hashlib.file_digest(content, "sha256").hexdigest()[:12]


KINDS = ".jsonl, .json, .csv or .tsv (also .gz), .parquet or .xlsx"


def _parsed_json(text: str, where: str) -> Any:
    """Read JSON with a fault in place of each object that has one: raised, it would not say which row that is."""
    try:
        return json.loads(text, object_pairs_hook=_object_or_fault)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not JSON: {error}") from error


def _named_fields(row: Any, where: str) -> dict[str, Any]:
    if isinstance(row, DoubledKeyError):
        raise DataError(f"{where}: {row}")
    if not isinstance(row, dict):
        raise DataError(f"{where}: expected an object with named fields, got {type(row).__name__}")
    if row and all(isinstance(column, dict) and "0" in column for column in row.values()):
        remedy = "save a pandas frame with df.to_json(path, orient='records', lines=True)"
        raise DataError(f"{where}: holds columns instead of rows; {remedy}")
    return row


class DoubledKeyError(ValueError):
    """Raised for a JSON object that has a key twice: Python would take the last value in silence."""


def _object_or_fault(pairs: list[tuple[str, Any]]) -> dict[str, Any] | DoubledKeyError:
    """Make an object of its members; where it or one inside has a key twice, return the fault in its place."""
    for _, value in pairs:
        for member in value if isinstance(value, list) else (value,):
            if isinstance(member, DoubledKeyError):
                return member
    members = dict(pairs)
    if len(members) < len(pairs):
        return DoubledKeyError(f"the key {repeated(name for name, _ in pairs)!r} occurs twice in one object")
    return members


def repeated(names: Iterable[str]) -> str | None:
    """Return the first name that comes more than once; ``None`` if none does."""
    return next((name for name, count in Counter(names).items() if count > 1), None)


def refuse_repeated(columns: Iterable[str], place: str = "") -> None:
    """Raise a DataError where two columns have one name."""
    if (name := repeated(columns)) is not None:
        raise DataError(f"{place}two columns are called {name!r}")


def named_cells(columns: Sequence[str], cells: Sequence[Any], where: str) -> dict[str, Any]:
    """Make a row of a line of cells, in which an empty cell is an empty string.

    Raises:
        DataError: there are more cells than columns, or a text is not there.
    """
    if any(cell != "" for cell in cells[len(columns) :]):
        raise DataError(f"{where}: more cells than columns")
    # Spreadsheets leave out empty cells at the end of a row; a text that is not there is a row cut off.
    if missing := [name for name in columns[len(cells) :] if name in _MAY_BE_EMPTY]:
        raise DataError(f"{where}: has only {len(cells)} cells, and none for the column {missing[0]!r}")
    filled = {key: cell for key, cell in zip(columns, cells, strict=False) if key and cell != ""}
    # An empty cell is a missing value, except in these columns, where it is a text without characters.
    empty = {key: "" for key in _MAY_BE_EMPTY if key in columns}
    return {**empty, **unflattened(filled, where)}


_MAY_BE_EMPTY = ("source", "candidate", "answer_1", "answer_2")
_TEXT_CELLS = {*_MAY_BE_EMPTY, "fact", "question", "reference", "id", "group", "system", "category"}


def unflattened(cells: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Make a row of a table's cells, given without the empty ones; ``where`` it is, messages say.

    ``human.coherence`` becomes a field of ``human``; cells that hold JSON lists or objects are read, except where
    a text is expected.

    Raises:
        DataError: an object in a cell has a key twice.

    >>> unflattened({"id": "a", "human.coherence": 4, "references": '["It rained."]'}, "row 1")
    {'id': 'a', 'human': {'coherence': 4}, 'references': ['It rained.']}
    """
    row: dict[str, Any] = {}
    for key, cell in cells.items():
        value = _json_cell(cell, where) if isinstance(cell, str) and key not in _TEXT_CELLS else cell
        outer, _, inner = key.partition(".")
        if not inner:
            # A column ``human`` that holds an object is merged with columns such as ``human.fluency`` before it.
            row[key] = {**row[key], **value} if isinstance(value, dict) and key in row else value
        elif isinstance(row.setdefault(outer, {}), dict):
            row[outer][inner] = value
    return row


def _json_cell(cell: str, where: str) -> Any:
    """Read a cell that holds JSON, and refuse an object that has a key twice.

    >>> _json_cell('{"fluency": 4, "relevance": {"mean": 4, "mean": 2}}', "row 1")
    Traceback (most recent call last):
    ...
    jurygraph.state.errors.DataError: row 1: the key 'mean' occurs twice in one object
    """
    if not cell.lstrip().startswith(("[", "{")):
        return cell
    try:
        value = json.loads(cell, object_pairs_hook=_object_or_fault)
    except (ValueError, RecursionError):
        return cell  # a text that merely begins with a bracket
    if isinstance(value, DoubledKeyError):
        raise DataError(f"{where}: {value}")
    return value


def unreadable(path: Path, error: Exception) -> DataError:
    """Return the error for a file that the system does not let us read."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return DataError(f"{path}: cannot be read: {reason}")


def checked(file: RowFile, *fields: str) -> Iterator[Row]:
    """Yield the rows of a file, and require these fields of each.

    Raises:
        DataError: a row lacks a field; names file, line and field.
    """
    for line, row in file.rows():
        if missing := [field for field in fields if field not in row]:
            problem = f"field {missing[0]!r} is missing; the row has {', '.join(row)}"
            raise DataError(f"{file.path}, {file.line_name} {line}: {problem}")
        yield line, row


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file's content in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_of(text: str) -> str:
    """Return a short name for a text, for example as the group of all items that share it."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]
