"""Retry failed calls: decide which are worth another attempt, how long to wait before it, and note who waits."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ...state.errors import ModelCallError, TransientCallError
from .call import Call, Reply, Send

log = logging.getLogger("jurygraph.calls")


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


async def call_with_retry(
    call: Call, send: Send, retry_policy: RetryPolicy | None = None, waits: Waits | None = None
) -> Reply:
    """Send a call until it succeeds, fails for good, or has had all its attempts or waited for as long as it may.

    Waits grow exponentially, with full jitter; a ``Retry-After`` is honoured as far as ``max_wait`` allows.

    Args:
        call: what is sent.
        send: makes one attempt; ``with_timeout`` limits how long it may take.
        retry_policy: how many attempts, and how long to wait between them.
        waits: gets a note of each wait.

    Raises:
        ModelCallError: the error of the last attempt.
    """
    policy = retry_policy or DEFAULT_RETRY_POLICY
    attempts, late, waited = 0, 0, 0.0
    while True:
        attempts += 1
        try:
            return await send(call)
        except ModelCallError as error:
            if not error.retryable:
                raise
            late += isinstance(error, NoReplyInTimeError)
            if attempts >= policy.attempts or late >= policy.timeouts or waited >= policy.max_wait:
                spent = f" and {waited:,.0f} s of waiting" if waited >= 1 else ""
                raise TransientCallError(
                    f"{error} (given up after {attempts} attempts{spent})",
                    rate_limited=error.rate_limited,
                    may_be_billed=error.may_be_billed,
                ) from error
            pause = min(_pause(policy, attempts, error.retry_after), policy.max_wait - waited)
            noted = {"model": call.model.label, "attempt": attempts, "wait_seconds": round(pause, 3)}
            log.info("another attempt", extra={**noted, "reason": str(error)})
        with (waits or Waits()).noted(call.model.label, "next attempt", pause):
            await asyncio.sleep(pause)
        waited += pause


def _pause(policy: RetryPolicy, attempts: int, retry_after: float | None) -> float:
    """Return how many seconds to wait when so many attempts have failed, of which the last named a time or none."""
    # The exponent is bounded, since a policy may have thousands of attempts.
    backoff = random.uniform(0.0, min(policy.first_wait * 2.0 ** min(attempts - 1, 60), policy.longest_wait))
    if retry_after is None:
        return backoff
    # Some jitter on top of the time that the provider named, or all waiting calls would come back at once.
    return max(0.0, min(retry_after, policy.longest_retry_after)) + 0.1 * backoff


class NoReplyInTimeError(TransientCallError):
    """Raised where an attempt took longer than it may; its reply may come to be billed all the same."""


def with_timeout(send: Send, seconds: float) -> Send:
    """Limit an attempt to so many seconds; when they are over it fails like a lost connection, which is retried."""

    async def in_time(call: Call) -> Reply:
        try:
            async with asyncio.timeout(seconds):
                return await send(call)
        except TimeoutError as error:
            problem = (
                f"{call.model.label}: no reply within {seconds:g} seconds (if the model is slow, raise --timeout; "
                "if it does not come to an end, lower max_tokens; the provider may bill what it wrote)"
            )
            raise NoReplyInTimeError(problem, may_be_billed=True) from error

    return in_time


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

    def is_shown(self, now: float) -> bool:
        """Tell whether the wait is not over yet and long enough to be told of."""
        if self.until is None:
            return now - self.since >= SHOWN_FROM
        return self.until > now and self.until - self.since >= SHOWN_FROM


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

    def add(self, subject: str, why: str, seconds: float | None) -> Wait:
        """Note a wait of so many seconds at most; ``None`` where nobody can know."""
        now = self._clock()
        wait = Wait(subject, why, now, None if seconds is None else now + seconds)
        self._waits.add(wait)
        return wait

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
        current = [wait for wait in waits if wait.is_shown(now)]
        if not current:
            return ""
        last = max(current, key=lambda wait: float("inf") if wait.until is None else wait.until)
        until = "" if last.until is None else f" until {(show_time or _time_of_day)(last.until)}"
        others = len({wait.subject for wait in current} - {last.subject})
        more = f" and {others} more" if others else ""
        return f"waiting for {last.subject}{more}{until} ({last.why})"


def _time_of_day(seconds: float) -> str:
    """Write a time as the clock on the wall shows it: who reads it sits before the screen."""
    return time.strftime("%H:%M:%S", time.localtime(seconds))
