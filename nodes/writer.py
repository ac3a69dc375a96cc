"""The writer: writes a text, and improves it after objections to the last version."""

from __future__ import annotations

from ..state.settings import Settings
from ..state.tasks import ScoreTask, is_rubric
from .runtime.agent_runtime import AgentRuntime, Answer, Question
from .runtime.output_schemas import TextSchema
from .runtime.prompt_context import Prompt, Prompts


async def writer(
    task: ScoreTask, last: str | None, objections: str, runtime: AgentRuntime[Settings]
) -> Answer:
    """Ask a model for the text.

    The candidate in ``task`` is ignored. ``last`` is the model's previous version.
    """
    prompt = writer_prompt(task, last, objections, runtime.prompts)
    return await runtime.ask(Question("writer", "writer", 0, prompt, TextSchema(whole=True)))


def writer_prompt(task: ScoreTask, last: str | None, objections: str, prompts: Prompts) -> Prompt:
    """Build a writer's prompt: source and criteria, then its last version with the objections."""
    aspect = task.aspect
    texts = {"source": task.source, "fact": task.fact, "context": task.context}
    own = prompts.instruction("refine/writer", candidate=last or "", objections=objections)
    system = prompts.render("refine/system")
    material = prompts.render("refine/material", aspect=aspect, rubric=is_rubric(aspect), **texts)
    return Prompt(system, material, own, media=task.media)
