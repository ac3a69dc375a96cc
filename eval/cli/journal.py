"""Show what a journal of calls holds and cost, or delete replies from it: the command ``jurygraph journal``."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.filesize import decimal
from rich.table import Table

from ...state.errors import UsageError
from ...state.usage import Usage
from ..journal import JournalSummary, prune, summarize
from ..tables.grid import money
from .runtime import console

FILE = "journal.sqlite"


def journal(
    target: Annotated[
        str,
        typer.Argument(metavar="DIR|FILE|URL", help="The folder of a run, an SQLite file or a Postgres URL."),
    ],
    older_than: Annotated[
        float | None, typer.Option(metavar="DAYS", min=0, help="Select replies older than this many days.")
    ] = None,
    run: Annotated[
        str | None, typer.Option(metavar="ID", help="Select replies that this run paid for.")
    ] = None,
    invalidated: Annotated[
        bool, typer.Option("--invalidated", help="Select replies that could not be used.")
    ] = False,
    disowned: Annotated[bool, typer.Option("--disowned", hidden=True)] = False,
    delete: Annotated[
        bool, typer.Option("--prune", help="Delete the replies that match all of these options.")
    ] = False,
) -> None:
    """Show what a journal of calls holds and what the calls cost.

    With --prune, delete the selected replies; their cost stays counted.
    """
    where = str(Path(target) / FILE) if Path(target).is_dir() else target
    invalidated = invalidated or disowned
    selected = older_than is not None or run is not None or invalidated
    # Deleting takes both: what to delete, and to say so. Neither of them alone may delete, or look as if it had.
    if selected != delete:
        raise UsageError(
            "--older-than, --run and --invalidated select what to delete: add --prune to delete it"
            if selected
            else "--prune needs to know what to delete: give --older-than DAYS, --run ID or --invalidated"
        )
    output = console()
    if delete:
        pruned = prune(where, older_than_days=older_than, run=run, invalidated=invalidated)
        output.print(f"deleted {pruned:,} {'reply' if pruned == 1 else 'replies'}; their cost stays counted")
    for part in _view(summarize(where)):
        output.print(part)


def _view(summary: JournalSummary) -> list[str | Table]:
    span = f", from {_day(summary.oldest)} to {_day(summary.newest)}" if summary.spent.calls else ""
    about = (
        f"{summary.shown}: version {summary.version}, {decimal(summary.bytes)}, {summary.spent.calls:,} calls, "
        f"{summary.replies:,} replies cached{span}; {summary.invalidated:,} invalidated, "
        f"{summary.claims:,} in flight now"
    )
    return [about, _spending("model", summary.by_model), _spending("run", summary.by_run, summary.spent)]


def _spending(by: str, spent: Mapping[str, Usage], total: Usage | None = None) -> Table:
    table = Table(by)
    for heading in ("calls", "input tokens", "cached input", "output tokens", "cost"):
        table.add_column(heading, justify="right")
    for name, usage in spent.items():
        table.add_row(name, *_cells(usage))
    if total:
        table.add_section()
        table.add_row("total", *_cells(total))
    return table


def _cells(usage: Usage) -> list[str]:
    counts = (usage.calls, usage.input_tokens, usage.cached_input_tokens, usage.output_tokens)
    return [*(f"{n:,}" for n in counts), "unknown" if usage.cost_usd is None else money(usage.cost_usd)]


def _day(seconds: int | None) -> str:
    return f"{datetime.fromtimestamp(seconds or 0, UTC):%Y-%m-%d %H:%M}"
