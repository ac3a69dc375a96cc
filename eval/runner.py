"""Batches: any protocol over a dataset, several at a time, each result on disk as soon as it is known."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol, Unpack, cast

from ..nodes.blocking import run_blocking
from ..nodes.calling import Call, Reply, Send, around_calls
from ..nodes.planner import StepsBook, steps_kept
from ..state.aspects import Aspect
from ..state.errors import UsageError
from ..state.transcript import Turn
from ..state.verdict import Verdict, add_usage
from .agreement import PreferenceAgreement, ScoreAgreement, agreement
from .datasets import Dataset, Item
from .items import CompareItem, ScoreItem
from .manifest import keep_steps, read_steps, write_manifest
from .plan import Graph, Options, Plan, plan
from .results import Key, Result, ResultsFile


class Watcher(Protocol):
    """Somebody who looks on while a batch runs."""

    def start(self, total: int, done: int) -> None:
        """So many results are wanted, so many are there already."""

    def heard(self, turn: Turn) -> None:
        """An agent has spoken."""

    def finished(self, result: Result) -> None:
        """An item is through."""


class Nobody:
    """A watcher that looks away."""

    def start(self, total: int, done: int) -> None:
        """Look away."""

    def heard(self, turn: Turn) -> None:
        """Look away."""

    def finished(self, result: Result) -> None:
        """Look away."""


@dataclass(frozen=True)
class Evaluation:
    """What a batch came to.

    Attributes:
        results: one for each item, aspect, protocol and repeat.
        manifest: what was run; ``manifest["signatures"]`` tells two runs apart.
        folder: where results and manifest are on disk, if anywhere.
    """

    results: tuple[Result, ...]
    manifest: Mapping[str, Any]
    folder: Path | None = None

    @property
    def failed(self) -> tuple[Result, ...]:
        """The results that have no verdict."""
        return tuple(result for result in self.results if result.status == "failed")

    def agreement(self, protocol: str | None = None) -> dict[str, ScoreAgreement | PreferenceAgreement]:
        """Agreement with people by aspect, of one protocol (the only one, unless named)."""
        names = {result.protocol for result in self.results}
        if protocol is None and len(names) > 1:
            raise ValueError(f"several protocols were run; name one of {', '.join(sorted(names))}")
        return agreement(r.model_dump() for r in self.results if protocol in (None, r.protocol))


def evaluate(
    protocols: str | Sequence[str],
    data: str | Path | Dataset,
    *,
    concurrency: int = 16,
    **options: Unpack[Options],
) -> Evaluation:
    """Judge a dataset, also from a notebook; ``aevaluate`` is the same for async code.

    Args:
        protocols: the name of a protocol, or several.
        data: a dataset, its name, or a JSONL or CSV file.
        concurrency: model calls in flight.
        **options: see ``Options``.

    Raises:
        UsageError: bad input, told before any call.

    >>> done = evaluate("debate", "demo", aspects=["consistency"], limit=4)
    >>> len(done.results), done.failed
    (4, ())
    """
    return run_blocking(carry_out(plan(protocols, data, **options), concurrency))


async def aevaluate(
    protocols: str | Sequence[str],
    data: str | Path | Dataset,
    *,
    concurrency: int = 16,
    **options: Unpack[Options],
) -> Evaluation:
    """``evaluate`` for async code; the same arguments and errors."""
    return await carry_out(await asyncio.to_thread(plan, protocols, data, **options), concurrency)


async def carry_out(prepared: Plan, concurrency: int, watcher: Watcher | None = None) -> Evaluation:
    """Do what was planned, ``concurrency`` model calls at a time."""
    if concurrency < 1:
        raise UsageError(f"concurrency must be 1 or more, got {concurrency}")
    store = _Store(prepared)
    done = {key for key, result in store.results.items() if result.status == "ok"}
    todo = [unit for unit in prepared.units() if unit[0] not in done]
    watcher = watcher or Nobody()
    watcher.start(len(todo) + len(done), len(done))
    token = around_calls.set(_Limiter(concurrency))
    try:
        with steps_kept(store.steps):
            await _work(prepared, iter(todo), concurrency, store, watcher)
    finally:
        around_calls.reset(token)
        store.close()
    ordered = [store.results[unit[0]] for unit in prepared.units()]
    return Evaluation(tuple(ordered), store.manifest, prepared.folder)


class _Limiter:
    """So many model calls in flight, whatever the number of items."""

    def __init__(self, concurrency: int) -> None:
        self._free = asyncio.Semaphore(concurrency)

    async def __call__(self, call: Call, send: Send) -> Reply:
        async with self._free:
            return await send(call)


class _Store:
    """Results in memory, and on disk where a folder was given."""

    def __init__(self, prepared: Plan) -> None:
        self._file = None
        self._manifest = prepared.manifest
        self.results: dict[Key, Result] = {}
        self.steps = StepsBook()
        if prepared.folder is not None:
            prepared.folder.mkdir(parents=True, exist_ok=True)
            write_manifest(prepared.folder, prepared.manifest)
            self._file = ResultsFile(prepared.folder)
            self.results = {result.key: result for result in self._file.read()}
            self.steps = StepsBook(read_steps(prepared.folder), partial(keep_steps, prepared.folder))

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The run's manifest, with the evaluation steps that were written on the way."""
        steps = [planned.model_dump(mode="json") for planned in self.steps.all]
        return {**self._manifest, **({"steps": steps} if steps else {})}

    def add(self, result: Result) -> None:
        self.results[result.key] = result
        if self._file is not None:
            self._file.add(result)

    def close(self) -> None:
        if self._file is not None:
            self._file.compact()


async def _work(
    prepared: Plan,
    todo: Iterator[tuple[Key, Item, Aspect | None]],
    workers: int,
    store: _Store,
    watcher: Watcher,
) -> None:
    """Workers that share one iterator: no more items are under way than there are workers."""

    async def worker() -> None:
        for key, item, aspect in todo:
            result = await _judge(prepared.graphs[key.protocol], key, item, aspect, watcher)
            store.add(result)
            watcher.finished(result)

    async with asyncio.TaskGroup() as group:
        for _ in range(workers):
            group.create_task(worker())


@dataclass
class _Heard:
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


async def _judge(graph: Graph, key: Key, item: Item, aspect: Aspect | None, watcher: Watcher) -> Result:
    heard = _Heard()
    verdict: Verdict | None = None
    problem = ""
    try:
        async with aclosing(_stream(graph, item, aspect)) as events:
            async for where, mode, event in events:
                if mode == "custom":
                    heard.add(event["turn"], event["problem"], where)
                    watcher.heard(event["turn"])
                elif not where and event.get("verdict"):
                    verdict = Verdict.of(event)
                    heard.conclude(event["transcript"])
    except Exception as error:  # whatever went wrong with one item, the others go on
        problem = f"{type(error).__name__}: {error}"
    return _result(key, item, verdict, problem, heard)


Event = tuple[tuple[str, ...], str, Any]
"""In which sub-graph (the outermost graph is an empty tuple), in which stream mode, what."""


async def _stream(graph: Graph, item: Item, aspect: Aspect | None) -> AsyncGenerator[Event, None]:
    task = item.task(aspect) if isinstance(item, ScoreItem) and aspect else _comparison(item)
    given = {"task": task.model_dump(mode="json")}
    async for event in graph.astream(given, stream_mode=["custom", "values"], subgraphs=True):
        yield cast("Event", event)


def _comparison(item: Item) -> Any:
    assert isinstance(item, CompareItem)
    return item.task()


def _result(key: Key, item: Item, verdict: Verdict | None, problem: str, heard: _Heard) -> Result:
    label = item.label(key.aspect or "") if isinstance(item, ScoreItem) else item.label()
    about = {**key._asdict(), "group": item.group, "human": label, "transcript": heard.all()}
    if verdict is None:
        return Result(**about, status="failed", error=problem, **add_usage(heard.all()).model_dump())
    fields = verdict.model_dump(exclude={"protocol", "kind"})
    return Result(**about, status="ok", **fields)
