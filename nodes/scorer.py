"""The Scorer of a debate: a score with its rationale, revised after each objection (DEBATE, 2)."""

from __future__ import annotations

from typing import Any

from ..state.graph_state import JudgeState
from ..state.settings import DebateSettings
from .runtime.agent_runtime import AgentRuntime, Question
from .runtime.debate_prompts import debate_prompt
from .runtime.prompt_context import call_metadata, requested_output, score_schema, task_of


async def scorer(state: JudgeState, runtime: AgentRuntime[DebateSettings]) -> dict[str, Any]:
    """Ask for the first score, or for a revision in the light of the Critic's feedback.

    Shown: the material, the rubric, the debate so far, and the Commander's message. The answer is a
    score, or a pair for two answers.
    """
    task = task_of(state)
    template = "debate/scorer_again" if state["scores"] else "debate/scorer_first"
    prompt = debate_prompt(state, runtime.prompts, template, wanted=requested_output(task))
    details = {
        **call_metadata(task),
        "last_value": state["scores"][-1] if state["scores"] else None,
    }
    question = Question("scorer", "scorer", state["round"], prompt, score_schema(task), details)
    return (await runtime.ask(question)).update
