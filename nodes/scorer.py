"""Ask the Scorer of a debate for a score and its rationale, revised after each objection (DEBATE, section 2)."""

from __future__ import annotations

from typing import Any

from ..state.graph_state import JudgeState
from ..state.settings import DebateSettings
from .agent_runtime import AgentRuntime, Question
from .prompt_context import call_metadata, debate_prompt, requested_output, score_schema, task_of


async def scorer(state: JudgeState, runtime: AgentRuntime[DebateSettings]) -> dict[str, Any]:
    """Ask for a score: the first, or one revised in the light of the Critic's feedback.

    Shown: the material, the rubric, the debate so far, the Commander's message. Answers with a score (a pair
    for two answers).
    """
    task = task_of(state)
    template = "debate/scorer_again" if state["scores"] else "debate/scorer_first"
    prompt = debate_prompt(state, runtime.prompts, template, wanted=requested_output(task))
    details = {**call_metadata(task), "last_value": state["scores"][-1] if state["scores"] else None}
    question = Question("scorer", "scorer", state["round"], prompt, score_schema(task), details)
    return (await runtime.ask(question)).update
