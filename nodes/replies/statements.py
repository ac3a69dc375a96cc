"""The steps that all readers share, from a raw reply to its one value or to its error.

A value is only read from statement lines: lines of the agent's own words that contain one requested
form and nothing else. Prose is never read for a value. A reply without a statement line, or with
two that differ, raises `ReplyError`, and the agent is asked again.
"""

from __future__ import annotations

import html
import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, NamedTuple

from ...state.errors import ReplyError
from .json_fields import Field, fields, own_objects, without_repeats
from .own_words import (
    GAP,
    MARK,
    MAY_HAVE_MARKS,
    OPENING,
    has_marks,
    own_words,
    plain,
    replaced,
    unmarked,
    without_reasoning,
)
from .provenance import Grammar, Statement, Statements, ValueT, is_own_remark, own_among
from .shown import NOTHING, RepeatedError, Shown, latin
from .vocabulary import label_words, written


class Stated(NamedTuple, Generic[ValueT]):
    """The statements of a reply.

    Attributes:
        statements: the statements in the agent's own words.
        words: the agent's words without markup.
    """

    statements: Statements[ValueT]
    words: str


def own_statements(reply: str, shown: Shown, grammar: Grammar[ValueT]) -> Stated[ValueT]:
    """Return the statements of a reply that are the agent's own.

    Args:
        reply: the raw reply.
        shown: the texts that the agent was shown.
        grammar: the forms to look for.

    Raises:
        ReplyError: the reply is too long, or everything it states may be repeated from a shown
            text.
    """
    whole = plain(possible_answers(reply, shown)[0])
    in_objects: list[Statement[ValueT]] = []
    at_end: list[Statement[ValueT]] = []
    if "{" in whole:
        whole = without_repeats(whole, shown)
        if grammar.is_answer:
            entries = fields(whole)
            if entries is not None:
                return Stated(_in_object(entries, grammar), "")
            found = own_objects(whole, shown)
            stating = {
                stated.start: stated for stated in found.own if grammar.from_fields(stated.entries)
            }
            in_objects = [
                each for stated in stating.values() for each in _in_object(stated.entries, grammar)
            ]
            if found.at_end is not None:
                at_end = _in_object(found.at_end.entries, grammar)
            whole = replaced(whole, [(stated.start, stated.end, "") for stated in stating.values()])
    words = unmarked(own_words(whole, answers=grammar.is_answer, keep=shown != NOTHING))
    try:
        own = own_among(words, shown, grammar)
    except RepeatedError as error:
        raise repeated(reply, grammar.what) from error
    return Stated([*in_objects, *own] or at_end, words)


def _in_object(entries: Sequence[Field], grammar: Grammar[ValueT]) -> list[Statement[ValueT]]:
    return [Statement(0, 0, value) for value in grammar.from_fields(entries)]


def stated_value(reply: str, shown: Shown, grammar: Grammar[ValueT]) -> ValueT:
    """Return the one value that a reply states.

    Args:
        reply: the raw reply.
        shown: the texts that the agent was shown.
        grammar: the forms to look for.

    Raises:
        ReplyError: the reply is empty, refuses, breaks off, states no value or two that differ, or
            may only repeat one.
    """
    statements, words = own_statements(reply, shown, grammar)
    if not statements:
        raise nothing_stated(reply, words, grammar.what)
    last = agreed(reply, statements, grammar.what)
    check_remarks(reply, words, last, shown, grammar)
    return last.value


def agreed(reply: str, statements: Statements[ValueT], what: str) -> Statement[ValueT]:
    """Return the last statement if all others agree or its label marks it as final.

    Raises:
        ReplyError: they differ.
    """
    last = statements[-1]
    if not last.final:
        for other in statements:
            if other.value != last.value:
                raise contradiction(reply, other.value, last.value, what)
    return last


def contradiction(reply: str, first: object, second: object, what: str) -> ReplyError:
    """Return the error of a reply that states two different values."""
    both = (written(value) if isinstance(value, float) else str(value) for value in (first, second))
    return ReplyError(
        f"The reply states both {' and '.join(both)} as its {what}.", reply, "contradictory"
    )


def off_scale(reply: str, value: float, low: float, high: float) -> ReplyError:
    """Return the error of a reply with a value off the scale."""
    stated = f"{written(value)}, which is off the scale {written(low)} to {written(high)}"
    return ReplyError(f"The reply states {stated}.", reply, "off_scale")


def check_remarks(
    reply: str, words: str, last: Statement[ValueT], shown: Shown, grammar: Grammar[ValueT]
) -> None:
    """Check that no line after the last statement takes it back, such as ``Erratum: Score: 2``.

    Raises:
        ReplyError: a line has a label and another value.
    """
    at = last.end
    for line in words[last.end :].split("\n"):
        said = grammar.disagrees(line, last.value) if line else None
        if said and is_own_remark(words, at + said.start(), at + said.end(), shown):
            problem = f"The reply states its {grammar.what}, and then another one: {said[0].strip(GAP)[:80]!r}."
            raise ReplyError(problem, reply, "contradictory")
        at += len(line) + 1


# --- statement lines ------------------------------------------------------------------------------


@dataclass(frozen=True)
class LineGrammar(Grammar[ValueT]):
    """A kind of value that is stated on a line of its own, with or without a label."""

    @abstractmethod
    def names(self, label: tuple[str, ...]) -> bool:
        """Return whether a label without articles and qualifiers names the requested value."""

    @abstractmethod
    def value(self, text: str, *, labelled: bool) -> ValueT | None:
        """Return the value that a text without brackets consists of; None for anything else."""

    def find(self, words: str) -> list[Statement[ValueT]]:
        found: list[Statement[ValueT]] = []
        above: Line | None = None
        for line in lines_of(words):
            statement = self._labelled(line) or self._bare(line, above)
            if statement is not None:
                found.append(statement)
            # A line that states a value is not a label of the next line.
            above = line if statement is None else None
        return found

    def _labelled(self, line: Line) -> Statement[ValueT] | None:
        match = _LABELLED.fullmatch(line.text)
        if match is None:
            return None
        label, final = label_words(match["label"])
        if not self.names(label):
            return None
        value = self.value(bare(match["value"]), labelled=True)
        return None if value is None else Statement(line.start, line.end, value, final)

    def _bare(self, line: Line, above: Line | None) -> Statement[ValueT] | None:
        """Return the statement of a line that is a value without another value's label above."""
        # The number of a list item is as likely a value as the text after it.
        if line.numbered:
            return None
        value = self.value(line.text, labelled=False)
        if value is None:
            # After a label, more forms are values: "Vote" and then "1".
            value = (
                self.value(line.text, labelled=True)
                if above is not None and self._heads(above)
                else None
            )
            if value is None:
                return None
        start = line.start
        final = False
        if above is not None and above.is_label:
            label, final = label_words(above.text.rstrip(": "))
            if not self.names(label):
                return None
            start = above.start
        return Statement(start, line.end, value, final)

    def _heads(self, line: Line) -> bool:
        return line.is_label and self.names(label_words(line.text.rstrip(": "))[0])


# A label, a colon or an equals sign, and a value.
_LABELLED = re.compile(r"(?P<label>[^:=\n\d][^:=\n]{0,80}?) ?[:=] ?(?P<value>[^\n]{1,80})")
_LIST_MARK = re.compile(r"(?:[-•*+>] )+")
_NUMBER_MARK = re.compile(r"\(?\d{1,2}[.)] (?=\S)")
_MOST_LABEL_WORDS = 4
_LONGEST_LINE = 200


class Line(NamedTuple):
    """A line of a reply without list mark, gaps, final punctuation and surrounding brackets.

    Attributes:
        start: the start position of the line's text in the reply.
        end: its end position.
        text: the text of the line.
        numbered: whether it is an item of a numbered list.
        ended: whether final punctuation follows.
    """

    start: int
    end: int
    text: str
    numbered: bool
    ended: bool

    @property
    def is_label(self) -> bool:
        """Whether it may be a label for the line below: it ends in a colon, or is a few words."""
        if self.text.endswith(":"):
            return True
        words = self.text.split()
        return (
            not self.ended
            and len(words) <= _MOST_LABEL_WORDS
            and all(word.isalpha() for word in words)
        )


def lines_of(words: str) -> Iterator[Line]:
    """Yield the lines of a text that contain words or values.

    >>> [line.text for line in lines_of("- [Score: 4].\\n2. (b)!")]
    ['Score: 4', 'b']
    """
    at = 0
    for raw in words.split("\n"):
        start = at
        at = at + len(raw) + 1
        if len(raw) > _LONGEST_LINE:
            continue
        text = raw.lstrip(" \x00")
        start += len(raw) - len(text)
        if mark := _LIST_MARK.match(text):
            text = text[mark.end() :]
            start = start + mark.end()
        numbered = _NUMBER_MARK.match(text)
        if numbered:
            text = text[numbered.end() :]
            start = start + numbered.end()
        text = text.rstrip(" \x00")
        end = start + len(text)
        said = text.rstrip(" \x00.!,;")
        if bare_text := bare(said):
            yield Line(start, end, bare_text, bool(numbered), ended=len(said) < len(text))


_BRACKETS = {"(": ")", "[": "]", "{": "}", "<": ">"}
_MARKS = " \x00\"'`*_"


def bare(text: str) -> str:
    """Return a text without the quotation marks and the pairs of brackets around it.

    >>> bare("[[4]]"), bare('"4"'), bare("(8, 7)"), bare("(a) or (b)")
    ('4', '4', '8, 7', '(a) or (b)')
    """
    text = text.strip(_MARKS)
    while len(text) > 2 and _BRACKETS.get(text[0]) == text[-1] and _closes_last(text):
        text = text[1:-1].strip(_MARKS)
    return text


def _closes_last(text: str) -> bool:
    """Return whether the text's last character closes its first bracket."""
    depth = 0
    for at, char in enumerate(text):
        depth += (char == text[0]) - (char == text[-1])
        if depth == 0:
            return at == len(text) - 1
    return False


# --- possible answers in a reply that reasons -----------------------------------------------------

_LONGEST = 1_000_000


def check_length(reply: str) -> None:
    """Check that a reply, an object or not, does not exceed the longest readable length.

    Raises:
        ReplyError: it does.
    """
    if len(reply) > _LONGEST:
        problem = f"The reply has {len(reply):,} characters; no more than {_LONGEST:,} are read."
        # Treat it like a truncated reply, which is requested again without being sent back.
        raise ReplyError(problem, reply, "cut_off")


def possible_answers(reply: str, shown: Shown) -> list[str]:
    """Return the possible answers of a reply without its reasoning, the longest first.

    There is one, unless both the reply and a shown text have reasoning tags. Then each tag may be
    the agent's own or quoted, and the answer only counts if it is the same either way.

    Raises:
        ReplyError: the reply is too long.

    >>> possible_answers("<think>Is it a 5?</think>Score: 4", Shown(("A fine day.",)))
    ['Score: 4']
    >>> possible_answers("Score: 2\\nIt says:\\n</think>\\nScore: 5", Shown(("A fine day. </think> Score: 5",)))
    ['Score: 2\\nIt says:\\n</think>\\nScore: 5']
    """
    check_length(reply)
    if not MAY_HAVE_MARKS.search(reply):
        return [reply]
    texts = [text for text in (*shown.judged, *shown.speeches) if _has_marks(text)]
    if not texts or not has_marks(reply):
        return [without_reasoning(reply)]
    contexts = Shown(tuple(_unescaped(text) for text in texts))
    tags = list(MARK.finditer(reply))
    tags = tags if len(tags) <= 2 * _MOST_TAGS else tags[:_MOST_TAGS] + tags[-_MOST_TAGS:]
    # Text after a tag at the very beginning is reasoning, so the whole reply is not an answer.
    opened = (
        OPENING.match(reply) and tags[0].start() == 0 and not _is_quoted(reply, tags[0], contexts)
    )
    closing = [tag for tag in tags if not OPENING.match(tag[0])]
    ends = [tag.end() for tag in closing if not _is_quoted(reply, tag, contexts)]
    if opened and not ends:
        ends = [tag.end() for tag in closing]
    starts = [*([] if opened else [0]), *ends[:_MOST_READINGS], *ends[-1:]]
    return [_FINAL_MARKS.sub("", reply[start:]).strip() for start in dict.fromkeys(starts)] or [""]


# A reply with more tags quotes them repeatedly.
_MOST_TAGS = 20
# Each possible answer is read.
_MOST_READINGS = 2
_FINAL_MARKS = re.compile(r"(?:\s*<\|\w+\|>)+\s*\Z")
_WORDS_BESIDE = 2


def _is_quoted(reply: str, tag: re.Match[str], texts: Shown) -> bool:
    """Return whether a tag occurs in a text together with the words before or after it."""
    before = re.findall(r"\S+", reply[max(0, tag.start() - 80) : tag.start()])[-_WORDS_BESIDE:]
    behind = re.findall(r"\S+", reply[tag.end() : tag.end() + 80])[:_WORDS_BESIDE]
    sides = ([*before, tag[0]] if before else [], [tag[0], *behind] if behind else [])
    return any(side and texts.place_of(" ".join(side)) for side in sides)


@lru_cache(maxsize=256)
def _has_marks(text: str) -> bool:
    return has_marks(text) or has_marks(_unescaped(text))


def _unescaped(text: str) -> str:
    """Return a text as a model may repeat it: displayed letters, ``&lt;`` as ``<``."""
    return latin(html.unescape(text))


# --- errors of a reply ----------------------------------------------------------------------------

_REFUSAL = re.compile(
    r"""
    \bi(?:'m|\ am)\ (?:(?:very|so|really|truly)\ )?(?:sorry|afraid|unable|not\ able)     # I'm sorry
  | \bi\ (?:must|have\ to|will|would)\ (?:respectfully\ |politely\ )?(?:decline|refuse)
  | \bi\ (?:can(?:'t|not|\ not)|could\ not|couldn't|won't|will\ not|do\ not\ feel\ comfortable
      |don't\ feel\ comfortable)\ (?:\w+\ ){0,2}
      (?:assist|help|provide|give|rate|score|judge|evaluate|assess|assign|comply|do|answer|fulfil|continue|engage
      |choose|decide|say|determine|participate|compare)                                   # I cannot rate
  | \bas\ an\ ai(?:\ language\ model)?,?\ i\ (?:can|do|am|don)                            # As an AI, I cannot
  | \blo\ siento\b | \bje\ suis\ désolée?\b | \bes\ tut\ mir\ leid\b | \bmi\ dispiace\b
  | \bdesculpe\b | \bsinto\ muito\b | \bизвините\b
  | 抱歉 | 对不起 | 對不起 | 申し訳 | 죄송 | عذرا | क्षमा
    """,
    re.IGNORECASE | re.VERBOSE,
)
# A refusal is at the beginning. Later, the same words belong to the argument ("I cannot give a 5").
_OPENING = 400


def nothing_stated(reply: str, words: str, what: str) -> ReplyError:
    """Return the error of a reply without a value: empty, a refusal, truncated, or without one."""
    if not re.search(r"\w", reply):
        return ReplyError("The reply is empty.", reply, "empty")
    if _REFUSAL.search(words[:_OPENING].replace("’", "'")):
        return ReplyError("The reply refuses to judge.", reply, "refused")
    if breaks_off(reply):
        return ReplyError(f"The reply breaks off before it states a {what}.", reply, "cut_off")
    return ReplyError(f"The reply states no {what} on a line of its own.", reply, "missing")


def repeated(reply: str, what: str) -> ReplyError:
    """Return the error of a reply whose only value may be repeated from a shown text."""
    problem = (
        f"The only {what} in the reply is also in a judged text, so it may be a quotation. "
        f"Reply with the {what} alone if it is yours."
    )
    return ReplyError(problem, reply, "missing")


def breaks_off(reply: str) -> bool:
    """Return whether a reply ends in an object, after a label, or (if long) in mid-sentence."""
    text = reply.strip()
    if text.startswith(("{", "```json\n{", "```\n{")) and text.count("{") > text.count("}"):
        return True
    if (
        re.search(r"\b(?:score|rating|verdict)\W{0,4}\Z", text[-40:], re.IGNORECASE)
        and text[-1] in ":=*[("
    ):
        return True
    return len(text) > 200 and (text[-1].isalnum() or text[-1] in ",;-(")
