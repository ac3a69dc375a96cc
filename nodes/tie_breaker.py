"""The tie-breaker: reads the whole debate, takes a side, gives the final score (DEBATE, appendix E.3)."""

from __future__ import annotations

from typing import Any

from ..state.graph_state import JudgeState
from ..state.settings import DebateSettings
from .agent_runtime import Hearing, Question
from .prompt_context import particulars, prompt_for, score_form, spoken, task_of, wanted


async def tie_breaker(state: JudgeState, hearing: Hearing[DebateSettings]) -> dict[str, Any]:
    """Ask for the final score of a debate that Scorer and Critic left unresolved."""
    task = task_of(state)
    own = hearing.prompts.render("debate/tie_breaker", wanted=wanted(task))
    answer = await hearing.ask(
        Question(
            agent="tie_breaker",
            role="tie_breaker",
            round=state["round"],
            prompt=prompt_for(state, hearing.prompts, own, spoken(state)),
            form=score_form(task),
            details={**particulars(task), "last_value": state["scores"][-1]},
        )
    )
    return {**answer.update, "final": answer.value, "stop_reason": "tie_breaker"}
