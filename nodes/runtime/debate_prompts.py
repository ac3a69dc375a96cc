"""Prompts of a debate with a Commander, who passes on every message (DEBATE, section 2)."""

from __future__ import annotations

from typing import Any

from ...state.graph_state import JudgeState
from ...state.transcript import Turn
from ..common.delimiters import fence
from .prompt_context import Prompt, Prompts, build_prompt

MESSENGER = "commander"
"""The role whose messages repeat what other agents said."""


def debate_prompt(state: JudgeState, prompts: Prompts, template: str, **values: Any) -> Prompt:
    """Build a debate agent's prompt: task, debate, the Commander's message, its instruction."""
    # The Commander's latest message precedes the instruction. A model's words are fenced as data.
    turn = state["transcript"][-1]
    message = turn["content"]
    if turn["model"] is not None:
        label = f"commander, round {turn['round']}"
        message = f"The Commander's message:\n{fence(label, message)}"
    own = prompts.instruction(template, **values).after(message)
    return build_prompt(state, prompts, own, turns_without_messages(state))


def turns_without_messages(state: JudgeState) -> list[Turn]:
    """Return the turns of all roles but the Commander, who only passes on what they said."""
    return [turn for turn in state["transcript"] if turn["role"] != MESSENGER]
