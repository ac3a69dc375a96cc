"""Define a model call and its reply, and the fingerprint by which two calls are the same."""

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
from .loaded_model import LoadedModel


@dataclass(frozen=True)
class Call:
    """Describe one request to a model, and the agent that makes it.

    Attributes:
        model: the model that is asked.
        messages: the prompt.
        schema: the JSON schema of the reply; None for plain text.
        metadata: agent, role, round and more about the asking agent; traces show it, and some of it is part of the
            fingerprint.
        parameters: the parameters of this call alone: ``temperature``, ``n`` (several replies to one request),
            ``logprobs`` with ``top_logprobs``, ``max_tokens`` (the default limit, where nobody has set one).
        repeated: where in the user's first message those parts end that later calls repeat from the beginning on;
            marked for providers that cache only what is marked (``capabilities.py``), and no part of the fingerprint.
    """

    model: LoadedModel
    messages: Sequence[BaseMessage]
    schema: dict[str, Any] | None
    metadata: Mapping[str, Any]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    repeated: tuple[int, ...] = ()


@dataclass(frozen=True)
class Reply:
    """Hold what a model replied.

    Attributes:
        text: the words of the reply as they came, with reasoning that the provider left among them.
        fields: the JSON object that the whole reply is, or the arguments of the tool that was offered.
        cut_off: whether a length limit ended it.
        refused: whether the model or a filter refused to answer.
        filtered: whether it was a filter of the provider's.
        problem: why a reply is not complete, and what may help, in one sentence; empty where it is.
        usage: calls, tokens, cost and time of the request; its ``calls`` are the requests that were answered, 0 for a
            recorded reply.
        tokens: what the provider says of each token where it was asked for log-probabilities (its own list, not
            copied).
        others: further replies to the same request; the usage of the request is on the first reply alone.
        dropped: the parameters that the provider refused, and without which this very call was made again.
        model: the model that wrote it where that is not the model that was asked: the reply was recorded.
        served: the model that the provider says it answered with, where it is another one than was asked for.
        system_fingerprint: the provider's mark of the configuration that answered, where it sends one.
        reasoned: whether the model is known to have reasoned before it answered.
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

    def without_usage(self) -> Reply:
        """Return the same reply with no calls and tokens, for one that shares its request with another reply."""
        # An unknown price stays unknown: the whole request has it.
        return replace(self, usage=Usage(cost_usd=None if self.usage.cost_usd is None else 0.0))


class UnsupportedParameterError(ModelCallError):
    """Raised where a provider does not take a parameter that decides the shape of the reply: ``n`` or ``logprobs``.

    The model is not asked for it again; the caller decides how to do without.
    """

    # With a default, since an error that was sent to another process is made again of its message alone.
    def __init__(self, message: str, parameter: str = "") -> None:
        super().__init__(message)
        self.parameter = parameter


class UnreadResponseError(ModelCallError):
    """Raised where a response came and reading it failed, which is a fault of this program and not of the reply.

    Attributes:
        messages: the response as the client gave it, which has been paid for.
        seconds: how long it took.
        tool: the tool that was offered to answer with.
    """

    # With defaults, as above.
    def __init__(
        self, message: str, messages: Sequence[BaseMessage] = (), seconds: float = 0, tool: str | None = None
    ) -> None:
        super().__init__(message)
        self.messages, self.seconds, self.tool = messages, seconds, tool


asked_in: ContextVar[tuple[Sequence[BaseMessage], tuple[int, ...]]] = ContextVar("asked_in", default=((), ()))
"""The messages of the call under way, and where in them those parts end that later calls of its debate repeat."""

Send = Callable[[Call], Awaitable[Reply]]
"""A function that makes a call: one attempt, or all that a run puts around it."""

SIZE = 16
"""Bytes of a fingerprint: with a billion calls the chance of any two colliding is below 1e-20."""
AT_ONCE = 2000
"""Bytes that are hashed at once."""


def fingerprint(call: Call) -> bytes:
    """Return what identifies a call, as 16 bytes.

    It covers model and parameters, messages and schema, and who asks: the agent's index within its role, the number
    of the sample and of the repeat. Two advocates with the same prompt are two calls, so that they may differ; the
    first scorers of two protocols are one agent, so that a call which both make is paid once.
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
        # The offline judge and scripted models answer by the metadata, so all of it decides their reply.
        about if call.model.plays_roles else None,
    )
    # Keys are sorted, since a schema or parameters in another order are still the same call.
    data = orjson.dumps(parts, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS, default=_plain)
    hashed = blake2b(digest_size=SIZE)
    # In pieces: of more bytes hashlib gives other threads their turn, and then waits for its own to come again.
    for start in range(0, len(data), AT_ONCE):
        hashed.update(data[start : start + AT_ONCE])
    return hashed.digest()


def is_first_of_its_kind(call: Call) -> bool:
    """Tell whether no other agent, sample or repeat of the same question comes before this call.

    LangChain's cache knows messages and parameters alone, and would answer the others with the first one's reply.
    """
    index = set(_index(call.metadata).split("_"))
    return index <= {"", "1"} and call.metadata.get("sample", 0) <= 1 and not _repeat()


def _index(about: Mapping[str, Any]) -> str:
    """Return the index of an agent within its role: of ``advocate_1`` in the role ``advocate`` this leaves ``_1``."""
    return str(about.get("agent", "")).removeprefix(str(about.get("role", "")))


def _repeat() -> int:
    """Return the number of the independent verdict that is being made."""
    # A repeated judge marks its runs in the metadata of LangChain's config, which all calls inside inherit.
    config = var_child_runnable_config.get() or {}
    return int((config.get("metadata") or {}).get("repeat", 0))


def _plain(value: Any) -> Any:
    """Return mappings and collections of other kinds as plain ones, anything else as text."""
    if hasattr(value, "items"):
        return dict(value.items())
    return list(value) if isinstance(value, frozenset | set | range) else str(value)
