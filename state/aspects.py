"""Aspects of quality with their scales, and those of SummEval, Topical-Chat and HANNA.

Names and scales are those of the benchmarks (Fabbri et al. 2021; Mehri and Eskenazi 2020, as used
in DEBATE, section 3 and appendix E.5; Chhun et al. 2022). Criteria and steps are in our own words.
A bare name that several benchmarks share means SummEval's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

from pydantic import SerializerFunctionWrapHandler, model_serializer, model_validator

from .checked import Checked, FilledText, OptionalText, did_you_mean
from .data_files import read_toml
from .rubrics import Criterion, check_rubric

LONGEST_NAME = 80

OtherText = Literal["source", "fact", "context", "reference"]
"""A text next to the candidate that criteria may refer to."""

OTHER_TEXTS: tuple[OtherText, ...] = get_args(OtherText)

_SOURCE_WORDS = re.compile(
    r"""\b(?:
        sources? | originals?
      | inputs? | questions? | quer(?:y|ies) | prompts? | requests? | instructions?   # what was asked
      | articles? | documents? | passages?                                            # what was summarised
      | conversations? | dialogues? | messages? | histor(?:y|ies)                     # what was said before
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""The English words by which criteria mention the source."""


class ScoredExample(Checked):
    """A text with the score it should get, shown to every agent with the criteria.

    >>> ScoredExample(candidate="It rained.", score=5).candidate
    'It rained.'
    """

    called: ClassVar[str] = "an example"

    candidate: FilledText
    """The text that was scored."""
    score: float
    """The score it should get, on the aspect's scale."""
    source: OptionalText = None
    """The text from which the candidate was made."""
    reasoning: OptionalText = None
    """The reason for this score."""


class Aspect(Checked):
    """One aspect of quality and its scale.

    >>> Aspect(name="wit", criteria="Does the text amuse?", low=1, high=5).label
    'wit (1 to 5)'
    """

    called: ClassVar[str] = "an aspect"

    name: FilledText
    """The aspect's name, as reports print it."""
    criteria: FilledText
    """The criteria for a good text in this respect."""
    low: float = 1
    """The lowest score."""
    high: float = 5
    """The highest score."""
    steps: tuple[FilledText, ...] = ()
    """The steps to arrive at a score (optional)."""
    source_name: str = "source"
    """The kind of source, such as `news article` or `dialogue`."""
    candidate_name: str = "text"
    """The kind of candidate, such as `summary` or `response`."""
    choices: tuple[float, ...] = ()
    """The only scores that are accepted, such as 0 and 1; empty: every number from low to high."""
    examples: tuple[ScoredExample, ...] = ()
    """Texts with the scores they should get, shown with the criteria."""
    needs: tuple[OtherText, ...] | None = None
    """Texts besides the candidate that a task must have; empty: none. Default: the source, if the
    criteria or steps mention it."""
    rubric: tuple[Criterion, ...] = ()
    """Criteria with points, which `checklist` has checked one by one; other protocols show them."""

    @model_validator(mode="before")
    @classmethod
    def _scale_of_choices(cls, given: Any) -> Any:
        """Take the ends of the scale from the choices if they are not given."""
        choices = given.get("choices") if isinstance(given, Mapping) else None
        if not isinstance(choices, list | tuple) or not all(
            isinstance(c, int | float) for c in choices
        ):
            return given
        return {"low": min(choices), "high": max(choices), **given} if choices else given

    @model_validator(mode="after")
    def _fits_into_prompts(self) -> Aspect:
        # The prompts contain these names within sentences, outside every fence.
        for field in ("name", "source_name", "candidate_name"):
            value = getattr(self, field)
            if len(value) > LONGEST_NAME or not value.isprintable():
                raise ValueError(
                    f"{field} must be one line of at most {LONGEST_NAME} characters, got {value[:50]!r}"
                )
        check_scale(self.low, self.high)
        self._check_choices()
        check_rubric(self.rubric)
        return self

    def _check_choices(self) -> None:
        if self.choices and len(set(self.choices)) != len(self.choices):
            raise ValueError(f"choices has a score twice: {_numbers(self.choices)}")
        if self.choices and (min(self.choices), max(self.choices)) != (self.low, self.high):
            raise ValueError(
                f"choices {_numbers(self.choices)} do not end at low={self.low:g} "
                f"and high={self.high:g}: leave low and high out"
            )
        for example in self.examples:
            if self.choices and example.score not in self.choices:
                raise ValueError(
                    f"an example has the score {example.score:g}: use {_numbers(self.choices)}"
                )
            if not self.low <= example.score <= self.high:
                raise ValueError(
                    f"an example has the score {example.score:g}, off the scale {self.low:g} to {self.high:g}"
                )

    @model_serializer(mode="wrap")
    def _without_defaults(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out unset fields of later versions, so that old signatures stay valid."""
        fields: dict[str, Any] = plain(self)
        later = {"choices": (), "examples": (), "needs": None, "rubric": ()}
        return {
            name: value
            for name, value in fields.items()
            if later.get(name, ...) != getattr(self, name)
        }

    def needed_texts(self) -> dict[str, str]:
        """Return the texts that a task must have, each with the word that shows it.

        >>> find_aspect("consistency").needed_texts(), find_aspect("fluency").needed_texts()
        ({'source': 'article'}, {})
        """
        if self.needs is not None:
            return {name: name for name in self.needs}
        words = "\n".join((self.criteria, *self.steps))
        own_name = re.compile(rf"\b{re.escape(self.source_name)}s?\b", re.IGNORECASE)
        found = _SOURCE_WORDS.search(words) or own_name.search(words)
        return {"source": found[0]} if found else {}

    @property
    def label(self) -> str:
        """The aspect's name and scale, as reports and prompts show them."""
        return f"{self.name} ({self.low:g} to {self.high:g})"


def _numbers(numbers: tuple[float, ...]) -> str:
    return ", ".join(f"{number:g}" for number in numbers)


def check_scale(low: float, high: float) -> None:
    """Check that the low end of a scale is below its high end.

    Raises:
        ValueError: it is not.
    """
    if not low < high:
        raise ValueError(f"low must be below high, got low={low:g} and high={high:g}")


def find_aspect(name: str) -> Aspect:
    """Return a ready-made aspect by ``benchmark/name`` or by the bare name, in any case.

    Raises:
        ValueError: an unknown aspect; the message lists the known ones.

    >>> find_aspect("topical-chat/coherence").high
    3.0
    """
    key = name.strip().lower()
    # The order decides which benchmark's aspect a shared bare name means.
    for prefix in ("", "summeval/", "topical-chat/", "hanna/"):
        if (aspect := ASPECTS.get(prefix + key)) is not None:
            return aspect
    meant = (
        did_you_mean(key, [*ASPECTS, *(full.partition("/")[2] for full in ASPECTS)], cutoff=0.6)
        or ";"
    )
    raise ValueError(
        f"unknown aspect {name!r}{meant} known are {', '.join(ASPECTS)}; "
        "one of your own has a name, criteria, low, high and steps, as a mapping or in a YAML "
        "file"
    )


def full_names(bare: str) -> list[str]:
    """Return the full names of the ready-made aspects with this bare name.

    >>> full_names("relevance")
    ['summeval/relevance', 'hanna/relevance']
    """
    return [full for full in ASPECTS if full.partition("/")[2] == bare]


ASPECTS = read_toml(Path(__file__).with_suffix(".toml"), dict[str, Aspect])
"""Ready-made aspects by ``benchmark/name``; ``find_aspect`` resolves shared bare names."""
