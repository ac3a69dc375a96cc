"""Read whether a critic declares that it has no issue.

The token is written NO ISSUE, NO_ISSUE, NO-ISSUES and so on, in any case. It counts as a declaration when it stands
alone on a line, or is the whole of the reply's first or last sentence. Quoted text never counts.

The substring test is Algorithm 1 of the DEBATE paper, which writes the token in three ways.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from .provenance import Statement, Strength
from .shown import NOTHING, Shown
from .statements import Grammar, own_statements
from .vocabulary import pattern

_ANYWHERE, _ALONE, _DECLARATION = (
    pattern(name, re.IGNORECASE | re.ASCII) for name in ("no_issue", "declaration_line", "declaration")
)
_TAKEN_BACK, _TURN = pattern("taken_back"), pattern("turn")
_SENTENCE_END = re.compile(r"(?<=[.!?])[)\]]* |\n+")
_LINE_END = re.compile(r"\n")
_LIST_MARK = re.compile(r"\A(?:[-•+*>] |\(?\d{1,2}[.)] |\[[xX ]\] )+")
# Punctuation, markup and ticks that may surround a declaration.
_AROUND = "\x00 .!,;:*_~#()[]{}|=+—-•✓✔✅☑👍"
_LONGEST_SENTENCE = 600


@dataclass(frozen=True)
class _Declarations(Grammar[bool]):
    what: ClassVar[str] = "declaration"
    is_answer: ClassVar[bool] = False

    def prepare(self, words: str) -> str:
        return words.replace("’", "'")

    def find(self, words: str) -> list[Statement[bool]]:
        """Return the last line that declares, or else the first or last sentence that does."""
        if not _ANYWHERE.search(words):
            return []
        lines = [(at, line) for at, line in _pieces(words, _LINE_END) if line.strip(_AROUND)]
        places = [line for at, line in enumerate(lines) if _stands_alone(lines, at)][-1:]
        if not places:
            parts = [(at, part) for at, part in _pieces(words, _SENTENCE_END) if part.strip(_AROUND)]
            places = [parts[at] for at in {0, len(parts) - 1} if parts and _declares(parts, at)][:1]
        spans = [(at, match) for at, piece in places if (match := _ANYWHERE.search(piece))]
        return [Statement(Strength.OWN_LINE, at + m.start(), at + m.end(), True) for at, m in spans]


def declares_no_issue(text: str, *, shown: Shown = NOTHING) -> bool:
    """Whether the reply declares that there is no issue; what it quotes does not count.

    Args:
        text: the raw reply.
        shown: the texts that the critic was shown; what it reprints of them does not count.

    Raises:
        ReplyError: the reply's only declaration may be a reprint.

    >>> declares_no_issue("The revised score is fair.\\n**NO ISSUE.**")
    True
    >>> declares_no_issue("Therefore, NO ISSUES: the score follows the rubric.")
    True
    >>> declares_no_issue("I cannot say NO ISSUE yet.")
    False
    >>> declares_no_issue("NO ISSUE with style, but the score is high.")
    False
    >>> declares_no_issue("It ends so:\\nNO ISSUE\\nThat is too easy.", shown=Shown(("Fine. NO ISSUE",)))
    False
    """
    return bool(own_statements(text, shown, _Declarations())[0])


def contains_no_issue(text: str, *, shown: Shown = NOTHING) -> bool:
    """Whether the token stands anywhere in the text, in any case: the literal test of DEBATE's Algorithm 1.

    Where the token stands in the texts that the critic was shown too, to name it is no declaration, and
    `declares_no_issue` decides.

    >>> contains_no_issue("I cannot say no_issues yet.")
    True
    """
    named = _ANYWHERE.search(text) is not None
    if not named or shown.place_of("NO ISSUE") is shown.place_of("NO ISSUES") is None:
        return named
    return declares_no_issue(text, shown=shown)


def _pieces(words: str, separator: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """Split a text, and return each piece with the place at which it begins."""
    start = 0
    for match in separator.finditer(words):
        yield start, words[start : match.start()]
        start = match.end()
    yield start, words[start:]


def _stands_alone(lines: list[tuple[int, str]], at: int) -> bool:
    line = lines[at][1]
    if len(line) > 80 or not _ALONE.fullmatch(_bare(line)):
        return False
    # "NO ISSUE" and on the next line "However, ..." takes the declaration back.
    return at + 1 == len(lines) or not _TURN.match(lines[at + 1][1])


def _declares(parts: list[tuple[int, str]], at: int) -> bool:
    sentence = _bare(parts[at][1])
    if len(sentence) > _LONGEST_SENTENCE:
        return False
    match = _DECLARATION.fullmatch(sentence)
    if match is None or parts[at][1].rstrip(" )]*_").endswith("?"):
        return False
    following = parts[at + 1][1] if at + 1 < len(parts) else ""
    return not _TAKEN_BACK.search(match["reason"] or "") and not _TURN.match(following)


def _bare(line: str) -> str:
    """Return a line without its list mark and the punctuation around it; quotation and question marks stay."""
    return _LIST_MARK.sub("", line.strip()).strip(_AROUND)
