"""Reads a human's answer: a score, a vote, a pair, or "let it stand".

An answer is a number, a text or an object. The object may contain a reason and a name. All parts of
the package that ask a human use this module: a debate that pauses, the wrapper ``review``, the
dialogue in the terminal and the queue file. It needs no graph, because a finished run is reviewed
and exported without one. ``human_requests.py`` reads the decisions of chat clients, which contain
such an answer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from ..state.errors import ReplyError
from ..state.tasks import CompareTask, ScoreTask
from ..state.transcript import Score
from ..state.verdict import Winner
from .replies import read_pair, read_score, read_vote
from .runtime.output_schemas import describe

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
    low, high = _scale(task)
    scale = f"from {low:g} to {high:g}"
    if isinstance(task, CompareTask):
        return f"1, 2, tie, two scores {scale} such as {high:g}, {low:g}, or let it stand"
    return f"a score {scale}, or let it stand"


def _scale(task: ScoreTask | CompareTask) -> tuple[float, float]:
    """Return the lowest and the highest score of a task."""
    if isinstance(task, CompareTask):
        return task.low, task.high
    return task.aspect.low, task.aspect.high


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
    low, high = _scale(task)
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
            return HumanAnswer(read_score(value, low, high), reason)
        if led and len(pair := re.findall(_NUMBER, value)) == 2:
            value = ", ".join(pair)
        vote = value.strip().lower()
        if vote in ("1", "2", "tie", "1.0", "2.0"):
            return HumanAnswer(cast("Winner", vote.removesuffix(".0")), reason)
        try:
            return HumanAnswer(list(read_pair(value, low, high)), reason)
        except ReplyError as error:
            if error.fault != "missing":
                raise
        return HumanAnswer(read_vote(value), reason)
    except ReplyError as error:
        problem = f"{error.problem.replace('The reply', 'The answer')} Please give {wanted(task)}."
        raise ReplyError(problem, error.reply, error.fault) from None
