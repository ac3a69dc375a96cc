"""Draw a protocol's graph as Mermaid text, or as an SVG picture that every viewer can show."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterable, Mapping
from typing import Any
from xml.etree import ElementTree

from langchain_core.runnables.graph import Edge, Graph

from ...graphs.engine.given_graphs import compiled, load_graph, name_of
from ...graphs.engine.registry import built, find_protocol, judge_of
from ...graphs.engine.wrapper import all_judges
from ...state.errors import UsageError
from ...state.protocols import Protocol

_SVG = "http://www.w3.org/2000/svg"

# The sizes of boxes depend on this font's letter widths; the other fonts are about as wide.
_FONT = "DejaVu Sans, Verdana, sans-serif"
_CONFIG: dict[str, Any] = {
    "config": {
        # By default Mermaid uses HTML for text, which only browsers show.
        "htmlLabels": False,
        "fontFamily": _FONT,
        "theme": "base",
        "themeVariables": {
            "fontFamily": _FONT,
            "primaryColor": "#f2f0ff",
            "primaryBorderColor": "#9a8fd0",
            "clusterBkg": "#fbfbff",
            "clusterBorder": "#b9b3d9",
            "edgeLabelBackground": "#ffffff",
        },
        "themeCSS": ".edgeLabel rect{opacity:1!important}",
        "flowchart": {
            "htmlLabels": False,
            # A size in pixels, instead of the width of a page's column.
            "useMaxWidth": False,
            "curve": "linear",
            "nodeSpacing": 80,
            "rankSpacing": 60,
            "wrappingWidth": 400,
        },
    }
}
"""Mermaid's settings for pictures of graphs."""
ElementTree.register_namespace("", _SVG)


def mermaid(
    protocol: str, settings: Mapping[str, Any] | None = None, config: dict[str, Any] | None = None
) -> str:
    """Draw a protocol's graph as Mermaid text, which many editors and sites show as a picture.

    Args:
        protocol: a protocol's name, or a file.
        settings: the protocol's settings; they determine the number of agents at a node, and the
            graphs in a wrapper. The drawing leaves out what they exclude. Without settings, it has
            all nodes, because every setting can still change.
        config: Mermaid's settings.

    Raises:
        UsageError: no such protocol, or settings for a compiled graph, which has its own.
        InputError: an unknown setting, with the nearest name, or an invalid value.

    >>> "human" in mermaid("debate"), "human" in mermaid("debate", {"tie_breaker": True})
    (True, False)
    """
    judge = judge_of(protocol)
    drawn_graph: Any
    if settings:
        drawn_graph = load_graph(judge, **settings)
    elif not isinstance(judge, str):
        drawn_graph = compiled(name_of(judge), judge)
    else:
        # A user's file may define a graph without compiling it.
        drawn_graph = getattr(find_protocol(judge), "graph", None) or compiled(judge, built(judge))
    # With ``xray``, subgraphs are drawn with their own nodes, not as a single box.
    graph = drawn_graph.get_graph(xray=True)
    bound_judge = getattr(drawn_graph.builder, "bound_judge", None)
    judges = [] if bound_judge is None else [*all_judges(bound_judge)]
    # In a wrapper of several judges, an outcome may be impossible for only one of them.
    if settings and len(judges) <= 2:
        for inside in judges:
            _leave_out(graph, inside.record.impossible(inside.bound))
    for inside in judges:
        _tell_agents_and_phases(graph, inside.record, inside.record.agents(inside.bound))
    drawn: str = graph.draw_mermaid(frontmatter_config=config)
    return drawn


def drawing(protocol: str, settings: Mapping[str, Any] | None = None) -> str:
    """Draw a protocol's graph as an SVG picture; arguments as for ``mermaid``.

    Raises:
        UsageError: the drawing package is not installed; the message explains how to install it.
    """
    source = mermaid(protocol, settings, _CONFIG)
    try:
        import mermaidx
    except ImportError as error:
        raise UsageError(
            "drawing a picture needs another package: pip install 'jurygraph[draw]'"
        ) from error
    # LangGraph writes some labels as HTML.
    plain = re.sub(r"</?p>", "", source).replace("&nbsp;", "")

    def in_lines(label: re.Match[str]) -> str:
        # Break long names after underscores; Mermaid would break them anywhere.
        lines = textwrap.wrap(label[0].replace("_", "_ "), 20, break_long_words=False)
        return "<br/>".join(line.replace(" ", "") for line in lines)

    root = ElementTree.fromstring(
        mermaidx.render(re.sub(r"(?<=-\. )\S+(?= \.->)", in_lines, plain)).svg()
    )
    # Add a white background, because some viewers show a transparent picture on black.
    left, top, width, height = root.attrib["viewBox"].split()
    root.attrib.pop("style", None)
    ground = {"x": left, "y": top, "width": width, "height": height, "fill": "#ffffff"}
    root.insert(0, ElementTree.Element(f"{{{_SVG}}}rect", ground))
    for group in root.iterfind(f".//{{{_SVG}}}g[@class='edgeLabels']"):
        _move_apart(group)
    return ElementTree.tostring(root, encoding="unicode")


def _leave_out(graph: Graph, impossible: Collection[str]) -> None:
    """Remove impossible outcomes, and the nodes that no other path leads to."""
    possible = list[Edge]()
    for edge in graph.edges:
        if not edge.conditional:
            possible.append(edge)
        elif edge.data is None:
            # An outcome with the name of its node has no label.
            if edge.target.rpartition(":")[2] not in impossible:
                possible.append(edge)
        elif outcomes := [name for name in str(edge.data).split(" / ") if name not in impossible]:
            possible.append(edge._replace(data=" / ".join(outcomes)))
    first = graph.first_node()
    reached = set() if first is None else {first.id}
    while further := {edge.target for edge in possible if edge.source in reached} - reached:
        reached |= further
    graph.edges = [edge for edge in possible if edge.source in reached]
    for key in graph.nodes.keys() - reached:
        del graph.nodes[key]


def _tell_agents_and_phases(graph: Graph, record: Protocol[Any], agents: Mapping[str, int]) -> None:
    """Label nodes with their number of agents, and connect phases directly, not through a node."""
    for key, node in list(graph.nodes.items()):
        inside, _, name = key.rpartition(":")
        if agents.get(name, 1) > 1:
            graph.nodes[key] = node._replace(name=f"{name} × {agents[name]}")  # noqa: RUF001
        if name not in record.phases:
            continue
        place = inside and f"{inside}:"
        # Outcomes that lead to one node share an edge.
        leads = {
            outcome: edge.target
            for edge in graph.edges
            if edge.source == key
            for outcome in str(edge.data).split(" / ")
        }
        leading = {edge.source for edge in graph.edges if edge.target == key}
        graph.edges = [edge for edge in graph.edges if key not in (edge.source, edge.target)]
        for before, outcomes in record.phases[name].items():
            if f"{place}{before}" not in leading:
                continue
            several = len(outcomes) > 1
            source = f"{place}{before}"
            by_target: dict[str, list[str]] = {}
            for outcome in outcomes:
                if outcome in leads:
                    by_target.setdefault(leads[outcome], []).append(outcome)
            graph.edges += [
                Edge(source, target, " / ".join(named) if several else None, several)
                for target, named in by_target.items()
            ]
        del graph.nodes[key]


def _move_apart(labels: Iterable[ElementTree.Element]) -> None:
    """Move labels down until none overlap: a loop's label may cover its neighbour's."""
    placed: list[tuple[float, float, float, float]] = []
    for label in labels:
        where = re.fullmatch(r"translate\(([-\d.]+), ([-\d.]+)\)", label.get("transform", ""))
        ground = label.find(f".//{{{_SVG}}}rect[@height]")
        if where is None or ground is None:  # an edge without a label
            continue
        x, y = map(float, where.groups())
        width = float(ground.attrib["width"])
        height = float(ground.attrib["height"])
        # Positions are centres: two boxes overlap if their distance is less than half the sum of
        # their sizes in both directions.
        while any(
            2 * abs(x - left) < width + wide and 2 * abs(y - top) < height + high
            for left, top, wide, high in placed
        ):
            y += 1
        placed.append((x, y, width, height))
        label.set("transform", f"translate({x}, {y})")
