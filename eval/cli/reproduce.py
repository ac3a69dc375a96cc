"""Run a paper's table again and set it beside what the paper prints: the command ``jurygraph reproduce``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from ...state.errors import UsageError
from ..calls.shutdown import StopSignal
from ..datasets.dataset import load_dataset
from ..reproduce.reproduction import Reproduction, plan_table, reproduce_table, without_systems
from ..reproduce.tables import find_table, paper_tables
from ..results.config import RunConfig
from ..results.folder import write_whole
from ..sweeps.sweep_plan import SWEEP_WITHOUT
from ..sweeps.sweep_result import FORMATS
from ..sweeps.sweep_runner import SweepCounts, carry_out_sweep
from ..tables import to_lines
from .option_sets import takes_options
from .plan_options import PlanOptions
from .run import carry_out, default_out, print_ending
from .runtime import ALL_JUDGED, DryRun, Output, Verbose, console, exit_code, interruptible, program
from .sweep import announce_sweep

LIST = "list"
FILE = "reproduce.json"


@takes_options(without=("replies", "shard", *SWEEP_WITHOUT))
def reproduce(
    table: Annotated[str, typer.Argument(metavar="TABLE|list", help="A table's name; `list` lists them.")],
    *,
    chosen: PlanOptions,
    config: RunConfig,
    verbose: Verbose = False,
    dry_run: DryRun = False,
) -> None:
    """Run a paper's table again: its data, settings and measure, with your model, beside what the paper prints.

    What is wrong in the paper and what differs here is said below the table. Rows that need no model are measured on
    all the data there are, whatever --limit and --sample say.

    Writes a run folder for each row, reproduce.json, and the table in Markdown, CSV and LaTeX. The same command with
    the same --out resumes, and a second run costs no call.

    Exit codes: 0 all judged, 2 bad input (no call made), 3 something failed, 4 budget reached, 130 interrupted.
    """
    out = console()
    if table == LIST:
        out.print(_tables())
        out.print_line(
            f"figures print no numbers; their settings are plans of sweeps: {program()} sweep --plans"
        )
        raise typer.Exit(ALL_JUDGED)
    wanted = find_table(table)
    if not wanted.data:
        out.print(to_lines(reproduce_table(wanted, None).grid(), out.width))
        raise typer.Exit(ALL_JUDGED)
    folder = chosen.out or default_out([table], "")
    with interruptible("interrupted before the first call; nothing was started"):
        whole = load_dataset(chosen.data or wanted.data, chosen.data_dir, max_characters=chosen.max_chars)
        dataset = without_systems(whole, wanted.without_systems)
        if chosen.sample is not None:
            dataset = dataset.sample(chosen.sample, chosen.seed or 0)
        planned = plan_table(wanted, dataset, chosen.of_plan(folder))
        if planned is not None:
            config = planned.config(config)
            announce_sweep(out, planned, None, config, dry_run)
    if planned is None or dry_run:
        _finish(out, reproduce_table(wanted, whole), None if dry_run else folder)
        raise typer.Exit(ALL_JUDGED)
    counts, stop = SweepCounts(), StopSignal()
    with interruptible(
        f"interrupted; finished results are saved. The same command with --out {folder} resumes."
    ):
        done = carry_out(
            folder, verbose, counts, stop, lambda: carry_out_sweep(planned, config, counts, stop)
        )
        if done.note:
            out.print_line(
                f"Warning: {done.note} Only the machinery is shown, not what a model would do.", "yellow"
            )
        _finish(out, reproduce_table(wanted, whole, done.cells), folder)
        out.print_line(
            f"all judges on a page: {program()} report {folder}/cells/* --html {folder}/report.html"
        )
        print_ending(out, folder, done.stopped, done.failed, counts, stop)
        raise typer.Exit(exit_code(done.stopped, done.failed))


def _finish(out: Output, done: Reproduction, folder: Path | None) -> None:
    """Print the table, and write it where there is a folder."""
    grid = done.grid()
    out.print(to_lines(grid, out.width))
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise UsageError(f"{folder} is a file: --out takes a folder") from None
    write_whole(folder / FILE, json.loads(json.dumps(done.to_json())))
    for suffix, form in FORMATS.items():
        (folder / f"table.{suffix}").write_text(form(grid), encoding="utf-8")
    out.print_line(f"table: {folder}/table.md, .csv, .tex, {FILE}")


def _tables() -> Table:
    """Make a list of the tables: what each is about, its data, and which of its rows are measured here."""
    listed = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for column in ("table", "paper", "about", "data", "measured here", "errata"):
        listed.add_column(column, no_wrap=column == "table", overflow="fold")
    for name, table in paper_tables().items():
        measured = ", ".join([*table.rows, *(["people"] if table.shares else [])]) or "from printed figures"
        listed.add_row(name, table.paper, table.title, table.data, measured, str(len(table.errata) or ""))
    return listed
