"""Reads the judgement of more than two texts: a score for each of them, or a vote for one.

Forms: a line for each text with its number (``Total of answer 3: 87``, ``Score of answer 3: 87``),
and a labelled line with the number of one text (``Vote: 3``, ``Vote: answer 3``). For two texts,
``pairs.py`` and ``votes.py`` read more forms.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from ...state.errors import ReplyError
from .own_words import GAP
from .provenance import Grammar, Statement
from .scores import on_scale, out_of
from .shown import NOTHING, Shown
from .statements import (
    Line,
    LineGrammar,
    agreed,
    bare,
    check_remarks,
    lines_of,
    nothing_stated,
    own_statements,
    stated_value,
)
from .vocabulary import NOUN, WORDS, alternatives, label_words, labels_of, value_of

Tally = tuple[tuple[int, float], ...]
"""The numbers of texts and their scores."""


def read_scores(
    text: str, texts: int, low: float, high: float, *, shown: Shown = NOTHING
) -> list[float]:
    """Return a reply's score for each of several texts.

    Args:
        text: the raw reply.
        texts: the number of texts.
        low: lowest value of a score.
        high: highest value of a score.
        shown: the texts that the judge was shown; text repeated from them does not count.

    Raises:
        ReplyError: the reply is empty, states no score for one of the texts, scores a text that
            does not exist, refuses, breaks off, contradicts itself or leaves the scale, or
            everything it states may be repeated from a shown text.

    >>> read_scores("So be it.\\nTotal of answer 1: 90\\nTotal of answer 2: 71\\nTotal of answer 3: 88", 3, 6, 120)
    [90.0, 71.0, 88.0]
    """
    grammar = ScoreLines(high)
    statements, words = own_statements(text, shown, grammar)
    lines: dict[int, list[Statement[float]]] = {number: [] for number in range(1, texts + 1)}
    for statement in statements:
        for number, score in statement.value:
            if number not in lines:
                raise _no_such_text(text, f"scores answer {number}", texts)
            lines[number].append(Statement(statement.at, statement.end, score, statement.final))
    if not statements:
        raise nothing_stated(text, words, grammar.what)
    stated: list[Statement[float]] = []
    for number, of_text in lines.items():
        what = f"score of answer {number}"
        if not of_text:
            raise nothing_stated(text, words, what)
        stated.append(agreed(text, of_text, what))
    tally = tuple((number, line.value) for number, line in zip(lines, stated, strict=True))
    whole = Statement(min(line.at for line in stated), max(line.end for line in stated), tally)
    check_remarks(text, words, whole, shown, grammar)
    return [on_scale(text, line.value, low, high) for line in stated]


def read_choice(text: str, texts: int, *, shown: Shown = NOTHING) -> str:
    """Return the number of the text for which a reply votes, from ``"1"``.

    Args:
        text: the raw reply.
        texts: the number of texts.
        shown: the texts that the judge was shown; text repeated from them does not count.

    Raises:
        ReplyError: the reply is empty, gives no vote or two, votes for a text that does not exist,
            refuses or breaks off, or everything it states may be repeated from a shown text.

    >>> read_choice("All are fluent.\\nVote: answer 3", 3)
    '3'
    """
    number = stated_value(text, shown, Choices())
    if not 1 <= number <= texts:
        raise _no_such_text(text, f"votes for answer {number}", texts)
    return str(number)


def _no_such_text(reply: str, does: str, texts: int) -> ReplyError:
    return ReplyError(
        f"The reply {does}, but there are the answers 1 to {texts}.", reply, "off_scale"
    )


_SCORE_LABEL = alternatives(WORDS["pair"]["side_labels"])
# A label that names one of the texts: Total of answer 3, The final score of Assistant 12
_OF_TEXT = re.compile(
    rf"""
    (?:the\ )?(?:(?:final|overall|total|revised|corrected|updated)\ )?
    {_SCORE_LABEL}\ (?:of|for)\ (?:the\ )?{NOUN}\ ?\#?(?P<number>\d{{1,3}})
    """,
    re.VERBOSE,
)
# The same with a score, in the middle of other words: Sorry, I meant Total of answer 3: 60
_SCORE_MENTION = re.compile(
    rf"""
    (?<![^\W\d_]){_SCORE_LABEL}\ (?:of|for)\ (?:the\ )?{NOUN}\ ?\#?(?P<number>\d{{1,3}})
    [*_\ ]{{0,3}}[:=][*_\ \[(]{{0,4}}(?P<score>[+-]?\d+(?:\.\d+)?)
    """,
    re.VERBOSE | re.IGNORECASE,
)


@dataclass(frozen=True)
class ScoreLines(Grammar[Tally]):
    """The form of a score for each of several texts: a line for each, one below the other.

    Successive lines for different texts are one statement. It occurs in a judged text only if that
    has the same score for the same texts.
    """

    what: ClassVar[str] = "score for each answer"
    high: float

    def find(self, words: str) -> list[Statement[Tally]]:
        blocks: list[Statement[Tally]] = []
        for line in lines_of(words):
            statement = self._of_line(line)
            if statement is None:
                continue
            if blocks and _is_continued(words, blocks[-1], statement):
                before = blocks.pop()
                tally = tuple(sorted((*before.value, *statement.value)))
                final = before.final and statement.final
                statement = Statement(before.at, statement.end, tally, final)
            blocks.append(statement)
        return blocks

    def _of_line(self, line: Line) -> Statement[Tally] | None:
        label, separator, stated = line.text.partition(":")
        if not separator:
            label, separator, stated = line.text.partition("=")
        named = _OF_TEXT.fullmatch(label.casefold().strip(" *_"))
        score = out_of(bare(stated), self.high) if named else None
        if named is None or score is None:
            return None
        final = label_words(label.strip(" *_").removeprefix("The "))[1]
        return Statement(line.start, line.end, ((int(named["number"]), score),), final)

    def disagrees(self, line: str, value: Tally) -> re.Match[str] | None:
        scores = dict(value)
        for match in _SCORE_MENTION.finditer(line):
            if scores.get(int(match["number"])) != value_of(match["score"]):
                return match
        return None


def _is_continued(words: str, block: Statement[Tally], line: Statement[Tally]) -> bool:
    """Return whether a line directly below a block is for a further text, and quoted alike."""
    [(number, _)] = line.value
    quoted_alike = words.count(GAP, block.at, line.at) % 2 == 0
    between = words[block.end : line.at].strip(" \n-•*.,;!)]|")
    return quoted_alike and not between and number not in dict(block.value)


# 3, answer 3, the answer 3
_CHOICE = re.compile(rf"(?:(?:the\ )?{NOUN}[ _]?)?#?(?P<number>\d{{1,3}})", re.IGNORECASE)
# A label with a number after it, in the middle of other words: Sorry, I meant Vote: 2
_VOTE_MENTION = re.compile(
    rf"""
    (?<![^\W\d_]){alternatives(WORDS["vote"]["labels"])}[*_\ ]{{0,3}}[:=][*_\ ]{{0,3}}[\[(]{{0,2}}
    (?:{NOUN}\ ?)?\#?(?P<number>\d{{1,3}})\b
    """,
    re.VERBOSE | re.IGNORECASE,
)


@dataclass(frozen=True)
class Choices(LineGrammar[int]):
    """The form of a vote for one of several texts; a number without a label is no vote."""

    what: ClassVar[str] = "vote"

    def names(self, label: tuple[str, ...]) -> bool:
        return label in labels_of("vote")

    def value(self, text: str, *, labelled: bool) -> int | None:
        match = _CHOICE.fullmatch(text) if labelled else None
        return int(match["number"]) if match else None

    def disagrees(self, line: str, value: int) -> re.Match[str] | None:
        mentions = _VOTE_MENTION.finditer(line)
        return next((match for match in mentions if int(match["number"]) != value), None)
