"""Send a call to its model: through the middleware of a run, if one is set, then to the provider, until it succeeds."""

from __future__ import annotations

import asyncio
import logging
import random
import time
import warnings
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from langchain_core.callbacks import AsyncCallbackManager, BaseCallbackManager
from langchain_core.globals import get_llm_cache
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration
from langchain_core.runnables import RunnableBinding, RunnableConfig, ensure_config
from langchain_core.runnables.config import merge_configs, var_child_runnable_config

from ...state.errors import ContextOverflowError, ModelCallError, StoppedError, TransientCallError
from ...state.transcript import NO_USAGE
from ...state.verdict_warnings import OTHER_MODEL
from ..replies.own_words import without_reasoning
from ..sync_bridge import set_for_block
from .call import (
    Call,
    Reply,
    Send,
    UnreadResponseError,
    UnsupportedParameterError,
    asked_in,
    fingerprint,
    is_first_of_its_kind,
)
from .capabilities import (
    BOUNDS,
    CHOICES,
    LIMIT,
    LOGPROBS,
    REASONING,
    ROOMS,
    SEVERAL,
    STRUCTURE,
    SYSTEM,
    Bounds,
    Form,
    adapted,
    eased_bounds,
    is_a,
    with_marks,
)
from .connections import HELD, hold_connections, request_handler, time_limit
from .provider_errors import ProviderFault, ResponseError, shown_cause
from .responses import is_empty, read_response
from .retry import DEFAULT_RETRY_POLICY, RetryPolicy, Waits

log = logging.getLogger("jurygraph.calls")
notices = logging.getLogger("jurygraph.notices")
"""What a person is to be told at once, on the terminal too."""

_WAITS = Waits()
"""The waits of calls outside of runs, which nobody displays."""


class CallMiddleware:
    """Handle every model call made inside of it; this class only retries, subclasses add journal, limits and budget."""

    async def __call__(self, call: Call, send: Send) -> Reply:
        """Answer the call; ``send`` is one attempt at the provider."""
        policy = DEFAULT_RETRY_POLICY
        return await call_with_retry(call, with_timeout(send, policy.timeout), policy)

    def invalidate(self, calls: Sequence[Call]) -> None:
        """Take note that the replies to these calls could not be used, so that a later run asks for other ones."""


call_middleware: ContextVar[CallMiddleware | None] = ContextVar("call_middleware", default=None)
"""Set for the length of a run; tasks that are started inside inherit it."""
_NO_RUN = CallMiddleware()


def answering_calls(middleware: CallMiddleware) -> AbstractContextManager[None]:
    """Have all model calls that are made inside go through the middleware."""
    return set_for_block(call_middleware, middleware)


_node: ContextVar[tuple[str, list[tuple[Call, Reply]]] | None] = ContextVar("_node", default=None)
"""The thread whose graph a node is part of, and the replies that it has got since it began."""

KEPT = 256
"""So many replies are kept for nodes that did not end; beyond, the earliest are forgotten."""
_KEPT: OrderedDict[tuple[str, bytes], Reply] = OrderedDict()


@contextmanager
def replies_kept(thread: str) -> Iterator[None]:
    """Keep the replies of a node that fails or is cancelled for when its thread is resumed in this process.

    A node may make several calls, for samples or a repair, and a graph's checkpoint has nothing of a node that did not
    end. A run has its journal instead.

    Args:
        thread: the id by which a checkpointer knows the graph's run.
    """
    if call_middleware.get() is not None:
        yield
        return
    replies: list[tuple[Call, Reply]] = []
    try:
        with set_for_block(_node, (thread, replies)):
            yield
    except BaseException:
        for call, reply in replies:
            _KEPT[thread, fingerprint(call)] = reply
        while len(_KEPT) > KEPT:
            _KEPT.popitem(last=False)
        raise


async def send(call: Call) -> Reply:
    """Call the model and return its reply.

    Raises:
        UnsupportedParameterError: the provider gives no log-probabilities, or no several replies to one request.
        ModelCallError: the provider refused the call, or it failed for good.
        StoppedError: the run is ending and makes no more calls.
    """
    thread, replies = _node.get() or ("", [])
    reply = _KEPT.pop((thread, fingerprint(call)), None) if thread and _KEPT else None
    reply = reply or await (call_middleware.get() or _NO_RUN)(call, attempt)
    replies.append((call, reply))
    if reply.served:
        # Of a reply from the journal too: its verdict is to say so in every start of a run.
        call.model.warn(OTHER_MODEL.of(model=call.model.label, served=reply.served))
    return reply


def invalidate(calls: Sequence[Call]) -> None:
    """Tell the run, and the node, that the replies to these calls could not be used."""
    _, replies = _node.get() or ("", [])
    replies[:] = [sent for sent in replies if not any(sent[0] is call for call in calls)]
    (call_middleware.get() or _NO_RUN).invalidate(calls)


async def call_with_retry(call: Call, send: Send, policy: RetryPolicy, waits: Waits = _WAITS) -> Reply:
    """Send a call until it succeeds, fails for good, or has had all its attempts or waited for as long as it may.

    Waits grow exponentially, with full jitter; a ``Retry-After`` is honoured as far as ``max_wait`` allows.

    Args:
        call: what is sent.
        send: makes one attempt; ``with_timeout`` limits how long it may take.
        policy: how many attempts, and how long to wait between them.
        waits: gets a note of each wait.

    Raises:
        ModelCallError: the error of the last attempt.
    """
    if (own := call.model.serving.max_wait) is not None:
        policy = replace(policy, max_wait=min(own, policy.max_wait))
    attempts, late, waited = 0, 0, 0.0
    while True:
        attempts += 1
        try:
            return await send(call)
        except ModelCallError as error:
            obstacle = ProviderFault(error).obstacle
            if obstacle and waits.is_news(call.model.label, obstacle):
                noted = {"model": call.model.label, "advice": obstacle, "reason": str(error)}
                notices.warning("calls cannot succeed", extra=noted)
                if error.retryable and call_middleware.get() is None:  # Nobody else says why nothing comes.
                    stuck = f"{call.model.label}: no call succeeds, and all wait: {error}"
                    warnings.warn(stuck, stacklevel=2)
            if not error.retryable:
                raise
            late += isinstance(error, NoReplyInTimeError)
            if attempts >= policy.attempts or late >= policy.timeouts or waited >= policy.max_wait:
                spent = f" and {waited:,.0f} s of waiting" if waited >= 1 else ""
                problem = f"{error} (given up after {attempts} attempts{spent})"
                about = {"rate_limited": error.rate_limited, "may_be_billed": error.may_be_billed}
                raise TransientCallError(problem, **about) from error
            pause = min(_pause(policy, attempts, error.retry_after), policy.max_wait - waited)
            about_pause = {"attempt": attempts, "wait_seconds": round(pause, 3), "reason": str(error)}
            log.info("another attempt", extra={"model": call.model.label, **about_pause})
        with waits.noted(call.model.label, "next attempt", pause):
            await asyncio.sleep(pause)
        waited += pause


def _pause(policy: RetryPolicy, attempts: int, retry_after: float | None) -> float:
    """Return how many seconds to wait when so many attempts have failed, of which the last named a time or none."""
    # The exponent is bounded, since a policy may have thousands of attempts.
    backoff = random.uniform(0.0, min(policy.first_wait * 2.0 ** min(attempts - 1, 60), policy.longest_wait))
    if retry_after is None:
        return backoff
    # Some jitter on top of the time that the provider named, or all waiting calls would come back at once.
    return max(0.0, min(retry_after, policy.longest_retry_after)) + 0.1 * backoff


class NoReplyInTimeError(TransientCallError):
    """Raised where an attempt took longer than it may; its reply may come to be billed all the same."""


def with_timeout(send: Send, seconds: float) -> Send:
    """Limit an attempt to so many seconds; when they are over it fails like a lost connection, which is retried."""

    async def in_time(call: Call) -> Reply:
        try:
            async with asyncio.timeout(seconds) as limit:
                time_limit.set(limit)
                try:
                    return await send(call)
                finally:
                    # The limit knows the task, whose context would lead back to it: garbage, with the graph's step. Not
                    # by a token, which another context would refuse, in which a run that was left is cleared away.
                    time_limit.set(None)
        except TimeoutError as error:
            remedy = "if the model is slow, raise --timeout; if it does not come to an end, lower max_tokens"
            late = f"{call.model.label}: no reply within {seconds:g} seconds ({remedy}; the provider may bill it)"
            raise NoReplyInTimeError(late, may_be_billed=True) from error

    return in_time


async def attempt(call: Call) -> Reply:
    """Call the model once, without retries; a parameter that it refuses is left out at once.

    Raises:
        UnsupportedParameterError: the provider gives no log-probabilities, or no several replies to one request.
        ModelCallError: the call failed; the error says whether trying again makes sense, and when.
        UnreadResponseError: the response could not be read.
    """
    if asyncio.get_running_loop() not in HELD:
        await hold_connections()
    model, dropped, before, room = call.model, list[str](), NO_USAGE, 1
    while True:
        choices = CHOICES in call.parameters and model.gives(CHOICES)
        form, bounds = model.form, model.bounds
        limit, room = call.parameters.get(LIMIT, 0) * (LIMIT not in model.dropped), max(room, model.room)
        roomy = {**call.parameters, LIMIT: limit * room}
        sent = replace(call, parameters=roomy) if limit and room > 1 else call
        reply = await _reply_or_error(sent, form)
        if isinstance(reply, Exception):
            dropped.append(_parameter_to_drop(call, reply, form, bounds, choices, dropped))
            continue
        model.misformed = 0
        if limit and reply.cut_off and (reply.reasoned or not without_reasoning(reply.text).strip()):
            if room < ROOMS[-1]:
                room = ROOMS[ROOMS.index(room) + 1]
                log.info("more room for a reply", extra={"model": model.label, LIMIT: limit * room})
                before += reply.usage
                continue
            problem = f"{reply.problem} It had {limit * room:,} tokens, the most that are tried."
            reply = replace(reply, problem=problem)
        # Learned where it has helped: a model that never comes to its end gets no more room in other calls.
        elif limit and room > model.room:
            dropped.append(f"{REASONING}:{room}")
            model.drop(dropped[-1])
        if dropped or before.calls:
            return replace(reply, dropped=tuple(dropped), usage=before + reply.usage)
        return reply


async def draw_samples(call: Call, size: int) -> list[tuple[Call, Reply]]:
    """Get ``size`` replies to one call, each behind its own call: the sample's number is part of a call's identity.

    All are asked for with the parameter ``n``, so that the prompt is paid once; those that do not come so, one by one.

    Raises:
        ModelCallError: as ``send``, the first in order, and only when all calls have ended.
    """
    model = call.model
    sampled: list[tuple[Call, Reply]] = []
    if size > 1 and model.gives(SEVERAL):
        request = _numbered(call, 1, {SEVERAL: size})
        # The provider may refuse the parameter, in which case ``gives`` says so from now on.
        with suppress(UnsupportedParameterError):
            first = await send(request)
            sampled = [(request, reply) for reply in [first, *first.others][:size]]
            if not first.others:
                # Some servers ignore the parameter without a word.
                model.drop(SEVERAL, request.parameters)
            elif len(sampled) < size:
                few = "gave fewer replies to one request than asked for; the rest was requested"
                model.warn(f"{model.label} {few}")
    # With the same seed in every call, all samples would be the same reply.
    seed, numbers = getattr(model.chat, "seed", None), range(len(sampled) + 1, size + 1)
    calls = [_numbered(call, n, {} if seed is None else {"seed": seed + n - 1}) for n in numbers]
    # An exception is raised below, when all calls have ended: otherwise it would leave calls that are being paid for.
    replies = await asyncio.gather(*map(send, calls), return_exceptions=True)
    for sent, reply in zip(calls, replies, strict=True):
        if isinstance(reply, BaseException):
            raise reply
        sampled.append((sent, reply))
    return sampled


def _numbered(call: Call, sample: int, more: Mapping[str, Any]) -> Call:
    """Return the call of a sample, with some more parameters."""
    metadata = {**call.metadata, "sample": sample}
    return replace(call, metadata=metadata, parameters={**call.parameters, **more})


MISFORMED_IN_A_ROW = 3
"""So often in a row a provider may fail to bring a model's words into the form that was asked for; then it is eased."""


def _parameter_to_drop(
    call: Call, error: Exception, form: Form, bounds: Bounds, choices: bool, dropped: list[str]
) -> str:
    """Name the parameter that the provider refused, without which the model is asked again.

    ``form``, ``bounds`` and ``choices`` say how the request was made; other calls may have changed the model since.

    Raises:
        UnsupportedParameterError, ModelCallError: as ``attempt``, where the call failed for another reason.
    """
    fault, model = ProviderFault(error), call.model
    parameter = fault.rejected_parameter(call.parameters)
    if LIMIT in call.parameters and fault.counts_reply_into_context:
        # The prompt and the longest reply together are too much. The server's own limit holds from now on, since the
        # next prompts are hardly shorter, and each refusal is a request.
        parameter = LIMIT
    if fault.misformed:
        model.misformed += 1
        parameter = STRUCTURE if model.misformed >= MISFORMED_IN_A_ROW else None
    if parameter == BOUNDS:
        # A schema is sent with these two forms alone.
        schema = call.schema if form in ("schema", "tool") else None
        eased = None if schema is None else eased_bounds(schema, bounds)
        parameter = STRUCTURE if eased is None else f"{BOUNDS}:{eased}"
    if parameter == STRUCTURE:
        parameter = model.next_form(form) if call.schema is not None and form != "text" else None
    # Servers refuse such a schema in words of many kinds; what else was wrong shows when the call is made without it.
    if parameter is None and choices and fault.may_be_about_form:
        parameter = CHOICES
    agent = call.metadata.get("agent")
    who = f"{agent}, round {call.metadata.get('round')}: " if agent else ""
    problem = f"{who}{model.label}: {fault.summary()}"
    # A parameter that is refused again after it was left out would be asked without for ever.
    if parameter is None or parameter in dropped or not model.drop(parameter, call.parameters):
        if not fault.retryable:
            model.take_back(dropped)
        lasting = ContextOverflowError if fault.is_too_long else ModelCallError
        kind = TransientCallError if fault.retryable else lasting
        about = {name: getattr(fault, name) for name in ("rate_limited", "retry_after", "may_be_billed")}
        raise kind(problem, **about) from shown_cause(error)
    if parameter in (SEVERAL, LOGPROBS):
        raise UnsupportedParameterError(problem, parameter) from shown_cause(error)
    model.misformed = 0
    return parameter


async def _reply_or_error(call: Call, form: Form) -> Reply | Exception:
    """Return the reply to one request, or what the provider's client raised."""
    started = time.perf_counter()
    # Raised anew outside of the ``except``, or Python would keep that exception, key and all, as the context of ours.
    try:
        messages = await _messages(call, form)
        tool = None if call.schema is None or form == "text" else call.schema["title"]
        seconds = time.perf_counter() - started
        return read_response(messages, call.model.label, seconds, tool, call.model.asked_name)
    # The first is of a batch's handler of requests, which ends the run: neither is a fault of the provider's.
    except (StoppedError, UnreadResponseError):
        raise
    except Exception as error:
        return error


async def _messages(call: Call, form: Form) -> list[BaseMessage]:
    """Return all replies to one request, where ``ainvoke`` would return the first alone."""
    model, wants_json = call.model, call.schema is not None and form != "text"
    schema = call.schema if wants_json else None
    cached = get_llm_cache() is not None or any(chat.cache for chat in model.chats)
    runnable = model.runnable(schema, call.parameters, not cached or is_first_of_its_kind(call))
    messages, folded = [*call.messages], SYSTEM in model.dropped
    if folded or form in ("json", "text"):
        messages = adapted(messages, call.schema, form, folded=folded)
    asked_in.set((call.messages, call.repeated))
    # The requests of a batch are answered in any order, and the next wave comes when a cache has been given up.
    if call.repeated and (marks := model.cache_marks) and request_handler.get() is None:
        prompt = next(message.text for message in call.messages if isinstance(message, HumanMessage))
        messages = with_marks(messages, prompt, call.repeated, marks)
    # What is bound is passed on below; a chain, as ``with_structured_output`` makes it, has nothing bound to it.
    chat, options, own_config = runnable, dict[str, Any](), RunnableConfig()
    if isinstance(runnable, RunnableBinding):
        chat, options, own_config = runnable.bound, {**runnable.kwargs}, runnable.config
    complete = getattr(chat, "complete", None)
    if not isinstance(chat, BaseChatModel) or complete is None or own_config or _is_observed(chat):
        config = ensure_config({"metadata": dict(call.metadata)})
        if not isinstance(chat, BaseChatModel):
            return [await runnable.ainvoke(messages, config)]
        config = merge_configs(own_config, config)
        about: dict[str, Any] = {name: config.get(name) for name in ("callbacks", "tags", "metadata")}
        result = await chat.agenerate([messages], **about, **options)
        answers = [choice.message for choice in result.generations[0] if isinstance(choice, ChatGeneration)]
        if all(map(is_empty, answers)) and (not answers or is_a(chat, "ChatGoogleGenerativeAI")):
            raise ResponseError("the response holds no reply", 200)
        return answers
    # Nobody observes the call, so it skips LangChain's callbacks, which take more CPU than the call itself.
    completed: list[BaseMessage] = await complete(messages, **options)
    return completed


def _is_observed(chat: BaseChatModel) -> bool:
    """Tell whether LangChain has something to do around this call: a tracer, callback, stream, cache or limiter."""
    if chat.cache or chat.rate_limiter or getattr(chat, "streaming", False):
        return True
    # Only ``cache=None`` leaves the choice to LangChain's global cache; False means none.
    if chat.cache is None and get_llm_cache() is not None:
        return True
    of_run = (var_child_runnable_config.get() or {}).get("callbacks")
    if isinstance(of_run, BaseCallbackManager) and not (chat.callbacks or chat.verbose):
        # A graph has asked for tracers when its run began, and hands on all that it found.
        return bool(of_run.handlers)
    return bool(AsyncCallbackManager.configure(of_run, chat.callbacks, chat.verbose).handlers)
