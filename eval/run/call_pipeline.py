"""What every model call of a run goes through.

the same call in flight?  -> its reply, when it comes
kept in the journal?      -> that reply
budget left?              -> a turn at the model, attempts until it answers -> journal -> reply
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ...graphs.base import Graph
from ...nodes.models.call import Call, Reply, Send, fingerprint
from ...nodes.models.provider_errors import ProviderFault
from ...nodes.models.rate_limiter import RateLimiter
from ...nodes.models.retry import call_with_retry, with_timeout
from ...nodes.models.send import CallMiddleware
from ...state.aspects import Aspect
from ...state.errors import ModelCallError, StoppedError
from ..datasets.items import Item
from ..journal import Entry, Journal, JournalError, records
from .budget import BudgetTracker
from .config import RunConfig
from .progress_counters import ProgressCounters
from .results import Key, Result
from .shutdown import StopSignal


class CallPipeline(CallMiddleware):
    """One a run. Calls are identical if their ``fingerprint`` is."""

    def __init__(
        self, journal: Journal, config: RunConfig, counts: ProgressCounters, stop: StopSignal
    ) -> None:
        self._journal = journal
        self._budget = BudgetTracker(config.budget, journal.totals(), stop)
        self._counts = counts
        self._stop = stop
        self._retry_policy = config.retry_policy
        self._rate_limits = config.rate_limits
        self._all_calls = asyncio.Semaphore(config.rate_limits.in_flight)
        self._rate_limiters: dict[str, RateLimiter] = {}
        self._circuit_breaker = CircuitBreaker(stop)
        self._under_way: dict[bytes, asyncio.Task[Reply]] = {}
        self._gone_out: set[bytes] = set()
        self._background: set[asyncio.Task[None]] = set()

    async def __call__(self, call: Call, send: Send) -> Reply:
        """The reply to a call, paid for once.

        Raises:
            ModelCallError: the call failed for good.
            StoppedError: the run is to end, or its budget is spent.
            JournalError: the journal can no longer be written.
        """
        key = fingerprint(call)
        task = self._under_way.get(key)
        if task is None:
            self._stop.check()
            # A task of its own: if whoever asks is cancelled, what is being paid for is kept all the same.
            task = self._under_way[key] = asyncio.create_task(self._settle(key, call, send))
            task.add_done_callback(partial(self._through, key))
        else:
            self._counts.served += 1
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():  # not who asks, but the call itself, when the run was to end at once
                raise StoppedError(self._stop.explanation) from None
            raise

    async def carry_out(self, work: Callable[[], Awaitable[None]]) -> None:
        """Have work done that makes calls; where replies take long, in several passes, until no item is left open."""
        await work()

    def invalidate(self, calls: Sequence[Call]) -> None:
        """Whoever asks these again in a later run is to get another reply."""
        keys = [fingerprint(call) for call in calls]
        task = asyncio.create_task(self._journal.invalidate(keys))
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def drain(self, seconds: float) -> None:
        """Let the calls in flight finish for so long, then cancel them; those that wait for anything, at once."""
        under_way = dict(self._under_way)
        in_flight = [task for key, task in under_way.items() if key in self._gone_out]
        for key, task in under_way.items():
            if key not in self._gone_out:
                task.cancel()
        if in_flight and seconds:
            await self._stop.let_finish(in_flight, seconds)
        for task in in_flight:
            task.cancel()
        await asyncio.gather(*under_way.values(), return_exceptions=True)

    async def finish(self) -> None:
        """Have everything written, as far as it can be."""
        for problem in await asyncio.gather(*self._background, return_exceptions=True):
            if isinstance(problem, JournalError):
                self._stop.ask("journal", str(problem))

    async def _settle(self, key: bytes, call: Call, send: Send) -> Reply:
        try:
            if found := await self._journal.reserve(key):
                return self._served(call, records.from_bytes(found))
            try:
                reply = await self._made(key, call, send)
            except BaseException:
                await self._journal.release(key)
                raise
        except JournalError as error:
            self._stop.ask("journal", str(error))
            raise
        return reply

    def _served(self, call: Call, reply: Reply) -> Reply:
        self._counts.served += 1
        for parameter in reply.dropped:
            call.model.drop(parameter, call.parameters)
        return reply

    async def _made(self, key: bytes, call: Call, send: Send) -> Reply:
        tokens = self._budget.expect(call)
        cost = await self._budget.take(call, tokens)
        in_time = with_timeout(send, self._retry_policy.timeout)
        model = call.model.label
        rate_limiter = self._rate_limiter(model)

        async def attempt(call: Call) -> Reply:
            return await rate_limiter.through(partial(self._kept, key, call, in_time), tokens)

        try:
            reply = await call_with_retry(call, attempt, self._retry_policy)
        except ModelCallError as error:
            self._circuit_breaker.failed(model, error)
            raise
        finally:
            self._budget.give_back(tokens, cost)
        self._circuit_breaker.succeeded(model)
        self._budget.pay(call, reply)
        self._counts.paid(reply.usage)
        return reply

    async def _kept(self, key: bytes, call: Call, send: Send) -> Reply:
        """One attempt, unless the run is to end. A reply counts as in flight until it is on disk."""
        self._stop.check()
        self._gone_out.add(key)
        try:
            reply = await send(call)
        except ModelCallError as error:
            self._gone_out.discard(key)
            if error.retryable:
                self._stop.check()
            raise
        await self._journal.keep(key, entry(call, reply))
        return reply

    def _rate_limiter(self, label: str) -> RateLimiter:
        if label not in self._rate_limiters:
            self._rate_limiters[label] = RateLimiter(self._rate_limits, self._all_calls, label)
        return self._rate_limiters[label]

    def _through(self, key: bytes, task: asyncio.Task[Reply]) -> None:
        del self._under_way[key]
        self._gone_out.discard(key)
        if not task.cancelled():
            task.exception()  # whoever asked may have left; nobody else is to be told


def entry(call: Call, reply: Reply) -> Entry:
    """A reply as the journal has it."""
    return Entry(call.model.label, records.to_bytes(reply), reply.usage)


ENOUGH = 10
"""Calls of one model that failed for good, with none between that succeeded."""

_FOR_ALL = {401, 402, 403, 404, 429}
"""Statuses that say something of key, account or model; 429 where it is the quota that is spent."""


class CircuitBreaker:
    """Calls that failed for good, in a row, by model; ends the run when there are enough.

    What may be the fault of one call alone does not count: a text that is too long, or that a filter refuses.
    """

    def __init__(self, stop: StopSignal) -> None:
        self._stop = stop
        self._in_a_row: Counter[str] = Counter()

    def succeeded(self, model: str) -> None:
        """A call of the model was answered."""
        self._in_a_row.pop(model, None)

    def failed(self, model: str, error: ModelCallError) -> None:
        """A call of the model failed for good: at once, or after all the attempts that it had."""
        if not (error.retryable or ProviderFault.of(error).status in _FOR_ALL):
            return
        self._in_a_row[model] += 1
        if self._in_a_row[model] >= ENOUGH:
            self._stop.ask(
                "provider", f"{ENOUGH} calls of {model} in a row failed, the last one with: {error}"
            )


@dataclass
class JudgementContext:
    """A verdict that is being made.

    Attributes:
        key: what of.
        notes: of whoever answers the calls of this verdict; thrown away with it.
    """

    key: Key
    notes: dict[Any, Any] = field(default_factory=dict)


current_judgement: ContextVar[JudgementContext | None] = ContextVar("under_judgement", default=None)
"""The verdict that a call is made for. Tasks that are begun inside know it as well."""


@contextmanager
def judgement_scope(key: Key) -> Iterator[None]:
    """Mark all that is called inside as made for this verdict."""
    token = current_judgement.set(JudgementContext(key))
    try:
        yield
    finally:
        current_judgement.reset(token)


JudgeItem = Callable[[Graph, Key, Item, Aspect | None], Awaitable[Result | None]]
"""What makes a verdict; none where the run ended in the middle of it."""
