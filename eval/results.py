"""One line of ``results.jsonl`` for each item, aspect, protocol and repeat; written as each finishes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import ConfigDict, Field, ValidationError

from ..state.errors import DataError
from ..state.transcript import Turn
from ..state.verdict import Usage, Winner

FILE = "results.jsonl"


class Key(NamedTuple):
    """What tells one result from another."""

    item: str
    aspect: str | None
    protocol: str
    repeat: int


class Result(Usage):
    """What became of one item."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    item: str
    group: str | None = None
    aspect: str | None = None
    protocol: str
    status: Literal["ok", "failed"]
    score: float | None = None
    scores: tuple[float, float] | None = None
    winner: Winner | None = None
    human: float | Winner | None = None
    rounds: int | None = None
    stop_reason: str | None = None
    score_by_round: tuple[float | tuple[float, float], ...] = ()
    repeat: int = 0
    error: str | None = None
    position_consistent: bool | None = None
    details: dict[str, Any] = Field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    transcript: tuple[Turn, ...] = ()

    @property
    def key(self) -> Key:
        """Which item, aspect, protocol and repeat this is."""
        return Key(self.item, self.aspect, self.protocol, self.repeat)

    def line(self) -> str:
        """The result as a line of JSON, what it is about first."""
        fields = self.model_dump(mode="json")
        ordered = {name: fields[name] for name in _ORDER}
        return json.dumps(ordered, ensure_ascii=False)


_ORDER = (
    *("item", "group", "aspect", "protocol", "status", "score", "scores", "winner", "human", "rounds"),
    *("stop_reason", "score_by_round", "repeat", "calls", "input_tokens", "cached_input_tokens"),
    *("output_tokens", "reasoning_tokens", "cost_usd", "seconds", "error", "position_consistent"),
    *("details", "warnings", "transcript"),
)


class ResultsFile:
    """The results of a run on disk. The last line of a key counts: what failed and was tried again is replaced."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._mend_last_line()

    def add(self, result: Result) -> None:
        """Append a result; it is on its way to the disk when this returns."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(result.line() + "\n")

    def read(self) -> list[Result]:
        """All results, the last one of each key, in the order in which keys first came up.

        Raises:
            DataError: a line that is no result; names file and line.
        """
        if not self.path.exists():
            return []
        return list({result.key: result for result in self._lines()}.values())

    def compact(self) -> None:
        """Drop the lines that later ones have replaced."""
        results = self.read()
        fresh = self.path.with_suffix(".tmp")
        fresh.write_text("".join(result.line() + "\n" for result in results), encoding="utf-8")
        fresh.replace(self.path)

    def _lines(self) -> Iterator[Result]:
        with self.path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                try:
                    yield Result.model_validate_json(line)
                except ValidationError as error:
                    problem = error.errors(include_url=False)[0]
                    where = ".".join(map(str, problem["loc"])) or "line"
                    raise DataError(f"{self.path}, line {number}: {where}: {problem['msg']}") from error

    def _mend_last_line(self) -> None:
        """Cut off the half line that a killed run may have left."""
        if not self.path.exists():
            return
        with self.path.open("rb+") as file:
            content = file.read()
            if content and not content.endswith(b"\n"):
                file.truncate(content.rfind(b"\n") + 1)
