"""After whose word a verdict changed, gathered from transcripts one result at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import isclose
from typing import NamedTuple

from ...state.transcript import Turn
from ..results import Result
from .diagnostics import Mover
from .rows import Judged, Value, direction, discussions, judged_by, scalar, value_of

_DECIDERS = ("tie_breaker", "human")
JURY = "jury"


class Move(NamedTuple):
    """A turn that could have moved the verdict: whose it was, and what stood before and after it."""

    agent: str
    before: Value
    after: Value


@dataclass
class MoverTally:
    """Counts moves by agent."""

    _found: dict[str, _Count] = field(default_factory=dict)

    def add(self, result: Result, human: Judged | None) -> None:
        """Take in the turns of one verdict; ``human`` is its label, if it can be compared with scores."""
        for turns in discussions(result.transcript):
            for agent, before, after in moves(turns):
                count = self._found.setdefault(agent, _Count())
                changed = not same(before, after)
                size = abs(scalar(after) - scalar(before)) if changed else 0.0
                count.add(changed, size, direction(judged_by(before), judged_by(after), human))
        if (overruled := _jury(result)) is not None:
            count = self._found.setdefault(JURY, _Count(sized=False))
            count.add(overruled[0] != overruled[1], 0.0, direction(*overruled, human))

    def movers(self) -> tuple[Mover, ...]:
        """By agent, who moved most first."""
        found = [count.mover(agent) for agent, count in self._found.items()]
        return tuple(sorted(found, key=lambda mover: (-mover.moves, -mover.turns, mover.agent)))


@dataclass
class _Count:
    sized: bool = True
    turns: int = 0
    moves: int = 0
    size: float = 0.0
    helpful: int = 0
    harmful: int = 0

    def add(self, changed: bool, size: float, towards: int) -> None:
        self.turns += 1
        if changed:
            self.moves += 1
            self.size += size
            self.helpful += towards > 0
            self.harmful += towards < 0

    def mover(self, agent: str) -> Mover:
        mean = self.size / self.moves if self.moves and self.sized else None
        return Mover(agent, self.turns, self.moves, mean, self.helpful, self.harmful)


def same(one: Value, other: Value) -> bool:
    """Whether two values differ by no more than rounding.

    >>> same(0.1 + 0.2, 0.3), same((8.0, 6.0), (6.0, 8.0))
    (True, False)
    """
    if isinstance(one, tuple) and isinstance(other, tuple):
        return all(isclose(a, b, rel_tol=1e-9, abs_tol=1e-12) for a, b in zip(one, other, strict=True))
    return isclose(scalar(one), scalar(other), rel_tol=1e-9, abs_tol=1e-12)


def moves(turns: Sequence[Turn]) -> Iterator[Move]:
    """The turns of one discussion that could have moved its verdict.

    A Critic moves the Scorer's next value; everybody else moves the value that is its own.
    """
    if any(turn["role"] == "critic" for turn in turns):
        yield from _of_a_debate(turns)
    else:
        yield from _of_those_who_speak_again(turns)


def _of_a_debate(turns: Iterable[Turn]) -> Iterator[Move]:
    latest, objecting = None, None
    for turn in turns:
        value = value_of(turn)
        if turn["role"] == "critic":
            objecting = turn["agent"] if turn["value"] is False else None
        elif turn["role"] in _DECIDERS and latest is not None and value is not None:
            yield Move(turn["agent"], latest, value)
        elif turn["role"] == "scorer" and value is not None:
            if latest is not None and objecting is not None:
                yield Move(objecting, latest, value)
            latest, objecting = value, None


def _of_those_who_speak_again(turns: Iterable[Turn]) -> Iterator[Move]:
    latest: dict[str, Value] = {}
    for turn in turns:
        value = value_of(turn)
        if value is None or turn["role"] not in ("referee", "judge") or "sample" in turn:
            continue
        if turn["agent"] in latest:
            yield Move(turn["agent"], latest[turn["agent"]], value)
        latest[turn["agent"]] = value


def _jury(result: Result) -> tuple[Judged, Judged] | None:
    """Who would have won without a jury, and who won with it."""
    without, voted = result.details.get("w"), result.details.get("jury_winner")
    if without is None or voted is None or result.winner is None:
        return None
    return without, result.winner
