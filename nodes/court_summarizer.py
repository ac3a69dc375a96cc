"""The courtroom's memory, and the summarizer that keeps it short (SAMRE, section 3.2)."""

from __future__ import annotations

from typing import Any

from ..state.graph_state import JudgeState
from ..state.settings import SamreSettings
from ..state.transcript import Turn, last_turn
from .agent_runtime import AgentRuntime, Question
from .courtroom import court_details, court_prompt, totals_so_far
from .output_schemas import TextSchema


def memory(state: JudgeState) -> list[Turn]:
    """What is remembered: every turn so far, or the latest summary and what was said since."""
    turns, summary = state["transcript"], last_turn(state["transcript"], "summarizer")
    return list(turns) if summary is None else turns[turns.index(summary) :]


async def summarizer(state: JudgeState, runtime: AgentRuntime[SamreSettings]) -> dict[str, Any]:
    """Ask for a summary of the memory, which takes its place. The latest totals have to be in it."""
    latest = state["scores"][-1]
    own = runtime.prompts.render("courtroom/summarizer", latest=totals_so_far([latest]))
    answer = await runtime.ask(
        Question(
            agent="summarizer",
            role="summarizer",
            round=state["round"],
            prompt=court_prompt(state, runtime.prompts, own, memory(state)),
            form=TextSchema(),
            details=court_details(last_value=latest),
        )
    )
    return answer.update
