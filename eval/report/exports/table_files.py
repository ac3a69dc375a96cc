"""Write rows to a Parquet, CSV or JSONL file in batches, so that any table fits into memory."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from ....nodes.common.plugins import needed
from ....state.errors import UsageError
from ....state.tasks import TEXTS
from ...tables.formats import inert
from .verdict_rows import ColumnType, ExportColumn

Row = Mapping[str, Any]
Cells = tuple[Any, ...]
"""The cells of a row in the order of the columns, or the cells of a column."""

LONG_TEXTS = {*TEXTS, "explanation"}
"""The columns that may contain long cells."""

MOST_ROWS = 2_000
MOST_CHARACTERS = 16_000_000
"""The limits of a batch: its number of rows, and the characters of its texts."""


def check_format(path: Path) -> None:
    """Refuse a file with a format that is unknown or cannot be written here.

    Raises:
        UsageError: the ending is not .parquet, .csv or .jsonl, or pyarrow is missing for Parquet.
    """
    if path.suffix.lower() not in _WRITERS:
        endings = ", ".join(_WRITERS)
        raise UsageError(f"{path}: the ending names the format of an export: {endings}")
    if path.suffix.lower() == ".parquet":
        lacking = 'writing Parquet needs pyarrow: pip install "jurygraph[frames]", or name a .csv or .jsonl file'
        needed("pyarrow", lacking)


def write_rows(
    file: BinaryIO, path: Path, columns: Sequence[ExportColumn], rows: Iterable[Row]
) -> None:
    """Write the cells of these columns to an open file.

    The ending of ``path`` determines the format.
    """
    empty = dict.fromkeys(column.name for column in columns)
    # A row may have further cells, or lack some.
    cells_of = itemgetter(*empty)
    cells = (cells_of({**empty, **row}) for row in rows)
    _WRITERS[path.suffix.lower()](file, columns, _batches(cells, columns))


def _batches(rows: Iterable[Cells], columns: Sequence[ExportColumn]) -> Iterator[list[Cells]]:
    """Yield rows in batches that are limited in rows and in characters of their texts."""
    texts = [place for place, column in enumerate(columns) if column.name in LONG_TEXTS]
    transcript = next(
        (place for place, column in enumerate(columns) if column.type == "turns"), None
    )
    batch: list[Cells] = []
    characters = 0
    for row in rows:
        batch.append(row)
        characters += sum(len(row[place] or "") for place in texts)
        if transcript is not None:
            characters += sum(len(turn["content"]) for turn in row[transcript] or ())
        if len(batch) == MOST_ROWS or characters >= MOST_CHARACTERS:
            yield batch
            batch = []
            characters = 0
    if batch:
        yield batch


def _json(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:
        return orjson.dumps(_encodable(value))


def _encodable(value: Any) -> Any:
    """Replace lone surrogates, which models can write but UTF-8 files cannot contain."""
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, list | tuple):
        return [_encodable(inner) for inner in value]
    if isinstance(value, dict):
        return {name: _encodable(inner) for name, inner in value.items()}
    return value


# -- JSONL


def _write_jsonl(
    file: BinaryIO, columns: Sequence[ExportColumn], batches: Iterable[list[Cells]]
) -> None:
    names = [column.name for column in columns]
    for batch in batches:
        file.writelines(_json(dict(zip(names, row, strict=True))) + b"\n" for row in batch)


# -- CSV


def _write_csv(
    file: BinaryIO, columns: Sequence[ExportColumn], batches: Iterable[list[Cells]]
) -> None:
    # Spreadsheets recognise UTF-8 by the first bytes of a file.
    text = io.TextIOWrapper(file, encoding="utf-8-sig", errors="replace", newline="")
    table = csv.writer(text, lineterminator="\n")
    table.writerow(column.name for column in columns)
    for batch in batches:
        written = [_csv_column(column.type, cells) for column, cells in _columns(columns, batch)]
        table.writerows(zip(*written, strict=True))
    # The caller closes the file.
    text.detach()


def _columns(
    columns: Sequence[ExportColumn], batch: list[Cells]
) -> Iterator[tuple[ExportColumn, Cells]]:
    return zip(columns, zip(*batch, strict=True), strict=True)


def _csv_column(kind: ColumnType, cells: Cells) -> Iterable[Any]:
    """Return the cells of a column for CSV; a missing cell is empty."""
    if kind == "text":
        return [None if cell is None else inert(cell) for cell in cells]
    if kind == "flag":
        return [None if cell is None else "true" if cell else "false" for cell in cells]
    if kind in ("number", "count"):
        return cells
    return [None if cell is None else _json(cell).decode() for cell in cells]


# -- Parquet


def _write_parquet(
    file: BinaryIO, columns: Sequence[ExportColumn], batches: Iterable[list[Cells]]
) -> None:
    import pyarrow as arrow
    from pyarrow import parquet

    types = _arrow_types(arrow)
    schema = arrow.schema([(column.name, types[column.type]) for column in columns])
    with parquet.ParquetWriter(file, schema, compression="zstd") as table:
        for batch in batches:
            arrays = []
            for column, cells in _columns(columns, batch):
                values = [_turns(turns) for turns in cells] if column.type == "turns" else cells
                try:
                    arrays.append(arrow.array(values, types[column.type]))
                except UnicodeEncodeError:
                    arrays.append(arrow.array(_encodable([*values]), types[column.type]))
            table.write_batch(arrow.RecordBatch.from_arrays(arrays, schema=schema))


def _turns(turns: Sequence[Mapping[str, Any]] | None) -> list[dict[str, Any]]:
    # The value of a turn may be a number, a pair, a truth value or text, but a column has one type.
    # So may the arguments of a tool.
    rows = []
    for turn in turns or ():
        row = {**turn, "value": None if turn["value"] is None else _json(turn["value"]).decode()}
        if "evidence" in turn:
            row["evidence"] = [
                {**piece, "args": _json(piece["args"]).decode()} for piece in turn["evidence"]
            ]
        rows.append(row)
    return rows


def _arrow_types(arrow: Any) -> dict[ColumnType, Any]:
    """Return the Arrow type of each type of column."""
    text = arrow.string()
    number = arrow.float64()
    count = arrow.int64()
    flag = arrow.bool_()
    review = {
        "name": text,
        "score": number,
        "winner": text,
        "reason": text,
        "blind": flag,
        "at": text,
    }
    evidence = {
        "id": text,
        "tool": text,
        "args": text,
        "result": text,
        "status": text,
        "length": count,
    }
    citations = {
        "cited": arrow.list_(text),
        "uncited": arrow.list_(text),
        "unknown": arrow.list_(text),
        "cited_claims": count,
        "uncited_claims": arrow.list_(text),
    }
    turn = {
        "id": text,
        "round": count,
        "agent": text,
        "role": text,
        "content": text,
        "value": text,
        "model": text,
        "calls": count,
        "input_tokens": count,
        "cached_input_tokens": count,
        "output_tokens": count,
        "reasoning_tokens": count,
        "cost_usd": number,
        "seconds": number,
        "uncounted": count,
        "scale": arrow.list_(number),
        "edited": flag,
        "order": count,
        "sample": count,
        "repeat": count,
        "repeats": count,
        "stage": text,
        "name": text,
        "problem": text,
        "fault": text,
        "replaces": text,
        "evidence": arrow.list_(arrow.struct(evidence)),
        "citations": arrow.struct(citations),
    }
    return {
        "text": text,
        "number": number,
        "count": count,
        "flag": flag,
        "texts": arrow.list_(text),
        "numbers": arrow.list_(number),
        "reviews": arrow.list_(arrow.struct(review)),
        "turns": arrow.list_(arrow.struct(turn)),
    }


_Writer = Callable[[BinaryIO, Sequence[ExportColumn], Iterable[list[Cells]]], None]
_WRITERS: dict[str, _Writer] = {
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    ".jsonl": _write_jsonl,
}
