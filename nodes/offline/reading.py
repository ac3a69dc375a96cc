"""From pieces of evidence to numbers on a scale, and what a critic makes of the distance between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .aspects import Piece

Qualities = tuple[float, ...]
"""One quality for a score, two for a comparison; each from 0 to 1."""

NOTHING_TO_SEE = 0.0


@dataclass(frozen=True, slots=True)
class Scale:
    """The numbers that a value may take.

    >>> Scale(1, 5).value(0.6), Scale(0, 1).value(0.333), Scale(6, 120).value(0.5)
    (3.5, 0.3, 63.0)
    """

    low: float
    high: float

    @property
    def step(self) -> float:
        """Tenths on 0-1, halves up to ten points, whole numbers beyond."""
        span = self.high - self.low
        return span / 10 if span <= 1 else 0.5 if span <= 10 else 1.0

    def value(self, quality: float) -> float:
        """The nearest number that may be said."""
        steps = int(quality * (self.high - self.low) / self.step + 0.5)
        return min(self.high, max(self.low, round(self.low + steps * self.step, 6)))

    def quality(self, value: float) -> float:
        """Where a number stands between low (0) and high (1)."""
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))


def mixture(pieces: Iterable[Piece], width: int) -> Qualities:
    """The weighted mean of pieces; of no evidence at all, the bottom of the scale.

    >>> mixture([Piece("a", 3, True, (1.0,), ("",)), Piece("b", 1, True, (0.0,), ("",))], width=1)
    (0.75,)
    """
    held = list(pieces)
    total = sum(p.weight for p in held)
    if not total:
        return (NOTHING_TO_SEE,) * width
    return tuple(sum(p.weight * p.qualities[i] for p in held) / total for i in range(width))


def blend(first: Sequence[float], second: Sequence[float], part: float) -> Qualities:
    """``part`` of the way from the first to the second."""
    return tuple(a + part * (b - a) for a, b in zip(first, second, strict=True))


def pull(qualities: Sequence[float], against: Sequence[float]) -> float:
    """How far, and in which direction, evidence lies from a score; for two answers, from their gap.

    >>> pull((0.2,), (0.6,)), pull((0.9, 0.1), (0.6, 0.6))
    (-0.39999999999999997, 0.8)
    """
    if len(qualities) == 1:
        return qualities[0] - against[0]
    return (qualities[0] - qualities[1]) - (against[0] - against[1])


def emphasised(pieces: Sequence[Piece], index: int) -> tuple[Piece, ...]:
    """The same evidence as seen by the ``index``-th of several agents, who doubles every third piece.

    Index 0 is an agent who is alone in its role and stresses nothing.
    """
    if index == 0:
        return tuple(pieces)
    return tuple(
        Piece(p.name, 2 * p.weight if i % 3 == index % 3 else p.weight, p.quick, p.qualities, p.words)
        for i, p in enumerate(pieces)
    )
