"""The graph class of every protocol, whose nodes run sync and async from the same function.

A protocol wires its nodes and names its outcomes::

    graph.agent("judge", judge)                    one agent, asked by itself
    graph.agents("juror", juror)                   agents of one role, asked side by side, a task of the graph for each
    graph.route("judge", after_judge, {            the name of an outcome, and where it leads
        "another_round": each("advocate", advocates),
        "agreement": "mean_scores",
    })
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Hashable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from operator import itemgetter
from typing import Any, ClassVar, Generic, NamedTuple, Unpack, cast

from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.graph import END, START
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import get_runtime
from langgraph.types import Send
from typing_extensions import TypedDict

from ...nodes.common.server_rules import within_run_time
from ...nodes.common.sync_bridge import run_blocking
from ...nodes.models.send import is_refused, replies_kept
from ...nodes.runtime.agent_runtime import AgentRuntime
from ...nodes.runtime.bound_judge import (
    BoundJudge,
    Models,
    begun_with,
    split_models,
    split_replacements,
)
from ...nodes.runtime.recusal import authors_of, recuses
from ...nodes.runtime.verdicts import (
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
from ...state.errors import ModelCallError, ReplyError, UsageError
from ...state.graph_state import AgentState, JudgeOutput, JudgeState, Outcome, updated
from ...state.panels import Quorum, without_missing
from ...state.protocols import Protocol
from ...state.settings import SeatSettings, SettingsT, make_settings
from ...state.tasks import input_schema_of
from ...state.transcript import Score, Turn, TurnIds
from ...state.verdict import StopReason
from ._langgraph import (
    SyncFunction,
    config_of_task,
    is_observed,
    node_end,
    note_node_end,
    shorten_steps,
)
from .judge_graph import JudgeGraphBuilder, SideBySide, context_of_run, labels_of
from .nested import JudgeSlot, nested_judge_node
from .panel_rules import Names, PanelRules
from .registry import AnyGraph

SIDE_BY_SIDE = 64
"""The maximum number of simultaneous agents if a run's config sets no ``max_concurrency``.

LangGraph runs each task of a sync run in a thread. Its default allows only slightly more threads
than processors.
"""

MANY_TURNS = 64
"""Debates with more turns are checked against the number of calls that their protocol declares."""

Graph = CompiledStateGraph[Any, Any, Any, Any]
Update = dict[str, Any]
Agent = Callable[[Any, AgentRuntime[SettingsT]], Awaitable[Update]]
Router = Callable[[JudgeState, SettingsT], str]
ScoresByRound = Callable[[JudgeState], list[Score]]
"""Returns the score (or pair) after each round from the turns in a state."""


class FanOut(NamedTuple):
    """A node of agents that are asked side by side, and the function that returns their names."""

    node: str
    agents: Names


def each(node: str, agents: Names) -> FanOut:
    """Return a target that has several agents speak at once, in every order of the answers.

    Args:
        node: a node that was added with ``agents``.
        agents: returns the names of the agents that speak now, from the state and the settings.
    """
    return FanOut(node, agents)


class Ending(TypedDict, total=False):
    """The functions that turn a panel's turns into a verdict."""

    decide: Decide
    weigh: Weigh


class ProtocolGraph(JudgeGraphBuilder, Generic[SettingsT]):
    """A LangGraph graph over the judges' state whose nodes and routers receive the run's settings.

    Each protocol wires its own graph from ``prepare`` to ``conclude``: ``agent`` and ``agents`` add
    nodes, ``route`` adds conditional edges, and LangGraph's own ``add_edge`` adds the others.

    Attributes:
        protocol: the record of the protocol.
        bound_judge: the bound settings, and the models of the roles.
        state_class: the state; a subclass may have a larger one.
        output_class: the output; a subclass may have another one.
    """

    state_class: ClassVar[type[JudgeState]] = JudgeState
    output_class: ClassVar[type[Any]] = JudgeOutput

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
            self.state_class,
            context_schema=settings_class,
            input_schema=protocol.input_schema or input_schema_of(protocol.kinds),
            output_schema=self.output_class,
        )
        given, own = split_models(models, fields or {})
        given, replacements = split_replacements(given)
        if isinstance(settings, Mapping):
            settings, of_settings = split_replacements(settings)
            # Settings given by name override the others.
            replacements = replacements if "replacements" in given else of_settings
        bound = make_settings(settings_class, settings, given)
        self.protocol = protocol
        self.bound_judge: BoundJudge[SettingsT] = BoundJudge(protocol, bound, own, replacements)
        self._counts_itself = scores is not None
        self._scores = scores or scores_of_roles(protocol.role_kinds)
        self._panels: dict[str, PanelRules[SettingsT]] = {}
        self._asked: dict[str, list[Names]] = {}

    def agent(self, name: str, body: Agent[SettingsT], then: str | None = None) -> None:
        """Add a node for a single agent: an async function of the state and the agents' runtime.

        ``then`` is the node that always follows, if there is one.
        """

        async def act(state: JudgeState) -> Update:
            if (START, name) in self.edges:
                # A new run ignores turns and settings of an earlier run on the same thread.
                begun = begun_with(type(self.bound_judge.bound), get_runtime().context)
                runtime = await self._runtime({"settings": begun}, begins=True)
                update = {**await body(state, runtime), "settings": begun}
                if (task := update.get("task")) is not None:
                    self.bound_judge.check_calls(runtime.settings, task["kind"])
                after = updated(state, update)
            else:
                current = self._current(state)
                runtime = await self._runtime(state)
                self._check_panels(current, runtime.settings)
                update = await body(current, runtime)
                after = updated(current, update)
                if after.get("transcript"):
                    after = self._scored(current, after, update.get("transcript") or ())
                    update = {**update, "scores": after["scores"], "round": after["round"]}
                if verdict := update.get("verdict"):
                    # With both orders, the verdict averages each order's rounds. The output must
                    # agree with it.
                    update = {
                        **update,
                        "scores": verdict["score_by_round"],
                        "round": verdict["rounds"],
                    }
            note_node_end(after, runtime.settings)
            return update

        self.place(name, AsyncNode(name, act), then)

    def agents(
        self,
        name: str,
        body: Agent[SettingsT],
        then: str | None = None,
        quorum: Quorum | Callable[[SettingsT], Quorum] | PanelRules[SettingsT] | None = None,
    ) -> None:
        """Add a node for agents that are asked side by side; ``state["agent"]`` is each one's name.

        ``then`` is entered when all of them have spoken. If an agent fails, the others' calls are
        completed. A resumed graph asks only the failed agent again.

        With a quorum, the agents are a panel that can do without some members. A member fails if
        its reply is a refusal, was cut off or cannot be read after its repair, or if the provider
        refuses its call permanently. It leaves a turn without a value, which contains the reason.
        The next single agent checks that enough members have voted. Other errors are raised as
        without a quorum: temporary errors (rate limits, lost connections), budgets, cancellation
        and bugs.

        If the settings are ``PanelSettings`` with ``replacements``, the first of these models that
        is not the failed one takes the member's seat, once, and keeps it in later rounds. It is
        asked the same question, and its turns have ``replaces``. If it fails too, the member is
        missing with both reasons. With ``recuse="family"``, a member whose family wrote one of the
        texts is not asked, and is replaced or missing like one whose call failed.

        Args:
            name: the node's name.
            body: asks one agent.
            then: the next node.
            quorum: ``majority``, ``all``, a number, or a function that returns one of them from the
                settings; a ``PanelRules`` has further rules, for example for a discussion of several
                rounds. With ``all``, the first failure is raised, and a resumed graph asks that
                member again. The members are the agents that ``route`` sends, counted once even if
                they are asked in both orders of the answers.
        """
        panel = quorum if isinstance(quorum, PanelRules) or quorum is None else PanelRules(quorum)
        if panel is not None:
            self._panels[name] = panel

        async def act(state: AgentState) -> Update:
            runtime = await self._runtime(state)
            if panel is not None and recuses(runtime.settings):
                runtime = replace(runtime, authors=authors_of(state["task"]))
            before: list[Turn] = []
            replaces: str | None = None
            if (seat := _replaced_turn(state)) and (
                other := runtime.replaced(seat["role"], seat["agent"])
            ):
                runtime = other
                replaces = seat["replaces"]
            while True:
                try:
                    update = await body(state, runtime)
                    break
                except (ReplyError, ModelCallError) as error:
                    if panel is None:
                        raise
                    if isinstance(error, ModelCallError) and not is_refused(error):
                        raise
                    failed = runtime.turns_without_vote(error)
                    # A seat is replaced once.
                    other = (
                        None if replaces else runtime.replaced(failed[0]["role"], state["agent"])
                    )
                    if other is None:
                        if panel.raises(error, runtime.settings):
                            raise
                        update = {"transcript": failed}
                        break
                    before = failed
                    replaces = str(failed[0]["model"])
                    runtime = other
            if replaces is not None:
                taken = [cast("Turn", {**t, "replaces": replaces}) for t in update["transcript"]]
                update = {**update, "transcript": [*before, *taken]}
            rounds = [turn["round"] for turn in update["transcript"]]
            return {**update, "round": max([state["round"], *rounds])}

        self.place(name, AsyncNode(name, act, one_of_several=True), then)

    def judge(self, name: str, graph: AnyGraph) -> None:
        """Add a judge's graph as a node; it judges the same task as a sub-graph.

        Its turns become part of this graph's transcript, so its agents need names of their own. A
        run's context reaches the judge if its settings have the same class.
        """

        def heard(_state: JudgeState, outcome: Outcome) -> Update:
            return {"transcript": outcome["transcript"]}

        slot = JudgeSlot(graph)
        self.add_node(name, nested_judge_node(slot, lambda state: {"task": state["task"]}, heard))

    def route(
        self, source: str, router: Router[SettingsT], targets: Mapping[str, str | FanOut]
    ) -> None:
        """Add a conditional edge: a pure function of state and settings returns an outcome.

        Args:
            source: the node before the edge. After ``agents``, the router runs once for each of
                them, before their turns are merged: it may only use the settings and the round.
            router: returns the name of an outcome.
            targets: the next node for each outcome, or ``each(...)``; drawings label the edge with
                the outcome.
        """
        traced = RunnableLambda[Any, str](lambda asked: router(*asked), name=router.__name__)
        nodes = {
            o: target.node if isinstance(target, FanOut) else target
            for o, target in targets.items()
        }
        labels = labels_of(nodes)
        for target in targets.values():
            if isinstance(target, FanOut):
                self._asked.setdefault(target.node, []).append(target.agents)

        def choose(state: JudgeState) -> str | list[Send]:
            if state.get("orders") is None:
                raise UsageError("this thread has no task yet: invoke the graph with a task first")
            if (ended := node_end()) is not None:
                asked = state, ended[1]
            else:
                # Parallel agents leave scores and round unchanged, and so does ``update_state``,
                # which has no runtime.
                run = self.bound_judge.run(context_of_run(), state.get("settings"))
                asked = self._current(state), run.settings
            # If the run is traced, the router is a traced run of its own with its outcome.
            config = config_of_task()
            outcome = traced.invoke(asked, config) if is_observed(config) else router(*asked)
            if len(state["transcript"]) > MANY_TURNS:
                self._check_end(*asked)
            if outcome not in targets:
                raise UsageError(
                    f"{router.__name__} named the outcome {outcome!r}, but the route behind "
                    f"{source} has no target for it: its outcomes are {', '.join(targets)}"
                )
            target = targets[outcome]
            return self._sends(target, *asked) if isinstance(target, FanOut) else labels[outcome]

        ends: dict[Hashable, str] = {labels[outcome]: node for outcome, node in nodes.items()}
        self.add_conditional_edges(source, SyncFunction(router.__name__, choose), ends)

    def begin(self, details: Details | None = None, then: str | None = None) -> None:
        """Add the node ``prepare``, which begins every run, with the protocol's ``details``."""
        self.agent("prepare", prepare(self.protocol, details), then)
        self.add_edge(START, "prepare")

    def end(
        self,
        stop_reason: Callable[[JudgeState, Any], StopReason] = complete,
        decide: Decide | None = None,
        weigh: Weigh | None = None,
    ) -> None:
        """Add the node ``conclude``, which makes the verdict.

        Arguments as for ``nodes.verdicts.conclude``.
        """
        self.agent("conclude", conclude(self.protocol, stop_reason, decide, weigh), END)

    def panel(
        self,
        name: str,
        body: Agent[SettingsT],
        agents: Names,
        details: Details | None = None,
        quorum: Quorum | Callable[[SettingsT], Quorum] | PanelRules[SettingsT] | None = None,
        **ending: Unpack[Ending],
    ) -> None:
        """Wire a protocol of one role, whose agents are asked once in every order of the answers.

        Args:
            name: the name of the agents' node.
            body: asks one agent, as in ``agents``.
            agents: returns the agents' names from the state and the settings.
            details: as in ``begin``.
            quorum: the number of members that must vote, as in ``agents``.
            **ending: ``decide`` and ``weigh``, as in ``end``.
        """
        self.begin(details)
        self.agents(name, body, "conclude", quorum)
        self.end(**ending)
        asked = each(name, agents)
        self.route("prepare", orders_shown, {"one_order": asked, "both_orders": asked})

    def compile(self, *args: Any, **kwargs: Any) -> Graph:
        """Compile as LangGraph does, with room for all parallel agents in sync runs too."""
        graph = super().compile(*args, **kwargs)
        shorten_steps(graph)
        graph.config = {"max_concurrency": SIDE_BY_SIDE, **(graph.config or {})}
        return graph

    def _check_end(self, state: JudgeState, settings: SettingsT) -> None:
        """Check that a debate makes no more calls than its protocol declares."""
        calls = sum(turn["calls"] for turn in state["transcript"])
        most = self.protocol.most_calls(settings, state["task"]["kind"])
        seats = 2 if isinstance(settings, SeatSettings) and settings.replacements else 1
        if calls > most * (2 + settings.repair) * seats:
            raise UsageError(
                f"{self.protocol.name} has made {calls:,} "
                f"calls, but its record declares at most {most:,}: "
                "a router leads back forever, or `calls` declares too few"
            )

    def _check_panels(self, state: JudgeState, settings: SettingsT) -> None:
        """Check that enough members of each panel that has been asked have voted."""
        # A panel's members may not be known before it is asked.
        if not any("problem" in turn for turn in state["transcript"]):
            return
        for node, panel in self._panels.items():
            panel.check_votes(state, settings, self._members(node, state, settings))

    def _members(self, node: str, state: JudgeState, settings: SettingsT) -> list[str]:
        members = self._panels[node].members
        asked = self._asked.get(node, ()) if members is None else [members]
        return [*dict.fromkeys(agent for agents in asked for agent in agents(state, settings))]

    def _sends(self, target: FanOut, state: JudgeState, settings: SettingsT) -> list[Send]:
        """Send each agent its part of the state, in every order of the answers."""
        agents = target.agents(state, settings)
        in_both_orders = len(state["orders"]) > 1
        sends = []
        if (panel := self._panels.get(target.node)) is not None:
            panel.check_size(settings, self._members(target.node, state, settings))
        for order in state["orders"]:
            # Scores belong to an order, so pass the scores of the order that is shown.
            shown = self._current(as_shown(state, order)) if in_both_orders else state
            # Agents do not see warnings and the verdict, and each payload is stored in a
            # checkpoint.
            payload = {
                key: value for key, value in shown.items() if key not in ("warnings", "verdict")
            }
            if in_both_orders:
                payload["order"] = order
            sends += [Send(target.node, {**payload, "agent": agent}) for agent in agents]
        return sends

    async def _runtime(
        self, state: Mapping[str, Any], begins: bool = False
    ) -> AgentRuntime[SettingsT]:
        """Return the runtime of the run, with the settings that the state recorded at its start."""
        runtime = get_runtime()
        turn_ids = TurnIds(state.get("transcript") or (), state.get("order"))
        return await self.bound_judge.runtime(
            runtime.context, runtime.stream_writer, turn_ids, state.get("settings"), begins
        )

    def _current(self, state: Any) -> Any:
        """Return the state with ``scores`` and ``round`` from its turns, edited or not."""
        turns = state.get("transcript")
        if not turns:
            return state
        last = max(map(itemgetter("round"), turns))
        if self._panels:
            state = {**state, "transcript": without_missing(turns)}
        return {**state, "scores": self._scores(state), "round": max(state.get("round") or 0, last)}

    def _scored(
        self, before: JudgeState, after: JudgeState, new: Sequence[Mapping[str, Any]]
    ) -> JudgeState:
        """Return the state after a node with the scores and the round from its new turns."""
        last = max([after.get("round") or 0, *(turn["round"] for turn in new if "round" in turn)])
        # Turns without a score leave the scores unchanged, unless the protocol counts scores
        # itself.
        if self._counts_itself or any(
            type(turn.get("value")) in (int, float, list) for turn in new
        ):
            return {**after, "scores": self._scores(after), "round": last}
        return {**after, "scores": before.get("scores") or [], "round": last}


def _replaced_turn(state: AgentState) -> Turn | None:
    """Return an earlier turn of another model in the agent's seat, or None."""
    turns = state.get("transcript") or ()
    taken = (turn for turn in turns if turn["agent"] == state["agent"] and "replaces" in turn)
    return next(taken, None)


class AsyncNode(Runnable[Any, Any]):
    """An async function as a node of a graph that may also be run with ``.invoke()``.

    Attributes:
        name: the node's name.
        body: the function.
        one_of_several: whether it runs for several agents at once, of which one may fail.
    """

    def __init__(
        self,
        name: str,
        body: Callable[[Any], Coroutine[Any, Any, Any]],
        one_of_several: bool = False,
    ) -> None:
        self.name = name
        self.body = body
        self.one_of_several = one_of_several

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        given = config or config_of_task()
        thread = given.get("configurable", {}).get("thread_id")
        # Without a thread, nothing can be resumed.
        with nullcontext() if thread is None else replies_kept(thread):
            if not self.one_of_several:
                async with within_run_time(given):
                    return await self.body(input)
            async with SideBySide(get_runtime()), within_run_time(given):
                return await self.body(input)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return run_blocking(self.ainvoke(input))
