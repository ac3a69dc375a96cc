"""Compute how a judge's scores are distributed over the scale, beside people's scores (DEBATE, Table 2).

A judge that uses only the middle of the scale, or its top, is seen here at once, and by no correlation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .alignment import Floats, Ints, code_count, number_groups
from .resampling import Resampling, Statistic, none_if_nan, share_interval

_STEPS, _MOST_STEPS = 10, 1000
"""The parts into which a scale is divided whose ends are no whole number apart, or more than so many."""


class ScalePoint(NamedTuple):
    """Says how often one point of the scale is given.

    Attributes:
        point: where it lies.
        judge, human: percent of the judge's, and of people's, scores that lie there; intervals of groups drawn with
            replacement. People's share has no value where no row has their score.
    """

    point: float
    judge: Statistic
    human: Statistic


class ScoreDistribution(NamedTuple):
    """Says how often each score is given.

    Attributes:
        points: the scale, from low to high.
        distance: total variation, half the sum of the differences of shares: 0 for the same distribution, 1 for none in
            common. It is never below 0, so chance alone makes it positive.
    """

    points: tuple[ScalePoint, ...]
    distance: Statistic


def score_distribution(
    scores: Floats, people: Floats, clusters: Ints, scale: tuple[float, float], resampling: Resampling
) -> ScoreDistribution:
    """Return the distribution of a judge's scores beside people's.

    What lies between points (means, expectations) is rounded half up. Rows with a score off the scale do not count.

    Args:
        scores: the judge's, of each row.
        people: of each row the single annotations, or else their mean, of shape (rows, annotators); NaN where there is
            none. If no row has any, the judge's shares stand alone; else rows without do not count.
        clusters: what each row is drawn with.
        scale: its lowest and its highest point; they lie 1 apart, or a tenth of the scale where 1 leads past its end.
        resampling: how intervals are made.

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
    row_of, values, sizes = known.nonzero()[0], people[known], known.sum(axis=1)
    # Points computed from steps such as 0.1, and means of scores, may miss an end by rounding.
    off_scale = [(column < low - 1e-9) | (column > high + 1e-9) for column in (scores, values)]
    counted = ~off_scale[0] & (np.bincount(row_of, off_scale[1], len(scores)) == 0)
    if sizes[counted].any():
        counted &= sizes > 0
    numbers = number_groups(clusters)
    # Clusters without a row that counts are left out by whoever takes shares.
    tables = np.zeros((2, code_count(numbers), points))
    sides = ((np.flatnonzero(counted), scores[counted]), (row_of[counted[row_of]], values[counted[row_of]]))
    for table, (rows, given) in zip(tables, sides, strict=True):
        # Rounded first: a step such as 0.1 is no binary fraction, and half way could come out a little below.
        nearest = np.floor(np.round((given - low) / step, 9) + 0.5).astype(np.intp)
        np.add.at(table, (numbers[rows], nearest), 1)
    judge, human = (
        [share_interval(table[:, point], table.sum(axis=1), resampling).times(100) for point in range(points)]
        for table in tables
    )
    # No share of an empty table is a number, and so is no distance from it.
    with np.errstate(invalid="ignore"):
        shares = [table.sum(axis=0) / table.sum() for table in tables]
    places = [float(low + step * number) for number in range(points)]
    distance = Statistic(none_if_nan(np.abs(shares[0] - shares[1]).sum() / 2))
    return ScoreDistribution(tuple(map(ScalePoint, places, judge, human)), distance)
