"""Answer every model call of a run, from the journal or from its model, within the limits of the run.

the same call in flight?  -> its reply, when it comes
kept in the journal?      -> that reply
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

from ...nodes.models.call import SIZE, Call, Reply, Send, UnreadResponseError, fingerprint
from ...nodes.models.loaded_model import LoadedModel
from ...nodes.models.provider_errors import ProviderFault
from ...nodes.models.rate_limiter import RateLimiter
from ...nodes.models.send import CallMiddleware, call_with_retry, with_timeout
from ...state.errors import ModelCallError, StoppedError, UsageError
from ...state.transcript import Usage
from ..journal import records
from ..journal.call_journal import Journal
from ..journal.records import Amounts, Entry, JournalError, Notice
from ..results.config import RunConfig
from ..results.results import Key
from .budget import make_budget
from .progress_counters import ProgressCounters
from .shutdown import Reason, StopSignal


@dataclass(frozen=True)
class RunContext:
    """Holds what all parts of a run, and all runs of an experiment, go by.

    Attributes:
        config: limits, and where replies are stored.
        counts: kept up to date while the run is on, for a progress display.
        stop: ends the run early when it is asked to.
    """

    config: RunConfig = field(default_factory=RunConfig)
    counts: ProgressCounters = field(default_factory=ProgressCounters)
    stop: StopSignal = field(default_factory=StopSignal)


class CallPipeline(CallMiddleware):
    """Answers the model calls of one run; subclasses say from where: a provider, its batch API, a recording.

    Attributes:
        needs_several_passes: whether ``run_passes`` may start its work more than once, so that the runner must
            remember which items are judged already.
    """

    needs_several_passes = False

    async def open(self) -> None:
        """Prepare for the first call.

        Raises:
            UsageError: the run cannot go on in this way.
        """

    async def run_passes(self, judge_open_items: Callable[[], Awaitable[None]]) -> None:
        """Have all items judged; where replies take long, in several passes over those that are still open."""
        await judge_open_items()

    def room_for(self, calls: int) -> AbstractAsyncContextManager[None]:
        """Hold room for an item that takes so many calls at most, before it begins."""
        return nullcontext()

    def repeat_mark(self, key: Key) -> int:
        """Return the number that marks the calls of a verdict, so that repeats get replies of their own."""
        return key.repeat

    async def drain(self, seconds: float) -> None:
        """Let calls in flight finish for so many seconds, then cancel them."""

    async def finish(self) -> None:
        """Write everything that is still to be written, as far as it can be."""


AT_ONCE = "at once"
"""What a process notes in the journal, in place of a reason, to have the others wait for no call in flight."""


class LivePipeline(CallPipeline):
    """Makes each call at once, and no call twice: two calls are the same if their ``fingerprint`` is.

    Attributes:
        price: the share of its usual price that a call costs.
    """

    price = 1.0

    def __init__(self, journal: Journal, context: RunContext) -> None:
        config, self._counts, self._stop = context.config, context.counts, context.stop
        self._journal, self._budget = journal, make_budget(config, journal, self._stop, self.price)
        self._retry_policy, self._rate_limits = config.retry_policy, config.rate_limits
        self._all_calls = asyncio.Semaphore(config.concurrency)
        self._rate_limiters: dict[str, RateLimiter] = {}
        self._failures_in_a_row: Counter[str] = Counter()
        self._in_flight: dict[bytes, asyncio.Task[Reply]] = {}
        self._sent: set[bytes] = set()
        self._writing: set[asyncio.Task[None]] = set()
        self._stop_is_known = False
        journal.listen(self._on_notice)

    def room_for(self, calls: int) -> AbstractAsyncContextManager[None]:
        # A pass of batches has each item ask for its next call, and no item waits for another.
        return nullcontext() if self.needs_several_passes else self._budget.room_for(calls)

    async def open(self) -> None:
        """Refuse to go on while the provider has batches of this run: they are paid for, and not to be paid again."""
        if left := sum(not batch.settled for batch in await self._journal.batches()):
            remedy = "resume with --batch (batch=True), which collects them, including those that were cancelled there"
            raise UsageError(
                f"{left} of this run's batches have yet to be collected from the provider; {remedy}"
            )

    async def __call__(self, call: Call, send: Send) -> Reply:
        """Answer a call; the same call made again gets the same reply and is not paid for again.

        Raises:
            ModelCallError: the call failed for good.
            StoppedError: the run is to end, or its budget is spent.
            JournalError: the journal can no longer be written.
        """
        key = fingerprint(call)
        task = self._in_flight.get(key)
        if task is None:
            self._stop.check()
            # In a task of its own, a call that is being paid for is kept even if the graph that asked is cancelled.
            task = self._in_flight[key] = asyncio.create_task(self._answer(key, call, send))
            task.add_done_callback(partial(self._ended, key))
        else:
            self._counts.served += 1
            self._budget.count_off()
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            # Not the graph that asked, but the call itself, when the run was to end at once.
            if task.cancelled():
                raise StoppedError(self._stop.explanation) from None
            raise

    async def _answer(self, key: bytes, call: Call, send: Send) -> Reply:
        try:
            # Reserving also waits for another process that is making the same call on a shared journal.
            kept = await self._journal.reserve(key)
            if kept is not None:
                self._counts.served += 1
                self._budget.count_off()
                reply = records.from_bytes(kept, call.model.label)
                # What the provider did not take then it will not take now: the next calls leave it out from the start.
                for parameter in reply.dropped:
                    call.model.drop(parameter, call.parameters)
                return reply
            try:
                return await self._call_model(key, call, send)
            except BaseException:
                # Cancellations included: else another process would wait for this call until the lease is over.
                await self._journal.release(key)
                raise
        except JournalError as error:
            self._stop.ask("journal", str(error))
            raise

    async def _call_model(self, key: bytes, call: Call, send: Send) -> Reply:
        model = call.model.label
        rate_limiter = self._rate_limiter(call.model)
        # The time limit is for the request alone: neither waiting for the rate limiter nor writing to the journal
        # counts.
        send_in_time = with_timeout(send, self._retry_policy.timeout)
        expected = await self._budget.reserve(call)

        async def attempt(call: Call) -> Reply:
            try:
                send_and_keep = partial(self._send_and_keep, key, call, send_in_time)
                return await rate_limiter.run(send_and_keep, int(expected.tokens))
            except ModelCallError as error:
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
        # No await since the release above: other calls would see too much budget left meanwhile.
        self._charge(call, reply.usage, expected)
        return reply

    def _note_failure(self, model: str, error: ModelCallError) -> None:
        """End the run when too many calls of one model in a row have failed for good, at once or after all attempts.

        What may be the fault of one call alone does not count: a text that is too long, or that a filter refuses.
        """
        may_recur = error.retryable or error.rate_limited
        if not (may_recur or ProviderFault(error).status in _NOT_THE_CALLS_FAULT):
            return
        self._failures_in_a_row[model] += 1
        if self._failures_in_a_row[model] >= MAX_FAILURES:
            failed = f"{MAX_FAILURES} calls of {model} in a row failed"
            self._stop.ask("provider", f"{failed}, the last one with: {error}")

    def _charge(self, call: Call, usage: Usage, expected: Amounts) -> None:
        """Count what a call took; ``expected`` is what it was estimated to take."""
        self._budget.charge(call, usage, expected)
        self._counts.paid(usage)

    async def _send_and_keep(self, key: bytes, call: Call, send: Send) -> Reply:
        """Make one attempt, unless the run is to end. A reply counts as in flight until it is on disk."""
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
                # Not retried where the run is to end: the pause before the next attempt would only delay that.
                self._stop.check()
            raise
        await self._journal.keep(key, journal_entry(call, reply))
        return reply

    async def _note_given_up(self, call: Call) -> None:
        """Count a request that was sent and has no reply; the journal keeps it under a key that no call has."""
        expected = self._budget.give_up(call)
        self._counts.paid(expected)
        self._counts.given_up += 1
        await self._journal.keep(urandom(SIZE), Entry(call.model.label, b'{"given_up": true}', expected))

    def _rate_limiter(self, model: LoadedModel) -> RateLimiter:
        if model.label not in self._rate_limiters:
            limits = self._rate_limits
            # In the queue of a server of ours, a call would only use up the time that it may take.
            most = min(limits.concurrency, model.serving.at_once or limits.concurrency)
            book = partial(self._journal.book, model.label) if self._journal.shared else None
            own, waits = replace(limits, concurrency=most), self._counts.waits
            self._rate_limiters[model.label] = RateLimiter(own, self._all_calls, model.label, waits, book)
        return self._rate_limiters[model.label]

    def _ended(self, key: bytes, task: asyncio.Task[Reply]) -> None:
        del self._in_flight[key]
        self._sent.discard(key)
        if not task.cancelled():
            # Those who asked may be gone; asyncio would complain of an exception that nobody looked at.
            task.exception()

    def invalidate(self, calls: Sequence[Call]) -> None:
        """Have these calls answered anew in a later run; in this one their replies stay what they are."""
        self._write(self._journal.invalidate([*map(fingerprint, calls)]))

    def _write(self, writing: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(writing)
        # The loop itself holds no more than a weak reference to a task.
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    def _on_notice(self, notice: Notice) -> None:
        """Do what other processes of this run have noted: stop as they did, or leave them what is not needed here."""
        if notice.stop_reason == AT_ONCE:
            self._stop.ask("interrupted", notice.explanation or "")
            self._stop.at_once()
        elif notice.stop_reason is not None and not self._stop.is_asked:
            self._stop_is_known = True
            self._stop.ask(cast("Reason", notice.stop_reason), notice.explanation or "")
        elif notice.others_wait:
            self._budget.give_back()

    async def drain(self, seconds: float) -> None:
        """Let calls that were sent finish for so many seconds, then cancel them; cancel those that wait at once."""
        # For these reasons all processes of a run stop, since they would all meet the same.
        if self._journal.shared and self._stop.reason in ("budget", "provider") and not self._stop_is_known:
            self._stop_is_known = True
            self._write(self._journal.note_stop(self._stop.reason, self._stop.explanation))
        # A copy, since calls that end are taken out while the others are waited for.
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
        """Wait until all that was invalidated or noted is written."""
        for problem in await asyncio.gather(*self._writing, return_exceptions=True):
            if isinstance(problem, JournalError):
                self._stop.ask("journal", str(problem))


def _is_answer(error: ModelCallError) -> bool:
    """Tell whether the provider has answered the request with this error; else it was never reached."""
    return ProviderFault(error).status is not None


def journal_entry(call: Call, reply: Reply) -> Entry:
    """Make the journal's record of a reply."""
    return Entry(call.model.label, records.to_bytes(reply), reply.usage)


def unread_entry(call: Call, error: UnreadResponseError) -> Entry:
    """Make the journal's record of a response that came and could not be read; what it cost is not known."""
    usage = Usage(calls=1, cost_usd=None, seconds=error.seconds)
    return Entry(call.model.label, records.unread_to_bytes(error), usage)


MAX_FAILURES = 10
"""The run ends after so many failed calls of one model in a row."""

_NOT_THE_CALLS_FAULT = {301, 302, 303, 307, 308, 401, 402, 403, 404, 429}
"""The statuses of faults of address, key, account or model, not of one call; 429 where the quota is spent."""
