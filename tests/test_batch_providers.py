"""Test batches of each provider: live requests and results, half the price, no duplicates."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import evaluate
from jurygraph.eval.results.config import RunConfig
from jurygraph.eval.run.batch_api import batch_provider
from jurygraph.eval.run.batch_api.batch_provider import BatchLimits
from jurygraph.eval.run.calls.call_pipeline import RunContext
from jurygraph.eval.run.calls.shutdown import StopSignal
from jurygraph.eval.run.plan.plan import plan
from jurygraph.eval.run.runner import execute

from .loopback import Provider, Request
from .loopback_batches import Fate
from .loopback_debate import OPENAI
from .processes import Forks
from .test_batch_api import anybody, goes_on, killed, lines, live, scores, troubled

ANTHROPIC = "anthropic:claude-opus-4-8"
OTHERS = (ANTHROPIC, "google_genai:gemini-2.5-flash")
of_each_provider = pytest.mark.parametrize(
    "model", [OPENAI, *OTHERS], ids=lambda model: model.split(":")[0]
)


@pytest.fixture(autouse=True)
def _addresses(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    """All clients ask the loopback provider, and batches are looked after at once."""
    pytest.importorskip("langchain_anthropic", reason="the extra anthropic is not installed")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", provider.url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test-key")
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", provider.url)
    soon = BatchLimits(first_poll=0.001, poll_interval=0.001, requests=3)
    monkeypatch.setattr(batch_provider, "DEFAULT_LIMITS", soon)
    monkeypatch.setattr("jurygraph.eval.run.batch_api.batch_provider.WAITS", (0.001,) * 3)
    provider.play(by=anybody)


def asked(requests: list[Request]) -> Counter[str]:
    """The bodies of requests, without the marks for a cache, which batches do not have."""
    return Counter(json.dumps(_unmarked(request.body), sort_keys=True) for request in requests)


def _unmarked(value: Any) -> Any:
    if isinstance(value, list):
        if value and all(isinstance(one, dict) and one.get("type") == "text" for one in value):
            return "".join(one["text"] for one in value)
        return [_unmarked(one) for one in value]
    if isinstance(value, dict):
        return {
            name: _unmarked(one)
            for name, one in value.items()
            if name not in ("cache_control", "stream")
        }
    return value


def judged(data: Path, out: Path, model: str, protocol: Any = "single", **more: Any) -> Any:
    return evaluate(protocol, data, models={"*": model}, out=out, batch=True, **more)


@pytest.mark.parametrize("model", OTHERS)
@pytest.mark.parametrize("protocol", ["debate", "geval"])
def test_batches_are_as_live_calls(
    provider: Provider, tmp_path: Path, protocol: Any, model: str
) -> None:
    data = scores(tmp_path)
    alone = evaluate(protocol, data, models={"*": model}, out=tmp_path / "alone")
    made = list(provider.requests)
    batched = judged(data, tmp_path / "batched", model, protocol)
    assert not alone.failed, alone.failed[0].error
    assert alone.results[0].cost_usd
    assert lines(batched) == lines(alone, half=True)
    assert live(provider) == made, "a call went out alone"
    assert asked(provider.requests[len(made) :]) == asked(made)
    assert max(Counter(provider.batches.sent()).values()) == 1
    assert not any(
        "cache_control" in json.dumps(request.body) for request in provider.requests[len(made) :]
    )


BEFORE = "building built uploading uploaded created polling downloading downloaded reading settling settled"
PLACES = [(OPENAI, place) for place in BEFORE.split()] + [
    (model, place)
    for model in OTHERS
    for place in ("noted", "created", "collecting", "collected", "settling")
]


@pytest.mark.slow
@pytest.mark.parametrize(("model", "place"), PLACES)
def test_killed_anywhere_it_goes_on_and_sends_nothing_twice(
    provider: Provider, forks: Forks, tmp_path: Path, place: str, model: str
) -> None:
    data = scores(tmp_path)
    out = tmp_path / "out"
    killed(forks, place, model, data, out)
    if place == "noted" and model == ANTHROPIC:
        # Another run's batch of the same size: its results show that it does not belong to this
        # run.
        body = {"model": "claude-opus-4-8", "messages": [{"role": "user", "content": "Hello"}]}
        provider.batches.add(
            "msgbatch_", {}, [{"custom_id": f"other-{n}", "body": body} for n in range(2)]
        )
    goes_on(provider, model, data, out)


@pytest.mark.parametrize("status", ["expired", "cancelled"])
@pytest.mark.parametrize(
    ("model", "told"), [(OPENAI, False), *((model, True) for model in (OPENAI, *OTHERS))]
)
def test_what_a_batch_did_not_get_round_to_is_asked_again(
    provider: Provider, tmp_path: Path, status: str, model: str, told: bool
) -> None:
    provider.batches.fate = lambda number: Fate() if number else Fate(status, share=0.4, told=told)
    done = judged(scores(tmp_path), tmp_path / "out", model)
    assert not done.failed
    assert [len(batch.lines) for batch in provider.batches.made] == [3, 2, 2]
    assert len(provider.requests) == 5, "what was done was asked for again"
    assert lines(done) == lines(
        evaluate("single", scores(tmp_path), models={"*": model}), half=True
    )


@of_each_provider
def test_failed_requests_go_into_few_later_waves(
    provider: Provider, tmp_path: Path, model: str
) -> None:
    provider.play(by=troubled(anybody))
    done = judged(scores(tmp_path), tmp_path / "out", model, attempts=4)
    failed = {result.item: result.error or "" for result in done.failed}
    assert failed.keys() == {"i2", "i3"}
    assert "given up after 4 batches" in failed["i2"]
    assert "not allowed" in failed["i3"]
    assert [len(batch.lines) for batch in provider.batches.made] == [3, 2, 2, 2, 1]
    provider.play(by=anybody)
    assert not judged(scores(tmp_path), tmp_path / "out", model).failed
    assert [len(batch.lines) for batch in provider.batches.made[5:]] == [2]


@of_each_provider
def test_a_refused_batch_ends_the_run_with_the_reason(
    provider: Provider, tmp_path: Path, model: str
) -> None:
    provider.batches.fate = lambda number: Fate(
        "failed", problem=("invalid", "Request 1 has no words.")
    )
    data = scores(tmp_path, 3)
    out = tmp_path / "out"
    stop = StopSignal()
    prepared = plan("single", data, models={"*": model}, out=out)
    done = asyncio.run(execute(prepared, RunContext(RunConfig(batch=True), stop=stop)))
    assert done.stopped == "provider"
    # Gemini's client leaves the reason out.
    reason = "JOB_STATE_FAILED" if model.startswith("google") else "Request 1 has no words."
    assert reason in stop.explanation
    provider.batches.fate = lambda number: Fate()
    assert not judged(data, out, model).failed
    assert len(provider.requests) == 3


@of_each_provider
def test_a_batch_made_without_an_answer_is_found(
    provider: Provider, tmp_path: Path, model: str
) -> None:
    provider.batches.lost_answers = 1
    provider.batches.failures = {"/v1/files": [500], "/v1/batches": [503]}
    provider.batches.fate = lambda number: Fate(looks=0)
    assert not judged(scores(tmp_path, 3), tmp_path / "out", model).failed
    assert len(provider.batches.made) == 1


@pytest.mark.parametrize("critic", [*OTHERS, "openai:gpt-4o"])
def test_providers_and_models_mixed_in_one_run(
    provider: Provider, tmp_path: Path, critic: str
) -> None:
    models = {"*": OPENAI, "critic": critic}
    done = evaluate("debate", scores(tmp_path), models=models, out=tmp_path / "out", batch=True)
    alone = evaluate("debate", scores(tmp_path), models=models)
    assert not alone.failed, alone.failed[0].error
    assert lines(done) == lines(alone, half=True)
    named = {
        batch.metadata.get("model") or batch.lines[0]["body"]["model"]
        for batch in provider.batches.made
    }
    assert named == {name.partition(":")[2] for name in models.values()}
