"""Asks a human for a verdict while a graph runs, and makes a turn of the answer.

``human_requests.py`` makes the form for chat clients and reads their decisions, and
``human_answers.py`` reads the answer itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langgraph.types import interrupt

from ..state.graph_state import JudgeState
from ..state.settings import DebateSettings
from ..state.tasks import parse_task
from ..state.transcript import Score, Turn, turn_without_model
from .human_answers import HumanAnswer, wanted
from .human_requests import read_reply, request_of
from .replies import ReplyError
from .runtime.agent_runtime import AgentRuntime, marked_by_wrappers
from .runtime.debate_prompts import turns_without_messages
from .runtime.prompt_context import score_schema


async def human(state: JudgeState, runtime: AgentRuntime[DebateSettings]) -> dict[str, Any]:
    """Pause an unresolved debate until the graph is resumed with ``Command(resume=...)``.

    ``read_reply`` reads the answer. If the answer is unreadable or off the scale, the graph pauses
    again.
    """
    answer = ask_person(
        state, ["unresolved: Scorer and Critic do not agree"], turns_without_messages(state)
    )
    return {"transcript": [turn_of_person(answer, state, state["scores"][-1], runtime)]}


def ask_person(
    state: Mapping[str, Any],
    why: Sequence[str],
    turns: Iterable[Turn],
    verdict: Mapping[str, Any] | None = None,
) -> HumanAnswer:
    """Pause until a human has given a readable answer, and return it.

    Args:
        state: the graph's state, with the task and the score after each round.
        why: the reasons for which the human is asked.
        turns: the part of the debate that the human is shown.
        verdict: the judge's verdict, if there is one.
    """
    task = parse_task(state["task"])
    place = place_of_pause()
    form = score_schema(task)
    where = f" ({place['where']})" if place["where"] else ""
    question = {
        "question": f"Your verdict, please{where}: {wanted(task)}; with a reason and your name where you can.",
        "why": [*why],
        "place": place,
        "low": form.low,
        "high": form.high,
        "task": state["task"],
        "scores": state["scores"],
        **({"verdict": verdict} if verdict else {}),
        "log": [{key: turn[key] for key in ("round", "agent", "content")} for turn in turns],
    }
    while True:
        # LangGraph runs the node from its start at each resumption, and ``interrupt`` returns the
        # answers so far, one after the other. The loop skips the unreadable ones again, so nothing
        # before it may have a side effect.
        reply = interrupt({**question, **request_of(question)})
        try:
            return read_reply(reply, task)
        except ReplyError as error:
            question = {**question, "problem": error.problem}


def turn_of_person(
    answer: HumanAnswer, state: Mapping[str, Any], stands: Score, runtime: AgentRuntime[Any]
) -> Turn:
    """Make and stream a human's turn; its value is the answer, or the score that it confirms."""
    value = stands if answer.value is None else answer.value
    form = score_schema(parse_task(state["task"]))
    named = {"name": answer.name} if answer.name else {}
    return runtime.say(
        state["round"], "human", answer.words, value, scale=[form.low, form.high], **named
    )


def place_of_pause() -> dict[str, Any]:
    """Return which judge inside wrappers pauses: the turn's id, its marks, and both in words."""
    marked = marked_by_wrappers({**turn_without_model(0, "human", "human", ""), "id": "human"})
    marks: dict[str, Any] = {
        key: marked[key] for key in ("stage", "repeat", "repeats", "order") if key in marked
    }
    words = [str(marks["stage"])] if "stage" in marks else []
    words += [f"run {marks['repeat'] + 1} of {marks['repeats']}"] if "repeats" in marks else []
    swapped = "order 2, answers swapped: answer 1 here is the task's answer 2"
    words += filter(
        None, [{1: "order 1, answers as in the task", 2: swapped}.get(marks.get("order", 0))]
    )
    return {"id": marked["id"], **marks, "where": ", ".join(words)}
