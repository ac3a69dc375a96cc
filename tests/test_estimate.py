"""Test estimates: exact figures, comparison with a run of the demo data, and no calls."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from jurygraph.eval.datasets.dataset import Dataset
from jurygraph.eval.datasets.items import CompareItem, ScoreItem
from jurygraph.eval.run.plan.dry_run import CallSample, role_profiles, tokens_in
from jurygraph.eval.run.plan.estimator import (
    Estimate,
    Part,
    added,
    estimate,
    estimate_table,
    shares,
)
from jurygraph.eval.run.plan.plan import plan
from jurygraph.eval.tables import to_lines
from jurygraph.nodes.evaluation_steps import keep_steps_in
from jurygraph.nodes.models import prices
from jurygraph.nodes.models.resolver import wrap
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.nodes.runtime.prompt_context import rubric_of_user
from jurygraph.state import Aspect, UsageError
from jurygraph.state.protocols import CallRange, Range
from jurygraph.state.tasks import rubric_of
from jurygraph.state.transcript import Usage
from jurygraph.state.verdict import Verdict
from langchain_openai import ChatOpenAI
from pydantic import SecretStr
from rich.console import Console

from .loopback import Provider
from .sample_data import RUBRIC_TASK
from .sample_data import UNATTENDED as CASES

DEMO = {"score": "demo", "compare": "demo-pairs"}
PAIR = {"question": "How long?", "answer_1": "Nine days.", "answer_2": "No idea."}
PAIRS = Dataset.of("pairs", [CompareItem(id=str(number), **PAIR) for number in range(10)])

OPENAI_CHAT = ChatOpenAI(
    model="gpt-4o-mini", api_key=SecretStr("none"), base_url="http://127.0.0.1:9"
)


def unasked() -> ScriptedModel:
    return ScriptedModel(script=lambda metadata, prompt: AssertionError("a model was called"))


def part(model: str, calls: Range[int], tokens: Range[int], cost: Range[float] | None) -> Part:
    least, most = (None, None) if cost is None else (cost.least, cost.most)
    return Part(
        "debate",
        model,
        Usage(calls.least, tokens.least, 0, tokens.least, cost_usd=least),
        Usage(calls.most, tokens.most, 0, tokens.most, cost_usd=most),
    )


# On paper


ON_PAPER = Estimate(
    {"debate": 10},
    (
        part("openai:gpt-4o-mini", Range(10, 50), Range(1000, 9000), Range(0.5, 2.0)),
        part("own", Range(10, 40), Range(500, 700), None),
    ),
    sampled=8,
)


def test_a_total_is_the_sum_and_its_cost_unknown_where_that_of_any_part_is() -> None:
    total = ON_PAPER.total
    assert (total.calls, total.input_tokens, total.cost_usd) == (
        Range(20, 90),
        Range(1500, 9700),
        None,
    )
    known = Estimate({}, (ON_PAPER.parts[0], ON_PAPER.parts[0]), 8)
    assert known.total.cost_usd == Range(1.0, 4.0)
    assert of_protocol(ON_PAPER, "debate").calls == total.calls
    assert of_protocol(ON_PAPER, "chateval").calls == Range(0, 0)


def test_a_budget_is_exceeded_where_the_least_is_above_it() -> None:
    assert ON_PAPER.exceeds() == ()
    assert ON_PAPER.exceeds(max_calls=20, max_tokens=3000, max_cost=0.5) == ()
    assert ON_PAPER.exceeds(max_calls=19) == (
        "at least 20 calls are needed, but only 19 are allowed",
    )
    told = ON_PAPER.exceeds(max_tokens=2999, max_cost=0.4)
    assert told == (
        "at least about 3,000 tokens are needed, but only 2,999 are allowed",
        "at least about $0.50 is needed, but only $0.40 is allowed",
    )


def test_the_line_is_steeper_where_models_say_more_than_the_offline_judge() -> None:
    model = wrap(unasked())
    heard = [
        CallSample("critic", number, model, "critique", tokens, several=1, reply_tokens=100)
        for number, tokens in ((1, 100), (2, 150))
    ]
    growth = role_profiles(heard)["critic"].growth
    assert growth.most == pytest.approx(2 * 100), "150 words are 200 tokens"
    for several, replies in ((1, Range(2, 6)), (3, Range(6, 6))):
        profile = role_profiles([replace(sample, several=several) for sample in heard])["critic"]
        reply = profile.reply[model.label]
        (part,) = shares("debate", profile, Range(2, 6))
        assert part.output_tokens == Range(replies.least * reply.least, replies.most * reply.most)


@pytest.mark.parametrize(("text", "tokens"), [
    ("It rained all day. " * 10, 47.5), ("Es fängt an zu regnen.", 22 / 4), ("今日は一日中雨が降った", 11 / 1.3),
    ("오늘은 비가 왔다", 7 / 1.3 + 2 / 4), ("Весь день шёл дождь", 16 / 2.5 + 3 / 4), ("", 0),
])  # fmt: skip
def test_tokens_by_script(text: str, tokens: float) -> None:
    assert tokens_in(text) == pytest.approx(tokens)


# Of a plan


def test_a_prompt_is_measured_as_it_will_be_sent() -> None:
    model = ScriptedModel(
        script=lambda metadata, prompt: "Total of answer 1: 90\nTotal of answer 2: 60"
    )
    prepared = plan("baseline", PAIRS, models={"*": model}, settings={"structured": "off"})
    found = estimate(prepared)
    assert model.calls == []
    for _, item, _ in prepared.jobs():
        assert isinstance(item, CompareItem)
        prepared.graphs["baseline"].invoke({"task": item.task().model_dump(mode="json")})
    between_two_messages = len("\n\n")
    sent = sum((len(call.prompt) - between_two_messages) / 4 for call in model.calls)
    assert found.total.input_tokens == Range(round(sent), round(sent))
    assert found.total.calls == Range(10, 10)
    assert found.total.output_tokens == Range(10 * 100, 10 * 400), "half to twice of 150 words"


def test_everything_is_multiplied() -> None:
    once = estimate(plan("single", "demo", aspects=["fluency"], limit=8))
    many = estimate(plan(["single", "ensemble"], "demo", aspects=["fluency"], limit=8, repeats=3))
    assert once.verdicts == {"single": 8}
    assert many.verdicts == {"single": 24, "ensemble": 24}
    # Few are rehearsed, and always the same.
    assert (many.sampled, estimate(plan("debate", "demo", limit=3)).sampled) == (8, 3)
    assert estimate(plan("single", "demo", aspects=["fluency"], limit=8)) == once
    assert of_protocol(many, "single").calls == once.total.calls * 3
    assert of_protocol(many, "single").input_tokens.least == pytest.approx(
        once.total.input_tokens.least * 3, abs=2
    )
    assert many.total.calls == Range(24 + 72, 24 + 72)


def test_what_is_done_or_not_to_be_judged_is_not_counted_and_the_planner_once_for_each_aspect() -> (
    None
):
    settings: Any = {"samples": 3}
    both = plan("geval", "demo", aspects=["fluency", "coherence"], limit=5, settings=settings)
    found = estimate(both)
    assert (found.verdicts, found.total.calls) == ({"geval": 10}, Range(2 + 30, 2 + 30))
    whole = plan("single", "demo", aspects=["fluency", "coherence"], limit=3)
    one = estimate(replace(whole, only=frozenset([(next(iter(whole.dataset)).id, "fluency")])))
    assert (one.verdicts, one.total.calls) == ({"single": 1}, Range(1, 1))
    prepared = plan("geval", "demo", aspects=["fluency"], limit=5, settings=settings)
    assert estimate(prepared, done={"geval": 3}).total.calls == Range(2 * 3, 1 + 2 * 3)
    nothing = estimate(prepared, done={"geval": 5})
    assert (nothing.verdicts, nothing.parts, nothing.total.calls) == ({"geval": 0}, (), Range(0, 0))
    assert "all 0 0 0 0 $0" in shown(nothing)
    with pytest.raises(UsageError, match="weighting=logprobs"):
        estimate(plan("geval", "demo", limit=2, settings={"weighting": "logprobs"}))


def test_each_model_has_its_share_and_a_limit_of_tokens_is_the_most_that_a_reply_has() -> None:
    models: dict[str, Any] = {"*": unasked(), "juror": OPENAI_CHAT, "juror_2": "offline"}
    found = estimate(plan("samre", PAIRS, models=models))
    calls = {part.model: part.calls for part in found.parts}
    scripted = next(model for model in calls if model not in ("offline", "openai:gpt-4o-mini"))
    assert calls == {
        **{scripted: Range(10 * 6, 10 * 12), "openai:gpt-4o-mini": Range(40, 40)},
        "offline": Range(10, 10),
    }
    limited: Any = {"max_tokens": 70, "n": 2}
    total = estimate(plan("debate", PAIRS, settings=limited, models={"*": OPENAI_CHAT})).total
    assert (total.calls, total.output_tokens) == (Range(20, 50), Range(20 * 70, 50 * 70))


def test_prices_are_those_of_the_list_and_unknown_is_not_nothing() -> None:
    models: dict[str, Any] = {"*": unasked(), "critic": OPENAI_CHAT, "commander": "offline"}
    planned = plan("debate", PAIRS, models=models, settings={"n": 1, "commander": "llm"})
    found = {part.model: part for part in estimate(planned).parts}
    critic = found.pop("openai:gpt-4o-mini")
    tokens = critic.input_tokens.least // 10, 0, critic.output_tokens.least // 10
    a_call = prices.cost_usd("openai:gpt-4o-mini", *tokens)
    assert a_call is not None
    assert critic.cost_usd is not None
    assert critic.cost_usd.least == pytest.approx(10 * a_call, rel=0.01)
    assert found.pop("offline").cost_usd == Range(0.0, 0.0)
    assert [part.cost_usd for part in found.values()] == [None]


def test_the_expensive_protocol_is_heard_though_the_cheap_one_is_never_in_doubt() -> None:
    settings: Any = {"cheap": "debate", "cheap_settings": {"n": 1}, "expensive": "chateval"}
    found = estimate(plan("cascade", "demo", aspects=["fluency"], limit=8, settings=settings)).total
    alone = estimate(plan("chateval", "demo", aspects=["fluency"], limit=8)).total
    cheap = estimate(plan("debate", "demo", aspects=["fluency"], limit=8, settings={"n": 1})).total
    assert found.calls == cheap.calls + CallRange(0, alone.calls.most)
    assert found.input_tokens.most == pytest.approx(
        cheap.input_tokens.most + alone.input_tokens.most, abs=2
    )


# No calls are made


@pytest.mark.parametrize("name", ["faireval", "geval"])
def test_a_model_is_not_taken_for_less_than_it_can_do(provider: Provider, name: str) -> None:
    """A rehearsed reply without a requested part would make the run do without it."""
    chat = ChatOpenAI(model="gpt-4o-mini")
    prepared = plan(name, PAIRS if name == "faireval" else "demo", limit=2, models={"*": chat})
    first = estimate(prepared)
    assert provider.requests == []
    assert estimate(prepared) == first
    bound_judge = prepared.graphs[name].builder.bound_judge  # type: ignore[attr-defined]
    model = asyncio.run(bound_judge.runtime(None, print)).model_of("scorer")
    assert (model.gives("n"), model.gives("logprobs"), model.warnings) == (True, True, {})


# Compared with a run


@pytest.mark.parametrize(("name", "kind"), CASES)
async def test_a_run_takes_what_was_estimated_and_no_model_is_asked(name: str, kind: str) -> None:
    model = unasked()
    own = [Aspect.model_validate(RUBRIC_TASK["aspect"])] if name == "checklist" else []
    found = estimate(plan(name, DEMO[kind], limit=1, models={"*": model}, aspects=own))
    assert (model.calls, found.total.cost_usd) == ([], None)
    assert {part.model for part in found.parts} == {wrap(model).label}

    prepared = plan(name, DEMO[kind], limit=2, settings={"structured": "off"}, aspects=own)
    total = estimate(prepared).total
    calls = 0
    tokens = 0
    with keep_steps_in():
        for key, item, aspect in prepared.jobs():
            given = item.task(aspect) if isinstance(item, ScoreItem) and aspect else item.task()  # type: ignore[call-arg]
            with rubric_of_user(rubric_of(given)):
                state = await prepared.graphs[key.protocol].ainvoke(
                    {"task": given.model_dump(mode="json")}
                )
            verdict = Verdict.of(state)
            calls = calls + verdict.calls
            tokens = tokens + verdict.input_tokens
    assert calls in total.calls
    assert 0.95 * total.input_tokens.least <= tokens <= 1.05 * total.input_tokens.most


# The table


def of_protocol(found: Estimate, protocol: str) -> Part:
    return added([part for part in found.parts if part.protocol == protocol])


def shown(found: Estimate) -> list[str]:
    """Return the table's lines, with cells one space apart."""
    console = Console(width=120)
    with console.capture() as capture:
        console.print(to_lines(estimate_table(found), console.width))
    return [" ".join(line.split()) for line in capture.get().splitlines()]


def test_the_table_shows_each_model_and_all_together() -> None:
    lines = shown(ON_PAPER)
    assert "debate openai:gpt-4o-mini 10 10 to 50 1k to 9k 1k to 9k $0.50 to $2.00" in lines
    assert "debate own 10 10 to 40 500 to 700 500 to 700 unknown" in lines
    assert "all 10 20 to 90 1.5k to 9.7k 1.5k to 9.7k unknown" in lines
    assert not any(
        line.startswith("all ") for line in shown(replace(ON_PAPER, parts=ON_PAPER.parts[:1]))
    )
