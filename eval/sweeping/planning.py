"""What a sweep is to do: every cell a run of its own, checked before any call, all of them over one journal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypedDict, Unpack
from uuid import uuid4

from ...nodes.panel import Models
from ...state.errors import UsageError
from ..aspects import choose_aspects
from ..datasets import Data, Dataset, load_dataset
from ..plan import Plan, plan
from ..running.conduct import Conduct
from ..running.folder import judged
from .axes import MODEL, PROMPTS, PROTOCOL, Axis, Cell, cells
from .record import read_record

CELLS = "cells"
JOURNAL = "calls.sqlite"


class SweepOptions(TypedDict, total=False):
    """What the cells of a sweep have in common.

    Attributes:
        aspects: which aspects to score; default: all that the dataset has labels for.
        settings: settings by name, for all cells.
        models: role to chat model or model name, ``"*"`` for all.
        limit: judge the first so many items only.
        repeats: judge everything so many times.
        out: a folder for the sweep; one that holds it already is completed.
    """

    aspects: Sequence[str]
    settings: Mapping[str, Any]
    models: Models | None
    limit: int | None
    repeats: int
    out: str | Path | None


@dataclass(frozen=True)
class PlannedCell:
    """One cell: which it is, and the run that judges it."""

    cell: Cell
    plan: Plan

    @property
    def protocol(self) -> str:
        """The name of its protocol."""
        return next(iter(self.plan.graphs))


@dataclass(frozen=True)
class SweepPlan:
    """A sweep that has been checked and not begun.

    Attributes:
        axes: what varies.
        cells: the run of each combination.
        folder: where all of it is kept, if anywhere.
        run: the id that all cells' calls are counted under.
        name: of the ready-made plan that it follows, if any.
    """

    axes: tuple[Axis, ...]
    cells: tuple[PlannedCell, ...]
    folder: Path | None
    run: str
    name: str | None = None

    def __len__(self) -> int:
        """How many verdicts are wanted."""
        return sum(len(cell.plan) for cell in self.cells)

    @property
    def dataset(self) -> Dataset:
        """What is judged in every cell."""
        return self.cells[0].plan.dataset

    @property
    def costs_money(self) -> bool:
        """Whether any model but the offline judge is asked."""
        return any(cell.plan.costs_money for cell in self.cells)

    @cached_property
    def models(self) -> dict[str, str]:
        """Cell, protocol and role to the name of a model, without its parameters."""
        return {
            f"{one.cell.title}: {role}": model
            for one in self.cells
            for role, model in one.plan.models().items()
        }

    def conduct(self, conduct: Conduct) -> Conduct:
        """The same for every cell: one journal for all, in the sweep's folder unless another one was named."""
        if conduct.fresh or conduct.replace or conduct.batch:
            raise UsageError("a sweep knows no fresh, replace and batch: choose another folder to begin anew")
        if conduct.journal is not None or self.folder is None:
            return conduct
        return replace(conduct, journal=self.folder / JOURNAL)

    def done(self, conduct: Conduct) -> list[int]:
        """How many verdicts each cell has already.

        Raises:
            UsageError: a cell's folder holds another run.
        """
        return [sum(judged(cell.plan, conduct).values()) for cell in self.cells]


def plan_sweep(
    protocol: str,
    axes: Sequence[Axis] | Mapping[str, Any],
    data: Data,
    **options: Unpack[SweepOptions],
) -> SweepPlan:
    """Check every cell, as far as it can be without calling a model.

    Args:
        protocol: of the cells whose axes name none.
        axes: what varies; as a mapping, name to values, or to labels and what is set under each.
        data: a dataset, its name, or a file.
        **options: what all cells have in common.

    Raises:
        UsageError: bad input; names the cell where it is one cell's.

    >>> wanted = plan_sweep("debate", {"n": [1, 2], "persona": ["strict", "plain"]}, "demo", limit=3)
    >>> len(wanted.cells), len(wanted)
    (4, 48)
    """
    listed = (
        tuple(Axis.of(name, values) for name, values in axes.items())
        if isinstance(axes, Mapping)
        else tuple(axes)
    )
    combinations = list(cells(listed))
    dataset = data if isinstance(data, Dataset) else load_dataset(data)
    choose_aspects(dataset, options.get("aspects", ()))
    out = options.get("out")
    folder = Path(out) if out is not None else None
    run = _run_of(folder, dataset)
    protocols = {cell.change.get(PROTOCOL, protocol) for cell in combinations}
    planned = [
        PlannedCell(cell, _planned(protocol, cell, dataset, options, place, protocols))
        for cell, place in zip(combinations, _folders(folder, combinations), strict=True)
    ]
    named = [
        replace(one, plan=replace(one.plan, manifest={**one.plan.manifest, "run": run})) for one in planned
    ]
    return SweepPlan(listed, tuple(named), folder, run)


def _run_of(folder: Path | None, dataset: Dataset) -> str:
    """The id of the sweep that a folder holds, else a new one; its cells may become more, its data stays."""
    record = read_record(folder) if folder is not None else None
    if record is None:
        return uuid4().hex
    before, now = (f"{name}@{digest}" for name, digest in (record.of_data, (dataset.name, dataset.digest)))
    if before != now:
        raise UsageError(f"{folder} holds a sweep over {before}, not over {now}: choose another --out")
    return record.run


def _planned(
    protocol: str, cell: Cell, dataset: Dataset, options: SweepOptions, folder: Path | None, others: Set[str]
) -> Plan:
    """The run of a cell. What is set for one of the ``others``, the sweep's protocols, alone is none of its concern."""
    settings, models = dict(options.get("settings") or {}), dict(options.get("models") or {})
    for key, value in cell.change.items():
        if key == PROTOCOL:
            protocol = value
        elif key == MODEL:
            models["*"] = value
        elif key.startswith(f"{MODEL}."):
            models[key.removeprefix(f"{MODEL}.")] = value
        elif key == PROMPTS and not value:
            settings.pop(key, None)
        else:
            _set(settings, key.split("."), value)
    settings = {key: value for key, value in settings.items() if key == protocol or key not in others}
    try:
        return plan(
            protocol,
            dataset,
            aspects=options.get("aspects", ()),
            settings=settings,
            models=models or None,
            limit=options.get("limit"),
            repeats=options.get("repeats", 1),
            out=folder,
        )
    except UsageError as error:
        raise UsageError(f"{cell.title}: {error}") from error


def _set(settings: dict[str, Any], path: Sequence[str], value: Any) -> None:
    """Set one thing, deep inside where the path says so, without touching what other cells hold."""
    *outer, name = path
    for part in outer:
        held = settings.get(part, {})
        if not isinstance(held, Mapping):
            raise UsageError(f"{'.'.join(path)}: {part} was given as a whole before; give one of them")
        settings[part] = dict(held)
        settings = settings[part]
    settings[name] = value


def _folders(folder: Path | None, combinations: Sequence[Cell]) -> Iterator[Path | None]:
    """One for each cell; cells whose names would be the same, or nearly, are numbered."""
    times: Counter[str] = Counter()
    for cell in combinations:
        if folder is None:
            yield None
            continue
        times[cell.folder.lower()] += 1
        again = times[cell.folder.lower()]
        yield folder / CELLS / (cell.folder if again == 1 else f"{cell.folder}~{again}")
