"""Rank the judges of one dataset on the rows that all of them judged; tell whose lead holds and who says the same.

Tables and charts are made of this, and the sentences of ``headline`` and ``remarks``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ..analysis import Study
from ..analysis.judges import Judge, Subject
from ..analysis.leaderboard import Average, LeaderboardEntry
from ..results.agreement import Agreement, ScoreAgreement
from ..statistics.alignment import grouped
from ..statistics.metrics import METRICS
from ..statistics.resampling import FEWEST_CLUSTERS, Statistic, is_few
from ..statistics.significance import LEVEL
from ..tables.grid import Column, written
from .labels import HUMANS, listed

MANY = 5
"""So many judges a sentence names; it counts the others."""


def ranked_datasets(study: Study) -> list[RankedDataset]:
    """Return the datasets of a study, each with its subjects (aspects, or the preference) and its judges."""
    datasets = grouped(((subject.data, subject.digest), subject) for subject in study.subjects)
    ranked = []
    for subjects in datasets.values():
        # Where no labels differ, it says so of all subjects.
        telling = [subject for subject in subjects if subject.labels_differ] or subjects
        others = tuple(subject for subject in subjects if subject not in telling)
        ranked.append(RankedDataset(study, tuple(telling), others))
    return ranked


@dataclass(frozen=True)
class RankedDataset:
    """Ranks the judges of one dataset.

    Attributes:
        study: which it is of.
        subjects: its aspects, or its preferences.
        untold: its other aspects, whose labels are all the same, or none.
    """

    study: Study
    subjects: tuple[Subject, ...]
    untold: tuple[Subject, ...] = ()

    @property
    def name(self) -> str:
        """The name of the dataset."""
        return self.subjects[0].data

    @property
    def measure(self) -> str:
        """The metric that leads on it."""
        return self.subjects[0].metric

    @property
    def whom(self) -> str:
        """Who made the labels, in a sentence."""
        return HUMANS if self.subjects[0].labels == "people" else "the synthetic labels"

    @property
    def compares(self) -> bool:
        """Whether answers are compared."""
        return self.subjects[0].kind == "compare"

    @property
    def base(self) -> str | None:
        """The label of the judge that the others are compared with."""
        return self.study.bases.get(self.subjects[0].label)

    @cached_property
    def judges(self) -> list[Judge]:
        """All judges of the dataset."""
        digest = self.subjects[0].digest
        return [judge for judge in self.study.judges if (judge.data, judge.digest) == (self.name, digest)]

    @cached_property
    def columns(self) -> Mapping[str, Mapping[str, LeaderboardEntry | Average]]:
        """The figures of each judge by its label, in columns: the average first if there are several aspects.

        Only a judge that judged all aspects has an average.
        """
        leaderboard, labels = self.study.leaderboard, {subject.label for subject in self.subjects}
        columns: dict[str, Mapping[str, LeaderboardEntry | Average]] = {}
        if len(self.subjects) > 1:
            of_all = (average for average in leaderboard.averages if {*average.subjects} == labels)
            columns["average"] = {average.judge: average for average in of_all}
        for subject in self.subjects:
            entries = leaderboard.on(subject.label)
            columns[subject.aspect or subject.label] = {entry.judge: entry for entry in entries}
        return columns

    def entries(self, judge: Judge) -> list[LeaderboardEntry]:
        """Return the judge's entries on the subjects that it judged."""
        of_judge = (column.get(judge.label) for column in self.columns.values())
        return [entry for entry in of_judge if isinstance(entry, LeaderboardEntry)]

    def agreements(self, *judges: Judge) -> list[Agreement]:
        """Return the agreement of judges with the labels on each subject where there is one."""
        return [entry.agreement for judge in judges for entry in self.entries(judge) if entry.agreement]

    def figure(self, judge: Judge) -> Statistic:
        """Return what the judge is ranked by, without a value where there is none: the first column's."""
        entry = next(iter(self.columns.values())).get(judge.label)
        return (entry and entry.measures.get(self.measure)) or Statistic(None)

    @cached_property
    def best_first(self) -> list[Judge]:
        """The judges in the order of the leaderboard.

        Of judges with equal agreement the one with fewer calls comes first; judges without a value come last.
        """

        def rank(judge: Judge) -> tuple[bool, float, float]:
            value = self.figure(judge).value
            # Rounded, so that judges with equal agreement are not ordered by noise in the last digits.
            return value is None, -round(value or 0.0, 9), judge.usage.calls_each or 0.0

        return sorted(self.judges, key=rank)

    def constant(self, judge: Judge) -> bool:
        """Tell whether the judge says the same of every item, of every aspect."""
        entries = self.entries(judge)
        return bool(entries) and all(entry.always is not None for entry in entries)

    @property
    def labels_differ(self) -> bool:
        """Whether some aspect has labels that are not all the same."""
        return any(_label_range(agreement) != 0 for agreement in self.agreements(*self.judges) if agreement.n)

    @property
    def unmeasured(self) -> list[str]:
        """Sentences on the aspects on which no judge has a figure, which say why."""
        reasons, missing = [], f"has no {METRICS[self.measure].title}"
        for subject in (*self.subjects, *self.untold):
            entries = self.study.leaderboard.on(subject.label)
            figures = (entry.measures.get(self.measure) for entry in entries)
            if any(figure is not None and figure.value is not None for figure in figures):
                continue
            agreements = (entry.agreement for entry in entries if entry.agreement)
            most = max(agreements, key=lambda agreement: agreement.n, default=None)
            if most is None or not most.n:
                left_out = listed(most.left_out if most else {})
                why = f"no row has a verdict and a label{left_out and f' ({left_out})'}"
            elif most.n == 1:
                why = "there is only one row"
            elif _label_range(most) == 0:
                why = f"all {most.n:,} labels are the same"
            elif METRICS[self.measure].within and any(entry.always is None for entry in entries):
                why = "no group has both labels and scores that differ"
            else:
                why = "each judge gives the same verdict on every row"
            reasons.append(f"{subject.label} {missing}, since {why}")
        return reasons

    def rows(self, judge: Judge) -> int:
        """Return the number of rows, or votes, that the judge's figures are of, on the aspect with the fewest."""
        return min((agreement.n for agreement in self.agreements(judge)), default=0)

    @cached_property
    def ranked(self) -> list[Judge]:
        """The judges that are compared, the best first: those with a figure, on as many rows as the others.

        Whoever always says the same agrees with nobody, however many labels are met.
        """
        varied = (judge for judge in self.best_first if not self.constant(judge))
        known = [judge for judge in varied if self.figure(judge).value is not None]
        most = max(map(self.rows, known), default=0)
        return [judge for judge in known if not self.rows(judge) < FEWEST_CLUSTERS <= most]

    def clusters(self, judge: Judge) -> int | None:
        """Return the number of clusters that the judge's figure is of, on the aspect with the fewest."""
        metric, counts = METRICS[self.measure], []
        for agreement in self.agreements(judge):
            within = None
            if metric.within and isinstance(agreement, ScoreAgreement):
                within = agreement.per_group.get(metric.coefficient)
            counts.append(agreement.units if within is None else within.groups)
        return min(counts, default=None)

    @cached_property
    def cluster_name(self) -> str:
        """What clusters are called: groups, or items where there are no groups."""
        return "groups" if any(agreement.groups for agreement in self.agreements(*self.judges)) else "items"

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
        figure = next((entry.measures.get(name) for entry in self.entries(judge)), None)
        return figure if figure and figure.value is not None else None

    def same_as(self, judge: Judge) -> list[Judge]:
        """Return the ranked judges that say the same as this one of every row of every aspect."""
        pairs = (pair for pair in self.study.comparison.pairwise if pair.identical)
        identical = {(pair.subject, frozenset((pair.first, pair.second))) for pair in pairs}

        def is_same(other: Judge) -> bool:
            both = frozenset((judge.label, other.label))
            return other is not judge and all((subject.label, both) in identical for subject in self.subjects)

        return [*filter(is_same, self.ranked)]

    def lead(self, ahead: Judge, over: Judge, metric: str | None = None) -> LeadOverRunnerUp | None:
        """Return the lead of one judge over another by a metric, by default the leading one."""
        subject, comparison = self.subjects[0], self.study.comparison
        # The comparison on the only subject, or that of the averages over all.
        compared_on = subject.label if len(self.subjects) == 1 else subject.digest
        # A pair is compared in one order only, which may be the other one.
        for first, second in ((ahead, over), (over, ahead)):
            pair = comparison.of_pair(compared_on, first.label, second.label)
            if pair is not None and (apart := pair.differences.get(metric or self.measure)) is not None:
                difference = apart.difference if first is ahead else apart.difference.times(-1)
                return LeadOverRunnerUp(difference, apart.adjusted, apart.needed, is_few(pair.units))
        return None


def _label_range(agreement: Agreement) -> float | None:
    """Return how far apart the least and the greatest label are; ``None`` where they are no numbers."""
    human = agreement.human if isinstance(agreement, ScoreAgreement) else None
    return None if human is None else human.greatest - human.least


class LeadOverRunnerUp(NamedTuple):
    """Holds the difference of the first judge's agreement to another's on the same rows.

    Attributes:
        difference: the difference with its interval.
        p: the p-value, adjusted by Holm's method; ``None`` if there is none.
        needed: how many clusters would tell such a difference from chance, about; ``None`` where that is not known.
        few: whether there are too few of them for a p-value.
    """

    difference: Statistic
    p: float | None
    needed: int | None = None
    few: bool = False

    @property
    def holds(self) -> bool:
        """Tell whether the lead is significant."""
        return not self.few and (self.difference.value or 0.0) > 0 and self.p is not None and self.p < LEVEL


def named(judges: Sequence[Judge]) -> str:
    """Join the labels of some judges; of many, count the others."""
    labels = [judge.label for judge in judges]
    if len(labels) > MANY:
        labels = [*labels[:MANY], f"{len(labels) - MANY} more"]
    return " and ".join(filter(None, (", ".join(labels[:-1]), labels[-1])))


def value(figure: Statistic) -> str:
    return written(figure.value, Column("")).text


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]
