"""Take the steps that all readers share, from a raw reply to the statements that count, or to the error it deserves.

The simplest reader follows: whether a critic declares that it has no issue.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar, TypeVar

from ...state.errors import ReplyError
from .json_fields import fields, without_repeats
from .own_words import MARK, MAY_HAVE_MARKS, OPENING, has_marks, own_words, plain, unmarked, without_reasoning
from .provenance import Grammar, Statement, Statements, Strength, ValueT, own_among
from .shown import NOTHING, RepeatedError, Shown, latin
from .vocabulary import Number, pattern, written

ScalarT = TypeVar("ScalarT", bound=float | str)


def own_statements(reply: str, shown: Shown, grammar: Grammar[ValueT]) -> tuple[Statements[ValueT], str]:
    """Return the statements that count in a reply, and its words without what they quote (none of an object).

    Args:
        reply: the raw reply.
        shown: the texts that the agent was shown.
        grammar: what is looked for.

    Raises:
        ReplyError: the reply is too long, or all that it states may be a reprint.
    """
    whole = plain(possible_answers(reply, shown)[0])
    entries = None
    if "{" in whole:
        whole = without_repeats(whole, shown)
        entries = fields(whole) if grammar.is_answer else None
    if entries is not None:
        return [Statement(Strength.LABEL, 0, 0, value) for value in grammar.from_fields(entries)], ""
    words = unmarked(own_words(whole, answers=grammar.is_answer, keep=shown != NOTHING))
    try:
        own = own_among(grammar.prepare(words), replace(shown, prepare=grammar.prepare), grammar)
    except RepeatedError as error:
        raise repeated(reply, grammar.what) from error
    return own, words


def strongest(statements: Sequence[Statement[ValueT]]) -> list[Statement[ValueT]]:
    """Return the statements of the strongest form, in the order in which they stand."""
    most = max((statement.strength for statement in statements), default=None)
    return sorted((s for s in statements if s.strength == most), key=lambda statement: statement.at)


# --- what may be the answer of a reply that reasons --------------------------------------------------------------

_LONGEST = 1_000_000


def check_length(reply: str) -> None:
    """Check that a reply, an object or not, is no longer than any agent's.

    Raises:
        ReplyError: it is.
    """
    if len(reply) > _LONGEST:
        problem = f"The reply has {len(reply):,} characters; no more than {_LONGEST:,} are read."
        # As one that ran into a limit: it is asked for again without being sent back.
        raise ReplyError(problem, reply, "cut_off")


def possible_answers(reply: str, shown: Shown) -> list[str]:
    """Return what may be the reply's answer, the longest first: what is left of it once its reasoning is cut out.

    There is one, unless a text that the agent was shown has a reasoning tag and the reply has one too. Then each tag
    may be the agent's own or quoted, and the answer counts only if it is the same either way.

    Raises:
        ReplyError: the reply is longer than any agent's.

    >>> possible_answers("<think>Is it a 5?</think>Score: 4", Shown(("A fine day.",)))
    ['Score: 4']
    >>> possible_answers("Score: 2\\nIt says:\\n</think>\\nScore: 5", Shown(("A fine day. </think> Score: 5",)))
    ['Score: 2\\nIt says:\\n</think>\\nScore: 5']
    """
    check_length(reply)
    if not MAY_HAVE_MARKS.search(reply):
        return [reply]
    texts = [text for text in (*shown.judged, *shown.speeches) if _has_marks(text)]
    if not texts or not has_marks(reply):
        return [without_reasoning(reply)]
    contexts = Shown(tuple(_unescaped(text) for text in texts))
    tags = list(MARK.finditer(reply))
    tags = tags if len(tags) <= 2 * _MOST_TAGS else tags[:_MOST_TAGS] + tags[-_MOST_TAGS:]
    # What opens at the very beginning is reasoning, and the whole reply no answer.
    opened = OPENING.match(reply) and tags[0].start() == 0 and not _is_quoted(reply, tags[0], contexts)
    closing = [tag for tag in tags if not OPENING.match(tag[0])]
    ends = [tag.end() for tag in closing if not _is_quoted(reply, tag, contexts)]
    if opened and not ends:
        ends = [tag.end() for tag in closing]
    starts = [*([] if opened else [0]), *ends[:_MOST_READINGS], *ends[-1:]]
    return [_FINAL_MARKS.sub("", reply[start:]).strip() for start in dict.fromkeys(starts)] or [""]


# A reply that has more tags quotes them over and over.
_MOST_TAGS = 20
# Each possible answer is read.
_MOST_READINGS = 2
_FINAL_MARKS = re.compile(r"(?:\s*<\|\w+\|>)+\s*\Z")
_WORDS_BESIDE = 2


def _is_quoted(reply: str, tag: re.Match[str], texts: Shown) -> bool:
    """Tell whether a tag stands in a text together with the words before or behind it."""
    before = re.findall(r"\S+", reply[max(0, tag.start() - 80) : tag.start()])[-_WORDS_BESIDE:]
    behind = re.findall(r"\S+", reply[tag.end() : tag.end() + 80])[:_WORDS_BESIDE]
    sides = ([*before, tag[0]] if before else [], [tag[0], *behind] if behind else [])
    return any(side and texts.place_of(" ".join(side)) for side in sides)


@lru_cache(maxsize=256)
def _has_marks(text: str) -> bool:
    return has_marks(text) or has_marks(_unescaped(text))


def _unescaped(text: str) -> str:
    """Return a text as a model may repeat it: letters as they look, ``&lt;`` as ``<``."""
    return latin(html.unescape(text))


# --- what is wrong with a reply -------------------------------------------------------------------------------------

_REFUSAL = pattern("refusal")
# A refusal opens a reply; further on, the same words belong to the argument ("I cannot give a 5").
_OPENING = 400


def agreed(reply: str, values: Sequence[ScalarT], what: str) -> ScalarT:
    """Return the one value that all final statements of a reply hold.

    Raises:
        ReplyError: they hold different ones.
    """
    for other in values:
        if other != values[-1]:
            both = (written(v) if isinstance(v, float) else v for v in (other, values[-1]))
            problem = f"The reply states both {' and '.join(both)} as its {what}."
            raise ReplyError(problem, reply, "contradictory")
    return values[-1]


def value_on_scale(reply: str, number: Number, low: float, high: float, what: str) -> float:
    """Return the value of a stated number.

    Raises:
        ReplyError: it gives two, or one of another scale (``7/10`` on 1 to 5), or off the scale.
    """
    value = agreed(reply, number.values, what)
    if number.out_of is not None and number.out_of != high:
        stated = f"{written(value)} out of {written(number.out_of)}, but the scale ends at {written(high)}"
    elif not low <= value <= high:
        stated = f"{written(value)}, which is off the scale {written(low)} to {written(high)}"
    else:
        return value
    raise ReplyError(f"The reply states {stated}.", reply, "off_scale")


def final_statements(reply: str, shown: Shown, grammar: Grammar[ValueT]) -> Statements[ValueT]:
    """Return the statements that count in a reply, of which there is one at least.

    Args:
        reply: the raw reply.
        shown: the texts that the agent was shown.
        grammar: what is looked for.

    Raises:
        ReplyError: the reply is empty, refuses, breaks off, just never states a value, or may only reprint one.
    """
    statements, words = own_statements(reply, shown, grammar)
    if statements:
        return statements
    if not re.search(r"\w", reply):
        raise ReplyError("The reply is empty.", reply, "empty")
    if _REFUSAL.search(words[:_OPENING].replace("’", "'")):
        raise ReplyError("The reply refuses to judge.", reply, "refused")
    if breaks_off(reply):
        raise ReplyError(f"The reply breaks off before it states a {grammar.what}.", reply, "cut_off")
    raise ReplyError(f"The reply states no {grammar.what}.", reply, "missing")


def repeated(reply: str, what: str) -> ReplyError:
    """Return the error of a reply whose only value may be a reprint of what the agent was shown."""
    problem = (
        f"The only {what} in the reply stands word for word in the texts that it is about, and may be quoted from "
        f"them; close with a {what} of your own on the last line."
    )
    return ReplyError(problem, reply, "missing")


def breaks_off(reply: str) -> bool:
    """Whether a reply ends in an open JSON object, in a label without its value, or, if long, in mid-sentence."""
    text = reply.strip()
    if text.startswith(("{", "```json\n{", "```\n{")) and text.count("{") > text.count("}"):
        return True
    if re.search(r"\b(?:score|rating|verdict)\W{0,4}\Z", text[-40:], re.IGNORECASE) and text[-1] in ":=*[(":
        return True
    return len(text) > 200 and (text[-1].isalnum() or text[-1] in ",;-(")


# --- NO ISSUE: whether a critic declares that it has none -----------------------------------------------------------

# The token is written NO ISSUE, NO_ISSUE, NO-ISSUES and so on, in any case. It counts as a declaration when it stands
# alone on a line, or is the whole of the reply's first or last sentence. Quoted text never counts. The substring test
# is Algorithm 1 of the DEBATE paper, which writes the token in three ways.

_ANYWHERE, _ALONE, _DECLARATION = (
    pattern(name, re.IGNORECASE | re.ASCII) for name in ("no_issue", "declaration_line", "declaration")
)
_TAKEN_BACK, _TURN = pattern("taken_back"), pattern("turn")
_SENTENCE_END = re.compile(r"(?<=[.!?])[)\]]* |\n+")
_LINE_END = re.compile(r"\n")
_LIST_MARK = re.compile(r"\A(?:[-•+*>] |\(?\d{1,2}[.)] |\[[xX ]\] )+")
# Punctuation, markup and ticks that may surround a declaration.
_AROUND = "\x00 .!,;:*_~#()[]{}|=+—-•✓✔✅☑👍"


class _Declarations(Grammar[bool]):
    what: ClassVar[str] = "declaration"
    is_answer: ClassVar[bool] = False

    def prepare(self, words: str) -> str:
        return words.replace("’", "'")

    def find(self, words: str) -> list[Statement[bool]]:
        """Return the last line that declares, or else the first or last sentence that does."""
        if not _ANYWHERE.search(words):
            return []
        lines = _pieces(words, _LINE_END)
        places = [line for at, line in enumerate(lines) if _declares(lines, at, _ALONE, 80)][-1:]
        if not places:
            parts = _pieces(words, _SENTENCE_END)
            places = [parts[at] for at in {0, len(parts) - 1} if _declares(parts, at, _DECLARATION, 600)][:1]
        spans = [next(_ANYWHERE.finditer(words, at)).span() for at, _ in places]
        return [Statement(Strength.OWN_LINE, *span, True) for span in spans]


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


def _pieces(words: str, separator: re.Pattern[str]) -> list[tuple[int, str]]:
    """Split a text, and return each piece that says anything with the place at which it begins."""
    gaps = [(0, 0), *(match.span() for match in separator.finditer(words)), (len(words), len(words))]
    pieces = [(end, words[end:start]) for (_, end), (start, _) in pairwise(gaps)]
    return [(at, piece) for at, piece in pieces if piece.strip(_AROUND)]


def _declares(pieces: list[tuple[int, str]], at: int, form: re.Pattern[str], longest: int) -> bool:
    """Whether a line or a sentence declares, and neither its reason nor what follows takes that back."""
    piece = pieces[at][1]
    # Quotation and question marks stay.
    bare = _LIST_MARK.sub("", piece.strip()).strip(_AROUND)
    match = form.fullmatch(bare) if len(piece) <= longest else None
    if match is None or piece.rstrip(" )]*_").endswith("?"):
        return False
    # "NO ISSUE" and on the next line "However, ..."
    turns = at + 1 < len(pieces) and _TURN.match(pieces[at + 1][1])
    return not turns and not _TAKEN_BACK.search(match.groupdict().get("reason") or "")
