"""Make the tables to read first: leaderboard, difference to the base, equal-cost baseline, cost, diagnostics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ..analysis import Difference, EqualCostMatch, EvaluationTarget, Study
from ..tables import CellValue, Column, Grid, text_column
from ..tables.grid import written
from .comparison_tables import costs
from .headline import LEVEL
from .labels import CONFIG, INTERVAL, MEASURES, by_data, judges_on, main_measure
from .leaderboard_tables import leaderboards

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
        judges = [each for each in judges_on(study, data) if each.label != base]
        if base is None or not judges:
            continue
        columns = list(_compared(study, subjects, base, metric))
        rows = tuple(
            (judge.label, *(_difference(found.get(judge.label)) for _, found in columns)) for judge in judges
        )
        yield Grid(
            title=f"{subjects[0].data}: {_measured(subjects, metric)}, difference vs. {base} (Δ), same rows",
            columns=(
                text_column("judge"),
                *(Column(name, about=f"difference vs. {base}; {MARK} {_SIGNIFICANT}") for name, _ in columns),
            ),
            rows=rows,
            notes=(_marks(rows), *study.comparison.caution),
        )


_SIGNIFICANT = f"p < {LEVEL:g}, paired, Holm-adjusted over the judges in a column"


def _marks(rows: Sequence[Sequence[CellValue]]) -> str:
    """Write the note that says what the mark means, or that no difference has it."""
    found = any(isinstance(cell, str) and MARK in cell for row in rows for cell in row[1:])
    return f"{MARK} {_SIGNIFICANT}" if found else f"no difference is significant ({_SIGNIFICANT})"


def _measured(subjects: Sequence[EvaluationTarget], metric: str | None) -> str:
    return "agreement" if subjects[0].kind == "compare" else MEASURES[main_measure(subjects[0], metric)]


def _compared(
    study: Study, subjects: Sequence[EvaluationTarget], base: str, metric: str | None
) -> Iterator[tuple[str, Mapping[str, Difference]]]:
    """Yield the columns: the name of each, and the difference of each judge to the base."""
    leading = main_measure(subjects[0], metric)
    if averages := {
        one.first: one.differences[leading]
        for one in study.comparison.averages
        if one.digest == subjects[0].digest and one.second == base and leading in one.differences
    }:
        yield "average", averages
    for subject in subjects:
        for measure in ("accuracy", "kappa") if subject.kind == "compare" else (leading,):
            found = {
                pair.first: pair.differences[measure]
                for pair in study.comparison.pairwise
                if pair.subject == subject.label and pair.second == base and measure in pair.differences
            }
            yield (measure if subject.kind == "compare" else subject.aspect or subject.label), found


def _difference(found: Difference | None) -> CellValue:
    if found is None or found.difference.value is None:
        return None
    return _marked(found.difference.value, found.adjusted_to_base)


def _marked(value: float, p: float | None, more: str = "") -> str:
    sure = p is not None and p < LEVEL
    return f"{written(value, _DELTA).text}{MARK if sure else ''}{more}"


def equal_cost(study: Study) -> Iterator[Grid]:
    """Tabulate for each dataset each judge's difference to the equal-cost baseline, a column for each aspect."""
    for data, subjects in by_data(study).items():
        labels = {subject.label for subject in subjects}
        matches = {(one.judge, one.subject): one for one in study.matching.matches if one.subject in labels}
        judges = [each for each in judges_on(study, data) if any(each.label == name for name, _ in matches)]
        if not judges:
            continue
        # Subjects of one dataset are of one kind, so all matches have the same measure.
        one = next(iter(matches.values()))
        rows = tuple(
            (judge.label, *(_match(matches.get((judge.label, subject.label))) for subject in subjects))
            for judge in judges
        )
        yield Grid(
            title=f"{subjects[0].data}: {MEASURES[one.ensemble.measure]}, difference vs. equal-cost baseline (Δ)",
            columns=(
                text_column("judge"),
                *(
                    Column(
                        subject.aspect or MEASURES[one.ensemble.measure],
                        about=f"difference vs. an ensemble of k single judges; k: {_BASELINE}",
                    )
                    for subject in subjects
                ),
            ),
            rows=rows,
            notes=(f"k: {_BASELINE}", _marks(rows), *study.comparison.caution),
        )


_BASELINE = "size of the largest ensemble of single judges that costs no more (compute-matched)"


def _match(found: EqualCostMatch | None) -> CellValue:
    difference = found and found.pairwise.differences.get(found.ensemble.measure)
    if not found or not difference or difference.difference.value is None:
        return None
    return _marked(difference.difference.value, difference.adjusted, f" (k={found.ensemble.k})")


def debate_diagnostics(study: Study) -> Iterator[Grid]:
    """Tabulate changed verdicts, rounds and calls, a row for each judge and aspect with a debate."""
    several = len({each.subject for each in study.diagnoses}) > 1
    rows = []
    for each in study.diagnoses:
        if (found := each.changes) is not None:
            spent = each.spending
            rows.append(
                (
                    *(each.judge, *([each.subject] if several else [])),
                    *(found.moved.value, found.helpful, found.harmful, found.p),
                    *(spent.mean_rounds, spent.mean_calls, spent.unresolved),
                )
            )
    yield Grid(
        title="Debate diagnostics",
        columns=(
            *(text_column("judge"), *([text_column("aspect")] if several else [])),
            Column(
                "changed", form="percent", digits=0, about="final verdicts that differ from the first one"
            ),
            Column("helpful", about="changes towards the label"),
            Column("harmful", about="changes away from the label"),
            Column("p", form="p", about="sign test of helpful against harmful"),
            *(Column("rounds", digits=2), Column("calls", digits=2)),
            Column("unresolved", form="percent", digits=0, about="stopped by the round limit"),
        ),
        rows=tuple(rows),
        notes=(
            "helpful: verdicts that the debate moved towards the label, harmful: away from it; "
            "p: sign test, not adjusted",
        ),
    )
