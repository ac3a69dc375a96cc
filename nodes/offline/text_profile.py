"""Count what a text holds, and define what a measure takes and returns.

Scripts that put no spaces between words are read as overlapping pairs of characters, a text without any
word (emoji, symbols) as its single characters, so that every text has something to be counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TypeAlias

_SMALL_WORDS = """a about above after again all also am an and any are as at be because been before being below between
    both but by can could did do does doing don down during each few for from further get go got had has have
    having he her here hers him his how i if in into is it its just ll m me more most my no nor not of off on
    once only or other our out over own re s same she should so some such t than that the their them then
    there these they this those through to too under until up us ve very was we were what when where which
    while who whom why will with would you your n't 's 'm 're 've 'll 'd it's i'm you're they're we're he's
    she's that's don't doesn't didn't isn't aren't wasn't weren't can't couldn't won't wouldn't haven't hasn't
    i've you've i'd i'll let's what's there's ca wo"""
STOP_WORDS = frozenset(_SMALL_WORDS.split())
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
    """Hold a text with everything that the measures count, each counted once."""

    text: str
    words: tuple[str, ...]
    stems: tuple[str, ...]
    sentences: tuple[Sentence, ...]
    vocabulary: frozenset[str]
    stem_set: frozenset[str]
    bigrams: frozenset[tuple[str, str]]
    numbers: tuple[str, ...]
    names: tuple[str, ...]


# All agents of a debate look at the same few texts, again in every turn.
@lru_cache(maxsize=32)
def profile(text: str) -> Profile:
    """Count the words, sentences, names and numbers of a text.

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
    """Return a word without the commonest English endings; other words as they are.

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
    """Write a few single words in quotation marks, as they stand in a sentence.

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
    """Return the capitalised words that do not open a sentence (in a text of capitals alone, none)."""
    inner = [w for words in sentences for w in words[1:] if w[0].isalpha()]
    capitalised = [w for w in inner if w[0].isupper()]
    # A headline, or a text in capitals, where a capital does not mark a name.
    if len(capitalised) > 0.7 * len(inner):
        return ()
    lowered = (w.lower() for w in capitalised)
    return tuple(dict.fromkeys(w for w in lowered if w not in STOP_WORDS))


@dataclass(frozen=True, slots=True)
class Case:
    """Hold the text that is judged (a candidate or an answer) and the texts that it is compared with.

    Attributes:
        candidate: the text that is judged.
        source: the article, the dialogue so far, or the question; empty where there is none.
        fact: the knowledge given with a dialogue, or a reference answer.
        name: what the prose calls the candidate.
    """

    candidate: Profile
    source: Profile
    fact: Profile | None
    name: str = "the candidate"

    @property
    def is_dialogue(self) -> bool:
        """Tell whether the candidate answers a dialogue: then a fact comes with it."""
        return self.fact is not None

    @property
    def last_turns(self) -> tuple[Profile, ...]:
        """The last two lines of the source, the latest first."""
        lines = [line for line in self.source.text.splitlines() if line.strip()]
        return tuple(profile(line) for line in lines[:-3:-1])


@dataclass(frozen=True, slots=True)
class Measured:
    """Hold a quality from 0 (bad) to 1 (good), and the clause that tells what was counted."""

    quality: float
    words: str


Measure: TypeAlias = Callable[[Case], Measured | None]
"""A function that measures a case; it returns ``None`` where the case has nothing that it could measure."""


def ramp(value: float, low: float, high: float) -> float:
    """Map a value to 0 up to ``low``, to 1 from ``high`` on, and along a straight line between.

    >>> ramp(0.5, 0.0, 2.0), ramp(3.0, 0.0, 2.0), ramp(-1.0, 0.0, 2.0)
    (0.25, 1.0, 0.0)
    """
    return min(1.0, max(0.0, (value - low) / (high - low)))


def share(part: int, whole: int) -> float:
    """Return ``part / whole``, or 0 where the whole is 0."""
    return part / whole if whole else 0.0


def percent(value: float) -> str:
    """Write a share as a percentage.

    >>> percent(0.789)
    '79 %'
    """
    return f"{100 * value:.0f} %"


def many(number: int, noun: str) -> str:
    """Write a number with its noun.

    >>> many(1, "sentence"), many(3, "sentence")
    ('1 sentence', '3 sentences')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
