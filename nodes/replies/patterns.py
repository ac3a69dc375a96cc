"""Small parts from which the readers' patterns are put together."""

from __future__ import annotations

import re


def one_of(phrases: str) -> str:
    """An alternation of literal phrases: separated by blanks, with ``_`` for a blank and ``*`` for a word's ending.

    >>> one_of("so in_short award*")
    '(?:in short|award\\\\w{0,5}|so)'
    """
    longest_first = sorted(phrases.split(), key=len, reverse=True)
    return f"(?:{'|'.join(map(_literal, longest_first))})"


def word_set(words: str) -> frozenset[str]:
    """The words of a text, separated by blanks."""
    return frozenset(words.split())


def _literal(phrase: str) -> str:
    return re.escape(phrase).replace("_", " ").replace(r"\*", r"\w{0,5}")
