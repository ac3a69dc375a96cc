"""FairEval: evidence first, several samples, both orders; scripted, and over real sockets."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from jurygraph.graphs import faireval
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.state import ReplyError

from . import loopback_debate
from .loopback import Answer, Provider, Request, Text, Usage
from .loopback_debate import COMPARE_TASK, OPENAI

YEAST = COMPARE_TASK["answer_1"]


run = partial(loopback_debate.run, task=COMPARE_TASK, protocol=faireval)


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
    provider.play(by=alternating([say(9, 4), say(8, 4), say(7, 4)], [say(6, 7), say(6, 8), say(6, 9)]))
    verdict, transcript = run(how, models={"*": OPENAI}, structured=structured)
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
    provider.play(by=lambda _: Text(fields=pair(8, 4), usage=Usage(input=200, cached=150, output=90)))
    verdict, _ = run(models={"*": OPENAI})
    assert (verdict.input_tokens, verdict.cached_input_tokens, verdict.output_tokens) == (400, 300, 180)
    assert verdict.cost_usd is not None


def test_what_cannot_be_read_is_left_out_and_counted(provider: Provider) -> None:
    cut = Text("Yeast is", finish="length")
    swapped = ["Both are fine.", as_text(5, 6), "Hm."]
    provider.play(by=alternating([as_text(9, 3), cut, as_text(7, 3)], swapped))
    verdict, transcript = run(models={"*": OPENAI}, structured="off")
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
    model = ScriptedModel(script=lambda _, prompt: as_text(8, 4) if in_given_order(prompt) else "Hm.")
    with pytest.raises(ReplyError) as caught:
        run(models={"*": model}, structured="off")
    assert (caught.value.agent, caught.value.reply) == ("scorer", "Hm.")
    assert sum(call.metadata["repair"] for call in model.calls) == 1


@pytest.mark.parametrize("how", ["sync", "async"])
def test_one_order_only(how: str) -> None:
    model = ScriptedModel(script=lambda metadata, _: pair(5 + metadata["sample"], 5))
    verdict, transcript = run(how, models={"*": model}, position_calibration=False, k=4)
    assert (verdict.scores, verdict.winner, verdict.position_consistent) == ((7.5, 5), "1", None)
    assert verdict.details == {"samples": [[6, 5], [7, 5], [8, 5], [9, 5]], "unread_samples": 0}
    assert verdict.calls == len(model.calls) == len(transcript) == 4
