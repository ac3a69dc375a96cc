"""Make tables and JSON of a run: its verdicts, and their agreement with the labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

from rich.console import Group

from ...state.usage import Usage
from ..results.agreement import (
    Agreement,
    PreferenceAgreement,
    Range,
    RepeatedAgreement,
    ScoreAgreement,
    Statistic,
)
from ..results.evaluation import Evaluation, Overview
from ..statistics.correlation import STATISTICS
from ..statistics.metrics import METRICS, Metric
from ..statistics.resampling import caution
from ..tables.formats import to_lines
from ..tables.grid import CellValue, Column, Grid, columns_of, money, short, text_column
from .labels import LABELS, left_out_note, listed

__all__ = [
    "LABELS",
    "as_json",
    "grids",
    "listed",
    "money",
    "nothing_counts",
    "overview_grid",
    "overview_table",
]
Agreements = Mapping[str, Agreement]
Name = tuple[str, ...]
"""The name of a row: an aspect, or a protocol and an aspect. A record is a name with what is said of it."""
Value = TypeVar("Value")
TIES = {
    "class": "a human tie is a class of its own",
    "left_out": "human ties are left out",
    "half": "a human tie counts as half right for any verdict",
}
VOTES = {
    "majority": "compared with the majority of annotators",
    "each": "compared with each annotator's vote",
}


def as_json(agreements: Agreements, repeats: Mapping[str, RepeatedAgreement]) -> dict[str, Any]:
    """Write agreement by aspect as plain JSON; with several repeats, each aspect has their mean and deviation."""
    plain: dict[str, Any] = {}
    for name, agreement in agreements.items():
        own = _scores(agreement) if isinstance(agreement, ScoreAgreement) else _preferences(agreement)
        plain[name] = {
            "n": agreement.n,
            "groups": agreement.groups,
            **own,
            "left_out": dict(agreement.left_out),
            "units": agreement.units,
            "repeats": agreement.repeats,
            "resamples": agreement.resampling.resamples,
            "confidence": agreement.resampling.confidence,
            "seed": agreement.resampling.seed,
        }
        if name in repeats:
            of_repeats = repeats[name]
            figures = {figure: spread._asdict() for figure, spread in of_repeats.figures.items()}
            plain[name]["over_repeats"] = {
                "repeats": of_repeats.repeats,
                "n": of_repeats.n,
                "figures": figures,
            }
    return plain


def _scores(agreement: ScoreAgreement) -> dict[str, Any]:
    per_group = {
        name: {**_statistic(mean), "groups": mean.groups, "skipped": mean.skipped}
        for name, mean in agreement.per_group.items()
    }
    # Without groups the same keys stand there with null, so that a reader of the JSON need not ask which there are.
    empty = {**_statistic(Statistic(None)), "groups": 0, "skipped": 0}
    return {
        "over_rows": {name: _statistic(value) for name, value in agreement.over_rows.items()},
        "per_group": per_group or {name: dict(empty) for name in STATISTICS},
        "ranges": {"judge": agreement.judged, "people": agreement.human},
    }


def _preferences(agreement: PreferenceAgreement) -> dict[str, Any]:
    return {
        "accuracy": _statistic(agreement.accuracy),
        "kappa": _statistic(agreement.kappa),
        "ties": agreement.ties,
        "human_ties": agreement.human_ties,
        "ties_as": agreement.ties_as,
        "votes": agreement.votes,
    }


def _statistic(statistic: Statistic) -> dict[str, float | None]:
    return {"value": statistic.value, "low": statistic.low, "high": statistic.high}


def grids(
    agreements: Mapping[str, Agreements],
    repeats: Mapping[str, Mapping[str, RepeatedAgreement]],
    title: str,
) -> Iterator[Grid]:
    """Make tables of agreement: over rows, within groups, of preferences, between repeats; empty ones are left out.

    Args:
        agreements: by protocol and aspect; with several protocols, a column names each as the judge.
        repeats: variation between repeats, by protocol and aspect.
        title: what was judged; each table's title begins with it.
    """
    names = ("judge", "aspect") if len(agreements) > 1 else ("aspect",)
    heads = tuple(text_column(name, of=partial(_part, place)) for place, name in enumerate(names))
    by_name = _by_name(agreements)
    scores = {name: of_scores for name, of_scores in by_name.items() if isinstance(of_scores, ScoreAgreement)}
    compared = {name: pairs for name, pairs in by_name.items() if isinstance(pairs, PreferenceAgreement)}
    within = {name: of_scores for name, of_scores in scores.items() if of_scores.per_group}
    if scores:
        yield Grid.from_records(
            f"{title}: over rows",
            (
                *heads,
                *columns_of(ScoreAgreement, _value),
                text_column("range", of=lambda record: _scale(record[1].judged)),
                text_column("human range", of=lambda record: _scale(record[1].human)),
                *_correlations("over_rows"),
            ),
            scores.items(),
            notes=(
                *_left_out(scores),
                *filter(None, map(_constant, scores, scores.values())),
                *([] if within else _on_intervals(scores)),
            ),
        )
    if within:
        skipped = "groups of one row, or in which the judge or the humans give every row the same score"
        yield Grid.from_records(
            f"{title}: mean within groups",
            (*heads, *groups(_value), *_correlations("per_group")),
            within.items(),
            notes=(f"skipped: {skipped}", *_on_intervals(within)),
        )
    if compared:
        first = next(iter(compared.values()))
        rule = f"{TIES[first.ties_as]}; {VOTES[first.votes]}"
        yield Grid.from_records(
            f"{title}: preferences",
            (
                *heads,
                *preferences(_value, "human_ties", counted="votes" if first.votes == "each" else "rows"),
            ),
            compared.items(),
            notes=(rule, *_left_out(compared), *_on_intervals(compared)),
        )
    if varying := _by_name(repeats):
        yield Grid.from_records(
            f"{title}: between repeats",
            (
                *heads,
                text_column("statistic", of=lambda record: _figure_name(record[1])),
                Column("repeats", of=lambda record: record[2]),
                Column("mean", of=lambda record: record[3].mean),
                Column("sd", of=lambda record: record[3].sd),
            ),
            [
                (name, figure, of_repeats.repeats, spread)
                for name, of_repeats in varying.items()
                for figure, spread in of_repeats.figures.items()
            ],
            notes=["sd: standard deviation between repeats (n - 1)"],
        )


def _by_name(by_protocol: Mapping[str, Mapping[str, Value]]) -> dict[Name, Value]:
    several = len(by_protocol) > 1
    return {
        (protocol or "-", aspect) if several else (aspect,): value
        for protocol, aspects in by_protocol.items()
        for aspect, value in aspects.items()
    }


def _part(place: int, record: tuple[Name, Any]) -> str:
    return record[0][place]


def _value(record: tuple[Name, Any]) -> Any:
    return record[1]


def preferences(of: Callable[[Any], Any], *more: str, counted: str = "rows") -> tuple[Column, ...]:
    """Return the columns of the agreement on preferences that ``of`` finds in a record, and those of more figures."""
    figures = columns_of(PreferenceAgreement, of, only=("accuracy", "kappa", "ties", *more))
    return (*columns_of(PreferenceAgreement, of, only=("n",), names={"n": counted}), *figures)


def _correlations(where: str) -> Iterator[Column]:
    """Yield the columns of the correlations ``over_rows`` or ``per_group``."""
    for name in STATISTICS:
        yield Column(_metric(where, name).short, of=partial(_correlation, where, name))


def _metric(where: str, name: str) -> Metric:
    return METRICS[f"group_{name}" if where == "per_group" else name]


def _correlation(where: str, name: str, record: tuple[Name, ScoreAgreement]) -> CellValue:
    statistic: Statistic | None = getattr(record[1], where).get(name)
    return statistic


def groups(of: Callable[[Any], Any]) -> tuple[Column, Column]:
    """Return the columns that count the groups of the agreement on scores that ``of`` finds in a record."""

    def first(name: str, record: Any) -> CellValue:
        # All correlations are over the same groups: the first of them says how many there are.
        within = getattr(of(record), "per_group", {})
        return getattr(next(iter(within.values()), None), name, None)

    return (
        Column("groups", of=partial(first, "groups")),
        Column("skipped", about="groups in which either side is constant", of=partial(first, "skipped")),
    )


def _figure_name(figure: str) -> str:
    where, _, name = figure.partition(".")
    return _metric(where, name).title if name else where


def _scale(scores: Range | None) -> str:
    return "-" if scores is None else f"{scores.least:.3g} to {scores.greatest:.3g}"


def _constant(name: Name, agreement: ScoreAgreement) -> str:
    """Say why there is no correlation over rows; empty if there is one."""
    if agreement.n == 1:
        return f"{' '.join(name)}: no correlation, since there is one row only"
    sides = {"judge": agreement.judged, "humans": agreement.human}
    constant = ", ".join(
        f"{who} always {side.least:g}" for who, side in sides.items() if side and side.least == side.greatest
    )
    return f"{' '.join(name)}: no correlation, since scores do not vary ({constant})" if constant else ""


def _left_out(agreements: Mapping[Name, Agreement]) -> Iterator[str]:
    """Say for each aspect how many rows were left out, and why."""
    for name, agreement in agreements.items():
        yield from left_out_note(agreement.left_out, " ".join(name))


def _on_intervals(agreements: Mapping[Name, Agreement]) -> Iterator[str]:
    """Say how the intervals that are there were computed, and why some rows have none."""
    how = next(iter(agreements.values())).resampling
    with_intervals = {
        name: agreement
        for name, agreement in agreements.items()
        if any(map(_has_interval, _figures_of(agreement)))
    }
    if sizes := sorted({agreement.units for agreement in with_intervals.values()}):
        drawn = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
        grouped = {agreement.groups > 0 for agreement in with_intervals.values()}
        clusters = "groups" if grouped == {True} else "items" if grouped == {False} else "groups or items"
        yield (
            f"[low, high]: {100 * how.confidence:.4g} % confidence interval, {how.resamples:,} bootstrap resamples "
            f"of {drawn} {clusters}, seed {how.seed}"
        )
    if few := caution({" ".join(name): agreement.units for name, agreement in with_intervals.items()}):
        yield few
    alone = [
        " ".join(name)
        for name, agreement in agreements.items()
        if agreement.n and agreement.units < 2 and how.resamples
    ]
    if alone:
        yield f"no interval for {', '.join(alone)}: all rows belong to one group or item"
    if (pooled := max(agreement.repeats for agreement in agreements.values())) > 1:
        yield f"{pooled} repeats are pooled; those of one item or group are resampled together"


def _figures_of(agreement: Agreement) -> Iterable[Statistic]:
    if isinstance(agreement, ScoreAgreement):
        return (*agreement.over_rows.values(), *agreement.per_group.values())
    return (agreement.accuracy, agreement.kappa)


def _has_interval(statistic: Statistic) -> bool:
    return statistic.low is not None


def nothing_counts(agreements: Iterable[Agreement]) -> bool:
    """Tell whether there is no row at all from which agreement could be computed."""
    return not any(agreement.n for agreement in agreements)


def overview_table(evaluation: Evaluation, width: int | None = None) -> Group:
    """Make a table of verdicts, rounds and usage for a terminal."""
    return to_lines(overview_grid(evaluation), width)


def overview_grid(evaluation: Evaluation) -> Grid:
    """Make a table of verdicts, rounds and usage, with a row for each judge and aspect."""
    return Grid.from_records(
        "Verdicts",
        (
            text_column("judge", of=partial(_part, 0)),
            text_column("aspect", of=lambda record: record[0][1] or "preference"),
            *columns_of(Overview, _value),
            Column("calls", of=lambda record: record[1].usage.calls),
            Column("tokens", form="short", of=lambda record: _tokens(record[1].usage)),
            Column("cost", form="money", of=lambda record: _cost(record[1].usage.cost_usd)),
            text_column("stop reason", of=lambda record: _stop_reasons(record[1])),
        ),
        evaluation.figures.overviews.items(),
    )


def _cost(dollars: float | None) -> CellValue:
    return "unknown" if dollars is None else dollars


def _tokens(usage: Usage) -> CellValue:
    return usage.shown_tokens(short) if usage.uncounted else usage.tokens


def _stop_reasons(overview: Overview) -> str:
    return ", ".join(f"{reason} {count}" for reason, count in overview.stop_reasons.most_common())
