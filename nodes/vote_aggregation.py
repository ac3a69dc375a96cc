"""Aggregate without calling a model: the referees' mean or majority vote, the jurors' votes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..state.aggregation import mean_of, mean_pair, vote_by_scores, winner_by_mean
from ..state.graph_state import JudgeState
from ..state.settings import SamreSettings
from ..state.transcript import Score, Turn
from ..state.verdict import Winner, winner_of
from .agent_runtime import AgentRuntime
from .courtroom import SIDES


async def average(state: JudgeState, _runtime: AgentRuntime[Any]) -> dict[str, Any]:
    """Average the referees' scores turn by turn; of two answers the one with the higher mean wins."""
    means = _mean_by_round(state["transcript"])
    last = means[-1]
    winner = {"winner": winner_by_mean(last)} if isinstance(last, list) else {}
    # ``scores`` has a reducer that appends: it is still empty here, since no referee writes it.
    return {"scores": means, **winner, "details": {"scores_by_referee": last_scores(state["transcript"])}}


async def vote(state: JudgeState, runtime: AgentRuntime[Any]) -> dict[str, Any]:
    """Average as ``average`` does, but of two answers the one wins that most referees prefer."""
    update = await average(state, runtime)
    if "winner" not in update:
        return update
    winner, details = majority_vote(update["details"]["scores_by_referee"])
    return {**update, "winner": winner, "details": details}


def last_scores(transcript: Iterable[Turn]) -> dict[str, Score]:
    """Return the latest scores of each referee."""
    return {turn["agent"]: score for turn, score in _scored(transcript)}


def scores_over_orders(straight: Iterable[Turn], mapped: Iterable[Turn]) -> dict[str, list[float]]:
    """Average each referee's latest scores over the two orders of the answers."""
    one, two = last_scores(straight), last_scores(mapped)
    return {agent: list(mean_pair([_pair(one[agent]), _pair(two[agent])])) for agent in one}


def majority_vote(pairs: Mapping[str, Sequence[float]]) -> tuple[Winner, dict[str, Any]]:
    """Return who wins the referees' vote, and its details.

    >>> majority_vote({"referee_1": [8, 6], "referee_2": [7, 5]})[0]
    '1'
    """
    outcome = vote_by_scores(pairs)
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


async def tally(state: JudgeState, runtime: AgentRuntime[SamreSettings]) -> dict[str, Any]:
    """Decide a comparison: by the jury's votes where they have a winner, else by the higher mean score.

    ``final`` is the mean pair; ``details`` holds both winners and the count.
    """
    means = mean_scores(state["scores"])
    winner = by_means = winner_of(means)
    details: dict[str, Any] = {"w": by_means, "mean_scores": means, "jury_winner": None, "votes": None}
    if runtime.settings.jurors:
        votes = count_votes(state["transcript"])
        by_votes = winner_of(votes.values())
        details |= {"jury_winner": by_votes, "votes": votes}
        winner = by_means if by_votes == "tie" else by_votes
    return {"final": means, "winner": winner, "details": details}


def mean_scores(scores: Sequence[Score]) -> list[float]:
    """Return the mean of each side's totals over the rounds held.

    >>> mean_scores([[90, 80], [70, 60]])
    [80.0, 70.0]
    """
    pairs = [pair for pair in scores if isinstance(pair, list)]
    return [sum(side) / len(pairs) for side in zip(*pairs, strict=True)]


def count_votes(transcript: Sequence[Turn]) -> dict[str, float]:
    """Count the votes for each answer, or add up the jurors' scores. A void vote counts for neither side."""
    cast = [turn["value"] for turn in transcript if turn["role"] == "juror"]
    scored = [value for value in cast if isinstance(value, list)]
    if scored:
        return {str(side): sum(pair[side - 1] for pair in scored) for side in SIDES}
    # A void vote has the value None, and so is counted for no side.
    return {str(side): cast.count(str(side)) for side in SIDES}
