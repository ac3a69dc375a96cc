"""Rows of a file: JSON lines or CSV, plain or gzip-compressed."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..state.errors import DataError

# Whole articles stand in single cells: far more than the csv module's default of 131,072 characters.
csv.field_size_limit(2**31 - 1)

Row = tuple[int, dict[str, Any]]
"""Line number and fields."""


def read_bytes(path: Path) -> bytes:
    """The file's content, decompressed.

    Raises:
        DataError: no such file, or one that cannot be read.
    """
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if path.suffix == ".gz" else content
    except (OSError, EOFError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise DataError(f"{path}: cannot be read: {reason}") from error


def read_rows(path: Path, content: bytes) -> Iterator[Row]:
    """The rows of a JSONL or CSV file, told apart by the file's name.

    Raises:
        DataError: not text, not JSON, not an object; names file and line.
    """
    text = _decoded(path, content)
    name = path.name.removesuffix(".gz").lower()
    if name.endswith(".csv"):
        return _csv_rows(path, text)
    if name.endswith((".jsonl", ".ndjson", ".json")):
        return _json_rows(path, text)
    raise DataError(f"{path}: not a dataset that can be read; expected .jsonl or .csv (also .gz)")


def _decoded(path: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path}, line {line}: not UTF-8 text (byte {error.start}: {error.reason})"
        ) from error


def _json_rows(path: Path, text: str) -> Iterator[Row]:
    # Not splitlines(): texts may hold U+2028 and its kin, which JSON allows inside a string.
    for number, line in enumerate(text.split("\n"), start=1):
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


def _csv_rows(path: Path, text: str) -> Iterator[Row]:
    reader = csv.DictReader(io.StringIO(text, newline=""))
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
