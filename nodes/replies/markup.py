"""Markdown, LaTeX, tables and tags taken off, so that a reader sees the plain statement."""

from __future__ import annotations

import re

_STARS = re.compile(r"(?<!\d)\*{1,3}(?=\S)|(?<=\S)\*{1,3}(?!\d)")
_UNDERSCORES = re.compile(r"(?<![A-Za-z0-9])_{1,3}(?=\S)|(?<=\S)_{1,3}(?![A-Za-z0-9])")
_HEADINGS = re.compile(r"^#{1,6} ?", re.MULTILINE)
_RULES = re.compile(r"^[-=_* ]{3,12}$", re.MULTILINE)
_ROW = re.compile(r"^\|([^|\n]{0,80})\|([^\n]{0,200})\|$", re.MULTILINE)
_BOXED = re.compile(r"\\(?:boxed|text|textbf|mathbf)\{([^{}\n]{1,60})\}")
_MATHS = re.compile(r"\$\$? ?([^$\n]{1,24}?) ?\$\$?|\\[(\[] ?([^\\\n]{1,24}?) ?\\[)\]]")
_VALUE_TAG = re.compile(
    r"<(final_score|final_answer|score|rating|verdict|vote|answer|winner|grade)>([^<>]{0,40})</\1>",
    re.IGNORECASE,
)
_STYLE_TAG = re.compile(r"</?(?:b|i|u|p|em|strong|span|div|mark)>|<br ?/?>", re.IGNORECASE)
_CITE_DASH = re.compile(r"(?<=\w)—(?=\w)")


def unmarked(text: str) -> str:
    """``text`` without its markup; a table row becomes ``label: value, value``.

    >>> unmarked("## **Final score:** 4\\n| Fluency | 3 |\\n<score>4</score> $\\\\boxed{4}$")
    'Final score: 4\\nFluency: 3\\n\\nscore: 4\\n 4'
    """
    if "<" in text:
        text = _STYLE_TAG.sub(
            "", _VALUE_TAG.sub(lambda m: f"\n{m[1].replace('_', ' ')}: {m[2].strip()}\n", text)
        )
    if "\\" in text or "$" in text:
        text = _MATHS.sub(lambda m: m[1] or m[2], _BOXED.sub(r"\1", text))
    text = _UNDERSCORES.sub("", _STARS.sub("", text))
    text = _RULES.sub("", _HEADINGS.sub("", text))
    return _CITE_DASH.sub(" — ", _ROW.sub(_row, text) if "|" in text else text)


def _row(match: re.Match[str]) -> str:
    cells = [cell.strip() for cell in match[2].split("|")]
    return f"{match[1].strip()}: {', '.join(cells)}"
