"""The judge in court: scores both sides on six criteria, and tells them what to do better (MORE, SAMRE, baseline)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..state.graph_state import JudgeState
from ..state.settings import BaselineSettings, MoreSettings, SamreSettings
from ..state.transcript import Turn
from .agent_runtime import Answer, Hearing, Question
from .courtroom import (
    HIGHEST_TOTAL,
    LOWEST_TOTAL,
    court_details,
    court_prompt,
    picked_in,
    presented,
    read_points,
    spoken_in,
    sums_that_differ,
    totals_so_far,
)
from .output_schemas import TextForm, TotalsForm


async def judge_alone(state: JudgeState, hearing: Hearing[BaselineSettings]) -> dict[str, Any]:
    """Ask for the totals of both answers, with no debate to go by."""
    own = hearing.prompts.render("courtroom/baseline")
    form = TotalsForm(LOWEST_TOTAL, HIGHEST_TOTAL, explained=True)
    return {**await _judged(state, hearing, own, form), "round": 1}


async def judge_of_teams(state: JudgeState, hearing: Hearing[MoreSettings]) -> dict[str, Any]:
    """Ask for both sides' totals in this round.

    Shown: the case, this round's defences, earlier totals.
    """
    record = presented(state, state["round"])
    own = _own(state, hearing, hearing.settings.rounds, "")
    return await _judged(state, hearing, own, _WITH_FEEDBACK, record)


async def judge_of_round(state: JudgeState, hearing: Hearing[SamreSettings]) -> dict[str, Any]:
    """Ask for both sides' totals in this round, and for feedback.

    Shown: the case, this round's two arguments, earlier totals.
    """
    record = spoken_in(state, "advocate", state["round"])
    own = _own(state, hearing, hearing.settings.max_rounds, "at most ")
    return await _judged(state, hearing, own, _WITH_FEEDBACK, record)


async def feedback(state: JudgeState, hearing: Hearing[MoreSettings]) -> dict[str, Any]:
    """Ask for what should set the sides more clearly apart.

    Shown: the case, this round's defences, the judge's own ruling on them.
    """
    round, settings = state["round"], hearing.settings
    totals = totals_so_far(state["scores"])
    own = hearing.prompts.render("courtroom/feedback", round=round, rounds=settings.rounds, totals=totals)
    record = [*presented(state, round), *_rulings(state, round)]
    answer = await hearing.ask(
        Question(
            agent="judge",
            role="judge",
            round=round,
            prompt=court_prompt(state, hearing.prompts, own, record),
            form=TextForm(),
            details=court_details(last_value=state["scores"][-1]),
        )
    )
    return answer.update


_WITH_FEEDBACK = TotalsForm(LOWEST_TOTAL, HIGHEST_TOTAL, feedback=True)


async def _judged(
    state: JudgeState, hearing: Hearing[Any], own: str, form: TotalsForm, record: Sequence[Turn] | None = None
) -> dict[str, Any]:
    scores = state["scores"]
    answer = await hearing.ask(
        Question(
            agent="judge",
            role="judge",
            round=max(state["round"], 1),
            prompt=court_prompt(state, hearing.prompts, own, record),
            form=form,
            details=court_details(last_value=scores[-1] if scores else None),
        )
    )
    return {**answer.update, "scores": [answer.value], **_by_criterion(state, answer)}


def _by_criterion(state: JudgeState, answer: Answer) -> dict[str, Any]:
    """The points behind the totals, for the record; a sum that differs from its total is told, and changes nothing."""
    turn, totals = answer.turn, answer.value
    points = read_points(turn["content"])
    faults = sums_that_differ(points, totals) if isinstance(totals, list) else []
    told = [f"{turn['agent']}, round {turn['round']}: {fault}" for fault in faults]
    criteria = [*state["details"].get("criteria", ()), points]
    return {"warnings": [*answer.warnings, *told], "details": {"criteria": criteria}}


def _own(state: JudgeState, hearing: Hearing[Any], rounds: int, most: str) -> str:
    given = {
        "round": state["round"],
        "rounds": rounds,
        "most": most,
        "totals": totals_so_far(state["scores"]),
    }
    return hearing.prompts.render("courtroom/judge", **given)


def _rulings(state: JudgeState, round: int) -> list[Turn]:
    """What the judge said of what was put before it."""
    judged = {name.replace("advocate", "judge", 1) for name in picked_in(state, round)} or {"judge"}
    return [turn for turn in spoken_in(state, "judge", round) if turn["agent"] in judged]
