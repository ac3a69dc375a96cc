"""Puts a judge's graph into another graph as a node, in this process or elsewhere.

    the outer graph's node:   state --before--> judge's graph, with a context of its own --after--> update

A graph that runs elsewhere, such as LangGraph's ``RemoteGraph``, is called in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from types import ModuleType
from typing import Any

from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.runnables.config import merge_configs
from langgraph.errors import GraphInterrupt
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.pregel.protocol import PregelProtocol, StreamProtocol
from langgraph.runtime import get_runtime

from ...nodes.common.server_rules import within_run_time
from ...nodes.runtime.agent_runtime import heard_beside, marked_by_wrappers
from ...nodes.runtime.prompt_context import rubric_of_user
from ...state.checked import shortened
from ...state.errors import UsageError
from ...state.settings import Settings
from ...state.tasks import Rubric
from ...state.transcript import Turn
from ._langgraph import STREAM_OF_SUBGRAPHS, without_values
from .judge_graph import SettingsElsewhere, SideBySide, context_of_run, forwarded
from .registry import Given, built, judge_of

Compiled = CompiledStateGraph[Any, Any, Any, Any]


Judging = Callable[[], AbstractContextManager[Callable[[Any], None]]]


@contextmanager
def _uncounted() -> Iterator[Callable[[Any], None]]:
    yield lambda _outcome: None


class JudgeSlot:
    """A judge inside a wrapper that no run's context exchanges.

    It is a given graph (compiled or not), a protocol with its defaults, or a judge from
    ``create_judge``.

    Attributes:
        graph: its graph as drawn.
        rubric: the rubric that the wrapper's user chose; None for the rubric of the tasks or the
            caller.
        judging: a context for one judgement of a judge from ``create_judge``, whose model calls are
            counted and limited; it yields a function for the graph's output.
        context_schema: the context schema of the graph; a graph elsewhere takes any settings and
            checks them there.
    """

    def __init__(
        self, judge: Given, rubric: Rubric | None = None, judging: Judging | None = None
    ) -> None:
        """Resolve the judge.

        Raises:
            UsageError: it is neither a graph nor the name, file or module of a protocol.
        """
        # A judge from ``create_judge`` has a graph. A protocol's module has one too, but is used as
        # a module.
        given = judge_of(judge if isinstance(judge, ModuleType) else getattr(judge, "graph", judge))
        graph = built(given) if isinstance(given, str) else given
        compiled = graph.compile() if isinstance(graph, StateGraph) else graph
        if not isinstance(compiled, PregelProtocol):
            raise UsageError(
                "a judge must be a protocol's name, or a graph such as debate.build(), got "
                f"{shortened(judge)}"
            )
        here = compiled if isinstance(compiled, CompiledStateGraph) else None
        self.graph: Compiled | RemoteJudge = RemoteJudge(compiled) if here is None else here
        self.rubric = rubric
        own: Judging | None = getattr(judge, "judging", None)
        self.judging: Judging = judging or own or _uncounted
        schema = SettingsElsewhere if here is None else here.builder.context_schema
        self.context_schema: type[Any] | None = schema

    def choose(self, _context: object) -> tuple[Compiled | None, Settings | None]:
        """Return the graph and the context that a run's context chooses; None: unchanged."""
        return None, None


def nested_judge_node(  # noqa: PLR0913
    slot: JudgeSlot,
    before: Callable[[Any], Any],
    after: Callable[[Any, Any], Any],
    metadata: Callable[[Any, Mapping[str, Any]], dict[str, Any]] | None = None,
    mark: Callable[[Any, Turn], Turn] = lambda _state, turn: turn,
    *,
    once: bool = False,
    hear: Callable[[Any, Any], None] | None = None,
) -> RunnableLambda[Any, Any]:
    """Return a node (or a step of one) that runs a judge's graph, sync or async, as a sub-graph.

    Args:
        slot: the judge.
        before: makes the judge's input from the state.
        after: makes the update from the state and the judge's output.
        metadata: returns the marks for every call of the judge, from the state and the existing
            marks.
        mark: returns the turn to stream, from the state and the turn that the judge streams.
        once: do not stream turns that are already streamed as the judge's (``subgraphs=True``).
        hear: receives the state and each event with a turn that the judge streams. The judge's own
            state is then not streamed: chat clients take the state of a sub-graph for the outer
            one, and would lose its messages.
    """
    # LangGraph finds the sub-graph because both functions below refer to this variable.
    graph = slot.graph

    @contextmanager
    def asked(drawn: Compiled | RemoteJudge, state: Any, config: RunnableConfig) -> Iterator[Any]:
        """Yield the graph to run, its input and arguments, and a function for its output.

        Its turns are streamed with marks.
        """
        other, context = slot.choose(context_of_run())
        chosen = other or drawn
        marks = metadata(state, config.get("metadata") or {}) if metadata else {}
        arguments: dict[str, Any] = {"config": merge_configs(config, {"metadata": marks})}
        if hear:
            arguments["config"] = without_values(arguments["config"])
        # A graph that runs elsewhere decides itself whether a context is for it.
        if not isinstance(chosen, RemoteJudge):
            arguments["context"] = context
        given = before(state)
        heard = partial(hear, state) if hear else None
        marked = forwarded(lambda turn: mark(state, turn), once, heard)
        with marked, rubric_of_user(slot.rubric), slot.judging() as concluded:
            yield chosen, given, arguments, concluded

    def judge(state: Any, config: RunnableConfig) -> Any:
        with SideBySide(get_runtime()), asked(graph, state, config) as asking:
            chosen, given, arguments, concluded = asking
            outcome = chosen.invoke(given, **arguments)
            concluded(outcome)
        return after(state, outcome)

    async def ajudge(state: Any, config: RunnableConfig) -> Any:
        async with SideBySide(get_runtime()):
            with asked(graph, state, config) as (chosen, given, arguments, concluded):
                outcome = await chosen.ainvoke(given, **arguments)
                concluded(outcome)
        return after(state, outcome)

    return RunnableLambda(judge, ajudge)


# Judges that run elsewhere

OWN_STREAM = (STREAM_OF_SUBGRAPHS, "checkpoint_ns")
"""The keys of a config from which ``RemoteGraph`` streams into the caller's graph; not sent on."""


class RemoteJudge:
    """A judge's graph in another process, called like a compiled graph, with its turns streamed on.

    Every verdict is a run without a thread: a thread's name here means nothing there, and parallel
    runs would wait for each other on one thread. This class is not a ``Runnable``, so that
    LangGraph does not look for a state inside it.
    """

    def __init__(self, graph: PregelProtocol[Any, Any, Any, Any]) -> None:
        self.graph = graph
        self.name = str(graph.get_name())

    def invoke(self, given: Any, config: RunnableConfig) -> Any:
        outcome: Any = None
        with self._in_our_words():
            for part in self.graph.stream(given, **_streamed(config)):
                outcome = _heard(part, outcome)
        return self._verdict(outcome)

    async def ainvoke(self, given: Any, config: RunnableConfig) -> Any:
        outcome: Any = None
        with self._in_our_words():
            async with within_run_time(config):
                async for part in self.graph.astream(given, **_streamed(config)):
                    outcome = _heard(part, outcome)
        return self._verdict(outcome)

    @contextmanager
    def _in_our_words(self) -> Iterator[None]:
        """Add the judge's name to errors, and raise the caller's mistakes as ``UsageError``."""
        try:
            yield
        except GraphInterrupt:
            raise UsageError(
                f"{self.name} runs elsewhere and waits for a person, whose answer cannot be "
                "passed on from here: choose a setting without a pause, such as "
                "on_unresolved=last"
            ) from None
        except Exception as error:
            fault = error.args[0] if error.args and isinstance(error.args[0], Mapping) else {}
            if fault.get("error") in ("InputError", "UsageError"):
                raise UsageError(
                    f"{self.name}, which runs elsewhere: {fault['message']}"
                ) from error
            error.add_note(f"It happened in the judge {self.name}, which runs elsewhere.")
            raise

    def _verdict(self, outcome: Any) -> Any:
        if not (
            isinstance(outcome, Mapping) and outcome.get("verdict") and "transcript" in outcome
        ):
            raise UsageError(
                f"{self.name}, which runs elsewhere, returns no verdict, so it is not a judge"
            )
        return outcome


def _streamed(config: RunnableConfig) -> dict[str, Any]:
    """Return the stream options.

    LangGraph's servers refuse a thread's keys together with a context.
    """
    kept = {
        key: value for key, value in config.get("configurable", {}).items() if key in OWN_STREAM
    }
    if STREAM_OF_SUBGRAPHS in kept:
        kept[STREAM_OF_SUBGRAPHS] = _marking(kept[STREAM_OF_SUBGRAPHS])
    alone = {**config, "configurable": kept}
    context: object = get_runtime().context
    # The context of another graph, such as the parent's, is not for this one.
    sent = context.model_dump(mode="json") if isinstance(context, SettingsElsewhere) else None
    options = {"stream_mode": ["values", "custom"], "version": "v2"}
    return {"config": alone, "context": sent or None, **options}


def _heard(part: Any, before: Any) -> Any:
    """Stream a turn on and return the latest state."""
    if part["type"] == "custom" and (forward := heard_beside.get()) and _has_turn(part["data"]):
        forward(_marked_event(part["data"]))
    return part["data"] if part["type"] == "values" else before


def _marking(stream: Any) -> StreamProtocol:
    """Return a stream that marks the turns of a remote judge before it passes them on."""

    def send(chunk: Any) -> None:
        place, mode, data = chunk
        stream((place, mode, _marked_event(data) if mode == "custom" and _has_turn(data) else data))

    return StreamProtocol(send, stream.modes)


def _has_turn(event: Any) -> bool:
    return isinstance(event, Mapping) and "turn" in event


def _marked_event(event: Mapping[str, Any]) -> dict[str, Any]:
    return {**event, "turn": marked_by_wrappers(event["turn"])}
