"""Test several replies to one question, token probabilities, and FairEval."""

import json
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from jurygraph.graphs import faireval, geval
from jurygraph.nodes.models.provider_errors import ProviderFault, ResponseError
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.state import ModelCallError, ReplyError, Verdict
from jurygraph.state.aggregation import expected_score, score_tokens
from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI

from . import loopback_debate
from .loopback import Answer, Failure, Provider, Raw, Request, Text, Usage
from .loopback_debate import COMPARE_TASK, OPENAI, SCORE_TASK, run
from .loopback_wire import reply_body

# Arithmetic


def logs(**probabilities: float) -> dict[str, float]:
    return {token.removeprefix("_"): math.log(p) for token, p in probabilities.items()}


@pytest.mark.parametrize(
    ("top", "low", "high", "shares", "dropped"),
    [
        (logs(_4=0.5, _3=0.25, The=0.2), 1, 5, {"3": 1 / 3, "4": 2 / 3}, 0.25),
        # Spellings of one value add up.
        (logs(**{"4": 0.3, "5": 0.4, " 4": 0.2, "\u01204": 0.1}), 1, 5, {"4": 0.6, "5": 0.4}, 0),
        # Values off the scale and lookalikes are other tokens.
        (logs(_3=0.5, _4=0.1, _0=0.1, _03=0.1, _3a=0.1, **{"\u0663": 0.1}), 1, 3, {"3": 1.0}, 0.5),
        (logs(_1=0.75, _0=0.25), 0, 1, {"0": 0.25, "1": 0.75}, 0),
        ({"2": 0.0, "3": -math.inf}, 1, 5, {"2": 1.0}, 0),
        (logs(_10=0.5, _9=0.3, _1=0.2), 1, 10, {"10": 0.5, "9": 0.3, "1": 0.2}, 0),
        # A 1 that hardly counts may stay unclear.
        (logs(_7=0.9999, _1=0.0001), 1, 10, {"7": 0.9999, "1": 0.0001}, 0),
    ],
)
def test_values_on_the_scale_are_weighed_by_their_share_of_the_probability(
    top: dict[str, float], low: float, high: float, shares: dict[str, float], dropped: float
) -> None:
    found = expected_score([{"token": token, "logprob": p} for token, p in top.items()], low, high)
    assert found.value == pytest.approx(sum(float(name) * share for name, share in shares.items()))
    assert {name: share for name, share in found.by_name.items() if share} == pytest.approx(shares)
    assert found.dropped == pytest.approx(dropped)
    assert found.distribution == {float(name): share for name, share in found.by_name.items()}


@pytest.mark.parametrize(("top", "low", "high", "problem"), [
    ({}, 1, 5, "none of the likely tokens"), ({"Good": -0.1}, 1, 5, "none of the likely tokens"),
    ({"2": -math.inf}, 1, 5, "none of the likely tokens"),
    (logs(_1=0.6, _9=0.4), 1, 10, "the token '1' may be the beginning of a longer number"),
    (logs(_1=0.9), -1, 1, "the scale begins at -1"),
])  # fmt: skip
def test_what_gives_no_expectation(
    top: dict[str, float], low: float, high: float, problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        expected_score([{"token": token, "logprob": p} for token, p in top.items()], low, high)


def tokens(*said: str) -> list[dict[str, Any]]:
    return [
        {"token": token, "top_logprobs": [{"token": token, "logprob": -0.1, "at": at}]}
        for at, token in enumerate(said)
    ]


@pytest.mark.parametrize(("said", "stated", "at"), [
    (["4"], 4, 0), (["-", " Coh", "erence", ":", " ", "4"], 4, 5),
    (["1", ".", " Natural", "ness", ":", " ", "1"], 1, 6),
    (["1", ".", " Natural", "ness", ":", " ", "2"], 2, 6), (["4", "."], 4, 0),
    (["4", " of", " ", "5"], 4, 0), (["2", ".", "5"], 2.5, 0),
    (["Step", " 1", ":", " fine", ".\n", "Score", ":", " 3"], 3, 7),
])  # fmt: skip
def test_the_token_that_states_the_score(said: list[str], stated: float, at: int) -> None:
    assert score_tokens(tokens(*said), stated, 1, 5)[0]["at"] == at


# Drawing samples


def sample(model: str | BaseChatModel, size: int, **settings: Any) -> tuple[Verdict, list[Any]]:
    """Return G-Eval's verdict from this many samples, and the turn of each."""
    fixed: Any = {"weighting": "sampling", "steps": ["Read."], "structured": "off"}
    return run("sync", SCORE_TASK, geval, models={"*": model}, samples=size, **fixed, **settings)


def told(turns: list[Any], field: str = "value") -> list[Any]:
    return [turn[field] for turn in turns]


@pytest.mark.parametrize("refusal", [
    Failure(400, "Unsupported parameter: 'n'.", "n", "unsupported_parameter"),
    Failure(400, "Invalid 'n': integer above maximum value. Expected a value <= 1.", "n"),
    Failure(422, "'n' : number must be at most 1"), Failure(400, "n must be 1"),
])  # fmt: skip
def test_a_provider_that_rejects_n_is_asked_for_it_once(
    provider: Provider, refusal: Failure
) -> None:
    provider.play(by=lambda request: refusal if request.body.get("n") else "Score: 4")
    verdict, turns = sample(OPENAI, 3)
    assert (told(turns), told(turns, "calls")) == ([4, 4, 4], [1, 1, 1])
    assert any("not give several replies to one request" in warning for warning in verdict.warnings)
    sample(OPENAI, 2)
    assert [request.body.get("n") for request in provider.requests] == [3, *[None] * 5]


async def test_a_streaming_listener_does_not_part_the_samples(provider: Provider) -> None:
    """``stream_mode="messages"`` would stream every reply, and a stream has one reply only."""
    graph = faireval.build(
        models={"*": OPENAI}, k=2, position_calibration=False, structured="off"
    ).compile()
    provider.play(
        "Score of answer 1: 4\nScore of answer 2: 5", "Score of answer 1: 6\nScore of answer 2: 5"
    )
    given: Any = {"task": COMPARE_TASK}
    events: list[Any] = [
        event async for event in graph.astream(given, stream_mode=["messages", "values"])
    ]
    assert events[-1][1]["verdict"]["scores"] == [5, 5]
    assert len(provider.requests) == 1


def test_a_provider_that_ignores_n(provider: Provider) -> None:
    def by(request: Request) -> Answer:
        one = reply_body(request, [Text("Score: 2")])
        return Raw(json.dumps(one)) if request.body.get("n") else "Score: 4"

    provider.play(by=by)
    _, turns = sample(OPENAI, 3)
    assert (told(turns), told(turns, "sample"), told(turns, "calls")) == (
        [2, 4, 4],
        [1, 2, 3],
        [1, 1, 1],
    )
    assert len(provider.requests) == 3


def test_other_faults_are_not_taken_for_a_rejected_n(provider: Provider) -> None:
    provider.play(Failure(400, "maximum context length is 8192 tokens", "messages"))
    with pytest.raises(ModelCallError, match="maximum context length"):
        sample(OPENAI, 3)
    assert len(provider.requests) == 1
    assert ProviderFault(ResponseError("no 'n' here", 400)).rejected_parameter({}) is None


def test_where_none_can_be_read_the_first_is_repaired() -> None:
    model = ScriptedModel(script=lambda metadata, _: "Score: 2" if metadata["repair"] else "Hm.")
    verdict, turns = sample(model, 3)
    assert (told(turns), told(turns, "calls")) == ([2, None, None], [2, 1, 1])
    assert [warning.partition("1: ")[2] for warning in verdict.warnings[-2:]] == [
        "the reply was asked for again 1 time(s)",
        "2 of 3 samples could not be read and were left out",
    ]
    assert [call.metadata["sample"] for call in model.calls] == [1, 2, 3, 1]


@pytest.mark.parametrize(
    ("settings", "sent"), [({}, 1.0), ({"temperature": 0.4}, 0.4), ({"temperature": 0}, 0)]
)
def test_whose_temperature_a_chat_object_samples_at(
    provider: Provider, settings: Any, sent: float
) -> None:
    provider.play(by=lambda _: "Score: 4")
    chat = ChatOpenAI(model="gpt-4o-mini", temperature=0)
    sample(chat, 2, **settings)
    assert [request.body["temperature"] for request in provider.requests] == [sent]
    assert chat.temperature == 0


def test_a_seed_makes_no_single_sample_of_several_requests(provider: Provider) -> None:
    refusal = Failure(400, "Unsupported parameter: 'n'.", "n")
    provider.play(by=lambda request: refusal if request.body.get("n") else "Score: 4")
    sample(f"{OPENAI}?seed=7", 3)
    assert sorted(request.body["seed"] for request in provider.requests[1:]) == [7, 8, 9]


YEAST = COMPARE_TASK["answer_1"]


judged = partial(loopback_debate.run, task=COMPARE_TASK, protocol=faireval)


def in_given_order(prompt: str) -> bool:
    return prompt.index(YEAST) < prompt.index(COMPARE_TASK["answer_2"])


def pair(first: float, second: float) -> dict[str, Any]:
    return {"reasoning": "Yeast is the reason.", "score_1": first, "score_2": second}


def as_text(first: float, second: float) -> str:
    return f"Yeast is the reason.\nScore of answer 1: {first}\nScore of answer 2: {second}"


def alternating(given: list[Any], swapped: list[Any]) -> Callable[[Request], Answer]:
    """The samples of each order, one after the other."""
    orders = {True: iter(given), False: iter(swapped)}
    return lambda request: next(orders[in_given_order(request.user)])


@pytest.mark.parametrize("how", ["sync", "async"])
@pytest.mark.parametrize("structured", ["auto", "off"])
def test_six_samples_in_two_requests(provider: Provider, how: str, structured: str) -> None:
    say: Any = pair if structured == "auto" else as_text
    provider.play(
        by=alternating([say(9, 4), say(8, 4), say(7, 4)], [say(6, 7), say(6, 8), say(6, 9)])
    )
    verdict, transcript = judged(how, models={"*": OPENAI}, structured=structured)
    asked = provider.requests[0]
    assert "evidence before your scores" in asked.user
    assert "the order in which the answers are shown does not sway you" in asked.user
    if asked.schema is not None:
        assert list(asked.schema["properties"]) == ["reasoning", "score_1", "score_2"]
    assert [(r.body["n"], r.body["temperature"]) for r in provider.requests] == [(3, 1), (3, 1)]
    assert (verdict.scores, verdict.winner, verdict.position_consistent) == ((8, 5), "1", True)
    assert verdict.calls == 2
    assert verdict.details == {
        "calibrated": True,
        "winner_by_order": ["1", "1"],
        "scores_by_order": [[8, 4], [8, 6]],
        "samples_by_order": [[[9, 4], [8, 4], [7, 4]], [[7, 6], [8, 6], [9, 6]]],
        "unread_samples": 0,
    }
    told = [(turn["order"], turn["sample"], turn["calls"]) for turn in transcript]
    assert told == [(1, 1, 1), (1, 2, 0), (1, 3, 0), (2, 1, 1), (2, 2, 0), (2, 3, 0)]
    assert verdict.warnings == ()


def test_usage_counts_the_prompt_once(provider: Provider) -> None:
    provider.play(
        by=lambda _: Text(fields=pair(8, 4), usage=Usage(input=200, cached=150, output=90))
    )
    verdict, _ = judged(models={"*": OPENAI})
    assert (verdict.input_tokens, verdict.cached_input_tokens, verdict.output_tokens) == (
        400,
        300,
        180,
    )
    assert verdict.cost_usd is not None


def test_what_cannot_be_read_is_left_out_and_counted(provider: Provider) -> None:
    cut = Text("Yeast is", finish="length")
    swapped = ["Both are fine.", as_text(5, 6), "Hm."]
    provider.play(by=alternating([as_text(9, 3), cut, as_text(7, 3)], swapped))
    verdict, transcript = judged(models={"*": OPENAI}, structured="off")
    assert verdict.scores == (7, 4)
    assert verdict.details["samples_by_order"] == [[[9, 3], [7, 3]], [[6, 5]]]
    assert verdict.details["unread_samples"] == 3
    assert len(provider.requests) == verdict.calls == 2
    assert set(verdict.warnings) == {
        "scorer, round 1: 1 of 3 samples could not be read and were left out",
        "scorer, round 1: 2 of 3 samples could not be read and were left out",
    }
    assert [turn["value"] for turn in transcript] == [[9, 3], None, [7, 3], None, [6, 5], None]


def test_an_order_with_no_readable_sample_is_an_error() -> None:
    model = ScriptedModel(
        script=lambda _, prompt: as_text(8, 4) if in_given_order(prompt) else "Hm."
    )
    with pytest.raises(ReplyError) as caught:
        judged(models={"*": model}, structured="off")
    assert (caught.value.agent, caught.value.reply) == ("scorer", "Hm.")
    assert sum(call.metadata["repair"] for call in model.calls) == 1


@pytest.mark.parametrize("how", ["sync", "async"])
def test_one_order_only(how: str) -> None:
    model = ScriptedModel(script=lambda metadata, _: pair(5 + metadata["sample"], 5))
    verdict, transcript = judged(how, models={"*": model}, position_calibration=False, k=4)
    assert (verdict.scores, verdict.winner, verdict.position_consistent) == ((7.5, 5), "1", None)
    assert verdict.details == {"samples": [[6, 5], [7, 5], [8, 5], [9, 5]], "unread_samples": 0}
    assert verdict.calls == len(model.calls) == len(transcript) == 4
