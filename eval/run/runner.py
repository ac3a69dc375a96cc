"""The runner of one dataset: several items at a time, each call and result on disk immediately."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

from ...graphs.engine.base import Graph
from ...graphs.engine.given_graphs import Protocols, judges_of
from ...nodes.evaluation_steps import keep_steps_in
from ...nodes.models.send import answering_calls
from ...state.aspects import Aspect
from ..datasets.items import Item
from ..results.config import RunConfig
from ..results.evaluation import Evaluation
from ..results.folder import model_names
from ..results.results import NO_KEYS, Key, Result
from ..results.run_folder import RunFolder, run_folder
from .calls.call_pipeline import CallPipeline, LivePipeline, RunContext
from .calls.job_queue import JobQueue
from .calls.judge_item import JudgeItem, judge_item
from .calls.prefix_gate import PrefixGate
from .calls.shutdown import StopSignal
from .calls.tracing import traced
from .calls.workers import Workers
from .plan.plan import Job, Plan
from .replay.recording import ReplayPipeline, check_replay

log = logging.getLogger("jurygraph.run")


class Engine(Protocol):
    """Lets other processes than this one make the open verdicts of a run."""

    def check_judges(self, protocols: Protocols) -> None:
        """Check that these judges can be sent to other processes.

        Raises:
            UsageError: one cannot.
        """

    def check(self, planned: Plan, config: RunConfig) -> None:
        """Check that several processes can carry out a plan; nothing is called or written.

        Raises:
            UsageError: they cannot; states the remedy.
        """

    async def judge(self, run: Run) -> None:
        """Make and store every open verdict, or as many as possible until the run is to end."""


async def execute(
    planned: Plan,
    context: RunContext,
    engine: Engine | None = None,
    journal_file: Path | None = None,
) -> Evaluation:
    """Carry out a plan.

    Args:
        planned: the plan.
        context: the limits, and the counters of the run's progress.
        engine: distributes the run over several processes.
        journal_file: the journal if the config names none; default: a file in the folder of the
            run.

    Raises:
        UsageError: the plan cannot be carried out in this way, or the folder is not free for it.
    """
    config = context.config
    counts = context.counts
    check_run(planned, config)
    if engine is not None:
        engine.check(planned, config)
    where = planned.folder, planned.manifest
    async with run_folder(*where, config, counts.waits, journal_file) as folder:
        pipeline = make_pipeline(planned, folder, context)
        await pipeline.open()
        run = Run(planned, folder, context)
        models = ", ".join(sorted(model_names(planned.manifest)))
        about = {
            "run": folder.manifest["run"],
            "protocols": ", ".join(planned.graphs),
            "models": models,
        }
        amounts = {
            "concurrency": config.concurrency,
            "wanted": counts.wanted,
            "there": counts.resumed,
        }
        log.info("run started", extra={**about, **amounts})
        await (run.judge(pipeline) if engine is None else engine.judge(run))
        log.info("run ended", extra={"stopped": context.stop.reason, **counts.summary()})
        return run.evaluation()


class Run:
    """A run in progress, and its results.

    Attributes:
        plan: the plan of the run.
        folder: the folder of results and calls.
        config: the limits.
        counts: the progress of the run.
        stop: ends the run early on request.
    """

    def __init__(self, planned: Plan, folder: RunFolder, context: RunContext) -> None:
        self.plan = planned
        self.folder = folder
        self.config = context.config
        self.counts = context.counts
        self.stop = context.stop
        # Results that failed in an earlier start are not among them: those items are tried again.
        self._judged_before = folder.results.ok_keys() if folder.results else NO_KEYS
        self._judged_now: set[Key] = set()
        self._has_several_passes = False
        self._in_memory: dict[Key, Result] = {}
        resumed = 0
        if self._judged_before:
            resumed = self._judged_before.count(planned.key_digests())
        self._is_finished = resumed == len(planned)
        spent = folder.journal.totals()
        run = folder.manifest["run"]
        self.counts.take_up(len(planned), resumed, spent, run, planned.folder)

    async def judge(self, pipeline: CallPipeline) -> None:
        """Judge the open verdicts in this process, as many as possible until the run is to end."""
        self._has_several_passes = pipeline.needs_several_passes
        kind = self.plan.dataset.kind
        graphs = self.plan.graphs.items()
        own = ((name, judges_of(graph).get("")) for name, graph in graphs)
        # As bound; 1 if the number is unknown.
        most_calls = {name: of.record.most_calls(of.bound, kind) if of else 1 for name, of in own}

        async def judge(graph: Graph, key: Key, item: Item, aspect: Aspect | None) -> Result | None:
            async with pipeline.room_for(most_calls[key.protocol]):
                result = await judge_item(graph, key, item, aspect, pipeline.repeat_mark(key))
                if result is not None:
                    pipeline.judged(result)
                return result

        async with drained_when_stopped(pipeline, self.stop, self.config.grace):
            with (
                traced(self.folder.manifest, self.counts, pipeline, judge) as (calls, traced_judge),
                answering_calls(calls),
                keep_steps_in(self.folder.steps),
            ):
                await pipeline.run_passes(
                    lambda: self._judge_open_items(traced_judge, pipeline.gate)
                )

    async def _judge_open_items(self, judge: JudgeItem, gate: PrefixGate | None) -> None:
        """Judge with as many workers as calls may be in flight; all take from one queue."""
        if self._is_finished:
            return
        open_jobs = filter(self.is_open, self.plan.jobs())
        # If no call waits for another, items are judged in their order.
        ahead = 0 if gate is None else self.config.concurrency
        queue = JobQueue[Job](open_jobs, lambda job: job[0].item, ahead)

        async def work(job: Job) -> None:
            key, item, aspect = job
            result = await judge(self.plan.graphs[key.protocol], key, item, aspect)
            if result is not None:
                self.keep(result)

        try:
            await Workers[Job](self.config.concurrency, self.stop, gate).do_all(queue, work)
        except ExceptionGroup as several:
            # All workers meet the same problem, such as a changed data file: one error is enough.
            raise several.exceptions[0] from None

    def is_open(self, job: Job) -> bool:
        """Return whether a verdict is still to be made."""
        return job[0] not in self._judged_before and job[0] not in self._judged_now

    def keep(self, result: Result) -> None:
        """Store a result; if it cannot be written, request the end of the run."""
        try:
            self.folder.keep(result)
        except OSError as error:
            # Nothing is lost: the item's calls are in the journal, and the next start judges it
            # without paying again.
            self.stop.ask_for(error, self.plan.folder)
            return
        if self.folder.results is None:
            self._in_memory[result.key] = result
        if self._has_several_passes:
            # One pass does not request anything twice, and the keys of millions of results would
            # fill the memory.
            self._judged_now.add(result.key)
        self.counts.finished(result)
        if result.status == "failed":
            log.warning("item failed", extra={**result.key._asdict(), "reason": result.error})

    def evaluation(self) -> Evaluation:
        """Return the outcome of the run, with results in the order of the dataset."""
        results = self._results()
        is_complete = self.counts.judged + self.counts.failed >= self.counts.wanted
        stopped = None if is_complete else self.stop.reason
        return Evaluation(
            results, self.folder.manifest, self.plan.folder, stopped, self.counts.given_up
        )

    def _results(self) -> Sequence[Result]:
        if self.folder.results is None:
            keys = (key for key, *_ in self.plan.jobs())
            return tuple(self._in_memory[key] for key in keys if key in self._in_memory)
        try:
            if not self.stop.is_asked:
                self.folder.keep_rest()
            # Nothing is judged any more, and there may be millions of keys.
            self._judged_before = NO_KEYS
            return self.folder.results.finish(self.plan.key_digests())
        except OSError as error:
            # They stay in the order of judging; the next start restores the order of the dataset.
            self.stop.ask_for(error, self.folder.results.path)
            return self.folder.results.read()


@asynccontextmanager
async def drained_when_stopped(
    pipeline: CallPipeline, stop: StopSignal, grace: float
) -> AsyncIterator[None]:
    """End the calls of a pipeline when the run is to end, and at the end of the block.

    Calls are separate tasks and may outlive their callers; they must end before the journal is
    closed.
    """

    async def drain() -> None:
        await stop.asked()
        log.warning("stopping", extra={"reason": stop.reason, "explanation": stop.explanation})
        await pipeline.drain(grace)

    ending = asyncio.create_task(drain())
    try:
        yield
    finally:
        ending.cancel()
        await pipeline.drain(0)
        await pipeline.finish()


def check_run(plan: Plan, config: RunConfig) -> None:
    """Check that a plan can be carried out with this config; nothing is called or written.

    Raises:
        UsageError: a limit on cost with a model of unknown price; batches with models that do not
            support them; or options for calls in a replay.
    """
    if plan.recording is not None:
        check_replay(config)
        return
    config.check_prices(model_names(plan.manifest))
    if config.batch:
        from .batch_api.batch_pipeline import check_batch

        check_batch(plan)


def make_pipeline(plan: Plan, folder: RunFolder, context: RunContext) -> CallPipeline:
    """Create the pipeline for the calls of a run which ``check_run`` has passed."""
    if plan.recording is not None:
        return ReplayPipeline(plan.recording, context)
    if context.config.batch:
        # Imported here since it needs the OpenAI client, which other runs do not need.
        from .batch_api.batch_pipeline import BatchPipeline

        return BatchPipeline(plan, folder, context)
    config = context.config
    # With one call at a time, every prefix is answered before it is sent again.
    is_held = config.concurrency > 1 and not config.ignore_prefixes
    return LivePipeline(
        folder.journal, context, PrefixGate(config.concurrency) if is_held else None
    )
