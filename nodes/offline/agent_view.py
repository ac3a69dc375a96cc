"""The view of an agent of the offline judge: the evidence on the texts, the scale and the turns.

An agent answers with a ``Response``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import count, repeat, takewhile
from typing import Any, Literal, NamedTuple

from ..common.delimiters import Section
from .features import FEATURES, Case, profile, weights_of

Qualities = tuple[float, ...]
"""One quality for a score, one for each answer of a comparison; each from 0 to 1."""


class Evidence(NamedTuple):
    """A feature's result for the text, or for all answers: a quality and a clause each."""

    name: str
    weight: float
    quick: bool
    qualities: Qualities
    clauses: tuple[str, ...]


class Response(NamedTuple):
    """An agent's answer: its prose, and the values for its form.

    Attributes:
        prose: the reasons, the objection, or the whole message.
        values: one score, or one for each answer.
        no_issue: whether a critic declares that it has no objection.
        winner: the number of the answer that a vote names.
        kind, behaviour: an auditor's labels for a speech; ``answers``: whether the speech takes up
            the one before.
        checks: a checker's answer to each criterion, with a quotation.
    """

    prose: str
    values: tuple[float, ...] = ()
    no_issue: bool = False
    winner: str = ""
    kind: str = ""
    behaviour: str = ""
    answers: bool = False
    checks: tuple[tuple[str, str], ...] = ()


# The forms of roles that give no score, for calls that do not name a form.
_USUAL_FORMS = {"critic": "critique", "planner": "steps"}
_USUAL_FORMS |= dict.fromkeys(("commander", "summarizer", "advocate", "aggregator"), "text")


class View:
    """Everything that an agent is shown: its own data, the evidence on the texts, and the turns.

    Attributes:
        role: the role that is answered for.
        agent: the agent's own name.
        persona: the critic's or referee's persona, if it has one.
        form: the form of the answer, such as ``score`` or ``vote``.
        wanted: the number of personas to write.
        aspect: the aspect on which a text is rated.
        index: distinguishes agents of one role: the number at the end of the agent's name, plus the
            number of the sample.
        side: the answer that an advocate speaks for; for one text, 1 is a high score, 2 a low one.
        low: the lowest number of the scale.
        high: the highest number of the scale.
        last_values: the latest score or scores; empty before the first.
        log: the turns so far, in order.
        speech: the speech that an auditor labels.
        criteria: the criteria of a rubric that a checker answers.
        candidate: the text to be rated; empty in a comparison.
        question: the question, or the source of a text.
    """

    def __init__(self, metadata: Mapping[str, Any], sections: Iterable[Section]) -> None:
        self.role = str(metadata.get("role") or "")
        if not self.role:
            raise ValueError(
                "the offline judge answers only calls that name their role, as in "
                'config={"metadata": {"role": "scorer"}}'
            )
        self.compares = metadata.get("kind") == "compare"
        self.agent = str(metadata.get("agent") or self.role)
        self.persona = str(metadata.get("persona") or "")
        self.aspect = str(metadata.get("aspect") or "")
        usual = _USUAL_FORMS.get(self.role) or ("pair" if self.compares else "score")
        self.form = str(metadata.get("form") or usual)
        self.wanted = int(metadata.get("wanted") or 1)
        # ``advocate_2_3`` is the third advocate of answer 2, ``referee_4`` the fourth referee.
        numbers = [int(number) for number in re.findall(r"\d+", self.agent)] or [0]
        self.side = int(metadata.get("side") or (numbers[0] if numbers[0] in (1, 2) else 1))
        # Several samples of one agent differ like several agents. Equal calls would get equal
        # replies.
        self.index = numbers[-1] + int(metadata.get("sample") or 0)
        given = {name: value for name, value in metadata.items() if value is not None}
        self.low = float(given.get("low", 1))
        self.high = float(given.get("high", 10 if self.compares else 5))
        if self.low >= self.high:
            raise ValueError(f"a scale needs low < high, not low={self.low:g}, high={self.high:g}")
        self.allowed: tuple[float, ...] = tuple(given.get("allowed", ()))
        last = given.get("last_value", ())
        self.last_values = tuple(last) if isinstance(last, Sequence) else (last,)
        quoted = tuple(sections)
        self.log = tuple(section for section in quoted if section.speaker)
        # The first section of a label counts, because the judged texts precede the agents' turns.
        self._texts = {
            section.label: section.text for section in reversed(quoted) if not section.speaker
        }
        self.number_of_texts = 1
        if self.compares:
            answers = takewhile(lambda at: f"answer {at}" in self._texts, count(1))
            self.number_of_texts = max(2, *answers, 0)
        self.speech = self._texts.get("speech", "")
        self.criteria: tuple[str, ...] = tuple(metadata.get("criteria", ()))
        self.candidate = self._texts.get("candidate", "")
        self.question = self._texts.get("question") or self._texts.get("source", "")

    @cached_property
    def evidence(self) -> tuple[Evidence, ...]:
        """All evidence on the judged texts; measured once, on first use.

        Raises:
            ValueError: the prompt contains no fenced text to judge.
        """
        texts = self._texts
        numbers = range(1, self.number_of_texts + 1)
        wanted = [f"answer {at}" for at in numbers] if self.compares else ["candidate"]
        if missing := [label for label in wanted if label not in texts]:
            labels = " and no fenced ".join(missing)
            raise ValueError(f"the offline judge found no fenced {labels} in the prompt")
        source = profile(texts.get("question" if self.compares else "source", ""))
        # The text is also measured against the other given texts.
        beside = ("reference", "context") if self.compares else ("fact", "context", "reference")
        fact = profile("\n".join(filter(None, (texts.get(label) for label in beside))))
        # A fact comes with a dialogue, so the text is a reply.
        kind: Literal["text", "reply", "answer"] = "reply" if "fact" in texts else "text"
        kind = "answer" if self.compares else kind
        named = zip(wanted, wanted if self.compares else ["the candidate"], strict=True)
        cases = [Case(profile(texts[label]), source, fact, kind, name) for label, name in named]
        evidence = []
        for feature, (weight, quick) in weights_of(
            "answers" if self.compares else self.aspect
        ).items():
            measured = [value for value in map(FEATURES[feature], cases) if value is not None]
            # A comparison needs the feature for all answers.
            if len(measured) == len(cases):
                qualities, clauses = zip(*measured, strict=True)
                evidence.append(Evidence(feature, weight, quick, qualities, clauses))
        return tuple(evidence)

    @property
    def first_impression(self) -> tuple[Evidence, ...]:
        """The evidence for a first impression; all evidence if none of that could be measured."""
        return tuple(piece for piece in self.evidence if piece.quick) or self.evidence

    def emphasised(self, evidence: Iterable[Evidence]) -> tuple[Evidence, ...]:
        """Return the evidence with double weight for every third piece, depending on the agent."""
        return tuple(
            piece._replace(weight=2 * piece.weight)
            if self.index and i % 3 == self.index % 3
            else piece
            for i, piece in enumerate(evidence)
        )

    def raised(self, *roles: str) -> tuple[Evidence, ...]:
        """Return the evidence that turns of these roles mention."""
        names = topics(turn for turn in self.log if turn.role in roles)
        return tuple(piece for piece in self.evidence if piece.name in names)

    def mean(self, evidence: Iterable[Evidence]) -> Qualities:
        """Return the weighted mean of evidence; the bottom of the scale if there is no evidence."""
        pieces = list(evidence)
        total = sum(piece.weight for piece in pieces) or 1.0
        columns = range(self.number_of_texts)
        return tuple(
            sum(piece.weight * piece.qualities[i] for piece in pieces) / total for i in columns
        )

    @property
    def last(self) -> Qualities:
        """The latest score as qualities; the mean of all evidence if it has another shape."""
        if len(self.last_values) != self.number_of_texts:
            return self.mean(self.evidence)
        span = self.high - self.low
        return tuple(
            min(1.0, max(0.0, (float(value) - self.low) / span)) for value in self.last_values
        )

    @property
    def step(self) -> float:
        """The distance of neighbouring scores: 0.1 on 0 to 1, 0.5 up to ten points, 1 beyond."""
        span = self.high - self.low
        return span / 10 if span <= 1 else 0.5 if span <= 10 else 1.0

    def values(self, qualities: Qualities, steps: Sequence[int] = ()) -> tuple[float, ...]:
        """Return the nearest allowed scores for these qualities, moved by ``steps``."""
        span = self.high - self.low
        # ``round`` rounds halves to even numbers. Adding 0.5 rounds all of them up.
        places = [
            int(q * span / self.step + 0.5) + more
            for q, more in zip(qualities, (*steps, *repeat(0, len(qualities))), strict=False)
        ]
        scores = [min(self.high, max(self.low, round(self.low + n * self.step, 6))) for n in places]
        if self.allowed:
            scores = [min(self.allowed, key=lambda choice: abs(choice - score)) for score in scores]
        return tuple(scores)

    def reasons(self, evidence: Iterable[Evidence], most: int = 2) -> str:
        """Return the strongest evidence as text; agents of one role begin with different pieces."""
        ranked = sorted(evidence, key=lambda piece: -piece.weight * distance(piece.qualities))
        start = max(self.index - 1, 0) % max(1, min(len(ranked), 4))
        return (
            sentences((ranked[start:] + ranked[:start])[:most])
            or "There is nothing in the text to go by."
        )

    def verdict(
        self, evidence: Sequence[Evidence], opening: str = "", reasons: str = ""
    ) -> Response:
        """Return the conclusion from evidence, in words and in the form's numbers or vote."""
        qualities = self.mean(evidence)
        prose = f"{opening}{reasons or self.reasons(evidence)} Taken together, {level_in_words(qualities)}."
        values = self.values(qualities)
        if not self.compares:
            return Response(prose, values)
        if self.form == "score":
            return Response(prose, values[self.side - 1 : self.side])
        best = [at for at, quality in enumerate(qualities, 1) if quality == max(qualities)]
        # For equal answers, neighbouring jurors vote differently, so that the position does not
        # decide.
        return Response(prose, values, winner=str(best[self.index % len(best)]))


def pull(qualities: Qualities, against: Qualities) -> float:
    """Return the signed distance of evidence to a score; for two answers, to their difference.

    >>> pull((0.25,), (0.5,)), pull((0.75, 0.25), (0.5, 0.5))
    (-0.25, 0.5)
    """
    if len(qualities) == 1:
        return qualities[0] - against[0]
    return (qualities[0] - qualities[1]) - (against[0] - against[1])


def lead(qualities: Qualities, side: int) -> float:
    """Return the signed distance of an answer to the best of the others.

    For one text, return its quality for side 1, and what it lacks for side 2.

    >>> lead((0.75, 0.25), 2), lead((0.5, 1.0, 0.25), 2), lead((0.75,), 1), lead((0.75,), 2)
    (-0.5, 0.5, 0.75, 0.25)
    """
    if len(qualities) == 1:
        return qualities[0] if side == 1 else 1 - qualities[0]
    return qualities[side - 1] - max(q for at, q in enumerate(qualities, 1) if at != side)


def between(first: Qualities, second: Qualities) -> Qualities:
    """Return the qualities half-way between two others."""
    return tuple((a + b) / 2 for a, b in zip(first, second, strict=True))


def distance(qualities: Qualities) -> float:
    """Return the distance of a text's quality to the middle, or of the best answer to the worst."""
    if len(qualities) == 1:
        return abs(qualities[0] - 0.5)
    return max(qualities) - min(qualities)


def topics(turns: Iterable[Section]) -> list[str]:
    """Return the names of all features that turns mention, in order of first mention."""
    texts = [turn.text.lower() for turn in turns]
    return list(dict.fromkeys(name for text in texts for name in FEATURES if name in text))


def sentence(piece: Evidence) -> str:
    """Return a piece of evidence as a sentence.

    >>> sentence(Evidence("level of detail", 1, True, (0.5,), ("the candidate has 6 different content words",)))
    'Level of detail: the candidate has 6 different content words.'
    """
    # Similar answers are not contrasted.
    between = ", while " if distance(piece.qualities) > 0.1 else ", and "
    return f"{piece.name.capitalize()}: {between.join(piece.clauses)}."


def sentences(evidence: Iterable[Evidence]) -> str:
    """Return pieces of evidence as successive sentences."""
    return " ".join(map(sentence, evidence))


def level_in_words(qualities: Qualities) -> str:
    """Return the position of qualities on the scale in words.

    >>> level_in_words((0.9,)), level_in_words((0.3, 0.7))
    ('this is near the top of the scale', 'answer 2 is ahead of answer 1')
    """
    if len(qualities) == 2:
        gap = round(qualities[0] - qualities[1], 6)
        ahead = "answer 1 is ahead of answer 2" if gap > 0 else "answer 2 is ahead of answer 1"
        return ahead if gap else "both answers are equally good"
    if len(qualities) > 2:
        best = [f"answer {at}" for at, q in enumerate(qualities, 1) if q == max(qualities)]
        return f"{listed(best)} {'is' if len(best) == 1 else 'are'} ahead"
    places = [
        "near the bottom",
        "in the lower part",
        "in the middle",
        "in the upper part",
        "near the top",
    ]
    return f"this is {places[min(4, int(qualities[0] * 5))]} of the scale"


def spoken(values: Sequence[float]) -> str:
    """Return scores as part of a sentence.

    >>> spoken((4.0,)), spoken((8.0, 6.5))
    ('4', '8 and 6.5')
    """
    return " and ".join(f"{value:g}" for value in values)


def listed(names: Sequence[str]) -> str:
    """Join names to a list within a sentence.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def shortened(text: str, most: int) -> str:
    """Cut a text to at most ``most`` words.

    >>> shortened("one two three", 2)
    'one two ...'
    """
    words = text.split()
    return text if len(words) <= most else f"{' '.join(words[:most])} ..."
