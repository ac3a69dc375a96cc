"""Make tables and JSON of a run: its verdicts, and their agreement with the labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from rich.console import Group

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
from ..statistics.resampling import caution
from ..statistics.tie_policy import DEFAULT_TIE_POLICY
from ..tables.formats import to_lines
from ..tables.grid import CellValue, Column, Grid, money, text_column

Agreements = Mapping[str, Agreement]
Heads = tuple[Column, ...]
NAMES = {"pearson": "Pearson r", "spearman": "Spearman rho", "kendall": "Kendall tau-b"}
TIES = {
    "class": "a human tie is a class of its own",
    "left_out": "human ties are left out",
    "half": "a human tie counts as half right for any verdict",
}
VOTES = {
    "majority": "compared with the majority of annotators",
    "each": "compared with each annotator's vote",
}


def as_json(found: Agreements, repeats: Mapping[str, RepeatedAgreement]) -> dict[str, Any]:
    """Write agreement by aspect as plain JSON; with several repeats, each aspect has their mean and deviation."""
    plain: dict[str, Any] = {}
    for name, one in found.items():
        plain[name] = _scores(one) if isinstance(one, ScoreAgreement) else _preferences(one)
        if name in repeats:
            plain[name]["over_repeats"] = _repeats(repeats[name])
    return plain


def _scores(found: ScoreAgreement) -> dict[str, Any]:
    per_group = {
        name: {**_statistic(one), "groups": one.groups, "skipped": one.skipped}
        for name, one in found.per_group.items()
    }
    # Without groups the same keys stand there with null, so that a reader of the JSON need not ask which there are.
    none = {**_statistic(Statistic(None)), "groups": 0, "skipped": 0}
    return {
        "n": found.n,
        "groups": found.groups,
        "over_rows": {name: _statistic(one) for name, one in found.over_rows.items()},
        "per_group": per_group or {name: dict(none) for name in STATISTICS},
        "ranges": {"judge": found.judged, "people": found.human},
        **_shared(found),
    }


def _preferences(found: PreferenceAgreement) -> dict[str, Any]:
    return {
        "n": found.n,
        "groups": found.groups,
        "accuracy": _statistic(found.accuracy),
        "kappa": _statistic(found.kappa),
        "ties": found.ties,
        "human_ties": found.human_ties,
        "ties_as": found.ties_as,
        "votes": found.votes,
        **_shared(found),
    }


def _statistic(found: Statistic) -> dict[str, float | None]:
    return {"value": found.value, "low": found.low, "high": found.high}


def _shared(found: Agreement) -> dict[str, Any]:
    return {
        "left_out": dict(found.left_out),
        "units": found.units,
        "repeats": found.repeats,
        "resamples": found.resampling.resamples,
        "confidence": found.resampling.confidence,
        "seed": found.resampling.seed,
    }


def _repeats(found: RepeatedAgreement) -> dict[str, Any]:
    figures = {name: spread._asdict() for name, spread in found.figures.items()}
    return {"repeats": found.repeats, "n": found.n, "figures": figures}


def grids(
    found: Mapping[str, Agreements], repeats: Mapping[str, Mapping[str, RepeatedAgreement]], title: str
) -> Iterator[Grid]:
    """Make tables of agreement: over rows, within groups, of preferences, between repeats; empty ones are left out.

    Args:
        found: agreement by protocol and aspect; with several protocols, a column names each as the judge.
        repeats: variation between repeats, by protocol and aspect.
        title: what was judged; each table's title begins with it.
    """
    heads = tuple(text_column(name) for name in (("judge", "aspect") if len(found) > 1 else ("aspect",)))
    each = _flat(found)
    scores = {name: one for name, one in each.items() if isinstance(one, ScoreAgreement)}
    compared = {name: one for name, one in each.items() if isinstance(one, PreferenceAgreement)}
    within = {name: one for name, one in scores.items() if one.per_group}
    if scores:
        yield _over_rows(f"{title}: over rows", heads, scores, last=not within)
    if within:
        yield _within(f"{title}: mean within groups", heads, within)
    if compared:
        yield _compared(f"{title}: preferences", heads, compared)
    if varying := _flat(repeats):
        yield _varying(f"{title}: between repeats", heads, varying)


Name = tuple[str, ...]
"""The name of a row: an aspect, or a protocol and an aspect."""
Some = TypeVar("Some")


def _flat(by_protocol: Mapping[str, Mapping[str, Some]]) -> dict[Name, Some]:
    several = len(by_protocol) > 1
    return {
        (protocol or "-", aspect) if several else (aspect,): one
        for protocol, aspects in by_protocol.items()
        for aspect, one in aspects.items()
    }


def _over_rows(title: str, heads: Heads, scores: Mapping[Name, ScoreAgreement], last: bool) -> Grid:
    columns = *heads, Column("rows"), text_column("range"), text_column("human range"), *_figures()
    rows: list[tuple[CellValue, ...]] = [
        (*name, one.n, _scale(one.judged), _scale(one.human), *one.over_rows.values())
        for name, one in scores.items()
    ]
    notes = [
        *_left_out(scores),
        *map(_constant, scores, scores.values()),
        *(_intervals(scores) if last else ()),
    ]
    return Grid(title, columns, tuple(rows), tuple(filter(None, notes)))


def _within(title: str, heads: Heads, scores: Mapping[Name, ScoreAgreement]) -> Grid:
    columns = *heads, Column("groups"), Column("skipped"), *_figures()
    rows: list[tuple[CellValue, ...]] = []
    for name, one in scores.items():
        # All correlations are over the same groups: the first of them says how many there are.
        first = next(iter(one.per_group.values()))
        rows.append((*name, first.groups, first.skipped, *one.per_group.values()))
    notes = ("skipped: groups of one row, or in which the judge or the humans give every row the same score",)
    return Grid(title, columns, tuple(rows), (*notes, *_intervals(scores)))


def _compared(title: str, heads: Heads, compared: Mapping[Name, PreferenceAgreement]) -> Grid:
    first = next(iter(compared.values()))
    counted = Column("votes" if first.votes == "each" else "rows")
    ties = Column("ties"), Column("human ties")
    columns = *heads, counted, Column("accuracy"), Column("kappa"), *ties
    rows: list[tuple[CellValue, ...]] = [
        (*name, one.n, one.accuracy, one.kappa, one.ties, one.human_ties) for name, one in compared.items()
    ]
    rule = f"{TIES[first.ties_as]}; {VOTES[first.votes]}"
    return Grid(title, columns, tuple(rows), (rule, *_left_out(compared), *_intervals(compared)))


def _varying(title: str, heads: Heads, repeats: Mapping[Name, RepeatedAgreement]) -> Grid:
    columns = *heads, text_column("statistic"), Column("repeats"), Column("mean"), Column("sd")
    rows: list[tuple[CellValue, ...]] = [
        (*name, _figure_name(figure), one.repeats, spread.mean, spread.sd)
        for name, one in repeats.items()
        for figure, spread in one.figures.items()
    ]
    return Grid(title, columns, tuple(rows), ("sd: standard deviation between repeats (n - 1)",))


def _figures() -> tuple[Column, ...]:
    return tuple(Column(NAMES[name]) for name in STATISTICS)


def _figure_name(figure: str) -> str:
    where, _, name = figure.partition(".")
    return f"{NAMES[name]}, {where.replace('_', ' ')}" if name else where


def _scale(found: Range | None) -> str:
    return "-" if found is None else f"{found.least:.3g} to {found.greatest:.3g}"


def _constant(name: Name, found: ScoreAgreement) -> str:
    """Say why there is no correlation over rows; empty if there is one."""
    if found.n == 1:
        return f"{_called(name)}: no correlation, since there is one row only"
    sides = {"judge": found.judged, "humans": found.human}
    said = [
        f"{who} always {side.least:g}" for who, side in sides.items() if side and side.least == side.greatest
    ]
    return f"{_called(name)}: no correlation, since scores do not vary ({', '.join(said)})" if said else ""


def _left_out(found: Mapping[Name, Agreement]) -> Iterator[str]:
    """Say for each aspect how many rows were left out, and why."""
    for name, one in found.items():
        if one.left_out:
            yield f"{_called(name)}: left out {listed(one.left_out)}"


def _called(name: Name) -> str:
    return " ".join(name)


def listed(left_out: Mapping[str, int]) -> str:
    """Write reasons with their counts.

    >>> listed({"failed": 1200, "no label": 2})
    '1,200 failed, 2 no label'
    """
    return ", ".join(f"{count:,} {reason}" for reason, count in left_out.items())


def _intervals(found: Mapping[Name, Agreement]) -> Iterator[str]:
    """Say how the intervals that are there were computed, and why some rows have none."""
    how = next(iter(found.values())).resampling
    shown = {name: one for name, one in found.items() if any(map(_has_interval, _figures_of(one)))}
    if sizes := sorted({one.units for one in shown.values()}):
        drawn = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
        grouped = {one.groups > 0 for one in shown.values()}
        unit = "groups" if grouped == {True} else "items" if grouped == {False} else "groups or items"
        yield (
            f"[low, high]: {100 * how.confidence:.4g} % confidence interval, {how.resamples:,} bootstrap resamples "
            f"of {drawn} {unit}, seed {how.seed}"
        )
    if few := caution({_called(name): one.units for name, one in shown.items()}):
        yield few
    alone = [_called(name) for name, one in found.items() if one.n and one.units < 2 and how.resamples]
    if alone:
        yield f"no interval for {', '.join(alone)}: all rows belong to one group or item"
    if (pooled := max(one.repeats for one in found.values())) > 1:
        yield f"{pooled} repeats are pooled; those of one item or group are resampled together"


def _figures_of(found: Agreement) -> tuple[Any, ...]:
    if isinstance(found, ScoreAgreement):
        return (*found.over_rows.values(), *found.per_group.values())
    return (found.accuracy, found.kappa)


def _has_interval(figure: Any) -> bool:
    return figure.low is not None


def nothing_counts(found: Sequence[Agreement]) -> bool:
    """Tell whether there is no row at all from which agreement could be computed."""
    return not any(one.n for one in found)


__all__ = [
    "LABELS",
    "agreement_grids",
    "agreement_tables",
    "money",
    "number",
    "overview_grid",
    "overview_table",
]
LABELS = {"people": "humans", "construction": "synthetic labels", "none": "no labels"}
"""The names of labels by their origin, for titles such as ``Agreement with humans``."""
_HOW = (
    "r: Pearson, rho: Spearman, tau: Kendall's tau-b, over all rows; r/g, rho/g, tau/g: mean within groups; "
    "groups in which either side is constant are skipped"
)


def number(value: float | None, digits: int = 3) -> str:
    """Write a number, or a dash for ``None``."""
    return "-" if value is None else f"{value:.{digits}f}"


def agreement_tables(evaluation: Evaluation, width: int | None = None) -> Iterator[Group]:
    """Make tables of agreement with the labels for a terminal: one for scores, one for preferences."""
    return (to_lines(grid, width) for grid in agreement_grids(evaluation))


def overview_table(evaluation: Evaluation, width: int | None = None) -> Group:
    """Make a table of verdicts, rounds and usage for a terminal."""
    return to_lines(overview_grid(evaluation), width)


def agreement_grids(evaluation: Evaluation) -> Iterator[Grid]:
    """Make a table of agreement with the labels for scores and one for preferences, without empty ones."""
    title = f"Agreement with {LABELS[evaluation.manifest['data']['labels']]}"
    scores: list[tuple[CellValue, ...]] = []
    preferences: list[tuple[CellValue, ...]] = []
    for protocol in evaluation.manifest["protocols"]:
        for name, found in evaluation.agreement(protocol).items():
            if isinstance(found, PreferenceAgreement) and found.n:
                preferences.append(
                    (protocol, found.n, _value(found.accuracy), _value(found.kappa), found.ties)
                )
            elif isinstance(found, ScoreAgreement) and found.n:
                scores.append((protocol, name, *_score_cells(found)))
    if scores:
        within = ("groups", *("r/g", "rho/g", "tau/g"), "skipped")
        columns = tuple(Column(name) for name in ("rows", "r", "rho", "tau", *within))
        yield Grid(title, (text_column("judge"), text_column("aspect"), *columns), tuple(scores), (_HOW,))
    if preferences:
        columns = tuple(Column(name) for name in ("rows", "accuracy", "kappa", "ties"))
        rule = (str(evaluation.rule),) if evaluation.rule != DEFAULT_TIE_POLICY else ()
        yield Grid(title, (text_column("judge"), *columns), tuple(preferences), rule)


def overview_grid(evaluation: Evaluation) -> Grid:
    """Make a table of verdicts, rounds and usage, with a row for each judge and aspect."""
    return Grid(
        "Verdicts",
        (
            *(text_column("judge"), text_column("aspect"), Column("judged"), Column("failed")),
            *(Column("mean", digits=2), Column("rounds", digits=2), Column("calls")),
            *(Column("tokens", form="short"), Column("cost", form="money"), text_column("stop reason")),
        ),
        tuple(
            (protocol, aspect or "preference", *_overview_cells(overview))
            for (protocol, aspect), overview in evaluation.figures.overviews.items()
        ),
    )


def _score_cells(found: ScoreAgreement) -> Iterator[CellValue]:
    yield found.n
    yield from (figure.value for figure in found.over_rows.values())
    if not found.per_group:
        yield from (None,) * 5  # groups, the three correlations within them, skipped
        return
    one = next(iter(found.per_group.values()))
    yield one.groups
    yield from (within.value for within in found.per_group.values())
    yield one.skipped


def _value(figure: Any) -> float | None:
    """Return a value without its interval: the tables at the end of a run are short."""
    value: float | None = getattr(figure, "value", figure)
    return value


def _overview_cells(overview: Overview) -> Iterator[CellValue]:
    yield from (overview.judged, overview.failed, overview.score.value, overview.rounds.value)
    yield from (overview.usage.calls, overview.usage.tokens)
    yield "unknown" if overview.usage.cost_usd is None else overview.usage.cost_usd
    yield ", ".join(f"{reason} {count}" for reason, count in overview.stop_reasons.most_common())
