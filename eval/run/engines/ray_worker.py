"""The worker of a Ray cluster: judges a shard of a run, and hands its results to the driver."""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import socket
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from logging import LogRecord
from logging.handlers import QueueHandler
from queue import SimpleQueue
from typing import Any, NamedTuple

from ....graphs.engine.base import Graph
from ....graphs.engine.given_graphs import judges_of
from ....graphs.engine.registry import built, reference_of
from ....nodes.models.loaded_model import LoadedModel
from ....nodes.models.retry import Waits
from ....state.aspects import Aspect
from ....state.errors import JurygraphError, UsageError
from ....state.planned_steps import PlannedSteps
from ....state.settings import Settings
from ....state.transcript import NO_USAGE
from ...datasets.dataset import Dataset
from ...journal.call_journal import Journal
from ...results.config import RunConfig
from ...results.folder import differences
from ...results.results import Result
from ...results.run_folder import RunFolder
from ...results.run_log import ROOT, handled_by
from ..calls.call_pipeline import RunContext
from ..calls.progress_counters import ProgressCounters
from ..calls.shutdown import Reason
from ..calls.tracing import traces_sent
from ..plan.plan import Job, Plan
from ..plan.signatures import describe_run, package_versions
from ..runner import Run, make_pipeline

log = logging.getLogger("jurygraph.run")


def _versions() -> dict[str, str]:
    """Return the versions of Python (without patch) and packages that must match everywhere."""
    installed = package_versions()
    python = ".".join(platform.python_version_tuple()[:2])
    return {"Python": python, **{name: installed[name] for name in ("jurygraph", "langgraph")}}


@dataclass(frozen=True)
class RunDescription:
    """Describes a run to its workers in plain data, from which they build and verify judges.

    Attributes:
        judges: by name, the protocol and the settings with the models' names.
        dataset: the dataset without its items; these come with the shards.
        aspects: the aspects of the scores.
        repeats: the number of times that everything is judged.
        manifest: the run's manifest.
        config: the limits of the run, without the journal: its address may contain a password and
            is sent separately.
        log_level: the lowest level that is logged.
        folder: the folder that relative paths in the settings start from.
        versions: the versions of the driver.
    """

    judges: Mapping[str, tuple[str, Settings | dict[str, Any]]]
    dataset: Dataset
    aspects: Sequence[Aspect]
    repeats: int
    manifest: Mapping[str, Any]
    config: RunConfig
    log_level: int
    folder: str = field(default_factory=os.getcwd)
    versions: Mapping[str, str] = field(default_factory=_versions)

    @classmethod
    def from_plan(
        cls, plan: Plan, manifest: Mapping[str, Any], config: RunConfig
    ) -> RunDescription:
        """Describe the run of a plan with named judges."""
        judges = {name: protocol_and_settings(name, graph) for name, graph in plan.graphs.items()}
        # Items come with the shards; the function that reads them exists only in this process.
        survey = replace(plan.dataset.survey, ids=array("Q"))
        dataset = replace(plan.dataset, read=partial(iter, ()), survey=survey)
        config = replace(config, journal=None)
        return cls(
            judges, dataset, plan.aspects, plan.repeats, manifest, config, ROOT.getEffectiveLevel()
        )

    def build(self, jobs: Sequence[Job] = ()) -> Plan:
        """Build the judges here, and check that they equal those of the run and can work.

        Raises:
            UsageError: another version, a missing key or package, or judges that differ.
        """
        for package, version in self.versions.items():
            if (installed := _versions().get(package)) != version:
                raise UsageError(
                    f"it has {package} {installed}, but the driver has {version}: "
                    "install the same version on both"
                )
        # Another machine may not have this folder; settings without relative paths do not need it.
        with suppress(OSError):
            os.chdir(self.folder)
        judges = self.judges.items()
        graphs: dict[str, Graph] = {
            name: built(*judge).compile(name=name) for name, judge in judges
        }
        for graph in graphs.values():
            for judge in judges_of(graph).values():
                judge.check()
        here = describe_run(graphs, self.dataset, self.aspects, None, self.repeats)["signatures"]
        if unlike := list(differences(self.manifest["signatures"], here)):
            raise UsageError(f"its configuration differs from the driver's: {'; '.join(unlike)}")
        return _ShardPlan(
            graphs, self.dataset, self.aspects, self.repeats, self.manifest, chosen=jobs
        )


def protocol_and_settings(name: str, graph: Graph) -> tuple[str, Settings | dict[str, Any]]:
    """Return the protocol and the settings that a named judge was built with.

    Raises:
        UsageError: it has chat model objects or tool objects, which cannot be sent to workers.
    """
    judges = judges_of(graph)
    models = [model for judge in judges.values() for model in judge.chosen().values()]
    own = judges.get("")
    if own is None or any(isinstance(model, LoadedModel) for model in models):
        raise UsageError(
            f"{name}: a chat model object cannot be sent to workers; "
            "give the model's name, such as openai:gpt-4o-mini"
        )
    specs = getattr(own.bound, "juror_tools", ())
    if objects := [spec.name for spec in specs if spec.tool is not None]:
        raise UsageError(
            f"{name}: the tool {objects[0]} is a Python object, which cannot be sent to workers; "
            "name the place to import it from, as module:attribute"
        )
    reference = reference_of(own.protocol)
    # Workers do not have the class from a file that was not imported there yet.
    return reference, own.bound if reference == own.protocol else own.bound.model_dump(mode="json")


@dataclass(frozen=True)
class _ShardPlan(Plan):
    """Plans some verdicts of a run."""

    chosen: Sequence[Job] = ()

    def __len__(self) -> int:
        return len(self.chosen)

    def jobs(self) -> Iterator[Job]:
        return iter(self.chosen)


class ShardOutcome(NamedTuple):
    """The outcome of a shard, which the worker returns at its end.

    Attributes:
        results: the results.
        records: the log records.
        steps: the evaluation steps that were written for it.
        counts: the calls for this shard.
        reason: the reason why it stopped early, with an ``explanation``; ``None`` if it did not.
    """

    results: Sequence[Result]
    records: Sequence[LogRecord]
    steps: Sequence[PlannedSteps]
    counts: ProgressCounters
    reason: Reason | None
    explanation: str


class _ShardRun(Run):
    """Carries out the run of one shard, whose results the driver stores."""

    finished: list[Result]

    def keep(self, result: Result) -> None:
        """Add a result to the outcome of the shard."""
        self.finished.append(result)


def judge_shard(
    about: RunDescription, journal: str, jobs: Sequence[Job], part: str
) -> ShardOutcome:
    """Judge some verdicts of a run; Ray carries it out as a task.

    Args:
        about: the run.
        journal: the address of the journal.
        jobs: the verdicts to make.
        part: the name of the shard in the journal: one process at a time has it.

    Raises:
        JurygraphError: it cannot judge here.
    """
    return asyncio.run(_judge_shard(about, journal, jobs, part))


async def _judge_shard(
    about: RunDescription, journal: str, jobs: Sequence[Job], part: str
) -> ShardOutcome:
    context = RunContext(about.config)
    counts = context.counts
    records = SimpleQueue[LogRecord]()
    finished: list[Result] = []
    with handled_by([QueueHandler(records)], about.log_level), traces_sent():
        log.info("worker started", extra={"host": socket.gethostname(), "pid": os.getpid()})
        plan = about.build(jobs)
        async with aclosing(await _open_journal(about, journal, part, counts.waits)) as opened:
            # Ctrl-C reaches only the driver, which notes it in the journal.
            await opened.hear_soon()
            folder = RunFolder(about.manifest, None, opened)
            run = _ShardRun(plan, folder, context)
            run.finished = finished
            # Only the usage of this shard: the driver adds them up.
            counts.usage = NO_USAGE
            await run.judge(make_pipeline(plan, folder, context))
            steps = [*folder.new_steps]
    logged = [records.get() for _ in range(records.qsize())]
    stop = context.stop
    counted = replace(counts, waits=Waits())
    return ShardOutcome(finished, logged, steps, counted, stop.reason, stop.explanation)


def inspect_host(description: RunDescription, journal: str) -> str:
    """Return why a host of the cluster cannot judge a run; empty if it can. No model is called."""

    async def reach_journal() -> None:
        await (
            await _open_journal(description, journal, f"host {socket.gethostname()}", Waits())
        ).close()

    try:
        description.build()
        asyncio.run(reach_journal())
    except (JurygraphError, OSError) as error:
        return str(error)
    return ""


async def _open_journal(about: RunDescription, where: str, part: str, waits: Waits) -> Journal:
    """Open the journal that all workers of a run share."""
    run = about.manifest["run"]
    fresh = about.manifest.get("fresh", False)
    return await Journal.open(where, run=run, part=part, fresh=fresh, shared=True, waits=waits)
