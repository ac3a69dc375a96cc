"""Put a judge inside another graph: its graph is a node of that graph, in this process or elsewhere.

    the outer graph's node:   state --before--> judge's graph, with a context of its own --after--> update

A graph that runs elsewhere, such as behind LangGraph's ``RemoteGraph``, is asked as one in this process is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.runnables.config import merge_configs
from langgraph.errors import GraphInterrupt
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.pregel.protocol import PregelProtocol
from langgraph.runtime import get_runtime

from ..nodes.agent_runtime import heard_beside
from ..nodes.prompt_context import rubric_of_user
from ..state.checked import shortened
from ..state.errors import UsageError
from ..state.settings import Settings
from ..state.tasks import Rubric
from ..state.transcript import Turn
from .judge_graph import SUBGRAPHS, SettingsElsewhere, SideBySide, context_of_run, forwarded
from .registry import Given, built, judge_of

Compiled = CompiledStateGraph[Any, Any, Any, Any]


class JudgeSlot:
    """Hold a judge inside a wrapper, which no run's context exchanges.

    It is a given graph, compiled or not, a protocol as it is, or what ``create_judge`` made.

    Attributes:
        graph: its graph as drawn.
        rubric: what the wrapper's user has it judge by; None where that is the tasks' own, or the caller's.
        context_schema: of the graph; one that runs elsewhere takes any settings, and checks them there.
    """

    def __init__(self, judge: Given, rubric: Rubric | None = None) -> None:
        """Take the judge.

        Raises:
            UsageError: it is no graph, and no protocol's name, file or module.
        """
        # What ``create_judge`` made has its graph; so has a protocol's module, which is taken as it is.
        given = judge_of(judge if isinstance(judge, ModuleType) else getattr(judge, "graph", judge))
        graph = built(given) if isinstance(given, str) else given
        compiled = graph.compile() if isinstance(graph, StateGraph) else graph
        if not isinstance(compiled, PregelProtocol):
            wanted = "a protocol's name, or a graph such as debate.build()"
            raise UsageError(f"a judge must be {wanted}, got {shortened(judge)}")
        here = compiled if isinstance(compiled, CompiledStateGraph) else None
        self.graph: Compiled | RemoteJudge = RemoteJudge(compiled) if here is None else here
        self.rubric = rubric
        schema = SettingsElsewhere if here is None else here.builder.context_schema
        self.context_schema: type[Any] | None = schema

    def choose(self, _context: object) -> tuple[Compiled | None, Settings | None]:
        """Return the graph that a run's context asks for, and a context for it; None where neither changes."""
        return None, None


def nested_judge_node(
    slot: JudgeSlot,
    before: Callable[[Any], Any],
    after: Callable[[Any, Any], Any],
    metadata: Callable[[Any, Mapping[str, Any]], dict[str, Any]] | None = None,
    mark: Callable[[Any, Turn], Turn] = lambda _state, turn: turn,
    once: bool = False,
) -> RunnableLambda[Any, Any]:
    """Make a node (or a step of one) that runs a judge's graph; sync and async, and drawn as a sub-graph.

    Args:
        slot: the judge.
        before: makes the judge's input from the state.
        after: makes the update from the state and the judge's output.
        metadata: returns the marks that every call of the judge gets, from the state and the marks that are there.
        mark: returns a turn as it is streamed from here, from the state and the turn as the judge streams it.
        once: stream no turn from here that is streamed as the judge's already (``subgraphs=True``).
    """
    # A name in both functions below, which is how LangGraph finds out that it is a sub-graph.
    graph = slot.graph

    @contextmanager
    def asked(drawn: Compiled | RemoteJudge, state: Any, config: RunnableConfig) -> Iterator[Any]:
        """Give the graph to run, its input and the further arguments, while its turns are marked and streamed on."""
        other, context = slot.choose(context_of_run())
        chosen = other or drawn
        marks = metadata(state, config.get("metadata") or {}) if metadata else {}
        arguments: dict[str, Any] = {"config": merge_configs(config, {"metadata": marks})}
        # A graph that runs elsewhere finds out itself which context is for it.
        if not isinstance(chosen, RemoteJudge):
            arguments["context"] = context
        with forwarded(lambda turn: mark(state, turn), once), rubric_of_user(slot.rubric):
            yield chosen, before(state), arguments

    def judge(state: Any, config: RunnableConfig) -> Any:
        with SideBySide(get_runtime()), asked(graph, state, config) as (chosen, given, arguments):
            outcome = chosen.invoke(given, **arguments)
        return after(state, outcome)

    async def ajudge(state: Any, config: RunnableConfig) -> Any:
        async with SideBySide(get_runtime()):
            with asked(graph, state, config) as (chosen, given, arguments):
                outcome = await chosen.ainvoke(given, **arguments)
        return after(state, outcome)

    return RunnableLambda(judge, ajudge)


# Judges that run elsewhere

OWN_STREAM = (SUBGRAPHS, "checkpoint_ns")
"""What ``RemoteGraph`` takes from a config to stream as part of the caller's graph; it does not send it."""


class RemoteJudge:
    """Run a judge's graph that is not in this process, as a compiled graph is run; what it says is streamed on.

    Every verdict is a run without a thread: a thread's name here means nothing there, and runs side by side would wait
    for each other on one thread. It is no ``Runnable``, so that LangGraph does not look for a state inside it.
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
            async for part in self.graph.astream(given, **_streamed(config)):
                outcome = _heard(part, outcome)
        return self._verdict(outcome)

    @contextmanager
    def _in_our_words(self) -> Iterator[None]:
        """Say of an error that it comes from this judge; what the caller can mend is the caller's error here, too."""
        try:
            yield
        except GraphInterrupt:
            waits = "waits for a person, whose answer cannot be passed on from here"
            remedy = "choose a setting without a pause, such as on_unresolved=last"
            raise UsageError(f"{self.name} runs elsewhere and {waits}: {remedy}") from None
        except Exception as error:
            fault = error.args[0] if error.args and isinstance(error.args[0], Mapping) else {}
            if fault.get("error") in ("InputError", "UsageError"):
                raise UsageError(f"{self.name}, which runs elsewhere: {fault['message']}") from error
            error.add_note(f"It happened in the judge {self.name}, which runs elsewhere.")
            raise

    def _verdict(self, outcome: Any) -> Any:
        if not (isinstance(outcome, Mapping) and outcome.get("verdict") and "transcript" in outcome):
            raise UsageError(f"{self.name}, which runs elsewhere, returns no verdict, so it is not a judge")
        return outcome


def _streamed(config: RunnableConfig) -> dict[str, Any]:
    """Return the options of a stream; without a thread's keys, which LangGraph's servers refuse beside a context."""
    kept = {key: value for key, value in config.get("configurable", {}).items() if key in OWN_STREAM}
    alone = {**config, "configurable": kept}
    context: object = get_runtime().context
    # The context of another graph is not for this one: in a parent's graph it is the parent's.
    sent = context.model_dump(mode="json") if isinstance(context, SettingsElsewhere) else None
    options = {"stream_mode": ["values", "custom"], "version": "v2"}
    return {"config": alone, "context": sent or None, **options}


def _heard(part: Any, before: Any) -> Any:
    """Stream a turn on; return the latest state."""
    is_turn = part["type"] == "custom" and isinstance(part["data"], Mapping) and "turn" in part["data"]
    if is_turn and (forward := heard_beside.get()):
        forward(part["data"])
    return part["data"] if part["type"] == "values" else before
