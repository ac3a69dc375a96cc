"""Fork the debates of a run at a turn: the command ``jurygraph whatif``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import get_args

import typer

from ...state.errors import UsageError
from ..datasets.dataset import load_dataset
from ..results.config import RunConfig
from ..run.runner import check_run
from ..what_if.whatif import Change, Edit, carry_out_whatif, plan_whatif
from .option_sets import argument, option, takes_options
from .plan_options import DATA
from .run import carry_out_to_end, show_experiment
from .runtime import RunFlags, console, interruptible
from .show import print_note

change = partial(option, panel="Change")


@dataclass(frozen=True, kw_only=True)
class ChangeOptions:
    """Which turns are changed, and in whose debates."""

    drop: list[str] | None = change(metavar="TURN")
    """Leave out this turn, such as critic:1 (the critic's first turn); repeatable."""
    flip: list[str] | None = change(metavar="TURN")
    """Make this turn say the opposite; repeatable."""
    protocol: str | None = option(metavar="NAME")
    """Protocol whose debates are rerun; needed if the run has several."""
    data: str | None = option(f"{DATA}; needed if the run's own data has moved.", "NAME|FILE")
    data_dir: Path | None = option(metavar="DIR")
    """Folder with the files of a published dataset."""


@takes_options(without=("batch", "dry_run"))
def whatif(
    folder: Path = argument("The folder of a run.", "DIR"),
    *,
    chosen: ChangeOptions,
    config: RunConfig,
    flags: RunFlags,
) -> None:
    """Find out how far a turn moves verdicts: leave it out of a run's debates, and let them continue from there.

    Calls before the turn are answered from the run's journal; calls after it are made and paid for. Results go to a
    folder in DIR/whatif, and the same command resumes a rerun that stopped.

    Exit codes: 0 all judged, 2 bad input (no call made), 3 something failed, 4 budget reached, 130 interrupted.
    """
    turns = {"drop": chosen.drop, "flip": chosen.flip}
    edits = [Edit(turn, change) for change in get_args(Change) for turn in turns[change] or ()]
    if not edits:
        raise UsageError("no turn to change: name one with --drop or --flip, such as --drop critic:1")
    out, left = console(), 0
    with interruptible():
        items = None if chosen.data is None else load_dataset(chosen.data, chosen.data_dir)
        planned = [plan_whatif(folder, edit, items, chosen.protocol, config, None) for edit in edits]
        for fork in planned:
            check_run(fork.plan, fork.config)
        print_note(out, planned[0].plan.manifest)
        if planned[0].config.journal is None:
            missing = f"{folder} has no journal: the calls before the turn are made and paid for again"
            out.print_line(missing, "yellow")
    for fork in planned:
        work, show = partial(carry_out_whatif, fork), partial(show_experiment, out)
        done, code = carry_out_to_end(out, None, flags, fork.config, work, show, log_in=fork.plan.folder)
        left = left or code
        if done.stopped == "interrupted":
            break
    raise typer.Exit(left)
