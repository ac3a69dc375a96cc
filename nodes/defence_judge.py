"""Score one defence alone; the best one of each side represents that side (MORE, section 3.3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..state.graph_state import AgentState, JudgeState
from ..state.settings import MoreSettings
from ..state.transcript import Score
from .agent_runtime import AgentRuntime
from .courtroom import (
    HIGHEST_TOTAL,
    LOWEST_TOTAL,
    SIDES,
    TotalSchema,
    ask_in_court,
    best_rulings,
    selected_advocates,
    side_of,
    side_of_agent,
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
    defences = turns_of_round(state, "advocate", state["round"])
    defence = [turn for turn in defences if turn["agent"] == advocate]
    rounds, totals = runtime.settings.rounds, totals_so_far(state["scores"])
    given = {"side": side, "round": state["round"], "rounds": rounds, "totals": totals}
    own = runtime.prompts.instruction("courtroom/judge_of_one", **given)
    form = TotalSchema(LOWEST_TOTAL, HIGHEST_TOTAL)
    return await ask_in_court(state, runtime, state["agent"], own, defence, form, side=side)


def best_totals(state: JudgeState) -> list[Score]:
    """Return, for each round, the highest total of each side."""
    return [[total_of(turn) for turn in best_rulings(state, round)] for round in _rounds(state)]


def selections(state: JudgeState, tau: float) -> list[dict[str, Any]]:
    """Return each round's totals, their softmax weights, and the advocates whose defences were selected."""
    return [_selection(state, round, tau) for round in _rounds(state)]


def _selection(state: JudgeState, round: int, tau: float) -> dict[str, Any]:
    rulings = turns_of_round(state, "judge", round)
    totals = [[total_of(turn) for turn in rulings if side_of(turn) == side] for side in SIDES]
    weights, picked = [softmax(values, tau) for values in totals], selected_advocates(state, round)
    return {"round": round, "totals": totals, "weights": weights, "picked": picked}


def _rounds(state: JudgeState) -> list[int]:
    """Return the rounds in which single defences were scored."""
    judges = (turn for turn in state["transcript"] if turn["role"] == "judge")
    return sorted({turn["round"] for turn in judges if side_of(turn) > 0})


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
