"""The compiled graph of a protocol: LangGraph's own, whose steps take less time, and whose state is updated as by the
node that ran last.

What is done here with parts of LangGraph that are not public falls back to its own way where they are not as expected.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.graph import START
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StateSnapshot


class JudgeGraph(CompiledStateGraph[Any, Any, Any, Any]):
    """A compiled graph whose agents, where several are asked side by side, are not asked again by an edit.

    LangGraph does not count tasks that were sent out when it looks for the node that an update without ``as_node``
    comes from. It takes the one before them, whose router would send them out anew.
    """

    def update_state(
        self,
        config: RunnableConfig,
        values: dict[str, Any] | Any | None,
        as_node: str | None = None,
        task_id: str | None = None,
    ) -> RunnableConfig:
        """Update the state as LangGraph does; without ``as_node``, as the node that ran last."""
        snapshot = self.get_state(config) if as_node is None else None
        while snapshot is not None and snapshot.parent_config is not None:
            parent = self.get_state(snapshot.parent_config)
            if not _is_edit(snapshot):
                as_node = _only_node(parent)
                break
            snapshot = parent
        return super().update_state(config, values, as_node, task_id)

    async def aupdate_state(
        self,
        config: RunnableConfig,
        values: dict[str, Any] | Any,
        as_node: str | None = None,
        task_id: str | None = None,
    ) -> RunnableConfig:
        """Update the state as ``update_state`` does."""
        snapshot = await self.aget_state(config) if as_node is None else None
        while snapshot is not None and snapshot.parent_config is not None:
            parent = await self.aget_state(snapshot.parent_config)
            if not _is_edit(snapshot):
                as_node = _only_node(parent)
                break
            snapshot = parent
        return await super().aupdate_state(config, values, as_node, task_id)


def is_observed(config: RunnableConfig) -> bool:
    """Tell whether a tracer or another callback follows the run."""
    # Most runs have a callback manager to which nobody listens.
    callbacks: Any = config.get("callbacks")
    return bool(getattr(callbacks, "handlers", callbacks))


def lighten(graph: CompiledStateGraph[Any, Any, Any, Any]) -> None:
    """Have the steps of a compiled graph leave out what makes no difference to what they do."""
    for node in graph.nodes.values():
        for writer in node.writers:
            options = getattr(writer, "kwargs", {})
            if options.get("reader"):
                options["reader"] = _router_state(options["reader"], [*graph.builder.channels])
        if len(getattr(node.node, "steps", ())) > 1:
            # A cached property, from which every task of the node is made.
            vars(node)["node"] = UnobservedNode(node.node)


class UnobservedNode(Runnable[Any, Any]):
    """Run a node and what writes its update, without LangChain's callbacks where nobody has registered any.

    LangGraph's own sequence of the two makes a run and a task of the event loop for each node, to be traced.
    """

    def __init__(self, sequence: Any) -> None:
        self.name = sequence.name
        self._sequence = sequence

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        if config is None or is_observed(config):
            return await self._sequence.ainvoke(input, config, **kwargs)
        body, *writers = self._sequence.steps
        before = var_child_runnable_config.get()
        # ``get_runtime`` looks here.
        var_child_runnable_config.set(config)
        try:
            output = await body.ainvoke(input, config)
        finally:
            # Not by a token, which another context would refuse, in which a run that was left is cleared away.
            var_child_runnable_config.set(before)
        for writer in writers:
            output = await writer.ainvoke(output, config)
        return output

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return self._sequence.invoke(input, config, **kwargs)

    async def astream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        async for output in self._sequence.astream(input, config, **kwargs):
            yield output


def _router_state(
    usual: Callable[[RunnableConfig], Any], keys: list[str]
) -> Callable[[RunnableConfig], dict[str, Any]]:
    """Make what reads the state for a router: as it will be after the update of the node that the router is behind.

    LangGraph copies and updates all that a graph holds for it; here, it is the keys that the node has written.
    """

    def state_after(config: RunnableConfig) -> Any:
        read: Any = config["configurable"]["__pregel_read"]
        if len(getattr(read, "args", ())) != 4:
            return usual(config)
        scratchpad, channels, managed, task = read.args
        written = {channel: channels[channel] for channel, _ in task.writes if channel in keys}
        return {**read(keys), **read.func(scratchpad, written, managed, task, [*written], fresh=True)}

    return state_after


def _is_edit(snapshot: StateSnapshot) -> bool:
    return (snapshot.metadata or {}).get("source") in ("update", "fork")


def _only_node(before: StateSnapshot) -> str | None:
    """Return the node whose tasks led from this snapshot to the next one; None where LangGraph has to find out."""
    nodes = {task.name for task in before.tasks} - {START}
    return nodes.pop() if len(nodes) == 1 else None
