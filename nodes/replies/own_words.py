"""Reduces a reply to its own words: without reasoning, quotations and markup.

A reply may quote the judged text, another agent or the prompt. If these texts are unknown, fenced
sections, block quotes, code fences and passages in quotation marks are data: ``own_words`` removes
them before anything is read. If they are known (``keep``), such passages stay between two gaps, and
``provenance`` decides. Every step is linear in the length of the reply: runs are collapsed first,
and patterns have bounded repetitions.

Order of use: ``without_reasoning``, ``plain`` (characters), ``own_words`` (quotations),
``unmarked`` (Markdown, tables, tags).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

# Characters whose plain form does not follow from their Unicode category.
_UNPLAIN = (
    "\u2044\u2215\u2212\u2015\u2014\u3030\u066b\u066c\u3010\u3011\u3014\u3015\u2028\u2029\x85"
)
_SINGLE: dict[int, str | None] = dict(
    zip(map(ord, _UNPLAIN), "//-\u2014\u2014\u3030.,[][]\n\n\n", strict=True)
)
_SINGLE |= {0x3001: ", ", 0x3002: ". ", 0xFF61: ". ", 0x20E3: None, 0x00BD: ".5"}
_SINGLE |= dict.fromkeys(range(0xFE00, 0xFE10))  # invisible variation selectors
_BY_CATEGORY: dict[str, str | None] = {"Cf": None, "Co": None, "Cs": None, "Zs": " ", "Pd": "-"}


class CharMap(dict[int, str | None]):
    """A character map for ``str.translate`` that computes each character's change on first use."""

    def __init__(
        self, change: Callable[[str], str | None], known: Mapping[int, str | None] | None = None
    ):
        super().__init__(known or {})
        self._change = change

    def __missing__(self, code: int) -> str | None:
        self[code] = changed = self._change(chr(code))
        return changed


def _plainer(char: str) -> str | None:
    """Return digits, blanks, dashes and fullwidth forms as ASCII; None: invisible."""
    if "\uff01" <= char <= "\uff5e" and not char.isalpha():
        return chr(ord(char) - 0xFEE0)
    kind = unicodedata.category(char)
    return str(unicodedata.decimal(char)) if kind == "Nd" else _BY_CATEGORY.get(kind, char)


_PLAIN = CharMap(_plainer, _SINGLE)


class _Replacement(NamedTuple):
    """A pattern whose matches are replaced.

    Attributes:
        signs: every match contains one of these, so a reply without them needs no search. An empty
            string is in every reply: it is always searched.
        pattern: the pattern.
        by: the replacement.
    """

    signs: tuple[str, ...]
    pattern: re.Pattern[str]
    by: str

    def apply(self, text: str) -> str:
        """Replace all matches in a text."""
        if any(sign in text for sign in self.signs):
            return self.pattern.sub(self.by, text)
        return text


_PLAINER = [
    _Replacement(("\r", "\v", "\f"), re.compile(r"\r\n|[\r\v\f]"), "\n"),  # ends of lines
    _Replacement(("",), re.compile(r"[\x00-\x08\x0e-\x1f\x7f]"), ""),  # control characters
    _Replacement(("  ", "\t"), re.compile(r"[ \t]{2,}+|\t"), " "),  # blanks
    _Replacement((" \n", "\n "), re.compile(r" ?\n ?"), "\n"),  # margins
    _Replacement(("\n\n\n",), re.compile(r"\n{3,}+"), "\n\n"),  # empty lines
    # Cut runs of punctuation to three, because they have no meaning and make patterns slow.
    _Replacement(
        ("",),
        re.compile(
            r"""([*_=~#.!?<>`|+/\\:;,"'()\[\]{}—\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb\u300c\u300d-])\1{3,}+"""
        ),
        r"\1\1\1",
    ),
]
_UNMARKED = [
    # tags of style
    _Replacement(("<",), re.compile(r"(?i)</?(?:b|i|u|p|em|strong|span|div|mark)>|<br ?/?>"), ""),
    # \boxed{4}
    _Replacement(("\\",), re.compile(r"\\(?:boxed|text|textbf|mathbf)\{([^{}\n]{1,60})\}"), r"\1"),
    # $4$, \(4\)
    _Replacement(
        ("$", "\\"),
        re.compile(r"\$\$? ?([^$\n]{1,24}?) ?\$\$?|\\[(\[] ?([^\\\n]{1,24}?) ?\\[)\]]"),
        r"\1\2",
    ),
    # **bold**
    _Replacement(("*",), re.compile(r"(?<!\d)\*{1,3}(?=\S)|(?<=\S)\*{1,3}(?!\d)"), ""),
    # __bold__
    _Replacement(
        ("_",),
        re.compile(r"(?<![A-Za-z0-9])_{1,3}(?=\S)|(?<=\S)_{1,3}(?![A-Za-z0-9])"),
        "",
    ),
    _Replacement(("#",), re.compile(r"(?m)^#{1,6} ?"), ""),  # headings
    # rules
    _Replacement(("",), re.compile(r"(?m)^[-=_* ]{3,12}$"), ""),
    _Replacement(("—",), re.compile(r"(?<=\w)—(?=\w)"), " — "),
]
# The lines that ``nodes/common/delimiters.py`` puts around texts.
_OUR_FENCE = re.compile(r"^<<<(?P<end>end )?(?P<name>[^<>\n]{1,120})>>>$", re.MULTILINE)
# A fence with a language opens. A bare one opens or closes.
_CODE_FENCE = re.compile(r"^(?P<name>```(?=[^`\n]*$)|~~~)(?:(?P<end>)|[^\n]++)$", re.MULTILINE)
_BLOCK_QUOTE = re.compile(r"^>+(.*+)$", re.MULTILINE)
_MARKUP_QUOTE = re.compile(r"<(?P<end>/)?(?P<name>blockquote|pre|code|q|quote)>", re.IGNORECASE)
_STRUCK = re.compile(r"~~[^~\n]{1,80}~~")
_WHOLE_FENCE = re.compile(r"\A(```|~~~)[^\n`~]{0,40}\n(.*)\n\1\Z", re.DOTALL)
_CLOSING_OBJECT = re.compile(r"\n(?:```|~~~)(?:json|JSON)? ?\n(\{[^`~]*\})\n(?:```|~~~)\Z")
LONGEST_READ_WHOLE = 10_000
"""Of longer replies, only the ends are read (characters without quotations and reasoning)."""
_HEAD = 2_000
_TAIL = 6_000
_ESCAPES = {r"\n": "\n", r"\t": " ", r"\"": '"', r"\'": "'", r"\\": "\\", r"\r": "\n"}


def has_words(text: str) -> bool:
    """Return whether a text contains words; numbers, signs and single letters do not count.

    >>> has_words("Too high."), has_words("1.1.1 (b)")
    (True, False)
    """
    return re.search(r"[^\W\d_]{2}", text) is not None


# Reasoning. Most providers return it separately (in blocks, or as ``reasoning_content``). Servers
# of open models, and models with an unknown chat template, leave it in the text: in tags, of which
# the opening one may be in the prompt, or in the channels of OpenAI's open models.


def without_reasoning(text: str) -> str:
    """Return a reply without its reasoning; empty if the reply has no answer after it.

    >>> without_reasoning("<think>Is it a 1? Score: 1</think>\\nScore: 2")
    'Score: 2'
    >>> without_reasoning("The user wants a score. Score: 1\\n</think>\\n\\nScore: 2")
    'Score: 2'
    >>> without_reasoning("<think>The plot is thin, so score: 1 would")
    ''
    >>> without_reasoning("<|channel|>analysis<|message|>score: 1<|end|><|channel|>final<|message|>Score: 2<|return|>")
    'Score: 2'
    """
    return _without_tags(_last_channel(text)) if MAY_HAVE_MARKS.search(text) else text


def has_marks(text: str) -> bool:
    """Return whether a text has a reasoning tag or the name of a channel."""
    return bool(MAY_HAVE_MARKS.search(text) and MARK.search(text))


MAY_HAVE_MARKS = re.compile(r"[<\[◁]|assistant")
"""A fast test: most replies have no match, and so no reasoning among their words."""
_REASONING = r"(?:seed:)?(?:think|thinking|thought|thoughts|reasoning|reason|scratchpad)"
_OPENING_TAG = rf"""(?:
    <{_REASONING}>                                # <think>
  | \[THINK\]                                     # Mistral
  | ◁think▷                                       # Kimi
  | <\|(?:START_THINKING|begin_of_thought)\|>     # Cohere
)"""
_CLOSING_TAG = rf"""(?:
    </{_REASONING}>
  | \[/THINK\]
  | ◁/think▷
  | <\|(?:END_THINKING|end_of_thought)\|>
)"""
_TAG_FLAGS = re.IGNORECASE | re.VERBOSE
_EITHER = re.compile(rf"(?P<opening>{_OPENING_TAG})|(?P<closing>{_CLOSING_TAG})", _TAG_FLAGS)


def _without_tags(text: str) -> str:
    """Remove text in tags.

    A tag in the middle of a sentence is only mentioned and removes nothing.
    """
    kept: list[str] = []
    start = 0
    opened = False
    for tag in _EITHER.finditer(text):
        if tag["opening"] and not opened and _begins_line(text, tag.start()):
            kept.append(text[start : tag.start()])
            opened = True
            start = tag.end()
        elif tag["closing"] and (opened or _stands_apart(text, tag)):
            # Without an opening tag, all text before is reasoning, because the prompt contains the
            # opening tag.
            kept = kept if opened else []
            opened = False
            start = tag.end()
    if start == 0:
        return text
    return "".join(kept if opened else [*kept, text[start:]]).strip()


def _begins_line(text: str, at: int) -> bool:
    return not text[max(0, at - 20) : at].rpartition("\n")[2].strip()


def _stands_apart(text: str, tag: re.Match[str]) -> bool:
    """Return whether a closing tag begins or ends a line, or directly follows a word."""
    behind = text[tag.end() : tag.end() + 20].partition("\n")[0]
    before = text[max(0, tag.start() - 1) : tag.start()] or "\n"
    if before in "`'\"":
        return False
    return not before.isspace() or _begins_line(text, tag.start()) or not behind.strip()


# <|channel|>final<|message|>
_CHANNEL_FORM = r"<\|channel\|>\s*(\w+)[^<]{0,80}(?:<\|constrain\|>[^<]{0,80})?<\|message\|>"
_CHANNEL = re.compile(_CHANNEL_FORM)
_MARK = re.compile(r"<\|(?:end|return|start|call)\|>.*", re.DOTALL)
_BARE_CHANNEL_FORM = r"assistant(?:analysis|commentary|final)"
_BARE_CHANNEL = re.compile(_BARE_CHANNEL_FORM)
MARK = re.compile(
    rf"{_OPENING_TAG}|{_CLOSING_TAG}|{_CHANNEL_FORM}|{_BARE_CHANNEL_FORM}", _TAG_FLAGS
)
"""Matches each reasoning tag, and each name of a channel with its marks."""
OPENING = re.compile(rf"{_OPENING_TAG}|<\|channel\|>(?!\s*final)|assistant(?!final)", _TAG_FLAGS)
"""Matches the beginning of a mark before reasoning; all other marks precede the answer."""


def _last_channel(text: str) -> str:
    """Return the text of the final channel of a reply with channels, otherwise the reply.

    Some servers drop the marks and leave the bare names: ``analysisThe plot is thin
    ...assistantfinalScore: 2``.
    """
    channels = list(_CHANNEL.finditer(text))
    if channels:
        final = next((channel for channel in reversed(channels) if channel[1] == "final"), None)
        return _MARK.sub("", text[final.end() :]).strip() if final else ""
    if text.startswith("analysis") and (bare := list(_BARE_CHANNEL.finditer(text))):
        return text[bare[-1].end() :].strip() if bare[-1][0].endswith("final") else ""
    return text


# Characters, quotations, markup


def plain(text: str) -> str:
    """Return ``text`` in plain characters.

    Digits and dashes are ASCII, runs are short, and invisible characters are removed.

    >>> plain("Score\\uff1a\\uff14\\u200b  of\\u00a05")
    'Score:4 of 5'
    """
    if not text.isascii():
        text = text.translate(_PLAIN)
    for replacement in _PLAINER:
        text = replacement.apply(text)
    return text.strip()


def own_words(text: str, *, answers: bool = True, keep: bool = False) -> str:
    """Return ``text``, already plain, without its quotations.

    Args:
        text: a reply after `plain`.
        keep: keep block quotes, code and passages in quotation marks, between two gaps.
        answers: keep quotation marks and fences around the answer itself: the whole reply in one
            code fence or one quoted string, or a value quoted directly after its label (``Verdict:
            "[[A]]"``).

    >>> own_words('The text says "Score: 5".\\n> Score: 5\\nScore: 2').splitlines()[-1]
    'Score: 2'
    """
    if answers:
        text = unwrapped(text)
    # Quotation marks in the JSON object at the end of a reply are not quotations.
    if fence := _CLOSING_OBJECT.search(text):
        text = text[: fence.start()]
        closing_object = f"\n{fence[1]}"
    else:
        start = text.rfind("\n{") if text.endswith("}") else -1
        text, closing_object = (text[:start], text[start:]) if start >= 0 else (text, "")
    text = _BLOCK_QUOTE.sub(rf"{GAP}\1{GAP}" if keep else GAP, text)
    # A section of the prompt that a reply repeats without closing it extends to the end.
    ours = (
        (start, end or stop, _PAIR if end else "")
        for start, _, stop, end in _sections(text, _OUR_FENCE)
    )
    text = both_ends(_without_code(replaced(text, ours), answers=answers, keep=keep))
    quotes: list[tuple[int, int, str]] = []
    for start, inner, stop, end in _sections(text, _MARKUP_QUOTE):
        quotes += (
            [(start, end, GAP + text[inner:stop].replace(GAP, "") * keep + GAP)] if end else []
        )
    text = replaced(text, quotes)
    return without_quotes(_STRUCK.sub(_PAIR, text), answers=answers, keep=keep) + closing_object


def both_ends(text: str) -> str:
    """Return the beginning and the end of an overlong text, where replies state their verdict."""
    if len(text) <= LONGEST_READ_WHOLE:
        return text
    head = text[:_HEAD]
    tail = text[-_TAIL:]
    # An odd number of gaps means that a quotation is open.
    return f"{head}{GAP * (head.count(GAP) % 2)}\n{GAP * (tail.count(GAP) % 2)}{tail}"


def unwrapped(text: str) -> str:
    """Return the inside of a reply that is one code fence or quoted string, otherwise the reply."""
    for _ in range(2):  # a quoted string may contain a code fence, and vice versa
        fence = _WHOLE_FENCE.match(text)
        if fence and not _CODE_FENCE.search(fence[2]):
            text = fence[2].strip()
        if len(text) >= 3 and text[0] in "\"'" and text[-1] == text[0]:
            inside = text[1:-1]
            if text[0] not in re.sub(r"\\.", "", inside, flags=re.DOTALL):
                text = plain(re.sub(r"\\[nrt\"'\\]", lambda m: _ESCAPES[m[0]], inside))
    return text


def replaced(text: str, passages: Iterable[tuple[int, int, str]]) -> str:
    """Replace passages of a text, each given by start, end and replacement."""
    kept = []
    last = 0
    for start, end, words in passages:
        kept += [text[last:start], words]
        last = end
    return "".join([*kept, text[last:]])


def _sections(text: str, marks: re.Pattern[str]) -> Iterator[tuple[int, int, int, int | None]]:
    """Yield the start, inner start, inner end and end of each section (end None: not closed)."""
    opened = ""
    start = 0
    inner = 0
    for mark in marks.finditer(text):
        name, end = mark.group("name", "end")
        if not opened and not end:
            opened, (start, inner) = name.casefold(), mark.span()
        elif opened and end is not None and name.casefold() == opened:
            yield start, inner, *mark.span()
            opened = ""
    if opened:
        yield start, inner, len(text), None


def _without_code(text: str, *, answers: bool, keep: bool) -> str:
    passages: list[tuple[int, int, str]] = []
    last = 0
    for start, inner, stop, end in _sections(text, _CODE_FENCE):
        if end is None:
            passages.append((start, inner if keep else stop, ""))
            continue
        inside = text[inner:stop].strip()
        # "Score:" followed by the value in a code fence is the answer, not a quotation.
        is_answer = answers and (
            (
                len(inside) <= 40
                and _AWAITS_VALUE.search(text, max(last, start - 30), start) is not None
            )
            or (end == len(text) and _announces_answer(text[:start]))
        )
        passages.append(
            (start, end, inside if is_answer else GAP + inside.replace(GAP, "") * keep + GAP)
        )
        last = end
    return replaced(text, passages)


_AWAITS_VALUE = re.compile(r"(?:score|rating|verdict)\W{0,6}\Z", re.IGNORECASE)


def _announces_answer(before: str) -> bool:
    """Return whether the line above announces the agent's own verdict: ``My final verdict is:``."""
    line = before[-300:].rstrip("\n *_").rpartition("\n")[2]
    return line.endswith(":") and introduces(line)


# A label that introduces the agent's own verdict.
_OWN_LABEL = re.compile(
    r"""\b(?:
        my|mine|i|we|our                                                                  # whose
      | verdict|scores?|ratings?|grade|points|tally|sum|total|final|overall               # a value
      | conclusion|conclude|decision|evaluation|assessment|judge?ment|declaration         # a conclusion
      | results?|outcome|output|answer|reply|response|feedback
      | winner|vote|choice|preference|better|comparison
      | therefore|thus|hence|as\ follows|in\ short|in\ sum|summary\ of\ scores
      | reasoning|rationale|explanation|step|analysis|critique|review|reflection|reconsider\w*|revis\w+
    )\b[^.!?\n]{0,60}[:=—-]?[\s\x00"'`*_(\[]*\Z""",
    re.IGNORECASE | re.VERBOSE,
)
_LONGEST = 300


def introduces(before: str) -> bool:
    """Return whether the words announce the agent's own verdict.

    >>> introduces("My final verdict is:"), introduces("The text has three parts:")
    (True, False)
    """
    return _OWN_LABEL.search(before[-_LONGEST:]) is not None


GAP = "\x00"
"""Marks both ends of a quotation; replies cannot contain it, because ``plain`` removes it."""
_PAIR = GAP * 2
_MARKS = re.compile("[\"'`“”„‟«»‹›「」『』‘’‚]")
_CLOSES = {"»": "«", "›": "‹", "」": "「", "』": "『"}
_CURLY = {
    "“": '"',
    "”": '"',
    "„": '"',
    "‟": '"',
    '"': '"',
    "‘": "'",
    "’": "'",
    "‚": "'",
    "'": "'",
    "`": "`",
}
_AWAITING = re.compile(
    r"""
    # Score: "4"
    (?:score|rating|verdict|vote|decision|winner|choice|answer|grade|is|be|for)[:=*_ \n]{1,5}\Z
    # Output: "[[A]]"
  | (?:output|result|conclusion|judge?ment|evaluation)[*_]{0,3}:[*_ \n]{0,5}\Z
    """,
    re.IGNORECASE | re.VERBOSE,
)
# Characters after which a quotation mark opens, and before which one closes.
_BEFORE_OPENING = " \n([{<-—:;,/=|*_" + GAP
_AFTER_CLOSING = " \n)]}>-—:;,./!?=|*_" + GAP
_LONGEST_APOSTROPHE_QUOTE = 2000
_LONGEST_ANSWER = 160


def without_quotes(text: str, *, answers: bool = True, keep: bool = False) -> str:
    """Replace every closed quotation by a pair of gaps; with ``keep``, only its marks.

    Quotation marks pair like brackets: a closing one with the nearest open one of its kind. An
    unclosed mark quotes nothing. Code spans count as quotations, unless they contain a bare word or
    are alone on a line.

    >>> without_quotes('It says "Score: 5". Score: 2').replace(GAP, "~")
    'It says ~~. Score: 2'
    """
    passages: list[tuple[int, int, str]] = []
    for start, stop in outermost(_quotations(text)):
        inside = text[start + 1 : stop - 1]
        is_code = text[start] == "`"
        own = (
            _is_plain_code(text, start, stop)
            if is_code
            else answers and _is_answer(text, start, inside)
        )
        if not own:
            # The number of gaps stays even, so that an odd number before a position means a
            # quotation.
            inside = GAP + inside.replace(GAP, "") * keep + GAP * (1 + inside.count(GAP) % 2)
        passages.append((start, stop, inside))
    return replaced(text, passages)


def _quotations(text: str) -> list[tuple[int, int]]:
    """Return start and end of every closed quotation, in order of their ends."""
    spans: list[tuple[int, int]] = []
    open_marks: dict[str, list[int]] = {}
    for match in _MARKS.finditer(text):
        mark = match[0]
        at = match.start()
        if mark in _CURLY:
            kind = _CURLY[mark]
            opens = _opens(text, at, bool(open_marks.get(_CURLY[mark])))
        else:
            kind = _CLOSES.get(mark, mark)
            opens = mark not in _CLOSES
        if opens is None:
            continue
        stack = open_marks.setdefault(kind, [])
        if opens:
            stack.append(at)
        elif stack and not _too_far(kind, stack[-1], at, text):
            spans.append((stack.pop(), at + 1))
    return spans


def _opens(text: str, at: int, inside: bool) -> bool | None:
    """Return whether a mark opens (True) or closes (False) a quotation; None for an apostrophe."""
    mark = text[at]
    before = text[at - 1] if at else " "
    after = text[at + 1] if at + 1 < len(text) else " "
    may_open = before in _BEFORE_OPENING
    may_close = after in _AFTER_CLOSING
    if mark in "„‟‚":
        return True
    # German closes with the mark that opens in English, so the open marks decide.
    if (mark, inside) in (("“", False), ("”", True)):
        return not inside
    if may_open != may_close:
        return may_open
    in_word = not may_open and all(char.isascii() and char.isalnum() for char in (before, after))
    return None if in_word and mark not in "“”‘`" else not inside


def _too_far(kind: str, start: int, at: int, text: str) -> bool:
    """Return whether two apostrophes, or the ends of a code span, are too far apart."""
    if kind == '"' or kind not in _CURLY.values():
        return False
    between = text[start:at]
    return len(between) > _LONGEST_APOSTROPHE_QUOTE or ("\n" if kind == "`" else "\n\n") in between


def outermost(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return spans in order, without nested ones; overlapping ones are merged."""
    kept: list[tuple[int, int]] = []
    for start, stop in sorted(spans, key=lambda span: (span[0], -span[1])):
        if not kept or start >= kept[-1][1]:
            kept.append((start, stop))
        elif stop > kept[-1][1]:
            kept[-1] = (kept[-1][0], stop)
    return kept


def _is_plain_code(text: str, start: int, stop: int) -> bool:
    """Return whether a code span is emphasis: one short word or value, or a whole line."""
    around = (
        text[max(0, start - 8) : start].rpartition("\n")[2]
        + text[stop : stop + 8].partition("\n")[0]
    )
    value = re.fullmatch(r"[\[(]{0,2}[\w./>=-]{1,12}[\])]{0,2}", text[start + 1 : stop - 1])
    return not around.strip(" *_-.#") or value is not None


def _is_answer(text: str, start: int, inside: str) -> bool:
    if len(inside) > _LONGEST_ANSWER or "\n" in inside:
        return False
    before = text[max(0, start - 16) : start]
    ends_reply = not text[start + len(inside) + 2 :][:8].strip(" .\n")
    return bool(_AWAITING.search(before) or (ends_reply and _announces_answer(text[:start])))


# A table row with a label in its first cell.
_ROW = re.compile(r"^\|([^|\n]{0,80})\|([^\n]{0,200})\|$", re.MULTILINE)
# <score>4</score>
_VALUE_TAG = re.compile(
    r"<(final_score|final_answer|score|rating|verdict|vote|answer|winner|grade)>([^<>]{0,40})</\1>",
    re.IGNORECASE,
)


def unmarked(text: str) -> str:
    """Remove markup; a table row becomes ``label: value, value``.

    >>> unmarked("## **Final score:** 4\\n| Fluency | 3 |\\n<score>4</score>\\n$\\\\boxed{4}$")
    'Final score: 4\\nFluency: 3\\nscore: 4\\n4'
    """
    if "<" in text:
        text = _VALUE_TAG.sub(lambda m: f"{m[1].replace('_', ' ')}: {m[2].strip()}", text)
    for replacement in _UNMARKED:
        text = replacement.apply(text)
    return _ROW.sub(_row, text) if "|" in text else text


def _row(match: re.Match[str]) -> str:
    cells = [cell.strip() for cell in match[2].split("|")]
    return f"{match[1].strip()}: {', '.join(cells)}"


# --- words that disown ----------------------------------------------------------------------------

_TEXTS = (
    r"(?:candidate|text|answer|response|summary|source|article|story|question|fact|author|writer|assistant|output"
    r"|reply|passage|document|essay|submission|entry)"
)
# Phrases by which an agent says that the preceding words are not its own.
_DISOWNING = re.compile(
    rf"""\b(?:
        i\ (?:\w+\ )?(?:ignore|disregard)                                             # I ignore it
      | (?:ignor|disregard)(?:e|ed|es|ing)\ (?:it|this|that|them|these|those)\b
      | (?:is|was|are|were|be|being)\ (?:ignored|disregarded|set\ aside|quoted)
      | (?:set|leave|leaving|put|setting)\ (?:it|this|that|them|these)\ (?:aside|out)
      | skip(?:ped)?\ (?:it|this|that|over)
      | pay(?:ing)?\ no
      | i\ do\ not\b
      | (?:no|any|little|without)\ (?:force|weight|bearing|authority|notice|attention|heed)\b   # no force
      | counts?\ for\ nothing
      | nothing\ to\ me | have\ no\ say
      | (?:do|does|did|cannot|can|will|would|must|may)(?:\ not|n't)?\ (?:not\ )?(?:count|sway|obey)\b
      | (?:is|are|was|were)\ (?:not|no)\ (?:mine|my|binding|a\ verdict|an\ instruction|verdict)\b   # is not mine
      | not\ (?:mine|part\ of\ my|of\ my\ making)\b | not\ from\ me
      | (?:is|are)\ (?:only\ |just\ )?data
      | injection | manipulat\w+                                                      # manipulation
      | told\ to\ (?:write|say)
      | (?:is|was|are|were)\ (?:\w+\ )?(?:what|how|where)\ (?:the|it|its)             # is what the text says
      | (?:stands?|appears?|comes?|is|was|are|were)\ (?:\w+\ )?(?:in|at|from|as)\ (?:the|its)
        \ (?:\w+\ )?(?:{_TEXTS}|end|last|final|closing)\b                             # stands in the candidate
      | (?:is|was|are|were)\ (?:the|its|their|a)\ (?:[\w-]+\ ){{0,2}}
        (?:ending|end|claim|words?|line|demand|trick|opening)\b                       # is its last line
      | (?:is|was|are|were)\ (?:the\ )?{_TEXTS}'s?\b                                  # is the candidate's
      | (?:says|writes|claims|ends|reads|demands|asks|states)\ (?:the|its)\ {_TEXTS}  # says the author
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_NEXT_SENTENCES = re.compile(r"\A[^\n]{0,160}(?:\n+[^\n]{0,160})?")


def disowns(after: str) -> bool:
    """Return whether the words disown the text before them, as in ``I ignore it``."""
    near = _NEXT_SENTENCES.match(after.replace("\x00", " ").replace("\u2019", "'"))
    return near is not None and _DISOWNING.search(near[0]) is not None
