"""Runs over the provider's batches: the same results at half the price, and nothing sent twice."""

import asyncio
import json
import os
import re
import shutil
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import Evaluation, evaluate
from jurygraph.eval.results.config import RunConfig
from jurygraph.eval.run.batch_api import batch_provider
from jurygraph.eval.run.batch_api.batch_provider import BatchLimits
from jurygraph.eval.run.calls.call_pipeline import RunContext
from jurygraph.eval.run.calls.shutdown import StopSignal
from jurygraph.eval.run.plan.plan import plan
from jurygraph.eval.run.runner import execute
from jurygraph.nodes.models import responses
from jurygraph.state import UsageError

from .loopback import Answer, Failure, Provider, Request, Text
from .loopback_batches import Fate
from .processes import HANG_GUARD, Forks, in_this_process, until
from .sample_data import numbered, write_lines

MODEL = {"*": "openai:gpt-4o-mini"}


@pytest.fixture(autouse=True)
def _soon(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches are looked after at once, and replied to by anybody."""
    provider.play(by=anybody)
    monkeypatch.setattr(
        batch_provider, "DEFAULT_LIMITS", BatchLimits(first_poll=0.001, poll_interval=0.001)
    )


def scores(folder: Path, count: int = 5) -> Path:
    return numbered(folder, count, human={"fluency": 3})


def pairs(folder: Path, count: int) -> Path:
    wrong = {"answer_2": "No idea.", "human": 1}
    rows = [
        {"id": f"p{n}", "question": f"Why {n}?", "answer_1": f"So {n}.", **wrong}
        for n in range(count)
    ]
    return write_lines(folder / "pairs.jsonl", rows)


def anybody(request: Request) -> Answer:
    """Give a reply that suits any agent; equal prompts get equal replies."""
    words = request.user
    value = 1 + sum(map(ord, words)) % 5
    if "numbered list" in words[-300:]:
        return "1. Read both texts.\n2. Compare them.\n3. Give a score."
    if request.schema is not None:
        filled = 20 * value if "120" in words[-600:] else value  # in court
        return {name: _field(about, filled) for name, about in request.schema["properties"].items()}
    rated = "evaluation steps" in words.lower()
    said = str(value) if rated else f"Thoughts on {len(words)}."
    return Text(said, top=({str(value): 0.7, str(value % 5 + 1): 0.2},))


def _field(about: dict[str, Any], value: int) -> Any:
    if "enum" in about:
        return about["enum"][value % len(about["enum"])]
    kinds = {"string": f"words {value}", "boolean": value > 2, "array": ["one step", "another"]}
    return kinds.get(str(about.get("type")), value)


def lines(evaluation: Evaluation, half: bool = False) -> list[dict[str, Any]]:
    """Return the parts that must not depend on how calls are sent; ``half``: half the price.

    G-Eval's planner is separate. Items share its steps, and the first item to ask pays the call,
    which varies because they ask at the same time.
    """
    rows: list[dict[str, Any]] = []
    planned: list[dict[str, Any]] = []
    for result in evaluation.results:
        line = result.model_dump(mode="json")
        for turn in line["transcript"]:
            if turn["agent"] == "planner":
                planned.append(turn)
                for name in USED:
                    line[name] -= turn[name]
        line["transcript"] = [turn for turn in line["transcript"] if turn not in planned]
        rows.append(line)
    rows.append({"transcript": planned})
    for row in rows:
        for part in (row, *row["transcript"]):
            part.pop("seconds", None)
            if part.get("cost_usd") is not None:
                part["cost_usd"] = round(part["cost_usd"] / (2 if half else 1), 12)
    return rows


USED = (
    "calls",
    "input_tokens",
    "cached_input_tokens",
    "output_tokens",
    "reasoning_tokens",
    "cost_usd",
)


def live(provider: Provider) -> list[Request]:
    return [request for request in provider.requests if request.method != "BATCH"]


ONE_AFTER_ANOTHER = dict.fromkeys(("single", "ensemble", "faireval", "calibrated"), 1) | {
    **{"geval": 2, "more": 3, "chateval": 4, "samre": 9}
}
"""Calls of a verdict that wait for another one; a debate ends when its critic is satisfied."""


@pytest.mark.parametrize(("protocol", "kind", "settings"), [
    *((name, "score", {}) for name in ("debate", "single", "geval", "multiagent", "ensemble")),
    *((name, "compare", {}) for name in ("chateval", "more", "samre", "faireval")),
    ("geval", "score", {"weighting": "sampling"}), ("calibrated", "compare", {"of": "single"}),
    ("repeated", "score", {"of": "debate", "k": 3}),
])  # fmt: skip
def test_results_are_those_of_a_run_without_batches(
    provider: Provider, tmp_path: Path, protocol: Any, kind: str, settings: dict[str, Any]
) -> None:
    data = scores(tmp_path, count=3) if kind == "score" else pairs(tmp_path, 3)
    options: dict[str, Any] = {"models": MODEL, "settings": settings}
    alone = evaluate(protocol, data, **options, out=tmp_path / "alone")
    made = len(provider.requests)
    batched = evaluate(protocol, data, **options, out=tmp_path / "batched", batch=True)
    assert not alone.failed
    assert lines(batched) == lines(alone, half=True)
    assert len(live(provider)) == made, "a call went out alone"
    assert len(provider.requests) == 2 * made
    assert max(Counter(provider.batches.sent()).values()) == 1
    longest = max(result.calls for result in batched.results) // settings.get("k", 1)
    assert len(provider.batches.made) <= ONE_AFTER_ANOTHER.get(protocol, longest)


KILLED = """
import os, signal, sys
from importlib import import_module
from jurygraph.eval import evaluate
from jurygraph.eval.run.batch_api import batch_manager, batch_provider
from jurygraph.eval.journal.call_journal import Journal

place, model, data, out = sys.argv[1:]
kind = {"openai": "OpenAI", "anthropic": "Anthropic", "google_genai": "Gemini"}[model.partition(":")[0]]
provider = getattr(import_module(f"jurygraph.eval.run.batch_api.{kind.lower()}_batches"), f"{kind}Batches")
owner, name, at = {
    "building": (batch_manager.WaveFiles, "add", 3),
    "built": (batch_manager.WaveFiles, "close", 2),
    "uploading": (provider, "upload", 2),
    "uploaded": (provider, "create", 2),
    "noted": (provider, "start", 2),
    "created": (Journal, "note_batch", 4),
    "polling": (provider, "poll", 2),
    "downloading": (provider, "download", 1),
    "downloaded": (batch_manager.BatchResults, "add", 1),
    "collecting": (provider, "collect", 2),
    "collected": (batch_manager.BatchResults, "add", 2),
    "reading": (batch_manager.BatchResults, "read", 3),
    "settling": (Journal, "settle_batch", 1),
    "settled": (Journal, "settle_batch", 2),
}[place]
usual, times = getattr(owner, name), [0]

def dies(*args, **kwargs):
    times[0] += 1
    if times[0] == at:
        if place == "downloading":
            args[2].with_name(args[2].name + ".part").write_bytes(b'{"custom_id"')
        os.kill(os.getpid(), signal.SIGKILL)
    return usual(*args, **kwargs)

setattr(owner, name, dies)
batch_provider.DEFAULT_LIMITS = batch_provider.BatchLimits(first_poll=0.001, poll_interval=0.001, requests=3)
evaluate("debate", data, models={"*": model}, out=out, batch=True)
"""


def killed(forks: Forks, place: str, model: str, data: Path, out: Path) -> None:
    """Begin a run in a process that is killed at a place."""
    process = forks(
        place, model, str(data), str(out), cwd=data.parent, program=KILLED, **os.environ
    )
    assert process.returncode == -signal.SIGKILL, process.stderr


def goes_on(provider: Provider, model: str, data: Path, out: Path) -> None:
    """Continue a killed run: its results equal those without batches; nothing is sent twice."""
    whole = evaluate("debate", data, models={"*": model}, out=out, batch=True)
    assert not live(provider)
    assert max(Counter(provider.batches.sent()).values()) == 1
    assert lines(whole) == lines(evaluate("debate", data, models={"*": model}), half=True)
    assert list((out / "batches").iterdir()) == []


def troubled(usual: Callable[[Request], Answer]) -> Callable[[Request], Answer]:
    """Answer as usual, but item 1 only the third time, and items 2 and 3 never."""
    tries: Counter[str] = Counter()

    def answer(request: Request) -> Answer:
        tries[request.user] += 1
        if "Number 1." in request.user and tries[request.user] < 3:
            return Failure(429, "Rate limit reached", code="rate_limit_exceeded")
        if "Number 2." in request.user:
            return Failure(500)
        if "Number 3." in request.user:
            return Failure(400, "The text is not allowed.", code="content_policy_violation")
        return usual(request)

    return answer


def test_several_replies_to_one_request_and_one_each(provider: Provider, tmp_path: Path) -> None:
    def refuses(request: Request) -> Answer:
        if request.choices > 1:
            return Failure(400, "Unsupported parameter: 'n'", "n", "unsupported_parameter")
        return anybody(request)

    sampled = {"weighting": "sampling", "samples": 4}
    options: dict[str, Any] = {"models": MODEL, "settings": sampled, "batch": True}
    together = evaluate("geval", scores(tmp_path), **options, out=tmp_path / "together")
    assert [len(batch.lines) for batch in provider.batches.made] == [1, 5]
    provider.play(by=refuses)
    apart = evaluate("geval", scores(tmp_path), **options, out=tmp_path / "apart")
    assert not together.failed
    assert not apart.failed
    assert [len(batch.lines) for batch in provider.batches.made[2:]] == [1, 5, 20]
    assert max(Counter(provider.batches.sent()[6:]).values()) == 1


def test_a_file_has_a_limit(
    provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = BatchLimits(first_poll=0.001, poll_interval=0.001, file_bytes=4000)
    monkeypatch.setattr(batch_provider, "DEFAULT_LIMITS", small)
    assert not evaluate(
        "single", scores(tmp_path), models=MODEL, out=tmp_path / "out", batch=True
    ).failed
    assert [len(batch.lines) for batch in provider.batches.made] == [1] * 5


def test_a_refused_key_ends_the_run_and_what_cannot_be_queued_now_is_sent_later(
    provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        batch_provider,
        "DEFAULT_LIMITS",
        BatchLimits(first_poll=0.001, poll_interval=0.001, requests=3),
    )
    provider.batches.failures = {"/v1/files": [401]}
    refused = evaluate("single", scores(tmp_path), models=MODEL, out=tmp_path / "out", batch=True)
    assert (refused.stopped, len(refused.results)) == ("provider", 0)
    too_many = Fate("failed", problem=("token_limit_exceeded", "Enqueued token limit reached"))
    provider.batches.fate = lambda number: too_many if number == 1 else Fate()
    done = evaluate("single", scores(tmp_path), models=MODEL, out=tmp_path / "out", batch=True)
    assert done.stopped is None
    assert len(done.results) == 5
    assert len(provider.requests) == 5


@pytest.mark.parametrize("gone", ["output", "batch", "folder"])
def test_days_later_what_is_gone_is_asked_again(
    provider: Provider, tmp_path: Path, gone: str
) -> None:
    data = scores(tmp_path)
    out = tmp_path / "out"
    interrupted(provider, data, out)
    provider.batches.fate = lambda number: Fate()
    [batch] = provider.batches.made
    batch.fate = Fate()
    if gone == "output":
        batch.looks = 1
        batch.output_file = "file-gone"
    elif gone == "batch":
        provider.batches.made.clear()
    else:
        shutil.rmtree(out / "batches")
    assert not evaluate("single", data, models=MODEL, out=out, batch=True).failed
    assert len(provider.requests) == 5


def looked_after(provider: Provider) -> None:
    """Wait until the first batch is made and was looked after."""
    until(lambda: provider.batches.made and provider.batches.made[0].looks)


def interrupted(provider: Provider, data: Path, out: Path, protocol: str = "single") -> StopSignal:
    """A run that was interrupted while its first batch was under way."""
    provider.batches.fate = lambda number: Fate(looks=1_000_000)

    async def begin() -> StopSignal:
        stop = StopSignal()
        prepared = await asyncio.to_thread(plan, protocol, data, models=MODEL, out=out)
        running = asyncio.create_task(
            execute(prepared, RunContext(RunConfig(batch=True), stop=stop))
        )
        await asyncio.to_thread(looked_after, provider)
        stop.ask("interrupted", "stopped by SIGINT")
        async with asyncio.timeout(HANG_GUARD):
            assert (await running).stopped == "interrupted"
        return stop

    return asyncio.run(begin())


def test_an_interrupted_run_tells_what_goes_on_and_collects_it(
    provider: Provider, tmp_path: Path
) -> None:
    data = scores(tmp_path)
    out = tmp_path / "out"
    stop = interrupted(provider, data, out, "debate")
    assert (
        "1 batch continues at the provider, and the next start collects the results"
        in stop.explanation
    )
    with pytest.raises(UsageError, match=r"1 of this run's batches .* resume with --batch"):
        evaluate("debate", data, models=MODEL, out=out)
    assert not live(provider)
    provider.batches.made[0].fate = Fate()
    provider.batches.fate = lambda number: Fate()
    whole = evaluate("debate", data, models=MODEL, out=out, batch=True)
    assert max(Counter(provider.batches.sent()).values()) == 1
    assert lines(whole) == lines(evaluate("debate", data, models=MODEL), half=True)


@pytest.mark.parametrize("most", [3, 7])
def test_the_wave_that_fits_is_sent_and_no_more(
    provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    options: dict[str, Any] = {"models": MODEL, "out": tmp_path / "out", "batch": True}
    for _ in range(2):
        stopped = evaluate("debate", scores(tmp_path), **options, max_calls=most)
        assert (stopped.stopped, len(provider.requests)) == ("budget", most)
    whole = evaluate("debate", scores(tmp_path), **options)
    assert max(Counter(provider.batches.sent()).values()) == 1
    assert lines(whole) == lines(evaluate("debate", scores(tmp_path), models=MODEL), half=True)
    monkeypatch.setattr(
        responses, "ending_of", None
    )  # replies that cannot be read are paid for all the same
    options["out"] = tmp_path / "unread"
    assert evaluate("single", scores(tmp_path, 9), **options, max_calls=most).stopped == "budget"


def test_dollars_are_counted_at_half_the_price(provider: Provider, tmp_path: Path) -> None:
    options: dict[str, Any] = {"models": MODEL, "out": tmp_path / "out", "batch": True}
    whole = evaluate("single", scores(tmp_path, 30), models=MODEL)
    cost = sum(result.cost_usd or 0.0 for result in whole.results)
    stopped = evaluate("single", scores(tmp_path, 30), **options, max_cost=0.4 * cost)
    assert stopped.stopped == "budget"
    paid = sum(result.cost_usd or 0.0 for result in stopped.results)
    assert 0.3 * cost < paid <= 0.4 * cost


@pytest.mark.parametrize(("models", "out", "problem"), [
    (None, "out", "offline cannot be used in batches"),
    ({"*": "mistralai:mistral-small"}, "out", "only models of OpenAI"),
    ({**MODEL, "critic": "mistralai:mistral-small"}, "out", "only models of OpenAI"),
    (MODEL, None, "give a folder"),
])  # fmt: skip
def test_what_cannot_go_over_batches_is_told_first(
    provider: Provider,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    models: Any,
    out: Any,
    problem: str,
) -> None:
    monkeypatch.setenv("MISTRAL_API_KEY", "test-key")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=problem):
        evaluate("debate", scores(tmp_path), models=models, out=out, batch=True)
    assert provider.batches.asked == []


def test_a_run_can_change_to_batches_and_back(provider: Provider, tmp_path: Path) -> None:
    options: dict[str, Any] = {"models": MODEL, "out": tmp_path / "out"}
    evaluate("debate", scores(tmp_path), **options, max_calls=4)
    evaluate("debate", scores(tmp_path), **options, max_calls=9, batch=True)
    whole = evaluate("debate", scores(tmp_path), **options)
    assert not whole.failed
    assert max(Counter(json.dumps(request.body) for request in provider.requests).values()) == 1


def test_an_unreadable_reply_is_repaired_in_a_later_wave(
    provider: Provider, tmp_path: Path
) -> None:
    def mumbles(request: Request) -> Answer:
        return (
            "mumble" if "Number 2." in request.body["messages"][1]["content"] else anybody(request)
        )

    provider.play(by=mumbles)
    options: dict[str, Any] = {"models": MODEL, "out": tmp_path / "out", "batch": True}
    [failed] = evaluate("single", scores(tmp_path), **options).failed
    assert (failed.item, failed.calls) == ("i2", 2)
    assert [len(batch.lines) for batch in provider.batches.made] == [5, 1]
    provider.play(by=anybody)
    assert not evaluate("single", scores(tmp_path), **options).failed
    assert [len(batch.lines) for batch in provider.batches.made[2:]] == [1]


def test_the_estimate_is_at_half_the_price(provider: Provider, tmp_path: Path) -> None:
    command = [
        "run",
        "single",
        "--data",
        str(scores(tmp_path, 500)),
        "--model",
        MODEL["*"],
        "--dry-run",
    ]
    told = [in_this_process(*command, *more, cwd=tmp_path).stdout for more in ([], ["--batch"])]
    costs = [[float(cost) for cost in re.findall(r"\$([\d.]+)", words)] for words in told]
    assert costs[0]
    assert costs[1] == pytest.approx([cost / 2 for cost in costs[0]], abs=0.01)
    assert {method for method, _ in provider.batches.asked} <= {"GET"}, (
        "more was asked than what there is"
    )
    assert not provider.requests
