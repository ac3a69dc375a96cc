"""A run that can be trusted with money: nothing twice, nothing beyond the budget, nothing lost."""

import asyncio
import gc
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import Evaluation, aevaluate, evaluate
from jurygraph.eval.journal import records
from jurygraph.eval.results.config import RunConfig
from jurygraph.eval.run.calls.call_pipeline import RunContext
from jurygraph.eval.run.calls.progress_counters import ProgressCounters
from jurygraph.eval.run.plan.plan import plan
from jurygraph.eval.run.runner import execute
from jurygraph.graphs.engine.options import RunSettings
from jurygraph.nodes.models import responses
from jurygraph.nodes.models.call import Reply
from jurygraph.state import Usage as ModelUsage

from .loopback import Answer, Failure, Provider, Request, Text, Usage
from .processes import reached
from .sample_data import numbered, write_lines

MODEL = {"*": "openai:gpt-4o-mini"}
PLAIN: RunSettings = {"structured": "off"}


def dataset(folder: Path, count: int = 6) -> Path:
    return numbered(folder, count, human={"fluency": 3})


def debater(request: Request) -> Answer:
    """Objects once, then agrees; the scorer changes its mind after the objection."""
    if "Score: " in request.user.rpartition("\n")[2] or "Score:" in request.user[-300:]:
        return f"Well put.\nScore: {2 + len(request.user) % 3}"
    return "NO ISSUE" if "second thoughts" in request.user else "I have second thoughts."


def scorer(request: Request) -> Answer:
    return "Fine.\nScore: 4"


def results(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return the parts that must be the same however a run ended."""
    lines = [result.model_dump(exclude={"seconds", "transcript"}) for result in evaluation.results]
    said = [
        [(turn["agent"], turn["content"]) for turn in result.transcript]
        for result in evaluation.results
    ]
    return [{**line, "said": words} for line, words in zip(lines, said, strict=True)]


def most_repeated(provider: Provider) -> int:
    return max(Counter(json.dumps(request.body) for request in provider.requests).values())


def test_a_second_run_on_the_same_journal_pays_nothing(provider: Provider, tmp_path: Path) -> None:
    provider.play(by=debater)
    data = dataset(tmp_path)
    options: dict[str, Any] = {
        "models": MODEL,
        "settings": PLAIN,
        "journal": tmp_path / "shared.sqlite",
    }
    shorter = evaluate("debate", data, **options, out=tmp_path / "one", limit=4)
    one = evaluate("debate", data, **options, out=tmp_path / "one")
    assert (len(shorter.results), len(one.results), len(one.failed)) == (4, 6, 0)
    assert shorter.manifest["run"] == one.manifest["run"]
    made = len(provider.requests)
    two = evaluate("debate", data, **options, out=tmp_path / "two")
    assert len(provider.requests) == made == sum(line.calls for line in one.results)
    assert results(one) == results(two)


def test_a_call_leaves_nothing_for_garbage_collection(provider: Provider, tmp_path: Path) -> None:
    provider.play(by=debater)

    def replies() -> int:
        return sum(isinstance(thing, Reply) for thing in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        before = replies()
        done = evaluate("debate", dataset(tmp_path), models=MODEL, settings=PLAIN)
        assert sum(line.calls for line in done.results) > provider.connections
        # A connection refers to the call for which it was opened.
        assert replies() <= before + provider.connections
    finally:
        gc.enable()


def test_protocols_share_what_they_have_in_common(provider: Provider, tmp_path: Path) -> None:
    provider.play(by=debater)
    data = dataset(tmp_path)
    evaluate(["debate", "multiagent"], data, models=MODEL, settings=PLAIN)
    together = len(provider.requests)
    assert most_repeated(provider) == 1
    for name in ("debate", "multiagent"):
        evaluate(name, data, models=MODEL, settings=PLAIN)
    assert together <= len(provider.requests) - together - 6, "the first scores were paid twice"


def test_repeats_and_voices_stay_several_and_equal_items_are_one(
    provider: Provider, tmp_path: Path
) -> None:
    provider.play(by=scorer)
    options: dict[str, Any] = {
        "models": MODEL,
        "settings": {**PLAIN, "ensemble": {"roles": "same"}},
    }
    evaluate(["single", "ensemble"], dataset(tmp_path, 2), **options, repeats=3)
    assert len(provider.requests) == 2 * 3 + 2 * 3 * 3
    rows = [{"id": f"i{n}", "source": "Noon.", "candidate": "The same."} for n in range(20)]
    same = write_lines(tmp_path / "same.jsonl", rows)
    assert (
        len(evaluate("single", same, aspects=["fluency"], models=MODEL, settings=PLAIN).results)
        == 20
    )
    assert len(provider.requests) == 24 + 1


def test_fresh_pays_anew_and_goes_on_as_fresh(provider: Provider, tmp_path: Path) -> None:
    provider.play(by=scorer)
    data = dataset(tmp_path)
    out = tmp_path / "out"
    options: dict[str, Any] = {"models": MODEL, "settings": PLAIN, "out": out}
    evaluate("single", data, **options)
    # Several within a second have the same date: none is overwritten.
    for number in range(1, 4):
        assert len(evaluate("single", data, **options, fresh=True).results) == 6
        assert len(provider.requests) == 6 * (number + 1)
    assert len(list(out.glob("results.*.jsonl"))) == len(list(out.glob("run.*.json"))) == 3
    assert len(evaluate("single", data, **options).results) == 6
    assert len(provider.requests) == 24


def test_what_failed_or_was_unreadable_is_asked_by_the_next_run(
    provider: Provider, tmp_path: Path
) -> None:
    spoilt: dict[str, Answer] = {"Number 2.": "mumble", "Number 3.": Failure(400)}
    provider.play(
        by=lambda request: next(
            (spoilt[text] for text in spoilt if text in request.user), "Fine.\nScore: 4"
        )
    )
    data = dataset(tmp_path, 4)
    out = tmp_path / "out"
    options: dict[str, Any] = {"models": MODEL, "settings": PLAIN, "out": out}
    first = evaluate("single", data, **options)
    assert [(result.item, result.calls) for result in first.failed] == [("i2", 2), ("i3", 0)]
    assert all(words in str(first.failed[0].error) for words in ("scorer, round 1", "mumble"))
    assert [turn["agent"] for turn in first.failed[0].transcript] == ["scorer"]
    assert (len(first.results), first.agreement()["fluency"].left_out) == (4, {"failed": 2})
    assert len(provider.requests) == 5
    provider.play(by=scorer)
    assert not evaluate("single", data, **options).failed
    assert len(provider.requests) == 7


@pytest.mark.parametrize("most", [1, 7, 13])
def test_never_more_calls_than_allowed(provider: Provider, tmp_path: Path, most: int) -> None:
    provider.play(by=debater)
    data = dataset(tmp_path)
    out = tmp_path / "out"
    options: dict[str, Any] = {"models": MODEL, "settings": PLAIN, "out": out}
    stopped = evaluate("debate", data, **options, max_calls=most)
    assert stopped.stopped == "budget"
    assert len(provider.requests) == most
    assert not stopped.failed
    again = evaluate("debate", data, **options, max_calls=most)
    assert (again.stopped, len(provider.requests)) == ("budget", most), "spend was not carried over"
    whole = evaluate("debate", data, **options)
    assert (whole.stopped, len(whole.results)) == (None, 6)
    assert most_repeated(provider) == 1
    assert results(whole) == results(evaluate("debate", data, models=MODEL, settings=PLAIN))


@pytest.mark.parametrize("limit", [{"max_calls": 31}, {"max_tokens": 7000}], ids=str)
def test_a_budget_ends_what_has_begun(
    provider: Provider, tmp_path: Path, limit: dict[str, Any]
) -> None:
    provider.play(by=debater)
    data = dataset(tmp_path, 64)
    done = evaluate(
        "debate", data, models=MODEL, settings={**PLAIN, "n": 2}, concurrency=64, **limit
    )
    judged = sum(result.calls for result in done.results if result.status == "ok")
    assert done.stopped == "budget"
    # One item at most has begun and is not finished.
    assert len(provider.requests) - judged < 5
    assert len(done.results) >= 6


def test_tokens_and_dollars_are_limited_as_well(provider: Provider, tmp_path: Path) -> None:
    provider.play(by=lambda request: Text("Fine.\nScore: 4", usage=Usage(input=1000, output=100)))
    data = dataset(tmp_path, 50)
    options: dict[str, Any] = {"models": MODEL, "settings": PLAIN, "concurrency": 2}
    tokens = evaluate("single", data, **options, max_tokens=11_000, out=tmp_path / "tokens")
    assert tokens.stopped == "budget"
    assert 9 <= len(provider.requests) <= 10
    price = tokens.results[0].cost_usd
    assert price is not None
    before = len(provider.requests)
    cost = evaluate("single", data, **options, max_cost=20.5 * price, out=tmp_path / "cost")
    assert cost.stopped == "budget"
    assert 19 <= len(provider.requests) - before <= 21


ODD_USAGE: dict[str, Any] = {
    "none": None,
    "negative": Usage(input=-100_000, output=-5_000),
    "beyond all measure": Usage(input=10**30, output=10**30),
    "words": Usage(input="lots", output="some"),  # type: ignore[arg-type]
    "parts": Usage(input=100.5, output=20.25),  # type: ignore[arg-type]
    "more cached than sent": Usage(input=100, cached=100_000, output=20),
}
BUDGETS: list[dict[str, Any]] = [{"max_cost": 0.001}, {"max_tokens": 5_000}]


@pytest.mark.parametrize("usage", ODD_USAGE.values(), ids=ODD_USAGE)
@pytest.mark.parametrize("most", BUDGETS, ids=lambda limit: next(iter(limit)))
def test_replies_that_do_not_say_what_they_took_are_kept_and_no_way_round_a_budget(
    provider: Provider, tmp_path: Path, most: dict[str, Any], usage: Usage | None
) -> None:
    provider.play(by=lambda request: Text("Fine.\nScore: 4", usage=usage))
    data = dataset(tmp_path, 60)
    out = tmp_path / "out"
    options: dict[str, Any] = {
        "models": MODEL,
        "settings": PLAIN,
        "out": out,
        "concurrency": 4,
        **most,
    }
    stopped = evaluate("single", data, **options)
    assert (stopped.stopped, len(stopped.failed)) == ("budget", 0)
    assert {line.cost_usd for line in stopped.results} == {None}
    made = len(provider.requests)
    assert len(stopped.results) == made < 60
    assert evaluate("single", data, **options).stopped == "budget"
    assert len(provider.requests) <= made + 2, "what earlier starts have spent was forgotten"
    assert most_repeated(provider) == 1


def test_a_reply_that_cannot_be_read_is_kept_and_not_paid_again(
    provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.play(by=lambda request: Text("Half \ud83d.\nScore: 4", usage=Usage(input=10**30)))

    def unable(*_: Any, **__: Any) -> Reply:
        raise TypeError("unsupported operand")

    data = dataset(tmp_path)
    out = tmp_path / "out"
    options: dict[str, Any] = {"models": MODEL, "settings": PLAIN, "out": out}
    with monkeypatch.context() as faulty:
        faulty.setattr(responses, "ending_of", unable)
        for _ in range(2):
            failed = evaluate("single", data, **options).failed
            assert len(failed) == len(provider.requests) == 6
            assert "could not be read: TypeError('unsupported operand')" in str(failed[0].error)
    done = evaluate("single", data, **options)
    assert [line.score for line in done.results] == [4.0] * 6
    assert len(provider.requests) == 6


async def test_whoever_cancels_loses_nothing_that_was_finished(
    provider: Provider, tmp_path: Path
) -> None:
    provider.play(by=debater)
    data = dataset(tmp_path, 30)
    out = tmp_path / "out"
    counts = ProgressCounters()
    prepared = await asyncio.to_thread(plan, "debate", data, models=MODEL, settings=PLAIN, out=out)
    running = asyncio.create_task(execute(prepared, RunContext(RunConfig(concurrency=4), counts)))
    await reached(lambda: counts.made >= 20, running)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    whole = await aevaluate("debate", data, models=MODEL, settings=PLAIN, out=out, concurrency=1)
    assert len(whole.results) == 30
    needed = sum(result.calls for result in whole.results)
    assert len(provider.requests) <= needed + 4, "more than what was in flight was made again"


def test_parameters_that_were_dropped_stay_dropped_on_replay(
    provider: Provider, tmp_path: Path
) -> None:
    def refuses(request: Request) -> Answer:
        for field in ("temperature", "top_p"):
            if field in request.body:
                return Failure(
                    400, f"Unsupported parameter: '{field}'", field, "unsupported_parameter"
                )
        return scorer(request)

    provider.play(by=refuses)
    data = dataset(tmp_path, 4)
    journal = tmp_path / "j.sqlite"
    options: dict[str, Any] = {"settings": PLAIN, "journal": journal, "concurrency": 1}
    model = f"{MODEL['*']}?temperature=0.5&top_p=0.5"
    # A client with another time-out is another client of the model, which has dropped nothing yet.
    one, two = (
        evaluate("single", data, models=name, **options) for name in (model, f"{model}&timeout=60")
    )
    assert len(provider.requests) == 6
    assert [result.warnings for result in one.results] == [
        result.warnings for result in two.results
    ]
    told = " ".join(one.results[-1].warnings)
    assert "takes no temperature" in told
    assert "takes no top_p" in told


def test_a_reply_survives_its_keeping() -> None:
    likely = [
        {"token": "4", "logprob": -0.1, "bytes": [52]},
        {"token": "5", "logprob": -2.5, "bytes": [53]},
    ]
    tokens = [{"token": "4", "logprob": -0.1, "bytes": [52], "top_logprobs": likely}]
    other = Reply("5\u2028é", {"score": 5}, True, True, ModelUsage(0, cost_usd=None))
    usage = ModelUsage(2, 9, 3, 2, 1, 0.0001, 0.25)
    reply = Reply("4", None, False, False, usage, tokens, (other,), ("temperature",))
    again = records.from_bytes(records.to_bytes(reply))
    assert again.tokens is not None
    assert [dict(one) for one in again.tokens[0]["top_logprobs"]] == [
        {"token": "4", "logprob": -0.1},
        {"token": "5", "logprob": -2.5},
    ]
    assert (again.others, again.dropped, again.usage) == ((other,), ("temperature",), usage)
    bare = Reply("4", None, False, False, ModelUsage(1, 9, 0, 2, 0, None, 0.25))
    assert records.from_bytes(records.to_bytes(bare)) == bare
    assert len(records.to_bytes(bare)) < 100


def test_numbers_that_no_machine_holds_and_deep_nesting_survive_as_well() -> None:
    deep: dict[str, Any] = {"score": 10**30}
    for _ in range(300):
        deep = {"more": deep}
    reply = Reply(
        "4", {"score": 10**30, "deep": deep}, False, False, ModelUsage(1, 9, 0, 2, 0, None, 0.25)
    )
    again = records.from_bytes(records.to_bytes(reply))
    assert again.fields is not None
    assert again.fields["score"] == 1e30
    assert again.usage == reply.usage


@pytest.mark.parametrize(
    ("structured", "reply"),
    [("auto", {"reasoning": "Fine \ud83d.", "score": 4}), ("off", "Fine \ud83d.\nScore: 4")],
)
def test_half_a_character_in_a_reply_is_kept_as_a_whole_one(
    provider: Provider, tmp_path: Path, structured: Any, reply: Answer
) -> None:
    provider.play(by=lambda request: reply)
    [judged] = evaluate(
        "single",
        dataset(tmp_path, 1),
        models=MODEL,
        settings={"structured": structured},
        out=tmp_path / "out",
    ).results
    assert (judged.status, judged.score) == ("ok", 4.0)
    assert "Fine \ufffd." in judged.transcript[0]["content"]
    assert len(provider.requests) == 1
