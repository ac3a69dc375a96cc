"""Spread a run over a Ray cluster: what can be chosen, and what is refused before any call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from ...state.errors import UsageError
from ..given_graphs import Protocols, named
from ..journal.database import journal_location
from ..plan import Plan
from ..run.call_pipeline import LivePipeline
from ..run.config import RunConfig
from ..run.evaluation import Evaluation
from ..run.folder import run_folder
from ..run.progress_counters import ProgressCounters
from ..run.run_log import ROOT
from ..run.shutdown import StopSignal
from .chunks import Job, default_parts, describe_judge
from .ray_cluster import cluster, load_ray
from .ray_driver import Driven, Driver
from .result_parts import ResultParts


@dataclass(frozen=True, kw_only=True)
class Ray:
    """Says how a run is spread over a Ray cluster; ``evaluate(..., engine=Ray(workers=16))``.

    Attributes:
        workers: how many processes judge; default: one for each CPU. ``concurrency`` is for each of them.
        address: the cluster's, or ``auto``; default: ``RAY_ADDRESS``, else a cluster on this machine, for this run.
        cpus_per_worker: how much of a CPU each worker reserves; most of the time it waits for the provider.
        parts: where workers write results until the run is whole; default: ``parts`` in the run's folder, which all
            hosts must share then. An object store's address (``s3://...``) needs no shared folder, and keeps the parts.

    Raises:
        UsageError: a number that is out of bounds.

    >>> Ray(workers=0)
    Traceback (most recent call last):
    ...
    jurygraph.state.errors.UsageError: workers must be 1 or more, got 0
    """

    workers: int | None = None
    address: str | None = None
    cpus_per_worker: float = 0.5
    parts: str | None = None

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise UsageError(f"workers must be 1 or more, got {self.workers}")
        if not self.cpus_per_worker > 0:
            raise UsageError(f"cpus_per_worker must be above 0, got {self.cpus_per_worker}")
        if self.address and self.address.startswith("ray://"):
            raise UsageError(
                f"{self.address}: Ray's client cannot carry out a run; start it on a host of the cluster, "
                "with --engine-address auto"
            )

    def check_judges(self, protocols: Protocols) -> None:
        """Check that judges are given by name, of which each worker builds its own.

        Raises:
            UsageError: one is a graph.
        """
        if graphs := [name for name, judge in named(protocols).items() if not isinstance(judge, str)]:
            raise UsageError(
                f"{graphs[0]} is a graph, which cannot be sent to workers: an engine takes protocols by name. "
                "A graph of your own gets one as an entry point of the group jurygraph.protocols"
            )

    def check(self, planned: Plan, config: RunConfig) -> None:
        """Check that a plan can be carried out by several processes; nothing is called or written.

        Raises:
            UsageError: says what cannot be, and what to do.
        """
        load_ray()
        given = {
            "--batch": config.batch,
            "--replies": planned.recording is not None,
            "--shard": "shard" in planned.manifest,
        }
        if refused := [option for option, is_given in given.items() if is_given]:
            raise UsageError(f"{refused[0]} is for one process: leave it out, or leave out --engine")
        if config.journal is None or journal_location(config.journal).file is not None:
            raise UsageError(
                "workers share one journal, which a file cannot be: give --journal postgresql://USER@HOST/DATABASE"
            )
        if planned.folder is None:
            raise UsageError("an engine writes results to a folder: give one with out=")
        for name, graph in planned.graphs.items():
            describe_judge(name, graph)
        ResultParts(self.parts or default_parts(planned.folder), "check")

    async def carry_out(
        self, planned: Plan, config: RunConfig, counts: ProgressCounters, stop: StopSignal
    ) -> Evaluation:
        """Carry out a plan; arguments and errors are those of ``runner.execute``."""
        self.check(planned, config)
        assert planned.folder is not None
        async with AsyncExitStack() as stack:
            folder = await stack.enter_async_context(
                run_folder(planned.folder, planned.manifest, config, counts.waits)
            )
            await LivePipeline(folder.journal, config, counts, stop).open()
            parts = ResultParts(self.parts or default_parts(planned.folder), folder.manifest["run"])
            job = Job.of(planned, folder.manifest, config, parts.where, ROOT.getEffectiveLevel())
            ray = await stack.enter_async_context(_connected(self))
            spread = self.workers, self.cpus_per_worker
            run = Driven(planned, folder, job, parts, config, counts, stop, *spread)
            return await Driver(run, ray).carry_out()


@asynccontextmanager
async def _connected(engine: Ray) -> AsyncIterator[Any]:
    connection = cluster(engine.address, (engine.workers or 1) * engine.cpus_per_worker)
    # In a thread of its own: it takes seconds, and in the main one Ray would take over the handling of SIGTERM.
    ray = await asyncio.to_thread(connection.__enter__)
    try:
        yield ray
    finally:
        await asyncio.to_thread(connection.__exit__, None, None, None)
