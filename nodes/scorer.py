"""Ask the Scorer of a debate for a score and its rationale, revised after each objection (DEBATE, section 2)."""

from __future__ import annotations

from typing import Any

from ..state.graph_state import JudgeState
from ..state.settings import DebateSettings
from .agent_runtime import AgentRuntime, Question
from .prompt_context import (
    build_prompt,
    call_metadata,
    commander_message,
    debate_turns,
    requested_output,
    score_schema,
    task_of,
)


async def scorer(state: JudgeState, runtime: AgentRuntime[DebateSettings]) -> dict[str, Any]:
    """Ask for a score: the first, or one revised in the light of the Critic's feedback.

    Shown: the material, the rubric, the debate so far, the Commander's message. Answers with a score (a pair
    for two answers).
    """
    task = task_of(state)
    template = "debate/scorer_again" if state["scores"] else "debate/scorer_first"
    own = runtime.prompts.instruction(template, wanted=requested_output(task)).after(commander_message(state))
    last = state["scores"][-1] if state["scores"] else None
    answer = await runtime.ask(
        Question(
            agent="scorer",
            role="scorer",
            round=state["round"],
            prompt=build_prompt(state, runtime.prompts, own, debate_turns(state)),
            form=score_schema(task),
            details={**call_metadata(task), "last_value": last},
        )
    )
    return answer.update
