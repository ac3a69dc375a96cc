"""Compare a protocol with its opponents at equal spending, and hold what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import floor
from operator import itemgetter
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

from ..analysis import Diagnosis
from ..analysis.comparison import Difference, PairwiseComparator, Side
from ..analysis.diagnostics import diagnose
from ..analysis.loading import LoadedJudge, load_evaluations
from ..analysis.verdict_columns import Verdicts
from ..results.evaluation import Evaluation
from ..statistics.metrics import METRICS
from ..statistics.resampling import Statistic
from ..statistics.significance import holm
from ..tables import Column, Grid, columns_of, text_column
from .equal_spending import matched
from .finding import Evidence, Finding, Rivalry, find
from .opponents import Opponent
from .terms import Terms, Unit

AVERAGE = "average"
FILE = "versus.json"


@dataclass(frozen=True)
class Contest:
    """Compares the protocol with one opponent on one aspect, or on the comparisons, at equal spending.

    Attributes:
        subject: the aspect, ``preference``, or ``average`` over the aspects.
        opponent: the name of the opponent.
        size: samples of it, or judges in it, an item on average.
        title: both in words.
        items: labelled items that both have judged.
        clusters: groups, or items without a group, that count; within groups, those in which both have a figure.
        ratio: what the opponent spent, as a multiple of what the protocol did.
        protocol, other: the agreement of each, in the leading metric, over the same groups.
        difference: the first less the second.
        p: two-sided, by Holm's method over the opponents.
    """

    subject: Annotated[str, text_column("on")]
    opponent: Annotated[str, text_column("against")]
    size: Annotated[float, Column("samples", digits=1, about="of a judge, or judges, an item on average")]
    title: str
    items: Annotated[int, Column("items", about="labelled items that both have judged")]
    clusters: Annotated[int, Column("groups", about="that count: groups, or items without a group")]
    ratio: Annotated[
        float | None, Column("spent", form="percent", digits=0, about="of what the protocol spent")
    ]
    protocol: Annotated[float | None, Column("protocol")]
    other: Annotated[float | None, Column("opponent")]
    difference: Annotated[Statistic, Column("difference")]
    p: Annotated[float | None, Column("p (Holm)", form="p", about="over the opponents")]


@dataclass(frozen=True)
class Votes:
    """Counts the verdicts before and after the talking: by winner, or by the nearest point of the scale."""

    subject: str
    before: Mapping[str, int]
    after: Mapping[str, int]


@dataclass(frozen=True)
class Versus:
    """Holds a protocol beside its opponents.

    Attributes:
        protocol: its label.
        data: the dataset's name.
        unit: what was spent equally.
        metric: that differences are of.
        finding: whether it pays, over all aspects.
        findings: whether it pays on each aspect, by its name.
        contests: with each opponent, on each subject and on average.
        diagnoses: what the protocol's agents did, by subject: flips both ways, and whose turns moved verdicts.
        votes: by subject.
        notes: what a reader should know.
        folders: of the runs, by judge.
        folder: where all of it is; ``None`` where nothing is kept.
        stopped: why it ended before its work was done.
        failed: judgements without a verdict.
    """

    protocol: str
    data: str
    unit: Unit
    metric: str
    finding: Finding
    findings: Mapping[str, Finding]
    contests: tuple[Contest, ...]
    diagnoses: tuple[Diagnosis, ...]
    votes: tuple[Votes, ...]
    notes: tuple[str, ...] = ()
    folders: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None
    stopped: str | None = None
    failed: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return all of it as plain JSON."""
        answer = {"answer": self.finding.answer, "sentence": self.finding.sentence}
        return {**answer, **asdict(self), "folder": str(self.folder) if self.folder else None}

    def grids(self) -> Iterator[Grid]:
        """Make the tables: the comparison, flips, votes, and whose turns moved verdicts."""
        yield Grid.from_records(
            f"{self.protocol} at equal {self.unit}: {METRICS[self.metric].title}",
            columns_of(Contest),
            self.contests,
        )
        by_record: dict[str, list[tuple[str, object]]] = {}
        for diagnosis in self.diagnoses:
            if diagnosis.changes is not None:
                title = "Flips: verdicts that the talking changed"
                by_record.setdefault(title, []).append((diagnosis.subject, diagnosis.changes))
            for moved in diagnosis.score_changes:
                title = "Whose turns moved verdicts, towards the labels and away"
                by_record.setdefault(title, []).append((diagnosis.subject, moved))
        for title, records in by_record.items():
            # Of a pair: the subject, and the record that declares the columns.
            columns = columns_of(type(records[0][1]), of=itemgetter(1))
            named = (text_column("on", of=itemgetter(0)), *columns)
            yield Grid.from_records(title, named, records, drop_empty=True)
        if self.votes:
            rows = [
                (votes.subject, when, ", ".join(f"{name}: {count:,}" for name, count in counts.items()))
                for votes in self.votes
                for when, counts in (("before", votes.before), ("after", votes.after))
            ]
            named = (text_column("on"), text_column("the talking"), text_column("verdicts"))
            yield Grid("Verdicts before and after the talking", named, tuple(rows))


def compare(
    evaluations: Mapping[str, tuple[str, Evaluation]], opponents: Sequence[Opponent], terms: Terms
) -> Versus:
    """Compare the first judge with its opponents, at equal spending on the items that all of them judged.

    Args:
        evaluations: by label, the name that a judge has in its run, and the run: the protocol, then its opponents.
        opponents: in the same order.
        terms: of the comparison.
    """
    judge, *others = load_evaluations(evaluations, metric=terms.metric)
    subjects = [
        _Subject(judge, dict(zip(opponents, others, strict=True)), aspect, terms) for aspect in judge.cells
    ]
    contests = [contest for subject in subjects for contest in subject.contests()]
    findings = {
        subject.label: _finding(
            judge.label, [contest for contest in contests if contest.subject == subject.label], subject
        )
        for subject in subjects
    }
    if len(subjects) > 1:
        averages = _averages(subjects)
        contests += averages
        finding = _finding(judge.label, averages, subjects[0])
    else:
        finding = findings[subjects[0].label]
    described = [loaded.describe() for loaded in (judge, *others)]
    return Versus(
        protocol=judge.label,
        data=described[0].data,
        unit=terms.by,
        metric=subjects[0].metric,
        finding=finding,
        findings=findings,
        contests=tuple(contests),
        diagnoses=tuple(diagnose(judge, cell, terms.resampling) for cell in judge.cells.values()),
        votes=tuple(votes for subject in subjects if (votes := subject.votes())),
        notes=tuple(_notes(subjects, [about.note for about in described])),
        folders={loaded.label: str(loaded.folder) for loaded in (judge, *others)},
        failed=sum(about.failed for about in described),
    )


class _Subject:
    """Holds the protocol and its opponents on one aspect, or on the comparisons."""

    def __init__(
        self, judge: LoadedJudge, others: Mapping[Opponent, LoadedJudge], aspect: str | None, terms: Terms
    ) -> None:
        self.cell, self.terms = judge.cells[aspect], terms
        self.label, self.metric = self.cell.subject.label, self.cell.subject.metric
        self.comparator = PairwiseComparator(self.cell.subject, terms.resampling)
        self.side = Side(judge.label, self.cell.rows, self.cell.distances)
        self.matched = {
            opponent: match
            for opponent, other in others.items()
            if aspect in other.cells
            and (match := matched(other, other.cells[aspect], self.cell.rows, terms.by))
        }

    def contests(self) -> list[Contest]:
        """Compare with each opponent; p-values hold for all of them together."""
        compared = []
        for opponent, match in self.matched.items():
            pair = self.comparator.compare(self.side, match.side)
            compared.append((opponent, match.size, match.ratio, pair.shared, pair.differences[self.metric]))
        return _contests(self.label, compared)

    def votes(self) -> Votes | None:
        """Count verdicts before and after the talking; ``None`` where nobody talked."""
        rows = self.cell.rows.take(self.cell.rows.path_count > 0)
        if not self.cell.debates or not len(rows):
            return None
        return Votes(self.label, _counted(rows, rows.after(0)), _counted(rows, rows.judged))


def _counted(rows: Verdicts, values: Any) -> dict[str, int]:
    verdicts = [verdict for verdict in rows.as_verdicts(values) if verdict is not None]
    named = (verdict if isinstance(verdict, str) else f"{floor(verdict + 0.5)}" for verdict in verdicts)
    return dict(sorted(Counter(named).items()))


def _contests(
    subject: str, compared: Sequence[tuple[Opponent, float, float | None, int, Difference]]
) -> list[Contest]:
    """Make a contest of each opponent's size, spending, items and difference; p-values are adjusted over all."""
    adjusted = holm([difference.p for *_, difference in compared])
    return [
        Contest(
            subject,
            opponent.name,
            size,
            opponent.title(size),
            items,
            difference.clusters,
            ratio,
            difference.first,
            difference.second,
            difference.difference,
            p,
        )
        for (opponent, size, ratio, items, difference), p in zip(compared, adjusted, strict=True)
    ]


def _averages(subjects: Sequence[_Subject]) -> list[Contest]:
    """Average the differences over the aspects, for each opponent that is there on all of them."""
    everywhere = [
        opponent
        for opponent in subjects[0].matched
        if all(opponent in subject.matched for subject in subjects)
    ]
    averaged = []
    for opponent in everywhere:
        matches = [subject.matched[opponent] for subject in subjects]
        pairs = [
            subject.comparator.samples(subject.side, match.side)
            for subject, match in zip(subjects, matches, strict=True)
        ]
        items = min(len(mine) for mine, _ in pairs)
        size, budget = fmean(match.size for match in matches), sum(match.budget for match in matches)
        ratio = sum(match.spent for match in matches) / budget if budget else None
        averaged.append((opponent, size, ratio, items, Difference.of(subjects[0].metric, pairs)))
    return _contests(AVERAGE, averaged)


def _finding(protocol: str, contests: Sequence[Contest], subject: _Subject) -> Finding:
    return find(
        protocol,
        [Rivalry(contest.title, contest.difference, contest.p, contest.ratio) for contest in contests],
        Evidence(
            subject.metric,
            subject.terms.by,
            min((contest.items for contest in contests), default=0),
            # Those without an interval say in words that they have none; fewer groups than enough are of all of them.
            min(
                (contest.clusters for contest in contests if contest.difference.low is not None),
                default=max((contest.clusters for contest in contests), default=0),
            ),
        ),
        subject.terms.worth,
        subject.terms.resampling.confidence,
    )


def _notes(subjects: Sequence[_Subject], notes: Sequence[str | None]) -> Iterator[str]:
    yield from dict.fromkeys(note for note in notes if note)
    alike = {
        opponent.name for subject in subjects for opponent, match in subject.matched.items() if match.alike
    }
    for name in sorted(alike):
        yield (
            f"all samples of {name} are the same, so that several are no better than one: the model does not sample, "
            "or its temperature is 0"
        )
