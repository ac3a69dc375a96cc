"""LangGraph Studio's side of the package: the development server, started for real, through its client."""

import ast
import asyncio
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from jurygraph import create_judge
from jurygraph.eval.cli.studio import configuration
from jurygraph.graphs import calibrated, cascade, debate, repeated, single
from jurygraph.graphs.registry import find_protocol, protocols
from jurygraph.state import UsageError
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.pregel.remote import RemoteGraph
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient
from langgraph_sdk.errors import BadRequestError

from .conftest import FOREIGN, PROXIES
from .loopback import Failure, Provider
from .processes import HANG_GUARD, JURYGRAPH, ran
from .sample_data import timeless
from .source_tree import ROOT

pytestmark = pytest.mark.slow
PERSONAS = ["strict", "moderate", "weak", "plain", "sophisticated"]
TASK: dict[str, Any] = {
    "kind": "score",
    "source": "The bridge opened in 1932 after six years of work. It cost 4 million crowns.",
    "candidate": "The bridge opened in 1923 and cost 5 million.",
    "aspect": "consistency",
}
COMPARISON = {
    "kind": "compare",
    "question": "Why is the sky blue?",
    "answer_1": "Air scatters blue light more than red light, so blue reaches us from all sides.",
    "answer_2": "It mirrors the sea.",
}
FORM: dict[str, Any] = {
    **{"structured": "auto", "layout": "shared_prefix", "repair": 1, "n": 4, "persona": "strict"},
    **{"tie_breaker": False, "on_unresolved": "last", "commander": "relay"},
    **{"termination": "declared", "on_overflow": "error"},
}
"""What a form sends that fills in every default and leaves out what is empty."""
EMPTY: dict[str, Any] = {"models": {}, "prompts": None, "temperature": None, "max_tokens": None}


LANGGRAPH_DEV = ("-m", "langgraph_cli", "dev", "--no-browser", "--no-reload", "--n-jobs-per-worker", "4")


class DevServer:
    """``langgraph dev``, or another command, in a process group of its own, its output in a file."""

    def __init__(self, folder: Path, command: Sequence[str] = LANGGRAPH_DEV) -> None:
        self.output = folder / "output.txt"
        shutil.copy(ROOT / "langgraph.json", folder)
        (folder / ".env").write_text("JURYGRAPH_SERVER_ALLOW=prompts,base_url\n")
        hidden = (*FOREIGN, *PROXIES, "LANGGRAPH_")
        env = {name: value for name, value in os.environ.items() if not name.upper().startswith(hidden)}
        env |= {"LANGSMITH_TRACING": "false", "LANGGRAPH_CLI_NO_ANALYTICS": "1", "OPENAI_API_KEY": "unused"}
        with self.output.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, *command, "--host", "127.0.0.1", "--port", str(_free_port())],
                cwd=folder,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def said(self) -> str:
        return self.output.read_text(encoding="utf-8", errors="replace")

    def url(self) -> str:
        """Where it listens, once it does: it takes another port where ours has been taken meanwhile."""
        until = time.monotonic() + HANG_GUARD
        while time.monotonic() < until:
            assert self._process.poll() is None, self.said()
            found = re.search(r"http://127\.0\.0\.1:[1-9]\d*", self.said())
            if found and _answers(found.group()):
                return found.group()
            time.sleep(0.1)
        raise TimeoutError(self.said())

    def stop(self) -> None:
        for end in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self._process.pid, end)
                self._process.wait(timeout=10)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/ok", timeout=HANG_GUARD, trust_env=False).is_success
    except httpx.TransportError:
        return False


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevServer]:
    running = DevServer(tmp_path_factory.mktemp("studio"))
    try:
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="module")
def url(server: DevServer) -> str:
    return server.url()


@pytest.fixture
def client(url: str) -> Iterator[SyncLangGraphClient]:
    with get_sync_client(url=url) as opened:
        yield opened


def ended(client: SyncLangGraphClient, thread: Any, graph: str, **given: Any) -> dict[str, Any]:
    """What a run comes to, on a thread or on none."""
    result = client.runs.wait(thread, graph, **given)
    assert isinstance(result, dict)
    return result


def run(
    client: SyncLangGraphClient, context: Any = None, task: Any = TASK, graph: str = "debate"
) -> dict[str, Any]:
    return ended(client, None, graph, input={"task": task}, context=context)


def test_studio_lists_every_graph(client: SyncLangGraphClient) -> None:
    found = {assistant["graph_id"]: assistant for assistant in client.assistants.search(limit=100)}
    assert found.keys() >= protocols().keys()
    for name, module in protocols().items():
        assert module.protocol.summary[1:] in str(found[name]["description"])


def test_the_form_offers_tasks_aspects_and_settings_with_their_choices(client: SyncLangGraphClient) -> None:
    (assistant,) = client.assistants.search(graph_id="debate")
    offered = client.assistants.get_schemas(assistant["assistant_id"])
    schema: Any = offered["input_schema"]
    assert schema["required"] == ["task"]
    kinds = schema["properties"]["task"]
    assert [kind["$ref"] for kind in kinds["oneOf"]] == ["#/$defs/ScoreTask", "#/$defs/CompareTask"]
    assert set(kinds["discriminator"]["mapping"]) == {"score", "compare"}
    score, compare = schema["$defs"]["ScoreTask"], schema["$defs"]["CompareTask"]
    assert score["required"] == ["kind", "source", "candidate", "aspect"]
    assert compare["required"] == ["kind", "question", "answer_1", "answer_2"]
    names, own = score["properties"]["aspect"]["anyOf"]
    assert {"coherence", "summeval/coherence", "topical-chat/groundedness"} <= set(names["enum"])
    assert own == {"$ref": "#/$defs/Aspect"}
    fields: Any = offered["context_schema"]["properties"]  # type: ignore[index]
    assert set(fields) == set(FORM) | set(EMPTY)
    assert {name: fields[name]["default"] for name in FORM} == FORM
    assert fields["persona"]["anyOf"][0]["enum"] == PERSONAS
    choices = {name: fields[name]["enum"] for name in ("on_unresolved", "commander", "termination", "layout")}
    assert choices == {
        **{"on_unresolved": ["last", "tie_breaker", "human"], "commander": ["relay", "llm"]},
        **{"termination": ["declared", "substring"], "layout": ["shared_prefix", "papers"]},
    }
    assert fields["models"]["type"] == "object"
    assert fields["n"]["minimum"] == 1


@pytest.mark.parametrize("name", sorted(protocols()))
def test_every_protocol_runs(client: SyncLangGraphClient, name: str) -> None:
    kinds = find_protocol(name).protocol.kinds
    for kind in kinds:
        result = run(client, None, {"score": TASK, "compare": COMPARISON}[kind], graph=name)
        if "__interrupt__" in result:
            # The debate on these texts is unresolved, and a person is asked.
            assert name == "review"
            continue
        assert (result["verdict"]["protocol"], result["verdict"]["kind"]) == (name, kind)
        assert result["transcript"]


@pytest.mark.parametrize("empty", [{}, {"models": {}}, EMPTY], ids=["left out", "some", "sent"])
@pytest.mark.parametrize("touched", [{"tie_breaker": True}, {"on_unresolved": "tie_breaker"}], ids=str)
def test_a_filled_in_form_does_not_contradict_itself(
    client: SyncLangGraphClient, touched: dict[str, Any], empty: dict[str, Any]
) -> None:
    verdict = run(client, {**FORM, **empty, "n": 1, **touched})["verdict"]
    assert (verdict["stop_reason"], verdict["calls"]) == ("tie_breaker", 4)
    # Untouched, it is what a run without context takes.
    assert timeless(run(client, {**FORM, **empty})) == timeless(run(client))


def test_a_person_reviews_on_a_thread(client: SyncLangGraphClient) -> None:
    """Both orders ask at once; each pause is answered by its own id, and says which order it is of."""
    thread = client.threads.create()["thread_id"]
    inner = {"of": "single", "when": ["always"], "inner": {"position_calibration": False}}
    context: dict[str, Any] = {"of": "review", "inner": inner}
    client.runs.wait(thread, "calibrated", input={"task": COMPARISON}, context=context)
    tasks = client.threads.get_state(thread)["tasks"]
    pauses = {pause["value"]["place"]["id"]: pause for task in tasks for pause in task["interrupts"]}
    assert set(pauses) == {"straight/human", "swapped/human"}
    assert "answers swapped" in pauses["swapped/human"]["value"]["question"]
    answers = {pause["id"]: {"answer": "1", "name": place} for place, pause in pauses.items()}
    result = ended(client, thread, "calibrated", command={"resume": answers}, context=context)
    assert result["verdict"]["details"]["winner_by_order"] == ["1", "2"]
    said = {turn["id"]: turn["name"] for turn in result["transcript"] if turn["agent"] == "human"}
    assert said == {"straight/human:1": "straight/human", "swapped/human:1": "swapped/human"}


@pytest.mark.parametrize(("task", "context", "words"), [
    ({**TASK, "aspect": "beauty"}, None, ["task.aspect", "beauty", "summeval/fluency"]),
    ({}, None, ["task is missing", "answer_2"]),
    (TASK, {"persona": "mean"}, ["persona", "'sophisticated'"]),
    (TASK, {"models": {"*": "google_genai:gemini-2.0-flash"}}, ["GOOGLE_API_KEY is not set"]),
], ids=["aspect", "no task", "persona", "key"])  # fmt: skip
def test_bad_input_fails_and_the_field_is_named(
    client: SyncLangGraphClient, task: Any, context: dict[str, Any] | None, words: list[str]
) -> None:
    with pytest.raises(Exception, match=r"InputError|UsageError") as failure:
        run(client, context, task)
    assert [word for word in words if word not in str(failure.value)] == []
    assert not re.search(r"pydantic|_Input", str(failure.value))


def test_an_edit_that_cannot_be_is_answered_in_words(client: SyncLangGraphClient) -> None:
    thread = client.threads.create()["thread_id"]
    ended(client, thread, "debate", input={"task": COMPARISON}, context={"n": 1})
    edit = {"id": "critic:1", "value": 3}
    with pytest.raises(BadRequestError, match="the turn critic:1 cannot have the value 3: it takes true or"):
        client.threads.update_state(thread, {"transcript": [edit]}, as_node="critic")


WRAPPERS: dict[str, Any] = {
    "calibrated": calibrated,
    "repeated": lambda judge: repeated(judge, 2),
    "cascade": lambda judge: cascade(single.build(), judge, gap=99),
    "both": lambda judge: calibrated(repeated(judge, 2)),
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("name", ["debate", "chateval"])
async def test_a_judge_on_the_server_is_wrapped_like_one_at_hand(url: str, wrapper: str, name: str) -> None:
    given, thread = {"task": COMPARISON}, {"configurable": {"thread_id": "any name", "user": "me"}}
    near = WRAPPERS[wrapper](find_protocol(name).build()).compile().invoke(given)
    far = WRAPPERS[wrapper](RemoteGraph(name, url=url)).compile(checkpointer=InMemorySaver())
    assert timeless(await far.ainvoke(given, thread)) == timeless(near)
    heard: list[str] = []

    def listen() -> None:
        heard.extend(e["turn"]["id"] for e in far.stream(given, thread, stream_mode="custom"))

    await asyncio.to_thread(listen)
    assert sorted(heard) == sorted(turn["id"] for turn in near["transcript"])
    assert timeless(far.get_state(thread, subgraphs=True).values) == timeless(near)


def test_a_judge_on_the_server_gets_the_wrappers_context(url: str) -> None:
    graph = calibrated(RemoteGraph("debate", url=url)).compile()
    at_hand = calibrated(debate.build(n=1)).compile().invoke({"task": COMPARISON})
    assert timeless(graph.invoke({"task": COMPARISON}, context={"n": 1})) == timeless(at_hand)
    with pytest.raises(UsageError, match=r"debate, which runs elsewhere: n must be greater than or equal"):
        graph.invoke({"task": COMPARISON}, context={"n": 0})


def test_what_a_judge_on_the_server_cannot_do_is_said(client: SyncLangGraphClient, url: str) -> None:
    context: Any = {"on_unresolved": "human", "n": 1}
    asking = client.assistants.create("debate", context=context)["assistant_id"]
    waiting = repeated(RemoteGraph(asking, url=url, name="debate"), 2).compile(checkpointer=InMemorySaver())
    with pytest.raises(UsageError, match="debate runs elsewhere and waits for a person"):
        waiting.invoke({"task": TASK}, {"configurable": {"thread_id": "1"}})
    client.assistants.delete(asking)
    with pytest.raises(UsageError, match="geval, which runs elsewhere: geval takes no task of the kind"):
        calibrated(RemoteGraph("geval", url=url)).compile().invoke({"task": COMPARISON})
    gone = RemoteGraph("debate", url=f"http://127.0.0.1:{_free_port()}")
    with pytest.raises(httpx.ConnectError) as failure:
        calibrated(gone).compile().invoke({"task": COMPARISON})
    assert "the judge debate, which runs elsewhere" in str(failure.value.__notes__)


def test_a_provider_of_the_context_is_called_and_a_referee_who_fails_is_asked_again_alone(
    client: SyncLangGraphClient, provider: Provider
) -> None:
    provider.play(Failure(401, "No such key."), *["The year is wrong.\n\nScore: 2"] * 3)
    # The provider's real client, first loaded and then called on the server's event loop.
    judge = {"name": "openai:gpt-4o-mini", "base_url": provider.openai_url}
    context: Any = {"models": {"*": judge}, "structured": "off", "referees": 3}
    thread = client.threads.create()["thread_id"]
    with pytest.raises(Exception, match="401"):
        client.runs.wait(thread, "ensemble", input={"task": TASK}, context=context)
    assert len(provider.requests) == 3
    result = ended(client, thread, "ensemble", input=None)
    assert [turn["agent"] for turn in result["transcript"]] == ["referee_1", "referee_2", "referee_3"]
    assert {turn["model"] for turn in result["transcript"]} == {judge["name"]}
    assert result["verdict"]["score"] == 2
    assert len(provider.requests) == 3 + 1


def test_a_graph_on_the_server_is_a_judge_in_one_line(url: str) -> None:
    judge = create_judge(RemoteGraph("debate", url=url), aspect="consistency")
    given = {"inputs": TASK["source"], "outputs": TASK["candidate"]}
    at_hand = create_judge("debate", aspect="consistency")
    assert judge(**given) | {"metadata": {}} == at_hand(**given) | {"metadata": {}}
    done = judge.evaluate("demo", limit=2)
    assert [(result.protocol, result.status) for result in done.results] == [("debate", "ok")] * 2
    assert "|graph:" in done.manifest["signatures"]["debate"]
    message = judge.as_agent().invoke({"messages": [("user", "Sum up: It rained."), ("ai", "It rained.")]})
    assert message["verdict"]["protocol"] == "debate"


async def test_a_protocol_is_a_tool_for_mcp_clients(url: str) -> None:
    client = pytest.importorskip("mcp.client")
    async with client.Client(f"{url}/mcp") as opened:
        tools = {tool.name: tool for tool in (await opened.list_tools()).tools}
        assert set(protocols()) <= set(tools)
        assert "task" in tools["debate"].input_schema["properties"]
        told = await opened.call_tool("debate", {"task": TASK})
        # The server writes what a graph returned as Python does.
        assert ast.literal_eval(told.content[0].text)["verdict"]["kind"] == "score"
        wrong = await opened.call_tool("debate", {"task": {**TASK, "candidate": ""}})
        assert wrong.is_error and wrong.content[0].text == "InputError"


MINE = """
from jurygraph.graphs import single

graph = single.build(models="offline").compile(name="mine")
"""


def test_studio_serves_the_protocols_and_ones_own_graph(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    kept = tmp_path / ".langgraph_api" / ".langgraph_ops.pckl"
    kept.parent.mkdir()
    kept.write_text("runs of an earlier server")
    running = DevServer(tmp_path, (*JURYGRAPH[1:], "studio", "mine=mine.py:graph", "--no-browser"))
    try:
        with get_sync_client(url=running.url()) as client:
            served = {one["graph_id"]: one for one in client.assistants.search(limit=100)}
            assert {*protocols(), "mine"} <= set(served)
            assert run(client, graph="mine")["verdict"]["protocol"] == "single"
            # From the file .env.
            assert "__error__" not in run(client, {"prompts": str(ROOT / "nodes" / "prompts")}, graph="mine")
            assert kept.with_suffix(".before").read_text() == "runs of an earlier server"
    finally:
        running.stop()


def test_a_run_that_asks_for_what_callers_may_not_is_refused_at_once(client: SyncLangGraphClient) -> None:
    for graph, context, told in (
        ("repeated", {"k": 1_000_000}, "k must be less than or equal to 1000"),
        ("repeated", {"k": 1, "nonsense": 3}, "nonsense is not a setting of repeated; its settings are"),
        ("chateval", {"roles": "/etc/roles.yaml"}, "callers of this server may not choose 'roles'"),
    ):
        with pytest.raises(Exception, match=told):
            run(client, context, graph=graph)
    # Keys of the config are others' as well.
    config: Any = {"configurable": {"k": 1, "user": "me"}}
    assert client.runs.wait(None, "repeated", input={"task": TASK}, config=config)


@pytest.mark.parametrize("command", [["validate"], ["dockerfile", "Dockerfile"]])
def test_langgraph_takes_the_configurations(tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "written.json").write_text(json.dumps(configuration([])))
    for file in (ROOT / "langgraph.json", tmp_path / "written.json"):
        langgraph = (sys.executable, "-m", "langgraph_cli", command[0], "--config", str(file), *command[1:])
        done = ran(*langgraph, cwd=tmp_path, env={**os.environ, "LANGGRAPH_CLI_NO_ANALYTICS": "1"})
        assert done.returncode == 0, done.stdout + done.stderr


def test_nothing_blocked_the_event_loop(client: SyncLangGraphClient, server: DevServer) -> None:
    """The server raises on blocking calls, and says so: in all the runs above, and in a first one here."""
    run(client, {"n": 1, "prompts": str(ROOT / "nodes" / "prompts")})
    assert "allow-blocking" not in server.said()
    assert "Blocking" not in server.said()
