"""Extensions with one fault each, and their contract tests, which ``test_plugins.py`` runs.

Each class is named after its fault. The working originals are in ``tests/plugin``.
"""

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, ClassVar

from acme_judging.provider import AcmeChat, chat_model
from acme_judging.weather import weather
from jurygraph.eval.datasets.items import ScoreItem
from jurygraph.eval.metrics import Metric
from jurygraph.graphs import single
from jurygraph.graphs.engine.base import ProtocolGraph
from jurygraph.graphs.protocol import (
    PositionSettings,
    Protocol,
    Question,
    Settings,
    build_prompt,
    call_metadata,
    exactly,
    requested_output,
    score_schema,
    task_of,
)
from jurygraph.state.settings import ModelSpec
from jurygraph.testing import (
    DatasetContract,
    MetricContract,
    ProtocolContract,
    ProviderContract,
)
from langchain_core.language_models import BaseChatModel
from pydantic import Field


def protocol_module(name: str, settings: type[Settings], calls: int, called: str = "") -> Any:
    """Return a protocol with one scorer that declares a number of calls and a graph of a name."""
    record = Protocol(
        name=name,
        summary="one scorer",
        source="made up for a test",
        kinds=("compare",) if issubclass(settings, PositionSettings) else ("score",),
        roles=("scorer",),
        settings=settings,
        prompts=("shared", "single"),
        calls=lambda _settings, _kind, _can: {"scorer": exactly(calls)},
    )

    async def scorer(state: Any, runtime: Any) -> dict[str, Any]:
        task = task_of(state)
        own = f"You are a scorer. Give {requested_output(task)}."
        prompt = build_prompt(state, runtime.prompts, own)
        form = score_schema(task)
        asked = Question("scorer", "scorer", 1, prompt, form, call_metadata(task))
        return dict((await runtime.ask(asked)).update)

    def build(settings: Any = None, models: Any = None, **fields: Any) -> Any:
        graph = ProtocolGraph(record, record.settings, settings, models, fields)
        graph.begin()
        graph.agent("scorer", scorer)
        graph.end()
        graph.add_edge("prepare", "scorer")
        graph.add_edge("scorer", "conclude")
        return graph

    graph = build().compile(name=called or name)
    return SimpleNamespace(protocol=record, build=build, graph=graph)


class Described(Settings):
    """A setting with a description."""

    loops: int = Field(default=1, description="How often the scorer reads.")


class NotDescribed(Settings):
    """A setting without a description."""

    loops: int = 1


class TestFewerCalls(ProtocolContract):
    protocol = protocol_module("fewer_calls", Settings, calls=2)


class TestNoSettings(ProtocolContract):
    protocol = protocol_module("no_settings", Described, calls=1)


class TestUndescribed(ProtocolContract):
    protocol = protocol_module("undescribed", NotDescribed, calls=1)
    settings = ({"loops": 2},)


class TestOtherName(ProtocolContract):
    protocol = protocol_module("other_name", Settings, calls=1, called="another_name")


class TestFirstAnswer(ProtocolContract):
    """The judge prefers the first answer in whatever order it reads them."""

    protocol = single
    settings = ({}, {"position_calibration": False})

    def agreeing_reply(self, metadata: Any, prompt: str) -> Any:
        low = metadata["low"]
        return {"reasoning": "So.", "score": low, "score_1": low + 1, "score_2": low, "winner": "1"}


def not_a_number() -> Metric:
    return Metric("none", "none", lambda _item, _aspects: float("nan"))


def unsigned(words: int = 20) -> Metric:
    def score(item: ScoreItem, _aspects: Sequence[str]) -> float:
        return len(item.candidate.split()) / words

    return Metric("unsigned", "unsigned", score)


class TestNotANumber(MetricContract):
    metric = not_a_number


class TestUnsigned(MetricContract):
    metric = unsigned
    parameters: ClassVar = {"words": 10}


class TestMoreItems(DatasetContract):
    dataset = replace(weather, name="more", items=5)


class TestUnlicensed(DatasetContract):
    dataset = replace(weather, name="unlicensed", licence="")


class TestUnlabelled(DatasetContract):
    dataset = replace(weather, name="unlabelled", labels="none")


class TestUnrated(DatasetContract):
    dataset = replace(weather, name="unrated", aspects=("fluency", "coherence"))


def drops_seed(spec: ModelSpec) -> BaseChatModel:
    made: BaseChatModel = chat_model(spec.model_copy(update={"seed": None}))
    return made


def key_error(spec: ModelSpec) -> BaseChatModel:
    import os

    assert os.environ["ACME_API_KEY"]
    made: BaseChatModel = chat_model(spec)
    return made


class RetryingChat(AcmeChat):  # type: ignore[misc]
    max_retries: int = 2


def retries(spec: ModelSpec) -> BaseChatModel:
    chat_model(spec)
    return RetryingChat(**spec.model_dump(exclude={"name"}, exclude_none=True), model="large")


MADE: dict[str, BaseChatModel] = {}


def one_for_all(spec: ModelSpec) -> BaseChatModel:
    return MADE.setdefault(str(spec), chat_model(spec))


class OfAcme(ProviderContract):
    model = "acme:large"
    environment: ClassVar = {"ACME_API_KEY": "any"}


class TestDropsSeed(OfAcme):
    provider = drops_seed


class TestKeyError(OfAcme):
    provider = key_error


class TestRetries(OfAcme):
    provider = retries


class TestOneForAll(OfAcme):
    provider = one_for_all
