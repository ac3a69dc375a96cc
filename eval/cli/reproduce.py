"""Rerun a paper's table with your model, next to the printed one: ``jurygraph reproduce``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import typer

from ...nodes.common.plugins import installed_version
from ...nodes.common.sync_bridge import run_blocking
from ...state.errors import UsageError
from ...state.verdict_warnings import DISCLOSURE
from ..analysis import Study
from ..experiments.errata import errata, errata_of
from ..experiments.paper_needs import UnfillableError
from ..experiments.paper_tables import PaperTable, find_table, paper_tables
from ..experiments.published_table import PAGE, check_published, private_in, publish
from ..experiments.reproduction import (
    HUMAN,
    Reproduction,
    reproduce_table,
    without_systems,
)
from ..experiments.reproduction_plan import plan_reproduction
from ..experiments.sweep_plan import SWEEP_WITHOUT
from ..report.study_tables import pooled
from ..run.calls.call_pipeline import RunContext
from ..tables import Column, Grid, text_column
from ..tables.screen import FirstScreen
from .exit_codes import ExitCode
from .option_sets import argument, option, takes_options
from .plan_options import PlanOptions
from .progress import carry_out_to_end
from .report import write_page_of
from .run import default_out
from .runtime import CommandConfig, Output, console, interruptible
from .sweep import announce_sweep, print_failed_cells

LIST = "list"


@takes_options(without=("model", "shard", *SWEEP_WITHOUT))
def reproduce(
    table: str = argument("Name of a table; `list` lists all of them.", "TABLE|list"),
    *,
    model: list[str] | None = option(
        "Model for all roles, such as openai:gpt-4o-mini; repeatable: each model judges every row.",
        "NAME",
    ),
    chosen: PlanOptions,
    config: CommandConfig,
    html: Path | None = option(
        "Write an HTML page with the table and a report on its judges. Default: page.html in --out.",
        "FILE",
    ),
    check: Path | None = option(
        "Check a published folder without a model: its files, verdicts and figures.", "DIR"
    ),
) -> None:
    """Rerun a paper's table and compare with the published figures.

    Your model judges with the paper's data, settings and metric. Notes below the table list the
    paper's errors and what differs here. Rows that need no model are measured on all of the data,
    whatever --limit and --sample say.

    Writes a run folder for each row, reproduce.json, the table in Markdown, CSV and LaTeX, a page,
    and a manifest with checksums, so that the folder can be published. --check DIR computes every
    figure of such a folder again, without a model. The same command with the same --out resumes a
    run that stopped; once all is judged, it makes no more calls.

    Exit codes: 0 all judged or all checked, 2 bad input (no call made), 3 something failed or
    differs, 4 budget reached, 130 interrupted.
    """
    out = console()
    if table == LIST:
        _print_list(out)
        raise typer.Exit(ExitCode.ALL_JUDGED)
    wanted = find_table(table)
    models = model or []
    if check is not None:
        _check(out, wanted, check, chosen, models)
    if len(models) == 1:
        chosen = replace(chosen, model=models[0])
        models = []
    asked = models or chosen.model or chosen.role_model or chosen.replies
    if asked and not wanted.judges:
        raise UsageError(
            f"{table} has no row that a model could fill: leave out --model and --replies"
        )
    if not wanted.data or (wanted.gains_of and not asked):
        _print(out, reproduce_table(wanted, None), html)
        if wanted.data:
            out.print_line("no model was called; add --model to measure a model of yours")
        raise typer.Exit(ExitCode.ALL_JUDGED)
    folder = chosen.out or default_out([table], "")
    with interruptible():
        whole = chosen.whole(chosen.data or wanted.data)
        dataset = without_systems(whole, wanted.without_systems)
        if size := chosen.sample or wanted.sample:
            dataset = dataset.sample(size, chosen.seed or 0, chosen.of_group)
        try:
            planned = plan_reproduction(
                wanted, whole, dataset, chosen.of_plan(folder), models, folder
            )
        except UnfillableError:
            # Showing the printed numbers needs no data.
            _print(out, reproduce_table(wanted, None), None)
            raise
        if planned.sweep is not None:
            for note in planned.notes:
                out.print_line(note, "yellow")
            announce_sweep(out, planned.sweep, None, config)
    if config.dry_run:
        _print(out, planned.result(), None)
        raise typer.Exit(ExitCode.ALL_JUDGED)
    if planned.sweep is None:
        _print(out, run_blocking(planned.carry_out(RunContext(config))), html)
        raise typer.Exit(ExitCode.ALL_JUDGED)

    def show(out: Output, done: Reproduction) -> None:
        assert done.sweep is not None
        if note := done.sweep.note:
            shown = " This only shows the command; it measures no model." * (note == DISCLOSURE)
            out.print_line(f"Warning: {note}{shown}", "yellow")
        _print(out, done, html)
        print_failed_cells(out, done.sweep)
        if models and done.sweep.judged_folders:
            out.print_grids([*pooled(Study.of(done.sweep.judged_folders))])

    raise typer.Exit(carry_out_to_end(out, folder, config, planned.carry_out, show)[1])


def _check(
    out: Output, table: PaperTable, folder: Path, chosen: PlanOptions, models: Sequence[str]
) -> NoReturn:
    """Check a published folder, and exit with the result."""
    data_alone = PlanOptions(data=chosen.data, data_dir=chosen.data_dir)
    if models or chosen != data_alone:
        raise UsageError(
            "--check calls no model and judges nothing: only --data and --data-dir go with it"
        )
    dataset = None
    if chosen.data or chosen.data_dir:
        dataset = chosen.whole(chosen.data or table.data)
    found = check_published(folder, table.name, dataset)
    for fault in found.faults:
        out.print_line(f"differs: {fault}", "red")
    for row in found.unchecked:
        out.print_line(f"not checked: {row}", "yellow")
    out.print_line(
        f"{found.files} files, {found.verdicts:,} verdicts from recorded replies and "
        f"{found.figures} figures checked without a model: "
        + ("all agree" if not found.faults else f"{len(found.faults)} differ")
    )
    raise typer.Exit(ExitCode.SOME_FAILED if found.faults else ExitCode.ALL_JUDGED)


def _print_list(out: Output) -> None:
    """Print all tables, and the papers' errors that affect no table."""
    rows = []
    for name, table in paper_tables().items():
        methods = (
            [f"the {len(table.judges)} cells of its plan {table.plan}"]
            if table.plan
            else [*table.rows]
        )
        measured = ", ".join([*methods, *([HUMAN] if table.shares else [])])
        number = len(errata_of(name)) or None
        rows.append(
            (name, table.paper, table.title, table.data, measured, _needs_model(table), number)
        )
    about = map(text_column, ("table", "paper", "about", "data", "measured here", "needs a model"))
    others = tuple(f"Erratum: {erratum}" for erratum in errata() if not erratum.tables)
    out.print_grids([Grid("", (*about, Column("errata")), tuple(rows), others)], gap=False)


def _needs_model(table: PaperTable) -> str:
    """Report which rows of a table need a model."""
    if not table.data:
        return "no: printed figures only"
    without = [name for name in table.rows if name not in table.judges]
    if table.shares:
        without.append(HUMAN)
    if table.gains_of:
        return f"for rows of your own; gains are also computed from {table.gains_of}"
    if not table.judges:
        return f"no: {', '.join(without)} from published data"
    return f"yes, except {', '.join(without)} (from published data)" if without else "yes"


def _print(out: Output, done: Reproduction, html: Path | None) -> None:
    """Print the table, and write a page with a report on the judges."""
    out.print_grids([done.grid()], gap=False)
    if html is None and done.folder is not None:
        html = done.folder / PAGE
    if html is not None:
        out.print_line(_write_page(html, done))
    if done.folder is not None:
        out.print_line(f"table: {done.folder}/table.md, .csv, .tex, {done.file}")
        publish(done.folder, done.table.name, done.sweep.judged_folders if done.sweep else ())
        for note in private_in(done.folder):
            out.print_line(f"Look at this before you publish the folder: {note}", "yellow")
        check = f"jurygraph reproduce {done.table.name} --check {done.folder}"
        out.print_line(f"to check the folder: {check}")


def _write_page(html: Path, done: Reproduction) -> str:
    """Write a page with the table above a report on its judges, and return a line on it."""
    from ..report.page import Page, PageOfDataset, Section, Table
    from ..report.sections import compose

    grid = done.grid()
    judged = done.sweep.judged_folders if done.sweep else []
    title = f"jurygraph: {grid.title}"
    lead = "In each cell, the figure measured here stands above the printed one."
    table = Section("paper", "The paper's table", "The paper's table", lead, (Table(grid),))
    screen = FirstScreen("", grid.title, grid, "" if judged else "No model was called.")
    above = PageOfDataset("", "", screen, (table,))
    if judged:
        page = compose(Study.of(judged), title)
        return write_page_of(html, replace(page, datasets=(above, *page.datasets)), judged)
    page = Page(
        title=title,
        subtitle="",
        datasets=(above,),
        configs=(),
        made="No model was called.",
        version=installed_version("jurygraph"),
    )
    return write_page_of(html, page, judged)
