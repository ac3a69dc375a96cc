"""Limit the calls to one model: calls in flight, and requests and tokens per minute."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from aiolimiter import AsyncLimiter

from ...state.errors import ModelCallError
from .retry import DEFAULT_RETRY_POLICY, RetryPolicy, Waits, loop_time

log = logging.getLogger("jurygraph.pace")

T = TypeVar("T")

SLOW_START = 32
"""The initial calls in flight; while all succeed, the number doubles every round trip."""

# The share added to the limit in a round trip without refusals, after the doubling has ended.
GROWTH = 0.05
SHORTEST_TROUBLE = 1.0
"""Seconds by which calls must become slower before the limit shrinks; less may be noise."""

REFUSALS = 3
"""After this many refusals in a row, calls wait until the time that the provider named."""

REQUESTS_BURST = 2.0
TOKENS_BURST = 60.0
"""Seconds of the rate that may be used at once; for tokens a minute, since one call may need it."""


@dataclass(frozen=True)
class RateLimits:
    """The limits of the calls to one model from the run's config.

    Attributes:
        concurrency: the maximum calls in flight.
        requests_per_minute: ``None`` for no limit.
        tokens_per_minute: input and output together, as estimated before the call; ``None`` for no
            limit.
        retry_policy: its ``max_wait`` is the longest time to wait while a provider refuses all
            calls.
    """

    concurrency: int
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    retry_policy: RetryPolicy = DEFAULT_RETRY_POLICY


class AdaptiveConcurrency:
    """Decide how many calls may be in flight at one model; adapt the number once a round trip.

    The limit grows while calls succeed, at first twofold. It shrinks by half of the share of
    refused calls, as in DCTCP: a single refusal costs little, and if all are refused it halves. It
    also shrinks if calls take twice as long as before and at least a second longer.

    >>> concurrency = AdaptiveConcurrency(maximum=64, model="openai:gpt-4o-mini")
    >>> for _ in range(32):
    ...     concurrency.record(seconds=0.5)
    >>> concurrency.limit
    64
    """

    def __init__(self, maximum: int, model: str = "") -> None:
        self.maximum = maximum
        self.model = model
        self.limit = min(maximum, SLOW_START)
        # The limit before rounding down, so that growth by a few per cent is not lost.
        self._exact = float(self.limit)
        self._doubling = True
        self._usual_seconds = float("inf")
        # Calls that ended since the last change of the limit: number, refusals, total seconds.
        self._round_trip = (0, 0, 0.0)

    def record(self, *, seconds: float, refused: bool = False) -> None:
        """Record the duration of a finished call, and whether the rate limit refused it."""
        before, refusals, total = self._round_trip
        calls = before + 1
        refusals = refusals + refused
        total = total + seconds
        self._round_trip = calls, refusals, total
        if calls < self.limit:
            return
        self._round_trip = 0, 0, 0.0
        share = refusals / calls
        average = total / calls
        # The first refusal ends the doubling for good, as in TCP's slow start.
        self._doubling = self._doubling and not refusals
        growth = self._exact if self._doubling else max(1.0, GROWTH * self._exact) * (1 - share)
        if average > 2 * self._usual_seconds and average > self._usual_seconds + SHORTEST_TROUBLE:
            # A weaker sign than refusals, which can halve the limit: shrink by a fifth.
            self._doubling, growth = False, -0.2 * self._exact
        # The usual duration may itself change during a run, for example with longer texts.
        self._usual_seconds = min(average, self._usual_seconds * 1.02)
        self._exact = min(max(self._exact * (1 - share / 2) + growth, 1.0), float(self.maximum))
        if (limit := int(self._exact)) != self.limit:
            log.debug(
                "calls in flight", extra={"model": self.model, "before": self.limit, "now": limit}
            )
        self.limit = limit


class RateLimiter:
    """Start calls to one model in order of arrival, within the limits of model and run.

    Args:
        limits: the limits of this model.
        run_limit: limits the calls in flight at all models of the run together.
        model: its name, for the log.
        waits: receives a note while all calls wait.
        book: reserves times for calls if several processes share the limits of a minute.
    """

    def __init__(
        self,
        limits: RateLimits,
        run_limit: asyncio.Semaphore,
        model: str,
        waits: Waits,
        book: Book | None,
    ) -> None:
        self.concurrency = AdaptiveConcurrency(limits.concurrency, model)
        self.in_flight = 0
        self._run_limit = run_limit
        self._retry_policy = limits.retry_policy
        self._queue: deque[asyncio.Future[None]] = deque()
        self._requests = _limiter(limits.requests_per_minute, REQUESTS_BURST, "requests", book)
        self._tokens = _limiter(limits.tokens_per_minute, TOKENS_BURST, "tokens", book)
        self._waits = waits
        self._refusals = 0
        # In the time of the event loop's clock.
        self._refused_since = 0.0
        self._closed_until = 0.0
        self._given_up = ""

    async def run(self, work: Callable[[], Awaitable[T]], tokens: int) -> T:
        """Wait until a call may start, then make it; ``tokens`` is its estimated size.

        Raises:
            ModelCallError: the call failed; or it was not made, because the provider has refused
                all calls for too long.
        """
        await self._enter()
        try:
            if self._requests is not None:
                await self._requests.acquire()
            if self._tokens is not None:
                # The limiter gives at most its whole rate, so a longer call waits only for that.
                await self._tokens.acquire(min(tokens, self._tokens.max_rate))
            # Last, so that a call that waits for this model's rate does not block other models.
            async with self._run_limit:
                started = loop_time()
                try:
                    result = await work()
                except ModelCallError as error:
                    self.concurrency.record(
                        seconds=loop_time() - started, refused=error.rate_limited
                    )
                    self._count_refusal(error)
                    raise
                self._refusals = 0
                self.concurrency.record(seconds=loop_time() - started)
                return result
        finally:
            self._leave()

    async def _enter(self) -> None:
        if self._given_up:
            raise ModelCallError(self._given_up, rate_limited=True)
        # A new call never overtakes the queue: the oldest call would delay its whole debate.
        if not self._queue and self._has_room():
            self.in_flight += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            # It was admitted and cancelled at the same moment, so its place goes to the next.
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._leave()
            raise

    def _leave(self) -> None:
        self.in_flight -= 1
        self._let_in()

    def _let_in(self) -> None:
        while self._queue and self._has_room():
            turn = self._queue.popleft()
            # A call that was cancelled while it waited leaves its future in the queue.
            if not turn.done():
                self.in_flight += 1
                turn.set_result(None)

    def _has_room(self) -> bool:
        return self.in_flight < self.concurrency.limit and loop_time() >= self._closed_until

    def _count_refusal(self, error: ModelCallError) -> None:
        """Pause all calls after consecutive refusals, so that they do not use up their attempts."""
        if not error.rate_limited:
            self._refusals = 0
            return
        if self._refusals == 0:
            self._refused_since = loop_time()
        self._refusals += 1
        if self._refusals < REFUSALS or not error.retry_after:
            return
        left = self._refused_since + self._retry_policy.max_wait - loop_time()
        if left > 0:
            self._close(min(error.retry_after, self._retry_policy.longest_retry_after, left))
            return
        # All waiting and later calls fail, because a run that waits longer is of no use.
        self._given_up = (
            f"{error} (all calls refused for {loop_time() - self._refused_since:,.0f} s)"
        )
        log.warning(
            "no more calls", extra={"model": self.concurrency.model, "reason": self._given_up}
        )
        queue = self._queue
        self._queue = deque()
        for turn in queue:
            if not turn.done():
                # One object each: an exception raised by several tasks would collect all
                # tracebacks.
                turn.set_exception(ModelCallError(self._given_up, rate_limited=True))

    def _close(self, seconds: float) -> None:
        """Pause all calls for this many seconds."""
        until = loop_time() + seconds
        is_open = loop_time() >= self._closed_until
        if until <= self._closed_until:
            return
        self._closed_until = until
        self._waits.add(self.concurrency.model, "it refuses all calls", seconds)
        # A moment later, because the clock could report that it is too early, and then nothing
        # would restart the queue.
        asyncio.get_running_loop().call_later(seconds + 0.001, self._let_in)
        if is_open:  # else the call was already in flight and changes little
            log.warning(
                "no calls for a while", extra={"model": self.concurrency.model, "seconds": seconds}
            )


Book = Callable[[str, float], Awaitable[float]]
"""Reserves seconds of a rate (``requests`` or ``tokens``); returns the seconds until they start."""


class SharedLimiter:
    """Start calls at reserved times of a rate that several processes share.

    One request reserves time for all waiting calls; later calls wait for the next request.

    Args:
        book: reserves seconds of the rate.
        max_rate: requests or tokens that may go at once.
        burst: the seconds in which the rate gives ``max_rate``.
    """

    def __init__(
        self, book: Callable[[float], Awaitable[float]], max_rate: float, burst: float
    ) -> None:
        self._book = book
        self.max_rate = max_rate
        self._burst = burst
        self._waiting: list[tuple[float, asyncio.Future[None]]] = []
        self._booking: asyncio.Task[None] | None = None

    async def acquire(self, amount: float = 1) -> None:
        """Wait until a call of this size may start."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((amount * self._burst / self.max_rate, turn))
        if self._booking is None:
            self._booking = asyncio.create_task(self._book_all())
        await turn

    async def _book_all(self) -> None:
        await asyncio.sleep(0)
        while waiting := [(seconds, turn) for seconds, turn in self._waiting if not turn.done()]:
            self._waiting.clear()
            try:
                ends = await self._book(sum(seconds for seconds, _ in waiting)) - self._burst
            except Exception as error:
                for _, turn in waiting:
                    if not turn.done():
                        turn.set_exception(type(error)(*error.args))
                continue
            for seconds, turn in waiting:
                ends += seconds
                # As with a bucket that is full at first: a call starts when its share has
                # accumulated.
                asyncio.get_running_loop().call_later(max(0.0, ends), _let_go, turn)
        self._waiting.clear()
        self._booking = None


def _let_go(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)


_Limiter = AsyncLimiter | SharedLimiter


def _limiter(
    per_minute: float | None, burst: float, kind: str, book: Book | None
) -> _Limiter | None:
    """Make a limiter that allows ``burst`` seconds of the rate at once, at least one request."""
    if per_minute is None:
        return None
    # aiolimiter refuses an amount above its capacity, so this is at least one request.
    seconds = max(burst, 60 / per_minute)
    if book is not None:
        return SharedLimiter(partial(book, kind), per_minute * seconds / 60, seconds)
    return AsyncLimiter(per_minute * seconds / 60, seconds)
