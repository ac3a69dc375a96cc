"""Pipelines of calls outside of runs, each with a journal and a budget of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from os import urandom
from pathlib import Path
from uuid import uuid4

from ...nodes.common.server_rules import is_on_server
from ...nodes.common.sync_bridge import background_loop, on_background_loop
from ...nodes.models import prices
from ...nodes.models.call import SIZE, Call, Reply, Send
from ...nodes.models.retry import SERVER_RETRY_POLICY
from ...nodes.models.send import RunTool
from ...state.errors import LimitError, ModelCallError, UsageError
from ...state.transcript import NO_USAGE
from ..journal.call_journal import Journal
from ..journal.records import Entry, Notice, Spent
from ..results.config import RunConfig
from ..run.calls.call_pipeline import LivePipeline, RunContext
from ..run.calls.shutdown import StopSignal
from .judge_calls import JudgeLimits, OwnCalls

_AT_ONCE = 256
"""The most calls of a judge with a budget or a cache that are in flight. It is high, because a judge
without them has no such limit."""


class OwnPipeline(OwnCalls):
    """A pipeline with its own journal and budget, which answers calls from any event loop.

    It works on the background loop of the process, because a journal and a budget belong to one
    loop. The first call opens it.

    Args:
        context: the budget, the counters, and the signal of a spent budget.
        make: opens the journal, and makes the pipeline.
    """

    def __init__(
        self,
        context: RunContext,
        make: Callable[[RunContext], Awaitable[tuple[Journal, LivePipeline]]],
    ) -> None:
        self.context = context
        self._make = make
        self._opened: tuple[Journal, LivePipeline] | None = None
        self._opening: asyncio.Lock | None = None

    async def __call__(self, call: Call, send: Send) -> Reply:
        return await on_background_loop(self._answer(call, send))

    async def _answer(self, call: Call, send: Send) -> Reply:
        pipeline = await self.open()
        # A stored reply needs no budget, and a small call may still fit into what is left of it.
        if self.context.stop.reason == "budget":
            self.context.stop.take_back()
        return await pipeline(call, send)

    async def tool_result(self, key: bytes, name: str, run: RunTool) -> Reply:
        loop = asyncio.get_running_loop()

        async def run_here() -> Reply:
            # An async tool may have connections of the caller's loop.
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_awaited(run), loop))

        return await on_background_loop(self._tool_result(key, name, run_here))

    async def _tool_result(self, key: bytes, name: str, run: RunTool) -> Reply:
        pipeline = await self.open()
        if self.context.stop.reason == "budget":
            self.context.stop.take_back()
        return await pipeline.tool_result(key, name, run)

    async def open(self) -> LivePipeline:
        """Open the journal, unless it is open; only for code on the background loop.

        Raises:
            UsageError: it cannot be opened.
        """
        # The loop runs one task at a time, so only one of them creates the lock.
        self._opening = self._opening or asyncio.Lock()
        async with self._opening:
            if self._opened is None:
                self._opened = await self._make(self.context)
        return self._opened[1]

    def invalidate(self, calls: Sequence[Call]) -> None:
        """Make later judgements repeat these calls."""
        if self._opened is not None:
            background_loop().call_soon_threadsafe(self._opened[1].invalidate, calls)

    async def close(self) -> None:
        """Cancel calls in flight, finish pending writes and close the journal."""
        opened, self._opened = self._opened, None
        if opened is not None:
            journal, pipeline = opened
            await pipeline.drain(0)
            await pipeline.finish()
            await journal.close()


async def _awaited(run: RunTool) -> Reply:
    return await run()


async def open_journal(where: str | Path, context: RunContext) -> Journal:
    """Open a journal for calls outside of runs, which several processes may share."""
    # With its own id, each process can have the journal open at the same time as others.
    return await Journal.open(where, run=uuid4().hex, shared=True, waits=context.counts.waits)


def limited_pipeline(limits: JudgeLimits) -> OwnPipeline:
    """Return the pipeline of a judge with a budget or a cache."""
    config = RunConfig(max_cost=limits.max_cost, max_calls=limits.max_calls, concurrency=_AT_ONCE)

    async def make(context: RunContext) -> tuple[Journal, LivePipeline]:
        if limits.cache is None:
            nowhere = _NoJournal()
            return nowhere, _WithoutCache(nowhere, context)
        journal = await open_journal(limits.cache, context)
        return journal, _JudgePipeline(journal, context)

    return OwnPipeline(RunContext(config, stop=_SpentBudget()), make)


class _SpentBudget(StopSignal):
    """Refuses calls with an error that tells a judge's spent budget from the end of a run."""

    def check(self) -> None:
        if self.reason == "budget":
            raise LimitError(
                f"{self.explanation}, and this judge has used it; there is no verdict. Create a "
                "judge with a higher limit to go on"
            )
        super().check()


class _JudgePipeline(LivePipeline):
    """Answers the calls of a judge that lives as long as its program.

    Failures of the provider do not end it, since the next judgement may succeed.
    """

    def __init__(self, journal: Journal, context: RunContext) -> None:
        super().__init__(journal, context)
        self._max_cost = context.config.max_cost

    async def __call__(self, call: Call, send: Send) -> Reply:
        if is_on_server():
            self._retry_policy = SERVER_RETRY_POLICY
        if self._max_cost is not None and not prices.is_priced(call.model.label):
            raise UsageError(
                f"max_cost: the price of {call.model.label} is unknown, so the cost cannot be "
                "limited; use max_calls, or add the price in US$ per million tokens to the "
                "model's name: price_in=...&price_out=..., behind ? or &"
            )
        return await self._answered(call, send)

    async def _answered(self, call: Call, send: Send) -> Reply:
        return await super().__call__(call, send)

    def _note_failure(self, model: str, error: ModelCallError) -> None:
        pass


class _WithoutCache(_JudgePipeline):
    """Makes each call by itself: two judgements of the same text have their own replies."""

    async def _answered(self, call: Call, send: Send) -> Reply:
        self._stop.check()
        return await self._call_model(urandom(SIZE), call, send)


class _NoJournal(Journal):
    """A journal that stores nothing."""

    def __init__(self) -> None:
        self.spent = Spent(NO_USAGE)
        self.shared = False

    async def reserve(self, key: bytes) -> bytes | None:
        return None

    async def release(self, key: bytes) -> None:
        pass

    async def keep(self, key: bytes, entry: Entry) -> None:
        pass

    def listen(self, listener: Callable[[Notice], None]) -> None:
        pass

    async def invalidate(self, keys: Iterable[bytes]) -> None:
        pass

    async def close(self) -> None:
        pass
