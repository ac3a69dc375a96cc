"""LangGraph's internals: used in one module, and verdicts do not depend on shorter steps."""

import ast
import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jurygraph.graphs.engine._langgraph import SHORT_STEPS, has_short_steps
from jurygraph.graphs.engine.registry import find_protocol
from langgraph.checkpoint.memory import InMemorySaver

from .sample_data import CASES, task_for
from .source_tree import ROOT

INTERNAL = ("__pregel_", "CONFIG_KEY_", "checkpoint_map", "checkpoint_ns")
OUR_OWN = ("__pregel_jurygraph_", "langgraph_checkpoint_ns")
"""A key of ours that LangGraph's server passes on because of its prefix, and a documented mark of
every call."""
ITS_MODULE = "graphs/engine/_langgraph.py"
# They compare or pass on the place that `get_state` gives out, which is public.
READERS = {"graphs/engine/judge_graph.py", "graphs/engine/nested.py"}


def mentions(path: Path) -> Iterator[str]:
    """The names and texts of a module that belong to LangGraph's internals."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
        text = text or (node.id if isinstance(node, ast.Name) else "")
        # A docstring may explain what it likes.
        if (
            " " not in text
            and not text.startswith(OUR_OWN)
            and any(part in text for part in INTERNAL)
        ):
            yield text


def test_internals_are_used_in_one_module() -> None:
    files = [
        path
        for top in ("state", "nodes", "graphs", "eval", "testing")
        for path in (ROOT / top).rglob("*.py")
    ]
    if not files:
        pytest.skip("the source tree is not here")
    found = {path.relative_to(ROOT).as_posix(): set(mentions(path)) for path in files}
    using = {place: names for place, names in found.items() if names}
    assert ITS_MODULE in using, "the test looks for the wrong names"
    others = {place: names for place, names in using.items() if place != ITS_MODULE}
    assert others == {place: {"checkpoint_ns"} for place in READERS}


def runs_of(name: str, kind: str) -> dict[str, Any]:
    """An async run on a thread with all its checkpoints, and a sync run without a thread."""
    builder = find_protocol(name).build()
    graph = builder.compile(checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "1"}}
    first = asyncio.run(graph.ainvoke({"task": task_for(name, kind)}, thread))
    places = [snapshot.next for snapshot in graph.get_state_history(thread)]
    in_sync = builder.compile().invoke({"task": task_for(name, kind)})
    return {"first": first, "places": places, "sync": in_sync}


def without_time(found: dict[str, Any]) -> dict[str, Any]:
    """Return results without the parts that differ between two runs of the same graph."""
    for result in (found["first"], found["sync"]):
        for turn in result["transcript"]:
            turn.pop("seconds", None)
        result["verdict"].pop("seconds", None)
    return found


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_verdicts_do_not_depend_on_shorter_steps(
    name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(SHORT_STEPS, raising=False)
    assert has_short_steps()
    short = without_time(runs_of(name, kind))
    monkeypatch.setenv(SHORT_STEPS, "off")
    assert not has_short_steps()
    assert without_time(runs_of(name, kind)) == short
