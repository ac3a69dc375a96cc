"""Judge a dataset with combinations of settings or a ready-made plan: ``jurygraph sweep``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

import typer

from ...graphs.engine.registry import DEFAULT
from ...nodes.common.sync_bridge import run_blocking
from ...state.errors import UsageError
from ...state.redaction import shell_line
from ..experiments.cells import Axis
from ..experiments.presets import FAIR, SweepPreset, ablations, fair, plan_ablation
from ..experiments.shared_calls import bounds, expected_calls
from ..experiments.sweep_plan import (
    SWEEP_WITHOUT,
    SweepPlan,
    plan_sweep,
)
from ..experiments.sweep_result import Sweep
from ..run.plan.estimator import between
from ..run.plan.labels_needed import need_labels, note_without_labels
from ..statistics.metrics import check_metric
from ..tables.grid import CellValue, Column, Grid, money, text_column
from .exit_codes import ExitCode
from .option_sets import argument, flag, option, takes_options
from .plan_options import PlanOptions
from .progress import carry_out_to_end
from .run import default_out, example_step, print_failures
from .runtime import CommandConfig, Output, command, console, interruptible
from .screens import Step, print_screens
from .show import print_note

variation, variation_flag = (partial(kind, panel="Variation") for kind in (option, flag))
SHOWN_CELLS = 30


@dataclass(frozen=True, kw_only=True)
class VariationOptions:
    """The settings that vary, and the metric for the comparison of cells."""

    axis: list[str] | None = variation(metavar="KEY=V1,V2,...")
    """A setting, `protocol`, `model` or `model.ROLE`, and its values; KEY=[...] takes a JSON list;
    repeatable."""
    plan: str | None = variation(metavar="NAME")
    """Run a ready-made plan."""
    plans: bool = variation_flag()
    """List the ready-made plans and exit."""
    metric: str | None = option(metavar="NAME")
    """Metric to compare cells by, such as spearman or group_spearman. Default: depends on the
    data."""


@takes_options(without=("shard", *SWEEP_WITHOUT))
def sweep(
    protocol: str | None = argument(
        "The protocol to vary; a ready-made plan has its own.", "PROTOCOL", default=None
    ),
    *,
    varied: VariationOptions,
    chosen: PlanOptions,
    config: CommandConfig,
) -> None:
    """Judge a dataset with every combination of the given settings.

    Writes a run folder for each combination, and a table and figures that compare them. Calls that
    combinations share are made once.

    The same command with the same --out resumes a sweep that stopped.

    Exit codes: 0 all judged, 2 bad input (no call made), 3 something failed, 4 budget reached, 130
    interrupted.
    """
    out = console()
    plan = varied.plan
    metric = varied.metric
    if varied.plans:
        rows = []
        for known in (*ablations().values(), fair(DEFAULT, "score")):
            varies = "; ".join(f"{axis.name} {', '.join(axis.labels)}" for axis in known.axes)
            judge = "any" if known.name == FAIR else known.protocol
            rows.append(
                (known.name, judge, varies, known.question, known.source, ", ".join(known.data))
            )
        out.print_list(("plan", "protocol", "varies", "question", "source", "data"), rows)
        raise typer.Exit(ExitCode.ALL_JUDGED)
    if protocol in {*ablations(), FAIR}:
        raise UsageError(f"{protocol} is a ready-made plan: give it as --plan {protocol}")
    folder = chosen.out or default_out(
        ["sweep", plan or protocol or ""], chosen.data or chosen.replies or ""
    )
    with interruptible():
        dataset = chosen.dataset()
        options = chosen.of_plan(folder)
        axes = [Axis.parse(text) for text in varied.axis or ()]
        ablation: SweepPreset | None = None
        if plan is not None:
            ablation, planned = plan_ablation(plan, dataset, axes, protocol, **options)
        elif protocol is None:
            raise UsageError(
                "no protocol given: name one, or a ready-made plan with --plan (see --plans)"
            )
        else:
            planned = plan_sweep(protocol, axes, dataset, **options)
        check_metric(metric, {planned.first.dataset.kind})
        if metric is not None:
            instead = "Without labels, leave out --metric: the sweep then compares scores, rounds and costs"
            need_labels(planned.first, f"--metric {metric}", instead)
        announce_sweep(out, planned, ablation, config)
    show = partial(_print_results, metric, ablation, folder)
    raise typer.Exit(carry_out_to_end(out, folder, config, planned.carry_out, show)[1])


def announce_sweep(
    out: Output, planned: SweepPlan, ablation: SweepPreset | None, config: CommandConfig
) -> None:
    """Print the planned sweep, and an estimate of its calls.

    Raises:
        UsageError: a cell's folder contains another run, or a limit that cannot be applied.
    """
    done = planned.judged(config)
    print_note(out, planned.first.manifest)
    if note := note_without_labels(planned.first):
        out.print_line(note, "yellow")
    if ablation:
        out.print_line(f"{ablation.name}: {ablation.question} ({ablation.source})")
    left = len(planned) - sum(done)
    size = len(planned.cells)
    cells = "1 cell" if size == 1 else f"{size} cells"
    if planned.first.recording is not None:
        out.print(f"{cells}, {left:,} verdicts to judge, no model call")
        return
    # The estimate needs dry runs of some items, which should not delay a sweep that costs nothing.
    known = run_blocking(
        (expected_calls if config.dry_run or planned.costs_money else bounds)(planned, done)
    )
    if not left:
        return
    each_cell = islice(zip(planned.cells, known.cells, strict=True), SHOWN_CELLS)
    rows: list[tuple[CellValue, ...]] = [
        (
            *cell.cell.labels.values(),
            cell.protocol,
            sum(of.verdicts.values()),
            between(of.total.calls),
        )
        for cell, of in each_cell
    ]
    named = map(text_column, (*(axis.name for axis in planned.axes), "protocol"))
    columns = (*named, Column("to judge"), Column("calls alone"))
    notes = (f"... {size - SHOWN_CELLS} more",) if size > SHOWN_CELLS else ()
    out.print_grids(
        [Grid(f"{cells}, {len(planned):,} verdicts", columns, tuple(rows), notes)], gap=False
    )
    alone = f"the cells take {between(known.alone.calls)} calls, not counting repairs of unreadable replies"
    shared = f"since cells share calls, the sweep takes no more than that and at least {known.bounds.least:,}"
    out.print_line(f"run one by one, {alone}; {shared}")
    if known.sampled:
        saved = "since the cells share no calls"
        if known.saved.most:
            saved = f"which saves {between(known.saved)}"
        items = "1 item" if known.sampled == 1 else f"{known.sampled} items"
        out.print_line(
            f"expected: about {between(known.together)} calls, {saved}; estimated by a dry run of {items} per cell "
            "with the offline judge, once as usual and once with Critics that never agree; "
            "a real model's debates may be shorter or longer"
        )
        if known.cost is None:
            out.print_line("expected cost: unknown, because the price of a model is")
        elif known.cost.most:
            cost = f"{money(known.cost.least)} to {money(known.cost.most)}"
            out.print_line(f"expected cost: about {cost}, which may be off by half")
    if (most := config.max_calls) is not None and known.bounds.least > most:
        out.print_line("the budget is too small: the sweep will stop when it is reached", "yellow")


def _print_results(
    metric: str | None, ablation: SweepPreset | None, folder: Path, out: Output, done: Sweep
) -> list[Step]:
    """Print and write the tables, draw the figures, print failures; return suggested commands."""
    from ..experiments.sweep_result import grids, write_figures, write_grid

    done = replace(done, metric=metric, ablation=ablation)
    # Tables of one sweep share most notes: print each note once, below the first table with it.
    printed = set[str]()
    tables = grids(done, ablation)
    for grid in tables.values():
        fresh = tuple(note for note in grid.notes if note not in printed)
        out.print_grids([replace(grid, notes=fresh)], gap=False)
        printed.update(grid.notes)
    print_failed_cells(out, done)
    for name, grid in tables.items():
        write_grid(grid, folder / "tables", name)
    out.print_line(f"tables: {folder}/tables")
    try:
        if write_figures(done, folder, ablation):
            out.print_line(f"figures: {folder}/figures")
    # Without matplotlib there are no figures, but the sweep and its tables are complete.
    except UsageError as error:
        out.print_line(f"no figures: {error}", "yellow")
    print_screens(out, [done.screen()], full=True)
    done.write()
    # A report with the settings of the sweep: gains over its first cell, its metric.
    protocols = [cell.protocol for cell in done.cells]
    options = ["--metric", done.metric] if done.metric else []
    if len(protocols) > 1 and (first := done.cells[0].evaluation.folder):
        # A report names a judge after its protocol, and also after its folder if necessary.
        alone = protocols.count(protocols[0]) == 1
        options += ["--base", protocols[0] if alone else f"{protocols[0]} ({first.name})"]
    cells = shell_line(folder / "cells")
    made = shell_line(*options, "--html", "FILE")
    # Use the last cell with a debate, because most axes end with the longest debates.
    examples = (example_step(cell.evaluation) for cell in reversed(done.cells))
    page = Step("compare all cells on a page", f"{command('report')} {cells}/* {made}")
    return [*filter(None, [next(filter(None, examples), None)]), page]


def print_failed_cells(out: Output, done: Sweep) -> None:
    """Print why verdicts of cells failed."""
    by_cell = ((cell.cell.title, cell.evaluation.failed) for cell in done.cells)
    print_failures(
        out, ((f"{title}: {r.item}", r.error) for title, failed in by_cell for r in failed)
    )
