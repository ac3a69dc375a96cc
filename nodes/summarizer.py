"""The summarizer: sums up the referees' discussion so far (ChatEval, section 2 and appendix B)."""

from __future__ import annotations

from typing import Any

from ..state.aggregation import mean_of
from ..state.graph_state import JudgeState
from ..state.settings import ChatEvalSettings
from ..state.transcript import Score, last_turn
from .runtime.agent_runtime import AgentRuntime, Question
from .runtime.output_schemas import TextSchema
from .runtime.prompt_context import build_prompt, call_metadata, task_of


async def summarizer(state: JudgeState, runtime: AgentRuntime[ChatEvalSettings]) -> dict[str, Any]:
    """Ask for a summary of the discussion so far.

    Shown: the material, the rubric, its own previous summary, and this turn's words. The setting
    ``summary`` only changes what the referees read.
    """
    own = runtime.prompts.instruction("chateval/summarizer")
    now = [turn for turn in state["transcript"] if turn["round"] == state["round"]]
    # The previous summary covers all turns before this one.
    previous = last_turn(state["transcript"], "summarizer")
    prompt = build_prompt(state, runtime.prompts, own, [previous, *now] if previous else now)
    scores: list[Score] = [turn["value"] for turn in now if isinstance(turn["value"], float | list)]
    details = {**call_metadata(task_of(state)), "last_value": mean_of(scores) if scores else None}
    question = Question("summarizer", "summarizer", state["round"], prompt, TextSchema(), details)
    return (await runtime.ask(question)).update
