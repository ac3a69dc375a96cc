"""Compute how a judge's scores are distributed over the scale, beside people's scores (DEBATE, Table 2).

A judge that uses only the middle of the scale, or its top, is seen here at once, and by no correlation.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ...state.errors import UsageError
from .alignment import (
    UNLABELLED,
    Floats,
    Reasons,
    fields_of,
    number_groups,
    resampling_unit,
    unit_count,
    why_unjudged,
)
from .resampling import Resampling, Statistic, none_if_nan, share_interval

_MOST_POINTS = 1000


class Scale(NamedTuple):
    """The points of a scale: ``low``, ``low + step`` and so on to ``high``."""

    low: float = 1
    high: float = 5
    step: float = 1

    def points(self) -> tuple[float, ...]:
        """Return all points of the scale.

        Raises:
            UsageError: no whole number of steps leads from low to high.

        >>> Scale(0, 1).points()
        (0.0, 1.0)
        """
        steps = (self.high - self.low) / self.step if self.step > 0 else 0
        if not 1 <= round(steps) <= _MOST_POINTS or abs(steps - round(steps)) > 1e-9:
            raise UsageError(
                f"no scale: from {self.low:g} to {self.high:g} in steps of {self.step:g}; "
                f"give a low end, a high end and a step that leads from one to the other"
            )
        return tuple(float(self.low + self.step * number) for number in range(round(steps) + 1))

    def nearest(self, score: float) -> int:
        """Return the number of the nearest point, from 0; half way between two, the higher one."""
        # Rounded first: a step such as 0.1 is no binary fraction, and half way could come out a little below.
        return math.floor(round((score - self.low) / self.step, 9) + 0.5)


@dataclass(frozen=True)
class ScalePoint:
    """Says how often one point of the scale is given.

    Attributes:
        point: where it lies.
        judge, human: percent of the judge's, and of people's, scores that lie there; intervals of groups drawn with
            replacement.
    """

    point: float
    judge: Statistic
    human: Statistic


@dataclass(frozen=True)
class ScoreDistribution:
    """Says how often each score is given.

    Attributes:
        n: rows that count; ``groups``: units drawn; ``left_out``: rows that do not count, by reason.
        points: the scale, from low to high; people's share has no value where no row has their score.
        annotations: people's values that are single annotations; ``means``: those that are means over annotators,
            rounded half up because the row has nothing finer.
        rounded: the judge's scores that lay between points (means, expectations) and were rounded half up.
        distance: total variation, half the sum of the differences of shares: 0 for the same distribution, 1 for none in
            common. It is never below 0, so chance alone makes it positive.
        resampling: how intervals were made.
    """

    n: int
    groups: int
    left_out: Reasons
    points: tuple[ScalePoint, ...]
    annotations: int
    means: int
    rounded: int
    distance: Statistic
    resampling: Resampling


def score_distributions(
    rows: Iterable[Any], scales: Mapping[str, Scale] | None = None, resampling: Resampling | None = None
) -> dict[str, ScoreDistribution]:
    """Return the distribution of scores, the judge's beside people's, for each aspect.

    Args:
        rows: of one protocol, as in ``results.jsonl``: ``score``, ``annotations`` or ``human``, and ``group`` and
            ``aspect`` if any. If no row of an aspect has people's score, the judge's shares stand alone; else rows
            that lack it do not count. Scores off the scale do not count either, and are reported.
        scales: of each aspect (``score`` where rows have none); 1 to 5 for one that is not named.
        resampling: how intervals are made.

    Raises:
        UsageError: a scale whose steps do not lead from its low end to its high end.

    >>> rows = [{"item": item, "aspect": "wit", "score": score, "annotations": given}
    ...     for item, score, given in [("a", 1.0, [1, 3]), ("b", 2.5, [3, 3])]]
    >>> distribution = score_distributions(rows, {"wit": Scale(1, 3)})["wit"]
    >>> [(each.point, each.judge.value, each.human.value) for each in distribution.points]
    [(1.0, 50.0, 25.0), (2.0, 0.0, 0.0), (3.0, 50.0, 75.0)]
    >>> distribution.rounded, distribution.distance.value
    (1, 0.25)
    """
    tallies: dict[str, _Tally] = {}
    for row in map(fields_of, rows):
        # A comparison that failed has no winner; its label, a text, still tells it from a score.
        if row.get("winner") is not None or isinstance(row.get("human"), str):
            continue
        aspect = row.get("aspect") or "score"
        if aspect not in tallies:
            tallies[aspect] = _Tally((scales or {}).get(aspect, Scale()))
        tallies[aspect].add(row)
    return {aspect: tally.distribution(resampling or Resampling()) for aspect, tally in tallies.items()}


class _TalliedRow(NamedTuple):
    """Holds the scores of one row as numbers of scale points.

    Attributes:
        unit: what it is drawn with.
        judge: the judge's score; ``human``: single annotations (``annotated``), or else their mean.
        annotated: whether the row has single annotations.
        rounded: whether the judge's score lay between points.
    """

    unit: Hashable
    judge: int
    human: tuple[int, ...]
    annotated: bool
    rounded: bool


@dataclass
class _Tally:
    """Collects the rows of an aspect that count, and why others do not."""

    scale: Scale
    rows: list[_TalliedRow] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.scale.points()  # refuses a scale that cannot be stepped through before any row is read

    def add(self, row: Mapping[str, Any]) -> None:
        score: Any = row.get("score")
        given = list(row.get("annotations") or ())
        values = given or [value for value in [row.get("human")] if value is not None]
        if reason := why_unjudged(row, score):
            self.left_out[reason] += 1
        elif not self._on_scale(score):
            self.left_out["score off the scale"] += 1
        elif not all(map(self._on_scale, values)):
            self.left_out["label off the scale"] += 1
        else:
            judge, people = self.scale.nearest(score), tuple(map(self.scale.nearest, values))
            between = abs(self.scale.low + judge * self.scale.step - score) > 1e-9
            self.rows.append(_TalliedRow(resampling_unit(row), judge, people, bool(given), between))

    def distribution(self, resampling: Resampling) -> ScoreDistribution:
        # ``human`` is a tuple of point numbers: empty without a label, while a label at point 0 is (0,).
        labelled = any(row.human for row in self.rows)
        rows = [row for row in self.rows if row.human or not labelled]
        reasons = dict(self.left_out)
        if len(rows) < len(self.rows):
            reasons[UNLABELLED] = len(self.rows) - len(rows)
        points = self.scale.points()
        tables = self._tables(rows, len(points))
        judge, human = (
            [_percent(table[:, number], table.sum(axis=1), resampling) for number in range(len(points))]
            for table in tables
        )
        return ScoreDistribution(
            n=len(rows),
            groups=len(tables[0]),
            left_out=reasons,
            points=tuple(
                ScalePoint(point, *percents) for point, *percents in zip(points, judge, human, strict=True)
            ),
            annotations=sum(len(row.human) for row in rows if row.annotated),
            means=sum(len(row.human) for row in rows if not row.annotated),
            rounded=sum(row.rounded for row in rows),
            distance=Statistic(_distance(*tables)),
            resampling=resampling,
        )

    def _on_scale(self, value: object) -> bool:
        # Points computed from steps such as 0.1, and means of scores, may miss an end by rounding.
        numeric = isinstance(value, int | float) and not isinstance(value, bool)
        return numeric and self.scale.low - 1e-9 <= value <= self.scale.high + 1e-9  # type: ignore[operator]

    def _tables(self, rows: list[_TalliedRow], points: int) -> tuple[Floats, Floats]:
        """Count how often each unit has each point, judge's and people's: shape (units, points)."""
        units = number_groups([row.unit for row in rows], len(rows))
        shape = (unit_count(units), points)
        judge, human = np.zeros(shape), np.zeros(shape)
        for unit, row in zip(units, rows, strict=True):
            judge[unit, row.judge] += 1
            for value in row.human:
                human[unit, value] += 1
        return judge, human


def _percent(given: Floats, all_given: Floats, resampling: Resampling) -> Statistic:
    share = share_interval(given, all_given, resampling)
    return Statistic(*(None if end is None else 100 * end for end in (share.value, share.low, share.high)))


def _distance(judge: Floats, human: Floats) -> float | None:
    """Return the total variation between the judge's shares and people's; NaN of an empty table is no distance."""
    with np.errstate(invalid="ignore"):
        shares = [table.sum(axis=0) / table.sum() for table in (judge, human)]
    return none_if_nan(np.abs(shares[0] - shares[1]).sum() / 2)
