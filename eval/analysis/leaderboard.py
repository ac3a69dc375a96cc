"""Compute how each judge does on each subject, and on average over a dataset's subjects.

The results first; then ``LeaderboardBuilder``, which collects them subject by subject; then the figures of one entry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ...state.errors import UsageError
from ..results.agreement import PreferenceAgreement, ScoreAgreement, Spread, agreement, spread_of
from ..results.evaluation import UsageTotals
from ..statistics.alignment import FAILED, Floats
from ..statistics.chance_corrected import Level, Reliability, krippendorff_alpha
from ..statistics.metrics import of_kind
from ..statistics.resampling import Resampling, Statistic
from ..statistics.sample import Sample, average
from ..statistics.score_distribution import Scale, ScoreDistribution, score_distributions
from ..statistics.system_ranking import Rankings, SystemAgreement, rank_by_verdicts, system_agreement
from ..statistics.tie_policy import CODES
from .comparison import PairwiseComparator
from .equal_cost import JudgeData
from .loading import JudgeAspectData, LoadedJudge
from .measures import mean_statistic, sample
from .verdict_columns import WINNERS


@dataclass(frozen=True)
class Gain:
    """Says how much a figure exceeds that of the base.

    Attributes:
        value: the figure itself.
        base: that of the base.
        absolute: value - base; ``None`` where either is missing.
        relative: absolute / base, as a share; ``None`` also where the base is not above 0, of which nothing is a share.

    >>> round(gain(0.89, 0.82).relative, 3)
    0.085
    """

    value: float | None
    base: float | None
    absolute: float | None
    relative: float | None


def gain(value: float | None, base: float | None) -> Gain:
    """Return how much a figure exceeds that of the base, absolutely and relatively."""
    if value is None or base is None:
        return Gain(value, base, None, None)
    return Gain(value, base, value - base, (value - base) / base if base > 0 else None)


@dataclass(frozen=True)
class WinnerShare:
    """Says how often one outcome of a comparison comes up.

    Attributes:
        winner: ``1``, ``2`` or ``tie``.
        judge, human: percent of verdicts, and of people's labels on the same rows; no value for people without labels.
    """

    winner: str
    judge: Statistic
    human: Statistic


@dataclass(frozen=True)
class AgreementWithPeople:
    """Compares alpha between annotators with alpha when the judge is one more rater, on the same rows.

    A judge that fits in leaves alpha as it is or raises it; one that does not lowers it. Where humans gave no single
    annotations, their mean is the one human rater and ``people`` is ``None``.
    """

    people: Reliability | None
    with_judge: Reliability


@dataclass(frozen=True)
class Alphas:
    """Holds Krippendorff's alpha: scores by amount, verdicts of comparisons as classes.

    Attributes:
        agents: between referees, or jurors, by their last opinions; ``None`` where there are not several.
        repeats: of a judge with itself, asked again; ``None`` for a single repeat.
        people: between annotators, and with the judge as one more of them; ``None`` without labels on its scale.
    """

    agents: Reliability | None = None
    repeats: Reliability | None = None
    people: AgreementWithPeople | None = None


@dataclass(frozen=True)
class LeaderboardEntry:
    """Holds all figures of one judge on one subject.

    Measures are named ``pearson``, ``spearman``, ``kendall`` (over all rows), ``group_pearson``, ``group_spearman``,
    ``group_kendall`` (mean within groups), ``accuracy``, ``kappa``: see ``metrics.METRICS``.

    Attributes:
        judge, subject: their labels.
        judged, failed, missing: how many judgements have a verdict; have none; are not there.
        mean: the mean score; ``None`` for comparisons.
        rounds: the mean number of rounds.
        stop_reasons: how many ended for each reason.
        usage: the calls, tokens and cost that it took.
        agreement: with people, in full (rows that counted, groups skipped, rows left out and why).
        measures: the same figures by the measure's name, each with its interval.
        gains: over the base, by measure; empty for the base itself, and where the base did not judge the subject.
        repeats: by measure, where there are several.
        alphas: Krippendorff's alpha: of agents who judge beside each other, of repeats, and with people.
        systems: the mean score of each system beside people's; ``None`` for comparisons, or of unknown systems.
        ranking: of the systems that were compared, beside people's (with intervals of fewer resamples, as its
            ``resampling`` says); ``None`` for scores, of unknown systems, or where the package that ranks them is not
            there, as ``Leaderboard.notes`` says.
        distribution: how often each point of the scale was given, beside people; ``None`` for comparisons and metrics.
        winners: of comparisons, how often each answer won, beside people.
    """

    judge: str
    subject: str
    judged: int
    failed: int
    missing: int
    mean: float | None
    rounds: float | None
    stop_reasons: Mapping[str, int]
    usage: UsageTotals
    agreement: ScoreAgreement | PreferenceAgreement | None
    measures: Mapping[str, Statistic] = field(default_factory=dict)
    gains: Mapping[str, Gain] = field(default_factory=dict)
    repeats: Mapping[str, Spread] = field(default_factory=dict)
    alphas: Alphas | None = None
    systems: SystemAgreement | None = None
    ranking: Rankings | None = None
    distribution: ScoreDistribution | None = None
    winners: tuple[WinnerShare, ...] = ()


@dataclass(frozen=True)
class Average:
    """Holds one judge's mean over the subjects of one dataset (the papers' ``average`` column).

    Attributes:
        judge, data: their labels.
        subjects: over which the mean is.
        measures: by name; no value where a subject has none, and no interval where subjects have different units.
        gains: of these means over the base's; empty for the base itself, and where it judged other subjects.
    """

    judge: str
    data: str
    subjects: tuple[str, ...]
    measures: Mapping[str, Statistic]
    gains: Mapping[str, Gain]


@dataclass(frozen=True)
class Leaderboard:
    """Lists all judges on all their subjects.

    Attributes:
        standings: in the order of the judges, then of the subjects.
        averages: of judges with several score subjects in one dataset.
        notes: what a reader should know.
    """

    standings: tuple[LeaderboardEntry, ...]
    averages: tuple[Average, ...]
    notes: tuple[str, ...] = ()

    def standing(self, judge: str, subject: str) -> LeaderboardEntry | None:
        """Return the entry of one judge on one subject, if it judged it."""
        return next((s for s in self.standings if (s.judge, s.subject) == (judge, subject)), None)


_STEPS = 10
"""The parts into which a scale is divided whose ends are no whole number apart."""

_RANKING_RESAMPLES = 200
"""Resamples of a ranking, at most: each is a fit of its own, by a package that takes a millisecond for it."""


class LeaderboardBuilder:
    """Collects entries subject by subject.

    Args:
        resampling: how intervals are made.
        bases: by dataset's digest, the label of the judge that gains refer to.
    """

    def __init__(self, resampling: Resampling, bases: Mapping[str, str]) -> None:
        self._resampling, self._bases = resampling, bases
        self._fewer = replace(resampling, resamples=min(resampling.resamples, _RANKING_RESAMPLES))
        self._standings: dict[tuple[str, str], LeaderboardEntry] = {}
        self._samples: dict[tuple[str, str], Sample] = {}
        self._notes: dict[str, None] = {}

    def add(self, comparator: PairwiseComparator, judged_by: Sequence[JudgeData]) -> None:
        """Add the entries of all judges on one subject."""
        subject = comparator.subject
        for data in judged_by:
            key = data.judge.label, subject.label
            self._samples[key] = comparator.labelled_sample(data.side)
            self._standings[key] = self._entry(data.judge, data.cell, self._samples[key])
        self._add_gains(
            [data.judge.label for data in judged_by], subject.label, self._bases.get(subject.digest)
        )

    def leaderboard(self, judges: Sequence[LoadedJudge]) -> Leaderboard:
        """Return the leaderboard of all subjects so far, judge by judge."""
        standings = [
            standing
            for judge in judges
            for standing in self._standings.values()
            if standing.judge == judge.label
        ]
        averages = {judge.label: mean for judge in judges if (mean := self._average(judge))}
        return Leaderboard(tuple(standings), tuple(self._with_gains(averages, judges)), tuple(self._notes))

    def _entry(self, judge: LoadedJudge, cell: JudgeAspectData, labelled: Sample) -> LeaderboardEntry:
        done = len(cell.rows) + cell.failed
        # A manifest may not say how many are wanted: then nothing counts as missing.
        wanted = judge.wanted_each() or done
        spending = cell.spending.spending()
        measures = labelled.statistics(of_kind(cell.subject.kind))
        return LeaderboardEntry(
            judge=judge.label,
            subject=cell.subject.label,
            judged=len(cell.rows),
            failed=cell.failed,
            missing=max(0, wanted - done),
            mean=cell.score.value,
            rounds=cell.rounds.value,
            stop_reasons=spending.stop_reasons,
            usage=cell.usage,
            agreement=_agreement(cell, measures, self._resampling),
            measures=measures,
            repeats=_over_repeats(cell, self._resampling),
            alphas=self._alphas(cell),
            systems=self._systems(cell),
            ranking=self._ranking(cell),
            distribution=_distribution(cell, self._resampling),
            winners=_winners(cell, self._resampling),
        )

    def _add_gains(self, labels: Sequence[str], subject: str, base: str | None) -> None:
        base_entry = self._standings.get((base or "", subject))
        if base_entry is None:
            return
        for label in labels:
            if label != base:
                entry = self._standings[label, subject]
                gains = _gains(entry.measures, base_entry.measures)
                self._standings[label, subject] = replace(entry, gains=gains)

    def _average(self, judge: LoadedJudge) -> Average | None:
        subjects = [cell.subject.label for cell in judge.cells.values() if cell.subject.kind == "score"]
        if len(subjects) < 2:
            return None
        samples = [self._samples[judge.label, subject] for subject in subjects]
        measures = {name: average(samples, name) for name in of_kind("score")}
        return Average(judge.label, str(judge.data.get("name", "unknown")), tuple(subjects), measures, {})

    def _with_gains(
        self, averages: Mapping[str, Average], judges: Sequence[LoadedJudge]
    ) -> Iterator[Average]:
        for judge in judges:
            own = averages.get(judge.label)
            base = averages.get(self._bases.get(judge.digest, ""))
            if own is None:
                continue
            comparable = base is not None and set(base.subjects) == set(own.subjects)
            if base is not None and comparable and base is not own:
                yield replace(own, gains=_gains(own.measures, base.measures))
            else:
                yield own

    def _alphas(self, cell: JudgeAspectData) -> Alphas:
        # Scores on another scale than the humans' differ from them by amount, however well they agree.
        same_scale = cell.distances or cell.subject.kind == "compare"
        return Alphas(
            agents=_between_agents(cell, self._resampling),
            repeats=_between_repeats(cell, self._resampling),
            people=_with_humans(cell, self._resampling) if len(cell.labelled) and same_scale else None,
        )

    def _systems(self, cell: JudgeAspectData) -> SystemAgreement | None:
        if cell.subject.kind != "score" or not cell.rows.most_systems:
            return None
        return next(iter(system_agreement(cell.fields(), self._resampling).values()), None)

    def _ranking(self, cell: JudgeAspectData) -> Rankings | None:
        if cell.subject.kind != "compare" or cell.rows.most_systems < 2:
            return None
        try:
            return rank_by_verdicts(cell.fields(), resampling=self._fewer)
        except UsageError as error:
            self._notes.setdefault(f"systems are not ranked: {error}")
            return None


def _agreement(
    cell: JudgeAspectData, measures: Mapping[str, Statistic], resampling: Resampling
) -> ScoreAgreement | PreferenceAgreement | None:
    """Return what ``agreement`` says of the rows, with the intervals that the measures already have: they are equal."""
    rule, without = cell.subject.rule, replace(resampling, resamples=0)
    of_aspect = agreement(cell.fields(), without, ties=rule.ties, votes=rule.votes)
    # The rows are of one subject, hence of one aspect.
    result = next(iter(of_aspect.values()), None)
    if isinstance(result, ScoreAgreement):
        return replace(
            result,
            over_rows={name: measures[name] for name in result.over_rows},
            per_group={
                name: replace(mean, low=measures[f"group_{name}"].low, high=measures[f"group_{name}"].high)
                for name, mean in result.per_group.items()
            },
            resampling=resampling,
        )
    if isinstance(result, PreferenceAgreement):
        return replace(result, accuracy=measures["accuracy"], kappa=measures["kappa"], resampling=resampling)
    return result


def _distribution(cell: JudgeAspectData, resampling: Resampling) -> ScoreDistribution | None:
    subject = cell.subject
    if (
        subject.kind != "score"
        or cell.is_metric
        or not len(cell.rows)
        or subject.low is None
        or subject.high is None
    ):
        return None
    scale = Scale(subject.low, subject.high)
    if not (subject.high - subject.low).is_integer():
        scale = Scale(subject.low, subject.high, (subject.high - subject.low) / _STEPS)
    distributions = score_distributions(cell.fields(), {subject.aspect or "score": scale}, resampling)
    return next(iter(distributions.values()), None)


def _winners(cell: JudgeAspectData, resampling: Resampling) -> tuple[WinnerShare, ...]:
    """Count winners over the verdicts that have a label, where any has; else over all."""
    if cell.subject.kind != "compare" or not len(cell.rows):
        return ()
    # Judge and people are counted over the same rows, or their shares could not be compared.
    labelled = len(cell.labelled) > 0
    rows = cell.labelled if labelled else cell.rows
    units = rows.clusters

    def percent(winners: Floats, winner: str) -> Statistic:
        share = mean_statistic(winners == CODES[winner], units, resampling)
        return Statistic(
            *(None if end is None else 100 * end for end in (share.value, share.low, share.high))
        )

    return tuple(
        WinnerShare(
            name, percent(rows.judged, name), percent(rows.human, name) if labelled else Statistic(None)
        )
        for name in WINNERS
    )


def _gains(own: Mapping[str, Statistic], base: Mapping[str, Statistic]) -> dict[str, Gain]:
    return {name: gain(own[name].value, base[name].value) for name in own if name in base}


def _over_repeats(cell: JudgeAspectData, resampling: Resampling) -> dict[str, Spread]:
    """Compute each measure in each repeat by itself."""
    rows = cell.labelled
    numbers = np.unique(rows.repeat)
    if len(numbers) < 2:
        return {}
    kind = cell.subject.kind
    samples = [
        sample(kind, rows.take(rows.repeat == number), resampling, rule=cell.subject.rule)
        for number in numbers
    ]
    return {name: spread_of([of_repeat.value(name) for of_repeat in samples]) for name in of_kind(kind)}


def _between_agents(cell: JudgeAspectData, resampling: Resampling) -> Reliability | None:
    """Measure the agreement of agents that judge in the same verdict, by their last opinions."""
    several = cell.rows.take(cell.rows.agent_count > 1)
    if not len(several):
        return None
    return krippendorff_alpha(several.opinions(), _level(cell), several.cluster_names.tolist(), resampling)


def _between_repeats(cell: JudgeAspectData, resampling: Resampling) -> Reliability | None:
    """Measure how far a judge agrees with itself when it judges the same items again."""
    rows = cell.rows
    if len(np.unique(rows.repeat)) < 2:
        return None
    # Items are what is rated, and their repeats the raters; rows come sorted by item.
    starts = np.flatnonzero(np.diff(rows.item, prepend=-1))
    ratings = [values.tolist() for values in np.split(rows.judged, starts[1:])]
    alpha = krippendorff_alpha(ratings, _level(cell), rows.cluster_names[starts].tolist(), resampling)
    return _without_failures(alpha, cell)


def _with_humans(cell: JudgeAspectData, resampling: Resampling) -> AgreementWithPeople:
    """Measure how far a judge agrees with humans, as one more rater; each repeat of an item counts by itself."""
    rows, known = cell.labelled, cell.labelled.names.annotations.names()
    annotations = [list(known[code] or ()) for code in rows.annotations.tolist()]
    judged, human = rows.as_verdicts(rows.judged), rows.as_verdicts(rows.human)
    everybody = [
        [*(given or [label]), verdict]
        for given, label, verdict in zip(annotations, human, judged, strict=True)
    ]
    clusters, level = rows.cluster_names.tolist(), _level(cell)
    several = any(len(given) > 1 for given in annotations)
    people = krippendorff_alpha(annotations, level, clusters, resampling) if several else None
    with_judge = krippendorff_alpha(everybody, level, clusters, resampling)
    return AgreementWithPeople(
        people and _without_failures(people, cell), _without_failures(with_judge, cell)
    )


def _level(cell: JudgeAspectData) -> Level:
    return "interval" if cell.subject.kind == "score" else "nominal"


def _without_failures(alpha: Reliability, cell: JudgeAspectData) -> Reliability:
    """Add the failed judgements to the reasons for which rows do not count."""
    return replace(alpha, left_out={**alpha.left_out, FAILED: cell.failed}) if cell.failed else alpha
