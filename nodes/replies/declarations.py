"""Reads whether a critic declares that there is no issue (DEBATE, section 2 and Algorithm 1).

The token is written NO ISSUE, NO_ISSUE, NO-ISSUES and so on, in any case. It is a declaration if it
is alone on a line, or is the whole first or last sentence of the reply. The sentence may have a
lead-in such as "Therefore," or "Verdict:", and a following clause that does not take the
declaration back. Quoted text never counts.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import ClassVar

from .provenance import Grammar, Statement
from .shown import NOTHING, Shown
from .statements import lines_of, own_statements

_FLAGS = re.IGNORECASE | re.ASCII | re.VERBOSE
# The three spellings of the paper, and their plural.
_TOKEN = r"NO[ _-]ISSUES?"
_LABEL = r"""
    (?:(?:my|the|final|overall|critic'?s?|our)\ ){0,3}                                  # Final verdict: NO ISSUE
    (?:verdict|decision|conclusion|answer|declaration|statement|judge?ment|feedback|response|result|status|assessment
      |outcome|position|critic|critique|summary|reply|ruling)
    (?:\ is|\ stands|\ remains)?
"""
_ADVERB = r"""(?:
    therefore|thus|hence|so|then|overall|finally|accordingly|consequently                # Therefore, NO ISSUE
  | in\ (?:conclusion|summary|short|sum|the\ end|that\ case|this\ case)
  | to\ (?:conclude|sum\ up|summari[sz]e) | as\ a\ result | on\ balance | all\ in\ all
  | after\ (?:\w+\ ){0,4}?(?:review|reconsideration|reflection|consideration|this|all)  # After this revision: NO ISSUE
  | given\ (?:this|that|these|the\ above|all\ this|the\ revision)
  | with\ (?:this|that)(?:\ revision|\ change)? | for\ (?:these|this|that|those)\ reasons?
  | yes|okay|ok|agreed|very\ well|fair\ enough|good|great|well|done|understood|correct|now|and
  | this\ time|at\ this\ point
  | having\ (?:\w+\ ){1,6}?\w+
)"""
_SPEECH = r"""
    (?:i|we)                                                                             # I declare NO ISSUE
    (?:\ (?:therefore|thus|hence|now|hereby|must|can\ only|can\ now|also|fully|will|would|have\ to|accordingly|can|do
      |am\ satisfied\ and|still))*
    \ (?:declare|say|conclude|state|answer|find|have|see|report|concur|agree|raise|am\ satisfied|accept)
    (?:\ with\ (?:the|this|its|that|your)\ [\w\ ,']{1,40}? | \ (?:the|this)\ [\w'\ ]{1,40}?
      |(?:\ that)?\ there\ (?:is|are) | \ that)?
"""
_APPROVAL = r"""
    (?:the|this|that|its|your)\ (?:[\w-]+\ ){0,4}?                                      # The score is fair: NO ISSUE
    (?:is|are|seems?|looks?|stands?|appears?)(?:\ now|\ well|\ fully|\ indeed|\ quite|\ entirely)*
    \ (?:fair|justified|accurate|reasonable|appropriate|acceptable|correct|well-justified|sound|right|fine|good
      |convincing|solid|warranted)
"""
_LEAD = rf"""(?:
    (?:{_LABEL} | {_ADVERB} | {_SPEECH} | {_APPROVAL})
    (?:\ ?[,:;—=-]+(?=\ |$) | \ ?:)?(?:\ so|\ and|\ therefore|\ thus)?\ ?
)"""
_TAIL = r"""
    (?:\ (?:found|identified|detected|remains?|remaining|left|here|at\ all|whatsoever|to\ (?:raise|report)
      |from\ (?:me|my\ side)|on\ my\ side|any\ ?more))?                                  # NO ISSUE found
"""
_ANYWHERE = re.compile(_TOKEN, re.IGNORECASE | re.ASCII)
# A line that declares.
_ALONE = re.compile(rf"(?:{_LABEL}\ ?[:=—-]\ ?)?{_TOKEN}", _FLAGS)
# A sentence that declares. A reason after the token must not take the declaration back.
_DECLARATION = re.compile(
    rf"""
    {_LEAD}{{0,4}}(?<![\w'-])(?P<token>{_TOKEN}){_TAIL}
    (?:(?:\ ?[:,;—]|,?\ ?-+(?=\ ))(?P<reason>[^\n]*))?
    """,
    _FLAGS,
)
_AGAINST = (
    r"but|however|except|although|though|yet|still|nevertheless|nonetheless|that\ said|even\ so"
    r"|on\ second\ thought|wait"
)
_SUPPOSING = (
    r"unless|until|despite|apart\ from|aside\ from|other\ than|save\ for|if|once|provided|assuming|otherwise|whereas"
    r"|not\ so|far\ from|just\ kidding"
)
_TAKEN_BACK = re.compile(rf"\b(?:{_AGAINST}|{_SUPPOSING})\b", re.IGNORECASE | re.VERBOSE)
# The beginning of a next sentence that contradicts the declaration.
_TURN = re.compile(rf"\W*(?:{_AGAINST}|or\ (?:rather|is|would))\b", re.IGNORECASE | re.VERBOSE)
_SENTENCE_END = re.compile(r"(?<=[.!?])[)\]]* |\n+")
_LINE_END = re.compile(r"\n")
_LIST_MARK = re.compile(r"\A(?:[-•+*>] |\(?\d{1,2}[.)] |\[[xX ]\] )+")
# Punctuation, markup and ticks that may surround a declaration.
_AROUND = "\x00 .!,;:*_~#()[]{}|=+—-•✓✔✅☑👍"


class _Declarations(Grammar[bool]):
    what: ClassVar[str] = "declaration"
    is_answer: ClassVar[bool] = False

    def find(self, words: str) -> list[Statement[bool]]:
        """Return the lines that declare, otherwise the first and the last sentence if they do."""
        if not _ANYWHERE.search(words):
            return []
        words = words.replace("’", "'")
        lines = _pieces(words, _LINE_END)
        places = [line for at, line in enumerate(lines) if _declares(lines, at, _ALONE, 80)]
        if not places:
            parts = _pieces(words, _SENTENCE_END)
            ends = sorted({0, len(parts) - 1}) if parts else []
            places = [parts[at] for at in ends if _declares(parts, at, _DECLARATION, 600)]
        spans = [next(_ANYWHERE.finditer(words, at)).span() for at, _ in places]
        return [Statement(*span, True) for span in spans]


def declares_no_issue(text: str, *, shown: Shown = NOTHING) -> bool:
    """Return whether the reply declares that there is no issue; quoted text does not count.

    Args:
        text: the raw reply.
        shown: the texts that the critic was shown; text repeated from them does not count.

    Raises:
        ReplyError: the only declaration may be repeated from a shown text.

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
    return bool(own_statements(text, shown, _Declarations()).statements)


_UNSURE = re.compile(
    r"""
    (?:(?:final\ )?                      # Final score: UNSURE
       (?:scores?|verdict|judge?ment)    # Verdict: UNSURE
       \ ?[:=]\ ?)?
    unsure                               # UNSURE
    """,
    re.IGNORECASE | re.VERBOSE,
)


class _Unsure(Grammar[bool]):
    what: ClassVar[str] = "declaration"
    is_answer: ClassVar[bool] = False

    def find(self, words: str) -> list[Statement[bool]]:
        return [
            Statement(line.start, line.end, True)
            for line in lines_of(words)
            if _UNSURE.fullmatch(line.text)
        ]


def declares_unsure(text: str, *, shown: Shown = NOTHING) -> bool:
    """Return whether the reply declares UNSURE on a line of its own.

    Args:
        text: the raw reply.
        shown: the texts that the judge was shown; text repeated from them does not count.

    Raises:
        ReplyError: the only declaration may be repeated from a shown text.

    >>> declares_unsure("I cannot verify either.\\n**UNSURE**"), declares_unsure("I am unsure.\\nScore: 3")
    (True, False)
    """
    return bool(own_statements(text, shown, _Unsure()).statements)


def contains_no_issue(text: str, *, shown: Shown = NOTHING) -> bool:
    """Return whether the token occurs anywhere in the text (the literal test of Algorithm 1).

    Case does not matter. If the token also occurs in the texts that the critic was shown, naming it
    is not a declaration, and `declares_no_issue` decides.

    >>> contains_no_issue("I cannot say no_issues yet.")
    True
    """
    named = _ANYWHERE.search(text) is not None
    if not named or shown.place_of("NO ISSUE") is shown.place_of("NO ISSUES") is None:
        return named
    return declares_no_issue(text, shown=shown)


def _pieces(words: str, separator: re.Pattern[str]) -> list[tuple[int, str]]:
    """Split a text, and return each piece with words and its start position."""
    gaps = [
        (0, 0),
        *(match.span() for match in separator.finditer(words)),
        (len(words), len(words)),
    ]
    pieces = [(end, words[end:start]) for (_, end), (start, _) in pairwise(gaps)]
    return [(at, piece) for at, piece in pieces if piece.strip(_AROUND)]


def _declares(pieces: list[tuple[int, str]], at: int, form: re.Pattern[str], longest: int) -> bool:
    """Return whether a line or sentence declares, and no following words take it back."""
    piece = pieces[at][1]
    # Quotation and question marks stay.
    bare = _LIST_MARK.sub("", piece.strip()).strip(_AROUND)
    match = form.fullmatch(bare) if len(piece) <= longest else None
    if match is None or piece.rstrip(" )]*_").endswith("?"):
        return False
    # "NO ISSUE" and on the next line "However, ..."
    turns = at + 1 < len(pieces) and _TURN.match(pieces[at + 1][1])
    return not turns and not _TAKEN_BACK.search(match.groupdict().get("reason") or "")
