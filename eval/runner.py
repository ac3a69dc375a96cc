"""Batches: any protocol over a dataset, several items at a time, each call and each result on disk once it is known."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Unpack, cast

from ..graphs.base import Graph
from ..nodes.evaluation_steps import keep_steps_in
from ..nodes.models.send import CallMiddleware, call_middleware
from ..nodes.sync_bridge import run_blocking
from ..state.aspects import Aspect
from ..state.errors import StoppedError, UsageError
from ..state.transcript import Turn, usage_of_turns
from ..state.verdict import Verdict
from .datasets.dataset import Data
from .datasets.items import CompareItem, Item, ScoreItem
from .journal import Journal, JournalError
from .plan import Options, Plan, plan
from .replay.replay_pipeline import ReplayPipeline
from .run.call_pipeline import CallPipeline, JudgeItem, judgement_scope
from .run.config import Limits, RunConfig
from .run.evaluation import Evaluation
from .run.folder import RunFolder, run_folder
from .run.progress_counters import ProgressCounters
from .run.results import Key, Result
from .run.shutdown import StopSignal
from .run.tracing import traced

log = logging.getLogger("jurygraph.run")


class RunOptions(Options, Limits, total=False):
    """What is to be judged, and how the run is to be carried out."""


def evaluate(
    protocols: str | Sequence[str], data: Data | None = None, **options: Unpack[RunOptions]
) -> Evaluation:
    """Judge a dataset, also from a notebook; ``aevaluate`` is the same for async code.

    Args:
        protocols: the name of a protocol, or several.
        data: a dataset, its name, a file or a table in memory, see ``load_dataset``; with ``replies`` it may
            be left out.
        **options: see ``Options`` (what is judged) and ``Limits`` (how fast, how patiently, for how much).

    Raises:
        UsageError: bad input, told before any call.

    >>> done = evaluate("debate", "demo", aspects=["consistency"], limit=4)
    >>> len(done.results), done.failed
    (4, ())
    """
    return run_blocking(aevaluate(protocols, data, **options))


async def aevaluate(
    protocols: str | Sequence[str], data: Data | None = None, **options: Unpack[RunOptions]
) -> Evaluation:
    """``evaluate`` for async code; the same arguments and errors."""
    limits = {name: value for name, value in options.items() if name not in Options.__annotations__}
    wanted = {name: value for name, value in options.items() if name in Options.__annotations__}
    config = RunConfig.of(cast("Limits", limits))
    return await execute(await asyncio.to_thread(plan, protocols, data, **cast("Options", wanted)), config)


async def execute(
    prepared: Plan,
    config: RunConfig | None = None,
    counts: ProgressCounters | None = None,
    stop: StopSignal | None = None,
) -> Evaluation:
    """Do what was planned.

    Args:
        prepared: what to judge.
        conduct: how fast, how patiently, for how much.
        counts: kept up while the run is on, for whoever looks on.
        stop: ends the run before its work is done when it is asked to.
    """
    config, counts, stop = config or RunConfig(), counts or ProgressCounters(), stop or StopSignal()
    check_config(prepared, config)
    if config.batch:
        from .batch_api.batch_pipeline import check_batch

        check_batch(prepared)
    async with run_folder(prepared.folder, prepared.manifest, config) as folder:
        if not config.batch:
            await _check_batches(folder.journal)
        run = _Run(prepared, folder, config, counts, stop)
        await run.carry_out()
        return run.evaluation()


def check_config(prepared: Plan, config: RunConfig) -> None:
    """See that what was planned can be carried out in this way.

    Raises:
        UsageError: a price that is not known where dollars are limited, or calls wanted of a replay, which makes none.
    """
    if prepared.recording is None:
        config.budget.check(prepared.models())
        return
    for name in ("batch", "journal"):
        if getattr(config, name):
            raise UsageError(
                f"recorded replies are scored without a call: --{name} means nothing with --replies"
            )


class _Run:
    """A run that is on."""

    def __init__(
        self,
        prepared: Plan,
        folder: RunFolder,
        config: RunConfig,
        counts: ProgressCounters,
        stop: StopSignal,
    ) -> None:
        self._prepared = prepared
        self._folder = folder
        self._config = config
        self._counts = counts
        self._stop = stop
        self._pipeline = _pipeline(prepared, folder, config, counts, stop)
        self._there = folder.results.ok_keys() if folder.results else frozenset[Key]()
        self._done: set[Key] = set()
        self._in_memory: dict[Key, Result] = {}
        counts.take_up(len(prepared), self._resumed(), folder.journal.totals())

    async def carry_out(self) -> None:
        """Judge what has not been judged yet."""
        log.info("run started", extra=self._about())
        ending = asyncio.create_task(self._end_when_asked())
        try:
            with (
                traced(self._folder.manifest, self._counts, self._pipeline, self._judged) as (calls, judge),
                _around(calls),
                keep_steps_in(self._folder.steps),
            ):
                await self._pipeline.carry_out(partial(self._work, judge))
        finally:
            ending.cancel()
            await self._pipeline.drain(0)
            await self._pipeline.finish()
        log.info("run ended", extra={"stopped": self._stop.reason, **self._counts.summary()})

    async def _judged(self, graph: Graph, key: Key, item: Item, aspect: Aspect | None) -> Result | None:
        # A recording is asked for a verdict, repeat and all: what is counted inside begins at 0.
        repeat = key.repeat if self._prepared.recording is None else 0
        with judgement_scope(key):
            return await _judge(graph, key, item, aspect, repeat)

    def evaluation(self) -> Evaluation:
        """What it came to; results in the order of the dataset."""
        results = self._results(unit[0] for unit in self._prepared.units())
        is_whole = self._counts.judged + self._counts.failed >= self._counts.wanted
        stopped = None if is_whole else self._stop.reason
        return Evaluation(results, self._folder.manifest, self._prepared.folder, stopped)

    def _results(self, keys: Iterator[Key]) -> Sequence[Result]:
        if self._folder.results is None:
            return tuple(self._in_memory[key] for key in keys if key in self._in_memory)
        try:
            if not self._stop.is_asked:
                self._folder.keep_rest()
            return self._folder.results.finish(keys)
        except OSError as error:
            # In the order in which they came, then; the next start puts them in order.
            self._stop.ask_for(error, self._folder.results.path)
            return self._folder.results.read()

    def _about(self) -> dict[str, Any]:
        return {
            "run": self._folder.manifest["run"],
            "protocols": ", ".join(self._prepared.graphs),
            "models": ", ".join(sorted(set(self._prepared.models().values()))),
            "concurrency": self._config.rate_limits.in_flight,
            "wanted": self._counts.wanted,
            "there": self._counts.resumed,
        }

    def _resumed(self) -> int:
        if not self._there:
            return 0
        return sum(unit[0] in self._there for unit in self._prepared.units())

    async def _work(self, judge: JudgeItem) -> None:
        """Workers that share one iterator: no more items are under way than there are workers."""
        todo = (unit for unit in self._prepared.units() if self._is_open(unit[0]))

        async def worker() -> None:
            for key, item, aspect in todo:
                result = await judge(self._prepared.graphs[key.protocol], key, item, aspect)
                if result is not None:
                    self._keep(result)
                if self._stop.is_asked:
                    return

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self._config.rate_limits.in_flight, self._counts.wanted)):
                    group.create_task(worker())
        except ExceptionGroup as several:
            # What is wrong is one thing, such as a data file that was changed meanwhile.
            raise several.exceptions[0] from None

    def _is_open(self, key: Key) -> bool:
        return key not in self._there and key not in self._done

    def _keep(self, result: Result) -> None:
        try:
            self._store(result)
        except OSError as error:
            # Nothing is lost: the verdict's calls are in the journal, and make it again for nothing.
            self._stop.ask_for(error, self._prepared.folder)
            return
        self._counts.finished(result)
        if self._config.batch:
            self._done.add(result.key)
        if result.status == "failed":
            log.warning("item failed", extra={**result.key._asdict(), "reason": result.error})

    def _store(self, result: Result) -> None:
        self._folder.keep(result)
        if self._folder.results is None:
            self._in_memory[result.key] = result

    async def _end_when_asked(self) -> None:
        await self._stop.asked()
        log.warning("stopping", extra={"reason": self._stop.reason, "explanation": self._stop.explanation})
        await self._pipeline.drain(self._config.grace)


async def _check_batches(journal: Journal) -> None:
    """What the provider is at work on is paid for, and not to be asked for a second time."""
    if left := sum(not batch.settled for batch in await journal.batches()):
        raise UsageError(
            f"{left} of this run's batches are still to be collected from the provider; "
            "go on with --batch (batch=True), which collects them, also those that were cancelled there"
        )


def _pipeline(
    prepared: Plan, folder: RunFolder, config: RunConfig, counts: ProgressCounters, stop: StopSignal
) -> CallPipeline:
    if prepared.recording is not None:
        return ReplayPipeline(prepared.recording, folder.journal, config, counts, stop)
    if not config.batch:
        return CallPipeline(folder.journal, config, counts, stop)

    from .batch_api.batch_pipeline import BatchPipeline

    return BatchPipeline(prepared, folder, config, counts, stop)


@contextmanager
def _around(pipeline: CallMiddleware) -> Iterator[None]:
    token = call_middleware.set(pipeline)
    try:
        yield
    finally:
        call_middleware.reset(token)


@dataclass
class _TurnsSoFar:
    """What the agents of one item have said so far; an item that fails has paid for it all the same."""

    turns: list[Turn] = field(default_factory=list)
    unreadable: dict[tuple[Any, ...], Turn] = field(default_factory=dict)

    def add(self, turn: Turn, problem: str | None, where: tuple[str, ...]) -> None:
        """Agents may speak at the same time, and in several sub-graphs; a repaired turn replaces its first form."""
        speaker = (where, turn["agent"], turn["round"])
        self.unreadable.pop(speaker, None)
        if problem:
            self.unreadable[speaker] = turn
        else:
            self.turns.append(turn)

    def conclude(self, transcript: list[Turn]) -> None:
        self.turns, self.unreadable = transcript, {}

    def all(self) -> tuple[Turn, ...]:
        return (*self.turns, *self.unreadable.values())


async def _judge(graph: Graph, key: Key, item: Item, aspect: Aspect | None, repeat: int) -> Result | None:
    """The result of one item; none where the run ended in the middle of it. Calls are marked with the repeat."""
    heard = _TurnsSoFar()
    verdict: Verdict | None = None
    problem = ""
    try:
        async with aclosing(_stream(graph, item, aspect, repeat)) as events:
            async for where, mode, event in events:
                if mode == "custom":
                    heard.add(event["turn"], event["problem"], where)
                elif not where and event.get("verdict"):
                    verdict = Verdict.of(event)
                    heard.conclude(event["transcript"])
    except (StoppedError, JournalError):
        return None
    except Exception as error:  # whatever went wrong with one item, the others go on
        problem = f"{type(error).__name__}: {error}"
    return _result(key, item, verdict, problem, heard)


Event = tuple[tuple[str, ...], str, Any]
"""In which sub-graph (the outermost graph is an empty tuple), in which stream mode, what."""


async def _stream(
    graph: Graph, item: Item, aspect: Aspect | None, repeat: int
) -> AsyncGenerator[Event, None]:
    task = item.task(aspect) if isinstance(item, ScoreItem) and aspect else _comparison(item)
    given = {"task": task.model_dump(mode="json")}
    async for event in graph.astream(
        given,
        {"metadata": {"repeat": repeat}} if repeat else None,
        stream_mode=["custom", "values"],
        subgraphs=True,
    ):
        yield cast("Event", event)


def _comparison(item: Item) -> Any:
    assert isinstance(item, CompareItem)
    return item.task()


def _result(key: Key, item: Item, verdict: Verdict | None, problem: str, heard: _TurnsSoFar) -> Result:
    if isinstance(item, ScoreItem):
        known = {"human": item.label(key.aspect or ""), **item.about(key.aspect or "")}
    else:
        known = {"human": item.label(), **item.about()}
    about = {**key._asdict(), "group": item.group, **known, "transcript": heard.all()}
    if verdict is None:
        return Result(**about, status="failed", error=problem, **usage_of_turns(heard.all()).flat())
    fields = verdict.model_dump(exclude={"protocol", "kind"})
    return Result(**about, status="ok", **fields)
