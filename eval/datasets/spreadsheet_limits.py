"""Check how large a spreadsheet becomes before it is read.

The reader loads a sheet as one grid from its first to its last cell. A file of a few kilobytes can
ask for hundreds of gigabytes, by a value in the last possible cell or by content that compresses
well. So this module first decompresses and measures the file piece by piece.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from copy import copy
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...state.errors import DataError
from .files import LONGEST_LINE, refuse_expansion

MOST_EMPTY_CELLS = 1 << 22
"""Cells of the grid that may be empty; beyond this, one in ``_SPARSEST`` cells must be filled."""
_SPARSEST = 16
_PIECE = 1 << 20
# Attributes of an XML element; a quoted value may contain ">".
_ATTRIBUTES = rb"""((?:[^<>"']|"[^"<]*"|'[^'<]*')*)"""


class Grid(NamedTuple):
    """The part of a sheet between its first and its last filled cell.

    Attributes:
        rows, columns: the size of that part.
        filled: the number of cells with content.
        last: the name of its last corner, such as ``C17``.
    """

    rows: int
    columns: int
    filled: int
    last: str


def check_spreadsheet(path: Path) -> None:
    """Raise an error for a spreadsheet that would fill the memory.

    Raises:
        DataError: the file expands too far, or a sheet has a cell far outside its table; names file
            and limit.
        OSError: the file cannot be read.
    """
    status = path.stat()
    _check(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=16)
def _check(path: Path, _size: int, _modified: int) -> None:
    """Check each version of a file once."""
    measure = _MEASURES[path.suffix.lower()]
    try:
        with zipfile.ZipFile(path) as archive:
            # The reader reports errors of the format; here they end the check before anything is
            # expanded.
            for grid in measure(archive, path):
                _check_grid(grid, path)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise DataError(f"{path}: cannot be read as a spreadsheet: {error}") from error


def _check_grid(grid: Grid, path: Path) -> None:
    size = grid.rows * grid.columns
    if size > max(MOST_EMPTY_CELLS, _SPARSEST * grid.filled):
        raise DataError(
            f"{path}: a sheet reaches to cell {grid.last}, {size:,} cells of which "
            f"{grid.filled:,} are filled; the limit is {MOST_EMPTY_CELLS:,} cells, or "
            f"{_SPARSEST} times the filled ones; delete the cells outside of the table, or save "
            "the sheet as CSV"
        )


def _pieces(archive: zipfile.ZipFile, path: Path) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Yield each part of the archive by name, in pieces; the caller must read all of them.

    Raises:
        DataError: the parts together expand too far.
    """
    packed = path.stat().st_size
    expanded = 0

    def inflated(member: zipfile.ZipInfo) -> Iterator[bytes]:
        nonlocal expanded
        # The stated size may be wrong, and other readers ignore it: read to the end of the
        # compressed data.
        unbounded = copy(member)
        unbounded.file_size = 1 << 62
        with archive.open(unbounded) as content:
            while piece := content.read(_PIECE):
                expanded += len(piece)
                refuse_expansion(path, packed, expanded)
                yield piece

    for member in archive.infolist():
        yield member.filename, inflated(member)


def _elements(pieces: Iterator[bytes], path: Path) -> Iterator[bytes]:
    """Yield a part in pieces that end before a "<", so that no element is cut in two.

    Raises:
        DataError: a text that is longer than a cell may be.
    """
    begun: list[bytes] = []
    length = 0
    for piece in pieces:
        before, bracket, after = piece.rpartition(b"<")
        if bracket:
            yield b"".join([*begun, before])
            begun = [b"<"]
            length = 0
        begun.append(after)
        length += len(after)
        if length > LONGEST_LINE:
            raise DataError(
                f"{path}: a cell has more than {LONGEST_LINE:,} bytes; "
                "shorten it, or save the sheet as CSV"
            )
    yield b"".join(begun)


_XLSX_PARTS = re.compile(
    # A row with its number, or a cell with its place: <row r="7">, <c r="B7" t="s">. A "/" at the
    # end means that it is empty.
    rb"<(?:[\w.-]+:)?(row|c)(?=[\s/>])" + _ATTRIBUTES + rb">"
    # The value of a cell: <v>12</v>
    rb"(?:\s*<(?:[\w.-]+:)?v(?=[\s>])" + _ATTRIBUTES + rb">([^<]*))?"
)
_PLACE = re.compile(rb"""\br\s*=\s*["']([A-Za-z]{0,3})(\d{1,10})["']""")
_SHARED = re.compile(rb"""\bt\s*=\s*["']s["']""")
# <si> begins a shared string; its texts are in <t>.
_STRING_PARTS = re.compile(rb"<(?:[\w.-]+:)?(si|t)(?=[\s/>])" + _ATTRIBUTES + rb">([^<]*)")


def _xlsx_grids(archive: zipfile.ZipFile, path: Path) -> Iterator[Grid]:
    """Yield the grids of an Excel workbook's sheets.

    Raises:
        DataError: the workbook expands too far: its parts, or the shared strings once each cell has
            its own copy.
    """
    lengths: list[int] = []
    # The number of references to each shared string, by sheet.
    uses: list[np.ndarray] = []
    for name, pieces in _pieces(archive, path):
        if name.lower().endswith("sharedstrings.xml"):
            for piece in _elements(pieces, path):
                for kind, _, text in _STRING_PARTS.findall(piece):
                    if kind == b"si":
                        lengths.append(0)
                    elif lengths:
                        lengths[-1] += len(text)
        else:
            sheet = _Sheet()
            for piece in _elements(pieces, path):
                sheet.read(piece)
            if sheet.filled:
                yield sheet.grid()
            uses.append(np.array(sheet.shared, dtype=np.int64))
    used = np.concatenate([*uses, np.zeros(0, dtype=np.int64)])
    known = used[used < len(lengths)]
    texts = int(np.array([*lengths, 0], dtype=np.int64)[known].sum())
    refuse_expansion(path, path.stat().st_size, texts, "texts that cells share")


class _Sheet:
    """The places of a sheet's filled cells, which determine the size of its grid."""

    def __init__(self) -> None:
        self.filled = 0
        self.shared: list[int] = []
        self._row = self._column = 0
        self._rows = [1 << 40, 0]
        self._columns = [1 << 40, 0]

    def read(self, piece: bytes) -> None:
        for kind, attributes, _, value in _XLSX_PARTS.findall(piece):
            place = _PLACE.search(attributes)
            if kind == b"row":
                self._row = int(place[2]) if place else self._row + 1
                self._column = 0
                continue
            self._column += 1
            if place and place[1]:
                self._row = int(place[2])
                self._column = _column_number(place[1])
            if not attributes.endswith(b"/"):
                self._add(attributes, value)

    def _add(self, attributes: bytes, value: bytes) -> None:
        self.filled += 1
        row = self._row
        column = self._column
        self._rows = [min(row, self._rows[0]), max(row, self._rows[1])]
        self._columns = [min(column, self._columns[0]), max(column, self._columns[1])]
        if value.isdigit() and len(value) < 10 and _SHARED.search(attributes):
            self.shared.append(int(value))

    def grid(self) -> Grid:
        (first_row, last_row), (first_column, last_column) = self._rows, self._columns
        last = f"{_column_name(last_column)}{last_row}"
        return Grid(last_row - first_row + 1, last_column - first_column + 1, self.filled, last)


@lru_cache(maxsize=1 << 15)
def _column_number(letters: bytes) -> int:
    number = 0
    for letter in letters.upper():
        number = number * 26 + letter - ord("A") + 1
    return number


def _column_name(number: int) -> str:
    letters = ""
    while number > 0:
        number, letter = divmod(number - 1, 26)
        letters = chr(ord("A") + letter) + letters
    return letters


_ODS_PARTS = re.compile(
    rb"<table:(table|table-row|table-cell|covered-table-cell)(?=[\s/>])" + _ATTRIBUTES + rb">"
)
_REPEATED = re.compile(rb"""\btable:number-(?:rows|columns)-repeated\s*=\s*["'](\d{1,10})["']""")


def _ods_grids(archive: zipfile.ZipFile, path: Path) -> Iterator[Grid]:
    """Yield the grids of an OpenDocument spreadsheet's sheets, with repeated rows and cells.

    Raises:
        DataError: the file expands too far: its parts, or the texts of repeated cells.
    """
    packed = path.stat().st_size
    for _, pieces in _pieces(archive, path):
        row = 0
        rows_at_once = 1
        column = 0
        filled = 0
        texts = 0
        last_row = last_column = 0
        for piece in _elements(pieces, path):
            found = [*_ODS_PARTS.finditer(piece)]
            ends = [*(part.start() for part in found[1:]), len(piece)]
            for part, end in zip(found, ends, strict=False):
                repeated = _REPEATED.search(part[2])
                times = int(repeated[1]) if repeated else 1
                if part[1] == b"table":
                    if filled:
                        yield Grid(
                            last_row, last_column, filled, f"{_column_name(last_column)}{last_row}"
                        )
                    row = 0
                    rows_at_once = 0
                    column = 0
                    filled = 0
                    last_row = 0
                    last_column = 0
                elif part[1] == b"table-row":
                    row += rows_at_once
                    rows_at_once = times
                    column = 0
                else:
                    column += times
                    # A cell without a value has only a format.
                    if b"office:" in part[2] or (
                        end - part.end() > 0 and b"<text:p" in piece[part.end() : end]
                    ):
                        filled += 1
                        last_row = max(last_row, row + rows_at_once)
                        last_column = max(last_column, column)
                        texts += times * rows_at_once * (end - part.start())
                        refuse_expansion(path, packed, texts, "texts of repeated cells")
        if filled:
            yield Grid(last_row, last_column, filled, f"{_column_name(last_column)}{last_row}")


_MEASURES: dict[str, Callable[[zipfile.ZipFile, Path], Iterator[Grid]]] = {
    ".xlsx": _xlsx_grids,
    ".ods": _ods_grids,
}
