"""Measure length bias: how scores correlate with length, beside people's, and with people's scores held constant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..statistics.alignment import Floats, Units
from ..statistics.correlation import correlation, resampled_correlation
from ..statistics.resampling import Resampling, Statistic, none_if_nan
from .loading import JudgeAspectData
from .measures import mean_statistic, numbering
from .result_rows import Judged, ResultRow

_NAME = "spearman"


@dataclass(frozen=True)
class LengthBias:
    """Says how far longer texts are judged better. Lengths are in characters.

    Attributes:
        n: verdicts whose texts' lengths are known.
        labelled: those of them that have a label: over these are ``partial``, ``human`` and ``human_longer``.
        correlation: of scores: Spearman's with the candidate's length.
        partial: of scores: the same with people's score held constant; above zero: longer is better than people say.
        human: of scores: Spearman's of people's score with length.
        longer: of two answers: share of verdicts for the longer one, ties and equal lengths left out.
        human_longer: of two answers: the same of people.
    """

    n: int
    labelled: int
    correlation: Statistic | None = None
    partial: Statistic | None = None
    human: Statistic | None = None
    longer: Statistic | None = None
    human_longer: Statistic | None = None


def length_bias(cell: JudgeAspectData, resampling: Resampling) -> LengthBias | None:
    """Measure the length bias of one judge on one subject; ``None`` where no text's length is known."""
    wanted = 1 if cell.subject.kind == "score" else 2
    rows = [row for row in cell.rows if len(row.lengths) == wanted]
    if not rows:
        return None
    return _of_scores(rows, resampling) if wanted == 1 else _of_preferences(rows, resampling)


def _of_scores(rows: Sequence[ResultRow], resampling: Resampling) -> LengthBias:
    labelled_rows = [row for row in rows if row.human is not None]
    all_scores = _ScoresAndLengths(rows, resampling)
    labelled = _ScoresAndLengths(labelled_rows, resampling) if labelled_rows else None
    return LengthBias(
        n=len(rows),
        labelled=len(labelled_rows),
        correlation=all_scores.statistic("judged", "length"),
        human=labelled.statistic("human", "length") if labelled else None,
        partial=labelled.partial() if labelled else None,
    )


class _ScoresAndLengths:
    """Holds scores, people's scores and lengths of the same rows."""

    def __init__(self, rows: Sequence[ResultRow], resampling: Resampling) -> None:
        self._resampling = resampling
        self._units: Units = numbering(rows)[0]
        self._columns: dict[str, Floats] = {
            "judged": np.array([row.judged for row in rows], dtype=float),
            "length": np.array([row.lengths[0] for row in rows], dtype=float),
        }
        if all(row.human is not None for row in rows):
            self._columns["human"] = np.array([row.human for row in rows], dtype=float)

    def statistic(self, x: str, y: str) -> Statistic:
        return self._resampling.interval(self._value(x, y), self._resampled(x, y))

    def partial(self) -> Statistic:
        """Correlate the judge's scores with length, people's scores held constant."""
        pairs = (("judged", "length"), ("judged", "human"), ("human", "length"))
        values = [np.nan if (value := self._value(*pair)) is None else value for pair in pairs]
        value = float(partial_correlation(*(np.array([value]) for value in values))[0])
        # All three correlations of a resample are of the same draw, so they can be put together.
        resampled = partial_correlation(*(self._resampled(*pair) for pair in pairs))
        return self._resampling.interval(none_if_nan(value), resampled)

    def _value(self, x: str, y: str) -> float | None:
        return correlation(_NAME, self._columns[x], self._columns[y])

    def _resampled(self, x: str, y: str) -> Floats:
        return resampled_correlation(_NAME, self._columns[x], self._columns[y], self._units, self._resampling)


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


def _of_preferences(rows: Sequence[ResultRow], resampling: Resampling) -> LengthBias:
    labelled = [row for row in rows if row.human is not None]
    return LengthBias(
        n=len(rows),
        labelled=len(labelled),
        longer=_longer(rows, [row.judged for row in rows], resampling),
        human_longer=_longer(labelled, [row.human for row in labelled], resampling),
    )


def _longer(
    rows: Sequence[ResultRow], winners: Sequence[Judged | None], resampling: Resampling
) -> Statistic | None:
    """Return the share of winners that are the longer answer; ties and answers of equal length do not count."""
    decided = [
        (row, winner)
        for row, winner in zip(rows, winners, strict=True)
        if winner in ("1", "2") and row.lengths[0] != row.lengths[1]
    ]
    if not decided:
        return None
    won = (float((winner == "1") == (row.lengths[0] > row.lengths[1])) for row, winner in decided)
    return mean_statistic(won, numbering([row for row, _ in decided])[0], resampling)
