"""Read a letter grade from a multiple-choice reply."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .faults import contradictory, unreadable
from .markup import unmarked
from .structured import fields
from .text import own_words

_CHOICE_KEYS = ("choice", "answer", "option", "grade", "rating", "score", "letter", "final_answer")
_NAMED = (
    r"(?:answer|choice|option|grade|rating|score|verdict|selection|response|choose|pick|select|go with|rate it|"
    r"(?:rate|grade|score|classify|evaluate) (?:the|this) [\w ]{1,40}? as)"
)


def read_letter(reply: str, whole: str, low: float, letters: str, *, cut_off: bool = False) -> float:
    """The grade whose letter the reply states: the first of ``letters`` means ``low``, each next one more.

    Args:
        reply: the raw reply, for the error.
        whole: the reply in plain characters.
        low: what the first letter stands for.
        letters: the grades in rising order.
        cut_off: the reply is known to have hit its length limit.

    Raises:
        ReplyError: no letter is stated, or two are.

    >>> read_letter("Answer: (C)", "Answer: (C)", 1, "ABCDE")
    3.0
    """
    entries = fields(whole)
    if entries is not None:
        words = "\n".join(str(entry.value)[:20] for entry in entries if entry.name in _CHOICE_KEYS)
    else:
        words = unmarked(own_words(whole))
    chosen = next((choice for choice in _stated(words, letters) if choice), None)
    if chosen is None:
        raise unreadable(reply, words, "choice", cut_off=cut_off)
    if chosen[0] != chosen[-1]:
        raise contradictory(reply, chosen[0], chosen[-1], "choice")
    return float(low + letters.index(chosen[-1]))


def _stated(words: str, letters: str) -> Iterator[str]:
    """What each form states, strongest first: a letter, two where it gives alternatives, or nothing."""
    grade = f"[{re.escape(letters)}]"
    one = (
        rf"[(\[]{{0,2}}(?P<letter>{grade})[)\]]{{0,2}}(?![\w'’-])(?: ?(?:or|/) ?[(\[]?(?P<other>{grade})\b)?"
    )
    ends = r"(?= ?(?:\Z|[.:,;)\n(—-]|as|because|since|for|out|in|indicating|which))"
    yield _last(rf"\[\[(?P<letter>{grade})(?P<other>)\]\]", words)
    yield _last(
        rf"(?i:\b{_NAMED}(?: is| would be| to be)?(?: an?| the)?(?: option| answer| letter"
        rf"| grade)?) ?[:=]? ?\n{{0,2}}{one}{ends}",
        words,
    )
    opening = _lines_opening_with(rf"(?:[-•*] )?{one}(?= ?(?:\Z|[.:,)\n(—-]))", words)
    yield opening[-1] if len(set(opening)) == 1 else ""
    yield _last(rf"(?:^|[.!?:,] |\bis ){one}(?=[.]?\Z)", words)


def _last(form: str, words: str) -> str:
    chosen = ""
    for match in re.finditer(form, words, re.MULTILINE):
        chosen = match["letter"] + (match["other"] or "")
    return chosen


def _lines_opening_with(form: str, words: str) -> list[str]:
    matches = (re.match(form, line) for line in words.split("\n"))
    return [match["letter"] + (match["other"] or "") for match in matches if match]
