"""One call: what is sent, what comes back, when two calls are the same."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

import orjson
from langchain_core.messages import BaseMessage
from langchain_core.runnables.config import var_child_runnable_config

from ...state.errors import ModelCallError
from ...state.usage import Usage
from .loaded_model import LoadedModel


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
    """What came back from a model.

    Attributes:
        text: the words of the reply.
        fields: the JSON object of a structured reply.
        cut_off: whether a length limit ended it.
        refused: whether the model or a filter refused to answer.
        usage: what the request took; its ``calls`` are the requests that were answered, 0 for a recorded reply.
        tokens: what the provider says of each token where it was asked for log-probabilities (its own list, not
            copied).
        others: further replies to the same request. What the request took stands on the first reply alone.
        dropped: the parameters that the provider does not take, and without which this very call was asked again.
        model: who wrote it where that is not the model that was asked: the reply was recorded.
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

    def without_usage(self) -> Reply:
        """Return the same reply with no calls and tokens, for one that shares its request with another reply."""
        # An unknown price stays unknown: the whole request has it.
        return replace(self, usage=Usage(cost_usd=None if self.usage.cost_usd is None else 0.0))


class UnsupportedParameterError(ModelCallError):
    """The provider does not take what decides the shape of the reply: ``n`` or ``logprobs``.

    The model is not asked for it again; how to do without is for the caller to say.
    """

    def __init__(self, message: str, parameter: str) -> None:
        super().__init__(message)
        self.parameter = parameter


Send = Callable[[Call], Awaitable[Reply]]
"""What makes a call: one attempt, or whatever a run puts around it."""

SIZE = 16
"""Bytes: with a billion calls the chance of any two colliding is below 1e-20."""


def fingerprint(call: Call) -> bytes:
    """What identifies a call, as 16 bytes.

    Model and parameters, messages and schema; and whose voice it is: the agent's index within its role, the number
    of the sample and of the repeat. Two advocates who were told the same are two voices, not one paid once; but
    the first scorer of two protocols is the same agent.
    """
    about = call.metadata
    parts = (
        call.model.identity,
        [_message(message) for message in call.messages],
        call.schema,
        call.parameters,
        str(about.get("agent", "")).removeprefix(str(about.get("role", ""))),
        about.get("sample", 0),
        _repeat(),
        about if call.model.plays_roles else None,
    )
    return blake2b(_canonical(parts), digest_size=SIZE).digest()


def _message(message: BaseMessage) -> tuple[str, Any]:
    return message.type, message.content


def _repeat() -> int:
    """Which of several independent verdicts this is: those who repeat a judge mark all that happens inside."""
    config = var_child_runnable_config.get() or {}
    return int((config.get("metadata") or {}).get("repeat", 0))


def _canonical(parts: Any) -> bytes:
    return orjson.dumps(parts, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS, default=_plain)


def _plain(value: Any) -> Any:
    """Mappings and sequences of other kinds as plain ones; whatever else, as it is written."""
    if hasattr(value, "items"):
        return dict(value.items())
    return list(value) if isinstance(value, frozenset | set | range) else str(value)
