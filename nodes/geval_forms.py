"""The two forms of G-Eval, plain text both: a list of evaluation steps, and a number with nothing round it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..state.aspects import Aspect
from ..state.errors import ReplyError
from .forms import Form, Value
from .replies import read_score

_NUMBERED = re.compile(r"(?:step )?\(?\d{1,2}(?:[.):]|(?: -)(?= ))\s*(?P<step>\S.*)", re.IGNORECASE)
_BULLET = re.compile(r"[-*\u2022]\s+(?P<step>\S.*)")
_MARKUP = re.compile(r"\*\*|__|`")


@dataclass(frozen=True)
class StepsForm(Form):
    """Evaluation steps; the reply's words are kept, and ``read_steps`` finds the steps in them."""

    name: ClassVar[str] = "steps"
    template: ClassVar[str] = "geval/form_steps"

    def schema(self) -> None:
        return None

    def from_fields(self, fields: Mapping[str, Any], raw: str) -> tuple[str, Value]:
        return raw, self.from_text(raw)

    def from_text(self, text: str) -> Value:
        read_steps(text)
        return None


@dataclass(frozen=True)
class RatingForm(Form):
    """One number of a scale and nothing else, so that its token can be looked at; never JSON."""

    aspect: Aspect
    name: ClassVar[str] = "score"
    template: ClassVar[str] = "geval/form_rating"

    def schema(self) -> None:
        return None

    def from_fields(self, fields: Mapping[str, Any], raw: str) -> tuple[str, Value]:
        return raw, self.from_text(raw)

    def from_text(self, text: str) -> Value:
        return read_score(text, self.aspect.low, self.aspect.high, aspect=self.aspect.name)

    def limits(self) -> dict[str, Any]:
        return {"low": f"{self.aspect.low:g}", "high": f"{self.aspect.high:g}"}


def read_steps(text: str) -> tuple[str, ...]:
    """The steps of a numbered (or bulleted) list; what stands before and after it is left out.

    Raises:
        ReplyError: there is no such list.

    >>> read_steps("Evaluation steps:\\n\\n1. Read both.\\n2. Look for\\n   mistakes.\\n3. Give a score.\\n\\nDone!")
    ('Read both.', 'Look for mistakes.', 'Give a score.')
    """
    lines = [_MARKUP.sub("", line).rstrip() for line in text.splitlines()]
    for form in (_NUMBERED, _BULLET):
        if any(form.match(line.lstrip("# ")) for line in lines):
            return _items(lines, form)
    if not text.strip():
        raise ReplyError("The reply is empty.", text, "empty")
    raise ReplyError("The reply has no list of steps.", text)


def _items(lines: list[str], form: re.Pattern[str]) -> tuple[str, ...]:
    """Each item with the lines that go on with it, up to an empty line."""
    items: list[str] = []
    open_item = False
    for line in lines:
        if match := form.match(line.lstrip("# ")):
            items.append(match["step"])
        elif open_item and line:
            items[-1] += f" {line.strip()}"
        open_item = bool(items) and bool(line)
    return tuple(items)
