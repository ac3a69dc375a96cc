"""``sweep.json``: what a sweep is, and where each of its cells is kept."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ...state.errors import DataError, UsageError
from ..manifest import FILE as MANIFEST

if TYPE_CHECKING:
    from .planning import SweepPlan

FILE = "sweep.json"


@dataclass(frozen=True)
class Record:
    """A sweep as its file has it.

    Attributes:
        run: the id that all its calls are counted under in the journal.
        created: when it was first planned, UTC.
        plan: the ready-made plan that it follows, if any.
        axes: name to labels, and to what is set under each.
        cells: in order: ``labels`` by axis, ``folder`` (inside the sweep's), ``signature``.
        data: name, digest, kind and labels of the dataset.
    """

    run: str
    created: str
    plan: str | None
    axes: Mapping[str, Mapping[str, Any]]
    cells: tuple[Mapping[str, Any], ...]
    data: Mapping[str, Any]

    @property
    def of_data(self) -> tuple[str, str]:
        """The dataset's name, and the digest of its content."""
        return str(self.data.get("name")), str(self.data.get("digest"))

    @classmethod
    def of(cls, planned: SweepPlan) -> Self:
        """The record of a sweep that is about to begin."""
        return cls(
            run=planned.run,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            plan=planned.name,
            axes={
                axis.name: {value.label: _plain(value.change) for value in axis.values}
                for axis in planned.axes
            },
            cells=tuple(
                {
                    "labels": dict(one.cell.labels),
                    "folder": _inside(one.plan.folder, planned.folder),
                    "signature": one.plan.manifest["signatures"][one.protocol],
                }
                for one in planned.cells
            ),
            data=planned.cells[0].plan.manifest["data"],
        )

    def write(self, folder: Path) -> None:
        """Put it into the sweep's folder; all of it or nothing. A sweep that goes on keeps its date."""
        before = read_record(folder)
        fields = {**asdict(self), "created": before.created if before else self.created}
        fresh = folder / f"{FILE}.tmp"
        with fresh.open("w", encoding="utf-8") as file:
            file.write(json.dumps(fields, ensure_ascii=False, indent=2) + "\n")
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(folder / FILE)


def make_folder(folder: Path) -> None:
    """Make the folder of a sweep, where there is none.

    Raises:
        UsageError: a file stands there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise UsageError(f"{folder} is a file: --out takes a folder") from None


def read_record(folder: Path) -> Record | None:
    """The record of the sweep that a folder holds; none where it holds nothing.

    Raises:
        UsageError: it holds a single run.
        DataError: its record cannot be read.
    """
    path = folder / FILE
    if not path.exists():
        if (folder / MANIFEST).exists():
            raise UsageError(f"{folder} holds a run, not a sweep: choose another --out")
        return None
    try:
        return Record(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"{path}: no record of a sweep: {error}; choose another --out") from error


def _inside(path: Path | None, folder: Path | None) -> str | None:
    return None if path is None or folder is None else path.relative_to(folder).as_posix()


def _plain(change: Mapping[str, Any]) -> dict[str, Any]:
    """What is no JSON, such as a chat model, by its class."""
    return {
        key: json.loads(json.dumps(value, default=lambda one: type(one).__name__))
        for key, value in change.items()
    }
