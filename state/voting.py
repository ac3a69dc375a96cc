"""Choose among several answers by the ballots that voters cast on every two of them (social choice).

The rules, of which the courtroom paper (section 2) names the first two:

majority    each voter's first choice counts, the answer that it prefers most often; more than half of them elect
borda       an answer has a point for every answer that a voter puts below it, and half a point for a tie (Borda 1781)
condorcet   who beats every other answer by a majority is elected; else the order is by duels won (Copeland 1951)
approval    a voter approves of the answers that it gives a certain score or a higher one (Brams and Fishburn 1978)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from statistics import fmean
from typing import Literal, NamedTuple, get_args

from .errors import UsageError
from .verdict import Winner

VotingRule = Literal["majority", "borda", "condorcet", "approval"]
RULES: tuple[VotingRule, ...] = get_args(VotingRule)


class Duel(NamedTuple):
    """Hold what voters said of two answers.

    Attributes:
        first, second: the numbers of the answers, from 1.
        votes: of each voter the one it prefers: ``"1"`` for the first, ``"2"``, or ``tie``.
        scores: of each voter who scores the two scores.
    """

    first: int
    second: int
    votes: Mapping[str, Winner]
    scores: Mapping[str, Sequence[float]] = {}


class Election(NamedTuple):
    """Hold the outcome of a vote.

    Attributes:
        winner: the number of the answer that is elected; ``None`` where the rule elects none.
        ranking: the answers, the best first; those with equal points in the order of their numbers.
        points: of each answer, by what the rule counts.
        why: the reason in a sentence.
    """

    winner: int | None
    ranking: tuple[int, ...]
    points: tuple[float, ...]
    why: str


def elect(rule: VotingRule, answers: int, duels: Sequence[Duel], approve_from: float = 0.0) -> Election:
    """Elect one of several answers.

    Args:
        rule: by which votes are counted.
        answers: how many there are.
        duels: one for every two of them.
        approve_from: the lowest score that approves, for ``approval``.

    Raises:
        UsageError: an unknown rule, or scores that ``approval`` needs and nobody gave.

    >>> cycle = [Duel(1, 2, {"a": "1", "b": "1", "c": "2"}), Duel(2, 3, {"a": "1", "b": "2", "c": "1"}),
    ...     Duel(1, 3, {"a": "1", "b": "2", "c": "2"})]
    >>> elect("condorcet", 3, cycle)
    Election(winner=None, ranking=(1, 2, 3), points=(1.0, 1.0, 1.0), why='no answer beats every other one')
    """
    if rule not in RULES:
        raise UsageError(f"unknown voting rule {rule!r}; rules are {', '.join(RULES)}")
    points = [0.0] * answers
    voters = list(dict.fromkeys(voter for duel in duels for voter in duel.votes))
    if rule == "condorcet":
        points = _points(duels, answers, _duel_won)
        wins = max(points) == answers - 1
        why = "it beats every other answer" if wins else "no answer beats every other one"
        return _election(points, wins, why)
    if rule == "borda":
        return _highest(_points(duels, answers, _shares), "it has the most points")
    if rule == "approval":
        scored = _scores(duels)
        if not scored:
            raise UsageError("the rule approval counts scores, but these voters give none: use another rule")
        for (_, number), scores in scored.items():
            points[number - 1] += fmean(scores) >= approve_from
        return _highest(points, f"most voters give it {approve_from:g} or more")
    for voter in voters:
        own = [duel._replace(votes={voter: duel.votes[voter]}) for duel in duels if voter in duel.votes]
        preferred = _points(own, answers, _shares)
        first = [place for place, count in enumerate(preferred) if count == max(preferred)]
        for place in first:
            points[place] += 1 / len(first)
    elected = max(points) * 2 > len(voters)
    who = "it" if elected else "no answer"
    return _election(points, elected, f"{who} is the first choice of more than half")


def duel_numbers(answers: int) -> list[tuple[int, int]]:
    """Return every two of so many answers, by number.

    >>> duel_numbers(3)
    [(1, 2), (1, 3), (2, 3)]
    """
    return list(combinations(range(1, answers + 1), 2))


def _shares(duel: Duel) -> float:
    return sum({"1": 1.0, "2": 0.0}.get(vote, 0.5) for vote in duel.votes.values())


def _duel_won(duel: Duel) -> float:
    preferred = _shares(duel) * 2 - len(duel.votes)
    return 1.0 if preferred > 0 else 0.0 if preferred < 0 else 0.5


def _points(duels: Sequence[Duel], answers: int, first: Callable[[Duel], float]) -> list[float]:
    """Add up what the first answer of each duel gets; the second gets what is left."""
    points = [0.0] * answers
    for duel in duels:
        whole = float(len(duel.votes)) if first is _shares else 1.0
        points[duel.first - 1] += first(duel)
        points[duel.second - 1] += whole - first(duel)
    return points


def _scores(duels: Sequence[Duel]) -> dict[tuple[str, int], list[float]]:
    """Collect each voter's scores of each answer over all duels."""
    scores: dict[tuple[str, int], list[float]] = {}
    for duel in duels:
        for voter, pair in duel.scores.items():
            for number, score in zip((duel.first, duel.second), pair, strict=True):
                scores.setdefault((voter, number), []).append(score)
    return scores


def _highest(points: Sequence[float], why: str) -> Election:
    alone = points.count(max(points)) == 1
    return _election(points, alone, why if alone else "several answers have equally many points")


def _election(points: Sequence[float], elected: bool, why: str) -> Election:
    ranking = sorted(range(1, len(points) + 1), key=lambda number: -points[number - 1])
    return Election(ranking[0] if elected else None, tuple(ranking), tuple(points), why)
