"""Make samples of verdicts, for ``statistics.sample`` to measure, and means over verdicts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...state.tasks import TaskKind
from ..statistics.alignment import Floats, Units
from ..statistics.chance_corrected import accuracies
from ..statistics.resampling import Resampling, Statistic, share_of_rows
from ..statistics.sample import Sample
from ..statistics.tie_policy import DEFAULT_TIE_POLICY, TiePolicy, confusion_tables, counted_votes
from .verdict_columns import Verdicts


def sample(
    kind: TaskKind,
    rows: Verdicts,
    resampling: Resampling,
    judged: Floats | None = None,
    rule: TiePolicy = DEFAULT_TIE_POLICY,
    labels: Floats | None = None,
) -> Sample:
    """Make the sample of rows that have a label.

    Of preferences, rows count on which humans have a vote that counts.

    Args:
        kind: whether these are scores or preferences.
        rows: verdicts with their labels.
        resampling: how intervals are made.
        judged: values to use in place of the final verdicts, such as those after a round.
        rule: how preferences are compared with the labels.
        labels: labels to use in place of the rows' own: scores, or votes of shape (rows, 3).
    """
    values, human = rows.judged if judged is None else judged, rows.human if labels is None else labels
    if kind == "compare":
        votes = rows.votes(rule) if labels is None else counted_votes(labels, rule.ties)
        voted = np.flatnonzero(votes.sum(axis=1))
        rows, values, human = rows.take(voted), values[voted], votes[voted]
    grouped = bool((rows.group >= 0).any())
    return Sample(kind, values, human, rows.clusters, grouped, resampling, rule.ties)


def right(rows: Verdicts, votes: Floats, rule: TiePolicy) -> Floats:
    """Return the share of people's votes that each winner agrees with: 1 or 0 of a single vote; NaN without any."""
    return accuracies(confusion_tables(rows.judged, votes, rule.ties))


def mean_statistic(values: NDArray[Any], units: Units, resampling: Resampling) -> Statistic:
    """Return a mean over rows with its interval over clusters, that of a share where all values are 0 or 1."""
    if np.isin(values, (0, 1)).all():
        return share_of_rows(values.astype(bool), units, resampling)
    return resampling.mean_interval(values.astype(float), units)[0]
