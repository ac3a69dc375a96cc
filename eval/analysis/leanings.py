"""Measure which way a judge leans where humans do not: its level, the longer text, the first or the second place.

A correlation and an accuracy say nothing of these; a sentence of a report does, where they are significant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal, NamedTuple

import numpy as np

from ..statistics.alignment import Floats, grouped
from ..statistics.resampling import Resampling, Statistic, none_if_nan, share_of_rows
from ..statistics.sample import Sample, paired_difference
from ..statistics.significance import LEVEL, holm
from ..statistics.tie_policy import wins
from ..tables.grid import Column, share_column
from .comparison import PairwiseComparator
from .loading import JudgeAspectData
from .verdict_columns import Side, Verdicts

Way = Literal["level", "length", "place"]


class Leaning(NamedTuple):
    """Says how far a judge goes one way, beside the labels of the same rows.

    Attributes:
        judge, subject: their labels.
        way: ``level``: its mean score; ``length``: of scores Spearman's rho with the text's length, of comparisons how
            often the longer answer wins; ``place``: how often the first answer wins. Shares have ties half on either
            side.
        judged, human: the figure of the judge, and of the labels.
        excess: the judge's less the labels', with its interval.
        p: that it is 0; ``adjusted`` by Holm's method over all that is measured here on a dataset.
        itself: whether the judge's own figure lies significantly on that side, whatever the labels do.
    """

    judge: str
    subject: str
    way: Way
    judged: float
    human: float
    excess: Statistic
    p: float | None
    itself: bool = True
    adjusted: float | None = None

    @property
    def holds(self) -> bool:
        """Whether the judge leans further than the labels, and not only less far the other way."""
        return self.itself and self.adjusted is not None and self.adjusted < LEVEL


def leanings(comparators: Sequence[PairwiseComparator]) -> Iterator[Leaning]:
    """Yield which way each judge leans on each subject, with p-values adjusted within a dataset.

    Judges that always say the same lean no way: they are told as what they are.
    """
    for of_dataset in grouped((of.subject.digest, of) for of in comparators).values():
        judges = ((comparator, side) for comparator in of_dataset for side in comparator.sides.values())
        family = [leaning for judge in judges for leaning in _of_judge(*judge)]
        adjusted = holm([leaning.p for leaning in family])
        yield from (leaning._replace(adjusted=p) for leaning, p in zip(family, adjusted, strict=True))


def _of_judge(comparator: PairwiseComparator, side: Side) -> Iterator[Leaning]:
    rows, how = comparator.counted(side.rows), comparator.resampling
    about = side.label, comparator.subject.label
    if not len(rows) or np.ptp(rows.judged) == 0:
        return
    if comparator.subject.kind == "compare":
        yield from _chosen(about, "length", rows, _longer(rows), how)
        yield from _chosen(about, "place", rows, np.ones(len(rows)), how)
        return
    if side.distances:
        shift, p = how.mean_interval(rows.judged - rows.human, rows.clusters)
        yield Leaning(*about, "level", float(rows.judged.mean()), float(rows.human.mean()), shift, p)
    known = rows.take(~np.isnan(rows.lengths[:, 0]))
    length = known.lengths[:, 0]
    judged, human = (_correlated(known, scores, length, how) for scores in (known.judged, known.human))
    own, label = judged.statistic(_RHO), human.value(_RHO)
    if own.value is not None and label is not None:
        excess = paired_difference([(judged, human)], _RHO)
        # Whose scores go against length, only less far than the labels do, does not follow it.
        itself = (own.low or 0.0) > 0 and (excess.difference.value or 0.0) > 0
        yield Leaning(*about, "length", own.value, label, excess.difference, excess.p, itself)


def _chosen(
    about: tuple[str, str], way: Way, rows: Verdicts, toward: Floats, how: Resampling
) -> Iterator[Leaning]:
    """Measure how often the answer wins that is pointed to: 1 for the first, -1 for the second; others do not count."""
    pointed = np.flatnonzero((toward == 1) | (toward == -1))
    if not len(pointed):
        return
    rows, toward = rows.take(pointed), toward[pointed]
    judged, human = (wins(winners, toward) for winners in (rows.judged, rows.human))
    excess, p = how.mean_interval(judged - human, rows.clusters)
    own = how.mean_interval(judged - 0.5, rows.clusters)[0]
    # Less often than the labels is a leaning only towards the second place: a shorter answer is not preferred as such.
    further = (excess.value or 0.0) > 0
    itself = (own.low or 0.0) > 0 if further else way == "place" and (own.high or 0.0) < 0
    yield Leaning(*about, way, float(judged.mean()), float(human.mean()), excess, p, itself)


_RHO = "spearman"


def _correlated(rows: Verdicts, x: Floats, y: Floats, how: Resampling) -> Sample:
    return Sample("score", x, y, rows.clusters, False, how)


def _longer(rows: Verdicts) -> Floats:
    """Point to the longer answer of each row: 1 for the first, -1 for the second, 0 for neither, NaN if unknown."""
    return np.sign(rows.lengths[:, 0] - rows.lengths[:, 1])


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


def length_bias(data: JudgeAspectData, how: Resampling) -> LengthBias | None:
    """Measure the length bias of one judge on one subject; ``None`` where no text's length is known."""
    scores, lengths = data.subject.kind == "score", data.rows.lengths
    rows = data.rows.take(~np.isnan(lengths[:, 0]) & (np.isnan(lengths[:, 1]) == scores))
    if not len(rows):
        return None
    labelled = rows.take(rows.labelled)
    bias = LengthBias(len(rows), len(labelled))

    def longer_wins(rows: Verdicts, winners: Floats) -> Statistic | None:
        differing = np.flatnonzero(toward := _longer(rows))
        won = wins(winners[differing], toward[differing])
        return share_of_rows(won, rows.clusters[differing], how) if len(differing) else None

    if not scores:
        longer, human_longer = longer_wins(rows, rows.judged), longer_wins(labelled, labelled.human)
        return replace(bias, longer=longer, human_longer=human_longer)
    bias = replace(bias, correlation=_correlated(rows, rows.judged, rows.lengths[:, 0], how).statistic(_RHO))
    if not len(labelled):
        return bias
    judged, human, length = labelled.judged, labelled.human, labelled.lengths[:, 0]
    columns = (judged, length), (judged, human), (human, length)
    pairs = [_correlated(labelled, *pair, how) for pair in columns]
    values = [np.array([pair.value(_RHO)], dtype=float) for pair in pairs]
    # All three correlations of a resample are of the same draw, so they can be put together.
    resampled = partial_correlation(*(pair.drawn(_RHO) for pair in pairs))
    partial = none_if_nan(partial_correlation(*values)[0])
    bounded = how.studentised(partial, resampled, pairs[0].count, bounded=True)[0]
    return replace(bias, human=pairs[2].statistic(_RHO), partial=bounded)


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
