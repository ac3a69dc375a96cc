"""Make the tables of a study, in the order of reading, and the summary, which are those to read first.

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
from ..results.agreement import Spread
from ..statistics.metrics import METRICS, of_kind
from ..statistics.resampling import Statistic
from ..statistics.sample import Difference
from ..statistics.significance import LEVEL
from ..tables.grid import CellValue, Column, Grid, columns_of, fields_of, share_column, text_column, value_at
from .debate_tables import whose
from .labels import MEASURES, TEXTS, labels_of, left_out_note, reference_of
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
        subject, measure = dataset.subjects[0], dataset.measure
        notes = [of.ceiling for of in study.annotators if of.subject in dataset.subjects and of.ceiling]
        columns = [JUDGE]
        if dataset.compares:
            ((_, entries),) = dataset.columns.items()
            rows, accuracy, kappa, ties = preferences(_part(entries, "agreement"))
            columns += [accuracy, kappa, rows, ties]
            title, notes = f"agreement with {labels_of(subject)}", [str(subject.rule), *notes]
        else:
            over = "" if METRICS[measure].within else ", over rows"
            title = f"{MEASURES[measure]} with {labels_of(subject)}{over}"
            # With several aspects only the average shows its interval: one in each column would be too wide.
            for number, (name, entries) in enumerate(dataset.columns.items()):
                about = "" if number or len(dataset.subjects) == 1 else "mean over the aspects"
                of = value_at(measure, _part(entries, "measures"))
                columns.append(Column(name, best="high", interval=number == 0, about=about, of=of))
        yield Grid.from_records(f"{dataset.name}: {title}", (*columns, *_USAGE), dataset.best_first, notes)


def _part(entries: Mapping[str, LeaderboardEntry | Average], name: str) -> Callable[[Judge], Any]:
    """Return what finds a part of a judge's entry, such as its ``measures``."""
    return lambda judge: getattr(entries.get(judge.label), name, None)


def agreements(study: Study) -> Iterator[Grid]:
    """Tabulate all correlations, over rows and within groups, for each aspect with scores."""
    for subject in study.subjects:
        entries = study.leaderboard.on(subject.label)
        if subject.kind != "score" or not entries:
            continue
        of_agreement, columns = attrgetter("agreement"), [_WHOSE[0]]
        columns += fields_of(of_agreement, n=Column("rows", about="rows with a verdict and a label"))
        grouped = any(getattr(entry.agreement, "per_group", None) for entry in entries)
        for metric in (METRICS[name] for name in of_kind("score")):
            if grouped or not metric.within:
                within = f"mean over groups of {MEASURES[metric.coefficient]} within each"
                about = within if metric.within else f"{metric.title} over all rows"
                of = value_at(metric.name, attrgetter("measures"))
                columns.append(Column(metric.short, best="high", about=about, of=of))
        columns += groups(of_agreement) if grouped else ()
        notes = [n for e in entries if e.agreement for n in left_out_note(e.agreement.left_out, e.judge)]
        title = f"{subject.label}: agreement with {labels_of(subject)}"
        yield Grid.from_records(title, columns, entries, notes)


def gains(study: Study) -> Iterator[Grid]:
    """Tabulate for each dataset the gain of each judge over the base, in points and in percent."""
    for dataset in ranked_datasets(study):
        base, measure, columns = dataset.base, dataset.measure, [JUDGE]
        for name, entries in dataset.columns.items():
            absolute, relative = Column(name, best="high"), share_column(f"{name} %")
            measured = ((label, entry.measures.get(measure)) for label, entry in entries.items())
            figures = {label: figure.value for label, figure in measured if figure}
            of = partial(_over_base, figures, base)
            columns += columns_of(Gain, of, absolute=absolute, relative=relative)
        title = f"{dataset.name}: {MEASURES[measure]}, gain over {base}, each judge on its own rows"
        others = [judge for judge in dataset.judges if judge.label != base]
        grid = Grid.from_records(title, columns, others, [TEXTS["own_rows"]])
        if base is not None and grid.has_values:
            yield replace(grid, judges=(base,))


def _over_base(figures: Mapping[str, float | None], base: str | None, judge: Judge) -> Gain:
    """Return how much the judge's figure exceeds the base's."""
    return gain(figures.get(judge.label), figures.get(base or ""))


def pooled(study: Study) -> Iterator[Grid]:
    """Tabulate what each method gains over the base of the same model, on each dataset and over all of them."""
    for gains in study.pooled:
        title = f"{MEASURES[gains.metric]}: gain over {gains.base} of the same model"
        yield Grid.from_records(title, columns_of(LevelGain), gains.rows, [TEXTS["pooled"]])


def repeats(study: Study) -> Iterator[Grid]:
    """Tabulate mean and standard deviation of each measure over repeats (ChatEval, table 1; DEBATE, E.1)."""
    spreads = ((entry, *spread) for entry in study.leaderboard.standings for spread in entry.repeats.items())
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
_TESTS = {"williams": "Williams", "steiger": "Steiger", "mcnemar": "McNemar", "t_errors": "t", "t_right": "t"}


def comparisons(study: Study, all_judges: bool = False) -> Iterator[Grid]:
    """Tabulate for each subject the differences of judges to the base, or of all pairs, on rows that both judged."""
    for subject in study.subjects:
        pairwise = [pair for pair in study.comparison.pairwise if pair.subject == subject.label]
        base, measure = study.bases.get(subject.label), subject.metric
        if not all_judges and base:
            # A base that is in no pair of this subject has nothing to be compared with: then all pairs are shown.
            pairwise = [pair for pair in pairwise if pair.second == base] or pairwise
        to_base = not all_judges and all(pair.second == base for pair in pairwise)
        versus = f"difference vs. {base} (Δ)" if to_base else "pairwise differences (Δ)"
        others = {} if to_base else {"second": text_column("compared with")}
        shared = Column("rows", about="rows with a label and a verdict of both judges")
        # Adjusted over the comparisons that the table shows: with the base alone there are fewer.
        figures = _DIFFERENCE | {"adjusted_to_base" if to_base else "adjusted": _HOLM}
        if to_base:
            figures["second"] = Column(f"{base}'s value")
        columns = [
            *fields_of(first=text_column("judge"), **others, shared=shared),
            *fields_of(value_at(measure, attrgetter("differences")), **figures),
        ]
        for test, heading in _TESTS.items():
            # Tests of correlations are named with the correlation, such as "williams_spearman"; others by themselves.
            for name in (test, f"{test}_{measure}"):
                about = next((pair.tests[name].about for pair in pairwise if name in pair.tests), None)
                if about is not None:
                    p = Column(f"p {heading}", form="p", about=about)
                    columns += fields_of(value_at(name, attrgetter("tests")), p=p)
        rule = [str(subject.rule)] if subject.kind == "compare" else []
        title = f"{subject.label}: {MEASURES[measure]}, {versus}, same rows"
        notes = (TEXTS["holm"], *study.comparison.caution, *rule)
        grid = Grid.from_records(title, columns, pairwise, notes)
        yield replace(grid, judges=(str(base),)) if to_base else grid


def all_pairs(study: Study) -> Iterator[Grid]:
    """Tabulate the differences of all pairs of judges, for subjects that have more than one pair."""
    return (grid for grid in comparisons(study, all_judges=True) if len(grid.rows) > 1)


def matchings(study: Study) -> Iterator[Grid]:
    """Tabulate for each subject each judge against the largest ensemble of single judges that costs no more than it."""
    for subject in study.subjects:
        matches = [match for match in study.matching.matches if match.subject == subject.label]
        if not matches:
            continue
        currency, measure = matches[0].currency, subject.metric
        own = replace(_DIFFERENCE["first"], name=MEASURES[measure])
        figures = _DIFFERENCE | {"first": own, "second": Column("ensemble's value")}
        of_match = value_at(measure, attrgetter("pairwise.differences"))
        spent = Column(currency, 2, form="money" if currency == "cost" else "plain", about="per judgement")
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
    """Tabulate calls, tokens, cost and time of each judge, with a row for humans if their price or time was given."""
    rows = study.costs.rows
    data = fields_of(data=text_column("data")) if len({row.data for row in rows}) > 1 else ()
    columns = (JUDGE, *data, *columns_of(CostRow))
    yield Grid.from_records("Cost per judgement and in total", columns, rows, study.costs.notes)


Shares = Mapping[str, Statistic]
"""Percentages by the points of a scale, or by the winners; or values by the names of systems."""


def distributions(study: Study) -> Iterator[Grid]:
    """Tabulate for each subject how often each score was given or each answer won, by humans and by each judge."""
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
        # All judges of a subject have the same points: its scale's, or the winners.
        points = [Column(name, 0, interval=False, of=value_at(name, itemgetter(1))) for name in rows[0][1]]
        if any(share.value is not None for share in human.values()):
            rows.insert(0, (reference_of(subject), human, None))
        about = "distance from the human distribution: half the sum of the absolute differences"
        distance = Column("total variation", best="low", about=about, of=itemgetter(2))
        title = f"{subject.label}: score distribution, % of verdicts"
        yield Grid.from_records(title, (text_column("judge", of=itemgetter(0)), *points, distance), rows)


def shares_of(study: Study, subject: Subject) -> tuple[Shares, dict[str, Shares]]:
    """Return the percentage of labels, and of each judge's verdicts, at each point of the scale or with each winner.

    Each judge has the labels of the rows that it judged: those of the first one with shares are returned.
    """
    human: Shares = {}
    by_judge: dict[str, Shares] = {}
    for entry in study.leaderboard.on(subject.label):
        if entry.distribution is not None:
            compares, points = subject.kind == "compare", entry.distribution.points
            names = ("answer 1", "answer 2", "tie") if compares else (f"{point.point:g}" for point in points)
            named = dict(zip(names, points, strict=True))
            human = human or {name: point.human for name, point in named.items()}
            by_judge[entry.judge] = {name: point.judge for name, point in named.items()}
    return human, by_judge


def systems(study: Study) -> Iterator[Grid]:
    """Tabulate for each subject the systems whose texts were judged, with their human value and each judge's."""
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
            known = {name: of.value for name, of in ranking.correlations.items() if of.value is not None}
            if known:
                listed = ", ".join(f"{METRICS[name].short} {value:.3f}" for name, value in known.items())
                notes.append(f"{entry.judge} and {reference}, correlation over systems: {listed}")
        # A single judge's values without labels rank systems, but there is nothing to compare them with.
        if len(values) < 2 and reference not in values:
            continue
        column = partial(Column, digits=2, best="high", interval=False)
        columns = [column(name, of=of_systems.get) for name, of_systems in values.items()]
        # The highest first, by the first column, the human one if there is one; a system without a value comes last.
        first = {name: of.value for name, of in next(iter(values.values())).items() if of.value is not None}
        names = dict.fromkeys(chain(*values.values()))
        in_order = sorted(names, key=lambda name: first.get(name, -inf), reverse=True)
        method = "mean score" if subject.kind == "score" else "Bradley-Terry strength"
        title = f"{subject.label}: systems by {method}"
        yield Grid.from_records(title, (text_column("system", of=str), *columns), in_order, notes)


def alphas(study: Study) -> Iterator[Grid]:
    """Tabulate Krippendorff's alpha: between agents, repeats, annotators, and annotators with the judge as one more."""
    columns = columns_of(Alphas, lambda entry: entry.alphas)
    grid = Grid.from_records("Krippendorff's alpha", (*_WHOSE, *columns), study.leaderboard.standings)
    known = (row for row in grid.rows if any(getattr(cell, "value", None) is not None for cell in row[2:]))
    yield replace(grid, rows=tuple(known))


def annotators(of_subjects: Iterable[Annotators]) -> Iterator[Grid]:
    """Tabulate for each subject the annotators, how far they agree, and the judges in their place."""
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
        *columns_of(Spending, attrgetter("spending"), only=("mean_rounds", "mean_calls", "unresolved")),
    )
    diagnostics = Grid.from_records("Debate diagnostics", columns, debates, [TEXTS["ways"]])
    # Diagnostics without intervals, so that the summary fits on a screen or two.
    first = (*leaderboards(study), *against_base(study), *equal_cost(study))
    return (grid for grid in (*first, *costs(study), diagnostics.without_intervals()) if grid.has_values)


Cells = Mapping[str, CellValue]
"""The cells of a column, by the judge's label."""


def against_base(study: Study) -> Iterator[Grid]:
    """Tabulate for each dataset each judge's difference to the base on the same rows, a column for each aspect."""
    for dataset in ranked_datasets(study):
        base, columns = dataset.base, dict[str, Cells]()
        judges = [judge for judge in dataset.judges if judge.label != base]
        if base is None or not judges:
            continue
        averages = [pair for pair in study.comparison.averages if pair.subject == dataset.subjects[0].digest]
        if average := _to_base(averages, base, dataset.measure):
            columns["average"] = average
        for subject in dataset.subjects:
            pairwise = [pair for pair in study.comparison.pairwise if pair.subject == subject.label]
            for measure in ("accuracy", "kappa") if dataset.compares else (dataset.measure,):
                name = measure if dataset.compares else subject.aspect or subject.label
                columns[name] = _to_base(pairwise, base, measure)
        measured = "agreement" if dataset.compares else MEASURES[dataset.measure]
        title = f"{dataset.name}: {measured}, difference vs. {base} (Δ), same rows"
        yield _with_marks(study, title, columns, judges, f"difference vs. {base}; {MARK} {_SIGNIFICANT}")


def _to_base(pairwise: Sequence[PairwiseComparison], base: str, measure: str) -> Cells:
    """Return the difference to the base by the label of each judge that has one."""
    pairs = (pair for pair in pairwise if pair.second == base and measure in pair.differences)
    differences = {pair.first: pair.differences[measure] for pair in pairs}
    return {judge: _marked(apart, apart.adjusted_to_base) for judge, apart in differences.items()}


def _marked(difference: Difference, p: float | None, more: str = "") -> CellValue:
    if difference.difference.value is None:
        return None
    mark = MARK if p is not None and p < LEVEL else ""
    return f"{value(difference.difference)}{mark}{more}"


def equal_cost(study: Study) -> Iterator[Grid]:
    """Tabulate for each dataset each judge's difference to the equal-cost baseline, a column for each aspect."""
    for dataset in ranked_datasets(study):
        measure, columns = dataset.measure, dict[str, Cells]()
        for subject in dataset.subjects:
            matches = [match for match in study.matching.matches if match.subject == subject.label]
            columns[subject.aspect or MEASURES[measure]] = {
                match.judge: _marked(difference, difference.adjusted, f" (k={match.ensemble.k})")
                for match in matches
                if (difference := match.pairwise.differences.get(measure)) is not None
            }
        if judges := [judge for judge in dataset.judges if any(judge.label in of for of in columns.values())]:
            about = f"difference vs. an ensemble of k single judges; k: {_BASELINE}"
            title = f"{dataset.name}: {MEASURES[measure]}, difference vs. equal-cost baseline (Δ)"
            yield _with_marks(study, title, columns, judges, about, f"k: {_BASELINE}")


def _with_marks(
    study: Study, title: str, columns: Mapping[str, Cells], judges: Sequence[Judge], about: str, *notes: str
) -> Grid:
    """Make a table whose notes say what the mark means, or that no difference has it, and which data is too little."""
    headings = [Column(name, about=about) for name in columns]
    rows = [(judge.label, *(column.get(judge.label) for column in columns.values())) for judge in judges]
    marked = any(isinstance(cell, str) and MARK in cell for row in rows for cell in row[1:])
    note = f"{MARK} {_SIGNIFICANT}" if marked else f"no difference is significant ({_SIGNIFICANT})"
    return Grid(title, (JUDGE, *headings), tuple(rows), (*notes, note, *study.comparison.caution))
