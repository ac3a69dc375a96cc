"""By how much one judge is ahead of another, and whether that is more than chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..statistics.statistic import Statistic
from ..study import Difference, Study, Subject
from ..study.comparison import FEW
from .naming import main_measure

LEVEL = 0.05
"""Below which a Holm-adjusted p-value counts."""


class Lead(NamedTuple):
    """One judge's figure less another's on the same rows.

    Attributes:
        over: the other's label.
        difference: with its interval.
        p: adjusted by Holm's method; ``None`` where there is none.
        few: whether resamples were drawn of so few units that ``p`` is too small.
    """

    over: str
    difference: Statistic
    p: float | None
    few: bool = False

    @property
    def holds(self) -> bool:
        """Whether it is more than chance would give."""
        return not self.few and (self.difference.value or 0.0) > 0 and self.p is not None and self.p < LEVEL


def lead(study: Study, subjects: Sequence[Subject], ahead: str, over: str, metric: str) -> Lead | None:
    """On the only subject, or on average over all of a dataset's; none where they were not compared."""
    measure = main_measure(subjects[0], metric)
    for first, second in ((ahead, over), (over, ahead)):
        found, units = _compared(study, subjects, first, second, measure)
        if found is not None:
            apart = found.difference if first == ahead else _turned(found.difference)
            return Lead(over, apart, found.adjusted, 0 < units < FEW)
    return None


def _compared(
    study: Study, subjects: Sequence[Subject], first: str, second: str, measure: str
) -> tuple[Difference | None, int]:
    if len(subjects) == 1:
        duel = study.comparison.duel(subjects[0].label, first, second)
        return (None, 0) if duel is None else (duel.differences.get(measure), duel.units)
    average = study.comparison.average(subjects[0].digest, first, second)
    return (None, 0) if average is None else (average.differences.get(measure), average.units)


def _turned(found: Statistic) -> Statistic:
    def minus(value: float | None) -> float | None:
        return None if value is None else -value

    return Statistic(minus(found.value), minus(found.high), minus(found.low))
