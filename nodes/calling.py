"""One call of a chat model: what was sent, what came back, what it cost."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration
from langchain_core.runnables import RunnableBinding, ensure_config

from ..state.errors import ModelCallError
from . import prices
from .models import DROPPABLE, LOGPROBS, SEVERAL, STRUCTURE, LoadedModel

CUT_OFF = {"length", "max_tokens", "model_length"}
BLOCKED = {"content_filter", "safety", "recitation", "blocklist", "prohibited_content", "spii", "refusal"}


@dataclass(frozen=True)
class Call:
    """What goes out. Who asks is part of it: two agents told the same are two voices.

    ``parameters`` are those of this call alone: ``temperature``, ``n`` (several replies to one request),
    ``logprobs`` with ``top_logprobs``.
    """

    model: LoadedModel
    messages: Sequence[BaseMessage]
    schema: dict[str, Any] | None
    metadata: Mapping[str, Any]
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Reply:
    """What came back.

    ``fields`` holds the JSON object of a structured reply, ``tokens`` what the provider says of each token where
    it was asked for log-probabilities (its own list, not copied). ``others`` are the further replies to the same
    request; what the request took stands on the first, and ``requests`` is 0 for the others.
    """

    text: str
    fields: dict[str, Any] | None
    cut_off: bool
    refused: bool
    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cost_usd: float | None
    seconds: float
    tokens: Sequence[Mapping[str, Any]] | None = None
    others: tuple[Reply, ...] = ()
    requests: int = 1


class NotTakenError(ModelCallError):
    """The provider does not take what decides the shape of the reply: ``n`` or ``logprobs``.

    The model is not asked for it again; how to do without is for the caller to say.
    """

    def __init__(self, message: str, parameter: str) -> None:
        super().__init__(message)
        self.parameter = parameter


Send = Callable[[Call], Awaitable[Reply]]

around_calls: ContextVar[Callable[[Call, Send], Awaitable[Reply]] | None] = ContextVar(
    "around_calls", default=None
)
"""What every model call of a run passes through (a limiter, say); set by whoever runs many graphs."""


async def send(call: Call) -> Reply:
    """Call the model, through whatever is set up around calls.

    Raises:
        NotTakenError: the provider gives no log-probabilities, or no several replies to one request.
        ModelCallError: the provider refused the call, or it failed for good.
    """
    around = around_calls.get()
    return await (around(call, _send) if around else _send(call))


async def _send(call: Call) -> Reply:
    schema, dropped = call.schema if call.model.structured else None, set[str]()
    await call.model.hold()
    while True:
        started = time.perf_counter()
        try:
            messages = await _messages(call, schema)
        except Exception as error:
            fault = ProviderFault.of(error)
            parameter = fault.rejected_parameter(call.parameters)
            problem = f"{_who(call)}{call.model.label}: {fault.summary()}"
            if parameter is None or parameter in dropped or not call.model.drop(parameter, call.parameters):
                raise ModelCallError(problem) from error
            if parameter in SHAPING:
                raise NotTakenError(problem, parameter) from error
            dropped.add(parameter)
            schema = schema if call.model.structured else None
        else:
            return _replies(messages, call.model.label, time.perf_counter() - started)


async def _messages(call: Call, schema: dict[str, Any] | None) -> list[BaseMessage]:
    """The replies to one request; ``ainvoke`` hands out the first alone."""
    runnable = call.model.runnable(schema, call.parameters)
    if not isinstance(runnable, RunnableBinding) or call.parameters.get(SEVERAL, 1) == 1:
        return [await runnable.ainvoke(list(call.messages), config={"metadata": dict(call.metadata)})]
    assert isinstance(runnable.bound, BaseChatModel)
    config = ensure_config({"metadata": dict(call.metadata)})
    result = await runnable.bound.agenerate(
        [list(call.messages)],
        callbacks=config.get("callbacks"),
        tags=config.get("tags"),
        metadata=config.get("metadata"),
        **runnable.kwargs,
    )
    return [one.message for one in result.generations[0] if isinstance(one, ChatGeneration)]


@dataclass(frozen=True)
class ProviderFault:
    """What a provider's client raised, in terms that all of them share."""

    status: int | None
    message: str
    parameter: str | None

    @classmethod
    def of(cls, error: BaseException) -> ProviderFault:
        """Read status and rejected parameter off an exception or its cause."""
        seen = [error, *([error.__cause__] if error.__cause__ else [])]
        codes = (getattr(e, name, None) for e in seen for name in ("status_code", "code"))
        status = next((code for code in codes if isinstance(code, int)), None)
        bodies = (getattr(e, "body", None) for e in seen)
        parameter = next((body.get("param") for body in bodies if isinstance(body, dict)), None)
        return cls(
            status, f"{type(error).__name__}: {error}", parameter if isinstance(parameter, str) else None
        )

    def rejected_parameter(self, sent: Mapping[str, Any]) -> str | None:
        """The parameter that the provider does not take, where it is one that can be done without.

        A parameter whose *value* is refused (too large, say) is the caller's to mend, and stays; but the number of
        replies to a request and that of log-probabilities are no caller's choice.
        """
        if (shaping := self._rejected_shape(sent)) is not None:
            return shaping
        if self.status not in {400, 422}:
            return None
        message = _snake(self.message)
        named = [self.parameter] if self.parameter else re.findall(r"[a-z_]+", message)
        if _NO_JSON.search(message):
            named = [STRUCTURE]
        found = {_STRUCTURE_NAMES.get(name, name) for name in (_snake(n).partition(".")[0] for n in named)}
        rejected = next((name for name in DROPPABLE if name in found), None)
        unsupported = _UNSUPPORTED.search(message) or (self.parameter and rejected == STRUCTURE)
        return rejected if unsupported else None

    def _rejected_shape(self, sent: Mapping[str, Any]) -> str | None:
        """``n`` or ``logprobs`` where it was sent and the refusal, in whatever words, is about it."""
        if self.status not in {400, 403, 422}:
            return None
        for name, spoken_of in SHAPING.items():
            named = self.parameter is not None and spoken_of.fullmatch(f"'{self.parameter}'")
            if name in sent and (named or spoken_of.search(self.message)):
                return name
        return None

    def summary(self) -> str:
        """One line for people, with the remedy where there is one."""
        advice = _ADVICE.get(self.status or 0, "")
        line = " ".join(self.message.split())
        return f"{line[:500]}{f' ({advice})' if advice else ''}"


SHAPING = {
    LOGPROBS: re.compile(r"['\"`]?(?:response_?)?(?:top_)?log_?probs['\"`]?", re.IGNORECASE),
    SEVERAL: re.compile(r"['\"`]n['\"`]|\bn (?:must|should|is|>|=)|multiple (?:choices|completions)"),
}
"""What decides the shape of a reply, and how a refusal speaks of it."""

_ADVICE = {
    401: "the key was refused: check it",
    403: "the key has no access to this model",
    404: "no such model, or a wrong base URL",
    429: "rate limit or quota: lower --concurrency, or look at your plan",
}


_UNSUPPORTED = re.compile(
    r"unsupported|not (?:\w+ )?supported|(?:not|n't) support|unknown (?:name|parameter|field|argument)|unrecognized"
    r"|unexpected keyword|cannot find field|only the default|not (?:permitted|allowed|enabled|available)|deprecated"
)
_NO_JSON = re.compile(
    r"(?:json mode|json schema|structured outputs?|function calling|tool use) (?:is|are) not"
)
_STRUCTURE_NAMES = {
    **dict.fromkeys(("tools", "tool_choice", "response_schema", "response_json_schema"), STRUCTURE),
    **dict.fromkeys(("response_mime_type", "json_schema"), STRUCTURE),
    **dict.fromkeys(("max_completion_tokens", "max_output_tokens"), "max_tokens"),
}


def _snake(message: str) -> str:
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", message).lower()


def _who(call: Call) -> str:
    agent = call.metadata.get("agent")
    return f"{agent}, round {call.metadata.get('round')}: " if agent else ""


def _replies(messages: Sequence[BaseMessage], label: str, seconds: float) -> Reply:
    """The first reply with what the request took, the others behind it."""
    first, *others = (_reply(message, label, seconds) for message in messages)
    return replace(first, others=tuple(map(_free, others)))


def _free(reply: Reply) -> Reply:
    """The same words, and nothing that its request took."""
    return replace(
        reply,
        input_tokens=0,
        cached_input_tokens=0,
        output_tokens=0,
        reasoning_tokens=0,
        cost_usd=None if reply.cost_usd is None else 0.0,
        seconds=0.0,
        requests=0,
    )


def _reply(message: BaseMessage, label: str, seconds: float) -> Reply:
    usage = getattr(message, "usage_metadata", None) or {}
    cached = (usage.get("input_token_details") or {}).get("cache_read") or 0
    tokens = (usage.get("input_tokens", 0), cached, usage.get("output_tokens", 0))
    finish = str(message.response_metadata.get("finish_reason") or "").lower()
    refusal = message.additional_kwargs.get("refusal")
    return Reply(
        text=str(refusal or message.text) or _arguments(message),
        fields=_fields(message),
        cut_off=finish in CUT_OFF,
        refused=bool(refusal) or finish in BLOCKED or _prompt_blocked(message),
        input_tokens=tokens[0],
        cached_input_tokens=tokens[1],
        output_tokens=tokens[2],
        reasoning_tokens=(usage.get("output_token_details") or {}).get("reasoning") or 0,
        cost_usd=prices.cost_usd(label, *tokens) if usage or label == "offline" else None,
        seconds=seconds,
        tokens=_tokens(message),
    )


def _tokens(message: BaseMessage) -> Sequence[Mapping[str, Any]] | None:
    logprobs = message.response_metadata.get("logprobs")
    tokens = logprobs.get("content") if isinstance(logprobs, dict) else None
    return tokens if isinstance(tokens, list) and tokens else None


def _prompt_blocked(message: BaseMessage) -> bool:
    """Gemini answers a prompt that it will not take with no candidate at all."""
    feedback = message.response_metadata.get("prompt_feedback") or {}
    return isinstance(feedback, dict) and bool(feedback.get("block_reason"))


def _arguments(message: BaseMessage) -> str:
    """What a model that answers by function call has written, readable or not."""
    if not isinstance(message, AIMessage):
        return ""
    broken = [str(call["args"]) for call in message.invalid_tool_calls]
    return "\n".join([*(json.dumps(call["args"]) for call in message.tool_calls), *broken])


_FENCED = re.compile(r"[^{}`]{0,200}```(?:json)?\s*(\{.*\})\s*```\s*", re.DOTALL)


def _fields(message: BaseMessage) -> dict[str, Any] | None:
    if isinstance(message, AIMessage) and message.tool_calls:
        return dict(message.tool_calls[0]["args"])
    text = str(message.text).strip()
    fenced = _FENCED.fullmatch(text)
    try:
        value = json.loads(fenced[1] if fenced else text) if fenced or text.startswith("{") else None
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
