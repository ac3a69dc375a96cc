"""Send a call to its model: through the middleware of a run, if one is set, then to the provider."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from langchain_core.callbacks import AsyncCallbackManager, BaseCallbackManager
from langchain_core.globals import get_llm_cache
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration
from langchain_core.runnables import RunnableBinding, RunnableConfig, ensure_config
from langchain_core.runnables.config import var_child_runnable_config

from ...state.errors import ModelCallError, StoppedError, TransientCallError
from ...state.redaction import redact
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
from .loaded_model import LoadedModel
from .model_chains import WRITER
from .provider_errors import ProviderFault, ResponseError, shown_cause
from .response_parsing import is_empty, replies
from .retry import DEFAULT_RETRY_POLICY, call_with_retry, with_timeout
from .served_model import is_another, served_name


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
    dropped: list[str] = []
    before = NO_USAGE
    while True:
        choices = CHOICES in call.parameters and call.model.gives(CHOICES)
        sent, limited = _Sent(call.model.form, call.model.bounds, choices), call.model.limits(call.parameters)
        answered = await _reply_or_error(call, sent.form)
        if isinstance(answered, Exception):
            if limited and ProviderFault.of(answered).counts_reply_into_context:
                # The prompt and the longest reply together are too much; the next prompt may be shorter.
                call = replace(call, parameters={k: v for k, v in call.parameters.items() if k != LIMIT})
            else:
                dropped.append(_parameter_to_drop(call, answered, sent, dropped))
            continue
        call.model.misformed = 0
        if limited and answered.reasoned:
            call.model.drop(REASONING)
            dropped.append(REASONING)
            if answered.cut_off:
                before += answered.usage
                continue
        if dropped or before.calls:
            answered = replace(answered, dropped=tuple(dropped), usage=before + answered.usage)
        return answered


def read_response(
    messages: Sequence[BaseMessage], label: str, seconds: float, tool: str | None = None
) -> Reply:
    """Read the response to one request; ``label`` names the model that gave it, ``seconds`` how long it took.

    ``tool`` is the one that was offered to answer with.

    Raises:
        ResponseError: it holds no reply, by the provider's own word.
        UnreadResponseError: it could not be read; the error has the response, so that a run can keep it.
    """
    # A fallback may have written the reply.
    writer = messages[0].response_metadata.pop(WRITER, label)
    try:
        reply = replies(messages, writer, seconds, tool)
        return reply if writer == label else replace(reply, model=writer)
    except ResponseError:
        raise
    except Exception as error:
        problem = f"{label}: the response came, but could not be read: {redact(repr(error))}"
        raise UnreadResponseError(problem, messages, seconds, tool) from error


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
    problem = f"{_who(call)}{model.label}: {fault.summary()}"
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
        more = _answered_by(call.model, messages[0].response_metadata)
        return replace(reply, **more) if more else reply
    # The first is of a batch's handler of requests, which ends the run: neither is a fault of the provider's.
    except (StoppedError, UnreadResponseError):
        raise
    except Exception as error:
        return error


def _answered_by(model: LoadedModel, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a response says about who answered, by field of the reply."""
    served, mark, asked = served_name(metadata), metadata.get("system_fingerprint"), model.asked_name
    found = {"served": _shown(served)} if served and asked and is_another(asked, served) else {}
    return {**found, "system_fingerprint": _shown(mark)} if isinstance(mark, str) and mark else found


@lru_cache(maxsize=64)
def _shown(words: str) -> str:
    """Redact and cut the provider's words, which are the same in most of its replies."""
    return redact(words)[:200]


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
    answered: list[BaseMessage] = await complete(messages, **options)
    return answered


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
    found = [one.message for one in result.generations[0] if isinstance(one, ChatGeneration)]
    if not found or (is_a(chat, "ChatGoogleGenerativeAI") and all(map(is_empty, found))):
        raise ResponseError("the response holds no reply", 200)
    return found


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


def _who(call: Call) -> str:
    agent = call.metadata.get("agent")
    return f"{agent}, round {call.metadata.get('round')}: " if agent else ""
