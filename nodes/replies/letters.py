"""Read a letter grade from a multiple-choice reply."""

from __future__ import annotations

import re

from .faults import unreadable
from .markup import unmarked
from .structured import fields
from .text import own_words

_CHOICE_KEYS = ("choice", "answer", "option", "grade", "rating", "score", "letter", "final_answer")


def read_letter(reply: str, whole: str, low: float, letters: str, *, cut_off: bool = False) -> float:
    """The grade whose letter the reply states: the first of ``letters`` means ``low``, each next one more.

    Args:
        reply: the raw reply, for the error.
        whole: the reply in plain characters.
        low: what the first letter stands for.
        letters: the grades in rising order.
        cut_off: the reply is known to have hit its length limit.

    >>> read_letter("Answer: (C)", "Answer: (C)", 1, "ABCDE")
    3.0
    """
    entries = fields(whole)
    if entries is not None:
        words = "\n".join(str(entry.value) for entry in entries if entry.name in _CHOICE_KEYS)
    else:
        words = unmarked(own_words(whole))
    for form in _forms(letters):
        found = [match["letter"] for match in form.finditer(words)]
        if found:
            return low + letters.index(found[-1])
    raise unreadable(reply, words, "choice", cut_off=cut_off)


def _forms(letters: str) -> tuple[re.Pattern[str], ...]:
    one = rf"[(\[]{{0,2}}(?P<letter>[{re.escape(letters)}])[)\]]{{0,2}}(?![\w'’])"
    either = rf"(?! ?(?:or|/|and|-) ?[(\[]?[{re.escape(letters)}]\b)"
    named = r"(?:answer|choice|option|grade|rating|score|verdict|select(?:ion)?|choose|pick|is)"
    return (
        re.compile(rf"\[\[(?P<letter>[{re.escape(letters)}])\]\]"),
        re.compile(rf"(?i:\b{named}(?: is| would be)?(?: option| answer)?) ?[:=]? ?\n?{one}{either}"),
        re.compile(rf"\A{one}{either}(?= ?(?:\Z|[.:,;)\n-]))"),
        re.compile(rf"(?:^|[.!?:] ){one}(?=[.]?\Z)", re.MULTILINE),
    )
