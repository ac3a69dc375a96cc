"""Define time limits and retries of calls, and record the reasons why a run waits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class RetryPolicy:
    """The time limit of a reply and the number and timing of retries.

    Attributes:
        attempts: the maximum attempts of one call, including the first.
        timeout: the maximum seconds of one attempt.
        first_wait: the maximum seconds before the second attempt; it doubles with each attempt.
        longest_wait: the maximum seconds before any attempt, unless the provider names a time.
        max_wait: the maximum total wait of one call in seconds, whatever times the provider names.
        timeouts: the maximum attempts of one call that may time out. A model that generates without
            end does so again, and each attempt may be billed.
        unanswered: the maximum attempts of one call while nothing answers at the model's address;
            None: the same as for any call, since the model's server may start meanwhile.
    """

    attempts: int = 12
    timeout: float = 180.0
    first_wait: float = 0.5
    longest_wait: float = 60.0
    max_wait: float = 3600.0
    timeouts: int = 3
    unanswered: int | None = None

    @property
    def longest_retry_after(self) -> float:
        """The maximum seconds to wait at once if the provider asks for more.

        A fraction of the total wait: providers name days for limits that end sooner, and asking is
        free.
        """
        return self.max_wait / 4


DEFAULT_RETRY_POLICY = RetryPolicy()

SERVER_RETRY_POLICY = RetryPolicy(unanswered=2)
"""The policy for a server's callers, who wait for the answer and occupy one of few slots."""


def loop_time() -> float:
    """Return the time by the clock of the running event loop."""
    return asyncio.get_running_loop().time()


# The reasons why a run waits, and until when, so that a display can show them.

SHOWN_FROM = 5.0
"""Seconds: a shorter wait ends before anybody has read about it."""


@dataclass(frozen=True, eq=False)
class Wait:
    """One wait.

    Attributes:
        subject: a model or a journal.
        why: the reason, in a few words.
        since: when it began, in seconds since 1970.
        until: its latest end; ``None`` if unknown.
    """

    subject: str
    why: str
    since: float
    until: float | None


class Waits:
    """The current waits of a run; threads may add to it while a display reads it.

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
        """Record a wait with its longest duration in seconds; ``None`` if unknown."""
        now = self._clock()
        wait = Wait(subject, why, now, None if seconds is None else now + seconds)
        self._waits.add(wait)
        return wait

    def is_news(self, subject: str, why: str) -> bool:
        """Return whether this is new, so that a problem of thousands of calls is logged once."""
        known = (subject, why) in self._told
        self._told.add((subject, why))
        return not known

    def remove(self, wait: Wait) -> None:
        """Remove a wait that is over."""
        self._waits.discard(wait)

    def current(self) -> tuple[Wait, ...]:
        """Return all current waits."""
        return tuple(self._waits)

    def replace(self, before: Iterable[Wait], now: Iterable[Wait]) -> None:
        """Replace the waits that another process reported."""
        self._waits.difference_update(before)
        self._waits.update(now)

    @contextmanager
    def noted(self, subject: str, why: str, seconds: float | None) -> Iterator[None]:
        """Record a wait while the block inside runs."""
        wait = self.add(subject, why, seconds)
        try:
            yield
        finally:
            self.remove(wait)

    def summary(self, show_time: Callable[[float], str] | None = None) -> str:
        """Describe the wait that ends last, and count the others; empty if there is none."""
        # Copied in one step, because threads add and remove waits.
        now = self._clock()
        waits = tuple(self._waits)
        # Current waits that are long enough to be shown.
        going_on = [wait for wait in waits if wait.until is None or wait.until > now]
        current = [wait for wait in going_on if (wait.until or now) - wait.since >= SHOWN_FROM]
        if not current:
            return ""
        last = max(current, key=lambda wait: float("inf") if wait.until is None else wait.until)
        # In local time, because the reader sits at this machine.
        shown = show_time or (lambda at: time.strftime("%H:%M:%S", time.localtime(at)))
        until = "" if last.until is None else f" until {shown(last.until)}"
        others = len({wait.subject for wait in current} - {last.subject})
        more = f" and {others} more" if others else ""
        return f"waiting for {last.subject}{more}{until} ({last.why})"
