"""Shared by MORE's agents on ratings: one team argues for a high score of a text, one for a low.

The paper compares two answers. A rating has one text, so the sides are the two ends of the scale.
Side 1 argues for a high score, side 2 for a low one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...state.graph_state import JudgeState
from ...state.transcript import Score, Turn
from .agent_runtime import AgentRuntime, Question
from .courtroom import side_of_agent
from .output_schemas import OutputSchema, TextSchema
from .prompt_context import build_prompt, call_metadata, requested_output, score_schema, task_of

LEVELS = {1: "high", 2: "low"}
"""The score for which each side argues, in a word."""

LEADS = (
    "the wording of the criteria",
    "single passages",
    "the text as a whole",
    "what is missing",
    "the effect on a reader",
    "the strongest counter-argument",
)
"""The points with which the advocates of a team begin. They fit every aspect, as the six criteria
of a comparison do not."""


async def ask_on_rating(
    state: JudgeState,
    runtime: AgentRuntime[Any],
    agent: str,
    template: str,
    record: Iterable[Turn],
    *,
    is_scored: bool = False,
    **given: Any,
) -> dict[str, Any]:
    """Ask an agent of one of the teams, or the judge, about a rating.

    Its prompt contains the task and the record, then its own instruction.

    Args:
        state: the graph's state.
        runtime: settings, prompts and models.
        agent: the agent's name, which begins with its role.
        template: the name of its own instruction in the folder ``rating``.
        record: the turns that it is shown, failed ones excepted.
        is_scored: whether the reply is a score of the text; otherwise, it is plain text.
        given: the template's variables; those of its side and of a score are added.
    """
    task = task_of(state)
    details: dict[str, Any] = {**call_metadata(task)}
    form: OutputSchema = TextSchema()
    if is_scored:
        given["wanted"] = requested_output(task)
        form = score_schema(task)
    if side := side_of_agent(agent):
        given |= {"side": LEVELS[side], "other": LEVELS[3 - side]}
        details["side"] = side
    if template in ("judge", "feedback"):
        details["last_value"] = state["scores"][-1] if state["scores"] else None
    own = runtime.prompts.instruction(f"rating/{template}", **given)
    prompt = build_prompt(state, runtime.prompts, own, record)
    role = agent.partition("_")[0]
    question = Question(agent, role, state["round"], prompt, form, details)
    return (await runtime.ask(question)).update


def rounds_and_scores(state: JudgeState, rounds: int) -> dict[str, Any]:
    """Return the template variables for the course of the debate: round, rounds, earlier scores."""
    return {"round": state["round"], "rounds": rounds, "scores": scores_so_far(state["scores"])}


def scores_so_far(scores: Sequence[Score]) -> str:
    """Return earlier scores round by round, for a prompt.

    >>> scores_so_far([4.0, 3.5])
    '4, 3.5'
    """
    return ", ".join(f"{score:g}" for score in scores if not isinstance(score, list))
