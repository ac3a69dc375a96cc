"""The parts of statement lines: labels, numbers and names of the two texts.

The label words of ``words.toml`` are data. All other parts of a line are patterns in this package.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from pathlib import Path
from typing import Literal

from typing_extensions import TypedDict

from ...state.data_files import Words, read_toml


class _ScoreWords(TypedDict):
    labels: Words


class _PairWords(TypedDict):
    labels: Words
    side_labels: Words


class _VoteWords(TypedDict):
    labels: Words
    ties: Words


class _TextWords(TypedDict):
    nouns: Words


class _LabelWords(TypedDict):
    score: _ScoreWords
    pair: _PairWords
    vote: _VoteWords
    texts: _TextWords


WORDS = read_toml(Path(__file__).with_name("words.toml"), _LabelWords)
"""The labels of a value by kind (``score``, ``pair``, ``vote``), in many languages."""


def alternatives(words: list[str]) -> str:
    """Return a pattern that matches one of several words or phrases.

    >>> alternatives(["score", "score tuple"])
    '(?:score\\\\ tuple|score)'
    """
    # An alternation takes the first branch that matches, so longer phrases must come first.
    return f"(?:{'|'.join(re.escape(word) for word in sorted(words, key=len, reverse=True))})"


# --- numbers --------------------------------------------------------------------------------------

_DIGITS = r"(?:\d++(?:[.,]\d++)*+|\.\d++)"


def number(name: str) -> str:
    """Return a verbose pattern of a number in a reply, whose digits are the group ``name``.

    ``.8``, ``~7`` and ``-5`` are numbers.
    """
    return rf"""
        (?:[~≈]\ ?)?               # about: ~7
        (?P<{name}>[+-]?{_DIGITS})   # 4, 3.5, 3,5, .8, -5
    """


_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_DECIMAL = re.compile(r"[+-]?(?:\d+(?:[.,]\d+)?|\.\d+)")


def value_of(number: str) -> float | None:
    """Return the value of a written number; None if it is not one (``1.2.3``).

    >>> value_of("3,5"), value_of("1,250"), value_of(".8"), value_of("-5"), value_of("1.2.3")
    (3.5, 1250.0, 0.8, -5.0, None)
    """
    if _THOUSANDS.fullmatch(number):
        return float(number.replace(",", ""))
    return float(number.replace(",", ".")) if _DECIMAL.fullmatch(number) else None


def written(value: float) -> str:
    """Return a value as a human would write it.

    >>> written(7.0), written(2.5)
    ('7', '2.5')
    """
    if not math.isfinite(value) or abs(value) >= 1e15:
        return "a number without bounds" if value > 0 else "a negative number without bounds"
    return f"{value:g}" if abs(value) < 1e6 else f"{value:.0f}"


# --- labels ---------------------------------------------------------------------------------------

_LEADS = frozenset(["my", "the", "our", "your", "a", "an", "this"])
_QUALIFIERS = frozenset(["final", "overall", "total", "revised", "corrected", "updated", "new"])
_LAST_WORDS = frozenset(["final", "revised", "corrected", "updated"])
_COPULAS = frozenset(["is", "are"])
_ASPECT_SCORES = frozenset(["score", "rating", "grade", "mark"])
_PREPOSITIONS = frozenset(["for", "of", "on"])


@lru_cache(maxsize=1024)
def label_words(label: str) -> tuple[tuple[str, ...], bool]:
    """Return a label's words without articles and qualifiers, and whether it is marked as final.

    >>> label_words("My final Score"), label_words("Revised rating"), label_words("First score")
    ((('score',), True), (('rating',), True), (('first', 'score'), False))
    """
    words = label.casefold().replace("_", " ").replace("-", " ").split()
    while words and words[-1] in _COPULAS:
        words.pop()
    final = False
    while words and words[0] in _LEADS | _QUALIFIERS:
        # "Total" alone is a label.
        if len(words) == 1:
            break
        final = final or words[0] in _LAST_WORDS
        words.pop(0)
    return tuple(words), final


def names_value(
    words: tuple[str, ...], labels: frozenset[tuple[str, ...]], aspect: str | None = None
) -> bool:
    """Return whether a label names the requested value: a label of its kind, or the aspect.

    >>> names_value(("coherence", "score"), labels_of("score"), "coherence")
    True
    >>> names_value(("fluency",), labels_of("score"), "coherence")
    False
    """
    if words in labels:
        return True
    asked = label_words(aspect)[0] if aspect else ()
    if not asked or not words:
        return False
    if words == asked or (words[:-1] == asked and words[-1] in _ASPECT_SCORES):
        return True
    return (
        words[0] in _ASPECT_SCORES
        and words[1:2] != ()
        and words[1] in _PREPOSITIONS
        and words[2:] == asked
    )


@lru_cache(maxsize=16)
def labels_of(kind: Literal["score", "pair", "vote"]) -> frozenset[tuple[str, ...]]:
    """Return the labels of a kind of value, each as a tuple of words."""
    return frozenset(tuple(label.split()) for label in WORDS[kind]["labels"])


# --- the two texts that are compared --------------------------------------------------------------

Side = Literal["1", "2"]
SIDE = r"[(\[\"'#]{0,2}(?:1|2|a|b|one|two)[)\]\"']{0,2}"
"""Matches the number or the letter of a text, in any case: ``1``, ``(b)``, ``#2``."""
NOUN = alternatives(WORDS["texts"]["nouns"])
"""Matches the nouns for the two texts, in lower case."""
_SIDES: dict[str, Side] = {
    **dict.fromkeys(("a", "1", "one"), "1"),
    **dict.fromkeys(("b", "2", "two"), "2"),
}


def side_of(name: str) -> Side | None:
    """Return ``"1"`` or ``"2"`` for a letter or number that names one of the two texts, else None.

    >>> side_of("(B)"), side_of("#1"), side_of("C")
    ('2', '1', None)
    """
    return _SIDES.get(name.strip(" ()[]#\"'.").casefold())
