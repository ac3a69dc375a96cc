"""Combine several judgements into one: means, majority votes, and pairs given in swapped answer order."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any, Literal, NamedTuple, TypeVar

from .transcript import Score
from .verdict import Winner, winner_of

T = TypeVar("T")


def mean_of(scores: Sequence[Score]) -> Score:
    """Return the mean of scores, or of pairs answer by answer.

    >>> mean_of([3, 4]), mean_of([[8, 6], [7, 7]])
    (3.5, [7.5, 6.5])
    """
    if pairs := [score for score in scores if isinstance(score, list)]:
        return list(mean_pair(pairs))
    return fmean(score for score in scores if not isinstance(score, list))


def mean_pair(pairs: Iterable[Sequence[float]]) -> tuple[float, float]:
    """Return the mean of pairs, answer by answer.

    >>> mean_pair([(8, 6), (7, 7)])
    (7.5, 6.5)
    """
    first, second = zip(*pairs, strict=True)
    return fmean(first), fmean(second)


def winner_by_mean(scores: Sequence[float]) -> Winner:
    """Return the answer with the higher mean score; means that differ by rounding errors alone are a tie.

    >>> winner_by_mean([0.1 + 0.2, 0.3]), winner_by_mean([7.5, 7.0])
    ('tie', '1')
    """
    first, second = scores
    # Means of the same scores, added up in another order, differ in the last bits of a float.
    return "tie" if math.isclose(first, second, rel_tol=1e-9) else winner_of((first, second))


class VoteResult(NamedTuple):
    """Hold the winner of a vote, the votes by voter, and whether a majority or the mean scores decided."""

    winner: Winner
    votes: dict[str, Winner]
    decided_by: Literal["majority", "average"]


def vote_by_scores(pairs: Mapping[str, Sequence[float]]) -> VoteResult:
    """Turn each voter's pair of scores into a vote for the higher one, and return what the absolute majority votes for.

    Equal scores are a vote for neither answer, but count as a voter. Without an absolute majority for an answer the
    higher mean score wins; equal means are a tie.

    >>> vote_by_scores({"a": [8, 7], "b": [7, 6], "c": [1, 10]}).winner
    '1'
    >>> vote_by_scores({"a": [8, 7], "b": [1, 10]})
    VoteResult(winner='2', votes={'a': '1', 'b': '2'}, decided_by='average')
    """
    votes = {voter: winner_by_mean(pair) for voter, pair in pairs.items()}
    preferred = Counter(vote for vote in votes.values() if vote != "tie").most_common(1)
    # Of all voters, not of the votes for an answer: voters with equal scores can keep both from a majority.
    if preferred and 2 * preferred[0][1] > len(votes):
        return VoteResult(preferred[0][0], votes, "majority")
    return VoteResult(winner_by_mean(mean_pair(pairs.values())), votes, "average")


def swapped(value: Any) -> Any:
    """Convert a value given for swapped answers to the order of the task: pairs are reversed, winners change sides.

    Values without sides (a score, a tie, None) are returned as they are.

    >>> swapped([8.0, 6.0]), swapped("1"), swapped("tie"), swapped(None)
    ([6.0, 8.0], '2', 'tie', None)
    """
    if isinstance(value, list | tuple):
        return list(reversed(value))
    return {"1": "2", "2": "1"}.get(value, value) if isinstance(value, str) else value


def standard_deviation(scores: Sequence[Score]) -> Score | None:
    """Return the sample standard deviation (n - 1) of scores, or of pairs answer by answer; None for a single score.

    >>> standard_deviation([2, 4]) == math.sqrt(2)
    True
    >>> standard_deviation([[8, 6], [8, 6]]), standard_deviation([3])
    ([0.0, 0.0], None)
    """
    if len(scores) < 2:
        return None
    if pairs := [score for score in scores if isinstance(score, list)]:
        return [stdev(side) for side in zip(*pairs, strict=True)]
    return stdev(score for score in scores if not isinstance(score, list))


def majority(votes: Sequence[T]) -> T | None:
    """Return the value that more than half of the votes have, or None.

    >>> majority(["1", "tie", "1"]), majority([3.0, 4.0])
    ('1', None)
    """
    # At most one value can have more than half, so the most frequent one is the only candidate.
    [(first, count)] = Counter(votes).most_common(1)
    return first if 2 * count > len(votes) else None


def mean_by_round(runs: Sequence[Sequence[Score]]) -> list[Score]:
    """Return the mean score over several runs after each round; a run that ended earlier keeps its last score.

    >>> mean_by_round([[3, 5], [4]])
    [3.5, 4.5]
    """
    # A run without any score has no last one to keep.
    if not all(runs):
        return []
    longest = max(map(len, runs))
    padded = ([*run, *[run[-1]] * (longest - len(run))] for run in runs)
    return [mean_of(scores) for scores in zip(*padded, strict=True)]
