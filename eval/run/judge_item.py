"""Judge one item: run a graph on it, and make a result of its verdict or of what went wrong."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, cast

from ...graphs.base import Graph
from ...state.aspects import Aspect
from ...state.errors import StoppedError
from ...state.transcript import Turn, usage_of_turns
from ...state.verdict import Verdict
from ..datasets.items import CompareItem, Item, ScoreItem
from ..journal import JournalError
from .results import Key, Result

JudgeItem = Callable[[Graph, Key, Item, Aspect | None], Awaitable[Result | None]]
"""Makes the result of one item; ``None`` where the run ended in the middle of it."""


@dataclass
class JudgementContext:
    """Describes the verdict that is being made.

    Attributes:
        key: its item, aspect, protocol and repeat.
        notes: notes of the pipeline that answers its calls; dropped when the verdict is made.
    """

    key: Key
    notes: dict[Any, Any] = field(default_factory=dict)


current_judgement: ContextVar[JudgementContext | None] = ContextVar("current_judgement", default=None)
"""The verdict that a call is made for; tasks that are started inside inherit it."""


@contextmanager
def judgement_scope(key: Key) -> Iterator[None]:
    """Mark all calls that are made inside as made for this verdict."""
    token = current_judgement.set(JudgementContext(key))
    try:
        yield
    finally:
        current_judgement.reset(token)


async def judge_item(graph: Graph, key: Key, item: Item, aspect: Aspect | None, repeat: int) -> Result | None:
    """Run a graph on one item.

    Args:
        graph: the compiled protocol.
        key: identifies the result.
        item: the item to judge.
        aspect: the aspect that it is scored for; ``None`` for comparisons.
        repeat: the number that its calls are marked with, so that repeats ask for replies of their own.

    Returns:
        The result, with the turns and their cost also where the item failed; ``None`` where the run ended meanwhile.
    """
    spoken = _TurnsSoFar()
    verdict: Verdict | None = None
    problem = ""
    with judgement_scope(key):
        try:
            # A generator that is left early would otherwise be closed by the garbage collector, at some later time.
            async with aclosing(_stream(graph, item, aspect, repeat)) as events:
                async for where, mode, event in events:
                    if mode == "custom":
                        spoken.add(event["turn"], event["problem"], where)
                    # Sub-graphs have verdicts as well; the item's is that of the outermost graph.
                    elif not where and event.get("verdict"):
                        verdict = Verdict.of(event)
                        # Wrappers mark turns with their order, repeat or stage only when they end: the streamed ones
                        # lack that.
                        spoken.replace(event["transcript"])
        except (StoppedError, JournalError):
            # Nothing is wrong with the item: its calls are in the journal, and the next start judges it.
            return None
        except Exception as error:  # whatever went wrong with one item, the others go on
            problem = f"{type(error).__name__}: {error}"
    return _result(key, item, verdict, problem, spoken)


@dataclass
class _TurnsSoFar:
    """Collects what the agents of one item have said, since an item that fails has paid for it all the same."""

    turns: list[Turn] = field(default_factory=list)
    unreadable: dict[tuple[Any, ...], Turn] = field(default_factory=dict)

    def add(self, turn: Turn, problem: str | None, where: tuple[str, ...]) -> None:
        # Agents may speak at the same time, and in several sub-graphs; a repaired turn replaces its first form.
        speaker = (where, turn["agent"], turn["round"])
        self.unreadable.pop(speaker, None)
        if problem:
            self.unreadable[speaker] = turn
        else:
            self.turns.append(turn)

    def replace(self, transcript: list[Turn]) -> None:
        self.turns, self.unreadable = transcript, {}

    def all(self) -> tuple[Turn, ...]:
        return (*self.turns, *self.unreadable.values())


Event = tuple[tuple[str, ...], str, Any]
"""Holds the path of the sub-graph (empty for the outermost graph), the stream mode, and what was streamed."""


async def _stream(
    graph: Graph, item: Item, aspect: Aspect | None, repeat: int
) -> AsyncGenerator[Event, None]:
    task = item.task(aspect) if isinstance(item, ScoreItem) and aspect else _comparison(item)
    given = {"task": task.model_dump(mode="json")}
    async for event in graph.astream(
        given,
        # The first repeat has no mark: its calls are those of a run without repeats, which the journal may hold.
        {"metadata": {"repeat": repeat}} if repeat else None,
        stream_mode=["custom", "values"],
        subgraphs=True,
    ):
        yield cast("Event", event)


def _comparison(item: Item) -> Any:
    assert isinstance(item, CompareItem)
    return item.task()


def _result(key: Key, item: Item, verdict: Verdict | None, problem: str, spoken: _TurnsSoFar) -> Result:
    if isinstance(item, ScoreItem):
        known = {"human": item.label(key.aspect or ""), **item.about(key.aspect or "")}
    else:
        known = {"human": item.label(), **item.about()}
    about = {**key._asdict(), "group": item.group, **known, "transcript": spoken.all()}
    if verdict is None:
        return Result(**about, status="failed", error=problem, **usage_of_turns(spoken.all()).flat())
    fields = verdict.model_dump(exclude={"protocol", "kind"})
    return Result(**about, status="ok", **fields)
