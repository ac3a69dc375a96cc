"""Make tables that compare judges: differences on the same rows, the equal-cost baseline, and costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from operator import attrgetter

from ..analysis import Study
from ..analysis.comparison import Difference, PairwiseComparison
from ..analysis.costs import CostRow
from ..tables.grid import Column, Grid, columns_of, fields_of, text_column, value_at
from .labels import HUMANS, MEASURES
from .ranked_dataset import main_measure

_DIFFERENCE = ("first", "second", "difference", "p")
_TESTS = {"williams": "Williams", "steiger": "Steiger", "mcnemar": "McNemar", "t_errors": "t", "t_right": "t"}


def comparisons(study: Study, metric: str | None, all_judges: bool = False) -> Iterator[Grid]:
    """Tabulate for each subject the differences of judges to the base, or of all pairs, on rows that both judged."""
    for subject in study.subjects:
        pairwise = [pair for pair in study.comparison.pairwise if pair.subject == subject.label]
        base, measure = study.bases.get(subject.label), main_measure(subject, metric)
        if not all_judges and base:
            # A base that is in no pair of this subject has nothing to be compared with: then all pairs are shown.
            pairwise = [pair for pair in pairwise if pair.second == base] or pairwise
        if not pairwise:
            continue
        to_base = not all_judges and all(pair.second == base for pair in pairwise)
        versus = f"difference vs. {base} (Δ)" if to_base else "pairwise differences (Δ)"
        others = {} if to_base else {"second": text_column("compared with")}
        shared = Column("rows", about="rows with a label and a verdict of both judges")
        # Adjusted over the comparisons that the table shows: with the base alone there are fewer.
        figures = (*_DIFFERENCE, "adjusted_to_base" if to_base else "adjusted")
        names = {"second": f"{base}'s value"} if to_base else {}
        of_pair = value_at(measure, attrgetter("differences"))
        differences = columns_of(Difference, of_pair, only=figures, names=names)
        pair = fields_of(first=text_column("judge"), **others, shared=shared)
        rule = [str(subject.rule)] if subject.kind == "compare" else []
        title = f"{subject.label}: {MEASURES[measure]}, {versus}, same rows"
        columns = (*pair, *differences, *_tests(pairwise, measure))
        notes = (study.comparison.family, *study.comparison.caution, *rule)
        yield Grid.from_records(title, columns, pairwise, notes, [str(base)] if to_base else [])


def _tests(pairwise: list[PairwiseComparison], measure: str) -> Iterator[Column]:
    """Yield a column for the p-value of each test that some pair has."""
    for test, heading in _TESTS.items():
        # Tests of correlations are named with the correlation, such as "williams_spearman"; the others by themselves.
        for name in (test, f"{test}_{measure}"):
            about = next((pair.tests[name].about for pair in pairwise if name in pair.tests), None)
            if about is not None:
                p = Column(f"p {heading}", form="p", about=about)
                yield from fields_of(value_at(name, attrgetter("tests")), p=p)


def all_pairs(study: Study, metric: str | None) -> Iterator[Grid]:
    """Tabulate the differences of all pairs of judges, for subjects that have more than one pair."""
    return (grid for grid in comparisons(study, metric, all_judges=True) if len(grid.rows) > 1)


def matchings(study: Study) -> Iterator[Grid]:
    """Tabulate for each subject each judge against the largest ensemble of single judges that costs no more than it."""
    for subject in study.subjects:
        matches = [match for match in study.matching.matches if match.subject == subject.label]
        if not matches:
            continue
        currency, measure = matches[0].unit, subject.metric
        names = {"first": MEASURES[measure], "second": "ensemble's value"}
        of_match = value_at(measure, attrgetter("pairwise.differences"))
        spent = Column(currency, 2, form="money" if currency == "cost" else "plain", about="per judgement")
        columns = (
            *fields_of(judge=text_column("judge"), spent=spent),
            text_column("ensemble", of=attrgetter("ensemble.label")),
            *fields_of(ensemble_spent=replace(spent, name=f"ensemble's {currency}")),
            Column("rows", of=attrgetter("pairwise.shared")),
            *columns_of(Difference, of_match, only=_DIFFERENCE, names=names),
        )
        title = f"{subject.label}: equal-cost baseline (compute-matched ensemble of single judges)"
        yield Grid.from_records(title, columns, matches, study.comparison.caution)


def costs(study: Study) -> Grid:
    """Tabulate calls, tokens, cost and time of each judge, with a row for humans if their price or time was given."""
    rows = study.costs.rows
    data = fields_of(data=text_column("data")) if len({row.data for row in rows}) > 1 else ()
    whose = text_column("judge", of=lambda row: HUMANS if row.is_people else row.label)
    columns = (whose, *data, *columns_of(CostRow))
    return Grid.from_records("Cost per judgement and in total", columns, rows, study.costs.notes)
