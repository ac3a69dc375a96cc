"""Draw a protocol's graph: as Mermaid text, or as an SVG picture whose words every viewer shows."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from langchain_core.runnables.graph import Edge, Graph

from ...graphs.given_graphs import compiled, name_of
from ...graphs.registry import find_protocol, judge_of
from ...graphs.wrapper import all_judges
from ...nodes.yaml_files import read_yaml
from ...state.errors import UsageError
from ...state.protocols import Protocol

_SVG = "http://www.w3.org/2000/svg"
ElementTree.register_namespace("", _SVG)


def mermaid(protocol: str, config: dict[str, Any] | None = None) -> str:
    """Draw a protocol's graph as Mermaid text, which many editors and sites show as a picture.

    >>> "scorer" in mermaid("debate")
    True
    """
    # With ``xray``, graphs inside the graph are drawn with their own nodes, not as one box each.
    judge = judge_of(protocol)
    drawn_graph = find_protocol(judge).graph if isinstance(judge, str) else compiled(name_of(judge), judge)
    graph = drawn_graph.get_graph(xray=True)
    bound_judge = getattr(drawn_graph.builder, "bound_judge", None)
    for inside in [] if bound_judge is None else all_judges(bound_judge):
        _tell_agents_and_phases(graph, inside.record, inside.record.agents(inside.bound))
    drawn: str = graph.draw_mermaid(frontmatter_config=config)
    return drawn


def drawing(protocol: str) -> str:
    """Draw a protocol's graph as an SVG picture.

    Raises:
        UsageError: the package that draws is not installed; the message says how to install it.
    """
    source = mermaid(protocol, read_yaml(Path(__file__).with_suffix(".yaml")))
    try:
        import mermaidx
    except ImportError as error:
        raise UsageError("drawing a picture needs another package: pip install 'jurygraph[draw]'") from error
    # LangGraph writes some labels as HTML.
    plain = re.sub(r"</?p>", "", source).replace("&nbsp;", "")

    def in_lines(label: re.Match[str]) -> str:
        # Long names are broken behind underscores, where Mermaid would break them anywhere.
        lines = textwrap.wrap(label[0].replace("_", "_ "), 20, break_long_words=False)
        return "<br/>".join(line.replace(" ", "") for line in lines)

    root = ElementTree.fromstring(mermaidx.render(re.sub(r"(?<=-\. )\S+(?= \.->)", in_lines, plain)).svg())
    # A white ground, since some viewers show a picture without one on black.
    left, top, width, height = root.attrib["viewBox"].split()
    root.attrib.pop("style", None)
    ground = {"x": left, "y": top, "width": width, "height": height, "fill": "#ffffff"}
    root.insert(0, ElementTree.Element(f"{{{_SVG}}}rect", ground))
    for group in root.iterfind(f".//{{{_SVG}}}g[@class='edgeLabels']"):
        _move_apart(group)
    return ElementTree.tostring(root, encoding="unicode")


def _tell_agents_and_phases(graph: Graph, record: Protocol[Any], agents: Mapping[str, int]) -> None:
    """Write how many agents speak at a node, and draw the phases that meet at a node instead of a star round it."""
    for key, node in list(graph.nodes.items()):
        inside, _, name = key.rpartition(":")
        if agents.get(name, 1) > 1:
            graph.nodes[key] = node._replace(name=f"{name} × {agents[name]}")  # noqa: RUF001
        if name not in record.phases:
            continue
        place = inside and f"{inside}:"
        leads = {str(edge.data): edge.target for edge in graph.edges if edge.source == key}
        graph.edges = [edge for edge in graph.edges if key not in (edge.source, edge.target)]
        for before, outcomes in record.phases[name].items():
            several, source = len(outcomes) > 1, f"{place}{before}"
            graph.edges += [Edge(source, leads[o], o if several else None, several) for o in outcomes]
        del graph.nodes[key]


def _move_apart(labels: Iterable[ElementTree.Element]) -> None:
    """Move each label down until it lies on none before it: a loop's label and its neighbour's may share a place."""
    placed: list[tuple[float, float, float, float]] = []
    for label in labels:
        where = re.fullmatch(r"translate\(([-\d.]+), ([-\d.]+)\)", label.get("transform", ""))
        ground = label.find(f".//{{{_SVG}}}rect[@height]")
        if where is None or ground is None:  # an edge without a label
            continue
        x, y = map(float, where.groups())
        width, height = float(ground.attrib["width"]), float(ground.attrib["height"])
        # Places are those of centres: two boxes meet where these are nearer than half of both in either direction.
        while any(
            2 * abs(x - left) < width + wide and 2 * abs(y - top) < height + high
            for left, top, wide, high in placed
        ):
            y += 1
        placed.append((x, y, width, height))
        label.set("transform", f"translate({x}, {y})")
