"""The leaderboard, and each subject's agreement in full, as tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..analysis import Average, EvaluationTarget, Judge, LeaderboardEntry, Study
from ..statistics.resampling import Statistic
from ..tables import CellValue, Column, Grid, text_column
from .labels import (
    LABELS,
    MEASURES,
    SHORT,
    by_data,
    interval_note,
    judges_on,
    main_measure,
    measure_of,
    signatures,
)

CALLS = Column("calls", digits=1, best="low", about="model calls a judgement")
COST = Column("cost", form="money", best="low", about="US dollars a judgement")
JUDGED = Column("judged", about="verdicts")
FAILED = Column("failed", about="judgements without a verdict")


def leaderboards(study: Study, metric: str) -> Iterator[Grid]:
    """For each dataset, who agrees best with people, the best first."""
    for data, subjects in by_data(study).items():
        judges = judges_on(study, data)
        if subjects[0].kind == "compare":
            yield _preference_board(study, subjects[0], judges)
        else:
            yield _score_board(study, subjects, judges, metric)


def best_first(study: Study, subjects: Sequence[EvaluationTarget], metric: str) -> list[Judge]:
    """The contenders on a dataset's subjects in the order of the leaderboard.

    Of equal ones the one with fewer calls comes first; who has no figure comes last.
    """
    judges = judges_on(study, (subjects[0].data, subjects[0].digest))

    def rank(judge: Judge) -> tuple[bool, float, float]:
        found = overall(study, judge, subjects, metric)
        value = None if found is None else found.value
        return value is None, -round(value or 0.0, 9), judge.usage.calls_each or 0.0

    return sorted(judges, key=rank)


def overall(
    study: Study, judge: Judge, subjects: Sequence[EvaluationTarget], metric: str
) -> Statistic | None:
    """What contenders on a dataset are ordered by: the only subject's figure, or the average over all."""
    if len(subjects) == 1:
        standing = study.leaderboard.standing(judge.label, subjects[0].label)
        return measure_of(standing, main_measure(subjects[0], metric))
    average = average_of(study, judge, subjects)
    return None if average is None else average.measures.get(metric)


def average_of(study: Study, judge: Judge, subjects: Sequence[EvaluationTarget]) -> Average | None:
    """A contender's average over all of a dataset's subjects; none where it did not judge them all."""
    names = {subject.label for subject in subjects}
    return next(
        (a for a in study.leaderboard.averages if a.judge == judge.label and set(a.subjects) == names),
        None,
    )


def _score_board(study: Study, subjects: list[EvaluationTarget], judges: list[Judge], metric: str) -> Grid:
    several = len(subjects) > 1
    ranked = best_first(study, subjects, metric)
    rows = []
    for judge in ranked:
        standings = [study.leaderboard.standing(judge.label, subject.label) for subject in subjects]
        figures: list[CellValue] = [measure_of(standing, metric) for standing in standings]
        average: list[CellValue] = [overall(study, judge, subjects, metric)] if several else []
        rows.append((judge.label, *average, *figures, *_taken(judge)))
    return Grid(
        title=f"{subjects[0].data}: {MEASURES[metric]} with {LABELS[subjects[0].labels]}, over rows",
        columns=(
            text_column("judge"),
            *([Column("average", best="high", about="mean over the aspects")] if several else []),
            *(
                Column(subject.aspect or subject.label, best="high", interval=not several)
                for subject in subjects
            ),
            *(JUDGED, FAILED, CALLS, COST),
        ),
        rows=tuple(rows),
        notes=notes_of(study, judges, ["accuracy" if subjects[0].kind == "compare" else metric]),
    )


def _preference_board(study: Study, subject: EvaluationTarget, judges: list[Judge]) -> Grid:
    rows = []
    for judge in best_first(study, [subject], "accuracy"):
        standing = study.leaderboard.standing(judge.label, subject.label)
        rows.append(
            (
                judge.label,
                measure_of(standing, "accuracy"),
                measure_of(standing, "kappa"),
                getattr(standing and standing.agreement, "n", None),
                getattr(standing and standing.agreement, "ties", None),
                *_taken(judge),
            )
        )
    return Grid(
        title=f"{subject.data}: which answer is better, with {LABELS[subject.labels]}",
        columns=(
            text_column("judge"),
            *(Column("accuracy", best="high"), Column("kappa", best="high", about="Cohen's kappa")),
            *(Column("rows", about="that have a verdict and a label"), Column("judge's ties")),
            *(JUDGED, FAILED, CALLS, COST),
        ),
        rows=tuple(rows),
        notes=(str(subject.rule), *notes_of(study, judges, ["accuracy"])),
    )


def _taken(judge: Judge) -> tuple[CellValue, ...]:
    return judge.judged, judge.failed, judge.usage.calls_each, judge.usage.cost_each


def notes_of(study: Study, judges: Iterable[Judge], measures: Iterable[str] = ()) -> tuple[str, ...]:
    """How the figures of a table were made, and who is in it."""
    some = [interval_note(study)] if any(True for _ in measures) else []
    return (*some, *signatures(study, (each.label for each in judges)))


def agreements(study: Study) -> Iterator[Grid]:
    """For each score subject: all correlations, over rows and within groups."""
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
        title=f"{subject.label}: agreement with {LABELS[subject.labels]}",
        columns=(
            text_column("judge"),
            Column("rows", about="that have a verdict and a label"),
            *(Column(SHORT[name], best="high", about=f"{MEASURES[name]} over all rows") for name in names),
            *(
                Column(
                    f"{SHORT[name.removeprefix('group_')]} within",
                    best="high",
                    about=f"mean over groups of {MEASURES[name.removeprefix('group_')]} within each",
                )
                for name in within
            ),
            *(
                [Column("groups"), Column("skipped", about="groups where either side is constant")]
                if grouped
                else []
            ),
        ),
        rows=tuple(rows),
        notes=(
            interval_note(study),
            *left_out(standings),
            *signatures(study, (s.judge for s in standings)),
        ),
    )


def _groups(standing: LeaderboardEntry) -> tuple[CellValue, CellValue]:
    within = getattr(standing.agreement, "per_group", None) or {}
    one = next(iter(within.values()), None)
    return getattr(one, "groups", None), getattr(one, "skipped", None)


def left_out(standings: Iterable[LeaderboardEntry]) -> Iterator[str]:
    """Why rows did not count, a line a judge that has some."""
    for standing in standings:
        reasons = getattr(standing.agreement, "left_out", None)
        told = [f"{count:,} {reason}" for reason, count in reasons.items() if count] if reasons else []
        if told:
            yield f"{standing.judge}: left out {', '.join(told)}"


def gains(study: Study, metric: str) -> Iterator[Grid]:
    """For each dataset, what each judge gains over the base: on each aspect, and on average."""
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
            title=f"{subjects[0].data}: gain over {base} in {MEASURES[measure]}",
            columns=(
                text_column("judge"),
                *(
                    column
                    for name in names
                    for column in (
                        Column(name, best="high", about="its figure less the base's"),
                        Column(
                            f"{name} %", form="percent", digits=0, about="the same as a part of the base's"
                        ),
                    )
                ),
            ),
            rows=tuple(rows),
            notes=(
                "figures on each one's own rows; the comparison holds them against each other on the same rows",
                *signatures(study, [base, *(each.label for each in judges)]),
            ),
        )


def repeats(study: Study) -> Iterator[Grid]:
    """Figures over repeats of the same thing: mean and standard deviation (ChatEval, table 1; DEBATE, E.1)."""
    rows: list[tuple[CellValue, ...]] = []
    for standing in study.leaderboard.standings:
        for name, found in standing.repeats.items():
            if len(found.values) > 1:
                each = ", ".join("-" if value is None else f"{value:.3f}" for value in found.values)
                measure = MEASURES.get(name.removeprefix("group_"), name)
                of = f"{measure} within groups" if name.startswith("group_") else measure
                rows.append((standing.judge, standing.subject, of, found.mean, found.deviation, each))
    if rows:
        yield Grid(
            "Over repeats",
            (
                *(text_column("judge"), text_column("of"), text_column("measure")),
                *(
                    Column("mean"),
                    Column("deviation", about="sample standard deviation"),
                    text_column("each repeat"),
                ),
            ),
            tuple(rows),
            signatures(study, (str(row[0]) for row in rows)),
        )
