"""Make the tables to read first: leaderboard, difference to the base, equal-cost baseline, cost, diagnostics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

from ..analysis import Study
from ..analysis.comparison import AverageComparison, Difference, PairwiseComparison
from ..analysis.diagnostics import Changes, Spending
from ..analysis.judges import Judge
from ..statistics.significance import LEVEL
from ..tables.grid import CellValue, Column, Grid, columns_of
from .comparison_tables import costs
from .debate_tables import whose
from .labels import CONFIG, INTERVAL, MEASURES
from .leaderboard_tables import JUDGE, leaderboards
from .ranked_dataset import ranked_datasets, value

Cells = Mapping[str, CellValue]
"""The cells of a column, by the judge's label."""

MARK = "*"
_SIGNIFICANT = f"p < {LEVEL:g}, paired, Holm-adjusted over the judges in a column"
_BASELINE = "size of the largest ensemble of single judges that costs no more (compute-matched)"


def summary(study: Study, metric: str | None) -> Iterator[Grid]:
    """Make five kinds of tables, without the notes that would be the same below each."""
    for grid in (
        *leaderboards(study, metric),
        *against_base(study, metric),
        *equal_cost(study),
        costs(study),
        *debate_diagnostics(study),
    ):
        if grid.has_values:
            yield grid


def without_config(grid: Grid) -> Grid:
    """Return a table without the notes on configurations and intervals, which the terminal prints once."""
    return replace(grid, notes=tuple(note for note in grid.notes if not note.startswith((CONFIG, INTERVAL))))


def against_base(study: Study, metric: str | None) -> Iterator[Grid]:
    """Tabulate for each dataset each judge's difference to the base on the same rows, a column for each aspect."""
    for dataset in ranked_datasets(study, metric):
        base = dataset.base
        judges = [judge for judge in dataset.judges if judge.label != base]
        if base is None or not judges:
            continue
        measured = "agreement" if dataset.compares else MEASURES[dataset.measure]
        averages = [pair for pair in study.comparison.averages if pair.digest == dataset.subjects[0].digest]
        average = _to_base(averages, base, dataset.measure)
        columns = {"average": average} if average else {}
        for subject in dataset.subjects:
            pairwise = [pair for pair in study.comparison.pairwise if pair.subject == subject.label]
            for measure in ("accuracy", "kappa") if dataset.compares else (dataset.measure,):
                name = measure if dataset.compares else subject.aspect or subject.label
                columns[name] = _to_base(pairwise, base, measure)
        about = f"difference vs. {base}; {MARK} {_SIGNIFICANT}"
        title = f"{dataset.name}: {measured}, difference vs. {base} (Δ), same rows"
        yield _with_marks(study, title, columns, judges, about)


def _to_base(pairwise: Sequence[PairwiseComparison | AverageComparison], base: str, measure: str) -> Cells:
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
    for dataset in ranked_datasets(study, None):
        measure = dataset.measure
        columns = {
            subject.aspect or MEASURES[measure]: {
                match.judge: _marked(difference, difference.adjusted, f" (k={match.ensemble.k})")
                for match in study.matching.matches
                if match.subject == subject.label
                and (difference := match.pairwise.differences.get(measure)) is not None
            }
            for subject in dataset.subjects
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


def debate_diagnostics(study: Study) -> Iterator[Grid]:
    """Tabulate changed verdicts, rounds and calls, a row for each judge and aspect with a debate."""
    debates = [diagnosis for diagnosis in study.diagnoses if diagnosis.changes is not None]
    changes = columns_of(Changes, attrgetter("changes"), only=("moved", "helpful", "harmful", "p"))
    spending = columns_of(Spending, attrgetter("spending"), only=("mean_rounds", "mean_calls", "unresolved"))
    ways = "helpful: verdicts that the debate moved towards the label, harmful: away from it"
    tested = "p: sign test, not adjusted; none where rows share a group or an item"
    columns, notes = (*whose(study.diagnoses), *changes, *spending), [f"{ways}; {tested}"]
    yield Grid.from_records("Debate diagnostics", columns, debates, notes).without_intervals()
