"""Send a call through the run's middleware, if any, to its model, until it succeeds."""

from __future__ import annotations

import asyncio
import logging
import random
import time
import warnings
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
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
from ..common.server_rules import is_on_server
from ..common.sync_bridge import set_for_block
from ..replies.own_words import without_reasoning
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
    TOOLS,
    Form,
    adapted,
    eased_bounds,
    with_marks,
)
from .connections import HELD, hold_connections, request_handler, time_limit
from .provider_errors import ProviderFault, ResponseError, shown_cause
from .providers import Bounds, client_of
from .responses import is_empty, read_response
from .retry import DEFAULT_RETRY_POLICY, SERVER_RETRY_POLICY, RetryPolicy, Waits

log = logging.getLogger("jurygraph.calls")
notices = logging.getLogger("jurygraph.notices")
"""The log for messages that a person should see at once, also on the terminal."""

_WAITS = Waits()
"""The waits of calls outside of runs, which are not displayed."""


RunTool = Callable[[], Awaitable[Reply]]
"""Runs a tool once and returns its result, as a reply without usage."""


class CallMiddleware:
    """Handle every model call in a context; subclasses add journal, limits and budget.

    This class only retries.
    """

    async def __call__(self, call: Call, send: Send) -> Reply:
        """Answer the call; ``send`` is one attempt at the provider."""
        policy = SERVER_RETRY_POLICY if is_on_server() else DEFAULT_RETRY_POLICY
        return await call_with_retry(call, with_timeout(send, policy.timeout), policy)

    async def tool_result(self, key: bytes, name: str, run: RunTool) -> Reply:
        """Return the result of a tool call; subclasses keep it, so that no tool runs twice.

        Args:
            key: 16 bytes that identify the tool call.
            name: the tool's name.
            run: runs the tool once.
        """
        return await run()

    def invalidate(self, calls: Sequence[Call]) -> None:
        """Mark the replies to these calls as unusable, so that a later run requests new ones."""


call_middleware: ContextVar[CallMiddleware | None] = ContextVar("call_middleware", default=None)
"""Set for the duration of a run; tasks started inside inherit it."""
_NO_RUN = CallMiddleware()


def answering_calls(middleware: CallMiddleware) -> AbstractContextManager[None]:
    """Route all model calls inside through the middleware."""
    return set_for_block(call_middleware, middleware)


_node: ContextVar[tuple[str, list[tuple[Call | bytes, Reply]]] | None] = ContextVar(
    "_node", default=None
)
"""The thread of a node's graph, and the replies that the node has received.

A result of a tool stands under its key.
"""

KEPT = 256
"""The number of replies to store for unfinished nodes; the oldest are dropped first."""
_KEPT: OrderedDict[tuple[str, bytes], Reply] = OrderedDict()


@contextmanager
def replies_kept(thread: str) -> Iterator[None]:
    """Store the replies of a failed or cancelled node until this process resumes its thread.

    A node may make several calls, for samples or a repair, and a graph's checkpoint does not
    contain an unfinished node. A run has its journal instead.

    Args:
        thread: the id of the graph's run for a checkpointer.
    """
    if call_middleware.get() is not None:
        yield
        return
    replies: list[tuple[Call | bytes, Reply]] = []
    try:
        with set_for_block(_node, (thread, replies)):
            yield
    except BaseException:
        for asked, reply in replies:
            _KEPT[thread, asked if isinstance(asked, bytes) else fingerprint(asked)] = reply
        while len(_KEPT) > KEPT:
            _KEPT.popitem(last=False)
        raise


async def send(call: Call) -> Reply:
    """Call the model and return its reply.

    Raises:
        UnsupportedParameterError: the provider does not support log-probabilities, or several
            replies to one request.
        ModelCallError: the provider refused the call, or it failed for good.
        StoppedError: the run is ending and makes no more calls.
    """
    thread, replies = _node.get() or ("", [])
    reply = _KEPT.pop((thread, fingerprint(call)), None) if thread and _KEPT else None
    reply = reply or await (call_middleware.get() or _NO_RUN)(call, attempt)
    replies.append((call, reply))
    if reply.served:
        # Also for a reply from the journal, so that the warning appears in every start of a run.
        call.model.warn(OTHER_MODEL.of(model=call.model.label, served=reply.served))
    return reply


async def tool_result(key: bytes, name: str, run: RunTool) -> Reply:
    """Return the result of a tool call: an earlier one with this key, or a new one.

    Args:
        key: 16 bytes that identify the tool call.
        name: the tool's name.
        run: runs the tool once.

    Raises:
        StoppedError: the run is ending and runs no more tools.
    """
    thread, replies = _node.get() or ("", [])
    result = _KEPT.pop((thread, key), None) if thread and _KEPT else None
    result = result or await (call_middleware.get() or _NO_RUN).tool_result(key, name, run)
    replies.append((key, result))
    return result


def is_refused(error: ModelCallError) -> bool:
    """Return whether the provider refused a call for good, so that repeating it does not help.

    A response that could not be read is an error of this program, not a refusal.
    """
    return not (
        error.retryable or isinstance(error, UnreadResponseError | UnsupportedParameterError)
    )


def invalidate(calls: Sequence[Call]) -> None:
    """Report to run and node that the replies to these calls are unusable."""
    _, replies = _node.get() or ("", [])
    replies[:] = [sent for sent in replies if not any(sent[0] is call for call in calls)]
    (call_middleware.get() or _NO_RUN).invalidate(calls)


async def call_with_retry(
    call: Call, send: Send, policy: RetryPolicy, waits: Waits = _WAITS
) -> Reply:
    """Send a call until it succeeds, fails for good, or uses up its attempts or waiting time.

    Waits grow exponentially, with full jitter. A ``Retry-After`` is honoured up to ``max_wait``.

    Args:
        call: the call.
        send: makes one attempt; use ``with_timeout`` to limit its duration.
        policy: the number of attempts, and the waits between them.
        waits: receives a note of each wait.

    Raises:
        ModelCallError: the error of the last attempt.
    """
    if (own := call.model.serving.max_wait) is not None:
        policy = replace(policy, max_wait=min(own, policy.max_wait))
    attempts = 0
    late = 0
    unanswered = 0
    waited = 0.0
    while True:
        attempts += 1
        try:
            return await send(call)
        except ModelCallError as error:
            obstacle = ProviderFault(error).obstacle
            unanswered += bool(obstacle)
            if obstacle and waits.is_news(call.model.label, obstacle):
                noted = {"model": call.model.label, "advice": obstacle, "reason": str(error)}
                notices.warning("calls cannot succeed", extra=noted)
                # Nothing else explains the delay. A server's caller gets the error itself.
                if error.retryable and call_middleware.get() is None and policy.unanswered is None:
                    stuck = f"{call.model.label}: no call succeeds, and all wait: {error}"
                    warnings.warn(stuck, stacklevel=2)
            if not error.retryable:
                raise
            late += isinstance(error, NoReplyInTimeError)
            most_unanswered = policy.attempts if policy.unanswered is None else policy.unanswered
            has_tried = attempts >= policy.attempts or unanswered >= most_unanswered
            if has_tried or late >= policy.timeouts or waited >= policy.max_wait:
                spent = f" and {waited:,.0f} s of waiting" if waited >= 1 else ""
                problem = f"{error} (given up after {attempts} attempts{spent})"
                about = {"rate_limited": error.rate_limited, "may_be_billed": error.may_be_billed}
                raise TransientCallError(problem, **about) from error
            pause = min(_pause(policy, attempts, error.retry_after), policy.max_wait - waited)
            about_pause = {
                "attempt": attempts,
                "wait_seconds": round(pause, 3),
                "reason": str(error),
            }
            log.info("another attempt", extra={"model": call.model.label, **about_pause})
        with waits.noted(call.model.label, "next attempt", pause):
            await asyncio.sleep(pause)
        waited += pause


def _pause(policy: RetryPolicy, attempts: int, retry_after: float | None) -> float:
    """Return the seconds to wait after failed attempts; the last may have named a time."""
    # The exponent is limited, since a policy may have thousands of attempts.
    backoff = random.uniform(
        0.0, min(policy.first_wait * 2.0 ** min(attempts - 1, 60), policy.longest_wait)
    )
    if retry_after is None:
        return backoff
    # Jitter in addition to the provider's time, so that waiting calls do not return all at once.
    return max(0.0, min(retry_after, policy.longest_retry_after)) + 0.1 * backoff


class NoReplyInTimeError(TransientCallError):
    """Raised if an attempt took too long; its reply may still be billed."""


def with_timeout(send: Send, seconds: float) -> Send:
    """Limit the duration of an attempt; a time-out counts as a lost connection and is retried."""

    async def in_time(call: Call) -> Reply:
        try:
            async with asyncio.timeout(seconds) as limit:
                time_limit.set(limit)
                try:
                    return await send(call)
                finally:
                    # The limit refers to the task, whose context refers back to it: a reference
                    # cycle that includes the graph's step. Not reset by a token, which another
                    # context would refuse; an abandoned run is cleaned up in one.
                    time_limit.set(None)
        except TimeoutError as error:
            remedy = "if the model is slow, raise --timeout; if it does not come to an end, lower max_tokens"
            late = f"{call.model.label}: no reply within {seconds:g} seconds ({remedy}; the provider may bill it)"
            raise NoReplyInTimeError(late, may_be_billed=True) from error

    return in_time


async def attempt(call: Call) -> Reply:
    """Call the model once, without retries; a refused parameter is left out at once.

    Raises:
        UnsupportedParameterError: the provider does not support log-probabilities, or several
            replies to one request.
        ModelCallError: the call failed; the error has whether and when to try again.
        UnreadResponseError: the response could not be read.
    """
    if asyncio.get_running_loop() not in HELD:
        await hold_connections()
    model = call.model
    dropped = list[str]()
    before = NO_USAGE
    room = 1
    while True:
        choices = CHOICES in call.parameters and model.gives(CHOICES)
        form = model.form
        bounds = model.bounds
        limit = call.parameters.get(LIMIT, 0) * (LIMIT not in model.dropped)
        room = max(room, model.room)
        roomy = {**call.parameters, LIMIT: limit * room}
        sent = replace(call, parameters=roomy) if limit and room > 1 else call
        reply = await _reply_or_error(sent, form)
        if isinstance(reply, Exception):
            dropped.append(_parameter_to_drop(call, reply, form, bounds, choices, dropped))
            continue
        model.misformed = 0
        if (
            limit
            and reply.cut_off
            and (reply.reasoned or not without_reasoning(reply.text).strip())
        ):
            if room < ROOMS[-1]:
                room = ROOMS[ROOMS.index(room) + 1]
                log.info("more room for a reply", extra={"model": model.label, LIMIT: limit * room})
                before += reply.usage
                continue
            problem = f"{reply.problem} It had {limit * room:,} tokens, the most that are tried."
            reply = replace(reply, problem=problem)
        # Learned only if it helped: a model that never finishes gets no more room in other calls.
        elif limit and room > model.room:
            dropped.append(f"{REASONING}:{room}")
            model.drop(dropped[-1])
        if dropped or before.calls:
            return replace(reply, dropped=tuple(dropped), usage=before + reply.usage)
        return reply


async def draw_samples(call: Call, size: int) -> list[tuple[Call, Reply]]:
    """Get ``size`` replies to one call, each after its own call.

    The sample's number is part of a call's identity. The parameter ``n`` requests all of them, so
    that the prompt is paid once; missing ones are requested one by one.

    Raises:
        ModelCallError: like ``send``, the first in order, after all calls have ended.
    """
    model = call.model
    sampled: list[tuple[Call, Reply]] = []
    if size > 1 and model.gives(SEVERAL):
        request = _numbered(call, 1, {SEVERAL: size})
        # The provider may refuse the parameter; ``gives`` then returns False.
        with suppress(UnsupportedParameterError):
            first = await send(request)
            sampled = [(request, reply) for reply in [first, *first.others][:size]]
            if not first.others:
                # Some servers ignore the parameter silently.
                model.drop(SEVERAL, request.parameters)
            elif len(sampled) < size:
                few = "gave fewer replies to one request than asked for; the rest was requested"
                model.warn(f"{model.label} {few}")
    # With the same seed in every call, all samples would be identical.
    seed = getattr(model.chat, "seed", None)
    numbers = range(len(sampled) + 1, size + 1)
    calls = [_numbered(call, n, {} if seed is None else {"seed": seed + n - 1}) for n in numbers]
    # An exception is raised below, when all calls have ended, so that no paid call is abandoned.
    replies = await asyncio.gather(*map(send, calls), return_exceptions=True)
    for sent, reply in zip(calls, replies, strict=True):
        if isinstance(reply, BaseException):
            raise reply
        sampled.append((sent, reply))
    return sampled


def _numbered(call: Call, sample: int, more: Mapping[str, Any]) -> Call:
    """Return the call of a sample, with additional parameters."""
    metadata = {**call.metadata, "sample": sample}
    return replace(call, metadata=metadata, parameters={**call.parameters, **more})


MISFORMED_IN_A_ROW = 3
"""Consecutive failures of a provider to produce the requested form before it is relaxed."""


def _parameter_to_drop(
    call: Call, error: Exception, form: Form, bounds: Bounds, choices: bool, dropped: list[str]
) -> str:
    """Return the parameter to leave out after the provider refused it.

    ``form``, ``bounds`` and ``choices`` describe the failed request; other calls may have changed
    the model since.

    Raises:
        UnsupportedParameterError, ModelCallError: like ``attempt``, if the call failed for another
            reason.
    """
    fault = ProviderFault(error)
    model = call.model
    parameter = fault.rejected_parameter(call.parameters)
    if LIMIT in call.parameters and fault.counts_reply_into_context:
        # Prompt and longest reply together are too long. From now on the server's own limit
        # applies, because later prompts are hardly shorter, and each refusal costs a request.
        parameter = LIMIT
    if fault.misformed:
        model.misformed += 1
        parameter = STRUCTURE if model.misformed >= MISFORMED_IN_A_ROW else None
    if parameter == BOUNDS:
        # Only these two forms send a schema.
        schema = call.schema if form in ("schema", "tool") else None
        eased = None if schema is None else eased_bounds(schema, bounds)
        parameter = STRUCTURE if eased is None else f"{BOUNDS}:{eased}"
    if parameter == STRUCTURE:
        parameter = model.next_form(form) if call.schema is not None and form != "text" else None
    # Servers refuse such a schema in many wordings; other faults appear when the call is repeated
    # without it.
    if parameter is None and choices and fault.may_be_about_form:
        parameter = CHOICES
    agent = call.metadata.get("agent")
    who = f"{agent}, round {call.metadata.get('round')}: " if agent else ""
    problem = f"{who}{model.label}: {fault.summary()}"
    # A parameter that is refused again after it was left out would cause an endless loop.
    if parameter is None or parameter in dropped or not model.drop(parameter, call.parameters):
        if not fault.retryable:
            model.take_back(dropped)
        lasting = ContextOverflowError if fault.is_too_long else ModelCallError
        kind = TransientCallError if fault.retryable else lasting
        about = {
            name: getattr(fault, name) for name in ("rate_limited", "retry_after", "may_be_billed")
        }
        raise kind(problem, **about) from shown_cause(error)
    if parameter in (SEVERAL, LOGPROBS):
        raise UnsupportedParameterError(problem, parameter) from shown_cause(error)
    model.misformed = 0
    return parameter


async def _reply_or_error(call: Call, form: Form) -> Reply | Exception:
    """Return the reply to one request, or the exception of the provider's client."""
    started = time.perf_counter()
    # Raised outside of the ``except``, or Python would store that exception, including the key, as
    # the context of ours.
    try:
        messages = await _messages(call, form)
        tool = None if call.schema is None or form == "text" else call.schema["title"]
        seconds = time.perf_counter() - started
        return read_response(
            messages,
            call.model.label,
            seconds,
            tool,
            call.model.asked_name,
            with_tools=TOOLS in call.parameters,
        )
    # Neither is a fault of the provider; the first, from a batch's request handler, ends the run.
    except (StoppedError, UnreadResponseError):
        raise
    except Exception as error:
        return error


async def _messages(call: Call, form: Form) -> list[BaseMessage]:
    """Return all replies to one request; ``ainvoke`` would return only the first."""
    model = call.model
    wants_json = call.schema is not None and form != "text"
    schema = call.schema if wants_json else None
    cached = get_llm_cache() is not None or any(chat.cache for chat in model.chats)
    runnable = model.runnable(schema, call.parameters, not cached or is_first_of_its_kind(call))
    messages = [*call.messages]
    folded = SYSTEM in model.dropped
    if folded or form in ("json", "text"):
        messages = adapted(messages, call.schema, form, folded=folded)
    asked_in.set((call.messages, call.repeated))
    # A batch answers requests in any order, and its next wave comes after the cache has expired.
    if call.repeated and (marks := model.cache_marks) and request_handler.get() is None:
        prompt = next(
            message.text for message in call.messages if isinstance(message, HumanMessage)
        )
        messages = with_marks(messages, prompt, call.repeated, marks)
    # Bound arguments are passed on below; the chain of ``with_structured_output`` has none.
    chat = runnable
    options = dict[str, Any]()
    own_config = RunnableConfig()
    if isinstance(runnable, RunnableBinding):
        chat = runnable.bound
        options = {**runnable.kwargs}
        own_config = runnable.config
    complete = getattr(chat, "complete", None)
    if not isinstance(chat, BaseChatModel) or complete is None or own_config or _is_observed(chat):
        config = ensure_config({"metadata": dict(call.metadata)})
        if not isinstance(chat, BaseChatModel):
            return [await runnable.ainvoke(messages, config)]
        config = merge_configs(own_config, config)
        about: dict[str, Any] = {
            name: config.get(name) for name in ("callbacks", "tags", "metadata")
        }
        result = await chat.agenerate([messages], **about, **options)
        answers = [
            choice.message for choice in result.generations[0] if isinstance(choice, ChatGeneration)
        ]
        if all(map(is_empty, answers)) and (not answers or client_of(type(chat)).empty_if_unread):
            raise ResponseError("the response contains no reply", 200)
        return answers
    # Nothing observes the call, so skip LangChain's callbacks, which need more CPU than the call.
    completed: list[BaseMessage] = await complete(messages, **options)
    return completed


def _is_observed(chat: BaseChatModel) -> bool:
    """Return whether LangChain must observe this call: tracer, callback, stream, cache, limiter."""
    if chat.cache or chat.rate_limiter or getattr(chat, "streaming", False):
        return True
    # Only ``cache=None`` leaves the choice to LangChain's global cache; False means none.
    if chat.cache is None and get_llm_cache() is not None:
        return True
    of_run = (var_child_runnable_config.get() or {}).get("callbacks")
    if isinstance(of_run, BaseCallbackManager) and not (chat.callbacks or chat.verbose):
        # A graph looks for tracers when its run begins, and passes on all that it finds.
        return bool(of_run.handlers)
    return bool(AsyncCallbackManager.configure(of_run, chat.callbacks, chat.verbose).handlers)
