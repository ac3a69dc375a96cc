"""The Ray engine: each worker judges shards of a run, and this process stores the results.

The cluster either exists already, or is started on this machine for the run.
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
from ....nodes.models.retry import Wait
from ....state.errors import UsageError
from ...journal.database import journal_location
from ...journal.records import JournalError
from ...results.config import RunConfig, option
from ...results.results import Key
from ..calls.call_pipeline import AT_ONCE
from ..calls.progress_counters import ProgressCounters
from ..plan.plan import Job, Plan
from ..runner import Run
from .ray_worker import Report, RunDescription, inspect_host, judge_shard, protocol_and_settings

log = logging.getLogger("jurygraph.run")

ATTEMPTS = 5
"""The number of workers that may die at the same verdicts in sequence before the run stops."""

SILENCE = 75.0
"""The number of seconds without a report after which a worker counts as dead.

This is 15 seconds longer than its claims on calls last.
"""

TO_END = 10.0
"""The seconds that workers have to report their last results once the run is to end.

The seconds for calls in flight are added.
"""

LARGEST = 2000
"""The maximum number of verdicts in a shard.

Their items are sent at once, and are in the memory of the worker.
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
    """Distributes the shards of a run, and restarts verdicts that a dead worker left open.

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
        # Ray itself retries nothing: a shard begins again only with the verdicts that are still
        # open.
        options = {"num_cpus": cpus_per_worker, "max_retries": 0, "num_returns": "streaming"}
        self._task = ray.remote(judge_shard).options(**options)
        self._description = RunDescription.from_plan(run.plan, run.folder.manifest, run.config)
        self._journal = str(run.config.journal)
        self._spent_before = run.counts.usage
        self._made: list[ProgressCounters] = []
        self._working: set[asyncio.Task[None]] = set()
        self._not_started: set[Any] = set()

    async def judge(self) -> None:
        """Judge all shards, or as many as possible until the run is to end."""
        run = self._run
        left = self._run.counts.wanted - self._run.counts.judged
        judges = [
            judge for graph in run.plan.graphs.values() for judge in judges_of(graph).values()
        ]
        await asyncio.to_thread(check_hosts, self._ray, self._description, self._journal)
        log.info("run spread", extra={"workers": self._workers})
        jobs = filter(run.is_open, run.plan.jobs())
        ending = asyncio.create_task(self._end_when_stopped())
        try:
            kind = run.plan.dataset.kind
            once = [
                judge.record.calls_once(judge.bound, kind, lambda *_: False) for judge in judges
            ]
            if any(calls.most for by_role in once for calls in by_role.values()):
                # Evaluation steps are written with the first item, and all others are judged with
                # them.
                _, of_first_item = next(
                    groupby(filter(run.is_open, run.plan.jobs()), lambda job: job[1].id)
                )
                opening = list(islice(jobs, sum(1 for _ in of_first_item)))
                left -= len(opening)
                await self._share([opening], workers=1)
            await self._share(self._shards(jobs, left), self._workers)
        finally:
            ending.cancel()
        # Reports of a worker that was killed lack its last calls; the journal has all of them.
        with suppress(JournalError):
            run.counts.usage = (await run.folder.journal.spent_by_all()).usage

    def _shards(self, jobs: Iterator[Job], left: int) -> Iterator[list[Job]]:
        """Yield open verdicts in shards that become smaller.

        Thus all workers end at about the same time. At the end of a shard a worker has fewer and
        fewer calls in flight: the smallest shard is large compared to that.
        """
        smallest = min(8 * self._run.config.concurrency, -(-left // self._workers))
        while shard := list(
            islice(jobs, min(LARGEST, max(1, smallest, left // (2 * self._workers))))
        ):
            left -= len(shard)
            yield shard

    async def _share(self, shards: Iterable[list[Job]], workers: int) -> None:
        """Let this number of workers judge shards; each takes the next one when it is free."""
        to_judge = iter(shards)

        async def work(worker: str) -> None:
            for shard in to_judge:
                await self._judge_shard(worker, shard)

        self._working = {
            asyncio.create_task(work(f"worker-{number + 1}")) for number in range(workers)
        }
        for outcome in await asyncio.gather(*self._working, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome  # For example a data file was changed in the meantime.

    async def _judge_shard(self, worker: str, jobs: Iterable[Job]) -> None:
        """Let a worker judge a shard; if it dies, let another one judge the rest."""
        left = {job[0]: job for job in jobs}
        deaths = 0
        while left and not self._run.stop.is_asked:
            before = len(left)
            try:
                await self._follow(worker, left)
                return
            except self._ray.exceptions.RayError as error:
                if self._run.stop.is_asked:
                    return
                noted = {"worker": worker, "reason": (reason := last_line(error))}
                log.warning("a worker died; its verdicts are given out again", extra=noted)
                deaths = deaths + 1 if len(left) == before else 1
                if deaths == ATTEMPTS:
                    lost = f"{next(iter(left)).item} and items after it"
                    self._run.stop.ask(
                        "worker", f"{deaths} workers died while they judged {lost}: {reason}"
                    )

    async def _follow(self, worker: str, left: dict[Key, Job]) -> None:
        """Let a worker judge the open verdicts, and take over its reports, until it is done.

        Raises:
            RayError: the worker died, or was ended because it was silent for too long.
        """
        counts = self._run.counts
        description = replace(self._description, manifest=self._run.folder.manifest)
        stream = self._task.remote(description, self._journal, list(left.values()), worker)
        number = len(self._made)
        self._made.append(ProgressCounters())
        waits: Sequence[Wait] = (counts.waits.add("Ray", "workers start", None),)
        self._not_started.add(stream)
        try:
            # Until its first report it may wait for a free CPU, without a time limit.
            async with asyncio.timeout(None) as patience:
                async for reported in stream:
                    report: Report = await reported
                    patience.reschedule(asyncio.get_running_loop().time() + SILENCE)
                    self._not_started.discard(stream)
                    counts.waits.replace(waits, report.waits)
                    waits = report.waits
                    self._made[number] = report.counts
                    self._take_over(worker, report)
                    for result in report.results:
                        left.pop(result.key, None)
        except TimeoutError:
            raise self._ray.exceptions.WorkerCrashedError from None
        finally:
            counts.waits.replace(waits, ())
            self._not_started.discard(stream)
            # It may have ended already; a worker that hangs, or that is no longer awaited, has not.
            self._ray.cancel(stream, force=True)

    def _take_over(self, worker: str, report: Report) -> None:
        """Take over a worker's report: its log, its results, and the reason why it has stopped."""
        for record in report.records:
            record.worker = worker
            logging.getLogger(record.name).handle(record)
        for planned in report.steps:
            self._run.folder.steps.note(planned)
        for result in report.results:
            self._run.keep(result)
        if report.reason is not None:
            self._run.stop.ask(report.reason, report.explanation)
        counts = self._run.counts
        made = self._made
        counts.usage = sum((calls.usage for calls in made), start=self._spent_before)
        for name in ("made", "served", "given_up", "refused"):
            setattr(counts, name, sum(getattr(calls, name) for calls in made))

    async def _end_when_stopped(self) -> None:
        """End all workers once the run is to end; at once after a second request."""
        stop = self._run.stop
        grace = self._run.config.grace
        await stop.asked()
        log.warning("stopping", extra={"reason": stop.reason, "explanation": stop.explanation})
        for stream in self._not_started:
            self._ray.cancel(stream, force=True)
        # Workers see the note within a second, and let calls in flight finish.
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
