"""Define an aspect of quality and its scale, and the ready-made aspects of SummEval, Topical-Chat and HANNA.

Names and scales are those of the benchmarks (Fabbri et al. 2021; Mehri and Eskenazi 2020, as used in
DEBATE, section 3 and appendix E.5; Chhun et al. 2022); criteria and steps are in our own words. A bare name that
several benchmarks share means SummEval's.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import model_validator

from .checked import Checked, FilledText, did_you_mean
from .word_files import words_beside

LONGEST_NAME = 80


class Aspect(Checked):
    """One aspect of quality and the scale it is rated on.

    >>> Aspect(name="wit", criteria="Does the text amuse?", low=1, high=5).label
    'wit (1 to 5)'
    """

    called: ClassVar[str] = "an aspect"

    name: FilledText
    """The aspect's name, as reports print it."""
    criteria: FilledText
    """What makes a text good in this respect."""
    low: float = 1
    """The lowest score."""
    high: float = 5
    """The highest score."""
    steps: tuple[FilledText, ...] = ()
    """How to arrive at a score, step by step (optional)."""
    source_name: str = "source"
    """What the source is: `news article`, `dialogue`."""
    candidate_name: str = "text"
    """What the candidate is: `summary`, `response`."""

    @model_validator(mode="after")
    def _fits_into_prompts(self) -> Aspect:
        # They stand in the middle of sentences of the prompts, outside every fence.
        for field in ("name", "source_name", "candidate_name"):
            value = getattr(self, field)
            if len(value) > LONGEST_NAME or not value.isprintable():
                wanted = f"one line of at most {LONGEST_NAME} characters"
                raise ValueError(f"{field} must be {wanted}, got {value[:50]!r}")
        check_scale(self.low, self.high)
        return self

    @property
    def label(self) -> str:
        """The aspect's name and scale, as reports and prompts show them."""
        return f"{self.name} ({self.low:g} to {self.high:g})"


def check_scale(low: float, high: float) -> None:
    """Check that a scale runs upwards.

    Raises:
        ValueError: it does not.
    """
    if not low < high:
        raise ValueError(f"low must be below high, got low={low:g} and high={high:g}")


def find_aspect(name: str) -> Aspect:
    """Look up a ready-made aspect by ``benchmark/name``, or by the bare name, in any case.

    Raises:
        ValueError: no such aspect; the message lists the known ones.

    >>> find_aspect("topical-chat/coherence").high
    3.0
    """
    key = name.strip().lower()
    # The order decides whose aspect a bare name means where several benchmarks have it.
    for prefix in ("", "summeval/", "topical-chat/", "hanna/"):
        if (aspect := ASPECTS.get(prefix + key)) is not None:
            return aspect
    meant = did_you_mean(key, [*ASPECTS, *(full.partition("/")[2] for full in ASPECTS)], cutoff=0.6) or ";"
    own = "one of your own has a name, criteria, low, high and steps, as a mapping or in a YAML file"
    raise ValueError(f"unknown aspect {name!r}{meant} known are {', '.join(ASPECTS)}; {own}")


def full_names(bare: str) -> list[str]:
    """Return the full names of the ready-made aspects with this bare name.

    >>> full_names("relevance")
    ['summeval/relevance', 'hanna/relevance']
    """
    return [full for full in ASPECTS if full.partition("/")[2] == bare]


ASPECTS = {name: Aspect(**about) for name, about in words_beside(__file__).items()}
"""Ready-made aspects by ``benchmark/name``. A bare name that two benchmarks share is settled by ``find_aspect``."""
