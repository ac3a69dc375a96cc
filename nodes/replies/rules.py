"""Reads recorded replies to other prompts, each format by its authors' rule.

A rule looks for a value in the form that its format's prompt requested. The texts that were shown
are unknown, so no rule checks the origin of the words. For replies to this package's own prompts,
the readers do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Literal, TypeVar, get_args

from ...state.errors import ReplyError
from .json_fields import Field, objects
from .own_words import plain
from .vocabulary import value_of

Rule = Literal[
    "first_number",
    "last_number",
    "label",
    "bracket",
    "letter",
    "json_field",
    "rating_digit",
    "score_cascade",
    "first_line",
    "summary_letter",
    "output_line",
    "output_better",
]
"""The rules for recorded replies; ``docs/replay.md`` describes each."""

RULES: tuple[Rule, ...] = get_args(Rule)
_Vote = Literal["1", "2", "tie"]
ValueT = TypeVar("ValueT")


def score_by_rule(reply: str, rule: Rule, low: float) -> float:
    """Return the score that a rule finds, which may be off the scale.

    Raises:
        ReplyError: the rule finds no score, or does not read scores.

    >>> score_by_rule("Rating: 2\\nRationale: It is dull.", "label", 1)
    2.0
    """
    if rule == "letter":
        return _letter(reply, low)
    if rule == "json_field":
        return _json_number(reply)
    return _by(_SCORES, reply, rule, "score")


def pair_by_rule(reply: str, rule: Rule) -> tuple[float, float]:
    """Return the two scores that a rule finds, which may be off the scale.

    Raises:
        ReplyError: the rule finds no pair, or does not read pairs.

    >>> pair_by_rule("9 8.5\\nBoth are fine.", "first_line")
    (9.0, 8.5)
    """
    return _by(_PAIRS, reply, rule, "pair of scores")


def vote_by_rule(reply: str, rule: Rule) -> _Vote:
    """Return the vote that a rule finds.

    Raises:
        ReplyError: the rule finds no vote, or does not read votes.

    >>> vote_by_rule("My final verdict is tie: [[C]]", "bracket")
    'tie'
    """
    return _by(_VOTES, reply, rule, "verdict")


def _by(
    finders: Mapping[Rule, Callable[[str], ValueT | None]], reply: str, rule: Rule, what: str
) -> ValueT:
    if rule not in finders:
        raise ReplyError(f"The rule {rule} reads no {what}.", reply, "missing")
    value = finders[rule](reply)
    if value is None:
        raise ReplyError(f"By the rule {rule}, the reply states no {what}.", reply, "missing")
    return value


# --- scores ---------------------------------------------------------------------------------------

_NUMBER = re.compile(r"(?<![\w.])[+-]?(?:\d+(?:\.\d+)?|\.\d+)(?!\w)")


def _first_number(reply: str) -> float | None:
    match = _NUMBER.search(plain(reply))
    return value_of(match[0]) if match else None


def _last_number(reply: str) -> float | None:
    numbers = _NUMBER.findall(plain(reply))
    return value_of(numbers[-1]) if numbers else None


# Score: 4, The score of Assistant 1: 4
_LABEL = re.compile(
    r"\b(?:score|rating)\b[^:=\n]{0,40}[:=][*_]{0,3}\s*[*_\[(]{0,3}([+-]?(?:\d+(?:\.\d+)?|\.\d+))",
    re.IGNORECASE,
)


def _label(reply: str) -> float | None:
    """Return the number after the last "Score:" or "Rating:"."""
    numbers = _LABEL.findall(plain(reply))
    return value_of(numbers[-1]) if numbers else None


# MT-Bench's [[7]], and its second form, [7].
_BRACKETED = (re.compile(r"\[\[(\d+\.?\d*)\]\]"), re.compile(r"\[(\d+\.?\d*)\]"))


def _bracket(reply: str) -> float | None:
    match = next((match for form in _BRACKETED if (match := form.search(reply))), None)
    return float(match[1]) if match else None


def _letter(reply: str, low: float) -> float:
    """Return the grade that a reply's letter stands for.

    A is the lowest value (Shen et al. 2023).
    """
    letter = reply.strip().rstrip(".")
    if not re.fullmatch(r"[A-E]", letter):
        raise ReplyError("By the rule letter, the reply states no score.", reply, "missing")
    return low + "ABCDE".index(letter)


def _rating_digit(reply: str) -> float | None:
    """Return the first digit after the last "Rating:", or of the reply (Chiang and Lee 2023).

    It is one digit: "2.5" is 2.
    """
    said = reply.lower().replace("1-3", " ").rpartition("rating:")[2]
    match = re.search("[0-9]", said)
    return float(match[0]) if match else None


_WORDS = ("one", "two", "three", "four", "five")
_IN_WORDS = "|".join(_WORDS)
# Shen et al. 2023, in their order. A group is the number, or contains it.
_CASCADE = (
    re.compile(r"score:\s*([1-5](?:\.\d)?)"),  # Score: 4
    re.compile(rf"score:\s*({_IN_WORDS})"),  # Score: four
    re.compile(r"(?:score|scoring)[^.]+[1-5](?:\.\d)?"),  # scoring a 2 out of 5
    re.compile(rf"(?:score|scoring)[^.]+\s(?:{_IN_WORDS})[\s.,]"),  # scoring a one out of five
    re.compile(rf"score of (?:{_IN_WORDS})[\s.,]"),  # a score of four
)
_ONE_TO_FIVE = re.compile(r"[1-5](?:\.[1-5])?")
_LAST_RESORT = re.compile(r"[1-5](?:\.\d\s)?(?:out of [1-5])?")


def _score_cascade(reply: str) -> float | None:
    """Return the number of the first matching form (Shen et al. 2023).

    Without a match, return the last number from 1 to 5.
    """
    text = reply.lower()
    for number, form in enumerate(_CASCADE):
        if match := form.search(text):
            # The labelled forms have the number in a group, the others anywhere in the match.
            found = match[1] if number < 2 else match[0]
            if digits := (
                re.match(r"[\d.]+", found) if number == 0 else _ONE_TO_FIVE.search(found)
            ):
                return float(digits[0])
            word = re.search(_IN_WORDS, found)
            return 1.0 + _WORDS.index(word[0]) if word else None
    resort = _LAST_RESORT.findall(text)
    digits = _ONE_TO_FIVE.search(resort[-1]) if resort else None
    return float(digits[0]) if digits else None


_SCORES: dict[Rule, Callable[[str], float | None]] = {
    "first_number": _first_number,
    "last_number": _last_number,
    "label": _label,
    "bracket": _bracket,
    "rating_digit": _rating_digit,
    "score_cascade": _score_cascade,
}


def _entries(reply: str) -> list[Field]:
    """Return the fields of the first object in a reply."""
    return next((stated.entries for stated in objects(plain(reply))), [])


_NUMBER_KEYS = ("score", "rating", "grade", "final_score", "overall_score")


def _json_number(reply: str) -> float:
    numbers = {
        entry.name: value_of(str(entry.value))
        for entry in _entries(reply)
        if not isinstance(entry.value, bool)
    }
    for key in _NUMBER_KEYS:
        value = numbers.get(key)
        if value is not None:
            return value
    raise ReplyError("By the rule json_field, the reply states no score.", reply, "missing")


# --- pairs ----------------------------------------------------------------------------------------

_TWO_NUMBERS = re.compile(r"\s*(-?\d+(?:\.\d+)?)[ ,]+(-?\d+(?:\.\d+)?)\s*")
_OF_ASSISTANT = re.compile(r"Assistant ([12]):\s*(\d+(?:\.\d+)?)(?=[\s/(.]|$)(?!\.\d)(?! ?[+*=-])")
_TUPLE = re.compile(r"\(\s*(\d+(?:\.\d+)?)\s*,\s*(\d+(?:\.\d+)?)\s*\)")


def _first_line(reply: str) -> tuple[float, float] | None:
    """Return the two numbers of the first line, the form of reviews in Vicuna's benchmark.

    Reviews in mathematics first solve the problem. Their authors took the scores at the end: the
    last number after "Assistant 1:" and after "Assistant 2:", or else the last pair in brackets.
    """
    if match := _TWO_NUMBERS.fullmatch(reply.strip().partition("\n")[0]):
        return float(match[1]), float(match[2])
    sides = dict(_OF_ASSISTANT.findall(reply))
    if len(sides) == 2:
        return float(sides["1"]), float(sides["2"])
    pairs = _TUPLE.findall(reply)
    return (float(pairs[-1][0]), float(pairs[-1][1])) if pairs else None


def _json_pair(reply: str) -> tuple[float, float] | None:
    numbers = [
        value for entry in _entries(reply) if (value := value_of(str(entry.value))) is not None
    ]
    return (numbers[0], numbers[1]) if len(numbers) == 2 else None


_PAIRS: dict[Rule, Callable[[str], tuple[float, float] | None]] = {
    "first_line": _first_line,
    "json_field": _json_pair,
}

# --- votes ----------------------------------------------------------------------------------------

_VERDICTS: dict[str, _Vote] = {"A": "1", "B": "2", "C": "tie", "A>B": "1", "B>A": "2", "A=B": "tie"}
_VERDICT = re.compile(r"\[\[(C|[AB<>=]+)\]\]")


def _bracketed_vote(reply: str) -> _Vote | None:
    """Return the verdict in double brackets, unless several differ (MT-Bench, Arena-Hard)."""
    votes = {_VERDICTS.get(match.replace(">>", ">")) for match in _VERDICT.findall(reply)}
    return votes.pop() if len(votes) == 1 else None


def _summary_letter(reply: str) -> _Vote | None:
    """Return the summary whose letter the reply names.

    Other letters are ties (Shen et al. 2023).
    """
    text = reply.strip()
    if len(text) != 1:
        match = re.search(r"summary ([abc])", text.lower()) or re.match(
            r"([abc])[\s.:]", text.lower()
        )
        text = match[1] if match else text
    return {"A": "1", "B": "2"}.get(text.upper(), "tie")  # type: ignore[return-value]


def _output_line(reply: str) -> _Vote | None:
    """Return the output that begins a line, (a) before (b) (LLMBar)."""
    return _output(reply, r"(?:^|\n) ?Output \({}\)")


def _output_better(reply: str) -> _Vote | None:
    """Return the output that the reply calls better, (a) before (b) (LLMBar)."""
    return _output(reply, r"Output \({}\) is better.")


def _output(reply: str, form: str) -> _Vote | None:
    for letter, vote in (("a", "1"), ("b", "2")):
        if re.search(form.format(letter), reply.strip()):
            return "1" if vote == "1" else "2"
    return None


def _json_vote(reply: str) -> _Vote | None:
    for entry in _entries(reply):
        if entry.name in ("winner", "vote", "verdict", "choice", "preference"):
            named = str(entry.value).strip().casefold()
            return {"1": "1", "2": "2", "a": "1", "b": "2", "tie": "tie"}.get(named)  # type: ignore[return-value]
    return None


_VOTES: dict[Rule, Callable[[str], _Vote | None]] = {
    "bracket": _bracketed_vote,
    "summary_letter": _summary_letter,
    "output_line": _output_line,
    "output_better": _output_better,
    "json_field": _json_vote,
}

OF_SCORES: frozenset[Rule] = frozenset([*_SCORES, "letter", "json_field"])
"""The rules that read a score."""
OF_COMPARISONS: frozenset[Rule] = frozenset([*_PAIRS, *_VOTES])
"""The rules that read a pair or a vote."""
