"""LangGraph Studio's side of the package: the development server, started for real, through its client."""

from __future__ import annotations

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
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from jurygraph.graphs.registry import find_protocol, protocols
from langgraph_sdk import get_client, get_sync_client
from langgraph_sdk.client import SyncLangGraphClient
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from .processes import HANG_GUARD

ROOT = Path(__file__).resolve().parents[1]
STARTS_WITHIN = HANG_GUARD
HIDDEN = (
    "OPENAI_",
    "GOOGLE_",
    "GEMINI_",
    "LANGSMITH_",
    "LANGCHAIN_",
    "LANGGRAPH_",
    "HTTP_PROXY",
    "HTTPS_PROXY",
)
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
    "structured": "auto",
    "layout": "shared_prefix",
    "repair": 1,
    "n": 4,
    "persona": "strict",
    "tie_breaker": False,
    "on_unresolved": "last",
    "commander": "relay",
    "termination": "declared",
}
"""What a form sends that fills in every default and leaves out what is empty."""
EMPTY: dict[str, Any] = {"models": {}, "prompts": None, "temperature": None, "max_tokens": None}


class DevServer:
    """``langgraph dev`` in a process group of its own, its output in a file."""

    def __init__(self, folder: Path) -> None:
        self.output = folder / "output.txt"
        shutil.copy(ROOT / "langgraph.json", folder)
        env = {name: value for name, value in os.environ.items() if not name.upper().startswith(HIDDEN)}
        env |= {"LANGSMITH_TRACING": "false", "LANGGRAPH_CLI_NO_ANALYTICS": "1", "OPENAI_API_KEY": "unused"}
        env |= {"JURYGRAPH_SERVER_ALLOW": "prompts,base_url"}
        command = [sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload"]
        with self.output.open("wb") as output:
            self._process = subprocess.Popen(
                [*command, "--host", "127.0.0.1", "--port", str(_free_port()), "--n-jobs-per-worker", "4"],
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
        until = time.monotonic() + STARTS_WITHIN
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


def schemas(client: SyncLangGraphClient, graph: str) -> Mapping[str, Any]:
    (assistant,) = client.assistants.search(graph_id=graph)
    return client.assistants.get_schemas(assistant["assistant_id"])


def run(
    client: SyncLangGraphClient,
    context: dict[str, Any] | None = None,
    task: Any = TASK,
    graph: str = "debate",
) -> dict[str, Any]:
    result = client.runs.wait(None, graph, input={"task": task}, context=context)
    assert isinstance(result, dict)
    return result


def told(transcript: list[dict[str, Any]], agent: str) -> list[str]:
    return [turn["content"] for turn in transcript if turn["agent"] == agent]


def described(schema: Any, path: str = "") -> Iterator[tuple[str, str | None]]:
    """Every field of a schema, with what a form can tell about it."""
    for part in (schema, *schema.get("$defs", {}).values()):
        for name, field in part.get("properties", {}).items():
            yield f"{path}{part.get('title')}.{name}", field.get("description")


def test_studio_lists_every_graph(client: SyncLangGraphClient) -> None:
    found = {assistant["graph_id"]: assistant for assistant in client.assistants.search(limit=100)}
    assert found.keys() >= protocols().keys()
    for name, module in protocols().items():
        assert module.protocol.summary[1:] in str(found[name]["description"])


@pytest.mark.parametrize("graph", sorted(protocols()))
@pytest.mark.parametrize("part", ["input_schema", "context_schema"])
def test_every_field_of_the_form_says_what_it_is_for(
    client: SyncLangGraphClient, graph: str, part: str
) -> None:
    schema = schemas(client, graph)[part]
    fields = dict(described(schema))
    assert fields
    assert [name for name, text in fields.items() if not text or not text.endswith((".", ")"))] == []
    assert ">>>" not in str(schema), "a doctest in a form"


def test_the_form_offers_both_kinds_of_task_and_the_known_aspects(client: SyncLangGraphClient) -> None:
    schema = schemas(client, "debate")["input_schema"]
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


@pytest.mark.parametrize("graph", sorted(protocols()))
def test_a_form_offers_the_kinds_that_the_graph_takes_and_an_example_of_each(
    client: SyncLangGraphClient, graph: str
) -> None:
    schema = schemas(client, graph)["input_schema"]
    kinds = find_protocol(graph).protocol.kinds
    offered = {"ScoreTask": "score", "CompareTask": "compare"}
    assert tuple(kind for name, kind in offered.items() if name in schema["$defs"]) == kinds
    assert tuple(example["task"]["kind"] for example in schema["examples"]) == kinds


def test_the_form_offers_the_settings_with_choices_and_defaults(client: SyncLangGraphClient) -> None:
    fields = schemas(client, "debate")["context_schema"]["properties"]
    assert set(fields) == set(FORM) | set(EMPTY)
    assert {name: fields[name]["default"] for name in FORM} == FORM
    assert fields["persona"]["enum"] == PERSONAS
    assert fields["on_unresolved"]["enum"] == ["last", "tie_breaker", "human"]
    assert fields["commander"]["enum"] == ["relay", "llm"]
    assert fields["termination"]["enum"] == ["declared", "substring"]
    assert fields["layout"]["enum"] == ["shared_prefix", "papers"]
    assert fields["models"]["type"] == "object"
    assert fields["n"]["minimum"] == 1


def test_multiagent_has_the_plain_critic_by_default(client: SyncLangGraphClient) -> None:
    fields = schemas(client, "multiagent")["context_schema"]["properties"]
    assert fields["persona"]["default"] == "plain"
    result = run(client, {"n": 2}, graph="multiagent")
    assert result["verdict"]["protocol"] == "multiagent"
    assert told(result["transcript"], "critic") == told(
        run(client, {"n": 2, "persona": "plain"})["transcript"], "critic"
    )


def test_a_debate_with_the_persona_of_the_context(client: SyncLangGraphClient) -> None:
    plain = run(client, {"persona": "plain", "n": 2})
    strict = run(client, {"persona": "strict", "n": 2})
    assert set(plain) == {"verdict", "transcript"}
    assert plain["verdict"]["protocol"] == "debate"
    assert plain["verdict"]["kind"] == "score"
    assert plain["verdict"]["rounds"] <= 2
    assert "no language model" in plain["verdict"]["warnings"][0]
    assert plain["verdict"]["calls"] == sum(turn["calls"] for turn in plain["transcript"])
    assert told(plain["transcript"], "critic") != told(strict["transcript"], "critic")


def test_two_answers_are_compared(client: SyncLangGraphClient) -> None:
    verdict = run(client, {"n": 1}, task=COMPARISON)["verdict"]
    assert verdict["kind"] == "compare"
    assert verdict["winner"] == "1"
    assert verdict["scores"][0] > verdict["scores"][1]


@pytest.mark.parametrize("name", sorted(protocols()))
def test_every_protocol_runs(client: SyncLangGraphClient, name: str) -> None:
    kinds = find_protocol(name).protocol.kinds
    for kind in kinds:
        result = run(client, None, {"score": TASK, "compare": COMPARISON}[kind], graph=name)
        assert (result["verdict"]["protocol"], result["verdict"]["kind"]) == (name, kind)
        assert result["transcript"]


def test_a_run_without_context_takes_the_defaults(client: SyncLangGraphClient) -> None:
    bare, whole = run(client), run(client, {**FORM, **EMPTY})
    assert told(bare["transcript"], "critic") == told(whole["transcript"], "critic")
    assert bare["verdict"]["stop_reason"] == whole["verdict"]["stop_reason"]


@pytest.mark.parametrize("empty", [{}, {"models": {}}, EMPTY], ids=["left out", "some", "sent"])
@pytest.mark.parametrize("touched", [{"tie_breaker": True}, {"on_unresolved": "tie_breaker"}], ids=str)
def test_a_filled_in_form_does_not_contradict_itself(
    client: SyncLangGraphClient, touched: dict[str, Any], empty: dict[str, Any]
) -> None:
    verdict = run(client, {**FORM, **empty, "n": 1, **touched})["verdict"]
    assert verdict["stop_reason"] == "tie_breaker"
    assert verdict["calls"] == 4


def test_a_debate_streams_every_node_and_every_turn(client: SyncLangGraphClient) -> None:
    events = list(
        client.runs.stream(
            None,
            "debate",
            input={"task": TASK},
            context={"n": 2, "tie_breaker": True},
            stream_mode=["updates", "custom"],
        )
    )
    updates = [event.data for event in events if event.event == "updates"]
    nodes = [node for update in updates for node in update]
    assert nodes[0] == "prepare"
    assert nodes[-2:] == ["tie_breaker", "conclude"]
    assert nodes.count("critic") == 2
    assert nodes.count("scorer") == 3
    heard = [event.data["turn"] for event in events if event.event == "custom"]
    written = [turn for update in updates[1:-1] for node in update.values() for turn in node["transcript"]]
    assert heard == written
    assert updates[-1]["conclude"]["verdict"]["calls"] == len([turn for turn in heard if turn["model"]]) == 6


def test_a_human_decides_on_a_thread(client: SyncLangGraphClient) -> None:
    thread = client.threads.create()["thread_id"]
    context: dict[str, Any] = {"on_unresolved": "human", "n": 1}
    client.runs.wait(thread, "debate", input={"task": TASK}, context=context)
    assert client.threads.get(thread)["status"] == "interrupted"
    (task,) = client.threads.get_state(thread)["tasks"]
    (pause,) = task["interrupts"]
    assert (pause["value"]["low"], pause["value"]["high"]) == (1, 5)
    assert [line["agent"] for line in pause["value"]["log"]][-1] == "scorer"
    again = client.runs.wait(thread, "debate", command={"resume": "9"}, context=context)
    assert isinstance(again, dict)
    assert "9" in again["__interrupt__"][0]["value"]["problem"]
    result = client.runs.wait(thread, "debate", command={"resume": 1.5}, context=context)
    assert isinstance(result, dict)
    assert (result["verdict"]["stop_reason"], result["verdict"]["score"]) == ("human", 1.5)
    assert result["transcript"][-1]["agent"] == "human"


def test_a_thread_that_is_used_again_starts_from_a_clean_slate(client: SyncLangGraphClient) -> None:
    thread = client.threads.create()["thread_id"]
    for n in (2, 1):
        result = client.runs.wait(thread, "debate", input={"task": TASK}, context={"n": n})
        assert isinstance(result, dict)
        once = run(client, {"n": n})
        assert told(result["transcript"], "scorer") == told(once["transcript"], "scorer")
        assert result["verdict"]["calls"] == once["verdict"]["calls"] == 2 * n + 1


async def test_threads_in_parallel_do_not_mix(url: str) -> None:
    years = [str(year) for year in range(1801, 1809)]

    async def judge(year: str) -> Any:
        task = {**TASK, "candidate": f"The bridge opened in {year}."}
        thread = (await opened.threads.create())["thread_id"]
        return await opened.runs.wait(thread, "debate", input={"task": task}, context={"n": 3})

    async with get_client(url=url) as opened:
        results = await asyncio.gather(*(judge(year) for year in years))
    for year, result in zip(years, results, strict=True):
        said = " ".join(turn["content"] for turn in result["transcript"])
        assert set(re.findall(r"180\d", said)) == {year}


@pytest.mark.parametrize(
    ("task", "context", "words"),
    [
        ({**TASK, "aspect": "beauty"}, None, ["task.aspect", "beauty", "summeval/fluency"]),
        ({**TASK, "candidate": 7}, None, ["task.candidate must be text"]),
        ({"kind": "compare", "question": "Why?", "answer_1": "So."}, None, ["task.answer_2 is missing"]),
        ({"source": "a"}, None, ["task has no kind", "answer_2"]),
        ({}, None, ["task is missing", "answer_2"]),
        ({**TASK, "candidate": " "}, None, ["task.candidate is blank"]),
        (TASK, {"persona": "mean"}, ["persona", "'sophisticated'"]),
        (TASK, {"n": 0}, ["n", "greater than or equal to 1"]),
        (TASK, {"models": {"judge": "offline"}}, ["no role 'judge'", "its roles are commander"]),
        (TASK, {"models": {"*": "google_genai:gemini-2.0-flash"}}, ["GOOGLE_API_KEY is not set"]),
    ],
    ids=["aspect", "candidate", "answer_2", "kind", "no task", "blank", "persona", "n", "role", "key"],
)
def test_bad_input_fails_and_the_field_is_named(
    client: SyncLangGraphClient, task: Any, context: dict[str, Any] | None, words: list[str]
) -> None:
    with pytest.raises(Exception, match=r"InputError|UsageError") as failure:
        run(client, context, task)
    assert [word for word in words if word not in str(failure.value)] == []
    assert not re.search(r"pydantic|_Input", str(failure.value))


def test_a_provider_named_in_the_context_is_called(
    client: SyncLangGraphClient, httpserver: HTTPServer, server: DevServer
) -> None:
    """The provider's real client, first loaded and then called on the server's event loop."""
    httpserver.expect_request("/v1/chat/completions").respond_with_handler(_completion)
    judge = {"name": "openai:gpt-4o-mini", "base_url": httpserver.url_for("/v1")}
    result = run(client, {"models": {"*": judge}, "structured": "off"})
    assert result["verdict"]["stop_reason"] == "no_issue"
    assert result["verdict"]["score"] == 2
    assert {turn["model"] for turn in result["transcript"]} == {None, "openai:gpt-4o-mini"}
    assert len(httpserver.log) == 2


def _completion(_request: Request) -> Response:
    message = {"role": "assistant", "content": "The year is wrong.\n\nScore: 2\n\nNO ISSUE"}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": "gpt-4o-mini"}
    return Response(json.dumps({**body, "choices": [choice], "usage": usage}), mimetype="application/json")


def test_callers_choose_no_file_that_the_operator_has_not_allowed(client: SyncLangGraphClient) -> None:
    given = {"task": TASK}
    outcome = client.runs.wait(
        None, "chateval", input=given, context={"roles": "/etc/roles.yaml"}, raise_error=False
    )
    assert isinstance(outcome, dict)
    assert "callers of this server may not choose 'roles'" in str(outcome["__error__"])


def test_nothing_blocked_the_event_loop(client: SyncLangGraphClient, server: DevServer) -> None:
    """The server raises on blocking calls, and says so: in all the runs above, and in a first one here."""
    run(client, {"n": 1, "prompts": str(ROOT / "nodes" / "prompts")})
    assert "allow-blocking" not in server.said()
    assert "Blocking" not in server.said()
