"""The Critic: objects to the latest score or declares that it has no issue (DEBATE, section 2)."""

from __future__ import annotations

import re
from typing import Any

from ..state.graph_state import JudgeState
from ..state.settings import DebateSettings
from ..state.settings.protocol_settings import PERSONAS
from ..state.verdict_warnings import COPIED_DECLARATION, EMPTY_OBJECTION
from .replies.own_words import has_words
from .runtime.agent_runtime import AgentRuntime, Question
from .runtime.debate_prompts import debate_prompt
from .runtime.output_schemas import CritiqueSchema
from .runtime.prompt_context import call_metadata, task_of


async def critic(state: JudgeState, runtime: AgentRuntime[DebateSettings]) -> dict[str, Any]:
    """Ask for criticism of the latest score, in the persona from the settings (appendix C).

    Shown: the material, the rubric, the debate so far with the latest score and rationale, and the
    Commander's message. The turn's value is whether the Critic declares that it has no issue.
    """
    settings = runtime.settings
    if settings.persona in PERSONAS:
        prompt = debate_prompt(state, runtime.prompts, f"debate/critic_{settings.persona}")
    else:
        prompt = debate_prompt(
            state, runtime.prompts, "debate/critic_own", persona=settings.persona
        )
    about = {"persona": settings.persona, "last_value": state["scores"][-1]}
    details = {**call_metadata(task_of(state)), **about}
    form = CritiqueSchema(literal=settings.termination == "substring")
    question = Question("critic", "critic", state["round"], prompt, form, details)
    answer = await runtime.ask(question)
    content = answer.turn["content"]
    warnings = list(answer.warnings)
    if answer.turn["value"] is False and not has_words(content):
        warnings.append(EMPTY_OBJECTION.of(question.who, words=content[:80]))
    if answer.turn["value"] is True:
        # The Critic's instructions in either form. Quoted texts are in fences elsewhere.
        instructed = [
            prompt.system,
            prompt.messages("", "shared_prefix")[1].removeprefix(prompt.shared),
        ]
        instructed += [
            runtime.prompts.form(form, structured=structured) for structured in (True, False)
        ]
        if is_copied(content, " ".join(instructed)):
            warnings.append(COPIED_DECLARATION.of(question.who, words=content[:80]))
    return {**answer.update, "warnings": warnings}


def is_copied(declaration: str, prompt: str) -> bool:
    """Return whether a declaration consists only of its token and sentences of the prompt.

    >>> told = "To declare it, end with NO ISSUE on a line of its own; otherwise leave these words out."
    >>> [is_copied(words, f"You are the Critic. {told}") for words in (told, "NO ISSUE", "I agree.\\nNO ISSUE")]
    [True, False, False]
    """
    parts = (" ".join(part.split()) for part in re.split(r"(?<=[.!?])\s|\n", declaration))
    sentences = [part for part in parts if len(part) > len("**NO ISSUES.**")]
    return bool(sentences) and all(part in " ".join(prompt.split()) for part in sentences)
