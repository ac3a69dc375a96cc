"""The checker answers criteria of a rubric, and the tally adds up the points (HealthBench)."""

from __future__ import annotations

from typing import Any

from ..state.errors import ReplyError
from ..state.graph_state import AgentState, JudgeState
from ..state.settings import REPLY_LIMITS, ChecklistSettings
from ..state.tasks import TEXTS, ScoreTask, is_rubric
from .models.capabilities import LIMIT
from .runtime.agent_runtime import AgentRuntime, Question
from .runtime.checklists import ChecksSchema, checked, groups, score_of_checks, tally_words
from .runtime.prompt_context import (
    Prompt,
    call_metadata,
    score_rules,
    system_text,
    task_of,
    with_all_texts,
)

TOKENS_FOR_REASONS = 1024
TOKENS_A_CRITERION = 128
"""The room for a quotation and an answer."""


async def checker(state: AgentState, runtime: AgentRuntime[ChecklistSettings]) -> dict[str, Any]:
    """Ask whether the candidate meets the checker's criteria.

    Shown: the texts, the aspect, and the checker's own criteria without their points, so that the
    weight of a criterion does not influence its answer.
    """
    task = task_of(state)
    assert isinstance(task, ScoreTask)
    prompts = runtime.prompts
    followed = is_rubric(task.aspect)
    texts = {name: getattr(task, name) for name in TEXTS if name in ScoreTask.model_fields}
    filled = prompts.render("checklist/task", aspect=task.aspect, rubric=followed, **texts)
    material = with_all_texts(filled, task, "checklist/task") + score_rules(task.aspect, prompts)
    everybody = groups(task, runtime.settings)
    [group] = [group for group in everybody if group.agent == state["agent"]]
    criteria = [criterion.criterion for criterion in group.criteria]
    own = prompts.instruction(
        "checklist/checker", aspect=task.aspect, criteria=criteria, rubric=followed
    )
    # All checkers share the material, so a provider's cache can store it.
    repeated = (len(material),) if len(everybody) > 1 else ()
    prompt = Prompt(system_text(prompts, alone=True), material, own, repeated, task.media)
    form = ChecksSchema(len(criteria), task.candidate)
    details = {**call_metadata(task), "criteria": criteria}
    limit = TOKENS_FOR_REASONS + TOKENS_A_CRITERION * len(criteria)
    is_limited = runtime.model_of("checker", state["agent"]).is_limited_by_default
    parameters = {LIMIT: limit} if is_limited and limit > REPLY_LIMITS["*"] else {}
    asked = Question(state["agent"], "checker", 1, prompt, form, details, parameters)
    return (await runtime.ask(asked)).update


async def tally(state: JudgeState, runtime: AgentRuntime[ChecklistSettings]) -> dict[str, Any]:
    """Add up the points of all criteria; no model is called.

    Raises:
        ReplyError: every criterion with positive points was answered with "not applicable".
    """
    task = task_of(state)
    assert isinstance(task, ScoreTask)
    found = checked(state["transcript"], task)
    result = score_of_checks(found, task) if found else None
    if not found or result is None:
        replies = "\n".join(turn["content"] for turn in state["transcript"])
        raise ReplyError(
            "Every criterion with points above 0 was answered with 'not applicable', so the best "
            "possible score is unknown.",
            replies,
            "missing",
        )
    scale = [task.aspect.low, task.aspect.high]
    turn = runtime.say(1, "tally", tally_words(found, result), result.score, scale=scale)
    return {"transcript": [turn]}
