"""Reads two scores, one for each of two compared texts.

Forms: a line for each text (``Score of answer 1: 8``, ``The score of Assistant 2: 7``, ``Score 1:
8``), or both alone on one line (``(8, 7)``, ``8 7``, ``Final scores: (8, 7)``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from .json_fields import Field, spelled
from .own_words import GAP
from .provenance import Statement, Statements
from .rules import Rule, pair_by_rule
from .scores import on_scale, out_of
from .shown import NOTHING, Shown
from .statements import (
    Line,
    LineGrammar,
    agreed,
    bare,
    check_remarks,
    contradiction,
    lines_of,
    nothing_stated,
    own_statements,
)
from .vocabulary import (
    NOUN,
    SIDE,
    WORDS,
    Side,
    alternatives,
    label_words,
    labels_of,
    number,
    side_of,
    value_of,
    written,
)


def read_pair(
    text: str, low: float = 1, high: float = 10, *, shown: Shown = NOTHING, rule: Rule | None = None
) -> tuple[float, float]:
    """Return a reply's scores for the first and the second text, on the scale ``low`` to ``high``.

    Args:
        text: the raw reply.
        low: lowest value of either score.
        high: highest value of either score.
        shown: the texts that the judge was shown; text repeated from them does not count.
        rule: the rule for a recorded reply to another prompt, which replaces the grammar.

    Raises:
        ReplyError: the reply is empty, states no pair, refuses, breaks off, contradicts itself or
            leaves the scale, or everything it states may be repeated from a shown text.

    >>> read_pair("8 7.5\\nAssistant 1 is more precise.")
    (8.0, 7.5)
    >>> read_pair("Relevance: [18, 15]\\nFinal scores: (95, 87)", low=6, high=120)
    (95.0, 87.0)
    """
    first, second = (
        _stated_pair(text, low, high, shown) if rule is None else pair_by_rule(text, rule)
    )
    return on_scale(text, first, low, high), on_scale(text, second, low, high)


class Scores(NamedTuple):
    """The scores on one line: of both texts, or of one of them."""

    first: float | None
    second: float | None

    def __str__(self) -> str:
        return f"({', '.join(written(value) for value in self if value is not None)})"


def _stated_pair(text: str, low: float, high: float, shown: Shown) -> tuple[float, float]:
    grammar = Pairs(low, high)
    statements, words = own_statements(text, shown, grammar)
    whole = [statement for statement in statements if None not in statement.value]
    sides = [
        [s for s in statements if s.value[at] is not None and None in s.value] for at in (0, 1)
    ]
    if not whole and not all(sides):
        raise nothing_stated(text, words, grammar.what)
    if whole:
        last = agreed(text, whole, grammar.what)
        # A line for one text after the pair is also a statement.
        for at, of_side in enumerate(sides):
            for statement in of_side:
                if statement.value[at] != last.value[at] and not (
                    last.final and statement.at < last.at
                ):
                    raise contradiction(
                        text, last.value[at], statement.value[at], "score of one text"
                    )
    else:
        ends = [agreed(text, of_side, "score of one text") for of_side in sides]
        value = Scores(ends[0].value.first, ends[1].value.second)
        last = Statement(min(s.at for s in ends), max(s.end for s in ends), value)
    check_remarks(text, words, last, shown, grammar)
    first, second = last.value
    if first is None or second is None:
        raise nothing_stated(text, words, grammar.what)
    return first, second


# 8 7, 8, 7, 8/10 and 7/10 on a scale that ends at 10
_TWO = re.compile(
    rf"""
    {number("first")}(?P<out>\ ?/\ ?\d{{1,4}})?
    (?:\ ?[,;|&/]\ ?|\ )
    {number("second")}(?P<out_2>\ ?/\ ?\d{{1,4}})?
    """,
    re.VERBOSE,
)
# 8,7: two whole numbers and a comma
_COMMA = re.compile(r"([+-]?\d{1,3}),([+-]?\d{1,3})")
_SIDE_LABEL = alternatives(WORDS["pair"]["side_labels"])
# A label that names one of the two texts.
_SIDE = re.compile(
    rf"""
    (?:the\ )?(?:(?:final|overall|total|revised|corrected|updated)\ )?(?:
        {_SIDE_LABEL}\ (?:of|for|di|de|von|для)?\ ?(?:the\ )?{NOUN}\ ?(?P<of>{SIDE})      # The score of Assistant 1
      | {NOUN}\ ?(?P<whose>{SIDE})(?:'s|’s)?\ ?(?:的)?\ ?{_SIDE_LABEL}                     # Answer 1 score, 回答1得分
      | {_SIDE_LABEL}[\ _]?(?P<numbered>{SIDE})                                          # Score 1
    )
    """,
    re.VERBOSE,
)
_MENTION = re.compile(
    rf"""
    (?<![^\W\d_])(?:{_SIDE_LABEL}|{alternatives(WORDS["pair"]["labels"])})(?:\ (?:of|for)\ (?:the\ )?{NOUN}\ ?{SIDE})?
    [*_\ ]{{0,3}}[:=][*_\ \[(]{{0,4}}
    (?P<one>[+-]?\d+(?:\.\d+)?)(?:\ ?[,;]\ ?(?P<two>[+-]?\d+(?:\.\d+)?))?
    """,
    re.VERBOSE | re.IGNORECASE,
)
# The keys of a JSON reply that name a text: ``score_1``, ``first``, ``assistant_b_rating``.
_KEY = re.compile(
    r"(?:^|_)(?P<side>[12ab]|first|second|one|two)(?:_(?:scores?|ratings?|totals?|final))*$"
)
_KEY_SIDES: dict[str, Side] = {"first": "1", "second": "2"}
_FINAL_KEY = re.compile(r"\b(?:final|overall|totals?|sums?|tuple|output|tally|grand)\b")
_SCORE_KEY = re.compile(r"\b(?:scores?|ratings?|grades?|marks?)\b")


@dataclass(frozen=True)
class Pairs(LineGrammar[Scores]):
    """The forms of a score for each of two texts."""

    what: ClassVar[str] = "pair of scores"
    low: float
    high: float

    def names(self, label: tuple[str, ...]) -> bool:
        return label in labels_of("pair")

    def value(self, text: str, *, labelled: bool) -> Scores | None:
        if match := _COMMA.fullmatch(text):
            return Scores(float(match[1]), float(match[2]))
        match = _TWO.fullmatch(text)
        if match is None:
            return None
        if any(
            out is not None and float(out.strip(" /")) != self.high
            for out in (match["out"], match["out_2"])
        ):
            return None
        first = value_of(match["first"])
        second = value_of(match["second"])
        return None if first is None or second is None else Scores(first, second)

    def find(self, words: str) -> list[Statement[Scores]]:
        sides = [side for line in lines_of(words) if (side := self._of_side(line))]
        return sorted(
            [*super().find(words), *_joined(words, sides)], key=lambda statement: statement.at
        )

    def _of_side(self, line: Line) -> Statement[Scores] | None:
        label, separator, stated = _parted(line.text)
        if not separator:
            return None
        named = _SIDE.fullmatch(label.casefold().strip(" *_"))
        score = out_of(bare(stated), self.high) if named else None
        side = side_of(named["of"] or named["whose"] or named["numbered"]) if named else None
        if score is None or side is None:
            return None
        final = label_words(label.removeprefix("The "))[1]
        value = Scores(score, None) if side == "1" else Scores(None, score)
        return Statement(line.start, line.end, value, final)

    def disagrees(self, line: str, value: Scores) -> re.Match[str] | None:
        for match in _MENTION.finditer(line):
            named = [float(each) for each in match.group("one", "two") if each is not None]
            if any(each not in value for each in named):
                return match
        return None

    def from_fields(self, entries: Sequence[Field]) -> list[Scores]:
        sides: dict[Side, list[tuple[str, float]]] = {"1": [], "2": []}
        for entry in entries:
            value = None if isinstance(entry.value, bool) else value_of(str(entry.value))
            keys = [spelled(part) for part in entry.path]
            named = [(at, match) for at, key in enumerate(keys) if (match := _KEY.search(key))]
            if value is not None and named:
                at, key = named[-1]
                rest = " ".join(keys[:at] + keys[at + 1 :]).replace("_", " ")
                side = _KEY_SIDES.get(key["side"]) or side_of(key["side"])
                if side is not None:
                    sides[side].append((rest, value))
        # Final scores if there are any, else scores, else any number under the two texts' keys.
        for wanted in (_FINAL_KEY, _SCORE_KEY, re.compile("")):
            given = [
                {value for rest, value in side if wanted.search(rest)} for side in sides.values()
            ]
            if [len(values) for values in given] == [1, 1]:
                return [Scores(given[0].pop(), given[1].pop())]
        return []


def _parted(text: str) -> tuple[str, str, str]:
    label, separator, stated = text.partition(":")
    return (label, separator, stated) if separator else text.partition("=")


def _joined(words: str, sides: Statements[Scores]) -> list[Statement[Scores]]:
    """Join a line for one text with the line directly below for the other text."""
    joined: list[Statement[Scores]] = []
    rest = list(sides)
    while rest:
        one = rest.pop(0)
        if rest and _belong_together(words, one, rest[0]):
            # Of lines for the texts 2, 1 and 2, the last two belong together.
            begins_anew = (
                len(rest) > 1
                and one.value.first is None
                and _belong_together(words, rest[0], rest[1])
            )
            if not begins_anew:
                other = rest.pop(0)
                first = one.value.first if one.value.first is not None else other.value.first
                second = one.value.second if one.value.second is not None else other.value.second
                one = Statement(one.at, other.end, Scores(first, second), one.final and other.final)
        joined.append(one)
    return joined


def _belong_together(words: str, one: Statement[Scores], other: Statement[Scores]) -> bool:
    """Return whether two successive lines are for the two texts, and equally quoted or unquoted."""
    both = (one.value.first is None) != (other.value.first is None)
    quoted_alike = words.count(GAP, one.at, other.at) % 2 == 0
    return both and quoted_alike and not words[one.end : other.at].strip(" \n-•*.,;!)]|")
