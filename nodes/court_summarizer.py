"""Keep SAMRE's memory of the debate, which a summarizer can shorten (section 3.2)."""

from __future__ import annotations

from typing import Any

from ..state.graph_state import JudgeState
from ..state.settings import SamreSettings
from ..state.transcript import Turn, last_turn
from .agent_runtime import AgentRuntime
from .courtroom import ask_in_court, totals_so_far


def memory(state: JudgeState) -> list[Turn]:
    """Return the turns that are remembered: all so far, or the latest summary and the turns after it."""
    turns, summary = state["transcript"], last_turn(state["transcript"], "summarizer")
    return list(turns) if summary is None else turns[turns.index(summary) :]


async def summarizer(state: JudgeState, runtime: AgentRuntime[SamreSettings]) -> dict[str, Any]:
    """Ask for a summary of the memory, which replaces it; the prompt demands the latest totals in it.

    Shown: the case and the memory.
    """
    latest = state["scores"][-1]
    own = runtime.prompts.instruction("courtroom/summarizer", latest=totals_so_far([latest]))
    return await ask_in_court(state, runtime, "summarizer", own, memory(state), last_value=latest)
