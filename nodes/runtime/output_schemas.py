"""The forms of replies: how each is requested, as JSON or as text, and how its value is read.

A schema has a JSON schema for models that support it, a template that requests the same as plain
text, and a reader for each. Scores and pairs come first, then critiques and plain text, votes, and
G-Eval's steps and ratings. The courtroom's totals are in ``courtroom.py``.

JSON schemas are bounded. On a scale with whole ends they request whole numbers (``whole_numbers``),
because decoders can enforce these but not fractions. Readers accept every number on the scale,
including fractions: models without enforcement, texts and humans may give one. Values are never
rounded.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

from ...state.errors import ReplyError
from ...state.transcript import Score
from ..replies import (
    Rule,
    Shown,
    contains_no_issue,
    declares_no_issue,
    read_pair,
    read_score,
    read_vote,
)
from ..replies.json_fields import as_named, is_repeated, own_object
from ..replies.own_words import has_words
from ..replies.shown import NOTHING, RepeatedError
from ..replies.statements import check_length, possible_answers, repeated
from ..replies.steps import read_steps

Value = float | list[float] | bool | str | None


@dataclass(frozen=True)
class OutputSchema(ABC):
    """The form of a reply.

    Attributes:
        name: metadata of the call, by which the offline judge answers.
        template: the prompt template that requests the reply, as JSON and as text.
        shown: the texts that the agent was shown; `AgentRuntime` sets it before a reply is read.
        rule: how a recorded reply to another prompt states its value; `AgentRuntime` sets it.
    """

    name: ClassVar[str]
    template: ClassVar[str]
    shown: Shown = field(default=NOTHING, kw_only=True, repr=False, compare=False)
    rule: Rule | None = field(default=None, kw_only=True, repr=False, compare=False)

    def schema(self) -> dict[str, Any] | None:
        """Return the JSON schema of the reply, or None if the reply is always plain text."""
        return None

    def read(self, reply: str, fields: Mapping[str, Any] | None = None) -> tuple[str, Value]:
        """Return the text and the value of a reply; the words may be its author's own or quoted.

        Args:
            reply: the raw reply, including reasoning.
            fields: the arguments of the tool that it called, or the object that it is.

        Raises:
            ReplyError: the reply does not state the value, or states another one if quoted words
                count.
        """
        if self.rule is not None:
            return reply, self.from_text(reply)
        schema = self.schema()
        if fields is not None and schema is not None and not is_repeated(fields, self.shown):
            check_length(reply)
            return self.from_fields(as_named(fields, schema["properties"]), reply)
        readings: list[tuple[str, Value]] = []
        unread: list[ReplyError] = []
        for answer in possible_answers(reply, self.shown):
            try:
                readings.append(self._read_answer(answer))
            except ReplyError as error:
                unread.append(error)
        if not readings:
            raise unread[0]
        if any(value != readings[0][1] for _, value in readings):
            raise repeated(readings[0][0], self.name)
        return readings[0]

    def _read_answer(self, answer: str) -> tuple[str, Value]:
        """Read a reply without its reasoning: an object, words, or an object among words."""
        schema = self.schema()
        # A model may write JSON although plain text was requested. Only its text counts.
        if schema is None:
            return answer, self.from_text(answer)
        about = schema["properties"]
        values = [
            name for name in about if about[name]["type"] != "string" or "enum" in about[name]
        ]
        try:
            found = own_object(answer, self.shown, values or list(about)) if "{" in answer else None
        except RepeatedError as error:
            raise repeated(answer, self.name) from error
        if found is None:
            return answer, self.from_text(answer)
        text, value = self.from_fields(as_named(found.fields, about), answer)
        if has_words(found.remarks) or any(char.isdigit() for char in found.remarks):
            self._check_remarks(answer, value)
        return text, value

    def _check_remarks(self, answer: str, value: Value) -> None:
        """Check that the words around an object with a value do not state another one.

        Raises:
            ReplyError: they state another value.
        """
        try:
            stated = self.from_text(answer)
        except ReplyError as error:
            # An object need not state the value in the text form.
            if error.fault == "contradictory":
                raise
            return
        if stated is not None and stated is not False and stated != value:
            problem = (
                "The reply states one value in its object, and another one in the words around it."
            )
            raise ReplyError(problem, answer, "contradictory")

    def from_fields(self, fields: Mapping[str, Any], raw: str) -> tuple[str, Value]:
        """Return the text and the value of a JSON reply; ``raw`` is the raw reply for the error.

        A plain text form has no fields.

        Raises:
            ReplyError: the fields do not contain the value.
        """
        return raw, self.from_text(raw)

    @abstractmethod
    def from_text(self, text: str) -> Value:
        """Return the value of a plain-text reply; text repeated from ``shown`` does not count.

        Raises:
            ReplyError: the text does not state the value.
        """

    def is_whole(self, text: str) -> bool:
        """Return whether a text that reached its length limit is complete nevertheless."""
        return False

    def limits(self) -> dict[str, Any]:
        """Return the variables of the template."""
        return {}

    def after_cut_off(self) -> OutputSchema:
        """Return the form to request after a truncated reply: bounded JSON, not plain text."""
        return self

    @property
    def scale(self) -> tuple[float, float] | None:
        """The lowest and the highest possible value; None if values are not numbers."""
        return None


@dataclass(frozen=True)
class _NumberSchema(OutputSchema):
    """Request one number on a scale; if a text rates several aspects, ``aspect``'s line counts.

    Attributes:
        allowed: the only scores that are accepted; empty: every number on the scale.
    """

    low: float
    high: float
    aspect: str | None = None
    allowed: tuple[float, ...] = ()
    name: ClassVar[str] = "score"

    def from_text(self, text: str) -> Value:
        return self.accepted(
            read_score(
                text, self.low, self.high, aspect=self.aspect, shown=self.shown, rule=self.rule
            ),
            text,
        )

    def accepted(self, score: float, raw: str) -> float:
        """Return a score if it is allowed.

        Raises:
            ReplyError: it is not.
        """
        if self.allowed and score not in self.allowed:
            raise ReplyError(
                f"The score is {score:g}, but only {written_choices(self.allowed)} are allowed.",
                raw,
                "off_scale",
            )
        return score

    def limits(self) -> dict[str, Any]:
        whole = bool(whole_numbers(self.low, self.high))
        return {
            "low": f"{self.low:g}",
            "high": f"{self.high:g}",
            "whole": whole,
            "metric": self.aspect,
        }

    @property
    def scale(self) -> tuple[float, float] | None:
        return self.low, self.high


class ScoreSchema(_NumberSchema):
    """Request one number on a scale, with reasons.

    Attributes:
        labels: the JSON fields of the numbers, with their labels in a text.
    """

    template: ClassVar[str] = "shared/form_score"
    labels: ClassVar[Mapping[str, str]] = {"score": "Score"}

    def schema(self) -> dict[str, Any]:
        return reply_with_numbers(
            f"{self.name}_reply", self.low, self.high, self.allowed, *self.labels
        )

    def from_fields(self, fields: Mapping[str, Any], raw: str) -> tuple[str, Value]:
        return self._from_numbers(fields, self.labels, raw)

    def _from_numbers(
        self, fields: Mapping[str, Any], labels: Mapping[str, str], raw: str
    ) -> tuple[str, Value]:
        scores = [read_number(fields, key, self, raw) for key in labels]
        lines = [
            f"{label}: {score:g}" for label, score in zip(labels.values(), scores, strict=True)
        ]
        text = "\n".join([read_words(fields, "reasoning"), *lines]).strip()
        return text, scores if len(scores) > 1 else scores[0]


class PairSchema(ScoreSchema):
    """Request a score for each of two answers."""

    name: ClassVar[str] = "pair"
    template: ClassVar[str] = "shared/form_pair"
    labels: ClassVar[Mapping[str, str]] = {
        "score_1": "Score of answer 1",
        "score_2": "Score of answer 2",
    }

    def from_text(self, text: str) -> Value:
        return list(read_pair(text, self.low, self.high, shown=self.shown, rule=self.rule))


@dataclass(frozen=True)
class CritiqueSchema(OutputSchema):
    """Request a critique: an objection (value False), or the declaration of no issue (value True).

    With ``literal``, the words NO ISSUE count anywhere in the text, as in DEBATE's Algorithm 1.
    """

    literal: bool = False
    name: ClassVar[str] = "critique"
    template: ClassVar[str] = "shared/form_critique"

    def schema(self) -> dict[str, Any]:
        return _CRITIQUE_REPLY

    def from_fields(self, fields: Mapping[str, Any], raw: str) -> tuple[str, Value]:
        words = read_words(fields, "feedback")
        flag = fields.get("no_issue")
        if not isinstance(flag, bool):
            raise ReplyError("The field no_issue is not true or false.", raw, "missing")
        # A number instead of words is not a declaration, whatever the flag is.
        flag = flag and (not words or has_words(words))
        satisfied = flag or (self.literal and contains_no_issue(words, shown=self.shown))
        if not satisfied and not words:
            raise ReplyError("The reply objects without saying to what.", raw, "empty")
        # Later agents read the text without the field, so add the declaration to it.
        return (
            f"{words}\nNO ISSUE".strip() if flag and not declares_no_issue(words) else words
        ), satisfied

    def from_text(self, text: str) -> Value:
        if not text.strip():
            raise ReplyError("The reply is empty.", text, "empty")
        return (contains_no_issue if self.literal else declares_no_issue)(text, shown=self.shown)


@dataclass(frozen=True)
class TextSchema(OutputSchema):
    """Request plain text without a value; truncated text is accepted unless ``whole`` is set."""

    whole: bool = False
    name: ClassVar[str] = "text"
    template: ClassVar[str] = "shared/form_text"

    def from_text(self, text: str) -> Value:
        if not text.strip():
            raise ReplyError("The reply is empty.", text, "empty")
        return None

    def is_whole(self, text: str) -> bool:
        return not self.whole and bool(text.strip())


class VoteSchema(OutputSchema):
    """Request a vote for one of the two answers (value ``"1"`` or ``"2"``)."""

    name: ClassVar[str] = "vote"
    template: ClassVar[str] = "courtroom/form_vote"

    def schema(self) -> dict[str, Any]:
        winner = {"type": "string", "enum": ["1", "2"], "description": "The better answer, 1 or 2."}
        return object_schema("vote_reply", reasoning=prose("Reasons, briefly."), winner=winner)

    def from_fields(self, fields: Mapping[str, Any], raw: str) -> tuple[str, Value]:
        winner = str(fields.get("winner", "")).strip()
        if winner not in ("1", "2"):
            raise ReplyError("The field winner is neither 1 nor 2.", raw, "missing")
        return f"{read_words(fields, 'reasoning')}\nVote: {winner}".strip(), winner

    def from_text(self, text: str) -> Value:
        vote = read_vote(text, shown=self.shown, rule=self.rule)
        if vote == "tie":
            raise ReplyError("The reply votes for a tie, which is no vote.", text, "missing")
        return vote


@dataclass(frozen=True)
class StepsSchema(OutputSchema):
    """Request a list of evaluation steps, which ``read_steps`` finds in the turn's text.

    With ``bounded`` they are requested as JSON, which can limit their number and length.
    """

    bounded: bool = False
    name: ClassVar[str] = "steps"
    template: ClassVar[str] = "geval/form_steps"

    def schema(self) -> dict[str, Any] | None:
        if not self.bounded:
            return None
        bounds = {"items": {"type": "string", "maxLength": 150}, "minItems": 2, "maxItems": 6}
        steps = {"type": "array", "description": "The steps in order.", **bounds}
        return object_schema("steps_reply", steps=steps)

    def from_fields(self, fields: Mapping[str, Any], raw: str) -> tuple[str, Value]:
        listed = fields.get("steps")
        steps = [" ".join(str(step).split()) for step in listed] if isinstance(listed, list) else []
        text = "\n".join(
            f"{number}. {step}" for number, step in enumerate(filter(None, steps), start=1)
        )
        return text, self.from_text(text)

    def from_text(self, text: str) -> Value:
        read_steps(text)
        return None

    def after_cut_off(self) -> OutputSchema:
        return StepsSchema(bounded=True, shown=self.shown)


class RatingSchema(_NumberSchema):
    """Request one number of a scale without other text, so that the score's token can be found."""

    template: ClassVar[str] = "geval/form_rating"

    def is_whole(self, text: str) -> bool:
        # With ``max_tokens=1``, the provider reports a complete reply as truncated. A 1 that may
        # have become a 10 is not complete.
        scale = map(str, self.choices)
        return [value for value in scale if value.startswith(text.strip())] == [text.strip()]

    @property
    def choices(self) -> list[int]:
        """The whole numbers of the scale, one of which the reply must be."""
        return [*range(math.ceil(self.low), math.floor(self.high) + 1)]


def describe(value: Score) -> str:
    """Return a score or a pair in words, for a message.

    >>> describe([8, 6.5])
    '8 for answer 1 and 6.5 for answer 2'
    """
    if isinstance(value, list):
        return f"{value[0]:g} for answer 1 and {value[1]:g} for answer 2"
    return f"{value:g}"


def whole_numbers(low: float, high: float) -> range:
    """Return the whole numbers of a scale with whole ends and at least one number between them.

    Other scales have no whole numbers.

    >>> whole_numbers(1, 5), whole_numbers(0, 1), whole_numbers(0.5, 5)
    (range(1, 6), range(0, 0), range(0, 0))
    """
    # A scale from 0 to 1 would have only its ends.
    whole = float(low).is_integer() and float(high).is_integer() and high - low > 1
    return range(int(low), int(high) + 1) if whole else range(0)


LISTED_AT_MOST = 11
"""Schemas list up to this many whole numbers: some providers accept lists but no other bounds."""

LONGEST_PROSE = 1900
"""Characters of reasons and feedback, about 300 words: llama.cpp refuses bounds of 2000 or more."""


def written_choices(choices: Sequence[float]) -> str:
    """Return allowed scores as a prompt or a message lists them.

    >>> written_choices((0.0, 0.5, 1.0))
    '0, 0.5 and 1'
    """
    *others, last = (f"{choice:g}" for choice in choices) if choices else ("",)
    return f"{', '.join(others)} and {last}" if others else last


def number(low: float, high: float, allowed: Sequence[float] = ()) -> dict[str, Any]:
    """Return the JSON schema of a number on a scale, or of one of the ``allowed`` numbers.

    >>> number(1, 3)
    {'type': 'integer', 'description': 'A whole number from 1 to 3.', 'enum': [1, 2, 3]}
    >>> number(0, 1)
    {'type': 'number', 'description': 'A number from 0 to 1.', 'minimum': 0, 'maximum': 1}
    """
    if allowed:
        kind = "integer" if all(float(value).is_integer() for value in allowed) else "number"
        values = [int(value) if kind == "integer" else value for value in allowed]
        return {"type": kind, "description": f"One of {written_choices(allowed)}.", "enum": values}
    whole = whole_numbers(low, high)
    meaning = f"umber from {low:g} to {high:g}."
    if not whole:
        return {"type": "number", "description": f"A n{meaning}", "minimum": low, "maximum": high}
    listed = len(whole) <= LISTED_AT_MOST
    bounds = {"enum": [*whole]} if listed else {"minimum": whole[0], "maximum": whole[-1]}
    return {"type": "integer", "description": f"A whole n{meaning}", **bounds}


def prose(meaning: str) -> dict[str, Any]:
    """Return the JSON schema of reasons or feedback."""
    return {"type": "string", "description": meaning, "maxLength": LONGEST_PROSE}


def object_schema(title: str, **fields: dict[str, Any]) -> dict[str, Any]:
    """Return a strict JSON schema; models write fields in its order, so reasons precede values."""
    about = {"title": title, "type": "object", "properties": fields}
    return {**about, "required": list(fields), "additionalProperties": False}


# Every call needs a schema. ``typed``: 1 and 1.0 are equal, but written differently.
@lru_cache(typed=True)
def reply_with_numbers(
    title: str, low: float, high: float, allowed: tuple[float, ...], *names: str
) -> dict[str, Any]:
    """Return the JSON schema of reasons, followed by a number on a scale for each name."""
    numbers = {name: number(low, high, allowed) for name in names}
    return object_schema(title, reasoning=prose("Reasons, step by step."), **numbers)


_NO_ISSUE = "true only to declare NO ISSUE: the score leaves nothing to object to."
_CRITIQUE_REPLY = object_schema(
    "critique_reply",
    feedback=prose("What you have to say, step by step."),
    no_issue={"type": "boolean", "description": _NO_ISSUE},
)


def read_words(fields: Mapping[str, Any], key: str) -> str:
    """Return the text of a field, or an empty text."""
    words = fields.get(key)
    return words.strip() if isinstance(words, str) else ""


def read_number(fields: Mapping[str, Any], key: str, scale: ScoreSchema, raw: str) -> float:
    """Return the number of a field, which must lie on the scale of ``scale``.

    Raises:
        ReplyError: it is not a number, or off the scale.
    """
    value = fields.get(key)
    if isinstance(value, str):
        try:
            return scale.accepted(read_score(value, scale.low, scale.high), raw)
        except ReplyError as error:
            raise ReplyError(error.problem, raw, error.fault) from error
    # A bool is an int in Python, but not a score.
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ReplyError(f"The field {key} is not a number.", raw, "missing")
    if not scale.low <= value <= scale.high:
        problem = (
            f"The field {key} is {value:g}, which is off the scale {scale.low:g} to {scale.high:g}."
        )
        raise ReplyError(problem, raw, "off_scale")
    return scale.accepted(float(value), raw)
