"""Hold a call back while another one is about to put their common prefix into a provider's cache.

Providers discount the beginning of a prompt that they have read before. Agents that are asked at the
same time have prompts with the same beginning, as do the aspects of one text. If all these calls are
sent at once, the provider discounts no call. So the first call with a new beginning is answered
before the other calls of its item are sent. Meanwhile, the run starts other items, so that as many
calls as before are in flight. If there are no other items, no call waits.

Few verdicts wait here, because the other verdicts of an item are started after its first
(``job_queue.py``). The agents of one verdict do.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from ....nodes.models.call import Call
from ...results.results import Key
from .judge_item import current_judgement

BLOCK = 512
"""The characters by which beginnings are compared; providers store blocks of 16 to 128 tokens."""

REMEMBERED = 16_384
"""The blocks of answered calls that are remembered, about two million tokens."""

MOST_HELD = 4
"""The maximum number of waiting verdicts per call in flight.

Four is enough for the aspects of an item and some more.
"""


@dataclass(eq=False)
class Passage:
    """A call on its way through the gate.

    Attributes:
        verdict: the verdict that it is made for.
        blocks: a number for each of its beginnings, from the shortest on.
        first_with: its beginnings that no call had before.
        held: the calls that wait for it.
    """

    verdict: Key
    blocks: Sequence[int]
    first_with: list[int] = field(default_factory=list)
    held: list[_Held] = field(default_factory=list)


@dataclass(eq=False)
class _Held:
    """A call that waits, with the event that ends its wait."""

    passage: Passage
    turn: asyncio.Future[bool]
    """Its result is whether to go without looking for another call to wait for."""
    waits: bool = True


def no_others() -> bool:
    """Start no other verdicts, because there are none."""
    return False


class PrefixGate:
    """Let the first call with a new beginning pass, and hold back the others of its item.

    It only holds calls while the run can keep ``slots`` calls in flight without them. A failed
    attempt releases the calls that wait for it. Nothing that waits has a place in flight, a part of
    the budget or of a rate.

    Args:
        slots: the number of calls that may be in flight.
    """

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._answered: OrderedDict[int, None] = OrderedDict()
        self._first: dict[tuple[str, int], Passage] = {}
        self._held: deque[_Held] = deque()
        self._calls: Counter[Key] = Counter()
        """The calls of each verdict that have passed and have no reply yet."""
        self._waiting: Counter[Key] = Counter()
        self._standing: set[Key] = set()
        self.start_others: Callable[[], bool] = no_others
        """Start one verdict for each waiting verdict; returns false if all verdicts have started."""

    @property
    def standing(self) -> int:
        """The number of verdicts that only wait, because the gate holds all their calls."""
        return len(self._standing)

    @asynccontextmanager
    async def passing(self, call: Call) -> AsyncIterator[Passage | None]:
        """Wait until the call may be sent, and count it as in flight inside the block."""
        if (judgement := current_judgement.get()) is None:
            yield None
            return
        passage = Passage(judgement.key, _blocks(call))
        self._count(passage.verdict, calls=1)
        try:
            while (first := self._first_of(passage)) is not None:
                if await self._hold(passage, first):
                    break
            self._begin(passage)
            yield passage
        finally:
            self._count(passage.verdict, calls=-1)
            self.release(passage)
            self.balance()

    def answered(self, passage: Passage | None) -> None:
        """Note that the provider has read a call, and release the calls that wait for it."""
        if passage is None:
            return
        for block in passage.blocks:
            self._answered[block] = None
            self._answered.move_to_end(block)
        while len(self._answered) > REMEMBERED:
            self._answered.popitem(last=False)
        self.release(passage)

    def release(self, passage: Passage | None) -> None:
        """Let the calls that wait for this one look again: it has failed, or has its reply."""
        if passage is None:
            return
        for block in passage.first_with:
            self._first.pop((passage.verdict.item, block), None)
        passage.first_with.clear()
        for held in passage.held:
            self._wake(held, go=False)
        passage.held.clear()

    def balance(self) -> None:
        """Start other items for waiting verdicts. If there are none, let waiting calls go."""
        if not self._held:
            return
        if len(self._standing) < MOST_HELD * self._slots and self.start_others():
            return
        while self._held and self._calls.total() < self._slots:
            self._wake(self._held[0], go=True)

    def _first_of(self, passage: Passage) -> Passage | None:
        """Return the call of the same item to wait for: with the longest new beginning in common."""
        found = None
        for block in passage.blocks:
            if block in self._answered:
                continue
            first = self._first.get((passage.verdict.item, block))
            if first is None:
                break
            found = first
        return found

    def _begin(self, passage: Passage) -> None:
        for block in passage.blocks:
            place = passage.verdict.item, block
            if block not in self._answered and place not in self._first:
                self._first[place] = passage
                passage.first_with.append(block)

    async def _hold(self, passage: Passage, first: Passage) -> bool:
        """Wait for another call; return whether to go now in any case."""
        held = _Held(passage, asyncio.get_running_loop().create_future())
        first.held.append(held)
        self._held.append(held)
        self._count(passage.verdict, calls=-1, waiting=1)
        self.balance()
        try:
            return await held.turn
        finally:
            # Also if it was cancelled while it waited.
            self._let_go(held)

    def _wake(self, held: _Held, *, go: bool) -> None:
        self._let_go(held)
        if not held.turn.done():
            held.turn.set_result(go)

    def _let_go(self, held: _Held) -> None:
        if held.waits:
            held.waits = False
            self._held.remove(held)
            self._count(held.passage.verdict, calls=1, waiting=-1)

    def _count(self, verdict: Key, *, calls: int = 0, waiting: int = 0) -> None:
        for counter, change in ((self._calls, calls), (self._waiting, waiting)):
            counter[verdict] += change
            if not counter[verdict]:
                del counter[verdict]
        if verdict in self._waiting and verdict not in self._calls:
            self._standing.add(verdict)
        else:
            self._standing.discard(verdict)


def _blocks(call: Call) -> list[int]:
    """Return a number for each beginning of a call's text, in steps of ``BLOCK`` characters."""
    text = "\n\n".join(message.text for message in call.messages)
    number = hash(call.model.label)
    blocks = []
    for start in range(0, len(text) - BLOCK + 1, BLOCK):
        number = hash((number, text[start : start + BLOCK]))
        blocks.append(number)
    return blocks
