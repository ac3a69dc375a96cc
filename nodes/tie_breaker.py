"""Ask the tie-breaker, who reads the whole debate and takes a side, for the final score (DEBATE, appendix E.3)."""

from __future__ import annotations

from typing import Any

from ..state.graph_state import JudgeState
from ..state.settings import DebateSettings
from .agent_runtime import AgentRuntime, Question
from .prompt_context import build_prompt, call_metadata, debate_turns, requested_output, score_schema, task_of


async def tie_breaker(state: JudgeState, runtime: AgentRuntime[DebateSettings]) -> dict[str, Any]:
    """Ask for the final score of a debate that Scorer and Critic left unresolved."""
    task = task_of(state)
    own = runtime.prompts.instruction("debate/tie_breaker", wanted=requested_output(task))
    prompt = build_prompt(state, runtime.prompts, own, debate_turns(state))
    details = {**call_metadata(task), "last_value": state["scores"][-1]}
    question = Question("tie_breaker", "tie_breaker", state["round"], prompt, score_schema(task), details)
    return (await runtime.ask(question)).update
