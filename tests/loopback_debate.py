"""A debate's agents as a script for the loopback provider, and who it was that a request asked."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from jurygraph.graphs import debate
from jurygraph.state import Verdict
from langchain_core.language_models import BaseChatModel
from pydantic import SecretStr

from .loopback import Answer, Provider, Request

OPENAI = "openai:gpt-4o-mini"
SCORE_TASK = {
    "kind": "score",
    "source": "The harbour bridge opened in 1932, after eight years of work.",
    "candidate": "Eight years of work went into the bridge, which opened in 1932.",
    "aspect": "consistency",
}
PROVIDERS = ["openai", "google"]
COMPARE_TASK = {
    "kind": "compare",
    "question": "Why does bread rise?",
    "answer_1": "Yeast turns sugar into carbon dioxide, which the dough holds.",
    "answer_2": "Because the oven is hot.",
}


def google(provider: Provider, name: str = "gemini-2.0-flash") -> str:
    """A Gemini model at the loopback address, by name."""
    return f"google_genai:{name}?base_url={provider.url}"


def name_of(kind: str, provider: Provider) -> str:
    """The name of a model of ``openai`` or ``google`` at the loopback address."""
    return OPENAI if kind == "openai" else google(provider)


@asynccontextmanager
async def chat_of(
    kind: str, provider: Provider, key: str = "test-key", **fields: Any
) -> AsyncIterator[BaseChatModel]:
    """A chat model object as a caller would make it, which is asked once a call, and is closed in the end."""
    if kind == "openai":
        from langchain_openai import ChatOpenAI
        from openai import DefaultAsyncHttpxClient

        async with DefaultAsyncHttpxClient() as client:
            given = {"base_url": provider.openai_url, "max_retries": 0, "http_async_client": client, **fields}
            yield ChatOpenAI(model="gpt-4o-mini", api_key=SecretStr(key), **given)
        return
    from langchain_google_genai import ChatGoogleGenerativeAI

    given = {"base_url": provider.url, "max_retries": 1, **fields}
    gemini = ChatGoogleGenerativeAI(model="gemini-2.0-flash", api_key=SecretStr(key), **given)
    yield gemini
    assert gemini.client is not None
    await gemini.client.aio.aclose()


def speaker(request: Request) -> str:
    """Whom a request asks: its own part comes last and says who it is."""
    return request.user.rpartition("You are the ")[2].split()[0].strip(".,:").lower()


def speakers(provider: Provider) -> list[str]:
    """Who was asked, in order."""
    return [speaker(request) for request in provider.requests]


@dataclass
class Debaters:
    """Answers for every agent, as JSON where a form was asked for and as text elsewhere.

    The Critic objects until ``satisfied_in``; the Scorer gives its ``scores`` one after the other.
    """

    scores: Sequence[Any] = (3, 4, 2, 5, 1)
    satisfied_in: int | None = 1
    final: Any = 2
    said: Counter[str] = field(default_factory=Counter)

    def __call__(self, request: Request) -> Answer:
        who = speaker(request)
        self.said[who] += 1
        at = self.said[who]
        if who == "commander":
            return f"message {at} of the commander"
        if who == "critic":
            return _critique(f"objection {at}", at == self.satisfied_in, request.form is not None)
        value = self.final if who == "tie-breaker" else self.scores[at - 1]
        return _judgement(f"rationale {at} of the {who}", value, request.form is not None)


def run(
    how: str = "async", task: Mapping[str, Any] = SCORE_TASK, protocol: Any = debate, **build: Any
) -> tuple[Verdict, list[dict[str, Any]]]:
    """Verdict and transcript of one judging, run from async or from sync code."""
    graph = protocol.build(**build).compile()
    given: Any = {"task": task}
    result = asyncio.run(graph.ainvoke(given)) if how == "async" else graph.invoke(given)
    return Verdict.of(result), result["transcript"]


def _critique(words: str, satisfied: bool, as_json: bool) -> Answer:
    if as_json:
        return {"feedback": "All points are met." if satisfied else words, "no_issue": satisfied}
    return "All points are met.\nNO ISSUE" if satisfied else f"{words}: the date is not checked."


def _judgement(words: str, value: Any, as_json: bool) -> Answer:
    if isinstance(value, tuple):
        first, second = value
        fields = {"reasoning": words, "score_1": first, "score_2": second}
        text = f"{words}\nScore of answer 1: {first}\nScore of answer 2: {second}"
        return fields if as_json else text
    return {"reasoning": words, "score": value} if as_json else f"{words}\nScore: {value}"
