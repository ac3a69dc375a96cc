"""Make tables of agreement: the leaderboard, all correlations, gains over the base, variation over repeats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter, itemgetter
from typing import Any

from ..analysis import Study
from ..analysis.judges import Judge
from ..analysis.leaderboard import Average, Gain, LeaderboardEntry
from ..analysis.pooled_gains import LevelGain
from ..results.agreement import Spread
from ..statistics.metrics import METRICS, of_kind
from ..tables.grid import Column, Grid, columns_of, fields_of, text_column, value_at
from .labels import MEASURES, labels_of, left_out_note
from .ranked_dataset import ranked_datasets
from .result_tables import groups, preferences

JUDGE = text_column("judge", of=attrgetter("label"))
WHOSE = fields_of(judge=text_column("judge"), subject=text_column("aspect"))
_USAGE = (
    *columns_of(Judge),
    *fields_of(
        attrgetter("usage"),
        calls_each=Column("calls", digits=1, best="low", about="model calls per judgement"),
        cost_each=Column("cost", form="money", best="low", about="US dollars per judgement"),
    ),
)


def leaderboards(study: Study, metric: str | None) -> Iterator[Grid]:
    """Tabulate for each dataset the judges, ranked by their agreement with the labels."""
    for dataset in ranked_datasets(study, metric):
        subject, judges, measure = dataset.subjects[0], dataset.best_first, dataset.measure
        of_dataset = (people for people in study.annotators if people.subject in dataset.subjects)
        ceilings = [people.ceiling for people in of_dataset if people.ceiling]
        if dataset.compares:
            ((_, entries),) = dataset.columns.items()
            rows, accuracy, kappa, ties = preferences(_part(entries, "agreement"))
            columns = (JUDGE, accuracy, kappa, rows, ties, *_USAGE)
            title = f"{dataset.name}: agreement with {labels_of(subject)}"
            yield Grid.from_records(title, columns, judges, [str(subject.rule), *ceilings])
            continue
        over = "" if METRICS[measure].within else ", over rows"
        # With several aspects only the average shows its interval: one in each column would be too wide.
        agreements = []
        for number, (name, entries) in enumerate(dataset.columns.items()):
            about = "" if number or len(dataset.subjects) == 1 else "mean over the aspects"
            of = value_at(measure, _part(entries, "measures"))
            agreements.append(Column(name, best="high", interval=number == 0, about=about, of=of))
        title = f"{dataset.name}: {MEASURES[measure]} with {labels_of(subject)}{over}"
        yield Grid.from_records(title, (JUDGE, *agreements, *_USAGE), judges, ceilings)


def _part(entries: Mapping[str, LeaderboardEntry | Average], name: str) -> Callable[[Judge], Any]:
    """Return what finds a part of a judge's entry, such as its ``measures``."""
    return lambda judge: getattr(entries.get(judge.label), name, None)


def agreements(study: Study) -> Iterator[Grid]:
    """Tabulate all correlations, over rows and within groups, for each aspect with scores."""
    for subject in study.subjects:
        entries = study.leaderboard.on(subject.label)
        if subject.kind != "score" or not entries:
            continue
        grouped = any("group_spearman" in entry.measures for entry in entries)
        correlations = []
        for metric in (METRICS[name] for name in of_kind("score")):
            if metric.within and not grouped:
                continue
            about = f"{metric.title} over all rows"
            if metric.within:
                about = f"mean over groups of {MEASURES[metric.coefficient]} within each"
            of = value_at(metric.name, attrgetter("measures"))
            correlations.append(Column(metric.short, best="high", about=about, of=of))
        of_agreement = attrgetter("agreement")
        (rows,) = fields_of(of_agreement, n=Column("rows", about="rows with a verdict and a label"))
        columns = (WHOSE[0], rows, *correlations, *(groups(of_agreement) if grouped else ()))
        notes = [n for e in entries if e.agreement for n in left_out_note(e.agreement.left_out, e.judge)]
        title = f"{subject.label}: agreement with {labels_of(subject)}"
        yield Grid.from_records(title, columns, entries, notes)


def gains(study: Study, metric: str | None) -> Iterator[Grid]:
    """Tabulate for each dataset the gain of each judge over the base, in points and in percent."""
    for dataset in ranked_datasets(study, metric):
        base, measure = dataset.base, dataset.measure
        columns: list[Column] = []
        for name, entries in dataset.columns.items():
            names = {"absolute": name, "relative": f"{name} %"}
            columns += columns_of(Gain, value_at(measure, _part(entries, "gains")), names=names)
        title = f"{dataset.name}: {MEASURES[measure]}, gain over {base}, each judge on its own rows"
        note = "computed on all rows of each judge; the comparison uses the rows that both judges have"
        others = [judge for judge in dataset.judges if judge.label != base]
        grid = Grid.from_records(title, (JUDGE, *columns), others, [note], [str(base)])
        if base is not None and grid.has_values:
            yield grid


def pooled(study: Study) -> Iterator[Grid]:
    """Tabulate what each method gains over the base of the same model, on each dataset and over all of them."""
    shared = "levels on one dataset share its items, so their mean only holds for these models on these items"
    note = f"pooled: random effects over levels, each a model on a dataset; {shared}"
    for gains in study.pooled:
        title = f"{MEASURES[gains.metric]}: gain over {gains.base} of the same model"
        yield Grid.from_records(title, columns_of(LevelGain), gains.rows, [note])


def repeats(study: Study) -> Iterator[Grid]:
    """Tabulate mean and standard deviation of each measure over repeats (ChatEval, table 1; DEBATE, E.1)."""
    spreads = [
        (entry, MEASURES[name], spread)
        for entry in study.leaderboard.standings
        for name, spread in entry.repeats.items()
        if len(spread.values) > 1
    ]
    columns = (
        *fields_of(itemgetter(0), judge=text_column("judge"), subject=text_column("aspect")),
        text_column("measure", of=itemgetter(1)),
        *columns_of(Spread, itemgetter(2)),
    )
    if spreads:
        yield Grid.from_records("Variation over repeats", columns, spreads)
