"""The fair comparison, the comparison at equal cost, and what everybody costs, as tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ..analysis import EvaluationTarget, PairwiseComparison, Study
from ..tables import CellValue, Column, Grid, text_column
from .labels import MEASURES, interval_note, main_measure, signatures

_P = Column("p", form="p", about="two-sided, of the paired bootstrap")
_HOLM = Column("p (Holm)", form="p", about="the same, adjusted for the number of comparisons")
_TESTS = {
    "williams": "Williams",
    "steiger": "Steiger",
    "mcnemar": "McNemar",
    "t_errors": "t",
    "t_right": "t",
}


def comparisons(study: Study, metric: str, everybody: bool = False) -> Iterator[Grid]:
    """For each subject, every contender less the base on the rows that both judged; or all pairs."""
    for subject in study.subjects:
        pairwise = [pair for pair in study.comparison.pairwise if pair.subject == subject.label]
        base = study.bases.get(subject.label)
        if not everybody and base:
            pairwise = [pair for pair in pairwise if pair.second == base] or pairwise
        if pairwise:
            yield _comparison(study, subject, pairwise, metric, everybody)


def all_pairs(study: Study, metric: str) -> Iterator[Grid]:
    """The comparison of everybody with everybody, where that says more than the one with the base."""
    for grid in comparisons(study, metric, everybody=True):
        if len(grid.rows) > 1:
            yield replace(grid, title=f"{grid.title}, all pairs")


def _comparison(
    study: Study, subject: EvaluationTarget, pairwise: list[PairwiseComparison], metric: str, everybody: bool
) -> Grid:
    measure = main_measure(subject, metric)
    tests = {
        name: heading
        for test, heading in _TESTS.items()
        for name in (test, f"{test}_{metric}")
        if any(name in pair.tests for pair in pairwise)
    }
    base = study.bases.get(subject.label)
    to_base = not everybody and all(pair.second == base for pair in pairwise)
    against = f"less {base}" if to_base else "less each other"
    return Grid(
        title=f"{subject.label}: {MEASURES[measure]}, {against}, on the same rows",
        columns=(
            text_column("judge"),
            *([] if to_base else [text_column("less")]),
            Column("rows", about="that both judged and people labelled"),
            *(Column("its own"), Column("the other's"), Column("difference", best="high")),
            *(_P, _HOLM),
            *(
                Column(f"p {heading}", form="p", about=_about(pairwise, name))
                for name, heading in tests.items()
            ),
        ),
        rows=tuple(
            (
                pair.first,
                *([] if to_base else [pair.second]),
                *_pair_cells(pair, measure, tests, to_base),
            )
            for pair in pairwise
        ),
        notes=(
            interval_note(study),
            study.comparison.family,
            *([str(subject.rule)] if subject.kind == "compare" else []),
            *signatures(study, [label for pair in pairwise for label in (pair.first, pair.second)]),
        ),
    )


def _about(pairwise: Iterable[PairwiseComparison], name: str) -> str:
    return next((pair.tests[name].about for pair in pairwise if name in pair.tests), "")


def _pair_cells(
    pair: PairwiseComparison, measure: str, tests: Iterable[str], to_base: bool
) -> Iterator[CellValue]:
    found = pair.differences.get(measure)
    yield pair.shared
    if found is None:
        yield from (None,) * 5
    else:
        yield from (found.first, found.second, found.difference, found.p)
        yield found.adjusted_to_base if to_base else found.adjusted
    yield from (pair.tests[name].p if name in pair.tests else None for name in tests)


def matchings(study: Study) -> Iterator[Grid]:
    """For each subject, every contender beside the ensemble of single judges that costs no more than it."""
    for subject in study.subjects:
        matches = [match for match in study.matching.matches if match.subject == subject.label]
        if not matches:
            continue
        unit = matches[0].unit
        spent = Column(
            f"its {unit}", digits=2, form="money" if unit == "cost" else "plain", about="a judgement"
        )
        rows = []
        for match in matches:
            found = match.pairwise.differences.get(match.ensemble.measure)
            figures: tuple[CellValue, ...] = (None,) * 4
            if found is not None:
                figures = (found.first, found.second, found.difference, found.p)
            rows.append(
                (
                    match.judge,
                    match.spent,
                    match.ensemble.label,
                    match.ensemble_spent,
                    match.pairwise.shared,
                    *figures,
                )
            )
        yield Grid(
            title=f"{subject.label}: beside single judges that cost as much",
            columns=(
                *(text_column("judge"), spent, text_column("ensemble")),
                Column(f"the ensemble's {unit}", digits=2, form=spent.form, about="a judgement"),
                *(Column("rows"), Column(MEASURES[matches[0].ensemble.measure]), Column("the ensemble's")),
                *(Column("difference", best="high"), _P),
            ),
            rows=tuple(rows),
            notes=(interval_note(study), *signatures(study, (match.judge for match in matches))),
        )


def costs(study: Study) -> Grid:
    """What each way of judging takes, with a row for people where their price or time is known."""
    several = len({row.data for row in study.costs.rows}) > 1
    return Grid(
        title="Cost",
        columns=(
            text_column("judge"),
            *([text_column("data")] if several else []),
            *(Column("judgements"), Column("calls each", digits=1), Column("tokens each", form="short")),
            *(Column("cost each", form="money"), Column("seconds each", digits=2)),
            *(Column("cost in all", form="money"), Column("minutes in all", digits=1)),
        ),
        rows=tuple(
            (
                row.label,
                *([row.data] if several else []),
                *(row.judgements, row.calls_each, row.tokens_each, row.cost_each, row.seconds_each),
                *(row.cost_usd, None if row.seconds is None else row.seconds / 60),
            )
            for row in study.costs.rows
        ),
        notes=(*study.costs.notes, *signatures(study, (row.label for row in study.costs.rows))),
    )
