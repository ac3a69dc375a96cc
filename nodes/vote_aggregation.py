"""Decide by several voices without calling a model: the referees' mean or majority vote, the jurors' votes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..state.aggregation import mean_pair, vote_by_scores, winner_by_mean
from ..state.graph_state import JudgeState
from ..state.settings import SamreSettings, Settings
from ..state.transcript import Score, Turn
from ..state.verdict import Winner, winner_of
from .courtroom import SIDES
from .decision import Decision, nearest
from .round_scores import score_of


def average(state: JudgeState, _settings: Settings) -> Decision:
    """Take the mean of the referees' last scores; of two answers the one with the higher mean wins."""
    final = state["scores"][-1]
    referees = _turns(state, "referee")
    details = {**state["details"], "scores_by_referee": last_scores(referees)}
    winner = winner_by_mean(final) if isinstance(final, list) else None
    return Decision(final, nearest(referees, final), winner, details)


def vote(state: JudgeState, settings: Settings) -> Decision:
    """Take the mean as ``average`` does, but of two answers the one wins that most referees prefer."""
    averaged = average(state, settings)
    if averaged.winner is None:
        return averaged
    winner, details = majority_vote(averaged.details["scores_by_referee"])
    turn = _on_the_side_of(winner, _turns(state, "referee"), averaged)
    return Decision(averaged.final, turn, winner, {**averaged.details, **details})


def last_scores(transcript: Iterable[Turn]) -> dict[str, Score]:
    """Return the latest scores of each referee."""
    scores = ((turn["agent"], score_of(turn)) for turn in transcript if turn["role"] == "referee")
    return {agent: score for agent, score in scores if score is not None}


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


def _turns(state: JudgeState, role: str) -> list[Turn]:
    return [turn for turn in state["transcript"] if turn["role"] == role]


def _on_the_side_of(winner: Winner, turns: Sequence[Turn], averaged: Decision) -> Turn | None:
    """Return the turn nearest to the mean among those of the last round that prefer the winner, if any does."""
    last = max((turn["round"] for turn in turns), default=0)
    agreeing = [
        turn
        for turn in turns
        if turn["round"] == last
        and isinstance(turn["value"], list)
        and winner_by_mean(turn["value"]) == winner
    ]
    return nearest(agreeing, averaged.final) or averaged.turn


def by_jury(state: JudgeState, settings: SamreSettings) -> Decision:
    """Decide a comparison: by the jury's votes where they have a winner, else by the higher mean score.

    The mean pair is the final one; the details hold both winners and the count.
    """
    means = mean_totals(state["scores"])
    winner = by_means = winner_of(means)
    details: dict[str, Any] = {"w": by_means, "mean_scores": means, "jury_winner": None, "votes": None}
    turn = nearest(_turns(state, "judge"), means)
    if settings.jurors:
        # The latest turn of each: the jury may have been asked again after a turn was edited.
        jurors = [*{turn["agent"]: turn for turn in _turns(state, "juror")}.values()]
        votes = count_votes(jurors)
        by_votes = winner_of(votes.values())
        details |= {"jury_winner": by_votes, "votes": votes, **_void(jurors)}
        if by_votes != "tie":
            winner = by_votes
            turn = next((juror for juror in jurors if _vote_of(juror) == winner), turn)
    return Decision(means, turn, winner, {**state["details"], **details})


def mean_totals(scores: Sequence[Score]) -> list[float]:
    """Return the mean of each side's totals over the rounds held.

    >>> mean_totals([[90, 80], [70, 60]])
    [80.0, 70.0]
    """
    pairs = [pair for pair in scores if isinstance(pair, list)]
    return [sum(side) / len(pairs) for side in zip(*pairs, strict=True)]


def count_votes(jurors: Sequence[Turn]) -> dict[str, float]:
    """Count the jurors' votes for each answer, or add up their scores. A void vote counts for neither side."""
    cast = [turn["value"] for turn in jurors]
    scored = [value for value in cast if isinstance(value, list)]
    if scored:
        return {str(side): sum(pair[side - 1] for pair in scored) for side in SIDES}
    # A void vote has the value None, and so is counted for no side.
    return {str(side): cast.count(str(side)) for side in SIDES}


def _vote_of(juror: Turn) -> Any:
    value = juror["value"]
    return winner_of(value) if isinstance(value, list) else value


def _void(jurors: Sequence[Turn]) -> dict[str, Any]:
    return {"void_votes": sum(turn["value"] is None for turn in jurors)}
