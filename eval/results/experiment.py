"""Define the result of an experiment of one or more runs: its tables, and the file that holds all of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Self

from ..tables import Grid
from .evaluation import Evaluation
from .folder import write_whole


@dataclass(frozen=True, kw_only=True)
class ExperimentResult(ABC):
    """Holds what an experiment came to, and how it ended.

    Attributes:
        file: the name of the file that holds all of it.
        folder: where that is; ``None`` where nothing is kept.
        stopped: why it ended before its work was done.
        failed: judgements without a verdict.
    """

    file: ClassVar[str]
    folder: Path | None = None
    stopped: str | None = None
    failed: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return all of it as plain JSON; how it ended comes last."""
        values = asdict(self)
        ended = {field.name: values.pop(field.name) for field in fields(ExperimentResult)}
        return {**values, **ended, "folder": str(self.folder) if self.folder else None}

    @abstractmethod
    def grids(self) -> Iterator[Grid]:
        """Make the tables."""

    @staticmethod
    def ended(evaluation: Evaluation) -> dict[str, Any]:
        """Return how an experiment of one run ended: the last fields of its result."""
        return {"folder": evaluation.folder, "stopped": evaluation.stopped, "failed": len(evaluation.failed)}

    def write(self) -> Self:
        """Write the file, where there is a folder, and return the result."""
        if self.folder is not None:
            write_whole(self.folder / self.file, self.to_json())
        return self
