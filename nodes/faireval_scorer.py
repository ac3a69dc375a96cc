"""Ask FairEval's scorer for evidence first, then scores, in several samples (multiple evidence calibration)."""

from __future__ import annotations

from typing import Any

from ..state.aggregation import mean_pair
from ..state.graph_state import JudgeState
from ..state.settings import FairEvalSettings
from ..state.transcript import Turn
from .agent_runtime import AgentRuntime, Question
from .prompt_context import build_prompt, call_metadata, score_schema, task_of


async def scorer(state: JudgeState, runtime: AgentRuntime[FairEvalSettings]) -> dict[str, Any]:
    """Ask ``k`` times for evidence and a score for each answer; ``scores`` is the mean of the pairs that can be read.

    Shown: the question, both answers, the criteria.
    """
    task = task_of(state)
    samples = await runtime.sample(
        Question(
            agent="scorer",
            role="scorer",
            round=1,
            prompt=build_prompt(state, runtime.prompts, runtime.prompts.instruction("faireval/scorer")),
            form=score_schema(task),
            details=call_metadata(task),
        ),
        runtime.settings.k,
    )
    pairs = pairs_in(samples.turns)
    return {
        "transcript": list(samples.turns),
        "warnings": list(samples.warnings),
        "scores": [list(mean_pair(pairs))],
        "round": 1,
        "details": {"samples": pairs, "unread_samples": samples.unread},
    }


def pairs_in(turns: tuple[Turn, ...] | list[Turn]) -> list[list[float]]:
    """Return the pairs of scores among the turns' values."""
    return [turn["value"] for turn in turns if isinstance(turn["value"], list)]
