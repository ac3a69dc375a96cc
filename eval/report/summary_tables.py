"""The tables that fit a mind: who is first, who is really ahead, what the money buys, and what the debates did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ..analysis import Difference, EqualCostMatch, EvaluationTarget, Study
from ..tables import CellValue, Column, Grid, text_column
from ..tables.grid import written
from .comparison_tables import costs
from .headline import LEVEL
from .labels import INTERVAL, MEASURES, SIGNED, by_data, judges_on, main_measure
from .leaderboard_tables import leaderboards

_APART = Column("difference")
MARK = "*"


def summary(study: Study, metric: str) -> Iterator[Grid]:
    """Five kinds of tables, without the notes that are the same under each."""
    for grid in (
        *leaderboards(study, metric),
        *against_base(study, metric),
        *at_the_same_price(study),
        costs(study),
        *what_debates_did(study),
    ):
        if any(cell is not None for row in grid.rows for cell in row[1:]):
            yield without_marks(grid)


def without_marks(grid: Grid) -> Grid:
    """The same table without the notes that say who was run and how intervals were made: these are said once."""
    return replace(grid, notes=tuple(note for note in grid.notes if not note.startswith((SIGNED, INTERVAL))))


def against_base(study: Study, metric: str) -> Iterator[Grid]:
    """For each dataset a row a judge, a column an aspect: its figure less the base's on the same rows."""
    for data, subjects in by_data(study).items():
        base = study.bases.get(subjects[0].label)
        judges = [each for each in judges_on(study, data) if each.label != base]
        if base is None or not judges:
            continue
        columns = list(_compared(study, subjects, base, metric))
        rows = tuple(
            (judge.label, *(_apart(found.get(judge.label)) for _, found in columns)) for judge in judges
        )
        yield Grid(
            title=f"{subjects[0].data}: {_measured(subjects, metric)} less that of {base}, on the same rows",
            columns=(
                text_column("judge"),
                *(Column(name, about=f"less that of {base}; {MARK} {_SURE}") for name, _ in columns),
            ),
            rows=rows,
            notes=(_marks(rows),),
        )


_SURE = f"p < {LEVEL:g} by the paired bootstrap, adjusted by Holm's method over the judges in a column"


def _marks(rows: Sequence[Sequence[CellValue]]) -> str:
    """What the mark means, or that there is none."""
    found = any(isinstance(cell, str) and MARK in cell for row in rows for cell in row[1:])
    return f"{MARK} {_SURE}" if found else f"no difference has {_SURE}"


def _measured(subjects: Sequence[EvaluationTarget], metric: str) -> str:
    return "agreement" if subjects[0].kind == "compare" else MEASURES[main_measure(subjects[0], metric)]


def _compared(
    study: Study, subjects: Sequence[EvaluationTarget], base: str, metric: str
) -> Iterator[tuple[str, Mapping[str, Difference]]]:
    """Columns: what each is called, and of each judge the difference to the base."""
    if averages := {
        one.first: one.differences[metric]
        for one in study.comparison.averages
        if one.digest == subjects[0].digest and one.second == base and metric in one.differences
    }:
        yield "average", averages
    for subject in subjects:
        for measure in ("accuracy", "kappa") if subject.kind == "compare" else (metric,):
            found = {
                pair.first: pair.differences[measure]
                for pair in study.comparison.pairwise
                if pair.subject == subject.label and pair.second == base and measure in pair.differences
            }
            yield (measure if subject.kind == "compare" else subject.aspect or subject.label), found


def _apart(found: Difference | None) -> CellValue:
    if found is None or found.difference.value is None:
        return None
    return _marked(found.difference.value, found.adjusted_to_base)


def _marked(value: float, p: float | None, more: str = "") -> str:
    sure = p is not None and p < LEVEL
    return f"{written(value, _APART).text}{MARK if sure else ''}{more}"


def at_the_same_price(study: Study) -> Iterator[Grid]:
    """For each dataset a row a judge, a column an aspect: its figure less that of an ensemble that costs no more."""
    for data, subjects in by_data(study).items():
        labels = {subject.label for subject in subjects}
        matches = {(one.judge, one.subject): one for one in study.matching.matches if one.subject in labels}
        judges = [each for each in judges_on(study, data) if any(each.label == name for name, _ in matches)]
        if not judges:
            continue
        one = next(iter(matches.values()))
        rows = tuple(
            (judge.label, *(_match(matches.get((judge.label, subject.label))) for subject in subjects))
            for judge in judges
        )
        yield Grid(
            title=f"{subjects[0].data}: {MEASURES[one.ensemble.measure]} less that of an ensemble at the same price",
            columns=(
                text_column("judge"),
                *(
                    Column(subject.aspect or MEASURES[one.ensemble.measure], about=_LESS_ENSEMBLE)
                    for subject in subjects
                ),
            ),
            rows=rows,
            notes=(f"(k): {_LESS_ENSEMBLE}", _marks(rows)),
        )


_LESS_ENSEMBLE = "less the largest ensemble of k single judges that costs no more"


def _match(found: EqualCostMatch | None) -> CellValue:
    difference = found and found.pairwise.differences.get(found.ensemble.measure)
    if not found or not difference or difference.difference.value is None:
        return None
    return _marked(difference.difference.value, difference.adjusted, f" ({found.ensemble.k})")


def what_debates_did(study: Study) -> Iterator[Grid]:
    """A row a judge and aspect in which somebody talked."""
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
        title="What the debates did",
        columns=(
            *(text_column("judge"), *([text_column("of")] if several else [])),
            Column("changed", form="percent", digits=0, about="verdicts that are not the first one"),
            Column("helpful", about="changes that ended nearer to people"),
            Column("harmful", about="changes that ended farther from people"),
            Column("p", form="p", about="sign test of helpful against harmful"),
            *(Column("rounds", digits=2), Column("calls", digits=2)),
            Column("unresolved", form="percent", digits=0, about="ended since the rounds were used up"),
        ),
        rows=tuple(rows),
        notes=(
            "helpful: verdicts that talking brought nearer to people, harmful: took away from them; "
            "p of the sign test, not adjusted",
        ),
    )
