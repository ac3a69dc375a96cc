"""What a journal holds: calls with what they cost, their sum, and the provider's batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Entry:
    """One finished call.

    Attributes:
        model: the name of the model.
        reply: the whole reply, as JSON.
        requests: how many requests it took at the provider.
        input_tokens: tokens sent, those from the provider's cache among them.
        cached_input_tokens: how many of them came from the provider's cache.
        output_tokens: tokens received, those of reasoning among them.
        reasoning_tokens: how many of them were reasoning.
        cost_usd: its price; ``None`` where it is unknown.
        seconds: how long it took.
    """

    model: str
    reply: bytes
    requests: int
    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cost_usd: float | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Totals:
    """What calls cost together; ``cost_usd`` is ``None`` as soon as one call's price is unknown.

    >>> call = Entry("m", b"{}", 1, 100, 0, 20, 0, 0.002, 1.5)
    >>> Totals().plus(call).plus(call).cost_usd
    0.004
    """

    calls: int = 0
    requests: int = 0
    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float | None = 0.0

    def plus(self, entry: Entry) -> Totals:
        """The totals with one more call."""
        unknown = self.cost_usd is None or entry.cost_usd is None
        return Totals(
            self.calls + 1,
            self.requests + entry.requests,
            self.input_tokens + entry.input_tokens,
            self.cached_input_tokens + entry.cached_input_tokens,
            self.output_tokens + entry.output_tokens,
            self.reasoning_tokens + entry.reasoning_tokens,
            None if unknown else (self.cost_usd or 0.0) + (entry.cost_usd or 0.0),
        )


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of calls that a provider has, and that may outlive the process which sent it.

    Attributes:
        id: the provider's name for it.
        run: the run that sent it.
        settled: whether all its replies are in the journal, or given up.
        created: seconds since 1970, by the database's clock.
        about: whatever its sender needs to go on with it.
    """

    id: str
    run: str
    settled: bool
    created: int
    about: Mapping[str, Any]
