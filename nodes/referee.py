"""The referees: they discuss and give scores in the last turn (ChatEval, section 2, appendix A).

An ensemble's referee gets the same prompt without the history, and the single scorer without
history and role.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..state.graph_state import AgentState, JudgeState, Outcome
from ..state.settings import ChatEvalSettings, EnsembleSettings, RefereeSettings, SingleSettings
from ..state.settings.protocol_settings import AUTO
from ..state.verdict_warnings import ONE_REFEREE
from .runtime.agent_runtime import AgentRuntime, Question
from .runtime.output_schemas import TextSchema
from .runtime.personas import Referee, load_referees
from .runtime.prompt_context import (
    Instruction,
    build_prompt,
    call_metadata,
    requested_output,
    score_schema,
    task_of,
)


async def roles_of_referees(settings: RefereeSettings) -> dict[str, Any]:
    """Return the details with ``roles``: each referee's role by the referee's name.

    Return no details if the planner has to write the personas first.
    """
    if settings.roles == AUTO:
        return {}
    return {"roles": {referee.agent: referee.name for referee in await load_referees(settings)}}


def referees(state: JudgeState, _settings: RefereeSettings) -> Sequence[str]:
    """Return the names of all referees in speaking order."""
    return list(state["details"]["roles"])


def who_judged(straight: Outcome) -> dict[str, Any]:
    """Return the details of a verdict that describe the referees."""
    details = straight["verdict"]["details"]
    return {name: details[name] for name in ("roles", "personas") if name in details}


def final_turn(state: JudgeState, settings: ChatEvalSettings) -> int:
    """Return the number of the last turn, which the token budget may have brought forward."""
    last: int = state["details"].get("last_turn", settings.turns)
    return last


async def referee(state: AgentState, runtime: AgentRuntime[ChatEvalSettings]) -> dict[str, Any]:
    """Ask a referee for its contribution to the next turn of the discussion.

    Shown: the material, the rubric, the discussion so far, and the referee's role. With a
    summarizer, summaries replace the discussion: the last one, or all of them. The referee argues
    in words. It gives scores in the last turn, or in every turn if the settings require it.
    """
    settings = runtime.settings
    task = task_of(state)
    speaker = await _speaker(state, runtime)
    # A failed turn and that of its replacement are in one round.
    rounds = {turn["round"] for turn in state["transcript"] if turn["agent"] == speaker.agent}
    turn = 1 + len(rounds)
    # The last turn always ends with scores, because the verdict is made from them.
    last = turn == final_turn(state, settings)
    scored = last or settings.score_each_turn
    others = settings.referees > 1
    # The summarizer is another agent, whose words even a single referee reads.
    alone = not others and settings.strategy != "summarizer"
    own = _own(state, runtime, speaker, others=others, last=last, scored=scored)
    history = state["transcript"]
    if settings.strategy == "summarizer":
        # The turns themselves only enter the buffer that is summarized (appendix C, Algorithm 3).
        summaries = [earlier for earlier in history if earlier["role"] == "summarizer"]
        history = summaries if settings.summary == "append" else summaries[-1:]
    prompt = build_prompt(state, runtime.prompts, own, history, alone=alone)
    details = {**call_metadata(task), "persona": speaker.name}
    form = score_schema(task) if scored else TextSchema()
    answer = await runtime.ask(Question(speaker.agent, "referee", turn, prompt, form, details))
    return {**answer.update, "warnings": [*_alone(state), *answer.warnings]}


async def independent_referee(
    state: AgentState, runtime: AgentRuntime[EnsembleSettings]
) -> dict[str, Any]:
    """Ask a referee of an ensemble for its scores; it does not know about the others."""
    answer = await runtime.ask(_verdict(state, runtime, await _speaker(state, runtime)))
    return {**answer.update, "warnings": [*_alone(state), *answer.warnings]}


async def single_scorer(state: AgentState, runtime: AgentRuntime[SingleSettings]) -> dict[str, Any]:
    """Ask one scorer without a role and a discussion."""
    return (await runtime.ask(_verdict(state, runtime))).update


async def _speaker(state: AgentState, runtime: AgentRuntime[Any]) -> Referee:
    referees = await load_referees(runtime.settings, state["details"].get("personas", ()))
    return next(referee for referee in referees if referee.agent == state["agent"])


def _alone(state: AgentState) -> list[str]:
    return [ONE_REFEREE.of()] if len(state["details"]["roles"]) == 1 else []


def _verdict(
    state: JudgeState, runtime: AgentRuntime[Any], referee: Referee | None = None
) -> Question:
    task = task_of(state)
    own = _own(state, runtime, referee, others=False, last=True, scored=True)
    prompt = build_prompt(state, runtime.prompts, own)
    form = score_schema(task)
    if referee is None:
        return Question("scorer", "scorer", 1, prompt, form, call_metadata(task))
    details = {**call_metadata(task), "persona": referee.name}
    return Question(referee.agent, "referee", 1, prompt, form, details)


def _own(
    state: JudgeState,
    runtime: AgentRuntime[Any],
    referee: Referee | None,
    *,
    others: bool,
    **flags: bool,
) -> Instruction:
    """Render the agent's own part of the prompt: its role and its current request."""
    task = task_of(state)
    prompts = runtime.prompts
    return prompts.instruction(
        "chateval/referee",
        role=referee.words(prompts, task, others) if referee else "",
        title=referee.title if referee else "",
        agent=referee.agent if referee else "",
        wanted=requested_output(task),
        others=others,
        **flags,
    )
