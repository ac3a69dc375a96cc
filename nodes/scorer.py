"""The Scorer: gives a score and its rationale, and again after each objection (DEBATE, section 2)."""

from __future__ import annotations

from typing import Any

from ..state.graph_state import JudgeState
from ..state.settings import DebateSettings
from .agent_runtime import Hearing, Question
from .prompt_context import handed_over, particulars, prompt_for, score_form, spoken, task_of, wanted


async def scorer(state: JudgeState, hearing: Hearing[DebateSettings]) -> dict[str, Any]:
    """Ask for a score: the first, or one revised in the light of the Critic's feedback.

    Shown: the material, the rubric, the debate so far, the Commander's message. Answers with a score (a pair
    for two answers), which is added to ``scores``.
    """
    task = task_of(state)
    template = "debate/scorer_again" if state["scores"] else "debate/scorer_first"
    own = f"{handed_over(state)}\n{hearing.prompts.render(template, wanted=wanted(task))}"
    last = state["scores"][-1] if state["scores"] else None
    answer = await hearing.ask(
        Question(
            agent="scorer",
            role="scorer",
            round=state["round"],
            prompt=prompt_for(state, hearing.prompts, own, spoken(state)),
            form=score_form(task),
            details={**particulars(task), "last_value": last},
        )
    )
    return {**answer.update, "scores": [answer.value]}
