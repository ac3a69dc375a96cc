"""Know the words of providers: how they refuse a parameter, fail, and end replies (``provider_words.toml``)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ...state.word_files import words_beside

WORDS: dict[str, Any] = words_beside(__file__)
"""The words, by what they say."""


def any_of(patterns: Sequence[str], flags: int = 0) -> re.Pattern[str]:
    """Compile several patterns to one that matches where one of them does."""
    return re.compile("|".join(patterns), flags)


def by_word(meanings: Mapping[str, str]) -> dict[str, str]:
    """Return the meaning of each word, from a table of meanings and the words that have them.

    >>> by_word({"cut_off": "length max_tokens", "refused": "refusal"})
    {'length': 'cut_off', 'max_tokens': 'cut_off', 'refusal': 'refused'}
    """
    return {word: meaning for meaning, words in meanings.items() for word in words.split()}
