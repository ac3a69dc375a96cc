"""Divide a run into chunks of verdicts for its workers, and say what workers get and give back."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from logging import LogRecord
from pathlib import Path
from typing import Any, NamedTuple

from ...graphs.base import Graph
from ...graphs.registry import find_protocol
from ...nodes.evaluation_steps import PlannedSteps
from ...nodes.models.loaded_model import LoadedModel
from ...nodes.models.retry import Wait
from ...state.aspects import Aspect
from ...state.errors import UsageError
from ...state.settings import Settings
from ...state.usage import NO_USAGE, Usage
from ..datasets.dataset import Dataset
from ..datasets.items import Item, Numbered
from ..given_graphs import judges_of
from ..plan import Plan
from ..run.config import RunConfig
from ..run.folder import differences
from ..run.results import Key
from ..run.shutdown import Reason
from ..signatures import describe_run

LARGEST = 250
"""The most verdicts in a chunk: their texts and results are in memory until the last of them is there."""

ATTEMPTS = 5
"""A chunk is given out so many times; each time its worker died."""


class Unit(NamedTuple):
    """Names one verdict to make, and its place among all of the run's."""

    number: int
    key: Key
    item: Item
    aspect: Aspect | None


@dataclass(frozen=True)
class Chunk:
    """Holds verdicts that one worker is to make.

    Attributes:
        units: the verdicts, in the order of the run.
        steps: evaluation steps that other workers have written.
        attempt: how many times the chunk has been given out.
    """

    units: Sequence[Unit]
    steps: Sequence[PlannedSteps] = ()
    attempt: int = 1


class Chunks:
    """Gives out what is to be judged in chunks that become smaller, so that all workers end at the same time.

    Args:
        units: what is to be judged.
        count: how many units there are.
        workers: how many workers share them.
        opening: whether the first item is judged before all others, since evaluation steps come of it that all share.

    >>> chunks = Chunks((Unit(n, Key(str(n), None, "debate", 0), None, None) for n in range(20)), 20, workers=2)
    >>> [len(chunk.units) for chunk in iter(chunks.take, None)]
    [2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
    """

    def __init__(self, units: Iterable[Unit], count: int, workers: int, opening: bool = False) -> None:
        self._units = iter(units)
        self._left = count
        self._workers = workers
        self._again: deque[Chunk] = deque()
        self._opening = opening
        self._gate_is_shut = False

    @property
    def are_left(self) -> bool:
        """Whether something is still to be given out."""
        return self._left > 0 or bool(self._again)

    def take(self) -> Chunk | None:
        """Return the next chunk; ``None`` where there is none, or none before the opening one is done."""
        if self._again:
            return self._again.popleft()
        if self._gate_is_shut:
            return None
        units = self._of_first_item() if self._opening else self._next()
        self._left = self._left - len(units) if units else 0
        return Chunk(units) if units else None

    def put_back(self, chunk: Chunk) -> None:
        """Take back a chunk whose worker died; it is the next one to be given out."""
        self._again.append(replace(chunk, attempt=chunk.attempt + 1))

    def finished(self) -> None:
        """Note that a chunk is done, so that those which wait for the opening one may go."""
        self._gate_is_shut = False

    def _next(self) -> tuple[Unit, ...]:
        size = min(LARGEST, max(1, self._left // (4 * self._workers)))
        return tuple(islice(self._units, size))

    def _of_first_item(self) -> tuple[Unit, ...]:
        self._opening = False
        first: list[Unit] = []
        for unit in self._units:
            if first and unit.item.id != first[0].item.id:
                # It was taken from the iterator one too many, and goes first among the others.
                self._units = _chained(unit, self._units)
                break
            first.append(unit)
        self._gate_is_shut = bool(first)
        return tuple(first)


def _chained(first: Unit, others: Iterator[Unit]) -> Iterator[Unit]:
    yield first
    yield from others


class Tally(NamedTuple):
    """Counts verdicts, items without one, and rounds of debates."""

    judged: int = 0
    failed: int = 0
    rounds: int = 0

    def plus(self, other: Tally) -> Tally:
        """Return the sums."""
        return Tally(*map(sum, zip(self, other, strict=True)))


_NOTHING = Tally()


@dataclass(frozen=True)
class Report:
    """Says how far a worker is.

    Attributes:
        number: reports are numbered, since they may arrive in another order.
        life: identifies the process; a worker that is started again has a new one.
        open: what it has judged of chunks that are not finished.
        usage: what its calls took; ``made``, ``served`` and ``given_up`` as in ``ProgressCounters``.
        waits: what it waits for.
        records: what it has logged since its last report.
        reason: why it has stopped, with an ``explanation``.
    """

    number: int = -1
    life: str = ""
    open: Tally = _NOTHING
    usage: Usage = NO_USAGE
    made: int = 0
    served: int = 0
    given_up: int = 0
    waits: Sequence[Wait] = ()
    records: Sequence[LogRecord] = ()
    reason: Reason | None = None
    explanation: str = ""


class Started(NamedTuple):
    """Says where a worker runs, and what keeps it from judging; ``problem`` is empty if nothing does."""

    problem: str
    host: str
    pid: int


class Outcome(NamedTuple):
    """Says what became of a chunk: how many verdicts were written, new evaluation steps, and how far the worker is."""

    tally: Tally
    steps: Sequence[PlannedSteps]
    report: Report


@dataclass(frozen=True)
class Job:
    """Describes a run to its workers: plain data, of which each builds the judges and checks that they are the same.

    Attributes:
        judges: by name, the protocol and the settings with the models' names.
        dataset: the dataset without its items; those come with the chunks.
        aspects: what texts are scored for.
        repeats: how many times everything is judged.
        manifest: the run's manifest.
        config: the limits of the run. The journal counts over all workers; ``concurrency`` is each worker's.
        parts: the folder or address where results are written.
        folder: the folder that relative paths among the settings start from.
        log_level: the lowest level that is logged.
    """

    judges: Mapping[str, tuple[str, Settings]]
    dataset: Dataset
    aspects: Sequence[Aspect]
    repeats: int
    manifest: Mapping[str, Any]
    config: RunConfig
    parts: str
    folder: str = field(default_factory=os.getcwd)
    log_level: int = 0

    @classmethod
    def of(
        cls, planned: Plan, manifest: Mapping[str, Any], config: RunConfig, parts: str, log_level: int
    ) -> Job:
        """Describe a plan whose judges were named."""
        judges = {name: describe_judge(name, graph) for name, graph in planned.graphs.items()}
        dataset = replace(planned.dataset, read=_nothing)
        return cls(
            judges, dataset, planned.aspects, planned.repeats, manifest, config, parts, log_level=log_level
        )

    def build(self) -> dict[str, Graph]:
        """Build the judges and check them here: their models' names and keys, and that they are those of the run.

        Raises:
            UsageError: a missing key or package, or judges that differ.
        """
        # On another machine there may be no such folder; settings without relative paths do not need it.
        with suppress(OSError):
            os.chdir(self.folder)
        graphs: dict[str, Graph] = {
            name: find_protocol(protocol).build(settings).compile(name=name)
            for name, (protocol, settings) in self.judges.items()
        }
        for graph in graphs.values():
            for judge in judges_of(graph).values():
                judge.check()
        here = describe_run(graphs, self.dataset, self.aspects, None, self.repeats)["signatures"]
        if found := list(differences(self.manifest["signatures"], here)):
            raise UsageError(f"it would judge by another configuration: {'; '.join(found)}")
        return graphs

    @property
    def opens_with_one(self) -> bool:
        """Whether calls are made with the first verdict of the run that serve all others, as for evaluation steps."""
        kind = self.dataset.kind
        for protocol, settings in self.judges.values():
            calls = find_protocol(protocol).protocol.calls_once(settings, kind, lambda _role, _what: False)
            if any(each.most for each in calls.values()):
                return True
        return False


def describe_judge(name: str, graph: Graph) -> tuple[str, Settings]:
    """Return the protocol and the settings that a named judge was built with.

    Raises:
        UsageError: it has chat model objects, which cannot be sent to workers.
    """
    judges = judges_of(graph)
    models = [model for judge in judges.values() for model in judge.chosen().values()]
    own = judges.get("")
    if own is None or any(isinstance(model, LoadedModel) for model in models):
        raise UsageError(
            f"{name}: a chat model object cannot be sent to workers; give the model's name, such as openai:gpt-4o-mini"
        )
    return own.protocol, own.bound


def _nothing() -> Iterator[Numbered]:
    """Read no items."""
    return iter(())


def default_parts(folder: Path) -> str:
    """Return where workers write results unless said otherwise."""
    return str((folder / "parts").absolute())
