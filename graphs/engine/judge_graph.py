"""The compiled graph class of this package, and its additions to LangGraph's own.

In this order: resumed and forked runs use their original settings; a state update counts as made by
the node that ran last; a failing parallel agent waits for the others; turns stream from a judge to
the wrappers and the run around it.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, aclosing, contextmanager
from contextvars import ContextVar
from typing import Any, cast
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import set_config_context
from langgraph.config import get_config
from langgraph.errors import GraphBubbleUp
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.pregel.protocol import PregelProtocol
from langgraph.runtime import Runtime, get_runtime
from langgraph.types import Command, StateSnapshot, StateUpdate
from pydantic import BaseModel, ConfigDict

from ...nodes.common.server_rules import (
    check_caller,
    check_known_keys,
    context_of_assistant,
    with_run_clock,
)
from ...nodes.common.sync_bridge import set_for_block
from ...nodes.runtime.agent_runtime import Publish, heard_beside, marks_of_wrappers
from ...nodes.runtime.bound_judge import begun_with, without_hidden
from ...state.checked import did_you_mean
from ...state.errors import UsageError
from ...state.settings import Settings, WrapperSettings
from ...state.transcript import Turn
from ._langgraph import (
    BETWEEN_NODES,
    STREAM_OF_SUBGRAPHS,
    beside,
    checkpoints_around,
    is_inside_another,
    is_of_judge_inside,
    is_same_checkpoint,
    latest_checkpoint,
    of_top,
)


class SettingsElsewhere(BaseModel):
    """The settings for a graph that runs elsewhere; only that graph knows their names."""

    model_config = ConfigDict(extra="allow")


class JudgeGraph(CompiledStateGraph[Any, Any, Any, Any]):
    """A compiled graph whose parallel agents are not asked again after an edit of its state.

    For an update without ``as_node``, LangGraph looks for the node that ran last but ignores tasks
    from ``Send``. It finds the node before them, whose router would send them again.

    The settings of a run's context are stored in the metadata of its checkpoints. A protocol's
    first node also writes them into the state. Runs that are resumed or forked before that node
    read the metadata, and so do graphs around other judges.
    """

    def stream(
        self,
        input: Any,
        config: RunnableConfig | None = None,
        *,
        context: Any = None,
        **options: Any,
    ) -> Iterator[Any]:
        """Stream as LangGraph does; a resumed run without a context uses its original context.

        Raises:
            UsageError: the input has a key that the graph does not read. LangGraph would drop it.
        """
        self._check_input(input, config)
        if config and _is_resumed(input, config):
            # LangGraph takes the config of a nested judge for a fork of the whole graph and
            # restarts its judges, which would lose an edit of that judge. If no turn was added
            # since, continue the thread from the edit.
            if is_of_judge_inside(config) and all(map(self._is_latest, checkpoints_around(config))):
                config = latest_checkpoint(config, "")
            if _is_empty(context):
                context = _whole(self._context_of_thread(of_top(config)))
        noted = with_run_clock(self._noted(config, context))
        yield from super().stream(input, noted, context=context, **options)

    async def astream(
        self,
        input: Any,
        config: RunnableConfig | None = None,
        *,
        context: Any = None,
        **options: Any,
    ) -> AsyncIterator[Any]:
        """Stream as ``stream`` does."""
        self._check_input(input, config)
        schema = self.builder.context_schema
        if schema is not None and issubclass(schema, Settings):
            check_known_keys(schema, config, await context_of_assistant(config))
        if config and _is_resumed(input, config):
            if is_of_judge_inside(config):
                latest = [
                    await self._ais_latest(checkpoint) for checkpoint in checkpoints_around(config)
                ]
                config = latest_checkpoint(config, "") if all(latest) else config
            if _is_empty(context):
                context = _whole(await self._acontext_of_thread(of_top(config)))
        noted = with_run_clock(self._noted(config, context))
        parts = super().astream(input, noted, context=context, **options)
        async with aclosing(cast("AsyncGenerator[Any]", parts)):
            async for part in parts:
                yield part

    def _check_input(self, input: Any, config: RunnableConfig | None) -> None:
        """Refuse keys of an input that the graph does not read."""
        # As a node of another graph, it receives the whole state of that graph.
        if not isinstance(input, Mapping) or is_inside_another(config):
            return
        known = self.builder.schemas[self.builder.input_schema]
        # Chat clients send keys of their own without content, such as an empty list of tools.
        unknown = [
            str(key)
            for key, value in input.items()
            if key not in known and not _is_without_content(value)
        ]
        if unknown:
            meant = did_you_mean(unknown[0], list(known))
            # LangGraph's name of a graph that was compiled without one.
            name = "this graph" if self.name == "LangGraph" else self.name
            raise UsageError(
                f"{', '.join(unknown)} {'is' if len(unknown) == 1 else 'are'} not in the input of "
                f"{name}{meant}{' Its' if meant else '; its'} keys are {', '.join(known)}"
            )

    def _is_latest(self, checkpoint: RunnableConfig) -> bool:
        """Return whether a checkpoint is the latest of its graph on its thread."""
        given = checkpoint["configurable"]
        latest = self.get_state(latest_checkpoint(checkpoint, given["checkpoint_ns"]))
        return is_same_checkpoint(latest, given)

    async def _ais_latest(self, checkpoint: RunnableConfig) -> bool:
        given = checkpoint["configurable"]
        latest = await self.aget_state(latest_checkpoint(checkpoint, given["checkpoint_ns"]))
        return is_same_checkpoint(latest, given)

    def _noted(self, config: RunnableConfig | None, context: Any) -> RunnableConfig | None:
        """Return the config with the settings of the run's context in its metadata."""
        schema = self.builder.context_schema
        # Another graph's context may contain objects that cannot be written, or secrets.
        if (
            context is None
            or schema is None
            or not issubclass(schema, Settings | SettingsElsewhere)
        ):
            return config
        given = schema.model_validate(context) if isinstance(context, Mapping) else context
        begun = begun_with(schema, given)
        of_wrapper = SETTINGS in ((config or {}).get("metadata") or {})
        # A nested judge inherits the metadata of the graph around it. Without its own note, it
        # would read that graph's settings as its own if both have the same class.
        if not begun and not of_wrapper:
            return config
        note = json.dumps({"schema": schema.__name__, "settings": begun})
        # Not by ``merge_configs``, which puts the surrounding run's places over those of the config.
        metadata = {**((config or {}).get("metadata") or {}), SETTINGS: note}
        return {**(config or {}), "metadata": metadata}

    def _context_of_thread(self, config: RunnableConfig) -> Any:
        """Return the original context of a checkpoint's run if its state does not contain it."""
        context, earlier = self._begun_with(super().get_state(config))
        while earlier:
            context, earlier = self._begun_with(super().get_state(beside(config, earlier)))
        return context

    async def _acontext_of_thread(self, config: RunnableConfig) -> Any:
        context, earlier = self._begun_with(await super().aget_state(config))
        while earlier:
            context, earlier = self._begun_with(await super().aget_state(beside(config, earlier)))
        return context

    def _begun_with(self, snapshot: StateSnapshot) -> tuple[Any, RunnableConfig | None]:
        """Return the context that a checkpoint recorded, or the next config to look at."""
        first = {START, *(node for source, node in self.builder.edges if source == START)}
        in_state = "settings" in self.channels
        if in_state and (not snapshot.next or not first.issuperset(snapshot.next)):
            return None, None
        metadata: Mapping[str, Any] = snapshot.metadata or {}
        noted = metadata.get(SETTINGS)
        schema = self.builder.context_schema
        if noted is not None and schema is not None:
            note = json.loads(str(noted))
            if note["schema"] == schema.__name__:
                return schema.model_validate(note["settings"]), None
        # An earlier run of the thread is not relevant for this one.
        return None, None if metadata.get("source") == "input" else snapshot.parent_config

    def bulk_update_state(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]
    ) -> RunnableConfig:
        """Update the state as LangGraph does; without ``as_node``, attribute it to the last node.

        The update of a nested judge is made by that judge's graph.
        """
        if is_of_judge_inside(config):
            with set_for_block(_context_of_subgraphs, self._context_for_subgraphs(config)):
                return super().bulk_update_state(config, supersteps)
        if _lacks_node(supersteps):
            snapshot = super().get_state(config)
            while snapshot.parent_config is not None:
                parent = super().get_state(beside(config, snapshot.parent_config))
                if not _is_edit(snapshot):
                    supersteps = _by_node(supersteps, _only_node(parent))
                    break
                snapshot = parent
        with set_for_block(_context_of_edit, self._context_of_thread(config)):
            return super().bulk_update_state(config, supersteps)

    async def abulk_update_state(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]
    ) -> RunnableConfig:
        """Update the state as ``bulk_update_state`` does."""
        if is_of_judge_inside(config):
            with set_for_block(_context_of_subgraphs, await self._acontext_for_subgraphs(config)):
                return await super().abulk_update_state(config, supersteps)
        if _lacks_node(supersteps):
            snapshot = await super().aget_state(config)
            while snapshot.parent_config is not None:
                parent = await super().aget_state(beside(config, snapshot.parent_config))
                if not _is_edit(snapshot):
                    supersteps = _by_node(supersteps, _only_node(parent))
                    break
                snapshot = parent
        with set_for_block(_context_of_edit, await self._acontext_of_thread(config)):
            return await super().abulk_update_state(config, supersteps)

    def get_state(self, config: RunnableConfig, *, subgraphs: bool = False) -> StateSnapshot:
        """Return the state as LangGraph does, with the judges that the run's context chose."""
        if not subgraphs and not is_of_judge_inside(config):
            return super().get_state(config)
        with set_for_block(_context_of_subgraphs, self._context_for_subgraphs(config)):
            return super().get_state(config, subgraphs=subgraphs)

    async def aget_state(self, config: RunnableConfig, *, subgraphs: bool = False) -> StateSnapshot:
        """Return the state as ``get_state`` does."""
        if not subgraphs and not is_of_judge_inside(config):
            return await super().aget_state(config)
        with set_for_block(_context_of_subgraphs, await self._acontext_for_subgraphs(config)):
            return await super().aget_state(config, subgraphs=subgraphs)

    def get_state_history(self, config: RunnableConfig, **options: Any) -> Iterator[StateSnapshot]:
        """Yield the states as LangGraph does, with the judge that the run's context chose."""
        snapshots = super().get_state_history(config, **options)
        # LangGraph looks up the nested judge before it yields the first state. A variable that
        # stays set while a generator waits would be set for its caller too.
        with set_for_block(_context_of_subgraphs, self._context_for_subgraphs(config)):
            first = next(snapshots, None)
        if first is not None:
            yield first
            yield from snapshots

    async def aget_state_history(
        self, config: RunnableConfig, **options: Any
    ) -> AsyncIterator[StateSnapshot]:
        """Yield the states as ``get_state_history`` does."""
        snapshots = super().aget_state_history(config, **options)
        with set_for_block(_context_of_subgraphs, await self._acontext_for_subgraphs(config)):
            first = await anext(snapshots, None)
        if first is not None:
            yield first
            async for snapshot in snapshots:
                yield snapshot

    def get_subgraphs(
        self, *, namespace: str | None = None, recurse: bool = False
    ) -> Iterator[tuple[str, PregelProtocol[Any, Any, Any, Any]]]:
        """Yield the graphs inside as LangGraph does.

        While a thread's state is read or updated, the judge that the run's context chose replaces
        the bound one. Drawings show the bound one.
        """
        context = _context_of_subgraphs.get()
        if context is None:
            yield from super().get_subgraphs(namespace=namespace, recurse=recurse)
            return
        wanted, _, rest = (namespace or "").partition(BETWEEN_NODES)
        for node, drawn in super().get_subgraphs():
            if namespace is not None and node != wanted:
                continue
            graph, inner_context = self._chosen(node, drawn, context)
            if namespace in (None, node):
                yield node, graph
            if recurse and namespace != node and isinstance(graph, CompiledStateGraph):
                with set_for_block(_context_of_subgraphs, inner_context):
                    inside = list(graph.get_subgraphs(namespace=rest or None, recurse=True))
                yield from ((f"{node}{BETWEEN_NODES}{place}", judge) for place, judge in inside)

    def _chosen(self, node: str, drawn: Any, context: Any) -> tuple[Any, Any]:
        """Return the graph that a node runs with this context, and the context inside it."""
        judges = self.builder.judges_of_nodes if isinstance(self.builder, JudgeGraphBuilder) else {}
        if node not in judges:
            return drawn, context
        try:
            graph, inner_context = judges[node](context)
        except UsageError:
            # The run was refused for these settings before it reached the judge.
            return drawn, None
        return graph or drawn, context if inner_context is None else inner_context

    def _context_for_subgraphs(self, config: RunnableConfig) -> Any:
        """Return the context of the thread's run if it can choose judges, else None."""
        if not self._takes_choices():
            return None
        return _allowed(self._context_of_thread(of_top(config)))

    async def _acontext_for_subgraphs(self, config: RunnableConfig) -> Any:
        if not self._takes_choices():
            return None
        return _allowed(await self._acontext_of_thread(of_top(config)))

    def _takes_choices(self) -> bool:
        schema = self.builder.context_schema
        return schema is not None and issubclass(schema, WrapperSettings)


class JudgeGraphBuilder(StateGraph[Any, Any, Any, Any]):
    """A graph that compiles to a ``JudgeGraph``.

    Attributes:
        judges_of_nodes: for each node, the function that returns the graph that a context chooses,
            and the context inside that graph; None for each if the context changes nothing.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.judges_of_nodes: dict[str, Callable[[Any], tuple[Any, Any]]] = {}

    def compile(self, *args: Any, **kwargs: Any) -> CompiledStateGraph[Any, Any, Any, Any]:
        """Compile as LangGraph does."""
        graph = super().compile(*args, **kwargs)
        # LangGraph's ``compile`` names its own class.
        graph.__class__ = JudgeGraph
        return graph

    def place(self, name: str, node: Any, then: str | None = None) -> None:
        """Add a node, and the edge to the node that always follows it, if there is one."""
        self.add_node(name, node)
        if then is not None:
            self.add_edge(name, then)


def labels_of(targets: Mapping[str, str]) -> dict[str, str]:
    """Return the label of each outcome's edge; outcomes with the same target share one.

    >>> labels_of({"no_issue": "conclude", "max_rounds": "conclude"})["no_issue"]
    'no_issue / max_rounds'
    """
    return {o: " / ".join(p for p in targets if targets[p] == targets[o]) for o in targets}


SETTINGS = "jurygraph_settings"
"""The metadata key of checkpoints for the settings of the run's context, as JSON."""


_context_of_edit: ContextVar[Any] = ContextVar("_context_of_edit", default=None)
"""The run's context for routers that a state update calls, which have no runtime."""


_context_of_subgraphs: ContextVar[Any] = ContextVar("_context_of_subgraphs", default=None)
"""The context of the run whose nested graphs are looked up; None: the drawn graphs."""


def context_of_run() -> Any:
    """Return the run's context, also while ``update_state`` calls routers; None without a run."""
    runtime: Runtime[Any] | None = get_runtime()
    return runtime.context if runtime else _context_of_edit.get()


def _whole(context: BaseModel | None) -> BaseModel | None:
    # Routers, which an update calls, need no address. Calls do.
    return None if context is None else without_hidden(context)


def _is_resumed(input: Any, config: RunnableConfig) -> bool:
    return (input is None or isinstance(input, Command)) and "thread_id" in config.get(
        "configurable", {}
    )


def _is_without_content(value: Any) -> bool:
    return value is None or (isinstance(value, Sequence | Mapping) and not value)


def _is_empty(context: Any) -> bool:
    # LangGraph's server passes an empty context if its caller gave none.
    return context is None or context == {}


def _allowed(context: Any) -> Any:
    """Return a context, or None if a server's caller may not choose it, such as a file.

    Its run was refused, and so is every other way to have it carried out.
    """
    try:
        check_caller(context)
    except UsageError:
        return None
    return context


def _lacks_node(supersteps: Sequence[Sequence[StateUpdate]]) -> bool:
    """Return whether there is exactly one update and it does not name a node."""
    updates = [update for superstep in supersteps for update in superstep]
    return len(updates) == 1 and updates[0].as_node is None


def _by_node(
    supersteps: Sequence[Sequence[StateUpdate]], node: str | None
) -> Sequence[Sequence[StateUpdate]]:
    return [[update._replace(as_node=node) for update in superstep] for superstep in supersteps]


def _is_edit(snapshot: StateSnapshot) -> bool:
    return (snapshot.metadata or {}).get("source") in ("update", "fork")


def _only_node(before: StateSnapshot) -> str | None:
    """Return the node whose tasks led to the next snapshot; None if LangGraph has to find out."""
    nodes = {task.name for task in before.tasks} - {START}
    return nodes.pop() if len(nodes) == 1 else None


# LangGraph cancels all tasks of a step when one of them fails. Calls in progress would be paid for,
# lost, and repeated when the graph is resumed. So a failing task waits for the others before it
# raises.

POLL = 0.02
GRACE = 0.2
"""Seconds between checks whether the others have ended, and to wait for their results then."""

_UNDER_WAY: Counter[str] = Counter()
"""The number of running tasks by step: the id of its first checkpoint, unique per step and run."""
_counting = threading.Lock()


class SideBySide:
    """Delay a failure in the block until the other started tasks of the same step are done.

    Use ``with`` in a run whose tasks are threads, and ``async with`` for asyncio tasks.
    """

    def __init__(self, runtime: Runtime[Any] | None) -> None:
        # Without a checkpoint or an outer graph, other tasks of the step cannot be identified, so
        # each counts as a step.
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
        """Unregister the task; if it failed, yield the seconds to wait, again and again."""
        # Unregister in any case, so that no other task waits for this one.
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
    """Pass the events of all judges that run in this block to a function as soon as they arrive.

    ``stream_mode="custom"`` makes an event loop task wait for such events at every step, which
    costs more than the steps themselves.
    """
    return set_for_block(heard_beside, hear)


@contextmanager
def forwarded(
    mark: Callable[[Turn], Turn], once: bool = False, hear: Publish | None = None
) -> Iterator[None]:
    """Mark the turns of a judge that runs in this block, and stream them from this node's graph.

    With ``once``, turns that LangGraph already streams as the judge's are not streamed again.
    ``hear`` receives each streamed event too.
    """
    runtime: Runtime[Any] | None = get_runtime()
    if runtime is None:  # a node that is invoked alone has no stream
        yield
        return
    here = get_config()
    are_streamed = once and STREAM_OF_SUBGRAPHS in here["configurable"]
    hearing = (heard_beside.get(), None if are_streamed else runtime.stream_writer, hear)

    def from_here(event: Any) -> None:
        # LangGraph attributes an event to the current config, which is the nested judge's config
        # here.
        with set_config_context(here) as context:
            for publish in filter(None, hearing):
                context.run(publish, event)

    marks = (mark, *marks_of_wrappers.get())
    with set_for_block(marks_of_wrappers, marks), set_for_block(heard_beside, from_here):
        yield
