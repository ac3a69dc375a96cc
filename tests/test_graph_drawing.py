"""Each protocol's drawing, and its place in ``langgraph.json``.

A drawing that was changed on purpose is stored anew by running this file with ``JURYGRAPH_SNAPSHOTS=write``.
"""

from __future__ import annotations

import json
import os
from importlib import import_module
from pathlib import Path

import pytest
from jurygraph.eval.cli.listing import drawing, mermaid
from jurygraph.graphs.registry import protocols
from langgraph.graph.state import CompiledStateGraph

HERE = Path(__file__).resolve().parent
SNAPSHOTS = HERE / "snapshots"
SPECS: dict[str, str] = json.loads((HERE.parent / "langgraph.json").read_text(encoding="utf-8"))["graphs"]
NAMES = sorted(protocols())


@pytest.mark.parametrize("name", NAMES)
def test_the_drawing_is_the_stored_one(name: str) -> None:
    stored, drawn = SNAPSHOTS / f"{name}.mmd", mermaid(name)
    if os.environ.get("JURYGRAPH_SNAPSHOTS") == "write":
        stored.parent.mkdir(exist_ok=True)
        stored.write_text(drawn, encoding="utf-8", newline="\n")
    assert drawn == stored.read_text(encoding="utf-8")


def test_no_drawing_is_stored_for_a_protocol_that_is_gone() -> None:
    assert sorted(path.stem for path in SNAPSHOTS.glob("*.mmd")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_picture_shows_every_node(name: str) -> None:
    pytest.importorskip("mermaidx")
    picture = drawing(name)
    assert picture.startswith("<svg")
    nodes = protocols()[name].graph.get_graph().nodes
    assert [node for node in nodes if node.strip("_") not in picture] == []


@pytest.mark.parametrize("name", NAMES)
def test_studio_loads_the_compiled_graph(name: str) -> None:
    module, _, variable = SPECS[name].partition(":")
    graph = getattr(import_module(module), variable)
    assert isinstance(graph, CompiledStateGraph)
    assert graph is protocols()[name].graph
    assert graph.name == name
    assert graph.checkpointer is None, "Studio brings its own"


def test_studio_lists_nothing_but_registered_protocols() -> None:
    assert sorted(SPECS) == NAMES
