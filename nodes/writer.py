"""Ask a writer for a text, and from the second try on for a better one: it is told what was objected to the last."""

from __future__ import annotations

from ..state.settings import Settings
from ..state.tasks import ScoreTask, is_rubric
from .agent_runtime import AgentRuntime, Answer, Question
from .output_schemas import TextSchema
from .prompt_context import Prompt, Prompts


async def writer(
    task: ScoreTask, last: str | None, objections: str, runtime: AgentRuntime[Settings]
) -> Answer:
    """Ask a model for the text; ``task`` has no candidate that counts, ``last`` is what it wrote before."""
    prompt = writer_prompt(task, last, objections, runtime.prompts)
    return await runtime.ask(Question("writer", "writer", 0, prompt, TextSchema(whole=True)))


def writer_prompt(task: ScoreTask, last: str | None, objections: str, prompts: Prompts) -> Prompt:
    """Build what a writer is shown: source and criteria, then its last version with the objections to it."""
    aspect = task.aspect
    given = {"source": task.source, "fact": task.fact, "aspect": aspect, "rubric": is_rubric(aspect)}
    own = prompts.instruction("refine/writer", candidate=last or "", objections=objections)
    system, material = prompts.render("refine/system"), prompts.render("refine/material", **given)
    return Prompt(system, material, own, media=task.media)
