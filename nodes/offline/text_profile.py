"""Count what a text holds: its words, their stems and pairs, its sentences, names and numbers.

Scripts that put no spaces between words are read as overlapping pairs of characters, a text without any
word (emoji, symbols) as its single characters, so that every text has something to be counted.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

WORDS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
"""Words, personas of critics and weights, as the file has them."""
STOP_WORDS = frozenset(WORDS["stop_words"].split())
# Thai and Lao, Burmese, Khmer, Japanese, and Chinese characters.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_LETTERS = rf"[^\W\d_{_UNSPACED}]+"
# A number (``1,000.5``), a run without spaces, a word (``don't``), or a clitic that was set apart (``'s``).
_WORD = re.compile(
    rf"\d+(?:[.,]\d+)*|[{_UNSPACED}]+|{_LETTERS}(?:['\u2019]{_LETTERS})?|['\u2019](?:s|m|d|re|ve|ll)\b"
)
_UNSPACED_RUN = re.compile(rf"[{_UNSPACED}]+")
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”\u2019)\]]*\s+|(?<=[。\uff01\uff1f])|\n+")
# The longer ending first: ``churches`` loses ``es``, not ``s`` alone.
_ENDINGS = ("ing", "ed", "es", "s")


@dataclass(frozen=True, slots=True)
class Sentence:
    """Hold one sentence: its text, its words in lower case, and the stems of its content words."""

    text: str
    words: tuple[str, ...]
    stems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Profile:
    """Hold a text with everything that the features count, each counted once.

    Attributes:
        text: the text itself.
        sentences: its sentences.
        words: its words in lower case, in order.
        stems: the stems of its content words, in order.
        stem_set: its different stems.
        pairs: its pairs of neighbouring words.
        names: its different names and numbers, in lower case.
    """

    text: str
    sentences: tuple[Sentence, ...]
    words: tuple[str, ...]
    stems: tuple[str, ...]
    stem_set: frozenset[str]
    pairs: frozenset[tuple[str, str]]
    names: tuple[str, ...]


# All agents of a debate look at the same few texts, again in every turn.
@lru_cache(maxsize=32)
def profile(text: str) -> Profile:
    """Count the words and sentences of a text.

    >>> counted = profile("Ann met Bob in Paris. She paid 20 euros.")
    >>> len(counted.words), len(counted.sentences), counted.names
    (9, 2, ('bob', 'paris', '20'))
    >>> profile("猫が好き").words
    ('猫が', 'が好', '好き')
    """
    parts = [(part, raw) for part in _SENTENCE_END.split(text) if (raw := _raw_words(part))]
    if not parts and text.strip():
        parts = [(text, [char for char in text if not char.isspace()])]
    lowered = [(part, tuple(word.lower() for word in raw)) for part, raw in parts]
    stemmed = (tuple(stem(word) for word in words if word not in STOP_WORDS) for _, words in lowered)
    sentences = tuple(Sentence(*known, stems) for known, stems in zip(lowered, stemmed, strict=True))
    words = tuple(word for sentence in sentences for word in sentence.words)
    stems = tuple(word for sentence in sentences for word in sentence.stems)
    return Profile(text, sentences, words, stems, frozenset(stems), frozenset(pairwise(words)), _names(parts))


def stem(word: str) -> str:
    """Return a word without the commonest English endings; other words as they are.

    >>> stem("drops"), stem("dropped"), stem("bus"), stem("größe")
    ('drop', 'dropp', 'bus', 'größe')
    """
    if not word.isascii() or len(word) < 5:
        return word
    ending = next((e for e in _ENDINGS if word.endswith(e) and len(word) - len(e) >= 4), "")
    return word.removesuffix(ending)


def _raw_words(text: str) -> list[str]:
    words: list[str] = []
    for word in _WORD.findall(text):
        if _UNSPACED_RUN.fullmatch(word):
            words += [word[i : i + 2] for i in range(len(word) - 1)] or [word]
        else:
            words.append(word.replace("\u2019", "'"))
    return words


def _names(sentences: list[tuple[str, list[str]]]) -> tuple[str, ...]:
    """Return the numbers, and the capitalised words that do not open a sentence."""
    inner = [word for _, words in sentences for word in words[1:] if word[0].isalpha()]
    capitalised = [word.lower() for word in inner if word[0].isupper()]
    # A headline, or a text in capitals, where a capital does not mark a name.
    names = capitalised if len(capitalised) <= 0.7 * len(inner) else []
    numbers = [word for _, words in sentences for word in words if word[0].isdigit()]
    return tuple(dict.fromkeys(name for name in [*names, *numbers] if name not in STOP_WORDS))


def ramp(value: float, low: float, high: float) -> float:
    """Map a value to 0 up to ``low``, to 1 from ``high`` on, and along a straight line between.

    >>> ramp(0.5, 0.0, 2.0), ramp(3.0, 0.0, 2.0), ramp(-1.0, 0.0, 2.0)
    (0.25, 1.0, 0.0)
    """
    return min(1.0, max(0.0, (value - low) / (high - low)))


def share(part: int, whole: int) -> float:
    """Return ``part / whole``, or 0 where the whole is 0."""
    return part / whole if whole else 0.0


def many(number: int, noun: str) -> str:
    """Write a number with its noun.

    >>> many(1, "sentence"), many(3, "sentence")
    ('1 sentence', '3 sentences')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
