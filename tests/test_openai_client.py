"""Test the lean client of OpenAI against LangChain's, and the identity of a model."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from jurygraph.graphs import single
from jurygraph.nodes.models import connections, openai_fast, resolver
from jurygraph.nodes.models.call import Reply
from jurygraph.nodes.models.openai_fast import FastChatOpenAI
from jurygraph.state.errors import ModelCallError
from langchain_core.callbacks import AsyncCallbackHandler, get_usage_metadata_callback
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatResult
from langchain_core.runnables import RunnableLambda
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI
from openai import DefaultAsyncHttpxClient
from pydantic import SecretStr

from .loopback import Answer, Broken, Provider, Reset, Text, Usage
from .loopback_debate import OPENAI, SCORE_TASK, asked, google, loaded

JUDGE = HumanMessage("Judge.")
SCORE = AIMessage("Score: 9")
MESSAGES = [SystemMessage("You judge."), JUDGE, SCORE, HumanMessage("Again.")]
SCHEMA = {
    **{"title": "score_reply", "type": "object", "properties": {"score": {"type": "integer"}}},
    **{"required": ["score"], "additionalProperties": False},
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "s", "schema": SCHEMA}}
TOOL = {"type": "function", "function": {"name": "score_reply", "parameters": SCHEMA}}
TOP = ({"4": 0.75, "5": 0.25}, {".": 1.0})
FULL = Usage(input=100, cached=40, output=20, reasoning=5)


# The same as LangChain's own client

CASES: dict[str, tuple[dict[str, Any], dict[str, Any], Text]] = {
    "text": ({"temperature": 0.0}, {}, Text("Score: 4", usage=FULL)),
    "every parameter": (
        {
            "temperature": 0.5,
            "top_p": 0.9,
            "seed": 3,
            "max_tokens": 50,
            "model_kwargs": {"user": "me"},
        },
        {"stop": ["END"]},
        Text("Score: 4"),
    ),
    "cut off": ({}, {}, Text("Sco", finish="length")),
    "filtered": ({}, {}, Text("", finish="blocked")),
    "refusal": ({}, {}, Text(refusal="I cannot.")),
    "no usage": ({}, {}, Text("Score: 4", usage=None)),
    "log-probabilities": ({}, {"logprobs": True, "top_logprobs": 2}, Text("4.", top=TOP)),
    "schema": ({}, {"extra_body": {"response_format": FORMAT}}, Text(fields={"score": 4})),
    "function call": (
        {},
        {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "score_reply"}}},
        Text(fields={"score": 4}),
    ),
    "several": ({}, {"n": 3}, Text("Score: 4")),
    "reasoning model": (
        {"model": "o3-mini", "reasoning_effort": "low"},
        {},
        Text("Score: 4", usage=FULL),
    ),
}


@pytest.mark.parametrize("case", CASES)
async def test_requests_and_results_are_those_of_langchains_client(
    provider: Provider, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    fields, options, answer = CASES[case]
    given = {"model": "gpt-4o-mini", **fields}
    async with DefaultAsyncHttpxClient() as http_client:
        theirs = ChatOpenAI(**given, http_async_client=http_client)
        ours = FastChatOpenAI(**given, http_async_client=http_client)
        ours.prepare()
        provider.play(by=lambda _: answer)
        results = [await chat.agenerate([list(MESSAGES)], **options) for chat in (theirs, ours)]
        complete = await ours.complete(MESSAGES, **options)
    expected, generated = (
        [_told(generation.message) for generation in result.generations[0]]  # type: ignore[union-attr]
        for result in results
    )
    assert generated == [_told(message) for message in complete] == expected
    first, *others = provider.requests
    assert [request.body for request in others] == [first.body] * 2
    of_the_account = ("authorization", "openai-organization", "openai-project")
    assert [first.headers[name] for name in of_the_account] == [
        "Bearer test-key",
        "org-1",
        "proj-1",
    ]
    for name in (*of_the_account, "user-agent", "content-type", "x-stainless-lang"):
        assert others[0].headers[name] == others[1].headers[name] == first.headers[name]


def _told(message: BaseMessage) -> Any:
    """Return the contents of a message; LangChain's has None or empty text for missing parts."""
    return _without_blanks(message.model_dump(exclude={"id"}))


def _without_blanks(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {name: _without_blanks(inner) for name, inner in value.items()}
        return {name: inner for name, inner in kept.items() if inner not in (None, "", {}, [])}
    return [_without_blanks(inner) for inner in value] if isinstance(value, list) else value


async def test_the_environments_proxy_is_used(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", provider.url)
    with pytest.raises(ModelCallError):
        await asked(loaded("openai:gpt-4o-mini?base_url=http://api.example.test/v1"))
    # The loopback provider passes nothing on, but a proxy is asked for the whole address.
    assert provider.asked_for == ["http://api.example.test/v1/chat/completions"]
    monkeypatch.delenv("http_proxy")
    monkeypatch.setenv("https_proxy", "http://proxy.example.test:3128")
    monkeypatch.setenv("no_proxy", "127.0.0.1,.inside.test")
    assert openai_fast.proxy_for("https://api.example.test/v1") == "http://proxy.example.test:3128"
    assert openai_fast.proxy_for("https://api.inside.test/v1") is None
    assert openai_fast.proxy_for("http://api.example.test/v1") is None


# Who listens hears of every call


class Listener(AsyncCallbackHandler):
    def __init__(self) -> None:
        self.heard: list[str] = []

    async def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        **kwargs: Any,
    ) -> None:
        self.heard.append(str(messages[0][0].content))


async def test_unheard_calls_take_the_short_way(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    complete = FastChatOpenAI.complete
    short_ways = []

    async def counted(self: FastChatOpenAI, *args: Any, **kwargs: Any) -> list[BaseMessage]:
        short_ways.append(args)
        return await complete(self, *args, **kwargs)

    monkeypatch.setattr(FastChatOpenAI, "complete", counted)
    provider.play(by=lambda _: "Score: 4")
    model = loaded()
    listener = Listener()
    replies = [await asked(model)]
    assert len(short_ways) == 1
    with get_usage_metadata_callback() as usage:
        replies.append(await asked(model))
    assert usage.usage_metadata["gpt-4o-mini"]["input_tokens"] == 100

    async def node(_: Any) -> Reply:
        return await asked(model)

    replies.append(await RunnableLambda(node).ainvoke(None, {"callbacks": [listener]}))
    assert listener.heard == ["Judge."]
    assert len(short_ways) == 1
    timeless = [replace(reply, usage=replace(reply.usage, seconds=0)) for reply in replies]
    assert timeless == [timeless[0]] * 3


# Connections


async def test_calls_side_by_side_share_as_many_connections(provider: Provider) -> None:
    provider.play(by=lambda _: "Score: 4")
    several = [loaded(), loaded("openai:gpt-4o"), (loaded()).tuned(0.3, None)]
    for _ in range(3):
        await asyncio.gather(*(asked(several[number % 3]) for number in range(12)))
    assert len(provider.requests) == 36
    assert provider.connections <= 12


@pytest.mark.parametrize("fault", [Reset(), Broken()], ids=str)
async def test_after_a_fault_there_is_one_more_connection(
    provider: Provider, fault: Answer
) -> None:
    provider.play("Score: 4", fault, "Score: 4", "Score: 4")
    model = loaded()
    results = [(await asyncio.gather(asked(model), return_exceptions=True))[0] for _ in range(4)]
    assert [isinstance(result, Exception) for result in results] == [False, True, False, False]
    assert provider.connections == 2


@pytest.mark.parametrize("kind", ["openai", "google"])
@pytest.mark.parametrize("tuned", [False, True])
def test_connections_end_with_their_loop(provider: Provider, kind: str, tuned: bool) -> None:
    async def once() -> str:
        model = loaded(OPENAI if kind == "openai" else google(provider))
        return (await asked(model.tuned(0.3, None) if tuned else model)).text

    provider.play(by=lambda _: "Score: 4")
    before = set(connections.SESSIONS)
    for opened in (1, 2, 3):
        # The leftovers of an ended loop are not used again.
        assert (asyncio.run(once()), provider.connections) == ("Score: 4", opened)
    assert set(connections.SESSIONS) == before


def test_connections_of_a_sync_program_end_with_it(provider: Provider) -> None:
    graph = single.build(models={"*": OPENAI}, structured="off").compile()
    given: Any = {"task": SCORE_TASK}
    provider.play("Score: 4", "Score: 4")
    for _ in range(2):
        assert graph.invoke(given)["verdict"]["score"] == 4
        opened = list(connections.SESSIONS.values())
        assert [session.closed for session in opened] == [False]
        connections._close_at_exit()
        assert [session.closed for session in opened] == [True]


# The identity of a model


def chat(**fields: Any) -> ChatOpenAI:
    given: dict[str, Any] = {"model": "gpt-4o-mini", "api_key": SecretStr("sk-secret"), **fields}
    return ChatOpenAI(**given)


def gemini(**fields: Any) -> ChatGoogleGenerativeAI:
    return ChatGoogleGenerativeAI(
        model="gemini-2.0-flash", api_key=SecretStr("sk-secret"), **fields
    )


@pytest.mark.parametrize("make", [chat, gemini])
def test_a_chat_models_identity_has_its_parameters_and_no_secret(
    make: Callable[..., BaseChatModel],
) -> None:
    plain = resolver.wrap(make()).identity
    assert resolver.wrap(make()).identity == plain
    assert json.loads(json.dumps(plain)) == plain
    assert "sk-secret" not in json.dumps(plain)
    parameters = {"temperature": 0.5, "top_p": 0.5, "seed": 0, "stop": ["END"]}
    for field in parameters.keys() & type(make()).model_fields:
        assert resolver.wrap(make(**{field: parameters[field]})).identity != plain, field
    assert resolver.wrap(make(temperature=0.0)).identity != plain


def test_how_a_model_is_asked_is_no_part_of_its_identity_and_tuning_is() -> None:
    elsewhere = {
        **{
            "base_url": "http://127.0.0.1:1/v1",
            "api_key": SecretStr("sk-other"),
            "organization": "org-1",
        },
        **{"max_retries": 3, "timeout": 5.0, "default_headers": {"X-Auth": "sk-secret"}},
        **{"metadata": {"team": "a"}, "tags": ["a"]},
    }
    plain = resolver.wrap(chat()).identity
    assert resolver.wrap(chat(**elsewhere)).identity == plain
    secret = resolver.wrap(
        chat(model_kwargs={"user": "me", "extra": {"api_key": "sk-secret"}})
    ).identity
    assert secret["parameters"]["model_kwargs"] == {"user": "me"}

    class Mine(ChatOpenAI):
        def _create_chat_result(self, *args: Any, **kwargs: Any) -> ChatResult:
            return super()._create_chat_result(*args, **kwargs)

    assert (
        resolver.wrap(Mine(model="gpt-4o-mini", api_key=SecretStr("sk-secret"))).identity != plain
    )
    model = resolver.wrap(chat(temperature=0.5))
    tuned = model.tuned(0.2, 50)
    assert (tuned.identity["temperature"], tuned.identity["max_tokens"]) == (0.2, 50)
    assert tuned.identity != model.identity
    before = dict(tuned.identity)
    assert tuned.drop("temperature")
    assert tuned.identity == before
