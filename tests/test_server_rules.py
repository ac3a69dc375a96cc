"""What somebody who can only call a server, or hand in a folder of templates, can bring about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jurygraph.graphs import chateval, debate, single
from jurygraph.graphs.calibrated import graph as calibrated_graph
from jurygraph.graphs.cascade import graph as cascade_graph
from jurygraph.nodes.prompt_context import Prompts
from jurygraph.nodes.server_rules import VARIABLE
from jurygraph.state import UsageError

TASK = {"kind": "score", "source": "It rained.", "candidate": "Rain.", "aspect": "consistency"}
PAIR = {"kind": "compare", "question": "Why?", "answer_1": "So.", "answer_2": "Because."}
SERVED = {"configurable": {"assistant_id": "a", "graph_id": "debate"}}
"""What a server puts into the config of every run."""

ADDRESS = {"*": "openai:gpt-4o-mini?base_url=http://127.0.0.1:9/v1"}


def judged(graph: Any, context: dict[str, Any], task: Any = TASK, config: Any = SERVED) -> dict[str, Any]:
    verdict: dict[str, Any] = graph.invoke({"task": task}, config, context=context)["verdict"]
    return verdict


@pytest.mark.parametrize(
    ("graph", "context", "task", "refused"),
    [
        (single.graph, {"prompts": "/etc"}, TASK, "prompts"),
        (debate.graph, {"models": ADDRESS}, TASK, "base_url"),
        (debate.graph, {"models": {"scorer": ADDRESS["*"]}}, TASK, "base_url"),
        (chateval.graph, {"roles": "/etc/roles.yaml"}, TASK, "roles"),
        (calibrated_graph, {"prompts": "/etc"}, PAIR, "prompts"),
        (calibrated_graph, {"inner": {"prompts": "/etc"}}, PAIR, "prompts"),
        (calibrated_graph, {"of": "single", "inner": {"models": ADDRESS}}, PAIR, "base_url"),
        (cascade_graph, {"cheap_settings": {"models": ADDRESS}}, TASK, "base_url"),
        (
            cascade_graph,
            {"cheap": "repeated", "cheap_settings": {"inner": {"prompts": "x"}}},
            TASK,
            "prompts",
        ),
    ],
)
def test_callers_of_a_server_choose_no_file_and_no_address(
    graph: Any, context: dict[str, Any], task: Any, refused: str
) -> None:
    with pytest.raises(UsageError, match=f"may not choose '{refused}'.*{VARIABLE}={refused}"):
        judged(graph, context, task)


def test_callers_of_a_server_choose_what_shapes_the_judgement() -> None:
    context = {"models": {"*": "offline"}, "temperature": 0.5, "n": 1, "persona": "strict", "prompts": None}
    assert judged(debate.graph, context)["score"]
    assert judged(calibrated_graph, {"of": "single", "inner": {"structured": "off"}}, PAIR)["winner"]


def test_an_operator_binds_what_callers_may_not_choose(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "system.md").write_text("Mine.")
    bound = single.build(prompts=str(tmp_path)).compile()
    assert judged(bound, {"temperature": 0.5})["score"]


def test_an_operator_allows_names_to_all_callers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "system.md").write_text("Mine.")
    mine = {"prompts": str(tmp_path)}
    for allowed in ("prompts", "base_url, prompts", "*"):
        monkeypatch.setenv(VARIABLE, allowed)
        assert judged(single.graph, mine)["score"]
    monkeypatch.setenv(VARIABLE, "base_url")
    with pytest.raises(UsageError, match="prompts"):
        judged(single.graph, mine)


def test_who_runs_a_graph_without_a_server_chooses_everything(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "system.md").write_text("Mine.")
    assert judged(single.graph, {"prompts": str(tmp_path)}, config=None)["score"]


@pytest.mark.parametrize(
    "template",
    [
        "{{ cycler.__init__.__globals__.os.popen('touch FILE').read() }}",
        "{{ fence.__globals__ }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ self._TemplateReference__context.environment.globals }}",
        "{% include '../secret.md' %}",
        "{% include '/etc/hostname' %}",
        "{% import 'os' as os %}{{ os }}",
        "{% set _ = material.append(1) %}",
    ],
)
def test_a_template_reaches_nothing_but_what_it_is_given(tmp_path: Path, template: str) -> None:
    touched = tmp_path / "touched"
    (tmp_path / "secret.md").write_text("secret")
    folder = tmp_path / "prompts" / "shared"
    folder.mkdir(parents=True)
    (folder / "system.md").write_text(template.replace("FILE", str(touched)))
    with pytest.raises(UsageError, match=r"template shared/system\.md"):
        Prompts.load(str(tmp_path / "prompts")).render("shared/system", material=[])
    assert not touched.exists()


def test_a_wrong_folder_is_answered_without_the_names_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "salaries-2026.md").write_text("100")
    with pytest.raises(UsageError, match=r"it holds \*\.md files that are no templates") as caught:
        Prompts.load(str(tmp_path))
    assert "salaries" not in str(caught.value)
