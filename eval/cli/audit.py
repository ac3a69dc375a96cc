"""Have the debates of a run read turn by turn: the command ``jurygraph audit``."""

from __future__ import annotations

from pathlib import Path

import typer

from ...state.errors import UsageError
from ..review.run_audit import FILE, AuditedRole, audit_run
from ..tables import Grid, columns_of
from .option_sets import argument, option
from .runtime import (
    ALL_JUDGED,
    SOME_FAILED,
    console,
    interruptible,
    models_of,
    program,
    settings_of,
)


def audit(
    folder: Path = argument("The folder of a run.", "DIR"),
    model: str | None = option("The auditor's model. Default: the offline judge.", "NAME"),
    settings: list[str] | None = option("A setting of all protocols; repeatable.", "KEY=VALUE", name="--set"),
    limit: int | None = option("Read only the first N verdicts.", "N", min=1),
    concurrency: int = option("Verdicts that are read at a time.", "N", min=1, default=8),
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
    if done.roles:
        title = f"what turns did, as {', '.join(done.models) or 'nobody'} reads them"
        out.print_grids([Grid.from_records(title, columns_of(AuditedRole), done.roles)], gap=False)
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
