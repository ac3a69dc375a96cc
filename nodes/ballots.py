"""Counting what referees have handed in: an average, or for two answers a majority vote (ChatEval, section 2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..state.aggregation import higher, mean_of, mean_pair, poll
from ..state.graph_state import JudgeState
from ..state.transcript import Score, Turn
from ..state.verdict import Winner
from .hearing import Hearing


async def average(state: JudgeState, _hearing: Hearing[Any]) -> dict[str, Any]:
    """The mean of the referees' scores, turn by turn; of two answers the one with the higher mean wins."""
    means = _mean_by_round(state["transcript"])
    last = means[-1]
    winner = {"winner": higher(last)} if isinstance(last, list) else {}
    return {"scores": means, **winner, "details": {"scores_by_referee": last_scores(state["transcript"])}}


async def vote(state: JudgeState, hearing: Hearing[Any]) -> dict[str, Any]:
    """The same, but of two answers the one wins that most referees prefer."""
    update = await average(state, hearing)
    if "winner" not in update:
        return update
    winner, details = elected(update["details"]["scores_by_referee"])
    return {**update, "winner": winner, "details": details}


def last_scores(transcript: Iterable[Turn]) -> dict[str, Score]:
    """Each referee's scores when it last gave any."""
    return {turn["agent"]: score for turn, score in _scored(transcript)}


def scores_over_orders(straight: Iterable[Turn], mapped: Iterable[Turn]) -> dict[str, list[float]]:
    """Each referee's last scores, averaged over the two orders of the answers."""
    one, two = last_scores(straight), last_scores(mapped)
    return {agent: list(mean_pair([_pair(one[agent]), _pair(two[agent])])) for agent in one}


def elected(pairs: Mapping[str, Sequence[float]]) -> tuple[Winner, dict[str, Any]]:
    """Who wins the referees' vote, and how it went.

    >>> elected({"referee_1": [8, 6], "referee_2": [7, 5]})[0]
    '1'
    """
    outcome = poll(pairs)
    details = {"scores_by_referee": dict(pairs), "votes": outcome.votes, "decided_by": outcome.decided_by}
    return outcome.winner, details


def _pair(score: Score) -> list[float]:
    assert isinstance(score, list)
    return score


def _scored(transcript: Iterable[Turn]) -> list[tuple[Turn, Score]]:
    values = [(turn, turn["value"]) for turn in transcript if turn["role"] == "referee"]
    return [(turn, value) for turn, value in values if isinstance(value, float | list)]


def _mean_by_round(transcript: Iterable[Turn]) -> list[Score]:
    rounds: dict[int, list[Score]] = {}
    for turn, score in _scored(transcript):
        rounds.setdefault(turn["round"], []).append(score)
    return [mean_of(scores) for scores in rounds.values()]
