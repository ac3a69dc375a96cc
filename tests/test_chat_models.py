"""Chat model objects of the caller's own: in sync and async code, on several event loops, beside LangChain's cache."""

from __future__ import annotations

import asyncio
import gc
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from typing import Any

import pytest
from jurygraph.graphs import ensemble, single
from jurygraph.graphs.repeated import build as build_repeated
from jurygraph.nodes.bound_judge import OwnModel
from jurygraph.nodes.models.prices import cost_usd
from jurygraph.state import ModelSpec, UsageError, Verdict
from langchain.chat_models import init_chat_model
from langchain_core.caches import InMemoryCache
from langchain_core.globals import set_llm_cache
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_mistralai import ChatMistralAI
from langchain_ollama import ChatOllama
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from .loopback import Answer, Failure, Provider, Request
from .loopback_chats import Chats, chats_server
from .loopback_debate import OPENAI, SCORE_TASK
from .processes import HANG_GUARD

KEY = SecretStr("test-key")


def openai_chat(provider: Provider, **fields: Any) -> ChatOpenAI:
    return ChatOpenAI(model="gpt-4o-mini", base_url=provider.openai_url, api_key=KEY, **fields)


def scoring(*scores: float) -> Any:
    """A script that gives these scores in turn, for ever."""
    rounds = cycle(scores)

    def by(request: Request) -> Answer:
        return {"reasoning": "All claims hold.", "score": next(rounds)} if request.form else "Fine."

    return by


# LangChain's cache


@pytest.fixture
def cache() -> Iterator[InMemoryCache]:
    kept = InMemoryCache()
    set_llm_cache(kept)
    yield kept
    set_llm_cache(None)


def model_of(how: str, provider: Provider) -> str | BaseChatModel:
    return OPENAI if how == "name" else openai_chat(provider)


@pytest.mark.parametrize("how", ["name", "object"])
def test_repeats_are_not_answered_from_langchains_cache(
    provider: Provider, cache: InMemoryCache, how: str
) -> None:
    provider.play(by=scoring(1, 5, 3, 2, 4))
    graph = build_repeated(of="single", k=3, models={"*": model_of(how, provider)}).compile()
    first, second = (Verdict.of(graph.invoke({"task": SCORE_TASK})).details["scores"] for _ in range(2))
    assert sorted(first) == [1, 3, 5]
    # The first run's call is the same as before, and its reply may be the same; the others are asked anew.
    assert len(provider.requests) == 5
    assert sorted(second)[1:] != sorted(second)[:-1]


@pytest.mark.parametrize("how", ["name", "object"])
def test_one_judge_is_answered_from_langchains_cache(
    provider: Provider, cache: InMemoryCache, how: str
) -> None:
    provider.play(by=scoring(1, 5))
    graph = single.build(models={"*": model_of(how, provider)}).compile()
    scores = [Verdict.of(graph.invoke({"task": SCORE_TASK})).score for _ in range(2)]
    assert scores == [1, 1]
    assert len(provider.requests) == 1


def test_referees_told_the_same_are_not_answered_from_langchains_cache(
    provider: Provider, cache: InMemoryCache
) -> None:
    provider.play(by=scoring(1, 5, 3))
    graph = ensemble.build(referees=3, roles="same", models={"*": openai_chat(provider)}).compile()
    said = [turn["value"] for turn in graph.invoke({"task": SCORE_TASK})["transcript"] if turn["calls"]]
    assert sorted(said) == [1, 3, 5]


# Sync and async code, several event loops


@pytest.fixture
def chats() -> Iterator[Chats]:
    with chats_server() as server:
        yield server


@pytest.fixture(autouse=True)
def left_open() -> Iterator[None]:
    """Collect what a test leaves: connections of an object's own async client are its owner's to close."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()


def anthropic_chat(server: Chats) -> BaseChatModel:
    return init_chat_model("anthropic:claude-haiku-4-5", base_url=server.url, api_key=KEY)


def google_chat(server: Chats) -> BaseChatModel:
    return ChatGoogleGenerativeAI(model="gemini-2.5-flash", base_url=server.url, api_key=KEY)


CHATS: dict[str, Callable[[Chats], BaseChatModel]] = {
    "openai": lambda server: ChatOpenAI(model="gpt-4o-mini", base_url=f"{server.url}/v1", api_key=KEY),
    "anthropic": anthropic_chat,
    "groq": lambda server: init_chat_model("groq:llama-3.3-70b-versatile", base_url=server.url, api_key=KEY),
    "mistral": lambda server: ChatMistralAI(model_name="mistral-small", base_url=server.url, api_key=KEY),
    "ollama": lambda server: ChatOllama(model="llama3.2", base_url=server.url),
    "google": google_chat,
}


async def ask(chat: BaseChatModel) -> None:
    """The caller's own call of the model."""
    await chat.ainvoke("Say anything.")


def invoke(chat: BaseChatModel) -> None:
    assert (
        scored(single.build(models={"*": chat}, structured="off").compile().invoke({"task": SCORE_TASK})) == 4
    )


async def ainvoke(chat: BaseChatModel) -> None:
    assert (
        scored(
            await single.build(models={"*": chat}, structured="off").compile().ainvoke({"task": SCORE_TASK})
        )
        == 4
    )


def scored(result: dict[str, Any]) -> float | None:
    score = Verdict.of(result).score
    assert not isinstance(score, tuple)
    return score


# One letter a step: the graph sync or async, the caller's own call sync or async, each async step on a loop of its own.
STEPS: dict[str, Callable[[BaseChatModel], Any]] = {
    "G": invoke,
    "g": lambda chat: asyncio.run(ainvoke(chat)),
    "O": lambda chat: chat.invoke("Say anything."),
    "o": lambda chat: asyncio.run(ask(chat)),
}


# Of all pairs of steps, the long mix has those that are not tried alone.
@pytest.mark.parametrize(
    ("kind", "steps"),
    [
        *((kind, steps) for kind in ("openai", "anthropic") for steps in ("Gg", "gg", "oG")),
        *((kind, "OGogGOg") for kind in ("openai", "anthropic", "groq", "mistral", "ollama", "google")),
    ],
)
def test_one_object_in_any_mix_of_sync_and_async(chats: Chats, kind: str, steps: str) -> None:
    chat = CHATS[kind](chats)
    for step in steps:
        STEPS[step](chat)
    assert len(chats.paths) == len(steps)


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_two_objects_that_share_connections_in_langchain(chats: Chats, kind: str) -> None:
    first, second = CHATS[kind](chats), CHATS[kind](chats)
    for steps in ("oG", "gO", "Gg"):
        STEPS[steps[0]](first)
        STEPS[steps[1]](second)
    assert len(chats.paths) == 6


@pytest.mark.parametrize("kind", ["openai", "anthropic", "mistral"])
async def test_a_notebook(chats: Chats, kind: str) -> None:
    """On a loop that stays, the caller awaits the model, judges with ``.invoke()`` in a cell, and awaits a judge."""
    chat = CHATS[kind](chats)
    await ask(chat)
    invoke(chat)
    await ainvoke(chat)
    invoke(chat)
    await ask(chat)
    assert len(chats.paths) == 5


@pytest.mark.parametrize("kind", ["openai", "mistral"])
def test_loops_in_several_threads_at_the_same_time(chats: Chats, kind: str) -> None:
    chat = CHATS[kind](chats)

    async def three() -> None:
        await asyncio.gather(*(ainvoke(chat) for _ in range(3)))

    with ThreadPoolExecutor(4) as threads:
        runs = [threads.submit(asyncio.run, three()) for _ in range(3)]
        runs.append(threads.submit(invoke, chat))
        for run in runs:
            run.result()
    assert len(chats.paths) == 10


class Together(BaseChatModel):
    """A model without an async client, which answers when so many calls are waiting for it at the same time."""

    meeting: Any

    @property
    def _llm_type(self) -> str:
        return "together"

    def _generate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        self.meeting.wait(HANG_GUARD)
        return ChatResult(generations=[ChatGeneration(message=AIMessage("Score: 4"))])


@pytest.mark.parametrize("how", ["sync", "async"])
def test_calls_in_threads_do_not_queue(how: str) -> None:
    chat = Together(meeting=threading.Barrier(40))
    graph = ensemble.build(referees=40, roles="same", models={"*": chat}, structured="off").compile()
    given: Any = {"task": SCORE_TASK}
    result = graph.invoke(given) if how == "sync" else asyncio.run(graph.ainvoke(given))
    assert Verdict.of(result).calls == 40


def test_a_model_that_counts_its_calls_goes_on_counting() -> None:
    chat = FakeListChatModel(responses=["Score: 2", "Score: 5", "Score: 3"])
    graph = single.build(models=chat, structured="off").compile()
    assert [scored(graph.invoke({"task": SCORE_TASK})) for _ in range(3)] == [2, 5, 3]


# Runnables made of chat models


def judged(models: Any, config: dict[str, Any] | None = None, **settings: Any) -> dict[str, Any]:
    given: Any = {"task": SCORE_TASK}
    graph = single.build(models=models, **settings).compile()
    result: dict[str, Any] = graph.invoke(given, config)  # type: ignore[arg-type]
    assert scored(result) == 4
    return result


def writer(result: dict[str, Any]) -> str:
    (model,) = {turn["model"] for turn in result["transcript"] if turn["calls"]}
    return str(model)


@pytest.mark.parametrize(
    "models",
    [
        OPENAI,
        {"*": OPENAI},
        {"name": OPENAI, "temperature": 0.0},
        ModelSpec(name=OPENAI),
        {"scorer": {"name": OPENAI}},
    ],
    ids=str,
)
def test_forms_in_which_a_name_is_given(provider: Provider, models: Any) -> None:
    provider.play(by=scoring(4))
    assert writer(judged(models)) == OPENAI
    assert writer(judged(None, settings={"models": models})) == OPENAI


def test_one_model_for_all(provider: Provider) -> None:
    provider.play(by=scoring(4))
    chat = openai_chat(provider)
    assert writer(judged(chat)) == OPENAI
    assert writer(judged(None, model=chat)) == OPENAI
    assert writer(judged(None, model=OPENAI)) == OPENAI
    graph = build_repeated(of="single", k=2, model=chat).compile()
    assert scored(graph.invoke({"task": SCORE_TASK})) == 4


@pytest.mark.parametrize("models", [5, {"*": print}, {"scorer": RunnableLambda(print)}], ids=str)
def test_what_is_no_model_is_refused(models: Any) -> None:
    with pytest.raises(UsageError, match="is not a model; a model is a name such as"):
        single.build(models=models)


def test_bound_parameters_are_sent_beside_the_form_of_the_reply(provider: Provider) -> None:
    provider.play(by=scoring(4))
    result = judged(openai_chat(provider).bind(service_tier="flex", extra_body={"verbosity": "low"}))
    sent = provider.requests[0].parameters
    assert (sent["service_tier"], sent["verbosity"]) == ("flex", "low")
    assert provider.requests[0].form == "score_reply"
    assert writer(result) == OPENAI


def test_a_model_with_retries(provider: Provider) -> None:
    provider.play(Failure(503, "Overloaded."), {"reasoning": "All claims hold.", "score": 4})
    chat = openai_chat(provider, max_retries=0).with_retry(
        stop_after_attempt=2, wait_exponential_jitter=False
    )
    assert writer(judged(chat, temperature=0.3)) == OPENAI
    assert [request.parameters["temperature"] for request in provider.requests] == [0.3, 0.3]


@pytest.mark.usefixtures("one_attempt")
def test_a_fallback_that_answers_is_named_and_priced(provider: Provider) -> None:
    def by(request: Request) -> Answer:
        if request.model == "gpt-4o-mini":
            return Failure(503, "Overloaded.")
        return {"reasoning": "All claims hold.", "score": 4}

    provider.play(by=by)
    fallback = ChatOpenAI(model="gpt-4o", base_url=provider.openai_url, api_key=KEY)
    result = judged(openai_chat(provider, max_retries=0).with_fallbacks([fallback]))
    assert provider.models == ["gpt-4o-mini", "gpt-4o"]
    assert writer(result) == "openai:gpt-4o"
    assert Verdict.of(result).cost_usd == cost_usd("openai:gpt-4o", 100, 0, 20)


def test_a_refused_parameter_is_dropped_inside_of_a_chain(provider: Provider) -> None:
    refusal = "Unsupported value: 'temperature' does not support 0.3 with this model."

    def by(request: Request) -> Answer:
        if "temperature" in request.parameters:
            return Failure(400, refusal, "temperature", "unsupported_value")
        return {"reasoning": "All claims hold.", "score": 4}

    provider.play(by=by)
    chain = openai_chat(provider).with_retry(stop_after_attempt=1).bind(service_tier="flex")
    assert "takes no temperature" in Verdict.of(judged(chain, temperature=0.3)).warnings[0]
    assert len(provider.requests) == 2


def test_a_config_chooses_parameters(provider: Provider) -> None:
    provider.play(by=scoring(4))
    chat = openai_chat(provider, temperature=0.1).configurable_fields(
        temperature=ConfigurableField(id="heat")
    )
    for config in ({}, {"configurable": {"heat": 0.9}}, {"configurable": {"heat": 0.9}}, None):
        judged(chat, config)
    assert [request.parameters["temperature"] for request in provider.requests] == [0.1, 0.9, 0.9, 0.1]


def test_a_config_chooses_among_models(provider: Provider) -> None:
    provider.play(by=scoring(4))
    other = ChatOpenAI(model="gpt-4o", base_url=provider.openai_url, api_key=KEY)
    chat = openai_chat(provider).configurable_alternatives(ConfigurableField(id="judge"), other=other)
    assert writer(judged(chat)) == OPENAI
    assert writer(judged(chat, {"configurable": {"judge": "other"}})) == "openai:gpt-4o"
    assert provider.models == ["gpt-4o-mini", "gpt-4o"]


def test_a_config_names_the_model(provider: Provider) -> None:
    provider.play(by=scoring(4))
    chat: Any = init_chat_model()
    assert (
        writer(judged(chat, {"configurable": {"model": "gpt-4o", "model_provider": "openai"}}))
        == "openai:gpt-4o"
    )
    with pytest.raises(UsageError, match="the run's config chooses no model"):
        judged(chat)


def test_what_identifies_a_chain(provider: Provider) -> None:
    def identity(model: Any) -> Any:
        return OwnModel(model).loaded().identity

    chat = openai_chat(provider)
    assert identity(chat.with_retry()) == identity(chat)
    assert identity(chat.bind()) == identity(chat)
    different = [chat, chat.bind(service_tier="flex"), chat.with_fallbacks([chat.bind(stop=["END"])])]
    assert len({str(identity(one)) for one in different}) == 3
