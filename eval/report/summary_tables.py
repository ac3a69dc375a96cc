"""Make the tables to read first: leaderboard, difference to the base, equal-cost baseline, cost, diagnostics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from ..analysis import Changes, Difference, EqualCostMatch, EvaluationTarget, Judge, Spending, Study
from ..statistics.significance import LEVEL
from ..tables import CellValue, Column, Grid, columns_of
from ..tables.grid import figure
from .comparison_tables import costs
from .debate_tables import whose
from .labels import CONFIG, INTERVAL, MEASURES, by_data, judges_on, main_measure
from .leaderboard_tables import JUDGE, leaderboards

_DELTA = Column("difference")
MARK = "*"


def summary(study: Study, metric: str | None) -> Iterator[Grid]:
    """Make five kinds of tables, without the notes that would be the same below each."""
    for grid in (
        *leaderboards(study, metric),
        *against_base(study, metric),
        *equal_cost(study),
        costs(study),
        *debate_diagnostics(study),
    ):
        if any(cell is not None for row in grid.rows for cell in row[1:]):
            yield without_config(grid)


def without_config(grid: Grid) -> Grid:
    """Return a table without the notes on configurations and intervals, which the terminal prints once."""
    return replace(grid, notes=tuple(note for note in grid.notes if not note.startswith((CONFIG, INTERVAL))))


def against_base(study: Study, metric: str | None) -> Iterator[Grid]:
    """Tabulate for each dataset each judge's difference to the base on the same rows, a column for each aspect."""
    for data, subjects in by_data(study).items():
        base = study.bases.get(subjects[0].label)
        judges = [judge for judge in judges_on(study, data) if judge.label != base]
        if base is None or not judges:
            continue
        kind, measure = subjects[0].kind, main_measure(subjects[0], metric)
        measured = "agreement" if kind == "compare" else MEASURES[measure]
        yield _with_marks(
            study,
            Grid.from_records(
                f"{subjects[0].data}: {measured}, difference vs. {base} (Δ), same rows",
                (
                    JUDGE,
                    *(
                        Column(
                            name,
                            about=f"difference vs. {base}; {MARK} {_SIGNIFICANT}",
                            of=partial(_difference, differences),
                        )
                        for name, differences in _compared(study, subjects, base, measure)
                    ),
                ),
                judges,
            ),
        )


_SIGNIFICANT = f"p < {LEVEL:g}, paired, Holm-adjusted over the judges in a column"


def _with_marks(study: Study, grid: Grid) -> Grid:
    """Add the notes that say what the mark means, or that no difference has it, and which data is too little."""
    marked = any(isinstance(cell, str) and MARK in cell for row in grid.rows for cell in row[1:])
    note = f"{MARK} {_SIGNIFICANT}" if marked else f"no difference is significant ({_SIGNIFICANT})"
    return replace(grid, notes=(*grid.notes, note, *study.comparison.caution))


def _compared(
    study: Study, subjects: Sequence[EvaluationTarget], base: str, leading: str
) -> Iterator[tuple[str, Mapping[str, Difference]]]:
    """Yield the columns: the name of each, and the difference of each judge to the base."""
    if averages := {
        pair.first: pair.differences[leading]
        for pair in study.comparison.averages
        if pair.digest == subjects[0].digest and pair.second == base and leading in pair.differences
    }:
        yield "average", averages
    for subject in subjects:
        for measure in ("accuracy", "kappa") if subject.kind == "compare" else (leading,):
            differences = {
                pair.first: pair.differences[measure]
                for pair in study.comparison.pairwise
                if pair.subject == subject.label and pair.second == base and measure in pair.differences
            }
            yield (measure if subject.kind == "compare" else subject.aspect or subject.label), differences


def _difference(differences: Mapping[str, Difference], judge: Judge) -> CellValue:
    difference = differences.get(judge.label)
    return None if difference is None else _marked(difference, difference.adjusted_to_base)


def _marked(difference: Difference, p: float | None, more: str = "") -> CellValue:
    if difference.difference.value is None:
        return None
    mark = MARK if p is not None and p < LEVEL else ""
    return f"{figure(difference.difference.value, _DELTA)}{mark}{more}"


def equal_cost(study: Study) -> Iterator[Grid]:
    """Tabulate for each dataset each judge's difference to the equal-cost baseline, a column for each aspect."""
    for data, subjects in by_data(study).items():
        labels = {subject.label for subject in subjects}
        matches = {
            (match.judge, match.subject): match for match in study.matching.matches if match.subject in labels
        }
        judges = [
            judge for judge in judges_on(study, data) if any(judge.label == name for name, _ in matches)
        ]
        if not judges:
            continue
        # Subjects of one dataset are of one kind, so all matches have the same measure.
        measure = MEASURES[next(iter(matches.values())).ensemble.measure]
        yield _with_marks(
            study,
            Grid.from_records(
                f"{subjects[0].data}: {measure}, difference vs. equal-cost baseline (Δ)",
                (
                    JUDGE,
                    *(
                        Column(
                            subject.aspect or measure,
                            about=f"difference vs. an ensemble of k single judges; k: {_BASELINE}",
                            of=partial(_match, matches, subject.label),
                        )
                        for subject in subjects
                    ),
                ),
                judges,
                notes=[f"k: {_BASELINE}"],
            ),
        )


_BASELINE = "size of the largest ensemble of single judges that costs no more (compute-matched)"


def _match(matches: Mapping[tuple[str, str], EqualCostMatch], subject: str, judge: Judge) -> CellValue:
    match = matches.get((judge.label, subject))
    difference = match and match.pairwise.differences.get(match.ensemble.measure)
    if not match or not difference:
        return None
    return _marked(difference, difference.adjusted, f" (k={match.ensemble.k})")


def debate_diagnostics(study: Study) -> Iterator[Grid]:
    """Tabulate changed verdicts, rounds and calls, a row for each judge and aspect with a debate."""
    yield Grid.from_records(
        "Debate diagnostics",
        (
            *whose(study.diagnoses),
            *columns_of(
                Changes, lambda diagnosis: diagnosis.changes, only=("moved", "helpful", "harmful", "p")
            ),
            *columns_of(
                Spending,
                lambda diagnosis: diagnosis.spending,
                only=("mean_rounds", "mean_calls", "unresolved"),
            ),
        ),
        [diagnosis for diagnosis in study.diagnoses if diagnosis.changes is not None],
        notes=[
            "helpful: verdicts that the debate moved towards the label, harmful: away from it; "
            "p: sign test, not adjusted"
        ],
    ).without_intervals()
