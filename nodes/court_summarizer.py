"""SAMRE's memory of the debate, and the summarizer that shortens it (section 3.2)."""

from __future__ import annotations

from typing import Any

from ..state.graph_state import JudgeState
from ..state.settings import SamreSettings
from ..state.transcript import Turn, last_turn
from .runtime.agent_runtime import AgentRuntime
from .runtime.courtroom import ask_in_court, totals_so_far


def memory(state: JudgeState) -> list[Turn]:
    """Return the remembered turns: all so far, or the latest summary and the turns after it.

    The planner's list is not part of the debate, and a juror does not read other jurors' votes.
    """
    turns = [turn for turn in state["transcript"] if turn["role"] not in ("planner", "juror")]
    summary = last_turn(turns, "summarizer")
    return turns if summary is None else turns[turns.index(summary) :]


async def summarizer(state: JudgeState, runtime: AgentRuntime[SamreSettings]) -> dict[str, Any]:
    """Ask for a summary that replaces the memory; the prompt requires the latest totals in it.

    Shown: the case and the memory.
    """
    latest = state["scores"][-1]
    own = runtime.prompts.instruction("courtroom/summarizer", latest=totals_so_far([latest]))
    return await ask_in_court(state, runtime, "summarizer", own, memory(state), last_value=latest)
