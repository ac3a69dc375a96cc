"""Make samples of verdicts, for ``statistics.sample`` to measure, and means over verdicts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...state.tasks import TaskKind
from ..statistics.alignment import Floats, Units, unit_count
from ..statistics.chance_corrected import accuracies
from ..statistics.resampling import Resampling, Statistic, resampled_means, share_interval
from ..statistics.sample import Sample
from ..statistics.tie_policy import DEFAULT_TIE_POLICY, TiePolicy, confusion_tables
from .verdict_columns import Verdicts


def sample(
    kind: TaskKind,
    rows: Verdicts,
    resampling: Resampling,
    judged: Floats | None = None,
    rule: TiePolicy = DEFAULT_TIE_POLICY,
) -> Sample:
    """Make the sample of rows that have a label.

    Of preferences, rows count on which humans have a vote that counts.

    Args:
        kind: whether these are scores or preferences.
        rows: verdicts with their labels.
        resampling: how intervals are made.
        judged: values to use in place of the final verdicts, such as those after a round.
        rule: how preferences are compared with the labels.
    """
    values, human = rows.judged if judged is None else judged, rows.human
    if kind == "compare":
        votes = rows.votes(rule).astype(float)
        voted = np.flatnonzero(votes.sum(axis=1))
        rows, values, human = rows.take(voted), values[voted], votes[voted]
    clusters, names = rows.clusters, rows.cluster_names
    return Sample(
        kind,
        values,
        human,
        clusters,
        grouped=bool((rows.group >= 0).any()),
        resampling=resampling,
        ties=rule.ties,
        # The clusters are numbered in the order in which they come up: the first row of each has its name.
        names=names[np.sort(np.unique(clusters, return_index=True)[1])],
    )


def right(rows: Verdicts, votes: Floats, rule: TiePolicy) -> Floats:
    """Return the share of people's votes that each winner agrees with: 1 or 0 of a single vote; NaN without any."""
    return accuracies(confusion_tables(rows.judged, votes, rule.ties))


def mean_statistic(values: NDArray[Any], units: Units, resampling: Resampling) -> Statistic:
    """Return a mean over rows, with the interval of clusters drawn with replacement; ``None`` without rows."""
    if not len(values):
        return Statistic(None)
    column, clusters = values.astype(float), unit_count(units)
    if np.isin(column, (0, 1)).all():
        sums: Floats = np.bincount(units, column).astype(np.float64)
        sizes: Floats = np.bincount(units, np.ones(len(column))).astype(np.float64)
        return share_interval(sums, sizes, resampling)
    mean = float(column.mean())
    return resampling.studentised(mean, resampled_means(column, units, resampling), clusters)[0]
