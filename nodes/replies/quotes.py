"""Passages in quotation marks, found in one pass and taken out."""

from __future__ import annotations

import re

GAP = "\x00"
"""Stands where something quoted was taken out; no reply holds it, since `plain` removes control characters."""

_MARKS = re.compile("[\"'`“”„‟«»‹›「」『』‘’‚]")
_CLOSES = {"»": "«", "›": "‹", "」": "「", "』": "『"}
_CURLY = {"“": '"', "”": '"', "„": '"', "‟": '"', '"': '"', "‘": "'", "’": "'", "‚": "'", "'": "'", "`": "`"}
_AWAITING = re.compile(
    r"(?:score|rating|verdict|vote|decision|winner|choice|answer|grade|is|be|for)[:=*_ \n]{1,5}\Z",
    re.IGNORECASE,
)
_BEFORE_OPENING = " \n([{<-—:;,/=|*_" + GAP
_AFTER_CLOSING = " \n)]}>-—:;,./!?=|*_" + GAP
_LONGEST_APOSTROPHE_QUOTE = 2000
_LONGEST_ANSWER = 160


def without_quotes(text: str, *, answers: bool = True) -> str:
    """``text`` with every closed quotation replaced by a gap.

    Quotation marks pair as brackets do: a closing one with the nearest open one of its kind. A mark that is never
    closed quotes nothing. Code spans count as quotations, unless they hold a bare word or stand on a line of their own.

    >>> without_quotes('It says "Score: 5". Score: 2').replace(GAP, "...")
    'It says .... Score: 2'
    """
    kept, end = [], 0
    for start, stop in _outermost(_quotations(text)):
        inside = text[start + 1 : stop - 1]
        if text[start] == "`":
            quoted = not _is_plain_code(text, start, stop)
        else:
            quoted = not (answers and _is_answer(text, start, inside))
        kept += [text[end:start], GAP if quoted else inside]
        end = stop
    kept.append(text[end:])
    return "".join(kept)


def _quotations(text: str) -> list[tuple[int, int]]:
    """Start and end of every closed quotation, in the order in which they close."""
    spans: list[tuple[int, int]] = []
    open_marks: dict[str, list[int]] = {}
    for match in _MARKS.finditer(text):
        mark, at = match[0], match.start()
        if mark in _CURLY:
            kind, opens = _CURLY[mark], _opens(text, at, bool(open_marks.get(_CURLY[mark])))
        else:
            kind, opens = _CLOSES.get(mark, mark), mark not in _CLOSES
        if opens is None:
            continue
        stack = open_marks.setdefault(kind, [])
        if opens:
            stack.append(at)
        elif stack and not _too_far(kind, stack[-1], at, text):
            spans.append((stack.pop(), at + 1))
    return spans


def _opens(text: str, at: int, inside: bool) -> bool | None:
    """Whether the mark opens (True) or closes (False) a quotation; None for an apostrophe within a word."""
    mark = text[at]
    before = text[at - 1] if at else " "
    after = text[at + 1] if at + 1 < len(text) else " "
    may_open, may_close = before in _BEFORE_OPENING, after in _AFTER_CLOSING
    if mark in "„‟‚":
        return True
    if mark == "“" and not inside:
        return True
    if mark == "”" and inside:
        return False
    if may_open != may_close:
        return may_open
    if may_open or mark in "“”‘`":
        return not inside
    ascii_neighbours = before.isascii() and after.isascii()
    return None if ascii_neighbours and before.isalnum() and after.isalnum() else not inside


def _too_far(kind: str, start: int, at: int, text: str) -> bool:
    """Apostrophes and code spans that lie far apart do not belong together."""
    if kind == '"' or kind not in _CURLY.values():
        return False
    return (
        at - start > _LONGEST_APOSTROPHE_QUOTE
        or "\n\n" in text[start:at]
        or (kind == "`" and "\n" in text[start:at])
    )


def _outermost(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    kept: list[tuple[int, int]] = []
    for start, stop in sorted(spans, key=lambda span: (span[0], -span[1])):
        if not kept or start >= kept[-1][1]:
            kept.append((start, stop))
        elif stop > kept[-1][1]:
            kept[-1] = (kept[-1][0], stop)
    return kept


def _is_plain_code(text: str, start: int, stop: int) -> bool:
    """A code span used as emphasis: one short word or value, or a whole line."""
    line_start = text.rfind("\n", max(0, start - 8), start) + 1 or max(0, start - 8)
    line_end = text.find("\n", stop, stop + 8)
    around = text[line_start:start] + text[stop : line_end if line_end >= 0 else stop + 8]
    return (
        not around.strip(" *_-.#")
        or re.fullmatch(r"[\[(]{0,2}[\w./>=-]{1,12}[\])]{0,2}", text[start + 1 : stop - 1]) is not None
    )


def _is_answer(text: str, start: int, inside: str) -> bool:
    if len(inside) > _LONGEST_ANSWER or "\n" in inside:
        return False
    before = text[max(0, start - 16) : start]
    ends_reply = not text[start + len(inside) + 2 :][:8].strip(" .\n")
    return bool(_AWAITING.search(before) or (ends_reply and re.search(r"as follows: ?\n{0,2}\Z", before)))
