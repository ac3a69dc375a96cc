"""Put texts that are data between delimiters (a fence) that the text itself cannot close.

A fence carries a tag made from a hash of the text inside. So the same text has the same fence in every call and every
run, which provider caches and resumption rely on; and a text that closed its own fence would have to contain a piece
of its own hash.
"""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

# Hexadecimal digits, as ``_SECTION`` expects them.
TAG_LENGTH = 12

# Every prompt is looked through, so it begins with what is rare, and not with ``^``, and goes on line by line.
_SECTION = re.compile(
    r"<<<(?<![^\n]<<<)(?P<label>[^<>\n]+) (?P<tag>[0-9a-f]{12})>>>\n(?P<text>[^\n]*+(?:\n[^\n]*+)*?)\n"
    r"<<<end (?P=label) (?P=tag)>>>$",
    re.MULTILINE,
)


class Section(NamedTuple):
    """Hold a fenced text with its label, such as ``"candidate"`` or ``"critic, round 1"``."""

    label: str
    text: str

    @property
    def speaker(self) -> str:
        """The agent whose turn it is; empty of a text that no agent has said."""
        agent, _, round = self.label.rpartition(", round ")
        return agent if round.isdecimal() else ""

    @property
    def role(self) -> str:
        """The speaker's name without its numbers."""
        return self.speaker.rstrip("_0123456789")


def fence(label: str, text: str) -> str:
    """Wrap ``text`` as data named ``label``.

    >>> print(fence("candidate", "Hello."))
    <<<candidate 2d8bd7d9bb5f>>>
    Hello.
    <<<end candidate 2d8bd7d9bb5f>>>
    """
    # A text with a lone surrogate cannot be encoded otherwise, and must get a tag all the same.
    seed = text.encode("utf-8", errors="surrogatepass")
    # By chance, or by a search for one, a text may hold its own tag: then another one is taken.
    while (tag := hashlib.sha256(seed).hexdigest()[:TAG_LENGTH]) in text:
        seed += b"+"
    return f"<<<{label} {tag}>>>\n{text}\n<<<end {label} {tag}>>>"


def fenced_sections(prompt: str) -> list[Section]:
    """Return the outermost fenced texts of a prompt in their order.

    >>> fenced_sections("Read this.\\n" + fence("source", "A.") + "\\nNow judge.")
    [Section(label='source', text='A.')]
    """
    return [Section(m["label"], m["text"]) for m in _SECTION.finditer(prompt)]


def texts_by_speaker(prompt: str) -> list[tuple[str, str]]:
    """Return the outermost fenced texts of a prompt, each behind its speaker; see ``Section.speaker``.

    >>> texts_by_speaker(fence("source", "A.") + "\\n" + fence("critic, round 1", "B."))
    [('', 'A.'), ('critic', 'B.')]
    """
    return [(section.speaker, section.text) for section in fenced_sections(prompt)]


def section_ends(prompt: str) -> list[int]:
    """Return where the outermost fenced texts of a prompt end.

    >>> section_ends(fence("source", "A.") + "\\nNow judge.") == [len(fence("source", "A."))]
    True
    """
    return [match.end() for match in _SECTION.finditer(prompt)]
