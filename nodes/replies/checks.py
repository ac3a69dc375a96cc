"""Reads the answer to each criterion of a rubric, and checks quotations from the candidate.

Forms, each alone on its line: ``Criterion 1: yes``, ``Criterion 2: no``, ``Criterion 3: not
applicable``; with one criterion also ``Answer: yes``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from ...state.errors import ReplyError
from ...state.rubrics import CriterionAnswer
from .own_words import plain, unmarked
from .provenance import Statement
from .shown import NOTHING, Shown, fold, latin
from .statements import (
    Line,
    LineGrammar,
    agreed,
    bare,
    check_remarks,
    lines_of,
    nothing_stated,
    own_statements,
)


def read_checks(text: str, count: int, *, shown: Shown = NOTHING) -> list[CriterionAnswer]:
    """Return the answers of a reply to the criteria 1 to ``count``, in order.

    Raises:
        ReplyError: a criterion has no answer or two different ones, a criterion does not exist, or
            an answer may be repeated from a shown text.

    >>> read_checks("It names 5 mg.\\nCriterion 1: yes\\nCriterion 2: N/A", 2)
    ['yes', 'not applicable']
    """
    grammar = Checks(count)
    statements, words = own_statements(text, shown, grammar)
    beyond = [str(s.value.number) for s in statements if not 1 <= s.value.number <= count]
    if beyond:
        problem = f"The reply answers criterion {beyond[0]}, but the criteria are 1 to {count}."
        raise ReplyError(problem, text, "missing")
    answers: list[CriterionAnswer] = []
    for number in range(1, count + 1):
        of_one = [statement for statement in statements if statement.value.number == number]
        if not of_one:
            if not statements:
                raise nothing_stated(text, words, grammar.what)
            raise ReplyError(f"The reply has no answer to criterion {number}.", text, "missing")
        last = agreed(text, of_one, grammar.what)
        check_remarks(text, words, last, shown, grammar)
        answers.append(last.value.answer)
    return answers


class Check(NamedTuple):
    """The answer to one criterion."""

    number: int
    answer: CriterionAnswer

    def __str__(self) -> str:
        return f"{self.answer} (criterion {self.number})"


_VALUE = re.compile(
    r"""
      (?P<yes>yes)
    | (?P<no>no)
    | (?P<other>not[ ]applicable|n/?a)
    """,
    re.IGNORECASE | re.VERBOSE,
)
_LABEL = re.compile(
    r"""
      criterion[ ]?\#?(?P<number>\d{1,3})     # Criterion 2
    | (?P<only>answer|criterion)              # Answer
    """,
    re.IGNORECASE | re.VERBOSE,
)
# A label with another answer in the middle of other words: ``Sorry, I meant Criterion 2: no``.
_MENTION = re.compile(
    r"\bcriterion[ ]?\#?(\d{1,3})[*_ ]{0,3}[:=][*_ ]{0,3}(yes|no|not applicable|n/?a)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Checks(LineGrammar[Check]):
    """The forms of an answer to one of several criteria."""

    what: ClassVar[str] = "answer to a criterion"
    count: int

    def names(self, label: tuple[str, ...]) -> bool:
        return False

    def value(self, text: str, *, labelled: bool) -> Check | None:
        return None

    def find(self, words: str) -> list[Statement[Check]]:
        return [statement for line in lines_of(words) if (statement := self._of_line(line))]

    def _of_line(self, line: Line) -> Statement[Check] | None:
        label, separator, stated = line.text.partition(":")
        named = _LABEL.fullmatch(label.strip(" *_")) if separator else None
        answer = answer_of(bare(stated)) if named else None
        if named is None or answer is None:
            return None
        if named["only"] and self.count > 1:
            return None
        number = int(named["number"] or 1)
        return Statement(line.start, line.end, Check(number, answer))

    def disagrees(self, line: str, value: Check) -> re.Match[str] | None:
        for match in _MENTION.finditer(line):
            if int(match[1]) == value.number and answer_of(match[2]) != value.answer:
                return match
        return None


def answer_of(text: str) -> CriterionAnswer | None:
    """Return the answer that a short text consists of; None for anything else.

    >>> answer_of("Yes"), answer_of("N/A"), answer_of("Not applicable"), answer_of("yes, mostly")
    ('yes', 'not applicable', 'not applicable', None)
    """
    match = _VALUE.fullmatch(" ".join(text.split()))
    if match is None:
        return None
    return "yes" if match["yes"] else "no" if match["no"] else "not applicable"


_QUOTATION = re.compile(r"^\W*quotation[ ]?(\d{1,3})?\W*?:[*_ ]*", re.IGNORECASE)
_OTHER_LABEL = re.compile(r"^\W*(?:criterion|quotation|answer)[ ]?\d{0,3}\W*?:", re.IGNORECASE)
_NOTHING_QUOTED = frozenset({"", "none", "nothing", "empty", "n/a", "no quotation"})


def read_quotations(text: str, count: int) -> list[str]:
    """Return the text after ``Quotation 1:`` to ``Quotation n:``; empty if there is none.

    A quotation may have several lines. It ends before the next label.

    >>> read_quotations('Quotation 1: "Take 5 mg."\\nCriterion 1: yes\\nQuotation 2: none', 2)
    ['Take 5 mg.', '']
    """
    found: dict[int, list[str]] = {}
    current: list[str] | None = None
    for line in text.split("\n"):
        if match := _QUOTATION.match(line):
            current = found[int(match[1] or 1)] = [line[match.end() :]]
        elif _OTHER_LABEL.match(line):
            current = None
        elif current is not None:
            current.append(line)
    return [quoted("\n".join(found.get(number, ()))) for number in range(1, count + 1)]


_MARKS = {'"': '"', "“": "”", "„": "“", "«": "»", "‘": "’", "'": "'", "「": "」"}


def quoted(text: str) -> str:
    """Return a quotation without the quotation marks around it; empty for words such as "none".

    >>> quoted(' "It rained." '), quoted("None"), quoted("'80s and '90s'")
    ('It rained.', '', "'80s and '90s'")
    """
    text = text.strip()
    closing = _MARKS.get(text[:1])
    inner = text[1:-1]
    if closing is not None and len(text) > 1 and text[-1] == closing and closing not in inner:
        text = inner.strip()
    return "" if text.casefold().strip("()[]-–—. ") in _NOTHING_QUOTED else text


def is_verbatim(quotation: str, text: str) -> bool:
    """Return whether a quotation occurs in a text word for word.

    Case, markup, punctuation and spacing do not count, as wherever replies are compared with texts.

    >>> is_verbatim("take **5 mg** daily", "Take 5 mg\\ndaily."), is_verbatim("Take 6 mg", "Take 5 mg daily.")
    (True, False)
    """
    wanted = fold(quotation).flat.strip()
    if not wanted:
        # Only signs, such as an emoji.
        return quotation.strip() in text
    return any(wanted in fold(form).flat for form in (text, unmarked(plain(latin(text)))))


def check_quotations(quotations: Sequence[str], text: str, reply: str) -> None:
    """Check that all quotations are words of the candidate.

    Raises:
        ReplyError: names the first that is not.
    """
    for number, quotation in enumerate(quotations, start=1):
        if quotation and not is_verbatim(quotation, text):
            shown = quotation if len(quotation) <= 120 else f"{quotation[:120]}..."
            raise ReplyError(
                f"The quotation for criterion {number} is not in the candidate: {shown!r}. "
                "Copy its words exactly, or leave the quotation empty.",
                reply,
                "missing",
            )
