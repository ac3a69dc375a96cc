"""The real clients of OpenAI and Gemini against the loopback provider: what is sent, and what is read from replies."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import pytest
from jurygraph import create_judge
from jurygraph.graphs import debate
from jurygraph.nodes.delimiters import fence
from jurygraph.nodes.models import resolver
from jurygraph.nodes.models.prices import cost_usd
from jurygraph.state import UsageError, Verdict
from jurygraph.state.errors import ModelCallError
from jurygraph.state.settings import ModelSpec
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import ParrotFakeChatModel
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI
from pydantic import SecretStr
from pytest_socket import SocketConnectBlockedError

from .loopback import Answer, Failure, Provider, Request, Text, Usage
from .loopback_debate import OPENAI, SCORE_TASK, Debaters, google, run
from .processes import until
from .test_judge import TRAJECTORIES, WAY

PROVIDERS = ["openai", "google"]
LIMIT = {"max_completion_tokens": 2048}
USAGE = Usage(input=100, cached=40, output=20, reasoning=5)


def name_of(kind: str, provider: Provider) -> str:
    return OPENAI if kind == "openai" else google(provider)


def chat_of(kind: str, provider: Provider, **fields: Any) -> BaseChatModel:
    if kind == "openai":
        return ChatOpenAI(
            model="gpt-4o-mini", base_url=provider.openai_url, api_key=SecretStr("test-key"), **fields
        )
    return ChatGoogleGenerativeAI(model="gemini-2.0-flash", base_url=provider.url, **fields)


@pytest.mark.filterwarnings("ignore:A test tried to use socket:UserWarning")
def test_nothing_outside_the_machine_can_be_reached() -> None:
    with pytest.raises(SocketConnectBlockedError):
        socket.create_connection(("192.0.2.1", 80), timeout=0.1)


# What is sent


def test_openai_is_asked_for_a_strict_schema_at_temperature_0(provider: Provider) -> None:
    provider.play(by=Debaters())
    run("async", models={"*": OPENAI})
    first, second = (dict(request.parameters) for request in provider.requests)
    wanted = first.pop("response_format")
    assert wanted["type"] == "json_schema"
    assert wanted["json_schema"]["strict"] is True
    assert list(wanted["json_schema"]["schema"]["properties"]) == ["reasoning", "score"]
    assert first == {"temperature": 0.0, **LIMIT}
    assert list(second["response_format"]["json_schema"]["schema"]["properties"]) == ["feedback", "no_issue"]
    assert provider.requests[0].headers["authorization"] == "Bearer test-key"


@pytest.mark.parametrize("kind", PROVIDERS)
def test_a_conversation_is_sent_whole(provider: Provider, kind: str) -> None:
    judge = create_judge("debate", aspect="consistency", model=name_of(kind, provider))
    for form in ("OpenAI", "Anthropic"):
        provider.play(by=Debaters())
        assert judge(outputs=TRAJECTORIES[form])["score"] == 3
    # One fence round all of it; what a tool returned stands in no message of its own.
    for request in provider.requests:
        assert [role for role, _ in request.messages] == ["system", "user"]
        assert fence("candidate", WAY) in request.user


def test_gemini_is_asked_for_json_at_temperature_0(provider: Provider) -> None:
    provider.play(by=Debaters())
    run("async", models={"*": google(provider)})
    sent = provider.requests[0].parameters
    assert provider.models == ["gemini-2.0-flash"] * 2
    assert list(sent.pop("responseJsonSchema")["properties"]) == ["reasoning", "score"]
    assert sent.pop("maxOutputTokens") == LIMIT["max_completion_tokens"]
    assert sent == {"temperature": 0.0, "candidateCount": 1, "responseMimeType": "application/json"}


@pytest.mark.parametrize("name", ["gpt-3.5-turbo", "gpt-4", "gpt-4-turbo", "gpt-4-0613"])
def test_models_without_schemas_are_asked_by_function_call(provider: Provider, name: str) -> None:
    provider.play(by=Debaters((4,)))
    verdict, transcript = run("async", models={"*": f"openai:{name}"})
    sent = provider.requests[0].parameters
    assert sent["tool_choice"] == {"type": "function", "function": {"name": "score_reply"}}
    assert "response_format" not in sent
    assert (verdict.score, verdict.calls) == (4, 2)
    assert "rationale 1" in transcript[1]["content"]


@pytest.mark.parametrize("name", ["gpt-4o", "gpt-4.1-nano", "gpt-5-mini", "o3-mini"])
def test_newer_models_are_asked_for_a_schema(provider: Provider, name: str) -> None:
    provider.play(by=Debaters((4,)))
    run("async", models={"*": f"openai:{name}"})
    assert "response_format" in provider.requests[0].parameters
    assert "tools" not in provider.requests[0].parameters


@pytest.mark.parametrize("kind", PROVIDERS)
def test_plain_text_in_and_out(provider: Provider, kind: str) -> None:
    provider.play("Every claim holds.\nScore: 4", "Nothing to add.\nNO ISSUE")
    verdict, _ = run("async", models={"*": name_of(kind, provider)}, structured="off")
    assert [request.schema for request in provider.requests] == [None, None]
    assert "Score: <number>" in provider.requests[0].user
    assert (verdict.score, verdict.stop_reason) == (4, "no_issue")


@pytest.mark.parametrize("kind", PROVIDERS)
@pytest.mark.parametrize(
    ("own", "settings", "sent"),
    [
        ("", {}, 0.0),
        ("", {"temperature": 0.3}, 0.3),
        ("temperature=0.9", {"temperature": 0.3}, 0.9),
        ("temperature=0", {"temperature": 0.3}, 0.0),
    ],
)
def test_whose_temperature_counts(
    provider: Provider, kind: str, own: str, settings: dict[str, Any], sent: float
) -> None:
    name = name_of(kind, provider)
    provider.play(by=Debaters())
    run("async", models={"*": f"{name}{'&' if '?' in name else '?'}{own}"}, **settings)
    assert [request.parameters["temperature"] for request in provider.requests] == [sent, sent]


@pytest.mark.parametrize(
    ("kind", "field"), [("openai", "max_completion_tokens"), ("google", "maxOutputTokens")]
)
def test_whose_length_limit_counts(provider: Provider, kind: str, field: str) -> None:
    name = ModelSpec.parse(name_of(kind, provider))
    provider.play(by=Debaters())
    run(
        "async", models={"scorer": name.model_copy(update={"max_tokens": 50}), "critic": name}, max_tokens=700
    )
    assert [request.parameters[field] for request in provider.requests] == [50, 700]


def test_a_models_own_parameters_are_sent(provider: Provider) -> None:
    provider.play(by=Debaters())
    run("async", models={"*": f"{OPENAI}?top_p=0.5&seed=7"}, structured="off")
    assert provider.requests[0].parameters == {"temperature": 0.0, "top_p": 0.5, "seed": 7, **LIMIT}


# Chat model objects (run on the loop that stays: their connections are their owner's to close)


@pytest.mark.parametrize("kind", PROVIDERS)
@pytest.mark.parametrize(("settings", "sent"), [({}, 0.7), ({"temperature": 0.2}, 0.2)])
def test_a_chat_models_temperature_changes_only_on_purpose(
    provider: Provider, kind: str, settings: dict[str, Any], sent: float
) -> None:
    chat = chat_of(kind, provider, temperature=0.7)
    provider.play(by=Debaters())
    verdict, _ = run("sync", models={"*": chat}, **settings)
    assert [request.parameters["temperature"] for request in provider.requests] == [sent, sent]
    assert getattr(chat, "temperature") == 0.7  # noqa: B009
    assert verdict.warnings == ()


def test_a_chat_model_without_a_temperature_stays_without(provider: Provider) -> None:
    provider.play(by=Debaters())
    run("sync", models={"*": chat_of("openai", provider)}, structured="off")
    assert provider.requests[0].parameters == LIMIT


@pytest.mark.parametrize(
    ("kind", "field"), [("openai", "max_completion_tokens"), ("google", "maxOutputTokens")]
)
def test_a_chat_model_takes_the_settings_length_limit(provider: Provider, kind: str, field: str) -> None:
    provider.play(by=Debaters())
    run("sync", models={"*": chat_of(kind, provider)}, max_tokens=300)
    assert [request.parameters[field] for request in provider.requests] == [300, 300]


def test_a_chat_model_that_has_no_temperature_to_set_is_named_in_a_warning() -> None:
    model = resolver.wrap(ParrotFakeChatModel())
    assert any("no temperature" in warning for warning in model.tuned(0.5, None).warnings.values())
    assert model.tuned(None, None) is model
    assert model.tuned(0.5, None) is model.tuned(0.5, None)


@pytest.mark.parametrize("kind", PROVIDERS)
def test_a_chat_models_label(provider: Provider, kind: str) -> None:
    provider.play(by=Debaters())
    _, transcript = run("sync", models={"*": chat_of(kind, provider)})
    label = {"openai": OPENAI, "google": "google_genai:gemini-2.0-flash"}[kind]
    assert {turn["model"] for turn in transcript if turn["calls"]} == {label}


# What comes back


def test_a_server_that_ignores_the_schema_is_read_as_text(provider: Provider) -> None:
    provider.play("All dates match.\nScore: 4", "I have looked at it twice.\nNO ISSUE")
    verdict, _ = run("async", models={"*": OPENAI})
    assert provider.requests[0].schema is not None
    assert (verdict.score, verdict.stop_reason, verdict.calls) == (4, "no_issue", 2)


def test_json_in_a_code_fence_is_read_as_json(provider: Provider) -> None:
    provider.play(
        '```json\n{"reasoning": "All dates match.", "score": 4}\n```',
        'Here is my review:\n```\n{"feedback": "Nothing to add.", "no_issue": true}\n```',
    )
    verdict, transcript = run("async", models={"*": OPENAI}, n=1)
    assert (verdict.score, verdict.stop_reason, verdict.calls) == (4, "no_issue", 2)
    assert transcript[1]["content"] == "All dates match.\nScore: 4"


@pytest.mark.parametrize("kind", PROVIDERS)
def test_usage_of_turns_and_verdict(provider: Provider, kind: str) -> None:
    provider.play(
        Text(fields={"reasoning": "Fine.", "score": 4}, usage=USAGE),
        Text(fields={"feedback": "", "no_issue": True}, usage=Usage(input=300, output=10)),
    )
    verdict, transcript = run("async", models={"*": name_of(kind, provider)})
    turn = next(turn for turn in transcript if turn["role"] == "scorer")
    assert (turn["input_tokens"], turn["cached_input_tokens"]) == (100, 40)
    assert (turn["output_tokens"], turn["reasoning_tokens"]) == (20, 5)
    assert (verdict.input_tokens, verdict.cached_input_tokens) == (400, 40)
    assert (verdict.output_tokens, verdict.reasoning_tokens) == (30, 5)
    assert 0 < turn["seconds"] < 5


# Published prices per million tokens, input / cached input / output: gpt-4o-mini 0.15 / 0.075 / 0.60 USD,
# gemini-2.0-flash 0.10 / 0.025 / 0.40 USD. For 60 fresh, 40 cached and 20 output tokens:
@pytest.mark.parametrize(("kind", "micro_usd"), [("openai", 9 + 3 + 12), ("google", 6 + 1 + 8)])
def test_cost_by_the_price_list(provider: Provider, kind: str, micro_usd: float) -> None:
    def by(request: Request) -> Answer:
        fields = (
            {"reasoning": "", "score": 4}
            if request.form == "score_reply"
            else {"feedback": "", "no_issue": True}
        )
        return Text(fields=fields, usage=USAGE)

    provider.play(by=by)
    verdict, _ = run("async", models={"*": name_of(kind, provider)})
    assert verdict.cost_usd == pytest.approx(2 * micro_usd / 1e6)


def test_an_unknown_price_makes_the_whole_unknown(provider: Provider) -> None:
    provider.play(by=Debaters())
    verdict, transcript = run("async", models={"scorer": OPENAI, "critic": "openai:somebodys-own-model"})
    costs = {turn["role"]: turn["cost_usd"] for turn in transcript if turn["calls"]}
    assert costs["scorer"] == cost_usd(OPENAI, 100, 0, 20)
    assert costs["critic"] is None
    assert verdict.cost_usd is None


def test_a_reply_without_usage_has_no_known_cost(provider: Provider) -> None:
    provider.play(Text(fields={"reasoning": "", "score": 4}, usage=None), {"feedback": "", "no_issue": True})
    verdict, transcript = run("async", models={"*": OPENAI})
    assert transcript[1]["cost_usd"] is None
    assert verdict.cost_usd is None


# What a model does not take


def rejecting(field: str, failure: Failure) -> Callable[[Request], Answer]:
    """A provider that refuses a parameter for as long as it is sent."""
    debaters = Debaters([4] * 9, satisfied_in=None)

    def by(request: Request) -> Answer:
        return failure if field in request.parameters else debaters(request)

    return by


def refusal(message: str, param: str | None = None, code: str | None = None) -> Failure:
    return Failure(400, message, param, code)


REJECTED = {
    "temperature": (
        "openai:o3-mini",
        "temperature",
        refusal("Unsupported value: 'temperature' does not support 0 with this model.", "temperature"),
    ),
    "max_tokens": (
        "openai:o3-mini?max_tokens=90",
        "max_completion_tokens",
        refusal("Unsupported parameter: 'max_completion_tokens'.", "max_completion_tokens"),
    ),
    "Gemini, temperature": (
        "google",
        "temperature",
        refusal("Temperature is not supported by this model."),
    ),
    "Gemini, max_tokens": (
        "google&max_tokens=90",
        "maxOutputTokens",
        refusal("max_output_tokens is not supported for this model."),
    ),
}


@pytest.mark.parametrize("case", REJECTED)
def test_a_rejected_parameter_is_dropped_once_and_for_all(provider: Provider, case: str) -> None:
    name, field, failure = REJECTED[case]
    provider.play(by=rejecting(field, failure))
    verdict, _ = run("async", models={"*": name.replace("google", google(provider))}, n=2)
    assert [field in request.parameters for request in provider.requests] == [True, *[False] * 5]
    assert (verdict.score, verdict.calls) == (4, 5)
    assert len(verdict.warnings) == 1
    assert f"takes no {case.rsplit(maxsplit=1)[-1]}" in verdict.warnings[0]


def test_several_rejected_parameters_are_dropped_one_by_one(provider: Provider) -> None:
    def by(request: Request) -> Answer:
        for field in ("temperature", "response_format", "tools"):
            if field in request.parameters:
                return refusal(f"Unsupported parameter: '{field}'", field, "unsupported_parameter")
        return debaters(request)

    debaters = Debaters((4,))
    provider.play(by=by)
    verdict, _ = run("async", models={"*": OPENAI})
    assert [sorted(request.parameters.keys() - LIMIT) for request in provider.requests] == [
        ["response_format", "temperature"],
        ["response_format"],
        ["tool_choice", "tools"],
        ["response_format"],
        [],
        [],
    ]
    assert len(verdict.warnings) == 2


async def test_debates_side_by_side_drop_a_parameter_together(provider: Provider) -> None:
    _, field, failure = REJECTED["temperature"]
    graph = debate.build(models={"*": "openai:o3-mini"}, n=1).compile()
    given: list[Any] = [{"task": {**SCORE_TASK, "candidate": f"Candidate {at}."}} for at in range(6)]

    def by(request: Request) -> Answer:
        if field not in request.parameters:
            return _level(request)
        until(lambda: provider.connections > 1)  # another is on its way before the first is told
        return failure

    provider.play(by=by)
    results = await asyncio.gather(*(graph.ainvoke(one) for one in given))
    verdicts = [Verdict.of(result) for result in results]
    assert [verdict.score for verdict in verdicts] == [4] * 6
    told = "takes no temperature"
    assert all(len(verdict.warnings) == 1 and told in verdict.warnings[0] for verdict in verdicts)
    assert sum(field in request.parameters for request in provider.requests) > 1


def _level(request: Request) -> Answer:
    if request.form == "score_reply":
        return {"reasoning": "Level.", "score": 4}
    return {"feedback": "Nothing.", "no_issue": True}


def test_a_parameter_rejected_although_it_was_left_out_is_an_error(provider: Provider) -> None:
    provider.play(by=lambda _: REJECTED["temperature"][2])
    with pytest.raises(ModelCallError, match="does not support 0"):
        run("async", models={"*": "openai:o3-mini"})
    assert len(provider.requests) == 2


@pytest.mark.parametrize("kind", PROVIDERS)
def test_any_other_400_is_told_in_the_providers_words_at_once(provider: Provider, kind: str) -> None:
    provider.play(by=lambda _: refusal("max_tokens is too large: 900. This model supports at most 512."))
    with pytest.raises(ModelCallError, match="max_tokens is too large: 900"):
        run("async", models={"*": name_of(kind, provider)}, max_tokens=900)
    assert len(provider.requests) == 1


# Keys and names


@pytest.mark.parametrize(
    ("name", "key"), [(OPENAI, "OPENAI_API_KEY"), ("google_genai:gemini-2.0-flash", "GOOGLE_API_KEY")]
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


def test_gemini_takes_its_other_key_too(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOOGLE_API_KEY")
    monkeypatch.setenv("GEMINI_API_KEY", "other-key")
    provider.play(by=Debaters())
    run("async", models={"*": google(provider)})
    assert provider.requests[0].headers["x-goog-api-key"] == "other-key"


@pytest.mark.parametrize("name", ["gpt-4o-mini", "somebody:model", "openai:", "offline:x"])
def test_an_unknown_model_is_refused_with_a_list_of_providers(name: str) -> None:
    with pytest.raises(UsageError, match=r"`openai:<name>`.*`google_genai:<name>`"):
        resolver.check(ModelSpec(name=name))


async def test_a_key_that_was_mended_is_used_on_the_same_loop(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.play(by=Debaters((4, 4), satisfied_in=None))
    graph = debate.build(models={"*": OPENAI}, n=1).compile()
    given: Any = {"task": SCORE_TASK}
    monkeypatch.setenv("OPENAI_API_KEY", "wrong-key")
    await graph.ainvoke(given)
    monkeypatch.setenv("OPENAI_API_KEY", "right-key")
    provider.play(by=Debaters((4, 4), satisfied_in=None))
    await graph.ainvoke(given)
    keys = [request.headers["authorization"] for request in provider.requests]
    assert keys == ["Bearer wrong-key"] * 3 + ["Bearer right-key"] * 3
