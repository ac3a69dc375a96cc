"""Read and check the rows of a file, one at a time: JSON lines, a JSON array, CSV or plain text, also compressed."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import os
import stat
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

from ...state.errors import DataError

# Whole articles stand in single cells: far more than the csv module's default of 131,072 characters.
csv.field_size_limit(2**31 - 1)

Row = tuple[int, dict[str, Any]]
"""A row: its number and its fields."""
_CHUNK = 1 << 18


def read_bytes(path: Path) -> bytes:
    """Return the content of a small file.

    Raises:
        DataError: no such file, or one that cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from error


class RowFile:
    """Reads a JSONL, JSON or CSV file (its name tells which), also ``.gz``, many times, never holding it in memory.

    The first complete pass records a digest of the content; a later pass over other content is an error.
    A JSON array, which has no lines, is the exception: it is read as a whole.

    Attributes:
        path: the path of the file.
        digest: the digest of the decompressed content; empty before the first pass has come to the end.
        unit: the unit that a row's number counts: ``line`` or ``row``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.digest = ""
        self._version: tuple[int, int] | None = None

    @cached_property
    def unit(self) -> str:
        """Return ``row`` for a JSON array, whose rows are counted from 1, else ``line``."""
        return "row" if _is_json(self.path) and _holds_an_array(self.path) else "line"

    def rows(self) -> Iterator[Row]:
        """Yield the rows, from the beginning.

        Raises:
            DataError: a file that cannot be read or has changed, a line that is no text, no JSON or no object;
                names file and line.
        """
        # A first pass that was broken off left a version without a digest: there is nothing to compare with yet.
        self._version = self._version if self.digest else None
        with self._content() as content:
            yield from self.parser()(self.path, content)
        digest = content.digest()
        if self.digest not in ("", digest):
            raise self._changed()
        self.digest = digest

    def parser(self) -> Parser:
        """Choose the parser by the file's name and, for JSON, by its first character."""
        name = self.path.name.removesuffix(".gz").lower()
        if name.endswith(".csv"):
            return _csv_rows
        if self.unit == "row":
            return _array_rows
        if name.endswith((".jsonl", ".ndjson", ".json")):
            return _json_rows
        raise DataError(f"{self.path}: not a dataset that can be read; expected {KINDS}")

    @contextmanager
    def _content(self) -> Iterator[_Content]:
        try:
            with _opened(self.path) as content:
                content.watch = self._watch
                yield content
        except UnicodeDecodeError as error:
            raise self._not_text() from error
        except (OSError, EOFError, zlib.error) as error:
            raise unreadable(self.path, error) from error

    def _watch(self, status: os.stat_result) -> None:
        """Raise an error if the file has changed, before any changed row is used.

        A new date alone is no change: the content is hashed again before the file is refused.
        """
        version = status.st_size, status.st_mtime_ns
        if self._version not in (None, version) and self._digest_now() != self.digest:
            raise self._changed()
        self._version = version

    def _digest_now(self) -> str:
        with _opened(self.path) as content:
            while content.read(_CHUNK):
                pass
            return content.digest()

    def _changed(self) -> DataError:
        return DataError(
            f"{self.path}: has changed since its rows were checked; leave it alone, and start again"
        )

    def _not_text(self) -> DataError:
        """Return an error that names the first undecodable byte and its line; the decoder reads ahead and cannot."""
        position = 0
        with _opened(self.path) as content:
            for number, line in enumerate(io.BufferedReader(content, _CHUNK), start=1):
                try:
                    line.decode()
                except UnicodeDecodeError as error:
                    where = f"byte {position + error.start}: {error.reason}"
                    return DataError(f"{self.path}, line {number}: not UTF-8 text ({where})")
                position += len(line)
        return self._changed()


def _opened(path: Path) -> _Content:
    if stat.S_ISFIFO(path.stat().st_mode):
        raise DataError(f"{path}: a pipe can be read only once; write what it holds to a file")
    return _Content(path.open("rb"), compressed=path.suffix == ".gz")


class _Content(io.RawIOBase):
    """Decompresses and hashes the bytes of a file while they are read; each read calls ``watch`` with its state."""

    def __init__(self, file: BinaryIO, compressed: bool) -> None:
        self.watch: Callable[[os.stat_result], None] | None = None
        self._file = file
        self._plain = gzip.GzipFile(fileobj=file) if compressed else file
        self._hash = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._plain.read(len(buffer))
        # After the read: a change just before it is noticed before the bytes are handed on.
        if self.watch:
            self.watch(os.fstat(self._file.fileno()))
        self._hash.update(data)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()

    def digest(self) -> str:
        """Return the digest of what has been read so far."""
        return self._hash.hexdigest()[:12]


Parser = Callable[[Path, _Content], Iterator[Row]]
KINDS = ".jsonl or .csv (also .gz), .json or .parquet"


def _is_json(path: Path) -> bool:
    return path.name.removesuffix(".gz").lower().endswith(".json")


def _holds_an_array(path: Path) -> bool:
    """Return whether a JSON file is one array, rather than an object a line."""
    try:
        with _opened(path) as content:
            # A byte order mark and JSON's white space may stand before the bracket.
            return content.read(_CHUNK).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
    except (OSError, EOFError, zlib.error):
        return False  # the error is raised when the rows are read


class TextFile(RowFile):
    """Reads a text file: each line becomes a row ``{"text": ...}``, blank lines are left out."""

    def parser(self) -> Parser:
        """Return the parser that keeps lines as they are."""
        return _text_rows


def _text(content: _Content, newline: str) -> io.TextIOWrapper:
    # "-sig" drops the byte order mark that spreadsheets write, which would become part of the first field's name.
    return io.TextIOWrapper(io.BufferedReader(content, _CHUNK), encoding="utf-8-sig", newline=newline)


def _json_rows(path: Path, content: _Content) -> Iterator[Row]:
    # Lines end with "\n" alone: texts may hold U+2028 and its kin, which JSON allows inside a string.
    for number, line in enumerate(_text(content, newline="\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}, line {number}: not JSON: {error}") from error
        if not isinstance(row, dict):
            raise DataError(
                f"{path}, line {number}: expected an object with named fields, got {type(row).__name__}"
            )
        yield number, row


def _array_rows(path: Path, content: _Content) -> Iterator[Row]:
    try:
        held = json.load(_text(content, newline="\n"))
    except (ValueError, RecursionError) as error:
        if isinstance(error, UnicodeDecodeError):
            raise  # it is a ValueError as well; ``_content`` finds the line it is in
        raise DataError(f"{path}: not JSON: {error}") from error
    for number, row in enumerate(held, start=1):
        if not isinstance(row, dict):
            kind = type(row).__name__
            raise DataError(f"{path}, row {number}: expected an object with named fields, got {kind}")
        yield number, row


def _text_rows(_path: Path, content: _Content) -> Iterator[Row]:
    for number, line in enumerate(_text(content, newline="\n"), start=1):
        if line.strip():
            yield number, {"text": line.rstrip("\r\n")}


def _csv_rows(path: Path, content: _Content) -> Iterator[Row]:
    # With newline="" the csv module itself tells line ends from those inside quoted cells.
    reader = csv.DictReader(_text(content, newline=""))
    try:
        for cells in reader:
            if None in cells:  # where DictReader puts the cells that have no column
                raise DataError(f"{path}, line {reader.line_num}: more cells than columns")
            # An empty cell is a missing value, except in these columns, where it is a text without characters.
            empty = {key: "" for key in _MAY_BE_EMPTY if key in cells}
            yield reader.line_num, {**empty, **unflattened({k: v for k, v in cells.items() if v})}
    except csv.Error as error:
        raise DataError(f"{path}, line {reader.line_num}: not CSV: {error}") from error


_MAY_BE_EMPTY = ("source", "candidate", "answer_1", "answer_2")
_TEXT_CELLS = {*_MAY_BE_EMPTY, "fact", "question", "reference", "id", "group", "system", "category"}


def unflattened(cells: Mapping[str, Any]) -> dict[str, Any]:
    """Make a row of a table's cells, given without the empty ones.

    ``human.coherence`` becomes a field of ``human``; cells that hold JSON lists or objects are read, except where
    a text is expected.

    >>> unflattened({"id": "a", "human.coherence": 4, "references": '["It rained."]'})
    {'id': 'a', 'human': {'coherence': 4}, 'references': ['It rained.']}
    """
    row: dict[str, Any] = {}
    for key, cell in cells.items():
        value = _json_cell(cell) if isinstance(cell, str) and key not in _TEXT_CELLS else cell
        outer, _, inner = key.partition(".")
        if not inner:
            # A column ``human`` that holds an object is merged with columns such as ``human.fluency`` before it.
            row[key] = {**row[key], **value} if isinstance(value, dict) and key in row else value
        elif isinstance(row.setdefault(outer, {}), dict):
            row[outer][inner] = value
    return row


def _json_cell(cell: str) -> Any:
    if not cell.lstrip().startswith(("[", "{")):
        return cell
    try:
        return json.loads(cell)
    except ValueError:
        return cell  # a text that merely begins with a bracket


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
            raise DataError(
                f"{file.path}, {file.unit} {line}: field {missing[0]!r} is missing; there are {', '.join(row)}"
            )
        yield line, row


def digest_of(text: str) -> str:
    """Return a short name for a text, for example as the group of all items that share it."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]
