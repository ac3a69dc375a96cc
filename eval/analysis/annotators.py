"""Compare annotators with each other, and judges with them: how far anyone agrees, and who could replace one.

Krippendorff's alpha says the same of a judge's agents, of its repeats, and of annotators without and with the judge.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

import numpy as np

from ..statistics.alignment import Floats, Ints
from ..statistics.chance_corrected import Level, krippendorff_alpha
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

CEILING = "mean of annotators"
EPSILON = 0.1
"""The usual epsilon of the test, which its authors take for crowd workers."""


@dataclass(frozen=True)
class Rater:
    """Says how well an annotator, or a judge in an annotator's place, agrees with the others.

    Attributes:
        name: ``annotator 1`` for the first place in the lists of labels; a judge's label; or ``CEILING``.
        n: the rows that counted.
        others: agreement with the other annotators' mean or majority, without the annotator's own label. Of a judge
            the mean over annotators, each left out in turn, on the same rows: what is to be compared with the ceiling.
        everybody: agreement with the labels, to which an annotator's own belongs, as some papers print it.
        closer, beats, replaces: the test whether a judge could replace an annotator; ``None`` of annotators, of a judge
            whose scores are on another scale, and where annotators have too few items.
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
    replaces: Annotated[bool | None, text_column("could replace one", of=("no", "yes").__getitem__)] = None
    """it beats half of the annotators or more"""


@dataclass(frozen=True)
class Annotators:
    """Holds the annotators of one subject and the judges beside them.

    Attributes:
        subject: what was labelled.
        metric: what agreement is measured by.
        raters: each annotator, their mean (the human ceiling), then each judge.
        epsilon: of the test.
    """

    subject: Subject
    metric: str
    raters: tuple[Rater, ...]
    epsilon: float

    @property
    def title(self) -> str:
        """The title of its table."""
        return f"{self.subject.label}: annotators and judges, {METRICS[self.metric].title}"

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the table should know."""
        place = "an annotator is a place in the lists of labels; people who took turns in one count as one"
        test = "closer, beats, could replace one: alternative annotator test (Calderon et al. 2025)"
        how = f"epsilon {self.epsilon:g}, over annotators with {FEWEST_ITEMS} items or more"
        tested = any(rater.replaces is not None for rater in self.raters)
        return (place, f"{test}, {how}") if tested else (place,)

    @property
    def ceiling(self) -> str:
        """What annotators reach, and the judges on the same labels, in a sentence; empty where nothing is measured."""
        place = [rater.name for rater in self.raters].index(CEILING)
        if self.raters[place].others.value is None:
            return ""
        mean, *judges = (
            f"{rater.name} {rater.others.value:.3f}" + (" (could replace one)" if rater.replaces else "")
            for rater in self.raters[place:]
            if rater.others.value is not None
        )
        of_people = f"{self.subject.label}: {METRICS[self.metric].title} with the other annotators: {mean}"
        return f"{of_people}; on the same labels {', '.join(judges)}"


def compare_annotators(
    comparator: PairwiseComparator, sides: Sequence[Side], epsilon: float = EPSILON
) -> Annotators | None:
    """Compare the annotators of a subject; ``None`` where the labels of single ones are not known.

    Rows are those that all judges judged, in their first repeat, since an annotator labelled each item once.
    """
    subject, metric = comparator.subject, comparator.subject.metric
    counted = []
    for side in sides:
        rows = comparator.counted(side.rows)
        counted.append((side, rows.take(rows.repeat == rows.repeat.min()) if len(rows) else rows))
    people, rows = [], counted[0][1]
    for place, others in _left_out(comparator, rows):
        everybody = _with_all(comparator, rows, rows.by_annotator[:, place])
        people.append(Rater(f"annotator {place + 1}", len(others), others.statistic(metric), everybody))
    if not people:
        return None
    means = _mean([rater.others for rater in people]), _mean([rater.everybody for rater in people])
    ceiling = Rater(CEILING, max(rater.n for rater in people), *means)
    judges = []
    for side, rows in counted:
        samples = [others for _, others in _left_out(comparator, rows, rows.judged)]
        mean = _mean([others.statistic(metric) for others in samples])
        everybody = _with_all(comparator, rows, rows.judged)
        judge = Rater(side.label, max(map(len, samples), default=0), mean, everybody)
        if side.distances:
            closeness: Closeness = "accuracy" if rows.winners else "rmse"
            test = alternative_annotator_test(rows.judged, rows.by_annotator, closeness, epsilon)
            judge = replace(judge, closer=test.advantage, beats=test.winning_rate, replaces=test.passed)
        judges.append(judge)
    return Annotators(subject, metric, (*people, ceiling, *judges), epsilon)


def _left_out(
    comparator: PairwiseComparator, rows: Verdicts, judged: Floats | None = None
) -> Iterator[tuple[int, Sample]]:
    """Yield for each annotator the sample of the others' labels, beside the own ones or a judge's verdicts."""
    labels, subject = rows.by_annotator, comparator.subject
    for place in range(labels.shape[1]):
        own, others = labels[:, place], np.delete(labels, place, axis=1)
        here = np.flatnonzero(~np.isnan(own) & ~np.isnan(others).all(axis=1))
        if not len(here):
            continue
        own, others = own[here] if judged is None else judged[here], others[here]
        human = np.nanmean(others, axis=1) if subject.kind == "score" else _votes(others, subject)
        yield place, sample(subject, rows.take(here), comparator.resampling, own, human)


def _votes(others: Floats, subject: Subject) -> Floats:
    """Count what several annotators said of each row: their majority (a tie if there is none), or each vote."""
    votes = count_votes(others)
    if subject.rule.votes == "each":
        return votes
    most = np.where(votes.max(axis=1) * 2 > votes.sum(axis=1), votes.argmax(axis=1), TIE_CODE)
    return count_votes(most[:, None])


def _with_all(comparator: PairwiseComparator, rows: Verdicts, judged: Floats) -> Statistic:
    """Measure an annotator, or a judge, against the labels that all annotators made together."""
    subject, here = comparator.subject, np.flatnonzero(~np.isnan(judged))
    return sample(subject, rows.take(here), comparator.resampling, judged[here]).statistic(subject.metric)


def _mean(figures: Sequence[Statistic]) -> Statistic:
    """Average figures of overlapping rows, which have no simple interval."""
    values = [figure.value for figure in figures if figure.value is not None]
    return Statistic(mean_or_none(np.asarray(values)))


class Alphas(NamedTuple):
    """Holds Krippendorff's alpha: scores by amount, verdicts of comparisons as classes.

    ``None`` stands for what does not exist: one agent, one repeat, no labels on the judge's scale, or no single
    annotations, in whose place humans' mean is the one human rater.

    Attributes:
        agents: between referees, or jurors, by their last opinions.
        repeats: of a judge with itself, asked again.
        people: between annotators.
        with_judge: the same with the judge as one more of them, on the same rows. A judge that fits in leaves alpha as
            it is or raises it; one that does not lowers it.
    """

    agents: Annotated[Statistic | None, Column("between agents")] = None
    repeats: Annotated[Statistic | None, Column("between repeats")] = None
    people: Annotated[Statistic | None, Column("between annotators")] = None
    with_judge: Annotated[Statistic | None, Column("with the judge")] = None
    """the judge as one more annotator"""


def alphas_of(data: JudgeAspectData, resampling: Resampling) -> Alphas:
    """Compute all that a judge's verdicts on an aspect allow."""
    rows = data.rows
    level: Level = "interval" if data.subject.kind == "score" else "nominal"

    def alpha(ratings: Iterable[Sequence[Hashable]], clusters: Ints) -> Statistic:
        return krippendorff_alpha(ratings, level, clusters.tolist(), resampling).alpha

    several = rows.take(rows.agent_count > 1)
    agents = alpha(several.opinions(), several.clusters) if len(several) else None
    repeats = people = with_judge = None
    if len(np.unique(rows.repeat)) > 1:
        # Items are what is rated, and their repeats the raters; rows come sorted by item.
        starts = np.flatnonzero(np.diff(rows.item, prepend=-1))
        ratings = [values.tolist() for values in np.split(rows.judged, starts[1:])]
        repeats = alpha(ratings, rows.clusters[starts])
    # Scores on another scale than the humans' differ from them by amount, however well they agree.
    if len(labelled := data.labelled) and data.distances:
        # Each repeat of an item counts by itself.
        ratings = np.column_stack([labelled.all_labels, labelled.judged]).tolist()
        with_judge, annotations = alpha(ratings, labelled.clusters), labelled.by_annotator
        if ((~np.isnan(annotations)).sum(axis=1) > 1).any():
            people = alpha(annotations.tolist(), labelled.clusters)
    return Alphas(agents, repeats, people, with_judge)
