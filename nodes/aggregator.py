"""Ask the aggregators, each of whom combines all defences of its team into one (MORE, notation D_i)."""

from __future__ import annotations

from typing import Any

from ..state.graph_state import JudgeState
from ..state.settings import MoreSettings
from .agent_runtime import AgentRuntime, Question
from .courtroom import SIDES, court_details, court_prompt, merge_answers, record_of
from .output_schemas import TextSchema


async def aggregators(state: JudgeState, runtime: AgentRuntime[MoreSettings]) -> dict[str, Any]:
    """Ask both sides' aggregators at once for their combined defences.

    Shown: the case and the team's record, this round's defences included.
    """
    return merge_answers(await runtime.ask_all([_question(state, runtime, side) for side in SIDES]))


def _question(state: JudgeState, runtime: AgentRuntime[MoreSettings], side: int) -> Question:
    round = state["round"]
    own = runtime.prompts.instruction("courtroom/aggregator", side=side, other=3 - side, round=round)
    return Question(
        agent=f"aggregator_{side}",
        role="aggregator",
        round=round,
        prompt=court_prompt(state, runtime.prompts, own, record_of(state, side, round)),
        form=TextSchema(),
        details=court_details(side=side),
    )
