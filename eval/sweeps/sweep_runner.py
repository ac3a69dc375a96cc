"""Carry out a sweep, one cell after another; all share one journal, one budget and one stop signal."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Unpack

from ...nodes.sync_bridge import run_blocking
from ..calls.call_pipeline import RunContext
from ..datasets.dataset import Data
from ..plan.plan import Options, divided
from ..results.config import RunLimits
from ..results.folder import shared_calls
from ..run.runner import execute
from .cells import Axes, CellResult
from .sweep_plan import SweepPlan, plan_sweep, write_record
from .sweep_result import Sweep


class SweepRunOptions(Options, RunLimits, total=False):
    """Names the options that all cells have in common, and the limits that the sweep is carried out with."""


def sweep(protocol: str, axes: Axes, data: Data | None = None, **options: Unpack[SweepRunOptions]) -> Sweep:
    """Judge a dataset in every combination of settings, also from a notebook; async code calls ``asweep``.

    Args:
        protocol: of the cells whose axes name none.
        axes: name to values, such as ``{"n": [1, 2, 3], "persona": ["strict", "plain"]}``; a name may also be
            ``protocol``, ``model``, ``model.ROLE``, ``prompts``, or one's own with labels and what is set under each.
        data: a dataset, its name, or a file; may be left out where there are ``replies``.
        **options: see ``Options`` and ``RunConfig``; limits hold for all cells together.

    Raises:
        UsageError: bad input, told before any call.

    >>> done = sweep("debate", {"n": [1, 2]}, "demo", aspects=["consistency"], limit=4)
    >>> [len(cell.evaluation.results) for cell in done.cells], done.calls_made < done.calls_alone
    ([4, 4], True)
    """
    return run_blocking(asweep(protocol, axes, data, **options))


async def asweep(
    protocol: str, axes: Axes, data: Data | None = None, **options: Unpack[SweepRunOptions]
) -> Sweep:
    """Judge as ``sweep`` does, from async code; arguments and errors are the same."""
    config, wanted, _ = divided(options)
    # In a thread: planning reads the dataset, which would hold up the event loop.
    planned = await asyncio.to_thread(plan_sweep, protocol, axes, data, **wanted)
    return await carry_out_sweep(planned, RunContext(config))


async def carry_out_sweep(planned: SweepPlan, context: RunContext | None = None) -> Sweep:
    """Carry out a planned sweep within limits that hold for all cells together.

    Raises:
        UsageError: another process has the folder, or a cell's folder holds another run.
    """
    context = context or RunContext()
    config, counts, stop = context.config, context.counts, context.stop
    # For its errors alone: a folder that holds another run is found before the first cell makes a call.
    planned.check(config)
    counts.wanted = len(planned)
    done: list[CellResult] = []
    # A replay makes no call that could be kept.
    with shared_calls(planned.folder, "sweep", config) as sharing:
        if planned.folder is not None:
            write_record(planned, planned.folder)
        for cell in planned.cells:
            counts.phase = cell.cell.title
            own = replace(context, config=config if planned.is_replay else sharing)
            evaluation = await execute(cell.plan, own)
            done.append(CellResult(cell.cell, cell.protocol, evaluation))
            if stop.is_asked:
                break
    return Sweep(
        axes=planned.axes,
        cells=tuple(done),
        wanted=len(planned.cells),
        folder=planned.folder,
        calls_made=counts.usage.calls,
        cost_made=counts.usage.cost_usd,
        # A signal may come when all is done.
        stopped=stop.reason if sum(len(cell.evaluation.results) for cell in done) < len(planned) else None,
    )
