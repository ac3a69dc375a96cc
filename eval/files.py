"""Rows of a file: JSON lines or CSV, plain or gzip-compressed, one at a time."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from ..state.errors import DataError

# Whole articles stand in single cells: far more than the csv module's default of 131,072 characters.
csv.field_size_limit(2**31 - 1)

Row = tuple[int, dict[str, Any]]
"""Line number and fields."""

_CHUNK = 1 << 18


def read_bytes(path: Path) -> bytes:
    """The content of a small file.

    Raises:
        DataError: no such file, or one that cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from error


class RowFile:
    """A JSONL or CSV file (its name tells which), also ``.gz``: read as often as wanted, never held in memory.

    The first pass that comes to the end settles what the file holds; later ones refuse it if it holds something else.

    Attributes:
        path: the file.
        digest: of the decompressed content; empty before the first pass has come to the end.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.digest = ""
        self._version: tuple[int, int] | None = None

    def rows(self) -> Iterator[Row]:
        """The rows, from the beginning.

        Raises:
            DataError: a file that cannot be read or has changed, a line that is no text, no JSON or no object;
                names file and line.
        """
        self._version = self._version if self.digest else None
        with self._content() as content:
            yield from _parser(self.path)(self.path, content)
        found = content.digest()
        if self.digest not in ("", found):
            raise self._changed()
        self.digest = found

    @contextmanager
    def _content(self) -> Iterator[_Content]:
        try:
            with _opened(self.path) as content:
                content.watch = self._watch
                yield content
        except UnicodeDecodeError as error:
            raise self._not_text() from error
        except (OSError, EOFError, zlib.error) as error:
            raise _unreadable(self.path, error) from error

    def _watch(self, status: os.stat_result) -> None:
        """Notice a change before anything that was changed is used; a new date on the same content is none."""
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
        """Find the first byte that is no text; the decoder, which reads ahead, does not know its line."""
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
    """A file's bytes, decompressed; ``watch`` is told the state of the file whenever some were read."""

    def __init__(self, file: BinaryIO, compressed: bool) -> None:
        self.watch: Callable[[os.stat_result], None] | None = None
        self._file = file
        self._plain = gzip.GzipFile(fileobj=file) if compressed else file
        self._hash = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._plain.read(len(buffer))
        if self.watch:
            self.watch(os.fstat(self._file.fileno()))
        self._hash.update(data)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()

    def digest(self) -> str:
        """Of what has been read so far."""
        return self._hash.hexdigest()[:12]


def _parser(path: Path) -> Callable[[Path, _Content], Iterator[Row]]:
    name = path.name.removesuffix(".gz").lower()
    if name.endswith(".csv"):
        return _csv_rows
    if name.endswith((".jsonl", ".ndjson", ".json")):
        return _json_rows
    raise DataError(f"{path}: not a dataset that can be read; expected .jsonl or .csv (also .gz)")


def _text(content: _Content, newline: str) -> io.TextIOWrapper:
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


def _csv_rows(path: Path, content: _Content) -> Iterator[Row]:
    reader = csv.DictReader(_text(content, newline=""))
    try:
        for cells in reader:
            if None in cells:
                raise DataError(f"{path}, line {reader.line_num}: more cells than columns")
            yield (
                reader.line_num,
                _unflattened({k: v for k, v in cells.items() if v not in (None, "")}, cells),
            )
    except csv.Error as error:
        raise DataError(f"{path}, line {reader.line_num}: not CSV: {error}") from error


_TEXT_CELLS = {"source", "candidate", "fact", "question", "answer_1", "answer_2", "reference", "id", "group"}


def _unflattened(cells: dict[str, str], all_cells: dict[str, Any]) -> dict[str, Any]:
    """``human.coherence`` becomes a field of ``human``; cells that hold JSON lists or objects are read."""
    row: dict[str, Any] = {
        key: "" for key in ("source", "candidate", "answer_1", "answer_2") if key in all_cells
    }
    for key, cell in cells.items():
        value = cell if key in _TEXT_CELLS else _json_cell(cell)
        outer, _, inner = key.partition(".")
        if inner:
            row.setdefault(outer, {})[inner] = value
        else:
            row[key] = value
    return row


def _json_cell(cell: str) -> Any:
    if not cell.lstrip().startswith(("[", "{")):
        return cell
    try:
        return json.loads(cell)
    except ValueError:
        return cell


def _unreadable(path: Path, error: Exception) -> DataError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return DataError(f"{path}: cannot be read: {reason}")
