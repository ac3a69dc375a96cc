"""Which measures speak to which aspect, and with what weight.

The weights (1 to 3) were set beforehand from what the aspects mean, and are not fitted to anybody's
ratings. ``quick`` marks what a first impression is made of; a critic looks at everything.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from . import answers, grounding, style
from .measures import Case, Measure


@dataclass(frozen=True, slots=True)
class Witness:
    """A measure as it speaks to one aspect: under a name, with a weight, at first sight or not."""

    name: str
    measure: Measure
    weight: float
    quick: bool = False


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of evidence on the text, or on both answers: a quality and a clause for each."""

    name: str
    weight: float
    quick: bool
    qualities: tuple[float, ...]
    words: tuple[str, ...]


MEASURES: dict[str, Measure] = {
    "word support": grounding.word_support,
    "phrase support": grounding.phrase_support,
    "names and numbers": grounding.names_and_numbers,
    "word order": grounding.word_order,
    "coverage of the source": grounding.coverage,
    "the opening of the source": grounding.opening,
    "sentence order": grounding.sentence_order,
    "the tie to the last turn": grounding.tie_to_last_turn,
    "use of the fact": grounding.use_of_the_fact,
    "phrases of the fact": grounding.phrases_of_the_fact,
    "closeness to the fact": grounding.closeness_to_the_fact,
    "new words": grounding.newness,
    "length of the text": style.length,
    "repeated wording": style.repetition,
    "sameness of sentences": style.sameness_of_sentences,
    "flow between sentences": style.flow,
    "whole sentences": style.whole_sentences,
    "sentence length": style.sentence_length,
    "broken joints": style.broken_joints,
    "function words": style.function_words,
    "casing and punctuation": style.casing_and_punctuation,
    "variety of words": style.variety,
    "substance": style.substance,
    "speaking to somebody": style.address,
    "stock phrases": style.stock_phrases,
    "reply to the question": answers.reply_to_the_question,
    "level of detail": answers.level_of_detail,
    "length of the answer": answers.answer_length,
    "layout of the answer": answers.layout,
    "exact details": answers.exact_details,
    "readiness to answer": answers.readiness,
    "match with the reference": answers.match_with_the_reference,
}

# A name followed by its weight; a star marks what the first impression is made of.
_TABLE = {
    "coherence": "sentence order 3*, flow between sentences 2*, the tie to the last turn 3*, word order 2,"
    " sameness of sentences 2, whole sentences 2*, phrase support 1, repeated wording 1, broken joints 1,"
    " length of the text 1",
    "consistency": "word support 3*, phrase support 3*, names and numbers 3, word order 2, repeated wording 1",
    "fluency": "broken joints 3*, casing and punctuation 3*, whole sentences 2, repeated wording 2*, word order 2,"
    " function words 1, sentence length 1, phrase support 1",
    "relevance": "coverage of the source 3*, the opening of the source 3, length of the text 2*, word support 1,"
    " the tie to the last turn 2, sameness of sentences 1, repeated wording 1",
    "naturalness": "broken joints 3*, function words 1*, repeated wording 2*, whole sentences 2,"
    " the tie to the last turn 1, length of the text 1, sentence length 1*, casing and punctuation 1",
    "engagingness": "substance 3*, use of the fact 3, new words 2*, speaking to somebody 2*, length of the text 2,"
    " stock phrases 2, variety of words 1, repeated wording 1",
    "groundedness": "use of the fact 3*, phrases of the fact 3, closeness to the fact 2*, names and numbers 1",
    "understandability": "broken joints 2*, the tie to the last turn 2*, word support 2, whole sentences 2*,"
    " repeated wording 2, function words 1, sentence length 1",
    "": "word support 2*, coverage of the source 2, phrase support 1, length of the text 2*, repeated wording 2,"
    " broken joints 2, whole sentences 1*, flow between sentences 1, use of the fact 1, names and numbers 1,"
    " casing and punctuation 1",
    "answers": "level of detail 3*, length of the answer 2*, reply to the question 2*, readiness to answer 3,"
    " match with the reference 3, layout of the answer 1, exact details 2, repeated wording 2, broken joints 1,"
    " whole sentences 1",
}


def _witnesses(row: str) -> tuple[Witness, ...]:
    found = []
    for entry in row.split(","):
        name, weight = entry.strip().rsplit(" ", 1)
        found.append(Witness(name, MEASURES[name], float(weight.rstrip("*")), weight.endswith("*")))
    return tuple(found)


ASPECTS: dict[str, tuple[Witness, ...]] = {aspect: _witnesses(row) for aspect, row in _TABLE.items()}


def witnesses_of(aspect: str) -> tuple[Witness, ...]:
    """The measures that speak to an aspect; a general mix for one that is not in the table.

    >>> [w.name for w in witnesses_of("summeval/Coherence") if w.quick]
    ['sentence order', 'flow between sentences', 'the tie to the last turn', 'whole sentences']
    """
    return ASPECTS.get(aspect.rsplit("/", 1)[-1].strip().lower(), ASPECTS[""])


def evidence(cases: Iterable[Case], witnesses: Iterable[Witness]) -> tuple[Piece, ...]:
    """All that the witnesses have to say on the cases; who cannot speak on each of them is left out."""
    held = list(cases)
    pieces = []
    for witness in witnesses:
        measured = [m for m in map(witness.measure, held) if m is not None]
        if len(measured) == len(held):
            qualities, words = tuple(m.quality for m in measured), tuple(m.words for m in measured)
            pieces.append(Piece(witness.name, witness.weight, witness.quick, qualities, words))
    return tuple(pieces)
