"""Show the progress of a run: live on a terminal, and once a minute in the log."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from threading import Event, Thread
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import TimeRemainingColumn as TimeLeftColumn
from rich.text import Text

from ..calls.progress_counters import ProgressCounters
from ..calls.shutdown import StopSignal
from ..tables.grid import cost_in_words, short

log = logging.getLogger("jurygraph.run")

REFRESHES_PER_SECOND = 2
RECENT = 10.0
"""The seconds over which the rate on the screen is averaged."""

LOOKING_BACK = 600.0
"""The seconds over which the speed for the time left is averaged: many, since debates end rarely and in bursts."""

LOGGED_EVERY = 60.0
"""The seconds between two records in the log."""


class Rate:
    """Computes how much a counter grew per second, over the last few seconds.

    >>> clock = iter([0.0, 5.0, 10.0, 15.0, 20.0]).__next__
    >>> rate = Rate(seconds=10, clock=clock)
    >>> [rate.of(count) for count in (100, 150, 200, 1200, 2200)]
    [0.0, 10.0, 10.0, 105.0, 200.0]
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._seen: deque[tuple[float, int]] = deque()

    def of(self, count: int) -> float:
        """Record the count of now and return the rate."""
        now = self._clock()
        self._seen.append((now, count))
        # Two observations are kept at least: a rate needs a beginning and an end.
        while len(self._seen) > 2 and self._seen[1][0] <= now - self._seconds:
            self._seen.popleft()
        since, before = self._seen[0]
        return (count - before) / (now - since) if now > since else 0.0


class LiveProgress:
    """Shows two lines during a run: a bar with elapsed and remaining time; calls and their rate, tokens, cost.

    It reads the counters a few times a second, however many calls are made in between. Without a terminal nothing is
    drawn, and only long waits are told; the log gets a line every minute in any case.
    """

    def __init__(self, console: Console, counts: ProgressCounters, stop: StopSignal) -> None:
        self._counts, self._halt = counts, stop
        self._rate = Rate(RECENT)
        self._minutes = _LogEveryMinute(counts, console=None if console.is_terminal else console)
        self._bar = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeLeftColumn(),
            console=console,
            speed_estimate_period=LOOKING_BACK,
            expand=True,
        )
        self._task: TaskID | None = None
        self._screen = Live(
            console=console,
            get_renderable=self._drawn,
            refresh_per_second=REFRESHES_PER_SECOND,
            transient=True,
        )

    def __enter__(self) -> Self:
        self._minutes.start()
        if self._screen.console.is_terminal:
            self._screen.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._screen.stop()
        self._minutes.stop()

    def _drawn(self) -> RenderableType:
        counts = self._counts
        # Nothing is known to be judged yet: a bar of 0 of 0 would show as complete.
        if not counts.wanted:
            return ""
        if self._task is None:
            # Verdicts of earlier starts count as done, but say nothing about the speed of this one.
            self._task = self._bar.add_task("", total=counts.wanted, completed=counts.resumed)
        doing = escape(counts.phase) or "judging"
        if self._halt.is_asked:
            doing = f"[yellow]stopping: {self._halt.reason}"
        self._bar.update(self._task, completed=counts.judged + counts.failed, description=doing)
        return Group(self._bar, _figures(counts, self._rate.of(counts.made)))


def _figures(counts: ProgressCounters, rate: float) -> Text:
    """Write the second line, the most important figures first: a narrow terminal cuts off its end."""
    waiting = counts.waits.summary()
    parts = (
        Text(waiting, "yellow") if waiting else None,
        Text(f"{counts.failed:,} failed", "red") if counts.failed else None,
        f"{rate:,.1f} calls/s",
        cost_in_words(counts.usage.cost_usd),
        f"{_short(counts.usage.calls)} calls",
        f"{counts.usage.shown_tokens(_short)} tokens",
        f"{_short(counts.served)} cached" if counts.served else None,
        f"{_short(counts.rounds)} rounds",
    )
    line = Text(" · ").join(part if isinstance(part, Text) else Text(part) for part in parts if part)
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


def _short(count: int) -> str:
    """Write a count in at most seven characters.

    >>> _short(99_999), _short(182_049), _short(2_638_772)
    ('99,999', '182k', '2.64M')
    """
    return short(count, least=100_000)


class _LogEveryMinute(Thread):
    """Logs the counters every minute, so that the log shows when a long run was slow.

    Args:
        counts: what is logged.
        every: how many seconds lie between two records.
        console: gets a line when the run has begun to wait for something else; ``None`` where a display shows it.
    """

    def __init__(
        self, counts: ProgressCounters, every: float = LOGGED_EVERY, console: Console | None = None
    ) -> None:
        super().__init__(name="jurygraph-minutes", daemon=True)
        self._counts, self._every, self._console = counts, every, console
        self._over = Event()

    def stop(self) -> None:
        self._over.set()
        self.join()

    def run(self) -> None:
        rate = Rate(self._every)
        rate.of(self._counts.made)  # where the first minute begins: a rate needs two observations
        shown = ""
        while not self._over.wait(self._every):
            waiting = self._counts.waits.summary()
            if self._console and waiting not in ("", shown):
                self._console.print(Text(waiting), soft_wrap=True)
            shown = waiting
            figures = {"calls_per_second": round(rate.of(self._counts.made), 2)}
            told = {"waiting": waiting} if waiting else {}
            log.info("so far", extra={**self._counts.summary(), **figures, **told})
