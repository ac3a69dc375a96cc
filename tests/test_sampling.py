"""Several replies to one question, token probabilities, and the arithmetic: pure, scripted and over real sockets."""

from __future__ import annotations

import asyncio
import gzip
import json
import math
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from jurygraph.graphs import faireval
from jurygraph.nodes.agent_runtime import AgentRuntime, Question, Samples
from jurygraph.nodes.models import resolver
from jurygraph.nodes.models.loaded_model import LoadedModel
from jurygraph.nodes.models.provider_errors import ProviderFault
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.nodes.output_schemas import ScoreSchema
from jurygraph.nodes.prompt_context import Prompt, Prompts
from jurygraph.nodes.replies import read_score
from jurygraph.nodes.sync_bridge import run_blocking
from jurygraph.state import ModelCallError, ModelSpec, ReplyError
from jurygraph.state.aggregation import expected_from_samples, expected_score, score_tokens, token_mass
from jurygraph.state.settings import Settings
from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI

from .loopback import Failure, Provider, Raw
from .loopback_debate import COMPARE_TASK, OPENAI

# Arithmetic


def logs(**probabilities: float) -> dict[str, float]:
    return {token.removeprefix("_"): math.log(p) for token, p in probabilities.items()}


def test_other_tokens_are_dropped_and_the_rest_is_normalised() -> None:
    found = expected_score(logs(_4=0.5, _3=0.25, The=0.2), 1, 5)
    assert found.value == pytest.approx((4 * 0.5 + 3 * 0.25) / 0.75)
    assert found.distribution == pytest.approx({3.0: 1 / 3, 4.0: 2 / 3})
    assert found.dropped == pytest.approx(0.25)


def test_spellings_of_one_value_add_up() -> None:
    found = expected_score(
        {"4": math.log(0.3), " 4": math.log(0.2), "\u01204": math.log(0.1), "5": math.log(0.4)}, 1, 5
    )
    assert found.by_name == pytest.approx({"4": 0.6, "5": 0.4})
    assert found.dropped == 0


def test_values_off_the_scale_and_lookalikes_are_other_tokens() -> None:
    found = expected_score(logs(_3=0.5, _4=0.1, _0=0.1, _03=0.1, _3a=0.1) | {"\u0663": math.log(0.1)}, 1, 3)
    assert found.by_name == {"3": 1.0}
    assert found.dropped == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("top", "low", "high", "value"),
    [
        (logs(_1=0.75, _0=0.25), 0, 1, 0.75),
        ({"2": 0.0, "3": -math.inf}, 1, 5, 2),
        (logs(_10=0.5, _9=0.3, _1=0.2), 1, 10, 5 + 2.7 + 0.2),
        (logs(_7=0.9999, _1=0.0001), 1, 10, 7 * 0.9999 + 0.0001),  # a 1 that hardly counts may stay unclear
    ],
)
def test_values_weighed_by_their_probability(
    top: dict[str, float], low: float, high: float, value: float
) -> None:
    assert expected_score(top, low, high).value == pytest.approx(value)


@pytest.mark.parametrize(
    ("top", "low", "high", "problem"),
    [
        ({}, 1, 5, "none of the likely tokens"),
        ({"Good": -0.1}, 1, 5, "none of the likely tokens"),
        ({"2": -math.inf}, 1, 5, "none of the likely tokens"),
        (logs(_1=0.6, _9=0.4), 1, 10, "the token '1' may be the beginning of a longer number"),
        (logs(_1=0.9), -1, 1, "the scale begins at -1"),
    ],
)
def test_what_gives_no_expectation(top: dict[str, float], low: float, high: float, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        expected_score(top, low, high)


def tokens(*said: str) -> list[dict[str, Any]]:
    return [
        {"token": token, "top_logprobs": [{"token": token, "logprob": -0.1, "at": at}]}
        for at, token in enumerate(said)
    ]


@pytest.mark.parametrize(
    ("said", "stated", "at"),
    [
        (["4"], 4, 0),
        (["-", " Coh", "erence", ":", " ", "4"], 4, 5),
        (["1", ".", " Natural", "ness", ":", " ", "1"], 1, 6),
        (["1", ".", " Natural", "ness", ":", " ", "2"], 2, 6),
        (["4", "."], 4, 0),
        (["4", " of", " ", "5"], 4, 0),
        (["2", ".", "5"], 2.5, 0),
        (["Step", " 1", ":", " fine", ".\n", "Score", ":", " 3"], 3, 7),
    ],
)
def test_the_token_that_states_the_score(said: list[str], stated: float, at: int) -> None:
    assert score_tokens(tokens(*said), stated, 1, 5)[0]["at"] == at


@pytest.mark.parametrize("said", [["four"], ["four", " of", " 5"]])
def test_a_score_in_words_has_no_such_token(said: list[str]) -> None:
    with pytest.raises(ValueError, match="no token of the reply is the score that it states, 4"):
        score_tokens(tokens(*said), 4, 1, 5)


def test_an_expectation_of_no_samples_is_an_error() -> None:
    with pytest.raises(ValueError, match="one sample"):
        expected_from_samples([])


# Against recorded judges


def rows(path: Path) -> Iterator[dict[str, Any]]:
    if not path.exists():
        pytest.skip(f"{path.name} is not there")
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    yield from map(json.loads, text.decode().splitlines())


SCALES = {"naturalness": (1, 3), "coherence": (1, 3), "engagingness": (1, 3), "groundedness": (0, 1)}


@cache
def read(reply: str, low: float, high: float, aspect: str) -> float | None:
    try:
        return read_score(reply, low, high, aspect=aspect)
    except ReplyError:
        return None


def readable(replies: list[str], low: float, high: float, aspect: str) -> list[float]:
    found = (read(reply, low, high, aspect) for reply in replies)
    return [value for value in found if value is not None]


def test_samples_of_chatgpt_on_topical_chat(shared_data: Path) -> None:
    all_rows, read, given = 0, 0, 0
    for row in rows(shared_data / "topical_chat" / "chatgpt_replies_geval.jsonl.gz"):
        low, high = SCALES[row["dimension"]]
        values = readable(row["replies"], low, high, row["dimension"])
        all_rows, read, given = all_rows + 1, read + len(values), given + len(row["replies"])
        found = expected_from_samples(values)
        assert found.value == pytest.approx(fmean(values), abs=1e-12)
        assert low <= found.value <= high
        if all(reply.strip().isdigit() for reply in row["replies"]):
            assert found.value == pytest.approx(fmean(row["author_scores"]), abs=1e-12)
    assert all_rows > 1000
    assert read / given > 0.995


def test_samples_of_gpt4_on_summeval(shared_data: Path) -> None:
    for row in rows(shared_data / "summeval" / "gpt4_geval_20.jsonl.gz"):
        values = readable(row["replies"], 1, 5, row["dimension"])
        assert len(values) == len(row["replies"]) == 20
        assert expected_from_samples(values).value == pytest.approx(sum(values) / 20, abs=1e-12)


def test_samples_of_llama_against_the_authors_mean(shared_data: Path) -> None:
    for row in rows(shared_data / "topical_chat" / "llama_geval_overall_scores.jsonl"):
        assert expected_from_samples(row["scores_20"]).value == pytest.approx(row["author_mean"], abs=1e-9)


def test_label_tokens_against_alpaca_eval(shared_data: Path) -> None:
    """The preference is 1 + p(M) or 1 + p(m): which one is not recorded, since the order was drawn by lot."""
    seen = 0
    for row in rows(shared_data / "alpaca_eval" / "weighted_preferences.jsonl.gz"):
        if row["top_logprobs"] is None:
            continue
        shares, _ = token_mass(row["top_logprobs"], {"m": "m", "M": "M"}.get)
        second = shares.get("M", 0.0)
        either = (1 + second, 2 - second)
        assert min(abs(row["author_preference"] - one) for one in either) < 1e-9
        seen += 1
    assert seen > 1700


# Drawing samples


QUESTION = Question("scorer", "scorer", 1, Prompt("s", "shared", "own"), ScoreSchema(1, 5))


def runtime(model: LoadedModel, **settings: Any) -> AgentRuntime[Settings]:
    return AgentRuntime(
        Settings(structured="off", **settings), Prompts.bundled(), {"*": model}, lambda _: None
    )


async def asample(model: str | BaseChatModel, size: int, **settings: Any) -> Samples:
    """Samples of a model by name, whose connections end with the loop, or of a chat model object."""
    if isinstance(model, str):
        loaded = resolver.load(ModelSpec.parse(model), asyncio.get_running_loop())
    else:
        loaded = resolver.wrap(model)
    return await runtime(loaded, **settings).sample(QUESTION, size)


def sample(model: str | BaseChatModel, size: int, **settings: Any) -> Samples:
    drawn = asample(model, size, **settings)
    return asyncio.run(drawn) if isinstance(model, str) else run_blocking(drawn)


def values(samples: Samples) -> list[Any]:
    return [turn["value"] for turn in samples.turns]


@pytest.mark.parametrize(
    "refusal",
    [
        Failure(400, "Unsupported parameter: 'n'.", "n", "unsupported_parameter"),
        Failure(400, "Invalid 'n': integer above maximum value. Expected a value <= 1.", "n"),
        Failure(422, "'n' : number must be at most 1"),
        Failure(400, "n must be 1"),
    ],
)
def test_a_provider_that_rejects_n(provider: Provider, refusal: Failure) -> None:
    provider.play(by=lambda request: refusal if request.body.get("n") else "Score: 4")
    found = sample(OPENAI, 3)
    assert [request.body.get("n") for request in provider.requests] == [3, None, None, None]
    assert values(found) == [4, 4, 4]
    assert [turn["calls"] for turn in found.turns] == [1, 1, 1]
    assert any("not give several replies to one request" in warning for warning in found.warnings)


async def test_a_rejected_n_is_not_sent_again(provider: Provider) -> None:
    refusal = Failure(400, "Unsupported parameter: 'n'.", "n")
    provider.play(by=lambda request: refusal if request.body.get("n") else "Score: 4")
    for size in (3, 2):
        await asample(OPENAI, size)
    assert [request.body.get("n") for request in provider.requests] == [3, *[None] * 5]


async def test_a_streaming_listener_does_not_part_the_samples(provider: Provider) -> None:
    """``stream_mode="messages"`` would have every reply streamed, and streams have one reply each."""
    graph = faireval.build(models={"*": OPENAI}, k=2, position_calibration=False, structured="off").compile()
    provider.play("Score of answer 1: 4\nScore of answer 2: 5", "Score of answer 1: 6\nScore of answer 2: 5")
    given: Any = {"task": COMPARE_TASK}
    events: list[Any] = [event async for event in graph.astream(given, stream_mode=["messages", "values"])]
    assert events[-1][1]["verdict"]["scores"] == [5, 5]
    assert len(provider.requests) == 1


def test_a_provider_that_ignores_n(provider: Provider) -> None:
    reply = {"message": {"role": "assistant", "content": "Score: 2"}, "index": 0, "finish_reason": "stop"}
    usage = {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10}
    body = {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [reply],
        "usage": usage,
    }
    single = Raw(json.dumps(body))
    provider.play(by=lambda request: single if request.body.get("n") else "Score: 4")
    found = sample(OPENAI, 3)
    assert values(found) == [2, 4, 4]
    assert [turn["sample"] for turn in found.turns] == [1, 2, 3]
    assert [turn["calls"] for turn in found.turns] == [1, 1, 1]
    assert len(provider.requests) == 3


def test_other_faults_are_not_taken_for_a_rejected_n(provider: Provider) -> None:
    provider.play(Failure(400, "maximum context length is 8192 tokens", "messages"))
    with pytest.raises(ModelCallError, match="maximum context length"):
        sample(OPENAI, 3)
    assert len(provider.requests) == 1
    assert ProviderFault(400, "no 'n' here", None).rejected_parameter({}) is None


def test_where_none_can_be_read_the_first_is_repaired() -> None:
    model = ScriptedModel(script=lambda metadata, _: "Score: 2" if metadata["repair"] else "Hm.")
    found = sample(model, 3)
    assert values(found) == [2, None, None]
    assert [turn["calls"] for turn in found.turns] == [2, 1, 1]
    assert [warning.partition("1: ")[2] for warning in found.warnings[-2:]] == [
        "the reply was asked for again 1 time(s)",
        "2 of 3 samples could not be read and were left out",
    ]
    assert [call.metadata["sample"] for call in model.calls] == [1, 2, 3, 1]


@pytest.mark.parametrize(
    ("settings", "sent"), [({}, 1.0), ({"temperature": 0.4}, 0.4), ({"temperature": 0}, 0)]
)
def test_whose_temperature_a_chat_object_samples_at(provider: Provider, settings: Any, sent: float) -> None:
    provider.play(by=lambda _: "Score: 4")
    chat = ChatOpenAI(model="gpt-4o-mini", temperature=0)
    sample(chat, 2, **settings)
    assert [request.body["temperature"] for request in provider.requests] == [sent]
    assert chat.temperature == 0


def test_a_model_that_takes_no_temperature(provider: Provider) -> None:
    refusal = Failure(400, "Unsupported value: 'temperature' does not support 1.", "temperature")
    provider.play(by=lambda request: refusal if "temperature" in request.body else "Score: 4")
    found = sample(OPENAI, 3)
    assert values(found) == [4, 4, 4]
    assert [request.body.get("n") for request in provider.requests] == [3, 3]
    assert found.warnings == ("openai:gpt-4o-mini takes no temperature: it was left out",)


def test_a_seed_makes_no_single_sample_of_several_requests(provider: Provider) -> None:
    provider.play(
        by=lambda request: Failure(400, "Unsupported parameter", "n") if request.body.get("n") else "Score: 4"
    )
    sample(f"{OPENAI}?seed=7", 3)
    assert sorted(request.body["seed"] for request in provider.requests[1:]) == [7, 8, 9]
