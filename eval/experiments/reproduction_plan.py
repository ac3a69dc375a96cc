"""Plan the rows of a paper's table: a sweep of its judges, and rows that need no model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Unpack

from ...nodes.common.sync_bridge import run_blocking
from ...state.errors import UsageError
from ..datasets.dataset import Data, Dataset, load_dataset
from ..results.config import RunConfig
from ..results.folder import make_folder
from ..run.calls.call_pipeline import RunContext
from ..run.plan.plan import Options, divided
from .cell_metrics import AVERAGE
from .cells import MODEL, Axis, CellResult
from .experiment import Experiment, planned_and_done
from .paper_needs import check_fillable, check_kind
from .paper_tables import PaperTable, find_table
from .reproduction import (
    METHOD,
    Reproduction,
    reproduce_table,
    rows_without_model,
    without_systems,
)
from .sweep_plan import SweepPlan, SweepRunOptions, plan_sweep
from .sweep_result import Sweep


def reproduce(
    table: str, data: Data | None = None, **options: Unpack[SweepRunOptions]
) -> Reproduction:
    """Measure a paper's table with your model; ``areproduce`` is the same for async code.

    Args:
        table: the name of a table with data, see ``jurygraph reproduce list``.
        data: items in place of the paper's data: a dataset, its name, or a file.
        **options: see ``Options`` and ``RunConfig``.

    Raises:
        UsageError: invalid input; raised before any call.
    """
    return run_blocking(areproduce(table, data, **options))


async def areproduce(
    table: str, data: Data | None = None, **options: Unpack[SweepRunOptions]
) -> Reproduction:
    """Measure from async code; arguments and errors are the same as for ``reproduce``."""
    config, wanted, _ = divided(options)
    return await planned_and_done(partial(_planned, find_table(table), data, wanted), config)


def _planned(table: PaperTable, data: Data | None, options: Options) -> ReproductionPlan:
    if not table.data:
        raise UsageError(
            f"{table.name} has only printed figures: jurygraph reproduce {table.name} shows them"
        )
    whole = load_dataset(data if data is not None else table.data)
    judged = without_systems(whole, table.without_systems)
    if table.sample:
        judged = judged.sample(table.sample, 0)
    out = options.get("out")
    folder = None if out is None else Path(out)
    return plan_reproduction(table, whole, judged, options, folder=folder)


@dataclass(frozen=True)
class ReproductionPlan(Experiment[Reproduction]):
    """A table whose rows have been checked but not measured: a sweep of its judges, and other rows.

    Attributes:
        table: the paper's table.
        whole: all of its data.
        sweep: the runs of its judges; ``None`` without judges.
        others: the rows without a model, and why others cannot be measured.
        empty: the reasons for empty cells of judges.
        folder: the folder of the result.
    """

    table: PaperTable
    whole: Dataset
    sweep: SweepPlan | None
    others: tuple[Sequence[CellResult], Mapping[str, str]]
    empty: Sequence[str]
    folder: Path | None

    @property
    def notes(self) -> tuple[str, ...]:
        """The rows and cells that stay empty, with the reasons."""
        failed = self.others[1].items()
        return (*(f"{name}: stays empty, because {why}" for name, why in failed), *self.empty)

    def check(self, config: RunConfig) -> None:
        """Check the sweep of the judges."""
        if self.sweep is not None:
            self.sweep.check(config)

    async def carry_out(self, context: RunContext) -> Reproduction:
        """Judge, and measure the rows."""
        done = await self.sweep.carry_out(context) if self.sweep is not None else None
        if self.folder is not None:
            make_folder(self.folder)
        return self.result(done, self.folder).write()

    def result(self, done: Sweep | None = None, folder: Path | None = None) -> Reproduction:
        """Measure the rows, those of judges only after their sweep."""
        cells = done.cells if done else ()
        measured = reproduce_table(
            self.table, self.whole, cells, others=self.others, empty=self.empty
        )
        if done is None:
            return replace(measured, folder=folder)
        return replace(
            measured, sweep=done, folder=folder, stopped=done.stopped, failed=done.failed
        )


def plan_reproduction(
    table: PaperTable,
    whole: Dataset,
    judged: Dataset,
    options: Options,
    models: Sequence[str] = (),
    folder: Path | None = None,
) -> ReproductionPlan:
    """Check the rows of a table, before any call.

    Args:
        table: the paper's table.
        whole: all of its data, on which rows without a model are measured.
        judged: the items for the judges.
        options: the options of their runs.
        models: the models of the judges, if there are several.
        folder: the folder of the result.

    Raises:
        UsageError: invalid input, or data that cannot fill any cell; names what is missing.
    """
    sweep = plan_table(table, judged, options, models)
    # Before any call, so that unmeasurable rows are known before the others are paid for.
    others = rows_without_model(table, whole)
    empty = check_fillable(table, sweep) if sweep is not None else ()
    return ReproductionPlan(table, whole, sweep, others, empty, folder)


def plan_table(
    table: PaperTable, dataset: Dataset, options: Options, models: Sequence[str] = ()
) -> SweepPlan | None:
    """Check the runs of a table's judges with each model; ``None`` if the table has no judges.

    Raises:
        UsageError: invalid input, or data that cannot fill any cell; names what is missing.
    """
    if not table.judges:
        return None
    check_kind(table, dataset)
    if table.repeats > 1 and options.get("repeats", 1) == 1:
        options["repeats"] = table.repeats
    if dataset.kind == "score" and not options.get("aspects"):
        columns = [name for name in table.columns if name != AVERAGE]
        known = dataset.aspect_names()
        # For data other than the paper's, use the aspects that have labels.
        options["aspects"] = [name for name in columns if name in known] or columns
    first = str(next(iter(table.judges.values()))["protocol"])
    axes = [Axis.of(METHOD, table.judges), *([Axis.of(MODEL, models)] if models else [])]
    planned = plan_sweep(first, axes, dataset, **options)
    check_fillable(table, planned)
    return planned
