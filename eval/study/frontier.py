"""Agreement over cost: which contenders nobody beats at their price."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .matching import Unit

if TYPE_CHECKING:
    from ..statistics.statistic import Statistic


@dataclass(frozen=True)
class Point:
    """A contender, or an ensemble of k, on the plot.

    Attributes:
        label: what stands beside it.
        spent: of the frontier's unit, a judgement: where it stands on the horizontal axis.
        cost: US dollars a judgement; ``None`` where a price is unknown.
        calls: model calls a judgement.
        agreement: with people, in the frontier's measure: where it stands on the vertical axis.
        on_frontier: whether no other point agrees better and costs no more, or agrees as well and costs less.
        k: how many single judges, for an ensemble of k.
    """

    label: str
    spent: float
    cost: float | None
    calls: float
    agreement: Statistic
    on_frontier: bool
    k: int | None = None


@dataclass(frozen=True)
class Curve:
    """The ensembles of k that one run holds, k rising."""

    source: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Frontier:
    """Agreement over cost on one subject.

    Attributes:
        subject: its label.
        measure: ``spearman`` or ``accuracy``.
        unit: what the horizontal axis is: ``cost`` or ``calls``.
        points: the contenders, cheapest first. Those without a figure (no labels, constant scores) are in ``left_out``.
        curves: ensembles of k. Their points count for the frontier, too.
        left_out: label to the reason why it has no point.
    """

    subject: str
    measure: str
    unit: Unit
    points: tuple[Point, ...]
    curves: tuple[Curve, ...]
    left_out: Mapping[str, str]

    @property
    def frontier(self) -> tuple[Point, ...]:
        """The points that nobody beats, cheapest first."""
        everybody = [*self.points, *(point for curve in self.curves for point in curve.points)]
        return tuple(sorted((p for p in everybody if p.on_frontier), key=lambda p: (p.spent, p.label)))
