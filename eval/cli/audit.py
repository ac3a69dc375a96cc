"""Have the debates of a run read turn by turn: the command ``jurygraph audit``."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import typer

from ...nodes.sync_bridge import run_blocking
from ..results.config import RunConfig
from ..review.audit_labels import FILE, AuditedRole
from ..run.run_audit import Audit, carry_out_audit, plan_audit
from ..tables.grid import Grid, columns_of
from .option_sets import argument, option, takes_options
from .run import announce_estimate, carry_out_to_end
from .runtime import (
    Output,
    RunFlags,
    console,
    interruptible,
    models_of,
    program,
    settings_of,
)


@takes_options(without=("batch", "fresh", "overwrite"))
def audit(
    folder: Path = argument("The folder of a run.", "DIR"),
    *,
    model: str | None = option("Model that labels the turns. Default: the offline judge.", "NAME"),
    settings: list[str] | None = option("Setting of the audit; repeatable.", "KEY=VALUE", name="--set"),
    limit: int | None = option("Label only the debates of the first N verdicts.", "N", min=1),
    config: RunConfig,
    flags: RunFlags,
) -> None:
    """Label each turn of a run's debates: new argument, repetition or concession, and whether it answers another turn.

    Verdicts do not change. Labels are saved to DIR/audit.jsonl as they are made, and reports show them. The same
    command resumes an audit that stopped. Each turn takes one model call.

    Exit codes: 0 all labelled, 2 bad input (no call made), 3 something failed, 4 budget reached, 130 interrupted.
    """
    out, models = console(), models_of(model, []) or None
    with interruptible():
        planned = run_blocking(plan_audit(folder, models, limit, **settings_of(settings or [])))
        planned.check(config)
        if flags.dry_run or planned.costs_money:
            announce_estimate(out, planned.expected, config)
    work, show = partial(carry_out_audit, planned), partial(_print_audit, out, folder)
    raise typer.Exit(carry_out_to_end(out, None, flags, config, work, show)[1])


def _print_audit(out: Output, folder: Path, done: Audit) -> None:
    """Print what the turns of each role did, what could not be read, and where the labels are."""
    if done.roles:
        title = f"what turns did, labelled by {', '.join(done.models) or 'nobody'}"
        out.print_grids([Grid.from_records(title, columns_of(AuditedRole), done.roles)], gap=False)
    if "offline" in done.models:
        offline = "The offline judge is not a language model: it labels turns by their words."
        out.print_line(f"Warning: {offline} These labels only show what the command prints.", "yellow")
    for key, reason in list(done.failed.items())[:5]:
        out.print_line(f"failed: {key.item}: {reason.splitlines()[0]}", "yellow")
    left = f"; {done.left:,} left to label" if done.left else ""
    out.print_line(f"debates of {done.read:,} verdicts labelled{left}; {done.calls:,} new calls")
    out.print_line(f"labels: {folder / FILE}; table: {program()} report {folder} --table audit")
