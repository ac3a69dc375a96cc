"""Tell whether critics object to wrong scores more often than to right ones: whether they know what they object to."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from ..results.results import Result
from ..results.turn_kinds import kind_of_turns
from ..statistics.alignment import Floats, Units, number_groups
from ..statistics.resampling import FEWEST_UNITS, Resampling, Statistic, Weights, share_of_rows
from ..tables import Column
from .result_rows import Judged, discussions, judged_by, value_of
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
    to_wrong: Annotated[
        Statistic, Column("objected to", form="percent", digits=0, about="of the wrong scores")
    ]
    right: Annotated[int, Column("right scores")]
    to_right: Annotated[
        Statistic, Column("objected to", form="percent", digits=0, about="of the right scores")
    ]
    difference: Annotated[
        Statistic,
        Column(
            "difference", form="percent", digits=0, about="above 0: critics tell wrong scores from right ones"
        ),
    ]


@dataclass
class ObjectionCounter:
    """Collects of each score that a critic was shown whether it was right, and whether the critic objected."""

    _right: array[int] = field(default_factory=lambda: array("b"))
    _objected: array[int] = field(default_factory=lambda: array("b"))
    _clusters: array[int] = field(default_factory=lambda: array("q"))

    def add(self, result: Result, human: Judged | None, cluster: int) -> None:
        """Add the critics' turns of one verdict; ``human`` is its label, if it can be compared with scores."""
        if human is None:
            return
        kind_of = kind_of_turns(result)
        for turns in discussions(result.transcript):
            shown: Judged | None = None
            for turn in turns:
                if (value := value_of(turn)) is not None:
                    shown = judged_by(value)
                elif shown is not None and kind_of(turn) == "objects" and isinstance(turn["value"], bool):
                    self._right.append(_is_right(shown, human))
                    self._objected.append(not turn["value"])
                    self._clusters.append(cluster)

    def objections(self, resampling: Resampling) -> Objections | None:
        """Return what was counted; ``None`` where critics were not shown both right and wrong scores."""
        right, objected = np.array(self._right, dtype=bool), np.array(self._objected, dtype=bool)
        if not right.any() or right.all():
            return None
        names = np.array(self._clusters)

        def share(chosen: Booleans) -> Statistic:
            units = number_groups(names[chosen], int(chosen.sum()))
            return share_of_rows(objected[chosen], units, resampling)

        return Objections(
            wrong=int((~right).sum()),
            to_wrong=share(~right),
            right=int(right.sum()),
            to_right=share(right),
            difference=_difference(right, objected, number_groups(names, len(names)), resampling),
        )


def _difference(right: Booleans, objected: Booleans, units: Units, resampling: Resampling) -> Statistic:
    count = int(units.max()) + 1
    # Of each cluster: wrong scores, those objected to, right scores, those objected to.
    sums = np.zeros((count, 4))
    for place, rows in enumerate((~right, ~right & objected, right, right & objected)):
        np.add.at(sums[:, place], units, rows.astype(float))

    def difference(weights: Weights) -> Floats:
        wrong, to_wrong, of_right, to_right = (weights @ sums).T
        with np.errstate(invalid="ignore", divide="ignore"):
            return to_wrong / wrong - to_right / of_right  # type: ignore[no-any-return]

    value = float(difference(np.ones((1, count), dtype=np.int64))[0])
    if count < FEWEST_UNITS:
        return Statistic(value)
    return resampling.studentised(value, resampling.figures(count, difference), count, bounded=True)[0]


def _is_right(judged: Judged, human: Judged) -> bool:
    if isinstance(judged, str) or isinstance(human, str):
        return judged == human
    return abs(judged - human) <= RIGHT_WITHIN
