"""Measure length bias: how scores correlate with length, beside people's, and with people's scores held constant."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from ..statistics.alignment import Floats
from ..statistics.resampling import Resampling, Statistic, none_if_nan, share_of_rows
from ..statistics.sample import Sample
from ..statistics.tie_policy import wins
from ..tables.grid import Column, share_column
from .loading import JudgeAspectData
from .verdict_columns import Verdicts

_NAME = "spearman"


@dataclass(frozen=True)
class LengthBias:
    """Says how far longer texts are judged better. Lengths are in characters.

    Correlations are of scores, shares of comparisons, without those of equal lengths.

    Attributes:
        n: verdicts whose texts' lengths are known.
        labelled: those of them that have a label: over these are ``partial``, ``human`` and ``human_longer``.
    """

    n: Annotated[int, Column("verdicts")]
    labelled: int
    correlation: Annotated[Statistic | None, Column("rho with length")] = None
    """Spearman's rho of scores with the candidate's length"""
    partial: Annotated[Statistic | None, Column("partial rho")] = None
    """the same, controlled for the label: above zero, longer texts score more than labels say"""
    human: Annotated[Statistic | None, Column("label's rho")] = None
    """Spearman's rho of the label with length"""
    longer: Annotated[Statistic | None, share_column("longer wins")] = None
    """how often the longer answer wins; a tie is half a win"""
    human_longer: Annotated[Statistic | None, share_column("longer wins by label")] = None


def length_bias(cell: JudgeAspectData, resampling: Resampling) -> LengthBias | None:
    """Measure the length bias of one judge on one subject; ``None`` where no text's length is known."""
    scores, lengths = cell.subject.kind == "score", cell.rows.lengths
    rows = cell.rows.take(~np.isnan(lengths[:, 0]) & (np.isnan(lengths[:, 1]) == scores))
    if not len(rows):
        return None
    labelled = rows.take(rows.labelled)
    bias = LengthBias(len(rows), len(labelled))
    if not scores:
        longer = _longer(rows, rows.judged, resampling)
        return replace(bias, longer=longer, human_longer=_longer(labelled, labelled.human, resampling))

    def correlated(rows: Verdicts, x: Floats, y: Floats) -> Sample:
        return Sample("score", x, y, rows.clusters, False, resampling)

    bias = replace(bias, correlation=correlated(rows, rows.judged, rows.lengths[:, 0]).statistic(_NAME))
    if not len(labelled):
        return bias
    judged, human, length = labelled.judged, labelled.human, labelled.lengths[:, 0]
    pairs = [correlated(labelled, *pair) for pair in ((judged, length), (judged, human), (human, length))]
    values = [np.array([pair.value(_NAME)], dtype=float) for pair in pairs]
    # All three correlations of a resample are of the same draw, so they can be put together.
    resampled = partial_correlation(*(pair.drawn(_NAME) for pair in pairs))
    partial = none_if_nan(partial_correlation(*values)[0])
    bounded = resampling.studentised(partial, resampled, pairs[0].count, bounded=True)[0]
    return replace(bias, human=pairs[2].statistic(_NAME), partial=bounded)


def partial_correlation(both: Floats, first: Floats, second: Floats) -> Floats:
    """Correlate two columns with a third held constant: (r - ac) / sqrt((1 - a^2)(1 - c^2)).

    Args:
        both: r, of the two with each other.
        first, second: a and c, of either with the third; where one of them is 1 or -1, nothing is left (NaN).

    Source: Kendall 1942, Partial rank correlation, for ranks as for values.

    >>> float(partial_correlation(np.array([0.5]), np.array([0.5]), np.array([0.5]))[0])
    0.3333333333333333
    """
    left = (1 - first**2) * (1 - second**2)
    partial: Floats = (both - first * second) / np.sqrt(np.where(left > 1e-12, left, np.nan))
    return np.clip(partial, -1, 1)


def _longer(rows: Verdicts, winners: Floats, resampling: Resampling) -> Statistic | None:
    """Return how often the longer answer wins; answers of equal length do not count."""
    toward = np.sign(rows.lengths[:, 0] - rows.lengths[:, 1])
    differing = np.flatnonzero(toward)
    if not len(differing):
        return None
    won = wins(winners[differing], toward[differing])
    return share_of_rows(won, rows.take(differing).clusters, resampling)
