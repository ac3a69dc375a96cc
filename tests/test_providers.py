"""Test OpenAI's and Gemini's clients on loopback: requests, replies, and redirects."""

import asyncio
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from jurygraph.graphs import debate
from jurygraph.nodes.models import resolver
from jurygraph.nodes.models.call import Reply
from jurygraph.nodes.models.prices import cost_usd
from jurygraph.state import UsageError, Verdict
from jurygraph.state.errors import ModelCallError
from jurygraph.state.settings import ModelSpec
from langchain_core.language_models.fake_chat_models import ParrotFakeChatModel
from pytest_socket import SocketConnectBlockedError

from .loopback import Answer, Failure, Provider, Raw, Request, Text, Usage
from .loopback_debate import (
    OPENAI,
    PROVIDERS,
    SCORE_TASK,
    Debaters,
    asked,
    gemini_chat,
    google,
    loaded,
    name_of,
    openai_chat,
    run,
)
from .processes import until

LIMIT = {"max_completion_tokens": 2048}
LIMIT_FIELD = {"openai": "max_completion_tokens", "google": "maxOutputTokens"}


@pytest.mark.filterwarnings("ignore:A test tried to use socket:UserWarning")
def test_nothing_outside_the_machine_can_be_reached() -> None:
    with pytest.raises(SocketConnectBlockedError):
        socket.create_connection(("192.0.2.1", 80), timeout=0.1)


# Requests


@pytest.mark.parametrize("name", ["gpt-4o-mini", "gpt-4.1-nano", "gpt-5-mini", "o3-mini"])
def test_openai_is_asked_for_a_strict_schema(provider: Provider, name: str) -> None:
    provider.play(by=Debaters())
    run("async", models={"*": f"openai:{name}"})
    first, second = (dict(request.parameters) for request in provider.requests)
    wanted = first.pop("response_format")
    assert wanted["type"] == "json_schema"
    assert wanted["json_schema"]["strict"] is True
    assert list(wanted["json_schema"]["schema"]["properties"]) == ["reasoning", "score"]
    assert list(second["response_format"]["json_schema"]["schema"]["properties"]) == [
        "feedback",
        "no_issue",
    ]
    assert "tools" not in first
    if name == "gpt-4o-mini":
        assert first == {"temperature": 0.0, **LIMIT}
    assert provider.requests[0].headers["authorization"] == "Bearer test-key"


@pytest.mark.parametrize("name", ["gpt-3.5-turbo", "gpt-4", "gpt-4-turbo", "gpt-4-0613"])
def test_models_without_schemas_are_asked_by_function_call(provider: Provider, name: str) -> None:
    provider.play(by=Debaters((4,)))
    verdict, transcript = run("async", models={"*": f"openai:{name}"})
    sent = provider.requests[0].parameters
    assert sent["tool_choice"] == {"type": "function", "function": {"name": "score_reply"}}
    assert "response_format" not in sent
    assert (verdict.score, verdict.calls) == (4, 2)
    assert "rationale 1" in transcript[1]["content"]


def test_gemini_is_asked_for_json_at_temperature_0(provider: Provider) -> None:
    provider.play(by=Debaters())
    run("async", models={"*": google(provider)})
    sent = provider.requests[0].parameters
    assert provider.models == ["gemini-2.0-flash"] * 2
    assert list(sent.pop("responseJsonSchema")["properties"]) == ["reasoning", "score"]
    assert sent.pop("maxOutputTokens") == LIMIT["max_completion_tokens"]
    assert sent == {"temperature": 0.0, "candidateCount": 1, "responseMimeType": "application/json"}


@pytest.mark.parametrize("kind", PROVIDERS)
@pytest.mark.parametrize(("own", "settings", "sent"), [
    ("", {}, (0.0, 2048)), ("", {"temperature": 0.3, "max_tokens": 700}, (0.3, 700)),
    ("temperature=0.9&max_tokens=50", {"temperature": 0.3, "max_tokens": 700}, (0.9, 50)),
    ("temperature=0", {"temperature": 0.3}, (0.0, 2048)),
])  # fmt: skip
def test_whose_temperature_and_length_limit_count(
    provider: Provider, kind: str, own: str, settings: dict[str, Any], sent: tuple[float, int]
) -> None:
    name = name_of(kind, provider)
    provider.play(by=Debaters())
    run("async", models={"*": f"{name}{'&' if '?' in name else '?'}{own}"}, **settings)
    for parameters in (request.parameters for request in provider.requests):
        assert (parameters["temperature"], parameters[LIMIT_FIELD[kind]]) == sent


# Chat model objects (run on the loop that stays: their connections are their owner's to close)


@pytest.mark.parametrize("kind", PROVIDERS)
@pytest.mark.parametrize(
    ("settings", "sent"), [({}, (0.7, 2048)), ({"temperature": 0.2, "max_tokens": 300}, (0.2, 300))]
)
def test_a_chat_models_parameters_change_only_on_purpose(
    provider: Provider, kind: str, settings: dict[str, Any], sent: tuple[float, int]
) -> None:
    chat = (openai_chat if kind == "openai" else gemini_chat)(provider, temperature=0.7)
    provider.play(by=Debaters())
    verdict, transcript = run("sync", models={"*": chat}, **settings)
    for parameters in (request.parameters for request in provider.requests):
        assert (parameters["temperature"], parameters[LIMIT_FIELD[kind]]) == sent
    assert chat.temperature == 0.7
    assert verdict.warnings == ()
    label = {"openai": OPENAI, "google": "google_genai:gemini-2.0-flash"}[kind]
    assert {turn["model"] for turn in transcript if turn["calls"]} == {label}


def test_a_chat_model_without_a_temperature_stays_without(provider: Provider) -> None:
    provider.play(by=Debaters())
    run("sync", models={"*": openai_chat(provider)}, structured="off")
    assert provider.requests[0].parameters == LIMIT


def test_a_chat_model_that_has_no_temperature_to_set_is_named_in_a_warning() -> None:
    model = resolver.wrap(ParrotFakeChatModel())
    assert any("no temperature" in warning for warning in model.tuned(0.5, None).warnings.values())
    assert model.tuned(None, None) is model
    assert model.tuned(0.5, None) is model.tuned(0.5, None)


# Responses


# Published prices per million tokens, input / cached input / output: gpt-4o-mini 0.15 / 0.075 /
# 0.60 USD, gemini-2.0-flash 0.10 / 0.025 / 0.40 USD. For 60 fresh, 40 cached and 20 output tokens,
# then 300 and 10:
@pytest.mark.parametrize(
    ("kind", "micro_usd"), [("openai", (9 + 3 + 12) + (45 + 6)), ("google", (6 + 1 + 8) + (30 + 4))]
)
def test_usage_and_cost_of_turns_and_verdict(
    provider: Provider, kind: str, micro_usd: float
) -> None:
    usage = Usage(input=100, cached=40, output=20, reasoning=5)
    provider.play(
        Text(fields={"reasoning": "Fine.", "score": 4}, usage=usage),
        Text(fields={"feedback": "", "no_issue": True}, usage=Usage(input=300, output=10)),
    )
    verdict, transcript = run("async", models={"*": name_of(kind, provider)})
    turn = next(turn for turn in transcript if turn["role"] == "scorer")
    assert (turn["input_tokens"], turn["cached_input_tokens"]) == (100, 40)
    assert (turn["output_tokens"], turn["reasoning_tokens"]) == (20, 5)
    assert (verdict.input_tokens, verdict.cached_input_tokens) == (400, 40)
    assert (verdict.output_tokens, verdict.reasoning_tokens) == (30, 5)
    assert verdict.cost_usd == pytest.approx(micro_usd / 1e6)
    assert 0 < turn["seconds"] < 5


def test_an_unknown_price_or_usage_makes_the_whole_unknown(provider: Provider) -> None:
    provider.play(by=Debaters())
    verdict, transcript = run(
        "async", models={"scorer": OPENAI, "critic": "openai:somebodys-own-model"}
    )
    costs = {turn["role"]: turn["cost_usd"] for turn in transcript if turn["calls"]}
    assert costs == {"scorer": cost_usd(OPENAI, 100, 0, 20), "critic": None}
    assert verdict.cost_usd is None
    provider.play(
        Text(fields={"reasoning": "", "score": 4}, usage=None), {"feedback": "", "no_issue": True}
    )
    verdict, transcript = run("async", models={"*": OPENAI})
    assert (transcript[1]["cost_usd"], verdict.cost_usd) == (None, None)


# Unsupported features of a model

TEMPERATURE = "Unsupported value: 'temperature' does not support 0 with this model."
REJECTED = {
    "temperature": ("openai:o3-mini", "temperature", TEMPERATURE),
    "max_tokens": (
        "openai:o3-mini?max_tokens=90",
        "max_completion_tokens",
        "Unsupported: 'max_completion_tokens'",
    ),
    "Gemini, temperature": ("google", "temperature", "Temperature is not supported by this model."),
    "Gemini, max_tokens": (
        "google&max_tokens=90",
        "maxOutputTokens",
        "max_output_tokens is not supported.",
    ),
}


@pytest.mark.parametrize("case", REJECTED)
def test_a_rejected_parameter_is_dropped_once_and_for_all(provider: Provider, case: str) -> None:
    name, field, words = REJECTED[case]
    failure = Failure(400, words, field if name.startswith("openai") else None)
    debaters = Debaters([4] * 9, satisfied_in=None)
    provider.play(by=lambda request: failure if field in request.parameters else debaters(request))
    verdict, _ = run("async", models={"*": name.replace("google", google(provider))}, n=2)
    assert [field in request.parameters for request in provider.requests] == [True, *[False] * 5]
    assert (verdict.score, verdict.calls) == (4, 5)
    assert len(verdict.warnings) == 1
    assert f"takes no {case.rsplit(maxsplit=1)[-1]}" in verdict.warnings[0]


async def test_debates_side_by_side_drop_a_parameter_together(provider: Provider) -> None:
    graph = debate.build(models={"*": "openai:o3-mini"}, n=1).compile()
    given: list[Any] = [
        {"task": {**SCORE_TASK, "candidate": f"Candidate {at}."}} for at in range(6)
    ]

    def by(request: Request) -> Answer:
        if "temperature" not in request.parameters:
            return Debaters((4,))(request)
        until(lambda: provider.connections > 1)  # another request must be in flight first
        return Failure(400, TEMPERATURE, "temperature")

    provider.play(by=by)
    verdicts = [
        Verdict.of(result)
        for result in await asyncio.gather(*(graph.ainvoke(one) for one in given))
    ]
    assert [verdict.score for verdict in verdicts] == [4] * 6
    assert all(
        "takes no temperature" in warning for verdict in verdicts for warning in verdict.warnings
    )
    assert [len(verdict.warnings) for verdict in verdicts] == [1] * 6
    assert sum("temperature" in request.parameters for request in provider.requests) > 1


def test_a_parameter_rejected_although_it_was_left_out_is_an_error(provider: Provider) -> None:
    provider.play(by=lambda _: Failure(400, TEMPERATURE, "temperature"))
    with pytest.raises(ModelCallError, match="does not support 0"):
        run("async", models={"*": "openai:o3-mini"})
    assert len(provider.requests) == 2


# Keys


@pytest.mark.parametrize(
    ("name", "key"),
    [(OPENAI, "OPENAI_API_KEY"), ("google_genai:gemini-2.0-flash", "GOOGLE_API_KEY")],
)
@pytest.mark.parametrize("how", ["async", "sync"])
def test_a_missing_key_is_one_sentence_before_any_call(
    provider: Provider, monkeypatch: pytest.MonkeyPatch, how: str, name: str, key: str
) -> None:
    monkeypatch.delenv(key)
    with pytest.raises(UsageError, match=rf"^{key} is not set, and the model {name} cannot"):
        run(how, models={"critic": name, "scorer": "offline"})
    with pytest.raises(UsageError, match=key):
        resolver.check(ModelSpec(name=name))
    assert provider.requests == []


def test_gemini_takes_its_other_key_too(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GOOGLE_API_KEY")
    monkeypatch.setenv("GEMINI_API_KEY", "other-key")
    provider.play(by=Debaters())
    run("async", models={"*": google(provider)})
    assert provider.requests[0].headers["x-goog-api-key"] == "other-key"


async def test_a_mended_key_is_used_at_once(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = debate.build(models={"*": OPENAI}, n=1).compile()
    given: Any = {"task": SCORE_TASK}
    for key in ("wrong-key", "right-key"):
        monkeypatch.setenv("OPENAI_API_KEY", key)
        provider.play(by=Debaters((4, 4), satisfied_in=None))
        await graph.ainvoke(given)
    keys = [request.headers["authorization"] for request in provider.requests]
    assert keys == ["Bearer wrong-key"] * 3 + ["Bearer right-key"] * 3


GEMINI = "/v1/models/gemini-2.0-flash:generateContent"


@pytest.fixture
def other() -> Iterator[Provider]:
    server = Provider()
    server.play(by=lambda _: "Score: 5")
    yield server
    server.stop()


async def ask(kind: str, provider: Provider) -> Reply:
    """Ask by each real client, as a name or an object makes it."""
    if kind == "object":
        return await asked(resolver.wrap(openai_chat(provider, max_retries=0)))
    claude = f"anthropic:claude-mine?base_url={provider.url}"
    model = loaded({"google": google(provider), "anthropic": claude}.get(kind, OPENAI))
    if kind == "openai":
        # Without it, calls go through the ``openai`` client.
        model.chat._post = None  # type: ignore[attr-defined]
    return await asked(model)


def redirect(status: int, to: str) -> Raw:
    return Raw("Moved.", "text/html", status, {"Location": to})


def path_of(kind: str) -> str:
    return GEMINI if kind == "google" else "/v1/chat/completions"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("kind", ["fast", "openai", "object", "google", "anthropic"])
async def test_no_redirect_leads_to_another_host(
    provider: Provider, other: Provider, monkeypatch: pytest.MonkeyPatch, kind: str, status: int
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test-key")
    provider.play(by=lambda _: redirect(status, other.url + path_of(kind)))
    with pytest.raises(ModelCallError, match="set base_url to where it leads") as caught:
        await ask(kind, provider)
    assert not caught.value.retryable
    assert other.connections == 0
    assert len(provider.requests) == 1


@pytest.mark.parametrize("status", [301, 302, 303])
@pytest.mark.parametrize("kind", ["fast", "openai", "object", "google"])
async def test_no_redirect_turns_the_request_into_another(
    provider: Provider, kind: str, status: int
) -> None:
    provider.play(by=lambda _: redirect(status, f"{path_of(kind)}?again=1"))
    with pytest.raises(ModelCallError, match=str(status)):
        await ask(kind, provider)
    assert len(provider.requests) == 1


@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize("kind", ["fast", "openai", "object"])
async def test_a_request_is_repeated_on_the_same_host(
    provider: Provider, kind: str, status: int
) -> None:
    provider.play(redirect(status, "/v1/chat/completions?again=1"), "Score: 4")
    assert (await ask(kind, provider)).text == "Score: 4"
    first, second = provider.requests
    assert (first.method, second.method) == ("POST", "POST")
    assert "again" in second.path
    assert first.body == second.body


async def test_a_circle_of_redirects_ends(provider: Provider) -> None:
    provider.play(by=lambda _: redirect(307, "/v1/chat/completions"))
    with pytest.raises(ModelCallError, match="more than 3 redirects"):
        await ask("fast", provider)
