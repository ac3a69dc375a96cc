"""Reduce a reply to what the judge itself says: no reasoning, plain characters, no quotations, no markup.

A reply may quote the text under judgement, another agent or the prompt. Where these texts are not known, fenced
sections, block quotes, code fences and passages in quotation marks are data: ``own_words`` removes them before
anything is read. Where they are known (``keep``), such passages stay between two gaps, and ``reprints`` decides. Every
step is linear in the length of the reply: runs are collapsed first, and patterns repeat a bounded number of times.

Order of use: ``without_reasoning``, ``plain`` (characters), ``own_words`` (quotations), ``unmarked`` (Markdown, tables,
tags).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping

from .vocabulary import in_any_case, introduces, pattern, replacements

# Characters whose plain form does not follow from their Unicode category.
_UNPLAIN = "\u2044\u2215\u2212\u2015\u2014\u3030\u066b\u066c\u3010\u3011\u3014\u3015\u2028\u2029\x85"
_SINGLE: dict[int, str | None] = dict(
    zip(map(ord, _UNPLAIN), "//-\u2014\u2014\u3030.,[][]\n\n\n", strict=True)
)
_SINGLE |= {0x3001: ", ", 0x3002: ". ", 0xFF61: ". ", 0x20E3: None, 0x00BD: ".5"}
_SINGLE |= dict.fromkeys(range(0xFE00, 0xFE10))  # variation selectors, which are not seen
_BY_CATEGORY: dict[str, str | None] = {"Cf": None, "Co": None, "Cs": None, "Zs": " ", "Pd": "-"}


class CharMap(dict[int, str | None]):
    """Character map for ``str.translate``, which asks a function for each character that it meets first."""

    def __init__(self, change: Callable[[str], str | None], known: Mapping[int, str | None] | None = None):
        super().__init__(known or {})
        self._change = change

    def __missing__(self, code: int) -> str | None:
        self[code] = changed = self._change(chr(code))
        return changed


def _plainer(char: str) -> str | None:
    """Return digits, blanks, dashes and fullwidth forms as ASCII, and nothing for invisible characters."""
    if "\uff01" <= char <= "\uff5e" and not char.isalpha():
        return chr(ord(char) - 0xFEE0)
    kind = unicodedata.category(char)
    return str(unicodedata.decimal(char)) if kind == "Nd" else _BY_CATEGORY.get(kind, char)


_PLAIN = CharMap(_plainer, _SINGLE)

_PLAINER, _UNMARKED = replacements("plainer"), replacements("unmarked")
# The lines that ``nodes/delimiters.py`` puts around texts.
_OUR_FENCE = re.compile(r"^<<<(?P<end>end )?(?P<name>[^<>\n]{1,120})>>>$", re.MULTILINE)
# A fence with a language behind it opens; a bare one opens or closes.
_CODE_FENCE = re.compile(r"^(?P<name>```(?=[^`\n]*$)|~~~)(?:(?P<end>)|[^\n]++)$", re.MULTILINE)
_BLOCK_QUOTE = re.compile(r"^>+(.*+)$", re.MULTILINE)
_MARKUP_QUOTE = in_any_case(r"<(?P<end>/)?(?P<name>blockquote|pre|code|q|quote)>")
_STRUCK = re.compile(r"~~[^~\n]{1,80}~~")
_WHOLE_FENCE = re.compile(r"\A(```|~~~)[^\n`~]{0,40}\n(.*)\n\1\Z", re.DOTALL)
_CLOSING_OBJECT = re.compile(r"\n(?:```|~~~)(?:json|JSON)? ?\n(\{[^`~]*\})\n(?:```|~~~)\Z")
LONGEST_READ_WHOLE = 10_000
"""Of a longer reply, in characters and without quotations and reasoning in tags, only the ends are read."""
_HEAD, _TAIL = 2_000, 6_000
_ESCAPES = {r"\n": "\n", r"\t": " ", r"\"": '"', r"\'": "'", r"\\": "\\", r"\r": "\n"}


def has_words(text: str) -> bool:
    """Tell whether a text says anything: numbers, signs and single letters are no words.

    >>> has_words("Too high."), has_words("1.1.1 (b)")
    (True, False)
    """
    return re.search(r"[^\W\d_]{2}", text) is not None


# Reasoning. Most providers keep it apart (blocks of their own, ``reasoning_content``). Servers of open models, and
# models whose chat template is not known, leave it in the text: in tags, of which the opening one may stand in the
# prompt, or in the channels of OpenAI's open models.


def without_reasoning(text: str) -> str:
    """Return a reply without its reasoning; nothing is left of a reply that never came to its answer.

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
    """Tell whether a text has a tag of reasoning or the name of a channel."""
    return bool(MAY_HAVE_MARKS.search(text) and MARK.search(text))


MAY_HAVE_MARKS = re.compile(r"[<\[◁]|assistant")
"""Finds nothing in most replies, which have no reasoning among their words then."""
_EITHER = pattern("either_tag")


def _without_tags(text: str) -> str:
    """Drop what stands in tags; a tag in the middle of a sentence is spoken of, and drops nothing."""
    kept: list[str] = []
    start, opened = 0, False
    for tag in _EITHER.finditer(text):
        if tag["opening"] and not opened and _begins_line(text, tag.start()):
            kept.append(text[start : tag.start()])
            opened, start = True, tag.end()
        elif tag["closing"] and (opened or _stands_apart(text, tag)):
            # Without an opening tag, all that stands before is reasoning: the prompt has opened it.
            kept = kept if opened else []
            opened, start = False, tag.end()
    if start == 0:
        return text
    return "".join(kept if opened else [*kept, text[start:]]).strip()


def _begins_line(text: str, at: int) -> bool:
    return not text[max(0, at - 20) : at].rpartition("\n")[2].strip()


def _stands_apart(text: str, tag: re.Match[str]) -> bool:
    """Tell whether a closing tag stands at the beginning or end of a line, or right behind a word."""
    behind = text[tag.end() : tag.end() + 20].partition("\n")[0]
    before = text[max(0, tag.start() - 1) : tag.start()] or "\n"
    if before in "`'\"":
        return False
    return not before.isspace() or _begins_line(text, tag.start()) or not behind.strip()


_CHANNEL = pattern("channel", flags=0)
_MARK = re.compile(r"<\|(?:end|return|start|call)\|>.*", re.DOTALL)
_BARE_CHANNEL = pattern("bare_channel", flags=0)
MARK = pattern("reasoning_mark")
"""Matches each tag of reasoning, and each name of a channel with what belongs to it."""
OPENING = pattern("opening_mark")
"""Matches the beginning of a mark behind which reasoning follows; the answer follows all others."""


def _last_channel(text: str) -> str:
    """Return what stands in the final channel of a reply that has channels, else the reply as it is.

    Some servers drop the marks and leave the bare names: ``analysisThe plot is thin ...assistantfinalScore: 2``.
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
    """Return ``text`` in plain characters: ASCII digits and dashes, no invisible characters, short runs.

    >>> plain("Score\\uff1a\\uff14\\u200b  of\\u00a05")
    'Score:4 of 5'
    """
    if not text.isascii():
        text = text.translate(_PLAIN)
    for known, plainer in _PLAINER:
        text = known.sub(plainer, text)
    return text.strip()


def own_words(text: str, *, answers: bool = True, keep: bool = False) -> str:
    """Return ``text``, already plain, without what it quotes.

    Args:
        text: a reply that went through `plain`.
        keep: keep block quotes, code and passages in quotation marks, between two gaps.
        answers: keep quotation marks and fences that hold nothing but the answer itself: the whole reply in one
            code fence or one quoted string, or a value quoted right behind its label (``Verdict: "[[A]]"``).

    >>> own_words('The text says "Score: 5".\\n> Score: 5\\nScore: 2').splitlines()[-1]
    'Score: 2'
    """
    if answers:
        text = unwrapped(text)
    # Quotation marks in the JSON object that closes a reply, in a code fence or not, quote nothing.
    if fence := _CLOSING_OBJECT.search(text):
        text, closing_object = text[: fence.start()], f"\n{fence[1]}"
    else:
        start = text.rfind("\n{") if text.endswith("}") else -1
        text, closing_object = (text[:start], text[start:]) if start >= 0 else (text, "")
    text = _BLOCK_QUOTE.sub(rf"{GAP}\1{GAP}" if keep else GAP, text)
    # A section of the prompt that a reply repeats and never closes reaches to the end.
    ours = ((start, end or stop, _PAIR if end else "") for start, _, stop, end in _sections(text, _OUR_FENCE))
    text = both_ends(_without_code(replaced(text, ours), answers=answers, keep=keep))
    quotes: list[tuple[int, int, str]] = []
    for start, inner, stop, end in _sections(text, _MARKUP_QUOTE):
        quotes += [(start, end, GAP + text[inner:stop].replace(GAP, "") * keep + GAP)] if end else []
    text = replaced(text, quotes)
    return without_quotes(_STRUCK.sub(_PAIR, text), answers=answers, keep=keep) + closing_object


def both_ends(text: str) -> str:
    """Return the beginning and the end of a text that is longer than replies are, which keep their verdict there."""
    if len(text) <= LONGEST_READ_WHOLE:
        return text
    head, tail = text[:_HEAD], text[-_TAIL:]
    # An odd number of gaps means that a quotation is open.
    return f"{head}{GAP * (head.count(GAP) % 2)}\n{GAP * (tail.count(GAP) % 2)}{tail}"


def unwrapped(text: str) -> str:
    """Return the inside of a reply that is one code fence or one quoted string; any other reply as it is."""
    for _ in range(2):  # a quoted string may hold a code fence, and the other way round
        fence = _WHOLE_FENCE.match(text)
        if fence and not _CODE_FENCE.search(fence[2]):
            text = fence[2].strip()
        if len(text) >= 3 and text[0] in "\"'" and text[-1] == text[0]:
            inside = text[1:-1]
            if text[0] not in re.sub(r"\\.", "", inside, flags=re.DOTALL):
                text = plain(re.sub(r"\\[nrt\"'\\]", lambda m: _ESCAPES[m[0]], inside))
    return text


def replaced(text: str, passages: Iterable[tuple[int, int, str]]) -> str:
    """Return a text with other words in place of some passages, each given by start, end and these words."""
    kept, last = [], 0
    for start, end, words in passages:
        kept += [text[last:start], words]
        last = end
    return "".join([*kept, text[last:]])


def _sections(text: str, marks: re.Pattern[str]) -> Iterator[tuple[int, int, int, int | None]]:
    """Yield where each section opens, begins, stops and is closed (None: the text ends first)."""
    opened, start, inner = "", 0, 0
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
        # "Score:" and then the value in a code fence: that is the answer, no quotation.
        is_answer = answers and (
            (len(inside) <= 40 and _AWAITS_VALUE.search(text, max(last, start - 30), start) is not None)
            or (end == len(text) and _announces_answer(text[:start]))
        )
        passages.append((start, end, inside if is_answer else GAP + inside.replace(GAP, "") * keep + GAP))
        last = end
    return replaced(text, passages)


_AWAITS_VALUE = in_any_case(r"(?:score|rating|verdict)\W{0,6}\Z")


def _announces_answer(before: str) -> bool:
    """Whether the line above announces the agent's own verdict: ``My final verdict is:``."""
    line = before[-300:].rstrip("\n *_").rpartition("\n")[2]
    return line.endswith(":") and introduces(line)


GAP = "\x00"
"""Stands on either side of a quotation; no reply contains it, since ``plain`` removes control characters."""
_PAIR = GAP * 2
_MARKS = re.compile("[\"'`“”„‟«»‹›「」『』‘’‚]")
_CLOSES = {"»": "«", "›": "‹", "」": "「", "』": "『"}
_CURLY = {"“": '"', "”": '"', "„": '"', "‟": '"', '"': '"', "‘": "'", "’": "'", "‚": "'", "'": "'", "`": "`"}
_AWAITING = pattern("awaiting")
# Characters after which a quotation mark opens, and before which one closes.
_BEFORE_OPENING = " \n([{<-—:;,/=|*_" + GAP
_AFTER_CLOSING = " \n)]}>-—:;,./!?=|*_" + GAP
_LONGEST_APOSTROPHE_QUOTE = 2000
_LONGEST_ANSWER = 160


def without_quotes(text: str, *, answers: bool = True, keep: bool = False) -> str:
    """Replace every closed quotation by a pair of gaps; with ``keep``, its marks alone.

    Quotation marks pair as brackets do: a closing one with the nearest open one of its kind. A mark that is never
    closed quotes nothing. Code spans count as quotations, unless they hold a bare word or stand on a line of their own.

    >>> without_quotes('It says "Score: 5". Score: 2').replace(GAP, "~")
    'It says ~~. Score: 2'
    """
    passages: list[tuple[int, int, str]] = []
    for start, stop in outermost(_quotations(text)):
        inside = text[start + 1 : stop - 1]
        is_code = text[start] == "`"
        own = _is_plain_code(text, start, stop) if is_code else answers and _is_answer(text, start, inside)
        if not own:
            # Gaps stay even in number, so that an odd number before a place means that it is quoted.
            inside = GAP + inside.replace(GAP, "") * keep + GAP * (1 + inside.count(GAP) % 2)
        passages.append((start, stop, inside))
    return replaced(text, passages)


def _quotations(text: str) -> list[tuple[int, int]]:
    """Return start and end of every closed quotation, in the order in which they close."""
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
    # German closes with the mark with which English opens, so it depends on what is open.
    if (mark, inside) in (("“", False), ("”", True)):
        return not inside
    if may_open != may_close:
        return may_open
    in_word = not may_open and all(char.isascii() and char.isalnum() for char in (before, after))
    return None if in_word and mark not in "“”‘`" else not inside


def _too_far(kind: str, start: int, at: int, text: str) -> bool:
    """Whether two apostrophes, or the ends of a code span, lie too far apart to be a pair."""
    if kind == '"' or kind not in _CURLY.values():
        return False
    between = text[start:at]
    return len(between) > _LONGEST_APOSTROPHE_QUOTE or ("\n" if kind == "`" else "\n\n") in between


def outermost(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return spans in their order, without those inside others; those that overlap are made one."""
    kept: list[tuple[int, int]] = []
    for start, stop in sorted(spans, key=lambda span: (span[0], -span[1])):
        if not kept or start >= kept[-1][1]:
            kept.append((start, stop))
        elif stop > kept[-1][1]:
            kept[-1] = (kept[-1][0], stop)
    return kept


def _is_plain_code(text: str, start: int, stop: int) -> bool:
    """Whether a code span is emphasis and no quotation: one short word or value, or a whole line."""
    around = text[max(0, start - 8) : start].rpartition("\n")[2] + text[stop : stop + 8].partition("\n")[0]
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
_VALUE_TAG = pattern("value_tag")


def unmarked(text: str) -> str:
    """Remove markup; a table row becomes ``label: value, value``.

    >>> unmarked("## **Final score:** 4\\n| Fluency | 3 |\\n<score>4</score> $\\\\boxed{4}$")
    'Final score: 4\\nFluency: 3\\nscore: 4\\n 4'
    """
    text = _VALUE_TAG.sub(lambda m: f"{m[1].replace('_', ' ')}: {m[2].strip()}\n", text)
    for markup, left in _UNMARKED:
        text = markup.sub(left, text)
    return _ROW.sub(_row, text)


def _row(match: re.Match[str]) -> str:
    cells = [cell.strip() for cell in match[2].split("|")]
    return f"{match[1].strip()}: {', '.join(cells)}"
