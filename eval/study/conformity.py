"""Whether referees give in to each other, gathered from transcripts one result at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isclose
from statistics import fmean, pstdev

from ...state.transcript import Turn
from ..results import Result
from .diagnostics import Conformity
from .rows import discussions, scalar, value_of
from .signs import sign_test


@dataclass
class ConformityTally:
    """Counts where values go.

    Attributes:
        together: whether all speak at the same time, so that nobody hears what is said in the same turn.
    """

    together: bool = False
    n: int = 0
    changes: int = 0
    towards: int = 0
    away: int = 0
    towards_previous: int = 0
    _start_equal: int = 0
    _end_equal: int = 0
    _spreads: list[tuple[float, int]] = field(default_factory=list)

    def add(self, result: Result) -> None:
        """Take in the discussions of one verdict: those in which several gave values in several turns."""
        for turns in discussions(result.transcript):
            by_turn = _by_turn(turns)
            if len(by_turn) > 1 and len({agent for values in by_turn for agent in values}) > 1:
                self._count(by_turn)

    def conformity(self) -> Conformity | None:
        """What was found; ``None`` where there was no such discussion."""
        if not self.n:
            return None
        return Conformity(
            n=self.n,
            changes=self.changes,
            towards=self.towards,
            away=self.away,
            p=sign_test(self.towards, self.away),
            towards_previous=None if self.together else self.towards_previous,
            start_equal=self._start_equal / self.n,
            end_equal=self._end_equal / self.n,
            spread_by_turn=tuple(total / count for total, count in self._spreads),
        )

    def _count(self, by_turn: Sequence[Mapping[str, float]]) -> None:
        self.n += 1
        self._start_equal += _equal(by_turn[0])
        self._end_equal += _equal(by_turn[-1])
        for place, values in enumerate(by_turn):
            if place == len(self._spreads):
                self._spreads.append((0.0, 0))
            total, count = self._spreads[place]
            self._spreads[place] = total + pstdev(values.values()), count + 1
        latest = dict(by_turn[0])
        for values in by_turn[1:]:
            self._hear(latest, values)
            latest.update(values)

    def _hear(self, before: Mapping[str, float], values: Mapping[str, float]) -> None:
        """One turn: each who speaks again has heard all values before it, or those of the turn before."""
        heard = dict(before)
        for agent, value in values.items():
            others = [said for other, said in heard.items() if other != agent]
            if agent in before and others and not _close(value, before[agent]):
                self.changes += 1
                step = _nearer(before[agent], value, fmean(others))
                self.towards += step > 0
                self.away += step < 0
                self.towards_previous += _nearer(before[agent], value, others[-1]) > 0
            if not self.together:
                heard.pop(agent, None)
                heard[agent] = value


def _by_turn(turns: Sequence[Turn]) -> list[dict[str, float]]:
    """Referees' values in each turn that has any, in the order in which they spoke."""
    found: dict[int, dict[str, float]] = {}
    for turn in turns:
        if turn["role"] == "referee" and (value := value_of(turn)) is not None:
            found.setdefault(turn["round"], {})[turn["agent"]] = scalar(value)
    return list(found.values())


def _equal(values: Mapping[str, float]) -> bool:
    said = list(values.values())
    return all(_close(value, said[0]) for value in said)


def _nearer(before: float, after: float, to: float) -> int:
    was, now = abs(before - to), abs(after - to)
    return 0 if _close(was, now) else (1 if now < was else -1)


def _close(one: float, other: float) -> bool:
    return isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
