"""FairEval's scorer: evidence first, then scores, in several samples.

The paper calls this multiple evidence calibration.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..state.graph_state import AgentState, JudgeState
from ..state.settings import FairEvalSettings
from ..state.transcript import Turn
from .runtime.agent_runtime import AgentRuntime, Question
from .runtime.prompt_context import build_prompt, call_metadata, score_schema, task_of
from .runtime.verdicts import Decision, nearest


async def scorer(state: AgentState, runtime: AgentRuntime[FairEvalSettings]) -> dict[str, Any]:
    """Ask ``k`` times for evidence and a score for each answer.

    Shown: the question, both answers and the criteria.
    """
    task = task_of(state)
    prompt = build_prompt(state, runtime.prompts, runtime.prompts.instruction("faireval/scorer"))
    question = Question("scorer", "scorer", 1, prompt, score_schema(task), call_metadata(task))
    turns, warnings = await runtime.sample(question, runtime.settings.k)
    return {"transcript": turns, "warnings": warnings}


def mean_of_samples(state: JudgeState, _settings: FairEvalSettings) -> Decision:
    """Decide by the mean of the readable samples; the details contain all their scores."""
    turns = state["transcript"]
    final = state["scores"][-1]
    details = {
        "samples": pairs_in(turns),
        "unread_samples": sum(turn["value"] is None for turn in turns),
    }
    return Decision(final, nearest(turns, final), details=details)


def pairs_in(turns: Iterable[Turn]) -> list[list[float]]:
    """Return the pairs of scores among the turns' values."""
    return [turn["value"] for turn in turns if isinstance(turn["value"], list)]
