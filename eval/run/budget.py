"""Keep the budget of a run: calls, tokens and dollars are estimated before each call and corrected after it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from ...nodes.models import prices
from ...nodes.models.call import Call
from ...state.usage import Usage
from ..journal import Spent
from .config import RunConfig
from .shutdown import StopSignal

TOKENS_PER_CHARACTER = 0.25
"""Estimates the tokens of a prompt until the first reply says how many there were: four characters each."""

TOKENS_PER_REPLY = 200
"""Estimates the tokens of a reply until the first one has come."""


@dataclass
class _Estimate:
    """Adds up what calls are estimated to take."""

    calls: int = 0
    tokens: float = 0.0
    cost: float = 0.0

    def add(self, other: _Estimate) -> None:
        self.calls += other.calls
        self.tokens += other.tokens
        self.cost += other.cost


@dataclass
class _Observed:
    """Counts what the calls of this run took, so that the next ones can be estimated from it."""

    characters: int = 0
    input_tokens: int = 0
    replies: int = 0
    output_tokens: int = 0

    def add(self, call: Call, usage: Usage) -> None:
        # A reply that does not say what it took, or says nonsense, is none to learn from.
        if usage.input_tokens <= 0 or usage.output_tokens < 0:
            return
        self.characters += _characters(call)
        self.input_tokens += usage.input_tokens
        self.replies += 1
        self.output_tokens += usage.output_tokens

    @property
    def tokens_per_character(self) -> float:
        if not (self.characters and self.input_tokens):
            return TOKENS_PER_CHARACTER
        return self.input_tokens / self.characters

    @property
    def tokens_per_reply(self) -> int:
        return self.output_tokens // self.replies if self.replies else TOKENS_PER_REPLY


def _characters(call: Call) -> int:
    return sum(len(str(message.content)) for message in call.messages)


class BudgetTracker:
    """Keeps a run within its limits; a call in flight counts as what it is estimated to take.

    Args:
        config: the limits.
        spent: what earlier starts of the run have taken. Calls that do not say what they took count as much as
            the one that is asked for next: counted as nothing, they would make a way round the limit.
        stop: ends the run when a limit is reached.
        discount: the share of its usual price that a call costs.

    Attributes:
        refused_by: the limit for which ``try_reserve`` last refused a call, in words.
    """

    def __init__(self, config: RunConfig, spent: Spent, stop: StopSignal, discount: float = 1.0) -> None:
        self.refused_by = ""
        self._config = config
        self._discount = discount
        self._stop = stop
        self._tokens: float
        self._calls, self._tokens, self._cost = spent.usage.calls, spent.usage.tokens, spent.known_cost
        self._unpriced, self._uncounted = spent.unpriced, spent.uncounted
        self._in_flight = _Estimate()
        self._released = asyncio.Event()
        self._observed = _Observed()

    def estimate_tokens(self, call: Call) -> int:
        """Estimate how many tokens a call takes, input and output."""
        prompt = int(_characters(call) * self._observed.tokens_per_character)
        return prompt + self._observed.tokens_per_reply

    async def reserve(self, call: Call, tokens: int) -> float:
        """Reserve what a call is estimated to take, and return its estimated cost in US dollars.

        Where calls in flight may leave too little, it waits for what they really take: that may be less.

        Raises:
            StoppedError: there is not enough left, which ends the run.
        """
        cost = self.estimate_cost(call, tokens)
        wanted = _Estimate(1, tokens, cost)
        while self._exceeded_limit(wanted, self._in_flight):
            # Too much even if the calls in flight took nothing: waiting cannot help.
            if limit := self._exceeded_limit(wanted, _Estimate()):
                self._stop.ask("budget", f"the budget is reached: at most {limit}")
                break
            await self._released.wait()
        self._stop.check()
        self._in_flight.add(wanted)
        return cost

    def try_reserve(self, call: Call, tokens: int) -> float | None:
        """Do as ``reserve``, but return ``None`` in place of waiting for calls in flight."""
        cost = self.estimate_cost(call, tokens)
        limit = self._exceeded_limit(_Estimate(1, tokens, cost), self._in_flight)
        if limit:
            self.refused_by = limit
            return None
        self.add_in_flight(1, tokens, cost)
        return cost

    def add_in_flight(self, calls: int, tokens: float, cost: float) -> None:
        """Count calls as in flight, whatever the limits say; negative numbers take them off again."""
        self._in_flight.add(_Estimate(calls, tokens, cost))

    def release(self, tokens: float, cost: float) -> None:
        """Give back what was reserved for a call that is no longer in flight."""
        self._in_flight.add(_Estimate(-1, -tokens, -cost))
        # All who wait look again; a new event makes the next ones wait until the next release.
        self._released.set()
        self._released = asyncio.Event()

    def charge(self, call: Call, usage: Usage, tokens: float, cost: float) -> None:
        """Count what a call really took, or was estimated to take where the provider does not say or says nonsense."""
        self._calls += usage.calls
        self._tokens += usage.tokens if usage.tokens > 0 else tokens
        is_known = usage.cost_usd is not None and usage.cost_usd >= 0
        self._cost += (usage.cost_usd or 0.0) if is_known else cost
        self._observed.add(call, usage)

    def estimate_cost(self, call: Call, tokens: int) -> float:
        if self._config.max_cost is None:
            return 0.0
        output = self._observed.tokens_per_reply
        # `tokens` includes the reply that `estimate_tokens` assumed, and output has a price of its own.
        cost = prices.cost_usd(call.model.label, tokens - output, 0, output) or 0.0
        return self._discount * cost

    def _exceeded_limit(self, wanted: _Estimate, in_flight: _Estimate) -> str:
        """Name the limit that one more call would exceed, in words; empty if there is none."""
        limits = self._config
        calls = self._calls + in_flight.calls + wanted.calls
        if limits.max_calls is not None and calls > limits.max_calls:
            return f"{limits.max_calls:,} calls"
        tokens = self._tokens + in_flight.tokens + (1 + self._uncounted) * wanted.tokens
        if limits.max_tokens is not None and tokens > limits.max_tokens:
            return f"{limits.max_tokens:,} tokens"
        cost = self._cost + in_flight.cost + (1 + self._unpriced) * wanted.cost
        if limits.max_cost is not None and cost > limits.max_cost:
            return f"${limits.max_cost:,g}"
        return ""
