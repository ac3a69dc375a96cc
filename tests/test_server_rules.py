"""Test the limits of callers who can only call a server or provide a template folder."""

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from jurygraph.graphs import chateval, debate, repeated, single
from jurygraph.graphs.engine import registry
from jurygraph.graphs.engine.base import ProtocolGraph
from jurygraph.graphs.engine.registry import protocols
from jurygraph.graphs.wrappers.calibrated import graph as calibrated_graph
from jurygraph.graphs.wrappers.cascade import graph as cascade_graph
from jurygraph.graphs.wrappers.review import graph as review_graph
from jurygraph.nodes.common import server_rules
from jurygraph.nodes.common.server_rules import VARIABLE
from jurygraph.nodes.models import retry, send
from jurygraph.nodes.runtime import agent_runtime
from jurygraph.nodes.runtime.prompt_context import Prompts
from jurygraph.state import InputError, ModelCallError, UsageError, checked
from jurygraph.state.checked import Checked
from jurygraph.state.errors import RunTimeoutError
from jurygraph.state.settings import ModelSpec, PromptText, Role, Settings
from jurygraph.state.settings.caller_rules import closed_choices
from jurygraph.state.tasks import parse_task
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import Field

repeated_module = import_module("jurygraph.graphs.wrappers.repeated")
repeated_graph = repeated_module.graph

TASK = {"kind": "score", "source": "It rained.", "candidate": "Rain.", "aspect": "consistency"}
PAIR = {"kind": "compare", "question": "Why?", "answer_1": "So.", "answer_2": "Because."}
SERVED = {"configurable": {"assistant_id": "a", "graph_id": "debate"}}
"""The config that a server adds to every run."""


@pytest.fixture(autouse=True)
def registered_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the protocols that a test registers, so that later tests do not know them."""
    monkeypatch.setattr(registry, "_loaded", dict(registry._loaded))


PROMPTS = {"prompts": "/etc"}
LONG_ROLES = [{"name": "A", "description": "b" * 200_000}]
ADDRESS = {"*": "openai:gpt-4o-mini?base_url=http://127.0.0.1:9/v1"}


def judged(
    graph: Any, context: dict[str, Any], task: Any = TASK, config: Any = SERVED
) -> dict[str, Any]:
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
def test_callers_choose_no_file_nor_url(
    graph: Any, context: dict[str, Any], task: Any, refused: str
) -> None:
    with pytest.raises(UsageError, match=f"may not choose '{refused}'.*{VARIABLE}={refused}"):
        judged(graph, context, task)


def test_callers_of_a_server_choose_what_shapes_the_judgement() -> None:
    context = {
        "models": {"*": "offline"},
        "temperature": 0.5,
        "n": 1,
        "persona": "strict",
        "prompts": None,
    }
    assert judged(debate.graph, context)["score"]
    assert judged(calibrated_graph, {"of": "single", "inner": {"structured": "off"}}, PAIR)[
        "winner"
    ]


def nested(wrappers: int, k: int = 3) -> dict[str, Any]:
    """Return the settings of nested ``repeated`` wrappers around a debate of three calls."""
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
    # The work that is refused would take hours.
    assert time.process_time() - begun < 20
    monkeypatch.setattr(agent_runtime, "send", None)
    # A state of one's own in place of the first node's goes round nothing.
    thread = graph.builder.compile(checkpointer=InMemorySaver())
    config = {"configurable": {**SERVED["configurable"], "thread_id": "1"}}
    with pytest.raises((InputError, UsageError), match=told):
        thread.update_state(config, {"task": TASK, "orders": [1]}, as_node="prepare")
        thread.invoke(None, config, context=context)


def test_a_judged_text_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        UsageError, match=f"asks for 200,[0-9]+ characters.*{VARIABLE}=characters=200"
    ):
        judged(debate.graph, {}, {**TASK, "source": "a" * 200_000})
    with pytest.raises(UsageError, match="characters"):
        judged(calibrated_graph, {}, {**PAIR, "question": "a" * 200_000})
    monkeypatch.setattr(checked, "LONGEST_TEXT", 1000)
    with pytest.raises(InputError, match=r"task\.source: has 1,001 characters, .* at most 1,000"):
        parse_task({**TASK, "source": "a" * 1001})


@pytest.mark.slow
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


def test_operators_bind_or_allow_what_callers_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    with pytest.raises(UsageError, match=r"shared/system\.md"):
        Prompts.load(str(tmp_path / "prompts")).render("shared/system", material=[])
    assert not touched.exists()


def test_a_wrong_folder_is_answered_without_the_names_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "salaries-2026.md").write_text("100")
    with pytest.raises(UsageError, match=r"it holds \*\.md files that are not templates") as caught:
        Prompts.load(str(tmp_path))
    assert "salaries" not in str(caught.value)


# Settings that name code

WITNESS = """
from pathlib import Path

Path(__file__).with_suffix(".ran").touch()
"""


@pytest.fixture
def witness(tmp_path: Path) -> Iterator[Path]:
    """A Python file that leaves a trace when it is run; the test fails if it was."""
    file = tmp_path / "witness.py"
    file.write_text(WITNESS)
    yield file
    assert not file.with_suffix(".ran").exists()


def in_places(reference: str) -> list[tuple[Any, dict[str, Any]]]:
    """Yield each graph with each place in its context that names a protocol."""
    inside = {"of": reference}
    return [
        (repeated_graph, {"of": reference}),
        (review_graph, {"of": reference}),
        (cascade_graph, {"cheap": reference}),
        (cascade_graph, {"expensive": reference}),
        (repeated_graph, {"of": "repeated", "inner": inside}),
        (repeated_graph, {"of": "repeated", "inner": json.dumps(inside)}),
        (repeated_graph, {"of": "review", "inner": {"of": "repeated", "inner": inside}}),
        (cascade_graph, {"cheap": "repeated", "cheap_settings": inside}),
        (cascade_graph, {"expensive": "cascade", "expensive_settings": {"cheap": reference}}),
    ]


@pytest.mark.parametrize("place", range(len(in_places(""))))
def test_callers_name_a_judge_only_by_the_name_of_a_served_protocol(
    place: int, witness: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(witness.parent)
    messages = set()
    for reference in (
        str(witness),
        f"{witness}:graph",
        "witness:graph",
        str(witness.with_name("missing.py")),
        "missing:graph",
    ):
        graph, context = in_places(reference)[place]
        with pytest.raises(UsageError, match="as a file or a module, only by the name") as refused:
            judged(graph, context)
        messages.add(str(refused.value))
    assert len(messages) == 1, "the message must not show which files exist"
    assert "witness" not in sys.modules


def test_a_resumed_run_names_no_file(witness: Path) -> None:
    graph = repeated_graph.builder.compile(checkpointer=InMemorySaver(), interrupt_before=["judge"])
    given: Any
    for number, given in enumerate((None, Command(resume="yes"))):
        config: Any = {"configurable": {**SERVED["configurable"], "thread_id": str(number)}}
        graph.invoke({"task": TASK}, config, context={"of": "single"})
        for hostile in ({"of": str(witness)}, {"of": "repeated", "inner": {"of": str(witness)}}):
            with pytest.raises(UsageError, match="may not choose 'of'"):
                graph.invoke(given, config, context=hostile)


def test_settings_that_a_caller_wrote_into_a_thread_are_checked(tmp_path: Path) -> None:
    graph = debate.graph.builder.compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {**SERVED["configurable"], "thread_id": "1"}}
    edited = {"task": TASK, "orders": [1], "settings": {"prompts": str(tmp_path)}}
    graph.update_state(config, edited, as_node="prepare")
    with pytest.raises(UsageError, match="may not choose 'prompts'"):
        graph.invoke(None, config)


def test_an_operator_allows_files_by_the_name_of_the_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "allowed_judge.py").write_text(OWN_PROTOCOL.replace("NAME", "allowed_judge"))
    context = {"of": str(tmp_path / "allowed_judge.py"), "k": 1}
    for allowed in ("cheap", "prompts,of", "*"):
        monkeypatch.setenv(VARIABLE, allowed)
        if allowed == "cheap":
            with pytest.raises(UsageError, match="may not choose 'of'"):
                judged(repeated_graph, context)
        else:
            assert judged(repeated_graph, context)["details"]["of"] == "allowed_judge"


OWN_PROTOCOL = """
from dataclasses import replace

from jurygraph.graphs import single
from jurygraph.graphs.engine.base import ProtocolGraph
from jurygraph.graphs.wrappers.calibrated import weigh_orders
from jurygraph.nodes.referee import single_scorer
from jurygraph.nodes.runtime.verdicts import lone_scorer
from jurygraph.state.settings import SingleSettings

protocol = replace(single.protocol, name="NAME")


def build(settings=None, models=None, **fields):
    graph = ProtocolGraph(protocol, SingleSettings, settings, models, fields)
    graph.panel("scorer", single_scorer, lone_scorer, weigh=weigh_orders)
    return graph


graph = build().compile(name="NAME")
"""


def test_callers_may_name_the_protocol_of_a_file_that_the_server_was_started_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "served_judge.py"
    module = ModuleType("tmp__served_judge")
    module.__file__ = str(file)
    exec(OWN_PROTOCOL.replace("NAME", "served_judge"), vars(module))
    # As the server imports the files of its configuration.
    monkeypatch.setitem(sys.modules, module.__name__, module)
    with pytest.raises(UsageError, match="unknown protocol 'served_judge'"):
        judged(repeated_graph, {"of": "served_judge", "k": 1})
    served = {"served_judge": {"path": f"{file}:graph"}}
    monkeypatch.setenv("LANGSERVE_GRAPHS", json.dumps(served))
    assert judged(repeated_graph, {"of": "served_judge", "k": 1})["details"]["of"] == "served_judge"


# Fields that are closed unless declared

PLACES = (
    "/etc/passwd",
    "see /etc/passwd",
    "../judge.py",
    "judge.py",
    "os:environ",
    "http://127.0.0.1/x",
)
CLASSES: list[type[Checked]] = [
    *{module.protocol.settings for module in protocols().values()},
    *(ModelSpec, Role),
]
OPEN_TEXT = {
    *(
        "DebateSettings.persona",
        "MultiagentSettings.persona",
        "GEvalSettings.steps",
        "SamreSettings.backgrounds",
    ),
    *("Role.name", "Role.description"),
    # Names of models and, in ``models``, of roles; a model's name is neither a path nor an address.
    "ModelSpec.name",
}
"""Fields in which callers may write any text: it becomes part of prompts."""


def lets_through(owner: type[Checked], field: str) -> Iterator[str]:
    """Yield the texts that callers may choose in a field, in each form that the field takes."""
    needed = {
        name: "x"
        for name, about in owner.model_fields.items()
        if about.is_required() and name != field
    }
    for text in PLACES:
        for value in (
            text,
            [text],
            {"*": text},
            {"name": text},
            [{"name": "A", "description": text}],
        ):
            try:
                made = owner.model_validate({**needed, field: value})
            except InputError:
                continue
            if not list(closed_choices({field: getattr(made, field)}, owner)):
                yield text


@pytest.mark.slow
def test_no_other_field_of_any_settings_takes_a_callers_text() -> None:
    known = {f"{owner.__name__}.{field}" for owner in CLASSES for field in owner.model_fields}
    taken = {
        f"{owner.__name__}.{field}": set(lets_through(owner, field))
        for owner in CLASSES
        for field in owner.model_fields
    }
    assert known >= OPEN_TEXT
    of_roles = {"EnsembleSettings.roles", "ChatEvalSettings.roles"}
    of_models = {name for name in known if name.endswith((".models", ".replacements"))}
    assert {name for name, texts in taken.items() if texts} - of_roles - of_models <= OPEN_TEXT
    assert taken["ModelSpec.name"] <= {"judge.py", "os:environ"}
    # Descriptions of a caller's own roles, and names of models: nothing else of these fields is
    # open.
    assert not list(
        closed_choices({"roles": (Role(name="A", description="/etc"),)}, chateval.protocol.settings)
    )
    assert list(closed_choices({"roles": "judge.yaml"}, chateval.protocol.settings)) == ["roles"]
    for name in of_models:
        assert taken[name] <= {"judge.py", "os:environ"}


@pytest.mark.parametrize("parameter", [
    *("base_url=http://127.0.0.1", "key_env=HOME", "identity=x", "at_once=1", "max_wait=1", "context_window=9"),
    *("path=x", "model_path=/x", "extra_body.x=1", "top_k.x=1", "reasoning_effort.x=1"),
])  # fmt: skip
def test_callers_choose_only_listed_parameters_of_a_model(parameter: str) -> None:
    with pytest.raises(
        UsageError, match=f"may not choose '{parameter.partition('=')[0].partition('.')[0]}'"
    ):
        judged(debate.graph, {"models": f"openai:gpt-4o-mini?{parameter}"})


@pytest.mark.parametrize("name", [
    "huggingface:/etc", "huggingface:../weights", "x:~/weights", r"x:C:\weights", "x:http://127.0.0.1",
])  # fmt: skip
def test_a_callers_model_is_neither_a_path_nor_an_address(name: str) -> None:
    with pytest.raises(UsageError, match="may not choose 'name' as a path or an address"):
        judged(debate.graph, {"models": name})


class FreshSettings(Settings):
    """Settings of a new protocol, as an author may write them without a thought of servers."""

    helper: str = "none"
    file: Path | None = None
    options: dict[str, str] = Field(default_factory=dict)
    anything: Any = None
    helpers: tuple[str, ...] = ()
    note: PromptText = "Be brief."
    size: int = 1
    strict: bool = False


def test_a_new_settings_field_is_closed_until_it_is_declared() -> None:
    chosen = {
        "helper": "os:system",
        "file": Path("/etc/passwd"),
        "options": {"run": "os:system"},
        "anything": 1,
        "helpers": ("os:system",),
    }
    assert list(closed_choices(chosen, FreshSettings)) == list(chosen)
    assert not list(
        closed_choices({"note": "Read /etc.", "size": 3, "strict": True}, FreshSettings)
    )
    graph: ProtocolGraph[FreshSettings] = ProtocolGraph(single.protocol, FreshSettings)
    graph.begin(then="conclude")
    graph.end()
    for name, value in chosen.items():
        with pytest.raises(UsageError, match=f"may not choose '{name}'"):
            judged(graph.compile(), {name: value})


# Names in a task

IMAGE = "iVBORw0KGgo="


@pytest.mark.parametrize("part", [
    {"type": "image_url", "image_url": {"url": "http://169.254.169.254/latest"}},
    {"type": "image_url", "image_url": "https://example.org/cat.png"},
    {"type": "file", "file": {"file_id": "file-of-the-operator"}},
    {"type": "image", "url": "gs://bucket/cat.png"},
    # Also a path, which some clients read.
    {"type": "image", "base64": "///proc/self/environ"},
    {"type": "image_url", "image_url": {"url": "data:,/etc/pki"}},
])  # fmt: skip
def test_a_callers_task_has_no_address_nor_path(
    part: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    task = {**TASK, "media": {"[image 1]": part}}
    for graph in (single.graph, repeated_graph):
        with pytest.raises(UsageError, match=f"the content in base64.*{VARIABLE}=addresses"):
            judged(graph, {}, task)
    # The operator's own tasks, without a server, have addresses.
    assert parse_task(task).media
    thread = single.graph.builder.compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {**SERVED["configurable"], "thread_id": "1"}}
    thread.update_state(config, {"task": task, "orders": [1]}, as_node="prepare")
    with pytest.raises(UsageError, match="the content in base64"):
        thread.invoke(None, config)
    monkeypatch.setenv(VARIABLE, "addresses")
    with pytest.raises(UsageError, match="offline"):  # which reads no images
        judged(single.graph, {}, task)


@pytest.mark.parametrize(
    "address", ["file:///etc/passwd", "/etc/passwd", "x,/etc/passwd", "ftp://example.org/x"]
)
def test_a_task_has_no_file_of_this_machine(address: str) -> None:
    with pytest.raises(InputError, match="is not a web address"):
        parse_task(
            {**TASK, "media": {"[image 1]": {"type": "image_url", "image_url": {"url": address}}}}
        )


# How long a run may take


class Slow(BaseChatModel):
    """A model that answers after some seconds."""

    seconds: float

    @property
    def _llm_type(self) -> str:
        return "slow"

    def _generate(self, *_: Any, **__: Any) -> ChatResult:
        raise NotImplementedError

    async def _agenerate(self, *_: Any, **__: Any) -> ChatResult:
        await asyncio.sleep(self.seconds)
        return ChatResult(generations=[ChatGeneration(message=AIMessage("Score: 3"))])


async def as_a_server_reads(graph: Any) -> None:
    """Read a run's stream as LangGraph's server does, each part in a task of its own."""
    stream = graph.astream({"task": TASK}, SERVED, stream_mode="debug")
    while True:
        try:
            await asyncio.create_task(anext(stream))
        except StopAsyncIteration:
            break


@pytest.mark.slow
@pytest.mark.parametrize("build", [
    single.build, chateval.build, lambda models: repeated(single.build(models=models), k=2),
], ids=["one agent", "side by side", "wrapped"])  # fmt: skip
def test_a_run_of_a_server_has_a_time_limit(build: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = build(models=Slow(seconds=100_000)).compile()
    monkeypatch.setenv(VARIABLE, "seconds=1")
    with pytest.raises(RunTimeoutError, match=f"stopped after 1 seconds.*{VARIABLE}=seconds=2"):
        judged(graph, {})
    with pytest.raises(TimeoutError, match="stopped after 1 seconds"):
        asyncio.run(as_a_server_reads(graph))


def test_only_runs_of_callers_have_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = single.build(models=Slow(seconds=1.2)).compile()
    monkeypatch.setenv(VARIABLE, "seconds=1")
    assert judged(graph, {}, config=None)["score"] == 3
    monkeypatch.setenv(VARIABLE, "*")
    assert judged(graph, {})["score"] == 3


def test_a_pause_for_a_person_does_not_count_as_running_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VARIABLE, "seconds=1000")
    graph = debate.build(n=1, on_unresolved="human").compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {**SERVED["configurable"], "thread_id": "1"}}
    task = {**TASK, "source": "It rained in 1932.", "candidate": "It rained in 1923."}
    assert graph.invoke({"task": task}, config)["__interrupt__"]
    later = SimpleNamespace(monotonic=lambda: time.monotonic() + 2000)
    monkeypatch.setattr(server_rules, "time", later)
    assert graph.invoke(Command(resume=2), config)["verdict"]["score"] == 2


def test_an_unreachable_model_fails_fast_on_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elsewhere, the model's server may be started while a run waits."""
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    pauses: list[int] = []

    def pause(_policy: Any, attempts: int, _after: Any) -> float:
        pauses.append(attempts)
        return 0.0

    monkeypatch.setattr(send, "_pause", pause)
    graph = single.build(models="openai:gpt-4o-mini?base_url=http://127.0.0.1:9/v1").compile()
    with pytest.raises(ModelCallError, match=r"connection refused.*given up after 2 attempts"):
        judged(graph, {})
    assert pauses == [1]
    with pytest.raises(ModelCallError, match="12 attempts"):
        judged(graph, {}, config=None)
    assert retry.DEFAULT_RETRY_POLICY.unanswered is None
