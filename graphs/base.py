"""The graph class of every protocol: its nodes know their settings, and run sync and async from one body."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Any, Generic

from langchain_core.runnables import Runnable, RunnableConfig, ensure_config
from langchain_core.runnables.config import set_config_context
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import get_runtime

from ..nodes.agent_runtime import AgentRuntime
from ..nodes.bound_judge import BoundJudge, Models, split_models
from ..nodes.sync_bridge import run_blocking
from ..state.graph_state import JudgeInput, JudgeOutput, JudgeState
from ..state.settings import SettingsT, make_settings
from .protocol_record import Protocol

Update = dict[str, Any]
Agent = Callable[[JudgeState, AgentRuntime[SettingsT]], Awaitable[Update]]
Router = Callable[[JudgeState, SettingsT], str]


class ProtocolGraph(StateGraph[JudgeState, Any, Any, Any], Generic[SettingsT]):
    """A LangGraph graph over the judges' state whose nodes and routers know the settings of the run.

    Each protocol wires its own, from ``prepare`` to ``conclude``, with ``agent`` for nodes, ``route`` for conditional
    edges, and LangGraph's own ``add_edge``.

    Attributes:
        protocol: what the rest of the package knows of the protocol.
        bound_judge: the settings that are bound to the graph, and the models behind its roles.
    """

    def __init__(
        self,
        protocol: Protocol[Any],
        settings_class: type[SettingsT],
        settings: SettingsT | Mapping[str, Any] | None = None,
        models: Models | None = None,
        fields: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(
            JudgeState, context_schema=settings_class, input_schema=JudgeInput, output_schema=JudgeOutput
        )
        given, own = split_models(models, fields or {})
        bound = make_settings(settings_class, settings, given)
        self.protocol = protocol
        self.bound_judge: BoundJudge[SettingsT] = BoundJudge(
            protocol.name, protocol.roles, bound, own, protocol.templates
        )

    def agent(self, name: str, body: Agent[SettingsT]) -> None:
        """Add a node: an async function of the state and the agents' runtime (settings, prompts, models)."""

        async def act(state: JudgeState) -> Update:
            runtime = get_runtime()
            return await body(state, await self.bound_judge.runtime(runtime.context, runtime.stream_writer))

        self.add_node(name, AsyncNode(name, act))

    def route(self, source: str, router: Router[SettingsT], targets: Mapping[str, str]) -> None:
        """Add a conditional edge: a pure function of the state and the settings names the outcome.

        Args:
            source: the node behind which the question is asked.
            router: returns the name of an outcome.
            targets: the next node for each outcome; drawings show the outcome on the edge.
        """

        def choose(state: JudgeState) -> str:
            return router(state, self.bound_judge.settings(get_runtime().context))

        nodes: dict[Hashable, str] = dict(targets.items())
        self.add_conditional_edges(source, SyncFunction(router.__name__, choose), nodes)


class AsyncNode(Runnable[Any, Any]):
    """An async function as a node of a graph that may also be run with ``.invoke()``."""

    def __init__(self, name: str, body: Callable[[Any], Awaitable[Any]]) -> None:
        self.name = name
        self._body = body

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return await self._body(input)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return run_blocking(self.ainvoke(input))


class SyncFunction(Runnable[Any, Any]):
    """A pure function as a conditional edge or a node. Async graphs run it in place, not in a thread."""

    def __init__(self, name: str, work: Callable[[Any], Any]) -> None:
        self.name = name
        self._work = work

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        with set_config_context(ensure_config(config)) as context:
            return context.run(self._work, input)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return self.invoke(input, config)


Graph = CompiledStateGraph[Any, Any, Any, Any]
