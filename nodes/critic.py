"""Ask the Critic, who objects to the latest score or declares that there is no issue (DEBATE, 2, appendix C)."""

from __future__ import annotations

import re
from typing import Any

from ..state.graph_state import JudgeState
from ..state.settings import DebateSettings
from ..state.settings.protocol_settings import PERSONAS
from ..state.verdict_warnings import COPIED_DECLARATION, EMPTY_OBJECTION
from .agent_runtime import AgentRuntime, Question
from .output_schemas import CritiqueSchema
from .prompt_context import call_metadata, debate_prompt, task_of
from .replies.own_words import has_words


async def critic(state: JudgeState, runtime: AgentRuntime[DebateSettings]) -> dict[str, Any]:
    """Ask for criticism of the latest score, in the persona that the settings name.

    Shown: the material, the rubric, the debate so far with the latest score and rationale, the Commander's
    message. Its declaration of no issue is the turn's value.
    """
    settings = runtime.settings
    if settings.persona in PERSONAS:
        prompt = debate_prompt(state, runtime.prompts, f"debate/critic_{settings.persona}")
    else:
        prompt = debate_prompt(state, runtime.prompts, "debate/critic_own", persona=settings.persona)
    about = {"persona": settings.persona, "last_value": state["scores"][-1]}
    details = {**call_metadata(task_of(state)), **about}
    form = CritiqueSchema(literal=settings.termination == "substring")
    question = Question("critic", "critic", state["round"], prompt, form, details)
    answer = await runtime.ask(question)
    content, warnings = answer.turn["content"], list(answer.warnings)
    if answer.turn["value"] is False and not has_words(content):
        warnings.append(EMPTY_OBJECTION.of(question.who, words=content[:80]))
    if answer.turn["value"] is True:
        # What it is told to write, in either form; quoted texts stand in fences elsewhere.
        instructed = [prompt.system, prompt.messages("", "shared_prefix")[1].removeprefix(prompt.shared)]
        instructed += [runtime.prompts.form(form, structured=structured) for structured in (True, False)]
        if is_copied(content, " ".join(instructed)):
            warnings.append(COPIED_DECLARATION.of(question.who, words=content[:80]))
    return {**answer.update, "warnings": warnings}


def is_copied(declaration: str, prompt: str) -> bool:
    """Tell whether a declaration says nothing beside its token but sentences of the prompt.

    >>> told = "To declare it, write NO ISSUE on a line of its own; otherwise leave these words out."
    >>> [is_copied(words, f"You are the Critic. {told}") for words in (told, "NO ISSUE", "I agree.\\nNO ISSUE")]
    [True, False, False]
    """
    parts = (" ".join(part.split()) for part in re.split(r"(?<=[.!?])\s|\n", declaration))
    sentences = [part for part in parts if len(part) > len("**NO ISSUES.**")]
    return bool(sentences) and all(part in " ".join(prompt.split()) for part in sentences)
