"""Measures of a candidate by itself: form, repetition, length and tone."""

from __future__ import annotations

import re
from itertools import pairwise

from .measures import Case, Measured, many, percent, ramp, share
from .texts import STOP_WORDS, Profile, Sentence

_DETERMINER = r"(?:the|a|an|my|your|his|their|our|its)"
_AFTER_NO_DETERMINER = r"(?:the|a|an|of|and|or|is|are|was|were|has|have|to|for|at|from|with|into|that|which)"
_BROKEN = re.compile(
    rf"\b{_DETERMINER}\s+(?:{_AFTER_NO_DETERMINER}\b|[.,;:!?])"
    r"|\b(?:of|and|or|to|into|with|than)\s*[.;:!?]"
    r"|\b(?:is|are|was|were)\s+(?:is|are|was|were|has|have|had|did|does)\b"
    r"|\b(?:of|into|at|from)\s+(?:of|into|at|from|and|is|are|was|were)\b"
    r"|\b(\w+)\s+\1\b"
)
_REFERRING_WORDS = """he she it they him her them his their its this that these those but however also then so because
    meanwhile although after before while still yet instead"""
_REFERRING = frozenset(_REFERRING_WORDS.split())
_PERSONAL_WORDS = "i me my we us our you your i'm i've i'd i'll you're you've we're 'm"
_PERSON = frozenset(_PERSONAL_WORDS.split())
_STOCK = re.compile(
    r"\bi (?:do n't|don't|did n't|didn't) know\b|\bi 'm not sure\b|\bi'm not sure\b|\bi agree\b|\bthat 's"
    r" (?:interesting|true|cool|great|good)\b|\bthat's (?:interesting|true|cool|great|good)\b|\bi think so\b"
    r"|\byes , it is\b|\bi guess\b|\bme too\b|\bi 've heard\b|\bof course\b"
)
_ODD_CASE = re.compile(r"\b[^\W\d_]*[a-zß-ÿ][A-ZÀ-Þ][^\W\d_]*[A-ZÀ-Þ]|\b[A-ZÀ-Þ]{7,}\b")
_FINAL = re.compile(r"[.!?…。\uff01\uff1f][\"'”\u2019)\]\s]*$")


def length(case: Case) -> Measured | None:
    """Whether there is enough text to say something, and less than the source itself."""
    n, whole = len(case.candidate.words), len(case.source.words)
    enough = ramp(n, 3, 25) if case.is_dialogue else ramp(n, 8, 75)
    bloat = ramp(n, 60, 150) if case.is_dialogue else ramp(share(n, whole), 0.5, 1.2)
    return Measured(enough * (1 - bloat), f"{case.name} runs to {many(n, 'word')}")


def repetition(case: Case) -> Measured | None:
    """How many groups of three words come up more than once."""
    words = case.candidate.words
    groups = list(zip(words, words[1:], words[2:], strict=False))
    if not groups:
        return None
    again = len(groups) - len(set(groups))
    if not again:
        return Measured(1.0, f"{case.name} has no group of three words that comes twice")
    text = f"{case.name} says {again} of its {len(groups)} groups of three words again"
    return Measured(1 - ramp(again / len(groups), 0.0, 0.3), text)


def sameness_of_sentences(case: Case) -> Measured | None:
    """How many sentences say little that an earlier sentence had not said."""
    sentences = [s for s in case.candidate.sentences if s.stems]
    if len(sentences) < 2:
        return None
    seen: set[str] = set()
    stale = 0
    for sentence in sentences:
        stale += share(sum(s in seen for s in sentence.stems), len(sentence.stems)) > 0.6
        seen.update(sentence.stems)
    words = f"{case.name} has {stale} of {len(sentences)} sentences that add next to nothing"
    return Measured(1 - ramp(share(stale, len(sentences)), 0.0, 0.6), words)


def flow(case: Case) -> Measured | None:
    """How many sentences are tied to the one before by a shared content word or a referring word."""
    steps = list(pairwise(case.candidate.sentences))
    if not steps:
        return None
    tied = sum(_is_tied(a, b) for a, b in steps)
    words = f"{case.name} ties {tied} of {many(len(steps), 'sentence')} after the first to the one before"
    return Measured(ramp(tied / len(steps), 0.0, 0.9), words)


def _is_tied(earlier: Sentence, later: Sentence) -> bool:
    return not set(earlier.stems).isdisjoint(later.stems) or not _REFERRING.isdisjoint(later.words[:6])


def whole_sentences(case: Case) -> Measured | None:
    """Whether the text ends as a text should, and its sentences are neither stubs nor endless."""
    sentences = case.candidate.sentences
    if not sentences:
        return Measured(0.0, f"{case.name} has no sentence")
    sound = sum(4 <= len(s.words) <= 45 for s in sentences)
    ends = _FINAL.search(case.candidate.text[-40:]) is not None
    number = f"{case.name} has {sound} of {many(len(sentences), 'sentence')} within the usual length"
    words = f"{number} and {'ends as a text should' if ends else 'breaks off without a full stop'}"
    return Measured(0.5 * sound / len(sentences) + 0.5 * ends, words)


def sentence_length(case: Case) -> Measured | None:
    """Whether the average sentence is of a length that people write."""
    sentences = case.candidate.sentences
    if not sentences:
        return None
    mean = len(case.candidate.words) / len(sentences)
    quality = ramp(mean, 2, 9) * (1 - ramp(mean, 28, 60))
    return Measured(quality, f"{case.name} has {mean:.1f} words to a sentence on average")


def broken_joints(case: Case) -> Measured | None:
    """How often words meet that do not follow each other ("the of", "the the", an article before a stop)."""
    if not _is_english(case.candidate):
        return None
    broken = sum(1 for _ in _BROKEN.finditer(case.candidate.text.lower()))
    if not broken:
        return Measured(1.0, f"nowhere in {case.name} do words meet that cannot follow each other")
    rate = share(broken, len(case.candidate.words))
    words = f"in {many(broken, 'place')} of {case.name} words meet that hardly follow each other"
    return Measured(1 - ramp(rate, 0.0, 0.06), words)


def function_words(case: Case) -> Measured | None:
    """Whether the small words have the part that they have in running text."""
    if not _is_english(case.candidate):
        return None
    part = _small_words(case.candidate)
    quality = ramp(part, 0.1, 0.3) * (1 - ramp(part, 0.65, 0.9))
    return Measured(quality, f"{case.name} consists of {percent(part)} small words")


def _small_words(text: Profile) -> float:
    return share(sum(w in STOP_WORDS for w in text.words), len(text.words))


def _is_english(text: Profile) -> bool:
    letters = sum(c.isascii() for c in text.text[:2000])
    return len(text.words) >= 3 and letters > 0.9 * len(text.text[:2000]) and _small_words(text) > 0.08


def casing_and_punctuation(case: Case) -> Measured | None:
    """Odd capitals, sentences opened in lower case, stops in a row, spaces now before stops and now not."""
    text, sentences = case.candidate.text, case.candidate.sentences
    if not sentences:
        return None
    faults = len(_ODD_CASE.findall(text)) + len(re.findall(r"[,;:]\s*[,;:.!?]|[!?.]\s*,|[!?]{2,}", text))
    faults += _small_openings(case) + min(_stops(text, r"\w\s+[.,!?]"), _stops(text, r"\w[.,!?](?:\s|$)"))
    faults += text.count("(") != text.count(")")
    words = f"{case.name} has {many(faults, 'odd spot')} in {many(len(sentences), 'sentence')}"
    return Measured(1 - ramp(share(faults, len(sentences)), 0.0, 1.5), words)


def _stops(text: str, pattern: str) -> int:
    return sum(1 for _ in re.finditer(pattern, text))


def _small_openings(case: Case) -> int:
    """Sentences opened in lower case; none where the whole text is in lower case by its making."""
    text = case.candidate.text
    lower_made = text == text.lower() and (case.source.text == case.source.text.lower() or " ." in text)
    if lower_made or not any(c.isascii() and c.isalpha() for c in text):
        return 0
    return sum(s.text.lstrip("\"'“\u2018( ")[:1].islower() for s in case.candidate.sentences)


def variety(case: Case) -> Measured | None:
    """How many of the content words are different ones."""
    stems = case.candidate.stems
    if len(stems) < 2:
        return None
    part = len(case.candidate.stem_set) / len(stems)
    words = f"{case.name} has {len(case.candidate.stem_set)} different ones among {len(stems)} content words"
    return Measured(ramp(part, 0.4, 0.95), f"{words} ({percent(part)})")


def substance(case: Case) -> Measured | None:
    """How many different content words there are to hold on to."""
    n = len(case.candidate.stem_set)
    return Measured(ramp(n, 1, 12), f"{case.name} offers {many(n, 'different content word')}")


def address(case: Case) -> Measured | None:
    """Whether the text speaks to somebody: a question, a call, an I or a you."""
    text = case.candidate.text
    asks, calls = bool(re.search(r"[?\uff1f]", text)), bool(re.search(r"[!\uff01]", text))
    person = not _PERSON.isdisjoint(case.candidate.words)
    marks = ["a question"] * asks + ["an exclamation"] * calls + ["an I or a you"] * person
    found = " and ".join(marks) if marks else "neither a question nor an I or a you"
    return Measured(0.1 + 0.4 * asks + 0.2 * calls + 0.3 * person, f"{case.name} has {found}")


def stock_phrases(case: Case) -> Measured | None:
    """How much of a reply is a ready-made phrase that fits anywhere."""
    spans = [m.group() for m in _STOCK.finditer(case.candidate.text.lower())]
    part = share(sum(len(s.split()) for s in spans), len(case.candidate.text.split()))
    words = f"{case.name} has {many(len(spans), 'ready-made phrase')}"
    return Measured(1 - ramp(part, 0.0, 0.5), words)
