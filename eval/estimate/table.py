"""An estimate as a table for a terminal."""

from __future__ import annotations

from rich import box
from rich.table import Table

from ...state.call_counts import CallRange, Range
from ..tables import money
from .figures import Estimate, Part


def estimate_table(estimate: Estimate) -> Table:
    """What a run will take, a line a protocol and model, and all of it together."""
    table = Table(
        title="What it will take, at least and at most",
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=0,
        caption=_caption(estimate),
        caption_justify="left",
    )
    table.add_column("protocol", no_wrap=True)
    table.add_column("model", overflow="fold")
    for column in ("verdicts", "calls", "tokens in", "tokens out", "cost"):
        table.add_column(column, justify="right", no_wrap=True)
    for part in estimate.parts:
        table.add_row(part.protocol, part.model, f"{estimate.verdicts[part.protocol]:,}", *_cells(part))
    if len(estimate.parts) != 1:
        table.add_section()
        table.add_row("all", "", f"{sum(estimate.verdicts.values()):,}", *_cells(estimate.total))
    return table


def _caption(estimate: Estimate) -> str:
    return (
        f"Calls lie between these, repairs of unreadable replies aside. Tokens are estimated from {estimate.rehearsed} "
        "rehearsed verdicts a protocol and replies of usual length; they may well be off by half."
    )


def _cells(part: Part) -> tuple[str, str, str, str]:
    calls = _counts(part.calls)
    return calls, _tokens(part.input_tokens), _tokens(part.output_tokens), _dollars(part.cost_usd)


def _counts(calls: CallRange) -> str:
    return _between(f"{calls.least:,}", f"{calls.most:,}")


def _tokens(tokens: CallRange) -> str:
    return _between(rough(tokens.least), rough(tokens.most))


def _dollars(cost: Range[float] | None) -> str:
    return "unknown" if cost is None else _between(_price(cost.least), _price(cost.most))


def _between(least: str, most: str) -> str:
    return least if least == most else f"{least} to {most}"


def _price(dollars: float) -> str:
    return f"${dollars:,.2f}" if dollars >= 0.1 else money(dollars)


def rough(count: int) -> str:
    """A count in two figures, which is all that an estimate is good for.

    >>> rough(87), rough(1_349), rough(612_345), rough(18_496_827)
    ('87', '1.3k', '610k', '18M')
    """
    rounded = float(f"{count:.2g}")
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if rounded >= unit:
            return f"{rounded / unit:g}{name}"
    return f"{rounded:g}"
