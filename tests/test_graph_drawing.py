"""Each protocol's drawing, and its place in ``langgraph.json``.

A drawing that was changed on purpose is stored anew by running this file with ``JURYGRAPH_SNAPSHOTS=write``.
"""

import json
import os
import re
import signal
import subprocess
from collections import Counter
from importlib import import_module
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
from jurygraph.eval.cli.graph_drawing import drawing, mermaid
from jurygraph.eval.cli.studio import configuration
from jurygraph.graphs.registry import protocols
from jurygraph.state import UsageError
from jurygraph.state.settings import Settings
from langgraph.graph.state import CompiledStateGraph

from .processes import Command

HERE = Path(__file__).resolve().parent
SNAPSHOTS = HERE / "snapshots"
STUDIO = json.loads((HERE.parent / "langgraph.json").read_text(encoding="utf-8"))
SPECS: dict[str, dict[str, str]] = STUDIO["graphs"]
NAMES = sorted(protocols())


@pytest.mark.parametrize("name", NAMES)
def test_the_drawing_is_the_stored_one(name: str) -> None:
    stored, drawn = SNAPSHOTS / f"{name}.mmd", mermaid(name)
    if os.environ.get("JURYGRAPH_SNAPSHOTS") == "write":
        stored.parent.mkdir(exist_ok=True)
        stored.write_text(drawn, encoding="utf-8", newline="\n")
    assert drawn == stored.read_text(encoding="utf-8")
    assert sorted(path.stem for path in SNAPSHOTS.glob("*.mmd")) == NAMES


# The smallest drawing, and those with the most nodes, outcomes and graphs inside. What draws takes much memory.
DRAWN = [pytest.param(name, marks=pytest.mark.slow) for name in ("single", "cascade", "debate", "more")]


@pytest.fixture(scope="module", params=DRAWN)
def picture(request: pytest.FixtureRequest) -> tuple[str, ElementTree.Element]:
    pytest.importorskip("mermaidx")
    return request.param, ElementTree.fromstring(drawing(request.param))


def words(picture: ElementTree.Element) -> list[str]:
    """The words that a viewer shows which knows SVG alone: those in ``text``, each label in one, without its spaces."""
    # A label may be broken into lines at its spaces.
    return [
        "".join(text.itertext()).replace(" ", "")
        for text in picture.iterfind(".//{http://www.w3.org/2000/svg}text")
    ]


def test_the_picture_shows_every_node_and_outcome_without_a_browser(
    picture: tuple[str, ElementTree.Element],
) -> None:
    name, root = picture
    text = mermaid(name).replace(" ", "")
    nodes = re.findall(r"(?<=[\w(])\((?:\[<p>)?([^()<]+)", text)
    wanted = Counter(nodes) + Counter(re.findall(r"&nbsp;(.+?)&nbsp;", text))
    graph, hubs = protocols()[name].graph.get_graph(xray=True), protocols()[name].protocol.phases
    assert wanted.total() >= len(graph.nodes) - len(hubs) + sum(edge.data is not None for edge in graph.edges)
    assert wanted - Counter(words(root)) == Counter()
    assert not [tag.tag for tag in root.iter() if tag.tag.endswith("foreignObject")]


def test_no_label_in_the_picture_lies_on_another(picture: tuple[str, ElementTree.Element]) -> None:
    for group in picture[1].iterfind(".//{http://www.w3.org/2000/svg}g[@class='edgeLabels']"):
        boxes = label_boxes(group)
        assert [pair for pair in combinations(boxes, 2) if _overlap(*pair)] == []


def label_boxes(group: ElementTree.Element) -> list[tuple[float, ...]]:
    """Left, top, right and bottom of each label, read from its place and its ground."""
    boxes: list[tuple[float, ...]] = []
    for label in group:
        ground = label.find(".//{http://www.w3.org/2000/svg}rect[@height]")
        if ground is not None:
            x, y = map(float, re.findall(r"-?[\d.]+", label.attrib["transform"]))
            width, height = float(ground.attrib["width"]), float(ground.attrib["height"])
            boxes.append((x - width / 2, y - height / 2, x + width / 2, y + height / 2))
    return boxes


def _overlap(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def test_the_picture_has_a_size_and_a_ground(picture: tuple[str, ElementTree.Element]) -> None:
    root = picture[1]
    _, _, width, height = root.attrib["viewBox"].split()
    assert (root.attrib["width"], root.attrib["height"]) == (width, height)
    assert root[0].attrib["fill"] == "#ffffff"


@pytest.mark.parametrize("name", NAMES)
def test_studio_loads_the_compiled_graph_and_says_what_it_does(name: str) -> None:
    module, _, variable = SPECS[name]["path"].partition(":")
    graph = getattr(import_module(module), variable)
    assert isinstance(graph, CompiledStateGraph)
    assert graph is protocols()[name].graph
    assert graph.name == name
    assert graph.checkpointer is None, "Studio brings its own"
    assert SPECS[name]["description"] == protocols()[name].protocol.about
    assert sorted(SPECS) == NAMES


def test_a_graph_that_cannot_be_is_told_before_the_server_starts() -> None:
    for given, told in (
        ("mine", "is not a graph"),
        ("mine=no.py:graph", "there is no file no.py"),
        ("debate=x.y:graph", "there is already a graph called debate"),
        ("mine=x.y", "is not a graph"),
    ):
        with pytest.raises(UsageError, match=told):
            configuration([given])


def test_jobs_and_reload_reach_langgraphs_server(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    # Not imported: a process in which the server's package is has callers whom it does not trust.
    if find_spec("langgraph_api") is None:
        pytest.skip("the server's package is not installed")
    served: list[list[str]] = []

    def started(command: list[str], **_how: Any) -> Any:
        served.append(command[3:])
        return SimpleNamespace(wait=lambda: 0)

    monkeypatch.setattr(subprocess, "Popen", started)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    for given in ("", "--jobs 4", "--reload --jobs 2"):
        assert command("studio", *given.split()) == 0
    jobs = "--n-jobs-per-worker"
    passed = [["--no-reload"], [jobs, "4", "--no-reload"], [jobs, "2"]]
    assert [[arguments[0], *arguments[7:]] for arguments in served] == [["dev", *ends] for ends in passed]


@pytest.mark.parametrize("name", NAMES)
def test_a_form_begins_with_the_protocols_own_settings(name: str) -> None:
    fields = list(protocols()[name].protocol.settings.model_json_schema()["properties"])
    own = [field for field in fields if field not in Settings.model_fields]
    assert fields[: len(own)] == own
    assert name != "debate" or fields[:2] == ["n", "persona"]


def test_a_drawing_says_how_many_speak_and_shows_phases() -> None:
    drawn = mermaid("chateval")
    assert "referee × 2" in drawn and "next_speakers" not in drawn
    assert "referee -. &nbsp;referees&nbsp; .-> referee" in drawn
    assert "juror × 5" in mermaid("samre")
    # What is drawn is what the routes have: nothing leads nowhere, and each outcome is there.
    for name in ("chateval", "more"):
        graph, record = protocols()[name].graph.get_graph(), protocols()[name].protocol
        for hub, follows in record.phases.items():
            assert set(follows) == {edge.source for edge in graph.edges if edge.target == hub}
            outcomes = {str(edge.data) for edge in graph.edges if edge.source == hub}
            assert {outcome for several in follows.values() for outcome in several} == outcomes


@pytest.mark.slow
def test_the_picture_of_the_layered_jury_is_of_the_file_on_its_page(tmp_path: Path) -> None:
    page = HERE.parent / "docs" / "layered-jury.md"
    if not page.is_file():
        pytest.skip("docs/ is not beside tests/")
    pytest.importorskip("mermaidx")
    code = page.read_text(encoding="utf-8").split("```python\n")[1].partition("```")[0]
    (tmp_path / "layered_jury.py").write_text(code, encoding="utf-8")
    picture = page.parent / "pictures" / "layered-jury.svg"
    drawn = words(ElementTree.fromstring(drawing(str(tmp_path / "layered_jury.py"))))
    assert drawn == words(ElementTree.parse(picture).getroot())
    assert drawn.count("jurors×3") == 3
