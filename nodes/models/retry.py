"""Say how long calls are waited for and how often they are made again, and note what a run waits for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class RetryPolicy:
    """Say how long to wait for a reply, and how often to ask again.

    Attributes:
        attempts: the most attempts at one call, the first included.
        timeout: the seconds that one attempt may take.
        first_wait: the most seconds to wait before the second attempt; the bound doubles with each attempt.
        longest_wait: the most seconds to wait before any attempt, unless the provider names a time itself.
        max_wait: the most seconds that the waits of one call may add up to, whatever times the provider names.
        timeouts: the most attempts at one call that may take too long. A model that generates without end does so
            again, and each attempt may be billed.
    """

    attempts: int = 12
    timeout: float = 180.0
    first_wait: float = 0.5
    longest_wait: float = 60.0
    max_wait: float = 3600.0
    timeouts: int = 3

    @property
    def longest_retry_after(self) -> float:
        """The most seconds to wait at once where the provider asks for more.

        A part of all the time that there is: providers name days for limits that end sooner, and asking is free.
        """
        return self.max_wait / 4


DEFAULT_RETRY_POLICY = RetryPolicy()


def loop_time() -> float:
    """Return the time by the clock of the running event loop."""
    return asyncio.get_running_loop().time()


# What a run waits for, and until when, so that a display can tell the person in front of it.

SHOWN_FROM = 5.0
"""Seconds: a shorter wait is over before anybody has read of it."""


@dataclass(frozen=True, eq=False)
class Wait:
    """Describe one wait.

    Attributes:
        subject: what is waited for: a model, a journal.
        why: the reason, in a few words.
        since: when it began, in seconds since 1970.
        until: when it ends at the latest; ``None`` where nobody can know.
    """

    subject: str
    why: str
    since: float
    until: float | None


class Waits:
    """Hold the waits of a run; threads may add to it, and a display reads it whenever it likes.

    >>> waits = Waits(clock=lambda: 0.0)
    >>> with waits.noted("openai:gpt-4o-mini", "rate limit", 90.0):
    ...     waits.summary(show_time=lambda seconds: f"second {seconds:g}")
    'waiting for openai:gpt-4o-mini until second 90 (rate limit)'
    >>> waits.summary()
    ''
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._waits: set[Wait] = set()
        self._told: set[tuple[str, str]] = set()

    def add(self, subject: str, why: str, seconds: float | None) -> Wait:
        """Note a wait of so many seconds at most; ``None`` where nobody can know."""
        now = self._clock()
        wait = Wait(subject, why, now, None if seconds is None else now + seconds)
        self._waits.add(wait)
        return wait

    def is_news(self, subject: str, why: str) -> bool:
        """Tell whether this was not said before, so that a person is told once of what thousands of calls meet."""
        known = (subject, why) in self._told
        self._told.add((subject, why))
        return not known

    def remove(self, wait: Wait) -> None:
        """Forget a wait that is over."""
        self._waits.discard(wait)

    def current(self) -> tuple[Wait, ...]:
        """Return all waits that are on."""
        return tuple(self._waits)

    def replace(self, before: Iterable[Wait], now: Iterable[Wait]) -> None:
        """Put the waits of another process, as it has told of them, in the place of those that it told of before."""
        self._waits.difference_update(before)
        self._waits.update(now)

    @contextmanager
    def noted(self, subject: str, why: str, seconds: float | None) -> Iterator[None]:
        """Note a wait for as long as the block inside takes."""
        wait = self.add(subject, why, seconds)
        try:
            yield
        finally:
            self.remove(wait)

    def summary(self, show_time: Callable[[float], str] | None = None) -> str:
        """Describe the wait that ends last, and how many others there are; empty if there is none."""
        # A copy in one step, since threads add and remove.
        now, waits = self._clock(), tuple(self._waits)
        # Those that are not over yet, and long enough to be told of.
        going_on = [wait for wait in waits if wait.until is None or wait.until > now]
        current = [wait for wait in going_on if (wait.until or now) - wait.since >= SHOWN_FROM]
        if not current:
            return ""
        last = max(current, key=lambda wait: float("inf") if wait.until is None else wait.until)
        # As the clock on the wall shows it: who reads it sits before the screen.
        shown = show_time or (lambda at: time.strftime("%H:%M:%S", time.localtime(at)))
        until = "" if last.until is None else f" until {shown(last.until)}"
        others = len({wait.subject for wait in current} - {last.subject})
        more = f" and {others} more" if others else ""
        return f"waiting for {last.subject}{more}{until} ({last.why})"
