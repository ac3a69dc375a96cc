"""Judge chunks in one of several processes: the actor that Ray starts, and starts again where it dies."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import platform
import socket
from collections import deque
from itertools import count
from logging.handlers import QueueHandler
from queue import SimpleQueue
from typing import Any, NamedTuple
from uuid import uuid4

from ...graphs.base import Graph
from ...nodes.evaluation_steps import EvaluationStepsCache, PlannedSteps, keep_steps_in
from ...nodes.models.retry import Waits
from ...nodes.models.send import call_middleware
from ...state.aspects import Aspect
from ...state.errors import JurygraphError
from ..datasets.items import Item
from ..journal import Journal
from ..run.call_pipeline import LivePipeline
from ..run.judge_item import judge_item
from ..run.progress_counters import ProgressCounters
from ..run.results import Key, Result
from ..run.run_log import ROOT
from ..run.shutdown import Reason, StopSignal
from ..run.tracing import traced, traces_sent
from ..run.turn_kinds import kind_of_turns
from ..signatures import package_versions
from .chunks import Chunk, Job, Outcome, Report, Started, Tally, Unit
from .result_parts import ResultParts

PACKAGES = ("jurygraph", "langgraph")
_LOGGED = 10_000
"""Records that are kept until the driver asks for them; where it does not ask, the oldest are dropped."""


class _Open:
    """Holds a chunk that is being judged, and its results so far."""

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk
        self.results: list[Result] = []
        self.tally = Tally()
        self.left = len(chunk.units)
        self.finished = asyncio.Event()

    def add(self, result: Result | None) -> None:
        if result is not None:
            self.results.append(result)
            ok = result.status == "ok"
            self.tally = self.tally.plus(Tally(int(ok), int(not ok), result.rounds or 0))
        self.left -= 1
        if not self.left:
            self.finished.set()


class Worker:
    """Judges the chunks that it is given, as many verdicts at a time as calls may be in flight.

    Ray makes it an actor: every method is called from the driver's process, and several at the same time.
    """

    def __init__(self, job: Job, name: str) -> None:
        self._job = job
        self._name = name
        self._life = uuid4().hex
        self._numbers = count()
        self._opening: asyncio.Task[str] | None = None
        self._work: asyncio.Task[None] | None = None
        self._graphs: dict[str, Graph] = {}
        self._counts = ProgressCounters()
        self._open: list[_Open] = []
        self._records: deque[logging.LogRecord] = deque(maxlen=_LOGGED)
        self._new_steps: list[PlannedSteps] = []
        self._steps = EvaluationStepsCache((), self._new_steps.append)

    async def open(self) -> Started:
        """Prepare for the first chunk; it is done once, however often it is asked for."""
        if self._opening is None:
            self._opening = asyncio.create_task(self._opened())
        return Started(await asyncio.shield(self._opening), socket.gethostname(), os.getpid())

    async def _opened(self) -> str:
        job = self._job
        self._stop, self._units, self._room = (
            StopSignal(),
            asyncio.Queue[tuple[_Open, Unit]](),
            asyncio.Event(),
        )
        self._room.set()
        self._log()
        try:
            self._graphs = await asyncio.to_thread(job.build)
            self._parts = ResultParts(job.parts, job.manifest["run"])
            self._journal = await _open_journal(job, self._name, self._counts.waits)
        except JurygraphError as error:
            return str(error)
        self._pipeline = LivePipeline(self._journal, job.config, self._counts, self._stop)
        # What is loaded by now lives until the end: frozen, it is not walked in every later collection.
        gc.collect()
        gc.freeze()
        self._work = asyncio.create_task(self._carry_out())
        return ""

    async def room(self) -> None:
        """Wait until there are fewer verdicts to make than keep the calls in flight."""
        await self._room.wait()

    async def judge(self, chunk: Chunk) -> Outcome:
        """Judge a chunk and write its results; what is left of it where the run is to end is left out."""
        if problem := (await self.open()).problem:
            raise RuntimeError(problem)
        for planned in chunk.steps:
            self._steps.note(planned)
            # Who wrote them has told the driver already.
            self._forget(planned)
        opened = _Open(chunk)
        self._open.append(opened)
        for unit in chunk.units:
            self._units.put_nowait((opened, unit))
        self._look_for_room()
        finished = asyncio.ensure_future(opened.finished.wait())
        assert self._work is not None
        await asyncio.wait((finished, self._work), return_when=asyncio.FIRST_COMPLETED)
        if not finished.done():
            finished.cancel()
            await self._work  # raises what ended it
            raise RuntimeError(f"{self._name} was closed")
        return await self._written(opened)

    async def report(self) -> Report:
        """Say how far it is."""
        counts, records = self._counts, [*self._records]
        self._records.clear()
        stop = getattr(self, "_stop", None) or StopSignal()
        done = Tally()
        for one in self._open:
            done = done.plus(one.tally)
        return Report(
            number=next(self._numbers),
            life=self._life,
            open=done,
            usage=counts.usage,
            made=counts.made,
            served=counts.served,
            given_up=counts.given_up,
            waits=counts.waits.current(),
            records=records,
            reason=stop.reason,
            explanation=stop.explanation,
        )

    async def stop(self, reason: Reason, explanation: str) -> None:
        """End early: nothing new begins, and calls in flight may finish for as long as the run's config says."""
        if self._work is not None:
            self._stop.ask(reason, explanation)
            self._room.set()

    async def stop_at_once(self) -> None:
        """Wait for no call in flight any more."""
        if self._work is not None:
            self._stop.at_once()

    async def close(self) -> Outcome:
        """End, and return the evaluation steps that no verdict has told of."""
        if self._work is not None:
            self._work.cancel()
            await asyncio.gather(self._work, return_exceptions=True)
            await self._journal.close()
        return Outcome(Tally(), self._new_steps, await self.report())

    def _log(self) -> None:
        """Keep what is logged for the driver, which writes it to the log of the run."""
        handler = _Kept(self._records)
        ROOT.addHandler(handler)
        ROOT.setLevel(self._job.log_level)
        ROOT.propagate = False

    async def _carry_out(self) -> None:
        ending = asyncio.create_task(self._drain_when_stopped())
        try:
            with (
                traces_sent(),
                traced(self._job.manifest, self._counts, self._pipeline, self._judge) as (calls, judge),
                keep_steps_in(self._steps),
            ):
                # This task and those below it make calls for this run alone.
                call_middleware.set(calls)
                async with asyncio.TaskGroup() as group:
                    for _ in range(self._job.config.concurrency):
                        group.create_task(self._judge_units(judge))
        finally:
            ending.cancel()
            await self._pipeline.drain(0)
            await self._pipeline.finish()

    async def _judge_units(self, judge: Any) -> None:
        while True:
            opened, unit = await self._units.get()
            result = None
            if not self._stop.is_asked:
                result = await judge(self._graphs[unit.key.protocol], unit.key, unit.item, unit.aspect)
            opened.add(result)
            if result is not None and result.status == "failed":
                ROOT.getChild("run").warning(
                    "item failed", extra={**unit.key._asdict(), "reason": result.error}
                )
            self._look_for_room()

    async def _judge(self, graph: Graph, key: Key, item: Item, aspect: Aspect | None) -> Result | None:
        return await judge_item(graph, key, item, aspect, self._pipeline.repeat_mark(key))

    def _look_for_room(self) -> None:
        """Ask for more before the last call is in flight: a quarter of them lasts until the next chunk is here."""
        concurrency = self._job.config.concurrency
        left = sum(one.left for one in self._open)
        if left < concurrency + max(1, concurrency // 4) or self._stop.is_asked:
            self._room.set()
        else:
            self._room.clear()

    async def _drain_when_stopped(self) -> None:
        await self._stop.asked()
        await self._pipeline.drain(self._job.config.grace)

    async def _written(self, opened: _Open) -> Outcome:
        results = sorted(opened.results, key=_places(opened.chunk))
        written = True
        if results:
            try:
                await asyncio.to_thread(self._parts.write, opened.chunk.units[0].number, results)
            except OSError as error:
                # Nothing is lost: the calls are in the journal, and the next start judges the chunk without paying.
                self._stop.ask_for(error, self._parts.where)
                written = False
        self._open.remove(opened)
        if not written:
            return Outcome(Tally(), (), await self.report())
        return Outcome(opened.tally, self._steps_of(results), await self.report())

    def _steps_of(self, results: list[Result]) -> list[PlannedSteps]:
        """Return the new evaluation steps that these verdicts had written.

        Others are not told of yet: if the run is interrupted, the verdict that asks for them is to ask again.
        """
        if not self._new_steps:
            return []
        aspects = {result.aspect for result in results if result.status == "ok" and _planned(result)}
        told = [planned for planned in self._new_steps if planned.aspect in aspects]
        for planned in told:
            self._forget(planned)
        return told

    def _forget(self, planned: PlannedSteps) -> None:
        # In place: the cache appends to this list.
        self._new_steps[:] = [one for one in self._new_steps if one.key != planned.key]


def _planned(result: Result) -> bool:
    kind_of = kind_of_turns(result)
    return any(kind_of(turn) == "plans" for turn in result.transcript)


def _places(chunk: Chunk) -> Any:
    places = {unit.key: place for place, unit in enumerate(chunk.units)}
    return lambda result: places[result.key]


class _Kept(QueueHandler):
    """Keeps records, made fit to be sent: without what a message was made of and without tracebacks."""

    def __init__(self, records: deque[logging.LogRecord]) -> None:
        super().__init__(SimpleQueue())
        self._kept = records

    def enqueue(self, record: logging.LogRecord) -> None:
        """Keep a record."""
        self._kept.append(record)


async def _open_journal(job: Job, part: str, waits: Waits) -> Journal:
    run, fresh = job.manifest["run"], job.manifest.get("fresh", False)
    where = job.config.journal or ""
    return await Journal.open(where, run=run, part=part, fresh=fresh, shared=True, waits=waits)


class HostReport(NamedTuple):
    """Says what a host of the cluster has: versions, whether it sees the run's folder, what keeps it from judging."""

    host: str
    versions: dict[str, str]
    sees_folder: bool
    problem: str


def inspect_host(job: Job, marker: str) -> HostReport:
    """Look, on a host of the cluster, whether a worker could judge there; no model is called.

    Args:
        job: what workers are to do.
        marker: a file that the driver has written where results go.
    """
    problem, seen = "", False
    try:
        seen = ResultParts(job.parts, job.manifest["run"]).has(marker)
        job.build()
        asyncio.run(_reach_journal(job))
    except (JurygraphError, OSError) as error:
        problem = str(error)
    return HostReport(socket.gethostname(), versions(), seen, problem)


async def _reach_journal(job: Job) -> None:
    journal = await _open_journal(job, f"host {socket.gethostname()}", Waits())
    await journal.close()


def versions() -> dict[str, str]:
    """Return the versions that must be the same everywhere: Python's first two numbers, and packages'."""
    installed = package_versions()
    return {"Python": ".".join(platform.python_version_tuple()[:2])} | {
        name: installed[name] for name in PACKAGES
    }
