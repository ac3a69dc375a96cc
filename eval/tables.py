"""What a run came to, as tables. Figures are computed elsewhere; here they are laid out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.table import Table

from .agreement import PreferenceAgreement, ScoreAgreement
from .evaluation import Evaluation, Overview
from .export.formats import to_rich
from .export.grid import Cell, Column, Grid, money, text_column
from .rules import USUAL

__all__ = [
    "LABELS",
    "agreement_grids",
    "agreement_tables",
    "money",
    "number",
    "overview_grid",
    "overview_table",
]

LABELS = {
    "people": "people",
    "construction": "labels by construction",
    "none": "no labels",
}
_HOW = (
    "r Pearson, rho Spearman, tau Kendall's tau-b: over all rows, then the mean within groups; "
    "groups where either side is constant are skipped"
)


def number(value: float | None, digits: int = 3) -> str:
    """A figure, or a dash where there is none."""
    return "-" if value is None else f"{value:.{digits}f}"


def agreement_tables(evaluation: Evaluation) -> Iterator[Table]:
    """Agreement with the labels, for a terminal: one table for scores, one for preferences."""
    return map(to_rich, agreement_grids(evaluation))


def overview_table(evaluation: Evaluation) -> Table:
    """What was judged and what it took, for a terminal."""
    return to_rich(overview_grid(evaluation))


def agreement_grids(evaluation: Evaluation) -> Iterator[Grid]:
    """Agreement with the labels: one table for scores, one for preferences, each where there is something in it."""
    title = f"Agreement with {LABELS[evaluation.manifest['data']['labels']]}"
    scores: list[tuple[Cell, ...]] = []
    preferences: list[tuple[Cell, ...]] = []
    for protocol in evaluation.manifest["protocols"]:
        for name, found in evaluation.agreement(protocol).items():
            if isinstance(found, PreferenceAgreement) and found.n:
                preferences.append(
                    (protocol, found.n, _value(found.accuracy), _value(found.kappa), found.ties)
                )
            elif isinstance(found, ScoreAgreement) and found.n:
                scores.append((protocol, name, *_score_cells(found)))
    if scores:
        within = ("groups", *("r", "rho", "tau"), "skipped")
        columns = tuple(Column(name) for name in ("rows", "r", "rho", "tau", *within))
        yield Grid(title, (text_column("protocol"), text_column("aspect"), *columns), tuple(scores), (_HOW,))
    if preferences:
        columns = tuple(Column(name) for name in ("rows", "accuracy", "kappa", "judge's ties"))
        rule = (str(evaluation.rule),) if evaluation.rule != USUAL else ()
        yield Grid(title, (text_column("protocol"), *columns), tuple(preferences), rule)


def overview_grid(evaluation: Evaluation) -> Grid:
    """What was judged and what it took, a line a protocol and aspect."""
    return Grid(
        "Verdicts",
        (
            *(text_column("protocol"), text_column("aspect"), Column("judged"), Column("failed")),
            *(Column("mean", digits=2), Column("rounds", digits=2), Column("calls")),
            *(Column("tokens", form="short"), Column("cost", form="money"), text_column("ended by")),
        ),
        tuple(
            (protocol, aspect or "preference", *_overview_cells(overview))
            for (protocol, aspect), overview in evaluation.figures.overviews.items()
        ),
    )


def _score_cells(found: ScoreAgreement) -> Iterator[Cell]:
    yield found.n
    yield from (figure.value for figure in found.over_rows.values())
    if not found.per_group:
        yield from (None,) * 5
        return
    one = next(iter(found.per_group.values()))
    yield one.groups
    yield from (within.value for within in found.per_group.values())
    yield one.skipped


def _value(figure: Any) -> float | None:
    """Of a figure with an interval, the figure: a run ends with short tables."""
    value: float | None = getattr(figure, "value", figure)
    return value


def _overview_cells(overview: Overview) -> Iterator[Cell]:
    yield from (overview.judged, overview.failed, overview.score.value, overview.rounds.value)
    yield from (overview.calls, overview.tokens)
    yield "unknown" if overview.cost_usd is None else overview.cost_usd
    yield ", ".join(f"{reason} {count}" for reason, count in overview.stop_reasons.most_common())
