"""What somebody who can only call a server, or hand in a folder of templates, can bring about."""

import json
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from jurygraph.graphs import chateval, debate, repeated, single
from jurygraph.graphs.calibrated import graph as calibrated_graph
from jurygraph.graphs.cascade import graph as cascade_graph
from jurygraph.nodes import agent_runtime
from jurygraph.nodes.prompt_context import Prompts
from jurygraph.nodes.server_rules import VARIABLE
from jurygraph.state import InputError, UsageError, checked
from jurygraph.state.tasks import parse_task
from langgraph.checkpoint.memory import InMemorySaver

repeated_module = import_module("jurygraph.graphs.repeated")
repeated_graph = repeated_module.graph

TASK = {"kind": "score", "source": "It rained.", "candidate": "Rain.", "aspect": "consistency"}
PAIR = {"kind": "compare", "question": "Why?", "answer_1": "So.", "answer_2": "Because."}
SERVED = {"configurable": {"assistant_id": "a", "graph_id": "debate"}}
"""What a server puts into the config of every run."""

PROMPTS = {"prompts": "/etc"}
LONG_ROLES = [{"name": "A", "description": "b" * 200_000}]
ADDRESS = {"*": "openai:gpt-4o-mini?base_url=http://127.0.0.1:9/v1"}


def judged(graph: Any, context: dict[str, Any], task: Any = TASK, config: Any = SERVED) -> dict[str, Any]:
    verdict: dict[str, Any] = graph.invoke({"task": task}, config, context=context)["verdict"]
    return verdict


@pytest.mark.parametrize(("graph", "context", "task", "refused"), [
    (single.graph, PROMPTS, TASK, "prompts"), (debate.graph, {"models": ADDRESS}, TASK, "base_url"),
    (debate.graph, {"models": {"scorer": ADDRESS["*"]}}, TASK, "base_url"),
    (chateval.graph, {"roles": "/etc/roles.yaml"}, TASK, "roles"),
    (calibrated_graph, PROMPTS, PAIR, "prompts"), (calibrated_graph, {"inner": PROMPTS}, PAIR, "prompts"),
    (calibrated_graph, {"of": "single", "inner": {"models": ADDRESS}}, PAIR, "base_url"),
    (cascade_graph, {"cheap_settings": {"models": ADDRESS}}, TASK, "base_url"),
    (cascade_graph, {"cheap": "repeated", "cheap_settings": {"inner": PROMPTS}}, TASK, "prompts"),
])  # fmt: skip
def test_callers_choose_no_file_nor_url(graph: Any, context: dict[str, Any], task: Any, refused: str) -> None:
    with pytest.raises(UsageError, match=f"may not choose '{refused}'.*{VARIABLE}={refused}"):
        judged(graph, context, task)


def test_callers_of_a_server_choose_what_shapes_the_judgement() -> None:
    context = {"models": {"*": "offline"}, "temperature": 0.5, "n": 1, "persona": "strict", "prompts": None}
    assert judged(debate.graph, context)["score"]
    assert judged(calibrated_graph, {"of": "single", "inner": {"structured": "off"}}, PAIR)["winner"]


def nested(wrappers: int, k: int = 3) -> dict[str, Any]:
    """Return the settings of ``repeated`` round so many of its kind round a debate of three calls."""
    of: str = "debate"
    settings: dict[str, Any] = {"n": 1}
    for _ in range(wrappers - 1):
        of, settings = "repeated", {"of": of, "inner": settings, "k": k}
    return {"of": of, "inner": settings, "k": k}


@pytest.mark.parametrize(("graph", "context", "told"), [
    (repeated_graph, {"k": 1_000_000}, "k must be less than or equal to 1000, got 1000000"),
    (repeated_graph, nested(26), "inner: is nested too deeply: at most 8 protocols"),
    (repeated_graph, nested(4), f"asks for 243 calls, .* may have 100.*{VARIABLE}=calls=243"),
    (repeated_graph, {"of": "repeated", "inner": json.dumps(nested(3))}, "asks for 243 calls"),
    (cascade_graph, {"expensive": "repeated", "expensive_settings": nested(4)}, "asks for 244 calls"),
    (debate.graph, {"n": 50}, "asks for 101 calls"),
    (debate.graph, {"repair": 11}, "repair must be less than or equal to 10"),
    (chateval.graph, {"roles": LONG_ROLES}, "asks for 200,[0-9]+ characters"),
])  # fmt: skip
def test_callers_of_a_server_neither_freeze_nor_empty_it(
    graph: Any, context: dict[str, Any], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = time.process_time()
    with pytest.raises((InputError, UsageError), match=told):
        judged(graph, context)
    assert time.process_time() - begun < 1
    monkeypatch.setattr(agent_runtime, "send", None)
    # A state of one's own in place of the first node's goes round nothing.
    thread = graph.builder.compile(checkpointer=InMemorySaver())
    config = {"configurable": {**SERVED["configurable"], "thread_id": "1"}}
    with pytest.raises((InputError, UsageError), match=told):
        thread.update_state(config, {"task": TASK, "orders": [1]}, as_node="prepare")
        thread.invoke(None, config, context=context)


def test_a_judged_text_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=f"asks for 200,[0-9]+ characters.*{VARIABLE}=characters=200"):
        judged(debate.graph, {}, {**TASK, "source": "a" * 200_000})
    with pytest.raises(UsageError, match="characters"):
        judged(calibrated_graph, {}, {**PAIR, "question": "a" * 200_000})
    monkeypatch.setattr(checked, "LONGEST_TEXT", 1000)
    with pytest.raises(InputError, match=r"task\.source: has 1,001 characters, .* at most 1,000"):
        parse_task({**TASK, "source": "a" * 1001})


def test_what_an_operator_binds_or_allows_may_take_more(monkeypatch: pytest.MonkeyPatch) -> None:
    bound = repeated(debate.graph, k=2)
    many = repeated_module.build(of="single", k=101).compile()
    assert judged(many, {"by": "vote"})["details"]["repeated"] == 101
    assert judged(bound.compile(), {"n": 49})["details"]["repeated"] == 2
    with pytest.raises(UsageError, match=r"asks for 102 calls, .* may have 100"):
        judged(many, {"k": 102})
    for allowed in ("calls=102", "prompts, calls=1000", "*"):
        monkeypatch.setenv(VARIABLE, allowed)
        assert judged(many, {"k": 102})["details"]["repeated"] == 102
    monkeypatch.setenv(VARIABLE, "calls=lots")
    with pytest.raises(UsageError, match="allows calls=lots, which is not a number"):
        judged(many, {"k": 1})


def test_operators_bind_or_allow_what_callers_cannot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "system.md").write_text("Mine.")
    mine: dict[str, Any] = {"prompts": str(tmp_path)}
    assert judged(single.build(**mine).compile(), {"temperature": 0.5})["score"]
    # Who runs a graph without a server chooses everything.
    assert judged(single.graph, mine, config=None)["score"]
    for allowed in ("prompts", "base_url, prompts", "*"):
        monkeypatch.setenv(VARIABLE, allowed)
        assert judged(single.graph, mine)["score"]
    monkeypatch.setenv(VARIABLE, "base_url")
    with pytest.raises(UsageError, match="prompts"):
        judged(single.graph, mine)


@pytest.mark.parametrize("template", [
    "{{ cycler.__init__.__globals__.os.popen('touch FILE').read() }}", "{{ fence.__globals__ }}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ self._TemplateReference__context.environment.globals }}", "{% include '../secret.md' %}",
    "{% include '/etc/hostname' %}", "{% import 'os' as os %}{{ os }}", "{% set _ = material.append(1) %}",
])  # fmt: skip
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
    with pytest.raises(UsageError, match=r"it holds \*\.md files that are not templates") as caught:
        Prompts.load(str(tmp_path))
    assert "salaries" not in str(caught.value)
