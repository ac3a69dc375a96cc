"""Ask the Critic, who objects to the latest score or declares that there is no issue (DEBATE, 2, appendix C)."""

from __future__ import annotations

from typing import Any

from ..state.graph_state import JudgeState
from ..state.settings import DebateSettings
from ..state.settings.debate_settings import PERSONAS
from .agent_runtime import AgentRuntime, Question
from .output_schemas import CritiqueSchema
from .prompt_context import Instruction, build_prompt, call_metadata, commander_message, debate_turns, task_of


async def critic(state: JudgeState, runtime: AgentRuntime[DebateSettings]) -> dict[str, Any]:
    """Ask for criticism of the latest score, in the persona that the settings name.

    Shown: the material, the rubric, the debate so far with the latest score and rationale, the Commander's
    message. Its declaration of no issue is the turn's value.
    """
    settings = runtime.settings
    own = _instruction(runtime).after(commander_message(state))
    details = {
        **call_metadata(task_of(state)),
        "persona": settings.persona,
        "last_value": state["scores"][-1],
    }
    answer = await runtime.ask(
        Question(
            agent="critic",
            role="critic",
            round=state["round"],
            prompt=build_prompt(state, runtime.prompts, own, debate_turns(state)),
            form=CritiqueSchema(literal=settings.termination == "substring"),
            details=details,
        )
    )
    return answer.update


def _instruction(runtime: AgentRuntime[DebateSettings]) -> Instruction:
    """Return the instruction of a known persona, or the one that holds a description of the caller's own."""
    persona = runtime.settings.persona
    if persona in PERSONAS:
        return runtime.prompts.instruction(f"debate/critic_{persona}")
    return runtime.prompts.instruction("debate/critic_own", persona=persona)
