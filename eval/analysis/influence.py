"""Count after whose turns a score changed, and how often referees give in to each other."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Annotated

from ..results.results import Result
from ..statistics.alignment import Units
from ..statistics.significance import sign_test
from ..tables.grid import Column, share_column, text_column
from .result_rows import Judged, Said, Value, close, direction, judged_by, scalar

JURY = "jury"


Move = tuple[str, Value, Value]
"""A turn that could have changed the verdict: its agent, and the values before and after it."""


class ScoreChangeCounter:
    """Counts changed scores by agent."""

    def __init__(self) -> None:
        self._counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._sizes: defaultdict[str, float] = defaultdict(float)

    def add(self, result: Result, discussions: Iterable[Sequence[Said]], human: Judged | None) -> None:
        """Add the discussions of one verdict; ``human`` is its label, if it can be compared with scores."""
        for turns in discussions:
            # An objection changes the next score; every other turn changes the value of its own agent.
            objected = any(said.kind == "objects" for said in turns)
            for agent, before, after in (_moves_of_verdicts if objected else _moves_between_own_turns)(turns):
                size = None if same(before, after) else abs(scalar(after) - scalar(before))
                self._count(agent, size, direction(judged_by(before), judged_by(after), human))
        # The winner with the jury is compared with the one without: such a change has no size in points.
        without, voted = result.details.get("w"), result.details.get("jury_winner")
        if without is not None and voted is not None and result.winner is not None:
            size = None if without == result.winner else 0.0
            self._count(JURY, size, direction(without, result.winner, human))

    def _count(self, agent: str, size: float | None, towards: int) -> None:
        """Count a turn; ``size`` is that of the change after it, ``None`` where there was none."""
        self._counts[agent]["turns"] += 1
        if size is not None:
            self._counts[agent].update(moves=1, helpful=towards > 0, harmful=towards < 0)
            self._sizes[agent] += size

    def score_changes(self) -> tuple[ScoreChanges, ...]:
        """Return the counts by agent, the one with the most changes first."""
        changes = []
        for agent, counts in self._counts.items():
            turns, moves, *ways = (counts[name] for name in ("turns", "moves", "helpful", "harmful"))
            mean = self._sizes[agent] / moves if moves and agent != JURY else None
            changes.append(ScoreChanges(agent, turns, moves, mean, *ways))
        return tuple(sorted(changes, key=lambda by_agent: (-by_agent.moves, -by_agent.turns, by_agent.agent)))


def same(value: Value, other: Value) -> bool:
    """Tell whether two values differ by no more than rounding.

    >>> same(0.1 + 0.2, 0.3), same((8.0, 6.0), (6.0, 8.0))
    (True, False)
    """
    if isinstance(value, tuple) and isinstance(other, tuple):
        return all(map(close, value, other))
    return close(scalar(value), scalar(other))


def _moves_of_verdicts(turns: Iterable[Said]) -> Iterator[Move]:
    latest, objecting = None, list[str]()
    for turn, kind, value in turns:
        if kind == "objects":
            # The value of a Critic's turn is whether it is satisfied: False is an objection.
            # Several may object side by side.
            objecting += [turn["agent"]] if turn["value"] is False else []
        elif kind == "decides" and latest is not None and value is not None:
            yield turn["agent"], latest, value
        elif kind in ("scores", "panel") and value is not None:
            if latest is not None:
                yield from ((agent, latest, value) for agent in objecting)
            latest, objecting = value, []


def _moves_between_own_turns(turns: Iterable[Said]) -> Iterator[Move]:
    latest: dict[str, Value] = {}
    for turn, kind, value in turns:
        # Samples are several answers to one question: none of them moves another.
        if value is None or kind not in ("scores", "panel") or "sample" in turn:
            continue
        if turn["agent"] in latest:
            yield turn["agent"], latest[turn["agent"]], value
        latest[turn["agent"]] = value


class ConformityCounter:
    """Counts whether referees' values move towards those of the others.

    Args:
        together: whether all answer at the same time, so that nobody knows the other values of the same turn.
    """

    def __init__(self, together: bool = False) -> None:
        self._together = together
        self._counts: Counter[str] = Counter()
        self._spreads: list[tuple[float, int]] = []

    def add(self, discussions: Iterable[Sequence[Said]]) -> None:
        """Add the discussions of one verdict: those in which several gave values in several turns."""
        for turns in discussions:
            # The panel's values in each round that has any, in the order in which they were given.
            by_round: defaultdict[int, dict[str, float]] = defaultdict(dict)
            for turn, kind, value in turns:
                if kind == "panel" and value is not None:
                    by_round[turn["round"]][turn["agent"]] = scalar(value)
            if len(by_round) > 1 and len({agent for values in by_round.values() for agent in values}) > 1:
                self._add_discussion(list(by_round.values()))

    def conformity(self, units: Units) -> Conformity | None:
        """Return what was counted; ``None`` where there was no such discussion.

        Args:
            units: of each verdict, what it was drawn with.
        """
        counts = self._counts
        if not counts["n"]:
            return None
        return Conformity(
            n=counts["n"],
            changes=counts["changes"],
            towards=counts["towards"],
            away=counts["away"],
            p=sign_test(counts["towards"], counts["away"], units),
            towards_previous=None if self._together else counts["towards_previous"],
            start_equal=counts["start_equal"] / counts["n"],
            end_equal=counts["end_equal"] / counts["n"],
            spread_by_turn=tuple(total / count for total, count in self._spreads),
        )

    def _add_discussion(self, by_turn: Sequence[Mapping[str, float]]) -> None:
        self._counts.update(n=1, start_equal=_equal(by_turn[0]), end_equal=_equal(by_turn[-1]))
        self._spreads += [(0.0, 0)] * (len(by_turn) - len(self._spreads))
        for place, values in enumerate(by_turn):
            total, count = self._spreads[place]
            # The deviation of these very referees (n), who are no sample of others.
            self._spreads[place] = total + pstdev(values.values()), count + 1
        latest = dict(by_turn[0])
        for values in by_turn[1:]:
            # Each agent knows all values given before its own, or those of the turn before.
            known = dict(latest)
            for agent, value in values.items():
                others = [other_value for other, other_value in known.items() if other != agent]
                if agent in latest and others and not close(value, latest[agent]):
                    step = direction(latest[agent], value, fmean(others))
                    follows = direction(latest[agent], value, others[-1]) > 0
                    self._counts.update(changes=1, towards=step > 0, away=step < 0, towards_previous=follows)
                if not self._together:
                    # Taken out and put in again: a dict keeps the place of a key, and the last one must be who spoke
                    # last.
                    known.pop(agent, None)
                    known[agent] = value
            latest.update(values)


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
    turns: Annotated[int, Column("turns")]
    """turns that could have changed the verdict"""
    moves: Annotated[int, Column("changes")]
    """turns after which the verdict changed"""
    mean_move: Annotated[float | None, Column("mean change", digits=2)]
    """mean size of the changes"""
    helpful: Annotated[int, Column("helpful")]
    """changes towards the label"""
    harmful: Annotated[int, Column("harmful")]
    """changes away from the label"""


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
    towards: Annotated[int, Column("towards")]
    """changes towards the other referees' scores"""
    away: Annotated[int, Column("away")]
    p: Annotated[float | None, Column("p", form="p")]
    """sign test; none where rows share a group or an item"""
    towards_previous: Annotated[int | None, Column("towards previous")]
    """changes towards the previous speaker's score"""
    start_equal: Annotated[float | None, share_column("equal at start")]
    end_equal: Annotated[float | None, share_column("equal at end")]
    spread_by_turn: Annotated[tuple[float, ...], text_column("sd by turn", of=_spread)]
    """mean standard deviation between referees"""
