"""What a run may take: calls, tokens, dollars; counted before a call as far as it can be foreseen."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from ...nodes.models import prices
from ...nodes.models.call import Call, Reply
from ...state.errors import UsageError
from ...state.usage import Usage
from .shutdown import StopSignal

TOKENS_PER_LETTER = 0.25
FIRST_GUESS = 200
"""Tokens of a reply, before there is any to go by."""


@dataclass(frozen=True)
class Budget:
    """What a run may take in all, from its first start to its end; ``None`` where it may take what it needs.

    Attributes:
        max_calls: requests to providers that were answered.
        max_tokens: input and output together.
        max_cost: US dollars.
    """

    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None

    def check(self, labels: Mapping[str, str]) -> None:
        """Say what cannot be kept to, before any call.

        Raises:
            UsageError: a limit that is not above 0; a limit on cost with a model whose price is unknown.
        """
        for name, limit in vars(self).items():
            if limit is not None and not limit > 0:
                raise UsageError(f"{name} must be above 0, got {limit}")
        unpriced = [label for label in labels.values() if label != "offline" and not prices.is_priced(label)]
        if self.max_cost is not None and unpriced:
            raise UsageError(
                f"the price of {unpriced[0]} is unknown, so a limit on cost cannot be kept; "
                "limit calls or tokens instead (--max-calls, --max-tokens)"
            )


@dataclass
class _Expected:
    """What is in flight, as far as it can be foreseen."""

    calls: int = 0
    tokens: float = 0
    cost: float = 0.0

    def add(self, more: _Expected) -> None:
        """Take in what else there is."""
        self.calls += more.calls
        self.tokens += more.tokens
        self.cost += more.cost


@dataclass
class _Seen:
    """What calls have taken so far, from which the next are foreseen."""

    letters: int = 0
    input_tokens: int = 0
    replies: int = 0
    output_tokens: int = 0

    def add(self, call: Call, reply: Reply) -> None:
        """Learn from a call."""
        self.letters += _letters(call)
        self.input_tokens += reply.usage.input_tokens
        self.replies += 1
        self.output_tokens += reply.usage.output_tokens

    @property
    def tokens_per_letter(self) -> float:
        return self.input_tokens / self.letters if self.letters and self.input_tokens else TOKENS_PER_LETTER

    @property
    def tokens_per_reply(self) -> int:
        return self.output_tokens // self.replies if self.replies else FIRST_GUESS


def _letters(call: Call) -> int:
    return sum(len(str(message.content)) for message in call.messages)


class BudgetTracker:
    """What has been taken and what may still be; calls in flight are counted by what they are expected to take.

    Attributes:
        short: the limit for which ``take_at_once`` has last put a call off, in words.
    """

    def __init__(self, budget: Budget, spent: Usage, stop: StopSignal, discount: float = 1.0) -> None:
        self.short = ""
        self._budget = budget
        self._discount = discount
        self._stop = stop
        self._calls, self._tokens, self._cost = spent.calls, spent.tokens, spent.cost_usd or 0.0
        self._in_flight = _Expected()
        self._back = asyncio.Event()
        self._seen = _Seen()

    def expect(self, call: Call) -> int:
        """Tokens that a call is expected to take, input and output."""
        return int(_letters(call) * self._seen.tokens_per_letter) + self._usual

    async def take(self, call: Call, tokens: int) -> float:
        """Set aside what a call is expected to take; gives back its price.

        Where calls in flight may leave too little, it waits for what they take in the end: that may be less.

        Raises:
            StoppedError: there is not enough left; the run is to end.
        """
        cost = self._price(call, tokens)
        wanted = _Expected(1, tokens, cost)
        while self._passed(wanted, self._in_flight):
            if limit := self._passed(wanted, _Expected()):
                self._stop.ask("budget", f"the budget is reached: at most {limit}")
                break
            await self._back.wait()
        self._stop.check()
        self._in_flight.add(wanted)
        return cost

    def take_at_once(self, call: Call, tokens: int) -> float | None:
        """As ``take``, for who cannot wait: ``None`` where calls in flight leave too little."""
        cost = self._price(call, tokens)
        limit = self._passed(_Expected(1, tokens, cost), self._in_flight)
        if limit:
            self.short = limit
            return None
        self.set_aside(1, tokens, cost)
        return cost

    def set_aside(self, calls: int, tokens: float, cost: float) -> None:
        """Calls are in flight, whatever the limits say."""
        self._in_flight.add(_Expected(calls, tokens, cost))

    def give_back(self, tokens: float, cost: float) -> None:
        """A call is no longer in flight."""
        self._in_flight.add(_Expected(-1, -tokens, -cost))
        self._back.set()
        self._back = asyncio.Event()

    def pay(self, call: Call, reply: Reply) -> None:
        """What a call has taken in the end."""
        self._calls += reply.usage.calls
        self._tokens += reply.usage.tokens
        self._cost += reply.usage.cost_usd or 0.0
        self._seen.add(call, reply)

    @property
    def _usual(self) -> int:
        return self._seen.tokens_per_reply

    def _price(self, call: Call, tokens: int) -> float:
        if self._budget.max_cost is None:
            return 0.0
        cost = prices.cost_usd(call.model.label, tokens - self._usual, 0, self._usual) or 0.0
        return self._discount * cost

    def _passed(self, wanted: _Expected, in_flight: _Expected) -> str:
        """The limit that one more call would pass, in words; empty if there is none."""
        budget = self._budget
        if budget.max_calls is not None and self._calls + in_flight.calls + wanted.calls > budget.max_calls:
            return f"{budget.max_calls:,} calls"
        if (
            budget.max_tokens is not None
            and self._tokens + in_flight.tokens + wanted.tokens > budget.max_tokens
        ):
            return f"{budget.max_tokens:,} tokens"
        if budget.max_cost is not None and self._cost + in_flight.cost + wanted.cost > budget.max_cost:
            return f"${budget.max_cost:,g}"
        return ""
