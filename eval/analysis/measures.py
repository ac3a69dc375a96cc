"""Make samples of verdicts, for ``statistics.sample`` to measure, and means over verdicts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..statistics.alignment import Floats, Units
from ..statistics.resampling import Resampling, Statistic, share_of_rows
from ..statistics.sample import Sample
from .judges import EvaluationTarget
from .verdict_columns import Verdicts


def sample(
    subject: EvaluationTarget,
    rows: Verdicts,
    resampling: Resampling,
    judged: Floats | None = None,
    labels: Floats | None = None,
) -> Sample:
    """Make the sample of rows that have a label.

    Args:
        subject: what was judged; it says how preferences are compared with the labels.
        rows: verdicts with their labels.
        resampling: how intervals are made.
        judged: values to use in place of the final verdicts, such as those after a round.
        labels: labels to use in place of the rows' own: scores, or votes of shape (rows, 3).
    """
    values, grouped = rows.judged if judged is None else judged, bool((rows.group >= 0).any())
    if labels is None:
        labels = rows.human if subject.kind == "score" else rows.votes(subject.rule.votes)
    return Sample(subject.kind, values, labels, rows.clusters, grouped, resampling, subject.rule.ties)


def mean_statistic(values: NDArray[Any], units: Units, resampling: Resampling) -> Statistic:
    """Return a mean over rows with its interval over clusters, that of a share where all values are 0 or 1."""
    if np.isin(values, (0, 1)).all():
        return share_of_rows(values.astype(bool), units, resampling)
    return resampling.mean_interval(values.astype(float), units)[0]
