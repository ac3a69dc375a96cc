"""Measure which way a judge leans where humans do not: its level, the longer text, the first or the second place.

A correlation and an accuracy say nothing of these; a sentence of a report does, where they are significant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ..statistics.alignment import Floats, grouped
from ..statistics.resampling import Resampling, Statistic
from ..statistics.sample import Sample, paired_difference
from ..statistics.significance import LEVEL, holm
from ..statistics.tie_policy import wins
from .comparison import PairwiseComparator
from .verdict_columns import Side, Verdicts

Way = Literal["level", "length", "place"]


@dataclass(frozen=True)
class Leaning:
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


def leanings(comparators: Sequence[PairwiseComparator]) -> tuple[Leaning, ...]:
    """Measure which way each judge leans on each subject, with p-values adjusted within a dataset.

    Judges that always say the same lean no way: they are told as what they are.
    """
    tested: list[Leaning] = []
    for of_dataset in grouped((each.subject.digest, each) for each in comparators).values():
        family = [
            leaning
            for comparator in of_dataset
            for side in comparator.sides.values()
            for leaning in _of_judge(comparator, side)
        ]
        adjusted = holm([leaning.p for leaning in family])
        tested += [replace(leaning, adjusted=p) for leaning, p in zip(family, adjusted, strict=True)]
    return tuple(tested)


def _of_judge(comparator: PairwiseComparator, side: Side) -> Iterator[Leaning]:
    rows, subject, how = comparator.counted(side.rows), comparator.subject, comparator.resampling
    if not len(rows) or np.ptp(rows.judged) == 0:
        return
    about = side.label, subject.label
    if subject.kind == "compare":
        yield from _chosen(about, "length", rows, np.sign(rows.lengths[:, 0] - rows.lengths[:, 1]), how)
        yield from _chosen(about, "place", rows, np.ones(len(rows)), how)
        return
    if side.distances:
        shift, p = how.mean_interval(rows.judged - rows.human, rows.clusters)
        yield Leaning(*about, "level", float(rows.judged.mean()), float(rows.human.mean()), shift, p)
    known = rows.take(~np.isnan(rows.lengths[:, 0]))
    if len(known):
        judged, human = (
            Sample("score", scores, known.lengths[:, 0], known.clusters, False, how)
            for scores in (known.judged, known.human)
        )
        own, label = judged.statistic("spearman"), human.value("spearman")
        if own.value is not None and label is not None:
            excess = paired_difference([(judged, human)], "spearman")
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
    further = (excess.value or 0.0) > 0
    itself = (own.low or 0.0) > 0 if further else way == "place" and (own.high or 0.0) < 0
    yield Leaning(*about, way, float(judged.mean()), float(human.mean()), excess, p, itself)
