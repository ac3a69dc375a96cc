"""Measure a judge's leanings: its level, the longer text, the answer shown first or second.

A preference for a place is measured by experiment: the judge sees each pair in both orders. A
comparison of length with the labels is no evidence of a bias. If length goes with quality, noisy
labels follow it less than a precise judge does. With several annotators, their two halves show the
noise of the labels, and the effect of length at equal quality can be estimated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal, NamedTuple

import numpy as np

from ..statistics.alignment import Floats, Ints, grouped
from ..statistics.given_quality import GivenQuality, effect_given_quality, halves_of
from ..statistics.resampling import Resampling, Statistic, none_if_nan, share_of_rows
from ..statistics.sample import Sample, paired_difference
from ..statistics.significance import LEVEL, holm
from ..statistics.tie_policy import TOWARDS_FIRST, wins
from ..tables.grid import Column, share_column
from .comparison import PairwiseComparator
from .loading import JudgeAspectData
from .verdict_columns import Verdicts

Way = Literal["level", "length", "place"]


class Leaning(NamedTuple):
    """A judge's leaning, compared with the labels of the same rows or, for a place, with one half.

    Attributes:
        judge, subject: their labels.
        way: the kind of leaning. ``level``: the mean score. ``length``: for scores, Spearman's rho
            with the text's length; for comparisons, how often the longer answer wins. ``place``:
            how often the answer shown first wins, over pairs that the judge saw in both orders. A
            tie counts half in shares.
        judged, human: the figure of the judge, and that of the labels; for ``place``, 0.5.
        excess: the judge's figure minus the labels', with its interval.
        p: for an excess of 0; ``adjusted`` by Holm's method over all leanings on a dataset.
        itself: whether the judge's own figure is significantly on that side, whatever the labels
            do.
        beyond: for ``length`` with labels of several annotators: the effect of length at equal
            quality. For scores, points for one standard deviation of the logarithm of the length;
            for comparisons, the share of wins of the longer answer above one half.
        beyond_p: for an effect of ``MARGIN`` at most; ``beyond_adjusted`` by Holm's method over the
            judges and aspects of a dataset.
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
    beyond: Statistic | None = None
    beyond_p: float | None = None
    beyond_adjusted: float | None = None

    @property
    def favours_longer(self) -> bool:
        """Whether longer texts get better verdicts than their quality explains."""
        above = self.beyond is not None and (self.beyond.value or 0.0) > MARGIN
        return above and self.beyond_adjusted is not None and self.beyond_adjusted < LEVEL

    @property
    def shows_no_effect(self) -> bool:
        """Whether no effect at equal quality is found, with an interval that is not too wide."""
        beyond = self.beyond
        if beyond is None or beyond.low is None or beyond.high is None or self.favours_longer:
            return False
        return self.beyond_p is not None and beyond.high - beyond.low < WIDEST

    @property
    def holds(self) -> bool:
        """Whether the judge leans further than the labels, not just less far the other way."""
        return self.itself and self.adjusted is not None and self.adjusted < LEVEL


def leanings(comparators: Sequence[PairwiseComparator]) -> Iterator[Leaning]:
    """Yield the leanings of each judge on each subject, with p-values adjusted within a dataset.

    A judge that always gives the same verdict has no leaning, and is reported as constant.
    """
    for of_dataset in grouped((of.subject.digest, of) for of in comparators).values():
        judges = ((comparator, data) for comparator in of_dataset for data in comparator.data)
        family = [leaning for judge in judges for leaning in _of_judge(*judge)]
        adjusted = holm([leaning.p for leaning in family])
        beyond = holm([leaning.beyond_p for leaning in family])
        for leaning, p, beyond_p in zip(family, adjusted, beyond, strict=True):
            yield leaning._replace(adjusted=p, beyond_adjusted=beyond_p)


def _of_judge(comparator: PairwiseComparator, data: JudgeAspectData) -> Iterator[Leaning]:
    side = data.side
    rows = comparator.rows(side)
    how = comparator.resampling
    about = side.label, comparator.subject.label
    if not len(rows) or np.ptp(rows.judged) == 0:
        return
    if comparator.subject.kind == "compare":
        yield from _longer_chosen(about, rows, how)
        yield from _placed(about, data, how)
        return
    if side.distances:
        shift, p = how.mean_interval(rows.judged - rows.human, rows.clusters)
        yield Leaning(
            *about, "level", float(rows.judged.mean()), float(rows.human.mean()), shift, p
        )
    known = rows.take(~np.isnan(rows.lengths[:, 0]))
    length = known.lengths[:, 0]
    judged, human = (
        _correlated(known, scores, length, how) for scores in (known.judged, known.human)
    )
    own = judged.statistic(_RHO)
    label = human.value(_RHO)
    if own.value is not None and label is not None:
        excess = paired_difference([(judged, human)], _RHO)
        # Scores that go against length, only less than the labels do, do not follow it.
        itself = (own.low or 0.0) > 0 and (excess.difference.value or 0.0) > 0
        leaning = Leaning(*about, "length", own.value, label, excess.difference, excess.p, itself)
        logarithm = np.log(np.maximum(length, 1.0))
        spread = float(logarithm.std())
        if spread > 0:
            feature = (logarithm - logarithm.mean()) / spread
            found = effect_of_length(known.judged, feature, known.by_annotator, known.clusters, how)
            leaning = _at_equal_quality(leaning, found)
        yield leaning


MARGIN = 0.04
"""The smallest effect of length at equal quality that counts as a bias.

The correction assumes that verdicts and labels follow quality along lines. Scales with few points
bend these lines. In simulations, this alone causes effects of up to 0.03.
"""
WIDEST = 0.6
"""An interval of the effect that is wider than this is not reported: the labels are too noisy."""


def effect_of_length(
    judged: Floats, feature: Floats, labels: Floats, clusters: Ints, how: Resampling
) -> GivenQuality | None:
    """Return the effect of length on verdicts at equal quality, with its interval.

    The p-value is for an effect of ``MARGIN``. The method is that of ``effect_given_quality``.

    Args:
        judged: the verdict of each row: a score, or 1, 0.5 or 0 for answer 1.
        feature: the standardised log length of each row, or 1 or -1 for the longer answer.
        labels: the annotators' labels in the form of ``judged``, of shape (rows, annotators); NaN
            for a missing label.
        clusters: a number for each row, the same for rows that are resampled together.
        how: how intervals are computed.

    Returns:
        the effect; ``None`` if there are no two halves of annotators, or it does not exist.
    """
    halves = halves_of(labels)
    known = ~np.isnan(halves.sum(axis=1))
    if not known.any():
        return None
    # The slope is linear in the verdicts, so without the margin it is smaller by the margin.
    rest = judged[known] - MARGIN * feature[known]
    found = effect_given_quality(rest, feature[known], halves[known], clusters[known], how)
    ends = found.effect.value, found.effect.low, found.effect.high
    value, low, high = (None if end is None else end + MARGIN for end in ends)
    return None if value is None else GivenQuality(Statistic(value, low, high), found.p)


def _at_equal_quality(leaning: Leaning, found: GivenQuality | None) -> Leaning:
    return leaning if found is None else leaning._replace(beyond=found.effect, beyond_p=found.p)


def _longer_chosen(about: tuple[str, str], rows: Verdicts, how: Resampling) -> Iterator[Leaning]:
    """Measure how often the longer answer wins.

    Pairs with equal or unknown lengths do not count.
    """
    toward = _longer(rows)
    differing = np.flatnonzero((toward == 1) | (toward == -1))
    if not len(differing):
        return
    rows = rows.take(differing)
    toward = toward[differing]
    judged, human = (wins(winners, toward) for winners in (rows.judged, rows.human))
    excess, p = how.mean_interval(judged - human, rows.clusters)
    own = how.mean_interval(judged - 0.5, rows.clusters)[0]
    # A judge that chooses the longer answer less often than the labels does not follow length.
    itself = (excess.value or 0.0) > 0 and (own.low or 0.0) > 0
    shares = float(judged.mean()), float(human.mean())
    leaning = Leaning(*about, "length", *shares, excess, p, itself)
    labels = rows.by_annotator
    votes = np.full(labels.shape, np.nan)
    given = ~np.isnan(labels)
    votes[given] = (1 + TOWARDS_FIRST[labels[given].astype(np.intp)]) / 2
    first_wins = wins(rows.judged, np.ones(len(rows)))
    found = effect_of_length(first_wins, toward, votes, rows.clusters, how)
    yield _at_equal_quality(leaning, found)


def _placed(about: tuple[str, str], data: JudgeAspectData, how: Resampling) -> Iterator[Leaning]:
    """Measure how often the answer shown first wins if both orders were shown.

    Without a bias, it wins half of the time.
    """
    orders = data.orders.table()
    orders = orders[~np.isnan(orders["first"])]
    if len(orders):
        excess, p = how.mean_interval(orders["first"] - 0.5, orders["cluster"])
        yield Leaning(*about, "place", float(orders["first"].mean()), 0.5, excess, p)


_RHO = "spearman"


def _correlated(rows: Verdicts, x: Floats, y: Floats, how: Resampling) -> Sample:
    return Sample("score", x, y, rows.clusters, False, how)


def _longer(rows: Verdicts) -> Floats:
    """Return the longer answer of each row: 1 for the first, -1 for the second, 0 for neither.

    Unknown lengths give NaN.
    """
    return np.sign(rows.lengths[:, 0] - rows.lengths[:, 1])


@dataclass(frozen=True)
class LengthBias:
    """How far longer texts get better verdicts. Lengths are in characters.

    Scores have correlations. Comparisons have shares, without pairs of equal length.

    Attributes:
        n: verdicts with known text lengths.
        labelled: the verdicts among them with a label, for ``partial``, ``human`` and
            ``human_longer``.
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
    """Measure the length bias of one judge on one subject; ``None`` without known text lengths."""
    scores = data.subject.kind == "score"
    lengths = data.rows.lengths
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
        longer = longer_wins(rows, rows.judged)
        human_longer = longer_wins(labelled, labelled.human)
        return replace(bias, longer=longer, human_longer=human_longer)
    bias = replace(
        bias, correlation=_correlated(rows, rows.judged, rows.lengths[:, 0], how).statistic(_RHO)
    )
    if not len(labelled):
        return bias
    judged = labelled.judged
    human = labelled.human
    length = labelled.lengths[:, 0]
    columns = (judged, length), (judged, human), (human, length)
    pairs = [_correlated(labelled, *pair, how) for pair in columns]
    values = [np.array([pair.value(_RHO)], dtype=float) for pair in pairs]
    # All three correlations of a resample come from the same draw, so they can be combined.
    resampled = partial_correlation(*(pair.drawn(_RHO) for pair in pairs))
    partial = none_if_nan(partial_correlation(*values)[0])
    bounded = how.studentised(partial, resampled, pairs[0].count, bounded=True)[0]
    return replace(bias, human=pairs[2].statistic(_RHO), partial=bounded)


def partial_correlation(both: Floats, first: Floats, second: Floats) -> Floats:
    """Correlate two columns with a third held constant: (r - ac) / sqrt((1 - a^2)(1 - c^2)).

    Args:
        both: r, the correlation of the two columns.
        first, second: a and c, the correlation of each with the third column; if one of them is 1
            or -1, the result is NaN.

    Source: Kendall 1942, partial rank correlation, for ranks as for values.

    >>> float(partial_correlation(np.array([0.5]), np.array([0.5]), np.array([0.5]))[0])
    0.3333333333333333
    """
    left = (1 - first**2) * (1 - second**2)
    partial: Floats = (both - first * second) / np.sqrt(np.where(left > 1e-12, left, np.nan))
    return np.clip(partial, -1, 1)
