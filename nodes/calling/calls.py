"""One call of a chat model: what is sent, what comes back, what it cost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage

from ...state.errors import ModelCallError
from .models import LoadedModel


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
    request; what the request took stands on the first, and ``requests`` is 0 for the others. ``dropped`` are the
    parameters without which this very call was asked again, since the provider does not take them. ``model`` names
    who wrote it where that is another than the one that was asked: the reply was recorded.
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
    dropped: tuple[str, ...] = ()
    model: str | None = None


class NotTakenError(ModelCallError):
    """The provider does not take what decides the shape of the reply: ``n`` or ``logprobs``.

    The model is not asked for it again; how to do without is for the caller to say.
    """

    def __init__(self, message: str, parameter: str) -> None:
        super().__init__(message)
        self.parameter = parameter


Send = Callable[[Call], Awaitable[Reply]]
"""What makes a call: one attempt, or whatever a run puts around it."""
