"""Know the words of replies: what a score is called, how numbers are written, how two compared texts are named.

Also the labels under which an agent gives a verdict of its own.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, NamedTuple, cast

from ...state.word_files import words_beside

WORDS: dict[str, str] = words_beside(__file__, "words.toml")
"""The words of many languages by what they say; ``one_of`` and ``word_set`` take them."""
_PATTERNS: dict[str, Any] = words_beside(__file__, "patterns.toml")


def word_set(words: str) -> frozenset[str]:
    """Return the words of a text that are separated by blanks."""
    return frozenset(words.split())


def one_of(phrases: str) -> str:
    """Return a pattern that matches one of several phrases.

    Phrases are separated by blanks; in a phrase ``_`` stands for a blank and ``*`` for a word's ending.

    >>> one_of("so in_short award*")
    '(?:in short|award\\\\w{0,5}|so)'
    """
    # An alternation takes the first branch that matches, so a phrase must stand before its own beginning.
    longest_first = sorted(phrases.split(), key=len, reverse=True)
    literals = (re.escape(phrase).replace("_", " ").replace(r"\*", r"\w{0,5}") for phrase in longest_first)
    return f"(?:{'|'.join(literals)})"


@cache
def any_of(name: str) -> str:
    """Return a pattern that matches one of the alternatives that ``patterns.toml`` lists under a name."""

    def part(named: re.Match[str]) -> str:
        return any_of(named[1]) if named[1] in _PATTERNS else one_of(WORDS[named[1]])

    lines = re.sub(r"\{([a-z_]+)\}", part, _PATTERNS[name].replace("\\\n", "")).splitlines()
    return f"(?:{'|'.join(lines)})"


def pattern(name: str, flags: int = re.IGNORECASE) -> re.Pattern[str]:
    """Return a form of ``patterns.toml``; upper and lower case are the same, unless the flags say otherwise."""
    return cast("re.Pattern[str]", _Form(name, flags))


class _Form:
    """Stand for a pattern that is compiled when it is first used: all of them are a quarter of our import's time.

    ``match.re`` is the compiled pattern, which is not this object.
    """

    def __init__(self, name: str, flags: int) -> None:
        self._form = name, flags

    def __getattr__(self, method: str) -> Any:
        name, flags = self._form
        compiled = re.compile(any_of(name), flags)
        # From now on its methods are found here at once.
        vars(self).update({known: getattr(compiled, known) for known in dir(compiled) if known[0] != "_"})
        return getattr(compiled, method)


def replacements(name: str) -> list[tuple[re.Pattern[str], str]]:
    """Return what ``patterns.toml`` has replaced under a name, in this order, and by what."""
    return [(re.compile(known), new) for known, new in _PATTERNS[name]]


def in_any_case(pattern: str) -> re.Pattern[str]:
    """Compile a pattern for which upper and lower case are the same."""
    return re.compile(pattern, re.IGNORECASE)


# --- scores ---------------------------------------------------------------------------------------------------------

SCORE_WORDS = any_of("score_words")
"""What a score is called, in some twenty languages."""

FINAL_WORDS = one_of(WORDS["final_words"])
"""What marks a score as the final one."""

_PLAIN_QUALIFIERS = word_set(WORDS["plain_qualifiers"])
_OTHERS = word_set(WORDS["others"])
NO_SCORES = in_any_case(rf"\b{one_of(WORDS['no_score_words'])}\b")
"""What numbers are called that are no scores: ``Word count: 90``."""


class Qualifier(NamedTuple):
    """Hold the words that stand before a score word.

    Attributes:
        words: those in its own line and clause, casefolded.
        is_final: they make it the final score: ``my final``.
        is_plain: they leave the score the judge's own: ``my revised``.
        is_of_others: they make it another agent's score, or one only talked about: ``the initial``.
    """

    words: str
    is_final: bool
    is_plain: bool
    is_of_others: bool


def qualifier_of(words: str, at: int) -> Qualifier:
    """Return what qualifies the score word that stands at this place."""
    clause = re.split(r"[.,;:!?()\[\]\n\x00—]|\d|(?<!\w)- ", words[max(0, at - 60) : at])[-1]
    qualifier = clause.strip().casefold()
    is_final = re.search(rf"\b{FINAL_WORDS}\b|(?:最终|最終|综合|総合|최종)\Z", qualifier) is not None
    is_plain = _PLAIN_QUALIFIERS.issuperset(qualifier.split())
    is_of_others = not _OTHERS.isdisjoint(re.split(r"[\s'’]+", qualifier)[-3:])
    return Qualifier(qualifier, is_final, is_plain, is_of_others)


# --- numbers --------------------------------------------------------------------------------------------------------

_LANGUAGES = WORDS["number_words"].splitlines()
# Backwards, since of languages that share a word the first one counts.
_NUMBER_WORDS = {word: float(n) for line in reversed(_LANGUAGES) for n, word in enumerate(line.split())}
_NUMBER_WORDS |= {"两": 2.0, "une": 1.0, "una": 1.0, "eine": 1.0, "〇": 0.0}
WORDS["in_words"] = " ".join(_NUMBER_WORDS)
_NUMBER_WORDS |= {f"{word} and a half": value + 0.5 for word, value in _NUMBER_WORDS.items()}

NUMBERED_LINE = re.compile(r"^\(?\d{1,2}[.)] ", re.MULTILINE)
"""Begins a line of a numbered list; where several lines begin so, the numbers are no values."""

_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_DECIMAL = re.compile(r"[+-]?\d+(?:[.,]\d+)?")


def value_of(number: str) -> float | None:
    """Return the value of a number as written; None where it is none (``1.2.3``).

    >>> value_of("3,5"), value_of("1,250"), value_of("four"), value_of("two and a half"), value_of("1.2.3")
    (3.5, 1250.0, 4.0, 2.5, None)
    """
    text = number.strip().casefold()
    if text in _NUMBER_WORDS:
        return _NUMBER_WORDS[text]
    whole, point, tenth = text.partition(" point ")
    if point and whole in _NUMBER_WORDS and tenth in _NUMBER_WORDS:
        return _NUMBER_WORDS[whole] + _NUMBER_WORDS[tenth] / 10
    if _THOUSANDS.fullmatch(text):
        return float(text.replace(",", ""))
    return float(text.replace(",", ".")) if _DECIMAL.fullmatch(text) else None


def written(value: float) -> str:
    """Return a value as a person would write it.

    >>> written(7.0), written(2.5)
    ('7', '2.5')
    """
    if not math.isfinite(value) or abs(value) >= 1e15:
        return "a number without bounds" if value > 0 else "a negative number without bounds"
    return f"{value:g}" if abs(value) < 1e6 else f"{value:.0f}"


_SCALES = pattern("scales")


def without_scales(words: str, low: float, high: float) -> str:
    """Remove mentions of the scale, whose numbers are no score.

    >>> without_scales("On a scale of 1 to 5, from 1 to 5 points, 4 (1-5).", 1, 5)
    ' ,   points, 4  .'
    """
    own = rf"\b(?:from|between) {low:g}(?: \([^()\n]{{1,40}}\))? (?:to|and|through) {high:g}(?![\d.,]\d)"
    return re.sub(own, " ", _SCALES.sub(" ", words), flags=re.IGNORECASE)


@dataclass(frozen=True)
class Number:
    """A number of a reply: its value, or several where it gives alternatives, and the maximum that it names."""

    values: tuple[float, ...]
    out_of: float | None = field(default=None, compare=False)


VALUE = any_of("value")
"""A number with what may stand before it: ``roughly 4``, ``[4``."""
_OUT_OF = pattern("maximum")
# An alternative behind a value: ``3 or 4``, ``3-4``.
_OTHER = pattern("other")
_LOOSE_JOINTS = ("and", ",", "-", "to")
_ENDS_ALTERNATIVES = re.compile(r"\s*(?:\Z|[.;)\]\n]|out of|points?\b|/)")
_RESULT = pattern("result", flags=0)
_UNIT = pattern("unit")
_ENDS_PHRASE = pattern("ends_phrase")
_ENDS_LINE = pattern("ends_line")


def number_at(words: str, match: re.Match[str]) -> tuple[Number, int] | None:
    """Return the number that ``match`` found with what follows it, and its end; None where it is no number.

    The result of a sum (``3 + 4 = 7``) or of an arrow (``3 -> 4``) replaces what stands before it.
    """
    first, end = value_of(match["value"]), match.end("value")
    if first is None:
        return None
    if words.startswith("%", end):
        return Number((first,), 100.0), end + 1
    result = _RESULT.match(words, end)
    if result is not None and (value := value_of(result["value"])) is not None:
        return Number((value,), maximum(words, result.end())[0]), result.end()
    out_of, limit_end = maximum(words, end)
    other = _OTHER.match(words, limit_end)
    if other is None or (alternative := value_of(other["value"])) is None:
        return Number((first,), out_of), end
    joint, other_end = words[limit_end : other.start("value")], other.end("value")
    # "4, 3 of them long": a comma or a dash joins alternatives only where nothing else follows.
    spaced = joint[:1] in " ," and joint.strip().casefold() in _LOOSE_JOINTS
    if spaced and not _ENDS_ALTERNATIVES.match(words, other_end):
        return Number((first,), out_of), end
    return Number((first, alternative), maximum(words, other_end)[0] if out_of is None else out_of), other_end


def maximum(words: str, end: int) -> tuple[float | None, int]:
    """Return the maximum behind a value that ends at ``end``, if it names one, and where it ends."""
    match = _OUT_OF.match(words, end)
    return (value_of(match["out"]), match.end()) if match else (None, end)


def ends_phrase(words: str, end: int) -> bool:
    """Whether a value that ends at ``end`` ends its phrase too, so that no noun follows (as in ``gives 5 reasons``)."""
    end = maximum(words, end)[1]
    unit = _UNIT.match(words, end)
    return _ENDS_PHRASE.match(words, unit.end() if unit else end) is not None


def ends_line(words: str, end: int) -> bool:
    """Whether nothing but a maximum or a note follows the value on its line."""
    stop = words.find("\n", end, end + 200)
    return _ENDS_LINE.fullmatch(words, end, stop if stop >= 0 else len(words)) is not None


# --- values that are only talked about -----------------------------------------------------------------------------

_DOUBTED_BEFORE = pattern("doubted_before")
_DOUBTED_AFTER = pattern("doubted_after")


def is_doubted(words: str, match: re.Match[str]) -> bool:
    """Whether a phrase with a group ``value`` denies, compares or supposes its value, or reports another agent's."""
    before = words[max(0, match.start() - 80) : match.start()].replace("\u2019", "'").rpartition("\n")[2]
    if _DOUBTED_BEFORE.search(before) or _DOUBTED_AFTER.match(words, match.end("value")):
        return True
    inner = words[match.start() : match.start("value")]
    denied = _DOUBTED_BEFORE.search((before + inner).rpartition("\n")[2])
    return denied is not None and not re.search(r"\b(?:from|of both)\b", inner)


# --- verdicts of the agent's own ------------------------------------------------------------------------------------

# A label under which the agent gives its own verdict.
_OWN_LABEL = in_any_case(rf"\b{any_of('own_label')}\b[^.!?\n]{{0,60}}[:=—-]?[\s\x00\"'`*_(\[]*\Z")
_LONGEST = 300


def introduces(before: str) -> bool:
    """Whether the words announce a verdict of the agent's own.

    >>> introduces("My final verdict is:"), introduces("The text has three parts:")
    (True, False)
    """
    return _OWN_LABEL.search(before[-_LONGEST:]) is not None


# --- the two texts that are compared --------------------------------------------------------------------------------

Side = Literal["1", "2"]
FIRST, SECOND = "①", "②"
"""Stand for the names of the two texts in a marked reply."""

_NAME = pattern("name_of_text")
_SIDES: dict[str, Side] = {
    **dict.fromkeys(("a", "1", "one", "first", "former", "一", FIRST), "1"),
    **dict.fromkeys(("b", "2", "two", "second", "latter", "二", SECOND), "2"),
}


def marked(words: str) -> str:
    """Replace the names of the two texts by ``①`` and ``②``.

    >>> marked("Assistant A's answer beats the second response; Output (b) fails.")
    '① beats ②; ② fails.'
    """

    def mark(match: re.Match[str]) -> str:
        return FIRST if side_of(match[match.lastgroup or 0]) == "1" else SECOND

    return _NAME.sub(mark, words.replace(FIRST, " ").replace(SECOND, " ").replace("\u2019", "'"))


def side_of(name: str) -> Side | None:
    """Return ``"1"`` or ``"2"`` for a letter, digit or mark that names one of the two texts; else None."""
    return _SIDES.get(name.strip(" ()[]#\"'.").casefold())
