"""Each protocol's drawing, and its place in ``langgraph.json``.

A drawing that was changed on purpose is stored anew by running this file with
``JURYGRAPH_SNAPSHOTS=write``.
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
from jurygraph.graphs.engine.given_graphs import load_graph
from jurygraph.graphs.engine.registry import find_protocol, protocols
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
    stored = SNAPSHOTS / f"{name}.mmd"
    drawn = mermaid(name)
    if os.environ.get("JURYGRAPH_SNAPSHOTS") == "write":
        stored.parent.mkdir(exist_ok=True)
        stored.write_text(drawn, encoding="utf-8", newline="\n")
    assert drawn == stored.read_text(encoding="utf-8")
    assert sorted(path.stem for path in SNAPSHOTS.glob("*.mmd")) == NAMES


SCORE = {"kind": "score", "source": "It rained.", "candidate": "It rained.", "aspect": "fluency"}
PAIR = {"kind": "compare", "question": "Why?", "answer_1": "It rained.", "answer_2": "No idea."}

# A protocol's settings, and what its drawing with them leaves out and still has.
VARIANTS: list[tuple[str, dict[str, Any], str, str]] = [
    ("debate", {"n": 2}, "tie_breaker human context_full", "max_rounds no_issue"),
    ("debate", {"tie_breaker": True, "n": 1}, "human max_rounds context_full", "tie_breaker"),
    ("debate", {"on_unresolved": "human"}, "tie_breaker max_rounds", "human"),
    ("debate", {"on_overflow": "last"}, "tie_breaker human", "context_full"),
    ("debate", {"n": "auto"}, "tie_breaker human context_full", "max_rounds early_end"),
    ("debate", {"budget_tokens": 9000}, "tie_breaker human context_full", "max_rounds early_end"),
    ("ensemble", {"stop": "decided"}, "planner one_order heard", "referee×3 next_vote decided"),
    ("ensemble", {"referees": 3}, "planner next_vote decided", "referee×3 one_order heard"),
    ("chateval", {"stop": "decided"}, "summarizer planner", "complete decided"),
    ("chateval", {"referees": 3}, "decided", "complete"),
    ("samre", {"stop": "decided"}, "no_jury heard early_end", "juror×5 next_vote decided"),
    ("samre", {"backgrounds": "auto"}, "no_jury summarizer", "planner backgrounds_open"),
    ("samre", {"cross_examine": True}, "argued planner", "question×2 answer×2 examined"),
    ("samre", {"jurors": 1}, "question answers examination examined", "argued"),
    ("samre", {"stop": "stable"}, "no_jury next_vote decided", "juror×5 early_end"),
    ("samre", {"jurors": 0}, "juror summarizer", "no_jury agreement"),
    ("samre", {"jurors": 3}, "no_jury summarizer", "juror×3"),
    ("samre", {"memory": "summary"}, "no_jury another_round&", "another_round_from_summary"),
    ("samre", {"max_rounds": 1}, "agreement another_round summarizer", "max_rounds"),
    ("more", {"aggregate": "concat"}, "aggregator defence_judge feedback llm best", "concat"),
    ("more", {"aggregate": "best", "rounds": 2}, "aggregator llm", "defence_judge feedback"),
    ("more", {"rounds": 2, "budget_tokens": 9}, "another_round", "within_budget early_end"),
    ("more", {"rounds": 2}, "budget_asked within_budget early_end", "another_round"),
    ("chateval", {"referees": 3}, "summarizer planner", "referee×3 complete"),
    ("chateval", {"strategy": "summarizer"}, "planner", "summarizer complete"),
    ("chateval", {"roles": "auto"}, "summarizer prepare-->referee", "planner-->referee"),
    ("geval", {"steps": ["Read."]}, "planner no_steps", "steps_given"),
    ("repeated", {"of": "debate", "k": 2, "inner": {"n": 1}}, "tie_breaker human", "max_rounds"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "settings", "without", "with_"), VARIANTS)
def test_a_variant_is_drawn_without_what_its_settings_exclude(
    name: str, settings: dict[str, Any], without: str, with_: str
) -> None:
    text = mermaid(name, settings).replace(" ", "")
    assert [word for word in without.split() if word in text] == []
    assert [word for word in with_.split() if word not in text] == []


@pytest.mark.parametrize(("name", "settings", "without", "with_"), VARIANTS)
def test_a_run_visits_only_nodes_of_the_variant_s_drawing(
    name: str, settings: dict[str, Any], without: str, with_: str
) -> None:
    if settings.get("on_unresolved") == "human":
        pytest.skip("this run would wait for a person")
    record = find_protocol(name).protocol
    graph = load_graph(name, **settings)
    drawn = mermaid(name, settings)
    for task in (SCORE, PAIR):
        if task["kind"] not in record.kinds:
            continue
        for update in graph.stream({"task": task}, stream_mode="updates"):
            visited = [node for node in update if node not in record.phases]
            assert [node for node in visited if node not in drawn] == [], without + with_


# The smallest drawing, and those with the most nodes, outcomes and graphs inside. Drawing takes
# much memory.
DRAWN = [
    pytest.param(name, marks=pytest.mark.slow) for name in ("single", "cascade", "debate", "more")
]


@pytest.fixture(scope="module", params=DRAWN)
def picture(request: pytest.FixtureRequest) -> tuple[str, ElementTree.Element]:
    pytest.importorskip("mermaidx")
    return request.param, ElementTree.fromstring(drawing(request.param))


def words(picture: ElementTree.Element) -> list[str]:
    """Return the words in ``text`` elements, which every viewer shows, without spaces."""
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
    graph = protocols()[name].graph.get_graph(xray=True)
    hubs = protocols()[name].protocol.phases
    assert wanted.total() >= len(graph.nodes) - len(hubs) + sum(
        edge.data is not None for edge in graph.edges
    )
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
            width = float(ground.attrib["width"])
            height = float(ground.attrib["height"])
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
    # The file in the repository equals what ``jurygraph studio --config`` writes.
    assert {key: STUDIO[key] for key in ("graphs", "http")} == {
        key: configuration([])[key] for key in ("graphs", "http")
    }
    assert set(SPECS) == {*NAMES, "chat"}


def test_a_graph_that_cannot_be_is_told_before_the_server_starts() -> None:
    for given, told in (
        ("mine", "is not a graph"),
        ("mine=no.py:graph", "there is no file no.py"),
        ("debate=x.y:graph", "there is already a graph called debate"),
        ("mine=x.y", "is not a graph"),
    ):
        with pytest.raises(UsageError, match=told):
            configuration([given])


def test_jobs_and_reload_reach_langgraphs_server(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Not imported: a process with the server's package has untrusted callers.
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
    passed = [[jobs, "10", "--no-reload"], [jobs, "4", "--no-reload"], [jobs, "2"]]
    assert [[arguments[0], *arguments[7:]] for arguments in served] == [
        ["dev", *ends] for ends in passed
    ]


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
    # The drawing equals the routes: each outcome exists and leads somewhere.
    for name in ("chateval", "ensemble", "more", "samre"):
        graph = protocols()[name].graph.get_graph()
        record = protocols()[name].protocol
        for hub, follows in record.phases.items():
            assert set(follows) == {edge.source for edge in graph.edges if edge.target == hub}
            labels = [str(edge.data) for edge in graph.edges if edge.source == hub]
            outcomes = {outcome for label in labels for outcome in label.split(" / ")}
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


def test_a_drawing_follows_the_settings(command: Command) -> None:
    assert command("graph", "chateval", "--set", "referees=5") == 0
    assert "referee × 5" in command.printed
    assert command("graph", "repeated", "--set", "of=single") == 0
    assert "scorer" in command.printed and "critic" not in command.printed


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            ("chateval", "--set", "refere=5"),
            "refere is not a setting of chateval; did you mean referees?",
        ),
        (("debate", "--set", "n=0"), "n must be greater than or equal to 1"),
        (("repeated", "--set", "inner.personna=weak"), "did you mean persona?"),
        (("debate", "--set", "n"), "'n' is not of the form --set KEY=VALUE"),
    ],
)
def test_settings_that_cannot_be_drawn_are_refused(command: Command, given: Any, told: str) -> None:
    assert command("graph", *given) == 2
    assert told in command.errors


def test_a_graph_of_a_file_takes_no_settings(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("from jurygraph.graphs import debate\ngraph = debate.build(n=1).compile()\n")
    assert command("graph", f"{file}:graph", "--set", "n=2") == 2
    assert "n: a graph has settings and models of its own" in command.errors
