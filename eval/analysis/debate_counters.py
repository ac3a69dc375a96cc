"""Count events in debates and faults of replies, one judgement after another.

The counts answer these questions: whose turns changed the score, how often referees give in to each
other, whether critics object to wrong scores more often than to right ones, which calls belong to
which round, and which faults replies had.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import isclose
from statistics import fmean, pstdev
from typing import Annotated, Literal, cast

import numpy as np

from ...state.aggregation import winner_by_mean
from ...state.transcript import Turn
from ...state.verdict_warnings import (
    ASKED_AGAIN,
    COPIED,
    DISCLOSURE,
    EARLIER_DISCLOSURE,
    HEALTH,
    LOCAL_DISCLOSURE,
    NO_VOTE,
    UNREAD_SAMPLES,
    VOID_VOTE,
    kind_of,
)
from ..results.evaluation import Mean
from ..results.results import NumberRows, Result
from ..statistics.alignment import Floats, Ints, code_count, number_groups, ratio
from ..statistics.resampling import Resampling, Statistic, Weights, share_of_rows
from ..statistics.significance import sign_test
from ..tables.grid import Column, counts, share_column, text_column
from .verdict_columns import Judged, ReadTurn, Value

JURY = "jury"

RIGHT_WITHIN = 0.5
"""A score is right if it is the whole number nearest to the label.

Labels are means over annotators.
"""

close = partial(isclose, rel_tol=1e-9, abs_tol=1e-12)
"""Whether two numbers differ only by rounding."""


def _scalar(value: Value) -> float:
    """Return a score unchanged; for two scores, the first minus the second."""
    return value[0] - value[1] if isinstance(value, tuple) else value


def _judged_by(value: Value) -> Judged:
    """Return a score unchanged; for two scores, the winner."""
    return winner_by_mean(value) if isinstance(value, tuple) else value


def direction(before: Judged, after: Judged, human: Judged | None) -> Literal[-1, 0, 1]:
    """Return 1 if a change moved a verdict nearer to the human label, -1 if farther away, else 0.

    >>> direction(2.0, 3.0, 4.5), direction(4.0, 5.0, 4.5), direction("1", "2", "1"), direction("tie", "2", "1")
    (1, 0, -1, 0)
    """
    if human is None or before == after:
        return 0
    if isinstance(human, str) or isinstance(before, str) or isinstance(after, str):
        return cast("Literal[-1, 0, 1]", (after == human) - (before == human))
    was = abs(before - human)
    now = abs(after - human)
    return 0 if close(was, now) else 1 if now < was else -1


@dataclass(frozen=True)
class ScoreChanges:
    """The number of verdict changes after the turns of each agent.

    In a debate, the agent is the Critic (the Scorer revised after its objection) or the
    tie-breaker. In ChatEval it is the referee whose own scores changed. In SAMRE and MORE it is the
    judge after the defences, or the jury if it overruled the scores.

    Attributes:
        mean_move: on the subject's scale; in comparisons, the move of the gap between both scores.
            ``None`` for the jury.
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


class ScoreChangeCounter:
    """Counts changed scores by agent."""

    def __init__(self) -> None:
        self._counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._sizes: defaultdict[str, Mean] = defaultdict(Mean)

    def add(
        self, result: Result, discussions: Iterable[Sequence[ReadTurn]], human: Judged | None
    ) -> None:
        """Add the discussions of one verdict.

        ``human`` is its label, if it can be compared with scores.
        """
        for turns in discussions:
            # An objection changes the next score. Every other turn changes the value of its own
            # agent.
            objected = any(kind == "objects" for _, kind, _ in turns)
            for agent, before, after in (
                _moves_of_verdicts if objected else _moves_between_own_turns
            )(turns):
                size = None if same(before, after) else abs(_scalar(after) - _scalar(before))
                self._count(agent, size, direction(_judged_by(before), _judged_by(after), human))
        # The winner with the jury is compared with the one without it. Such a change has no size in
        # points.
        without = result.details.get("w")
        voted = result.details.get("jury_winner")
        if without is not None and voted is not None and result.winner is not None:
            size = None if without == result.winner else 0.0
            self._count(JURY, size, direction(without, result.winner, human))

    def _count(self, agent: str, size: float | None, towards: int) -> None:
        """Count a turn; ``size`` is the size of the change after it, ``None`` without a change."""
        self._counts[agent]["turns"] += 1
        if size is not None:
            self._counts[agent].update(helpful=towards > 0, harmful=towards < 0)
            self._sizes[agent].add(size)

    def score_changes(self) -> tuple[ScoreChanges, ...]:
        """Return the counts by agent, the agent with the most changes first."""
        changes = []
        for agent, of_agent in self._counts.items():
            turns, *ways = (of_agent[name] for name in ("turns", "helpful", "harmful"))
            sizes = self._sizes[agent]
            mean = None if agent == JURY else sizes.value
            changes.append(ScoreChanges(agent, turns, sizes.count, mean, *ways))
        return tuple(
            sorted(changes, key=lambda by_agent: (-by_agent.moves, -by_agent.turns, by_agent.agent))
        )


def same(value: Value, other: Value) -> bool:
    """Whether two values differ only by rounding.

    >>> same(0.1 + 0.2, 0.3), same((8.0, 6.0), (6.0, 8.0))
    (True, False)
    """
    if isinstance(value, tuple) and isinstance(other, tuple):
        return all(map(close, value, other))
    return close(_scalar(value), _scalar(other))


def _moves_of_verdicts(turns: Iterable[ReadTurn]) -> Iterator[tuple[str, Value, Value]]:
    """Yield the turns that could have changed the verdict.

    A turn has the agent, and the values before and after it.
    """
    latest = None
    objecting = list[str]()
    for turn, kind, value in turns:
        if kind == "objects":
            # The value of a Critic's turn is whether it is satisfied, so False is an objection.
            # Several Critics may object in one round.
            objecting += [turn["agent"]] if turn["value"] is False else []
        elif kind == "decides" and latest is not None and value is not None:
            yield turn["agent"], latest, value
        elif kind in ("scores", "panel") and value is not None:
            if latest is not None:
                yield from ((agent, latest, value) for agent in objecting)
            latest = value
            objecting = []


def _moves_between_own_turns(turns: Iterable[ReadTurn]) -> Iterator[tuple[str, Value, Value]]:
    latest: dict[str, Value] = {}
    for turn, kind, value in turns:
        # Samples are several answers to one question, so no sample moves another.
        if value is None or kind not in ("scores", "panel") or "sample" in turn:
            continue
        if turn["agent"] in latest:
            yield turn["agent"], latest[turn["agent"]], value
        latest[turn["agent"]] = value


def _path(deviations: Iterable[float]) -> str:
    return " → ".join(f"{deviation:.2f}" for deviation in deviations)


@dataclass(frozen=True)
class Conformity:
    """How far referees give in to each other, if several give values in several turns.

    Values are scores; in comparisons, the gap between both scores.

    Attributes:
        n: discussions; a comparison in both orders has two.
        changes: values that differ from the same referee's previous value.
        towards_previous: ``None`` if all answer at the same time.
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
    spread_by_turn: Annotated[tuple[float, ...], text_column("sd by turn", of=_path)]
    """mean standard deviation between referees"""


class ConformityCounter:
    """Counts how often referees' values move towards those of the others.

    Args:
        together: whether all answer at the same time, so that no referee knows the other values of
            the same turn.
    """

    def __init__(self, together: bool = False) -> None:
        self._together = together
        self._counts: Counter[str] = Counter()
        self._spreads: list[Mean] = []

    def add(self, turns: Iterable[ReadTurn]) -> None:
        """Add a discussion, if several referees gave values in several turns."""
        # The panel's values in each round that has any, in the order in which they were given.
        by_round: defaultdict[int, dict[str, float]] = defaultdict(dict)
        for turn, kind, value in turns:
            if kind == "panel" and value is not None:
                by_round[turn["round"]][turn["agent"]] = _scalar(value)
        by_turn = list(by_round.values())
        if len(by_turn) < 2 or len(set().union(*by_turn)) < 2:
            return
        self._counts.update(n=1, start_equal=_equal(by_turn[0]), end_equal=_equal(by_turn[-1]))
        self._spreads += [Mean() for _ in by_turn[len(self._spreads) :]]
        for spread, values in zip(self._spreads, by_turn, strict=False):
            # The population deviation (n), because these referees are not a sample of others.
            spread.add(pstdev(values.values()))
        latest = dict(by_turn[0])
        for values in by_turn[1:]:
            # Each agent knows all values given before its own, or only those of the previous turn.
            known = dict(latest)
            for agent, now in values.items():
                others = [other_value for other, other_value in known.items() if other != agent]
                if agent in latest and others and not close(now, latest[agent]):
                    step = direction(latest[agent], now, fmean(others))
                    follows = direction(latest[agent], now, others[-1]) > 0
                    self._counts.update(
                        changes=1, towards=step > 0, away=step < 0, towards_previous=follows
                    )
                if not self._together:
                    # Removed and inserted again, because a dict keeps the place of a key and the
                    # last one must be the last speaker.
                    known.pop(agent, None)
                    known[agent] = now
            # In the order in which they last spoke, because a referee may have given no value in
            # this round.
            latest = {
                agent: value for agent, value in latest.items() if agent not in values
            } | values

    def conformity(self, clusters: Ints) -> Conformity | None:
        """Return the counts; ``None`` without such a discussion.

        Args:
            clusters: for each verdict, the cluster with which it is resampled.
        """
        n, changes, towards, away = (
            self._counts[name] for name in ("n", "changes", "towards", "away")
        )
        if not n:
            return None
        return Conformity(
            n,
            changes,
            towards,
            away,
            p=sign_test(towards, away, clusters),
            towards_previous=None if self._together else self._counts["towards_previous"],
            start_equal=self._counts["start_equal"] / n,
            end_equal=self._counts["end_equal"] / n,
            spread_by_turn=tuple(spread.total / spread.count for spread in self._spreads),
        )


def _equal(values: Mapping[str, float]) -> bool:
    first, *others = values.values()
    return all(close(value, first) for value in others)


@dataclass(frozen=True)
class Objections:
    """How often critics object to right scores and to wrong scores.

    A score of a comparison is right if it prefers the label's answer. A critic that objects to
    everything, or at random, has a difference of 0.

    Attributes:
        right, wrong: the scores that critics were shown, by their distance from the label.
        difference: the share of objections to wrong scores minus that to right scores.
    """

    wrong: Annotated[int, Column("wrong scores")]
    to_wrong: Annotated[Statistic, share_column("objected to")]
    """of the wrong scores"""
    right: Annotated[int, Column("right scores")]
    to_right: Annotated[Statistic, share_column("objected to")]
    """of the right scores"""
    difference: Annotated[Statistic, share_column("difference")]
    """above 0: critics object more often to wrong scores"""


def shown_to_critics(turns: Iterable[ReadTurn], human: Judged) -> Iterator[tuple[Turn, bool]]:
    """Yield each critic's turn of a discussion, and whether the score that it saw was right.

    Args:
        turns: the discussion.
        human: the label of the verdict.
    """
    shown: Judged | None = None
    for turn, kind, value in turns:
        if value is not None:
            shown = _judged_by(value)
        elif shown is not None and kind == "objects" and isinstance(turn["value"], bool):
            right = shown == human
            if not isinstance(shown, str) and not isinstance(human, str):
                right = abs(shown - human) <= RIGHT_WITHIN
            yield turn, right


class ObjectionCounter:
    """Collects whether each score shown to a critic was right, and whether the critic objected."""

    def __init__(self) -> None:
        self._shown = NumberRows(right="?", objected="?", cluster="q")

    def add(self, turns: Iterable[ReadTurn], human: Judged, cluster: int) -> None:
        """Add the critics' turns of one discussion; ``human`` is the verdict's label."""
        for turn, right in shown_to_critics(turns, human):
            self._shown.add(right, not turn["value"], cluster)

    def objections(self, resampling: Resampling) -> Objections | None:
        """Return the counts; ``None`` unless critics were shown both right and wrong scores."""
        shown = self._shown.table()
        right, objected, clusters = (shown[field] for field in ("right", "objected", "cluster"))
        if not right.any() or right.all():
            return None
        clusters = number_groups(clusters)
        count = code_count(clusters)
        # For each cluster: wrong scores, objections to them, right scores, objections to them.
        kinds = (~right, ~right & objected, right, right & objected)
        sums = np.stack([np.bincount(clusters, rows) for rows in kinds], axis=1)

        def difference(weights: Weights) -> Floats:
            wrong, to_wrong, of_right, to_right = (weights @ sums).T
            return ratio(to_wrong, wrong) - ratio(to_right, of_right)

        to_wrong, to_right = (
            share_of_rows(objected[of], clusters[of], resampling) for of in (~right, right)
        )
        apart = resampling.statistic(count, difference, bounded=True)
        return Objections(int((~right).sum()), to_wrong, int(right.sum()), to_right, apart)


class CallsByRound:
    """Adds up model calls by round.

    The tie-breaker and the jury decide at the very end and belong to no round.
    """

    def __init__(self) -> None:
        self._first: int | None = None
        self._mixed = False
        self._calls: Counter[int] = Counter()

    def add(self, turns: Iterable[ReadTurn]) -> None:
        """Add the turns of one verdict."""
        for turn, kind, value in turns:
            self._mixed = self._mixed or "stage" in turn
            if kind in ("decides", "votes"):
                continue
            self._calls[turn["round"]] += turn["calls"]
            if kind in ("scores", "panel") and value is not None:
                self._first = (
                    turn["round"] if self._first is None else min(self._first, turn["round"])
                )

    def up_to(self, entry: int, verdicts: int) -> float | None:
        """Return the calls for a verdict up to the round of this entry of ``score_by_round``.

        Entries are numbered from 0. The result is ``None`` if it is unknown.

        It is unknown without transcripts, and in a cascade, whose two protocols number their rounds
        separately.
        """
        if self._first is None or self._mixed:
            return None
        # The first entry belongs to the first round with a score, which may be later than round 1.
        last = self._first + entry
        return sum(calls for round, calls in self._calls.items() if round <= last) / verdicts


def _by_number(reasons: Mapping[str, int]) -> str:
    return "; ".join(f"{number}: {reason}" for reason, number in reasons.items())


@dataclass(frozen=True)
class Replies:
    """How well the replies of models follow the required forms.

    Attributes:
        warnings: every kind of warning with the number of its judgements, without disclosures.
    """

    repaired: Annotated[int, Column("repaired")]
    """judgements with a repair request"""
    unread: Annotated[int, Column("unreadable")]
    """judgements without some samples or votes, which could not be read"""
    copied: Annotated[int, Column("copied")]
    """judgements with a reply that copies its prompt or another agent's words"""
    failed: Annotated[int, Column("failed")]
    """judgements without a verdict"""
    reasons: Annotated[Mapping[str, int], text_column("reason", of=_by_number)]
    """first words of each reason, and how often"""
    health: Annotated[Mapping[str, int], text_column("warnings", of=counts)] = field(
        default_factory=dict
    )
    """judgements in which agents did not work as intended"""
    warnings: Mapping[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Return whether any reply has a fault."""
        return bool(self.repaired or self.unread or self.failed or self.copied or self.health)


class ReplyCounter:
    """Counts faults of replies."""

    def __init__(self) -> None:
        self._unread = 0
        self._reasons: Counter[str] = Counter()
        self._warnings: Counter[str] = Counter()

    def add(self, result: Result) -> None:
        """Count one judgement's warnings, or the reason for a missing verdict."""
        disclosures = (DISCLOSURE, EARLIER_DISCLOSURE, LOCAL_DISCLOSURE)
        warnings = (text for text in result.warnings if text not in disclosures)
        kinds = set(map(kind, warnings))
        # Sorted, because a set of texts has a different order in each process, and equal counts are
        # listed in order of occurrence.
        self._warnings.update(sorted(kinds))
        self._unread += bool(kinds & {UNREAD_SAMPLES.label, VOID_VOTE.label, NO_VOTE.label})
        if result.status == "failed":
            self._reasons[reason(result.error or "no reason given")] += 1

    def replies(self) -> Replies:
        """Return the faults of all judgements so far."""
        return Replies(
            repaired=self._warnings[ASKED_AGAIN.label],
            unread=self._unread,
            copied=self._warnings[COPIED.label],
            failed=self._reasons.total(),
            reasons=dict(self._reasons.most_common()),
            health={
                of.label: self._warnings[of.label] for of in HEALTH if self._warnings[of.label]
            },
            warnings=dict(self._warnings.most_common()),
        )


_AGENT = re.compile(r"^\w+, round \d+: ")
"""The prefix of a warning or an error: the agent and the round."""


def kind(warning: str) -> str:
    """Return the subject of a warning, without agent and round.

    >>> kind("critic, round 2: the reply was asked for again 1 time(s)")
    'reply asked for again'
    >>> kind("judge, round 12: the criteria add up to 80")
    'the criteria add up to #'
    """
    # With # for each number (80, 3.5), so that similar warnings are counted together.
    known = kind_of(warning)
    return known.label if known else re.sub(r"\d+(\.\d+)?", "#", _AGENT.sub("", warning))


def reason(error: str) -> str:
    """Return the first words of the reason for a missing verdict, without agent and round.

    >>> reason("scorer, round 1: No score in the reply. Raw reply: 'x'")
    'No score in the reply.'
    """
    words = _AGENT.sub("", error).partition(" Raw reply:")[0]
    return words if len(words) <= 60 else f"{words[:57].rstrip()}..."
