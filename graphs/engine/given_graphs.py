"""Reads the judges of a run as the caller gives them, and names and describes given graphs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.pregel.protocol import PregelProtocol

from ...nodes.runtime.bound_judge import BoundJudge
from ...state.checked import shortened
from ...state.errors import UsageError
from ...state.graph_state import JudgeOutput, JudgeState, outcome_of
from ...state.tasks import JudgeInput
from .base import Graph
from .nested import JudgeSlot, RemoteJudge, nested_judge_node
from .registry import AnyGraph, Given, NameOrGraph, built, judge_of, protocol_names
from .wrapper import Wrapper

Protocols = Given | Sequence[Given] | Mapping[str, Given]
"""One judge, several, or several with names of the caller's choice."""

NAMELESS = "graph"


def named(protocols: Protocols) -> dict[str, NameOrGraph]:
    """Return the judges by name, in order; a protocol that is given twice appears once.

    A text may begin with a name of the caller's choice: ``mine=mine.py:graph``.

    Raises:
        UsageError: no judge, an object that is not a judge, or two graphs with one name.
    """
    if isinstance(protocols, Mapping):
        pairs: list[tuple[str | None, Given]] = list(protocols.items())
    elif isinstance(protocols, Sequence) and not isinstance(protocols, str):
        pairs = [(None, judge) for judge in protocols]
    else:
        pairs = [(None, protocols)]
    if not pairs:
        raise UsageError(f"no protocol given; protocols are {', '.join(protocol_names())}")
    judges: dict[str, NameOrGraph] = {}
    sources: dict[str, Given] = {}
    for label, source in pairs:
        name = label
        given = source
        if name is None and isinstance(source, str) and "=" in source:
            name, given = (part.strip() for part in source.split("=", 1))
        judge = judge_of(given)
        called = name_of(judge) if name is None else name
        if (name, called) == (None, NAMELESS) and isinstance(given, str):
            called = Path(given.partition(":")[0]).stem  # the file's name
        # Two files may define protocols of the same name, of which the second replaces the first.
        if judges.setdefault(called, judge) != judge or sources.setdefault(called, given) != given:
            raise UsageError(
                f"two judges are named {called}: give them names, as in {{'a': ..., 'b': ...}}"
            )
        _check_name(called, judge)
    return judges


def load_graph(judge: Given, **settings: Any) -> PregelProtocol[Any, Any, Any, Any]:
    """Return the compiled graph of a judge that is known only at run time or comes from a file.

    Args:
        judge: a protocol's name or file (``mine.py``), or the graph in a file (``mine.py:graph``).
        **settings: settings of the protocol, and ``model`` or ``models``; a graph has its own
            already.

    Raises:
        UsageError: an unknown judge, or settings for a graph.
        InputError: an unknown setting or an invalid value.

    >>> load_graph("".join(["de", "bate"]), n=2).name
    'debate'
    """
    given = judge_of(judge)
    if isinstance(given, str):
        graph: Graph = built(given, **settings).compile(name=given)
        return graph
    if settings:
        name = next(iter(settings))
        raise UsageError(
            f"{name}: a graph has settings and models of its own; give them to its build()"
        )
    if isinstance(given, StateGraph):
        return given.compile(name=name_of(given))
    if not isinstance(given, PregelProtocol):
        raise UsageError(
            f"a judge must be the name of a protocol, or a graph, got {shortened(given)}"
        )
    return given


def name_of(judge: NameOrGraph | RemoteJudge) -> str:
    """Return a judge's own name.

    This is the name of the protocol or graph. A wrapper's name includes its judges. Without a name,
    return ``graph``.

    >>> from jurygraph.graphs import cascade, debate, repeated, single
    >>> name_of(cascade(single.build(), repeated(debate.build(), k=2)))
    'cascade-single-repeated-debate'
    """
    if isinstance(judge, str):
        return judge
    name = str(
        judge.get_name() if isinstance(judge, PregelProtocol) else getattr(judge, "name", "")
    )
    # LangGraph gives this name to graphs that are compiled without one.
    if name not in ("", "LangGraph"):
        return name
    builder = getattr(judge, "builder", judge)
    if bound := getattr(builder, "bound_judge", None):
        return str(bound.protocol)
    if isinstance(builder, Wrapper):
        inside = [name_of(slot.graph) for slot in builder.judges.slots.values()]
        return "-".join([builder.judges.bound.called, *inside])
    return NAMELESS


def _check_name(name: object, judge: NameOrGraph) -> None:
    if not isinstance(judge, str | StateGraph | PregelProtocol):
        given = shortened(judge)
        raise UsageError(f"{name}: a judge must be the name of a protocol, or a graph, got {given}")
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise UsageError(
            f"a judge needs a name in one line of text, as in {{'mine': graph}}; got {name!r}"
        )
    builder = getattr(judge, "builder", judge)
    bound = getattr(builder, "bound_judge", None)
    protocol = judge if isinstance(judge, str) else getattr(bound, "protocol", None)
    # Only the name identifies a graph that runs elsewhere.
    if name != protocol and isinstance(builder, str | StateGraph) and name in protocol_names():
        raise UsageError(
            f"{name} is the name of a protocol, but not of this judge: choose another name"
        )


def compiled(name: str, judge: AnyGraph) -> Graph:
    """Return a given graph under a name, without its checkpointer: a batch has no threads."""
    if isinstance(judge, StateGraph):
        return judge.compile(name=name)
    if isinstance(judge, CompiledStateGraph):
        return judge.copy(update={"checkpointer": None, "name": name})
    # A graph that runs elsewhere cannot be copied, so wrap it in a graph that can have a name.
    around = StateGraph(JudgeState, input_schema=JudgeInput, output_schema=JudgeOutput)
    slot = JudgeSlot(judge)
    asked = nested_judge_node(
        slot, lambda state: {"task": state["task"]}, lambda _, outcome: outcome_of(outcome)
    )
    around.add_node("judge", asked)
    around.add_edge(START, "judge")
    return around.compile(name=name)


def judges_of(graph: Any, place: str = "") -> dict[str, BoundJudge[Any]]:
    """Return the judges in a graph by their place; a protocol's own judge has the place ``""``."""
    bound = getattr(getattr(graph, "builder", None), "bound_judge", None)
    if bound is not None:
        return {place: bound}
    judges: dict[str, BoundJudge[Any]] = {}
    for name, inside in graph.get_subgraphs() if hasattr(graph, "get_subgraphs") else ():
        judges |= judges_of(inside, f"{place}.{name}".lstrip("."))
    return judges


def described(graph: Graph) -> dict[str, Any]:
    """Describe a graph: its arguments, and the settings of the judges in it.

    ``graph`` is a hash of the description and the drawing. For a graph from a file, the file's
    digest is added, because the drawing does not show what the graph's own nodes do.
    """
    judges = judges_of(graph)
    if "" in judges:
        bound: dict[str, Any] = judges[""].bound.model_dump(mode="json")
        return bound
    of_judges = ((place, judge.protocol, judge.bound) for place, judge in judges.items())
    settings = {
        place: {"protocol": name, **own.model_dump(mode="json")} for place, name, own in of_judges
    }
    known = {**getattr(graph.builder, "parameters", {}), **settings}
    shape = [known, graph.get_graph(xray=True).draw_mermaid()]
    # A graph from a file: its own nodes' code matters too.
    if digest := getattr(graph.builder, "source_digest", ""):
        shape.append(digest)
    drawn = json.dumps(shape, sort_keys=True, default=str)
    return {"graph": hashlib.sha256(drawn.encode()).hexdigest()[:8], **known}
