"""Everything that depends on LangGraph's internals, checked against langgraph 1.2.

Two kinds:

- **Places in a run's config** (keys, namespaces, checkpoints of nested judges), which LangGraph
  sets and does not document. The rest of the package reads them through these functions.
- **Shorter steps**: parts of LangGraph's steps that a compiled graph skips because they do not
  change the result. This saves about a third of the time that LangGraph takes for a step.
  ``JURYGRAPH_SHORT_STEPS=off`` switches this off. A graph then runs as LangGraph compiles it, with
  the same verdicts. Use this to find out whether a new LangGraph version broke the shorter steps.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextvars import ContextVar
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.constants import CONFIG_KEY_CHECKPOINTER
from langgraph.graph.state import CompiledStateGraph
from langgraph.pregel.protocol import StreamProtocol
from langgraph.types import StateSnapshot

SHORT_STEPS = "JURYGRAPH_SHORT_STEPS"
"""The environment variable that switches shorter steps off: set it to ``off``."""

# Places in a run's config

STREAM_OF_SUBGRAPHS = "__pregel_stream"
"""The config has this key if LangGraph also streams sub-graphs (``subgraphs=True``)."""

READ_OF_TASK = "__pregel_read"
"""The config of a task of a graph has this key; a run of the outermost graph has not."""

BETWEEN_NODES = "|"
"""LangGraph's separator between the nodes of a checkpoint's namespace."""


def config_of_task() -> RunnableConfig:
    """Return the config of the task that runs now; empty outside a run."""
    return var_child_runnable_config.get() or {}


def is_inside_another(config: RunnableConfig | None) -> bool:
    """Return whether a graph that is called with this config runs inside a task of another graph."""
    return any(
        READ_OF_TASK in around.get("configurable", {})
        for around in (config or {}, config_of_task())
    )


def without_values(config: RunnableConfig) -> RunnableConfig:
    """Return a config under which a sub-graph does not stream its state (``values``) to the caller.

    Its other events are streamed as before.
    """
    given = config.get("configurable", {})
    stream: Any = given.get(STREAM_OF_SUBGRAPHS)
    if stream is None:
        return config
    narrowed = StreamProtocol(stream, stream.modes - {"values"})
    return {**config, "configurable": {**given, STREAM_OF_SUBGRAPHS: narrowed}}


def is_of_judge_inside(config: RunnableConfig) -> bool:
    """Return whether a config of the outermost graph names the place of a nested judge."""
    given = config["configurable"]
    return bool(given.get("checkpoint_ns")) and CONFIG_KEY_CHECKPOINTER not in given


def of_top(config: RunnableConfig) -> RunnableConfig:
    """Return the config of the outermost graph's checkpoint that belongs to a nested judge's."""
    if not is_of_judge_inside(config):
        return config
    checkpoints = config["configurable"].get("checkpoint_map") or {}
    top = latest_checkpoint(config, "")
    if "" in checkpoints:
        top["configurable"]["checkpoint_id"] = checkpoints[""]
    return top


def checkpoints_around(config: RunnableConfig) -> list[RunnableConfig]:
    """Return the configs of a judge's checkpoint and of the outer checkpoints, outermost first."""
    given = config["configurable"]
    own = {given["checkpoint_ns"]: given.get("checkpoint_id")}
    all_ids = {"": None, **(given.get("checkpoint_map") or {}), **own}
    return [
        {"configurable": {**given, "checkpoint_ns": place, "checkpoint_id": checkpoint_id}}
        for place, checkpoint_id in all_ids.items()
    ]


def latest_checkpoint(config: RunnableConfig, place: str) -> RunnableConfig:
    """Return the config of the latest checkpoint of the graph at a place (its namespace)."""
    addressed = ("checkpoint_id", "checkpoint_map", "checkpoint_ns")
    kept = {key: value for key, value in config["configurable"].items() if key not in addressed}
    return {**config, "configurable": {**kept, "checkpoint_ns": place}}


def is_same_checkpoint(snapshot: StateSnapshot, given: Mapping[str, Any]) -> bool:
    """Return whether a snapshot is the checkpoint in the ``configurable`` part of a config."""
    found = snapshot.config["configurable"].get("checkpoint_id")
    return found is not None and found == given["checkpoint_id"]


def beside(config: RunnableConfig, other: RunnableConfig) -> RunnableConfig:
    """Return the config of another checkpoint of the same graph, with the same checkpointer."""
    return {"configurable": {**config["configurable"], **other["configurable"]}}


# Shorter steps


def has_short_steps() -> bool:
    """Return whether graphs are compiled with shorter steps."""
    return os.environ.get(SHORT_STEPS, "").strip().lower() not in ("off", "0", "false", "no")


def shorten_steps(graph: CompiledStateGraph[Any, Any, Any, Any]) -> None:
    """Make a compiled graph skip work of its steps that does not change the result."""
    if not has_short_steps():
        return
    for node in graph.nodes.values():
        for writer in node.writers:
            options = getattr(writer, "kwargs", {})
            if options.get("reader"):
                options["reader"] = _reader(options["reader"])
        if len(getattr(node.node, "steps", ())) > 1:
            # ``node`` is a cached property from which every task of the node is made.
            vars(node)["node"] = _UnobservedNode(node.node)


def is_observed(config: RunnableConfig) -> bool:
    """Return whether a tracer or another callback follows the run."""
    # Most runs have a callback manager without handlers.
    callbacks: Any = config.get("callbacks")
    return bool(getattr(callbacks, "handlers", callbacks))


_node_end: ContextVar[tuple[Any, Any] | None] = ContextVar("_node_end", default=None)
"""The state after a node that has just ended, and the settings of the run.

It is set while the node's update is written and its router is called.
"""


def note_node_end(state: Any, settings: Any) -> None:
    """Store the state after a node and the run's settings for the node's router."""
    if has_short_steps():
        _node_end.set((state, settings))


def node_end() -> tuple[Any, Any] | None:
    """Return the state and settings that the node before the router stored, or None."""
    return _node_end.get()


def _reader(usual: Callable[[RunnableConfig], Any]) -> Callable[[RunnableConfig], Any]:
    """Return a state reader for a router that skips LangGraph's copy of the whole state."""
    return lambda config: ended[0] if (ended := _node_end.get()) else usual(config)


class SyncFunction(Runnable[Any, Any]):
    """A pure function as a conditional edge or a node.

    Async graphs run it in place, not in a thread.

    Args:
        name: the name in traces and drawings.
        work: the function.
    """

    def __init__(self, name: str, work: Callable[[Any], Any]) -> None:
        self.name = name
        self._work = work

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        # ``get_runtime`` reads this variable. LangChain's own way creates a context and looks for
        # tracers, each time.
        token = var_child_runnable_config.set(config)
        try:
            return self._work(input)
        finally:
            var_child_runnable_config.reset(token)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return self.invoke(input, config)


class _UnobservedNode(Runnable[Any, Any]):
    """Run a node and its writers without LangChain's callbacks if none are registered.

    LangGraph's own sequence creates a traced run and an event loop task for each node.
    """

    def __init__(self, sequence: Any) -> None:
        self.name = sequence.name
        self._sequence = sequence

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        if config is None or is_observed(config):
            return await self._sequence.ainvoke(input, config, **kwargs)
        body, *writers = self._sequence.steps
        before = var_child_runnable_config.get()
        _node_end.set(None)
        # ``get_runtime`` reads this variable.
        var_child_runnable_config.set(config)
        try:
            output = await body.ainvoke(input, config)
        finally:
            # Do not reset by token: an abandoned run is cleaned up in another context, which would
            # refuse the token.
            var_child_runnable_config.set(before)
        try:
            for writer in writers:
                output = await writer.ainvoke(output, config)
        finally:
            # A nested graph may run in the same context, but its router reads another state.
            _node_end.set(None)
        return output

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return self._sequence.invoke(input, config, **kwargs)

    async def astream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        async for output in self._sequence.astream(input, config, **kwargs):
            yield output
