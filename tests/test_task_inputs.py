"""The input that each graph tells of: the tasks that it takes, described, with examples that run without a key."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from jurygraph.graphs import calibrated, cascade, debate, geval, more, repeated, single
from jurygraph.graphs.registry import find_protocol, protocols
from jurygraph.state import UsageError
from jurygraph.state.tasks import EXAMPLES

CLASSES = {"score": "ScoreTask", "compare": "CompareTask"}


@pytest.fixture(params=sorted(protocols()))
def module(request: pytest.FixtureRequest) -> ModuleType:
    return find_protocol(request.param)


def kinds_in(schema: dict[str, Any]) -> list[str]:
    return [kind for kind, name in CLASSES.items() if name in schema["$defs"]]


def fields(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every field of a schema and of the objects in it."""
    for part in (schema, *schema.get("$defs", {}).values()):
        for name, field in part.get("properties", {}).items():
            yield f"{part['title']}.{name}", field


def test_a_graph_offers_the_tasks_that_it_takes_and_no_others(module: ModuleType) -> None:
    assert kinds_in(module.graph.get_input_jsonschema()) == list(module.protocol.kinds)


def test_every_field_is_described(module: ModuleType) -> None:
    schema = module.graph.get_input_jsonschema()
    for shown in (schema, module.graph.get_context_jsonschema()):
        found = dict(fields(shown))
        assert found
        told = {name: field.get("description") or "" for name, field in found.items()}
        assert [name for name, text in told.items() if not text.endswith((".", ")"))] == []
        assert ">>>" not in str(shown), "a doctest in a form"
    assert len(schema["properties"]["task"]["examples"]) == len(module.protocol.kinds)
    verdict = module.graph.get_output_jsonschema()["properties"]["verdict"]
    assert verdict["description"].endswith(".")
    assert {"score", "scores", "winner", "stop_reason", "cost_usd"} <= verdict["properties"].keys()
    assert [name for name, field in verdict["properties"].items() if not field.get("description")] == []


def test_the_examples_run_without_a_key(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "GOOGLE_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    examples = module.graph.get_input_jsonschema()["examples"]
    for example, kind in zip(examples, module.protocol.kinds, strict=True):
        outcome = module.graph.invoke(example)
        if "__interrupt__" in outcome:
            # The debate on the example is unresolved, and a person is asked.
            assert module.protocol.name == "review"
        else:
            assert outcome["verdict"]["kind"] == kind


def test_a_task_of_another_kind_is_refused_with_the_kinds_there_are(module: ModuleType) -> None:
    for kind, example in EXAMPLES.items():
        if kind not in module.protocol.kinds:
            told = f"(takes no|a) task of the kind '{kind}'(, only| has one text)"
            with pytest.raises(UsageError, match=told):
                module.graph.invoke({"task": example})


@pytest.mark.parametrize(
    ("graph", "kinds"),
    [
        (calibrated(debate.build()), ["compare"]),
        (repeated(geval.build()), ["score"]),
        (repeated(repeated(more.build())), ["compare"]),
        (cascade(geval.build(), debate.build()), ["score"]),
        (cascade(single.build(), debate.build()), ["score", "compare"]),
        (find_protocol("repeated").build(of="geval"), ["score"]),
        (find_protocol("cascade").build(expensive="more"), ["compare"]),
    ],
)
def test_a_wrapper_offers_what_the_judges_in_it_take(graph: Any, kinds: list[str]) -> None:
    assert kinds_in(graph.compile().get_input_jsonschema()) == kinds


def test_the_kind_of_a_task_is_never_what_another_field_meant() -> None:
    task = {"kind": "score", "source": "S", "text": "T", "aspect": "fluency"}
    with pytest.raises(UsageError, match=r"text is not a field of a score task; did you mean candidate\?"):
        debate.graph.invoke({"task": task})
