"""The aggregator: combines all defences of its team into one (MORE, notation D_i)."""

from __future__ import annotations

from typing import Any

from ..state.graph_state import AgentState
from ..state.settings import MoreSettings
from .runtime.agent_runtime import AgentRuntime
from .runtime.courtroom import ask_in_court, is_rating, record_of, side_of_agent
from .runtime.rating_teams import ask_on_rating


async def aggregator(state: AgentState, runtime: AgentRuntime[MoreSettings]) -> dict[str, Any]:
    """Ask one side's aggregator for its team's combined defence.

    Shown: the case and the team's record, including this round's defences.
    """
    round = state["round"]
    side = side_of_agent(state["agent"])
    record = record_of(state, side, round)
    if is_rating(state):
        return await ask_on_rating(
            state, runtime, state["agent"], "aggregator", record, round=round
        )
    own = runtime.prompts.instruction(
        "courtroom/aggregator", side=side, other=3 - side, round=round
    )
    return await ask_in_court(state, runtime, state["agent"], own, record, side=side)
