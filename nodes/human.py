"""Ask a person: the graph pauses with LangGraph's ``interrupt``, shows the debate, and goes on with the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from langgraph.types import interrupt

from ..state.graph_state import JudgeState
from ..state.settings import DebateSettings
from ..state.tasks import CompareTask, ScoreTask
from ..state.transcript import Score, Turn, turn_without_model
from ..state.verdict import Winner
from .agent_runtime import AgentRuntime
from .human_answers import HumanAnswer, read_answer, wanted
from .prompt_context import debate_turns, score_schema, task_of
from .replies import ReplyError

Mark = Callable[[Turn], Turn]
marks_of_wrappers: ContextVar[tuple[Mark, ...]] = ContextVar("marks_of_wrappers", default=())
"""How the wrappers round the judge that is run mark its turns, innermost first: a pause tells by them who asks."""


async def human(state: JudgeState, runtime: AgentRuntime[DebateSettings]) -> dict[str, Any]:
    """Pause an unresolved debate until somebody resumes the graph with ``Command(resume=...)``.

    The answer is read by ``human_answers.py``. One that cannot be read, or is off the scale, is asked for again.
    """
    task = task_of(state)
    why = ["unresolved: Scorer and Critic do not agree"]
    answer = ask_person(task, state["task"], why, state["scores"], debate_turns(state))
    scores = state["scores"]
    value = decided(answer, scores[-1])
    turn = runtime.say(state["round"], "human", answer.words, value, score_schema(task).scale, answer.name)
    return {"transcript": [turn]}


def ask_person(
    task: ScoreTask | CompareTask,
    given: Mapping[str, Any],
    why: Sequence[str],
    scores: Sequence[Score],
    turns: Iterable[Turn],
    verdict: Mapping[str, Any] | None = None,
) -> HumanAnswer:
    """Pause until a person has given an answer that can be read, and return it.

    Args:
        task: what was judged.
        given: the same as it stands in the state.
        why: the reasons for which a person is asked.
        scores: the score after each round.
        turns: what the person is shown of the debate.
        verdict: the judge's, where there is one.
    """
    form, place = score_schema(task), place_of_pause()
    where = f" ({place['where']})" if place["where"] else ""
    question = {
        "question": f"Your verdict, please{where}: {wanted(task)}; with a reason and your name where you can.",
        "why": [*why],
        "place": place,
        "low": form.low,
        "high": form.high,
        "task": given,
        "scores": scores,
        **({"verdict": verdict} if verdict else {}),
        "log": [{key: turn[key] for key in ("round", "agent", "content")} for turn in turns],
    }
    while True:
        # On each resumption LangGraph runs the node from its start, and ``interrupt`` returns the answers given so far,
        # one after the other: the loop passes the unreadable ones again, so nothing before it may have an effect.
        reply = interrupt(question)
        try:
            return read_answer(reply, task)
        except ReplyError as error:
            question = {**question, "problem": error.problem}


def decided(answer: HumanAnswer, stands: Score) -> Score | Winner:
    """Return the value of a person's turn: what they said, or the score that they let stand."""
    return stands if answer.value is None else answer.value


def place_of_pause() -> dict[str, Any]:
    """Tell which of the judges inside wrappers asks: the id of the person's turn, its marks, and both in words."""
    marked: Turn = {**turn_without_model(0, "human", "human", ""), "id": "human"}
    for mark in marks_of_wrappers.get():
        marked = mark(marked)
    marks: dict[str, Any] = {key: marked[key] for key in ("stage", "repeat", "order") if key in marked}
    words = [str(marks["stage"])] if "stage" in marks else []
    words += [f"run {marks['repeat'] + 1}"] if "repeat" in marks else []
    if marks.get("order") == 1:
        words.append("order 1, answers as in the task")
    elif marks.get("order") == 2:
        words.append("order 2, answers swapped: answer 1 here is the task's answer 2")
    return {"id": marked["id"], **marks, "where": ", ".join(words)}
