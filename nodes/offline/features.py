"""Thirteen lexical features of a text, and their weights for each aspect.

First, a text's profile is computed: its words, their stems and pairs, its sentences, names and
numbers. Scripts without spaces between words are split into overlapping pairs of characters, and a
text without words (emoji, symbols) into single characters, so that every text has countable parts.

A feature is a quality from 0 (bad) to 1 (good) with a clause that describes the count. The two
bounds of a call of ``ramp`` are the values at which a text counts as completely bad and completely
good.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

from ...state.data_files import Words, check_data, line_in_toml, read_toml

_Weights = Annotated[str, Field(pattern=r"^[a-z ]+ [1-3]\*?(, [a-z ]+ [1-3]\*?)*$")]
"""Features with their weights, from 1 to 3; a star marks those that make a first impression."""


class _OfflineWords(TypedDict):
    stop_words: str
    referring_words: str
    gives_in: Words
    weights: dict[str, _Weights]


_FILE = Path(__file__).with_name("words.toml")
WORDS = read_toml(_FILE, _OfflineWords)
"""The words and weights from the file."""
STOP_WORDS = frozenset(WORDS["stop_words"].split())
# Thai and Lao, Burmese, Khmer, Japanese, and Chinese characters.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_LETTERS = rf"[^\W\d_{_UNSPACED}]+"
# A number (``1,000.5``), a run without spaces, a word (``don't``), or a separate clitic (``'s``).
_WORD = re.compile(
    rf"\d+(?:[.,]\d+)*|[{_UNSPACED}]+|{_LETTERS}(?:['\u2019]{_LETTERS})?|['\u2019](?:s|m|d|re|ve|ll)\b"
)
_UNSPACED_RUN = re.compile(rf"[{_UNSPACED}]+")
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”\u2019)\]]*\s+|(?<=[。\uff01\uff1f])|\n+")
# Longer endings first: ``churches`` loses ``es``, not only ``s``.
_ENDINGS = ("ing", "ed", "es", "s")


class Sentence(NamedTuple):
    """A sentence: its text, its words in lower case, and the stems of its content words."""

    text: str
    words: tuple[str, ...]
    stems: tuple[str, ...]


class Profile(NamedTuple):
    """A text with all counts that the features need.

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


# All agents of a debate use the same few texts in every turn.
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
    sentences = []
    for part, raw in parts:
        words = tuple(word.lower() for word in raw)
        sentences.append(
            Sentence(part, words, tuple(stem(word) for word in words if word not in STOP_WORDS))
        )
    words = tuple(word for sentence in sentences for word in sentence.words)
    stems = tuple(word for sentence in sentences for word in sentence.stems)
    pairs = frozenset(pairwise(words))
    names = _names([raw for _, raw in parts])
    return Profile(text, tuple(sentences), words, stems, frozenset(stems), pairs, names)


def stem(word: str) -> str:
    """Return a word without the most common English endings; other words are unchanged.

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


def _names(sentences: list[list[str]]) -> tuple[str, ...]:
    """Return the numbers, and the capitalised words that do not begin a sentence."""
    inner = [word for words in sentences for word in words[1:] if word[0].isalpha()]
    capitalised = [word.lower() for word in inner if word[0].isupper()]
    # In headlines and texts in capitals, a capital does not mark a name.
    names = capitalised if len(capitalised) <= 0.7 * len(inner) else []
    numbers = [word for words in sentences for word in words if word[0].isdigit()]
    return tuple(dict.fromkeys(name for name in [*names, *numbers] if name not in STOP_WORDS))


def ramp(value: float, low: float, high: float) -> float:
    """Map a value to 0 up to ``low``, to 1 from ``high``, and linearly in between.

    >>> ramp(0.5, 0.0, 2.0), ramp(3.0, 0.0, 2.0), ramp(-1.0, 0.0, 2.0)
    (0.25, 1.0, 0.0)
    """
    return min(1.0, max(0.0, (value - low) / (high - low)))


def share(part: int, whole: int) -> float:
    """Return ``part / whole``, or 0 if the whole is 0."""
    return part / whole if whole else 0.0


def many(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> many(1, "sentence"), many(3, "sentence")
    ('1 sentence', '3 sentences')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


class Case(NamedTuple):
    """The judged text and the texts that it is compared with, which are empty if missing.

    Attributes:
        text: the judged text.
        source: the article, the dialogue so far, or the question.
        fact: the knowledge given with a dialogue, or a reference answer.
        kind: the kind of the text: a reply in a dialogue (with a fact), an answer to a question, or
            another text.
        name: the name of the text in messages.
    """

    text: Profile
    source: Profile
    fact: Profile
    kind: Literal["text", "reply", "answer"]
    name: str


Measured = tuple[float, str] | None
"""A quality from 0 to 1 and a clause that describes the count; None if nothing can be counted."""


def support_from_the_source(case: Case) -> Measured:
    """Measure how many of the text's words and word pairs occur in the source or the fact."""
    stems = case.text.stems
    pairs = list(pairwise(case.text.words))
    if not stems or not case.source.words:
        return None
    known_words = sum(stem in case.source.stem_set or stem in case.fact.stem_set for stem in stems)
    known_pairs = sum(pair in case.source.pairs or pair in case.fact.pairs for pair in pairs)
    # A summary uses the words of its source. A reply has its own words.
    words, phrases = ((0.0, 0.8), (0.0, 0.6)) if case.kind == "reply" else ((0.5, 1.0), (0.2, 1.0))
    quality = (
        ramp(known_words / len(stems), *words) + ramp(share(known_pairs, len(pairs)), *phrases)
    ) / 2
    known = (
        f"{known_words} of the {many(len(stems), 'content word')} of {case.name} and {known_pairs}"
    )
    return quality, f"{known} of its {many(len(pairs), 'word pair')} can be found in the source"


def names_and_numbers(case: Case) -> Measured:
    """Measure how many of the text's names and numbers occur in the source or the fact."""
    if not case.text.names or not case.source.words:
        return None
    known = sum(name in case.source.words or name in case.fact.words for name in case.text.names)
    clause = (
        f"{known} of the {len(case.text.names)} that {case.name} gives can be found in the source"
    )
    return ramp(known / len(case.text.names), 0.2, 1.0), clause


def coverage_of_the_source(case: Case) -> Measured:
    """Measure how many of the source's most frequent content words the text uses."""
    frequent = Counter(case.source.stems).most_common(20)
    taken = [count for stem, count in frequent if stem in case.text.stem_set]
    how_many = f"{len(taken)} of the {len(frequent)} most frequent content words of the source"
    quality = ramp(share(sum(taken), sum(count for _, count in frequent)), 0.1, 0.9)
    return (quality, f"{case.name} takes up {how_many}") if frequent else None


def new_content(case: Case) -> Measured:
    """Measure how many content words of the text are new compared with the source."""
    if not case.text.stems or not case.source.words:
        return None
    new = len(case.text.stem_set - case.source.stem_set)
    return ramp(
        new, 0, 6
    ), f"{case.name} has {many(new, 'content word')} that the source does not have"


def repeated_wording(case: Case) -> Measured:
    """Measure how many groups of three words are repeated, and how many sentences add little."""
    words = case.text.words
    groups = list(zip(words, words[1:], words[2:], strict=False))
    if not groups:
        return None
    again = len(groups) - len(set(groups))
    stale = 0
    seen = set[str]()
    for sentence in case.text.sentences:
        stale += sum(stem in seen for stem in sentence.stems) > 0.6 * len(sentence.stems)
        seen.update(sentence.stems)
    quality = (
        1
        - (ramp(again / len(groups), 0.0, 0.3) + ramp(stale / len(case.text.sentences), 0.0, 0.6))
        / 2
    )
    if quality == 1:
        return quality, f"{case.name} repeats nothing"
    clause = f"{case.name} repeats {again} of its {len(groups)} groups of three words"
    return quality, f"{clause} and has {many(stale, 'sentence')} with little that is new"


def length_of_the_text(case: Case) -> Measured:
    """Measure whether the text is long enough, and not longer than its kind needs."""
    n = len(case.text.words)
    if case.kind == "answer":
        # Each further word counts less, and beyond 600 words against the answer.
        quality = ramp(n, 0, 300) ** 0.5 * (1 - 0.5 * ramp(n, 600, 2000))
    elif case.kind == "reply":
        quality = ramp(n, 3, 25) * (1 - ramp(n, 60, 150))
    else:
        quality = ramp(n, 8, 75) * (1 - ramp(share(n, len(case.source.words)), 0.5, 1.2))
    return quality, f"{case.name} has {many(n, 'word')}"


_ODD = re.compile(
    r"""
      \b [^\W\d_]* [a-zß-ÿ] [A-ZÀ-Þ] [^\W\d_]* [A-ZÀ-Þ]  # tHiS, but not McDonald or iPhone
    | \b [A-ZÀ-Þ]{7,} \b                                   # SHOUTING, but not UNICEF
    | [,;:] \s* [,;:.!?]                                   # ", ,"
    | [!?.] \s* ,                                          # "!,"
    | [!?]{2,}                                             # "?!"
    """,
    re.VERBOSE,
)
"""Matches odd spelling and repeated stops."""
# A full stop of any script, also before quotation marks or brackets: ``he said."``.
_FINAL = re.compile(r"[.!?…。\uff01\uff1f][\"'”\u2019)\]\s]*$")


def casing_and_punctuation(case: Case) -> Measured:
    """Measure odd capitals, repeated stops, sentences in lower case, and a missing end."""
    text = case.text.text
    sentences = case.text.sentences
    if not sentences:
        return 0.0, f"{case.name} has no sentence"
    # Search only the last characters, because the pattern would try every stop of a long text.
    ends = _FINAL.search(text[-40:]) is not None
    faults = sum(1 for _ in _ODD.finditer(text)) + (text.count("(") != text.count(")")) + (not ends)
    # A source in lower case, or a space before a full stop, shows that the dataset was lowercased.
    is_lowered = text == text.lower() and (
        case.source.text == case.source.text.lower() or " ." in text
    )
    if not is_lowered:
        faults += sum(sentence.text.lstrip("\"'“\u2018( ")[:1].islower() for sentence in sentences)
    clause = f"{case.name} has {many(faults, 'fault')} in {many(len(sentences), 'sentence')}"
    quality = 1 - ramp(faults / len(sentences), 0.0, 1.5)
    return quality, clause if ends else f"{clause} and breaks off without a full stop"


_BROKEN = re.compile(
    r"""
      # "the of", "a ."
      \b (?:the|a|an|my|your|his|their|our|its) \s+
      (?:
          (?:the|a|an|of|and|or|is|are|was|were|has|have|to|for|at|from|with|into|that|which) \b
        | [.,;:!?]
      )
      # "of ."
    | \b (?:of|and|or|to|into|with|than) \s* [.;:!?]
      # "is has"
    | \b (?:is|are|was|were) \s+ (?:is|are|was|were|has|have|had|did|does) \b
      # "from of"
    | \b (?:of|into|at|from) \s+ (?:of|into|at|from|and|is|are|was|were) \b
      # "very very"
    | \b (\w+) \s+ \1 \b
    """,
    re.VERBOSE,
)
"""Matches English words that cannot follow each other, in lower case."""


def grammar_of_the_sentences(case: Case) -> Measured:
    """Measure how often words meet that cannot follow each other in English."""
    if not case.text.words:
        return None
    broken = sum(1 for _ in _BROKEN.finditer(case.text.text.lower()))
    clause = f"{case.name} has {many(broken, 'pair')} of words that cannot follow each other"
    return 1 - ramp(broken / len(case.text.words), 0.0, 0.06), clause


def order_of_the_source(case: Case) -> Measured:
    """Measure whether the sentences are in the order of their word pairs in the source."""
    first: dict[tuple[str, str], int] = {}
    for position, pair in enumerate(pairwise(case.source.words)):
        first.setdefault(pair, position)
    places = [
        [first[pair] for pair in pairwise(s.words) if pair in first] for s in case.text.sentences
    ]
    # A sentence's place is the median of its pairs' places, which single stray pairs hardly move.
    steps = list(pairwise([median(positions) for positions in places if positions]))
    # A reply does not retell the dialogue, so its order does not matter.
    if not steps or case.kind == "reply":
        return None
    forward = sum(earlier <= later for earlier, later in steps)
    clause = (
        f"{case.name} moves forward through the source in {forward} of {many(len(steps), 'step')}"
    )
    return forward / len(steps), clause


_REFERRING = frozenset(WORDS["referring_words"].split())


def flow_between_sentences(case: Case) -> Measured:
    """Measure how many sentences share a content or referring word with the sentence before."""
    steps = list(pairwise(case.text.sentences))
    tied = sum(
        not set(earlier.stems).isdisjoint(later.stems) or not _REFERRING.isdisjoint(later.words[:6])
        for earlier, later in steps
    )
    clause = f"{case.name} links {tied} of {many(len(steps), 'sentence')} after the first to the one before"
    return (ramp(tied / len(steps), 0.0, 0.9), clause) if steps else None


# Some datasets set the parts of a contraction apart ("i do n't know"): both spellings match.
_EVASION = re.compile(
    r"""
      \b as\ an\ ai \b
    | \b language\ model \b
    | \b i(?:\ am|'m)?\ (?:cannot|can't|unable\ to|not\ able\ to) \b
    | \b i(?:\ am|\ ?'m)\ sorry \b
    | \b i\ apologi[sz]e \b
    | \b i\ (?:do\ not|do\ ?n't|did\ ?n't)\ (?:have|know) \b
    | \b i\ ?'m\ not\ sure \b
    | \b i\ agree \b
    | \b i\ guess \b
    | \b that\ ?'s\ (?:interesting|true|cool|great|good) \b
    | \b i\ think\ so \b
    | \b me\ too \b
    | \b of\ course \b
    """,
    re.VERBOSE,
)
"""Matches stock phrases and excuses, in lower case."""


def reply_to_what_was_asked(case: Case) -> Measured:
    """Measure whether an answer takes up its question, or a reply the last turns.

    Stock phrases and excuses lower the quality.
    """
    lines = [line for line in case.source.text.splitlines() if line.strip()]
    is_reply = case.kind == "reply"
    asked = profile("\n".join(lines[-2:])).stem_set if is_reply else case.source.stem_set
    if case.kind == "text" or not asked:
        return None
    taken = len(asked & case.text.stem_set)
    evasions = len(_EVASION.findall(case.text.text.lower().replace("\u2019", "'")))
    quality = ramp(taken, 0, 3) if is_reply else ramp(taken / len(asked), 0.0, 0.7)
    quality *= 1 - share(min(evasions, len(case.text.sentences)), len(case.text.sentences))
    what = "the last two turns" if is_reply else "the question"
    clause = f"{case.name} takes up {taken} of the {many(len(asked), 'content word')} of {what}"
    return quality, f"{clause} and evades it {many(evasions, 'time')}" if evasions else clause


def level_of_detail(case: Case) -> Measured:
    """Measure how many different content words there are."""
    n = len(case.text.stem_set)
    # Answers are expected to be detailed. Each further word counts less.
    quality = ramp(n, 0, 120) ** 0.5 if case.kind == "answer" else ramp(n, 1, 12)
    return quality, f"{case.name} has {many(n, 'different content word')}"


def use_of_the_fact(case: Case) -> Measured:
    """Measure how much of the given fact, or of the reference answer, the text uses."""
    # Words of the dialogue or the question do not show a use of the fact.
    own = case.fact.stem_set - case.source.stem_set
    if not own:
        return None
    taken = len(own & case.text.stem_set)
    content = [pair for pair in pairwise(case.text.words) if not STOP_WORDS.issuperset(pair)]
    shared = sum(pair in case.fact.pairs for pair in content)
    what = "the reference" if case.kind == "answer" else "the fact"
    clause = (
        f"{case.name} uses {many(taken, 'content word')} and {many(shared, 'word pair')} of {what}"
    )
    return (ramp(taken, 0, min(5, len(own))) + ramp(shared, 0, 4)) / 2, clause


# Each feature has the name of its function. No name may be part of another one, because agents
# refer to features by name.
_FEATURES = (
    *(
        support_from_the_source,
        names_and_numbers,
        coverage_of_the_source,
        new_content,
        repeated_wording,
    ),
    *(length_of_the_text, casing_and_punctuation, grammar_of_the_sentences, order_of_the_source),
    *(flow_between_sentences, reply_to_what_was_asked, level_of_detail, use_of_the_fact),
)
FEATURES: dict[str, Callable[[Case], Measured]] = {
    f.__name__.replace("_", " "): f for f in _FEATURES
}


def _has_known_features(row: str) -> str:
    for entry in row.split(", "):
        name = entry.rsplit(" ", 1)[0]
        if name not in FEATURES:
            raise ValueError(f"{name!r} is not a feature; features are {', '.join(FEATURES)}")
    return row


@cache
def _checked_weights() -> dict[str, str]:
    """Return the weights, and check that they name features.

    They are not checked on loading, because the features are functions that are defined later.
    """
    kind = dict[str, dict[str, Annotated[str, AfterValidator(_has_known_features)]]]
    content = {"weights": WORDS["weights"]}
    checked = check_data(
        _FILE, content, kind, lambda place, value: line_in_toml(_FILE, place, value)
    )
    return checked["weights"]


def weights_of(aspect: str) -> dict[str, tuple[float, bool]]:
    """Return an aspect's features with their weights, and whether they form a first impression.

    An aspect without an entry in ``words.toml`` gets a general mix.

    >>> weights_of("summeval/Consistency")["order of the source"]
    (1.0, False)
    """
    # Drop the benchmark's name: aspects of the same name are measured alike.
    table = _checked_weights()
    row = table.get(aspect.rsplit("/", 1)[-1].strip().lower(), table["general"])
    entries = (entry.strip().rsplit(" ", 1) for entry in row.split(","))
    return {name: (float(weight.rstrip("*")), weight.endswith("*")) for name, weight in entries}
