"""Rerun debates without a turn: the command ``jurygraph whatif``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import typer

from ...state.errors import UsageError
from ..datasets.dataset import load_dataset
from ..experiments.whatif import Edit, WhatIf, WhatIfOptions, adjusted_over_turns, plan_whatif
from ..run.plan.labels_needed import note_without_labels
from .exit_codes import ExitCode
from .experiment_screen import print_result
from .option_sets import argument, option, takes_options
from .plan_options import DATA
from .progress import carry_out_to_end
from .runtime import CommandConfig, Output, console, interruptible
from .screens import print_next
from .show import print_note

change = partial(option, panel="Change")


@dataclass(frozen=True, kw_only=True)
class ChangeOptions:
    """The turns to change, and the protocol of the debates."""

    drop: list[str] | None = change(metavar="TURN")
    """Leave out this turn, such as critic:1 (the critic's first turn); repeatable."""
    flip: list[str] | None = change(metavar="TURN")
    """Make this turn say the opposite; repeatable."""
    protocol: str | None = option(metavar="NAME")
    """Protocol whose debates are rerun; needed if the run has several."""
    data: str | None = option(f"{DATA}; needed if the run's own data has moved.", "NAME|FILE")
    data_dir: Path | None = option(metavar="DIR")
    """Folder with the files of a published dataset."""


@takes_options(without=("batch",))
def whatif(
    folder: Path = argument("The folder of a run.", "DIR"),
    *,
    chosen: ChangeOptions,
    config: CommandConfig,
) -> None:
    """Rerun a run's debates with a turn left out or reversed.

    The debates continue from there, which shows how far the turn moves verdicts. Calls before the
    turn are answered from the run's journal; calls after it are made and paid for. With a language
    model, every debate is also resumed at the turn with nothing changed (the placebo), and the
    effect of the turn is the difference. Results go to a folder in DIR/whatif, and the same command
    resumes a rerun that stopped.

    Exit codes: 0 all judged, 2 bad input (no call made), 3 something failed, 4 budget reached, 130
    interrupted.
    """
    dropped = [Edit(turn, "drop") for turn in chosen.drop or ()]
    edits = [*dropped, *(Edit(turn, "flip") for turn in chosen.flip or ())]
    if not edits:
        raise UsageError(
            "no turn to change: name one with --drop or --flip, such as --drop critic:1"
        )
    out = console()
    left = 0
    with interruptible():
        if chosen.data is None and chosen.data_dir is not None:
            raise UsageError("--data-dir only applies to a dataset: name one with --data")
        items = None if chosen.data is None else load_dataset(chosen.data, chosen.data_dir)
        about: WhatIfOptions = {"data": items, "protocol": chosen.protocol}
        planned = [plan_whatif(folder, edit, config, about) for edit in edits]
        for fork in planned:
            fork.check(config)
        print_note(out, planned[0].plan.manifest)
        if note := note_without_labels(planned[0].plan):
            out.print_line(note, "yellow")
        if planned[0].journal is None:
            missing = (
                f"{folder} has no journal: the calls before the turn are made and paid for again"
            )
            out.print_line(missing, "yellow")
        for fork in planned:
            of_both = (
                "" if fork.placebo is None else ", half of them for the placebo (nothing changed)"
            )
            debates = f"{len(fork.plan) // len(fork.plan.graphs):,} debates"
            out.print_line(
                f"{fork.changed}: {debates}, about {fork.calls:,} calls after the turn{of_both}"
            )
    if config.dry_run:
        raise typer.Exit(ExitCode.ALL_JUDGED)
    results = list[WhatIf]()
    for fork in planned:
        done, code = carry_out_to_end(
            out, None, config, fork.carry_out, _not_yet, log_in=fork.plan.folder
        )
        results.append(done)
        # The exit code is that of the first fork that did not succeed.
        left = left or code
        # Except after an interruption, the next fork may succeed, for example within its budget.
        if done.stopped == "interrupted":
            break
    for done in adjusted_over_turns(results):
        print_next(out, print_result(out, done, config.verbose), str(done.folder))
    raise typer.Exit(left)


def _not_yet(_out: Output, _done: WhatIf) -> None:
    """Print nothing yet, because p-values are adjusted for all turns first."""
