"""Tell whether critics object to wrong scores more often than to right ones: whether they know what they object to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from ..results.number_rows import NumberRows
from ..statistics.alignment import Floats, Units, number_groups
from ..statistics.resampling import FEWEST_UNITS, Resampling, Statistic, Weights, share_of_rows
from ..tables.grid import Column, share_column
from .result_rows import Judged, Said, judged_by
from .verdict_columns import Booleans

RIGHT_WITHIN = 0.5
"""A score is right if it is the one nearest to the label among whole numbers: labels are means over annotators."""


@dataclass(frozen=True)
class Objections:
    """Compares how often critics object to scores that were right and to scores that were wrong.

    A score of a comparison is right if it prefers the label's answer. A critic that objects to everything, or by
    chance, has a difference of 0.

    Attributes:
        right, wrong: scores that critics were shown, by their distance from the label.
        difference: the share of wrong scores less that of right ones that they objected to.
    """

    wrong: Annotated[int, Column("wrong scores")]
    to_wrong: Annotated[Statistic, share_column("objected to")]
    """of the wrong scores"""
    right: Annotated[int, Column("right scores")]
    to_right: Annotated[Statistic, share_column("objected to")]
    """of the right scores"""
    difference: Annotated[Statistic, share_column("difference")]
    """above 0: critics object more often to wrong scores"""


@dataclass
class ObjectionCounter:
    """Collects of each score that a critic was shown whether it was right, and whether the critic objected."""

    _shown: NumberRows = field(default_factory=lambda: NumberRows(right="?", objected="?", cluster="q"))

    def add(self, discussions: Iterable[Sequence[Said]], human: Judged | None, cluster: int) -> None:
        """Add the critics' turns of one verdict; ``human`` is its label, if it can be compared with scores."""
        for turns in discussions if human is not None else ():
            shown: Judged | None = None
            for turn, kind, value in turns:
                if value is not None:
                    shown = judged_by(value)
                elif shown is not None and kind == "objects" and isinstance(turn["value"], bool):
                    self._shown.add(_is_right(shown, human), not turn["value"], cluster)

    def objections(self, resampling: Resampling) -> Objections | None:
        """Return what was counted; ``None`` where critics were not shown both right and wrong scores."""
        shown = self._shown.table()
        right, objected, names = (shown[field] for field in ("right", "objected", "cluster"))
        if not right.any() or right.all():
            return None

        def share(chosen: Booleans) -> Statistic:
            return share_of_rows(objected[chosen], names[chosen], resampling)

        difference = _difference(right, objected, number_groups(names), resampling)
        return Objections(int((~right).sum()), share(~right), int(right.sum()), share(right), difference)


def _difference(right: Booleans, objected: Booleans, units: Units, resampling: Resampling) -> Statistic:
    count = int(units.max()) + 1
    # Of each cluster: wrong scores, those objected to, right scores, those objected to.
    kinds = (~right, ~right & objected, right, right & objected)
    sums = np.stack([np.bincount(units, rows) for rows in kinds], axis=1)

    def difference(weights: Weights) -> Floats:
        wrong, to_wrong, of_right, to_right = (weights @ sums).T
        with np.errstate(invalid="ignore", divide="ignore"):
            return to_wrong / wrong - to_right / of_right  # type: ignore[no-any-return]

    value = float(difference(np.ones((1, count), dtype=np.int64))[0])
    if count < FEWEST_UNITS:
        return Statistic(value)
    return resampling.studentised(value, resampling.figures(count, difference), count, bounded=True)[0]


def _is_right(judged: Judged, human: Judged | None) -> bool:
    if isinstance(judged, str) or isinstance(human, str) or human is None:
        return judged == human
    return abs(judged - human) <= RIGHT_WITHIN
