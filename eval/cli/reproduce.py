"""Run a paper's table again and set it beside what the paper prints: the command ``jurygraph reproduce``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import typer

from ...nodes.offline import DISCLOSURE
from ..datasets.dataset import load_dataset
from ..reproduce.reproduction import Reproduction, plan_table, reproduce_table, without_systems
from ..reproduce.tables import find_table, paper_tables
from ..results.config import RunConfig
from ..results.folder import make_folder, write_whole
from ..sweeps.cells import CellResult
from ..sweeps.sweep_plan import SWEEP_WITHOUT
from ..sweeps.sweep_result import Sweep, write_grid
from ..sweeps.sweep_runner import carry_out_sweep
from ..tables import Column, Grid, text_column
from .option_sets import argument, option, takes_options
from .plan_options import PlanOptions
from .report import write_page_of
from .run import carry_out_to_end, default_out
from .runtime import ALL_JUDGED, DryRun, Output, Verbose, console, interruptible
from .sweep import announce_sweep

LIST = "list"
FILE = "reproduce.json"


@takes_options(without=("shard", *SWEEP_WITHOUT))
def reproduce(
    table: str = argument("A table's name; `list` lists them.", "TABLE|list"),
    *,
    chosen: PlanOptions,
    config: RunConfig,
    html: Path | None = option("Write one HTML page: the table, then the report on its judges.", "FILE"),
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
        out.print_grids([_tables()], gap=False)
        raise typer.Exit(ALL_JUDGED)
    wanted = find_table(table)
    asked = chosen.model or chosen.role_model or chosen.replies
    if not wanted.data or (wanted.gains_of and not asked):
        out.print_grids([reproduce_table(wanted, None).grid()], gap=False)
        if wanted.data:
            out.print_line(
                "only reckoned from printed figures: with --model your model's are measured beside them"
            )
        raise typer.Exit(ALL_JUDGED)
    folder = chosen.out or default_out([table], "")
    with interruptible():
        whole = load_dataset(chosen.data or wanted.data, chosen.data_dir, max_characters=chosen.max_chars)
        dataset = without_systems(whole, wanted.without_systems)
        if size := chosen.sample or wanted.sample:
            dataset = dataset.sample(size, chosen.seed or 0)
        planned = plan_table(wanted, dataset, chosen.of_plan(folder))
        if planned is not None:
            announce_sweep(out, planned, None, config, dry_run)
    if planned is None or dry_run:
        _finish(out, reproduce_table(wanted, whole), None if dry_run else folder)
        raise typer.Exit(ALL_JUDGED)

    def show(done: Sweep) -> None:
        if done.note:
            shown = " Only the machinery is shown, not what a model would do." * (done.note == DISCLOSURE)
            out.print_line(f"Warning: {done.note}{shown}", "yellow")
        reproduced = reproduce_table(wanted, whole, done.cells)
        _finish(out, reproduced, folder)
        if html is not None:
            out.print_line(_write_page(html, reproduced, done.cells))

    work = partial(carry_out_sweep, planned, config)
    _, code = carry_out_to_end(out, folder, verbose, work, show)
    raise typer.Exit(code)


def _finish(out: Output, done: Reproduction, folder: Path | None) -> None:
    """Print the table, and write it where there is a folder."""
    grid = done.grid()
    out.print_grids([grid], gap=False)
    if folder is None:
        return
    make_folder(folder)
    write_whole(folder / FILE, json.loads(json.dumps(done.to_json())))
    write_grid(grid, folder, "table")
    out.print_line(f"table: {folder}/table.md, .csv, .tex, {FILE}")


def _write_page(path: Path, done: Reproduction, cells: Sequence[CellResult]) -> str:
    """Write the table with the report on the judges that were run for it; return a line on the page."""
    from ..analysis import Study
    from ..report.page import Section, Table
    from ..report.sections import compose

    folders = [cell.evaluation.folder for cell in cells if cell.evaluation.folder is not None]
    grid = done.grid()
    lead = "What was measured here stands above what the paper prints for the same row."
    first = Section("paper", "The paper's table", "The paper's table", lead, (Table(grid),))
    page = compose(Study.of(folders), None, f"jurygraph: {grid.title}")
    return write_page_of(path, replace(page, sections=(first, *page.sections)), folders)


def _tables() -> Grid:
    """List the tables: what each is about, its data, and which of its rows are measured here."""
    rows = []
    for name, table in paper_tables().items():
        methods = [f"the {len(table.judges)} cells of its plan {table.plan}"] if table.plan else [*table.rows]
        measured = ", ".join([*methods, *(["people"] if table.shares else [])]) or "only printed figures"
        rows.append((name, table.paper, table.title, table.data, measured, len(table.errata) or None))
    about = map(text_column, ("table", "paper", "about", "data", "measured here"))
    return Grid("", (*about, Column("errata")), tuple(rows))
