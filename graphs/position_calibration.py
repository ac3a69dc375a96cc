"""Make one verdict of two answers that were judged in both orders: balanced position calibration (FairEval, 3).

Protocols that are calibrated by themselves (``single``, ``ensemble``, ``chateval``, ``faireval``) have their agents
asked in both orders in one graph; ``calibrated`` runs any other protocol's graph twice. What is said of the swapped
answers is mapped back to the task's order. Scores are averages over the two orders, the answer with the higher average
wins, and the verdict tells whether both orders agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ..nodes.verdicts import joint_verdict
from ..state.aggregation import mean_pair, swapped, winner_by_mean
from ..state.graph_state import JudgeOutput
from ..state.transcript import Turn
from ..state.verdict import Verdict, Winner
from ..state.verdict_warnings import INCONSISTENT


def weigh_orders(
    straight: JudgeOutput,
    mapped: JudgeOutput,
    winner: Winner | None = None,
    details: Mapping[str, Any] | None = None,
) -> Verdict:
    """Make one verdict of two: average scores, with the winner of each order in the details.

    Args:
        straight: the outcome with the answers in the task's order.
        mapped: the outcome with the answers swapped, mapped back to the task's order.
        winner: the winner; without it, the answer with the higher average wins.
        details: the protocol's own details; without them, those of the two orders' verdicts, unchanged.
    """
    first, second = (Verdict.of(cast("Mapping[str, Any]", outcome)) for outcome in (straight, mapped))
    by_order = [list(verdict.scores or ()) for verdict in (first, second)]
    scores, stops = mean_pair(by_order), [first.stop_reason, second.stop_reason]
    # Those who speak before anybody sees the answers, such as a planner, belong to both orders and were asked once.
    turns = {turn.get("id"): turn for turn in (*straight["transcript"], *mapped["transcript"])}
    own = {"details_by_order": [first.details, second.details]} if first.details or second.details else {}
    return joint_verdict(
        (first, second),
        turns.values(),
        scores=scores,
        winner=winner or winner_by_mean(scores),
        position_consistent=first.winner == second.winner,
        details={
            "calibrated": True,
            "winner_by_order": [first.winner, second.winner],
            "scores_by_order": by_order,
            **({} if stops[0] == stops[1] else {"stop_reasons": stops}),
            **(own if details is None else details),
        },
        warnings=_inconsistency(first, second),
        **_explanation(first, second, winner or winner_by_mean(scores)),
    )


def as_given(turn: Turn) -> Turn:
    """Mark a turn of a graph that was shown the answers in the task's order."""
    return cast("Turn", {**turn, "id": f"straight/{turn.get('id')}", "order": turn.get("order", 1)})


def mapped_back(turn: Turn) -> Turn:
    """Mark a turn of a graph that was shown the answers swapped; its value is put into the task's order."""
    # 1 becomes 2 and 2 becomes 1: the inner graph may itself have judged both orders.
    order = 3 - turn.get("order", 1)
    marks = {"id": f"swapped/{turn.get('id')}", "order": order, "value": swapped(turn["value"])}
    return cast("Turn", {**turn, **marks})


def outcome_mapped_back(outcome: JudgeOutput) -> JudgeOutput:
    """Map the outcome for swapped answers back: its values in the task's order, the agents' words unchanged."""
    verdict = {**outcome["verdict"]}
    verdict.update({key: swapped(verdict[key]) for key in ("scores", "winner")})
    verdict["score_by_round"] = [swapped(pair) for pair in verdict["score_by_round"]]
    verdict["explained_by"] = f"swapped/{verdict.get('explained_by')}"
    return JudgeOutput(verdict=verdict, transcript=[mapped_back(turn) for turn in outcome["transcript"]])


def _explanation(first: Verdict, second: Verdict, winner: Winner) -> dict[str, Any]:
    """Return the words of an order with the common winner; those on swapped answers name them the other way round."""
    if second.winner != winner or first.winner == winner:
        return {"explanation": first.explanation, "explained_by": first.explained_by}
    words = f"(With the answers swapped: answer 1 is here the task's answer 2.) {second.explanation}"
    return {"explanation": words, "explained_by": second.explained_by}


def _inconsistency(first: Verdict, second: Verdict) -> tuple[str, ...]:
    if first.winner == second.winner:
        return ()
    named = {"1": "answer 1 wins", "2": "answer 2 wins", "tie": "a tie", None: "no winner"}
    given = f"{named[first.winner]} with the answers in the given order"
    return (INCONSISTENT.of(winners=f"{given}, {named[second.winner]} with them swapped"),)
