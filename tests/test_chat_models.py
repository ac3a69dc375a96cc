"""Chat model objects of the caller's own: in sync and async code, on several event loops, beside LangChain's cache."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from typing import Any

import pytest
from jurygraph.graphs import ensemble, single
from jurygraph.graphs.repeated import build as build_repeated
from jurygraph.state import Verdict
from langchain_core.caches import InMemoryCache
from langchain_core.globals import set_llm_cache
from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from .loopback import Answer, Provider, Request
from .loopback_debate import OPENAI, SCORE_TASK


def openai_chat(provider: Provider, **fields: Any) -> ChatOpenAI:
    return ChatOpenAI(
        model="gpt-4o-mini", base_url=provider.openai_url, api_key=SecretStr("test-key"), **fields
    )


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
