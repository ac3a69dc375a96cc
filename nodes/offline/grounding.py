"""Measures of a candidate against what it was made from: source, dialogue and fact."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from statistics import median

from .measures import Case, Measured, many, percent, ramp, share
from .texts import Profile, shown, stem


def _usual(case: Case, low: float, high: float, of_replies: float) -> tuple[float, float]:
    """The range that a share usually has: a summary draws on its source, a reply brings in words of its own."""
    return (0.0, of_replies) if case.is_dialogue else (low, high)


def _material(case: Case) -> str:
    return "the source and the fact" if case.is_dialogue else "the source"


def word_support(case: Case) -> Measured | None:
    """How many of the candidate's content words occur in the source or the fact."""
    stems = case.candidate.stems
    if not stems or not case.source.words:
        return None
    known = case.source.stem_set | (case.fact.stem_set if case.fact else frozenset())
    found = sum(s in known for s in stems)
    words = f"I find {found} of the {many(len(stems), 'content word')} of {case.name} in {_material(case)}"
    quality = ramp(found / len(stems), *_usual(case, 0.5, 1.0, 0.8))
    return Measured(quality, f"{words} ({percent(found / len(stems))})")


def phrase_support(case: Case) -> Measured | None:
    """How many of the candidate's word pairs stand side by side in the source or the fact too."""
    pairs = list(pairwise(case.candidate.words))
    if not pairs or not case.source.words:
        return None
    known = case.source.bigrams | (case.fact.bigrams if case.fact else frozenset())
    found = sum(p in known for p in pairs)
    words = f"I find {found} of the {many(len(pairs), 'word pair')} of {case.name} side by side in {_material(case)}"
    quality = ramp(found / len(pairs), *_usual(case, 0.2, 1.0, 0.6))
    return Measured(quality, f"{words} ({percent(found / len(pairs))})")


def names_and_numbers(case: Case) -> Measured | None:
    """How many of the candidate's names and numbers are known from the source or the fact."""
    items = (*case.candidate.names, *case.candidate.numbers)
    if not items or not case.source.words:
        return None
    known = case.source.vocabulary | (case.fact.vocabulary if case.fact else frozenset())
    unknown = [i for i in items if i not in known]
    if not unknown:
        return Measured(1.0, f"I find all {len(items)} that {case.name} gives in {_material(case)}")
    words = f"{len(unknown)} of the {len(items)} that {case.name} gives cannot be found elsewhere ({shown(unknown)})"
    return Measured(ramp(1 - len(unknown) / len(items), 0.2, 1.0), words)


def word_order(case: Case) -> Measured | None:
    """How many pairs of known words come in an order in which the source has them close together."""
    pairs = [p for p in pairwise(case.candidate.words) if set(p) <= case.source.vocabulary]
    if len(pairs) < 3:
        return None
    source = case.source.words
    near = {(w, v) for i, w in enumerate(source) for v in source[i + 1 : i + 4]}
    found = sum(p in near for p in pairs)
    words = f"I find {found} of {len(pairs)} pairs of neighbouring words close together in the source as well"
    quality = ramp(found / len(pairs), *_usual(case, 0.2, 1.0, 0.8))
    return Measured(quality, f"{words} ({percent(found / len(pairs))})")


def coverage(case: Case) -> Measured | None:
    """How much of what the source talks about most the candidate takes up."""
    counts = Counter(case.source.stems).most_common(20)
    if not counts:
        return None
    total = sum(n for _, n in counts)
    covered = sum(n for s, n in counts if s in case.candidate.stem_set)
    kept = sum(s in case.candidate.stem_set for s, _ in counts)
    words = f"{case.name} takes up {kept} of the {len(counts)} most frequent content words of the source"
    return Measured(ramp(covered / total, 0.1, 0.9), f"{words} ({percent(covered / total)} of their weight)")


def opening(case: Case) -> Measured | None:
    """How much of the source's first sentences, where news put the main thing, the candidate takes up."""
    if case.is_dialogue or len(case.source.sentences) < 4:
        return None
    stems = {s for sentence in case.source.sentences[:3] for s in sentence.stems}
    found = len(stems & case.candidate.stem_set)
    words = f"{case.name} takes up {found} of the {len(stems)} content words of the source's first three sentences"
    return Measured(ramp(share(found, len(stems)), 0.05, 0.8), words)


def sentence_order(case: Case) -> Measured | None:
    """Whether the candidate's sentences come in the order of their places in the source."""
    first: dict[tuple[str, str], int] = {}
    for position, pair in enumerate(pairwise(case.source.words)):
        first.setdefault(pair, position)
    located = [median(p) for s in case.candidate.sentences if (p := _positions(s.words, first))]
    if len(located) < 2:
        return None
    steps = list(pairwise(located))
    forward = sum(a <= b for a, b in steps)
    words = f"{case.name} moves forward through the source in {forward} of {many(len(steps), 'step')}"
    return Measured(ramp(forward / len(steps), 0.0, 1.0), words)


def _positions(words: tuple[str, ...], first: dict[tuple[str, str], int]) -> list[int]:
    return [first[p] for p in pairwise(words) if p in first]


def tie_to_last_turn(case: Case) -> Measured | None:
    """Whether a reply takes up words of the last turns of the dialogue."""
    turns = case.last_turns
    if not case.is_dialogue or not turns or not case.candidate.words:
        return None
    recent = {s for turn in turns for s in turn.stem_set}
    found = case.candidate.stem_set & recent
    last = case.candidate.stem_set & turns[0].stem_set
    quality = 0.6 * ramp(len(found), 0, 3) + 0.4 * ramp(len(last), 0, 2)
    if not found:
        return Measured(quality, f"{case.name} takes up no content word of the last two turns")
    return Measured(quality, f"{case.name} takes up {many(len(found), 'content word')} of the last two turns")


def use_of_the_fact(case: Case) -> Measured | None:
    """How many content words of the fact, beyond those the dialogue already had, a reply uses."""
    if case.fact is None or not case.fact.words:
        return None
    own = case.fact.stem_set - case.source.stem_set
    found = [s for s in dict.fromkeys(case.candidate.stems) if s in own]
    if not found:
        return Measured(0.0, f"{case.name} brings in no content word that only the fact has")
    words = f"{case.name} brings in {many(len(found), 'content word')} that only the fact has"
    return Measured(ramp(len(found), 0, 5), words)


def phrases_of_the_fact(case: Case) -> Measured | None:
    """How many word pairs with a content word in them a reply shares with the fact."""
    if case.fact is None or not case.fact.words:
        return None
    pairs = [p for p in pairwise(case.candidate.words) if _has_content(p, case.candidate)]
    found = sum(p in case.fact.bigrams for p in pairs)
    words = f"I find {found} of the {many(len(pairs), 'word pair')} of {case.name} side by side in the fact"
    return Measured(ramp(found, 0, 4), words)


def _has_content(pair: tuple[str, str], text: Profile) -> bool:
    return any(stem(w) in text.stem_set for w in pair)


def closeness_to_the_fact(case: Case) -> Measured | None:
    """Which part of a reply's content words stands in the fact."""
    if case.fact is None or not case.fact.words or not case.candidate.stems:
        return None
    stems = case.candidate.stems
    found = sum(s in case.fact.stem_set for s in stems)
    words = f"I find {found} of the {many(len(stems), 'content word')} of {case.name} in the fact"
    return Measured(ramp(found / len(stems), 0.0, 0.6), f"{words} ({percent(found / len(stems))})")


def newness(case: Case) -> Measured | None:
    """How many content words were not yet in the dialogue."""
    stems = list(dict.fromkeys(case.candidate.stems))
    if not stems or not case.source.words:
        return None
    new = sum(s not in case.source.stem_set for s in stems)
    words = f"{case.name} has {many(new, 'content word')} that the source did not have yet"
    return Measured(ramp(new, 0, 6), words)
