"""Make tables of agreement: the leaderboard, all correlations, gains over the base, variation over repeats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from ..analysis import Average, EvaluationTarget, Gain, Judge, LeaderboardEntry, Study
from ..statistics.metrics import METRICS, of_kind
from ..statistics.resampling import Statistic
from ..tables import Column, Grid, columns_of, text_column
from ..tables.grid import figure
from .labels import (
    MEASURES,
    by_data,
    judges_on,
    labels_of,
    left_out_note,
    main_measure,
    measure_of,
    with_notes,
)
from .result_tables import groups, preferences

JUDGE = text_column("judge", of=lambda judge: judge.label)
JUDGE_OF_RECORD = text_column("judge", of=lambda record: record.judge)
ASPECT_OF_RECORD = text_column("aspect", of=lambda record: record.subject)
_USAGE = (
    Column("judged", about="verdicts", of=lambda judge: judge.judged),
    Column("failed", about="judgements without a verdict", of=lambda judge: judge.failed),
    Column(
        "calls",
        digits=1,
        best="low",
        about="model calls per judgement",
        of=lambda judge: judge.usage.calls_each,
    ),
    Column(
        "cost",
        form="money",
        best="low",
        about="US dollars per judgement",
        of=lambda judge: judge.usage.cost_each,
    ),
)


def leaderboards(study: Study, metric: str | None) -> Iterator[Grid]:
    """Tabulate for each dataset the judges, ranked by their agreement with the labels."""
    for subjects in by_data(study).values():
        if subjects[0].kind == "compare":
            yield _preference_board(study, subjects[0], metric)
        else:
            yield _score_board(study, subjects, metric)


def best_first(study: Study, subjects: Sequence[EvaluationTarget], metric: str | None) -> list[Judge]:
    """Return the judges of a dataset in the order of the leaderboard.

    Of judges with equal agreement the one with fewer calls comes first; judges without a value come last.
    """
    judges = judges_on(study, (subjects[0].data, subjects[0].digest))

    def rank(judge: Judge) -> tuple[bool, float, float]:
        agreement = overall(study, judge, subjects, metric)
        value = None if agreement is None else agreement.value
        # Rounded, so that judges with equal agreement are not ordered by noise in the last digits.
        return value is None, -round(value or 0.0, 9), judge.usage.calls_each or 0.0

    return sorted(judges, key=rank)


def overall(
    study: Study, judge: Judge, subjects: Sequence[EvaluationTarget], metric: str | None
) -> Statistic | None:
    """Return the value that judges are ranked by: agreement on the only subject, or the average over all subjects."""
    if len(subjects) == 1:
        standing = study.leaderboard.standing(judge.label, subjects[0].label)
        return measure_of(standing, main_measure(subjects[0], metric))
    average = average_of(study, judge, subjects)
    return None if average is None else average.measures.get(main_measure(subjects[0], metric))


def average_of(study: Study, judge: Judge, subjects: Sequence[EvaluationTarget]) -> Average | None:
    """Return a judge's average over all subjects of a dataset; ``None`` if it did not judge them all."""
    names = {subject.label for subject in subjects}
    return next(
        (
            average
            for average in study.leaderboard.averages
            if average.judge == judge.label and set(average.subjects) == names
        ),
        None,
    )


def _score_board(study: Study, subjects: list[EvaluationTarget], metric: str | None) -> Grid:
    several, measure = len(subjects) > 1, main_measure(subjects[0], metric)
    average = Column(
        "average",
        best="high",
        about="mean over the aspects",
        of=lambda judge: overall(study, judge, subjects, metric),
    )
    over = "" if METRICS[measure].within else ", over rows"
    judges = best_first(study, subjects, metric)
    return with_notes(
        study,
        Grid.from_records(
            f"{subjects[0].data}: {MEASURES[measure]} with {labels_of(subjects[0])}{over}",
            (
                JUDGE,
                *([average] if several else []),
                *(
                    # With several aspects only the average shows its interval: one in each column would be too wide.
                    Column(
                        subject.aspect or subject.label,
                        best="high",
                        interval=not several,
                        of=_on(study, subject, partial(measure_of, name=measure)),
                    )
                    for subject in subjects
                ),
                *_USAGE,
            ),
            judges,
        ),
    )


def _on(
    study: Study, subject: EvaluationTarget, value: Callable[[LeaderboardEntry], Any]
) -> Callable[[Judge], Any]:
    """Return what takes a value from a judge's entry on a subject; of a judge that did not judge it, ``None``."""

    def read(judge: Judge) -> Any:
        entry = study.leaderboard.standing(judge.label, subject.label)
        return None if entry is None else value(entry)

    return read


def _agreement_of(entry: LeaderboardEntry) -> Any:
    return entry.agreement


def _preference_board(study: Study, subject: EvaluationTarget, metric: str | None) -> Grid:
    rows, accuracy, kappa, ties = preferences(_on(study, subject, _agreement_of))
    return with_notes(
        study,
        Grid.from_records(
            f"{subject.data}: agreement with {labels_of(subject)}",
            (JUDGE, accuracy, kappa, rows, ties, *_USAGE),
            best_first(study, [subject], metric),
            notes=[str(subject.rule)],
        ),
    )


def agreements(study: Study) -> Iterator[Grid]:
    """Tabulate all correlations, over rows and within groups, for each aspect with scores."""
    for subject in study.subjects:
        entries = [entry for entry in study.leaderboard.standings if entry.subject == subject.label]
        if subject.kind == "score" and entries:
            yield _agreement(study, subject, entries)


def _agreement(study: Study, subject: EvaluationTarget, entries: list[LeaderboardEntry]) -> Grid:
    grouped = any("group_spearman" in entry.measures for entry in entries)
    metrics = [METRICS[name] for name in of_kind("score") if grouped or not METRICS[name].within]
    return with_notes(
        study,
        Grid.from_records(
            f"{subject.label}: agreement with {labels_of(subject)}",
            (
                JUDGE_OF_RECORD,
                Column(
                    "rows",
                    about="rows with a verdict and a label",
                    of=lambda entry: getattr(entry.agreement, "n", None),
                ),
                *(
                    Column(
                        metric.short,
                        best="high",
                        about=f"mean over groups of {MEASURES[metric.coefficient]} within each"
                        if metric.within
                        else f"{metric.title} over all rows",
                        of=partial(measure_of, name=metric.name),
                    )
                    for metric in metrics
                ),
                *(groups(_agreement_of) if grouped else ()),
            ),
            entries,
            notes=[
                note
                for entry in entries
                if entry.agreement is not None
                for note in left_out_note(entry.agreement.left_out, entry.judge)
            ],
        ),
    )


def gains(study: Study, metric: str | None) -> Iterator[Grid]:
    """Tabulate for each dataset the gain of each judge over the base, in points and in percent."""
    for data, subjects in by_data(study).items():
        base, measure = study.bases.get(subjects[0].label), main_measure(subjects[0], metric)
        judges = [judge for judge in judges_on(study, data) if judge.label != base]
        gain_of = {
            subject.aspect or subject.label: _on(study, subject, partial(_gain, measure))
            for subject in subjects
        }
        if len(subjects) > 1:
            # First, as on the leaderboard.
            gain_of = {"average": partial(_average_gain, study, subjects, measure), **gain_of}
        grid = with_notes(
            study,
            Grid.from_records(
                f"{subjects[0].data}: {MEASURES[measure]}, gain over {base}, each judge on its own rows",
                (
                    JUDGE,
                    *(
                        column
                        for name, of in gain_of.items()
                        for column in columns_of(Gain, of, names={"absolute": name, "relative": f"{name} %"})
                    ),
                ),
                judges,
                notes=[
                    "computed on all rows of each judge; the comparison uses the rows that both judges have"
                ],
            ),
            str(base),
        )
        if base is not None and any(cell is not None for row in grid.rows for cell in row[1:]):
            yield grid


def _gain(measure: str, of: LeaderboardEntry | Average) -> Gain | None:
    return of.gains.get(measure)


def _average_gain(
    study: Study, subjects: Sequence[EvaluationTarget], measure: str, judge: Judge
) -> Gain | None:
    average = average_of(study, judge, subjects)
    return None if average is None else _gain(measure, average)


def repeats(study: Study) -> Iterator[Grid]:
    """Tabulate mean and standard deviation of each measure over repeats (ChatEval, table 1; DEBATE, E.1)."""
    spreads = [
        (entry, name, spread)
        for entry in study.leaderboard.standings
        for name, spread in entry.repeats.items()
        if len(spread.values) > 1
    ]
    if spreads:
        yield with_notes(
            study,
            Grid.from_records(
                "Variation over repeats",
                (
                    text_column("judge", of=lambda row: row[0].judge),
                    text_column("aspect", of=lambda row: row[0].subject),
                    text_column("measure", of=lambda row: MEASURES[row[1]]),
                    Column("mean", of=lambda row: row[2].mean),
                    Column("sd", about="sample standard deviation", of=lambda row: row[2].sd),
                    text_column(
                        "each repeat",
                        of=lambda row: ", ".join(figure(value, _REPEAT) for value in row[2].values),
                    ),
                ),
                spreads,
            ),
        )


_REPEAT = Column("each repeat")
