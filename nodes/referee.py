"""A referee: speaks in the discussion, and at its end hands in its scores (ChatEval, section 2, appendix A).

An ensemble's referees answer the same prompt with the history left out, the single scorer with history and role
left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..state.graph_state import JudgeState
from ..state.settings import ChatEvalSettings, EnsembleSettings, SingleSettings
from ..state.transcript import Turn, last_by
from .agent_runtime import Answer, Hearing, Question
from .output_schemas import TextForm
from .personas import Seat, cast
from .prompt_context import particulars, prompt_for, score_form, task_of, wanted


async def referee(state: JudgeState, hearing: Hearing[ChatEvalSettings]) -> dict[str, Any]:
    """Have the next referee speak; where they talk simultaneously, all of them at the same time.

    Shown: the material, the rubric, the discussion so far (or its summary), who the referee is. Argues in words;
    asked for scores in the last turn, or in each where the settings say so.
    """
    settings = hearing.settings
    seats = await cast(settings)
    said = len(spoken(state))
    round = said // len(seats) + 1
    speakers = [seats[said % len(seats)]] if settings.strategy == "one_by_one" else seats
    questions = [_contribution(state, hearing, seat, round) for seat in speakers]
    return {**_heard(await hearing.ask_all(questions), seats), "round": round}


async def unheard_referees(state: JudgeState, hearing: Hearing[EnsembleSettings]) -> dict[str, Any]:
    """Have all referees of an ensemble score at the same time, none knowing of the others."""
    seats = await cast(hearing.settings)
    questions = [_verdict(state, hearing, seat) for seat in seats]
    return {**_heard(await hearing.ask_all(questions), seats), "round": 1}


async def lone_scorer(state: JudgeState, hearing: Hearing[SingleSettings]) -> dict[str, Any]:
    """Have one scorer answer, who has neither a role nor anybody to talk to."""
    answer = await hearing.ask(_verdict(state, hearing))
    return {**answer.update, "scores": [answer.value], "round": 1}


def spoken(state: JudgeState) -> list[Turn]:
    """What the referees have said."""
    return [turn for turn in state["transcript"] if turn["role"] == "referee"]


def turn_is_over(state: JudgeState) -> bool:
    """Whether every referee has spoken in this turn."""
    return len(spoken(state)) % len(state["details"]["roles"]) == 0


def shown(state: JudgeState, settings: ChatEvalSettings) -> list[Turn]:
    """The discussion as a referee sees it: all that was said, or the latest summary in its place."""
    if settings.strategy == "summarizer" and settings.summary == "replace":
        latest = last_by(state["transcript"], "summarizer")
        return [latest] if latest else []
    return state["transcript"]


def _contribution(state: JudgeState, hearing: Hearing[ChatEvalSettings], seat: Seat, round: int) -> Question:
    settings, task = hearing.settings, task_of(state)
    last = round == settings.turns
    scored = last or settings.score_each_turn
    own = _own(state, hearing, seat, others=True, last=last, scored=scored)
    return Question(
        agent=seat.agent,
        role="referee",
        round=round,
        prompt=prompt_for(state, hearing.prompts, own, shown(state, settings)),
        form=score_form(task) if scored else TextForm(),
        details={**particulars(task), "persona": seat.name},
    )


def _verdict(state: JudgeState, hearing: Hearing[Any], seat: Seat | None = None) -> Question:
    task = task_of(state)
    own = _own(state, hearing, seat, others=False, last=True, scored=True)
    return Question(
        agent=seat.agent if seat else "scorer",
        role="referee" if seat else "scorer",
        round=1,
        prompt=prompt_for(state, hearing.prompts, own),
        form=score_form(task),
        details={**particulars(task), **({"persona": seat.name} if seat else {})},
    )


def _own(state: JudgeState, hearing: Hearing[Any], seat: Seat | None, **flags: bool) -> str:
    """What is the agent's own in the prompt: who it is, and what it is to do now."""
    task, prompts = task_of(state), hearing.prompts
    return prompts.render(
        "chateval/referee",
        role=seat.words(prompts, task) if seat else "",
        title=seat.title if seat else "",
        agent=seat.agent if seat else "",
        wanted=wanted(task),
        **flags,
    )


def _heard(answers: Sequence[Answer], seats: Sequence[Seat]) -> dict[str, Any]:
    alone = ["there is only one referee: nobody to discuss with"] if len(seats) == 1 else []
    return {
        "transcript": [answer.turn for answer in answers],
        "warnings": [*alone, *(warning for answer in answers for warning in answer.warnings)],
        "details": {"roles": {seat.agent: seat.name for seat in seats}},
    }
