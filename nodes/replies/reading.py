"""Take the steps that all readers share, from a raw reply to the statements that count, or to the error it deserves."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from ...state.errors import ReplyError
from .json_fields import Field, closing_fields, fields, without_repeats
from .numbers import Statement, written
from .own_words import own_words, plain, unmarked
from .reasoning import possible_answers
from .reprints import Finding, RepeatedError, own_findings
from .shown import Shown


class StatedValue(Finding, Protocol):
    """A statement that may also be an object at the end of a reply."""

    def placed(self: StatedT, at: int, end: int) -> StatedT:
        """Return the same statement where that object stands."""


StatedT = TypeVar("StatedT", bound=StatedValue)


def opened(reply: str, shown: Shown) -> str:
    """Return a reply in plain characters, without reasoning and what certainly is not the agent's own.

    Raises:
        ReplyError: it is too long.
    """
    return without_repeats(plain(possible_answers(bounded(reply), shown)[0]), shown)


def statements(
    reply: str,
    shown: Shown,
    what: str,
    from_fields: Callable[[Sequence[Field]], Sequence[StatedT]],
    find: Callable[[str], Sequence[StatedT]],
    prepare: Callable[[str], str],
) -> tuple[Sequence[StatedT], str]:
    """Return the statements that count in a reply, and its words without what they quote (none of an object).

    Args:
        reply: the raw reply.
        shown: the texts that the agent was shown.
        what: what is looked for, such as ``"score"``.
        from_fields: returns what the values of an object state.
        find: returns the statements that count in a text, all of the same strength.
        prepare: what is done to a text before statements are looked for in it.

    Raises:
        ReplyError: all that the reply states may be a reprint.
    """
    whole = opened(reply, shown)
    entries = fields(whole)
    if entries is not None:
        return from_fields(entries), ""
    words = unmarked(own_words(whole, keep=bool(shown)))

    def counting(text: str) -> Sequence[StatedT]:
        # An object that closes a reply goes before all that the text says.
        closing = closing_fields(text)
        stated = from_fields(closing.entries) if closing else ()
        return [each.placed(closing.at, closing.end) for each in stated] if closing and stated else find(text)

    try:
        return own_findings(prepare(words), shown, counting, prepare), words
    except RepeatedError as error:
        raise repeated(reply, what) from error


_REFUSAL = re.compile(
    r"\b(?:i(?:'m| am) (?:(?:very|so|really|truly) )?(?:sorry|afraid|unable|not able)"
    r"|i (?:must|have to|will|would) (?:respectfully |politely )?(?:decline|refuse)"
    r"|i (?:can(?:'t|not| not)|could not|couldn't|won't|will not|do not feel comfortable|don't feel comfortable)"
    r" (?:\w+ ){0,2}(?:assist|help|provide|give|rate|score|judge|evaluate|assess|assign|comply|do|answer|fulfil"
    r"|continue|engage|choose|decide|say|determine|participate|compare)"
    r"|as an ai(?: language model)?,? i (?:can|do|am|don))"
    r"|\blo siento\b|\bje suis désolée?\b|\bes tut mir leid\b|\bmi dispiace\b|\bdesculpe\b|\bsinto muito\b"
    r"|\bизвините\b|抱歉|对不起|對不起|申し訳|죄송|عذرا|क्षमा",
    re.IGNORECASE,
)
# A refusal opens a reply; further on, the same words belong to the argument ("I cannot give a 5").
_OPENING = 400


LONGEST = 1_000_000


def bounded(reply: str) -> str:
    """Return the reply if it is short enough to be read.

    Raises:
        ReplyError: it is longer than any agent's reply.
    """
    if len(reply) <= LONGEST:
        return reply
    problem = f"The reply has {len(reply):,} characters; no more than {LONGEST:,} are read."
    # As one that ran into a limit: it is asked for again without being sent back.
    raise ReplyError(problem, reply, "cut_off")


def off_scale(reply: str, value: float, low: float, high: float) -> ReplyError:
    """Return the error of a reply that states a value outside the scale."""
    problem = f"The reply states {written(value)}, which is off the scale {written(low)} to {written(high)}."
    return ReplyError(problem, reply, "off_scale")


def other_scale(reply: str, value: float, out_of: float, high: float) -> ReplyError:
    """Return the error of a reply that states a value with another maximum than the scale's (``7/10`` on 1 to 5)."""
    problem = (
        f"The reply states {written(value)} out of {written(out_of)}, but the scale ends at {written(high)}."
    )
    return ReplyError(problem, reply, "off_scale")


def contradictory(reply: str, first: str, second: str, what: str) -> ReplyError:
    """Return the error of a reply whose final statement holds two different values."""
    return ReplyError(f"The reply states both {first} and {second} as its {what}.", reply, "contradictory")


def value_on_scale(reply: str, found: Statement, low: float, high: float, what: str) -> float:
    """Return the value of a statement.

    Raises:
        ReplyError: it gives two, or one of another scale, or off the scale.
    """
    value = found.values[-1]
    for other in found.values:
        if other != value:
            raise contradictory(reply, written(other), written(value), what)
    if found.out_of is not None and found.out_of != high:
        raise other_scale(reply, value, found.out_of, high)
    if not low <= value <= high:
        raise off_scale(reply, value, low, high)
    return value


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
