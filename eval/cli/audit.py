"""Have the debates of a run read turn by turn: the command ``jurygraph audit``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...state.errors import UsageError
from ..review.run_audit import FILE, AuditedRole, audit_run
from ..tables import Grid, columns_of, to_lines
from .option_sets import takes_options
from .runtime import (
    ALL_JUDGED,
    SOME_FAILED,
    console,
    interruptible,
    models_of,
    program,
    settings_of,
)


@takes_options()
def audit(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a run.")],
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="The auditor's model. Default: the offline judge.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting of all protocols; repeatable."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Read only the first N verdicts.")
    ] = None,
    concurrency: Annotated[
        int, typer.Option(metavar="N", min=1, help="Verdicts that are read at a time.")
    ] = 8,
) -> None:
    """Say of each turn of a run's debates whether it was a new argument, a repetition or a concession, and answered.

    Verdicts stay as they are. Labels are kept in DIR/audit.jsonl as they are made, the same command goes on where it
    stopped, and reports show them. It takes a call for each turn.

    Exit codes: 0 all read, 2 bad input (no call made), 3 something failed, 130 interrupted.
    """
    out = console()
    with interruptible(f"interrupted; labels so far are in {folder / FILE}. The same command goes on."):
        done = audit_run(
            folder,
            models_of(model, []) or None,
            limit=limit,
            concurrency=concurrency,
            **settings_of(settings or []),
        )
    if not done.read and not done.failed:
        raise UsageError(f"{folder} holds no debate: every verdict has a single turn, or none")
    grid = Grid.from_records(
        f"what turns did, as {', '.join(done.models) or 'nobody'} reads them",
        columns_of(AuditedRole),
        done.roles,
    )
    if done.roles:
        out.print(to_lines(grid, out.width))
    if "offline" in done.models:
        out.print_line(
            "Warning: The offline judge is no language model: it labels turns by their words. Only the machinery "
            "is shown.",
            "yellow",
        )
    for key, reason in list(done.failed.items())[:5]:
        out.print_line(f"failed: {key.item}: {reason.splitlines()[0]}", "yellow")
    left = f"; {done.left:,} verdicts are not read yet" if done.left else ""
    out.print_line(f"{done.read:,} verdicts read{left}; {done.usage.calls:,} calls now")
    out.print_line(f"labels: {folder / FILE}; beside all else: {program()} report {folder} --table audit")
    raise typer.Exit(SOME_FAILED if done.failed else ALL_JUDGED)
