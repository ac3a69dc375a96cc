"""The result of an experiment of one or more runs: its first screen, its tables, and its file."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Self

from ...state.errors import DataError
from ..tables import Grid
from ..tables.screen import FirstScreen
from ..tables.stored import grid_from_json, grid_to_json, screen_from_json, screen_to_json
from .evaluation import Evaluation
from .folder import FILE as MANIFEST
from .folder import write_whole


@dataclass(frozen=True, kw_only=True)
class ExperimentResult(ABC):
    """The outcome of an experiment, and how it ended.

    Attributes:
        file: the name of the file with the outcome: the experiment's name and ``.json``.
        folder: the folder of the file; ``None`` if nothing is stored.
        stopped: why it ended before it was complete.
        failed: the number of judgements without a verdict.
    """

    file: ClassVar[str]
    folder: Path | None = None
    stopped: str | None = None
    failed: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as plain JSON, with how it ended last."""
        values = asdict(self)
        ended = {field.name: values.pop(field.name) for field in fields(ExperimentResult)}
        return {**values, **ended, "folder": str(self.folder) if self.folder else None}

    @abstractmethod
    def screen(self) -> FirstScreen:
        """Compose the first screen."""

    @abstractmethod
    def grids(self) -> Iterator[Grid]:
        """Yield the tables."""

    @staticmethod
    def ended(evaluation: Evaluation) -> dict[str, Any]:
        """Return how an experiment of one run ended, which are the last fields of its result."""
        return {
            "folder": evaluation.folder,
            "stopped": evaluation.stopped,
            "failed": len(evaluation.failed),
        }

    def write(self) -> Self:
        """Write the file if there is a folder, and return the result."""
        if self.folder is not None:
            write_whole(self.folder / self.file, {**self.to_json(), **self.shown()})
        return self

    def shown(self) -> dict[str, Any]:
        """Return the screen and the tables as plain JSON, so that a report shows the same."""
        return {
            "screen": screen_to_json(self.screen()),
            "tables": [grid_to_json(grid) for grid in self.grids()],
        }


@dataclass(frozen=True)
class StoredExperiment:
    """The result of an experiment as its file has it.

    Attributes:
        file: the name of the file.
        screen: its first screen.
        grids: its tables.
        runs: the folders of its runs.
    """

    file: str
    screen: FirstScreen
    grids: tuple[Grid, ...]
    runs: tuple[Path, ...]


EXPERIMENTS = ("sweep", "versus", "whatif", "redteam", "bias", "reproduce")
"""The experiments whose results ``report`` shows; each has a command and a file of this name."""


def read_experiment(folder: Path) -> StoredExperiment | None:
    """Read the result of the experiment in a folder; ``None`` where there is none, or one without a
    first screen.

    Raises:
        DataError: the file cannot be read.
    """
    # A reproduced table is also a sweep, whose file may have no screen.
    for path in (folder / f"{name}.json" for name in EXPERIMENTS):
        if not path.is_file():
            continue
        try:
            fields = json.loads(path.read_text(encoding="utf-8"))
            # Earlier versions wrote none.
            if not fields.get("screen"):
                continue
            screen = screen_from_json(fields["screen"])
            grids = tuple(map(grid_from_json, fields["tables"]))
        except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
            raise DataError(
                f"{path}: not the result of an experiment ({type(error).__name__}: {error})"
            ) from error
        return StoredExperiment(path.name, screen, grids, _runs_in(folder))
    return None


def _runs_in(folder: Path) -> tuple[Path, ...]:
    """Return the folders of an experiment's runs: its own, or those one or two levels below."""
    for pattern in (MANIFEST, f"*/{MANIFEST}", f"*/*/{MANIFEST}"):
        if manifests := sorted(folder.glob(pattern)):
            return tuple(path.parent for path in manifests)
    return ()
