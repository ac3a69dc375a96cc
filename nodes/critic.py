"""The Critic: objects to the latest score, or declares that there is no issue (DEBATE, section 2, appendix C)."""

from __future__ import annotations

from typing import Any

from ..state.graph_state import JudgeState
from ..state.settings import DebateSettings
from ..state.transcript import last_by
from .agent_runtime import Hearing, Question
from .output_schemas import CritiqueForm
from .prompt_context import handed_over, particulars, prompt_for, spoken, task_of


async def critic(state: JudgeState, hearing: Hearing[DebateSettings]) -> dict[str, Any]:
    """Ask for criticism of the latest score, in the persona that the settings name.

    Shown: the material, the rubric, the debate so far with the latest score and rationale, the Commander's
    message. Its declaration of no issue is the turn's value; the last one decides why the debate stops.
    """
    settings = hearing.settings
    own = f"{handed_over(state)}\n{hearing.prompts.render(f'debate/critic_{settings.persona}')}"
    details = {**particulars(task_of(state)), "persona": settings.persona, "last_value": state["scores"][-1]}
    answer = await hearing.ask(
        Question(
            agent="critic",
            role="critic",
            round=state["round"],
            prompt=prompt_for(state, hearing.prompts, own, spoken(state)),
            form=CritiqueForm(literal=settings.termination == "substring"),
            details=details,
        )
    )
    return {**answer.update, "stop_reason": "no_issue" if answer.value else "max_rounds"}


def is_satisfied(state: JudgeState) -> bool:
    """Whether the Critic's latest word was that there is no issue."""
    turn = last_by(state["transcript"], "critic")
    return turn is not None and turn["value"] is True
