"""The compiled graph of a protocol: LangGraph's own, whose state is updated as by the node that ran last."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import RunnableConfig
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


def _is_edit(snapshot: StateSnapshot) -> bool:
    return (snapshot.metadata or {}).get("source") in ("update", "fork")


def _only_node(before: StateSnapshot) -> str | None:
    """Return the node whose tasks led from this snapshot to the next one; None where LangGraph has to find out."""
    nodes = {task.name for task in before.tasks} - {START}
    return nodes.pop() if len(nodes) == 1 else None
