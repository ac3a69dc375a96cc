"""Score each defence alone; the best one of each side represents that side (MORE, section 3.3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..state.graph_state import JudgeState
from ..state.settings import MoreSettings
from ..state.transcript import Turn
from .agent_runtime import AgentRuntime, Answer, Question
from .courtroom import (
    HIGHEST_TOTAL,
    LOWEST_TOTAL,
    SIDES,
    court_details,
    court_prompt,
    merge_answers,
    read_points,
    side_of,
    sums_that_differ,
    totals_so_far,
    turns_of_round,
)
from .output_schemas import TotalSchema


async def judge_of_each(state: JudgeState, runtime: AgentRuntime[MoreSettings]) -> dict[str, Any]:
    """Ask for the total of each defence, all at once; the highest total of each side make the round's pair.

    Shown: the case and one defence. ``details["best"]`` holds all totals, the selected advocates, and softmax weights.
    """
    defences = turns_of_round(state, "advocate", state["round"])
    answers = await runtime.ask_all([_question(state, runtime, defence) for defence in defences])
    entry = picked(answers, runtime.settings.tau)
    best = [*state["details"].get("best", ()), {"round": state["round"], **entry}]
    update = merge_answers(answers)
    return {
        **update,
        "warnings": [*update["warnings"], *_sums(answers)],
        "scores": [[max(totals) for totals in entry["totals"]]],
        "details": {"best": best, "tau": runtime.settings.tau},
    }


def picked(answers: Sequence[Answer], tau: float) -> dict[str, Any]:
    """Return totals and softmax weights of each side's defences, and the advocate with the highest total of each side.

    Of equal totals the first one's advocate is selected.
    """
    turns = [[answer.turn for answer in answers if side_of(answer.turn) == side] for side in SIDES]
    totals = [[_total(turn) for turn in of_side] for of_side in turns]
    best = [of_side[values.index(max(values))] for of_side, values in zip(turns, totals, strict=True)]
    return {
        "totals": totals,
        "weights": [softmax(values, tau) for values in totals],
        # judge_1_2 scored the defence of advocate_1_2; ``_question`` names it so.
        "picked": [turn["agent"].replace("judge", "advocate", 1) for turn in best],
    }


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


def _question(state: JudgeState, runtime: AgentRuntime[MoreSettings], defence: Turn) -> Question:
    side = side_of(defence)
    given = {
        "round": state["round"],
        "rounds": runtime.settings.rounds,
        "totals": totals_so_far(state["scores"]),
    }
    own = runtime.prompts.instruction("courtroom/judge_of_one", side=side, **given)
    return Question(
        agent=defence["agent"].replace("advocate", "judge", 1),
        role="judge",
        round=state["round"],
        prompt=court_prompt(state, runtime.prompts, own, [defence]),
        form=TotalSchema(LOWEST_TOTAL, HIGHEST_TOTAL),
        details=court_details(side=side),
    )


def _total(turn: Turn) -> float:
    value = turn["value"]
    assert isinstance(value, float), "a TotalSchema reads one number"
    return value


def _sums(answers: Sequence[Answer]) -> list[str]:
    warnings = []
    for turn in (answer.turn for answer in answers):
        points = read_points(turn["content"], side_of(turn))
        # Points of the other side are None, so that its copy of the total is not compared with anything.
        faults = sums_that_differ(points, [_total(turn)] * len(SIDES))
        warnings += [f"{turn['agent']}, round {turn['round']}: {fault}" for fault in faults]
    return warnings
