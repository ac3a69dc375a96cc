"""Numbers that are a reply, a line or a closing sentence of their own, or that open a reply and are then explained."""

from __future__ import annotations

import re

from .numbers import NUMBER
from .values import Statement, Strength, ends_line, value_at

_LINE = re.compile(rf"(?:[-•*+>] |(?:\d{{1,2}}[.)]|[A-Za-z]\)) )?[\[(]?(?P<value>{NUMBER})")
_CLOSING = re.compile(
    rf"(?:\A|[.!?)\]\x00\n] |^|\A(?:yes|no)\b,? )\(?(?P<value>{NUMBER})(?=[^\n]{{0,24}}\Z)",
    re.IGNORECASE | re.MULTILINE,
)
_CLOSING_TAIL = re.compile(r"[\])]{0,2}(?: ?(?:/|out of) ?\d{1,3})?[.)\]! ]{0,3}")
_GLOSS = re.compile(
    r"(?:(?:the|this|it) (?:[\w ]{1,20} )?(?:is|was) )?"
    rf"(?:[\w-]{{1,24}} ){{1,4}}\((?P<value>{NUMBER})\)(?=[.!]? |[.!]?\Z)",
    re.IGNORECASE,
)
_EXPLAINED = re.compile(r"(?:[.:;,)]| ?-| ?—| ?\() ?[^\W\d_\x00]")
_NUMBERED = re.compile(r"\(?\d{1,2}[.)] ")


def bare(words: str) -> list[Statement]:
    """The number that stands for itself; all of them where several lines hold different ones.

    >>> bare("The text is clear.\\n4")[0].values
    (4.0,)
    >>> bare("1. Short\\n2. Clear")
    []
    """
    lines = [(match.start(), match[0]) for match in re.finditer(r"[^\n]+", words)]
    found = [one for at, line in lines if (one := _whole_line(line, at)) is not None]
    if found:
        values = tuple(dict.fromkeys(value for one in found for value in one.values))
        return [found[-1]._replace(values=values)]
    return _closing(words) or _opening(lines)


def _whole_line(line: str, at: int) -> Statement | None:
    match = _LINE.match(line)
    if match is None or not ends_line(line, match.end("value")):
        return None
    statement = value_at(line, match, Strength.BARE)
    return statement._replace(at=at) if statement is not None else None


def _closing(words: str) -> list[Statement]:
    """``The text is well made. 4``."""
    for match in reversed(list(_CLOSING.finditer(words, max(0, len(words) - 40)))):
        statement = value_at(words, match, Strength.BARE)
        if statement is not None and _CLOSING_TAIL.fullmatch(words, match.end("value")):
            return [statement]
    return []


def _opening(lines: list[tuple[int, str]]) -> list[Statement]:
    """``2. The response is somewhat interesting``, ``Rather good (4)``; a numbered list is none."""
    if not lines or sum(_NUMBERED.match(line) is not None for _, line in lines) > 1:
        return []
    first = lines[0][1]
    match = _GLOSS.match(first) or _LINE.match(first)
    if match is None or (match.re is _LINE and not _EXPLAINED.match(first, match.end("value"))):
        return []
    statement = value_at(first, match, Strength.BARE)
    return [statement] if statement is not None else []
