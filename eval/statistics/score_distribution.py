"""The distribution of a judge's scores over the scale, next to human scores (DEBATE, Table 2).

It shows whether a judge only uses the middle or the top of the scale, which no correlation shows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .alignment import Floats, Ints, code_count, number_groups
from .resampling import Resampling, Statistic, none_if_nan, share_interval

_STEPS = 10
_MOST_STEPS = 1000
"""The number of parts of a scale whose range is not a whole number, or larger than the maximum."""


class ScalePoint(NamedTuple):
    """How often one point of the scale is given.

    Attributes:
        point: its position.
        judge, human: the percentage of the judge's, and of human scores at this point, with
        intervals from drawing groups with replacement. The human share has no value if there are no
        human scores.
    """

    point: float
    judge: Statistic
    human: Statistic


class ScoreDistribution(NamedTuple):
    """How often each score is given.

    Attributes:
        points: the scale, from low to high.
        distance: total variation, half the sum of the differences of shares: 0 for equal
            distributions, 1 for distributions without overlap. It is never below 0, so chance alone
            makes it positive.
    """

    points: tuple[ScalePoint, ...]
    distance: Statistic


def score_distribution(
    scores: Floats,
    people: Floats,
    clusters: Ints,
    scale: tuple[float, float],
    resampling: Resampling,
) -> ScoreDistribution:
    """Return the distribution of a judge's scores next to human scores.

    Values between points (means, expectations) are rounded half up. Rows with a score off the scale
    do not count.

    Args:
        scores: the judge's score of each row.
        people: the single annotations of each row, or their mean, of shape (rows, annotators); NaN
            if missing. If no row has any, only the judge's shares are computed; otherwise rows
            without annotations do not count.
        clusters: the cluster of each row.
        scale: the lowest and highest point; points are 1 apart, or a tenth of the scale if 1 does
            not divide it.
        resampling: the settings of intervals.

    >>> scores, people = np.array([1.0, 2.5]), np.array([[1.0, 3], [3, 3]])
    >>> given = score_distribution(scores, people, np.arange(2), (1, 3), Resampling())
    >>> [(at.point, at.judge.value, at.human.value) for at in given.points], given.distance.value
    ([(1.0, 50.0, 25.0), (2.0, 0.0, 0.0), (3.0, 50.0, 75.0)], 0.25)
    """
    low, high = scale
    whole = float(high - low).is_integer() and high - low <= _MOST_STEPS
    step = 1.0 if whole else (high - low) / _STEPS
    points = round((high - low) / step) + 1
    known = ~np.isnan(people)
    row_of = known.nonzero()[0]
    values = people[known]
    sizes = known.sum(axis=1)
    # Points computed from steps such as 0.1, and means of scores, may miss an end by rounding.
    off_scale = [(column < low - 1e-9) | (column > high + 1e-9) for column in (scores, values)]
    counted = ~off_scale[0] & (np.bincount(row_of, off_scale[1], len(scores)) == 0)
    if sizes[counted].any():
        counted &= sizes > 0
    numbers = number_groups(clusters)
    # The shares leave out clusters without a row that counts.
    tables = np.zeros((2, code_count(numbers), points))
    sides = (
        (np.flatnonzero(counted), scores[counted]),
        (row_of[counted[row_of]], values[counted[row_of]]),
    )
    for table, (rows, given) in zip(tables, sides, strict=True):
        # Round first: a step such as 0.1 is not a binary fraction, so a half could be slightly too
        # small.
        nearest = np.floor(np.round((given - low) / step, 9) + 0.5).astype(np.intp)
        np.add.at(table, (numbers[rows], nearest), 1)
    judge, human = (
        [
            share_interval(table[:, point], table.sum(axis=1), resampling).times(100)
            for point in range(points)
        ]
        for table in tables
    )
    # The shares and the distance of an empty table are not numbers.
    with np.errstate(invalid="ignore"):
        shares = [table.sum(axis=0) / table.sum() for table in tables]
    places = [float(low + step * number) for number in range(points)]
    distance = Statistic(none_if_nan(np.abs(shares[0] - shares[1]).sum() / 2))
    return ScoreDistribution(tuple(map(ScalePoint, places, judge, human)), distance)
