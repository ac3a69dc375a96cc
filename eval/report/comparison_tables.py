"""Make tables that compare judges: differences on the same rows, the equal-cost baseline, and costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..analysis import EvaluationTarget, PairwiseComparison, Study
from ..tables import CellValue, Column, Grid, text_column
from .labels import HUMANS, MEASURES, config_notes, interval_note, main_measure

_P = Column("p", form="p", about="two-sided p-value of the difference")
_HOLM = Column("p (Holm)", form="p", about="the same, adjusted for the number of comparisons")
_TESTS = {
    "williams": "Williams",
    "steiger": "Steiger",
    "mcnemar": "McNemar",
    "t_errors": "t",
    "t_right": "t",
}


def comparisons(study: Study, metric: str | None, all_judges: bool = False) -> Iterator[Grid]:
    """Tabulate for each subject the differences of judges to the base, or of all pairs, on rows that both judged."""
    for subject in study.subjects:
        pairwise = [pair for pair in study.comparison.pairwise if pair.subject == subject.label]
        base = study.bases.get(subject.label)
        if not all_judges and base:
            # A base that is in no pair of this subject has nothing to be compared with: then all pairs are shown.
            pairwise = [pair for pair in pairwise if pair.second == base] or pairwise
        if pairwise:
            yield _comparison(study, subject, pairwise, metric, all_judges)


def all_pairs(study: Study, metric: str | None) -> Iterator[Grid]:
    """Tabulate the differences of all pairs of judges, for subjects that have more than one pair."""
    for grid in comparisons(study, metric, all_judges=True):
        if len(grid.rows) > 1:
            yield grid


def _comparison(
    study: Study,
    subject: EvaluationTarget,
    pairwise: list[PairwiseComparison],
    metric: str | None,
    all_judges: bool,
) -> Grid:
    measure = main_measure(subject, metric)
    # Tests of correlations are named with the correlation, such as "williams_spearman"; the others by themselves.
    tests = {
        name: heading
        for test, heading in _TESTS.items()
        for name in (test, f"{test}_{measure}")
        if any(name in pair.tests for pair in pairwise)
    }
    base = study.bases.get(subject.label)
    to_base = not all_judges and all(pair.second == base for pair in pairwise)
    versus = f"difference vs. {base} (Δ)" if to_base else "pairwise differences (Δ)"
    return Grid(
        title=f"{subject.label}: {MEASURES[measure]}, {versus}, same rows",
        columns=(
            text_column("judge"),
            *([] if to_base else [text_column("compared with")]),
            Column("rows", about="rows with a label and a verdict of both judges"),
            *(
                Column("value", about="of the judge"),
                Column(f"{base}'s value" if to_base else "other's value"),
            ),
            Column("Δ", best="high", about="difference of the two values"),
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
            *study.comparison.caution,
            *([str(subject.rule)] if subject.kind == "compare" else []),
            *config_notes(study, [label for pair in pairwise for label in (pair.first, pair.second)]),
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
        # Over the comparisons that the table shows: with the base alone there are fewer to adjust for.
        yield found.adjusted_to_base if to_base else found.adjusted
    yield from (pair.tests[name].p if name in pair.tests else None for name in tests)


def matchings(study: Study) -> Iterator[Grid]:
    """Tabulate for each subject each judge against the largest ensemble of single judges that costs no more than it."""
    for subject in study.subjects:
        matches = [match for match in study.matching.matches if match.subject == subject.label]
        if not matches:
            continue
        unit = matches[0].unit
        spent = Column(unit, digits=2, form="money" if unit == "cost" else "plain", about="per judgement")
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
            title=f"{subject.label}: equal-cost baseline (compute-matched ensemble of single judges)",
            columns=(
                *(text_column("judge"), spent, text_column("ensemble")),
                Column(f"ensemble's {unit}", digits=2, form=spent.form, about="per judgement"),
                *(Column("rows"), Column(MEASURES[matches[0].ensemble.measure]), Column("ensemble's value")),
                *(Column("Δ", best="high", about="difference of the two values"), _P),
            ),
            rows=tuple(rows),
            notes=(
                interval_note(study),
                *study.comparison.caution,
                *config_notes(study, (match.judge for match in matches)),
            ),
        )


def costs(study: Study) -> Grid:
    """Tabulate calls, tokens, cost and time of each judge, with a row for humans if their price or time was given."""
    several = len({row.data for row in study.costs.rows}) > 1
    return Grid(
        title="Cost per judgement and in total",
        columns=(
            text_column("judge"),
            *([text_column("data")] if several else []),
            *(Column("judgements"), Column("calls", digits=1), Column("tokens", form="short")),
            *(Column("cost", form="money"), Column("seconds", digits=2)),
            *(Column("total cost", form="money"), Column("total minutes", digits=1)),
        ),
        rows=tuple(
            (
                HUMANS if row.is_people else row.label,
                *([row.data] if several else []),
                *(row.judgements, row.calls_each, row.tokens_each, row.cost_each, row.seconds_each),
                *(row.cost_usd, None if row.seconds is None else row.seconds / 60),
            )
            for row in study.costs.rows
        ),
        notes=(*study.costs.notes, *config_notes(study, (row.label for row in study.costs.rows))),
    )
