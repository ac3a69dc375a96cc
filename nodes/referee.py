"""Ask a referee, who discusses and gives its scores in the last turn (ChatEval, section 2, appendix A).

An ensemble's referee answers the same prompt with the history left out, the single scorer with history and role
left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..state.graph_state import AgentState, JudgeOutput, JudgeState
from ..state.settings import ChatEvalSettings, EnsembleSettings, RefereeSettings, SingleSettings
from ..state.settings.protocol_settings import AUTO
from ..state.transcript import last_turn
from ..state.verdict_warnings import ONE_REFEREE
from .agent_runtime import AgentRuntime, Question
from .output_schemas import TextSchema
from .personas import Referee, load_referees
from .prompt_context import Instruction, build_prompt, call_metadata, requested_output, score_schema, task_of


async def roles_of_referees(settings: RefereeSettings) -> dict[str, Any]:
    """Return the details that say who the referees are: ``roles``, from each one's name to its role.

    Nothing where the planner writes the personas first.
    """
    if settings.roles == AUTO:
        return {}
    return {"roles": {referee.agent: referee.name for referee in await load_referees(settings)}}


def referees(state: JudgeState, _settings: RefereeSettings) -> Sequence[str]:
    """Return the names of all referees, in the order in which they speak."""
    return list(state["details"]["roles"])


def who_judged(straight: JudgeOutput) -> dict[str, Any]:
    """Return the details of a verdict that say who the referees were."""
    details = straight["verdict"]["details"]
    return {name: details[name] for name in ("roles", "personas") if name in details}


async def referee(state: AgentState, runtime: AgentRuntime[ChatEvalSettings]) -> dict[str, Any]:
    """Ask a referee for its contribution to the next turn of the discussion.

    Shown: the material, the rubric, the discussion so far (or its summary), who the referee is. Argues in words;
    asked for scores in the last turn, or in each where the settings say so.
    """
    settings, task = runtime.settings, task_of(state)
    speaker = await _speaker(state, runtime)
    turn = 1 + sum(earlier["agent"] == speaker.agent for earlier in state["transcript"])
    # The last turn always ends in scores: the verdict is made of them.
    last = turn == settings.turns
    scored = last or settings.score_each_turn
    others = settings.referees > 1
    # A summarizer is somebody else, whose words even the only referee is shown.
    alone = not others and settings.strategy != "summarizer"
    own = _own(state, runtime, speaker, others=others, last=last, scored=scored)
    history = state["transcript"]
    if settings.strategy == "summarizer" and settings.summary == "replace":
        latest = last_turn(history, "summarizer")
        history = [latest] if latest else []
    prompt = build_prompt(state, runtime.prompts, own, history, alone=alone)
    details = {**call_metadata(task), "persona": speaker.name}
    form = score_schema(task) if scored else TextSchema()
    answer = await runtime.ask(Question(speaker.agent, "referee", turn, prompt, form, details))
    return {**answer.update, "warnings": [*_alone(state), *answer.warnings]}


async def independent_referee(state: AgentState, runtime: AgentRuntime[EnsembleSettings]) -> dict[str, Any]:
    """Ask a referee of an ensemble for its scores; it knows of no others."""
    answer = await runtime.ask(_verdict(state, runtime, await _speaker(state, runtime)))
    return {**answer.update, "warnings": [*_alone(state), *answer.warnings]}


async def single_scorer(state: AgentState, runtime: AgentRuntime[SingleSettings]) -> dict[str, Any]:
    """Ask one scorer, who has neither a role nor a discussion."""
    return (await runtime.ask(_verdict(state, runtime))).update


async def _speaker(state: AgentState, runtime: AgentRuntime[Any]) -> Referee:
    referees = await load_referees(runtime.settings, state["details"].get("personas", ()))
    return next(referee for referee in referees if referee.agent == state["agent"])


def _alone(state: AgentState) -> list[str]:
    return [ONE_REFEREE.of()] if len(state["details"]["roles"]) == 1 else []


def _verdict(state: JudgeState, runtime: AgentRuntime[Any], referee: Referee | None = None) -> Question:
    task = task_of(state)
    own = _own(state, runtime, referee, others=False, last=True, scored=True)
    prompt, form = build_prompt(state, runtime.prompts, own), score_schema(task)
    if referee is None:
        return Question("scorer", "scorer", 1, prompt, form, call_metadata(task))
    details = {**call_metadata(task), "persona": referee.name}
    return Question(referee.agent, "referee", 1, prompt, form, details)


def _own(
    state: JudgeState, runtime: AgentRuntime[Any], referee: Referee | None, *, others: bool, **flags: bool
) -> Instruction:
    """Render the agent's own part of the prompt: who it is, and what it is asked to do now."""
    task, prompts = task_of(state), runtime.prompts
    return prompts.instruction(
        "chateval/referee",
        role=referee.words(prompts, task, others) if referee else "",
        title=referee.title if referee else "",
        agent=referee.agent if referee else "",
        wanted=requested_output(task),
        others=others,
        **flags,
    )
