"""Read the rows of tables: Parquet files, spreadsheets, data frames, lists of dicts.

Neither pandas nor polars is imported: frames are recognized by their methods.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ...nodes.common.plugins import needed
from ...state.errors import DataError, UsageError
from . import inspect_logs
from .files import (
    MOST_EXPANDED,
    Row,
    RowFile,
    named_cells,
    refuse_expansion,
    refuse_repeated,
    unflattened,
)
from .spreadsheet_limits import check_spreadsheet

_BATCH = 256
_CHUNK = 1 << 20


@runtime_checkable
class NamedRows(Protocol):
    """A frame that yields its rows as dicts, such as those of polars."""

    def iter_rows(self, *, named: bool) -> Iterator[Any]:
        """Yield the rows, as dicts if ``named``."""


@runtime_checkable
class TupleRows(Protocol):
    """A frame that yields its rows as tuples, such as those of pandas."""

    @property
    def columns(self) -> Iterable[Any]:
        """Return the names of the columns."""

    def itertuples(self, index: bool = ..., name: str | None = ...) -> Iterable[Any]:
        """Yield the rows, as plain tuples if ``name`` is ``None``."""


@runtime_checkable
class ArrowStream(Protocol):
    """A frame that exports Arrow data, such as Arrow tables and results of DuckDB."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the data as a capsule."""


Frame = NamedRows | TupleRows | ArrowStream | Sequence[Mapping[str, Any]]
"""A table in memory."""


def frame_rows(frame: Frame) -> Iterator[Row]:
    """Yield the rows of a table in memory, counted from 1, without missing cells.

    Raises:
        DataError: a row of a list is not a dict, or two columns have the same name.
        UsageError: not a frame, or a frame that needs a package that is not installed.

    >>> list(frame_rows([{"id": "a", "human.fluency": float("nan"), "human.relevance": 3}]))
    [(1, {'id': 'a', 'human': {'relevance': 3}})]
    """
    for number, cells in enumerate(_named(frame), start=1):
        if not isinstance(cells, Mapping):
            raise DataError(
                f"row {number}: expected a dict with named fields, got {type(cells).__name__}"
            )
        yield number, present(cells, f"row {number}")


def _named(frame: Frame) -> Iterator[Any]:
    known = "give a name, a file, a frame or a list of dicts"
    not_a_frame = UsageError(f"{type(frame).__name__} is not a dataset: {known}")
    # Arrow comes last: polars and pandas may export it too, but reading their rows needs no
    # pyarrow.
    if isinstance(frame, Sequence) and not isinstance(frame, (str, bytes)):
        yield from frame
    elif isinstance(frame, NamedRows):
        yield from frame.iter_rows(named=True)
    elif isinstance(frame, TupleRows):
        columns = list(frame.columns)
        refuse_repeated(columns)
        # pandas' named tuples would rename columns that are not identifiers, such as
        # ``human.fluency``.
        for cells in frame.itertuples(index=False, name=None):
            yield dict(zip(columns, cells, strict=True))
    elif isinstance(frame, ArrowStream):
        arrow = _arrow()
        try:
            batches = arrow.RecordBatchReader.from_stream(frame)
        except (TypeError, arrow.ArrowException) as error:
            raise not_a_frame from error
        refuse_repeated(batches.schema.names)
        for batch in batches:
            yield from batch.to_pylist()
    else:
        raise not_a_frame


class _TableFile(RowFile):
    """Reads a table in a binary format with a package for it; its rows are counted from 1."""

    line_name = "row"

    def _parsed(self, _content: object) -> Iterator[Row]:
        yield from enumerate(_TABLES[self.path.suffix.lower()](self.path), start=1)


def _parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the cells of each row of a Parquet file by column, without missing cells."""
    arrow = _arrow()
    from pyarrow import parquet

    try:
        # Small batches and no pre-buffering, which would load the columns of a whole row group.
        with parquet.ParquetFile(path, buffer_size=_CHUNK, pre_buffer=False) as table:
            refuse_repeated(table.schema_arrow.names, f"{path}: ")
            rows_at_once = _rows_at_once(table.metadata, path)
            batches = table.iter_batches(batch_size=rows_at_once, use_threads=False)
            rows = chain.from_iterable(batch.to_pylist() for batch in batches)
            for number, cells in enumerate(rows, start=1):
                yield present(cells, f"{path}, row {number}")
    except arrow.ArrowException as error:
        reason = " ".join(str(error).split())  # pyarrow's messages may have several lines
        raise DataError(f"{path}: cannot be read as Parquet: {reason}") from error


def _rows_at_once(metadata: Any, path: Path) -> int:
    """Return how many rows of a Parquet file fit into memory.

    Raises:
        DataError: a column of a row group expands further than any table does.
    """
    dictionary = 1
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for place in range(group.num_columns):
            column = group.column(place)
            refuse_expansion(
                path, path.stat().st_size, column.total_uncompressed_size, column.path_in_schema
            )
            if column.has_dictionary_page:
                # Each row gets its own copy of a shared value.
                dictionary = max(dictionary, column.total_uncompressed_size)
    return max(1, min(_BATCH, MOST_EXPANDED // (16 * dictionary)))


def _sheet_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a spreadsheet's first sheet; the first row with content is the header."""
    lacking = 'reading a spreadsheet needs python-calamine: pip install "jurygraph[frames]"'
    calamine = needed("python_calamine", lacking)
    check_spreadsheet(path)
    try:
        with calamine.CalamineWorkbook.from_path(path) as book:
            rows = ([*map(_as_typed, row)] for row in book.get_sheet_by_index(0).iter_rows())
            filled = (row for row in rows if any(cell != "" for cell in row))
            columns = [str(name) for name in next(filled, [])]
            refuse_repeated(filter(None, columns), f"{path}: ")
            for number, row in enumerate(filled, start=1):
                yield named_cells(columns, row, f"{path}, row {number}")
    except calamine.CalamineError as error:
        raise DataError(f"{path}: cannot be read as a spreadsheet: {error}") from error


def _as_typed(cell: Any) -> Any:
    """Return whole numbers as integers: a sheet stores 7 as 7.0."""
    return int(cell) if isinstance(cell, float) and cell.is_integer() else cell


def _old_sheet_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Refuse a binary spreadsheet, because its expanded size is unknown before it is read."""
    raise DataError(
        f"{path}: {path.suffix} files cannot be checked for their size in memory, and are "
        "not read; save it as .xlsx or .csv"
    )


_TABLES = {
    ".eval": inspect_logs.samples,
    ".parquet": _parquet_rows,
    **dict.fromkeys((".xlsx", ".ods"), _sheet_rows),
    **dict.fromkeys((".xls", ".xlsb"), _old_sheet_rows),
}


def row_file(path: Path, takes_text: bool = False) -> RowFile:
    """Return the reader of a file, by its name; arguments as for ``RowFile``."""
    return (_TableFile if path.suffix.lower() in _TABLES else RowFile)(path, takes_text)


def present(cells: Mapping[Any, Any], where: str) -> dict[str, Any]:
    """Return a row in plain Python types, without missing cells (``None``, NaN, pandas' ``NA``)."""
    return unflattened(_plain({str(name): cell for name, cell in cells.items()}), where)


def _plain(cell: Any) -> Any:
    if isinstance(cell, (np.ndarray, np.generic)):
        cell = cell.tolist()
    if isinstance(cell, Mapping):
        members = {name: _plain(value) for name, value in cell.items()}
        return {name: value for name, value in members.items() if not _is_missing(value)}
    if isinstance(cell, (list, tuple)):
        return [value for value in map(_plain, cell) if not _is_missing(value)]
    return cell


def _is_missing(cell: Any) -> bool:
    if isinstance(cell, float):
        return math.isnan(cell)
    # By name, because pandas is not imported: its NA and NaT.
    return cell is None or type(cell).__name__ in ("NAType", "NaTType")


def _arrow() -> Any:
    return needed("pyarrow", 'reading this table needs pyarrow: pip install "jurygraph[frames]"')
