"""Send a call to its model: through the middleware of a run, if one is set, then to the provider."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, NamedTuple

from langchain_core.callbacks import AsyncCallbackManager, BaseCallbackManager
from langchain_core.globals import get_llm_cache
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration
from langchain_core.runnables import RunnableBinding, RunnableConfig, ensure_config
from langchain_core.runnables.config import var_child_runnable_config

from ...state.errors import ModelCallError, StoppedError, TransientCallError
from ...state.usage import NO_USAGE
from .call import Call, Reply, Send, UnreadResponseError, UnsupportedParameterError, is_first_of_its_kind
from .capabilities import (
    BOUNDS,
    CHOICES,
    LIMIT,
    LOGPROBS,
    REASONING,
    SEVERAL,
    STRUCTURE,
    Bounds,
    Form,
    adapted,
    eased_bounds,
    is_a,
    with_marks,
)
from .connections import hold_connections, request_handler
from .provider_errors import ProviderFault, ResponseError, shown_cause
from .responses import answered_by, is_empty, read_response
from .retry import DEFAULT_RETRY_POLICY, call_with_retry, with_timeout


class CallMiddleware:
    """Handle every model call made inside of it; this class only retries, subclasses add journal, limits and budget."""

    async def __call__(self, call: Call, send: Send) -> Reply:
        """Answer the call; ``send`` is one attempt at the provider."""
        return await call_with_retry(call, with_timeout(send, DEFAULT_RETRY_POLICY.timeout))

    def invalidate(self, calls: Sequence[Call]) -> None:
        """Take note that the replies to these calls could not be used, so that a later run asks for other ones."""


call_middleware: ContextVar[CallMiddleware | None] = ContextVar("call_middleware", default=None)
"""Set for the length of a run; tasks that are started inside inherit it."""
_NO_RUN = CallMiddleware()


async def send(call: Call) -> Reply:
    """Call the model and return its reply.

    Raises:
        UnsupportedParameterError: the provider gives no log-probabilities, or no several replies to one request.
        ModelCallError: the provider refused the call, or it failed for good.
        StoppedError: the run is ending and makes no more calls.
    """
    reply = await (call_middleware.get() or _NO_RUN)(call, attempt)
    if reply.served:
        # Of a reply from the journal too: its verdict is to say so in every start of a run.
        call.model.warn(f"{call.model.label} was answered by another model, {reply.served}")
    return reply


def invalidate(calls: Sequence[Call]) -> None:
    """Tell the run that the replies to these calls could not be used."""
    (call_middleware.get() or _NO_RUN).invalidate(calls)


async def attempt(call: Call) -> Reply:
    """Call the model once, without retries; a parameter that it refuses is left out at once.

    Raises:
        UnsupportedParameterError: the provider gives no log-probabilities, or no several replies to one request.
        ModelCallError: the call failed; the error says whether trying again makes sense, and when.
        UnreadResponseError: the response could not be read.
    """
    await hold_connections()
    model, dropped, before = call.model, list[str](), NO_USAGE
    while True:
        choices = CHOICES in call.parameters and model.gives(CHOICES)
        sent, limited = _Sent(model.form, model.bounds, choices), model.limits(call.parameters)
        reply = await _reply_or_error(call, sent.form)
        if isinstance(reply, Exception):
            if limited and ProviderFault.of(reply).counts_reply_into_context:
                # The prompt and the longest reply together are too much; the next prompt may be shorter.
                call = replace(call, parameters={k: v for k, v in call.parameters.items() if k != LIMIT})
            else:
                dropped.append(_parameter_to_drop(call, reply, sent, dropped))
            continue
        model.misformed = 0
        if limited and reply.reasoned:
            model.drop(REASONING)
            dropped.append(REASONING)
            if reply.cut_off:
                before += reply.usage
                continue
        if dropped or before.calls:
            return replace(reply, dropped=tuple(dropped), usage=before + reply.usage)
        return reply


MISFORMED_IN_A_ROW = 3
"""So often in a row a provider may fail to bring a model's words into the form that was asked for; then it is eased."""


class _Sent(NamedTuple):
    """Hold how one request was made; calls side by side may change the model's ways in the meantime."""

    form: Form
    bounds: Bounds
    choices: bool


def _parameter_to_drop(call: Call, error: Exception, sent: _Sent, dropped: list[str]) -> str:
    """Name the parameter that the provider refused, without which the model is asked again.

    Raises:
        UnsupportedParameterError, ModelCallError: as ``attempt``, where the call failed for another reason.
    """
    fault, model = ProviderFault.of(error), call.model
    parameter = fault.rejected_parameter(call.parameters)
    if fault.misformed:
        model.misformed += 1
        parameter = STRUCTURE if model.misformed >= MISFORMED_IN_A_ROW else None
    if parameter == BOUNDS:
        # A schema is sent with these two forms alone.
        schema = call.schema if sent.form in ("schema", "tool") else None
        eased = None if schema is None else eased_bounds(schema, sent.bounds)
        parameter = STRUCTURE if eased is None else f"{BOUNDS}:{eased}"
    if parameter == STRUCTURE:
        parameter = model.next_form(sent.form) if call.schema is not None and sent.form != "text" else None
    # Servers refuse such a schema in words of many kinds; what else was wrong shows when the call is made without it.
    if parameter is None and sent.choices and fault.may_be_about_form:
        parameter = CHOICES
    agent = call.metadata.get("agent")
    who = f"{agent}, round {call.metadata.get('round')}: " if agent else ""
    problem = f"{who}{model.label}: {fault.summary()}"
    # A parameter that is refused again after it was left out would be asked without for ever.
    if parameter is None or parameter in dropped or not model.drop(parameter, call.parameters):
        if not fault.retryable:
            model.take_back(dropped)
        kind = TransientCallError if fault.retryable else ModelCallError
        raise kind(
            problem,
            rate_limited=fault.rate_limited,
            retry_after=fault.retry_after,
            may_be_billed=fault.may_be_billed,
        ) from shown_cause(error, fault)
    if parameter in (SEVERAL, LOGPROBS):
        raise UnsupportedParameterError(problem, parameter) from shown_cause(error, fault)
    model.misformed = 0
    return parameter


async def _reply_or_error(call: Call, form: Form) -> Reply | Exception:
    """Return the reply to one request, or what the provider's client raised."""
    started = time.perf_counter()
    # Raised anew outside of the ``except``, or Python would keep that exception, key and all, as the context of ours.
    try:
        messages = await _messages(call, form)
        tool = None if call.schema is None or form == "text" else call.schema["title"]
        reply = read_response(messages, call.model.label, time.perf_counter() - started, tool)
        more = answered_by(messages[0].response_metadata, call.model.asked_name)
        return replace(reply, **more) if more else reply
    # The first is of a batch's handler of requests, which ends the run: neither is a fault of the provider's.
    except (StoppedError, UnreadResponseError):
        raise
    except Exception as error:
        return error


async def _messages(call: Call, form: Form) -> list[BaseMessage]:
    """Return all replies to one request, where ``ainvoke`` would return the first alone."""
    model, wants_json = call.model, call.schema is not None and form != "text"
    runnable = model.runnable(
        call.schema if wants_json else None, call.parameters, is_first_of_its_kind(call)
    )
    messages = adapted(call.messages, call.schema, form, folded=model.folds_system)
    # The requests of a batch are answered in any order, and the next wave comes when a cache has been given up.
    if call.repeated and request_handler() is None and (marks := model.cache_marks):
        prompt = next(message.text for message in call.messages if isinstance(message, HumanMessage))
        messages = with_marks(messages, prompt, call.repeated, marks)
    # Bound parameters are passed as keywords below; a chain, as ``with_structured_output`` makes it, has none.
    chat, options = (
        (runnable.bound, runnable.kwargs) if isinstance(runnable, RunnableBinding) else (runnable, {})
    )
    complete = getattr(chat, "complete", None)
    if not isinstance(chat, BaseChatModel) or complete is None or _is_observed(chat):
        config = ensure_config({"metadata": dict(call.metadata)})
        if not isinstance(chat, BaseChatModel):
            return [await runnable.ainvoke(messages, config)]
        return await _generated(chat, messages, options, config)
    # Nobody observes the call, so it skips LangChain's callbacks, which take more CPU than the call itself.
    answers: list[BaseMessage] = await complete(messages, **options)
    return answers


async def _generated(
    chat: BaseChatModel, messages: Sequence[BaseMessage], options: Mapping[str, Any], config: RunnableConfig
) -> list[BaseMessage]:
    result = await chat.agenerate(
        [list(messages)],
        callbacks=config.get("callbacks"),
        tags=config.get("tags"),
        metadata=config.get("metadata"),
        **options,
    )
    answers = [choice.message for choice in result.generations[0] if isinstance(choice, ChatGeneration)]
    if not answers or (is_a(chat, "ChatGoogleGenerativeAI") and all(map(is_empty, answers))):
        raise ResponseError("the response holds no reply", 200)
    return answers


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
