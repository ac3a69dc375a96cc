"""Make tables and JSON of a run: its verdicts, and their agreement with the labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from operator import itemgetter
from typing import Any, TypeVar

from rich.console import Group

from ..results.agreement import (
    ROWS,
    Agreement,
    PreferenceAgreement,
    RepeatedAgreement,
    ScoreAgreement,
    Spread,
)
from ..results.evaluation import Evaluation, Overview
from ..statistics.correlation import STATISTICS
from ..statistics.metrics import METRICS
from ..statistics.resampling import caution
from ..statistics.sample import GroupedCorrelation
from ..statistics.tie_policy import TiePolicy
from ..tables.formats import to_lines
from ..tables.grid import Column, Grid, columns_of, fields_of, text_column, value_at
from .labels import left_out_note

Agreements = Mapping[str, Agreement]
Name = tuple[str, ...]
"""The name of a row: an aspect, or a protocol and an aspect. A record is a name with what is said of it."""
Value = TypeVar("Value")


def as_json(agreements: Agreements, repeats: Mapping[str, RepeatedAgreement]) -> dict[str, Any]:
    """Write agreement by aspect as plain JSON; with several repeats, each aspect has their mean and deviation."""
    plain: dict[str, Any] = {}
    for name, agreement in agreements.items():
        plain[name] = fields = asdict(agreement)
        # How intervals were made stands beside the figures, where readers of the JSON look for it.
        fields |= fields.pop("resampling")
        if isinstance(agreement, ScoreAgreement):
            fields["ranges"] = {"judge": fields.pop("judged"), "people": fields.pop("human")}
            # Without groups the same keys stand there with null, so that readers of the JSON need not ask which.
            no_groups = dict.fromkeys(STATISTICS, asdict(GroupedCorrelation(None)))
            fields["per_group"] = fields["per_group"] or no_groups
        if name in repeats:
            figures = {figure: spread._asdict() for figure, spread in repeats[name].figures.items()}
            fields["over_repeats"] = {**vars(repeats[name]), "figures": figures}
    return plain


def grids(
    agreements: Mapping[str, Agreements], repeats: Mapping[str, Mapping[str, RepeatedAgreement]], title: str
) -> Iterator[Grid]:
    """Make tables of agreement: over rows, within groups, of preferences, between repeats; empty ones are left out.

    Args:
        agreements: by protocol and aspect; with several protocols, a column names each as the judge.
        repeats: variation between repeats, by protocol and aspect.
        title: what was judged; each table's title begins with it.
    """
    judge = text_column("judge", of=lambda record: record[0][0])
    aspect = text_column("aspect", of=lambda record: record[0][-1])
    heads = (judge, aspect) if len(agreements) > 1 else (aspect,)
    by_name = _by_name(agreements)
    scores = {name: of_scores for name, of_scores in by_name.items() if isinstance(of_scores, ScoreAgreement)}
    compared = {name: pairs for name, pairs in by_name.items() if isinstance(pairs, PreferenceAgreement)}
    within = {name: of_scores for name, of_scores in scores.items() if of_scores.per_group}
    if scores:
        columns = (*heads, *columns_of(ScoreAgreement, _value), *_correlations("over_rows"))
        constant = filter(None, map(_constant, scores, scores.values()))
        notes = (*_left_out(scores), *constant, *([] if within else _on_intervals(scores)))
        yield Grid.from_records(f"{title}: over rows", columns, scores.items(), notes)
    if within:
        columns = (*heads, *groups(_value), *_correlations("per_group"))
        alike = "in which the judge or the humans give every row the same score"
        notes = (f"skipped: groups of one row, or {alike}", *_on_intervals(within))
        yield Grid.from_records(f"{title}: mean within groups", columns, within.items(), notes)
    if compared:
        first = next(iter(compared.values()))
        counted = "votes" if first.votes == "each" else "rows"
        columns = (*heads, *preferences(_value, "human_ties", counted=counted))
        notes = (str(TiePolicy(first.ties_as, first.votes)), *_left_out(compared), *_on_intervals(compared))
        yield Grid.from_records(f"{title}: preferences", columns, compared.items(), notes)
    if varying := _by_name(repeats):
        titles = {f"over_rows.{name}": METRICS[name].title for name in STATISTICS}
        titles |= {f"per_group.{name}": METRICS[f"group_{name}"].title for name in STATISTICS}
        columns = (
            *heads,
            text_column("statistic", of=lambda record: titles.get(record[1], record[1])),
            Column("repeats", of=itemgetter(2)),
            *columns_of(Spread, itemgetter(3), only=("mean", "sd")),
        )
        spreads = [
            (name, figure, of_repeats.repeats, spread)
            for name, of_repeats in varying.items()
            for figure, spread in of_repeats.figures.items()
        ]
        notes = ("sd: standard deviation between repeats (n - 1)",)
        yield Grid.from_records(f"{title}: between repeats", columns, spreads, notes)


def _by_name(by_protocol: Mapping[str, Mapping[str, Value]]) -> dict[Name, Value]:
    several = len(by_protocol) > 1
    return {
        (protocol or "-", aspect) if several else (aspect,): value
        for protocol, aspects in by_protocol.items()
        for aspect, value in aspects.items()
    }


_value = itemgetter(1)


def preferences(of: Callable[[Any], Any], *more: str, counted: str = "rows") -> tuple[Column, ...]:
    """Return the columns of the agreement on preferences that ``of`` finds in a record, and those of more figures."""
    wanted = ("n", "accuracy", "kappa", "ties", *more)
    return columns_of(PreferenceAgreement, of, wanted, n=replace(ROWS, name=counted))


def _correlations(where: str) -> Iterator[Column]:
    """Yield the columns of the correlations ``over_rows`` or ``per_group``."""
    for name in STATISTICS:
        of = value_at(name, lambda record: getattr(record[1], where))
        yield Column(METRICS[f"group_{name}" if where == "per_group" else name].short, of=of)


def groups(of: Callable[[Any], Any]) -> tuple[Column, ...]:
    """Return the columns that count the groups of the agreement on scores that ``of`` finds in a record."""

    def first(record: Any) -> GroupedCorrelation | None:
        # All correlations are over the same groups: the first of them says how many there are.
        return next(iter(getattr(of(record), "per_group", {}).values()), None)

    about = "groups in which either side is constant"
    return fields_of(first, groups=Column("groups"), skipped=Column("skipped", about=about))


def _constant(name: Name, agreement: ScoreAgreement) -> str:
    """Say why there is no correlation over rows; empty if there is one."""
    if agreement.n == 1:
        return f"{' '.join(name)}: no correlation, because there is only one row"
    sides = {"judge": agreement.judged, "humans": agreement.human}
    same = {who: side.least for who, side in sides.items() if side and side.least == side.greatest}
    constant = ", ".join(f"{who} always {score:g}" for who, score in same.items())
    return f"{' '.join(name)}: no correlation, because scores do not vary ({constant})" if constant else ""


def _left_out(agreements: Mapping[Name, Agreement]) -> Iterator[str]:
    """Say for each aspect how many rows were left out, and why."""
    for name, agreement in agreements.items():
        yield from left_out_note(agreement.left_out, " ".join(name))


def _on_intervals(agreements: Mapping[Name, Agreement]) -> Iterator[str]:
    """Say how the intervals that are there were computed, and why some rows have none."""
    how = next(iter(agreements.values())).resampling
    by_name = {" ".join(name): agreement for name, agreement in agreements.items()}
    with_intervals = {name: of for name, of in by_name.items() if _has_interval(of)}
    if sizes := sorted({agreement.units for agreement in with_intervals.values()}):
        drawn = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
        grouped = {agreement.groups > 0 for agreement in with_intervals.values()}
        clusters = "groups" if grouped == {True} else "items" if grouped == {False} else "groups or items"
        resampled = f"{how.resamples:,} bootstrap resamples of {drawn} {clusters}, seed {how.seed}"
        yield f"[low, high]: {100 * how.confidence:.4g} % confidence interval, {resampled}"
    yield from caution({name: agreement.units for name, agreement in with_intervals.items()})
    if alone := [name for name, of in by_name.items() if of.n and of.units < 2 and how.resamples]:
        yield f"no interval for {', '.join(alone)}: all rows belong to one group or item"
    if (pooled := max(agreement.repeats for agreement in agreements.values())) > 1:
        yield f"{pooled} repeats are pooled; those of one item or group are resampled together"


def _has_interval(of: Agreement) -> bool:
    if isinstance(of, PreferenceAgreement):
        return (of.accuracy.low, of.kappa.low) != (None, None)
    return any(figure.low is not None for figure in (*of.over_rows.values(), *of.per_group.values()))


def overview_table(evaluation: Evaluation, width: int | None = None) -> Group:
    """Make a table of verdicts, rounds and usage for a terminal, with a row for each judge and aspect."""
    columns = (
        text_column("judge", of=lambda record: record[0][0]),
        text_column("aspect", of=lambda record: record[0][1] or "preference"),
        *columns_of(Overview, _value),
    )
    return to_lines(Grid.from_records("Verdicts", columns, evaluation.figures.overviews.items()), width)
