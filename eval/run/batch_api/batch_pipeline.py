"""The pipeline that answers a run's calls through batches, in several passes over open items."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from hashlib import blake2b

import orjson
from langchain_core.language_models import BaseChatModel
from langgraph.errors import GraphBubbleUp

from ....graphs.engine.wrapper import bound_judge_of
from ....nodes.evaluation_steps import keep_steps_in
from ....nodes.models.call import Call, Reply, Send, UnreadResponseError
from ....nodes.models.connections import hold_connections, request_handler
from ....nodes.models.loaded_model import LoadedModel
from ....nodes.models.providers import ANTHROPIC, GOOGLE, OPENAI, Provider, is_a, provider_of
from ....nodes.models.resolver import load
from ....state.errors import ModelCallError, StoppedError, TransientCallError, UsageError
from ....state.settings import ModelSpec
from ...journal.records import JournalError
from ...results.folder import model_names
from ...results.run_folder import RunFolder
from ..calls.call_pipeline import LivePipeline, RunContext, journal_entry, unread_entry
from ..calls.prefix_gate import Passage
from ..plan.plan import Plan
from .batch_manager import BatchManager, Body, WaveFiles
from .batch_provider import BATCH_DISCOUNT, BatchProvider, log


class PendingError(StoppedError, GraphBubbleUp):
    """Raised for a call whose reply will be available only in a later pass.

    LangGraph treats it as a pause: parallel nodes continue, so that their calls get into the same
    wave.
    """


class BatchPipeline(LivePipeline):
    """Answers calls from the journal and from ended batches; all others go into the next wave."""

    needs_several_passes = True
    price = BATCH_DISCOUNT

    def __init__(self, plan: Plan, folder: RunFolder, context: RunContext) -> None:
        super().__init__(folder.journal, context)
        assert plan.folder is not None
        self._plan = plan
        self._run_folder = folder
        self._folder = plan.folder / "batches"
        self._failures: Counter[bytes] = Counter()
        self._unusable: set[bytes] = set()
        self._paid: set[bytes] = set()
        self._manager: BatchManager
        self._wave: WaveFiles

    async def open(self) -> None:
        """Do nothing: running batches of this run are collected before the first pass."""

    async def run_passes(self, judge_open_items: Callable[[], Awaitable[None]]) -> None:
        """Judge wave by wave, until no item is open or the run is to end.

        Args:
            judge_open_items: judges every item without a verdict, as far as the available replies
                allow.
        """
        run = str(self._run_folder.manifest["run"])
        asked = await providers(self._plan)
        shared = self._journal, self._budget, self._counts, self._stop
        self._manager = BatchManager(self._folder, run, asked, *shared)
        try:
            await self._stop.cut_short(self._manager.resume())
            served = None
            while not self._stop.is_asked:
                await self._pass(judge_open_items)
                # Later passes find replies that this start itself has paid for; they do not count
                # as saved.
                self._counts.served = served = self._counts.served if served is None else served
                if self._stop.is_asked:
                    break
                if self._wave.ids:
                    log.info(
                        "wave ready",
                        extra={"wave": self._wave.number, "requests": len(self._wave.ids)},
                    )
                    await self._stop.cut_short(self._manager.send(self._wave.close()))
                elif not self._manager.running:
                    # An empty wave ends the run only if no running batch can lead to further calls.
                    if self._budget.refused_by:
                        self._stop.ask(
                            "budget", f"the budget is reached: at most {self._budget.refused_by}"
                        )
                    break
                await self._stop.cut_short(self._manager.wait())
        except self._manager.errors as error:
            self._stop.ask("provider", f"batches: {' '.join(str(error).split())}")
        except OSError as error:
            self._stop.ask_for(error, self._folder)
        except JournalError as error:
            self._stop.ask("journal", str(error))
        self._counts.phase = ""
        if self._stop.is_asked and (left := len(self._manager.running)):
            go_on = f"{left:,} batches continue" if left > 1 else "1 batch continues"
            self._stop.explanation += (
                f"; {go_on} at the provider, and the next start collects the results"
            )

    def _forget(self, keys: Sequence[bytes]) -> None:
        # Only at the end of the run: until then, each pass must find the replies of the one before
        # it.
        self._unusable.update(keys)

    async def finish(self) -> None:
        """Write the invalidations to the journal."""
        if self._unusable:
            self._write(self._journal.invalidate(self._unusable))
        await super().finish()

    async def _pass(self, judge_open_items: Callable[[], Awaitable[None]]) -> None:
        self._manager.waves += 1
        self._wave = WaveFiles(self._folder, self._manager.waves)
        self._budget.refused_by = ""
        with ExitStack() as if_cut_short:
            # The next start collects the requests of an interrupted pass again.
            if_cut_short.callback(self._wave.discard)
            with keep_steps_in(self._run_folder.steps_of_a_pass()):
                await judge_open_items()
            if not self._stop.is_asked:
                await self._manager.settle()
            if not self._stop.is_asked:
                if_cut_short.pop_all()

    async def _call_model(
        self, key: bytes, call: Call, send: Send, passage: Passage | None = None
    ) -> Reply:
        """Return the reply that a batch brought for the call.

        Retry failed calls in a later wave. No call of a batch waits at a gate.
        """
        ids: list[str] = []
        # The client builds the request as for a live call. ``_outcome`` takes the place of sending
        # it.
        request_handler.set(partial(self._outcome, key, call, ids))
        try:
            reply = await send(call)
        except UnreadResponseError as error:
            unread = unread_entry(call, error)
            self._charge(call, unread.usage, self._budget.estimate(call))
            await self._journal.keep(key, unread)
            raise
        except ModelCallError as error:
            # It is retried in a later wave if the error is retryable, but not without end.
            self._failures[key] += 1
            attempts = self._failures[key]
            model = call.model.label
            if not error.retryable or attempts >= self._retry_policy.attempts:
                self._note_failure(model, error)
                if not error.retryable:
                    raise
                given_up = f"{error} (given up after {attempts} batches)"
                raise TransientCallError(given_up, rate_limited=error.rate_limited) from error
            log.info("request failed", extra={"model": model, "reason": str(error)})
            for custom_id in ids:
                self._manager.outcomes.forget(custom_id)
            # The next attempt finds no outcome, and puts the request into the wave.
            reply = await send(call)
        self._failures_in_a_row.pop(call.model.label, None)
        reply = replace(reply, usage=reply.usage.discounted(BATCH_DISCOUNT))
        # No await after its release from the calls in flight: other calls would see too much budget
        # left in between.
        self._charge(call, reply.usage, self._budget.estimate(call))
        await self._journal.keep(key, journal_entry(call, reply))
        self._paid.add(key)
        return reply

    async def _outcome(
        self, key: bytes, call: Call, ids: list[str], chat: BaseChatModel, body: Body
    ) -> Body:
        """Return the result of this request in a batch; without one, put the request into the wave.

        Raises:
            PendingError: its outcome is not available yet.
            ResponseError: its outcome is an error.
        """
        # Two agents may make the same request, and a call may be repeated with another body.
        custom_id = f"{key.hex()}-{blake2b(orjson.dumps(body), digest_size=8).hexdigest()}"
        outcomes = self._manager.outcomes
        if custom_id in outcomes:
            ids.append(custom_id)
            if batch := outcomes.unread.pop(custom_id, None):
                self._budget.release(batch.per_request)
            return provider_class(chat).read(*outcomes.read(custom_id))
        if key in self._paid:
            lost = (
                "a reply that was paid for is no longer in the journal; it is not requested again"
            )
            self._stop.ask("journal", lost)
        self._stop.check()
        if custom_id not in self._manager.submitted and custom_id not in self._wave.ids:
            await self._add_to_wave(call, custom_id, chat, body)
        raise PendingError("the reply is to come with a batch")

    async def _add_to_wave(
        self, call: Call, custom_id: str, chat: BaseChatModel, body: Body
    ) -> None:
        expected = await self._budget.try_reserve(call)
        if expected is None:
            # Running batches may take less than was reserved for them: a later pass tries again.
            return
        if custom_id in self._wave.ids:  # another agent made the same request in the meantime
            self._budget.release(expected)
            return
        provider = provider_class(chat)
        place = provider.address_of(chat), str(body.get("model"))
        try:
            self._wave.add(provider.line(custom_id, body), place, provider.file_bytes, expected)
        except OSError as error:
            self._stop.ask_for(error, self._folder)
            raise StoppedError(self._stop.explanation) from error


def _openai() -> type[BatchProvider]:
    from .openai_batches import OpenAIBatches

    return OpenAIBatches


def _anthropic() -> type[BatchProvider]:
    from .anthropic_batches import AnthropicBatches

    return AnthropicBatches


def _gemini() -> type[BatchProvider]:
    from .gemini_batches import GeminiBatches

    return GeminiBatches


_BATCHES: Mapping[Provider, Callable[[], type[BatchProvider]]] = {
    OPENAI: _openai,
    ANTHROPIC: _anthropic,
    GOOGLE: _gemini,
}
"""The class for the batches of each provider; its package is imported only when needed."""


def _can_be_batched(label: str) -> bool:
    provider, colon, _ = label.partition(":")
    return bool(colon) and provider_of(provider) in _BATCHES


def check_batch(plan: Plan) -> None:
    """Check that all calls of a plan can be made in batches.

    Raises:
        UsageError: a model of a provider without known batches, a chat model object, or no folder.
    """
    other = next(
        (label for label in model_names(plan.manifest) if not _can_be_batched(label)), None
    )
    if other is not None:
        *first, last = (provider.title for provider in _BATCHES)
        raise UsageError(
            f"{other} cannot be used in batches: "
            f"only models of {', '.join(first)} and {last} can, such as openai:gpt-4o-mini"
        )
    if any(isinstance(model, LoadedModel) for model in _chosen(plan)):
        raise UsageError(
            "a chat model object cannot be batched: name the model, as in openai:gpt-4o-mini"
        )
    if plan.folder is None:
        raise UsageError("batches take hours: give a folder (out) that keeps track of them")


async def providers(plan: Plan) -> dict[str, BatchProvider]:
    """Return the batches of all models of a plan, by address."""
    loop = asyncio.get_running_loop()
    by_address: dict[str, BatchProvider] = {}
    for spec in {model for model in _chosen(plan) if isinstance(model, ModelSpec)}:
        if _can_be_batched(spec.name):
            chat = (await asyncio.to_thread(load, spec, loop)).chat
            await hold_connections()
            batches = provider_class(chat)
            by_address[batches.address_of(chat)] = batches(chat)
    return by_address


def provider_class(chat: BaseChatModel) -> type[BatchProvider]:
    """Return the class for the batches of a chat model's provider; import its package only now."""
    for provider, batches in _BATCHES.items():
        if is_a(chat, provider.batch_client):
            return batches()
    raise UsageError(f"a {type(chat).__name__} cannot be used in batches")


def _chosen(plan: Plan) -> list[ModelSpec | LoadedModel]:
    return [
        model for graph in plan.graphs.values() for model in bound_judge_of(graph).chosen().values()
    ]
