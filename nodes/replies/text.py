"""The words of a reply that are the model's own, in plain characters.

A reply may quote the text under judgement, another agent or the prompt. Fenced sections, block quotes, code
fences and passages in quotation marks are data: `own_words` takes them out before anything is read. Every step
is linear in the length of the reply: runs are collapsed first, and patterns repeat a bounded number of times.
"""

from __future__ import annotations

import re
import unicodedata

from .quotes import GAP, without_quotes

_SINGLE = {
    0x2044: "/",
    0x2215: "/",
    0x2212: "-",
    0x2015: "—",
    0x066B: ".",
    0x066C: ",",
    0x3001: ", ",
    0x3002: ". ",
    0xFF61: ". ",
    0x3010: "[",
    0x3011: "]",
    0x3014: "[",
    0x3015: "]",
    0x20E3: None,
    0x00BD: ".5",
    0x2028: "\n",
    0x2029: "\n",
    0x0085: "\n",
}


class _Plain(dict[int, str | None]):
    """Character map for ``str.translate``: digits and fullwidth forms to ASCII, invisible characters away."""

    def __missing__(self, code: int) -> str | None:
        self[code] = plainer = _plainer(code)
        return plainer


def _plainer(code: int) -> str | None:
    char = chr(code)
    if 0xFF01 <= code <= 0xFF5E and not char.isalpha():
        return chr(code - 0xFEE0)
    kind = unicodedata.category(char)
    if kind == "Nd":
        return str(unicodedata.decimal(char))
    if kind in ("Cf", "Co", "Cs") or 0xFE00 <= code <= 0xFE0F:
        return None
    if kind == "Zs":
        return " "
    return "-" if kind == "Pd" and code not in (0x2014, 0x3030) else char


_NEWLINES = re.compile(r"\r\n|[\r\v\f]")
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
_BLANKS = re.compile(r"[ \t]++")
_MARGINS = re.compile(r" ?\n ?")
_EMPTY_LINES = re.compile(r"\n{3,}+")
_RUNS = re.compile(
    r"([*_=~#.!?<>`|+/\\:;,\"'()\[\]{}—\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb\u300c\u300d-])\1{3,}+"
)

_OUR_FENCE = re.compile(r"^<<<(end )?([^<>\n]{1,120})>>>$", re.MULTILINE)
_THOUGHTS = re.compile(r"</?(?:think|thinking|reasoning)>", re.IGNORECASE)
_CODE_FENCE = re.compile(r"^(?:```[^`\n]*+|~~~[^\n]*+)$", re.MULTILINE)
_BLOCK_QUOTE = re.compile(r"^>.*+$", re.MULTILINE)
_MARKUP_QUOTE = re.compile(r"<(/?)(blockquote|pre|code|q|quote)>", re.IGNORECASE)
_STRUCK = re.compile(r"~~[^~\n]{1,80}~~")

_WHOLE_FENCE = re.compile(r"\A(```|~~~)[^\n`~]{0,40}\n(.*)\n\1\Z", re.DOTALL)
_ESCAPES = {r"\n": "\n", r"\t": " ", r"\"": '"', r"\'": "'", r"\\": "\\", r"\r": "\n"}


def plain(text: str) -> str:
    """``text`` in plain characters: ASCII digits and dashes, no invisible characters, short runs.

    >>> plain("Score\\uff1a\\uff14\\u200b  of\\u00a05")
    'Score:4 of 5'
    """
    if not text.isascii():
        text = text.translate(_Plain(_SINGLE))
    text = _CONTROLS.sub("", _NEWLINES.sub("\n", text))
    text = _MARGINS.sub("\n", _BLANKS.sub(" ", text))
    return _RUNS.sub(r"\1\1\1", _EMPTY_LINES.sub("\n\n", text)).strip()


def own_words(text: str, *, answers: bool = True) -> str:
    """``text``, already plain, without what it quotes.

    Args:
        text: a reply that went through `plain`.
        answers: keep quotation marks and fences that hold nothing but the answer itself: the whole reply in one
            code fence or one quoted string, or a value quoted right behind its label (``Verdict: "[[A]]"``).

    >>> own_words('The text says "Score: 5".\\n> Score: 5\\nScore: 2').splitlines()[-1]
    'Score: 2'
    """
    if answers:
        text = unwrapped(text)
    text = _without_thoughts(_without_sections(_BLOCK_QUOTE.sub(GAP, text)))
    text = _without_code(text, answers=answers)
    text = _without_markup_quotes(text)
    return without_quotes(_STRUCK.sub(GAP, text), answers=answers)


def unwrapped(text: str) -> str:
    """The inside of a reply that is one code fence or one quoted string; any other reply as it is."""
    for _ in range(2):
        fence = _WHOLE_FENCE.match(text)
        if fence and not _CODE_FENCE.search(fence[2]):
            text = fence[2].strip()
        text = _unquoted(text)
    return text


def _unquoted(text: str) -> str:
    if len(text) < 3 or text[0] not in "\"'" or text[-1] != text[0]:
        return text
    inside = text[1:-1]
    if text[0] in re.sub(r"\\.", "", inside, flags=re.DOTALL):
        return text
    return plain(re.sub(r"\\[nrt\"'\\]", lambda m: _ESCAPES[m[0]], inside))


def _without_sections(text: str) -> str:
    """Drop our own fenced sections; one that is never closed reaches to the end."""
    kept: list[str] = []
    end, label = 0, None
    for mark in _OUR_FENCE.finditer(text):
        if label is None and not mark[1]:
            kept.append(text[end : mark.start()])
            label = mark[2]
        elif mark[1] and mark[2] == label:
            end, label = mark.end(), None
    if label is None:
        kept.append(text[end:])
    return GAP.join(kept)


def _without_thoughts(text: str) -> str:
    """Drop a model's thinking aloud, ``<think>...</think>``; a missing opening tag is the start of the reply."""
    kept: list[str] = []
    end, thinking = 0, False
    for tag in _THOUGHTS.finditer(text):
        if tag[0].startswith("</"):
            if not thinking:
                kept.clear()
            end, thinking = tag.end(), False
        elif not thinking:
            kept.append(text[end : tag.start()])
            thinking = True
    if not thinking:
        kept.append(text[end:])
    return "\n".join(kept).strip()


def _without_code(text: str, *, answers: bool) -> str:
    kept: list[str] = []
    end, opening = 0, ""
    for fence in _CODE_FENCE.finditer(text):
        line = fence[0]
        if not opening:
            kept.append(text[end : fence.start()])
            opening, end = line[:3], fence.end()
        elif line.strip() == opening:
            inside = text[end : fence.start()].strip()
            if answers and len(inside) <= 40 and _awaits_value(kept[-1]):
                kept[-1] += inside
            opening, end = "", fence.end()
    if not opening:
        kept.append(text[end:])
    return GAP.join(kept)


def _awaits_value(text: str) -> bool:
    return re.search(r"(?:score|rating|verdict)\W{0,6}\Z", text[-30:], re.IGNORECASE) is not None


def _without_markup_quotes(text: str) -> str:
    """Drop ``<blockquote>...</blockquote>`` and its like, where closed."""
    kept: list[str] = []
    end, opened = 0, None
    for tag in _MARKUP_QUOTE.finditer(text):
        if opened is None and not tag[1]:
            opened = tag
        elif opened is not None and tag[1] and tag[2].lower() == opened[2].lower():
            kept.append(text[end : opened.start()])
            end, opened = tag.end(), None
    kept.append(text[end:])
    return GAP.join(kept)
