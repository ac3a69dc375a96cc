"""Read the points on single criteria out of a judge's reply, where it states them."""

from __future__ import annotations

import re

from .courtroom import CRITERIA, HIGHEST, LOWEST, SIDES
from .replies.text import own_words, plain

Points = list[list[float] | None]
"""For each answer its six points in the order of the criteria, or ``None`` where one is missing."""

_CALLED = (
    re.compile(r"relevan"),
    re.compile(r"accura"),
    re.compile(r"depth|complete"),
    re.compile(r"clarity|clear"),
    re.compile(r"reason|logic|factual"),
    re.compile(r"opponent|rebut|other side"),
)
_NUMBER = r"(\d{1,3}(?:\.\d{1,2})?)(?: ?/ ?20)?"
_LINE = re.compile(r"[^\w\n]{0,12}(?:\d{1,2}[.)] ?)?[^\w\n]{0,4}([A-Za-z][^:=\n]{0,80})[:=](.*)")
_PAIR = re.compile(rf"\W{{0,6}}[\[(] ?{_NUMBER} ?[,;|] ?{_NUMBER} ?[\])]")
_ONE = re.compile(rf"[^\w\[(]{{0,6}}{_NUMBER}(?![\d.]?\d)")
_HEADING = re.compile(r"\W{0,8}(?:answer|advocate|side|assistant) ?([12])\b\W{0,8}", re.IGNORECASE)


def read_points(reply: str, side: int | None = None) -> Points:
    """The points of each answer: from lines such as ``Relevance: [18, 15]``, or one answer's under its heading.

    Args:
        reply: the raw reply; what it quotes does not count.
        side: the answer that lines with a single number are about, where no heading says so.

    >>> read_points("Relevance: [18, 15]\\nAccuracy: [17, 12]")
    [None, None]
    """
    found: dict[tuple[int, int], float] = {}
    for line in own_words(plain(reply)).splitlines():
        heading = _HEADING.fullmatch(line)
        if heading:
            side = int(heading[1])
        elif (stated := _LINE.match(line)) and (criterion := _criterion(stated[1])) is not None:
            found |= {(answer, criterion): value for answer, value in _values(stated[2], side)}
    return [_complete(found, answer) for answer in SIDES]


def sums_that_differ(points: Points, totals: list[float]) -> list[str]:
    """What does not add up, in words; criteria that were not all stated are no fault.

    >>> sums_that_differ([[10.0] * 6, None], [61, 50])
    ['the points of answer 1 add up to 60, not to the total of 61 that is stated and counts']
    """
    return [
        f"the points of answer {answer} add up to {sum(stated):g}, not to the total of {total:g} that is stated "
        "and counts"
        for answer, stated, total in zip(SIDES, points, totals, strict=True)
        if stated is not None and abs(sum(stated) - total) > 1e-6
    ]


def _criterion(label: str) -> int | None:
    words = label.casefold()
    return next((at for at, called in enumerate(_CALLED) if called.search(words)), None)


def _values(text: str, side: int | None) -> list[tuple[int, float]]:
    pair = _PAIR.match(text)
    if pair:
        return [(answer, float(pair[answer])) for answer in SIDES]
    one = _ONE.match(text)
    return [(side, float(one[1]))] if one and side else []


def _complete(found: dict[tuple[int, int], float], answer: int) -> list[float] | None:
    points = [found.get((answer, criterion), 0) for criterion in range(len(CRITERIA))]
    return points if all(LOWEST <= value <= HIGHEST for value in points) else None
