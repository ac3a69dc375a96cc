"""The budget of a run: its usage is estimated before each call and corrected afterwards.

Limited are calls, tokens and US dollars.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from math import inf

from ....nodes.common.sync_bridge import set_for_block
from ....nodes.models import prices
from ....nodes.models.call import Call
from ....state.transcript import NO_USAGE, Usage
from ...journal.call_journal import Journal
from ...journal.records import Amounts, GrantRequest, JournalError, Spent
from ...results.config import RunConfig
from .shutdown import StopSignal

TOKENS_PER_CHARACTER = 0.25
"""The estimated tokens per character of a prompt until the first reply reports the real number."""

TOKENS_PER_REPLY = 200
"""The estimated tokens of a reply until the first reply has arrived."""


_NO_LIMITS = Amounts(inf, inf, inf)


def _characters(call: Call) -> int:
    return sum(len(message.text) for message in call.messages)


@dataclass(eq=False)
class Begun:
    """An item that has begun, and the number of calls that it may still request."""

    calls_left: int


begun_item: ContextVar[Begun | None] = ContextVar("begun_item", default=None)
"""The item that a call is made for; tasks that are started inside inherit it."""


class BudgetTracker:
    """Enforces the limits of a run; a call in flight counts with its estimated usage.

    Args:
        config: the limits.
        spent: the usage of earlier starts of the run. A call without a known usage counts as much
            as the next requested call: if it counted as nothing, it would be a way around the
            limit.
        stop: ends the run when a limit is reached.
        discount: the share of its usual price that a call costs.

    Attributes:
        refused_by: the limit for which ``try_reserve`` last refused a call, in words.
    """

    def __init__(
        self, config: RunConfig, spent: Spent, stop: StopSignal, discount: float = 1.0
    ) -> None:
        self.refused_by = ""
        self._config = config
        self._stop = stop
        self._discount = discount
        # What this process may use: of a run in several processes, the grants to it so far.
        limits = config.max_calls, config.max_tokens, config.max_cost
        self._allowed = Amounts(*(inf if limit is None else limit for limit in limits))
        self._spent = Amounts(spent.usage.calls, spent.usage.tokens, spent.known_cost)
        self._unpriced = spent.unpriced
        self._uncounted = spent.usage.uncounted
        self._in_flight = Amounts()
        self._waiting = Amounts()
        self._released = asyncio.Event()
        # The usage of this run's calls so far, from which the next ones are estimated.
        self._characters = 0
        self._replies = 0
        self._observed = NO_USAGE
        self._door = asyncio.Lock()
        self._begun = set[Begun]()

    @asynccontextmanager
    async def room_for(self, calls: int) -> AsyncIterator[None]:
        """Reserve room for an item with at most this number of calls, once started items leave it.

        Thus a budget pays for verdicts, and not for the first calls of many items. A single item
        begins in any case: its calls may be fewer, or in the journal already.
        """
        async with self._door:
            while self._begun and not self._stop.is_asked and self._is_short_for(calls):
                await self._released.wait()
            item = Begun(calls)
            self._begun.add(item)
        try:
            with set_for_block(begun_item, item):
                yield
        finally:
            self._begun.remove(item)
            self._wake()

    def _is_short_for(self, calls: int) -> bool:
        calls += sum(item.calls_left for item in self._begun)
        known = self._spent.plus(self._in_flight)
        # Before the first call, the number of tokens of a call is unknown.
        of_a_call = [amount / known.calls for amount in known] if known.calls else [1, inf, inf]
        needed = Amounts(*(calls * amount for amount in of_a_call))
        return bool(self._exceeded_limit(needed, self._in_flight))

    def count_off(self) -> None:
        """Count a call of the current item as answered or reserved."""
        item = begun_item.get()
        if item is not None and item.calls_left:
            item.calls_left -= 1

    def estimate(self, call: Call) -> Amounts:
        """Estimate the usage of a call.

        It has the tokens of input and output, and US dollars if these are limited.
        """
        known = self._observed.input_tokens
        output = self._tokens_per_reply
        ratio = known / self._characters if known and self._characters else TOKENS_PER_CHARACTER
        prompt = int(_characters(call) * ratio)
        cost = 0.0
        if self._config.max_cost is not None:
            # Output has its own price.
            cost = self._discount * (prices.cost_usd(call.model.label, prompt, 0, output) or 0.0)
        return Amounts(1, prompt + output, cost)

    @property
    def _tokens_per_reply(self) -> int:
        return self._observed.output_tokens // self._replies if self._replies else TOKENS_PER_REPLY

    async def reserve(self, call: Call) -> Amounts:
        """Reserve the estimated usage of a call, and return it.

        If calls in flight may leave too little, wait for their real usage, which may be smaller.

        Raises:
            StoppedError: there is not enough left, which ends the run.
        """
        wanted = self.estimate(call)
        await self._reserve(wanted)
        self.count_off()
        return wanted

    async def reserve_again(self, wanted: Amounts) -> None:
        """Reserve the same for another attempt at a call, after one that counted as spent.

        Raises:
            StoppedError: there is not enough left, which ends the run.
        """
        self.release(wanted)
        try:
            await self._reserve(wanted)
        except BaseException:
            # The code that reserved it will release it.
            self._in_flight = self._in_flight.plus(wanted)
            raise

    async def _reserve(self, wanted: Amounts) -> None:
        if self._is_short_of(wanted):
            self._waiting = self._waiting.plus(wanted)
            try:
                while self._is_short_of(wanted) and not self._stop.is_asked:
                    if limit := await self._wait_for(wanted):
                        self._stop.ask("budget", f"the budget is reached: at most {limit}")
            finally:
                self._waiting = self._waiting.minus(wanted)
        self._stop.check()
        self._in_flight = self._in_flight.plus(wanted)
        if self._in_flight.calls == 1:
            self._wake()  # Items in ``room_for`` now know the usage of a call.

    def _is_short_of(self, wanted: Amounts) -> bool:
        return bool(self._exceeded_limit(wanted, self._in_flight))

    async def _wait_for(self, wanted: Amounts) -> str:
        """Wait until there may be room.

        Return the limit that is reached in any case, if there is one.
        """
        # Too much even if calls in flight take nothing: waiting cannot help.
        limit = self._exceeded_limit(wanted, Amounts())
        if not limit:
            await self._released.wait()
        return limit

    async def try_reserve(self, call: Call) -> Amounts | None:
        """Do the same as ``reserve``, but return ``None`` instead of waiting."""
        wanted = self.estimate(call)
        if limit := self._exceeded_limit(wanted, self._in_flight):
            self.refused_by = limit
            return None
        self.add_in_flight(wanted)
        return wanted

    def give_back(self) -> None:
        """Give back unused grants of this process; a single process has nothing to give."""

    def add_in_flight(self, amounts: Amounts) -> None:
        """Count calls as in flight, without regard to limits."""
        self._in_flight = self._in_flight.plus(amounts)

    def release(self, amounts: Amounts) -> None:
        """Release the reservation for calls that are no longer in flight."""
        self._in_flight = self._in_flight.minus(amounts)
        self._wake()

    def _wake(self) -> None:
        # All waiting calls check again; a new event makes the next ones wait until the next
        # release.
        self._released.set()
        self._released = asyncio.Event()

    def charge(self, call: Call, usage: Usage, expected: Amounts) -> None:
        """Count the real usage of a call; without a valid report by the provider, the estimate."""
        tokens = usage.tokens if usage.tokens > 0 else expected.tokens
        cost = expected.cost if usage.cost_usd is None or usage.cost_usd < 0 else usage.cost_usd
        self._spent = self._spent.plus(Amounts(usage.calls, tokens, cost))
        # Estimates do not learn from a reply that reports no usage or an invalid one.
        if usage.input_tokens > 0 and usage.output_tokens >= 0:
            self._characters, self._replies = (
                self._characters + _characters(call),
                self._replies + 1,
            )
            self._observed += usage

    def give_up(self, call: Call) -> Usage:
        """Count a request that was sent and abandoned with its expected usage.

        Return that usage.
        """
        output = self._tokens_per_reply
        prompt = int(self.estimate(call).tokens) - output
        cost = prices.cost_usd(call.model.label, prompt, 0, output)
        expected = Usage(calls=1, input_tokens=prompt, output_tokens=output, cost_usd=cost)
        self._spent = self._spent.plus(Amounts(1, expected.tokens, cost or 0.0))
        return expected

    def count_refused(self) -> None:
        """Count a request that the provider answered with an error.

        It counts as a request, but takes no tokens.
        """
        self._spent = self._spent.plus(Amounts(1))

    def _exceeded_limit(self, wanted: Amounts, in_flight: Amounts) -> str:
        """Name the limit that one more call would exceed, in words; empty without such a limit."""
        # This is checked several times per call, and most runs have no limits.
        if self._allowed == _NO_LIMITS:
            return ""
        tokens = (1 + self._uncounted) * wanted.tokens
        cost = (1 + self._unpriced) * wanted.cost
        needed = self._spent.plus(in_flight).plus(Amounts(wanted.calls, tokens, cost))
        limits = zip(Amounts._fields, needed, self._allowed, strict=True)
        return next((self._named(limit) for limit, need, allowed in limits if need > allowed), "")

    def _named(self, limit: str) -> str:
        most = getattr(self._config, f"max_{limit}")
        return f"${most:,g}" if limit == "cost" else f"{most:,} {limit}"


# Seconds after which a process that received too little requests more again.
_ASK_AGAIN_SECONDS = 1.0


class SharedBudget(BudgetTracker):
    """Enforces the limits of a run in several processes.

    Each process uses the grants of the journal, and requests more. Requests for grants are
    collected while one is in progress; most calls need none.
    """

    def __init__(
        self, config: RunConfig, journal: Journal, stop: StopSignal, discount: float = 1.0
    ) -> None:
        super().__init__(config, Spent(NO_USAGE), stop, discount)
        self._limits = self._allowed
        self._allowed = Amounts()
        self._journal = journal
        self._reached = ""
        self._asking: asyncio.Task[None] | None = None

    async def _wait_for(self, wanted: Amounts) -> str:
        released = self._released
        self._ask(wanted)
        await released.wait()
        return self._reached and self._named(self._reached)

    async def try_reserve(self, call: Call) -> Amounts | None:
        wanted = self.estimate(call)
        if self._is_short_of(wanted):
            self._waiting = self._waiting.plus(wanted)
            await asyncio.wait({self._ask(wanted)})
            self._waiting = self._waiting.minus(wanted)
        return await super().try_reserve(call)

    def give_back(self) -> None:
        """Give back unused grants of this process, since another process waits for them."""
        if self._allowed != self._spent.plus(self._in_flight):
            self._ask(Amounts())

    def _is_short_for(self, calls: int) -> bool:
        return False  # Only the journal knows the budget of all processes.

    def _is_short_of(self, wanted: Amounts) -> bool:
        return not self._journal.holds_grant() or super()._is_short_of(wanted)

    def _ask(self, wanted: Amounts) -> asyncio.Task[None]:
        """Request more, unless a request is in progress or has just failed."""
        if self._asking is None:
            self._asking = asyncio.create_task(self._request(wanted))
        return self._asking

    async def _request(self, wanted: Amounts) -> None:
        # Other calls that want to begin now first join the waiting ones.
        await asyncio.sleep(0)
        asked = GrantRequest(self._limits, self._spent, self._in_flight, self._waiting, wanted)
        # Nothing more begins before the answer: budget that is not requested may go to other
        # processes.
        self._allowed = self._spent.plus(self._in_flight)
        try:
            granted = await self._journal.grant(asked)
        except JournalError as error:
            self._stop.ask("journal", str(error))
        else:
            self._allowed = granted.allowed
            self._reached = granted.reached
        if self._is_short_of(wanted):
            asyncio.get_running_loop().call_later(_ASK_AGAIN_SECONDS, self._may_ask)
            self._wake()
        else:
            self._may_ask()

    def _may_ask(self) -> None:
        self._asking = None
        self._wake()


def make_budget(
    config: RunConfig, journal: Journal, stop: StopSignal, discount: float = 1
) -> BudgetTracker:
    """Create the budget of a run, shared if other processes may have the journal open."""
    if journal.shared and (config.max_calls, config.max_tokens, config.max_cost) != (
        None,
        None,
        None,
    ):
        return SharedBudget(config, journal, stop, discount)
    return BudgetTracker(config, journal.spent, stop, discount)
