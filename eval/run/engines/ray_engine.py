"""The Ray engine: one task per shard of a run, whose results this process stores.

Ray places the tasks and starts them again if a worker or a host dies. The journal sees to it that
no call is made twice and that all workers share one budget. The cluster either exists already, or
is started on this machine for the run.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import socket
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from itertools import groupby, islice
from typing import Any

from ....graphs.engine.given_graphs import Protocols, judges_of, named
from ....nodes.common.plugins import needed
from ....state.errors import UsageError
from ...journal.database import journal_location
from ...journal.records import JournalError
from ...results.config import RunConfig, option
from ...results.results import Result
from ..calls.call_pipeline import AT_ONCE
from ..plan.plan import Job, Plan
from ..runner import Run
from .ray_worker import (
    RunDescription,
    ShardOutcome,
    inspect_host,
    judge_shard,
    protocol_and_settings,
)

log = logging.getLogger("jurygraph.run")

TRIES = 3
"""The number of workers that may die at a shard before it is divided."""

MOST_SET_ASIDE = 5
"""The number of verdicts that workers may die at before the run stops."""

USAGE_SECONDS = 2.0
"""The seconds between two looks at the calls that all workers have made."""

TO_END = 10.0
"""The seconds that workers have to hand over their results once the run is to end.

The seconds for calls in flight are added.
"""

LARGEST = 2000
"""The maximum number of verdicts in a shard.

Its items and its results are sent at once, and are in the memory of the worker.
"""


ENGINE = "Several processes"
"""The heading of the fields of ``Ray`` in the command line's help."""
_option = partial(option, panel=ENGINE)


@dataclass(frozen=True, kw_only=True)
class Ray:
    """The distribution of a run over a Ray cluster: ``evaluate(..., engine=Ray(workers=16))``.

    Attributes:
        workers: the number of processes that judge; default: one for each CPU. ``concurrency``
            applies to each of them.
        address: the cluster's address, or ``auto``; default: ``RAY_ADDRESS``, else a cluster on
            this machine, for this run.
        cpus_per_worker: the share of a CPU that each worker reserves; most of the time it waits for
            the provider.

    Raises:
        UsageError: a number that is out of bounds.

    >>> Ray(workers=0)
    Traceback (most recent call last):
    ...
    jurygraph.state.errors.UsageError: workers must be 1 or more, got 0
    """

    address: str | None = _option(metavar="ADDRESS", name="--engine-address")
    """Address of a running Ray cluster, or auto. Default: RAY_ADDRESS, else a new local cluster."""
    workers: int | None = _option(metavar="N", min=1)
    """Number of processes that judge. Default: one per CPU."""
    cpus_per_worker: float = 0.5

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise UsageError(f"workers must be 1 or more, got {self.workers}")
        if not self.cpus_per_worker > 0:
            raise UsageError(f"cpus_per_worker must be above 0, got {self.cpus_per_worker}")
        if self.address and self.address.startswith("ray://"):
            raise UsageError(
                f"{self.address}: Ray's client cannot carry out a run; "
                "start it on a host of the cluster, with --engine-address auto"
            )

    def check_judges(self, protocols: Protocols) -> None:
        """Check that judges are given by name, since each worker builds its own.

        Raises:
            UsageError: one is a graph.
        """
        if graphs := [
            name for name, judge in named(protocols).items() if not isinstance(judge, str)
        ]:
            raise UsageError(
                f"{graphs[0]} is a graph, which cannot be sent to workers: "
                "an engine takes protocols by name. Give your graph a name as an entry point of "
                "the group jurygraph.protocols"
            )

    def check(self, planned: Plan, config: RunConfig) -> None:
        """Check that several processes can carry out a plan; nothing is called or written.

        Raises:
            UsageError: states the obstacle and the remedy.
        """
        load_ray()
        has_shard = "shard" in planned.manifest
        has_replies = planned.recording is not None
        given = {"--batch": config.batch, "--replies": has_replies, "--shard": has_shard}
        if refused := [option for option, is_given in given.items() if is_given]:
            raise UsageError(
                f"{refused[0]} only works with one process: leave it out, or leave out --engine"
            )
        if config.journal is None or journal_location(config.journal).file is not None:
            raise UsageError(
                "workers share one journal, which cannot be a file: "
                "give --journal postgresql://USER@HOST/DATABASE"
            )
        if planned.folder is None:
            raise UsageError("an engine writes results to a folder: give one with out=")
        for name, graph in planned.graphs.items():
            protocol_and_settings(name, graph)

    async def judge(self, run: Run) -> None:
        """Let workers make every open verdict, or as many as possible until the run is to end.

        Raises:
            UsageError: there is no cluster, or a host of it cannot judge in the same way as this
                one.
        """
        if run.counts.judged == run.counts.wanted:
            return
        async with cluster(self.address, (self.workers or 1) * self.cpus_per_worker) as ray:
            # One for each CPU of the cluster, as far as they fit.
            fit = int(ray.cluster_resources().get("CPU", 1) / max(1.0, self.cpus_per_worker))
            await _Driver(run, ray, self.workers or max(1, fit), self.cpus_per_worker).judge()


class _Driver:
    """Gives out the shards of a run, and stores their results.

    Ray places the tasks, and starts those again whose worker or host died; the journal answers the
    calls that they had made.

    Args:
        run: the run, whose folder contains the results.
        ray: the Ray package, connected.
        workers: the number of shards that are judged at a time.
        cpus_per_worker: the share of a CPU that each reserves.
    """

    def __init__(self, run: Run, ray: Any, workers: int, cpus_per_worker: float) -> None:
        self._run = run
        self._ray = ray
        self._workers = min(workers, run.counts.wanted - run.counts.judged)
        options = {"num_cpus": cpus_per_worker, "max_retries": TRIES - 1}
        self._task = ray.remote(judge_shard).options(**options)
        self._description = RunDescription.from_plan(run.plan, run.folder.manifest, run.config)
        self._journal = str(run.config.journal)
        self._working: set[asyncio.Task[None]] = set()
        self._set_aside = 0

    async def judge(self) -> None:
        """Judge all shards, or as many as possible until the run is to end."""
        run = self._run
        await asyncio.to_thread(check_hosts, self._ray, self._description, self._journal)
        log.info("run spread", extra={"workers": self._workers})
        jobs = filter(run.is_open, run.plan.jobs())
        left = run.counts.wanted - run.counts.judged
        beside = [
            asyncio.create_task(self._end_when_stopped()),
            asyncio.create_task(self._read_usage()),
        ]
        try:
            if _writes_steps(run):
                # Evaluation steps are written with the first item, and all others are judged with
                # them.
                _, of_item = next(groupby(filter(run.is_open, run.plan.jobs()), key=_item_of))
                opening = list(islice(jobs, sum(1 for _ in of_item)))
                left -= len(opening)
                await self._share([opening], workers=1)
            await self._share(self._shards(jobs, left), self._workers)
        finally:
            for task in beside:
                task.cancel()
        # Shards that were started again counted only their last try; the journal has all calls.
        with suppress(JournalError):
            run.counts.usage = (await run.folder.journal.spent_by_all()).usage

    def _shards(self, jobs: Iterator[Job], left: int) -> Iterator[list[Job]]:
        """Yield open verdicts in shards of one size, about four for each worker.

        At the end of a shard, a worker has fewer and fewer calls in flight, so a shard is large
        compared to them.
        """
        of_four = -(-left // (4 * self._workers))
        size = min(
            -(-left // self._workers), max(of_four, 16 * self._run.config.concurrency), LARGEST
        )
        while shard := list(islice(jobs, max(1, size))):
            yield shard

    async def _share(self, shards: Iterable[list[Job]], workers: int) -> None:
        """Have this number of shards judged at a time."""
        to_judge = enumerate(shards, start=1)

        async def work() -> None:
            for number, shard in to_judge:
                await self._judge_shard(f"shard-{number}", shard)

        self._working = {asyncio.create_task(work()) for _ in range(workers)}
        for outcome in await asyncio.gather(*self._working, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome  # For example a data file was changed in the meantime.

    async def _judge_shard(self, name: str, jobs: Sequence[Job]) -> None:
        """Have a shard judged, and store its results.

        If its workers die again and again, its halves are judged, down to the verdict that kills
        them, which fails.

        Raises:
            JurygraphError: a worker cannot judge.
        """
        if self._run.stop.is_asked:
            return
        description = replace(self._description, manifest=self._run.folder.manifest)
        shard = self._task.remote(description, self._journal, jobs, name)
        try:
            outcome: ShardOutcome = await shard
        except self._ray.exceptions.RayTaskError as error:
            raise (error.cause if isinstance(error.cause, Exception) else error) from None
        except self._ray.exceptions.RayError as error:
            if not self._run.stop.is_asked:
                await self._divide(name, jobs, last_line(error))
            return
        finally:
            # It has ended, unless it is no longer awaited.
            self._ray.cancel(shard, force=True)
        self._take_over(name, outcome)

    async def _divide(self, name: str, jobs: Sequence[Job], reason: str) -> None:
        """Judge the halves of a shard that no worker survived; set a single verdict aside."""
        log.warning("workers died", extra={"worker": name, "verdicts": len(jobs), "reason": reason})
        if len(jobs) > 1:
            half = len(jobs) // 2
            for number, part in enumerate((jobs[:half], jobs[half:]), start=1):
                await self._judge_shard(f"{name}.{number}", part)
            return
        ((key, item, _),) = jobs
        problem = f"{TRIES} workers died while they judged it: {reason}"
        self._run.keep(
            Result(
                **key._asdict(),
                group=item.group,
                human=item.label(key.aspect),
                **item.about(key.aspect),
                status="failed",
                error=problem,
            )
        )
        self._set_aside += 1
        if self._set_aside == MOST_SET_ASIDE:
            self._run.stop.ask(
                "worker", f"workers died at {MOST_SET_ASIDE} verdicts, last at {key.item}: {reason}"
            )

    def _take_over(self, worker: str, outcome: ShardOutcome) -> None:
        """Store what a shard has brought: its log, its steps, its results, and why it stopped."""
        for record in outcome.records:
            record.worker = worker
            logging.getLogger(record.name).handle(record)
        for planned in outcome.steps:
            self._run.folder.steps.note(planned)
        for result in outcome.results:
            self._run.keep(result)
        if outcome.reason is not None:
            self._run.stop.ask(outcome.reason, outcome.explanation)
        counts = self._run.counts
        for name in ("made", "served", "given_up", "refused"):
            setattr(counts, name, getattr(counts, name) + getattr(outcome.counts, name))

    async def _read_usage(self) -> None:
        """Show the calls of all workers while they judge, as the journal has them."""
        while True:
            await asyncio.sleep(USAGE_SECONDS)
            with suppress(JournalError):
                self._run.counts.usage = (await self._run.folder.journal.spent_by_all()).usage

    async def _end_when_stopped(self) -> None:
        """End all workers once the run is to end; at once after a second request."""
        stop = self._run.stop
        grace = self._run.config.grace
        await stop.asked()
        log.warning("stopping", extra={"reason": stop.reason, "explanation": stop.explanation})
        # Workers see the note within a second, let calls in flight finish, and hand over what they
        # have judged. A worker that starts later sees the next note.
        noting = asyncio.create_task(self._note_stop(str(stop.reason)))
        await stop.let_finish(self._working, grace + TO_END)
        noting.cancel()
        if any(not task.done() for task in self._working):
            noting = asyncio.create_task(self._note_stop(AT_ONCE))
            await asyncio.wait({noting, *self._working}, timeout=TO_END)
        for task in self._working:
            task.cancel()

    async def _note_stop(self, reason: str) -> None:
        with suppress(JournalError):
            await self._run.folder.journal.note_stop(reason, self._run.stop.explanation)


def _item_of(job: Job) -> str:
    return job[1].id


def _writes_steps(run: Run) -> bool:
    """Return whether a judge of the run makes calls once for all items."""
    judges = [judge for graph in run.plan.graphs.values() for judge in judges_of(graph).values()]
    kind = run.plan.dataset.kind
    once = [judge.record.calls_once(judge.bound, kind, lambda *_: False) for judge in judges]
    return any(calls.most for by_role in once for calls in by_role.values())


def load_ray() -> Any:
    """Import Ray.

    Raises:
        UsageError: it is not installed.
    """
    return needed("ray", 'the engine ray needs Ray: pip install "jurygraph[ray]"')


@asynccontextmanager
async def cluster(address: str | None, cpus: float) -> AsyncIterator[Any]:
    """Connect to a cluster for the duration of the block inside.

    Args:
        address: the address of an existing cluster, or ``auto``; ``None``: the cluster that
            ``RAY_ADDRESS`` names, or that this process is connected to, else one on this machine
            that ends with the block.
        cpus: the minimum number of CPUs of a cluster on this machine; they are places to fill, not
            processors.

    Raises:
        UsageError: Ray is not installed, or there is no cluster at the address.
    """
    # This comes before the import of Ray, which reads the variables then: no usage statistics are
    # sent, and a cluster on this machine listens only on the loopback interface. Values that the
    # user has set are not changed.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    address = address or os.environ.get("RAY_ADDRESS")
    if address is None:
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    ray = load_ray()
    if ray.is_initialized():
        yield ray
        return
    logging.getLogger("ray").setLevel(logging.ERROR)
    # Otherwise Ray prints a paragraph to standard output for a worker that dies; the run's log
    # reports it in one line.
    vars(import_module("ray._private.worker"))["_worker_logs_enabled"] = False
    if address is not None:
        await asyncio.to_thread(check_address, address)
    own = (
        {"num_cpus": max(os.cpu_count() or 1, math.ceil(cpus)), **_HERE} if address is None else {}
    )
    try:
        # In a separate thread: it takes seconds, and in the main thread Ray would replace the
        # handler of SIGTERM.
        await asyncio.to_thread(ray.init, address or "local", **_QUIET, **own)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        where = f"at {address}" if address else "on this machine"
        raise UsageError(f"no Ray cluster {where}: {' '.join(str(error).split())[:300]}") from error
    try:
        yield ray
    finally:
        await asyncio.to_thread(ray.shutdown)


_QUIET = {"log_to_driver": False, "logging_level": logging.ERROR, "configure_logging": False}
_HERE: dict[str, Any] = {
    "include_dashboard": False,
    "_node_ip_address": "127.0.0.1",
    # For shards on their way to workers, and results on their way back.
    "object_store_memory": 200 * 2**20,
}


def check_address(address: str) -> None:
    """Check that an address answers; Ray itself would retry for minutes.

    Raises:
        UsageError: it does not answer.
    """
    host, colon, port = address.rpartition(":")
    if not (colon and port.isdigit()):
        return
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as error:
        raise UsageError(f"no Ray cluster at {address}: {error.strerror or error}") from error


def check_hosts(ray: Any, description: RunDescription, journal: str) -> None:
    """Check on every host that it can judge the run like this one, before any call.

    Raises:
        UsageError: names the host and the reason: another version, or a missing key or package.
    """
    strategies = import_module("ray.util.scheduling_strategies")
    nodes = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]
    if not nodes:
        raise UsageError("the Ray cluster has no CPU for a worker")
    for node in nodes:
        on_node = strategies.NodeAffinitySchedulingStrategy(node_id=node["NodeID"], soft=False)
        task = ray.remote(inspect_host).options(
            num_cpus=0, scheduling_strategy=on_node, max_retries=1
        )
        try:
            problem = ray.get(task.remote(description, journal))
        except ray.exceptions.RayError as error:
            # For example another version, which cannot even read the description.
            problem = last_line(error)
        if problem:
            raise UsageError(f"{node['NodeManagerHostname']} cannot judge: {problem}")


def last_line(error: BaseException) -> str:
    """Return the error of a task, without the traceback and the advice that Ray adds."""
    lines = str(getattr(error, "cause", None) or error).strip().splitlines()
    return lines[-1] if lines else type(error).__name__
