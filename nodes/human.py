"""Asks a human for a verdict and reads the answer: a score, a vote, a pair, or "let it stand".

An answer is a number, a text or an object. The object may contain a reason and a name. All parts of
the package that ask a human use this module: a debate that pauses, the wrapper ``review``, the
dialogue in the terminal and the queue file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from langgraph.types import interrupt

from ..state.graph_state import JudgeState
from ..state.settings import DebateSettings
from ..state.tasks import CompareTask, ScoreTask, parse_task
from ..state.transcript import Score, Turn, turn_without_model
from ..state.verdict import Winner
from .replies import ReplyError, read_pair, read_score, read_vote
from .runtime.agent_runtime import AgentRuntime, marked_by_wrappers
from .runtime.debate_prompts import turns_without_messages
from .runtime.output_schemas import describe
from .runtime.prompt_context import score_schema


async def human(state: JudgeState, runtime: AgentRuntime[DebateSettings]) -> dict[str, Any]:
    """Pause an unresolved debate until the graph is resumed with ``Command(resume=...)``.

    ``read_answer`` reads the answer. If the answer is unreadable or off the scale, the graph pauses
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
        reply = interrupt(question)
        try:
            return read_answer(reply, task)
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


_VALUES = ("answer", "score", "winner", "scores", "score_1", "score_2", "stands")
_WORDS = ("reason", "name")
_NUMBER = r"-?\d+(?:\.\d+)?"
_STANDS = r"(?:let (?:it|the verdict) stand|it stands|stands?)"
# Humans write "4 because ..." or "tie: ...". The readers of models' replies accept no words
# directly after a number.
_LEADING = re.compile(
    rf"\s*(?P<value>{_STANDS}|tie|[\[(]?{_NUMBER}\s*[,;/:]\s*{_NUMBER}[\])]?|{_NUMBER})\s*[.!]?"
    r"(?:\s*\Z|\s*(?::|;|\n|\s[-\u2013\u2014])\s*|,?\s+(?=because\b|since\b))(?P<reason>.*)",
    re.IGNORECASE | re.DOTALL,
)


class HumanAnswer(NamedTuple):
    """A human's answer.

    Attributes:
        value: a score, a pair of scores, or ``1``, ``2`` or ``tie``; None if the judge's verdict
            stands.
        reason: the human's words, or an empty text.
        name: the human's name, or an empty text.
    """

    value: Score | Winner | None
    reason: str = ""
    name: str = ""

    @property
    def words(self) -> str:
        """The content of the human's turn: the reason, or the decision if there is no reason."""
        if self.value is None:
            return f"Let it stand: {self.reason}" if self.reason else "Let it stand."
        return self.reason or (
            describe(self.value) if not isinstance(self.value, str) else self.value
        )


def wanted(task: ScoreTask | CompareTask) -> str:
    """Return a description of the possible answers.

    >>> wanted(CompareTask(question="Why?", answer_1="Rain.", answer_2="Snow."))
    '1, 2, tie, two scores from 1 to 10 such as 10, 1, or let it stand'
    """
    form = score_schema(task)
    scale = f"from {form.low:g} to {form.high:g}"
    if isinstance(task, CompareTask):
        return f"1, 2, tie, two scores {scale} such as {form.high:g}, {form.low:g}, or let it stand"
    return f"a score {scale}, or let it stand"


def read_answer(reply: Any, task: ScoreTask | CompareTask) -> HumanAnswer:
    """Read a human's answer.

    Args:
        reply: a number, a list of two, a text, or an object with ``answer`` (or ``score``,
            ``winner``, ``scores``, ``score_1`` and ``score_2``, ``stands``), ``reason`` and
            ``name``.
        task: the judged task, which gives the kind and the scale.

    Raises:
        ReplyError: the answer is unreadable or off the scale; ``problem`` describes it in a
            sentence.

    >>> task = CompareTask(question="Why?", answer_1="Rain.", answer_2="Snow.")
    >>> read_answer({"answer": "tie", "reason": "Both are short.", "name": "Ann"}, task)
    HumanAnswer(value='tie', reason='Both are short.', name='Ann')
    >>> read_answer("let it stand: well argued", task)
    HumanAnswer(value=None, reason='well argued', name='')
    """
    if not isinstance(reply, Mapping):
        return _read(reply, task)
    given = {key: value for key, value in reply.items() if value is not None and value != ""}
    if strange := [str(key) for key in given if key not in (*_VALUES, *_WORDS)]:
        taken = ", ".join((*_VALUES, *_WORDS))
        raise ReplyError(f"The answer has no {strange[0]!r}; it takes {taken}.", str(reply))
    values = {key: given[key] for key in _VALUES if key in given}
    if {"score_1", "score_2"} <= values.keys():
        values["scores"] = [values.pop("score_1"), values.pop("score_2")]
    if values.get("stands") is False:
        del values["stands"]
    if len(values) != 1:
        problem = (
            f"The answer gives {' and '.join(values)}, but only one counts"
            if values
            else "The answer is missing"
        )
        raise ReplyError(f"{problem}; please give {wanted(task)}.", str(reply), "contradictory")
    read = (
        HumanAnswer(None)
        if values.get("stands") is True
        else _read(next(iter(values.values())), task)
    )
    words = {key: str(given.get(key, "")).strip() for key in _WORDS}
    return read._replace(reason=words["reason"] or read.reason, name=words["name"])


def _read(reply: Any, task: ScoreTask | CompareTask) -> HumanAnswer:
    form = score_schema(task)
    if isinstance(reply, list | tuple) and len(reply) == 2:
        reply = f"{reply[0]}, {reply[1]}"
    if isinstance(reply, bool) or not isinstance(reply, int | float | str):
        raise ReplyError(
            f"{str(reply)[:80]} is not an answer; please give {wanted(task)}.", str(reply)
        )
    text = reply if isinstance(reply, str) else f"{reply:g}" if math.isfinite(reply) else str(reply)
    led = _LEADING.fullmatch(text)
    value, reason = (led["value"], led["reason"].strip()) if led else (text, text.strip())
    if re.fullmatch(_STANDS, value, re.IGNORECASE):
        return HumanAnswer(None, reason)
    try:
        if isinstance(task, ScoreTask):
            return HumanAnswer(read_score(value, form.low, form.high), reason)
        if led and len(pair := re.findall(_NUMBER, value)) == 2:
            value = ", ".join(pair)
        vote = value.strip().lower()
        if vote in ("1", "2", "tie", "1.0", "2.0"):
            return HumanAnswer(cast("Winner", vote.removesuffix(".0")), reason)
        try:
            return HumanAnswer(list(read_pair(value, form.low, form.high)), reason)
        except ReplyError as error:
            if error.fault != "missing":
                raise
        return HumanAnswer(read_vote(value), reason)
    except ReplyError as error:
        problem = f"{error.problem.replace('The reply', 'The answer')} Please give {wanted(task)}."
        raise ReplyError(problem, error.reply, error.fault) from None
