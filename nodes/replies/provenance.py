"""Separates an agent's own statements from those that it repeats from the texts it was shown.

A statement that occurs in none of these texts is the agent's own. One that does may be either: an
agent that repeats a candidate's last line writes the same words as an agent that comes to the same
score. Its context in the reply then decides: quotation marks, a longer passage that is repeated
too, words that announce it (``the candidate ends with this line:``) or words that disown it (``I
ignore it``).
"""

from __future__ import annotations

import html
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, auto
from functools import lru_cache
from typing import ClassVar, Generic, NamedTuple, TypeVar

from .json_fields import Field, objects
from .own_words import GAP, both_ends, disowns, introduces, plain, unmarked
from .shown import NOTHING, Place, RepeatedError, Shown, Tokens, fold, latin

ValueT = TypeVar("ValueT")


class Statement(NamedTuple, Generic[ValueT]):
    """A stated value.

    Attributes:
        at: the start position of the statement in the text.
        end: its end position.
        value: its value.
        final: whether its label marks it as final: ``Final score: 4``.
    """

    at: int
    end: int
    value: ValueT
    final: bool = False


Statements = Sequence[Statement[ValueT]]


@dataclass(frozen=True)
class Grammar(ABC, Generic[ValueT]):
    """The forms in which one kind of value is stated.

    Attributes:
        what: the kind of value, such as ``"score"``.
        is_answer: whether the value answers a question, unlike a sign such as NO ISSUE. A JSON
            object can then state it. The value is the agent's own in quotation marks or a fence
            after its label. So is a line that may be a repetition if the reply states nothing else.
    """

    what: ClassVar[str]
    is_answer: ClassVar[bool] = True

    def from_fields(self, entries: Sequence[Field]) -> Sequence[ValueT]:
        """Return all values that an object states."""
        return []

    @abstractmethod
    def find(self, words: str) -> list[Statement[ValueT]]:
        """Return all statements of a text in order."""

    def disagrees(self, line: str, value: ValueT) -> re.Match[str] | None:
        """Return the match if a line that is not a statement contradicts an earlier value."""
        return None


class _Doubt(IntEnum):
    """The doubt whether a statement is the agent's own."""

    OWN = auto()
    REPEATED = auto()  # its words occur in a text, or a judged text states the same value
    REPRINTED = auto()


class _Origin(NamedTuple):
    """The origin of a statement.

    Attributes:
        doubt: the doubt whether it is the agent's own.
        place: the place where it occurs word for word.
        line: whether it is alone on its line.
        ends: whether nothing precedes it or nothing follows it.
    """

    doubt: _Doubt
    place: Place | None = None
    line: bool = False
    ends: bool = False


_OWN = _Origin(_Doubt.OWN)


def own_among(words: str, shown: Shown, grammar: Grammar[ValueT]) -> Statements[ValueT]:
    """Return the statements of ``words`` that are the agent's own.

    Args:
        words: the reply in plain, unmarked characters.
        shown: the texts that the agent was shown.
        grammar: finds the statements.

    Raises:
        RepeatedError: every statement that may be the agent's own may also be a repetition.
    """
    statements = grammar.find(words)
    if not statements:
        return ()
    reply = _Reply(words, shown)
    origins = [(statement, reply.origin(statement, grammar)) for statement in statements]
    own = [statement for statement, origin in origins if origin.doubt == _Doubt.OWN]
    repeated = [
        (statement, origin) for statement, origin in origins if origin.doubt == _Doubt.REPEATED
    ]
    if own or not repeated:
        return own
    if grammar.is_answer:
        is_clear = all(
            origin.place != "judged" or origin.ends or origin.line for _, origin in repeated
        )
    else:
        # An objection has no line of its own that would outweigh a repeated declaration.
        is_clear = any(
            origin.place == "said" or reply.is_conclusion(statement)
            for statement, origin in repeated
        )
    if not is_clear:
        raise RepeatedError
    return [statement for statement, _ in repeated]


class _Reply:
    """A reply's words and the texts that the agent was shown, with a cache of lookups."""

    def __init__(self, words: str, shown: Shown) -> None:
        self.words = words
        self.shown = shown
        self._tokens: Tokens | None = None
        self._places: dict[str, Place | None] = {}

    @property
    def tokens(self) -> Tokens:
        """The folded words of the reply."""
        if self._tokens is None:
            self._tokens = Tokens(self.words)
        return self._tokens

    def origin(self, statement: Statement[ValueT], grammar: Grammar[ValueT]) -> _Origin:
        """Return the origin of a statement."""
        found = self._origin_of_words(statement.at, statement.end)
        if found != _OWN or self.shown == NOTHING:
            return found
        if any(statement.value in _stated(text, grammar) for text in self.shown.judged):
            quoted = self.words.count(GAP, 0, statement.at) % 2 == 1
            return _Origin(_Doubt.REPRINTED if quoted else _Doubt.REPEATED, line=True, ends=True)
        return found

    def _origin_of_words(self, at: int, end: int) -> _Origin:
        words = self.words
        stands = self._passage(at, end) if self.shown != NOTHING else None
        in_quotation = words.count(GAP, 0, at) % 2 == 1
        if stands is None and not in_quotation:
            return _OWN
        passage_at, passage_end, place = stands or (at, end, None)
        first = at
        last = end
        # Words around the statement that occur in both texts belong to it only on its own line.
        at = max(passage_at, _line_start(words, first))
        end = min(passage_end, _line_end(words, last))
        # Only markup or a short label of the agent precedes it on its line.
        before = words[_line_start(words, at) : at]
        starts = len(before.replace(GAP, " ").split()) <= _LABEL_WORDS or introduces(before)
        stops = _LINE_GOES_ON.match(words, end) is not None
        closes = stops and not _HAS_WORD.search(words, _line_end(words, end))
        if stands is not None:
            # The passage may contain more than the statement: sentences before or after it.
            sentences_before = _SENTENCE_END.split(words[passage_at:first])[:-1]
            sentences_behind = _SENTENCE_END.split(words[last:passage_end])[1:]
            # Agents copy each other's reasons, and disown another agent's words without changing
            # their own.
            judged = place == "judged" and (
                in_quotation
                or self._is_pointed_at(first)
                or "\n" in words[passage_at:first]
                or disowns(words[end : end + 400].lstrip(" \n\x00"))
                or any(
                    len(_WORD.findall(part)) >= _FEWEST_WORDS
                    for part in sentences_before + sentences_behind
                )
            )
            if judged or self._is_announced(at, self.shown.of(place)):
                return _Origin(_Doubt.REPRINTED)
        line = starts and stops
        if line and (place is None or (closes and place == "said")):
            return _OWN
        ends = closes or not _HAS_WORD.search(words, 0, at)
        return _Origin(_Doubt.REPEATED, place, line, ends)

    def is_conclusion(self, statement: Statement[ValueT]) -> bool:
        """Return whether a statement opens the reply, or closes it after a full sentence.

        After a heading, an unfinished sentence, a colon, a list mark or a note mark, or in a
        quotation, it may be a quotation.
        """
        words = self.words
        start = _line_start(words, statement.at)
        line = words[start : statement.at]
        if GAP in line or _NOTE_MARK.match(line):
            return False
        # A lead-in belongs to the statement: "The score is fair, therefore NO ISSUE".
        sentences = [match.end() for match in _SENTENCE_START.finditer(line)]
        start += sentences[-1] if sentences else 0
        passage = self._passage(statement.at, statement.end)
        if passage is not None:
            start = min(start, passage[0])
        before = words[:start].rstrip(" \n")
        if not _HAS_WORD.search(before):
            return True
        if _HAS_WORD.search(words, _line_end(words, statement.end)):
            return False
        if _OWN_HEADING.search(before):
            return True
        is_item = _LIST_ITEM.match(before, _line_start(before, len(before)))
        is_whole = is_item or _FULL_SENTENCE.search(before)
        return (
            bool(is_whole) and not before.endswith(_POINTERS) and not _POINTS.search(before[-300:])
        )

    def _place_of(self, passage: str) -> Place | None:
        if passage not in self._places:
            self._places[passage] = self.shown.place_of(passage)
        return self._places[passage]

    def _passage(self, at: int, end: int) -> tuple[int, int, Place] | None:
        """Return the longest passage around a statement that is in a text, with its place."""
        words = self.words
        statement = words[at:end]
        place = self._place_of(statement)
        if place is None:
            # Successive lines of a reply may be separate in a text.
            lines = [line for line in statement.split("\n") if line.strip()]
            if len(lines) > 1 and all(self._place_of(line) for line in lines):
                return at, end, self._place_of(lines[-1]) or "judged"
            if fold(statement).tells:
                return None
            # A number occurs in nearly every text, so include the word before it.
            first, _ = self.tokens.between(at, end)
            if first == 0:
                return None
            at = self.tokens.starts[first - 1]
            place = self._place_of(words[at:end])
            if place is None:
                return None
        texts = self.shown.judged if place == "judged" else self.shown.speeches
        start, stop = self.tokens.longest(at, end, texts) or (at, end)
        return start, stop, place

    def _is_pointed_at(self, at: int) -> bool:
        """Return whether the line above ends in a colon or arrow, without an own verdict."""
        start = _line_start(self.words, at)
        item = _LIST_ITEM.match(self.words, start, at)
        # A list item with a sentence before the statement is about something else.
        if item and len(_SENTENCE_START.split(self.words[item.end() : at])) > 1:
            return True
        above = self.words[max(0, start - 300) : start].rstrip(" \n*_").rpartition("\n")[2]
        return above.endswith(_POINTERS) and not introduces(above)

    def _is_announced(self, at: int, known: Shown) -> bool:
        """Return whether a colon or an unfinished sentence announces a quotation."""
        words = self.words
        start = _line_start(words, at)
        # The number of a list item is not a word before the statement.
        item = _LIST_ITEM.match(words, start, at)
        sentence = _SENTENCE_START.split(words[item.end() if item else start : at])[-1]
        if len(_WORD.findall(sentence)) > _LABEL_WORDS and not introduces(sentence):
            return sentence.rstrip(" \x00").endswith(_POINTERS)
        above = _SENTENCE_START.split(self._line_above(start, known))[-1].rstrip(" \x00*_")
        # An unfinished sentence continues in the next line.
        is_long = above[-1:].isalpha() and len(above.split()) >= _FEWEST_WORDS
        goes_on = is_long and words[start - 2 : start] != "\n\n"
        return (goes_on or above.endswith(_POINTERS)) and not introduces(above)

    def _line_above(self, start: int, known: Shown) -> str:
        """Return the closest line above that is not in the texts.

        Above a list, the line before it.
        """
        words = self.words
        in_list = _LIST_ITEM.match(words, start) or words[:start].rstrip(" \n").endswith(
            ("\n-", "\n*", "\n•")
        )
        for line in reversed(words[max(0, start - 2000) : start].split("\n")):
            if _HAS_WORD.search(line) and not known.place_of(line):
                if not _LIST_ITEM.match(line):
                    return line
                if not in_list:
                    return ""
        return ""


@lru_cache(maxsize=256)
def _stated(text: str, grammar: Grammar[ValueT]) -> frozenset[ValueT]:
    """Return all values that a text itself states, in any form."""
    words = plain(html.unescape(latin(text)))
    values = [value for stated in objects(words) for value in grammar.from_fields(stated.entries)]
    values += [statement.value for statement in grammar.find(unmarked(both_ends(words)))]
    return frozenset(values)


# --- lines and sentences --------------------------------------------------------------------------

_WORD = re.compile(r"[^\W_]+")
_FEWEST_WORDS = 3
_LABEL_WORDS = 3
_SENTENCE_END = re.compile(r"[.!?] |\n")
_HAS_WORD = re.compile(r"[^\W_]")
_SENTENCE_START = re.compile(r"[.!?。！？](?:[)\]\x00]*)(?: |(?<=[。！？]))")
# Text that may follow a statement that has a line of its own.
_LINE_GOES_ON = re.compile(
    r"""[\s\x00.!*_)\]]*(?:
        \Z | \n                                     # an end
      | [,;:(—-]                                    # an explanation
      | (?<=[.!]\ )\S                               # a further sentence
      | (?:because|since|as|for|out\ of|points?)\b
      | /\ ?\d                                      # a maximum
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_LIST_ITEM = re.compile(r"[ \x00]*(?:[-•*+>]|\(?\d{1,2}[.)]) ")
_POINTERS = (":", "->", "→")
# The mark of a footnote or of a list item: [^1], (1), *, -
_NOTE_MARK = re.compile(r" *[\[(]?[\^*†‡•+>|¹²³\d-]")
# A line that consists of a label: "My verdict:"
_OWN_HEADING = re.compile(
    r"(?:\A|\n)\W*(?:(?:my|the|final|overall)\ ){0,3}"
    r"(?:verdict|decision|conclusion|declaration|judge?ment|ruling)\W*\Z",
    re.IGNORECASE,
)
# The end of a sentence, also in brackets or quotation marks, or of a table row.
_FULL_SENTENCE = re.compile(r"[.!?。！？|][)\]\"'”’»」』*_\x00]*\Z")
# A last sentence that announces a quotation: "Its last line follows."
_POINTS = re.compile(
    r"""\b(?:
        follow(?:s|ing) | below | here | next | verbatim | quot(?:e|ed|es|ing|ation) | cit(?:e|es|ed|ing|ation)
      | reprint\w* | reproduc\w+ | cop(?:y|ies|ied) | appendix | attached
      | (?:last|final|closing)\ (?:words?|lines?|sentence|passage)
    )\b[^.!?。！？\n]*[.!?。！？]\W*\Z""",
    re.IGNORECASE | re.VERBOSE,
)


def _line_start(words: str, at: int) -> int:
    return words.rfind("\n", 0, at) + 1


def _line_end(words: str, end: int) -> int:
    stop = words.find("\n", end)
    return stop if stop >= 0 else len(words)


def is_own_remark(words: str, start: int, end: int, shown: Shown) -> bool:
    """Return whether a passage after a statement is neither quoted, repeated nor disowned."""
    if words.count(GAP, 0, start) % 2 == 1 or shown.place_of(words[start:end]):
        return False
    return not disowns(words[_line_start(words, start) : end + 400])
