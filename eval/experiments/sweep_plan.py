"""Plan a sweep and carry it out: every cell is a run of its own, checked before any call; read and write sweep.json.

The cells share one journal, one budget and one stop signal.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import starmap
from pathlib import Path
from typing import Any, NamedTuple, Unpack, cast
from uuid import uuid4

from ...graphs.options import RunSettings
from ...nodes.bound_judge import by_role
from ...nodes.sync_bridge import run_blocking
from ...state.errors import DataError, UsageError
from ..calls.call_pipeline import RunContext
from ..datasets.aspect_choice import choose_aspects
from ..datasets.dataset import Data
from ..plan.plan import Options, Plan, count_judged, data_and_replies, divided, plan
from ..results.config import RunConfig, RunLimits
from ..results.folder import FILE as MANIFEST
from ..results.folder import model_names, shared_calls, write_whole
from ..run.runner import execute
from .cells import MODEL, PROMPTS, PROTOCOL, Axes, Axis, Cell, CellResult, cells
from .sweep_result import Sweep

CELLS = "cells"

SWEEP_WITHOUT = ("fresh", "overwrite", "batch")
"""Fields of the config that mean nothing for a sweep: its cells share calls with each other and with earlier starts."""


class PlannedCell(NamedTuple):
    """One cell of a sweep, and the plan of the run that judges it."""

    cell: Cell
    plan: Plan

    @property
    def protocol(self) -> str:
        """The name of its protocol."""
        return next(iter(self.plan.graphs))


@dataclass(frozen=True)
class SweepPlan:
    """A sweep that was checked and is not started yet.

    Attributes:
        axes: what varies.
        cells: the run of each combination.
        folder: where all of it is kept, if anywhere.
        name: of the ready-made plan that it follows, if any.
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
        """The plan of the first cell; its data, and whether it replays recorded replies, are those of every cell."""
        return self.cells[0].plan

    @property
    def costs_money(self) -> bool:
        """Whether any model but the offline judge is called."""
        return any(cell.plan.costs_money for cell in self.cells)

    def check(self, config: RunConfig) -> list[int]:
        """Check that the cells can be judged with this config, and count the verdicts that each has already.

        Raises:
            UsageError: a limit that cannot be kept; a cell's folder holds another run.
        """
        if any(getattr(config, name) for name in SWEEP_WITHOUT):
            raise UsageError("a sweep has no fresh, overwrite or batch: to start anew, choose another folder")
        config.check_prices(model for cell in self.cells for model in model_names(cell.plan.manifest))
        return [sum(count_judged(cell.plan, config).values()) for cell in self.cells]


def plan_sweep(protocol: str, axes: Axes, data: Data | None = None, **options: Unpack[Options]) -> SweepPlan:
    """Check every cell, as far as it can be without calling a model.

    Args:
        protocol: of the cells whose axes name none.
        axes: what varies.
        data: a dataset, its name, or a file; may be left out where there are ``replies``.
        **options: what all cells have in common.

    Raises:
        UsageError: bad input; names the cell where it is one cell's.

    >>> wanted = plan_sweep("debate", {"n": [1, 2], "persona": ["strict", "plain"]}, "demo", limit=3)
    >>> len(wanted.cells), len(wanted)
    (4, 48)
    """
    if options.get("shard"):
        raise UsageError("a sweep has no shards, because its cells share their calls: leave out shard")
    listed = tuple(starmap(Axis.of, axes.items()) if isinstance(axes, Mapping) else axes)
    combinations = list(cells(listed))
    # Read once for all cells.
    dataset, recording = data_and_replies(data, options)
    options["replies"] = recording
    if recording is None:
        # For its errors alone: an unknown aspect is not the fault of the first cell, which errors below would name.
        choose_aspects(dataset, options.get("aspects", ()))
    # Without data, cells judge what was recorded and nothing else.
    data, out = None if data is None else dataset, options.get("out")
    folder = Path(out) if out is not None else None
    record, now = read_record(folder) if folder else None, f"{dataset.name}@{dataset.digest}"
    # It may get more cells, but no other data.
    if record and (before := "{name}@{digest}".format_map(record["data"])) != now:
        raise UsageError(f"{folder} holds a sweep over {before}, not over {now}: choose another --out")
    run = str(record["run"]) if record else uuid4().hex
    protocols = {cell.change.get(PROTOCOL, protocol) for cell in combinations}
    settings = options.get("settings") or {}
    given = [settings, *(settings.get(name) for name in protocols)]
    for axis in listed:
        # What some values leave open may be set for all cells: it holds for those.
        for key in set.intersection(*map(set, axis.values.values())):
            if any(_holds(settings, key.split(".")) for settings in given):
                raise UsageError(f"{key} is varied by the axis {axis.name} and set for all cells; give one")
    planned, times = [], Counter[str]()
    for cell in combinations:
        # Names that differ in case alone are numbered, as some file systems need.
        times[cell.folder.lower()] += 1
        again = times[cell.folder.lower()]
        place = folder and folder / CELLS / (cell.folder if again == 1 else f"{cell.folder}~{again}")
        own = _plan_cell(protocol, cell, data, {**options, "out": place}, protocols)
        # One id in all cells: the journal counts calls by run, and what the sweep made is asked for by it.
        planned.append(PlannedCell(cell, replace(own, manifest={**own.manifest, "run": run})))
    return SweepPlan(listed, tuple(planned), folder)


def _holds(settings: Any, path: Sequence[str]) -> bool:
    return not path or (
        isinstance(settings, Mapping) and path[0] in settings and _holds(settings[path[0]], path[1:])
    )


def _plan_cell(protocol: str, cell: Cell, data: Data | None, options: Options, others: Set[str]) -> Plan:
    """Plan the run of a cell: what is set for all, over it what is set for its protocol, over it what the cell changes.

    What is set for one of the ``others``, the sweep's protocols, alone is none of its concern.
    """
    protocol = cell.change.get(PROTOCOL, protocol)
    common, models = dict(options.get("settings") or {}), dict(by_role(options.get("models")))
    settings = {key: value for key, value in common.items() if key not in others}
    own = common.get(protocol, {})
    # What is no mapping stays under its name, for ``plan`` to refuse.
    settings |= own if isinstance(own, Mapping) else {protocol: own}
    for key, value in cell.change.items():
        if key == MODEL or key.startswith(f"{MODEL}."):
            models[key.removeprefix(MODEL).removeprefix(".") or "*"] = value
        # The package's own prompts are those of no setting.
        elif key == PROMPTS and not value:
            settings.pop(key, None)
        elif key != PROTOCOL:
            _set(settings, key.split("."), value)
    of_cell: Options = {**options, "settings": cast("RunSettings", settings), "models": models or None}
    try:
        return plan(protocol, data, **of_cell)
    except UsageError as error:
        raise UsageError(f"{cell.title}: {error}") from error


def _set(settings: dict[str, Any], path: Sequence[str], value: Any) -> None:
    """Set a setting, nested ones by their path; nested mappings are copied, since other cells share them."""
    *outer, name = path
    for part in outer:
        inner = settings.get(part, {})
        if not isinstance(inner, Mapping):
            raise UsageError(f"{'.'.join(path)}: {part} is already set as a whole; give one of the two")
        settings[part] = dict(inner)
        settings = settings[part]
    settings[name] = value


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
            own = replace(context, config=config if planned.first.recording else sharing)
            done.append(CellResult(cell.cell, cell.protocol, await execute(cell.plan, own)))
            if stop.is_asked:
                break
    return Sweep(
        axes=planned.axes,
        cells=tuple(done),
        wanted=len(planned.cells),
        folder=planned.folder,
        calls_made=counts.usage.calls,
        # A signal may come when all is done.
        stopped=stop.reason if sum(len(cell.evaluation.results) for cell in done) < len(planned) else None,
    )


FILE = "sweep.json"


def write_record(planned: SweepPlan, folder: Path) -> None:
    """Write what a sweep is to its folder; one that resumes keeps its date.

    In it are ``run`` (the id that its calls are counted under), ``plan`` (the ready-made one that it follows, if any),
    the axes and what is set under each label, the cells with their folders, and the data; when it has ended also
    ``headline`` and ``answers``, which head a report on its cells, too.
    """
    now = datetime.now(UTC).isoformat(timespec="seconds")
    axes = {axis.name: axis.values for axis in planned.axes}
    record = {
        "run": planned.first.manifest["run"],
        "created": (read_record(folder) or {}).get("created", now),
        "plan": planned.name,
        # A chat model becomes the name of its class.
        "axes": json.loads(json.dumps(axes, default=lambda value: type(value).__name__)),
        "cells": [
            {
                "labels": dict(cell.cell.labels),
                "folder": cell.plan.folder.relative_to(folder).as_posix() if cell.plan.folder else None,
                "signature": cell.plan.manifest["signatures"][cell.protocol],
            }
            for cell in planned.cells
        ],
        "data": planned.first.manifest["data"],
    }
    write_whole(folder / FILE, {**record, "headline": None, "answers": []})


def write_answer(folder: Path, answer: Mapping[str, Any]) -> None:
    """Write what a sweep ended with to its record: ``headline`` and ``answers``."""
    if record := read_record(folder):
        write_whole(folder / FILE, {**record, **answer})


def read_record(folder: Path) -> dict[str, Any] | None:
    """Read the record of the sweep that a folder holds; ``None`` where it holds nothing.

    Raises:
        UsageError: it holds a single run.
        DataError: its record cannot be read.
    """
    path = folder / FILE
    if not path.exists():
        if (folder / MANIFEST).exists():
            raise UsageError(f"{folder} holds a run, not a sweep: choose another --out")
        return None
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if missing := [name for name in ("run", "data", "cells") if name not in record]:
            raise ValueError(f"it has no {missing[0]}")
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"{path}: not a record of a sweep: {error}; choose another --out") from error
    return record
