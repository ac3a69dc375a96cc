"""The aggregators: each makes one defence of all those of its team (MORE, notation D_i)."""

from __future__ import annotations

from typing import Any

from ..state.graph_state import JudgeState
from ..state.settings import MoreSettings
from .agent_runtime import Hearing, Question
from .courtroom import SIDES, court_details, court_prompt, heard, record_of
from .output_schemas import TextForm


async def aggregators(state: JudgeState, hearing: Hearing[MoreSettings]) -> dict[str, Any]:
    """Ask both sides' aggregators at once. Shown: the case and the team's record, this round's defences included."""
    return heard(await hearing.ask_all([_question(state, hearing, side) for side in SIDES]))


def _question(state: JudgeState, hearing: Hearing[MoreSettings], side: int) -> Question:
    round = state["round"]
    own = hearing.prompts.render("courtroom/aggregator", side=side, other=3 - side, round=round)
    return Question(
        agent=f"aggregator_{side}",
        role="aggregator",
        round=round,
        prompt=court_prompt(state, hearing.prompts, own, record_of(state, side, round)),
        form=TextForm(),
        details=court_details(side=side),
    )
