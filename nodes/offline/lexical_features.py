"""Measure features of a text: alone, against its source, and as an answer."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from statistics import median

from .text_profile import (
    STOP_WORDS,
    Case,
    Measured,
    Profile,
    Sentence,
    many,
    percent,
    ramp,
    share,
    shown,
    stem,
)

# Where a measure calls ``ramp``, the two bounds are the values at which a text counts as wholly bad and as wholly good.
_REFUSAL = re.compile(
    r"\bas an ai\b|\blanguage model\b|\bi(?: am|'m)? (?:cannot|can't|unable to|not able to)\b|\bi(?:'m| am) sorry\b"
    r"|\bi apologi[sz]e\b|\bi do(?: not|n't) (?:have|know)\b"
)
# Lines that open a list item (``- one``, ``2. two``), a heading (``## Title``) or a block of code.
_STRUCTURE = re.compile(r"^[ \t]*(?:[-*•]|\d+[.)]|#{1,6} |```)", re.MULTILINE)


def reply_to_the_question(case: Case) -> Measured | None:
    """Measure how many content words of the question the answer takes up; None where the question has none."""
    asked = case.source.stem_set
    if not asked:
        return None
    found = len(asked & case.candidate.stem_set)
    words = f"{case.name} takes up {found} of the {many(len(asked), 'content word')} of the question"
    return Measured(ramp(found / len(asked), 0.0, 0.7), f"{words} ({percent(found / len(asked))})")


def level_of_detail(case: Case) -> Measured | None:
    """Measure how many different content words the answer has to give."""
    n = len(case.candidate.stem_set)
    return Measured(ramp(n, 0, 120) ** 0.5, f"{case.name} offers {many(n, 'different content word')}")


def answer_length(case: Case) -> Measured | None:
    """Measure how long the answer is; each further word counts for less, and beyond 600 for nothing."""
    n = len(case.candidate.words)
    return Measured(
        ramp(n, 0, 300) ** 0.5 * (1 - 0.5 * ramp(n, 600, 2000)), f"{case.name} runs to {many(n, 'word')}"
    )


def layout(case: Case) -> Measured | None:
    """Measure whether lists, paragraphs or code blocks give the answer a shape."""
    marks = len(_STRUCTURE.findall(case.candidate.text))
    blocks = len(re.findall(r"\n\s*\n", case.candidate.text.strip())) + 1
    words = f"{case.name} has {many(blocks, 'paragraph')} and {many(marks, 'line')} set as list or heading"
    return Measured(0.3 + 0.4 * ramp(marks, 0, 4) + 0.3 * ramp(blocks, 1, 4), words)


def exact_details(case: Case) -> Measured | None:
    """Measure how many names and numbers the answer gives that the question did not."""
    items = [i for i in (*case.candidate.names, *case.candidate.numbers) if i not in case.source.vocabulary]
    return Measured(
        ramp(len(items), 0, 12) ** 0.5, f"{case.name} gives {len(items)} names and numbers of its own"
    )


def readiness(case: Case) -> Measured | None:
    """Measure whether the answer answers, rather than excuse itself."""
    excuses = len(_REFUSAL.findall(case.candidate.text.lower().replace("\u2019", "'")))
    if not excuses:
        return Measured(1.0, f"{case.name} does not excuse itself anywhere")
    per_sentence = share(excuses, len(case.candidate.sentences))
    return Measured(1 - ramp(per_sentence, 0.0, 0.5), f"{case.name} excuses itself {many(excuses, 'time')}")


def match_with_the_reference(case: Case) -> Measured | None:
    """Measure how many content words and numbers of the reference answer the answer has as well."""
    if case.fact is None or not case.fact.stem_set:
        return None
    wanted = case.fact.stem_set
    found = len(wanted & case.candidate.stem_set)
    words = f"{case.name} has {found} of the {many(len(wanted), 'content word')} of the reference"
    return Measured(ramp(found / len(wanted), 0.0, 0.7), f"{words} ({percent(found / len(wanted))})")


def _usual(case: Case, low: float, high: float, of_replies: float) -> tuple[float, float]:
    """Return the range that a share usually has: ``low`` to ``high`` for a summary, 0 to ``of_replies`` for a reply.

    A summary draws on its source, a reply brings in words of its own.
    """
    return (0.0, of_replies) if case.is_dialogue else (low, high)


def _material(case: Case) -> str:
    return "the source and the fact" if case.is_dialogue else "the source"


def word_support(case: Case) -> Measured | None:
    """Measure how many of the candidate's content words occur in the source or the fact."""
    stems = case.candidate.stems
    if not stems or not case.source.words:
        return None
    known = case.source.stem_set | (case.fact.stem_set if case.fact else frozenset())
    found = sum(s in known for s in stems)
    words = f"I find {found} of the {many(len(stems), 'content word')} of {case.name} in {_material(case)}"
    quality = ramp(found / len(stems), *_usual(case, 0.5, 1.0, 0.8))
    return Measured(quality, f"{words} ({percent(found / len(stems))})")


def phrase_support(case: Case) -> Measured | None:
    """Measure how many of the candidate's word pairs stand side by side in the source or the fact too."""
    pairs = list(pairwise(case.candidate.words))
    if not pairs or not case.source.words:
        return None
    known = case.source.bigrams | (case.fact.bigrams if case.fact else frozenset())
    found = sum(p in known for p in pairs)
    words = f"I find {found} of the {many(len(pairs), 'word pair')} of {case.name} side by side in {_material(case)}"
    quality = ramp(found / len(pairs), *_usual(case, 0.2, 1.0, 0.6))
    return Measured(quality, f"{words} ({percent(found / len(pairs))})")


def names_and_numbers(case: Case) -> Measured | None:
    """Measure how many of the candidate's names and numbers are known from the source or the fact."""
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
    """Measure how many pairs of known words come in an order in which the source has them close together."""
    pairs = [p for p in pairwise(case.candidate.words) if set(p) <= case.source.vocabulary]
    if len(pairs) < 3:
        return None
    source = case.source.words
    # Up to three words on, so that a pair still counts where the candidate has left out a word or two.
    near = {(w, v) for i, w in enumerate(source) for v in source[i + 1 : i + 4]}
    found = sum(p in near for p in pairs)
    words = f"I find {found} of {len(pairs)} pairs of neighbouring words close together in the source as well"
    quality = ramp(found / len(pairs), *_usual(case, 0.2, 1.0, 0.8))
    return Measured(quality, f"{words} ({percent(found / len(pairs))})")


def coverage(case: Case) -> Measured | None:
    """Measure how much of what the source talks about most the candidate takes up."""
    counts = Counter(case.source.stems).most_common(20)
    if not counts:
        return None
    total = sum(n for _, n in counts)
    covered = sum(n for s, n in counts if s in case.candidate.stem_set)
    kept = sum(s in case.candidate.stem_set for s, _ in counts)
    words = f"{case.name} takes up {kept} of the {len(counts)} most frequent content words of the source"
    return Measured(ramp(covered / total, 0.1, 0.9), f"{words} ({percent(covered / total)} of their weight)")


def opening(case: Case) -> Measured | None:
    """Measure how much of the source's first sentences, where news put the main thing, the candidate takes up."""
    if case.is_dialogue or len(case.source.sentences) < 4:
        return None
    stems = {s for sentence in case.source.sentences[:3] for s in sentence.stems}
    found = len(stems & case.candidate.stem_set)
    words = f"{case.name} takes up {found} of the {len(stems)} content words of the source's first three sentences"
    return Measured(ramp(share(found, len(stems)), 0.05, 0.8), words)


def sentence_order(case: Case) -> Measured | None:
    """Measure whether the candidate's sentences come in the order of their places in the source."""
    first: dict[tuple[str, str], int] = {}
    for position, pair in enumerate(pairwise(case.source.words)):
        first.setdefault(pair, position)
    # A sentence's place is the median of its pairs' places, which a stray pair from elsewhere hardly moves.
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
    """Measure whether a reply takes up words of the last turns of the dialogue."""
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
    """Measure how many content words of the fact, beyond those the dialogue already had, a reply uses."""
    if case.fact is None or not case.fact.words:
        return None
    own = case.fact.stem_set - case.source.stem_set
    found = [s for s in dict.fromkeys(case.candidate.stems) if s in own]
    if not found:
        return Measured(0.0, f"{case.name} brings in no content word that only the fact has")
    words = f"{case.name} brings in {many(len(found), 'content word')} that only the fact has"
    return Measured(ramp(len(found), 0, 5), words)


def phrases_of_the_fact(case: Case) -> Measured | None:
    """Measure how many word pairs with a content word in them a reply shares with the fact."""
    if case.fact is None or not case.fact.words:
        return None
    pairs = [p for p in pairwise(case.candidate.words) if _has_content(p, case.candidate)]
    found = sum(p in case.fact.bigrams for p in pairs)
    words = f"I find {found} of the {many(len(pairs), 'word pair')} of {case.name} side by side in the fact"
    return Measured(ramp(found, 0, 4), words)


def _has_content(pair: tuple[str, str], text: Profile) -> bool:
    return any(stem(w) in text.stem_set for w in pair)


def closeness_to_the_fact(case: Case) -> Measured | None:
    """Measure which part of a reply's content words stands in the fact."""
    if case.fact is None or not case.fact.words or not case.candidate.stems:
        return None
    stems = case.candidate.stems
    found = sum(s in case.fact.stem_set for s in stems)
    words = f"I find {found} of the {many(len(stems), 'content word')} of {case.name} in the fact"
    return Measured(ramp(found / len(stems), 0.0, 0.6), f"{words} ({percent(found / len(stems))})")


def newness(case: Case) -> Measured | None:
    """Measure how many content words were not yet in the dialogue."""
    stems = list(dict.fromkeys(case.candidate.stems))
    if not stems or not case.source.words:
        return None
    new = sum(s not in case.source.stem_set for s in stems)
    words = f"{case.name} has {many(new, 'content word')} that the source did not have yet"
    return Measured(ramp(new, 0, 6), words)


_DETERMINER = r"(?:the|a|an|my|your|his|their|our|its)"
_AFTER_NO_DETERMINER = r"(?:the|a|an|of|and|or|is|are|was|were|has|have|to|for|at|from|with|into|that|which)"
# Matches, in this order: ``the of`` or ``a .``, ``of .``, ``is has``, ``from of``, ``the the``.
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
# Some datasets set the parts of a contraction apart (``i do n't know``), so each phrase is there in both spellings.
_STOCK = re.compile(
    r"\bi (?:do n't|don't|did n't|didn't) know\b|\bi 'm not sure\b|\bi'm not sure\b|\bi agree\b|\bthat 's"
    r" (?:interesting|true|cool|great|good)\b|\bthat's (?:interesting|true|cool|great|good)\b|\bi think so\b"
    r"|\byes , it is\b|\bi guess\b|\bme too\b|\bi 've heard\b|\bof course\b"
)
# Matches ``tHiS`` and ``SHOUTING``, but not ``McDonald``, ``iPhone`` or ``UNICEF``.
_ODD_CASE = re.compile(r"\b[^\W\d_]*[a-zß-ÿ][A-ZÀ-Þ][^\W\d_]*[A-ZÀ-Þ]|\b[A-ZÀ-Þ]{7,}\b")
# A full stop of any script, or one with quotation marks or brackets behind it: ``he said."``.
_FINAL = re.compile(r"[.!?…。\uff01\uff1f][\"'”\u2019)\]\s]*$")


def length(case: Case) -> Measured | None:
    """Measure whether there is enough text to say something, and less than the source itself."""
    n, whole = len(case.candidate.words), len(case.source.words)
    enough = ramp(n, 3, 25) if case.is_dialogue else ramp(n, 8, 75)
    bloat = ramp(n, 60, 150) if case.is_dialogue else ramp(share(n, whole), 0.5, 1.2)
    return Measured(enough * (1 - bloat), f"{case.name} runs to {many(n, 'word')}")


def repetition(case: Case) -> Measured | None:
    """Measure how many groups of three words come up more than once."""
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
    """Measure how many sentences say little that an earlier sentence had not said."""
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
    """Measure how many sentences are tied to the one before by a shared content word or a referring word."""
    steps = list(pairwise(case.candidate.sentences))
    if not steps:
        return None
    tied = sum(_is_tied(a, b) for a, b in steps)
    words = f"{case.name} ties {tied} of {many(len(steps), 'sentence')} after the first to the one before"
    return Measured(ramp(tied / len(steps), 0.0, 0.9), words)


def _is_tied(earlier: Sentence, later: Sentence) -> bool:
    return not set(earlier.stems).isdisjoint(later.stems) or not _REFERRING.isdisjoint(later.words[:6])


def whole_sentences(case: Case) -> Measured | None:
    """Measure whether the text ends as a text should, and its sentences are neither stubs nor endless."""
    sentences = case.candidate.sentences
    if not sentences:
        return Measured(0.0, f"{case.name} has no sentence")
    sound = sum(4 <= len(s.words) <= 45 for s in sentences)
    # Searched in the last characters alone, since the pattern would try every stop of a long text.
    ends = _FINAL.search(case.candidate.text[-40:]) is not None
    number = f"{case.name} has {sound} of {many(len(sentences), 'sentence')} within the usual length"
    words = f"{number} and {'ends as a text should' if ends else 'breaks off without a full stop'}"
    return Measured(0.5 * sound / len(sentences) + 0.5 * ends, words)


def sentence_length(case: Case) -> Measured | None:
    """Measure whether the average sentence is of a length that people write."""
    sentences = case.candidate.sentences
    if not sentences:
        return None
    mean = len(case.candidate.words) / len(sentences)
    quality = ramp(mean, 2, 9) * (1 - ramp(mean, 28, 60))
    return Measured(quality, f"{case.name} has {mean:.1f} words to a sentence on average")


def broken_joints(case: Case) -> Measured | None:
    """Measure how often words meet that do not follow each other ("the of", "the the", an article before a stop)."""
    if not _is_english(case.candidate):
        return None
    broken = sum(1 for _ in _BROKEN.finditer(case.candidate.text.lower()))
    if not broken:
        return Measured(1.0, f"nowhere in {case.name} do words meet that cannot follow each other")
    rate = share(broken, len(case.candidate.words))
    words = f"in {many(broken, 'place')} of {case.name} words meet that hardly follow each other"
    return Measured(1 - ramp(rate, 0.0, 0.06), words)


def function_words(case: Case) -> Measured | None:
    """Measure whether the small words have the part that they have in running text."""
    if not _is_english(case.candidate):
        return None
    part = _small_words(case.candidate)
    quality = ramp(part, 0.1, 0.3) * (1 - ramp(part, 0.65, 0.9))
    return Measured(quality, f"{case.name} consists of {percent(part)} small words")


def _small_words(text: Profile) -> float:
    return share(sum(w in STOP_WORDS for w in text.words), len(text.words))


def _is_english(text: Profile) -> bool:
    # The first 2000 characters tell enough, and keep a long text from being counted letter by letter.
    letters = sum(c.isascii() for c in text.text[:2000])
    return len(text.words) >= 3 and letters > 0.9 * len(text.text[:2000]) and _small_words(text) > 0.08


def casing_and_punctuation(case: Case) -> Measured | None:
    """Count odd capitals, sentences that open in lower case, stops in a row, and uneven spaces before stops."""
    text, sentences = case.candidate.text, case.candidate.sentences
    if not sentences:
        return None
    faults = len(_ODD_CASE.findall(text)) + len(re.findall(r"[,;:]\s*[,;:.!?]|[!?.]\s*,|[!?]{2,}", text))
    # The smaller number: a text with a space before every stop was tokenized, and only a mixture is a fault.
    faults += _small_openings(case) + min(_stops(text, r"\w\s+[.,!?]"), _stops(text, r"\w[.,!?](?:\s|$)"))
    faults += text.count("(") != text.count(")")
    words = f"{case.name} has {many(faults, 'odd spot')} in {many(len(sentences), 'sentence')}"
    return Measured(1 - ramp(share(faults, len(sentences)), 0.0, 1.5), words)


def _stops(text: str, pattern: str) -> int:
    return sum(1 for _ in re.finditer(pattern, text))


def _small_openings(case: Case) -> int:
    """Count the sentences that open in lower case; none where the whole text was put into lower case."""
    text = case.candidate.text
    # A source in lower case, or a space before a full stop, tells of a dataset that was tokenized and lowered.
    lower_made = text == text.lower() and (case.source.text == case.source.text.lower() or " ." in text)
    if lower_made or not any(c.isascii() and c.isalpha() for c in text):
        return 0
    return sum(s.text.lstrip("\"'“\u2018( ")[:1].islower() for s in case.candidate.sentences)


def variety(case: Case) -> Measured | None:
    """Measure how many of the content words are different ones."""
    stems = case.candidate.stems
    if len(stems) < 2:
        return None
    part = len(case.candidate.stem_set) / len(stems)
    words = f"{case.name} has {len(case.candidate.stem_set)} different ones among {len(stems)} content words"
    return Measured(ramp(part, 0.4, 0.95), f"{words} ({percent(part)})")


def substance(case: Case) -> Measured | None:
    """Measure how many different content words there are to hold on to."""
    n = len(case.candidate.stem_set)
    return Measured(ramp(n, 1, 12), f"{case.name} offers {many(n, 'different content word')}")


def address(case: Case) -> Measured | None:
    """Measure whether the text speaks to somebody: a question, a call, an I or a you."""
    text = case.candidate.text
    asks, calls = bool(re.search(r"[?\uff1f]", text)), bool(re.search(r"[!\uff01]", text))
    person = not _PERSON.isdisjoint(case.candidate.words)
    marks = ["a question"] * asks + ["an exclamation"] * calls + ["an I or a you"] * person
    found = " and ".join(marks) if marks else "neither a question nor an I or a you"
    return Measured(0.1 + 0.4 * asks + 0.2 * calls + 0.3 * person, f"{case.name} has {found}")


def stock_phrases(case: Case) -> Measured | None:
    """Measure how much of a reply is a ready-made phrase that fits anywhere."""
    spans = [m.group() for m in _STOCK.finditer(case.candidate.text.lower())]
    part = share(sum(len(s.split()) for s in spans), len(case.candidate.text.split()))
    words = f"{case.name} has {many(len(spans), 'ready-made phrase')}"
    return Measured(1 - ramp(part, 0.0, 0.5), words)
