"""The runner for several datasets or models: one run after the other, within common limits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

from filelock import FileLock

from ..journal.private_files import PRIVATE
from ..results.config import RunConfig
from ..results.evaluation import EvaluatedRun, Evaluations
from ..results.folder import FILE as MANIFEST
from ..results.folder import JOURNAL, locked_folder, make_folder, rename_results
from ..results.run_set import RunSet, move_run, read_run_set
from .calls.call_pipeline import RunContext
from .plan.plan import Plan
from .plan.run_set_plan import PlannedRun, RunSetPlan
from .runner import Engine, check_run, execute


def check_run_set(planned: RunSetPlan, config: RunConfig, engine: Engine | None = None) -> None:
    """Check that all runs can be carried out with this config; nothing is called or written.

    Raises:
        UsageError: a run cannot be carried out, alone or with the others, or a folder holds another
            run.
    """
    planned.check(config)
    for run in planned.runs:
        check_run(run.plan, config)
        run.judged(config)
        if engine is not None:
            engine.check(run.plan, config)


async def execute_run_set(
    planned: RunSetPlan, context: RunContext, engine: Engine | None = None
) -> Evaluations:
    """Carry out the runs one after the other, with a shared journal of calls and shared limits.

    Raises:
        UsageError: as ``check_run_set``; or another process uses the folder.
    """
    config = context.config
    counts = context.counts
    stop = context.stop
    check_run_set(planned, config, engine)
    counts.wanted = len(planned)
    done: list[EvaluatedRun] = []
    with _opened(planned, config) as (run_set, journal):
        for run in planned.runs:
            counts.phase = run.title
            plan = replace(run.plan, manifest={**run.plan.manifest, "run": run_set.run})
            own = replace(context, config=_config_of(plan, config, run_set))
            evaluation = await execute(plan, own, engine, journal)
            done.append(EvaluatedRun(run.record.dataset, run.record.model, evaluation))
            if stop.is_asked:
                break
    judged = sum(len(run.evaluation.results) for run in done)
    # A signal may come when everything is done.
    stopped = stop.reason if judged < len(planned) else None
    return Evaluations.of(done, len(planned.runs), planned.folder, stopped)


def _config_of(plan: Plan, config: RunConfig, run_set: RunSet) -> RunConfig:
    """Return the config of one run.

    No run starts over, since results were renamed for all runs.
    """
    has_begun = plan.folder is not None and (plan.folder / MANIFEST).exists()
    fresh = config.fresh if plan.folder is None else run_set.fresh and not has_begun
    return replace(config, overwrite=False, fresh=fresh)


@contextmanager
def _opened(planned: RunSetPlan, config: RunConfig) -> Iterator[tuple[RunSet, Path]]:
    """Lock the folder of the runs and write its description; yield it, and the file of the journal.

    Shards may begin at the same time. They share the description, and each has its own journal,
    which no other process uses.
    """
    folder = planned.folder
    shard = planned.shard
    locking = nullcontext(folder) if shard and folder else locked_folder(folder)
    with locking as place:
        assert place is not None  # without a folder, the lock is on a temporary one
        if folder is None:
            yield RunSet.begin(planned.run, (), fresh=config.fresh), place / JOURNAL
            return
        make_folder(folder)
        with FileLock(folder / "runs.lock", mode=PRIVATE):
            run_set = _written(planned, config, folder)
        name = JOURNAL if shard is None else f"journal-shard-{shard.replace('/', '-of-')}.sqlite"
        yield run_set, folder / name


def _written(planned: RunSetPlan, config: RunConfig, folder: Path) -> RunSet:
    """Write the description of the runs.

    Move a former single run, and rename results to be replaced.
    """
    begins_anew = config.fresh or config.overwrite
    # Another shard may have begun since the plan was made.
    before = read_run_set(folder)
    if begins_anew or before is None:
        id = _new_run(planned) if begins_anew else planned.run
        run_set = RunSet.begin(id, planned.recorded, fresh=config.fresh)
    else:
        run_set = replace(before, runs=planned.recorded)
    run_set.write(folder)
    for run in planned.runs:
        _prepare(run, folder, begins_anew=begins_anew)
    return run_set


def _new_run(planned: RunSetPlan) -> str:
    run: str = planned.runs[0].plan.manifest["run"]
    return run


def _prepare(run: PlannedRun, folder: Path, *, begins_anew: bool) -> None:
    below = folder / run.record.folder
    if run.is_above:
        move_run(folder, below)
    if begins_anew and below.is_dir():
        rename_results(below)
