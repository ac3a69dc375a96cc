"""Delimiters (fences) around texts that are data, which the text itself cannot close.

A fence has a tag made from a hash of the text inside. The same text therefore has the same fence in
every call and every run, which provider caches and resumption rely on. A text that closes its own
fence would have to contain a part of its own hash.
"""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

# Hexadecimal digits, as ``_SECTION`` expects them.
TAG_LENGTH = 12

# The pattern scans every prompt, so for speed it begins with rare characters instead of ``^`` and
# continues line by line.
_SECTION = re.compile(
    r"<<<(?<![^\n]<<<)(?P<label>[^<>\n]+) (?P<tag>[0-9a-f]{12})>>>\n(?P<text>[^\n]*+(?:\n[^\n]*+)*?)\n"
    r"<<<end (?P=label) (?P=tag)>>>$",
    re.MULTILINE,
)


class Section(NamedTuple):
    """A fenced text with its label, such as ``"candidate"`` or ``"critic, round 1"``."""

    label: str
    text: str

    @property
    def speaker(self) -> str:
        """The agent whose turn it is; empty for a text that is not a turn."""
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
    # Texts with a lone surrogate cannot be encoded otherwise, and need a tag too.
    seed = text.encode("utf-8", errors="surrogatepass")
    # A text may contain its own tag, by chance or by a search for one. Take another tag then.
    while (tag := hashlib.sha256(seed).hexdigest()[:TAG_LENGTH]) in text:
        seed += b"+"
    return f"<<<{label} {tag}>>>\n{text}\n<<<end {label} {tag}>>>"


def fenced_sections(prompt: str) -> list[Section]:
    """Return the outermost fenced texts of a prompt in order.

    >>> fenced_sections("Read this.\\n" + fence("source", "A.") + "\\nNow judge.")
    [Section(label='source', text='A.')]
    """
    return [Section(m["label"], m["text"]) for m in _SECTION.finditer(prompt)]


_INTRODUCED = frozenset(
    (
        *("source", "question", "context", "fact", "reference"),
        *("candidate", "answer 1", "answer 2", "criteria", "steps"),
    )
)
"""The labels of texts that the words in front of the fence name as well."""


def without_fences(prompt: str) -> str:
    """Return a prompt with bare texts, for the setting ``fences=off``.

    Agents' words and other texts that only their fence names get its label as a heading.

    >>> print(without_fences("Rate:\\n" + fence("candidate", "A.") + "\\n" + fence("critic, round 1", "B.")))
    Rate:
    A.
    critic, round 1:
    B.
    """

    def bare(match: re.Match[str]) -> str:
        label = match["label"]
        return match["text"] if label in _INTRODUCED else f"{label}:\n{match['text']}"

    return _SECTION.sub(bare, prompt)


def texts_by_speaker(prompt: str) -> list[tuple[str, str]]:
    """Return the outermost fenced texts of a prompt, each after its speaker (``Section.speaker``).

    >>> texts_by_speaker(fence("source", "A.") + "\\n" + fence("critic, round 1", "B."))
    [('', 'A.'), ('critic', 'B.')]
    """
    return [(section.speaker, section.text) for section in fenced_sections(prompt)]


def section_ends(prompt: str) -> list[int]:
    """Return the end positions of the outermost fenced texts of a prompt.

    >>> section_ends(fence("source", "A.") + "\\nNow judge.") == [len(fence("source", "A."))]
    True
    """
    return [match.end() for match in _SECTION.finditer(prompt)]
