"""Label the turns of a run's debates: the command ``jurygraph audit``."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import typer

from ...nodes.common.sync_bridge import run_blocking
from ..experiments.run_audit import Audit, plan_audit
from .option_sets import argument, flag, option, takes_options
from .progress import carry_out_to_end
from .run import announce_estimate
from .runtime import CommandConfig, Output, command, console, interruptible, models_of, settings_of


@takes_options(without=("batch", "fresh", "overwrite"))
def audit(
    folder: Path = argument("The folder of a run.", "DIR"),
    *,
    model: str | None = option("Model that labels the turns. Default: the offline judge.", "NAME"),
    settings: list[str] | None = option(
        "Setting of the audit; repeatable.", "KEY=VALUE", name="--set"
    ),
    second: bool = flag("Label as the second labeller, to measure how far two labellers agree."),
    limit: int | None = option("Label only the debates of the first N verdicts.", "N", min=1),
    config: CommandConfig,
) -> None:
    """Label what each turn of a run's debates did.

    Labels are: new argument, repetition or concession; ChatEval's four behaviours (opening
    statement, alternative proposal, stance maintenance, seeking consensus); and whether the turn
    answers another one. Human labels show whether a critic objects to right scores. Verdicts do not
    change. Labels are saved to DIR/audit.jsonl as they are made, and reports show them. With
    --second, another model labels the same turns to DIR/audit-second.jsonl, and the agreement is
    shown. The same command resumes an audit that stopped. Each turn takes one model call.

    Exit codes: 0 all labelled, 2 bad input (no call made), 3 something failed, 4 budget reached,
    130 interrupted.
    """
    out = console()
    models = models_of(model, []) or None
    with interruptible():
        planned = run_blocking(
            plan_audit(folder, models, limit, second=second, **settings_of(settings or []))
        )
        planned.check(config)
        if config.dry_run or planned.costs_money:
            announce_estimate(out, planned.expected, config)
    show = partial(_show_audit, folder)
    raise typer.Exit(carry_out_to_end(out, None, config, planned.carry_out, show)[1])


def _show_audit(folder: Path, out: Output, done: Audit) -> None:
    """Print the labels of each role's turns, the unreadable replies, and the output file."""
    out.print_grids(done.grids(), gap=False)
    if "offline" in done.models:
        offline = "The offline judge is not a language model: it labels turns by their words."
        out.print_line(
            f"Warning: {offline} These labels only show what the command prints.", "yellow"
        )
    for key, reason in list(done.unlabelled.items())[:5]:
        out.print_line(f"failed: {key.item}: {reason.splitlines()[0]}", "yellow")
    left = f"; {done.left:,} left to label" if done.left else ""
    out.print_line(f"debates of {done.read:,} verdicts labelled{left}; {done.calls:,} new calls")
    out.print_line(
        f"labels: {folder / done.labels}; table: {command('report', folder, '--table', 'audit')}"
    )
