"""The judge of ``commit_first``: it answers the question itself, and then judges the candidate."""

from __future__ import annotations

import re
from typing import Any

from ..state.graph_state import JudgeState
from ..state.settings import CommitFirstSettings
from ..state.tasks import CompareTask, ScoreTask
from ..state.transcript import last_turn
from .runtime.agent_runtime import AgentRuntime, Question
from .runtime.commitments import form_of
from .runtime.output_schemas import TextSchema
from .runtime.prompt_context import (
    Prompt,
    build_prompt,
    call_metadata,
    requested_output,
    system_text,
    task_of,
)


async def committer(
    state: JudgeState, runtime: AgentRuntime[CommitFirstSettings]
) -> dict[str, Any]:
    """Ask for the judge's own answer to the question.

    Shown: the question or source, with the fact and the context for an answer. The prompt is the
    same for all candidates of a question, so that a run asks only once.
    """
    task = task_of(state)
    prompts = runtime.prompts
    if isinstance(task, ScoreTask):
        question = task.source
        names = {"asked": task.aspect.source_name, "wanted": task.aspect.candidate_name}
        fact = task.fact
    else:
        question = task.question
        names = {"asked": "question", "wanted": "answer"}
        fact = None
    material = prompts.render(
        "commit_first/question", question=question, fact=fact, context=task.context, **names
    )
    own = prompts.instruction("commit_first/committer", **names)
    # Media that only the candidate names are not shown.
    shown = "\n".join(filter(None, (question, fact, task.context)))
    media = {
        name: part
        for name, part in task.media.items()
        if re.search(rf"{re.escape(name)}(?!\d)", shown)
    }
    prompt = Prompt(system_text(prompts, alone=True), material, own, media=media)
    # Nothing about the aspect, with which the call would differ between aspects.
    details = {key: fact for key, fact in call_metadata(task).items() if key != "aspect"}
    asked = Question("judge", "committer", 0, prompt, TextSchema(), details)
    return (await runtime.ask(asked)).update


async def committed_judge(
    state: JudgeState, runtime: AgentRuntime[CommitFirstSettings]
) -> dict[str, Any]:
    """Ask for the verdict.

    Shown: the material, the rubric, and the judge's own answer. The reply is a score, or a pair for
    two answers, or the declaration UNSURE.
    """
    task = task_of(state)
    own_answer = last_turn(state["transcript"], "committer")
    assert own_answer is not None
    own = runtime.prompts.instruction(
        "commit_first/judge",
        wanted=requested_output(task),
        several=isinstance(task, CompareTask),
    )
    prompt = build_prompt(state, runtime.prompts, own, [own_answer], alone=True)
    asked = Question("judge", "scorer", 1, prompt, form_of(task), call_metadata(task))
    return (await runtime.ask(asked)).update
