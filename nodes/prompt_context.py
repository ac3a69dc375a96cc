"""Build what an agent is shown: the task, the discussion so far, its own instruction."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import orjson

from ..state.graph_state import JudgeState
from ..state.tasks import CompareTask, ScoreTask, parse_task
from ..state.transcript import Turn
from .delimiters import fence
from .output_schemas import PairSchema, ScoreSchema
from .prompt_templates import Instruction, Prompt, Prompts


def task_of(state: JudgeState) -> ScoreTask | CompareTask:
    """Return the task as a checked object."""
    try:
        return _checked(orjson.dumps(state["task"]))
    except orjson.JSONEncodeError:
        # A half of a surrogate pair is no text in JSON.
        return parse_task(state["task"])


@lru_cache(maxsize=128)
def _checked(task: bytes) -> ScoreTask | CompareTask:
    """Check a task once, not for each agent that is shown it."""
    return parse_task(orjson.loads(task))


def build_prompt(
    state: JudgeState,
    prompts: Prompts,
    own: Instruction | str,
    log: Iterable[Turn] | None = None,
    *,
    alone: bool | None = None,
) -> Prompt:
    """Build an agent's prompt: task and log first, the same for all agents byte for byte, then its own instruction.

    Args:
        state: the graph's state.
        prompts: the templates.
        own: the agent's own instruction; of a plain text nothing counts as its role.
        log: the turns that the agent is shown; None where it takes part in no discussion.
        alone: whether the agent is told of no others; by default where there is no log.
    """
    alone = log is None if alone is None else alone
    shared = [_material(task_of(state), prompts)]
    if turns := list(log or ()):
        shared.append(prompts.render("shared/log", turns=turns, alone=alone))
    return Prompt.of_discussion(system_text(prompts, alone), shared, own, alone=alone)


def system_text(prompts: Prompts, alone: bool) -> str:
    """Return the system text of an agent that is one of several, or of one that knows of no others."""
    return prompts.render("shared/system_alone" if alone else "shared/system")


def score_schema(task: ScoreTask | CompareTask) -> ScoreSchema:
    """Return the schema of a judgement on this task: one number, or one for each answer."""
    if isinstance(task, CompareTask):
        return PairSchema(task.low, task.high)
    return ScoreSchema(task.aspect.low, task.aspect.high, task.aspect.name)


def requested_output(task: ScoreTask | CompareTask) -> str:
    """Say in words what a scorer is asked for."""
    return (
        "one score for each answer" if isinstance(task, CompareTask) else f"one score for {task.aspect.name}"
    )


def call_metadata(task: ScoreTask | CompareTask) -> dict[str, Any]:
    """Return kind, aspect and scale of the task as metadata of a call."""
    form = score_schema(task)
    aspect = {"aspect": task.aspect.name} if isinstance(task, ScoreTask) else {}
    return {"kind": task.kind, **aspect, "low": form.low, "high": form.high}


def _material(task: ScoreTask | CompareTask, prompts: Prompts) -> str:
    form = score_schema(task)
    values: dict[str, Any] = {name: getattr(task, name) for name in type(task).model_fields}
    return prompts.render(f"shared/{task.kind}_task", **{**values, **form.limits()})


def debate_turns(state: JudgeState) -> list[Turn]:
    """Return what Scorer and Critic have said, without the Commander's messages."""
    return [turn for turn in state["transcript"] if turn["role"] in {"scorer", "critic"}]


def commander_message(state: JudgeState) -> str:
    """Return the Commander's latest message as shown to its recipient; a model's words are fenced as data."""
    turn = state["transcript"][-1]
    if turn["model"] is None:
        return turn["content"]
    label = f"commander, round {turn['round']}"
    return f"The Commander's message:\n{fence(label, turn['content'])}"
