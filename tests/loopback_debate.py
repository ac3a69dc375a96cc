"""A debate's agents as a script for the loopback provider, and who it was that a request asked."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jurygraph.graphs import debate
from jurygraph.nodes.models import resolver
from jurygraph.nodes.models.call import Call, Reply
from jurygraph.nodes.models.loaded_model import LoadedModel
from jurygraph.nodes.models.send import attempt
from jurygraph.state import Verdict
from jurygraph.state.settings import ModelSpec
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from pydantic import SecretStr

from .loopback import Answer, Provider, Request
from .sample_data import COMPARE_TASK, SCORE_TASK

if TYPE_CHECKING:
    from langchain_google_genai import ChatGoogleGenerativeAI
    from langchain_openai import ChatOpenAI

__all__ = ["COMPARE_TASK", "SCORE_TASK"]
"""Of another module, and taken from here."""

OPENAI = "openai:gpt-4o-mini"
PROVIDERS = ["openai", "google"]


def google(provider: Provider, name: str = "gemini-2.0-flash") -> str:
    return f"google_genai:{name}?base_url={provider.url}"


def name_of(kind: str, provider: Provider) -> str:
    """The name of a model of ``openai`` or ``google`` at the loopback address."""
    return OPENAI if kind == "openai" else google(provider)


def openai_chat(provider: Provider, model: str = "gpt-4o-mini", **fields: Any) -> ChatOpenAI:
    """Make a chat model object of OpenAI's; the caller closes its connections."""
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(model=model, base_url=provider.openai_url, **fields)


def gemini_chat(provider: Provider, **fields: Any) -> ChatGoogleGenerativeAI:
    from langchain_google_genai import ChatGoogleGenerativeAI

    return ChatGoogleGenerativeAI(model="gemini-2.0-flash", base_url=provider.url, **fields)


@asynccontextmanager
async def chat_of(
    kind: str, provider: Provider, key: str = "test-key", **fields: Any
) -> AsyncIterator[BaseChatModel]:
    """Yield a chat model as a caller would make it, with one attempt per call; close it after."""
    if kind == "openai":
        from openai import DefaultAsyncHttpxClient

        async with DefaultAsyncHttpxClient() as client:
            once: dict[str, Any] = {"max_retries": 0, "http_async_client": client}
            yield openai_chat(provider, api_key=SecretStr(key), **once, **fields)
        return
    gemini = gemini_chat(provider, api_key=SecretStr(key), max_retries=1, **fields)
    yield gemini
    assert gemini.client is not None
    await gemini.client.aio.aclose()


def loaded(name: str = OPENAI) -> LoadedModel:
    return resolver.load(ModelSpec.parse(name), asyncio.get_running_loop())


async def asked(model: LoadedModel, **parameters: Any) -> Reply:
    """Return the reply of one attempt."""
    who = {"agent": "scorer", "role": "scorer", "round": 0}
    return await attempt(Call(model, [HumanMessage("Judge.")], None, who, parameters))


def speaker(request: Request) -> str:
    """Return the agent that a request asks; its own part comes last and names it."""
    return request.user.rpartition("You are the ")[2].split()[0].strip(".,:").lower()


def speakers(provider: Provider) -> list[str]:
    return [speaker(request) for request in provider.requests]


@dataclass
class Debaters:
    """Answers for every agent: JSON if a form is requested, else text.

    The Critic objects until ``satisfied_in``; the Scorer gives its ``scores`` in order.
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
