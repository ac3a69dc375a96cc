"""Define for each kind of reply how it is asked for, as JSON or as text, and how its value is read.

A schema has a JSON schema for models that take one, a template that asks for the same as plain text, and a reader for
each. Scores and pairs come first, then critiques and plain text, then votes, then G-Eval's steps and ratings; the
courtroom's totals are in ``courtroom.py``.

JSON schemas are bounded. On a scale with whole ends they ask for whole numbers (``whole_numbers``), which decoders can
be held to; fractions cannot. Readers take what lies on the scale, also a fraction: a model that is not held to
the schema, a text and a person may give one, and no value is ever rounded.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

from ..state.errors import ReplyError
from ..state.transcript import Score
from .replies import Shown, contains_no_issue, declares_no_issue, read_pair, read_score, read_vote
from .replies.json_fields import is_repeated, own_object
from .replies.own_words import has_words
from .replies.shown import NOTHING, RepeatedError
from .replies.statements import check_length, possible_answers, repeated
from .replies.steps import read_steps

Value = float | list[float] | bool | str | None


@dataclass(frozen=True)
class OutputSchema(ABC):
    """Define the shape of a reply.

    Attributes:
        name: goes along as metadata of the call; the offline judge answers by it.
        template: the prompt template that asks for the reply, as JSON and as text.
        shown: the texts that the agent was shown; `AgentRuntime` fills it in before a reply is read.
    """

    name: ClassVar[str]
    template: ClassVar[str]
    shown: Shown = field(default=NOTHING, kw_only=True, repr=False, compare=False)

    def schema(self) -> dict[str, Any] | None:
        """Return the JSON schema of the reply, or None where the reply is always plain text."""
        return None

    def read(self, reply: str, fields: Mapping[str, Any] | None = None) -> tuple[str, Value]:
        """Return the text and the value of a reply, whose words are its author's own or quoted.

        Args:
            reply: the reply as it came, reasoning included.
            fields: the arguments of the tool that it called, or the object that it is.

        Raises:
            ReplyError: the reply does not state the value, or another one where quoted words are taken for its own.
        """
        if fields is not None and self.schema() is not None and not is_repeated(fields, self.shown):
            check_length(reply)
            return self.from_fields(fields, reply)
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
        """Read what is left of a reply without its reasoning: an object, words, or an object among words."""
        schema = self.schema()
        # A form in plain text may still get JSON from a model that likes to write it; only its text counts.
        if schema is None:
            return answer, self.from_text(answer)
        about = schema["properties"]
        values = [name for name in about if about[name]["type"] != "string" or "enum" in about[name]]
        try:
            fields = own_object(answer, self.shown, values or list(about)) if "{" in answer else None
        except RepeatedError as error:
            raise repeated(answer, self.name) from error
        return (answer, self.from_text(answer)) if fields is None else self.from_fields(fields, answer)

    def from_fields(self, fields: Mapping[str, Any], raw: str) -> tuple[str, Value]:
        """Return the text and the value of a JSON reply; ``raw`` is the reply as it came, for the error.

        A form in plain text has no fields.

        Raises:
            ReplyError: the fields do not hold the value.
        """
        return raw, self.from_text(raw)

    @abstractmethod
    def from_text(self, text: str) -> Value:
        """Return the value of a plain-text reply; what it reprints of the texts ``shown`` is no value.

        Raises:
            ReplyError: the text does not state the value.
        """

    def is_whole(self, text: str) -> bool:
        """Tell whether a text that hit its length limit is nevertheless all that was asked for."""
        return False

    def limits(self) -> dict[str, Any]:
        """Return the variables of the template."""
        return {}

    def after_cut_off(self) -> OutputSchema:
        """Return the form that is asked for when a reply was cut off: plain text is then asked for as bounded JSON."""
        return self

    @property
    def scale(self) -> tuple[float, float] | None:
        """The lowest and the highest number that a value can have; None where values are no numbers."""
        return None


@dataclass(frozen=True)
class _NumberSchema(OutputSchema):
    """Ask for one number on a scale; where a text reply rates several aspects, the line of ``aspect`` counts."""

    low: float
    high: float
    aspect: str | None = None
    name: ClassVar[str] = "score"

    def from_text(self, text: str) -> Value:
        return read_score(text, self.low, self.high, aspect=self.aspect, shown=self.shown)

    def limits(self) -> dict[str, Any]:
        whole = bool(whole_numbers(self.low, self.high))
        return {"low": f"{self.low:g}", "high": f"{self.high:g}", "whole": whole, "metric": self.aspect}

    @property
    def scale(self) -> tuple[float, float] | None:
        return self.low, self.high


class ScoreSchema(_NumberSchema):
    """Ask for one number on a scale, with reasons.

    Attributes:
        labels: the fields of the numbers in JSON, with what stands before them in a text.
    """

    template: ClassVar[str] = "shared/form_score"
    labels: ClassVar[Mapping[str, str]] = {"score": "Score"}

    def schema(self) -> dict[str, Any]:
        return reply_with_numbers(f"{self.name}_reply", self.low, self.high, *self.labels)

    def from_fields(self, fields: Mapping[str, Any], raw: str) -> tuple[str, Value]:
        scores = [read_number(fields, key, self, raw) for key in self.labels]
        lines = [f"{label}: {score:g}" for label, score in zip(self.labels.values(), scores, strict=True)]
        text = "\n".join([read_words(fields, "reasoning"), *lines]).strip()
        return text, scores if len(scores) > 1 else scores[0]


class PairSchema(ScoreSchema):
    """Ask for a score for each of two answers."""

    name: ClassVar[str] = "pair"
    template: ClassVar[str] = "shared/form_pair"
    labels: ClassVar[Mapping[str, str]] = {"score_1": "Score of answer 1", "score_2": "Score of answer 2"}

    def from_text(self, text: str) -> Value:
        return list(read_pair(text, self.low, self.high, shown=self.shown))


@dataclass(frozen=True)
class CritiqueSchema(OutputSchema):
    """Ask for a critique: an objection (value False), or the declaration that there is no issue (value True).

    With ``literal`` the words NO ISSUE count wherever they stand, as in DEBATE's Algorithm 1.
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
        # A number in place of words is no declaration, whatever flag stands beside it.
        flag = flag and (not words or has_words(words))
        satisfied = flag or (self.literal and contains_no_issue(words, shown=self.shown))
        if not satisfied and not words:
            raise ReplyError("The reply objects without saying to what.", raw, "empty")
        # The field is no part of the text that later agents read, so the declaration is written out for them.
        return (f"{words}\nNO ISSUE".strip() if flag and not declares_no_issue(words) else words), satisfied

    def from_text(self, text: str) -> Value:
        if not text.strip():
            raise ReplyError("The reply is empty.", text, "empty")
        return (contains_no_issue if self.literal else declares_no_issue)(text, shown=self.shown)


@dataclass(frozen=True)
class TextSchema(OutputSchema):
    """Ask for plain text without a value; one that was cut off is kept, unless it is to be ``whole``."""

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
    """Ask for a vote for one of the two answers (value ``"1"`` or ``"2"``)."""

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
        vote = read_vote(text, shown=self.shown)
        if vote == "tie":
            raise ReplyError("The reply votes for a tie, which is no vote.", text, "missing")
        return vote


@dataclass(frozen=True)
class StepsSchema(OutputSchema):
    """Ask for a list of evaluation steps; the turn keeps the text, and ``read_steps`` finds the steps in it.

    With ``bounded`` they are asked for as JSON, where their number and length can be bounded.
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
        text = "\n".join(f"{number}. {step}" for number, step in enumerate(filter(None, steps), start=1))
        return text, self.from_text(text)

    def from_text(self, text: str) -> Value:
        read_steps(text)
        return None

    def after_cut_off(self) -> OutputSchema:
        return StepsSchema(bounded=True, shown=self.shown)


class RatingSchema(_NumberSchema):
    """Ask for one number of a scale and nothing else, as plain text, so that the score's token can be found."""

    template: ClassVar[str] = "geval/form_rating"

    def is_whole(self, text: str) -> bool:
        # With ``max_tokens=1`` the provider calls a whole reply cut off. A 1 that may have become a 10 is not whole.
        scale = map(str, self.choices)
        return [value for value in scale if value.startswith(text.strip())] == [text.strip()]

    @property
    def choices(self) -> list[int]:
        """The whole numbers of the scale, one of which the reply is to be."""
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
    """Return the whole numbers of a scale that is judged in whole numbers: both ends are whole, and one lies between.

    >>> whole_numbers(1, 5), whole_numbers(0, 1), whole_numbers(0.5, 5)
    (range(1, 6), range(0, 0), range(0, 0))
    """
    # Of a scale from 0 to 1, whole numbers would leave but the ends.
    whole = float(low).is_integer() and float(high).is_integer() and high - low > 1
    return range(int(low), int(high) + 1) if whole else range(0)


LISTED_AT_MOST = 11
"""Scales with so many whole numbers are listed in a schema: all providers take a list, and some no other bounds."""

LONGEST_PROSE = 1900
"""Characters of reasons and feedback, about 300 words: llama.cpp refuses a text bounded to 2000 and more."""


def number(low: float, high: float) -> dict[str, Any]:
    """Return the JSON schema of a number on a scale.

    >>> number(1, 3)
    {'type': 'integer', 'description': 'A whole number from 1 to 3.', 'enum': [1, 2, 3]}
    >>> number(0, 1)
    {'type': 'number', 'description': 'A number from 0 to 1.', 'minimum': 0, 'maximum': 1}
    """
    whole, meaning = whole_numbers(low, high), f"umber from {low:g} to {high:g}."
    if not whole:
        return {"type": "number", "description": f"A n{meaning}", "minimum": low, "maximum": high}
    listed = len(whole) <= LISTED_AT_MOST
    bounds = {"enum": [*whole]} if listed else {"minimum": whole[0], "maximum": whole[-1]}
    return {"type": "integer", "description": f"A whole n{meaning}", **bounds}


def prose(meaning: str) -> dict[str, Any]:
    """Return the JSON schema of reasons or feedback."""
    return {"type": "string", "description": meaning, "maxLength": LONGEST_PROSE}


def object_schema(title: str, **fields: dict[str, Any]) -> dict[str, Any]:
    """Return a strict JSON schema with these fields. Models write them in this order, so reasons go before values."""
    about = {"title": title, "type": "object", "properties": fields}
    return {**about, "required": list(fields), "additionalProperties": False}


# One is asked for with every call. ``typed``: 1 and 1.0 are equal, and written differently.
@lru_cache(typed=True)
def reply_with_numbers(title: str, low: float, high: float, *names: str) -> dict[str, Any]:
    """Return the JSON schema of reasons and then a number on a scale for each of these names."""
    numbers = {name: number(low, high) for name in names}
    return object_schema(title, reasoning=prose("Reasons, step by step."), **numbers)


_NO_ISSUE = "true only to declare NO ISSUE: the score leaves nothing to object to."
_CRITIQUE_REPLY = object_schema(
    "critique_reply",
    feedback=prose("What you have to say, step by step."),
    no_issue={"type": "boolean", "description": _NO_ISSUE},
)


def read_words(fields: Mapping[str, Any], key: str) -> str:
    """Return the text of a field; an empty one where it holds none."""
    words = fields.get(key)
    return words.strip() if isinstance(words, str) else ""


def read_number(fields: Mapping[str, Any], key: str, scale: ScoreSchema, raw: str) -> float:
    """Return the number of a field, which lies on the scale of ``scale``.

    Raises:
        ReplyError: it is no number, or off the scale.
    """
    value = fields.get(key)
    if isinstance(value, str):
        try:
            return read_score(value, scale.low, scale.high)
        except ReplyError as error:
            raise ReplyError(error.problem, raw, error.fault) from error
    # A bool is an int to Python, but no score.
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ReplyError(f"The field {key} is not a number.", raw, "missing")
    if not scale.low <= value <= scale.high:
        problem = f"The field {key} is {value:g}, which is off the scale {scale.low:g} to {scale.high:g}."
        raise ReplyError(problem, raw, "off_scale")
    return float(value)
