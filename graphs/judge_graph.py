"""Define what a compiled graph of ours does beyond LangGraph's own.

In this order: what is resumed or forked keeps the run's settings; its state is updated as by the node that ran
last; of agents side by side, one that fails waits for the others; turns are streamed from a judge to the wrappers and
the run round it.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, aclosing, contextmanager
from contextvars import ContextVar
from typing import Any, cast
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs, set_config_context
from langgraph.config import get_config
from langgraph.errors import GraphBubbleUp
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime, get_runtime
from langgraph.types import Command, StateSnapshot
from pydantic import BaseModel, ConfigDict

from ..nodes.agent_runtime import Publish, heard_beside
from ..nodes.bound_judge import begun_with, without_hidden
from ..nodes.human import marks_of_wrappers
from ..nodes.sync_bridge import set_for_block
from ..state.settings import Settings
from ..state.transcript import Turn


class SettingsElsewhere(BaseModel):
    """The settings that a graph which runs elsewhere is sent; that graph alone knows which there are."""

    model_config = ConfigDict(extra="allow")


class JudgeGraph(CompiledStateGraph[Any, Any, Any, Any]):
    """A compiled graph whose agents, where several are asked side by side, are not asked again by an edit.

    LangGraph does not count tasks that were sent out when it looks for the node that an update without ``as_node``
    comes from. It takes the one before them, whose router would send them out anew.

    The settings of a run's context are in the metadata of its checkpoints. A protocol's first node writes them into the
    state as well; what is resumed or forked before it, and any graph round other judges, finds them in the metadata.
    """

    def stream(
        self, input: Any, config: RunnableConfig | None = None, *, context: Any = None, **options: Any
    ) -> Iterator[Any]:
        """Stream as LangGraph does; a run that goes on without a context has the one that it was begun with."""
        if config and _goes_on(input, config, context):
            context = _whole(self._context_of_thread(config))
        yield from super().stream(input, self._noted(config, context), context=context, **options)

    async def astream(
        self, input: Any, config: RunnableConfig | None = None, *, context: Any = None, **options: Any
    ) -> AsyncIterator[Any]:
        """Stream as ``stream`` does."""
        if config and _goes_on(input, config, context):
            context = _whole(await self._acontext_of_thread(config))
        parts = super().astream(input, self._noted(config, context), context=context, **options)
        async with aclosing(cast("AsyncGenerator[Any]", parts)):
            async for part in parts:
                yield part

    def _noted(self, config: RunnableConfig | None, context: Any) -> RunnableConfig | None:
        """Return the config with the settings of the run's context in its metadata, which checkpoints keep."""
        schema = self.builder.context_schema
        # The context of another graph may hold what cannot be written, or what nobody should read.
        if context is None or schema is None or not issubclass(schema, Settings | SettingsElsewhere):
            return config
        given = schema.model_validate(context) if isinstance(context, Mapping) else context
        begun = begun_with(schema, given)
        return merge_configs(config, {"metadata": {SETTINGS: json.dumps(begun)}}) if begun else config

    def _context_of_thread(self, config: RunnableConfig | None) -> Any:
        """Return the context that the run of this checkpoint was begun with, where its state does not have it."""
        context = None
        while config:
            context, config = self._begun_with(self.get_state(config))
        return context

    async def _acontext_of_thread(self, config: RunnableConfig | None) -> Any:
        context = None
        while config:
            context, config = self._begun_with(await self.aget_state(config))
        return context

    def _begun_with(self, snapshot: StateSnapshot) -> tuple[Any, RunnableConfig | None]:
        """Return the context that a checkpoint has noted, or where to look for it next."""
        first = {START, *(node for source, node in self.builder.edges if source == START)}
        has_begun = "settings" in self.channels and not first.issuperset(snapshot.next)
        if has_begun or not snapshot.next:
            return None, None
        metadata: Mapping[str, Any] = snapshot.metadata or {}
        noted, schema = metadata.get(SETTINGS), self.builder.context_schema
        if noted is not None and schema is not None:
            return schema.model_validate(json.loads(str(noted))), None
        # An earlier run of the thread says nothing of this one.
        return None, None if metadata.get("source") == "input" else snapshot.parent_config

    def update_state(
        self, config: RunnableConfig, values: Any, as_node: str | None = None, task_id: str | None = None
    ) -> RunnableConfig:
        """Update the state as LangGraph does; without ``as_node``, as the node that ran last."""
        snapshot = self.get_state(config) if as_node is None else None
        while snapshot is not None and snapshot.parent_config is not None:
            parent = self.get_state(snapshot.parent_config)
            if not _is_edit(snapshot):
                as_node = _only_node(parent)
                break
            snapshot = parent
        with set_for_block(_context_of_edit, self._context_of_thread(config)):
            return super().update_state(config, values, as_node, task_id)

    async def aupdate_state(
        self, config: RunnableConfig, values: Any, as_node: str | None = None, task_id: str | None = None
    ) -> RunnableConfig:
        """Update the state as ``update_state`` does."""
        snapshot = await self.aget_state(config) if as_node is None else None
        while snapshot is not None and snapshot.parent_config is not None:
            parent = await self.aget_state(snapshot.parent_config)
            if not _is_edit(snapshot):
                as_node = _only_node(parent)
                break
            snapshot = parent
        with set_for_block(_context_of_edit, await self._acontext_of_thread(config)):
            return await super().aupdate_state(config, values, as_node, task_id)


class JudgeGraphBuilder(StateGraph[Any, Any, Any, Any]):
    """A graph that compiles to a ``JudgeGraph``."""

    def compile(self, *args: Any, **kwargs: Any) -> CompiledStateGraph[Any, Any, Any, Any]:
        """Compile as LangGraph does."""
        graph = super().compile(*args, **kwargs)
        # LangGraph's ``compile`` names its own class.
        graph.__class__ = JudgeGraph
        return graph

    def place(self, name: str, node: Any, then: str | None = None) -> None:
        """Add a node, and the edge to the one that always follows it, if one does."""
        self.add_node(name, node)
        if then is not None:
            self.add_edge(name, then)


def labels_of(targets: Mapping[str, str]) -> dict[str, str]:
    """Return the label of each outcome's edge; LangGraph draws one edge between two nodes, whose outcomes share it.

    >>> labels_of({"no_issue": "conclude", "max_rounds": "conclude"})["no_issue"]
    'no_issue / max_rounds'
    """
    return {o: " / ".join(p for p in targets if targets[p] == targets[o]) for o in targets}


SETTINGS = "jurygraph_settings"
"""Under which name a checkpoint's metadata has the settings of the run's context, as JSON."""


_context_of_edit: ContextVar[Any] = ContextVar("_context_of_edit", default=None)
"""The context of the run, for the routers that an update asks, which run without a runtime."""


def context_of_run() -> Any:
    """Return the context of the run, also while ``update_state`` asks the routers; None where there is none."""
    runtime: Runtime[Any] | None = get_runtime()
    return runtime.context if runtime else _context_of_edit.get()


def _whole(context: BaseModel | None) -> BaseModel | None:
    # Routers, which an update asks, need no address; calls do.
    return None if context is None else without_hidden(context)


def _goes_on(input: Any, config: RunnableConfig, context: Any) -> bool:
    resumed = input is None or isinstance(input, Command)
    return resumed and context is None and "thread_id" in config.get("configurable", {})


def _is_edit(snapshot: StateSnapshot) -> bool:
    return (snapshot.metadata or {}).get("source") in ("update", "fork")


def _only_node(before: StateSnapshot) -> str | None:
    """Return the node whose tasks led from this snapshot to the next one; None where LangGraph has to find out."""
    nodes = {task.name for task in before.tasks} - {START}
    return nodes.pop() if len(nodes) == 1 else None


# LangGraph cancels all tasks of a step when one of them fails. Calls that are under way would be paid for and lost, and
# asked again when the graph is resumed: so the one that failed waits for the others before it says so.

POLL, GRACE = 0.02, 0.2
"""Seconds between looks at whether the others have ended; and beyond their end, while their results are handed in."""

_UNDER_WAY: Counter[str] = Counter()
"""How many are asked by step: by the id of the checkpoint that it began with, another one in each step of each run."""
_counting = threading.Lock()


class SideBySide:
    """Hold back a failure of the block until the others of the same step that have begun are done.

    It is a context manager (``with``) in a run whose tasks are threads, and an async one where they are asyncio's.
    """

    def __init__(self, runtime: Runtime[Any] | None) -> None:
        # Without a checkpoint, or a graph round the node, there is nothing by which others of the step are known: each
        # is by itself.
        info = runtime.execution_info if runtime else None
        self._step = info.checkpoint_id if info else uuid4().hex

    def __enter__(self) -> None:
        with _counting:
            _UNDER_WAY[self._step] += 1

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        for seconds in self._pauses(error):
            time.sleep(seconds)

    async def __aenter__(self) -> None:
        self.__enter__()

    async def __aexit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        for seconds in self._pauses(error):
            await asyncio.sleep(seconds)

    def _pauses(self, error: BaseException | None) -> Iterator[float]:
        """End, and yield how many seconds to wait, again and again, where the block has failed."""
        # Whatever ends the block: nobody must wait for a thread or a task that is gone.
        with _counting:
            _UNDER_WAY[self._step] -= 1
            if not _UNDER_WAY[self._step]:
                del _UNDER_WAY[self._step]
        if isinstance(error, Exception) and not isinstance(error, GraphBubbleUp):
            yield 0.0  # the others may not have begun yet
            while self._step in _UNDER_WAY:
                yield POLL
            yield GRACE


def heard_by(hear: Publish) -> AbstractContextManager[None]:
    """Hand the events of all judges that are run in this block to a function, as soon as they are there.

    ``stream_mode="custom"`` has a task of the event loop wait for such events at every step, which costs more than the
    steps themselves.
    """
    return set_for_block(heard_beside, hear)


SUBGRAPHS = "__pregel_stream"
"""What LangGraph has in a config where it streams the sub-graphs, too (``subgraphs=True``)."""


@contextmanager
def forwarded(mark: Callable[[Turn], Turn], once: bool = False) -> Iterator[None]:
    """Stream the turns of a judge that is run in this block from the graph whose node this is, each marked.

    With ``once`` they are not, where LangGraph streams them already as those of the judge.
    """
    runtime: Runtime[Any] | None = get_runtime()
    if runtime is None:  # A node that is invoked by itself, which nobody streams.
        yield
        return
    here = get_config()
    are_streamed = once and SUBGRAPHS in here["configurable"]
    hearing = (heard_beside.get(), None if are_streamed else runtime.stream_writer)

    def from_here(event: Any) -> None:
        marked = {**event, "turn": mark(event["turn"])}
        # LangGraph finds out from the config at hand whose event it is, and the speaker's is that of the judge inside.
        with set_config_context(here) as context:
            for publish in filter(None, hearing):
                context.run(publish, marked)

    marks = (mark, *marks_of_wrappers.get())
    with set_for_block(marks_of_wrappers, marks), set_for_block(heard_beside, from_here):
        yield
