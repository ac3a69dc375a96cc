"""A call that is not kept goes into a batch; whether a run can go over batches."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from typing import Any, NoReturn

import orjson
from langgraph.errors import GraphBubbleUp
from openai import AsyncOpenAI, OpenAIError

from ...graphs.nested import all_judges
from ...nodes.bound_judge import BoundJudge
from ...nodes.evaluation_steps import keep_steps_in
from ...nodes.models.call import Call, Reply, Send, fingerprint
from ...nodes.models.loaded_model import LoadedModel
from ...nodes.models.openai_fast import FastChatOpenAI, requests_taken_by
from ...nodes.models.resolver import load
from ...state.errors import ModelCallError, StoppedError, UsageError
from ...state.settings import ModelSpec
from ..journal import JournalError
from ..plan import Plan
from ..run.budget import BudgetTracker
from ..run.call_pipeline import CallPipeline, entry
from ..run.config import RunConfig
from ..run.folder import RunFolder
from ..run.progress_counters import ProgressCounters
from ..run.shutdown import StopSignal
from . import request_file
from .batch_manager import BatchManager
from .openai_batches import Provider
from .request_file import BatchRequestFile

log = logging.getLogger("jurygraph.batch")
FOLDER = "batches"


class PendingError(StoppedError, GraphBubbleUp):
    """The reply will be there in a later pass.

    What runs beside it in a graph is not cut short, so that its calls get into the same wave.
    """


class BatchPipeline(CallPipeline):
    """One a run. Beside what every desk does, it says which pass a call has to wait for."""

    def __init__(
        self,
        prepared: Plan,
        folder: RunFolder,
        config: RunConfig,
        counts: ProgressCounters,
        stop: StopSignal,
    ) -> None:
        super().__init__(folder.journal, config, counts, stop)
        assert prepared.folder is not None
        self._terms = request_file.DEFAULT_LIMITS
        self._budget = BudgetTracker(
            config.budget, folder.journal.totals(), stop, request_file.BATCH_DISCOUNT
        )
        self._prepared = prepared
        self._folder = prepared.folder / FOLDER
        self._failures: Counter[bytes] = Counter()
        self._unusable: set[bytes] = set()
        self._paid: set[bytes] = set()
        self._run_folder = folder
        self._manager: BatchManager
        self._batch_file: BatchRequestFile

    async def carry_out(self, work: Callable[[], Awaitable[None]]) -> None:
        """Judge, wave by wave.

        Args:
            work: one pass: judges every item that has no verdict, as far as it gets with the replies that are there.
        """
        try:
            await self._carry_out(work)
        except OpenAIError as error:
            self._stop.ask("provider", f"batches: {' '.join(str(error).split())}")
        except OSError as error:
            self._stop.ask_for(error, self._folder)
        except JournalError as error:
            self._stop.ask("journal", str(error))
        self._counts.phase = ""
        if self._stop.is_asked and (left := self._manager.under_way):
            go_on = f"{left:,} batches go on" if left > 1 else "1 batch goes on"
            self._stop.explanation += f"; {go_on} at the provider, and the next start collects what comes"

    def invalidate(self, calls: Sequence[Call]) -> None:
        """As every desk, but at the end: until then, each pass is to find what the one before it found."""
        self._unusable.update(map(fingerprint, calls))

    async def finish(self) -> None:
        """Have everything written, as far as it can be."""
        await super().finish()
        if self._unusable:
            try:
                await self._journal.invalidate(self._unusable)
            except JournalError as error:
                self._stop.ask("journal", str(error))

    async def _carry_out(self, one_pass: Callable[[], Awaitable[None]]) -> None:
        providers = {where: Provider(client) for where, client in (await clients(self._prepared)).items()}
        run = str(self._run_folder.manifest["run"])
        self._manager = BatchManager(
            self._folder, run, providers, self._journal, self._budget, self._counts, self._stop, self._terms
        )  # fmt: skip
        await run_until_stopped(self._stop, self._manager.take_up())
        served = None
        while not self._stop.is_asked:
            await self._pass(one_pass)
            # Later passes find what this start itself has paid for.
            served = self._counts.served if served is None else served
            self._counts.served = served
            if self._stop.is_asked or not await self._sent():
                break
            await run_until_stopped(self._stop, self._manager.wait())

    async def _pass(self, one_pass: Callable[[], Awaitable[None]]) -> None:
        self._batch_file = BatchRequestFile(self._folder, self._manager.next_wave(), self._terms)
        self._budget.short = ""
        try:
            with keep_steps_in(self._run_folder.steps_of_a_pass()):
                await one_pass()
            if not self._stop.is_asked:
                await self._manager.settle()
        except BaseException:
            self._batch_file.discard()
            raise
        if self._stop.is_asked:
            self._batch_file.discard()

    async def _sent(self) -> bool:
        """Send the wave; false where nothing is left to wait for."""
        if len(self._batch_file):
            log.info("wave ready", extra={"wave": self._batch_file.number, "requests": len(self._batch_file)})
            await run_until_stopped(self._stop, self._manager.send(self._batch_file.close()))
            return True
        if not self._manager.under_way and self._budget.short:
            self._stop.ask("budget", f"the budget is reached: at most {self._budget.short}")
        return self._manager.under_way > 0

    async def _made(self, key: bytes, call: Call, send: Send) -> Reply:
        used: list[str] = []
        with requests_taken_by(partial(self._take, key, call, used)):
            while True:
                try:
                    reply = await send(call)
                    break
                except ModelCallError as error:
                    self._failed(key, call, error)
                    for custom_id in used:
                        self._manager.outcomes.forget(custom_id)
        self._circuit_breaker.succeeded(call.model.label)
        reply = self._discounted(reply)
        # Without a pause since it was taken off what is in flight: other calls look at the budget meanwhile.
        self._budget.pay(call, reply)
        self._counts.paid(reply.usage)
        await self._journal.keep(key, entry(call, reply))
        self._paid.add(key)
        return reply

    async def _take(
        self, key: bytes, call: Call, used: list[str], chat: FastChatOpenAI, body: dict[str, Any]
    ) -> dict[str, Any]:
        """What a batch brought for this request; where none did, it goes into the wave.

        Raises:
            PendingError: its outcome is not there yet.
            ResponseError: its outcome is an error.
        """
        # Two voices may ask for the same, and a call may be made again with another body.
        custom_id = f"{key.hex()}-{blake2b(orjson.dumps(body), digest_size=8).hexdigest()}"
        outcomes = self._manager.outcomes
        if custom_id in outcomes:
            used.append(custom_id)
            if sent := outcomes.first_read(custom_id):
                self._budget.give_back(*sent.each)
            return outcomes.read(custom_id)
        if key in self._paid:
            self._stop.ask(
                "journal", "a reply that was paid for is no longer in the journal; it is not paid for twice"
            )
            self._stop.check()
        if custom_id not in self._manager.away and custom_id not in self._batch_file:
            self._add(call, custom_id, chat, body)
        raise PendingError("the reply is to come with a batch")

    def _add(self, call: Call, custom_id: str, chat: FastChatOpenAI, body: dict[str, Any]) -> None:
        tokens = self._budget.expect(call)
        cost = self._budget.take_at_once(call, tokens)
        if cost is None:
            return
        try:
            self._batch_file.add(str(client_of(chat).base_url), custom_id, body, tokens, cost)
        except OSError as error:
            self._stop.ask_for(error, self._folder)
            raise StoppedError(self._stop.explanation) from error

    def _failed(self, key: bytes, call: Call, error: ModelCallError) -> None:
        """Let the call be made again in a later wave, if that makes sense, and not for ever."""
        if not error.retryable:
            self._circuit_breaker.failed(call.model.label, error)
            raise error
        self._failures[key] += 1
        if self._failures[key] >= self._retry_policy.attempts:
            self._give_up(call, error, self._failures[key])
        log.info("request failed", extra={"model": call.model.label, "reason": str(error)})

    def _give_up(self, call: Call, error: ModelCallError, attempts: int) -> NoReturn:
        self._circuit_breaker.failed(call.model.label, error)
        problem = f"{error} (given up after {attempts} batches)"
        raise ModelCallError(problem, retryable=True, rate_limited=error.rate_limited) from error

    def _discounted(self, reply: Reply) -> Reply:
        return replace(reply, usage=reply.usage.discounted(request_file.BATCH_DISCOUNT))


OPENAI = "openai:"


def check_batch(prepared: Plan) -> None:
    """Say what keeps a run from going over batches.

    Raises:
        UsageError: a model that is not OpenAI's, or a chat model object; no folder.
    """
    other = next((label for label in prepared.models().values() if not label.startswith(OPENAI)), None)
    if other is not None:
        raise UsageError(
            f"{other} cannot be asked in batches: only models of OpenAI can, such as openai:gpt-4o-mini"
        )
    if any(isinstance(model, LoadedModel) for model in _chosen(prepared)):
        raise UsageError(
            "a chat model object cannot be asked in batches: name the model, as in openai:gpt-4o-mini"
        )
    if prepared.folder is None:
        raise UsageError("batches take hours: name a folder (out) that keeps them meanwhile")


async def clients(prepared: Plan) -> dict[str, AsyncOpenAI]:
    """The clients of all models, by address."""
    loop = asyncio.get_running_loop()
    specs = {
        model for model in _chosen(prepared) if isinstance(model, ModelSpec) and model.name.startswith(OPENAI)
    }
    models = [await asyncio.to_thread(load, spec, loop) for spec in specs]
    for model in models:
        await model.hold()
    found = [client_of(model.chat) for model in models if isinstance(model.chat, FastChatOpenAI)]
    return {str(client.base_url): client for client in found}


def client_of(chat: FastChatOpenAI) -> AsyncOpenAI:
    """What the model is reached by."""
    client = chat.root_async_client
    assert isinstance(client, AsyncOpenAI)
    return client


def _chosen(prepared: Plan) -> Iterator[ModelSpec | LoadedModel]:
    for graph in prepared.graphs.values():
        bound_judge: BoundJudge[Any] = graph.builder.bound_judge  # type: ignore[attr-defined]
        for judge in all_judges(bound_judge):
            yield from judge.chosen().values()


async def run_until_stopped(stop: StopSignal, work: Coroutine[None, None, None]) -> None:
    """Do the work; leave it where it is as soon as the run is to end."""
    doing = asyncio.ensure_future(work)
    asked = asyncio.ensure_future(stop.asked())
    try:
        await asyncio.wait({doing, asked}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        asked.cancel()
        if not doing.done():
            doing.cancel()
    with suppress(asyncio.CancelledError):
        await doing
