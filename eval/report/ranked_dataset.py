"""Rank the judges of one dataset on the rows that all of them judged; tell whose lead holds and who says the same.

Sentences are made of this in ``headline`` and ``remarks``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ..analysis import Difference, EvaluationTarget, Judge, LeaderboardEntry, Study
from ..results.agreement import Agreement, ScoreAgreement
from ..statistics.metrics import METRICS
from ..statistics.resampling import FEWEST_UNITS, Statistic
from ..statistics.significance import LEVEL
from .labels import by_data, judges_on, listed, main_measure, measure_of
from .leaderboard_tables import best_first, overall

MANY = 5
"""So many judges a sentence names; it counts the others."""


def ranked_datasets(study: Study, metric: str | None) -> list[RankedDataset]:
    """Return the datasets of a study, each with its judges."""
    return [
        RankedDataset(study, tuple(subjects), main_measure(subjects[0], metric))
        for subjects in by_data(study).values()
    ]


@dataclass(frozen=True)
class RankedDataset:
    """Ranks the judges of one dataset.

    Attributes:
        study: which it is of.
        subjects: its aspects, or its preferences.
        measure: the metric that leads on it.
    """

    study: Study
    subjects: tuple[EvaluationTarget, ...]
    measure: str

    @property
    def name(self) -> str:
        """The name of the dataset."""
        return self.subjects[0].data

    @property
    def whom(self) -> str:
        """Who made the labels, in a sentence."""
        return "humans" if self.subjects[0].labels == "people" else "the synthetic labels"

    @property
    def compares(self) -> bool:
        """Whether answers are compared."""
        return self.subjects[0].kind == "compare"

    @cached_property
    def judges(self) -> list[Judge]:
        """All judges of the dataset."""
        return judges_on(self.study, (self.subjects[0].data, self.subjects[0].digest))

    def entries(self, judge: Judge) -> list[LeaderboardEntry]:
        """Return the judge's entries on the subjects that it judged."""
        entries = (self.study.leaderboard.standing(judge.label, subject.label) for subject in self.subjects)
        return [entry for entry in entries if entry is not None]

    def figure(self, judge: Judge) -> Statistic:
        """Return what the judge is ranked by, without a value where there is none."""
        return overall(self.study, judge, self.subjects, self.measure) or Statistic(None)

    def constant(self, judge: Judge) -> bool:
        """Tell whether the judge says the same of every item, of every aspect."""
        entries = self.entries(judge)
        return bool(entries) and all(entry.always is not None for entry in entries)

    @property
    def labels_differ(self) -> bool:
        """Whether some aspect has labels that are not all the same."""
        agreements = (entry.agreement for judge in self.judges for entry in self.entries(judge))
        return any(_label_range(agreement) != 0 for agreement in agreements if agreement and agreement.n)

    @property
    def unmeasured(self) -> list[str]:
        """Sentences on the aspects on which no judge has a figure, which say why."""
        reasons, missing = [], f"has no {METRICS[self.measure].title}"
        for subject in self.subjects:
            entries = [
                entry
                for judge in self.judges
                for entry in self.entries(judge)
                if entry.subject == subject.label
            ]
            if any(
                (figure := measure_of(entry, self.measure)) and figure.value is not None for entry in entries
            ):
                continue
            most = max(
                (entry.agreement for entry in entries if entry.agreement), key=lambda one: one.n, default=None
            )
            if most is None or not most.n:
                left_out = listed(most.left_out if most else {})
                why = f"no row has a verdict and a label{left_out and f' ({left_out})'}"
            elif most.n == 1:
                why = "there is one row only"
            elif _label_range(most) == 0:
                why = f"all {most.n:,} labels are the same"
            elif METRICS[self.measure].within and any(entry.always is None for entry in entries):
                why = "in no group do both labels and scores differ"
            else:
                why = "each judge says the same of every row"
            reasons.append(f"{subject.label} {missing}, since {why}")
        return reasons

    def rows(self, judge: Judge) -> int:
        """Return the number of rows, or votes, that the judge's figures are of, on the aspect with the fewest."""
        return min((entry.agreement.n for entry in self.entries(judge) if entry.agreement), default=0)

    @cached_property
    def ranked(self) -> list[Judge]:
        """The judges that are compared, the best first: those with a figure, on as many rows as the others.

        Whoever always says the same agrees with nobody, however many labels are met.
        """
        known = [
            judge
            for judge in best_first(self.study, self.subjects, self.measure)
            if self.figure(judge).value is not None and not self.constant(judge)
        ]
        most = max(map(self.rows, known), default=0)
        return [judge for judge in known if not self.rows(judge) < FEWEST_UNITS <= most]

    def units(self, judge: Judge) -> int | None:
        """Return the number of clusters that the judge's figure is of, on the aspect with the fewest."""
        metric, counts = METRICS[self.measure], []
        for entry in self.entries(judge):
            of_rows = entry.agreement
            if of_rows is None:
                continue
            within = (
                of_rows.per_group.get(metric.coefficient) if isinstance(of_rows, ScoreAgreement) else None
            )
            counts.append(within.groups if metric.within and within is not None else of_rows.units)
        return min(counts, default=None)

    @cached_property
    def unit_name(self) -> str:
        """What clusters are called: groups, or items where there are no groups."""
        agreements = (entry.agreement for judge in self.judges for entry in self.entries(judge))
        return "groups" if any(each and each.groups for each in agreements) else "items"

    def beats_chance(self, judge: Judge) -> bool:
        """Tell whether the interval of the judge's correlation, or of its kappa, lies above zero."""
        figure = self.figure(judge)
        # Accuracy is above zero by chance too; kappa is zero at chance, as a correlation is.
        if self.compares:
            figure = self.companion(judge, "kappa") or Statistic(None)
        return (figure.low or 0.0) > 0

    def companion(self, judge: Judge, name: str | None) -> Statistic | None:
        """Return another metric of the judge, where there is one subject alone."""
        if name is None or len(self.subjects) > 1:
            return None
        figure = measure_of(self.study.leaderboard.standing(judge.label, self.subjects[0].label), name)
        return figure if figure and figure.value is not None else None

    def same_as(self, judge: Judge) -> list[Judge]:
        """Return the ranked judges that say the same as this one of every row of every aspect."""
        return [
            other
            for other in self.ranked
            if other is not judge and all(self._identical(subject, judge, other) for subject in self.subjects)
        ]

    def _identical(self, subject: EvaluationTarget, one: Judge, other: Judge) -> bool:
        of_pair = self.study.comparison.of_pair
        pairs = (of_pair(subject.label, *labels) for labels in _both_ways(one.label, other.label))
        return any(pair is not None and pair.identical for pair in pairs)

    def lead(self, ahead: Judge, over: Judge, metric: str | None = None) -> LeadOverRunnerUp | None:
        """Return the lead of one judge over another by a metric, by default the leading one."""
        return lead(self.study, self.subjects, ahead.label, over.label, metric or self.measure)


def _label_range(agreement: Agreement) -> float | None:
    """Return how far apart the least and the greatest label are; ``None`` where they are no numbers."""
    human = agreement.human if isinstance(agreement, ScoreAgreement) else None
    return None if human is None else human.greatest - human.least


class LeadOverRunnerUp(NamedTuple):
    """Holds the difference of the first judge's agreement to another's on the same rows.

    Attributes:
        over: the label of the other judge.
        difference: the difference with its interval.
        p: the p-value, adjusted by Holm's method; ``None`` if there is none.
        needed: how many clusters would tell such a difference from chance, about; ``None`` where that is not known.
        few: whether there are too few of them for a p-value.
    """

    over: str
    difference: Statistic
    p: float | None
    needed: int | None = None
    few: bool = False

    @property
    def holds(self) -> bool:
        """Tell whether the lead is significant."""
        return not self.few and (self.difference.value or 0.0) > 0 and self.p is not None and self.p < LEVEL


def lead(
    study: Study, subjects: Sequence[EvaluationTarget], ahead: str, over: str, metric: str | None
) -> LeadOverRunnerUp | None:
    """Return the lead of one judge over another; ``None`` if they were not compared.

    The lead is that on the only subject, or that of the averages over all subjects of a dataset.
    """
    measure = main_measure(subjects[0], metric)
    # A pair is compared in one order only, which may be the other one.
    for first, second in _both_ways(ahead, over):
        found, units = _compared(study, subjects, first, second, measure)
        if found is not None:
            apart = found.difference if first == ahead else turned(found.difference)
            return LeadOverRunnerUp(over, apart, found.adjusted, found.needed, 0 < units < FEWEST_UNITS)
    return None


def _both_ways(one: str, other: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return (one, other), (other, one)


def _compared(
    study: Study, subjects: Sequence[EvaluationTarget], first: str, second: str, measure: str
) -> tuple[Difference | None, int]:
    if len(subjects) == 1:
        pair = study.comparison.of_pair(subjects[0].label, first, second)
        return (None, 0) if pair is None else (pair.differences.get(measure), pair.units)
    average = study.comparison.average(subjects[0].digest, first, second)
    return (None, 0) if average is None else (average.differences.get(measure), average.units)


def turned(found: Statistic) -> Statistic:
    def minus(value: float | None) -> float | None:
        return None if value is None else -value

    # The negative of the high end is the new low end.
    return Statistic(minus(found.value), minus(found.high), minus(found.low))


def named(judges: Sequence[Judge]) -> str:
    """Join the labels of some judges; of many, count the others."""
    labels = [judge.label for judge in judges]
    if len(labels) > MANY:
        labels = [*labels[:MANY], f"{len(labels) - MANY} more"]
    return " and ".join(filter(None, (", ".join(labels[:-1]), labels[-1])))


def value(figure: Statistic) -> str:
    return "-" if figure.value is None else f"{figure.value:.3f}"


def shown(figure: Statistic | None) -> str:
    if figure is None or figure.value is None:
        return "-"
    if figure.low is None or figure.high is None:
        return f"{figure.value:.3f}"
    return f"{figure.value:.3f} [{figure.low:.3f}, {figure.high:.3f}]"


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]
