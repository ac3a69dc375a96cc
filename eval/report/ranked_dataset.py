"""Rank the judges of one dataset on the rows that all of them judged.

The ranking includes significant leads and identical judges. Tables, charts and the sentences of
``headline`` and ``remarks`` use it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ..analysis import Study
from ..analysis.judges import Judge, Subject
from ..analysis.leaderboard import NOT_BY_ALL, AgainstChance, Average, LeaderboardEntry
from ..results.agreement import Agreement, ScoreAgreement
from ..statistics.alignment import UNLABELLED, grouped
from ..statistics.correlation import STATISTICS
from ..statistics.metrics import METRICS
from ..statistics.resampling import FEWEST_CLUSTERS, Statistic, is_few
from ..statistics.sample import GroupedCorrelation
from ..statistics.significance import LEVEL
from ..statistics.system_ranking import MIN_SYSTEMS
from ..tables.grid import Column, written
from .labels import listed

MANY = 5
"""The maximum number of judges that a sentence names; it counts the others."""


ALL_ALIKE = "with one item or equal labels left out"
"""What is said of groups in which agreement within the group is not defined."""


def ranked_datasets(study: Study) -> list[RankedDataset]:
    """Return the datasets of a study, each with its judges and subjects.

    The subjects are aspects, or the preference.
    """
    datasets = grouped(((subject.data, subject.digest), subject) for subject in study.subjects)
    ranked = []
    for subjects in datasets.values():
        # If no labels differ, this is stated for all subjects.
        telling = [subject for subject in subjects if subject.labels_differ] or subjects
        others = tuple(subject for subject in subjects if subject not in telling)
        ranked.append(RankedDataset(study, tuple(telling), others))
    return ranked


def is_labelled(study: Study) -> bool:
    """Whether any verdict of a study has a label to compare with."""
    return any(dataset.has_labels for dataset in ranked_datasets(study))


@dataclass(frozen=True)
class RankedDataset:
    """The ranking of the judges of one dataset.

    Attributes:
        study: the study with the dataset.
        subjects: the aspects, or the preferences.
        untold: the other aspects, whose labels are all the same or missing.
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
        """The leading metric of the dataset."""
        return self.subjects[0].metric

    @property
    def whom(self) -> str:
        """The origin of the labels, addressed to the user: ``your annotators``."""
        return "the synthetic labels" if self.is_synthetic else "your annotators"

    @property
    def whose_labels(self) -> str:
        """The origin of the labels, in a sentence for a paper."""
        return "the synthetic labels" if self.is_synthetic else "the annotators"

    @property
    def is_synthetic(self) -> bool:
        """Whether the labels follow from the construction of the data."""
        return self.subjects[0].labels == "construction"

    @property
    def symbol(self) -> str:
        """The leading metric before a value in a sentence: a coefficient's letter, or the name."""
        return symbol_of(self.measure)

    def unit(self, count: int) -> str:
        """Return the figures' unit: items, comparisons, votes, or rows with repeated items."""
        if not self.compares:
            repeated = any(agreement.repeats > 1 for agreement in self.agreements(*self.judges))
            name = "row" if repeated else "item"
        else:
            name = "vote" if self.subjects[0].rule.votes == "each" else "comparison"
        return name if count == 1 else f"{name}s"

    @property
    def sample_in_words(self) -> str:
        """The number of compared items and the dataset, for a sentence."""
        rows = max((self.rows(judge) for judge in self.ranked or self.judges), default=0)
        text = f"{rows:,} {self.unit(rows)} of {self.name}"
        clusters = self.clusters(self.ranked[0]) if self.ranked else None
        about = []
        aspects = [subject.aspect for subject in self.subjects if subject.aspect]
        if len(aspects) > 1:
            about.append(f"mean of {', '.join(aspects[:-1])} and {aspects[-1]}")
        elif aspects:
            about.append(f"aspect {aspects[0]}")
        if clusters and self.cluster_name == "groups":
            left_out = self.groups_left_out(self.ranked[0])
            groups = clusters + left_out
            text += f" in {groups:,} {'group' if groups == 1 else 'groups'}"
            if left_out:
                of_them = "group" if left_out == 1 else "groups"
                about.append(f"{left_out:,} {of_them} {ALL_ALIKE}")
        return f"{text} ({'; '.join(about)})" if about else text

    @property
    def compares(self) -> bool:
        """Whether answers are compared."""
        return self.subjects[0].kind == "compare"

    @property
    def base(self) -> str | None:
        """The label of the judge with which the others are compared."""
        return self.study.bases.get(self.subjects[0].label)

    @cached_property
    def judges(self) -> list[Judge]:
        """All judges of the dataset."""
        digest = self.subjects[0].digest
        return [
            judge
            for judge in self.study.judges
            if (judge.data, judge.digest) == (self.name, digest)
        ]

    @cached_property
    def columns(self) -> Mapping[str, Mapping[str, LeaderboardEntry | Average]]:
        """The figures of each judge by its label, in columns.

        With several aspects, the average comes first.

        Only a judge that judged all aspects has an average.
        """
        leaderboard = self.study.leaderboard
        labels = {subject.label for subject in self.subjects}
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
        """Return the agreement of judges with the labels on each subject that has one."""
        return [
            entry.agreement for judge in judges for entry in self.entries(judge) if entry.agreement
        ]

    def agreements_on(self, judge: Judge, subject: Subject) -> list[Agreement]:
        """Return the agreement of a judge with the labels on a subject; empty without one."""
        entry = self.columns[subject.aspect or subject.label].get(judge.label)
        of_aspect = isinstance(entry, LeaderboardEntry) and entry.agreement
        return [of_aspect] if of_aspect else []

    def figure(self, judge: Judge) -> Statistic:
        """Return the figure in the first column, which ranks the judge; it may have no value."""
        entry = next(iter(self.columns.values())).get(judge.label)
        return (entry and entry.measures.get(self.measure)) or Statistic(None)

    @cached_property
    def best_first(self) -> list[Judge]:
        """The judges in the order of the leaderboard.

        Of judges with equal agreement, the one with fewer calls comes first. Judges without a value
        come last.
        """

        def rank(judge: Judge) -> tuple[bool, float, float]:
            value = self.figure(judge).value
            # Rounded, so that judges with equal agreement are not ordered by noise in the last
            # digits.
            return value is None, -round(value or 0.0, 9), judge.usage.calls_each or 0.0

        return sorted(self.judges, key=rank)

    def constant(self, judge: Judge) -> bool:
        """Whether the judge gives every item the same verdict, on every aspect."""
        entries = self.entries(judge)
        return bool(entries) and all(entry.always is not None for entry in entries)

    @property
    def has_labels(self) -> bool:
        """Whether any verdict has a label.

        Without any verdict, this is true unless the data has no labels.
        """
        agreements = self.agreements(*self.judges)
        unlabelled = any(agreement.left_out.get(UNLABELLED) for agreement in agreements)
        if self.subjects[0].labels != "none" and not unlabelled:
            return True
        return any(agreement.n or agreement.left_out.get(NOT_BY_ALL) for agreement in agreements)

    @property
    def labels_differ(self) -> bool:
        """Whether some aspect has different labels."""
        return any(subject.labels_differ for subject in self.subjects)

    @property
    def unmeasured(self) -> list[str]:
        """The aspects without a figure of any judge, each with the reason."""
        reasons = []
        for subject in (*self.subjects, *self.untold):
            entries = self.study.leaderboard.on(subject.label)
            figures = (entry.measures.get(self.measure) for entry in entries)
            if subject.labels_differ and any(
                figure is not None and figure.value is not None for figure in figures
            ):
                continue
            agreements = (entry.agreement for entry in entries if entry.agreement)
            most = max(agreements, key=lambda agreement: agreement.n, default=None)
            if most is None or not most.n:
                left_out = listed(most.left_out if most else {})
                why = f"no row has a verdict and a label{left_out and f' ({left_out})'}"
            elif most.n == 1:
                why = "only one row has a verdict and a label"
            elif not subject.labels_differ:
                why = f"all {most.n:,} labels are the same"
            elif METRICS[self.measure].unit == "systems":
                why = f"its rows name fewer than {MIN_SYSTEMS} systems, or all means are equal"
            elif METRICS[self.measure].within:
                why = "no group has labels that differ"
            else:
                why = "each judge gave every item the same verdict"
            reasons.append(f"{subject.label}: {why}")
        return reasons

    def rows(self, judge: Judge) -> int:
        """Return the number of rows or votes behind the judge's figures.

        The aspect with the fewest counts.
        """
        return min((agreement.n for agreement in self.agreements(judge)), default=0)

    @cached_property
    def ranked(self) -> list[Judge]:
        """The compared judges, the best first: those with a figure on as many rows as the others.

        A judge that always gives the same verdict is not ranked, however many labels it matches.
        """
        if not self.labels_differ:
            return []
        varied = (judge for judge in self.best_first if not self.constant(judge))
        known = [judge for judge in varied if self.figure(judge).value is not None]
        most = max(map(self.rows, known), default=0)
        return [judge for judge in known if not self.rows(judge) < FEWEST_CLUSTERS <= most]

    def clusters(self, judge: Judge) -> int | None:
        """Return the number of clusters behind the judge's figure.

        The aspect with the fewest counts.
        """
        within = [of_entry.groups for _, of_entry in self.within_groups(judge)]
        return min(
            within or [agreement.units for agreement in self.agreements(judge)], default=None
        )

    def groups_left_out(self, judge: Judge) -> int:
        """Return the number of groups in which the judge's figure is not defined.

        The aspect with the fewest groups that count, as in ``clusters``.
        """
        within = [of_entry for _, of_entry in self.within_groups(judge)]
        fewest = min(within, key=lambda of_entry: of_entry.groups, default=None)
        return fewest.skipped if fewest else 0

    def within_groups(self, judge: Judge) -> list[tuple[LeaderboardEntry, GroupedCorrelation]]:
        """Return the judge's figure within groups on each aspect.

        It is empty if the leading metric is another one.
        """
        metric = METRICS[self.measure]
        found = []
        for entry in self.entries(judge):
            if metric.within and isinstance(entry.agreement, ScoreAgreement):
                within = entry.agreement.per_group.get(metric.coefficient)
                found += [(entry, within)] if within is not None else []
        return found

    @cached_property
    def cluster_name(self) -> str:
        """The name of the clusters: groups, or items if there are no groups."""
        return (
            "groups"
            if any(agreement.groups for agreement in self.agreements(*self.judges))
            else "items"
        )

    def chance(self, judge: Judge) -> AgainstChance | None:
        """Return how the judge's agreement compares with chance, over all rows that it judged."""
        entry = next(iter(self.columns.values())).get(judge.label)
        return entry.chance if entry else None

    def own_figure(self, judge: Judge) -> Statistic:
        """Return the figure that ranks the judge, over all rows that it judged."""
        chance = self.chance(judge)
        return chance.figure if chance else self.figure(judge)

    def beats_chance(self, judge: Judge) -> bool:
        """Whether the judge's correlation or kappa over its own rows is significantly above 0."""
        chance = self.chance(judge)
        return chance is not None and chance.better

    def companion(self, judge: Judge, name: str | None) -> Statistic | None:
        """Return another metric of the judge, if there is only one subject."""
        if name is None or len(self.subjects) > 1:
            return None
        figure = next((entry.measures.get(name) for entry in self.entries(judge)), None)
        return figure if figure and figure.value is not None else None

    def same_as(self, judge: Judge) -> list[Judge]:
        """Return the ranked judges that give the same verdicts as this one everywhere."""
        pairs = (pair for pair in self.study.comparison.pairwise if pair.identical)
        identical = {(pair.subject, frozenset((pair.first, pair.second))) for pair in pairs}

        def is_same(other: Judge) -> bool:
            both = frozenset((judge.label, other.label))
            return other is not judge and all(
                (subject.label, both) in identical for subject in self.subjects
            )

        return [*filter(is_same, self.ranked)]

    def leader(self, column: str) -> str | None:
        """Return the judge with a significant lead over all others in a column, or ``None``.

        Args:
            column: an aspect, or the average (``columns``).
        """
        subjects = {subject.aspect or subject.label: subject.label for subject in self.subjects}
        compared_on = subjects.get(column, self.subjects[0].digest)
        labels = [
            label
            for label in self.columns[column]
            if label in {judge.label for judge in self.judges}
        ]
        for label in labels:
            leads = [self._lead_on(compared_on, label, other) for other in labels if other != label]
            if leads and all(lead is not None and lead.holds for lead in leads):
                return label
        return None

    def lead(self, ahead: Judge, over: Judge, metric: str | None = None) -> LeadOverRunnerUp | None:
        """Return the lead of one judge over another by a metric; default: the leading metric."""
        subject = self.subjects[0]
        # The comparison on the only subject, or that of the averages over all.
        compared_on = subject.label if len(self.subjects) == 1 else subject.digest
        return self._lead_on(compared_on, ahead.label, over.label, metric)

    def _lead_on(
        self, compared_on: str, ahead: str, over: str, metric: str | None = None
    ) -> LeadOverRunnerUp | None:
        comparison = self.study.comparison
        # A pair is compared in one order only, which may be the reverse.
        for first, second in ((ahead, over), (over, ahead)):
            pair = comparison.of_pair(compared_on, first, second)
            if (
                pair is not None
                and (apart := pair.differences.get(metric or self.measure)) is not None
            ):
                difference = apart.difference if first == ahead else apart.difference.times(-1)
                return LeadOverRunnerUp(
                    difference, apart.adjusted, apart.needed, is_few(pair.units)
                )
        return None


class LeadOverRunnerUp(NamedTuple):
    """The difference in agreement between the first judge and another on the same rows.

    Attributes:
        difference: the difference with its interval.
        p: the p-value, adjusted by Holm's method; ``None`` without a test.
        needed: the approximate number of clusters needed to separate such a difference from chance;
            ``None`` if unknown.
        few: whether there are too few clusters for a p-value.
    """

    difference: Statistic
    p: float | None
    needed: int | None = None
    few: bool = False

    @property
    def holds(self) -> bool:
        """Whether the lead is significant."""
        return (
            not self.few
            and (self.difference.value or 0.0) > 0
            and self.p is not None
            and self.p < LEVEL
        )


def named(judges: Sequence[Judge]) -> str:
    """Join the labels of some judges; if there are many, count the rest."""
    labels = [judge.label for judge in judges]
    if len(labels) > MANY:
        labels = [*labels[:MANY], f"{len(labels) - MANY} more"]
    return " and ".join(filter(None, (", ".join(labels[:-1]), labels[-1])))


def symbol_of(name: str) -> str:
    """Return a metric before a value in a sentence: a coefficient's letter, or the title.

    >>> symbol_of("group_spearman"), symbol_of("pairwise")
    ('rho within groups', 'Pairwise accuracy within groups')
    """
    metric = METRICS[name]
    if metric.coefficient not in STATISTICS:
        return capital(metric.title)
    where = {"rows": "", "groups": " within groups", "systems": " over systems"}
    return f"{METRICS[metric.coefficient].short}{where[metric.unit]}"


def value(figure: Statistic) -> str:
    return written(figure.value, Column("")).text


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]
