"""What a measure is: one look at the texts that yields a quality from 0 to 1 and says in words what it saw."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from .texts import Profile, profile


@dataclass(frozen=True, slots=True)
class Case:
    """The texts before the judge: one candidate (or one answer), and what it is held against.

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
        """Whether the candidate answers a dialogue: then a fact comes with it."""
        return self.fact is not None

    @property
    def last_turns(self) -> tuple[Profile, ...]:
        """The last two lines of the source, the latest first."""
        lines = [line for line in self.source.text.splitlines() if line.strip()]
        return tuple(profile(line) for line in lines[:-3:-1])


@dataclass(frozen=True, slots=True)
class Measured:
    """A quality from 0 (bad) to 1 (good), and the clause that tells what was counted."""

    quality: float
    words: str


Measure: TypeAlias = Callable[[Case], Measured | None]
"""Looks at a case; ``None`` where the case has nothing that it could measure."""


def ramp(value: float, low: float, high: float) -> float:
    """0 up to ``low``, 1 from ``high``, a straight line between.

    >>> ramp(0.5, 0.0, 2.0), ramp(3.0, 0.0, 2.0), ramp(-1.0, 0.0, 2.0)
    (0.25, 1.0, 0.0)
    """
    return min(1.0, max(0.0, (value - low) / (high - low)))


def share(part: int, whole: int) -> float:
    """``part / whole``, and 0 of nothing is 0."""
    return part / whole if whole else 0.0


def percent(value: float) -> str:
    """A share in words.

    >>> percent(0.789)
    '79 %'
    """
    return f"{100 * value:.0f} %"


def many(number: int, noun: str) -> str:
    """A number with its noun.

    >>> many(1, "sentence"), many(3, "sentence")
    ('1 sentence', '3 sentences')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
