"""Compare annotators with each other and with judges: agreement, ceiling, replacement.

Krippendorff's alpha measures the agreement of a judge's agents, of its repeats, and of annotators
without and with the judge.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean
from typing import Annotated, NamedTuple

import numpy as np

from ..statistics.alignment import Floats, Ints
from ..statistics.chance_corrected import Level, krippendorff_alpha, spearman_brown
from ..statistics.metrics import METRICS
from ..statistics.resampling import Resampling, Statistic, mean_or_none
from ..statistics.sample import Sample
from ..statistics.significance import FEWEST_ITEMS, Closeness, alternative_annotator_test
from ..statistics.tie_policy import TIE_CODE, count_votes
from ..tables.grid import Column, share_column, text_column
from .comparison import PairwiseComparator
from .judges import Subject
from .loading import JudgeAspectData
from .verdict_columns import Side, Verdicts, sample

MEAN = "mean of annotators"
OTHERS_MEAN = "control: the others' mean"
"""The control that replaces each annotator by the mean or majority of the other annotators."""
EPSILON = 0.1
"""The usual epsilon of the test, which its authors use for crowd workers."""


@dataclass(frozen=True)
class Rater:
    """The agreement of an annotator, or of a judge in an annotator's place, with the others.

    Attributes:
        name: an annotator's name, or ``annotator 1`` for the first place in lists of labels without
            names; a judge's label; or ``MEAN``.
        n: the number of rows that counted.
        others: agreement with the other annotators' mean or majority, without the annotator's own
            label. For a judge: the mean over annotators, leaving out each in turn, on the same
            rows. Compare it with the annotators' mean.
        everybody: agreement with the labels, which include an annotator's own, as some papers print
            it.
        closer, beats, replaces: the test whether a judge could replace an annotator. They are
            ``None`` for annotators, for a judge with scores on another scale, and if annotators
            have too few items. A judge that does not agree with the labels better than chance
            replaces nobody, whatever the test finds.
    """

    name: Annotated[str, text_column("rater")]
    n: Annotated[int, Column("rows")]
    others: Annotated[Statistic, Column("with the others", best="high")]
    """agreement with the other annotators; for a judge, with the same labels"""
    everybody: Annotated[Statistic, Column("with all")]
    """with the label, which includes an annotator's own"""
    closer: Annotated[float | None, share_column("closer")] = None
    """how often the judge is at least as close to the others' labels as a random annotator"""
    beats: Annotated[float | None, share_column("beats")] = None
    """share of annotators that it could replace: closer at least as often, less epsilon (tested)"""
    replaces: Annotated[
        bool | None, text_column("could replace one", of=("no", "yes").__getitem__)
    ] = None
    """it agrees better than chance, and beats half of the annotators or more"""


@dataclass(frozen=True)
class Annotators:
    """The annotators of one subject, and the judges compared with them.

    Attributes:
        subject: the subject with the labels.
        metric: the metric of agreement.
        raters: each annotator, their mean, each judge, and two controls of the test. The controls
            are a constant label, and the mean of the other annotators.
        epsilon: the epsilon of the test.
        reliability: the human ceiling for scores: the reliability of the mean label; ``None`` for
            comparisons, and if too few items have several labels.
        labels_each: the mean number of labels of an item.
    """

    subject: Subject
    metric: str
    raters: tuple[Rater, ...]
    epsilon: float
    reliability: float | None = None
    labels_each: float | None = None

    @property
    def title(self) -> str:
        """The title of the table."""
        return f"{self.subject.label}: annotators and judges, {METRICS[self.metric].title}"

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes for readers of the table."""
        place = (
            '"annotator 1" is the first rating in each list, unless the data name the annotators'
        )
        test = "closer, beats, could replace one: alternative annotator test (Calderon et al. 2025)"
        how = f"epsilon {self.epsilon:g}, over annotators with {FEWEST_ITEMS} items or more"
        tested = any(rater.replaces is not None for rater in self.raters)
        chance = (
            "a judge could replace one only if it also agrees with the labels better than chance"
        )
        controls = (
            "controls: what the test finds of a constant label and of the other annotators' mean"
        )
        return (place, f"{test}, {how}", chance, controls) if tested else (place,)

    @property
    def ceiling(self) -> str:
        """A sentence on the agreement of annotators and judges on the same labels; may be empty."""
        place = [rater.name for rater in self.raters].index(MEAN)
        if self.raters[place].others.value is None:
            return ""
        mean, *judges = (
            f"{rater.name} {rater.others.value:.3f}"
            + (" (could replace one)" if rater.replaces else "")
            for rater in self.raters[place:]
            if rater.others.value is not None
        )
        of_people = (
            f"{self.subject.label}: {METRICS[self.metric].title} with the other annotators: {mean}"
        )
        on_same = f"{of_people}; on the same labels {', '.join(judges)}"
        if self.reliability is None:
            return on_same
        mean_label = f"the mean of {self.labels_each:.3g} labels"
        return (
            f"{on_same}. Human ceiling: {mean_label} has a reliability of {self.reliability:.3f} "
            "(Spearman-Brown)"
        )


def compare_annotators(
    comparator: PairwiseComparator, sides: Sequence[Side], epsilon: float = EPSILON
) -> Annotators | None:
    """Compare the annotators of a subject.

    Return ``None`` without labels of single annotators.

    Only rows that all judges judged count. Of repeats, the first counts, because an annotator
    labelled each item once.
    """
    subject = comparator.subject
    metric = comparator.subject.metric
    counted = []
    for side in sides:
        rows = comparator.rows(side)
        counted.append((side, rows.take(rows.repeat == rows.repeat.min()) if len(rows) else rows))
    people = []
    rows = counted[0][1]
    for place, others in _left_out(comparator, rows):
        everybody = _with_all(comparator, rows, rows.by_annotator[:, place])
        people.append(
            Rater(rows.annotators[place], len(others), others.statistic(metric), everybody)
        )
    if not people:
        return None
    means = _mean([rater.others for rater in people]), _mean([rater.everybody for rater in people])
    mean_of_people = Rater(MEAN, max(rater.n for rater in people), *means)
    judges = []
    for side, rows in counted:
        samples = [others for _, others in _left_out(comparator, rows, rows.judged)]
        mean = _mean([others.statistic(metric) for others in samples])
        everybody = _with_all(comparator, rows, rows.judged)
        judge = Rater(side.label, max(map(len, samples), default=0), mean, everybody)
        if side.distances:
            closeness: Closeness = "accuracy" if rows.winners else "rmse"
            test = alternative_annotator_test(rows.judged, rows.by_annotator, closeness, epsilon)
            passed = (
                None if test.passed is None else test.passed and _beats_chance(comparator, side)
            )
            judge = replace(judge, closer=test.advantage, beats=test.winning_rate, replaces=passed)
        judges.append(judge)
    tested = any(judge.replaces is not None for judge in judges)
    controls = _controls(comparator, counted[0][1], epsilon) if tested else ()
    raters = (*people, mean_of_people, *judges, *controls)
    each = np.sum(~np.isnan(counted[0][1].by_annotator), axis=1)
    labels_each = float(each[each > 0].mean())
    reliability = _reliability(comparator, counted[0][1], labels_each)
    return Annotators(subject, metric, raters, epsilon, reliability, labels_each)


def _reliability(comparator: PairwiseComparator, rows: Verdicts, labels: float) -> float | None:
    """Return the reliability of the mean of this many labels; ``None`` if it is undefined.

    It is the agreement between the mean labels of two panels of this size. A single annotator
    agrees less with the others, so a judge may exceed an annotator, but hardly this figure.
    """
    subject = comparator.subject
    if subject.kind != "score" or METRICS[subject.metric].is_share:
        return None
    pairs = []
    for first, second in combinations(rows.by_annotator.T, 2):
        both = np.flatnonzero(~np.isnan(first) & ~np.isnan(second))
        if len(both) < FEWEST_ITEMS:
            continue
        judged = sample(subject, rows.take(both), comparator.resampling, first[both], second[both])
        pairs.append(judged.value(subject.metric))
    known = [value for value in pairs if value is not None]
    return spearman_brown(fmean(known), labels) if known else None


def _beats_chance(comparator: PairwiseComparator, side: Side) -> bool:
    """Whether a judge's correlation with the labels, or its kappa, is significantly above 0."""
    metric = METRICS[comparator.subject.metric].against_chance
    counted = comparator.sample(side)
    figure = counted.statistic(metric)
    return not (len(counted) and np.ptp(counted.judged) == 0) and (figure.low or 0.0) > 0


def _controls(comparator: PairwiseComparator, rows: Verdicts, epsilon: float) -> Iterator[Rater]:
    """Yield the test results of two controls: a constant label, and the other annotators' mean.

    For votes, the second control is the majority.
    """
    labels = rows.by_annotator
    subject = comparator.subject
    others = [np.delete(labels, place, axis=1) for place in range(labels.shape[1])]
    values, counts = np.unique(labels[~np.isnan(labels)], return_counts=True)
    usual = float(values[counts.argmax()])
    verdict = rows.as_verdicts(np.array([usual]))[0]
    name = f"control: always {f'{verdict:g}' if isinstance(verdict, float) else verdict}"
    if subject.kind == "score":
        with_labels = [~np.isnan(columns).all(axis=1) for columns in others]
        in_place = [np.full(len(labels), np.nan) for _ in others]
        for column, known, columns in zip(in_place, with_labels, others, strict=True):
            column[known] = np.nanmean(columns[known], axis=1)
        closeness: Closeness = "rmse"
    else:
        in_place = [_majority(count_votes(columns)) for columns in others]
        closeness = "accuracy"
    constant = np.where(np.isnan(labels).all(axis=1), np.nan, usual)
    for title, judged in ((name, constant), (OTHERS_MEAN, np.stack(in_place, axis=1))):
        test = alternative_annotator_test(judged, labels, closeness, epsilon)
        yield Rater(
            title, len(rows), Statistic(None), Statistic(None), test.advantage, test.winning_rate
        )


def _left_out(
    comparator: PairwiseComparator, rows: Verdicts, judged: Floats | None = None
) -> Iterator[tuple[int, Sample]]:
    """Yield for each annotator a sample of the others' labels, with the own labels or verdicts."""
    labels = rows.by_annotator
    subject = comparator.subject
    for place in range(labels.shape[1]):
        own = labels[:, place]
        others = np.delete(labels, place, axis=1)
        here = np.flatnonzero(~np.isnan(own) & ~np.isnan(others).all(axis=1))
        if not len(here):
            continue
        own = own[here] if judged is None else judged[here]
        others = others[here]
        human = np.nanmean(others, axis=1) if subject.kind == "score" else _votes(others, subject)
        yield place, sample(subject, rows.take(here), comparator.resampling, own, human)


def _votes(others: Floats, subject: Subject) -> Floats:
    """Count the votes of several annotators on each row: their majority, or each vote.

    Without a majority, the row is a tie.
    """
    votes = count_votes(others)
    if subject.rule.votes == "each":
        return votes
    return count_votes(_majority(votes)[:, None])


def _majority(votes: Floats) -> Floats:
    """Return the code of each row's majority.

    It is a tie without a majority, and NaN without votes.
    """
    most = np.where(votes.max(axis=1) * 2 > votes.sum(axis=1), votes.argmax(axis=1), TIE_CODE)
    return np.where(votes.any(axis=1), most.astype(float), np.nan)


def _with_all(comparator: PairwiseComparator, rows: Verdicts, judged: Floats) -> Statistic:
    """Measure an annotator or a judge against the labels of all annotators together."""
    subject = comparator.subject
    here = np.flatnonzero(~np.isnan(judged))
    return sample(subject, rows.take(here), comparator.resampling, judged[here]).statistic(
        subject.metric
    )


def _mean(figures: Sequence[Statistic]) -> Statistic:
    """Average figures of overlapping rows, without an interval."""
    values = [figure.value for figure in figures if figure.value is not None]
    return Statistic(mean_or_none(np.asarray(values)))


class Alphas(NamedTuple):
    """Krippendorff's alpha: scores by amount, and verdicts of comparisons as classes.

    ``None`` means that a value does not exist: one agent, one repeat, or no labels on the judge's
    scale. Without single annotations, the humans' mean is the only human rater.

    Attributes:
        agents: between referees or jurors, by their last opinions.
        repeats: between repeated verdicts of a judge.
        people: between annotators.
        with_judge: between annotators and the judge, on the same rows. A judge that agrees with
            annotators as well as they do leaves alpha unchanged or raises it. Another judge lowers
            it.
    """

    agents: Annotated[Statistic | None, Column("between agents")] = None
    repeats: Annotated[Statistic | None, Column("between repeats")] = None
    people: Annotated[Statistic | None, Column("between annotators")] = None
    with_judge: Annotated[Statistic | None, Column("with the judge")] = None
    """the judge as one more annotator"""


def alphas_of(data: JudgeAspectData, resampling: Resampling) -> Alphas:
    """Compute every alpha that a judge's verdicts on an aspect allow."""
    rows = data.rows
    level: Level = "interval" if data.subject.kind == "score" else "nominal"

    def alpha(ratings: Iterable[Sequence[Hashable]], clusters: Ints) -> Statistic:
        return krippendorff_alpha(ratings, level, clusters.tolist(), resampling).alpha

    several = rows.take(rows.agent_count > 1)
    agents = alpha(several.opinions(), several.clusters) if len(several) else None
    repeats = people = with_judge = None
    if len(np.unique(rows.repeat)) > 1:
        # The rated objects are the items, and the repeats are the raters. Rows are sorted by item.
        starts = np.flatnonzero(np.diff(rows.item, prepend=-1))
        ratings = [values.tolist() for values in np.split(rows.judged, starts[1:])]
        repeats = alpha(ratings, rows.clusters[starts])
    # Scores on a scale other than the humans' differ from them by amount, however well they agree.
    if len(labelled := data.labelled) and data.distances:
        # Each repeat of an item counts separately.
        ratings = np.column_stack([labelled.all_labels, labelled.judged]).tolist()
        with_judge = alpha(ratings, labelled.clusters)
        annotations = labelled.by_annotator
        if ((~np.isnan(annotations)).sum(axis=1) > 1).any():
            people = alpha(annotations.tolist(), labelled.clusters)
    return Alphas(agents, repeats, people, with_judge)
