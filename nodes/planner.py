"""Ask the planner to write the steps of an evaluation from the aspect's criteria (G-Eval, section 2.1)."""

from __future__ import annotations

import hashlib
from typing import Any

from ..state.aspects import Aspect
from ..state.graph_state import JudgeState
from ..state.settings import GEvalSettings
from ..state.tasks import ScoreTask, is_rubric
from .agent_runtime import AgentRuntime, Answer, Question
from .evaluation_steps import EvaluationStepsCache, PlannedSteps, open_cache
from .output_schemas import StepsSchema
from .prompt_context import Prompt, Prompts, call_metadata, task_of
from .replies.steps import read_steps


async def planner(state: JudgeState, runtime: AgentRuntime[GEvalSettings]) -> dict[str, Any]:
    """Ask for the evaluation steps, unless the cache of an enclosing ``keep_steps_in`` has them.

    Shown: the task and the aspect's criteria; none of the texts that are judged.
    """
    task = task_of(state)
    assert isinstance(task, ScoreTask)
    question = _question(task, runtime.prompts)
    answers: list[Answer] = []

    async def write() -> PlannedSteps:
        answers.append(await runtime.ask(question))
        steps = read_steps(answers[0].turn["content"])
        return PlannedSteps(aspect=task.aspect.name, model=label, key=key, steps=steps)

    label = runtime.model_of("planner").label
    key = _key(label, question.prompt)
    cache = open_cache.get() or EvaluationStepsCache()
    steps = await cache.steps(key, write)
    # The turn belongs to the item whose planner was asked; the others took nothing.
    update = answers[0].update if answers else {}
    return {**update, "details": {"steps": list(steps)}}


def rubric(aspect: Aspect, prompts: Prompts) -> str:
    """Return task and criteria as both planner and scorer are shown them."""
    return prompts.render("geval/rubric", aspect=aspect, rubric=is_rubric(aspect), **scale(aspect))


def scale(aspect: Aspect) -> dict[str, str]:
    """Return the ends of an aspect's scale as the templates take them."""
    return {"low": f"{aspect.low:g}", "high": f"{aspect.high:g}"}


def _question(task: ScoreTask, prompts: Prompts) -> Question:
    own = prompts.instruction("geval/planner", aspect=task.aspect, **scale(task.aspect))
    prompt = Prompt(prompts.render("geval/system"), rubric(task.aspect, prompts), own)
    return Question("planner", "planner", 0, prompt, StepsSchema(), call_metadata(task))


def _key(label: str, prompt: Prompt) -> str:
    text = "\n".join((label, *prompt.messages("", "shared_prefix")))
    return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).hexdigest()[:12]
