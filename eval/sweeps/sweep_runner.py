"""Carry out a sweep, one cell after another; all share one journal, one budget and one stop signal."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Unpack

from ...nodes.sync_bridge import run_blocking
from ...state.usage import Usage
from ..calls.progress_counters import ProgressCounters
from ..calls.shutdown import StopSignal
from ..datasets.dataset import Data
from ..plan.plan import Options, divided
from ..results.config import RunConfig, RunLimits
from ..results.folder import exclusive
from ..run.runner import execute
from .cells import Axis, CellResult
from .sweep_plan import JOURNAL, SweepPlan, make_folder, plan_sweep, write_record
from .sweep_result import Sweep

LOCK = "sweep.lock"


class SweepRunOptions(Options, RunLimits, total=False):
    """Names the options that all cells have in common, and the limits that the sweep is carried out with."""


@dataclass
class SweepCounts(ProgressCounters):
    """Counts the progress of all cells together; ``wanted`` is set before the first of them begins."""

    def take_up(self, wanted: int, resumed: int, spent: Usage) -> None:
        """Begin one more cell; what was spent is the whole sweep's, whose calls are all counted under one run."""
        # Added up, where a run alone would set it: one counter serves all cells.
        self.resumed += resumed
        self.judged += resumed
        self.usage = spent


def sweep(
    protocol: str,
    axes: Sequence[Axis] | Mapping[str, Any],
    data: Data | None = None,
    **options: Unpack[SweepRunOptions],
) -> Sweep:
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
    protocol: str,
    axes: Sequence[Axis] | Mapping[str, Any],
    data: Data | None = None,
    **options: Unpack[SweepRunOptions],
) -> Sweep:
    """Judge as ``sweep`` does, from async code; arguments and errors are the same."""
    config, wanted, _ = divided(options)
    # In a thread: planning reads the dataset, which would hold up the event loop.
    planned = await asyncio.to_thread(plan_sweep, protocol, axes, data, **wanted)
    return await carry_out_sweep(planned, config)


async def carry_out_sweep(
    planned: SweepPlan,
    config: RunConfig | None = None,
    counts: SweepCounts | None = None,
    stop: StopSignal | None = None,
) -> Sweep:
    """Carry out a planned sweep; the arguments are those of ``runner.execute``.

    Raises:
        UsageError: another process has the folder, or a cell's folder holds another run.
    """
    config, counts, stop = (
        planned.config(config or RunConfig()),
        counts or SweepCounts(),
        stop or StopSignal(),
    )
    config.check_prices(planned.models.values())
    # For its errors alone: a folder that holds another run is found before the first cell makes a call.
    planned.done(config)
    counts.wanted = len(planned)
    done: list[CellResult] = []
    with _kept(planned, config) as config:
        for cell in planned.cells:
            counts.phase = cell.cell.title
            evaluation = await execute(cell.plan, config, counts, stop)
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


@contextmanager
def _kept(planned: SweepPlan, config: RunConfig) -> Iterator[RunConfig]:
    """Lock the sweep's folder and write its record; without a folder, make a temporary journal."""
    if planned.folder is None and planned.is_replay:
        yield config
        return
    if planned.folder is None:
        with TemporaryDirectory(prefix="jurygraph-") as folder:
            # Cells share calls by the journal alone, so there has to be one, if only while the sweep lasts.
            yield replace(config, journal=config.journal or Path(folder) / JOURNAL)
        return
    make_folder(planned.folder)
    with exclusive(planned.folder / LOCK, "sweep"):
        write_record(planned, planned.folder)
        yield config
