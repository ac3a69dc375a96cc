"""The model calls of one judge: counted, and within the limits of its owner.

    a judgement --its calls--> time left? --> budget left? --> cache, or attempts until one succeeds
                                                                         |
                                            judge.usage <--each attempt--+

A judge without limits and without a cache sends its calls as if there were no judge around them;
they are only counted.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from threading import Lock
from typing import Any

from ...nodes.common.sync_bridge import run_blocking, set_for_block
from ...nodes.models.call import Call, Reply, Send, UnreadResponseError
from ...nodes.models.provider_errors import ProviderFault
from ...nodes.models.send import CallMiddleware, RunTool, call_middleware
from ...state.errors import JudgeTimeoutError, ModelCallError, UsageError
from ...state.transcript import NO_USAGE, Usage


@dataclass(frozen=True)
class JudgeLimits:
    """The limits of a judge, and the place of its replies; ``None`` means no limit.

    Attributes:
        max_cost: the most US dollars that all its judgements may cost together.
        max_calls: the most requests of all its judgements together; failed requests count too.
        timeout: the most seconds of one judgement.
        cache: a file or a URL where replies are stored, so that none is paid for twice.

    Raises:
        UsageError: a limit that is not a number above 0, or a cache of an unknown kind.
    """

    max_cost: float | None = None
    max_calls: int | None = None
    timeout: float | None = None
    cache: str | Path | None = None

    def __post_init__(self) -> None:
        for limit in (self.max_cost, self.max_calls, self.timeout):
            if limit is None:
                continue
            name = next(field.name for field in fields(self) if getattr(self, field.name) is limit)
            if isinstance(limit, bool) or not isinstance(limit, int | float):
                raise UsageError(f"{name} must be a number, got {limit!r}")
            if not math.isfinite(limit) or limit <= 0:
                raise UsageError(f"{name} must be above 0, got {limit:g}")
        if self.cache is not None:
            # The journal's database is imported where it is needed.
            from ..journal.database import journal_location

            journal_location(self.cache)

    @property
    def given(self) -> dict[str, object]:
        """The limits that are set, by name."""
        by_name = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in by_name.items() if value is not None}

    @property
    def needs_pipeline(self) -> bool:
        """Whether calls need more than a time limit."""
        return (self.max_cost, self.max_calls, self.cache) != (None, None, None)


@dataclass(frozen=True)
class JudgeUsage:
    """The usage of a judge since its creation.

    Attributes:
        calls: requests to the provider, including failed ones.
        cached: calls that were answered from the judge's cache, or by the journal of a run.
        input_tokens: tokens sent.
        output_tokens: tokens received.
        cost_usd: US dollars; ``None`` if the cost of one request is unknown.
    """

    calls: int = 0
    cached: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0

    @property
    def tokens(self) -> int:
        """The tokens sent and received."""
        return self.input_tokens + self.output_tokens


class OwnCalls(CallMiddleware):
    """Answers calls with a budget or a cache of its own."""

    async def close(self) -> None:
        """Finish pending writes and close the cache."""


class JudgeCalls:
    """Counts and limits the model calls of one judge, from any number of threads and event loops.

    Args:
        limits: the limits.
        pipeline: applies those limits that ``needs_pipeline`` means.
    """

    def __init__(self, limits: JudgeLimits, pipeline: OwnCalls | None = None) -> None:
        self.limits = limits
        self._pipeline = pipeline
        self._lock = Lock()
        self._spent = NO_USAGE
        self._cached = 0

    @property
    def usage(self) -> JudgeUsage:
        """The usage so far."""
        with self._lock:
            spent = self._spent
            return JudgeUsage(
                spent.calls, self._cached, spent.input_tokens, spent.output_tokens, spent.cost_usd
            )

    @contextmanager
    def judgement(self) -> Iterator[None]:
        """Answer all model calls inside as those of one judgement.

        Raises:
            UsageError: the judge has a budget or a cache, and so does the run around it.
        """
        around = call_middleware.get()
        if around is not None and self._pipeline is not None:
            given = ", ".join(name for name in self.limits.given if name != "timeout")
            raise UsageError(
                f"{given}: this judge is called inside a run or another judge, whose own budget "
                "and journal apply to its calls; create the judge without"
            )
        seconds = self.limits.timeout
        deadline = None if seconds is None else time.monotonic() + seconds
        calls = _JudgementCalls(self, around or self._pipeline or CallMiddleware(), deadline)
        with set_for_block(call_middleware, calls):
            yield

    def count(self, usage: Usage) -> None:
        """Count a request."""
        with self._lock:
            self._spent += usage

    def count_cached(self) -> None:
        """Count a call that was answered without a request."""
        with self._lock:
            self._cached += 1

    def close(self) -> None:
        """Finish pending writes and close the cache; the next judgement opens it again."""
        if self._pipeline is not None:
            run_blocking(self._pipeline.close())


class _JudgementCalls(CallMiddleware):
    """Counts the calls of one judgement, and ends them when its time is over."""

    def __init__(self, judge: JudgeCalls, inner: CallMiddleware, deadline: float | None) -> None:
        self._judge = judge
        self._inner = inner
        self._deadline = deadline

    async def __call__(self, call: Call, send: Send) -> Reply:
        attempts = 0

        async def counted(call: Call) -> Reply:
            nonlocal attempts
            attempts += 1
            try:
                reply = await send(call)
            except UnreadResponseError:
                self._judge.count(Usage(calls=1, cost_usd=None))
                raise
            except ModelCallError as error:
                if error.may_be_billed:
                    self._judge.count(Usage(calls=1, cost_usd=None))
                elif ProviderFault(error).status is not None:
                    # The provider answered with an error, which costs nothing.
                    self._judge.count(Usage(calls=1))
                raise
            except asyncio.CancelledError:
                # The request was sent and given up, and the provider may bill it.
                self._judge.count(Usage(calls=1, cost_usd=None))
                raise
            self._judge.count(reply.usage)
            return reply

        reply = await self._in_time(self._inner(call, counted))
        if not attempts:
            self._judge.count_cached()
        return reply

    async def tool_result(self, key: bytes, name: str, run: RunTool) -> Reply:
        return await self._in_time(self._inner.tool_result(key, name, run))

    async def _in_time(self, answering: Coroutine[Any, Any, Reply]) -> Reply:
        if self._deadline is None:
            return await answering
        left = max(0.0, self._deadline - time.monotonic())
        scope = asyncio.timeout(left)
        try:
            async with scope:
                return await answering
        except TimeoutError as error:
            if not scope.expired():
                raise
            seconds = self._judge.limits.timeout
            raise JudgeTimeoutError(
                f"the judgement took longer than {seconds:g} seconds (timeout={seconds:g}), so "
                "there is no verdict"
            ) from error

    def invalidate(self, calls: Sequence[Call]) -> None:
        self._inner.invalidate(calls)
