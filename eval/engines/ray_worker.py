"""Judge a shard of a run in a process of a Ray cluster, and report to the driver on the way."""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from logging import LogRecord
from logging.handlers import QueueHandler
from queue import SimpleQueue
from typing import Any, NamedTuple

from ...graphs.base import Graph
from ...graphs.given_graphs import judges_of
from ...graphs.registry import built, reference_of
from ...nodes.evaluation_steps import PlannedSteps
from ...nodes.models.loaded_model import LoadedModel
from ...nodes.models.retry import Wait, Waits
from ...state.aspects import Aspect
from ...state.errors import JurygraphError, UsageError
from ...state.settings import Settings
from ...state.transcript import NO_USAGE
from ..calls.call_pipeline import RunContext
from ..calls.progress_counters import ProgressCounters
from ..calls.shutdown import Reason
from ..calls.tracing import traces_sent
from ..datasets.dataset import Dataset
from ..journal.call_journal import Journal
from ..plan.plan import Job, Plan
from ..plan.signatures import describe_run, package_versions
from ..results.config import RunConfig
from ..results.folder import RunFolder, differences
from ..results.results import Result
from ..results.run_log import ROOT, handled_by
from ..run.runner import Run, make_pipeline

REPORT_SECONDS = 1.0
log = logging.getLogger("jurygraph.run")


def _versions() -> dict[str, str]:
    """Return the versions that must be the same everywhere: Python's first two numbers, and packages'."""
    installed = package_versions()
    python = ".".join(platform.python_version_tuple()[:2])
    return {"Python": python, **{name: installed[name] for name in ("jurygraph", "langgraph")}}


@dataclass(frozen=True)
class RunDescription:
    """Describes a run to its workers: plain data, of which each builds the judges and checks that they are the same.

    Attributes:
        judges: by name, the protocol and the settings with the models' names.
        dataset: the dataset without its items; those come with the shards.
        aspects: what texts are scored for.
        repeats: how many times everything is judged.
        manifest: the run's manifest.
        config: the limits of the run; without the journal, whose address may hold a password and is sent by itself.
        log_level: the lowest level that is logged.
        folder: the folder that relative paths among the settings start from.
        versions: those of the driver.
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
    def from_plan(cls, plan: Plan, manifest: Mapping[str, Any], config: RunConfig) -> RunDescription:
        """Describe the run of a plan whose judges were named."""
        judges = {name: protocol_and_settings(name, graph) for name, graph in plan.graphs.items()}
        # Items come with the shards; what reads them is a function of this process.
        dataset, config = replace(plan.dataset, read=partial(iter, ())), replace(config, journal=None)
        return cls(judges, dataset, plan.aspects, plan.repeats, manifest, config, ROOT.getEffectiveLevel())

    def build(self, jobs: Sequence[Job] = ()) -> Plan:
        """Build the judges here, and check that they are those of the run and have what they need.

        Raises:
            UsageError: another version, a missing key or package, or judges that differ.
        """
        for package, version in self.versions.items():
            if (installed := _versions().get(package)) != version:
                differ = f"it has {package} {installed}, but the driver has {version}"
                raise UsageError(f"{differ}: install the same version on both")
        # On another machine there may be no such folder; settings without relative paths do not need it.
        with suppress(OSError):
            os.chdir(self.folder)
        judges = self.judges.items()
        graphs: dict[str, Graph] = {name: built(*judge).compile(name=name) for name, judge in judges}
        for graph in graphs.values():
            for judge in judges_of(graph).values():
                judge.check()
        here = describe_run(graphs, self.dataset, self.aspects, None, self.repeats)["signatures"]
        if unlike := list(differences(self.manifest["signatures"], here)):
            raise UsageError(f"its configuration differs from the driver's: {'; '.join(unlike)}")
        return _ShardPlan(graphs, self.dataset, self.aspects, self.repeats, self.manifest, chosen=jobs)


def protocol_and_settings(name: str, graph: Graph) -> tuple[str, Settings | dict[str, Any]]:
    """Return the protocol and the settings that a named judge was built with.

    Raises:
        UsageError: it has chat model objects, which cannot be sent to workers.
    """
    judges = judges_of(graph)
    models = [model for judge in judges.values() for model in judge.chosen().values()]
    own = judges.get("")
    if own is None or any(isinstance(model, LoadedModel) for model in models):
        remedy = "give the model's name, such as openai:gpt-4o-mini"
        raise UsageError(f"{name}: a chat model object cannot be sent to workers; {remedy}")
    reference = reference_of(own.protocol)
    # Workers have no class of a file that was not imported there yet.
    return reference, own.bound if reference == own.protocol else own.bound.model_dump(mode="json")


@dataclass(frozen=True)
class _ShardPlan(Plan):
    """Plans some verdicts of a run."""

    chosen: Sequence[Job] = ()

    def __len__(self) -> int:
        return len(self.chosen)

    def jobs(self) -> Iterator[Job]:
        return iter(self.chosen)


class Report(NamedTuple):
    """Says what a worker has done since its last report, and how far it is.

    Attributes:
        results: the results since the last report.
        records: what it has logged since the last report.
        steps: all evaluation steps that it has had written.
        counts: the calls for this shard so far, without waits.
        waits: what it waits for.
        reason: why it has stopped, with an ``explanation``.
    """

    results: Sequence[Result]
    records: Sequence[LogRecord]
    steps: Sequence[PlannedSteps]
    counts: ProgressCounters
    waits: Sequence[Wait]
    reason: Reason | None
    explanation: str


class _ShardRun(Run):
    """Carries out the run of one shard; its results go into reports, since the driver keeps them."""

    finished: SimpleQueue[Result]

    def keep(self, result: Result) -> None:
        """Have the next report tell a result."""
        self.finished.put(result)


def judge_shard(about: RunDescription, journal: str, jobs: Sequence[Job], part: str) -> Iterator[Report]:
    """Judge some verdicts of a run; Ray carries it out as a task, and streams the reports to the driver.

    Args:
        about: the run.
        journal: the address of the journal.
        jobs: the verdicts to make.
        part: what this worker is called in the journal: one process at a time has this name.

    Raises:
        JurygraphError: it cannot judge here.
    """
    context = RunContext(about.config)
    counts, stop = context.counts, context.stop
    finished, records, steps = SimpleQueue[Result](), SimpleQueue[LogRecord](), list[PlannedSteps]()

    async def judge() -> None:
        nonlocal steps
        with handled_by([QueueHandler(records)], about.log_level), traces_sent():
            log.info("worker started", extra={"host": socket.gethostname(), "pid": os.getpid()})
            plan = about.build(jobs)
            async with aclosing(await _open_journal(about, journal, part, counts.waits)) as opened:
                # Ctrl-C reaches the driver alone, which notes it in the journal.
                await opened.hear_soon()
                folder = RunFolder(about.manifest, None, opened)
                run, steps = _ShardRun(plan, folder, context), folder.new_steps
                run.finished = finished
                # Reports say what this shard took, and the driver adds up.
                counts.usage = NO_USAGE
                await run.judge(make_pipeline(plan, folder, context))

    def report() -> Report:
        """Tell what is new since the last report."""
        results = [finished.get() for _ in range(finished.qsize())]
        logged = [records.get() for _ in range(records.qsize())]
        so_far, waits = replace(counts, waits=Waits()), counts.waits.current()
        return Report(results, logged, [*steps], so_far, waits, stop.reason, stop.explanation)

    # The first report says that the process is there.
    yield report()
    with asyncio.Runner() as runner:
        judging = runner.get_loop().create_task(judge())
        while not judging.done():
            # Between two reports the loop stands still for as long as Ray takes to send one.
            runner.run(asyncio.wait({judging}, timeout=REPORT_SECONDS))
            yield report()
        judging.result()


def inspect_host(description: RunDescription, journal: str) -> str:
    """Say what keeps a host of the cluster from judging a run; empty where nothing does. No model is called."""

    async def reach_journal() -> None:
        await (await _open_journal(description, journal, f"host {socket.gethostname()}", Waits())).close()

    try:
        description.build()
        asyncio.run(reach_journal())
    except (JurygraphError, OSError) as error:
        return str(error)
    return ""


async def _open_journal(about: RunDescription, where: str, part: str, waits: Waits) -> Journal:
    """Open the journal that all workers of a run share."""
    run, fresh = about.manifest["run"], about.manifest.get("fresh", False)
    return await Journal.open(where, run=run, part=part, fresh=fresh, shared=True, waits=waits)
