"""The tie-breaker: reads the whole debate and gives the final score (DEBATE, appendix E.3)."""

from __future__ import annotations

from typing import Any

from ..state.graph_state import JudgeState
from ..state.settings import DebateSettings
from .runtime.agent_runtime import AgentRuntime, Question
from .runtime.debate_prompts import turns_without_messages
from .runtime.prompt_context import (
    build_prompt,
    call_metadata,
    requested_output,
    score_schema,
    task_of,
)


async def tie_breaker(state: JudgeState, runtime: AgentRuntime[DebateSettings]) -> dict[str, Any]:
    """Ask for the final score of a debate that Scorer and Critic left unresolved."""
    task = task_of(state)
    own = runtime.prompts.instruction("debate/tie_breaker", wanted=requested_output(task))
    prompt = build_prompt(state, runtime.prompts, own, turns_without_messages(state))
    details = {**call_metadata(task), "last_value": state["scores"][-1]}
    question = Question(
        "tie_breaker", "tie_breaker", state["round"], prompt, score_schema(task), details
    )
    return (await runtime.ask(question)).update
