"""Test the limits of a judge: money, requests, time and a cache, from any thread or loop."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from jurygraph import Aspect, UsageError, create_async_judge, create_judge
from jurygraph.eval.judges.judge_calls import JudgeUsage
from jurygraph.eval.judges.judge_session import JudgeSession
from jurygraph.graphs import calibrated
from jurygraph.nodes.models.scripted_model import ScriptedModel, ScriptedToolModel
from jurygraph.state import JudgeTimeoutError, LimitError, StoppedError
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatResult
from langgraph.graph import MessagesState, StateGraph

from .loopback import Provider
from .loopback_debate import Debaters

TEXTS: Any = {"inputs": "It rained all day.", "outputs": "It rained."}
OPENAI: Any = {"model": "openai:gpt-4o-mini", "structured": "off"}


def scorer(_about: Any, _prompt: str) -> str:
    return "It holds together.\nScore: 4"


class Slow(ScriptedModel):
    """A model that needs 30 seconds for a reply."""

    async def _agenerate(self, *given: Any, **more: Any) -> ChatResult:
        await asyncio.sleep(30)
        raise AssertionError("nobody waits that long")


def rating(**options: Any) -> Any:
    options = {"model": ScriptedModel(script=scorer), "structured": "off", **options}
    return create_judge("single", aspect="fluency", **options)


def outcomes_of(judge: Any, count: int) -> list[Any]:
    """Return the scores of judgements in as many threads, or their errors."""

    def judged(number: int) -> Any:
        try:
            return judge(inputs="It rained.", outputs=f"It rained {number} times.")["score"]
        except LimitError as error:
            return error

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(judged, range(count)))


def test_threads_share_a_budget_of_requests() -> None:
    judge = rating(max_calls=3)
    outcomes = outcomes_of(judge, 8)
    refused = [outcome for outcome in outcomes if isinstance(outcome, LimitError)]
    assert (len(outcomes) - len(refused), judge.usage.calls) == (3, 3)
    assert "at most 3 calls" in str(refused[0])
    assert "no verdict" in str(refused[0])
    assert isinstance(refused[0], StoppedError)


def test_loops_share_a_budget_of_requests() -> None:
    judge = create_async_judge(
        "single",
        aspect="fluency",
        model=ScriptedModel(script=scorer),
        structured="off",
        max_calls=2,
    )

    async def three() -> list[Any]:
        judging = [judge(**TEXTS) for _ in range(3)]
        return list(await asyncio.gather(*judging, return_exceptions=True))

    first = asyncio.run(three())
    assert [type(outcome) for outcome in first] == [dict, dict, LimitError]
    assert [type(outcome) for outcome in asyncio.run(three())] == [LimitError] * 3
    assert judge.judge.usage.calls == 2


def test_a_debate_that_runs_out_of_requests_has_no_verdict() -> None:
    script: Any = {"scorer": ["Score: 3"] * 9, "critic": ["It is dull."] * 9}
    model = ScriptedModel(script=script)
    judge = create_judge("debate", aspect="fluency", model=model, structured="off", max_calls=2)
    with pytest.raises(LimitError, match="at most 2 calls"):
        judge(**TEXTS)
    assert len(model.calls) == 2


def test_usage_is_counted_without_any_limit(provider: Provider) -> None:
    provider.play(by=Debaters(scores=[4]))
    judge = create_judge("single", aspect="fluency", **OPENAI)
    assert judge.usage == JudgeUsage(0, 0, 0, 0, 0.0)
    verdict = judge(**TEXTS)["metadata"]
    usage = judge.usage
    assert (usage.calls, usage.cached, usage.input_tokens) == (1, 0, verdict["input_tokens"])
    assert usage.cost_usd == pytest.approx(verdict["cost_usd"])
    assert usage.tokens == usage.input_tokens + usage.output_tokens > 0


def test_a_request_that_would_cost_too_much_is_not_made(provider: Provider) -> None:
    provider.play(by=Debaters(scores=[4]))
    judge = create_judge("single", aspect="fluency", max_cost=1e-6, **OPENAI)
    with pytest.raises(LimitError, match=r"at most \$1e-06"):
        judge(**TEXTS)
    assert (provider.requests, judge.usage.calls) == ([], 0)
    judge = create_judge("single", aspect="fluency", max_cost=1, **OPENAI)
    assert judge(**TEXTS)["score"] == 4
    assert 0 < (judge.usage.cost_usd or 0) < 1


def test_the_cost_of_a_model_without_a_price_cannot_be_limited() -> None:
    model = ScriptedModel(script=scorer)
    with pytest.raises(UsageError, match=r"max_cost: the price of .* is unknown"):
        rating(max_cost=1, model=model)(**TEXTS)
    assert not model.calls


@pytest.mark.parametrize("more", [{}, {"max_calls": 5}], ids=["alone", "with a budget"])
async def test_a_judgement_ends_when_its_time_is_over(more: dict[str, Any]) -> None:
    judge = rating(model=Slow(script={}), timeout=0.05, **more)
    begun = time.monotonic()
    with pytest.raises(JudgeTimeoutError, match=r"longer than 0.05 seconds"):
        await judge.acall(**TEXTS)
    with pytest.raises(TimeoutError):
        await asyncio.to_thread(judge, **TEXTS)
    assert time.monotonic() - begun < 5
    # Both were sent, and nobody knows what they cost.
    assert (judge.usage.calls, judge.usage.cost_usd) == (2, None)


def test_a_cache_answers_another_judge(provider: Provider, tmp_path: Path) -> None:
    provider.play(by=Debaters(scores=[4] * 9))
    options: Any = {**OPENAI, "aspect": "fluency", "cache": tmp_path / "replies.sqlite"}
    first = create_judge("single", **options)
    second = create_judge("single", max_calls=1, **options)
    assert first(**TEXTS)["score"] == second(**TEXTS)["score"] == 4
    assert (first.usage.calls, second.usage.calls, second.usage.cached) == (1, 0, 1)
    # The cached judgement took nothing of the budget of one request.
    assert second(inputs="It rained.", outputs="It poured.")["score"] == 4
    with pytest.raises(LimitError):
        second(inputs="It rained.", outputs="It snowed.")
    assert second(**TEXTS)["score"] == 4
    assert (len(provider.requests), second.usage.calls, second.usage.cached) == (2, 1, 2)
    first.close()
    second.close()
    assert first(**TEXTS)["score"] == 4, "a closed cache opens again"
    first.close()


def test_without_a_cache_each_judgement_has_its_own_replies() -> None:
    scores = iter(["Score: 2", "Score: 5"])
    judge = rating(max_calls=9, model=ScriptedModel(script=lambda *_: next(scores)))
    assert [judge(**TEXTS)["score"], judge(**TEXTS)["score"]] == [2, 5]


def year_of(event: str) -> str:
    """Return the year of an event."""
    return f"{event}: 1932"


def test_a_judge_with_tools_and_a_budget_runs_its_tools() -> None:
    asked = {"name": "year_of", "args": {"event": "opening"}, "id": "1"}
    lines = [
        AIMessage("", tool_calls=[asked]),
        "That is all.",
        "It is dated wrongly [E1].\nScore: 2",
    ]
    judge = create_judge(
        "single",
        aspect="fluency",
        model=ScriptedToolModel(script={"scorer": lines}),
        structured="off",
        juror_tools=[year_of],
        max_calls=5,
    )
    assert judge(**TEXTS)["score"] == 2
    assert judge.usage.calls == 3


class Draft(MessagesState):
    draft: str
    grade: float


async def test_a_judge_in_another_graph_is_limited_too() -> None:
    judge = rating(max_calls=5)
    tool = judge.as_tool()
    tool.invoke({"source": "It rained.", "candidate": "It rained."})
    await tool.ainvoke({"source": "It rained.", "candidate": "It rained."})
    said = {"messages": [("user", "It rained all day. Sum up."), ("ai", "It rained.")]}
    judge.as_agent().invoke(said)
    node = judge.node(Draft, source="draft", candidate="draft", score="grade")
    graph: Any = StateGraph(Draft).add_node("judge", node).set_entry_point("judge").compile()
    assert graph.invoke({"messages": [], "draft": "It rained."})["grade"] == 4
    await graph.ainvoke({"messages": [], "draft": "It rained."})
    assert judge.usage.calls == 5
    with pytest.raises(LimitError):
        await graph.ainvoke({"messages": [], "draft": "It rained."})
    with pytest.raises(LimitError):
        judge.as_agent().invoke(said)
    with pytest.raises(LimitError):
        tool.invoke({"source": "It rained.", "candidate": "It rained."})


def test_a_judge_in_a_judge_counts_in_both_and_brings_no_budget() -> None:
    script: Any = {"scorer": ["Score of answer 1: 8\nScore of answer 2: 5"] * 9}
    inner: Any = create_judge("single", model=ScriptedModel(script=script), structured="off")
    outer = create_judge(calibrated(inner))
    outer(inputs="Why?", outputs=["So.", "Because."])
    assert inner.usage.calls == outer.usage.calls == 4
    model = ScriptedModel(script=script)
    inner = create_judge("single", model=model, structured="off", max_calls=9)
    with pytest.raises(UsageError, match="max_calls: this judge is called inside"):
        create_judge(calibrated(inner))(inputs="Why?", outputs=["So.", "Because."])
    assert not model.calls


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ({"max_calls": 0}, "max_calls must be above 0"),
        ({"max_cost": float("nan")}, "max_cost must be above 0"),
        ({"max_cost": "5"}, "max_cost must be a number"),
        ({"timeout": True}, "timeout must be a number"),
        ({"timeout": -1}, "timeout must be above 0, got -1"),
        ({"cache": "mysql://me@host/replies"}, "mysql"),
    ],
)
def test_limits_that_cannot_be_are_refused(limits: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        rating(**limits)


def test_a_run_has_its_own_limits(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cache: a run has its own limits.* give the run journal"):
        rating(cache=tmp_path / "replies.sqlite").evaluate("demo")
    session = JudgeSession(tmp_path / "session.sqlite", tmp_path)
    try:
        with pytest.raises(UsageError, match="max_calls: a judge of a test session"):
            session("single", aspect=Aspect(name="wit", criteria="Funny?"), max_calls=3)
    finally:
        session.close()


def test_a_judge_of_a_test_session_returns_its_whole_feedback(tmp_path: Path) -> None:
    session = JudgeSession(tmp_path / "session.sqlite", tmp_path)
    try:
        with pytest.raises(UsageError, match="output_schema: a judge of a test session"):
            session("single", aspect="fluency", output_schema={"properties": {"score": {}}})
        judged = session("single", aspect="fluency")(outputs="It rained.")
        assert [turn["role"] for turn in judged.transcript] == ["scorer"]
    finally:
        session.close()
