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
from .vocabulary import WORDS, in_any_case, one_of

# The three spellings of the paper, and their plural.
_TOKEN = r"NO[ _-]ISSUES?"
_ANYWHERE = in_any_case(_TOKEN, re.ASCII)

# A label in front of the declaration: ``Final verdict: NO ISSUE``.
_LABEL = (
    r"(?:(?:my|the|final|overall|critic'?s?|our) ){0,3}(?:verdict|decision|conclusion|answer|declaration|statement"
    r"|judge?ment|feedback|response|result|status|assessment|outcome|position|critic|critique|summary|reply"
    r"|ruling)(?: is| stands| remains)?"
)
# ``Therefore, NO ISSUE``; ``After this revision: NO ISSUE``.
_ADVERB = (
    r"(?:therefore|thus|hence|so|then|overall|finally|accordingly|consequently|in (?:conclusion|summary|short|sum"
    r"|the end|that case|this case)|to (?:conclude|sum up|summari[sz]e)|as a result|on balance|all in all"
    r"|after (?:\w+ ){0,4}?(?:review|reconsideration|reflection|consideration|this|all)|given (?:this|that|these"
    r"|the above|all this|the revision)|with (?:this|that)(?: revision| change)?|for (?:these|this|that"
    r"|those) reasons?|yes|okay|ok|agreed|very well|fair enough|good|great|well|done|understood|correct|now|and"
    r"|this time|at this point|having (?:\w+ ){1,6}?\w+)"
)
# ``I therefore declare NO ISSUE``; ``I agree that there is NO ISSUE``.
_SPEECH = (
    r"(?:i|we)(?: (?:therefore|thus|hence|now|hereby|must|can only|can now|also|fully|will|would|have to|accordingly"
    r"|can|do|am satisfied and|still))* (?:declare|say|conclude|state|answer|find|have|see|report|concur|agree|raise"
    r"|am satisfied|accept)(?: with (?:the|this|its|that|your) [\w ,']{1,40}?| (?:the|this) [\w' ]{1,40}?"
    r"|(?: that)? there (?:is|are)| that)?"
)
# ``The revised score is fair: NO ISSUE``.
_APPROVAL = (
    r"(?:the|this|that|its|your) (?:[\w-]+ ){0,4}?(?:is|are|seems?|looks?|stands?|appears?)(?: now| well| fully"
    r"| indeed| quite| entirely)* (?:fair|justified|accurate|reasonable|appropriate|acceptable|correct|well-justified"
    r"|sound|right|fine|good|convincing|solid|warranted)"
)
_LEAD = rf"(?:(?:{_LABEL}|{_ADVERB}|{_SPEECH}|{_APPROVAL})(?: ?[,:;—=-]+(?= |$)| ?:)?(?: so| and| therefore| thus)? ?)"
# What may follow the token: ``NO ISSUE found``, ``NO ISSUES remaining``.
_TAIL = (
    r"(?: (?:found|identified|detected|remains?|remaining|left|here|at all|whatsoever|to (?:raise|report)"
    r"|from (?:me|my side)|on my side|any ?more))?"
)
# A reason behind the token; it must not take the declaration back.
_REASON = r"(?: ?[:,;—]|,? ?-+(?= ))(?P<reason>[^\n]*)"
_DECLARATION = in_any_case(
    rf"(?:{_LEAD}){{0,4}}(?<![\w'-])(?P<token>{_TOKEN}){_TAIL}(?:{_REASON})?", re.ASCII
)
_ALONE = in_any_case(rf"(?:{_LABEL} ?[:=—-] ?)?{_TOKEN}", re.ASCII)
_AGAINST = one_of(WORDS["against"])
# Words that take a declaration back: ``NO ISSUE, except ...``.
_SUPPOSING = one_of(WORDS["supposing"])
_TAKEN_BACK = in_any_case(rf"\b(?:{_AGAINST}|{_SUPPOSING})\b")
# A next sentence that turns against the declaration.
_TURN = in_any_case(rf"\W*(?:{_AGAINST}|or (?:rather|is|would))\b")
_SENTENCE_END = re.compile(r"(?<=[.!?])[)\]]* |\n+")
_LINE_END = re.compile(r"\n")
_LIST_MARK = re.compile(r"\A(?:[-•+*>] |\(?\d{1,2}[.)] |\[[xX ]\] )+")
# Punctuation, markup and ticks that may surround a declaration.
_AROUND = "\x00 .!,;:*_~#()[]{}|=+—-•✓✔✅☑👍"
_LONGEST_SENTENCE = 600


@dataclass(frozen=True)
class _Declarations(Grammar[bool]):
    what: ClassVar[str] = "declaration"
    reads_objects: ClassVar[bool] = False
    reads_quoted_answers: ClassVar[bool] = False
    lone_line_is_own: ClassVar[bool] = False

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
