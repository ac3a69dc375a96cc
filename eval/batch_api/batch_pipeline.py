"""Answer a run's calls through the batches of its providers, in several passes over the items that are still open."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from importlib import import_module

import orjson
from langchain_core.language_models import BaseChatModel
from langgraph.errors import GraphBubbleUp

from ...graphs.wrapper import bound_judge_of
from ...nodes.evaluation_steps import keep_steps_in
from ...nodes.models.call import Call, Reply, Send, UnreadResponseError, fingerprint
from ...nodes.models.capabilities import is_a
from ...nodes.models.connections import hold_connections, request_handler
from ...nodes.models.loaded_model import LoadedModel
from ...nodes.models.resolver import load
from ...state.errors import ModelCallError, StoppedError, TransientCallError, UsageError
from ...state.settings import ModelSpec
from ..calls.call_pipeline import LivePipeline, RunContext, journal_entry, unread_entry
from ..journal.records import JournalError
from ..plan.plan import Plan
from ..results.folder import RunFolder, model_names
from .batch_manager import BatchManager, Body, WaveFiles
from .batch_provider import BATCH_DISCOUNT, BatchProvider, log


class PendingError(StoppedError, GraphBubbleUp):
    """Raised for a call whose reply will be there in a later pass only.

    LangGraph treats it as a pause: nodes that run beside it go on, so that their calls get into the same wave.
    """


class BatchPipeline(LivePipeline):
    """Answers calls from the journal and from batches that have ended; all others go into the next wave."""

    needs_several_passes, price = True, BATCH_DISCOUNT

    def __init__(self, plan: Plan, folder: RunFolder, context: RunContext) -> None:
        super().__init__(folder.journal, context)
        assert plan.folder is not None
        self._plan, self._run_folder, self._folder = plan, folder, plan.folder / "batches"
        self._failures: Counter[bytes] = Counter()
        self._unusable: set[bytes] = set()
        self._paid: set[bytes] = set()
        self._manager: BatchManager
        self._wave: WaveFiles

    async def open(self) -> None:
        """Do nothing: what the provider has of this run is collected before the first pass."""

    async def run_passes(self, judge_open_items: Callable[[], Awaitable[None]]) -> None:
        """Judge wave by wave, until no item is open or the run is to end.

        Args:
            judge_open_items: judges every item that has no verdict, as far as it gets with the replies that are there.
        """
        run, asked = str(self._run_folder.manifest["run"]), await providers(self._plan)
        shared = self._journal, self._budget, self._counts, self._stop
        self._manager = BatchManager(self._folder, run, asked, *shared)
        try:
            await self._stop.cut_short(self._manager.resume())
            served = None
            while not self._stop.is_asked:
                await self._pass(judge_open_items)
                # Later passes find what this start itself has paid for, which is not to be counted as saved.
                self._counts.served = served = self._counts.served if served is None else served
                if self._stop.is_asked:
                    break
                if self._wave.ids:
                    log.info("wave ready", extra={"wave": self._wave.number, "requests": len(self._wave.ids)})
                    await self._stop.cut_short(self._manager.send(self._wave.close()))
                elif not self._manager.running:
                    # An empty wave ends the run only if no batch is left whose results could lead to further calls.
                    if self._budget.refused_by:
                        self._stop.ask("budget", f"the budget is reached: at most {self._budget.refused_by}")
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
            self._stop.explanation += f"; {go_on} at the provider, and the next start collects the results"

    def invalidate(self, calls: Sequence[Call]) -> None:
        """Invalidate replies when the run ends: until then, each pass must find what the one before it found."""
        self._unusable.update(map(fingerprint, calls))

    async def finish(self) -> None:
        """Write what was invalidated."""
        if self._unusable:
            self._write(self._journal.invalidate(self._unusable))
        await super().finish()

    async def _pass(self, judge_open_items: Callable[[], Awaitable[None]]) -> None:
        self._manager.waves += 1
        self._wave = WaveFiles(self._folder, self._manager.waves)
        self._budget.refused_by = ""
        with ExitStack() as if_cut_short:
            # Of a pass that was cut short, the next start gathers the requests anew.
            if_cut_short.callback(self._wave.discard)
            with keep_steps_in(self._run_folder.steps_of_a_pass()):
                await judge_open_items()
            if not self._stop.is_asked:
                await self._manager.settle()
            if not self._stop.is_asked:
                if_cut_short.pop_all()

    async def _call_model(self, key: bytes, call: Call, send: Send) -> Reply:
        """Make a reply of what batches brought for the call, retrying what failed in a later wave."""
        ids: list[str] = []
        # The client builds the request as for a live call; in place of sending it, ``_outcome`` is asked.
        request_handler.set(partial(self._outcome, key, call, ids))
        try:
            reply = await send(call)
        except UnreadResponseError as error:
            unread = unread_entry(call, error)
            self._charge(call, unread.usage, self._budget.estimate(call))
            await self._journal.keep(key, unread)
            raise
        except ModelCallError as error:
            # It is made again in a later wave, if that makes sense, and not for ever.
            self._failures[key] += 1
            attempts, model = self._failures[key], call.model.label
            if not error.retryable or attempts >= self._retry_policy.attempts:
                self._note_failure(model, error)
                if not error.retryable:
                    raise
                given_up = f"{error} (given up after {attempts} batches)"
                raise TransientCallError(given_up, rate_limited=error.rate_limited) from error
            log.info("request failed", extra={"model": model, "reason": str(error)})
            for custom_id in ids:
                self._manager.outcomes.forget(custom_id)
            # Asked once more, it finds no outcome, and puts the request into the wave.
            reply = await send(call)
        self._failures_in_a_row.pop(call.model.label, None)
        reply = replace(reply, usage=reply.usage.discounted(BATCH_DISCOUNT))
        # No await since it was released from what is in flight: other calls would see too much budget left meanwhile.
        self._charge(call, reply.usage, self._budget.estimate(call))
        await self._journal.keep(key, journal_entry(call, reply))
        self._paid.add(key)
        return reply

    async def _outcome(self, key: bytes, call: Call, ids: list[str], chat: BaseChatModel, body: Body) -> Body:
        """Return what a batch brought for this request; where none did, put it into the wave.

        Raises:
            PendingError: its outcome is not there yet.
            ResponseError: its outcome is an error.
        """
        # Two agents may ask for the same, and a call may be made again with another body.
        custom_id = f"{key.hex()}-{blake2b(orjson.dumps(body), digest_size=8).hexdigest()}"
        outcomes = self._manager.outcomes
        if custom_id in outcomes:
            ids.append(custom_id)
            if batch := outcomes.unread.pop(custom_id, None):
                self._budget.release(batch.per_request)
            return provider_class(chat).read(*outcomes.read(custom_id))
        if key in self._paid:
            lost = "a reply that was paid for is no longer in the journal; it is not requested again"
            self._stop.ask("journal", lost)
        self._stop.check()
        if custom_id not in self._manager.submitted and custom_id not in self._wave.ids:
            await self._add_to_wave(call, custom_id, chat, body)
        raise PendingError("the reply is to come with a batch")

    async def _add_to_wave(self, call: Call, custom_id: str, chat: BaseChatModel, body: Body) -> None:
        expected = await self._budget.try_reserve(call)
        if expected is None:
            # Batches under way may take less than was reserved for them: a later pass tries again.
            return
        if custom_id in self._wave.ids:  # another agent has asked for the same meanwhile
            self._budget.release(expected)
            return
        provider = provider_class(chat)
        place = provider.address_of(chat), str(body.get("model"))
        try:
            self._wave.add(provider.line(custom_id, body), place, provider.file_bytes, expected)
        except OSError as error:
            self._stop.ask_for(error, self._folder)
            raise StoppedError(self._stop.explanation) from error


_PROVIDERS = ("openai:", "anthropic:", "google_genai:")

_CLASSES = {
    "FastChatOpenAI": ("openai_batches", "OpenAIBatches"),
    "ChatAnthropic": ("anthropic_batches", "AnthropicBatches"),
    "ChatGoogleGenerativeAI": ("gemini_batches", "GeminiBatches"),
}
"""By the class of a chat model, the module and the class that has the batches of its provider."""


def check_batch(plan: Plan) -> None:
    """Check that all calls of a plan can be made in batches.

    Raises:
        UsageError: a model of a provider whose batches are not known, or a chat model object; no folder.
    """
    other = next((label for label in model_names(plan.manifest) if not label.startswith(_PROVIDERS)), None)
    if other is not None:
        problem = f"{other} cannot be used in batches: only models of OpenAI, Anthropic and Gemini can,"
        raise UsageError(f"{problem} such as openai:gpt-4o-mini")
    if any(isinstance(model, LoadedModel) for model in _chosen(plan)):
        raise UsageError("a chat model object cannot be batched: name the model, as in openai:gpt-4o-mini")
    if plan.folder is None:
        raise UsageError("batches take hours: give a folder (out) that keeps track of them")


async def providers(plan: Plan) -> dict[str, BatchProvider]:
    """Return the batches of all models of a plan, by address."""
    loop = asyncio.get_running_loop()
    by_address: dict[str, BatchProvider] = {}
    for spec in {model for model in _chosen(plan) if isinstance(model, ModelSpec)}:
        if spec.name.startswith(_PROVIDERS):
            chat = (await asyncio.to_thread(load, spec, loop)).chat
            await hold_connections()
            batches = provider_class(chat)
            by_address[batches.address_of(chat)] = batches(chat)
    return by_address


def provider_class(chat: BaseChatModel) -> type[BatchProvider]:
    """Return the class that has the batches of a chat model's provider; its package is imported only now."""
    for name, (module, batches) in _CLASSES.items():
        if is_a(chat, name):
            cls: type[BatchProvider] = getattr(import_module(f".{module}", __package__), batches)
            return cls
    raise UsageError(f"a {type(chat).__name__} cannot be used in batches")


def _chosen(plan: Plan) -> list[ModelSpec | LoadedModel]:
    return [model for graph in plan.graphs.values() for model in bound_judge_of(graph).chosen().values()]
