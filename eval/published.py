"""Published datasets, read as their homes publish them (UniEval's Topical-Chat JSONL, SummEval's JSONL)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..state.errors import DataError, UsageError
from .files import Row, read_bytes, read_rows

FILES = {"topical-chat": "topical_chat.jsonl", "summeval": "summeval.jsonl"}


def find(name: str, data_dir: str | Path | None) -> Path:
    """The file of a published dataset in a folder, plain or compressed, also one folder down.

    Raises:
        UsageError: no folder given.
        DataError: it is not there.
    """
    if data_dir is None:
        raise UsageError(f"{name} is not bundled: give the folder that holds {FILES[name]} with --data-dir")
    folder, wanted = Path(data_dir), FILES[name]
    for place in (folder, folder / name, folder / name.replace("-", "_")):
        for path in (place / wanted, place / f"{wanted}.gz"):
            if path.is_file():
                return path
    raise DataError(f"{folder}: holds no {wanted} (nor {wanted}.gz), which {name} is read from")


def topical_chat(path: Path) -> Iterator[Row]:
    """One row a response; grouped by dialogue context."""
    for line, row in _rows(path, "item_id", "context_id", "dialogue_history", "response", "human"):
        yield (
            line,
            {
                "id": row["item_id"],
                "group": row["context_id"],
                "system": row.get("system_id"),
                "source": row["dialogue_history"].strip(),
                "fact": (row.get("fact") or "").strip() or None,
                "candidate": row["response"].strip(),
                "human": {name: value for name, value in row["human"].items() if name != "overall"},
            },
        )


def summeval(path: Path) -> Iterator[Row]:
    """One row a summary; grouped by article."""
    for line, row in _rows(path, "item_id", "article_id", "source", "summary", "human"):
        yield (
            line,
            {
                "id": row["item_id"],
                "group": row["article_id"],
                "system": row.get("system_id"),
                "source": row["source"],
                "candidate": row["summary"],
                "human": row["human"],
            },
        )


def _rows(path: Path, *fields: str) -> Iterator[Row]:
    for line, row in read_rows(path, read_bytes(path)):
        if missing := [field for field in fields if field not in row]:
            raise DataError(
                f"{path}, line {line}: field {missing[0]!r} is missing; there are {', '.join(row)}"
            )
        yield line, row
