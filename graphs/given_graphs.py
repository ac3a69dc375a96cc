"""Take the judges of a run as they are given: names of protocols, and graphs, which are named and described here."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.pregel.protocol import PregelProtocol

from ..nodes.bound_judge import BoundJudge
from ..state.checked import shortened
from ..state.errors import UsageError
from ..state.graph_state import JudgeOutput, JudgeState
from ..state.tasks import JudgeInput
from .base import Graph
from .nested import JudgeSlot, RemoteJudge, nested_judge_node
from .registry import AnyGraph, Given, NameOrGraph, built, judge_of, protocol_names
from .wrapper import Wrapper

Protocols = Given | Sequence[Given] | Mapping[str, Given]
"""One judge, several, or several by names of the caller's choice."""

NAMELESS = "graph"


def named(protocols: Protocols) -> dict[str, NameOrGraph]:
    """Return the judges by name, in their order; a protocol that is named twice is there once.

    A text may begin with a name of the caller's choice: ``mine=mine.py:graph``.

    Raises:
        UsageError: there is none, something that is no judge, or two graphs of one name.
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
        name, given = label, source
        if name is None and isinstance(source, str) and "=" in source:
            name, given = (part.strip() for part in source.split("=", 1))
        judge = judge_of(given)
        called = name_of(judge) if name is None else name
        if (name, called) == (None, NAMELESS) and isinstance(given, str):
            called = Path(given.partition(":")[0]).stem  # of a nameless graph of a file, the file's
        # The protocols of two files may have one name, and be registered under it one after the other.
        if judges.setdefault(called, judge) != judge or sources.setdefault(called, given) != given:
            raise UsageError(f"two judges are named {called}: give them names, as in {{'a': ..., 'b': ...}}")
        _check_name(called, judge)
    return judges


def load_graph(judge: Given, **settings: Any) -> PregelProtocol[Any, Any, Any, Any]:
    """Return the compiled graph of a judge that is known only at run time, or that another package or a file defines.

    Args:
        judge: a protocol's name or file (``mine.py``), or the graph in a file (``mine.py:graph``).
        **settings: settings of the protocol, and ``model`` or ``models``; a graph has its own already.

    Raises:
        UsageError: there is no such judge, or it is a graph, and settings were given.
        InputError: a setting that does not exist or cannot be so.

    >>> load_graph("".join(["de", "bate"]), n=2).name
    'debate'
    """
    given = judge_of(judge)
    if isinstance(given, str):
        graph: Graph = built(given, **settings).compile(name=given)
        return graph
    if settings:
        name = next(iter(settings))
        raise UsageError(f"{name}: a graph has settings and models of its own; give them to its build()")
    if isinstance(given, StateGraph):
        return given.compile(name=name_of(given))
    if not isinstance(given, PregelProtocol):
        raise UsageError(f"a judge must be the name of a protocol, or a graph, got {shortened(given)}")
    return given


def name_of(judge: NameOrGraph | RemoteJudge) -> str:
    """Return the name that a judge has by itself.

    It is the protocol's or the graph's; a wrapper's says what is inside; ``graph`` where nothing says more.

    >>> from jurygraph.graphs import cascade, debate, repeated, single
    >>> name_of(cascade(single.build(), repeated(debate.build(), k=2)))
    'cascade-single-repeated-debate'
    """
    if isinstance(judge, str):
        return judge
    name = str(judge.get_name() if isinstance(judge, PregelProtocol) else getattr(judge, "name", ""))
    # LangGraph's own name for a graph that was compiled without one says nothing.
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
        raise UsageError(f"a judge needs a name in one line of text, as in {{'mine': graph}}; got {name!r}")
    builder = getattr(judge, "builder", judge)
    bound = getattr(builder, "bound_judge", None)
    protocol = judge if isinstance(judge, str) else getattr(bound, "protocol", None)
    # What a graph that runs elsewhere is, its name alone tells.
    if name != protocol and isinstance(builder, str | StateGraph) and name in protocol_names():
        raise UsageError(f"{name} is the name of a protocol, but not of this judge: choose another name")


def compiled(name: str, judge: AnyGraph) -> Graph:
    """Return a given graph under a name, without a memory of its own: a batch has no threads."""
    if isinstance(judge, StateGraph):
        return judge.compile(name=name)
    if isinstance(judge, CompiledStateGraph):
        return judge.copy(update={"checkpointer": None, "name": name})
    # What runs elsewhere cannot be copied, so it is put into a graph that can be named.
    around = StateGraph(JudgeState, input_schema=JudgeInput, output_schema=JudgeOutput)
    slot = JudgeSlot(judge)
    asked = nested_judge_node(slot, lambda state: {"task": state["task"]}, lambda _, outcome: outcome)
    around.add_node("judge", asked)
    around.add_edge(START, "judge")
    return around.compile(name=name)


def judges_of(graph: Any, place: str = "") -> dict[str, BoundJudge[Any]]:
    """Return the judges in a graph by their place in it; one that is a protocol's own is at ``""``."""
    bound = getattr(getattr(graph, "builder", None), "bound_judge", None)
    if bound is not None:
        return {place: bound}
    judges: dict[str, BoundJudge[Any]] = {}
    for name, inside in graph.get_subgraphs() if hasattr(graph, "get_subgraphs") else ():
        judges |= judges_of(inside, f"{place}.{name}".lstrip("."))
    return judges


def described(graph: Graph) -> dict[str, Any]:
    """Describe a graph as far as it can be known: what it was given, and the settings of the judges in it.

    ``graph`` is a hash of that and of its drawing; what its own nodes do, only the file tells that it was loaded from.
    """
    judges = judges_of(graph)
    if "" in judges:
        bound: dict[str, Any] = judges[""].bound.model_dump(mode="json")
        return bound
    of_judges = ((place, judge.protocol, judge.bound) for place, judge in judges.items())
    settings = {place: {"protocol": name, **own.model_dump(mode="json")} for place, name, own in of_judges}
    known = {**getattr(graph.builder, "parameters", {}), **settings}
    shape = [known, graph.get_graph(xray=True).draw_mermaid()]
    # Of a graph of a file also what its own nodes do.
    if digest := getattr(graph.builder, "source_digest", ""):
        shape.append(digest)
    drawn = json.dumps(shape, sort_keys=True, default=str)
    return {"graph": hashlib.sha256(drawn.encode()).hexdigest()[:8], **known}
