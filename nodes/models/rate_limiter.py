"""Limit the calls to one model: how many are in flight, and how many requests and tokens go out a minute."""

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
"""Calls in flight at first; while all succeed, the number doubles every round trip."""

# Share of the limit that is added in a round trip without refusals, once the doubling has ended.
GROWTH = 0.05
SHORTEST_TROUBLE = 1.0
"""Seconds by which calls must have become slower before the limit shrinks; less may be noise, or our own work."""

REFUSALS = 3
"""After so many refusals in a row no call goes out before the time that the provider named."""

REQUESTS_BURST, TOKENS_BURST = 2.0, 60.0
"""Seconds whose share of the limit may be used at once; of tokens the whole minute, since one call may take as much."""


@dataclass(frozen=True)
class RateLimits:
    """Hold the limits of the calls to one model, as the run's config sets them.

    Attributes:
        concurrency: the most calls in flight at once.
        requests_per_minute: ``None`` means no such limit.
        tokens_per_minute: input and output together, as estimated before the call; ``None`` means no such limit.
        retry_policy: for how many seconds a provider that refuses all calls may have them held back.
    """

    concurrency: int
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    retry_policy: RetryPolicy = DEFAULT_RETRY_POLICY


class AdaptiveConcurrency:
    """Decide how many calls may be in flight at one model; adapt the number once a round trip.

    While calls succeed the limit grows, at first twofold. It shrinks by half of the share of calls that were refused,
    as DCTCP does: a stray refusal costs little, and where all are refused it halves. It also shrinks when calls take
    twice as long as they once did, and a second longer.

    >>> concurrency = AdaptiveConcurrency(maximum=64, model="openai:gpt-4o-mini")
    >>> for _ in range(32):
    ...     concurrency.record(seconds=0.5)
    >>> concurrency.limit
    64
    """

    def __init__(self, maximum: int, model: str = "") -> None:
        self.maximum, self.model = maximum, model
        self.limit = min(maximum, SLOW_START)
        # The limit before it is cut down to a whole number: growth by a few per cent would be lost otherwise.
        self._exact = float(self.limit)
        self._doubling, self._usual_seconds = True, float("inf")
        # Of the calls that ended since the limit was last adapted: how many, how many refused, the seconds of all.
        self._round_trip = (0, 0, 0.0)

    def record(self, *, seconds: float, refused: bool = False) -> None:
        """Record a call that ended: how long it took, and whether the provider refused it for its rate limit."""
        before, refusals, total = self._round_trip
        calls, refusals, total = before + 1, refusals + refused, total + seconds
        self._round_trip = calls, refusals, total
        if calls < self.limit:
            return
        self._round_trip = 0, 0, 0.0
        share, average = refusals / calls, total / calls
        # The first refusal ends the doubling for good, as in TCP's slow start.
        self._doubling = self._doubling and not refusals
        growth = self._exact if self._doubling else max(1.0, GROWTH * self._exact) * (1 - share)
        if average > 2 * self._usual_seconds and average > self._usual_seconds + SHORTEST_TROUBLE:
            # A weaker sign than refusals, which can halve the limit: a fifth less.
            self._doubling, growth = False, -0.2 * self._exact
        # What is usual may itself change in the course of a run, with longer texts, say.
        self._usual_seconds = min(average, self._usual_seconds * 1.02)
        self._exact = min(max(self._exact * (1 - share / 2) + growth, 1.0), float(self.maximum))
        if (limit := int(self._exact)) != self.limit:
            log.debug("calls in flight", extra={"model": self.model, "before": self.limit, "now": limit})
        self.limit = limit


class RateLimiter:
    """Let calls to one model start in the order in which they came, as the model's and the run's limits allow.

    Args:
        limits: those of this model.
        run_limit: bounds the calls in flight at all models of the run together.
        model: its name, for the log.
        waits: gets a note while all calls are held back.
        book: books times for calls where several processes share the limits of a minute.
    """

    def __init__(
        self, limits: RateLimits, run_limit: asyncio.Semaphore, model: str, waits: Waits, book: Book | None
    ) -> None:
        self.concurrency = AdaptiveConcurrency(limits.concurrency, model)
        self.in_flight = 0
        self._run_limit, self._retry_policy = run_limit, limits.retry_policy
        self._queue: deque[asyncio.Future[None]] = deque()
        self._requests = _limiter(limits.requests_per_minute, REQUESTS_BURST, "requests", book)
        self._tokens = _limiter(limits.tokens_per_minute, TOKENS_BURST, "tokens", book)
        self._waits = waits
        self._refusals = 0
        # By the event loop's clock.
        self._refused_since, self._closed_until = 0.0, 0.0
        self._given_up = ""

    async def run(self, work: Callable[[], Awaitable[T]], tokens: int) -> T:
        """Wait until a call may go out, then make it; ``tokens`` is what it is estimated to take.

        Raises:
            ModelCallError: the call failed; or it was not made, since the provider has refused all calls for too long.
        """
        await self._enter()
        try:
            if self._requests is not None:
                await self._requests.acquire()
            if self._tokens is not None:
                # The limiter never gives more than its whole rate, so a longer call waits for that and no more.
                await self._tokens.acquire(min(tokens, self._tokens.max_rate))
            # Last, so that a call which waits for this model's rate takes no place from calls to other models.
            async with self._run_limit:
                started = loop_time()
                try:
                    result = await work()
                except ModelCallError as error:
                    self.concurrency.record(seconds=loop_time() - started, refused=error.rate_limited)
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
        # A new call never overtakes those in the queue: one that waited for long would hold up its whole debate.
        if not self._queue and self._has_room():
            self.in_flight += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            # It was let in and cancelled in the same moment: its place goes to the next.
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._leave()
            raise

    def _leave(self) -> None:
        self.in_flight -= 1
        self._let_in()

    def _let_in(self) -> None:
        while self._queue and self._has_room():
            turn = self._queue.popleft()
            # A call that was cancelled while it waited has left its future behind.
            if not turn.done():
                self.in_flight += 1
                turn.set_result(None)

    def _has_room(self) -> bool:
        return self.in_flight < self.concurrency.limit and loop_time() >= self._closed_until

    def _count_refusal(self, error: ModelCallError) -> None:
        """Hold back all calls after refusals in a row: a call that is refused again and again uses up its attempts."""
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
        # All calls that wait fail, and those to come: a run that stands still for longer helps nobody.
        self._given_up = f"{error} (all calls refused for {loop_time() - self._refused_since:,.0f} s)"
        log.warning("no more calls", extra={"model": self.concurrency.model, "reason": self._given_up})
        queue, self._queue = self._queue, deque()
        for turn in queue:
            if not turn.done():
                # One object each: an exception that several tasks raise would gather all their tracebacks.
                turn.set_exception(ModelCallError(self._given_up, rate_limited=True))

    def _close(self, seconds: float) -> None:
        """Hold back all calls for so many seconds."""
        until, is_open = loop_time() + seconds, loop_time() >= self._closed_until
        if until <= self._closed_until:
            return
        self._closed_until = until
        self._waits.add(self.concurrency.model, "it refuses all calls", seconds)
        # A moment later than that, or the clock may say that it is still too early and nobody lets the queue in.
        asyncio.get_running_loop().call_later(seconds + 0.001, self._let_in)
        if is_open:  # else it is one of the calls that were in flight already, and changes little
            log.warning("no calls for a while", extra={"model": self.concurrency.model, "seconds": seconds})


Book = Callable[[str, float], Awaitable[float]]
"""Books the next so many seconds of a rate, ``requests`` or ``tokens``; returns in how many seconds they begin."""


class SharedLimiter:
    """Lets calls go at the times that are booked for them at a rate which several processes share.

    One request books for all calls that wait, and only for these; others gather meanwhile.

    Args:
        book: books so many seconds of the rate.
        max_rate: requests or tokens that may go at once.
        burst: seconds for which that is the share of the limit.
    """

    def __init__(self, book: Callable[[float], Awaitable[float]], max_rate: float, burst: float) -> None:
        self._book, self.max_rate, self._burst = book, max_rate, burst
        self._waiting: list[tuple[float, asyncio.Future[None]]] = []
        self._booking: asyncio.Task[None] | None = None

    async def acquire(self, amount: float = 1) -> None:
        """Wait until a call may go that takes so much of the limit."""
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
                # As with a bucket that is full at first: a call goes when what it takes has flowed into it.
                asyncio.get_running_loop().call_later(max(0.0, ends), _let_go, turn)
        self._waiting.clear()
        self._booking = None


def _let_go(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)


_Limiter = AsyncLimiter | SharedLimiter


def _limiter(per_minute: float | None, burst: float, kind: str, book: Book | None) -> _Limiter | None:
    """Make a limiter that lets the share of ``burst`` seconds out at once, and one request at least."""
    if per_minute is None:
        return None
    # aiolimiter refuses an amount above its capacity, which must therefore be one request at least.
    seconds = max(burst, 60 / per_minute)
    if book is not None:
        return SharedLimiter(partial(book, kind), per_minute * seconds / 60, seconds)
    return AsyncLimiter(per_minute * seconds / 60, seconds)
