"""Test LangGraph Studio's side: the real development server, through its client."""

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
from jurygraph.graphs.engine.registry import find_protocol, protocols
from jurygraph.state import UsageError
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.pregel.remote import RemoteGraph
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient
from langgraph_sdk.errors import BadRequestError

from .conftest import FOREIGN, PROXIES
from .loopback import Failure, Hang, Provider
from .processes import HANG_GUARD, JURYGRAPH, ran
from .sample_data import timeless
from .source_tree import ROOT
from .test_checklist import TASK as RUBRIC_TASK
from .test_server_rules import OWN_PROTOCOL, WITNESS

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
EARLIER_FORM: dict[str, Any] = {
    **{"structured": "auto", "layout": "shared_prefix", "repair": 1, "n": 4, "persona": "strict"},
    **{"tie_breaker": False, "on_unresolved": "last", "commander": "relay"},
    **{"termination": "declared", "on_overflow": "error"},
}
"""The request of a form that an earlier version saved, with its defaults, without empty fields."""
FORM: dict[str, Any] = {
    **EARLIER_FORM,
    "fences": "on",
    "trusted_texts": False,
    "stop": [],
    "eps": 0.0,
    "risk": 0.1,
    "prior": [1.0, 1.0],
    "juror_tools": [],
    "tool_rounds": 4,
    "tool_timeout": 30.0,
}
"""A form's request with all defaults and without empty fields."""
EMPTY: dict[str, Any] = {
    **{"models": {}, "prompts": None, "temperature": None, "max_tokens": None},
    "budget_tokens": None,
}


LANGGRAPH_DEV = (
    "-m",
    "langgraph_cli",
    "dev",
    "--no-browser",
    "--no-reload",
    "--n-jobs-per-worker",
    "4",
)


class DevServer:
    """Runs ``langgraph dev`` or another command in a process group, with output to a file."""

    def __init__(
        self, folder: Path, command: Sequence[str] = LANGGRAPH_DEV, allow: str = "prompts,base_url"
    ) -> None:
        self.output = folder / "output.txt"
        shutil.copy(ROOT / "langgraph.json", folder)
        (folder / ".env").write_text(f"JURYGRAPH_SERVER_ALLOW={allow}\n")
        hidden = (*FOREIGN, *PROXIES, "LANGGRAPH_")
        env = {
            name: value for name, value in os.environ.items() if not name.upper().startswith(hidden)
        }
        env |= {
            "LANGSMITH_TRACING": "false",
            "LANGGRAPH_CLI_NO_ANALYTICS": "1",
            "OPENAI_API_KEY": "unused",
        }
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
        """The server's address once it listens; it takes another port if ours is in use."""
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
    """Return the result of a run, on a thread or on none."""
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


def test_the_form_offers_tasks_aspects_and_settings_with_their_choices(
    client: SyncLangGraphClient,
) -> None:
    (assistant,) = client.assistants.search(graph_id="debate")
    offered = client.assistants.get_schemas(assistant["assistant_id"])
    schema: Any = offered["input_schema"]
    assert schema["required"] == ["task"]
    kinds = schema["properties"]["task"]
    assert [kind["$ref"] for kind in kinds["oneOf"]] == ["#/$defs/ScoreTask", "#/$defs/CompareTask"]
    assert set(kinds["discriminator"]["mapping"]) == {"score", "compare"}
    score = schema["$defs"]["ScoreTask"]
    compare = schema["$defs"]["CompareTask"]
    # A source may be omitted if the criteria do not mention one.
    assert score["required"] == ["kind", "candidate", "aspect"]
    assert compare["required"] == ["kind", "question", "answer_1", "answer_2"]
    names, own = score["properties"]["aspect"]["anyOf"]
    assert {"coherence", "summeval/coherence", "topical-chat/groundedness"} <= set(names["enum"])
    assert own == {"$ref": "#/$defs/Aspect"}
    fields: Any = offered["context_schema"]["properties"]  # type: ignore[index]
    assert set(fields) == set(FORM) | set(EMPTY)
    assert {name: fields[name]["default"] for name in FORM} == FORM
    assert fields["persona"]["anyOf"][0]["enum"] == PERSONAS
    choices = {
        name: fields[name]["enum"]
        for name in ("on_unresolved", "commander", "termination", "layout")
    }
    assert choices == {
        **{"on_unresolved": ["last", "tie_breaker", "human"], "commander": ["relay", "llm"]},
        **{"termination": ["declared", "substring"], "layout": ["shared_prefix", "papers"]},
    }
    assert fields["models"]["type"] == "object"
    number, word = fields["n"]["anyOf"]
    assert (number["minimum"], word["const"]) == (1, "auto")


@pytest.mark.parametrize("name", sorted(protocols()))
def test_every_protocol_runs(client: SyncLangGraphClient, name: str) -> None:
    kinds = find_protocol(name).protocol.kinds
    tasks = {"score": RUBRIC_TASK if name == "checklist" else TASK, "compare": COMPARISON}
    for kind in kinds:
        result = run(client, None, tasks[kind], graph=name)
        if "__interrupt__" in result:
            # The debate on these texts is unresolved, and a person is asked.
            assert name == "review"
            continue
        assert (result["verdict"]["protocol"], result["verdict"]["kind"]) == (name, kind)
        assert result["transcript"]


@pytest.mark.parametrize("empty", [{}, {"models": {}}, EMPTY], ids=["left out", "some", "sent"])
@pytest.mark.parametrize(
    "touched", [{"tie_breaker": True}, {"on_unresolved": "tie_breaker"}], ids=str
)
def test_a_filled_in_form_does_not_contradict_itself(
    client: SyncLangGraphClient, touched: dict[str, Any], empty: dict[str, Any]
) -> None:
    for form in (FORM, EARLIER_FORM):
        verdict = run(client, {**form, **empty, "n": 1, **touched})["verdict"]
        assert (verdict["stop_reason"], verdict["calls"]) == ("tie_breaker", 4)
    # Unchanged, it equals a run without context.
    assert timeless(run(client, {**FORM, **empty})) == timeless(run(client))


def test_a_person_reviews_on_a_thread(client: SyncLangGraphClient) -> None:
    """Both orders ask at once; each pause has its own id and names its order."""
    thread = client.threads.create()["thread_id"]
    inner = {"of": "single", "when": ["always"], "inner": {"position_calibration": False}}
    context: dict[str, Any] = {"of": "review", "inner": inner}
    client.runs.wait(thread, "calibrated", input={"task": COMPARISON}, context=context)
    tasks = client.threads.get_state(thread)["tasks"]
    pauses = {
        pause["value"]["place"]["id"]: pause for task in tasks for pause in task["interrupts"]
    }
    assert set(pauses) == {"straight/human", "swapped/human"}
    assert "answers swapped" in pauses["swapped/human"]["value"]["question"]
    answers = {pause["id"]: {"answer": "1", "name": place} for place, pause in pauses.items()}
    result = ended(client, thread, "calibrated", command={"resume": answers}, context=context)
    assert result["verdict"]["details"]["winner_by_order"] == ["1", "2"]
    said = {turn["id"]: turn["name"] for turn in result["transcript"] if turn["agent"] == "human"}
    assert said == {"straight/human:1": "straight/human", "swapped/human:1": "swapped/human"}


HUMAN: dict[str, Any] = {"n": 1, "on_unresolved": "human"}
IN_DOUBT: dict[str, Any] = {
    "cheap": "debate",
    "cheap_settings": {"n": 1},
    "expensive_settings": HUMAN,
}


def waiting(state: Any) -> list[Any]:
    """The states of the innermost judges that wait for a person."""
    inside = [task["state"] for task in state["tasks"] if (task.get("state") or {}).get("values")]
    return [deepest for judge in inside for deepest in (waiting(judge) or [judge])]


@pytest.mark.parametrize("resumed", ["thread", "checkpoint"])
@pytest.mark.parametrize(
    ("graph", "context", "pauses"),
    [
        ("repeated", {"k": 2, "inner": HUMAN}, 2),
        ("calibrated", {"inner": HUMAN}, 2),
        ("cascade", IN_DOUBT, 1),
        ("review", {"inner": HUMAN}, 1),
        ("repeated", {"k": 2, "of": "repeated", "inner": {"k": 2, "inner": HUMAN}}, 4),
        ("review", {"of": "cascade", "inner": IN_DOUBT}, 1),
    ],
    ids=[
        "repeated",
        "calibrated",
        "cascade",
        "review",
        "repeated in repeated",
        "cascade in review",
    ],
)
def test_a_turn_is_edited_inside_wrappers(
    client: SyncLangGraphClient, graph: str, context: dict[str, Any], pauses: int, resumed: str
) -> None:
    thread = client.threads.create()["thread_id"]
    task = COMPARISON if graph == "calibrated" else TASK
    client.runs.wait(thread, graph, input={"task": task}, context=context)
    judges = waiting(client.threads.get_state(thread, subgraphs=True))
    assert [judge["next"] for judge in judges] == [["human"]] * pauses
    edit = {"id": "critic:1", "content": "NO ISSUE", "value": True}
    edited = client.threads.update_state(
        thread, {"transcript": [edit]}, checkpoint=judges[-1]["checkpoint"], as_node="critic"
    )
    checkpoint = {"checkpoint": edited["checkpoint"]} if resumed == "checkpoint" else {}
    result = ended(client, thread, graph, input=None, **checkpoint)
    people = 0
    while not result.get("verdict"):
        tasks = client.threads.get_state(thread)["tasks"]
        answers = {pause["id"]: "let it stand" for task in tasks for pause in task["interrupts"]}
        people += len(answers)
        result = ended(client, thread, graph, command={"resume": answers})
    assert people == pauses - 1
    said = [turn["id"].rpartition("/")[2] for turn in result["transcript"] if turn.get("edited")]
    assert said == ["critic:1"]


async def test_a_turn_of_a_judge_on_the_server_has_one_id_in_every_stream(url: str) -> None:
    graph: Any = repeated(RemoteGraph("calibrated", url=url), 2).compile()
    heard: dict[bool, set[str]] = {True: set(), False: set()}
    events = graph.astream({"task": COMPARISON}, stream_mode="custom", subgraphs=True)
    async for where, event in events:
        heard[bool(where)].add(event["turn"]["id"])
    assert "repeat_1/swapped/critic:1" in heard[False]
    assert heard[True] == heard[False]


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
    with pytest.raises(
        BadRequestError, match="the turn critic:1 cannot have the value 3: it takes true or"
    ):
        client.threads.update_state(thread, {"transcript": [edit]}, as_node="critic")


WRAPPERS: dict[str, Any] = {
    "calibrated": calibrated,
    "repeated": lambda judge: repeated(judge, 2),
    "cascade": lambda judge: cascade(single.build(), judge, gap=99),
    "both": lambda judge: calibrated(repeated(judge, 2)),
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("name", ["debate", "chateval"])
async def test_a_judge_on_the_server_is_wrapped_like_one_at_hand(
    url: str, wrapper: str, name: str
) -> None:
    given = {"task": COMPARISON}
    thread = {"configurable": {"thread_id": "any name", "user": "me"}}
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
    with pytest.raises(
        UsageError, match=r"debate, which runs elsewhere: n must be greater than or equal"
    ):
        graph.invoke({"task": COMPARISON}, context={"n": 0})


def test_what_a_judge_on_the_server_cannot_do_is_said(
    client: SyncLangGraphClient, url: str
) -> None:
    context: Any = {"on_unresolved": "human", "n": 1}
    asking = client.assistants.create("debate", context=context)["assistant_id"]
    waiting = repeated(RemoteGraph(asking, url=url, name="debate"), 2).compile(
        checkpointer=InMemorySaver()
    )
    with pytest.raises(UsageError, match="debate runs elsewhere and waits for a person"):
        waiting.invoke({"task": TASK}, {"configurable": {"thread_id": "1"}})
    client.assistants.delete(asking)
    with pytest.raises(
        UsageError, match="geval, which runs elsewhere: geval takes no task of the kind"
    ):
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
    # With the default quorum, two referees would give a verdict without the third.
    context: Any = {"models": {"*": judge}, "structured": "off", "referees": 3, "quorum": "all"}
    thread = client.threads.create()["thread_id"]
    with pytest.raises(Exception, match="401"):
        client.runs.wait(thread, "ensemble", input={"task": TASK}, context=context)
    assert len(provider.requests) == 3
    result = ended(client, thread, "ensemble", input=None)
    assert [turn["agent"] for turn in result["transcript"]] == [
        "referee_1",
        "referee_2",
        "referee_3",
    ]
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
    message = judge.as_agent().invoke(
        {"messages": [("user", "Sum up: It rained."), ("ai", "It rained.")]}
    )
    assert message["verdict"]["protocol"] == "debate"


async def test_a_protocol_is_a_tool_for_mcp_clients(url: str) -> None:
    client = pytest.importorskip("mcp.client")
    async with client.Client(f"{url}/mcp") as opened:
        tools = {tool.name: tool for tool in (await opened.list_tools()).tools}
        assert set(protocols()) <= set(tools)
        assert "task" in tools["debate"].input_schema["properties"]
        told = await opened.call_tool("debate", {"task": TASK})
        assert not told.is_error
        # The verdict alone, as compact JSON.
        verdict = json.loads(told.content[0].text)
        assert (verdict["protocol"], verdict["kind"]) == ("debate", "score")
        assert told.content[0].text == json.dumps(
            verdict, ensure_ascii=False, separators=(",", ":")
        )
        wrong = await opened.call_tool("debate", {"task": {**TASK, "candidate": ""}})
        assert wrong.is_error and "task.candidate" in wrong.content[0].text


PREFER = (
    f"Question: {COMPARISON['question']}\n"
    f"Answer 1: {COMPARISON['answer_1']}\nAnswer 2: {COMPARISON['answer_2']}"
)
"""A comparison as a chat message."""


def test_a_chat_streams_turns_as_messages_and_takes_a_persons_decision(
    client: SyncLangGraphClient,
) -> None:
    thread = client.threads.create()["thread_id"]
    given: Any = {"messages": [{"role": "user", "content": PREFER, "id": "asked"}]}
    heard: list[str] = []
    for part in client.runs.stream(
        thread, "chat", input=given, context={"inner": HUMAN}, stream_mode="messages-tuple"
    ):
        if part.event == "messages":
            heard.append(part.data[0]["id"])
    assert heard == [
        *("asked/commander:1", "asked/scorer:1", "asked/commander:2", "asked/critic:1"),
        *("asked/commander:3", "asked/scorer:2"),
    ]
    [task] = client.threads.get_state(thread)["tasks"]
    [request] = task["interrupts"][0]["value"]["action_requests"]
    edit = {"name": request["name"], "args": {**request["args"], "answer": "tie", "name": "Ann"}}
    resume = {"decisions": [{"type": "edit", "edited_action": edit}]}
    result = ended(client, thread, "chat", command={"resume": resume})
    assert (result["verdict"]["winner"], result["verdict"]["stop_reason"]) == ("tie", "human")
    ids = [message["id"] for message in result["messages"]]
    assert ids == ["asked", *heard, "asked/human:1", "asked/verdict"]
    said = result["messages"][-1]
    assert (said["name"], said["content"][:28]) == ("verdict", "The answers are equally good")


@pytest.mark.parametrize(
    ("text", "told"),
    [(PREFER, "Answer 1 is better"), ("Which is better?", "Nothing was judged")],
    ids=["task", "unreadable"],
)
def test_a2a_clients_get_the_verdict_in_words(
    client: SyncLangGraphClient, url: str, text: str, told: str
) -> None:
    (assistant,) = client.assistants.search(graph_id="chat")
    parts = [{"kind": "text", "text": text}]
    message = {"role": "user", "messageId": "1", "parts": parts}
    request = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": message}}
    answer = httpx.post(
        f"{url}/a2a/{assistant['assistant_id']}",
        json=request,
        timeout=HANG_GUARD,
        trust_env=False,
    ).json()
    [artifact] = answer["result"]["artifacts"]
    assert artifact["parts"][0]["text"].startswith(told)


async def test_a_chat_is_a_tool_that_takes_text(url: str) -> None:
    client = pytest.importorskip("mcp.client")
    async with client.Client(f"{url}/mcp") as opened:
        told = await opened.call_tool("chat", {"messages": PREFER})
        assert json.loads(told.content[0].text)["winner"] == "1"
        unread = await opened.call_tool("chat", {"messages": "Which is better?"})
        assert "Nothing was judged" in unread.content[0].text


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
            assert "__error__" not in run(
                client, {"prompts": str(ROOT / "nodes" / "prompts")}, graph="mine"
            )
            assert kept.with_suffix(".before").read_text() == "runs of an earlier server"
    finally:
        running.stop()


def test_a_run_that_asks_for_what_callers_may_not_is_refused_at_once(
    client: SyncLangGraphClient,
) -> None:
    for graph, context, told in (
        ("repeated", {"k": 1_000_000}, "k must be less than or equal to 1000"),
        (
            "repeated",
            {"k": 1, "nonsense": 3},
            "nonsense is not a setting of repeated; its settings are",
        ),
        ("chateval", {"roles": "/etc/roles.yaml"}, "callers of this server may not choose 'roles'"),
    ):
        with pytest.raises(Exception, match=told):
            run(client, context, graph=graph)
    # Keys of the config are others' as well.
    config: Any = {"configurable": {"k": 1, "user": "me"}}
    assert client.runs.wait(None, "repeated", input={"task": TASK}, config=config)


# The rights of callers: a server that was started with its operator's own protocol

SECONDS = 12
"""How long a run may take."""


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevServer]:
    folder = tmp_path_factory.mktemp("callers")
    (folder / "served_judge.py").write_text(OWN_PROTOCOL.replace("NAME", "served_judge"))
    command = (*JURYGRAPH[1:], "studio", "served_judge.py", "--no-browser")
    running = DevServer(folder, command, allow=f"base_url,seconds={SECONDS}")
    try:
        yield running
    finally:
        running.stop()


@pytest.fixture
def caller(studio: DevServer) -> Iterator[SyncLangGraphClient]:
    with get_sync_client(url=studio.url()) as opened:
        yield opened


@pytest.fixture
def witness(tmp_path: Path) -> Iterator[Path]:
    """A Python file that leaves a trace when it is run; the test fails if it was."""
    file = tmp_path / "witness.py"
    file.write_text(WITNESS)
    yield file
    assert not file.with_suffix(".ran").exists()


def hostile_contexts(reference: str) -> Iterator[tuple[str, dict[str, Any]]]:
    inside = {"of": reference}
    for graph in ("repeated", "review"):
        yield graph, inside
    yield "calibrated", inside
    yield "cascade", {"cheap": reference}
    yield "cascade", {"expensive": reference}
    yield "repeated", {"of": "repeated", "inner": inside}
    yield "repeated", {"of": "repeated", "inner": json.dumps(inside)}
    yield "repeated", {"of": "review", "inner": {"of": "repeated", "inner": inside}}
    yield "cascade", {"cheap": "repeated", "cheap_settings": inside}


def refusal(client: SyncLangGraphClient, thread: Any, graph: str, **given: Any) -> str:
    """Return the message to a caller."""
    with pytest.raises(Exception, match="callers of this server") as refused:
        client.runs.wait(thread, graph, **given)
    return str(refused.value)


def test_a_callers_context_runs_no_file_and_shows_none(
    caller: SyncLangGraphClient, witness: Path
) -> None:
    for existing, missing in zip(
        hostile_contexts(str(witness)),
        hostile_contexts(str(witness.with_name("missing.py"))),
        strict=True,
    ):
        told = {
            refusal(caller, None, graph, input={"task": COMPARISON}, context=context)
            for graph, context in (existing, missing)
        }
        assert len(told) == 1
        assert "as a file or a module, only by the name of a protocol that it serves" in told.pop()
    for reference in ("this:graph", "os:environ", f"{witness}:graph"):
        refusal(caller, None, "repeated", input={"task": TASK}, context={"of": reference})
    # By the name of its protocol, the operator's own file can be used.
    own = run(
        caller, {"of": "served_judge", "k": 2, "inner": {"structured": "off"}}, graph="repeated"
    )
    assert own["verdict"]["details"]["of"] == "served_judge"


def test_nor_do_an_assistant_a_resumed_run_and_an_edited_thread(
    caller: SyncLangGraphClient, witness: Path
) -> None:
    hostile: dict[str, Any] = {"of": str(witness)}
    task = {"task": TASK}
    assistant = caller.assistants.create("repeated", context=hostile)["assistant_id"]
    refusal(caller, None, assistant, input=task)
    caller.assistants.delete(assistant)
    refusal(caller, None, "repeated", input=task, config={"configurable": hostile})
    begun: dict[str, Any] = {"of": "single", "k": 1}
    hostile_inside: tuple[dict[str, Any], ...] = (hostile, {"of": "repeated", "inner": hostile})
    resumptions: tuple[dict[str, Any], ...] = ({"input": None}, {"command": {"resume": "yes"}})
    for given in resumptions:
        for context in hostile_inside:
            thread = caller.threads.create()["thread_id"]
            caller.runs.wait(
                thread, "repeated", input=task, context=begun, interrupt_before=["judge"]
            )
            refusal(caller, thread, "repeated", context=context, **given)
    thread = caller.threads.create(graph_id="repeated")["thread_id"]
    caller.threads.update_state(thread, task, as_node="prepare")
    refusal(caller, thread, "repeated", input=None, context=hostile)
    thread = caller.threads.create(graph_id="debate")["thread_id"]
    edited = {**task, "orders": [1], "settings": {"prompts": str(witness.parent)}}
    caller.threads.update_state(thread, edited, as_node="prepare")
    refusal(caller, thread, "debate", input=None)


def test_a_callers_task_makes_the_server_fetch_and_read_nothing(
    caller: SyncLangGraphClient, provider: Provider
) -> None:
    context = {"models": {"*": f"openai:gpt-4o-mini?base_url={provider.openai_url}"}}
    for image in (
        {"type": "image_url", "image_url": {"url": provider.openai_url}},
        {"type": "image", "base64": "///proc/self/environ"},
    ):
        task = {**TASK, "media": {"[image 1]": image}}
        assert "base64" in refusal(caller, None, "single", input={"task": task}, context=context)
    assert not provider.requests


def test_crons_are_checked_as_runs_are(
    caller: SyncLangGraphClient, studio: DevServer, witness: Path
) -> None:
    crons = [
        caller.crons.create(graph, schedule="* * * * *", input={"task": TASK}, context=context)
        for graph, context in (("repeated", {"of": str(witness)}), ("debate", {"nnn": 1}))
    ]
    # Each begins within a minute.
    until = time.monotonic() + 60 + HANG_GUARD
    wanted = ("nnn is not a setting of debate", "may not choose 'of' as a file")
    before = studio.said().count(wanted[1])
    while time.monotonic() < until:
        said = studio.said()
        if wanted[0] in said and said.count(wanted[1]) > before:
            break
        time.sleep(1)
    for cron in crons:
        caller.crons.delete(cron["cron_id"])  # type: ignore[typeddict-item]
    assert wanted[0] in said
    assert said.count(wanted[1]) > before


def test_a_misspelt_setting_of_an_assistant_is_refused_by_its_run(
    caller: SyncLangGraphClient,
) -> None:
    task = {"task": TASK}
    of_others = {"configurable": {"user": "me"}}
    told = "nn is not a setting of debate; did you mean n?"
    assistant = caller.assistants.create("debate", context={"nn": 1})["assistant_id"]
    runs: tuple[dict[str, Any], ...] = ({}, {"context": {"n": 1}}, {"config": of_others})
    for given in runs:
        with pytest.raises(Exception, match=re.escape(told)):
            caller.runs.wait(None, assistant, input=task, **given)
    caller.assistants.update(assistant, context={"n": 1})
    # Keys of a run's config may be meant for other graphs of the caller's.
    assert ended(caller, None, assistant, input=task, config=of_others)["verdict"]["calls"] == 3
    caller.assistants.delete(assistant)


def test_a_run_is_stopped_when_its_time_is_over(
    caller: SyncLangGraphClient, provider: Provider
) -> None:
    provider.play(*[Hang(60)] * 3)
    context = {"models": {"*": f"openai:gpt-4o-mini?base_url={provider.openai_url}"}}
    begun = time.monotonic()
    told = f"RunTimeoutError: the run was stopped after {SECONDS} seconds.*SERVER_ALLOW=seconds={2 * SECONDS}"
    with pytest.raises(Exception, match=told):
        run(caller, context)
    assert time.monotonic() - begun < 45


def test_a_persons_pause_is_no_running_time(caller: SyncLangGraphClient) -> None:
    thread = caller.threads.create()["thread_id"]
    context: Any = {"n": 1, "on_unresolved": "human"}
    paused = ended(caller, thread, "debate", input={"task": TASK}, context=context)
    assert paused["__interrupt__"]
    time.sleep(SECONDS + 1)
    answered = ended(caller, thread, "debate", command={"resume": 2}, context=context)
    assert answered["verdict"]["score"] == 2


def test_a_model_that_nobody_serves_is_given_up_at_once(caller: SyncLangGraphClient) -> None:
    context = {"models": {"*": f"openai:gpt-4o-mini?base_url=http://127.0.0.1:{_free_port()}/v1"}}
    begun = time.monotonic()
    with pytest.raises(Exception, match=r"connection refused.*given up after 2 attempts"):
        run(caller, context)
    assert time.monotonic() - begun < SECONDS


def test_ten_runs_go_on_side_by_side_unless_told_otherwise(
    caller: SyncLangGraphClient, studio: DevServer, provider: Provider
) -> None:
    assert "Starting 10 background workers" in studio.said()
    provider.play(*[Hang(SECONDS)] * 3)
    context: Any = {"models": {"*": f"openai:gpt-4o-mini?base_url={provider.openai_url}"}}
    threads = [caller.threads.create()["thread_id"] for _ in range(3)]
    for thread in threads:
        caller.runs.create(thread, "single", input={"task": TASK}, context=context)
    until = time.monotonic() + HANG_GUARD
    while len(provider.requests) < 3 and time.monotonic() < until:
        time.sleep(0.1)
    # All three wait for their replies.
    assert {caller.threads.get(thread)["status"] for thread in threads} == {"busy"}
    assert len(provider.requests) == 3


@pytest.mark.parametrize("command", [["validate"], ["dockerfile", "Dockerfile"]])
def test_langgraph_takes_the_configurations(tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "written.json").write_text(json.dumps(configuration([])))
    for file in (ROOT / "langgraph.json", tmp_path / "written.json"):
        langgraph = (
            sys.executable,
            "-m",
            "langgraph_cli",
            command[0],
            "--config",
            str(file),
            *command[1:],
        )
        done = ran(*langgraph, cwd=tmp_path, env={**os.environ, "LANGGRAPH_CLI_NO_ANALYTICS": "1"})
        assert done.returncode == 0, done.stdout + done.stderr


def test_nothing_blocked_the_event_loop(client: SyncLangGraphClient, server: DevServer) -> None:
    """The server raises on blocking calls and logs them, in the runs above and a first one."""
    run(client, {"n": 1, "prompts": str(ROOT / "nodes" / "prompts")})
    assert "allow-blocking" not in server.said()
    assert "Blocking" not in server.said()
