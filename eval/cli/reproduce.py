"""Run a paper's table again and set it beside what the paper prints: the command ``jurygraph reproduce``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import typer

from ...nodes.offline import DISCLOSURE
from ..analysis import Study
from ..experiments.reproduction import (
    Reproduction,
    find_table,
    paper_tables,
    plan_table,
    reproduce_table,
    without_systems,
)
from ..experiments.sweep_plan import SWEEP_WITHOUT, carry_out_sweep
from ..experiments.sweep_result import Sweep, write_grid
from ..report.study_tables import pooled
from ..results.folder import make_folder, write_whole
from ..tables import Column, Grid, text_column
from .option_sets import argument, option, takes_options
from .plan_options import PlanOptions
from .progress import carry_out_to_end
from .report import write_page_of
from .run import default_out
from .runtime import ALL_JUDGED, CommandConfig, Output, console, interruptible
from .sweep import announce_sweep, print_failed_cells

LIST = "list"
FILE = "reproduce.json"


@takes_options(without=("model", "shard", *SWEEP_WITHOUT))
def reproduce(
    table: str = argument("Name of a table; `list` lists all of them.", "TABLE|list"),
    *,
    model: list[str] | None = option(
        "Model for all roles, such as openai:gpt-4o-mini; repeatable: each model judges every row.", "NAME"
    ),
    chosen: PlanOptions,
    config: CommandConfig,
    html: Path | None = option("Write an HTML page with the table and a report on its judges.", "FILE"),
) -> None:
    """Rerun a paper's table with your model, on the paper's data, settings and metric, beside the published figures.

    Notes below the table list the paper's errors and what differs here. Rows that need no model are measured on all
    of the data, whatever --limit and --sample say.

    Writes a run folder for each row, reproduce.json, and the table in Markdown, CSV and LaTeX. The same command with
    the same --out resumes a run that stopped; once all is judged, it makes no more calls.

    Exit codes: 0 all judged, 2 bad input (no call made), 3 something failed, 4 budget reached, 130 interrupted.
    """
    out = console()
    if table == LIST:
        rows = []
        for name, paper in paper_tables().items():
            of_plan = f"the {len(paper.judges)} cells of its plan {paper.plan}"
            methods = [of_plan] if paper.plan else [*paper.rows]
            measured = ", ".join([*methods, *(["people"] if paper.shares else [])]) or "only printed figures"
            rows.append((name, paper.paper, paper.title, paper.data, measured, len(paper.errata) or None))
        about = map(text_column, ("table", "paper", "about", "data", "measured here"))
        out.print_grids([Grid("", (*about, Column("errata")), tuple(rows))], gap=False)
        raise typer.Exit(ALL_JUDGED)
    wanted = find_table(table)
    models = model or []
    if len(models) == 1:
        chosen, models = replace(chosen, model=models[0]), []
    asked = models or chosen.model or chosen.role_model or chosen.replies
    if not wanted.data or (wanted.gains_of and not asked):
        _finish(out, reproduce_table(wanted, None), None, html)
        if wanted.data:
            out.print_line("from published figures only; add --model to measure a model of yours beside them")
        raise typer.Exit(ALL_JUDGED)
    folder = chosen.out or default_out([table], "")
    with interruptible():
        whole = chosen.whole(chosen.data or wanted.data)
        dataset = without_systems(whole, wanted.without_systems)
        if size := chosen.sample or wanted.sample:
            dataset = dataset.sample(size, chosen.seed or 0, chosen.of_group)
        planned = plan_table(wanted, dataset, chosen.of_plan(folder), models)
        if planned is not None:
            announce_sweep(out, planned, None, config)
    if planned is None or config.dry_run:
        written = (None, None) if config.dry_run else (folder, html)
        _finish(out, reproduce_table(wanted, whole), *written)
        raise typer.Exit(ALL_JUDGED)

    def show(out: Output, done: Sweep) -> None:
        if done.note:
            shown = " This only shows the command; it measures no model." * (done.note == DISCLOSURE)
            out.print_line(f"Warning: {done.note}{shown}", "yellow")
        _finish(out, reproduce_table(wanted, whole, done.cells), folder, html, done.judged_folders)
        print_failed_cells(out, done)
        if models and done.judged_folders:
            out.print_grids([*pooled(Study.of(done.judged_folders))])

    raise typer.Exit(carry_out_to_end(out, folder, config, partial(carry_out_sweep, planned), show)[1])


def _finish(
    out: Output, done: Reproduction, folder: Path | None, html: Path | None, judged: Sequence[Path] = ()
) -> None:
    """Print the table, and write it where there is a folder, and as a page with the report on those who judged."""
    grid = done.grid()
    out.print_grids([grid], gap=False)
    if html is not None:
        from ..report.page import Page, Section, Table
        from ..report.sections import compose

        title = f"jurygraph: {grid.title}"
        lead = "Figures measured here are above those that the paper prints."
        table = Section("paper", "The paper's table", "The paper's table", lead, (Table(grid),))
        if judged:
            page = compose(Study.of(judged), title)
            page = replace(page, sections=(table, *page.sections))
        else:
            page = Page(title, "", grid.title, (), (), (table,), (), "No model was called.", "")
        out.print_line(write_page_of(html, page, judged))
    if folder is None:
        return
    make_folder(folder)
    write_whole(folder / FILE, done.to_json())
    write_grid(grid, folder, "table")
    out.print_line(f"table: {folder}/table.md, .csv, .tex, {FILE}")
