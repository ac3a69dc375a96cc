"""Make tables of agreement: the leaderboard, all correlations, gains over the base, variation over repeats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..analysis import Average, EvaluationTarget, Judge, LeaderboardEntry, Study
from ..statistics.metrics import METRICS
from ..statistics.resampling import Statistic
from ..tables import CellValue, Column, Grid, text_column
from .labels import (
    MEASURES,
    SHORT,
    by_data,
    config_notes,
    interval_note,
    judges_on,
    labels_of,
    main_measure,
    measure_of,
)

CALLS = Column("calls", digits=1, best="low", about="model calls per judgement")
COST = Column("cost", form="money", best="low", about="US dollars per judgement")
JUDGED = Column("judged", about="verdicts")
FAILED = Column("failed", about="judgements without a verdict")


def leaderboards(study: Study, metric: str | None) -> Iterator[Grid]:
    """Tabulate for each dataset the judges, ranked by their agreement with the labels."""
    for data, subjects in by_data(study).items():
        judges = judges_on(study, data)
        if subjects[0].kind == "compare":
            yield _preference_board(study, subjects[0], judges, metric)
        else:
            yield _score_board(study, subjects, judges, metric)


def best_first(study: Study, subjects: Sequence[EvaluationTarget], metric: str | None) -> list[Judge]:
    """Return the judges of a dataset in the order of the leaderboard.

    Of judges with equal agreement the one with fewer calls comes first; judges without a value come last.
    """
    judges = judges_on(study, (subjects[0].data, subjects[0].digest))

    def rank(judge: Judge) -> tuple[bool, float, float]:
        found = overall(study, judge, subjects, metric)
        value = None if found is None else found.value
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
        (a for a in study.leaderboard.averages if a.judge == judge.label and set(a.subjects) == names),
        None,
    )


def _score_board(
    study: Study, subjects: list[EvaluationTarget], judges: list[Judge], metric: str | None
) -> Grid:
    several, measure = len(subjects) > 1, main_measure(subjects[0], metric)
    ranked = best_first(study, subjects, metric)
    rows = []
    for judge in ranked:
        standings = [study.leaderboard.standing(judge.label, subject.label) for subject in subjects]
        figures: list[CellValue] = [measure_of(standing, measure) for standing in standings]
        average: list[CellValue] = [overall(study, judge, subjects, metric)] if several else []
        rows.append((judge.label, *average, *figures, *_usage(judge)))
    return Grid(
        title=f"{subjects[0].data}: {MEASURES[measure]} with {labels_of(subjects[0])}{_over(measure)}",
        columns=(
            text_column("judge"),
            *([Column("average", best="high", about="mean over the aspects")] if several else []),
            *(
                # With several aspects only the average shows its interval: one in each column would be too wide.
                Column(subject.aspect or subject.label, best="high", interval=not several)
                for subject in subjects
            ),
            *(JUDGED, FAILED, CALLS, COST),
        ),
        rows=tuple(rows),
        notes=notes_of(study, judges, [measure]),
    )


def _over(measure: str) -> str:
    return "" if METRICS[measure].within else ", over rows"


def _preference_board(
    study: Study, subject: EvaluationTarget, judges: list[Judge], metric: str | None
) -> Grid:
    rows = []
    # A judge that did not judge the subject has no entry, and an entry may lack an agreement: the cells stay empty.
    for judge in best_first(study, [subject], metric):
        standing = study.leaderboard.standing(judge.label, subject.label)
        rows.append(
            (
                judge.label,
                measure_of(standing, "accuracy"),
                measure_of(standing, "kappa"),
                getattr(standing and standing.agreement, "n", None),
                getattr(standing and standing.agreement, "ties", None),
                *_usage(judge),
            )
        )
    return Grid(
        title=f"{subject.data}: agreement with {labels_of(subject)}",
        columns=(
            text_column("judge"),
            *(Column("accuracy", best="high"), Column("kappa", best="high", about="Cohen's kappa")),
            *(
                Column("rows", about="rows with a verdict and a label"),
                Column("ties", about="verdicts of a tie"),
            ),
            *(JUDGED, FAILED, CALLS, COST),
        ),
        rows=tuple(rows),
        notes=(str(subject.rule), *notes_of(study, judges, ["accuracy"])),
    )


def _usage(judge: Judge) -> tuple[CellValue, ...]:
    return judge.judged, judge.failed, judge.usage.calls_each, judge.usage.cost_each


def notes_of(study: Study, judges: Iterable[Judge], measures: Iterable[str] = ()) -> tuple[str, ...]:
    """Write the notes on intervals, if there are measures with intervals, and on configurations."""
    some = [interval_note(study)] if any(True for _ in measures) else []
    return (*some, *config_notes(study, (each.label for each in judges)))


def agreements(study: Study) -> Iterator[Grid]:
    """Tabulate all correlations, over rows and within groups, for each aspect with scores."""
    for subject in study.subjects:
        standings = [s for s in study.leaderboard.standings if s.subject == subject.label]
        if subject.kind == "score" and standings:
            yield _agreement(study, subject, standings)


def _agreement(study: Study, subject: EvaluationTarget, standings: list[LeaderboardEntry]) -> Grid:
    grouped = any("group_spearman" in standing.measures for standing in standings)
    names = ["pearson", "spearman", "kendall"]
    within = [f"group_{name}" for name in names] if grouped else []
    rows = []
    for standing in standings:
        groups: tuple[CellValue, ...] = _groups(standing) if grouped else ()
        rows.append(
            (
                standing.judge,
                getattr(standing.agreement, "n", None),
                *(standing.measures.get(name) for name in names),
                *(standing.measures.get(name) for name in within),
                *groups,
            )
        )
    return Grid(
        title=f"{subject.label}: agreement with {labels_of(subject)}",
        columns=(
            text_column("judge"),
            Column("rows", about="rows with a verdict and a label"),
            *(Column(SHORT[name], best="high", about=f"{MEASURES[name]} over all rows") for name in names),
            *(
                Column(
                    SHORT[name],
                    best="high",
                    about=f"mean over groups of {MEASURES[METRICS[name].coefficient]} within each",
                )
                for name in within
            ),
            *(
                [Column("groups"), Column("skipped", about="groups in which either side is constant")]
                if grouped
                else []
            ),
        ),
        rows=tuple(rows),
        notes=(
            interval_note(study),
            *left_out(standings),
            *config_notes(study, (s.judge for s in standings)),
        ),
    )


def _groups(standing: LeaderboardEntry) -> tuple[CellValue, CellValue]:
    within = getattr(standing.agreement, "per_group", None) or {}
    one = next(iter(within.values()), None)
    return getattr(one, "groups", None), getattr(one, "skipped", None)


def left_out(standings: Iterable[LeaderboardEntry]) -> Iterator[str]:
    """Say why rows were left out, in a line for each judge that has some."""
    for standing in standings:
        reasons = getattr(standing.agreement, "left_out", None)
        told = [f"{count:,} {reason}" for reason, count in reasons.items() if count] if reasons else []
        if told:
            yield f"{standing.judge}: left out {', '.join(told)}"


def gains(study: Study, metric: str | None) -> Iterator[Grid]:
    """Tabulate for each dataset the gain of each judge over the base, in points and in percent."""
    for data, subjects in by_data(study).items():
        base = study.bases.get(subjects[0].label)
        judges = [each for each in judges_on(study, data) if each.label != base]
        measure = main_measure(subjects[0], metric)
        rows = []
        for judge in judges:
            of_subjects = [study.leaderboard.standing(judge.label, subject.label) for subject in subjects]
            found = [None if one is None else one.gains.get(measure) for one in of_subjects]
            if len(subjects) > 1:
                average = average_of(study, judge, subjects)
                # First, as in the headings below and on the leaderboard.
                found.insert(0, None if average is None else average.gains.get(measure))
            cells = [(None, None) if one is None else (one.absolute, one.relative) for one in found]
            rows.append((judge.label, *(cell for pair in cells for cell in pair)))
        if base is None or not any(cell is not None for row in rows for cell in row[1:]):
            continue
        names = [
            *(["average"] if len(subjects) > 1 else []),
            *(subject.aspect or subject.label for subject in subjects),
        ]
        yield Grid(
            title=f"{subjects[0].data}: {MEASURES[measure]}, gain over {base}, each judge on its own rows",
            columns=(
                text_column("judge"),
                *(
                    column
                    for name in names
                    for column in (
                        Column(name, best="high", about="the judge's value minus the base's"),
                        Column(
                            f"{name} %",
                            form="percent",
                            digits=0,
                            about="the same, as a share of the base's value",
                        ),
                    )
                ),
            ),
            rows=tuple(rows),
            notes=(
                "computed on all rows of each judge; the comparison uses the rows that both judges have",
                *config_notes(study, [base, *(each.label for each in judges)]),
            ),
        )


def repeats(study: Study) -> Iterator[Grid]:
    """Tabulate mean and standard deviation of each measure over repeats (ChatEval, table 1; DEBATE, E.1)."""
    rows: list[tuple[CellValue, ...]] = []
    for standing in study.leaderboard.standings:
        for name, found in standing.repeats.items():
            if len(found.values) > 1:
                each = ", ".join("-" if value is None else f"{value:.3f}" for value in found.values)
                rows.append((standing.judge, standing.subject, MEASURES[name], found.mean, found.sd, each))
    if rows:
        yield Grid(
            "Variation over repeats",
            (
                *(text_column("judge"), text_column("aspect"), text_column("measure")),
                *(
                    Column("mean"),
                    Column("sd", about="sample standard deviation"),
                    text_column("each repeat"),
                ),
            ),
            tuple(rows),
            config_notes(study, (str(row[0]) for row in rows)),
        )
