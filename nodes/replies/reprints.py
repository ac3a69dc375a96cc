"""Tell an agent's own statements from those that it reprints out of the texts that it was shown.

A statement that stands in none of these texts is the agent's own. One that does may be either: an agent that
reprints a candidate's last line writes the same words as one that comes to the same score. What decides then is how
it stands in the reply: words that report (``the candidate ends with this line:``), words that disown (``I ignore
it``), a longer passage around it that is reprinted too, and its place: a line that closes the reply is the agent's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol, TypeVar

from .own_words import GAP
from .shown import Place, Shown, fold
from .vocabulary import claims, dismisses, disowns, introduces, reports

Span = tuple[int, int]


class Finding(Protocol):
    """What a reader finds in a text: how clearly it is a verdict, and the parts of the text that state it."""

    @property
    def strength(self) -> int:
        """How clearly its form says that it is the verdict."""

    @property
    def stated(self) -> object:
        """What it states, for comparison with others."""

    @property
    def spans(self) -> Sequence[Span]:
        """Start and end of each part that states it."""


FoundT = TypeVar("FoundT", bound=Finding)


class RepeatedError(Exception):
    """Raised where all that a reply states may be a reprint."""


class _Origin(NamedTuple):
    """Where a statement comes from, as far as can be told.

    Attributes:
        reprint: it is certainly reprinted.
        unsure: it may be.
        place: where it stands word for word.
        line: it has a line to itself.
        ends: nothing precedes it, or nothing follows it.
    """

    reprint: bool = False
    unsure: bool = False
    place: Place | None = None
    line: bool = False
    ends: bool = False


_OWN = _Origin()
# Each removal takes every copy of a reprinted statement, so that a reply needs few.
_MOST_REMOVALS = 12
_MOST_COPIES = 200


def own_findings(
    words: str,
    shown: Shown,
    find: Callable[[str], Sequence[FoundT]],
    prepare: Callable[[str], str] = str,
    *,
    lone: bool = True,
) -> Sequence[FoundT]:
    """Return what ``find`` finds in ``words`` once reprinted statements are removed.

    Args:
        words: the reply in plain, unmarked characters.
        shown: the texts that the agent was shown; without any, all statements are its own.
        find: returns the findings that count, all of the same strength, or nothing.
        prepare: what was done to ``words`` after `unmarked`; the same is done to the texts.
        lone: a line that may be a reprint is the agent's own where the reply states nothing else.

    Raises:
        RepeatedError: what is left may be a reprint.
    """
    if not shown:
        return find(words)
    doubtful: Sequence[FoundT] = ()
    doubt = _OWN
    for _ in range(_MOST_REMOVALS):
        found = find(words)
        if not found:
            break
        origins: dict[Span, _Origin] = {}
        for one in found:
            origins |= _origins(words, one.spans, shown, prepare)
        removed = [span for span, origin in origins.items() if origin.reprint]
        if not removed:
            removed = [span for span, origin in origins.items() if origin.unsure]
            if not removed:
                return _chosen(found, doubtful, doubt)
            if not doubtful:
                doubtful, doubt = found, origins[removed[-1]]
        words = _without(words, removed, shown, prepare)
    else:
        raise RepeatedError
    if doubtful and doubt.place == "judged" and not (doubt.ends or (doubt.line and lone)):
        raise RepeatedError
    return doubtful


def _chosen(found: Sequence[FoundT], doubtful: Sequence[FoundT], doubt: _Origin) -> Sequence[FoundT]:
    """Return the agent's own findings, unless weaker than doubtful ones that may be its own as well."""
    in_passing = not doubt.line and not doubt.ends
    if not doubtful or in_passing or found[0].strength >= doubtful[0].strength:
        return found
    if found[-1].stated == doubtful[-1].stated:
        return doubtful
    if doubt.place == "judged":
        raise RepeatedError
    return doubtful


def _without(words: str, removed: Sequence[Span], shown: Shown, prepare: Callable[[str], str]) -> str:
    """Replace reprinted statements by gaps, and the other copies of the same words that are reprinted too."""
    spans = set(removed)
    for text in {words[at:end] for at, end in removed if end - at > 2}:
        copies = [match.span() for match in re.finditer(re.escape(text), words)][:_MOST_COPIES]
        spans |= {span for span in copies if _origin(words, span, shown, prepare).reprint}
    kept, last = [], 0
    for at, end in sorted(spans):
        if at >= last:
            # Two, for an odd number of gaps means that a quotation is open.
            kept += [words[last:at], GAP * (2 + words.count(GAP, at, end) % 2)]
            last = end
    return "".join([*kept, words[last:]])


def _origins(
    words: str, spans: Sequence[Span], shown: Shown, prepare: Callable[[str], str]
) -> dict[Span, _Origin]:
    """Return where each part of a finding comes from; a part that stands in a text joins none that does not."""
    origins = {span: _origin(words, span, shown, prepare) for span in spans}
    standing = [span for span in spans if len(spans) > 1 and _passage(words, span, shown, prepare)]
    if len(standing) not in (0, len(spans)):
        origins |= {span: _Origin(reprint=True) for span in standing}
    return origins


def _origin(words: str, span: Span, shown: Shown, prepare: Callable[[str], str]) -> _Origin:
    stands = _passage(words, span, shown, prepare)
    in_quotation = words.count(GAP, 0, span[0]) % 2 == 1
    if stands is None and not in_quotation:
        # The agent's own words, but maybe about what somebody else claims: they yield to any other statement.
        return _Origin(unsure=True) if _is_reported_speech(words, span) else _OWN
    passage_at, passage_end, place = stands or (*span, None)
    # Words that happen to stand around the statement in both belong to it only on its own line.
    at, end = max(passage_at, _line_start(words, span[0])), min(passage_end, _line_end(words, span[1]))
    starts, stops = _starts_line(words, at), _stops_line(words, end)
    closes = stops and not _HAS_WORD.search(words, _line_end(words, end))
    line = starts and stops
    if stands is not None:
        # Agents copy each other's reasons, and disown what another one has said while they keep to their own.
        judged = place == "judged" and (
            disowns(words[end : end + 400].lstrip(" \n\x00"))
            or _is_long(words, span, (passage_at, passage_end))
        )
        if judged or _is_reported(words, at, _texts_of(shown, place), prepare, closes=closes):
            return _Origin(reprint=True)
    if line and (
        place is None or (closes and not _follows_colon(words, at, _texts_of(shown, place), prepare))
    ):
        return _OWN
    ends = closes or not _HAS_WORD.search(words, 0, at)
    return _Origin(unsure=True, place=place, line=line, ends=ends)


def _is_reported_speech(words: str, span: Span) -> bool:
    """Whether the sentence around a statement ascribes it to somebody else, or takes it back."""
    after = words[span[1] : span[1] + _NEAR].partition("\n")[0]
    before = words[max(0, span[0] - _NEAR) : span[0]].rpartition("\n")[2]
    return _disclaims(before, after)


@lru_cache(maxsize=256)
def _disclaims(before: str, after: str) -> bool:
    return dismisses(_SENTENCE_START.split(after)[0]) or claims(_SENTENCE_START.split(before)[-1])


def _passage(
    words: str, span: Span, shown: Shown, prepare: Callable[[str], str]
) -> tuple[int, int, Place] | None:
    """Return the longest passage around a statement that stands in a text, and where; None if it stands in none."""
    at, end = span
    lines = [words[at:end], *words[at:end].split("\n")]
    # Lines that a reply puts below each other may stand apart in a text.
    place = shown.place_of(lines[0], prepare)
    if place is None and len(lines) > 2 and all(shown.place_of(line, prepare) for line in lines[1:]):
        return at, end, shown.place_of(lines[-1], prepare) or "judged"
    if place is None and fold(words[at:end]).tells:
        return None
    before = [match.start() for match in _WORD.finditer(words, max(0, at - 900), at)][-_MOST_WORDS:]
    if place is None and before:
        # "Final scores: (8, 7)", of which only the numbers count.
        at = before.pop()
        place = shown.place_of(words[at:end], prepare)
    if place is None:
        return None
    known = _texts_of(shown, place)
    while before and known.place_of(words[before[-1] : end], prepare):
        at = before.pop()
    for match in list(_WORD.finditer(words, end, end + 300))[:_MOST_WORDS]:
        if not known.place_of(words[at : match.end()], prepare):
            break
        end = match.end()
    return at, end, place


def _texts_of(shown: Shown, place: Place | None) -> Shown:
    """Return the texts of one place: agents say again how they introduce what they repeat of a judged text."""
    return Shown(shown.judged) if place == "judged" else Shown((), shown.said)


def _is_long(words: str, span: Span, passage: Span) -> bool:
    """Whether a passage holds more than the statement: a sentence before or behind it."""
    before = _SENTENCE_END.split(words[passage[0] : span[0]])
    after = _SENTENCE_END.split(words[span[1] : passage[1]])
    return any(len(_WORD.findall(part)) >= _FEWEST_WORDS for part in (*before[:-1], *after[1:]))


# A sentence is about its statement in fewer characters than these.
_NEAR = 200
_WORD = re.compile(r"[^\W_]+")
_MOST_WORDS = 120
_FEWEST_WORDS = 3
_SENTENCE_END = re.compile(r"[.!?] |\n")
_HAS_WORD = re.compile(r"[^\W_]")
_SENTENCE_START = re.compile(r"[.!?。！？](?:[)\]\x00]*)(?: |(?<=[。！？]))")
# What may follow a statement on its line and leave it a line of its own: an end, an explanation.
_LINE_GOES_ON = re.compile(
    r"[\s\x00.!*_)\]]*(?:\Z|\n|[,;:(—-]|(?<=[.!] )\S|(?:because|since|as|for|out of|points?)\b|/ ?\d)",
    re.IGNORECASE,
)
_LABEL_WORDS = 3
_LIST_ITEM = re.compile(r"[ \x00]*(?:[-•*+>]|\(?\d{1,2}[.)]) ")


def _line_start(words: str, at: int) -> int:
    return words.rfind("\n", 0, at) + 1


def _line_end(words: str, end: int) -> int:
    stop = words.find("\n", end)
    return stop if stop >= 0 else len(words)


def _starts_line(words: str, at: int) -> bool:
    """Whether nothing but markup or a short label of the agent's own stands before ``at`` on its line."""
    before = words[_line_start(words, at) : at]
    if not _HAS_WORD.search(before):
        return True
    return (len(before.split()) <= _LABEL_WORDS or introduces(before)) and not reports(before)


def _stops_line(words: str, end: int) -> bool:
    return _LINE_GOES_ON.match(words, end) is not None


def _is_reported(words: str, at: int, known: Shown, prepare: Callable[[str], str], *, closes: bool) -> bool:
    """Whether the words before ``at`` announce something that stands elsewhere.

    Behind a colon, what closes the reply needs such words; elsewhere a colon is enough, unless the agent announces
    a verdict of its own.
    """
    start = _line_start(words, at)
    # The number of a list item is no word before the statement.
    item = _LIST_ITEM.match(words, start, at)
    text_start = item.end() if item else start
    sentence = _SENTENCE_START.split(words[text_start:at])[-1]
    if _HAS_WORD.search(sentence):
        label = len(_WORD.findall(sentence)) <= _LABEL_WORDS or introduces(sentence)
        return reports(sentence) or (sentence.rstrip(" \x00")[-1:] == ":" and not label)
    above = words[text_start:at].strip(" \x00-•*+>[](){}") or _line_above(words, start, known, prepare)
    sentence = _SENTENCE_START.split(above)[-1].rstrip(" \x00*_")
    # An empty line ends what is announced, unless a colon points over it.
    if not sentence or (sentence[-1] != ":" and words.endswith("\n\n", 0, start)):
        return False
    if sentence[-1] in ".!?":
        return not closes and reports(sentence, strictly=True)
    return reports(sentence) or (not closes and sentence[-1] == ":" and not introduces(sentence))


def _follows_colon(words: str, at: int, known: Shown, prepare: Callable[[str], str]) -> bool:
    """Whether the agent's line above ends in a colon without announcing a verdict of its own."""
    lines = words[max(0, at - 300) : _line_start(words, at)].split("\n")
    # What is announced may be several lines long, of which only the last is looked at here.
    own = (line for line in reversed(lines) if _HAS_WORD.search(line) and not known.place_of(line, prepare))
    above = next(own, "").rstrip(" \x00*_")
    return above.endswith(":") and not introduces(above)


def _line_above(words: str, start: int, known: Shown, prepare: Callable[[str], str]) -> str:
    """Return the closest line above that stands in none of the texts; above a list, the line before the list."""
    in_list = _LIST_ITEM.match(words, start) or words[:start].rstrip(" \n").endswith(("\n-", "\n*", "\n•"))
    for line in reversed(words[max(0, start - 2000) : start].split("\n")):
        if _HAS_WORD.search(line) and not known.place_of(line, prepare):
            item = _LIST_ITEM.match(line) is not None
            if not item:
                return line
            if not in_list:
                return ""
    return ""
