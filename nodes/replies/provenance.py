"""Tell an agent's own statements from those that it reprints out of the texts that it was shown.

A statement that stands in none of these texts is the agent's own. One that does may be either: an agent that
reprints a candidate's last line writes the same words as one that comes to the same score. What decides then is how
it stands in the reply: words that report (``the candidate ends with this line:``), words that disown (``I ignore
it``), a longer passage around it that is reprinted too, and its place: a line that closes the reply is the agent's own.
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

from .json_fields import Field, closing_object, objects
from .own_words import GAP, both_ends, outermost, plain, replaced, unmarked
from .shown import NOTHING, Place, RepeatedError, Shown, fold, latin
from .vocabulary import SCORE_WORDS, any_of, in_any_case, introduces, pattern

Span = tuple[int, int]
ValueT = TypeVar("ValueT")


class Strength(IntEnum):
    """How clearly the form of a statement says that it is the verdict; no reader knows all of these forms."""

    UNLIKELY = auto()
    COMPARISON = auto()
    BARE = auto()
    FRACTION = auto()
    TIE = auto()
    CRITERION = auto()
    PHRASE = auto()
    OWN_LINE = auto()
    LABEL = auto()
    FIRST_LINE = auto()
    FINAL = auto()
    BRACKETS = auto()


class Statement(NamedTuple, Generic[ValueT]):
    """A stated value.

    Attributes:
        strength: how clearly it is the verdict.
        at: position in the text at which the statement begins.
        end: position at which its value ends.
        value: what it states.
        subject: what it is about, where it says so.
        parts: start and end of each part that states the value, where it is not the whole.
        conclusive: it opens or concludes the reply, and counts also where the reply breaks off.
    """

    strength: Strength
    at: int
    end: int
    value: ValueT
    subject: str = ""
    parts: tuple[Span, ...] = ()
    conclusive: bool = True

    @property
    def spans(self) -> tuple[Span, ...]:
        """Start and end of each part of the text that states the value."""
        return self.parts or ((self.at, self.end),)


Statements = Sequence[Statement[ValueT]]


@dataclass(frozen=True)
class Grammar(ABC, Generic[ValueT]):
    """Know what one kind of value looks like: its fields, its labels, its bare forms.

    Attributes:
        what: what is looked for, such as ``"score"``.
        is_answer: the value answers a question, and is no sign such as NO ISSUE. So a JSON object can state it; in
            quotation marks or a fence behind its label it is the agent's own; and so is a line that may be a reprint
            where the reply states nothing else.
    """

    what: ClassVar[str]
    is_answer: ClassVar[bool] = True

    def prepare(self, words: str) -> str:
        """Return the words in which statements are looked for; the texts that were shown are prepared alike."""
        return words

    def from_fields(self, entries: Sequence[Field]) -> Sequence[ValueT]:
        """Return all values that an object states; where they differ, it contradicts itself."""
        return []

    @abstractmethod
    def find(self, words: str) -> list[Statement[ValueT]]:
        """Return the statements that count in a text, all of the same strength."""

    def statements(self, words: str) -> Statements[ValueT]:
        """Return the statements that count in a text, also those of an object that closes it."""
        # Such an object is a line with a label like any other.
        closing = closing_object(words) if self.is_answer else None
        values = self.from_fields(closing.entries) if closing else ()
        before = self.find(words[: closing.start] if closing and values else words)
        if closing is None or not values or (before and before[0].strength > Strength.LABEL):
            return before
        return [Statement(Strength.LABEL, closing.start, closing.end, value) for value in values]


class _Doubt(IntEnum):
    """How far a statement is from being the agent's own."""

    OWN = auto()
    EMBEDDED = auto()  # the agent's words, but in the middle of a sentence that may be about somebody else's
    REPEATED = auto()  # its words stand in a text, or a judged text states the same value
    REPRINTED = auto()


class _Origin(NamedTuple):
    """Where a statement comes from, as far as can be told.

    Attributes:
        doubt: how far it is from being the agent's own.
        place: where it stands word for word.
        line: it has a line to itself.
        ends: nothing precedes it, or nothing follows it.
    """

    doubt: _Doubt
    place: Place | None = None
    line: bool = False
    ends: bool = False


_OWN = _Origin(_Doubt.OWN)


# Each removal takes every copy of a reprinted statement, so that a reply needs few.
_MOST_REMOVALS = 12
_MOST_EMBEDDED = 3
_MOST_COPIES = 20


def own_among(words: str, shown: Shown, grammar: Grammar[ValueT]) -> Statements[ValueT]:
    """Return the statements that count in ``words`` once those that are not the agent's own are removed.

    Args:
        words: the reply in plain, unmarked characters, prepared by the grammar.
        shown: the texts that the agent was shown, with the same preparation.
        grammar: finds the statements.

    Raises:
        RepeatedError: what is left may be a reprint.
    """
    doubtful: Statements[ValueT] = ()
    doubt, embedded = _OWN, 0
    for _ in range(_MOST_REMOVALS):
        statements = grammar.statements(words)
        if not statements:
            break
        origins: dict[Span, _Origin] = {}
        for statement in statements:
            origins |= _origins(words, statement, shown, grammar)
        worst = max(origins.values(), key=lambda origin: origin.doubt)
        if worst.doubt == _Doubt.OWN or (worst.doubt == _Doubt.EMBEDDED and _OWN in origins.values()):
            return _chosen(statements, doubtful, doubt)
        if worst.doubt < _Doubt.REPRINTED and not doubtful:
            doubtful, doubt = statements, worst
        elif worst.doubt < doubt.doubt == _Doubt.REPEATED and statements[-1].value != doubtful[-1].value:
            raise RepeatedError  # either may be the agent's own
        embedded += worst.doubt == _Doubt.EMBEDDED
        if embedded > _MOST_EMBEDDED:
            break
        removed = [span for span, origin in origins.items() if origin.doubt == worst.doubt]
        words = _without(words, removed, shown)
    else:
        raise RepeatedError
    if doubt.place == "judged" and not (doubt.ends or (doubt.line and grammar.is_answer)):
        raise RepeatedError
    return doubtful


def _chosen(own: Statements[ValueT], doubtful: Statements[ValueT], doubt: _Origin) -> Statements[ValueT]:
    """Return the agent's own findings, unless weaker than doubtful ones that may be its own as well."""
    if not doubtful:
        return own
    # Double brackets are asked for as the verdict's form, and yield to nothing weaker.
    embedded = doubt.doubt == _Doubt.EMBEDDED
    formal = embedded and doubtful[0].strength == Strength.BRACKETS
    clear = own[0].strength >= (Strength.BRACKETS if formal else Strength.PHRASE)
    if clear or own[-1].value == doubtful[-1].value or not (embedded or doubt.line or doubt.ends):
        return own
    if doubt.place == "judged":
        raise RepeatedError
    return doubtful


def _without(words: str, removed: Sequence[Span], shown: Shown) -> str:
    """Replace reprinted statements by gaps, and the other copies of the same words that are reprinted too."""
    spans = set(removed)
    for text in {words[at:end] for at, end in removed if end - at > 2}:
        copies = [match.span() for match in re.finditer(re.escape(text), words)]
        # Each look at a copy takes time; words that a reply repeats so often say nothing.
        many = len(copies) > _MOST_COPIES
        for span in copies:
            plain = many or _is_plain(words, *span)
            if many or _origin(words, span, shown, plain=plain).doubt == _Doubt.REPRINTED:
                spans.add(span)
    # Two gaps, for an odd number of them means that a quotation is open.
    gaps = ((at, end, GAP * (2 + words.count(GAP, at, end) % 2)) for at, end in outermost(spans))
    return replaced(words, gaps)


def _origins(
    words: str, statement: Statement[ValueT], shown: Shown, grammar: Grammar[ValueT]
) -> dict[Span, _Origin]:
    """Return where each part of a finding comes from; a part that stands in a text joins none that does not."""
    spans = statement.spans
    # A criterion's name is the agent's, a sentence before a number need not be.
    named = len(_WORD.findall(words, statement.at, spans[0][0])) == 1
    start = statement.at if named else spans[0][0]
    plain = _is_plain(words, start, statement.end)
    origins = {span: _origin(words, span, shown, plain=plain) for span in spans}
    standing = [span for span in spans if len(spans) > 1 and _passage(words, span, shown)]
    if len(standing) not in (0, len(spans)):
        origins |= {span: _Origin(_Doubt.REPRINTED) for span in standing}
    if all(origin == _OWN for origin in origins.values()):
        if any(statement.value in _stated(text, grammar) for text in shown.judged):
            quoted = words.count(GAP, 0, statement.at) % 2 == 1
            doubt = _Doubt.REPRINTED if quoted else _Doubt.REPEATED
            return {span: _Origin(doubt, line=True, ends=True) for span in spans}
        if not plain:
            return {span: _Origin(_Doubt.EMBEDDED) for span in spans}
    return origins


def _origin(words: str, span: Span, shown: Shown, *, plain: bool) -> _Origin:
    stands = _passage(words, span, shown) if shown != NOTHING else None
    in_quotation = words.count(GAP, 0, span[0]) % 2 == 1
    if stands is None and not in_quotation:
        return _OWN
    passage_at, passage_end, place = stands or (*span, None)
    # Words that happen to stand around the statement in both belong to it only on its own line.
    at, end = max(passage_at, _line_start(words, span[0])), min(passage_end, _line_end(words, span[1]))
    # Nothing but markup or a short label of the agent's own stands before it on its line.
    before = words[_line_start(words, at) : at]
    starts = len(before.replace("\x00", " ").split()) <= _LABEL_WORDS or introduces(before)
    stops = _LINE_GOES_ON.match(words, end) is not None
    closes = stops and not _HAS_WORD.search(words, _line_end(words, end))
    line = starts and stops
    if stands is not None:
        # The passage may hold more than the statement: sentences before or behind it.
        sentences_before = _SENTENCE_END.split(words[passage_at : span[0]])[:-1]
        sentences_behind = _SENTENCE_END.split(words[span[1] : passage_end])[1:]
        # Agents copy each other's reasons, and disown what another one has said while they keep to their own.
        judged = place == "judged" and (
            in_quotation
            or not plain
            or "\n" in words[passage_at : span[0]]
            or _disowns(words[end : end + 400].lstrip(" \n\x00"))
            or any(len(_WORD.findall(part)) >= _FEWEST_WORDS for part in sentences_before + sentences_behind)
        )
        if judged or _is_announced(words, at, shown.of(place)):
            return _Origin(_Doubt.REPRINTED)
    if line and (place is None or (closes and place == "said")):
        return _OWN
    ends = closes or not _HAS_WORD.search(words, 0, at)
    return _Origin(_Doubt.REPEATED, place, line, ends)


@lru_cache(maxsize=256)
def _stated(text: str, grammar: Grammar[ValueT]) -> frozenset[ValueT]:
    """Return all values that a text states itself, in whatever form."""
    words = plain(html.unescape(latin(text)))
    values = [value for stated in objects(words) for value in grammar.from_fields(stated.entries)]
    words = grammar.prepare(unmarked(both_ends(words)))
    for _ in range(_MOST_STATED):
        statements = grammar.find(words)
        if not statements:
            break
        values += [statement.value for statement in statements]
        spans = sorted(span for statement in statements for span in statement.spans)
        words = replaced(words, [(at, end, GAP * 2) for at, end in spans])
    return frozenset(values)


_MOST_STATED = 4


def _is_plain(words: str, at: int, end: int) -> bool:
    """Whether a statement is the sentence in which it stands, or an agent says there in its own name that it is so."""
    start = _line_start(words, at)
    item = _LIST_ITEM.match(words, start, at)
    *earlier, sentence = _SENTENCE_START.split(words[item.end() if item else start : at])
    if (item and (earlier or GAP * 2 in sentence)) or _GOES_ON.match(words, end):
        return False
    if not earlier and not sentence.strip(" *_-•>#|([{\"'`" + GAP * (words.count(GAP, 0, at) % 2)):
        above = words[max(0, start - 300) : start].rstrip(" \n*_").rpartition("\n")[2]
        return not above.endswith(_POINTERS) or introduces(above)
    # "The score of 5, ..." names a value and says nothing of it.
    if words.startswith(",", end) and _NOUN.match(words[at:end]):
        return False
    # Behind a quotation a clause begins anew, in it none does.
    clause = sentence.replace(GAP, "") if words.count(GAP, 0, at) % 2 else sentence.rpartition(GAP)[2]
    lead = clause.strip(" ,*_-•>#|()[]{}\"'`")
    return (_SUBJECT if _VERB.match(words[at:end]) else _LEAD).fullmatch(lead) is not None


# What others want is said in more words than a list can hold; what an agent says in its own name is not. So a sentence
# counts as a report unless it begins as those of judges do. The forms are those of recorded judges' replies.
_SUBJECT, _LEAD, _VERB = map(pattern, ("subject", "lead", "verb"))
_NOUN = in_any_case(rf"{SCORE_WORDS} (?:of |at |as )?(?!is |are )[^:=]*\Z")
_DISOWNING = in_any_case(rf"\b{any_of('disowning')}")
_NEXT_SENTENCES = re.compile(r"\A[^\n]{0,160}(?:\n+[^\n]{0,160})?")


def _disowns(after: str) -> bool:
    """Whether the words say that what stands before them is not the agent's own, as in ``I ignore it``."""
    near = _NEXT_SENTENCES.match(after.replace("\x00", " ").replace("\u2019", "'"))
    return near is not None and _DISOWNING.search(near[0]) is not None


def _passage(words: str, span: Span, shown: Shown) -> tuple[int, int, Place] | None:
    """Return the longest passage around a statement that stands in a text, and where; None if it stands in none."""
    at, end = span
    lines = [words[at:end], *words[at:end].split("\n")]
    # Lines that a reply puts below each other may stand apart in a text.
    place = shown.place_of(lines[0])
    if place is None and len(lines) > 2 and all(shown.place_of(line) for line in lines[1:]):
        return at, end, shown.place_of(lines[-1]) or "judged"
    if place is None and fold(words[at:end]).tells:
        return None
    before = [match.start() for match in _WORD.finditer(words, max(0, at - 900), at)][-_MOST_WORDS:]
    if place is None and before:
        # "Final scores: (8, 7)", of which only the numbers count.
        at = before.pop()
        place = shown.place_of(words[at:end])
    if place is None:
        return None
    known = shown.of(place)
    while before and known.place_of(words[before[-1] : end]):
        at = before.pop()
    for match in list(_WORD.finditer(words, end, end + 300))[:_MOST_WORDS]:
        if not known.place_of(words[at : match.end()]):
            break
        end = match.end()
    return at, end, place


_WORD = re.compile(r"[^\W_]+")
_MOST_WORDS = 120
_FEWEST_WORDS = 3
_SENTENCE_END = re.compile(r"[.!?] |\n")
_HAS_WORD = re.compile(r"[^\W_]")
_SENTENCE_START = re.compile(r"[.!?。！？](?:[)\]\x00]*)(?: |(?<=[。！？]))")
_LINE_GOES_ON, _GOES_ON = pattern("line_goes_on"), pattern("sentence_goes_on")
_LABEL_WORDS = 3
_LIST_ITEM = re.compile(r"[ \x00]*(?:[-•*+>]|\(?\d{1,2}[.)]) ")


_POINTERS = (":", "->", "→")


def _line_start(words: str, at: int) -> int:
    return words.rfind("\n", 0, at) + 1


def _line_end(words: str, end: int) -> int:
    stop = words.find("\n", end)
    return stop if stop >= 0 else len(words)


def _is_announced(words: str, at: int, known: Shown) -> bool:
    """Whether a colon or an unfinished sentence announces what stands at ``at``, and no verdict of the agent's own."""
    start = _line_start(words, at)
    # The number of a list item is no word before the statement.
    item = _LIST_ITEM.match(words, start, at)
    sentence = _SENTENCE_START.split(words[item.end() if item else start : at])[-1]
    if len(_WORD.findall(sentence)) > _LABEL_WORDS and not introduces(sentence):
        return sentence.rstrip(" \x00").endswith(_POINTERS)
    above = _SENTENCE_START.split(_line_above(words, start, known))[-1].rstrip(" \x00*_")
    # A sentence that does not end goes on in the next line.
    is_long = above[-1:].isalpha() and len(above.split()) >= _FEWEST_WORDS
    goes_on = is_long and words[start - 2 : start] != "\n\n"
    return (goes_on or above.endswith(_POINTERS)) and not introduces(above)


def _line_above(words: str, start: int, known: Shown) -> str:
    """Return the closest line above that stands in none of the texts; above a list, the line before the list."""
    in_list = _LIST_ITEM.match(words, start) or words[:start].rstrip(" \n").endswith(("\n-", "\n*", "\n•"))
    for line in reversed(words[max(0, start - 2000) : start].split("\n")):
        if _HAS_WORD.search(line) and not known.place_of(line):
            if not _LIST_ITEM.match(line):
                return line
            if not in_list:
                return ""
    return ""
