"""Show the calls and cost in a journal, or delete replies: ``jurygraph journal``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.filesize import decimal

from ...state.errors import UsageError
from ...state.transcript import Usage
from ..journal.admin import prune, summarize
from ..tables.grid import Column, Grid, money, text_column
from .option_sets import argument, flag, option
from .runtime import console

FILE = "journal.sqlite"


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The replies to delete, and the confirmation."""

    older_than: float | None = option(metavar="DAYS", min=0)
    """Select replies older than this many days."""
    run: str | None = option(metavar="ID")
    """Select replies that the run with this id paid for."""
    invalidated: bool = flag()
    """Select replies that could not be used."""
    delete: bool = flag(name="--prune")
    """Delete the replies that match all of these options."""


def journal(
    target: str = argument(
        "The folder of a run, an SQLite file or a Postgres URL.", "DIR|FILE|URL"
    ),
    *,
    chosen: Selection,
) -> None:
    """Show what a run's journal of calls holds, or delete replies.

    Prints what the calls cost. With --prune, deletes the selected replies; their cost stays
    counted.
    """
    where = str(Path(target) / FILE) if Path(target).is_dir() else target
    selected = chosen.older_than is not None or chosen.run is not None or chosen.invalidated
    # Deleting needs both a selection and the confirmation. One alone must not delete, or seem to
    # have deleted.
    if selected and not chosen.delete:
        raise UsageError(
            "--older-than, --run, --invalidated say what to delete: add --prune to delete it"
        )
    if chosen.delete and not selected:
        raise UsageError(
            "--prune needs a selection: add --older-than DAYS, --run ID or --invalidated"
        )
    output = console()
    if chosen.delete:
        gone = prune(
            where, older_than_days=chosen.older_than, run=chosen.run, invalidated=chosen.invalidated
        )
        output.print(
            f"deleted {gone:,} {'reply' if gone == 1 else 'replies'}; their cost stays counted"
        )
    summary = summarize(where)
    span = f", from {_day(summary.oldest)} to {_day(summary.newest)}" if summary.spent.calls else ""
    calls = f"{summary.spent.calls:,} calls, {summary.replies:,} replies cached{span}"
    others = f"{summary.invalidated:,} invalidated, {summary.claims:,} in flight now"
    output.print(
        f"{summary.shown}: version {summary.version}, {decimal(summary.bytes)}, {calls}; {others}"
    )
    by_run = {**summary.by_run, "total": summary.spent}
    output.print_grids([_spending("model", summary.by_model), _spending("run", by_run)])


def _spending(by: str, spent: Mapping[str, Usage]) -> Grid:
    columns = map(Column, ("calls", "input tokens", "cached input", "output tokens", "cost"))
    rows = []
    for name, usage in spent.items():
        tokens = usage.input_tokens, usage.cached_input_tokens, usage.output_tokens
        cost = "unknown" if usage.cost_usd is None else money(usage.cost_usd)
        rows.append((name, usage.calls, *tokens, cost))
    return Grid("", (text_column(by), *columns), tuple(rows))


def _day(seconds: int | None) -> str:
    return f"{datetime.fromtimestamp(seconds or 0, UTC):%Y-%m-%d %H:%M}"
