"""Fork the debates of a run at a turn: the command ``jurygraph whatif``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ...state.errors import UsageError
from ..calls.progress_counters import ProgressCounters
from ..calls.shutdown import StopSignal
from ..datasets.dataset import load_dataset
from ..results.config import RunConfig
from ..run.pipelines import check_run
from ..statistics.metrics import METRICS
from ..tables import Grid, columns_of, to_lines
from ..what_if.forked_debates import Edit
from ..what_if.whatif import FILE, TurnEffect, carry_out_whatif, plan_whatif
from .option_sets import takes_options
from .plan_options import DATA
from .run import carry_out, print_ending
from .runtime import Verbose, console, exit_code, interruptible
from .show import head

change = partial(typer.Option, metavar="TURN", rich_help_panel="The change")


@takes_options(without=("batch",))
def whatif(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a run.")],
    drop: Annotated[
        list[str] | None,
        change(help="Leave out this turn, such as critic:1 (an agent, and which of its turns); repeatable."),
    ] = None,
    flip: Annotated[list[str] | None, change(help="Have this turn say the opposite; repeatable.")] = None,
    protocol: Annotated[
        str | None, typer.Option(metavar="NAME", help="Whose debates, where the run is of several protocols.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(metavar="NAME|FILE", help=f"{DATA}; where the run's own data has another place now."),
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder with a published dataset's files.")
    ] = None,
    *,
    config: RunConfig,
    verbose: Verbose = False,
) -> None:
    """Find out how far a turn moves verdicts: the debates of a run without it, judged on from there.

    The run's journal answers the calls up to the turn; what follows is asked and paid for. Results go to a folder
    inside DIR, whatif/, and the same command resumes what stopped.

    Exit codes: 0 all judged, 2 bad input (no call made), 3 something failed, 4 budget reached, 130 interrupted.
    """
    edits = [*(Edit(turn, "drop") for turn in drop or ()), *(Edit(turn, "flip") for turn in flip or ())]
    if not edits:
        raise UsageError("no turn to change: name one with --drop or --flip, such as --drop critic:1")
    out, left = console(), 0
    with interruptible("interrupted before the first call; nothing was started"):
        items = None if data is None else load_dataset(data, data_dir)
        planned = [plan_whatif(folder, edit, items, protocol, config) for edit in edits]
        for fork in planned:
            check_run(fork.plan, fork.config)
        for part in head(planned[0].plan.manifest):
            out.print(part)
        if planned[0].config.journal is None:
            out.print(
                f"[yellow]{folder} has no journal: its calls up to the turn are made and paid for again[/]"
            )
    for fork in planned:
        counts, stop = ProgressCounters(), StopSignal()
        with interruptible("interrupted; finished results are saved. The same command resumes."):
            work = partial(carry_out_whatif, fork, counts, stop)
            done = carry_out(fork.plan.folder, verbose, counts, stop, work)
            title = f"{fork.protocol} as it was, less {fork.protocol} {fork.edit.title}: {METRICS[done.metric].title}"
            grid = Grid.from_records(title, columns_of(TurnEffect), done.effects)
            out.print(to_lines(grid, out.width))
            out.print_line(f"all of it: {done.folder}/{FILE}, results.jsonl")
            print_ending(out, done.folder, done.stopped, done.failed, counts, stop)
            left = left or exit_code(done.stopped, done.failed)
        if stop.reason == "interrupted":
            break
    raise typer.Exit(left)
