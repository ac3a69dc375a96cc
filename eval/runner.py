"""Judge a whole dataset: several items at a time, each call and each result on disk as soon as it is there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Unpack, cast

from ..graphs.base import Graph
from ..nodes.evaluation_steps import keep_steps_in
from ..nodes.models.send import CallMiddleware, call_middleware
from ..nodes.sync_bridge import run_blocking
from ..state.aspects import Aspect
from .datasets.dataset import Data
from .datasets.items import Item
from .engines.ray_engine import Ray
from .given_graphs import Protocols
from .pipelines import check_run, make_pipeline
from .plan import Options, Plan, plan
from .run.call_pipeline import CallPipeline
from .run.config import RunConfig, RunLimits
from .run.evaluation import Evaluation
from .run.folder import RunFolder, run_folder
from .run.judge_item import JudgeItem, judge_item
from .run.progress_counters import ProgressCounters
from .run.results import Key, Result
from .run.shutdown import StopSignal
from .run.tracing import traced

log = logging.getLogger("jurygraph.run")


class RunOptions(Options, RunLimits, total=False):
    """Names all options of a run: those of what is judged, and those of how the run is carried out.

    Attributes:
        engine: spreads the run over several processes; ``None`` is this process alone.
    """

    engine: Ray | None


def evaluate(protocols: Protocols, data: Data | None = None, **options: Unpack[RunOptions]) -> Evaluation:
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
    protocols: Protocols, data: Data | None = None, **options: Unpack[RunOptions]
) -> Evaluation:
    """Judge a dataset from async code; arguments and errors are those of ``evaluate``."""
    config, engine = (
        RunConfig.from_options(options, (*Options.__annotations__, "engine")),
        options.get("engine"),
    )
    if engine is not None:
        engine.check_judges(protocols)
    wanted = {name: value for name, value in options.items() if name in Options.__annotations__}
    # Planning reads files and compiles graphs, which would block the caller's event loop.
    planned = await asyncio.to_thread(plan, protocols, data, **cast("Options", wanted))
    return await execute(planned, config, engine=engine)


async def execute(
    planned: Plan,
    config: RunConfig | None = None,
    counts: ProgressCounters | None = None,
    stop: StopSignal | None = None,
    engine: Ray | None = None,
) -> Evaluation:
    """Carry out a plan.

    Args:
        planned: what to judge.
        config: limits, and where replies are stored.
        counts: kept up to date while the run is on, for a progress display.
        stop: ends the run early when it is asked to.
        engine: spreads the run over several processes.

    Raises:
        UsageError: the plan cannot be carried out in this way, or the folder is not free for it.
    """
    config, counts, stop = config or RunConfig(), counts or ProgressCounters(), stop or StopSignal()
    check_run(planned, config)
    if engine is not None:
        return await engine.carry_out(planned, config, counts, stop)
    async with run_folder(planned.folder, planned.manifest, config, counts.waits) as folder:
        pipeline = make_pipeline(planned, folder, config, counts, stop)
        await pipeline.open()
        run = _Run(planned, folder, pipeline, config, counts, stop)
        await run.carry_out()
        return run.evaluation()


class _Run:
    """Carries out a run: workers judge the items that have no result yet."""

    def __init__(
        self,
        planned: Plan,
        folder: RunFolder,
        pipeline: CallPipeline,
        config: RunConfig,
        counts: ProgressCounters,
        stop: StopSignal,
    ) -> None:
        self._plan = planned
        self._folder = folder
        self._pipeline = pipeline
        self._config = config
        self._counts = counts
        self._stop = stop
        # Results that failed in an earlier start are not among them: those items are tried again.
        self._judged_before = folder.results.ok_keys() if folder.results else frozenset[Key]()
        self._judged_now: set[Key] = set()
        self._in_memory: dict[Key, Result] = {}
        counts.take_up(len(planned), self._count_resumed(), folder.journal.totals())

    async def carry_out(self) -> None:
        """Judge every item that has no result yet, or as many as can be until the run is to end."""
        log.info("run started", extra=self._description())
        ending = asyncio.create_task(self._drain_when_stopped())
        try:
            with (
                traced(self._folder.manifest, self._counts, self._pipeline, self._judge) as (calls, judge),
                answering_calls(calls),
                keep_steps_in(self._folder.steps),
            ):
                await self._pipeline.run_passes(lambda: self._judge_open_items(judge))
        finally:
            ending.cancel()
            # Calls are tasks of their own and may outlive the workers; they must end before the journal is closed.
            await self._pipeline.drain(0)
            await self._pipeline.finish()
        log.info("run ended", extra={"stopped": self._stop.reason, **self._counts.summary()})

    async def _judge_open_items(self, judge: JudgeItem) -> None:
        """Judge with as many workers as calls may be in flight; all draw from one iterator."""
        open_items = (unit for unit in self._plan.units() if self._is_open(unit[0]))

        async def worker() -> None:
            # A plain generator can be shared by tasks: taking from it is a step without an await.
            for key, item, aspect in open_items:
                result = await judge(self._plan.graphs[key.protocol], key, item, aspect)
                if result is not None:
                    self._keep(result)
                if self._stop.is_asked:
                    return

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self._config.concurrency, self._counts.wanted)):
                    group.create_task(worker())
        except ExceptionGroup as several:
            # All workers meet the same problem, such as a data file that was changed meanwhile: one of them will do.
            raise several.exceptions[0] from None

    def _is_open(self, key: Key) -> bool:
        return key not in self._judged_before and key not in self._judged_now

    async def _judge(self, graph: Graph, key: Key, item: Item, aspect: Aspect | None) -> Result | None:
        return await judge_item(graph, key, item, aspect, self._pipeline.repeat_mark(key))

    def _keep(self, result: Result) -> None:
        try:
            self._folder.keep(result)
        except OSError as error:
            # Nothing is lost: the item's calls are in the journal, and the next start judges it without paying again.
            self._stop.ask_for(error, self._plan.folder)
            return
        if self._folder.results is None:
            self._in_memory[result.key] = result
        if self._pipeline.needs_several_passes:
            self._judged_now.add(result.key)
        self._counts.finished(result)
        if result.status == "failed":
            log.warning("item failed", extra={**result.key._asdict(), "reason": result.error})

    async def _drain_when_stopped(self) -> None:
        await self._stop.asked()
        log.warning("stopping", extra={"reason": self._stop.reason, "explanation": self._stop.explanation})
        await self._pipeline.drain(self._config.grace)

    def evaluation(self) -> Evaluation:
        """Return what the run came to, with results in the order of the dataset."""
        results = self._results(unit[0] for unit in self._plan.units())
        is_complete = self._counts.judged + self._counts.failed >= self._counts.wanted
        stopped = None if is_complete else self._stop.reason
        return Evaluation(results, self._folder.manifest, self._plan.folder, stopped, self._counts.given_up)

    def _results(self, keys: Iterator[Key]) -> Sequence[Result]:
        if self._folder.results is None:
            return tuple(self._in_memory[key] for key in keys if key in self._in_memory)
        try:
            if not self._stop.is_asked:
                self._folder.keep_rest()
            return self._folder.results.finish(keys)
        except OSError as error:
            # They stay in the order in which they were judged; the next start puts them in the dataset's.
            self._stop.ask_for(error, self._folder.results.path)
            return self._folder.results.read()

    def _count_resumed(self) -> int:
        if not self._judged_before:
            return 0
        return sum(unit[0] in self._judged_before for unit in self._plan.units())

    def _description(self) -> dict[str, Any]:
        return {
            "run": self._folder.manifest["run"],
            "protocols": ", ".join(self._plan.graphs),
            "models": ", ".join(sorted(set(self._plan.models().values()))),
            "concurrency": self._config.concurrency,
            "wanted": self._counts.wanted,
            "there": self._counts.resumed,
        }


@contextmanager
def answering_calls(middleware: CallMiddleware) -> Iterator[None]:
    """Have all model calls that are made inside go through the middleware."""
    token = call_middleware.set(middleware)
    try:
        yield
    finally:
        call_middleware.reset(token)
