"""Count after whose turns a score changed, and how often referees give in to each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, pstdev
from typing import Annotated, NamedTuple

from ...state.transcript import Turn
from ..results.results import Result
from ..results.turn_kinds import KindOf, kind_of_turns
from ..statistics.significance import sign_test
from ..tables.grid import Column, text_column
from .result_rows import Judged, Value, close, direction, discussions, judged_by, scalar, value_of

JURY = "jury"


class Move(NamedTuple):
    """Names a turn that could have changed the verdict: its agent, and the values before and after it."""

    agent: str
    before: Value
    after: Value


def moves(turns: Sequence[Turn], kind_of: KindOf) -> Iterator[Move]:
    """Yield the turns of one discussion that could have changed its verdict.

    An objection changes the next score; every other turn changes the value of its own agent.
    """
    if any(kind_of(turn) == "objects" for turn in turns):
        yield from _moves_of_verdicts(turns, kind_of)
    else:
        yield from _moves_between_own_turns(turns, kind_of)


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

    def changes_by(self, agent: str) -> ScoreChanges:
        mean = self.size / self.moves if self.moves and self.sized else None
        return ScoreChanges(agent, self.turns, self.moves, mean, self.helpful, self.harmful)


@dataclass
class ScoreChangeCounter:
    """Counts changed scores by agent."""

    _counts: dict[str, _Count] = field(default_factory=dict)

    def add(self, result: Result, human: Judged | None) -> None:
        """Add the turns of one verdict; ``human`` is its label, if it can be compared with scores."""
        kind_of = kind_of_turns(result)
        for turns in discussions(result.transcript):
            for agent, before, after in moves(turns, kind_of):
                count = self._counts.setdefault(agent, _Count())
                changed = not same(before, after)
                size = abs(scalar(after) - scalar(before)) if changed else 0.0
                count.add(changed, size, direction(judged_by(before), judged_by(after), human))
        if (overruled := _jury(result)) is not None:
            # The winner with the jury is compared with the one without: such a change has no size in points.
            count = self._counts.setdefault(JURY, _Count(sized=False))
            count.add(overruled[0] != overruled[1], 0.0, direction(*overruled, human))

    def score_changes(self) -> tuple[ScoreChanges, ...]:
        """Return the counts by agent, the one with the most changes first."""
        changes = (count.changes_by(agent) for agent, count in self._counts.items())
        return tuple(sorted(changes, key=lambda by_agent: (-by_agent.moves, -by_agent.turns, by_agent.agent)))


def same(value: Value, other: Value) -> bool:
    """Tell whether two values differ by no more than rounding.

    >>> same(0.1 + 0.2, 0.3), same((8.0, 6.0), (6.0, 8.0))
    (True, False)
    """
    if isinstance(value, tuple) and isinstance(other, tuple):
        return all(map(close, value, other))
    return close(scalar(value), scalar(other))


def _moves_of_verdicts(turns: Iterable[Turn], kind_of: KindOf) -> Iterator[Move]:
    latest, objecting = None, None
    for turn in turns:
        value, kind = value_of(turn), kind_of(turn)
        if kind == "objects":
            # The value of a Critic's turn is whether it is satisfied: False is an objection.
            objecting = turn["agent"] if turn["value"] is False else None
        elif kind == "decides" and latest is not None and value is not None:
            yield Move(turn["agent"], latest, value)
        elif kind in ("scores", "panel") and value is not None:
            if latest is not None and objecting is not None:
                yield Move(objecting, latest, value)
            latest, objecting = value, None


def _moves_between_own_turns(turns: Iterable[Turn], kind_of: KindOf) -> Iterator[Move]:
    latest: dict[str, Value] = {}
    for turn in turns:
        value = value_of(turn)
        # Samples are several answers to one question: none of them moves another.
        if value is None or kind_of(turn) not in ("scores", "panel") or "sample" in turn:
            continue
        if turn["agent"] in latest:
            yield Move(turn["agent"], latest[turn["agent"]], value)
        latest[turn["agent"]] = value


def _jury(result: Result) -> tuple[Judged, Judged] | None:
    """Return who would have won without a jury, and who won with it."""
    without, voted = result.details.get("w"), result.details.get("jury_winner")
    if without is None or voted is None or result.winner is None:
        return None
    return without, result.winner


@dataclass
class ConformityCounter:
    """Counts whether referees' values move towards those of the others.

    Attributes:
        together: whether all answer at the same time, so that nobody knows the other values of the same turn.
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
        """Add the discussions of one verdict: those in which several gave values in several turns."""
        kind_of = kind_of_turns(result)
        for turns in discussions(result.transcript):
            by_turn = _by_turn(turns, kind_of)
            if len(by_turn) > 1 and len({agent for values in by_turn for agent in values}) > 1:
                self._count(by_turn)

    def conformity(self) -> Conformity | None:
        """Return what was counted; ``None`` where there was no such discussion."""
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
            # The deviation of these very referees (n), who are no sample of others.
            self._spreads[place] = total + pstdev(values.values()), count + 1
        latest = dict(by_turn[0])
        for values in by_turn[1:]:
            self._hear(latest, values)
            latest.update(values)

    def _hear(self, before: Mapping[str, float], values: Mapping[str, float]) -> None:
        """Count one turn: each agent knows all values given before its own, or those of the turn before."""
        heard = dict(before)
        for agent, value in values.items():
            others = [known for other, known in heard.items() if other != agent]
            if agent in before and others and not close(value, before[agent]):
                self.changes += 1
                step = direction(before[agent], value, fmean(others))
                self.towards += step > 0
                self.away += step < 0
                self.towards_previous += direction(before[agent], value, others[-1]) > 0
            if not self.together:
                # Taken out and put in again: a dict keeps the place of a key, and the last one must be who spoke last.
                heard.pop(agent, None)
                heard[agent] = value


def _by_turn(turns: Sequence[Turn], kind_of: KindOf) -> list[dict[str, float]]:
    """Collect the panel's values in each turn that has any, in the order in which they were given."""
    by_round: dict[int, dict[str, float]] = {}
    for turn in turns:
        if kind_of(turn) == "panel" and (value := value_of(turn)) is not None:
            by_round.setdefault(turn["round"], {})[turn["agent"]] = scalar(value)
    return list(by_round.values())


def _equal(values: Mapping[str, float]) -> bool:
    first, *others = values.values()
    return all(close(value, first) for value in others)


@dataclass(frozen=True)
class ScoreChanges:
    """Counts after which agent's turns the verdict changed.

    The agent is in a debate the Critic (the Scorer revised after its objection) or the tie-breaker; in ChatEval the
    referee whose own scores changed; in SAMRE and MORE the judge after the defences, and the jury where it overruled
    the scores.

    Attributes:
        mean_move: on the subject's scale; in comparisons of the gap between both scores. ``None`` for the jury.
    """

    agent: Annotated[str, text_column("agent")]
    turns: Annotated[int, Column("turns", about="that could have changed something")]
    moves: Annotated[int, Column("changes", about="turns after which the verdict changed")]
    mean_move: Annotated[float | None, Column("mean change", digits=2, about="mean size of the changes")]
    helpful: Annotated[int, Column("helpful", about="changes towards the label")]
    harmful: Annotated[int, Column("harmful", about="changes away from the label")]


def _spread(deviations: Sequence[float]) -> str:
    return " → ".join(f"{deviation:.2f}" for deviation in deviations)


@dataclass(frozen=True)
class Conformity:
    """Says whether referees give in to each other, in protocols where several give values in several turns.

    Values are scores, in comparisons the gap between both scores.

    Attributes:
        n: discussions; a comparison in both orders is two of them.
        changes: values that differ from the same referee's value before.
        towards_previous: ``None`` where all answer at the same time.
    """

    n: Annotated[int, Column("verdicts")]
    changes: Annotated[int, Column("changes")]
    towards: Annotated[int, Column("towards", about="changes towards the other referees' scores")]
    away: Annotated[int, Column("away")]
    p: Annotated[float | None, Column("p", form="p", about="sign test")]
    towards_previous: Annotated[
        int | None, Column("towards previous", about="changes towards the previous speaker's score")
    ]
    start_equal: Annotated[float | None, Column("equal at start", form="percent", digits=0)]
    end_equal: Annotated[float | None, Column("equal at end", form="percent", digits=0)]
    spread_by_turn: Annotated[
        tuple[float, ...], text_column("sd by turn", "mean standard deviation between referees", _spread)
    ]
