"""An estimate: calls, tokens and dollars of a run, by protocol and model, between least and most."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ...state.call_counts import CallRange, Range


@dataclass(frozen=True)
class Part:
    """What a run asks of one model for one protocol; or of several, where they are added up.

    Attributes:
        calls: requests that are answered.
        input_tokens: tokens of all prompts.
        output_tokens: tokens of all replies.
        cost_usd: dollars; ``None`` where a price is unknown.
    """

    protocol: str
    model: str
    calls: CallRange
    input_tokens: CallRange
    output_tokens: CallRange
    cost_usd: Range[float] | None


@dataclass(frozen=True)
class Estimate:
    """What a run will take.

    Attributes:
        verdicts: verdicts that are still to be made, by protocol.
        parts: what it takes, by protocol and model.
        rehearsed: verdicts a protocol that the tokens were measured on.
    """

    verdicts: Mapping[str, int]
    parts: tuple[Part, ...]
    rehearsed: int

    @property
    def total(self) -> Part:
        """All protocols and models together."""
        return added(self.parts)

    def discounted(self, share: float) -> Estimate:
        """The same where calls cost a share of the usual price."""
        return replace(self, parts=tuple(_discounted(part, share) for part in self.parts))

    def of(self, protocol: str) -> Part:
        """All models of one protocol together."""
        return added([part for part in self.parts if part.protocol == protocol], protocol)

    def exceeds(
        self, *, max_calls: int | None = None, max_tokens: int | None = None, max_cost: float | None = None
    ) -> tuple[str, ...]:
        """Why a run cannot be done within its budget even at best: a sentence for each limit, none if it can.

        Of models whose price is unknown the cost is left out; ``max_tokens`` is of prompts and replies together.
        """
        total = self.total
        tokens = total.input_tokens.least + total.output_tokens.least
        dollars = sum(part.cost_usd.least for part in self.parts if part.cost_usd is not None)
        found = []
        if max_calls is not None and total.calls.least > max_calls:
            found.append(f"at least {total.calls.least:,} calls are needed, and {max_calls:,} are allowed")
        if max_tokens is not None and tokens > max_tokens:
            found.append(f"about {tokens:,} tokens are needed at least, and {max_tokens:,} are allowed")
        if max_cost is not None and dollars > max_cost:
            found.append(f"about ${dollars:.2f} are needed at least, and ${max_cost:.2f} are allowed")
        return tuple(found)


def _discounted(part: Part, share: float) -> Part:
    cost = part.cost_usd
    return replace(part, cost_usd=None if cost is None else cost * share)


def added(parts: Iterable[Part], protocol: str = "", model: str = "") -> Part:
    """Several parts as one; the cost is unknown where that of any is."""
    parts = tuple(parts)
    nothing = CallRange(0, 0)
    costs = [part.cost_usd for part in parts]
    known = [cost for cost in costs if cost is not None]
    return Part(
        protocol=protocol,
        model=model,
        calls=sum((part.calls for part in parts), start=nothing),
        input_tokens=sum((part.input_tokens for part in parts), start=nothing),
        output_tokens=sum((part.output_tokens for part in parts), start=nothing),
        cost_usd=sum(known, start=Range(0.0, 0.0)) if len(known) == len(costs) else None,
    )
