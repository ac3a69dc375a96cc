"""Fences round texts that are data: no text can close its own.

A fence carries a tag made from a hash of the text inside, so the same text has the same fence in every call
and every run (provider caches and resumption rely on it), and a text that ends its own fence would have to
contain a piece of its own hash.
"""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

TAG_LENGTH = 12

_SECTION = re.compile(
    r"^<<<(?P<label>[^<>\n]+) (?P<tag>[0-9a-f]{12})>>>\n(?P<text>.*?)\n<<<end (?P=label) (?P=tag)>>>$",
    re.DOTALL | re.MULTILINE,
)


class Section(NamedTuple):
    """A fenced text: what it is (``"candidate"``, ``"critic, round 1"``) and the text itself."""

    label: str
    text: str


def fence(label: str, text: str) -> str:
    """Wrap ``text`` as data named ``label``.

    >>> print(fence("candidate", "Hello."))
    <<<candidate 2d8bd7d9bb5f>>>
    Hello.
    <<<end candidate 2d8bd7d9bb5f>>>
    """
    tag = _tag(text)
    return f"<<<{label} {tag}>>>\n{text}\n<<<end {label} {tag}>>>"


def fenced_sections(prompt: str) -> list[Section]:
    """The outermost fenced texts of a prompt, in their order.

    >>> fenced_sections("Read this.\\n" + fence("source", "A.") + "\\nNow judge.")
    [Section(label='source', text='A.')]
    """
    return [Section(m["label"], m["text"]) for m in _SECTION.finditer(prompt)]


def _tag(text: str) -> str:
    seed = text.encode("utf-8", errors="surrogatepass")
    while (tag := hashlib.sha256(seed).hexdigest()[:TAG_LENGTH]) in text:
        seed += b"+"
    return tag
