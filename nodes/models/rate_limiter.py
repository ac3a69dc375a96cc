"""How many calls are in flight at one model: as many as it takes gladly, and never more than allowed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from aiolimiter import AsyncLimiter

from ...state.errors import ModelCallError

log = logging.getLogger("jurygraph.pace")

T = TypeVar("T")

SLOW_START = 32
"""So many calls go out at first; while they succeed, twice as many a round trip."""

GROWTH = 0.05
SHORTEST_TROUBLE = 1.0
"""Seconds by which calls must have become slower before fewer go out: below that it is noise, or our own work."""

REFUSALS = 3
"""So many refusals in a row, and no call goes out before the time that the provider named."""

REQUESTS_AHEAD, TOKENS_AHEAD = 5.0, 60.0
"""Seconds whose allowance may be taken at once. Of tokens it is the whole minute: one call may take that much."""


@dataclass(frozen=True)
class RateLimits:
    """What may go out to one model.

    Attributes:
        in_flight: calls at the same time, at most.
        requests_per_minute: ``None``: no such limit.
        tokens_per_minute: input and output together, counted before the call as far as they can be foreseen.
    """

    in_flight: int = 16
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


@dataclass
class _RoundTrip:
    """What became of as many calls as are in flight at a time."""

    calls: int = 0
    refused: int = 0
    seconds: float = 0.0


@dataclass
class AdaptiveConcurrency:
    """How many calls are wanted in flight; adapts once a round trip.

    While calls succeed it grows, at first twofold. The more of them are refused the more it shrinks (as DCTCP does
    it: by half of the refused share, so that a stray refusal costs little and a wall of them half of the crowd); and
    also when calls take twice as long as they once did, and a second longer.

    >>> crowd = AdaptiveConcurrency(most=64, model="openai:gpt-4o-mini")
    >>> for _ in range(32):
    ...     crowd.went(seconds=0.5)
    >>> crowd.wanted
    64
    """

    most: int
    model: str = ""
    wanted: int = 0
    _exact: float = 0.0
    _doubling: bool = True
    _usual: float = float("inf")
    _now: _RoundTrip = field(default_factory=_RoundTrip)

    def __post_init__(self) -> None:
        self._exact = float(min(self.most, SLOW_START))
        self.wanted = int(self._exact)

    def went(self, *, seconds: float, refused: bool = False) -> None:
        """A call has come back, so many seconds after it went out."""
        self._now.calls += 1
        self._now.refused += refused
        self._now.seconds += seconds
        if self._now.calls >= self.wanted:
            self._adapt(self._now)
            self._now = _RoundTrip()

    def _adapt(self, trip: _RoundTrip) -> None:
        share, usual = trip.refused / trip.calls, trip.seconds / trip.calls
        self._doubling = self._doubling and share == 0
        growth = self._exact if self._doubling else max(1.0, GROWTH * self._exact) * (1 - share)
        if usual > 2 * self._usual and usual > self._usual + SHORTEST_TROUBLE:
            self._doubling, growth = False, -0.2 * self._exact
        # What is usual may itself change in the course of a run, with longer texts, say.
        self._usual = min(usual, self._usual * 1.02)
        self._exact = min(max(self._exact * (1 - share / 2) + growth, 1.0), float(self.most))
        self._become(int(self._exact))

    def _become(self, wanted: int) -> None:
        if wanted != self.wanted:
            log.debug("calls in flight", extra={"model": self.model, "before": self.wanted, "now": wanted})
        self.wanted = wanted


class RateLimiter:
    """Lets calls to one model through, in the order in which they came."""

    def __init__(self, rate_limits: RateLimits, everybody: asyncio.Semaphore, model: str = "") -> None:
        self.concurrency = AdaptiveConcurrency(rate_limits.in_flight, model)
        self.in_flight = 0
        self._everybody = everybody
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._requests = _limiter(rate_limits.requests_per_minute, REQUESTS_AHEAD)
        self._tokens = _limiter(rate_limits.tokens_per_minute, TOKENS_AHEAD)
        self._refusals = 0
        self._closed_until = 0.0

    async def through(self, work: Callable[[], Awaitable[T]], tokens: int) -> T:
        """Do the work when it is its turn; ``tokens`` is what it is expected to take."""
        await self._enter()
        try:
            await self._keep_to_the_minute(tokens)
            async with self._everybody:
                return await self._watched(work)
        finally:
            self.in_flight -= 1
            self._let_in()

    async def _enter(self) -> None:
        if not self._waiting and self._is_open():
            self.in_flight += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.in_flight -= 1
                self._let_in()
            raise

    def _let_in(self) -> None:
        while self._waiting and self._is_open():
            turn = self._waiting.popleft()
            if not turn.done():
                self.in_flight += 1
                turn.set_result(None)

    def _is_open(self) -> bool:
        return self.in_flight < self.concurrency.wanted and time.monotonic() >= self._closed_until

    async def _keep_to_the_minute(self, tokens: int) -> None:
        if self._requests is not None:
            await self._requests.acquire()
        if self._tokens is not None:
            await self._tokens.acquire(min(tokens, self._tokens.max_rate))

    async def _watched(self, work: Callable[[], Awaitable[T]]) -> T:
        started = time.monotonic()
        try:
            done = await work()
        except ModelCallError as error:
            self.concurrency.went(seconds=time.monotonic() - started, refused=error.rate_limited)
            self._refusals = self._refusals + 1 if error.rate_limited else 0
            if self._refusals >= REFUSALS and error.retry_after:
                self._close(error.retry_after)
            raise
        self._refusals = 0
        self.concurrency.went(seconds=time.monotonic() - started)
        return done

    def _close(self, seconds: float) -> None:
        """Nothing goes out for so long: whoever is refused again and again would only use up its attempts."""
        self._closed_until = max(self._closed_until, time.monotonic() + seconds)
        asyncio.get_running_loop().call_later(seconds + 0.001, self._let_in)
        log.info("no calls for a while", extra={"model": self.concurrency.model, "seconds": seconds})


def _limiter(a_minute: float | None, ahead: float) -> AsyncLimiter | None:
    """So many a minute; what is allowed in so many seconds may be taken at once, and one at least."""
    if a_minute is None:
        return None
    seconds = max(ahead, 60 / a_minute)
    return AsyncLimiter(a_minute * seconds / 60, seconds)
