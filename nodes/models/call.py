"""Define a model call, its reply, and the fingerprint that identifies equal calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

import orjson
from langchain_core.messages import BaseMessage
from langchain_core.runnables.config import var_child_runnable_config

from ...state.errors import ModelCallError
from ...state.transcript import Usage
from ..replies import Rule
from .loaded_model import LoadedModel


@dataclass(frozen=True)
class Call:
    """Describe one request to a model, and the agent that makes it.

    Attributes:
        model: the model that is asked.
        messages: the prompt.
        schema: the JSON schema of the reply; None for plain text.
        metadata: agent, role, round and more about the asking agent; traces show it, and some of it
            is part of the fingerprint.
        parameters: the parameters of this call alone: ``temperature``, ``n`` (several replies to
            one request), ``logprobs`` with ``top_logprobs``, ``max_tokens`` (the default limit,
            where nobody has set one), ``tools`` (the tools that the model may call).
        repeated: the ends of the parts of the user's first message that later calls repeat from the
            beginning. They are marked for providers that cache only marked text
            (``capabilities.py``), and are not part of the fingerprint.
        fenced: the messages with fences, if ``messages`` have none (``fences=off``). From them,
            readers know the texts that the agent was shown, and the offline judge its task.
    """

    model: LoadedModel
    messages: Sequence[BaseMessage]
    schema: dict[str, Any] | None
    metadata: Mapping[str, Any]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    repeated: tuple[int, ...] = ()
    fenced: Sequence[BaseMessage] = ()

    @property
    def marked(self) -> Sequence[BaseMessage]:
        """The messages with fences."""
        return self.fenced or self.messages


@dataclass(frozen=True)
class Reply:
    """A model's reply.

    Attributes:
        text: the text of the reply as it came, including reasoning that the provider left in it.
        fields: the JSON object that is the whole reply, or the arguments of the offered tool.
        cut_off: whether a length limit ended it.
        refused: whether the model or a filter refused to answer.
        filtered: whether a filter of the provider refused it.
        problem: why a reply is incomplete and how to avoid that, in one sentence; else empty.
        usage: calls, tokens, cost and time of the request; its ``calls`` are the requests that were
            answered, 0 for a recorded reply.
        tokens: the provider's log-probabilities per token, if requested (its own list, not a copy).
        others: further replies to the same request; only the first reply carries the usage.
        dropped: the parameters that the provider refused; this call was repeated without them.
        model: the model that wrote a recorded reply, if it is not the model that was asked.
        served: the model that the provider reports, if it is not the requested one.
        system_fingerprint: the provider's identifier of its configuration, if it sends one.
        reasoned: whether the model is known to have reasoned before it answered.
        rule: how a recorded reply to another program's prompt states its value.
        tool_calls: the calls of the tools in ``Call.parameters``: ``name``, and ``args`` or, for
            arguments that are not JSON, their text as ``invalid``.
    """

    text: str
    fields: dict[str, Any] | None
    cut_off: bool
    refused: bool
    usage: Usage
    tokens: Sequence[Mapping[str, Any]] | None = None
    others: tuple[Reply, ...] = ()
    dropped: tuple[str, ...] = ()
    model: str | None = None
    filtered: bool = False
    problem: str = ""
    served: str | None = None
    system_fingerprint: str | None = None
    reasoned: bool = False
    rule: Rule | None = None
    tool_calls: tuple[Mapping[str, Any], ...] = ()

    def without_usage(self) -> Reply:
        """Return the same reply without calls and tokens; another reply counts the request."""
        # An unknown price stays unknown: the whole request has it.
        return replace(self, usage=Usage(cost_usd=None if self.usage.cost_usd is None else 0.0))


class UnsupportedParameterError(ModelCallError):
    """Raised if a provider rejects a parameter that shapes the reply: ``n`` or ``logprobs``.

    The model is not sent this parameter again. The caller decides how to do without it.
    """

    # The default is needed because another process recreates the error from its message alone.
    def __init__(self, message: str, parameter: str = "") -> None:
        super().__init__(message)
        self.parameter = parameter


class UnreadResponseError(ModelCallError):
    """Raised if a response came but this program failed to read it.

    Attributes:
        messages: the response as the client returned it; it has been paid for.
        seconds: the duration of the request.
        tool: the tool that was offered for the answer.
        with_tools: whether the model was offered tools to call before its answer.
    """

    # With defaults, as above.
    def __init__(
        self,
        message: str,
        messages: Sequence[BaseMessage] = (),
        seconds: float = 0,
        tool: str | None = None,
        with_tools: bool = False,
    ) -> None:
        super().__init__(message)
        self.messages = messages
        self.seconds = seconds
        self.tool = tool
        self.with_tools = with_tools


asked_in: ContextVar[tuple[Sequence[BaseMessage], tuple[int, ...]]] = ContextVar(
    "asked_in", default=((), ())
)
"""The messages of the current call, and the ends of the parts that later calls of its debate
repeat."""

session_key: ContextVar[str] = ContextVar("session_key", default="")
"""The item that calls are made for, as a digest; empty outside of runs.

Providers and routers keep calls with one key on one machine, whose cache has read the item. It is not
part of a call's identity.
"""

Send = Callable[[Call], Awaitable[Reply]]
"""A function that makes a call: one attempt, or an attempt with everything that a run adds."""

SIZE = 16
"""Bytes of a fingerprint: with a billion calls the chance of any two colliding is below 1e-20."""
AT_ONCE = 2000
"""Bytes that are hashed at once."""


def fingerprint(call: Call) -> bytes:
    """Return the identity of a call as 16 bytes.

    It covers model, parameters, messages, schema and the asking agent: its index within its role,
    the number of the sample and of the repeat. Two advocates with the same prompt are two calls, so
    that they may differ. The first scorers of two protocols are the same agent, so that a call that
    both make is paid once.
    """
    about = call.metadata
    parts = (
        call.model.identity,
        [(message.type, message.content) for message in call.messages],
        call.schema,
        call.parameters,
        _index(about),
        about.get("sample", 0),
        _repeat(),
        # The offline judge and scripted models reply according to the metadata, so all of it
        # counts.
        about if call.model.plays_roles else None,
    )
    # Keys are sorted, since a schema or parameters in another order are still the same call.
    data = orjson.dumps(
        parts, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS, default=_plain
    )
    hashed = blake2b(digest_size=SIZE)
    # In pieces: for larger input hashlib releases the GIL and then waits to get it back.
    for start in range(0, len(data), AT_ONCE):
        hashed.update(data[start : start + AT_ONCE])
    return hashed.digest()


def is_first_of_its_kind(call: Call) -> bool:
    """Return whether this call comes before other agents, samples and repeats of the same question.

    LangChain's cache compares messages and parameters only, so it would answer the other calls with
    the first one's reply.
    """
    index = set(_index(call.metadata).split("_"))
    return index <= {"", "1"} and call.metadata.get("sample", 0) <= 1 and not _repeat()


def _index(about: Mapping[str, Any]) -> str:
    """Return an agent's index within its role: ``_1`` for ``advocate_1`` in role ``advocate``."""
    return str(about.get("agent", "")).removeprefix(str(about.get("role", "")))


def _repeat() -> int:
    """Return the number of the current independent verdict."""
    # A repeated judge marks its runs in the metadata of LangChain's config, which all calls inside
    # inherit.
    config = var_child_runnable_config.get() or {}
    return int((config.get("metadata") or {}).get("repeat", 0))


def _plain(value: Any) -> Any:
    """Return mappings and collections of other kinds as plain ones, anything else as text."""
    if hasattr(value, "items"):
        return dict(value.items())
    return list(value) if isinstance(value, frozenset | set | range) else str(value)
