"""The summarizer: condenses what the referees have said so far (ChatEval, section 2 and appendix B)."""

from __future__ import annotations

from typing import Any

from ..state.aggregation import mean_of
from ..state.graph_state import JudgeState
from ..state.settings import ChatEvalSettings
from ..state.transcript import Score, Turn, last_by
from .agent_runtime import Hearing, Question
from .output_schemas import TextForm
from .prompt_context import particulars, prompt_for, task_of


async def summarizer(state: JudgeState, hearing: Hearing[ChatEvalSettings]) -> dict[str, Any]:
    """Ask for a summary of the discussion.

    Shown: the material, the rubric, its own previous summary, this turn's words.
    """
    own = hearing.prompts.render("chateval/summarizer")
    answer = await hearing.ask(
        Question(
            agent="summarizer",
            role="summarizer",
            round=state["round"],
            prompt=prompt_for(state, hearing.prompts, own, _to_be_summed_up(state)),
            form=TextForm(),
            details={**particulars(task_of(state)), "last_value": _latest_mean(state)},
        )
    )
    return answer.update


def _to_be_summed_up(state: JudgeState) -> list[Turn]:
    previous = last_by(state["transcript"], "summarizer")
    now = [turn for turn in state["transcript"] if turn["round"] == state["round"]]
    return [previous, *now] if previous else now


def _latest_mean(state: JudgeState) -> Score | None:
    latest = [turn["value"] for turn in state["transcript"] if turn["round"] == state["round"]]
    scores: list[Score] = [value for value in latest if isinstance(value, float | list)]
    return mean_of(scores) if scores else None
