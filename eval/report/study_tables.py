"""Make the tables of a study in reading order, and its summary tables.

The diagnostics of its debates are in ``debate_tables``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from math import inf
from operator import attrgetter, itemgetter
from typing import Any

from ..analysis import Study
from ..analysis.annotators import Alphas, Annotators, Rater
from ..analysis.comparison import PairwiseComparison
from ..analysis.costs import CostRow
from ..analysis.diagnostics import Changes, Spending
from ..analysis.judges import Judge, Subject
from ..analysis.leaderboard import Average, Gain, LeaderboardEntry, gain
from ..analysis.pooled_gains import LevelGain
from ..analysis.verdict_summary import VerdictSummary
from ..results.agreement import Spread
from ..statistics.metrics import METRICS, of_kind, shown_of_kind
from ..statistics.resampling import Statistic
from ..statistics.sample import Difference
from ..statistics.significance import LEVEL
from ..tables.grid import (
    CellValue,
    Column,
    Grid,
    columns_of,
    fields_of,
    share_column,
    text_column,
    value_at,
)
from .debate_tables import placebo_notes, whose
from .labels import MEASURES, labels_of, left_out_note, reference_of
from .ranked_dataset import ranked_datasets, value
from .result_tables import groups, preferences

JUDGE = text_column("judge", of=attrgetter("label"))
_WHOSE = fields_of(judge=text_column("judge"), subject=text_column("aspect"))
_USAGE = (
    *columns_of(Judge),
    *fields_of(
        attrgetter("usage"),
        calls_each=Column("calls", digits=1, best="low", about="model calls per judgement"),
        cost_each=Column("cost", form="money", best="low", about="US dollars per judgement"),
    ),
)


def leaderboards(study: Study) -> Iterator[Grid]:
    """Tabulate for each dataset the judges, ranked by their agreement with the labels."""
    for dataset in ranked_datasets(study):
        if not dataset.has_labels:
            continue
        subject = dataset.subjects[0]
        measure = dataset.measure
        notes = [
            of.ceiling for of in study.annotators if of.subject in dataset.subjects and of.ceiling
        ]
        columns = [JUDGE]
        if dataset.compares:
            ((_, entries),) = dataset.columns.items()
            rows, ties, *metrics = preferences(_part(entries, "agreement"), leading=measure)
            columns += [*metrics, rows, ties]
            title = f"agreement with {labels_of(subject)}"
            notes = [str(subject.rule), *notes]
        else:
            over = ", over rows" if METRICS[measure].unit == "rows" else ""
            title = f"{MEASURES[measure]} with {labels_of(subject)}{over}"
            # With several aspects only the average shows its interval, because intervals in each
            # column would be too wide.
            for number, (name, entries) in enumerate(dataset.columns.items()):
                about = "" if number or len(dataset.subjects) == 1 else "mean over the aspects"
                of = value_at(measure, _part(entries, "measures"))
                columns.append(Column(name, best="high", interval=number == 0, about=about, of=of))
        grid = Grid.from_records(
            f"{dataset.name}: {title}", (*columns, *_USAGE), dataset.best_first, notes
        )
        # Each column after the judge's name is for a subject, or for the average.
        leaders = {
            place: dataset.leader(name) for place, name in enumerate(dataset.columns, start=1)
        }
        row_of = {judge.label: row for row, judge in enumerate(dataset.best_first)}
        bold = frozenset(
            (row_of[leader], place) for place, leader in leaders.items() if leader in row_of
        )
        yield replace(grid, significant=bold)


def _part(entries: Mapping[str, LeaderboardEntry | Average], name: str) -> Callable[[Judge], Any]:
    """Return a reader of a part of a judge's entry, such as its ``measures``."""
    return lambda judge: getattr(entries.get(judge.label), name, None)


def verdicts(study: Study) -> Iterator[Grid]:
    """Tabulate each judge's verdicts without labels: means, winners, failures, rounds."""
    grid = Grid.from_records("Verdicts", columns_of(VerdictSummary), study.verdicts)
    yield grid.without_empty_columns()


def agreements(study: Study) -> Iterator[Grid]:
    """Tabulate all correlations, over rows and within groups, for each aspect with scores."""
    for subject in study.subjects:
        entries = study.leaderboard.on(subject.label)
        if subject.kind != "score" or not entries:
            continue
        of_agreement = attrgetter("agreement")
        columns = [_WHOSE[0]]
        columns += fields_of(
            of_agreement, n=Column("rows", about="rows with a verdict and a label")
        )
        agreements = [of for of in map(of_agreement, entries) if of is not None]
        grouped = any(of.per_group for of in agreements)
        with_systems = any(of.over_systems for of in agreements)
        for metric in (METRICS[name] for name in of_kind("score")):
            if (metric.unit == "groups" and not grouped) or (
                metric.unit == "systems" and not with_systems
            ):
                continue
            about = f"{metric.title} over all rows" if metric.unit == "rows" else metric.title
            if metric.within:
                about = f"mean over groups of {metric.title.removesuffix(' groups')} each"
            of = value_at(metric.name, attrgetter("measures"))
            columns.append(Column(metric.short, best="high", about=about, of=of))
        columns += groups(of_agreement) if grouped else ()
        notes = [
            n for e in entries if e.agreement for n in left_out_note(e.agreement.left_out, e.judge)
        ]
        title = f"{subject.label}: agreement with {labels_of(subject)}"
        yield Grid.from_records(title, columns, entries, notes)


def gains(study: Study) -> Iterator[Grid]:
    """Tabulate for each dataset the gain of each judge over the base, in points and in percent.

    Gains are the differences of the comparison with the base, on the rows that both judged.
    """
    for dataset in ranked_datasets(study):
        base = dataset.base
        columns = [JUDGE]
        of_aspects = {
            subject.aspect or subject.label: subject.label for subject in dataset.subjects
        }
        if len(of_aspects) > 1:
            of_aspects = {"average": dataset.subjects[0].digest, **of_aspects}
        for name, subject in of_aspects.items():
            found = partial(_gain, study, dataset.measure, subject, base or "")
            absolute = Column(name, best="high")
            columns += columns_of(
                Gain, found, absolute=absolute, relative=share_column(f"{name} %")
            )
        title = f"{dataset.name}: {MEASURES[dataset.measure]}, gain over {base}, same rows"
        others = [judge for judge in dataset.judges if judge.label != base]
        grid = Grid.from_records(title, columns, others)
        if base is not None and grid.has_values:
            yield replace(grid, judges=(base,))


def _gain(study: Study, metric: str, subject: str, base: str, judge: Judge) -> Gain:
    """Return a judge's gain over the base, from the comparison of the two."""
    pair = study.comparison.of_pair(subject, judge.label, base)
    difference = pair.differences.get(metric) if pair else None
    return gain(difference.first, difference.second) if difference else Gain()


def pooled(study: Study) -> Iterator[Grid]:
    """Tabulate each method's gain over the base of the same model, and the mean over models."""
    for gains in study.pooled:
        title = f"{gains.data}: {MEASURES[gains.metric]}, gain over {gains.base} of the same model"
        yield Grid.from_records(title, columns_of(LevelGain), gains.rows, [_POOLED])


_POOLED = (
    "Pooled: random-effects mean over the models, which all judged the same items. It only holds for these models on "
    "these items."
)


def repeats(study: Study) -> Iterator[Grid]:
    """Tabulate mean and standard deviation of each metric over repeats.

    Source: ChatEval, table 1; DEBATE, E.1.
    """
    spreads = (
        (entry, *spread)
        for entry in study.leaderboard.standings
        for spread in entry.repeats.items()
    )
    entry = fields_of(itemgetter(0), judge=text_column("judge"), subject=text_column("aspect"))
    measure = text_column("measure", of=lambda row: MEASURES[row[1]])
    columns = (*entry, measure, *columns_of(Spread, itemgetter(2)))
    yield Grid.from_records("Variation over repeats", columns, spreads)


_DIFFERENCE = {
    "first": Column("value", about="the judge's value"),
    "second": Column("other's value"),
    "difference": Column("Δ", best="high", about="difference of the two values"),
    "p": Column("p", form="p", about="two-sided p-value of the difference"),
}
_HOLM = Column("p (Holm)", form="p", about="the same, adjusted for the number of comparisons")
_HOLM_NOTE = (
    "p (Holm): adjusted over all pairs of judges on one subject, for each metric and each test separately; "
    "in a table of differences to the base, over the pairs with the base. Tests that assume independent rows "
    "(Williams, Steiger, McNemar) are left out where rows share a group or an item. t-tests are over groups."
)
_TESTS = {
    "williams": "Williams",
    "steiger": "Steiger",
    "mcnemar": "McNemar",
    "t_errors": "t",
    "t_right": "t",
}


def comparisons(study: Study, all_judges: bool = False) -> Iterator[Grid]:
    """Tabulate the differences of judges to the base, or of all pairs, for each subject.

    The rows are those that both judges of a pair judged.
    """
    for subject in study.subjects:
        pairwise = [pair for pair in study.comparison.pairwise if pair.subject == subject.label]
        base = study.bases.get(subject.label)
        measure = subject.metric
        if not all_judges and base:
            # If the base is in no pair of this subject, all pairs are shown.
            pairwise = [pair for pair in pairwise if pair.second == base] or pairwise
        to_base = not all_judges and all(pair.second == base for pair in pairwise)
        versus = f"difference vs. {base} (Δ)" if to_base else "pairwise differences (Δ)"
        others = {} if to_base else {"second": text_column("compared with")}
        shared = Column("rows", about="rows with a label and a verdict of both judges")
        # Adjusted over the comparisons in the table: with the base only, there are fewer.
        figures = _DIFFERENCE | {"adjusted_to_base" if to_base else "adjusted": _HOLM}
        if to_base:
            figures["second"] = Column(f"{base}'s value")
        columns = [
            *fields_of(first=text_column("judge"), **others, shared=shared),
            *fields_of(value_at(measure, attrgetter("differences")), **figures),
        ]
        for test, heading in _TESTS.items():
            # Tests of correlations are named with the correlation, such as "williams_spearman".
            # Others have their own names.
            for name in (test, f"{test}_{measure}"):
                about = next(
                    (pair.tests[name].about for pair in pairwise if name in pair.tests), None
                )
                if about is not None:
                    p = Column(f"p {heading}", form="p", about=about)
                    columns += fields_of(value_at(name, attrgetter("tests")), p=p)
        rule = [str(subject.rule)] if subject.kind == "compare" else []
        title = f"{subject.label}: {MEASURES[measure]}, {versus}, same rows"
        notes = (_HOLM_NOTE, *study.comparison.caution, *rule)
        grid = Grid.from_records(title, columns, pairwise, notes)
        yield replace(grid, judges=(str(base),)) if to_base else grid


def all_pairs(study: Study) -> Iterator[Grid]:
    """Tabulate the differences of all pairs of judges, for subjects with more than one pair."""
    return (grid for grid in comparisons(study, all_judges=True) if len(grid.rows) > 1)


def matchings(study: Study) -> Iterator[Grid]:
    """Tabulate each judge against the largest ensemble of single judges at no higher cost.

    There is a table for each subject.
    """
    for subject in study.subjects:
        matches = [match for match in study.matching.matches if match.subject == subject.label]
        if not matches:
            continue
        currency = matches[0].currency
        measure = subject.metric
        own = replace(_DIFFERENCE["first"], name=MEASURES[measure])
        figures = _DIFFERENCE | {"first": own, "second": Column("ensemble's value")}
        of_match = value_at(measure, attrgetter("pairwise.differences"))
        spent = Column(
            currency, 2, form="money" if currency == "cost" else "plain", about="per judgement"
        )
        columns = (
            *fields_of(judge=text_column("judge"), spent=spent),
            text_column("ensemble", of=attrgetter("ensemble.label")),
            *fields_of(ensemble_spent=replace(spent, name=f"ensemble's {currency}")),
            Column("rows", of=attrgetter("pairwise.shared")),
            *fields_of(of_match, **figures),
        )
        title = f"{subject.label}: equal-cost baseline (compute-matched ensemble of single judges)"
        yield Grid.from_records(title, columns, matches, study.comparison.caution)


def costs(study: Study) -> Iterator[Grid]:
    """Tabulate calls, tokens, cost and time of each judge.

    Humans have a row if their price or time is given.
    """
    rows = study.costs.rows
    data = fields_of(data=text_column("data")) if len({row.data for row in rows}) > 1 else ()
    columns = (JUDGE, *data, *columns_of(CostRow))
    yield Grid.from_records("Cost per judgement and in total", columns, rows, study.costs.notes)


Shares = Mapping[str, Statistic]
"""Percentages by the points of a scale or by the winners, or values by the names of systems."""


def distributions(study: Study) -> Iterator[Grid]:
    """Tabulate how often humans and judges gave each score or chose each answer.

    There is a table for each subject.
    """
    for subject in study.subjects:
        human, by_judge = shares_of(study, subject)
        if not by_judge:
            continue
        scored = subject.kind == "score"
        rows: list[tuple[str, Shares, Statistic | None]] = [
            (entry.judge, by_judge[entry.judge], entry.distribution.distance if scored else None)
            for entry in study.leaderboard.on(subject.label)
            if entry.distribution is not None
        ]
        # All judges of a subject have the same points: those on its scale, or the winners.
        points = [
            Column(name, 0, interval=False, of=value_at(name, itemgetter(1))) for name in rows[0][1]
        ]
        if any(share.value is not None for share in human.values()):
            rows.insert(0, (reference_of(subject), human, None))
        about = "distance from the human distribution: half the sum of the absolute differences"
        distance = Column("total variation", best="low", about=about, of=itemgetter(2))
        title = f"{subject.label}: score distribution, % of verdicts"
        yield Grid.from_records(
            title, (text_column("judge", of=itemgetter(0)), *points, distance), rows
        )


def shares_of(study: Study, subject: Subject) -> tuple[Shares, dict[str, Shares]]:
    """Return the percentage of labels and of each judge's verdicts at each point or winner.

    Each judge has the labels of the rows that it judged. The labels of the first judge with shares
    are returned.
    """
    human: Shares = {}
    by_judge: dict[str, Shares] = {}
    for entry in study.leaderboard.on(subject.label):
        if entry.distribution is not None:
            compares = subject.kind == "compare"
            points = entry.distribution.points
            names = (
                ("answer 1", "answer 2", "tie")
                if compares
                else (f"{point.point:g}" for point in points)
            )
            named = dict(zip(names, points, strict=True))
            human = human or {name: point.human for name, point in named.items()}
            by_judge[entry.judge] = {name: point.judge for name, point in named.items()}
    return human, by_judge


def systems(study: Study) -> Iterator[Grid]:
    """Tabulate the systems that wrote the texts, with values by humans and judges.

    There is a table for each subject.
    """
    for subject in study.subjects:
        reference = reference_of(subject)
        values: dict[str, Shares] = {}
        notes: list[str] = []
        for entry in study.leaderboard.on(subject.label):
            if (ranking := entry.systems) is None:
                continue
            if ranking.human:
                values.setdefault(reference, ranking.human)
            if ranking.problem is not None:
                notes.append(f"{entry.judge} is left out: {ranking.problem}")
                continue
            values[entry.judge] = ranking.judge
            known = {
                name: of.value for name, of in ranking.agreement.items() if of.value is not None
            }
            if known:
                listed = ", ".join(
                    f"{METRICS[f'system_{name}'].title.removesuffix(' over systems')} {value:.3f}"
                    for name, value in known.items()
                )
                notes.append(f"{entry.judge} and {reference}, over systems: {listed}")
        # A single judge's values without labels rank systems, but there is nothing to compare them
        # with.
        if len(values) < 2 and reference not in values:
            continue
        column = partial(Column, digits=2, best="high", interval=False)
        columns = [column(name, of=of_systems.get) for name, of_systems in values.items()]
        # Sorted by the first column, which is the human one if there is one. The highest value
        # comes first, and a missing one last.
        first = {
            name: of.value
            for name, of in next(iter(values.values())).items()
            if of.value is not None
        }
        names = dict.fromkeys(chain(*values.values()))
        in_order = sorted(names, key=lambda name: first.get(name, -inf), reverse=True)
        method = "mean score" if subject.kind == "score" else "Bradley-Terry strength"
        title = f"{subject.label}: systems by {method}"
        yield Grid.from_records(title, (text_column("system", of=str), *columns), in_order, notes)


def alphas(study: Study) -> Iterator[Grid]:
    """Tabulate Krippendorff's alpha of agents, repeats, and annotators with and without judge."""
    columns = columns_of(Alphas, lambda entry: entry.alphas)
    grid = Grid.from_records(
        "Krippendorff's alpha", (*_WHOSE, *columns), study.leaderboard.standings
    )
    known = (
        row
        for row in grid.rows
        if any(getattr(cell, "value", None) is not None for cell in row[2:])
    )
    yield replace(grid, rows=tuple(known))


def annotators(of_subjects: Iterable[Annotators]) -> Iterator[Grid]:
    """Tabulate the annotators, their agreement, and the judges in their place.

    There is a table for each subject.
    """
    for people in of_subjects:
        grid = Grid.from_records(people.title, columns_of(Rater), people.raters, people.notes)
        yield grid.without_empty_columns()


MARK = "*"
_SIGNIFICANT = f"p < {LEVEL:g}, paired, Holm-adjusted over the judges in a column"
_BASELINE = "size of the largest ensemble of single judges that costs no more (compute-matched)"


def summary(study: Study) -> Iterator[Grid]:
    """Make five kinds of tables, without the notes that would be the same below each."""
    debates = [diagnosis for diagnosis in study.diagnoses if diagnosis.changes is not None]
    columns = (
        *whose(study.diagnoses),
        *columns_of(Changes, attrgetter("changes"), only=("moved", "helpful", "harmful", "p")),
        *columns_of(
            Spending, attrgetter("spending"), only=("mean_rounds", "mean_calls", "unresolved")
        ),
    )
    notes = [_WAYS, *placebo_notes(debates)]
    diagnostics = Grid.from_records("Debate diagnostics", columns, debates, notes)
    # Diagnostics have no intervals, so that the summary fits on a screen or two.
    first = (*leaderboards(study), *against_base(study), *equal_cost(study))
    return (
        grid for grid in (*first, *costs(study), diagnostics.without_intervals()) if grid.has_values
    )


_WAYS = (
    "Helpful: the debate moved the verdict towards the label; harmful: away from it. p: sign test, not "
    "adjusted; omitted where rows share a group or an item."
)

Cells = Mapping[str, CellValue]
"""The cells of a column, by the judge's label."""


def against_base(study: Study) -> Iterator[Grid]:
    """Tabulate each judge's difference to the base on the same rows, by aspect.

    There is a table for each dataset.
    """
    for dataset in ranked_datasets(study):
        base = dataset.base
        columns = dict[str, Cells]()
        judges = [judge for judge in dataset.judges if judge.label != base]
        if base is None or not judges:
            continue
        averages = [
            pair for pair in study.comparison.averages if pair.subject == dataset.subjects[0].digest
        ]
        if average := _to_base(averages, base, dataset.measure):
            columns["average"] = average
        for subject in dataset.subjects:
            pairwise = [pair for pair in study.comparison.pairwise if pair.subject == subject.label]
            leading = dataset.measure
            for measure in shown_of_kind("compare", leading) if dataset.compares else (leading,):
                name = measure if dataset.compares else subject.aspect or subject.label
                columns[name] = _to_base(pairwise, base, measure)
        measured = "agreement" if dataset.compares else MEASURES[dataset.measure]
        title = f"{dataset.name}: {measured}, difference vs. {base} (Δ), same rows"
        yield _with_marks(
            study, title, columns, judges, f"difference vs. {base}; {MARK} {_SIGNIFICANT}"
        )


def _to_base(pairwise: Sequence[PairwiseComparison], base: str, measure: str) -> Cells:
    """Return the difference to the base by judge label, for judges that have one."""
    pairs = (pair for pair in pairwise if pair.second == base and measure in pair.differences)
    differences = {pair.first: pair.differences[measure] for pair in pairs}
    return {judge: _marked(apart, apart.adjusted_to_base) for judge, apart in differences.items()}


def _marked(difference: Difference, p: float | None, more: str = "") -> CellValue:
    if difference.difference.value is None:
        return None
    mark = MARK if p is not None and p < LEVEL else ""
    return f"{value(difference.difference)}{mark}{more}"


def equal_cost(study: Study) -> Iterator[Grid]:
    """Tabulate each judge's difference to the equal-cost baseline, by aspect.

    There is a table for each dataset.
    """
    for dataset in ranked_datasets(study):
        measure = dataset.measure
        columns = dict[str, Cells]()
        for subject in dataset.subjects:
            matches = [match for match in study.matching.matches if match.subject == subject.label]
            columns[subject.aspect or MEASURES[measure]] = {
                match.judge: _marked(difference, difference.adjusted, f" (k={match.ensemble.k})")
                for match in matches
                if (difference := match.pairwise.differences.get(measure)) is not None
            }
        if judges := [
            judge for judge in dataset.judges if any(judge.label in of for of in columns.values())
        ]:
            about = f"difference vs. an ensemble of k single judges; k: {_BASELINE}"
            title = f"{dataset.name}: {MEASURES[measure]}, difference vs. equal-cost baseline (Δ)"
            yield _with_marks(study, title, columns, judges, about, f"k: {_BASELINE}")


def _with_marks(
    study: Study,
    title: str,
    columns: Mapping[str, Cells],
    judges: Sequence[Judge],
    about: str,
    *notes: str,
) -> Grid:
    """Make a table with notes on its marks and on insufficient data."""
    headings = [Column(name, about=about) for name in columns]
    rows = [
        (judge.label, *(column.get(judge.label) for column in columns.values())) for judge in judges
    ]
    marked = any(isinstance(cell, str) and MARK in cell for row in rows for cell in row[1:])
    note = f"{MARK} {_SIGNIFICANT}" if marked else f"no difference is significant ({_SIGNIFICANT})"
    return Grid(title, (JUDGE, *headings), tuple(rows), (*notes, note, *study.comparison.caution))
