"""Test chat model objects of the caller: sync, async, several event loops, LangChain's cache."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from typing import Any

import pytest
from jurygraph.graphs import ensemble, single
from jurygraph.graphs.wrappers.repeated import build as build_repeated
from jurygraph.nodes.models.prices import cost_usd
from jurygraph.nodes.runtime.bound_judge import OwnModel
from jurygraph.state import ModelSpec, UsageError, Verdict
from langchain.chat_models import init_chat_model
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import UsageMetadataCallbackHandler
from langchain_core.globals import set_llm_cache
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import ConfigurableField, RunnableLambda

from .loopback import Answer, Failure, Provider, Request
from .loopback_debate import OPENAI, SCORE_TASK, openai_chat
from .loopback_dialects import DIALECTS, Said, Server, serving
from .processes import HANG_GUARD

# The owner of an object's async client closes its connections.
pytestmark = pytest.mark.usefixtures("collected")

OVERLOADED = Failure(503, "Overloaded.")
GOOD: dict[str, Any] = {"reasoning": "All claims hold.", "score": 4}


def scoring(*scores: float) -> Any:
    """A script that gives these scores in turn, for ever."""
    rounds = cycle(scores)

    def by(request: Request) -> Answer:
        return {**GOOD, "score": next(rounds)} if request.form else "Fine."

    return by


# LangChain's cache


@pytest.fixture
def cache() -> Iterator[None]:
    set_llm_cache(InMemoryCache())
    yield
    set_llm_cache(None)


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("how", ["name", "object"])
def test_langchains_cache_answers_one_judge_and_none_that_differs(
    provider: Provider, how: str
) -> None:
    models: Any = {"*": OPENAI if how == "name" else openai_chat(provider)}
    provider.play(by=scoring(1, 5))
    graph = single.build(models=models).compile()
    assert [judge(graph).score for _ in range(2)] == [1, 1]
    assert len(provider.requests) == 1

    set_llm_cache(InMemoryCache())
    provider.requests.clear()
    provider.play(by=scoring(1, 5, 3, 2, 4))
    graph = build_repeated(of="single", k=3, models=models).compile()
    first, second = (judge(graph).details["scores"] for _ in range(2))
    assert sorted(first) == [1, 3, 5]
    # The first run's call is the same as before and may get the same reply; the others are new.
    assert len(provider.requests) == 5
    assert sorted(second)[1:] != sorted(second)[:-1]

    set_llm_cache(InMemoryCache())
    provider.play(by=scoring(1, 5, 3))
    graph = ensemble.build(referees=3, roles="same", models=models).compile()
    turns = graph.invoke({"task": SCORE_TASK})["transcript"]
    assert sorted(turn["value"] for turn in turns if turn["calls"]) == [1, 3, 5]


# Sync and async code, several event loops


@pytest.fixture
def chats() -> Iterator[Server]:
    with serving(None, lambda _: Said("All claims hold.\nScore: 4")) as server:
        yield server


async def ask(chat: BaseChatModel) -> None:
    await chat.ainvoke("Say anything.")


def judge(graph: Any) -> Verdict:
    return Verdict.of(graph.invoke({"task": SCORE_TASK}))


def invoke(chat: BaseChatModel) -> None:
    assert judge(single.build(models={"*": chat}, structured="off").compile()).score == 4


async def ainvoke(chat: BaseChatModel) -> None:
    graph = single.build(models={"*": chat}, structured="off").compile()
    assert Verdict.of(await graph.ainvoke({"task": SCORE_TASK})).score == 4


# One letter per step: the graph sync or async, the caller's own call sync or async. Each async step
# has its own loop.
STEPS: dict[str, Callable[[BaseChatModel], Any]] = {
    "G": invoke,
    "g": lambda chat: asyncio.run(ainvoke(chat)),
    "O": lambda chat: chat.invoke("Say anything."),
    "o": lambda chat: asyncio.run(ask(chat)),
}


# The long sequence covers the pairs of steps that are not tried alone.
@pytest.mark.parametrize(
    ("kind", "steps"),
    [
        *((kind, steps) for kind in ("openai", "anthropic") for steps in ("Gg", "gg", "oG")),
        *(
            (kind, "OGogGOg")
            for kind in ("openai", "anthropic", "groq", "mistral", "ollama", "gemini")
        ),
    ],
)
def test_one_object_in_any_mix_of_sync_and_async(chats: Server, kind: str, steps: str) -> None:
    chat = DIALECTS[kind].chat(chats.url)
    for step in steps:
        STEPS[step](chat)
    assert len(chats.paths) == len(steps)


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_two_objects_that_share_connections_in_langchain(chats: Server, kind: str) -> None:
    both = [DIALECTS[kind].chat(chats.url) for _ in range(2)]
    for steps in ("oG", "gO", "Gg"):
        for chat, step in zip(both, steps, strict=True):
            STEPS[step](chat)
    assert len(chats.paths) == 6


@pytest.mark.parametrize("kind", ["openai", "anthropic", "mistral"])
async def test_a_notebook(chats: Server, kind: str) -> None:
    """On one loop, await the model, judge with ``.invoke()`` in a cell, and await a judge."""
    chat = DIALECTS[kind].chat(chats.url)
    await ask(chat)
    invoke(chat)
    await ainvoke(chat)
    invoke(chat)
    await ask(chat)
    assert len(chats.paths) == 5


@pytest.mark.parametrize("kind", ["openai", "mistral"])
def test_loops_in_several_threads_at_the_same_time(chats: Server, kind: str) -> None:
    chat = DIALECTS[kind].chat(chats.url)

    async def three() -> None:
        await asyncio.gather(*(ainvoke(chat) for _ in range(3)))

    with ThreadPoolExecutor(4) as threads:
        runs = [threads.submit(asyncio.run, three()) for _ in range(3)]
        runs.append(threads.submit(invoke, chat))
        for run in runs:
            run.result()
    assert len(chats.paths) == 10


class Together(BaseChatModel):
    """A model without an async client that answers once enough calls wait at the same time."""

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
    graph = ensemble.build(
        referees=40, roles="same", models={"*": chat}, structured="off"
    ).compile()
    given: Any = {"task": SCORE_TASK}
    result = graph.invoke(given) if how == "sync" else asyncio.run(graph.ainvoke(given))
    assert Verdict.of(result).calls == 40


def test_a_model_that_counts_its_calls_goes_on_counting() -> None:
    chat = FakeListChatModel(responses=["Score: 2", "Score: 5", "Score: 3"])
    graph = single.build(models=chat, structured="off").compile()
    assert [judge(graph).score for _ in range(3)] == [2, 5, 3]


# Runnables made of chat models


def judged(
    models: Any, config: dict[str, Any] | None = None, **settings: Any
) -> tuple[Verdict, str]:
    """The verdict, which is 4, and the model that is named for it."""
    given: Any = {"task": SCORE_TASK}
    graph = single.build(models=models, **settings).compile()
    result: Any = graph.invoke(given, config)  # type: ignore[arg-type]
    (writer,) = {turn["model"] for turn in result["transcript"] if turn["calls"]}
    verdict = Verdict.of(result)
    assert verdict.score == 4
    return verdict, writer


def test_forms_in_which_one_model_is_given(provider: Provider) -> None:
    provider.play(by=scoring(4))
    chat = openai_chat(provider)
    for models in (
        *(OPENAI, {"*": OPENAI}, {"name": OPENAI, "temperature": 0.0}, ModelSpec(name=OPENAI)),
        *({"scorer": {"name": OPENAI}}, chat),
    ):
        assert judged(models)[1] == OPENAI
        if models is not chat:
            assert judged(None, settings={"models": models})[1] == OPENAI
    assert judged(None, model=chat)[1] == judged(None, model=OPENAI)[1] == OPENAI
    assert judge(build_repeated(of="single", k=2, model=chat).compile()).score == 4


@pytest.mark.parametrize("models", [5, {"*": print}, {"scorer": RunnableLambda(print)}], ids=str)
def test_what_is_no_model_is_refused(models: Any) -> None:
    with pytest.raises(UsageError, match="is not a model; a model is a name such as"):
        single.build(models=models)


def test_bound_parameters_are_sent_beside_the_form_of_the_reply(provider: Provider) -> None:
    provider.play(by=scoring(4))
    bound = openai_chat(provider).bind(service_tier="flex", extra_body={"verbosity": "low"})
    heard = UsageMetadataCallbackHandler()
    assert judged(bound.with_config(callbacks=[heard]))[1] == OPENAI
    sent = provider.requests[0].parameters
    assert (sent["service_tier"], sent["verbosity"]) == ("flex", "low")
    assert (provider.requests[0].form, len(heard.usage_metadata)) == ("score_reply", 1)


def test_a_model_with_retries(provider: Provider) -> None:
    provider.play(OVERLOADED, GOOD)
    chat = openai_chat(provider, max_retries=0)
    again = chat.with_retry(stop_after_attempt=2, wait_exponential_jitter=False)
    assert judged(again, temperature=0.3)[1] == OPENAI
    assert [request.parameters["temperature"] for request in provider.requests] == [0.3, 0.3]


@pytest.mark.usefixtures("one_attempt")
def test_a_fallback_that_answers_is_named_and_priced(provider: Provider) -> None:
    provider.play(by=lambda request: OVERLOADED if request.model == "gpt-4o-mini" else GOOD)
    fallback = openai_chat(provider, "gpt-4o")
    verdict, writer = judged(openai_chat(provider, max_retries=0).with_fallbacks([fallback]))
    assert provider.models == ["gpt-4o-mini", "gpt-4o"]
    assert (writer, verdict.cost_usd) == ("openai:gpt-4o", cost_usd("openai:gpt-4o", 100, 0, 20))


def test_a_refused_parameter_is_dropped_inside_of_a_chain(provider: Provider) -> None:
    words = "Unsupported value: 'temperature' does not support 0.3 with this model."
    refusal = Failure(400, words, "temperature", "unsupported_value")
    provider.play(by=lambda request: refusal if "temperature" in request.parameters else GOOD)
    chain = openai_chat(provider).with_retry(stop_after_attempt=1).bind(service_tier="flex")
    assert "takes no temperature" in judged(chain, temperature=0.3)[0].warnings[0]
    assert (len(provider.requests), OwnModel(chain).loaded().gives("n")) == (2, False)


def test_a_config_chooses_parameters_and_models(provider: Provider) -> None:
    provider.play(by=scoring(4))
    heat = ConfigurableField(id="heat")
    heated = openai_chat(provider, temperature=0.1).configurable_fields(temperature=heat)
    for config in ({}, {"configurable": {"heat": 0.9}}, {"configurable": {"heat": 0.9}}, None):
        judged(heated, config)
    assert [request.parameters["temperature"] for request in provider.requests] == [
        0.1,
        0.9,
        0.9,
        0.1,
    ]
    other = openai_chat(provider, "gpt-4o")
    chosen = openai_chat(provider).configurable_alternatives(
        ConfigurableField(id="judge"), other=other
    )
    assert judged(chosen)[1] == OPENAI
    assert judged(chosen, {"configurable": {"judge": "other"}})[1] == "openai:gpt-4o"
    unnamed: Any = init_chat_model()
    named = {"configurable": {"model": "gpt-4o", "model_provider": "openai"}}
    assert judged(unnamed, named)[1] == "openai:gpt-4o"
    assert provider.models[-3:] == ["gpt-4o-mini", "gpt-4o", "gpt-4o"]
    with pytest.raises(UsageError, match="the run's config chooses no model"):
        judged(unnamed)


def test_what_identifies_a_chain(provider: Provider) -> None:
    def identity(model: Any) -> Any:
        return OwnModel(model).loaded().identity

    chat = openai_chat(provider)
    assert identity(chat.with_retry()) == identity(chat.bind()) == identity(chat)
    different = [
        chat,
        chat.bind(service_tier="flex"),
        chat.with_fallbacks([chat.bind(stop=["END"])]),
    ]
    assert len({str(identity(one)) for one in different}) == 3
