"""Live progress of a batch on a terminal; quiet where the output is none."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import TimeRemainingColumn as TimeLeftColumn

from ..state.transcript import Turn
from .results import Result


class LiveProgress:
    """A watcher that draws a bar: done, failed, rounds, calls, tokens, cost, time gone and left."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("[bold]judging"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("{task.fields[seen]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeLeftColumn(),
            console=console,
            disable=not console.is_terminal,
            refresh_per_second=4,
            transient=True,
        )
        self._task: TaskID | None = None
        self._failed = self._rounds = self._calls = self._tokens = 0
        self._cost: float | None = 0.0

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def start(self, total: int, done: int) -> None:
        """Draw the bar."""
        self._task = self._progress.add_task("", total=total, completed=done, seen="")

    def heard(self, turn: Turn) -> None:
        """Count what a turn took."""
        self._calls += turn["calls"]
        self._tokens += turn["input_tokens"] + turn["output_tokens"]
        price = turn["cost_usd"]
        self._cost = None if price is None or self._cost is None else self._cost + price
        self._draw(0)

    def finished(self, result: Result) -> None:
        """Move on by one item."""
        self._failed += result.status == "failed"
        self._rounds += result.rounds or 0
        self._draw(1)

    def _draw(self, advance: int) -> None:
        if self._task is None:
            return
        failed = f"[red]{self._failed} failed[/] · " if self._failed else ""
        cost = "cost unknown" if self._cost is None else f"${self._cost:.4f}"
        seen = f"{failed}{self._rounds} rounds · {self._calls} calls · {self._tokens:,} tokens · {cost}"
        self._progress.update(self._task, advance=advance, seen=seen)
