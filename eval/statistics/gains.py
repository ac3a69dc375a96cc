"""What a protocol gains over a base, absolutely and relatively (courtroom paper, Table 2; DEBATE, Table 1)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

AVERAGE = "average"
"""The column that holds the mean over aspects."""


@dataclass(frozen=True)
class Gain:
    """How much a figure exceeds that of the base.

    Attributes:
        value: the figure itself.
        base: that of the base.
        absolute: value - base; ``None`` where either is missing.
        relative: absolute / base, as a share; ``None`` also where the base is not above 0, of which nothing is a share.

    >>> round(gain(0.89, 0.82).relative, 3)
    0.085
    """

    value: float | None
    base: float | None
    absolute: float | None
    relative: float | None


def gain(value: float | None, base: float | None) -> Gain:
    """The gain of one figure over another."""
    if value is None or base is None:
        return Gain(value, base, None, None)
    return Gain(value, base, value - base, (value - base) / base if base > 0 else None)


def average(values: Mapping[str, float | None]) -> float | None:
    """The mean over aspects; ``None`` where any is missing, since means over different aspects cannot be compared.

    >>> average({"fluency": 0.4, "coherence": 0.6}), average({"fluency": 0.4, "coherence": None})
    (0.5, None)
    """
    known = [value for value in values.values() if value is not None]
    return math.fsum(known) / len(known) if known and len(known) == len(values) else None


def gains(figures: Mapping[str, Mapping[str, float | None]], base: str) -> dict[str, dict[str, Gain]]:
    """Gains of protocols over a base protocol, by aspect and on average.

    Args:
        figures: by protocol, then by aspect; the same statistic throughout, of which more is better.
        base: the protocol to hold the others against.

    Returns:
        by protocol (without the base), then by aspect of the base and, where it has several, ``average``: the gain
        of the mean over aspects.

    Raises:
        ValueError: the base is not among the protocols.

    >>> table = gains({"single": {"wit": 0.4, "tact": 0.2}, "debate": {"wit": 0.5, "tact": 0.2}}, base="single")
    >>> {aspect: round(found.absolute, 3) for aspect, found in table["debate"].items()}
    {'wit': 0.1, 'tact': 0.0, 'average': 0.05}
    """
    if base not in figures:
        raise ValueError(f"no protocol {base!r} to compare with; there are {', '.join(figures) or 'none'}")
    before = _with_average(figures[base], figures[base])
    return {
        name: {
            aspect: gain(value, before[aspect]) for aspect, value in _with_average(own, figures[base]).items()
        }
        for name, own in figures.items()
        if name != base
    }


def _with_average(own: Mapping[str, float | None], aspects: Mapping[str, object]) -> dict[str, float | None]:
    shared = {aspect: own.get(aspect) for aspect in aspects}
    return {**shared, AVERAGE: average(shared)} if len(shared) > 1 else shared
