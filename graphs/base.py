"""The graph class of every protocol, and its nodes, which know their settings and run sync and async from one body.

A protocol wires its nodes and names its outcomes::

    graph.agent("judge", judge)                    one agent, asked by itself
    graph.agents("juror", juror)                   agents of one role, asked side by side, a task of the graph for each
    graph.route("judge", after_judge, {            the name of an outcome, and where it leads
        "another_round": each("advocate", advocates),
        "agreement": "mean_scores",
    })
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Hashable, Mapping, Sequence
from contextlib import nullcontext
from contextvars import ContextVar
from operator import itemgetter
from typing import Any, Generic, NamedTuple

from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.graph import END, START
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import get_runtime
from langgraph.types import Send

from ..nodes.agent_runtime import AgentRuntime
from ..nodes.bound_judge import BoundJudge, Models, begun_with, split_models
from ..nodes.models.send import replies_kept
from ..nodes.sync_bridge import run_blocking
from ..nodes.verdicts import (
    Decide,
    Details,
    Weigh,
    as_shown,
    complete,
    conclude,
    orders_shown,
    prepare,
    scores_of_roles,
)
from ..state.errors import UsageError
from ..state.graph_state import AgentState, JudgeOutput, JudgeState, updated
from ..state.protocols import Protocol
from ..state.settings import SettingsT, make_settings
from ..state.tasks import input_schema_of
from ..state.transcript import Score, TurnIds
from ..state.verdict import StopReason
from .judge_graph import JudgeGraphBuilder, SideBySide, context_of_run, labels_of
from .nested import JudgeSlot, nested_judge_node
from .registry import AnyGraph

SIDE_BY_SIDE = 64
"""The most agents that speak at once where a run's config sets no ``max_concurrency``.

LangGraph gives each task of a sync run a thread, and by default there are only a few more of them than processors.
"""

MANY_TURNS = 64
"""Of a debate with more turns it is checked whether it should have ended."""

Graph = CompiledStateGraph[Any, Any, Any, Any]
Update = dict[str, Any]
Agent = Callable[[Any, AgentRuntime[SettingsT]], Awaitable[Update]]
Router = Callable[[JudgeState, SettingsT], str]
ScoresByRound = Callable[[JudgeState], list[Score]]
"""Returns the score (or pair) after each round from the turns in a state."""


class FanOut(NamedTuple):
    """Name a node of agents who are asked side by side, and how to find out who they are."""

    node: str
    agents: Callable[[JudgeState, Any], Sequence[str]]


def each(node: str, agents: Callable[[JudgeState, Any], Sequence[str]]) -> FanOut:
    """Make the target of an outcome that has several agents speak at once, in every order of the answers.

    Args:
        node: a node that was added with ``agents``.
        agents: returns the names of those who speak now, from the state and the settings.
    """
    return FanOut(node, agents)


class ProtocolGraph(JudgeGraphBuilder, Generic[SettingsT]):
    """A LangGraph graph over the judges' state whose nodes and routers know the settings of the run.

    Each protocol wires its own, from ``prepare`` to ``conclude``, with ``agent`` and ``agents`` for nodes, ``route``
    for conditional edges, and LangGraph's own ``add_edge``.

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
        scores: ScoresByRound | None = None,
    ) -> None:
        super().__init__(
            JudgeState,
            context_schema=settings_class,
            input_schema=input_schema_of(protocol.kinds),
            output_schema=JudgeOutput,
        )
        given, own = split_models(models, fields or {})
        bound = make_settings(settings_class, settings, given)
        self.protocol = protocol
        self.bound_judge: BoundJudge[SettingsT] = BoundJudge(protocol, bound, own)
        self._counts_itself = scores is not None
        self._scores = scores or scores_of_roles(protocol.role_kinds)

    def agent(self, name: str, body: Agent[SettingsT], then: str | None = None) -> None:
        """Add a node that is asked by itself: an async function of the state and the agents' runtime.

        ``then`` is the node that always follows, if one does.
        """

        async def act(state: JudgeState) -> Update:
            if (START, name) in self.edges:
                # Nothing of an earlier run on the same thread counts, neither its turns nor its settings.
                begun = begun_with(type(self.bound_judge.bound), get_runtime().context)
                runtime = await self._runtime({"settings": begun}, begins=True)
                update = {**await body(state, runtime), "settings": begun}
                if (task := update.get("task")) is not None:
                    self.bound_judge.check_calls(runtime.settings, task["kind"])
                after = updated(state, update)
            else:
                current, runtime = self._current(state), await self._runtime(state)
                update = await body(current, runtime)
                after = updated(current, update)
                if after.get("transcript"):
                    after = self._scored(current, after, update.get("transcript") or ())
                    update = {**update, "scores": after["scores"], "round": after["round"]}
            _ended.set((after, runtime.settings))
            return update

        self.place(name, AsyncNode(name, act), then)

    def agents(self, name: str, body: Agent[SettingsT], then: str | None = None) -> None:
        """Add a node for agents who are asked side by side: its function is called for each, ``state["agent"]``.

        ``then`` is entered when all of them have spoken. An agent that fails is asked again alone when the graph is
        resumed: the others' calls are not cut short.
        """

        async def act(state: AgentState) -> Update:
            update = await body(state, await self._runtime(state))
            rounds = [turn["round"] for turn in update["transcript"]]
            return {**update, "round": max([state["round"], *rounds])}

        self.place(name, AsyncNode(name, act, one_of_several=True), then)

    def judge(self, name: str, graph: AnyGraph) -> None:
        """Add a node that is a judge's graph, drawn and streamed as a sub-graph: it judges the same task.

        What its agents say is said here, too; their names must differ from those of all others. A run's context reaches
        it where its settings are of the same class.
        """

        def heard(_state: JudgeState, outcome: JudgeOutput) -> Update:
            return {"transcript": outcome["transcript"]}

        slot = JudgeSlot(graph)
        self.add_node(name, nested_judge_node(slot, lambda state: {"task": state["task"]}, heard))

    def route(self, source: str, router: Router[SettingsT], targets: Mapping[str, str | FanOut]) -> None:
        """Add a conditional edge: a pure function of the state and the settings names the outcome.

        Args:
            source: the node behind which the question is asked. Behind ``agents`` it is asked once for each of them,
                who do not know each other's words yet: such a router may only look at the settings and the round.
            router: returns the name of an outcome.
            targets: the next node for each outcome, or ``each(...)``; drawings show the outcome on the edge.
        """
        traced = RunnableLambda[Any, str](lambda asked: router(*asked), name=router.__name__)
        nodes = {o: target.node if isinstance(target, FanOut) else target for o, target in targets.items()}
        labels = labels_of(nodes)

        def choose(state: JudgeState) -> str | list[Send]:
            if state.get("orders") is None:
                raise UsageError("this thread has no task yet: invoke the graph with a task first")
            if (ended := _ended.get()) is not None:
                asked = state, ended[1]
            else:
                # Agents side by side leave scores and round as they were, as ``update_state`` does, which has no
                # runtime.
                run = self.bound_judge.run(context_of_run(), state.get("settings"))
                asked = self._current(state), run.settings
            # Where somebody traces, the question is a run of its own, with its outcome.
            config = var_child_runnable_config.get() or {}
            outcome = traced.invoke(asked, config) if is_observed(config) else router(*asked)
            if len(state["transcript"]) > MANY_TURNS:
                self._check_end(*asked)
            if outcome not in targets:
                named = f"{router.__name__} named the outcome {outcome!r}, but the route behind {source}"
                raise UsageError(f"{named} has no target for it: its outcomes are {', '.join(targets)}")
            target = targets[outcome]
            return self._sends(target, *asked) if isinstance(target, FanOut) else labels[outcome]

        ends: dict[Hashable, str] = {labels[outcome]: node for outcome, node in nodes.items()}
        self.add_conditional_edges(source, SyncFunction(router.__name__, choose), ends)

    def begin(self, details: Details | None = None, then: str | None = None) -> None:
        """Add the node ``prepare``, with which every judgement begins; ``details`` are the protocol's own."""
        self.agent("prepare", prepare(self.protocol, details), then)
        self.add_edge(START, "prepare")

    def end(
        self,
        stop_reason: Callable[[JudgeState, Any], StopReason] = complete,
        decide: Decide | None = None,
        weigh: Weigh | None = None,
    ) -> None:
        """Add the node ``conclude``, which makes the verdict; arguments as for ``nodes.verdicts.conclude``."""
        self.agent("conclude", conclude(self.protocol, stop_reason, decide, weigh), END)

    def panel(
        self,
        name: str,
        body: Agent[SettingsT],
        agents: Callable[[JudgeState, Any], Sequence[str]],
        details: Details | None = None,
        decide: Decide | None = None,
        weigh: Weigh | None = None,
    ) -> None:
        """Wire a whole protocol: agents of one role who are asked once, in every order of the answers, and do not talk.

        Args:
            name: the agents' node; ``body`` as for ``agents``, ``details`` as for ``begin``, the others as for ``end``.
            agents: returns the names of those who are asked, from the state and the settings.
        """
        self.begin(details)
        self.agents(name, body, "conclude")
        self.end(decide=decide, weigh=weigh)
        asked = each(name, agents)
        self.route("prepare", orders_shown, {"one_order": asked, "both_orders": asked})

    def compile(self, *args: Any, **kwargs: Any) -> Graph:
        """Compile as LangGraph does, with room for all agents who are asked side by side in a sync run, too."""
        graph = super().compile(*args, **kwargs)
        lighten(graph)
        graph.config = {"max_concurrency": SIDE_BY_SIDE, **(graph.config or {})}
        return graph

    def _check_end(self, state: JudgeState, settings: SettingsT) -> None:
        """Check that a debate is no longer than its protocol says: one that never ends is paid for without end."""
        calls = sum(turn["calls"] for turn in state["transcript"])
        most = self.protocol.most_calls(settings, state["task"]["kind"])
        if calls > most * (2 + settings.repair):
            made = f"{self.protocol.name} has made {calls:,} calls, but its record declares at most {most:,}"
            raise UsageError(f"{made}: a router leads back forever, or `calls` declares too few")

    def _sends(self, target: FanOut, state: JudgeState, settings: SettingsT) -> list[Send]:
        """Send each agent what it is shown of the state, in every order of the answers."""
        agents, in_both_orders, sends = target.agents(state, settings), len(state["orders"]) > 1, []
        for order in state["orders"]:
            # With the swapped answers go the scores of that order.
            shown = self._current(as_shown(state, order)) if in_both_orders else state
            # Warnings and the verdict are nothing that an agent is shown; each payload is a checkpoint's to write.
            payload = {key: value for key, value in shown.items() if key not in ("warnings", "verdict")}
            if in_both_orders:
                payload["order"] = order
            sends += [Send(target.node, {**payload, "agent": agent}) for agent in agents]
        return sends

    async def _runtime(self, state: Mapping[str, Any], begins: bool = False) -> AgentRuntime[SettingsT]:
        """Return the runtime of the run, which goes on with the settings that the state says it was begun with."""
        runtime = get_runtime()
        turn_ids = TurnIds(state.get("transcript") or (), state.get("order"))
        return await self.bound_judge.runtime(
            runtime.context, runtime.stream_writer, turn_ids, state.get("settings"), begins
        )

    def _current(self, state: Any) -> Any:
        """Return the state with ``scores`` and ``round`` as they follow from the turns in it, edited ones included."""
        turns = state.get("transcript")
        if not turns:
            return state
        last = max(map(itemgetter("round"), turns))
        return {**state, "scores": self._scores(state), "round": max(state.get("round") or 0, last)}

    def _scored(self, before: JudgeState, after: JudgeState, new: Sequence[Mapping[str, Any]]) -> JudgeState:
        """Return the state behind a node with the scores and the round that its new turns lead to."""
        last = max([after.get("round") or 0, *(turn["round"] for turn in new if "round" in turn)])
        # Words without a score leave the scores as they were when the node began, unless a protocol counts by itself.
        if self._counts_itself or any(type(turn.get("value")) in (int, float, list) for turn in new):
            return {**after, "scores": self._scores(after), "round": last}
        return {**after, "scores": before.get("scores") or [], "round": last}


class AsyncNode(Runnable[Any, Any]):
    """An async function as a node of a graph that may also be run with ``.invoke()``.

    Attributes:
        name: of the node.
        body: the function.
        one_of_several: whether it runs for several agents at once, of whom one may fail.
    """

    def __init__(
        self, name: str, body: Callable[[Any], Coroutine[Any, Any, Any]], one_of_several: bool = False
    ) -> None:
        self.name, self.body, self.one_of_several = name, body, one_of_several

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        given = config or var_child_runnable_config.get() or {}
        thread = given.get("configurable", {}).get("thread_id")
        # Without a thread, nothing can be resumed.
        with nullcontext() if thread is None else replies_kept(thread):
            if not self.one_of_several:
                return await self.body(input)
            async with SideBySide(get_runtime()):
                return await self.body(input)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return run_blocking(self.ainvoke(input))


class SyncFunction(Runnable[Any, Any]):
    """A pure function as a conditional edge or a node. Async graphs run it in place, not in a thread.

    Args:
        name: what traces and drawings call it.
        work: the function.
    """

    def __init__(self, name: str, work: Callable[[Any], Any]) -> None:
        self.name = name
        self._work = work

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        # ``get_runtime`` looks here. LangChain's own way makes a context and asks for tracers, each time.
        token = var_child_runnable_config.set(config)
        try:
            return self._work(input)
        finally:
            var_child_runnable_config.reset(token)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return self.invoke(input, config)


# What LangGraph does at every step, and makes no difference where nobody watches


def is_observed(config: RunnableConfig) -> bool:
    """Tell whether a tracer or another callback follows the run."""
    # Most runs have a callback manager to which nobody listens.
    callbacks: Any = config.get("callbacks")
    return bool(getattr(callbacks, "handlers", callbacks))


def lighten(graph: Graph) -> None:
    """Have the steps of a compiled graph leave out what makes no difference to what they do."""
    for node in graph.nodes.values():
        for writer in node.writers:
            options = getattr(writer, "kwargs", {})
            if options.get("reader"):
                options["reader"] = _reader(options["reader"])
        if len(getattr(node.node, "steps", ())) > 1:
            # A cached property, from which every task of the node is made.
            vars(node)["node"] = UnobservedNode(node.node)


_ended: ContextVar[tuple[JudgeState, Any] | None] = ContextVar("_ended", default=None)
"""The state behind a node that has just ended, and the settings of the run.

Set while the update of the node is written and its router is asked.
"""


def _reader(usual: Callable[[RunnableConfig], Any]) -> Callable[[RunnableConfig], Any]:
    """Make what reads the state for a router; LangGraph copies and updates all that a graph holds for it."""
    return lambda config: ended[0] if (ended := _ended.get()) else usual(config)


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
        _ended.set(None)
        # ``get_runtime`` looks here.
        var_child_runnable_config.set(config)
        try:
            output = await body.ainvoke(input, config)
        finally:
            # Not by a token, which another context would refuse, in which a run that was left is cleared away.
            var_child_runnable_config.set(before)
        try:
            for writer in writers:
                output = await writer.ainvoke(output, config)
        finally:
            # A graph inside a node may run in the node's own context, whose router reads another state.
            _ended.set(None)
        return output

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return self._sequence.invoke(input, config, **kwargs)

    async def astream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        async for output in self._sequence.astream(input, config, **kwargs):
            yield output
