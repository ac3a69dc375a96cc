"""Compute how each judge does on each subject, and on average over a dataset's subjects.

The results first; then ``LeaderboardBuilder``, which collects them subject by subject; then the figures of one entry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

import numpy as np

from ...state.errors import UsageError
from ..results.agreement import PreferenceAgreement, ScoreAgreement, Spread, agreement, spread_of
from ..results.evaluation import UsageTotals
from ..statistics.alignment import Floats
from ..statistics.metrics import of_kind
from ..statistics.resampling import Resampling, Statistic
from ..statistics.sample import Sample, average
from ..statistics.score_distribution import Scale, ScoreDistribution, score_distributions
from ..statistics.system_ranking import Rankings, SystemAgreement, rank_by_verdicts, system_agreement
from ..statistics.tie_policy import CODES
from ..tables import Column
from .alphas import Alphas, alphas_of
from .comparison import PairwiseComparator
from .equal_cost import JudgeData
from .loading import JudgeAspectData, LoadedJudge
from .measures import mean_statistic, sample
from .result_rows import Judged
from .verdict_columns import WINNERS, Verdicts


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
    absolute: Annotated[float | None, Column("gain", best="high", about="the judge's value minus the base's")]
    relative: Annotated[
        float | None,
        Column("gain %", form="percent", digits=0, about="the same, as a share of the base's value"),
    ]


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
        always: the score, or the winner, that it gives every item; ``None`` where it does not say the same of all.
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
    always: Judged | None = None


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


NOT_BY_ALL = "not judged by all"
"""The reason for which a judge's row does not count where another judge has no verdict on the item."""

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
            rows = comparator.counted(data.side.rows)
            self._standings[key] = self._entry(data, rows, self._samples[key])
        self._add_gains(
            [data.judge.label for data in judged_by], subject.label, self._bases.get(subject.digest)
        )

    def leaderboard(self, judges: Sequence[LoadedJudge]) -> Leaderboard:
        """Return the leaderboard of all subjects so far, judge by judge."""
        standings = [
            self._standings[judge.label, cell.subject.label]
            for judge in judges
            for cell in judge.cells.values()
        ]
        # A judge of two datasets has a mean over the aspects of each.
        averages = {(judge.label, judge.digest): mean for judge in judges if (mean := self._average(judge))}
        return Leaderboard(tuple(standings), tuple(self._with_gains(averages, judges)), tuple(self._notes))

    def _entry(self, data: JudgeData, rows: Verdicts, labelled: Sample) -> LeaderboardEntry:
        judge, cell = data.judge, data.cell
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
            agreement=_agreement(cell, rows, measures, self._resampling),
            measures=measures,
            repeats=_over_repeats(cell, self._resampling),
            alphas=alphas_of(cell, self._resampling),
            systems=self._systems(cell),
            ranking=self._ranking(cell),
            distribution=_distribution(cell, self._resampling),
            winners=_winners(cell, self._resampling),
            always=rows.as_verdicts(rows.judged[:1])[0]
            if len(rows) > 1 and not np.ptp(rows.judged)
            else None,
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
        self, averages: Mapping[tuple[str, str], Average], judges: Sequence[LoadedJudge]
    ) -> Iterator[Average]:
        for judge in judges:
            own = averages.get((judge.label, judge.digest))
            base = averages.get((self._bases.get(judge.digest, ""), judge.digest))
            if own is None:
                continue
            comparable = base is not None and set(base.subjects) == set(own.subjects)
            if base is not None and comparable and base is not own:
                yield replace(own, gains=_gains(own.measures, base.measures))
            else:
                yield own

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
    cell: JudgeAspectData, rows: Verdicts, measures: Mapping[str, Statistic], resampling: Resampling
) -> ScoreAgreement | PreferenceAgreement | None:
    """Return what ``agreement`` says of the rows, with the intervals that the measures already have: they are equal."""
    rule, without = cell.subject.rule, replace(resampling, resamples=0)
    of_aspect = agreement(cell.fields(rows), without, ties=rule.ties, votes=rule.votes)
    # The rows are of one subject, hence of one aspect.
    result = next(iter(of_aspect.values()), None)
    if result is not None and (others := len(cell.labelled) - len(rows)):
        result = replace(result, left_out={**result.left_out, NOT_BY_ALL: others})
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
