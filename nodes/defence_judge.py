"""Score one defence alone; the best one of each side represents that side (MORE, section 3.3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..state.graph_state import AgentState, JudgeState
from ..state.settings import MoreSettings
from ..state.transcript import Score, Turn
from .agent_runtime import AgentRuntime, Question
from .courtroom import (
    HIGHEST_TOTAL,
    LOWEST_TOTAL,
    SIDES,
    TotalSchema,
    best_rulings,
    court_details,
    court_prompt,
    read_points,
    selected_advocates,
    side_of,
    side_of_agent,
    sums_that_differ,
    total_of,
    totals_so_far,
    turns_of_round,
)


async def defence_judge(state: AgentState, runtime: AgentRuntime[MoreSettings]) -> dict[str, Any]:
    """Ask for the total of one defence: ``judge_1_2`` scores that of ``advocate_1_2``.

    Shown: the case and the defence.
    """
    side = side_of_agent(state["agent"])
    advocate = state["agent"].replace("judge", "advocate", 1)
    defence = [
        turn for turn in turns_of_round(state, "advocate", state["round"]) if turn["agent"] == advocate
    ]
    given = {
        "round": state["round"],
        "rounds": runtime.settings.rounds,
        "totals": totals_so_far(state["scores"]),
    }
    own = runtime.prompts.instruction("courtroom/judge_of_one", side=side, **given)
    prompt = court_prompt(state, runtime.prompts, own, defence)
    form = TotalSchema(LOWEST_TOTAL, HIGHEST_TOTAL)
    answer = await runtime.ask(
        Question(state["agent"], "judge", state["round"], prompt, form, court_details(side=side))
    )
    return {**answer.update, "warnings": [*answer.warnings, *_sums(answer.turn)]}


def best_totals(state: JudgeState) -> list[Score]:
    """Return, for each round, the highest total of each side."""
    rounds = sorted({turn["round"] for turn in state["transcript"] if _scores_one_defence(turn)})
    return [[total_of(turn) for turn in best_rulings(state, round)] for round in rounds]


def selections(state: JudgeState, tau: float) -> list[dict[str, Any]]:
    """Return each round's totals, their softmax weights, and the advocates whose defences were selected."""
    rounds = sorted({turn["round"] for turn in state["transcript"] if _scores_one_defence(turn)})
    return [_selection(state, round, tau) for round in rounds]


def _selection(state: JudgeState, round: int, tau: float) -> dict[str, Any]:
    rulings = turns_of_round(state, "judge", round)
    totals = [[total_of(turn) for turn in rulings if side_of(turn) == side] for side in SIDES]
    return {
        "round": round,
        "totals": totals,
        "weights": [softmax(values, tau) for values in totals],
        "picked": selected_advocates(state, round),
    }


def _scores_one_defence(turn: Turn) -> bool:
    return turn["role"] == "judge" and side_of(turn) > 0


def softmax(totals: Sequence[float], tau: float) -> list[float]:
    """Return the softmax weights of totals at temperature ``tau``, after scaling them to the range 0 to 1 (MORE, 3.3).

    >>> softmax([63, 63], tau=0.1)
    [0.5, 0.5]
    """
    # Differences to the highest total, so that no exponential overflows at a small tau; the weights are the same.
    highest = max(totals)
    span = HIGHEST_TOTAL - LOWEST_TOTAL
    raw = [math.exp((total - highest) / span / tau) for total in totals]
    return [weight / sum(raw) for weight in raw]


def _sums(turn: Turn) -> list[str]:
    points = read_points(turn["content"], side_of(turn))
    # Points of the other side are None, so that its copy of the total is not compared with anything.
    faults = sums_that_differ(points, [total_of(turn)] * len(SIDES))
    return [f"{turn['agent']}, round {turn['round']}: {fault}" for fault in faults]
