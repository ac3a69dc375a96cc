"""Take the steps that all readers share, from a raw reply to the statements that count, or to the error it deserves."""

from __future__ import annotations

import html
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Generic

from ...state.errors import ReplyError
from .json_fields import Field, closing_object, fields, objects, without_repeats
from .own_words import GAP, both_ends, own_words, plain, replaced, unmarked
from .provenance import RepeatedError, Statement, Statements, Strength, ValueT, own_among
from .reasoning import possible_answers
from .shown import Shown, latin
from .vocabulary import Number, pattern, written


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


def own_statements(reply: str, shown: Shown, grammar: Grammar[ValueT]) -> tuple[Statements[ValueT], str]:
    """Return the statements that count in a reply, and its words without what they quote (none of an object).

    Args:
        reply: the raw reply.
        shown: the texts that the agent was shown.
        grammar: what is looked for.

    Raises:
        ReplyError: the reply is too long, or all that it states may be a reprint.
    """
    whole = without_repeats(plain(possible_answers(bounded(reply), shown)[0]), shown)
    entries = fields(whole) if grammar.is_answer else None
    if entries is not None:
        return [Statement(Strength.LABEL, 0, 0, value) for value in grammar.from_fields(entries)], ""
    words = unmarked(own_words(whole, answers=grammar.is_answer, keep=bool(shown)))

    def find(text: str) -> Statements[ValueT]:
        # An object that closes a reply is a line with a label like any other.
        closing = closing_object(text) if grammar.is_answer else None
        values = grammar.from_fields(closing.entries) if closing else ()
        if closing is None or not values:
            return grammar.find(text)
        said = grammar.find(text[: closing.start])
        if said and said[0].strength > Strength.LABEL:
            return said
        return [Statement(Strength.LABEL, closing.start, closing.end, value) for value in values]

    def forged() -> set[ValueT]:
        return {value for text in shown.judged for value in _stated(text, grammar)}

    try:
        prepared = grammar.prepare(words)
        own = own_among(prepared, shown, find, grammar.prepare, forged=forged, lone=grammar.is_answer)
        return own, words
    except RepeatedError as error:
        raise repeated(reply, grammar.what) from error


@lru_cache(maxsize=256)
def _stated(text: str, grammar: Grammar[ValueT]) -> frozenset[ValueT]:
    """Return all values that a text states itself, in whatever form."""
    words = plain(html.unescape(latin(text)))
    values = [value for stated in objects(words) for value in grammar.from_fields(stated.entries)]
    words = grammar.prepare(unmarked(both_ends(words)))
    for _ in range(_MOST_STATED):
        found = grammar.find(words)
        if not found:
            break
        values += [statement.value for statement in found]
        spans = sorted(span for statement in found for span in statement.spans)
        words = replaced(words, [(at, end, GAP * 2) for at, end in spans])
    return frozenset(values)


_MOST_STATED = 4


def strongest(statements: Sequence[Statement[ValueT]]) -> list[Statement[ValueT]]:
    """Return the statements of the strongest form, in the order in which they stand."""
    most = max((statement.strength for statement in statements), default=None)
    return sorted((s for s in statements if s.strength == most), key=lambda statement: statement.at)


# --- what is wrong with a reply -------------------------------------------------------------------------------------

_REFUSAL = pattern("refusal")
# A refusal opens a reply; further on, the same words belong to the argument ("I cannot give a 5").
_OPENING = 400
_LONGEST = 1_000_000


def bounded(reply: str) -> str:
    """Return the reply if it is short enough to be read.

    Raises:
        ReplyError: it is longer than any agent's reply.
    """
    if len(reply) <= _LONGEST:
        return reply
    problem = f"The reply has {len(reply):,} characters; no more than {_LONGEST:,} are read."
    # As one that ran into a limit: it is asked for again without being sent back.
    raise ReplyError(problem, reply, "cut_off")


def contradictory(reply: str, first: str, second: str, what: str) -> ReplyError:
    """Return the error of a reply whose final statement holds two different values."""
    return ReplyError(f"The reply states both {first} and {second} as its {what}.", reply, "contradictory")


def value_on_scale(reply: str, number: Number, low: float, high: float, what: str) -> float:
    """Return the value of a stated number.

    Raises:
        ReplyError: it gives two, or one of another scale (``7/10`` on 1 to 5), or off the scale.
    """
    value = number.values[-1]
    for other in number.values:
        if other != value:
            raise contradictory(reply, written(other), written(value), what)
    if number.out_of is not None and number.out_of != high:
        stated = f"{written(value)} out of {written(number.out_of)}, but the scale ends at {written(high)}"
    elif not low <= value <= high:
        stated = f"{written(value)}, which is off the scale {written(low)} to {written(high)}"
    else:
        return value
    raise ReplyError(f"The reply states {stated}.", reply, "off_scale")


def unreadable(reply: str, words: str, what: str, *, cut_off: bool = False) -> ReplyError:
    """Return the error of a reply without a value: it is empty, refuses, breaks off, or just never states one.

    Args:
        reply: the raw reply.
        words: the reply without what it quotes.
        what: what was looked for, such as ``"score"``.
        cut_off: the caller knows that the reply hit the length limit.
    """
    if not re.search(r"\w", reply):
        return ReplyError("The reply is empty.", reply, "empty")
    if _REFUSAL.search(words[:_OPENING].replace("’", "'")):
        return ReplyError("The reply refuses to judge.", reply, "refused")
    if cut_off or breaks_off(reply):
        return ReplyError(f"The reply breaks off before it states a {what}.", reply, "cut_off")
    return ReplyError(f"The reply states no {what}.", reply, "missing")


def repeated(reply: str, what: str) -> ReplyError:
    """Return the error of a reply whose only value may be a reprint of what the agent was shown."""
    problem = (
        f"The only {what} in the reply stands word for word in the texts that it is about, and may be quoted from "
        f"them; close with a {what} of your own on the last line."
    )
    return ReplyError(problem, reply, "missing")


def breaks_off(reply: str) -> bool:
    """Whether a reply ends in an open JSON object, in a label without its value, or, if long, in mid-sentence."""
    text = reply.strip()
    if text.startswith(("{", "```json\n{", "```\n{")) and text.count("{") > text.count("}"):
        return True
    if re.search(r"\b(?:score|rating|verdict)\W{0,4}\Z", text[-40:], re.IGNORECASE) and text[-1] in ":=*[(":
        return True
    return len(text) > 200 and (text[-1].isalnum() or text[-1] in ",;-(")
