"""Drive a run on a Ray cluster: hand out chunks, count what comes back, and make one run of what workers write."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ...nodes.models.retry import Wait
from ...state.errors import UsageError
from ...state.usage import Usage
from ..journal import Journal
from ..plan import Plan
from ..run.config import RunConfig
from ..run.evaluation import Evaluation
from ..run.folder import RunFolder
from ..run.progress_counters import ProgressCounters
from ..run.results import Result, ResultsFile
from ..run.shutdown import StopSignal
from .chunks import ATTEMPTS, Chunk, Chunks, Job, Outcome, Report, Started, Tally, Unit
from .ray_cluster import check_hosts, count_workers
from .ray_worker import Worker
from .result_parts import ResultParts

log = logging.getLogger("jurygraph.run")

HEARTBEAT = 1.0
"""Seconds between two reports of a worker."""

SILENCE = 75.0
"""Seconds without a report after which a worker counts as dead: as long as its claims on calls hold, and 15."""

_STARTING_AGAIN = 0.2
"""Seconds between two looks whether a worker that died is there again."""

_AT_ONCE = 10_000
"""Calls of methods that a worker answers at the same time: it holds a chunk for each."""


class Driven(NamedTuple):
    """Holds what the driver works on.

    Attributes:
        workers: how many there are to be; ``None``: one for each CPU.
        cpus_per_worker: how much of a CPU each reserves.
    """

    plan: Plan
    folder: RunFolder
    job: Job
    parts: ResultParts
    config: RunConfig
    counts: ProgressCounters
    stop: StopSignal
    workers: int | None
    cpus_per_worker: float


class _Hand:
    """Holds one worker, as the driver sees it.

    Attributes:
        lives: the last report of each process that the worker has been.
        last: the last report of all.
        is_open: whether it can judge now, as far as is known.
        refusal: why it cannot judge.
    """

    def __init__(self, name: str, actor: Any) -> None:
        self.name = name
        self.actor = actor
        self.lives: dict[str, Report] = {}
        self.last = Report()
        self.is_open = False
        self.refusal = ""

    def note(self, report: Report) -> None:
        """Take a report, unless a later one came before it."""
        if report.number > self.lives.get(report.life, Report()).number:
            self.lives[report.life] = self.last = report

    def lose(self) -> None:
        """Note that the process has died, with what it had judged of chunks that were not finished."""
        self.is_open = False
        self.last = replace(self.last, open=Tally(), waits=())


class Driver:
    """Hands out chunks, counts what comes back, and ends the run."""

    def __init__(self, run: Driven, ray: Any) -> None:
        self._run = run
        self._ray = ray
        self._plan, self._folder, self._counts, self._stop = run.plan, run.folder, run.counts, run.stop
        self._died = ray.exceptions.RayActorError
        self._done = Tally()
        self._hands: list[_Hand] = []
        self._in_flight: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._waits: tuple[Wait, ...] = ()

    async def carry_out(self) -> Evaluation:
        """Judge what has no verdict yet, and return the results of the whole run."""
        await asyncio.to_thread(self._gather)
        judged = self._results.ok_keys()
        resumed = sum(unit[0] in judged for unit in self._plan.units()) if len(judged) else 0
        left = len(self._plan) - resumed
        self._counts.take_up(len(self._plan), resumed, self._folder.journal.totals())
        self._spent_before = self._counts.usage
        size = min(self._run.workers or count_workers(self._ray, self._run.cpus_per_worker), max(left, 1))
        units = (
            Unit(number, *unit) for number, unit in enumerate(self._plan.units()) if unit[0] not in judged
        )
        self._chunks = Chunks(units, left, size, self._run.job.opens_with_one)
        log.info("run started", extra=self._description(size))
        if left:
            self._hands = [self._hand(f"worker-{number + 1}") for number in range(size)]
            self._starting = self._counts.waits.add("Ray", "workers start", None)
            try:
                # Meanwhile the workers' processes start.
                await asyncio.to_thread(check_hosts, self._ray, self._run.job, self._run.parts)
                await self._hand_out()
            finally:
                await self._close()
            self._counts.usage = await self._spent()
        log.info("run ended", extra={"stopped": self._stop.reason, **self._counts.summary()})
        return await asyncio.to_thread(self._evaluation)

    def _hand(self, name: str) -> _Hand:
        # Ray starts it again as often as it dies; its chunks are given out again here, to whoever has room first.
        options = {"num_cpus": self._run.cpus_per_worker, "max_restarts": -1, "max_task_retries": 0}
        actor = self._ray.remote(Worker).options(**options, max_concurrency=_AT_ONCE)
        return _Hand(name, actor.remote(self._run.job, name))

    async def _hand_out(self) -> None:
        """Have all chunks judged, or as many as can be until the run is to end."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                helpers = [group.create_task(self._stop_workers())]
                for hand in self._hands:
                    helpers += [group.create_task(self._feed(hand)), group.create_task(self._listen(hand))]
                while self._in_flight or (self._chunks.are_left and not self._stop.is_asked):
                    await self._changed.wait()
                for helper in helpers:
                    helper.cancel()
        except ExceptionGroup as several:
            raise several.exceptions[0] from None

    async def _feed(self, hand: _Hand) -> None:
        """Hand chunks to a worker whenever it has room, and open it again where it has died."""
        while await self._open(hand):
            try:
                while hand.is_open:
                    await hand.actor.room.remote()
                    await self._hand_one(hand)
            except self._died:
                hand.lose()

    async def _open(self, hand: _Hand) -> bool:
        """Wait until a worker is there; return whether it can judge.

        Raises:
            UsageError: none of the workers can.
        """
        while not hand.is_open:
            try:
                started: Started = await hand.actor.open.remote()
            except self._died:
                await asyncio.sleep(_STARTING_AGAIN)
                continue
            about = {"worker": hand.name, "host": started.host, "pid": started.pid}
            hand.refusal = started.problem
            if hand.refusal:
                log.warning("a worker cannot judge", extra={**about, "reason": hand.refusal})
                if all(one.refusal for one in self._hands):
                    raise UsageError(f"{hand.name} cannot judge: {hand.refusal}")
                return False
            hand.is_open = True
            self._counts.waits.remove(self._starting)
            log.info("worker started", extra=about)
        return True

    async def _hand_one(self, hand: _Hand) -> None:
        """Hand out a chunk, or wait for a change: a worker may die and leave its chunk to others."""
        chunk = None if self._stop.is_asked else self._chunks.take()
        if chunk is None:
            await self._changed.wait()
            return
        task = self._group.create_task(self._judge(hand, chunk))
        self._in_flight.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._in_flight.discard(task)
        self._tell()

    def _tell(self) -> None:
        """Wake all that wait for a change; a new event makes them wait for the next one."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def _judge(self, hand: _Hand, chunk: Chunk) -> None:
        try:
            given = replace(chunk, steps=tuple(self._folder.steps.all))
            outcome: Outcome = await hand.actor.judge.remote(given)
        except self._died as error:
            hand.lose()
            log.warning("a worker died; its chunk is given out again", extra={"worker": hand.name})
            if chunk.attempt >= ATTEMPTS:
                item = chunk.units[0].key.item
                self._stop.ask(
                    "worker", f"{ATTEMPTS} workers died while they judged {item} and items after it: {error}"
                )
            self._chunks.put_back(chunk)
            return
        self._take(hand, outcome)
        self._chunks.finished()

    def _take(self, hand: _Hand, outcome: Outcome) -> None:
        self._done = self._done.plus(outcome.tally)
        for planned in outcome.steps:
            self._folder.steps.note(planned)
        try:
            self._folder.keep_rest()
        except OSError as error:
            self._stop.ask_for(error, self._plan.folder)
        self._note(hand, outcome.report)

    async def _listen(self, hand: _Hand) -> None:
        """Ask a worker how far it is, again and again; one that does not answer is ended, and started again."""
        while True:
            await asyncio.sleep(HEARTBEAT)
            if not hand.is_open:
                continue
            try:
                async with asyncio.timeout(SILENCE):
                    self._note(hand, await hand.actor.report.remote())
            except TimeoutError:
                log.warning("a worker does not answer and is ended", extra={"worker": hand.name})
                self._ray.kill(hand.actor, no_restart=False)
                hand.lose()
            except self._died:
                hand.lose()

    def _note(self, hand: _Hand, report: Report) -> None:
        """Take a worker's report: into the log, the counters, and the reason why the run ends."""
        hand.note(report)
        for record in report.records:
            record.worker = hand.name
            logging.getLogger(record.name).handle(record)
        if report.reason is not None:
            self._stop.ask(report.reason, report.explanation)
        self._count()

    def _count(self) -> None:
        """Add up what all workers have told."""
        counts, lives = self._counts, [life for hand in self._hands for life in hand.lives.values()]
        done = self._done
        for hand in self._hands:
            done = done.plus(hand.last.open)
        counts.judged, counts.failed, counts.rounds = counts.resumed + done.judged, done.failed, done.rounds
        counts.usage = sum((life.usage for life in lives), start=self._spent_before)
        counts.made = sum(life.made for life in lives)
        counts.served = sum(life.served for life in lives)
        counts.given_up = sum(life.given_up for life in lives)
        waits = tuple(wait for hand in self._hands for wait in hand.last.waits)
        counts.waits.replace(self._waits, waits)
        self._waits = waits

    async def _stop_workers(self) -> None:
        """End all workers once the run is to end, at once where it is asked to a second time."""
        await self._stop.asked()
        log.warning("stopping", extra={"reason": self._stop.reason, "explanation": self._stop.explanation})
        self._tell()
        await self._call_all("stop", self._stop.reason, self._stop.explanation)
        if self._in_flight:
            await self._stop.let_finish(set(self._in_flight), self._run.config.grace)
            await self._call_all("stop_at_once")

    async def _call_all(self, method: str, *arguments: Any) -> None:
        calls = [getattr(hand.actor, method).remote(*arguments) for hand in self._hands if hand.is_open]
        await asyncio.gather(*calls, return_exceptions=True)

    async def _close(self) -> None:
        """Have workers write what is to be written, and end them."""

        async def close(hand: _Hand) -> None:
            async with asyncio.timeout(SILENCE):
                outcome: Outcome = await hand.actor.close.remote()
            if self._stop.is_asked:
                # The verdicts that ask for these steps are to ask again when the run resumes; the journal answers.
                outcome = outcome._replace(steps=())
            self._take(hand, outcome)

        closing = [close(hand) for hand in self._hands if hand.is_open]
        await asyncio.gather(*closing, return_exceptions=True)
        for hand in self._hands:
            self._ray.kill(hand.actor)

    async def _spent(self) -> Usage:
        """Return what the run has spent in all; of a worker that died, reports lack the last calls."""
        where, run = self._run.config.journal or "", self._folder.manifest["run"]
        try:
            journal = await Journal.open(where, run=run, part="sum", waits=self._counts.waits)
        except UsageError:
            return self._counts.usage
        await journal.close()
        return journal.spent.usage

    @property
    def _results(self) -> ResultsFile:
        assert self._folder.results is not None
        return self._folder.results

    def _gather(self) -> None:
        """Add what the parts hold to the results."""
        there = self._results.ok_keys()
        for result in self._run.parts.read():
            if result.key not in there:
                self._results.add(result)

    def _evaluation(self) -> Evaluation:
        """Make the results of the parts, in the order of the dataset, and return what the run came to."""
        results: Sequence[Result]
        try:
            self._gather()
            results = self._results.finish(unit[0] for unit in self._plan.units())
            self._run.parts.clear()
        except OSError as error:
            # The parts stay, and the next start takes them in.
            self._stop.ask_for(error, self._results.path)
            results = self._results.read()
        is_complete = self._counts.judged + self._counts.failed >= self._counts.wanted
        stopped = None if is_complete else self._stop.reason
        return Evaluation(results, self._folder.manifest, self._plan.folder, stopped, self._counts.given_up)

    def _description(self, workers: int) -> dict[str, Any]:
        return {
            "run": self._folder.manifest["run"],
            "protocols": ", ".join(self._plan.graphs),
            "models": ", ".join(sorted(set(self._plan.models().values()))),
            "workers": workers,
            "concurrency": self._run.config.concurrency,
            "wanted": self._counts.wanted,
            "there": self._counts.resumed,
        }
