"""What every agent is shown before its own instruction: the material, the rubric, the debate so far."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..state.graph_state import JudgeState
from ..state.tasks import CompareTask, ScoreTask, parse_task
from ..state.transcript import Turn
from .forms import PairForm, ScoreForm
from .prompting import Prompt, Prompts


def task_of(state: JudgeState) -> ScoreTask | CompareTask:
    """The task under judgement."""
    return parse_task(state["task"])


def prompt_for(state: JudgeState, prompts: Prompts, own: str, log: Iterable[Turn] = ()) -> Prompt:
    """Material and log as all agents see them, byte for byte, then what is the agent's own."""
    shared = [_material(task_of(state), prompts)]
    turns = list(log)
    if turns:
        shared.append(prompts.render("shared/log", turns=turns))
    return Prompt(system=prompts.render("shared/system"), shared="\n\n".join(shared), own=own)


def score_form(task: ScoreTask | CompareTask) -> ScoreForm:
    """The form of a judgement on this task: a number, or a number for each answer."""
    if isinstance(task, CompareTask):
        return PairForm(task.low, task.high)
    return ScoreForm(task.aspect.low, task.aspect.high, task.aspect.name)


def wanted(task: ScoreTask | CompareTask) -> str:
    """What a scorer is to give, in words."""
    return (
        "one score for each answer" if isinstance(task, CompareTask) else f"one score for {task.aspect.name}"
    )


def particulars(task: ScoreTask | CompareTask) -> dict[str, Any]:
    """The task's particulars as metadata of a call."""
    form = score_form(task)
    aspect = {"aspect": task.aspect.name} if isinstance(task, ScoreTask) else {}
    return {"kind": task.kind, **aspect, "low": form.low, "high": form.high}


def _material(task: ScoreTask | CompareTask, prompts: Prompts) -> str:
    form = score_form(task)
    values: dict[str, Any] = {name: getattr(task, name) for name in type(task).model_fields}
    return prompts.render(f"shared/{task.kind}_task", **{**values, **form.limits()})
