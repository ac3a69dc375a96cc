"""What an agent is shown: task, debate so far, message."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..state.graph_state import JudgeState
from ..state.tasks import CompareTask, ScoreTask, parse_task
from ..state.transcript import Turn
from .delimiters import fence
from .output_schemas import PairSchema, ScoreSchema
from .prompt_templates import Prompt, Prompts


def task_of(state: JudgeState) -> ScoreTask | CompareTask:
    """The task under judgement."""
    return parse_task(state["task"])


def build_prompt(state: JudgeState, prompts: Prompts, own: str, log: Iterable[Turn] = ()) -> Prompt:
    """Material and log as all agents see them, byte for byte, then what is the agent's own."""
    shared = [_material(task_of(state), prompts)]
    turns = list(log)
    if turns:
        shared.append(prompts.render("shared/log", turns=turns))
    return Prompt(system=prompts.render("shared/system"), shared="\n\n".join(shared), own=own)


def score_schema(task: ScoreTask | CompareTask) -> ScoreSchema:
    """The form of a judgement on this task: a number, or a number for each answer."""
    if isinstance(task, CompareTask):
        return PairSchema(task.low, task.high)
    return ScoreSchema(task.aspect.low, task.aspect.high, task.aspect.name)


def requested_output(task: ScoreTask | CompareTask) -> str:
    """What a scorer is to give, in words."""
    return (
        "one score for each answer" if isinstance(task, CompareTask) else f"one score for {task.aspect.name}"
    )


def call_metadata(task: ScoreTask | CompareTask) -> dict[str, Any]:
    """The task's particulars as metadata of a call."""
    form = score_schema(task)
    aspect = {"aspect": task.aspect.name} if isinstance(task, ScoreTask) else {}
    return {"kind": task.kind, **aspect, "low": form.low, "high": form.high}


def _material(task: ScoreTask | CompareTask, prompts: Prompts) -> str:
    form = score_schema(task)
    values: dict[str, Any] = {name: getattr(task, name) for name in type(task).model_fields}
    return prompts.render(f"shared/{task.kind}_task", **{**values, **form.limits()})


def debate_turns(state: JudgeState) -> list[Turn]:
    """The debate proper: what Scorer and Critic have said."""
    return [turn for turn in state["transcript"] if turn["role"] in {"scorer", "critic"}]


def commander_message(state: JudgeState) -> str:
    """The Commander's latest message, as its recipient is shown it: a model's words as data."""
    turn = state["transcript"][-1]
    if turn["model"] is None:
        return turn["content"]
    label = f"commander, round {turn['round']}"
    return f"The Commander's message:\n{fence(label, turn['content'])}"
