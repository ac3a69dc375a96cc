"""The Commander: passes on every message of a debate (DEBATE, section 2).

A relaying Commander does not call a model: the graph's state is its memory. With a model of its
own, it writes the text that accompanies the messages (appendix E.2).
"""

from __future__ import annotations

from typing import Any, Literal

from ..state.graph_state import JudgeState
from ..state.settings import DebateSettings
from ..state.tasks import CompareTask
from .runtime.agent_runtime import AgentRuntime, Question
from .runtime.debate_prompts import turns_without_messages
from .runtime.output_schemas import TextSchema, describe
from .runtime.prompt_context import build_prompt, call_metadata, task_of

Recipient = Literal["scorer", "critic"]


async def commander(
    state: JudgeState, runtime: AgentRuntime[DebateSettings], to: Recipient, round: int
) -> dict[str, Any]:
    """Pass the latest message of the debate to the agent that speaks next.

    Args:
        state: the state of the debate.
        runtime: settings, prompts and models.
        to: the agent that speaks next.
        round: the round in which it speaks.
    """
    prompts = runtime.prompts
    scores = state["scores"]
    if runtime.settings.commander == "llm":
        own = prompts.instruction("debate/commander", recipient=to, first=not scores)
        prompt = build_prompt(state, prompts, own, turns_without_messages(state))
        details = {**call_metadata(task_of(state)), "last_value": scores[-1] if scores else None}
        question = Question("commander", "commander", round, prompt, TextSchema(), details)
        return (await runtime.ask(question)).update
    if scores:
        message = prompts.render(f"debate/relay_to_{to}", value=describe(scores[-1]))
    else:
        task = task_of(state)
        subject = (
            "both answers"
            if isinstance(task, CompareTask)
            else f"the candidate for {task.aspect.name}"
        )
        message = prompts.render("debate/relay_brief", subject=subject)
    return {"transcript": [runtime.say(round, "commander", message)]}
