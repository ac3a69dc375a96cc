"""``jurygraph journal``: what a journal holds and what was spent, and replies deleted on demand."""

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
from .runtime import console

FILE = "journal.sqlite"


def journal(
    target: Annotated[
        str,
        typer.Argument(metavar="DIR|FILE|URL", help="The folder of a run, an SQLite file or a Postgres URL."),
    ],
    older_than: Annotated[
        float | None, typer.Option(metavar="DAYS", min=0, help="Prune replies older than this.")
    ] = None,
    run: Annotated[
        str | None, typer.Option(metavar="ID", help="Prune replies that this run paid for.")
    ] = None,
    invalidated: Annotated[
        bool, typer.Option("--disowned", help="Prune replies that could not be used.")
    ] = False,
    delete: Annotated[
        bool, typer.Option("--prune", help="Delete the replies that all the above name.")
    ] = False,
) -> None:
    """Show what a journal holds and what was spent; with --prune, delete replies (their cost stays counted)."""
    where = str(Path(target) / FILE) if Path(target).is_dir() else target
    choice = older_than is not None or run is not None or invalidated
    if choice != delete:
        raise UsageError(
            "--older-than, --run and --disowned name what to delete: add --prune to delete it"
            if choice
            else "--prune needs --older-than DAYS, --run ID or --disowned, which name what to delete"
        )
    output = console()
    if delete:
        pruned = prune(where, older_than_days=older_than, run=run, invalidated=invalidated)
        output.print(
            f"deleted {pruned:,} {'reply' if pruned == 1 else 'replies'}; what was spent stays counted"
        )
    for part in _view(summarize(where)):
        output.print(part)


def _view(summary: JournalSummary) -> list[str | Table]:
    span = f", from {_day(summary.oldest)} to {_day(summary.newest)}" if summary.spent.calls else ""
    about = (
        f"{summary.shown}: version {summary.version}, {decimal(summary.bytes)}, {summary.spent.calls:,} calls, "
        f"{summary.replies:,} replies kept{span}; {summary.invalidated:,} disowned, {summary.claims:,} claimed now"
    )
    return [about, _spending("model", summary.by_model), _spending("run", summary.by_run, summary.spent)]


def _spending(by: str, spent: Mapping[str, Usage], together: Usage | None = None) -> Table:
    table = Table(by)
    for heading in ("calls", "input tokens", "of them cached", "output tokens", "USD"):
        table.add_column(heading, justify="right")
    for name, usage in spent.items():
        table.add_row(name, *_cells(usage))
    if together:
        table.add_section()
        table.add_row("all", *_cells(together))
    return table


def _cells(usage: Usage) -> list[str]:
    counts = (usage.calls, usage.input_tokens, usage.cached_input_tokens, usage.output_tokens)
    return [*(f"{n:,}" for n in counts), "unknown" if usage.cost_usd is None else f"{usage.cost_usd:.4f}"]


def _day(seconds: int | None) -> str:
    return f"{datetime.fromtimestamp(seconds or 0, UTC):%Y-%m-%d %H:%M}"
