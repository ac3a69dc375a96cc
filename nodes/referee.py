"""A referee: speaks in the discussion, and at its end hands in its scores (ChatEval, section 2, appendix A).

An ensemble's referees answer the same prompt with the history left out, the single scorer with history and role
left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..state.graph_state import JudgeState
from ..state.settings import ChatEvalSettings, EnsembleSettings, SingleSettings
from ..state.transcript import Turn, last_turn
from .agent_runtime import AgentRuntime, Answer, Question
from .output_schemas import TextSchema
from .personas import Referee, load_referees
from .prompt_context import build_prompt, call_metadata, requested_output, score_schema, task_of


async def referee(state: JudgeState, runtime: AgentRuntime[ChatEvalSettings]) -> dict[str, Any]:
    """Have the next referee speak; where they talk simultaneously, all of them at the same time.

    Shown: the material, the rubric, the discussion so far (or its summary), who the referee is. Argues in words;
    asked for scores in the last turn, or in each where the settings say so.
    """
    settings = runtime.settings
    referee_personas = await load_referees(settings)
    said = len(referee_turns(state))
    round = said // len(referee_personas) + 1
    speakers = (
        [referee_personas[said % len(referee_personas)]]
        if settings.strategy == "one_by_one"
        else referee_personas
    )
    questions = [_contribution(state, runtime, referee_persona, round) for referee_persona in speakers]
    return {**_heard(await runtime.ask_all(questions), referee_personas), "round": round}


async def independent_referees(state: JudgeState, runtime: AgentRuntime[EnsembleSettings]) -> dict[str, Any]:
    """Have all referees of an ensemble score at the same time, none knowing of the others."""
    referee_personas = await load_referees(runtime.settings)
    questions = [_verdict(state, runtime, referee_persona) for referee_persona in referee_personas]
    return {**_heard(await runtime.ask_all(questions), referee_personas), "round": 1}


async def single_scorer(state: JudgeState, runtime: AgentRuntime[SingleSettings]) -> dict[str, Any]:
    """Have one scorer answer, who has neither a role nor anybody to talk to."""
    answer = await runtime.ask(_verdict(state, runtime))
    return {**answer.update, "scores": [answer.value], "round": 1}


def referee_turns(state: JudgeState) -> list[Turn]:
    """What the referees have said."""
    return [turn for turn in state["transcript"] if turn["role"] == "referee"]


def turn_is_over(state: JudgeState) -> bool:
    """Whether every referee has spoken in this turn."""
    return len(referee_turns(state)) % len(state["details"]["roles"]) == 0


def visible_history(state: JudgeState, settings: ChatEvalSettings) -> list[Turn]:
    """The discussion as a referee sees it: all that was said, or the latest summary in its place."""
    if settings.strategy == "summarizer" and settings.summary == "replace":
        latest = last_turn(state["transcript"], "summarizer")
        return [latest] if latest else []
    return state["transcript"]


def _contribution(
    state: JudgeState, runtime: AgentRuntime[ChatEvalSettings], referee_persona: Referee, round: int
) -> Question:
    settings, task = runtime.settings, task_of(state)
    last = round == settings.turns
    scored = last or settings.score_each_turn
    own = _own(state, runtime, referee_persona, others=True, last=last, scored=scored)
    return Question(
        agent=referee_persona.agent,
        role="referee",
        round=round,
        prompt=build_prompt(state, runtime.prompts, own, visible_history(state, settings)),
        form=score_schema(task) if scored else TextSchema(),
        details={**call_metadata(task), "persona": referee_persona.name},
    )


def _verdict(
    state: JudgeState, runtime: AgentRuntime[Any], referee_persona: Referee | None = None
) -> Question:
    task = task_of(state)
    own = _own(state, runtime, referee_persona, others=False, last=True, scored=True)
    return Question(
        agent=referee_persona.agent if referee_persona else "scorer",
        role="referee" if referee_persona else "scorer",
        round=1,
        prompt=build_prompt(state, runtime.prompts, own),
        form=score_schema(task),
        details={**call_metadata(task), **({"persona": referee_persona.name} if referee_persona else {})},
    )


def _own(
    state: JudgeState, runtime: AgentRuntime[Any], referee_persona: Referee | None, **flags: bool
) -> str:
    """What is the agent's own in the prompt: who it is, and what it is to do now."""
    task, prompts = task_of(state), runtime.prompts
    return prompts.render(
        "chateval/referee",
        role=referee_persona.words(prompts, task) if referee_persona else "",
        title=referee_persona.title if referee_persona else "",
        agent=referee_persona.agent if referee_persona else "",
        wanted=requested_output(task),
        **flags,
    )


def _heard(answers: Sequence[Answer], referee_personas: Sequence[Referee]) -> dict[str, Any]:
    alone = ["there is only one referee: nobody to discuss with"] if len(referee_personas) == 1 else []
    return {
        "transcript": [answer.turn for answer in answers],
        "warnings": [*alone, *(warning for answer in answers for warning in answer.warnings)],
        "details": {
            "roles": {referee_persona.agent: referee_persona.name for referee_persona in referee_personas}
        },
    }
