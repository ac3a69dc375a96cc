"""Reads the evaluation steps that a reply lists."""

from __future__ import annotations

import re

from ...state.errors import ReplyError
from .own_words import has_words

# Matches ``1. Read``, ``(2) Read``, ``Step 3: Read``, ``4 - Read``, but not ``5-point``.
_NUMBERED = re.compile(r"(?:step )?\(?\d{1,2}(?:[.):]|(?: -)(?= ))\s*(?P<step>\S.*)", re.IGNORECASE)
_BULLET = re.compile(r"[-*\u2022]\s+(?P<step>\S.*)")
_MARKUP = re.compile(r"\*\*|__|`")


def read_steps(text: str) -> tuple[str, ...]:
    """Return the steps of a numbered or bulleted list, without the text around it.

    Raises:
        ReplyError: there is no such list, a step has no words (``1.1.1``), or a step occurs twice.

    >>> read_steps("Evaluation steps:\\n\\n1. Read both.\\n2. Look for\\n   mistakes.\\n3. Give a score.\\n\\nDone!")
    ('Read both.', 'Look for mistakes.', 'Give a score.')
    """
    lines = [_MARKUP.sub("", line).rstrip() for line in text.splitlines()]
    # Try numbers first: bullets inside a numbered list are parts of its steps.
    for form in (_NUMBERED, _BULLET):
        if steps := _items(lines, form):
            for step in steps:
                if not has_words(step):
                    raise ReplyError(f"The list has a step without words: {step[:60]!r}.", text)
                if [other.casefold() for other in steps].count(step.casefold()) > 1:
                    raise ReplyError(f"The list has the same step twice: {step[:60]!r}.", text)
            return steps
    if not text.strip():
        raise ReplyError("The reply is empty.", text, "empty")
    raise ReplyError("The reply has no list of steps.", text)


def _items(lines: list[str], form: re.Pattern[str]) -> tuple[str, ...]:
    """Return each item of a list with its continuation lines, up to an empty line."""
    items: list[str] = []
    open_item = False
    for line in lines:
        if match := form.match(line.lstrip("# ")):
            items.append(match["step"])
        elif open_item and line:
            items[-1] += f" {line.strip()}"
        open_item = bool(items) and bool(line)
    return tuple(items)
