"""What is countable in a text: its words, sentences, word pairs, names and numbers.

Scripts that put no spaces between words are read as overlapping pairs of characters, a text without any
word (emoji, symbols) as its single characters, so that every text has something to be counted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

_SMALL_WORDS = """a about above after again all also am an and any are as at be because been before being below between
    both but by can could did do does doing don down during each few for from further get go got had has have
    having he her here hers him his how i if in into is it its just ll m me more most my no nor not of off on
    once only or other our out over own re s same she should so some such t than that the their them then
    there these they this those through to too under until up us ve very was we were what when where which
    while who whom why will with would you your n't 's 'm 're 've 'll 'd it's i'm you're they're we're he's
    she's that's don't doesn't didn't isn't aren't wasn't weren't can't couldn't won't wouldn't haven't hasn't
    i've you've i'd i'll let's what's there's ca wo"""
STOP_WORDS = frozenset(_SMALL_WORDS.split())

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_LETTERS = rf"[^\W\d_{_UNSPACED}]+"
_WORD = re.compile(
    rf"\d+(?:[.,]\d+)*|[{_UNSPACED}]+|{_LETTERS}(?:['\u2019]{_LETTERS})?|['\u2019](?:s|m|d|re|ve|ll)\b"
)
_UNSPACED_RUN = re.compile(rf"[{_UNSPACED}]+")
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”\u2019)\]]*\s+|(?<=[。\uff01\uff1f])|\n+")
_ENDINGS = ("ing", "ed", "es", "s")


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence: its text, its words in lower case, and the stems of its content words."""

    text: str
    words: tuple[str, ...]
    stems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Profile:
    """A text with everything that the measures count, each counted once."""

    text: str
    words: tuple[str, ...]
    stems: tuple[str, ...]
    sentences: tuple[Sentence, ...]
    vocabulary: frozenset[str]
    stem_set: frozenset[str]
    bigrams: frozenset[tuple[str, str]]
    numbers: tuple[str, ...]
    names: tuple[str, ...]


@lru_cache(maxsize=32)
def profile(text: str) -> Profile:
    """Count a text.

    >>> p = profile("Ann met Bob in Paris. She paid 20 euros.")
    >>> len(p.words), len(p.sentences), p.numbers, p.names
    (9, 2, ('20',), ('bob', 'paris'))
    >>> profile("猫が好き").words
    ('猫が', 'が好', '好き')
    """
    parts = [(part, found) for part in _SENTENCE_END.split(text) if (found := _raw_words(part))]
    if not parts and text.strip():
        parts = [(text, [c for c in text if not c.isspace()])]
    sentences = tuple(_sentence(part, words) for part, words in parts)
    words = tuple(w for s in sentences for w in s.words)
    stems = tuple(w for s in sentences for w in s.stems)
    return Profile(
        text=text,
        words=words,
        stems=stems,
        sentences=sentences,
        vocabulary=frozenset(words),
        stem_set=frozenset(stems),
        bigrams=frozenset(pairwise(words)),
        numbers=tuple(dict.fromkeys(w for w in words if w[0].isdigit())),
        names=_names([words for _, words in parts]),
    )


def stem(word: str) -> str:
    """A word without its commonest English endings; other words as they are.

    >>> stem("drops"), stem("dropped"), stem("bus"), stem("größe")
    ('drop', 'dropp', 'bus', 'größe')
    """
    if not word.isascii() or len(word) < 5:
        return word
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word


def shown(words: Sequence[str], most: int = 3) -> str:
    """A few single words in quotation marks, fit for a sentence.

    >>> shown(["burnley", "2015"])
    '"burnley", "2015"'
    """
    return ", ".join(f'"{w[:24]}"' for w in words[:most])


def _raw_words(text: str) -> list[str]:
    found: list[str] = []
    for word in _WORD.findall(text):
        found += _character_pairs(word) if _UNSPACED_RUN.fullmatch(word) else [word.replace("\u2019", "'")]
    return found


def _character_pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


def _sentence(text: str, words: list[str]) -> Sentence:
    lowered = tuple(w.lower() for w in words)
    return Sentence(text, lowered, tuple(stem(w) for w in lowered if w not in STOP_WORDS))


def _names(sentences: list[list[str]]) -> tuple[str, ...]:
    """Capitalised words that do not open a sentence (in a text of capitals alone, none)."""
    inner = [w for words in sentences for w in words[1:] if w[0].isalpha()]
    capitalised = [w for w in inner if w[0].isupper()]
    if len(capitalised) > 0.7 * len(inner):
        return ()
    lowered = (w.lower() for w in capitalised)
    return tuple(dict.fromkeys(w for w in lowered if w not in STOP_WORDS))
