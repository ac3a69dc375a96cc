"""Reads a score.

Forms, each alone on its line: ``Score: 4``, ``Final score: 4``, ``Rating: 4``, the name of the
requested aspect as label, ``[[4]]``, ``\\boxed{4}``, ``4``; each also as ``4/5`` or ``4 out of 5``
if the scale ends at 5. Label and number may be on two lines, and the label may be translated
(``words.toml``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from ...state.errors import ReplyError
from .json_fields import Field, spelled
from .own_words import both_ends, plain, unmarked
from .rules import Rule, score_by_rule
from .shown import NOTHING, Shown
from .statements import LineGrammar, bare, lines_of, off_scale, stated_value
from .vocabulary import (
    WORDS,
    alternatives,
    label_words,
    labels_of,
    names_value,
    number,
    value_of,
    written,
)


def read_score(
    text: str,
    low: float = 1,
    high: float = 5,
    *,
    aspect: str | None = None,
    shown: Shown = NOTHING,
    rule: Rule | None = None,
) -> float:
    """Return the score that a reply states, on the scale ``low`` to ``high``.

    Args:
        text: the raw reply.
        low: lowest value of the scale.
        high: highest value of the scale.
        aspect: the requested aspect, whose name may be the label.
        shown: the texts that the judge was shown; text repeated from them does not count.
        rule: the rule for a recorded reply to another prompt, which replaces the grammar.

    Raises:
        ReplyError: the reply is empty, states nothing, refuses, breaks off, contradicts itself or
            leaves the scale, or everything it states may be repeated from a shown text.

    >>> read_score("The plot is clear, with 2 small slips.\\nScore: 4/5")
    4.0
    >>> read_score("Score: 7")
    Traceback (most recent call last):
        ...
    jurygraph.state.errors.ReplyError: The reply states 7, which is off the scale 1 to 5. Raw reply: 'Score: 7'
    """
    if rule is not None:
        return on_scale(text, score_by_rule(text, rule, low), low, high)
    grammar = Scores(low, high, aspect)
    try:
        score = stated_value(text, shown, grammar)
    except ReplyError as error:
        if error.fault == "missing" and (other := _other_scale(text, high)):
            raise ReplyError(other, text, "off_scale") from None
        raise
    return on_scale(text, score, low, high)


def on_scale(reply: str, value: float, low: float, high: float) -> float:
    """Return a value if it lies on the scale.

    Raises:
        ReplyError: it does not.
    """
    if not low <= value <= high:
        raise off_scale(reply, value, low, high)
    return value


# 4, 4/5, 4 out of 5
_VALUE = re.compile(
    rf"""
    {number("value")}\ ?[\])}}>]{{0,2}}
    (?:(?:\ ?/\ ?|\ out\ of\ )(?P<out>\d{{1,4}}(?:\.\d)?))?    # of the top of the scale
    """,
    re.VERBOSE | re.IGNORECASE,
)


def out_of(text: str, high: float) -> float | None:
    """Return the number that a text consists of, with or without the top of the scale, else None.

    >>> out_of("4/5", 5), out_of("4 out of 5", 5), out_of("4/10", 5), out_of("4 points", 5)
    (4.0, 4.0, None, None)
    """
    match = _VALUE.fullmatch(text)
    if match is None or (match["out"] is not None and float(match["out"]) != high):
        return None
    return value_of(match["value"])


def _other_scale(reply: str, high: float) -> str | None:
    """Return the problem of a reply with a score on another scale: ``Score: 8/10``."""
    for line in lines_of(unmarked(both_ends(plain(reply)))):
        stated = line.text.replace("=", ":").rpartition(":")[2]
        match = _VALUE.fullmatch(bare(stated))
        if match is not None and match["out"] is not None and float(match["out"]) != high:
            value = value_of(match["value"])
            if value is not None:
                stated = f"{written(value)} out of {written(float(match['out']))}"
                return f"The reply states {stated}, but the scale ends at {written(high)}."
    return None


_FINAL_KEYS = frozenset(
    [
        "final_score",
        "final_rating",
        "overall_score",
        "overall_rating",
        "final",
        "overall",
        "total_score",
    ]
)
_SCORE_KEYS = frozenset(
    ["score", "rating", "grade", "mark", "value", "points", "evaluation_score", "judge_score"]
)
_PROSE_KEYS = frozenset(
    [
        "reason",
        "reasons",
        "rationale",
        "explanation",
        "analysis",
        "feedback",
        "comment",
        "thought",
        "evidence",
    ]
)
# Labels of a score in the middle of other words.
_LABEL = alternatives([*WORDS["score"]["labels"], "scores"])
# The labels with hardly any other meaning.
_PLAIN_LABEL = r"(?:scores?|ratings?|grade|verdict|correction|corrected|revised|updated|erratum)"


@lru_cache(maxsize=256)
def _mention(aspect: str | None) -> re.Pattern[str]:
    """Return a pattern of a label with a number after it, in the middle of other words."""
    named = re.escape(aspect.casefold()) if aspect else r"(?!)"
    return re.compile(
        rf"""
        (?<![^\W\d_])(?:{_LABEL}|{named})[*_\ ]{{0,3}}[:=][*_\ \[(]{{0,4}}
            (?P<linked>[+-]?\d+(?:[.,]\d+)?)                                    # Sorry, I meant Score: 2
      | (?<![^\W\d_]){_PLAIN_LABEL}(?![^\W\d_])(?:(?!{_PLAIN_LABEL})[^\d\n.;!?]){{1,60}}?
            (?<![\w.,/-])(?P<near>[+-]?\d+(?:\.\d+)?)(?![\w-]|[.,]\d)          # my score should be 2
        """,
        re.IGNORECASE | re.VERBOSE,
    )


@dataclass(frozen=True)
class Scores(LineGrammar[float]):
    """The forms of one score on a scale."""

    what: ClassVar[str] = "score"
    low: float
    high: float
    aspect: str | None = None

    def names(self, label: tuple[str, ...]) -> bool:
        return names_value(label, labels_of("score"), self.aspect)

    def value(self, text: str, *, labelled: bool) -> float | None:
        return out_of(text, self.high)

    def disagrees(self, line: str, value: float) -> re.Match[str] | None:
        for match in _mention(self.aspect).finditer(line):
            other = value_of(match["linked"] or match["near"])
            # After other words, a number off the scale counts something else.
            if (
                other is not None
                and other != value
                and (match["linked"] or self.low <= other <= self.high)
            ):
                return match
        return None

    def from_fields(self, entries: Sequence[Field]) -> list[float]:
        numbers = [
            (entry.name, value) for entry in entries if (value := self._in_field(entry)) is not None
        ]
        aspect_keys = {spelled(self.aspect)} if self.aspect else set()
        names = [name for name, _ in numbers]
        # Without a known aspect, a single key such as "coherence_score" can only be the score.
        endings = {name for name in names if name.endswith(("_score", "_rating"))}
        alone = endings if len(endings) == 1 else set(names)
        if self.aspect:
            alone = {name for name in names if self.names(label_words(name)[0])}
        for wanted in (_FINAL_KEYS, _SCORE_KEYS | aspect_keys, alone if len(alone) == 1 else set()):
            if values := [value for name, value in numbers if name in wanted]:
                return values
        return []

    def _in_field(self, entry: Field) -> float | None:
        if isinstance(entry.value, bool) or entry.name in _PROSE_KEYS:
            return None
        if not isinstance(entry.value, str):
            return float(entry.value)
        return out_of(bare(entry.value.strip()), self.high)
