"""Judge a whole dataset: several items at a time, each call and each result on disk as soon as it is there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Protocol, Unpack

from ...graphs.base import Graph
from ...graphs.given_graphs import Protocols, judges_of
from ...graphs.options import AnyJudges
from ...nodes.evaluation_steps import keep_steps_in
from ...nodes.models.send import answering_calls
from ...nodes.sync_bridge import run_blocking
from ...state.aspects import Aspect
from ..calls.call_pipeline import CallPipeline, LivePipeline, RunContext
from ..calls.judge_item import JudgeItem, judge_item
from ..calls.shutdown import StopSignal
from ..calls.tracing import traced
from ..datasets.dataset import Data
from ..datasets.items import Item
from ..plan.plan import Job, Options, Plan, divided, plan
from ..replay.recording import ReplayPipeline, check_replay
from ..results.config import RunConfig, RunLimits
from ..results.evaluation import Evaluation
from ..results.folder import RunFolder, model_names, run_folder
from ..results.results import Key, Result

log = logging.getLogger("jurygraph.run")


class Engine(Protocol):
    """Has the open verdicts of a run made by other processes than this one."""

    def check_judges(self, protocols: Protocols) -> None:
        """Check that these judges can be sent to other processes.

        Raises:
            UsageError: one cannot.
        """

    def check(self, planned: Plan, config: RunConfig) -> None:
        """Check that a plan can be carried out by several processes; nothing is called or written.

        Raises:
            UsageError: it cannot; says what to do.
        """

    async def judge(self, run: Run) -> None:
        """Have every open verdict made and kept, or as many as can be until the run is to end."""


class RunOptions(Options, RunLimits, total=False):
    """Names all options of a run: those of what is judged, and those of how the run is carried out.

    Attributes:
        engine: spreads the run over several processes; ``None`` is this process alone.
    """

    engine: Engine | None


def evaluate(protocols: AnyJudges, data: Data | None = None, **options: Unpack[RunOptions]) -> Evaluation:
    """Judge a dataset, also from a notebook; ``aevaluate`` is the same for async code.

    Args:
        protocols: the name of a protocol, or a graph with the same input and output, compiled or not; several of
            these; or a dict of them by the names that results are to have. A graph keeps the settings and models that
            it was built with. Calls of other packages' graphs are not in the journal, and no limit knows of them.
        data: a dataset, its name, a file or a table in memory, see ``load_dataset``; with ``replies`` it may
            be left out.
        **options: see ``Options`` (what is judged) and ``RunConfig`` (limits, and where replies are stored).

    Raises:
        UsageError: bad input, told before any call.

    >>> done = evaluate("debate", "demo", aspects=["consistency"], limit=4)
    >>> len(done.results), done.failed
    (4, ())
    """
    return run_blocking(aevaluate(protocols, data, **options))


async def aevaluate(
    protocols: AnyJudges, data: Data | None = None, **options: Unpack[RunOptions]
) -> Evaluation:
    """Judge a dataset from async code; arguments and errors are those of ``evaluate``."""
    config, wanted, others = divided(options, "engine")
    engine: Engine | None = others.get("engine")
    if engine is not None:
        engine.check_judges(protocols)
    # Planning reads files and compiles graphs, which would block the caller's event loop.
    planned = await asyncio.to_thread(plan, protocols, data, **wanted)
    return await execute(planned, RunContext(config), engine)


async def execute(planned: Plan, context: RunContext, engine: Engine | None = None) -> Evaluation:
    """Carry out a plan.

    Args:
        planned: what to judge.
        context: the limits, and the record of how far the run is.
        engine: spreads the run over several processes.

    Raises:
        UsageError: the plan cannot be carried out in this way, or the folder is not free for it.
    """
    config, counts = context.config, context.counts
    check_run(planned, config)
    if engine is not None:
        engine.check(planned, config)
    async with run_folder(planned.folder, planned.manifest, config, counts.waits) as folder:
        pipeline = make_pipeline(planned, folder, context)
        await pipeline.open()
        run = Run(planned, folder, context)
        models = ", ".join(sorted(model_names(planned.manifest)))
        about = {"run": folder.manifest["run"], "protocols": ", ".join(planned.graphs), "models": models}
        amounts = {"concurrency": config.concurrency, "wanted": counts.wanted, "there": counts.resumed}
        log.info("run started", extra={**about, **amounts})
        await (run.judge(pipeline) if engine is None else engine.judge(run))
        log.info("run ended", extra={"stopped": context.stop.reason, **counts.summary()})
        return run.evaluation()


class Run:
    """Holds a run that is carried out, and keeps its results.

    Attributes:
        plan: what is to be judged.
        folder: where results and calls are kept.
        config: the limits.
        counts: how far the run has come.
        stop: ends the run early when it is asked to.
    """

    def __init__(self, planned: Plan, folder: RunFolder, context: RunContext) -> None:
        self.plan, self.folder = planned, folder
        self.config, self.counts, self.stop = context.config, context.counts, context.stop
        # Results that failed in an earlier start are not among them: those items are tried again.
        self._judged_before = folder.results.ok_keys() if folder.results else frozenset[Key]()
        self._judged_now: set[Key] = set()
        self._has_several_passes = False
        self._in_memory: dict[Key, Result] = {}
        resumed = sum(not self.is_open(job) for job in planned.jobs()) if self._judged_before else 0
        spent, run = folder.journal.totals(), folder.manifest["run"]
        self.counts.take_up(len(planned), resumed, spent, run, planned.folder)

    async def judge(self, pipeline: CallPipeline) -> None:
        """Judge every open verdict in this process, or as many as can be until the run is to end."""
        self._has_several_passes = pipeline.needs_several_passes
        kind, graphs = self.plan.dataset.kind, self.plan.graphs.items()
        own = ((name, judges_of(graph).get("")) for name, graph in graphs)
        # As bound; 1 where nobody can tell.
        most_calls = {name: of.record.most_calls(of.bound, kind) if of else 1 for name, of in own}

        async def judge(graph: Graph, key: Key, item: Item, aspect: Aspect | None) -> Result | None:
            async with pipeline.room_for(most_calls[key.protocol]):
                return await judge_item(graph, key, item, aspect, pipeline.repeat_mark(key))

        async with drained_when_stopped(pipeline, self.stop, self.config.grace):
            with (
                traced(self.folder.manifest, self.counts, pipeline, judge) as (calls, traced_judge),
                answering_calls(calls),
                keep_steps_in(self.folder.steps),
            ):
                await pipeline.run_passes(lambda: self._judge_open_items(traced_judge))

    async def _judge_open_items(self, judge: JudgeItem) -> None:
        """Judge with as many workers as calls may be in flight; all draw from one iterator."""
        open_jobs = filter(self.is_open, self.plan.jobs())

        async def worker() -> None:
            # Tasks can share a plain iterator: taking from it is a step without an await.
            for key, item, aspect in open_jobs:
                result = await judge(self.plan.graphs[key.protocol], key, item, aspect)
                if result is not None:
                    self.keep(result)
                if self.stop.is_asked:
                    return

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self.config.concurrency, self.counts.wanted)):
                    group.create_task(worker())
        except ExceptionGroup as several:
            # All workers meet the same problem, such as a data file that was changed meanwhile: one of them will do.
            raise several.exceptions[0] from None

    def is_open(self, job: Job) -> bool:
        """Tell whether a verdict is still to be made."""
        return job[0] not in self._judged_before and job[0] not in self._judged_now

    def keep(self, result: Result) -> None:
        """Keep a result; where it cannot be written, the run is asked to end."""
        try:
            self.folder.keep(result)
        except OSError as error:
            # Nothing is lost: the item's calls are in the journal, and the next start judges it without paying again.
            self.stop.ask_for(error, self.plan.folder)
            return
        if self.folder.results is None:
            self._in_memory[result.key] = result
        if self._has_several_passes:
            # One pass asks for nothing twice, and the keys of millions of results would fill the memory.
            self._judged_now.add(result.key)
        self.counts.finished(result)
        if result.status == "failed":
            log.warning("item failed", extra={**result.key._asdict(), "reason": result.error})

    def evaluation(self) -> Evaluation:
        """Return what the run came to, with results in the order of the dataset."""
        results = self._results(key for key, *_ in self.plan.jobs())
        is_complete = self.counts.judged + self.counts.failed >= self.counts.wanted
        stopped = None if is_complete else self.stop.reason
        return Evaluation(results, self.folder.manifest, self.plan.folder, stopped, self.counts.given_up)

    def _results(self, keys: Iterator[Key]) -> Sequence[Result]:
        if self.folder.results is None:
            return tuple(self._in_memory[key] for key in keys if key in self._in_memory)
        try:
            if not self.stop.is_asked:
                self.folder.keep_rest()
            return self.folder.results.finish(keys)
        except OSError as error:
            # They stay in the order in which they were judged; the next start puts them in the dataset's.
            self.stop.ask_for(error, self.folder.results.path)
            return self.folder.results.read()


@asynccontextmanager
async def drained_when_stopped(pipeline: CallPipeline, stop: StopSignal, grace: float) -> AsyncIterator[None]:
    """End the calls of a pipeline when the run is to end, and at the end of what is done inside.

    Calls are tasks of their own and may outlive those who asked; they must end before the journal is closed.
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
        UsageError: a limit on cost with a model of unknown price; batches with models that take none; or options for
            calls where a recording answers them.
    """
    if plan.recording is not None:
        check_replay(config)
        return
    config.check_prices(model_names(plan.manifest))
    if config.batch:
        from ..batch_api.batch_pipeline import check_batch

        check_batch(plan)


def make_pipeline(plan: Plan, folder: RunFolder, context: RunContext) -> CallPipeline:
    """Make the pipeline that answers the calls of a run which ``check_run`` has passed."""
    if plan.recording is not None:
        return ReplayPipeline(plan.recording, context)
    if context.config.batch:
        # Imported here since it needs the OpenAI client, which other runs may do without.
        from ..batch_api.batch_pipeline import BatchPipeline

        return BatchPipeline(plan, folder, context)
    return LivePipeline(folder.journal, context)
