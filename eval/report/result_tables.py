"""Make tables and JSON of a run: its verdicts, and their agreement with the labels."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from operator import itemgetter
from typing import Any, TypeVar

from rich.console import Group

from ..results.agreement import (
    ROWS,
    UNIT_KEYS,
    Agreement,
    PreferenceAgreement,
    RepeatedAgreement,
    ScoreAgreement,
    Spread,
    figure_name,
)
from ..results.evaluation import Evaluation, Overview
from ..statistics.metrics import METRICS, of_kind, shown_of_kind
from ..statistics.resampling import FEWEST_CLUSTERS, Statistic, caution, is_few
from ..statistics.sample import GroupedCorrelation
from ..statistics.tie_policy import TiePolicy
from ..tables.formats import to_lines
from ..tables.grid import Column, Grid, columns_of, fields_of, text_column, value_at
from .labels import left_out_note

Agreements = Mapping[str, Agreement]
Name = tuple[str, ...]
"""The name of a row: an aspect, or a protocol and an aspect.

A record is a name with its figures.
"""
Value = TypeVar("Value")


def as_json(agreements: Agreements, repeats: Mapping[str, RepeatedAgreement]) -> dict[str, Any]:
    """Write agreement by aspect as plain JSON.

    With several repeats, each aspect has their mean and deviation.
    """
    plain: dict[str, Any] = {}
    for name, agreement in agreements.items():
        plain[name] = fields = asdict(agreement)
        # The method of the intervals is next to the figures, where readers of the JSON look for it.
        fields |= fields.pop("resampling")
        if isinstance(agreement, ScoreAgreement):
            fields["ranges"] = {"judge": fields.pop("judged"), "people": fields.pop("human")}
            # Without groups, the same keys have null, so that readers need no case distinction.
            within = [METRICS[metric].coefficient for metric in of_kind("score", "groups")]
            no_groups = dict.fromkeys(within, asdict(GroupedCorrelation(None)))
            fields["per_group"] = fields["per_group"] or no_groups
            of_systems = [METRICS[metric].coefficient for metric in of_kind("score", "systems")]
            no_systems = dict.fromkeys(of_systems, asdict(Statistic(None)))
            fields["over_systems"] = fields["over_systems"] or no_systems
        else:
            fields |= fields.pop("measures")
        fields["intervals"] = agreement.intervals
        if name in repeats:
            figures = {figure: spread._asdict() for figure, spread in repeats[name].figures.items()}
            fields["over_repeats"] = {**vars(repeats[name]), "figures": figures}
    return plain


def grids(
    agreements: Mapping[str, Agreements],
    repeats: Mapping[str, Mapping[str, RepeatedAgreement]],
    title: str,
) -> Iterator[Grid]:
    """Make the tables of agreement, without empty ones.

    They show agreement over rows, within groups, of preferences, and between repeats.

    Args:
        agreements: by protocol and aspect; with several protocols, a column names the judge.
        repeats: variation between repeats, by protocol and aspect.
        title: the judged data, for the beginning of each table's title.
    """
    judge = text_column("judge", of=lambda record: record[0][0])
    aspect = text_column("aspect", of=lambda record: record[0][-1])
    heads = (judge, aspect) if len(agreements) > 1 else (aspect,)
    by_name = _by_name(agreements)
    scores = {
        name: of_scores
        for name, of_scores in by_name.items()
        if isinstance(of_scores, ScoreAgreement)
    }
    compared = {
        name: pairs for name, pairs in by_name.items() if isinstance(pairs, PreferenceAgreement)
    }
    within = {name: of_scores for name, of_scores in scores.items() if of_scores.per_group}
    if scores:
        columns = (*heads, *columns_of(ScoreAgreement, _value), *_correlations("over_rows"))
        constant = filter(None, map(_constant, scores, scores.values()))
        over_rows = of_kind("score", "rows")
        cautions = () if within else _cautions(scores)
        notes = (*_left_out(scores), *constant, *_on_intervals(scores, over_rows), *cautions)
        yield Grid.from_records(f"{title}: over rows", columns, scores.items(), notes)
    if within:
        columns = (*heads, *groups(_value), *_correlations("per_group"))
        notes = (
            "skipped: groups of one row, or with the same label on every row",
            "one score: groups in which the judge gives every row the same score; they count as 0",
            PAIRWISE_NOTE,
            *_on_intervals(within, of_kind("score", "groups")),
            *_cautions(within),
        )
        yield Grid.from_records(f"{title}: mean within groups", columns, within.items(), notes)
    systems = {name: of_scores for name, of_scores in scores.items() if of_scores.over_systems}
    if systems:
        columns = (*heads, *_correlations("over_systems"))
        notes = ("mean scores of systems; metrics over systems have no interval",)
        yield Grid.from_records(f"{title}: over systems", columns, systems.items(), notes)
    if compared:
        first = next(iter(compared.values()))
        counted = "votes" if first.votes == "each" else "rows"
        rows, ties, *metrics = preferences(_value, counted)
        human_ties = columns_of(PreferenceAgreement, _value, ("human_ties",))
        columns = (*heads, rows, *metrics, ties, *human_ties)
        rule = str(TiePolicy(first.ties_as, first.votes))
        made = _on_intervals(compared, shown_of_kind("compare"))
        notes = (rule, *_left_out(compared), *made, *_cautions(compared))
        yield Grid.from_records(f"{title}: preferences", columns, compared.items(), notes)
    if varying := _by_name(repeats):
        titles = {figure_name(name): metric.title for name, metric in METRICS.items()}
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

PAIRWISE_NOTE = (
    "pairs within: share of pairs in the same order as the labels, or tied like them; scores that "
    "differ by at most a threshold are a tie, and it is fitted on other groups"
)


def preferences(
    of: Callable[[Any], Any], counted: str = "rows", leading: str | None = None
) -> tuple[Column, ...]:
    """Return the columns of the agreement on preferences: rows, the judge's ties, each metric.

    Args:
        of: returns the agreement from a record.
        counted: the name of the counted rows or votes.
        leading: the leading metric.
    """
    rows_and_ties = columns_of(
        PreferenceAgreement, of, ("n", "ties"), n=replace(ROWS, name=counted)
    )
    return (*rows_and_ties, *_metrics(of, leading))


def _metrics(of: Callable[[Any], Any], leading: str | None) -> Iterator[Column]:
    """Yield a column for each metric of preferences."""

    def measures(record: Any) -> Any:
        return getattr(of(record), "measures", None)

    for metric in (METRICS[name] for name in shown_of_kind("compare", leading)):
        about = "" if metric.short == metric.title else metric.title
        yield Column(metric.short, best="high", about=about, of=value_at(metric.name, measures))


def _correlations(where: str) -> Iterator[Column]:
    """Yield the columns of the metrics ``over_rows``, ``per_group`` or ``over_systems``."""
    unit = next(unit for unit, key in UNIT_KEYS.items() if key == where)
    for metric in (METRICS[name] for name in of_kind("score", unit)):
        of = value_at(metric.coefficient, lambda record: getattr(record[1], where))
        yield Column(metric.short, of=of)


def groups(of: Callable[[Any], Any]) -> tuple[Column, ...]:
    """Return the columns that count groups in the agreement on scores.

    ``of`` returns the agreement from a record.
    """

    def first(record: Any) -> GroupedCorrelation | None:
        # All correlations are over the same groups, so the first one has their number.
        return next(iter(getattr(of(record), "per_group", {}).values()), None)

    skipped = Column("skipped", about="groups with the same label on every item, or of one item")
    one_score = Column(
        "one score", about="groups in which the judge gives every item one score: they count as 0"
    )
    return fields_of(first, groups=Column("groups"), skipped=skipped, one_score=one_score)


def _constant(name: Name, agreement: ScoreAgreement) -> str:
    """Return why there is no correlation over rows; empty if there is one."""
    if agreement.n == 1:
        return f"{' '.join(name)}: no correlation, because there is only one row"
    sides = {"judge": agreement.judged, "humans": agreement.human}
    same = {who: side.least for who, side in sides.items() if side and side.least == side.greatest}
    constant = ", ".join(f"{who} always {score:g}" for who, score in same.items())
    return (
        f"{' '.join(name)}: no correlation, because scores do not vary ({constant})"
        if constant
        else ""
    )


def _left_out(agreements: Mapping[Name, Agreement]) -> Iterator[str]:
    """Yield for each aspect how many rows were left out, and why."""
    for name, agreement in agreements.items():
        yield from left_out_note(agreement.left_out, " ".join(name))


def _on_intervals(agreements: Mapping[Name, Agreement], metrics: Sequence[str]) -> Iterator[str]:
    """Yield a note on how the intervals of these metrics were computed, if there are any."""
    how = next(iter(agreements.values())).resampling
    by_name = {" ".join(name): agreement for name, agreement in agreements.items()}
    with_intervals = {name: of for name, of in by_name.items() if _has_interval(of)}
    if sizes := sorted({agreement.units for agreement in with_intervals.values()}):
        drawn = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
        grouped = {agreement.groups > 0 for agreement in with_intervals.values()}
        clusters = (
            "groups" if grouped == {True} else "items" if grouped == {False} else "groups or items"
        )
        by_interval = defaultdict[str, list[str]](list)
        for metric in map(METRICS.__getitem__, metrics):
            by_interval[metric.interval_over(f"{drawn} {clusters}")].append(metric.short)
        made = "; ".join(
            f"{', '.join(names)}: {interval}" for interval, names in by_interval.items()
        )
        resamples = (
            f" ({how.resamples:,} resamples, seed {how.seed})" if "bootstrap" in made else ""
        )
        yield f"Brackets: {100 * how.confidence:.4g} % confidence interval; {made}{resamples}"


def _cautions(agreements: Mapping[Name, Agreement]) -> Iterator[str]:
    """Yield notes on why some rows have no interval, and on repeats."""
    how = next(iter(agreements.values())).resampling
    by_name = {" ".join(name): agreement for name, agreement in agreements.items()}
    with_intervals = {name: of for name, of in by_name.items() if _has_interval(of)}
    yield from caution({name: agreement.units for name, agreement in with_intervals.items()})
    for name, of in by_name.items():
        if is_few(of.effective) and not is_few(of.units) and of.units and how.resamples:
            yield _withheld(name, of)
    if alone := [name for name, of in by_name.items() if of.n and of.units < 2 and how.resamples]:
        yield f"no interval for {', '.join(alone)}: all rows belong to one group or item"
    if (pooled := max(agreement.repeats for agreement in agreements.values())) > 1:
        yield f"{pooled} repeats are pooled; those of one item or group are resampled together"


def _withheld(name: str, agreement: Agreement) -> str:
    """Return why figures of many groups or items have no interval, and how many are needed."""
    units = "groups" if agreement.groups else "items"
    needed = 10 * math.ceil(agreement.units * FEWEST_CLUSTERS / agreement.effective / 10)
    reason = "most rows are in few groups"
    if isinstance(agreement, ScoreAgreement):
        reason = "most labels or most verdicts are the same, or most rows are in few groups"
    counts = f"{agreement.units:,} {units} count as {agreement.effective:.1f}"
    return f"no interval over rows for {name}: {counts}, since {reason}; about {needed:,} {units} are needed"


def _has_interval(of: Agreement) -> bool:
    if isinstance(of, PreferenceAgreement):
        return any(figure.low is not None for figure in of.measures.values())
    return any(
        figure.low is not None for figure in (*of.over_rows.values(), *of.per_group.values())
    )


def overview_table(evaluation: Evaluation, width: int | None = None) -> Group:
    """Make a terminal table of verdicts, rounds and usage, with a row for each judge and aspect."""
    columns = (
        text_column("judge", of=lambda record: record[0][0]),
        text_column("aspect", of=lambda record: record[0][1] or "preference"),
        *columns_of(Overview, _value),
    )
    return to_lines(
        Grid.from_records("Verdicts", columns, evaluation.figures.overviews.items()), width
    )
