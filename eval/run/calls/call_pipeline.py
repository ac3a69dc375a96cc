"""The pipeline for all model calls of a run, within its limits: from the journal or the model.

the same call in flight?  -> its reply, when it arrives
stored in the journal?    -> the stored reply
a common prefix on its way? -> wait for it, if other items fill its place (``prefix_gate.py``)
budget left?              -> rate limiter -> attempts until one succeeds -> journal -> reply
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from os import urandom
from typing import Any, cast

from ....nodes.models.call import SIZE, Call, Reply, Send, UnreadResponseError, fingerprint
from ....nodes.models.loaded_model import LoadedModel
from ....nodes.models.provider_errors import ProviderFault
from ....nodes.models.rate_limiter import RateLimiter
from ....nodes.models.send import CallMiddleware, RunTool, call_with_retry, with_timeout
from ....state.errors import ModelCallError, StoppedError, UsageError
from ....state.transcript import Usage
from ...journal import records
from ...journal.call_journal import Journal
from ...journal.records import Amounts, Entry, JournalError, Notice
from ...results.config import RunConfig
from ...results.results import Key, Result
from .budget import make_budget
from .judge_item import current_judgement
from .prefix_gate import Passage, PrefixGate
from .progress_counters import ProgressCounters
from .shutdown import Reason, StopSignal


@dataclass(frozen=True)
class RunContext:
    """Settings and counters that all parts of a run, and all runs of an experiment, share.

    Attributes:
        config: the limits, and the place where replies are stored.
        counts: updated during the run, for a progress display.
        stop: ends the run early on request.
    """

    config: RunConfig = field(default_factory=RunConfig)
    counts: ProgressCounters = field(default_factory=ProgressCounters)
    stop: StopSignal = field(default_factory=StopSignal)


class CallPipeline(CallMiddleware):
    """Answers the model calls of one run.

    Subclasses define the source: a provider, its batch API, or a recording.

    Attributes:
        needs_several_passes: whether ``run_passes`` may start its work more than once, so that the
            runner must remember which items are judged already.
        gate: holds calls back while others have their prefix on its way; ``None`` if none waits.
    """

    needs_several_passes = False
    gate: PrefixGate | None = None

    async def open(self) -> None:
        """Prepare for the first call.

        Raises:
            UsageError: the run cannot continue in this way.
        """

    async def run_passes(self, judge_open_items: Callable[[], Awaitable[None]]) -> None:
        """Judge all items; if replies take long, in several passes over the open items."""
        await judge_open_items()

    def room_for(self, calls: int) -> AbstractAsyncContextManager[None]:
        """Reserve room for an item with at most this number of calls, before it begins."""
        return nullcontext()

    def repeat_mark(self, key: Key) -> int:
        """Return the mark of a verdict's calls, so that repeats get their own replies."""
        return key.repeat

    def judged(self, result: Result) -> None:
        """Process a result after the item's last call."""

    async def drain(self, seconds: float) -> None:
        """Let calls in flight finish for this number of seconds, then cancel them."""

    async def finish(self) -> None:
        """Write all pending records, if possible."""


AT_ONCE = "at once"
"""The note, instead of a reason, after which no process waits for calls in flight."""


class LivePipeline(CallPipeline):
    """Makes each call at once, and none twice: two calls are the same if their ``fingerprint`` is.

    Attributes:
        price: the share of its usual price that a call costs.
    """

    price = 1.0

    def __init__(
        self, journal: Journal, context: RunContext, gate: PrefixGate | None = None
    ) -> None:
        config = context.config
        self._counts = context.counts
        self._stop = context.stop
        self._journal, self._budget = journal, make_budget(config, journal, self._stop, self.price)
        self._retry_policy = config.retry_policy
        self._rate_limits = config.rate_limits
        self._all_calls = asyncio.Semaphore(config.concurrency)
        self._rate_limiters: dict[str, RateLimiter] = {}
        self._failures_in_a_row: Counter[str] = Counter()
        self._in_flight: dict[bytes, asyncio.Task[Reply]] = {}
        self._sent: set[bytes] = set()
        self._writing: set[asyncio.Task[None]] = set()
        self._stop_is_known = False
        self.gate = gate
        journal.listen(self._on_notice)

    def room_for(self, calls: int) -> AbstractAsyncContextManager[None]:
        # In a pass of batches, each item requests its next call, and no item waits for another.
        return nullcontext() if self.needs_several_passes else self._budget.room_for(calls)

    async def open(self) -> None:
        """Refuse to continue while the provider has batches of this run.

        They are paid for, and must not be paid again.
        """
        if left := sum(not batch.settled for batch in await self._journal.batches()):
            raise UsageError(
                f"{left} of this run's batches have yet to be collected from the provider; "
                "resume with --batch (batch=True), which collects them, including those that "
                "were cancelled there"
            )

    async def __call__(self, call: Call, send: Send) -> Reply:
        """Answer a call; the same call repeated gets the same reply and is not paid for again.

        Raises:
            ModelCallError: the call failed for good.
            StoppedError: the run is to end, or its budget is spent.
            JournalError: the journal can no longer be written.
        """
        key = fingerprint(call)
        task = self._in_flight.get(key)
        if task is None:
            task = self._begin(key, self._answer(key, call, send))
        else:
            self._counts.served += 1
            self._budget.count_off()
        return await self._result(task)

    async def tool_result(self, key: bytes, name: str, run: RunTool) -> Reply:
        """Run a tool, unless its result is in the journal; the same call at once runs it once.

        Raises:
            StoppedError: the run is to end.
            JournalError: the journal can no longer be written.
        """
        task = self._in_flight.get(key)
        return await self._result(task or self._begin(key, self._run_tool(key, name, run)))

    def _begin(self, key: bytes, work: Coroutine[Any, Any, Reply]) -> asyncio.Task[Reply]:
        """Start a call or a tool in a task of its own.

        One that is being paid for then continues even if the graph is cancelled.
        """
        try:
            self._stop.check()
        except StoppedError:
            # A coroutine that is never awaited would cause a warning when it is collected.
            work.close()
            raise
        task = self._in_flight[key] = asyncio.create_task(work)
        task.add_done_callback(partial(self._ended, key))
        return task

    async def _result(self, task: asyncio.Task[Reply]) -> Reply:
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            # The call itself was cancelled, not the graph, because the run was to end at once.
            if task.cancelled():
                raise StoppedError(self._stop.explanation) from None
            raise

    async def _run_tool(self, key: bytes, name: str, run: RunTool) -> Reply:
        try:
            kept = await self._journal.reserve(key)
            if kept is not None:
                return records.from_bytes(kept)
            try:
                result = await run()
            except BaseException:
                await self._journal.release(key)
                raise
            # A tool takes no tokens, and only its owner knows what it costs.
            await self._journal.keep(
                key, Entry(f"tool {name}", records.to_bytes(result), result.usage)
            )
            return result
        except JournalError as error:
            self._stop.ask("journal", str(error))
            raise

    async def _answer(self, key: bytes, call: Call, send: Send) -> Reply:
        try:
            # Reserving also waits for another process that is making the same call on a shared
            # journal.
            kept = await self._journal.reserve(key)
            if kept is not None:
                self._counts.served += 1
                self._budget.count_off()
                reply = records.from_bytes(kept, call.model.label)
                # The provider will not accept a parameter that it rejected then: the next calls
                # leave it out.
                for parameter in reply.dropped:
                    call.model.drop(parameter, call.parameters)
                return reply
            try:
                if self.gate is None:
                    return await self._call_model(key, call, send)
                async with self.gate.passing(call) as passage:
                    return await self._call_model(key, call, send, passage)
            except BaseException:
                # This includes cancellations: otherwise another process would wait until the lease
                # ends.
                await self._journal.release(key)
                raise
        except JournalError as error:
            self._stop.ask("journal", str(error))
            raise

    async def _call_model(
        self, key: bytes, call: Call, send: Send, passage: Passage | None = None
    ) -> Reply:
        model = call.model.label
        rate_limiter = self._rate_limiter(call.model)
        # The time limit applies to the request only, not to waiting for the rate limiter or writing
        # to the journal.
        send_in_time = with_timeout(send, self._retry_policy.timeout)
        expected = await self._budget.reserve(call)

        async def attempt(call: Call) -> Reply:
            try:
                send_and_keep = partial(self._send_and_keep, key, call, send_in_time)
                return await rate_limiter.run(send_and_keep, int(expected.tokens))
            except ModelCallError as error:
                if self.gate is not None:
                    # The next attempt may come after a long pause.
                    self.gate.release(passage)
                if error.retryable and (error.may_be_billed or _is_answer(error)):
                    await self._budget.reserve_again(expected)
                raise

        try:
            reply = await call_with_retry(call, attempt, self._retry_policy, self._counts.waits)
        except UnreadResponseError as error:
            self._charge(call, unread_entry(call, error).usage, expected)
            raise
        except ModelCallError as error:
            self._note_failure(model, error)
            raise
        finally:
            self._budget.release(expected)
        self._failures_in_a_row.pop(model, None)
        if self.gate is not None:
            self.gate.answered(passage)
        # No await after the release above: other calls would see too much budget left in between.
        self._charge(call, reply.usage, expected)
        return reply

    def _note_failure(self, model: str, error: ModelCallError) -> None:
        """End the run when too many calls of one model in a row have failed for good.

        They may fail in the first attempt or after all attempts. An error that one call alone may
        cause does not count, such as a text that is too long or that a filter refuses.
        """
        may_recur = error.retryable or error.rate_limited
        if not (may_recur or ProviderFault(error).status in _NOT_THE_CALLS_FAULT):
            return
        self._failures_in_a_row[model] += 1
        if self._failures_in_a_row[model] >= MAX_FAILURES:
            failed = f"{MAX_FAILURES} calls of {model} in a row failed"
            self._stop.ask("provider", f"{failed}, the last one with: {error}")

    def _charge(self, call: Call, usage: Usage, expected: Amounts) -> None:
        """Count the usage of a call; ``expected`` is its estimate."""
        self._budget.charge(call, usage, expected)
        self._counts.paid(usage)

    async def _send_and_keep(self, key: bytes, call: Call, send: Send) -> Reply:
        """Make one attempt, unless the run is to end.

        A reply counts as in flight until it is on disk.
        """
        self._stop.check()
        self._sent.add(key)
        try:
            reply = await send(call)
        except UnreadResponseError as error:
            await self._journal.keep(key, unread_entry(call, error))
            raise
        except asyncio.CancelledError:
            await self._note_given_up(call)
            raise
        except ModelCallError as error:
            self._sent.discard(key)
            if error.may_be_billed:
                await self._note_given_up(call)
            elif _is_answer(error):
                self._budget.count_refused()
                self._counts.refused += 1
            if error.retryable:
                # No retry if the run is to end: the pause before the next attempt would only delay
                # it.
                self._stop.check()
            raise
        await self._journal.keep(key, journal_entry(call, reply))
        return reply

    async def _note_given_up(self, call: Call) -> None:
        """Count a request that was sent and has no reply.

        The journal stores it under a key that no call has.
        """
        expected = self._budget.give_up(call)
        self._counts.paid(expected)
        self._counts.given_up += 1
        await self._journal.keep(
            urandom(SIZE), Entry(call.model.label, b'{"given_up": true}', expected)
        )

    def _rate_limiter(self, model: LoadedModel) -> RateLimiter:
        if model.label not in self._rate_limiters:
            limits = self._rate_limits
            # In the queue of our own server, a call would only use up its time limit.
            most = min(limits.concurrency, model.serving.at_once or limits.concurrency)
            book = partial(self._journal.book, model.label) if self._journal.shared else None
            own = replace(limits, concurrency=most)
            waits = self._counts.waits
            self._rate_limiters[model.label] = RateLimiter(
                own, self._all_calls, model.label, waits, book
            )
        return self._rate_limiters[model.label]

    def _ended(self, key: bytes, task: asyncio.Task[Reply]) -> None:
        del self._in_flight[key]
        self._sent.discard(key)
        if not task.cancelled():
            # The callers may have ended; asyncio would complain about an exception that was never
            # retrieved.
            task.exception()

    def invalidate(self, calls: Sequence[Call]) -> None:
        """Mark these calls to be repeated in a later run, unless a verdict stands without them.

        Their replies do not change in this run.
        """
        keys = [*map(fingerprint, calls)]
        if (judgement := current_judgement.get()) is None:
            self._forget(keys)
        else:
            judgement.notes.setdefault(_UNUSABLE, []).extend(keys)

    def judged(self, result: Result) -> None:
        """Mark the unreadable replies of a failed item to be requested again in a later run.

        If a panel reached its verdict without them, they stay: a run that was killed before the
        verdict was written reaches the same verdict after resuming.
        """
        judgement = current_judgement.get()
        if result.status == "failed" and judgement is not None:
            self._forget(judgement.notes.pop(_UNUSABLE, []))

    def _forget(self, keys: Sequence[bytes]) -> None:
        if keys:
            self._write(self._journal.invalidate(keys))

    def _write(self, writing: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(writing)
        # The loop itself has only a weak reference to a task.
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    def _on_notice(self, notice: Notice) -> None:
        """Act on the notes of other processes of this run.

        Stop as they did, or return unused budget.
        """
        if notice.stop_reason == AT_ONCE:
            self._stop.ask("interrupted", notice.explanation or "")
            self._stop.at_once()
        elif notice.stop_reason is not None and not self._stop.is_asked:
            self._stop_is_known = True
            self._stop.ask(cast("Reason", notice.stop_reason), notice.explanation or "")
        elif notice.others_wait:
            self._budget.give_back()

    async def drain(self, seconds: float) -> None:
        """Let calls that were sent finish for this number of seconds, then cancel them.

        Calls that are still waiting are cancelled at once.
        """
        # All processes of a run stop for these reasons, since they would all meet them.
        if (
            self._journal.shared
            and self._stop.reason in ("budget", "provider")
            and not self._stop_is_known
        ):
            self._stop_is_known = True
            self._write(self._journal.note_stop(self._stop.reason, self._stop.explanation))
        # A copy, since ended calls are removed while the others are awaited.
        in_flight = dict(self._in_flight)
        sent = [task for key, task in in_flight.items() if key in self._sent]
        for key, task in in_flight.items():
            if key not in self._sent:
                task.cancel()
        if sent and seconds:
            await self._stop.let_finish(sent, seconds)
        for task in sent:
            task.cancel()
        await asyncio.gather(*in_flight.values(), return_exceptions=True)

    async def finish(self) -> None:
        """Wait until all invalidations and notes are written."""
        for problem in await asyncio.gather(*self._writing, return_exceptions=True):
            if isinstance(problem, JournalError):
                self._stop.ask("journal", str(problem))


def _is_answer(error: ModelCallError) -> bool:
    """Return whether the provider answered with this error; else it was never reached."""
    return ProviderFault(error).status is not None


def journal_entry(call: Call, reply: Reply) -> Entry:
    """Create the journal's record of a reply."""
    return Entry(call.model.label, records.to_bytes(reply), reply.usage)


def unread_entry(call: Call, error: UnreadResponseError) -> Entry:
    """Create the journal's record of an unreadable response; its cost is unknown."""
    usage = Usage(calls=1, cost_usd=None, seconds=error.seconds)
    return Entry(call.model.label, records.unread_to_bytes(error), usage)


_UNUSABLE = "unusable"
"""The key of the notes of a judgement for the calls whose replies could not be used."""

MAX_FAILURES = 10
"""The run ends after this number of failed calls of one model in a row."""

_NOT_THE_CALLS_FAULT = {301, 302, 303, 307, 308, 401, 402, 403, 404, 429}
"""The statuses of faults of address, key, account or model; 429 means a spent quota."""
