"""Read a prompt, measure the evidence on its texts, and turn the evidence into numbers on a scale.

The weights (1 to 3) were set beforehand from what the aspects mean, and are not fitted to anybody's
ratings. ``quick`` marks what a first impression is made of; a critic looks at everything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..delimiters import Section
from . import lexical_features
from .text_profile import Case, Measure, profile


@dataclass(frozen=True, slots=True)
class Feature:
    """Use a measure for one aspect: under a name, with a weight, and as part of a first impression or not."""

    name: str
    measure: Measure
    weight: float
    quick: bool = False


@dataclass(frozen=True, slots=True)
class Evidence:
    """Hold one piece of evidence on the text, or on both answers: a quality and a clause for each."""

    name: str
    weight: float
    quick: bool
    qualities: tuple[float, ...]
    words: tuple[str, ...]


MEASURES: dict[str, Measure] = {
    "word support": lexical_features.word_support,
    "phrase support": lexical_features.phrase_support,
    "names and numbers": lexical_features.names_and_numbers,
    "word order": lexical_features.word_order,
    "coverage of the source": lexical_features.coverage,
    "the opening of the source": lexical_features.opening,
    "sentence order": lexical_features.sentence_order,
    "the tie to the last turn": lexical_features.tie_to_last_turn,
    "use of the fact": lexical_features.use_of_the_fact,
    "phrases of the fact": lexical_features.phrases_of_the_fact,
    "closeness to the fact": lexical_features.closeness_to_the_fact,
    "new words": lexical_features.newness,
    "length of the text": lexical_features.length,
    "repeated wording": lexical_features.repetition,
    "sameness of sentences": lexical_features.sameness_of_sentences,
    "flow between sentences": lexical_features.flow,
    "whole sentences": lexical_features.whole_sentences,
    "sentence length": lexical_features.sentence_length,
    "broken joints": lexical_features.broken_joints,
    "function words": lexical_features.function_words,
    "casing and punctuation": lexical_features.casing_and_punctuation,
    "variety of words": lexical_features.variety,
    "substance": lexical_features.substance,
    "speaking to somebody": lexical_features.address,
    "stock phrases": lexical_features.stock_phrases,
    "reply to the question": lexical_features.reply_to_the_question,
    "level of detail": lexical_features.level_of_detail,
    "length of the answer": lexical_features.answer_length,
    "layout of the answer": lexical_features.layout,
    "exact details": lexical_features.exact_details,
    "readiness to answer": lexical_features.readiness,
    "match with the reference": lexical_features.match_with_the_reference,
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


def _witnesses(row: str) -> tuple[Feature, ...]:
    found = []
    for entry in row.split(","):
        name, weight = entry.strip().rsplit(" ", 1)
        found.append(Feature(name, MEASURES[name], float(weight.rstrip("*")), weight.endswith("*")))
    return tuple(found)


ASPECTS: dict[str, tuple[Feature, ...]] = {aspect: _witnesses(row) for aspect, row in _TABLE.items()}


def features_of(aspect: str) -> tuple[Feature, ...]:
    """Return the features that are measured for an aspect; a general mix for one that is not in the table.

    >>> [w.name for w in features_of("summeval/Coherence") if w.quick]
    ['sentence order', 'flow between sentences', 'the tie to the last turn', 'whole sentences']
    """
    # Without the benchmark's name: aspects of one name are measured alike.
    return ASPECTS.get(aspect.rsplit("/", 1)[-1].strip().lower(), ASPECTS[""])


def evidence(cases: Iterable[Case], witnesses: Iterable[Feature]) -> tuple[Evidence, ...]:
    """Measure features of the cases; a feature that cannot be measured on each case is left out."""
    held = list(cases)
    pieces = []
    for witness in witnesses:
        measured = [m for m in map(witness.measure, held) if m is not None]
        # In a comparison both answers need the measure, or there is nothing to compare.
        if len(measured) == len(held):
            qualities, words = tuple(m.quality for m in measured), tuple(m.words for m in measured)
            pieces.append(Evidence(witness.name, witness.weight, witness.quick, qualities, words))
    return tuple(pieces)


Qualities = tuple[float, ...]
"""One quality for a score, two for a comparison; each from 0 to 1."""
# The quality of a text on which nothing can be measured, such as an empty one.
NOTHING_TO_SEE = 0.0


@dataclass(frozen=True, slots=True)
class Scale:
    """Turn qualities from 0 to 1 into the numbers that may be said on a scale, and back.

    >>> Scale(1, 5).value(0.6), Scale(0, 1).value(0.333), Scale(6, 120).value(0.5)
    (3.5, 0.3, 63.0)
    """

    low: float
    high: float

    @property
    def step(self) -> float:
        """The distance of neighbouring numbers: a tenth on 0-1, a half up to ten points, 1 beyond."""
        span = self.high - self.low
        return span / 10 if span <= 1 else 0.5 if span <= 10 else 1.0

    def value(self, quality: float) -> float:
        """Return the nearest number that may be said for a quality."""
        # ``round`` would send halves to the even neighbour; adding 0.5 sends all of them up.
        steps = int(quality * (self.high - self.low) / self.step + 0.5)
        return min(self.high, max(self.low, round(self.low + steps * self.step, 6)))

    def quality(self, value: float) -> float:
        """Return where a number stands between low (0) and high (1)."""
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))


def mixture(pieces: Iterable[Evidence], width: int) -> Qualities:
    """Return the weighted mean of pieces; of no evidence at all, the bottom of the scale.

    >>> mixture([Evidence("a", 3, True, (1.0,), ("",)), Evidence("b", 1, True, (0.0,), ("",))], width=1)
    (0.75,)
    """
    held = list(pieces)
    total = sum(p.weight for p in held)
    if not total:
        return (NOTHING_TO_SEE,) * width
    return tuple(sum(p.weight * p.qualities[i] for p in held) / total for i in range(width))


def blend(first: Sequence[float], second: Sequence[float], part: float) -> Qualities:
    """Return the qualities that lie ``part`` of the way from the first to the second."""
    return tuple(a + part * (b - a) for a, b in zip(first, second, strict=True))


def pull(qualities: Sequence[float], against: Sequence[float]) -> float:
    """Return how far, and in which direction, evidence lies from a score; for two answers, from their gap.

    >>> pull((0.2,), (0.6,)), pull((0.9, 0.1), (0.6, 0.6))
    (-0.39999999999999997, 0.8)
    """
    if len(qualities) == 1:
        return qualities[0] - against[0]
    return (qualities[0] - qualities[1]) - (against[0] - against[1])


def reweight(pieces: Sequence[Evidence], index: int) -> tuple[Evidence, ...]:
    """Return the same evidence as weighed by the ``index``-th of several agents, who doubles every third piece.

    Index 0 is an agent who is alone in its role and stresses nothing.
    """
    if index == 0:
        return tuple(pieces)
    return tuple(
        Evidence(p.name, 2 * p.weight if i % 3 == index % 3 else p.weight, p.quick, p.qualities, p.words)
        for i, p in enumerate(pieces)
    )


# The label of a quoted turn, such as ``critic, round 2``; all other labels name a text.
_SPOKEN = re.compile(r"^(?P<agent>.+), round (?P<round>\d+)$")
# Single words in quotation marks, as ``shown`` writes them.
_QUOTED = re.compile(r'"[^"\s]{1,40}"')


@dataclass(frozen=True, slots=True)
class Call:
    """Hold which agent the offline judge answers for, what is judged, and the form of the answer.

    ``index`` tells several agents of one role apart (the number that ends the agent's name, plus the number of
    the sample); ``side`` is the answer that an advocate stands for.
    """

    role: str
    agent: str
    round: int
    kind: str
    aspect: str
    scale: Scale
    form: str
    persona: str
    last: tuple[float, ...] | None
    index: int
    side: int

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, Any]) -> Call:
        """Read the metadata of a call.

        Raises:
            ValueError: the metadata names no role.
        """
        role = _role(metadata)
        kind = str(metadata.get("kind") or "score")
        agent = str(metadata.get("agent") or role)
        index, side = _index_and_side(agent)
        return cls(
            role=role,
            agent=agent,
            round=int(metadata.get("round") or 0),
            kind=kind,
            aspect=str(metadata.get("aspect") or ""),
            scale=_scale(metadata, kind),
            form=str(metadata.get("form") or _usual_form(role, kind)),
            persona=str(metadata.get("persona") or "strict"),
            last=_numbers(metadata.get("last_value")),
            # Several samples of one agent differ like several agents; the same call would get the same reply.
            index=index + int(metadata.get("sample") or 0),
            side=int(metadata.get("side") or side),
        )


def _role(metadata: Mapping[str, Any]) -> str:
    if role := str(metadata.get("role") or ""):
        return role
    raise ValueError(
        "the offline judge answers only calls that name their role, "
        'as in config={"metadata": {"role": "scorer"}}'
    )


def _index_and_side(agent: str) -> tuple[int, int]:
    """Return an agent's index and its side: 3 and 2 for ``advocate_2_3``, 4 and 1 for ``referee_4``."""
    numbers = [int(n) for n in re.findall(r"\d+", agent)]
    return (numbers[-1] if numbers else 0), (numbers[0] if numbers and numbers[0] in (1, 2) else 1)


def _scale(metadata: Mapping[str, Any], kind: str) -> Scale:
    low, high = metadata.get("low"), metadata.get("high")
    usual_high = 5.0 if kind == "score" else 10.0
    scale = Scale(1.0 if low is None else float(low), usual_high if high is None else float(high))
    if scale.low >= scale.high:
        raise ValueError(f"a scale needs low < high, not low={scale.low:g}, high={scale.high:g}")
    return scale


def _usual_form(role: str, kind: str) -> str:
    if role in ("commander", "summarizer", "planner", "advocate", "aggregator"):
        return "text"
    return "critique" if role == "critic" else "pair" if kind == "compare" else "score"


def _numbers(value: Any) -> tuple[float, ...] | None:
    if value is None:
        return None
    return tuple(float(v) for v in value) if isinstance(value, Sequence) else (float(value),)


@dataclass(frozen=True, slots=True)
class Spoken:
    """Hold a turn of the debate so far, as the prompt quotes it."""

    agent: str
    round: int
    text: str

    def names(self, piece: str) -> bool:
        """Tell whether it speaks of a piece of evidence; what it quotes from the texts does not count."""
        return piece in _QUOTED.sub(" ", self.text).lower()


class View:
    """Read all that an agent is shown: the call, the evidence on the texts, and the turns before.

    Attributes:
        call: the call that is answered.
        log: the turns so far, in order.
    """

    def __init__(self, call: Call, sections: Iterable[Section]) -> None:
        self.call = call
        self._texts: dict[str, str] = {}
        spoken = []
        for label, text in sections:
            if match := _SPOKEN.match(label):
                spoken.append(Spoken(match["agent"], int(match["round"]), text))
            else:
                # The first of a name counts: what is judged stands before everything that agents have said.
                self._texts.setdefault(label, text)
        self.log = tuple(spoken)

    @cached_property
    def pieces(self) -> tuple[Evidence, ...]:
        """All evidence on the texts that are judged; measured once, when it is first asked for.

        Raises:
            ValueError: the prompt holds no fenced text to be judged.
        """
        aspect = "answers" if self.call.kind == "compare" else self.call.aspect
        return evidence(self._cases(), features_of(aspect))

    @property
    def width(self) -> int:
        """The number of texts that are judged at once."""
        return 2 if self.call.kind == "compare" else 1

    @property
    def last(self) -> Qualities | None:
        """The latest score as qualities, where there is one of the right shape."""
        last = self.call.last
        return tuple(map(self.call.scale.quality, last)) if last and len(last) == self.width else None

    def values(self, qualities: Qualities) -> tuple[float, ...]:
        """Return the numbers on the scale for these qualities."""
        return tuple(map(self.call.scale.value, qualities))

    def said_by(self, role: str) -> tuple[Spoken, ...]:
        """Return the turns of one role (``critic``; also ``referee_1`` and ``referee_2`` for ``referee``)."""
        # ``referee_2`` and ``advocate_1_3`` without their numbers are the names of their roles.
        return tuple(turn for turn in self.log if turn.agent.rstrip("_0123456789") == role)

    def cited(self, turns: Iterable[Spoken]) -> tuple[Evidence, ...]:
        """Return the pieces of evidence that these turns speak of."""
        held = list(turns)
        return tuple(p for p in self.pieces if any(turn.names(p.name) for turn in held))

    def topics(self, turns: Iterable[Spoken]) -> list[str]:
        """Return the names of all evidence that these turns speak of, in the order in which it first came up."""
        found: dict[str, None] = {}
        for turn in turns:
            found |= dict.fromkeys(name for name in MEASURES if turn.names(name))
        return list(found)

    def _cases(self) -> list[Case]:
        texts = self._texts
        wanted = ["answer 1", "answer 2"] if self.call.kind == "compare" else ["candidate"]
        if missing := [label for label in wanted if label not in texts]:
            raise ValueError(
                f"the offline judge found no fenced {' and no fenced '.join(missing)} in the prompt"
            )
        fact = texts.get("reference") if self.call.kind == "compare" else texts.get("fact")
        source = texts.get("question", "") if self.call.kind == "compare" else texts.get("source", "")
        return [
            Case(
                profile(texts[label]),
                profile(source),
                None if fact is None else profile(fact),
                "the candidate" if label == "candidate" else label,
            )
            for label in wanted
        ]
