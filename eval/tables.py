"""What a run came to, as tables for a terminal. Figures are computed elsewhere; here they are laid out."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.markup import escape
from rich.table import Table

from .agreement import GroupedCorrelation, PreferenceAgreement, ScoreAgreement
from .evaluation import Evaluation, Overview

LABELS = {
    "people": "people",
    "construction": "labels by construction",
    "none": "no labels",
}


def number(value: float | None, digits: int = 3) -> str:
    """A figure, or a dash where there is none."""
    return "-" if value is None else f"{value:.{digits}f}"


def money(dollars: float) -> str:
    """A price; what cost nothing is told from what cost very little.

    >>> money(0), money(0.00021), money(12.5)
    ('$0', '$0.0002', '$12.5000')
    """
    return f"${dollars:.4f}" if dollars else "$0"


def agreement_tables(evaluation: Evaluation) -> Iterator[Table]:
    """Agreement with the labels: one table for scores, one for preferences."""
    labels = LABELS[evaluation.manifest["data"]["labels"]]
    scores = _score_table(labels)
    preferences = _preference_table(labels)
    for protocol in evaluation.manifest["protocols"]:
        for name, found in evaluation.agreement(protocol).items():
            if isinstance(found, PreferenceAgreement) and found.n:
                preferences.add_row(protocol, *_preference_cells(found))
            elif isinstance(found, ScoreAgreement) and found.n:
                scores.add_row(protocol, escape(name), *_score_cells(found))
    yield from (table for table in (scores, preferences) if table.row_count)


def overview_table(evaluation: Evaluation) -> Table:
    """What was judged and what it took, a line a protocol and aspect."""
    table = _table("Verdicts", "protocol", "aspect")
    for column in ("judged", "failed", "mean", "rounds", "calls", "tokens", "cost"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("ended by")
    for (protocol, aspect), overview in evaluation.figures.overviews.items():
        table.add_row(protocol, escape(aspect or "preference"), *_overview_cells(overview))
    return table


def _table(title: str, *columns: str) -> Table:
    table = Table(
        title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False, padding=0
    )
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table


def _score_table(labels: str) -> Table:
    table = _table(f"Agreement with {labels}", "protocol", "aspect")
    for column in ("rows", "r", "rho", "tau", "groups", "r", "rho", "tau", "skipped"):
        table.add_column(column, justify="right", no_wrap=True)
    table.caption = (
        "r Pearson, rho Spearman, tau Kendall's tau-b: over all rows, then the mean within groups; "
        "groups where either side is constant are skipped"
    )
    table.caption_justify = "left"
    return table


def _score_cells(found: ScoreAgreement) -> Iterator[str]:
    yield str(found.n)
    yield from (number(found.over_rows[name].value) for name in found.over_rows)
    if not found.per_group:
        yield from ("-",) * 5
        return
    within = found.per_group
    one: GroupedCorrelation = next(iter(within.values()))
    yield str(one.groups)
    yield from (number(within[name].value) for name in within)
    yield str(one.skipped)


def _preference_table(labels: str) -> Table:
    table = _table(f"Agreement with {labels}", "protocol")
    for column in ("rows", "accuracy", "kappa", "judge's ties"):
        table.add_column(column, justify="right")
    return table


def _preference_cells(found: PreferenceAgreement) -> tuple[str, ...]:
    return str(found.n), number(found.accuracy), number(found.kappa), str(found.ties)


def _overview_cells(overview: Overview) -> Iterator[str]:
    yield str(overview.judged)
    yield str(overview.failed)
    yield number(overview.score.value, digits=2)
    yield number(overview.rounds.value, digits=2)
    yield f"{overview.calls:,}"
    yield _short(overview.tokens)
    yield "unknown" if overview.cost_usd is None else money(overview.cost_usd)
    yield ", ".join(f"{reason} {count}" for reason, count in overview.stop_reasons.most_common())


def _short(count: int) -> str:
    """A count of tokens in three figures.

    >>> _short(182_049), _short(950), _short(2_638_772)
    ('182k', '950', '2.64M')
    """
    if count < 1_000:
        return str(count)
    return f"{count / 1_000:.3g}k" if count < 999_500 else f"{count / 1_000_000:.3g}M"
