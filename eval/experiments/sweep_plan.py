"""Plan and run a sweep, in which every cell is a separate run, and read and write sweep.json.

All cells are checked before any call. They share one journal, one budget and one stop signal.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import starmap
from pathlib import Path
from typing import Any, NamedTuple, Unpack, cast
from uuid import uuid4

from ...graphs.engine.options import RunSettings
from ...nodes.common.sync_bridge import run_blocking
from ...nodes.runtime.bound_judge import by_role
from ...state.errors import UsageError
from ..datasets.aspect_choice import choose_aspects
from ..datasets.dataset import Data
from ..results.config import RunConfig, RunLimits
from ..results.folder import model_names, shared_calls, write_whole
from ..run.calls.call_pipeline import RunContext
from ..run.plan.plan import Options, Plan, count_judged, data_and_replies, divided, plan
from ..run.runner import execute
from .cells import MODEL, PROMPTS, PROTOCOL, Axes, Axis, Cell, CellResult, cells
from .experiment import Experiment, planned_and_done
from .sweep_record import FILE, read_record
from .sweep_result import Sweep

CELLS = "cells"

SWEEP_WITHOUT = ("fresh", "overwrite", "batch")
"""Settings without meaning for a sweep: its cells always share calls, also with earlier starts."""


class PlannedCell(NamedTuple):
    """A cell of a sweep and the plan of its run."""

    cell: Cell
    plan: Plan

    @property
    def protocol(self) -> str:
        """The name of its protocol."""
        return next(iter(self.plan.graphs))


@dataclass(frozen=True)
class SweepPlan(Experiment[Sweep]):
    """A sweep that has been checked but not started.

    Attributes:
        axes: the settings that vary.
        cells: the run of each combination.
        folder: the output folder, if any.
        name: the name of its ready-made plan, if any.
    """

    axes: tuple[Axis, ...]
    cells: tuple[PlannedCell, ...]
    folder: Path | None
    name: str | None = None

    def __len__(self) -> int:
        """The number of verdicts of all cells."""
        return sum(len(cell.plan) for cell in self.cells)

    @property
    def first(self) -> Plan:
        """The plan of the first cell; all cells have the same data and recording."""
        return self.cells[0].plan

    @property
    def costs_money(self) -> bool:
        """Whether any model except the offline judge is called."""
        return any(cell.plan.costs_money for cell in self.cells)

    def check(self, config: RunConfig) -> None:
        """Check that the cells can be judged with this config.

        Raises:
            UsageError: a limit that cannot be applied, or a cell's folder that contains another
                run.
        """
        self.judged(config)

    def judged(self, config: RunConfig) -> list[int]:
        """Count the existing verdicts of each cell, and check them as ``check`` does."""
        if any(getattr(config, name) for name in SWEEP_WITHOUT):
            raise UsageError(
                "a sweep has no fresh, overwrite or batch: to start anew, choose another folder"
            )
        config.check_prices(
            model for cell in self.cells for model in model_names(cell.plan.manifest)
        )
        return [sum(count_judged(cell.plan, config).values()) for cell in self.cells]

    async def carry_out(self, context: RunContext) -> Sweep:
        """Run the cells within limits for all of them together.

        The record of the sweep is written before the first call. The result is added by ``write``,
        since it compares all pairs of cells, which a reproduced table does not need.

        Raises:
            UsageError: another process uses the folder, or a cell's folder contains another run.
        """
        config = context.config
        counts = context.counts
        stop = context.stop
        # Check all folders before the first call, because one may contain another run.
        self.check(config)
        counts.wanted = len(self)
        done: list[CellResult] = []
        # A replay makes no calls to store.
        with shared_calls(self.folder, "sweep", config) as sharing:
            if self.folder is not None:
                write_record(self, self.folder)
            for cell in self.cells:
                counts.phase = cell.cell.title
                own = replace(context, config=config if self.first.recording else sharing)
                done.append(CellResult(cell.cell, cell.protocol, await execute(cell.plan, own)))
                if stop.is_asked:
                    break
        return Sweep(
            axes=self.axes,
            cells=tuple(done),
            wanted=len(self.cells),
            folder=self.folder,
            calls_made=counts.usage.calls,
            # A signal may arrive when all is done.
            stopped=stop.reason
            if sum(len(cell.evaluation.results) for cell in done) < len(self)
            else None,
        )


def plan_sweep(
    protocol: str, axes: Axes, data: Data | None = None, **options: Unpack[Options]
) -> SweepPlan:
    """Check every cell as far as possible without calling a model.

    Args:
        protocol: the protocol of cells whose axes do not set one.
        axes: the settings that vary.
        data: a dataset, its name, or a file; optional with ``replies``.
        **options: the options of all cells.

    Raises:
        UsageError: invalid input; names the cell if only one is affected.

    >>> wanted = plan_sweep("debate", {"n": [1, 2], "persona": ["strict", "plain"]}, "demo", limit=3)
    >>> len(wanted.cells), len(wanted)
    (4, 48)
    """
    if options.get("shard"):
        raise UsageError(
            "a sweep has no shards, because its cells share their calls: leave out shard"
        )
    listed = tuple(starmap(Axis.of, axes.items()) if isinstance(axes, Mapping) else axes)
    combinations = list(cells(listed))
    # Read the data once for all cells.
    dataset, recording = data_and_replies(data, options)
    options["replies"] = recording
    if recording is None:
        # Check the aspects first: errors below name a cell, but an unknown aspect affects all.
        choose_aspects(dataset, options.get("aspects", ()))
    # Without data, cells judge only the recorded items.
    data = None if data is None else dataset
    out = options.get("out")
    folder = Path(out) if out is not None else None
    record = read_record(folder) if folder else None
    now = f"{dataset.name}@{dataset.digest}"
    # A sweep can get more cells later, but not other data.
    if record and (before := "{name}@{digest}".format_map(record["data"])) != now:
        raise UsageError(
            f"{folder} holds a sweep over {before}, not over {now}: choose another --out"
        )
    run = str(record["run"]) if record else uuid4().hex
    protocols = {cell.change.get(PROTOCOL, protocol) for cell in combinations}
    settings = options.get("settings") or {}
    given = [settings, *(settings.get(name) for name in protocols)]
    for axis in listed:
        # A setting that some values of the axis do not change may also be set for all cells.
        for key in set.intersection(*map(set, axis.values.values())):
            if any(_holds(settings, key.split(".")) for settings in given):
                raise UsageError(
                    f"{key} is varied by the axis {axis.name} and set for all cells; give one"
                )
    planned = []
    times = Counter[str]()
    for cell in combinations:
        # Some file systems ignore case, so number names that differ only in case.
        times[cell.folder.lower()] += 1
        again = times[cell.folder.lower()]
        place = folder and folder / CELLS / (
            cell.folder if again == 1 else f"{cell.folder}~{again}"
        )
        own = _plan_cell(protocol, cell, data, {**options, "out": place}, protocols)
        # All cells have the same id, because the journal counts calls by run and the sweep asks for
        # its calls by this id.
        planned.append(PlannedCell(cell, replace(own, manifest={**own.manifest, "run": run})))
    return SweepPlan(listed, tuple(planned), folder)


def _holds(settings: Any, path: Sequence[str]) -> bool:
    return not path or (
        isinstance(settings, Mapping)
        and path[0] in settings
        and _holds(settings[path[0]], path[1:])
    )


def _plan_cell(
    protocol: str, cell: Cell, data: Data | None, options: Options, others: Set[str]
) -> Plan:
    """Plan the run of a cell from options for all cells, for its protocol, and of the cell.

    Later ones have priority. Options for ``others``, the sweep's protocols, are ignored here.
    """
    protocol = cell.change.get(PROTOCOL, protocol)
    common = dict(options.get("settings") or {})
    models = dict(by_role(options.get("models")))
    settings = {key: value for key, value in common.items() if key not in others}
    own = common.get(protocol, {})
    # Anything but a mapping stays under its name, and ``plan`` refuses it.
    settings |= own if isinstance(own, Mapping) else {protocol: own}
    for key, value in cell.change.items():
        if key == MODEL or key.startswith(f"{MODEL}."):
            models[key.removeprefix(MODEL).removeprefix(".") or "*"] = value
        # The package's own prompts need no setting.
        elif key == PROMPTS and not value:
            settings.pop(key, None)
        elif key != PROTOCOL:
            _set(settings, key.split("."), value)
    of_cell: Options = {
        **options,
        "settings": cast("RunSettings", settings),
        "models": models or None,
    }
    try:
        return plan(protocol, data, **of_cell)
    except UsageError as error:
        raise UsageError(f"{cell.title}: {error}") from error


def _set(settings: dict[str, Any], path: Sequence[str], value: Any) -> None:
    """Set a setting by its path, and copy nested mappings, because other cells share them."""
    *outer, name = path
    for part in outer:
        inner = settings.get(part, {})
        if not isinstance(inner, Mapping):
            raise UsageError(
                f"{'.'.join(path)}: {part} is already set as a whole; give one of the two"
            )
        settings[part] = dict(inner)
        settings = settings[part]
    settings[name] = value


class SweepRunOptions(Options, RunLimits, total=False):
    """The options of all cells, and the limits of the sweep."""


def sweep(
    protocol: str, axes: Axes, data: Data | None = None, **options: Unpack[SweepRunOptions]
) -> Sweep:
    """Judge a dataset with every combination of settings; async code calls ``asweep``.

    Args:
        protocol: the protocol of cells whose axes do not set one.
        axes: names and values, such as ``{"n": [1, 2, 3], "persona": ["strict", "plain"]}``. A
            name may also be ``protocol``, ``model``, ``model.ROLE``, ``prompts``, or a name of
            your own with labels and the settings of each.
        data: a dataset, its name, or a file; optional with ``replies``.
        **options: see ``Options`` and ``RunConfig``; limits apply to all cells together.

    Raises:
        UsageError: invalid input; raised before any call.

    >>> done = sweep("debate", {"n": [1, 2]}, "demo", aspects=["consistency"], limit=4)
    >>> [len(cell.evaluation.results) for cell in done.cells], done.calls_made < done.calls_alone
    ([4, 4], True)
    """
    return run_blocking(asweep(protocol, axes, data, **options))


async def asweep(
    protocol: str, axes: Axes, data: Data | None = None, **options: Unpack[SweepRunOptions]
) -> Sweep:
    """Judge like ``sweep``, from async code; arguments and errors are the same."""
    config, wanted, _ = divided(options)
    done = await planned_and_done(partial(plan_sweep, protocol, axes, data, **wanted), config)
    # In a thread, because the comparison of many cells takes seconds.
    return await asyncio.to_thread(done.write)


async def carry_out_sweep(planned: SweepPlan, context: RunContext | None = None) -> Sweep:
    """Run a planned sweep; without a context, with the default limits."""
    return await planned.carry_out(context or RunContext())


def write_record(planned: SweepPlan, folder: Path) -> None:
    """Write the record of a sweep to its folder; a resumed sweep has its original date.

    The record contains ``run`` (the id that counts its calls), ``plan`` (its ready-made plan, if
    any), the axes with the settings of each label, the cells with their folders, and the data. At
    the end, the headline, the screen and the tables are added, which ``report`` shows.
    """
    now = datetime.now(UTC).isoformat(timespec="seconds")
    axes = {axis.name: axis.values for axis in planned.axes}
    record = {
        "run": planned.first.manifest["run"],
        "created": (read_record(folder) or {}).get("created", now),
        "plan": planned.name,
        # A chat model is recorded as the name of its class.
        "axes": json.loads(json.dumps(axes, default=lambda value: type(value).__name__)),
        "cells": [
            {
                "labels": dict(cell.cell.labels),
                "folder": cell.plan.folder.relative_to(folder).as_posix()
                if cell.plan.folder
                else None,
                "signature": cell.plan.manifest["signatures"][cell.protocol],
            }
            for cell in planned.cells
        ],
        "data": planned.first.manifest["data"],
    }
    write_whole(folder / FILE, {**record, "headline": None, "answers": []})
