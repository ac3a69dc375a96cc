"""The record of a sweep: ``sweep.json`` in its folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...state.errors import DataError, UsageError
from ..results.folder import FILE as MANIFEST
from ..results.folder import RUN_SET, write_whole

FILE = "sweep.json"


def add_result(folder: Path, result: Mapping[str, Any]) -> None:
    """Add the result of a sweep to the record that it wrote when it began."""
    if record := read_record(folder):
        write_whole(folder / FILE, {**record, **result})


def read_record(folder: Path) -> dict[str, Any] | None:
    """Read the record of a sweep from its folder; ``None`` if the folder has no run.

    Raises:
        UsageError: the folder contains a single run.
        DataError: the record cannot be read.
    """
    path = folder / FILE
    if not path.exists():
        if (folder / MANIFEST).exists():
            raise UsageError(f"{folder} holds a run, not a sweep: choose another --out")
        if (folder / RUN_SET).exists():
            raise UsageError(f"{folder} holds several runs, not a sweep: choose another --out")
        return None
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if missing := [name for name in ("run", "data", "cells") if name not in record]:
            raise ValueError(f"it has no {missing[0]}")
    except (OSError, ValueError, TypeError) as error:
        raise DataError(
            f"{path}: not a record of a sweep: {error}; choose another --out"
        ) from error
    return record
