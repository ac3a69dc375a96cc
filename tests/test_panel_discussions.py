"""Test panels that discuss: members who fail in ChatEval's turns, in MORE's teams and in a jury."""

import asyncio
import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import evaluate
from jurygraph.graphs import chateval, more, samre
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.state import ReplyError, UsageError, Verdict
from jurygraph.state.errors import ModelCallError, QuorumError
from jurygraph.state.verdict_warnings import NO_VOTE, REPLACED, SILENT, kind_of
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import ValidationError

from .loopback import Failure, Provider
from .sample_data import COMPARE_TASK, SCORE_TASK
from .test_call_pipeline import PLAIN, dataset, results
from .test_courtroom import ruling

WIDE = {"name": "rigour", "criteria": "Is it rigorous?", "low": 0}
GONE = Failure(404, "The model does not exist.")
PAIR = "Fine.\nScore of answer 1: 7\nScore of answer 2: 5"
Fails = Callable[[Mapping[str, Any]], Any]


def nobody(_about: Mapping[str, Any]) -> Any:
    return None


def fails_in(*places: tuple[str, int], order: int | None = None) -> Fails:
    """Fail for these agents and rounds: an empty reply, in one order of the answers or in both."""

    def fails(about: Mapping[str, Any]) -> Any:
        of_order = order is None or about.get("order", 1) == order
        return "" if (about["agent"], about["round"]) in places and of_order else None

    return fails


def speaking(fails: Fails = nobody, score: float = 4) -> ScriptedModel:
    def script(about: Mapping[str, Any], _prompt: str) -> Any:
        if (failed := fails(about)) is not None:
            return failed
        words = f"{about['agent']} speaks in round {about['round']}."
        if about["form"] == "text":
            return words
        if about["role"] == "judge":
            if about["form"] == "pair":
                return ruling(90, 60)
            return f"{words}\nScore: {90 if about['agent'].startswith('judge_1') else 60}"
        if about["role"] == "juror":
            return f"{words}\nVote: 2"
        return f"{words}\n{PAIR if about['kind'] == 'compare' else f'Score: {score:g}'}"

    return ScriptedModel(script=script)


def held(
    module: Any, model: Any, task: Any = SCORE_TASK, sync: bool = True, **settings: Any
) -> tuple[Verdict, list[Any]]:
    graph = module.build(models={"*": model}, **{"structured": "off", **settings}).compile()
    result = graph.invoke({"task": task}) if sync else asyncio.run(graph.ainvoke({"task": task}))
    return Verdict.of(result), result["transcript"]


def shown(model: ScriptedModel, agent: str, round: int) -> str:
    """Return the last prompt of an agent in a round."""
    about = ((call.metadata["agent"], call.metadata["round"], call.prompt) for call in model.calls)
    return [prompt for name, number, prompt in about if (name, number) == (agent, round)][-1]


# ChatEval

STRATEGIES = ["one_by_one", "simultaneous", "summarizer"]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("sync", [True, False])
@pytest.mark.parametrize("task", [SCORE_TASK, COMPARE_TASK], ids=["score", "compare"])
def test_a_vote_stands_without_a_referee_of_the_last_turn(
    task: Any, sync: bool, strategy: str
) -> None:
    model = speaking(fails_in(("referee_2", 2)))
    verdict, transcript = held(chateval, model, task, sync, referees=3, strategy=strategy)
    assert (verdict.score == 4) if task is SCORE_TASK else (verdict.winner == "tie")
    assert [*verdict.details["scores_by_referee"]] == ["referee_1", "referee_3"]
    assert verdict.details["missing"]["referee_2"].startswith("The reply is empty.")
    [told] = [w for w in verdict.warnings if kind_of(w) is NO_VOTE]
    assert told.startswith("referee_2: no vote, left out of the panel. ")
    assert verdict.stop_reason == "complete"
    assert verdict.rounds == 2
    orders = 1 if task is SCORE_TASK else 2
    failed = [turn for turn in transcript if "problem" in turn]
    assert [(turn["agent"], turn["round"], turn["value"]) for turn in failed] == [
        ("referee_2", 2, None)
    ] * orders
    # A failed member is asked again once, and nobody else is asked more than once.
    summaries = orders if strategy == "summarizer" else 0
    assert verdict.calls == 3 * 2 * orders + orders + summaries


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_referee_that_fails_in_an_earlier_turn_is_silent_and_asked_again(strategy: str) -> None:
    model = speaking(fails_in(("referee_2", 1)))
    settings: Any = {"referees": 2, "strategy": strategy, "repair": 0}
    verdict, _ = held(chateval, model, **settings)
    assert verdict.score == 4
    assert [*verdict.details["scores_by_referee"]] == ["referee_1", "referee_2"]
    assert "missing" not in verdict.details
    [(who, reason)] = verdict.details["silent"].items()
    assert who == "referee_2, round 1"
    assert reason in verdict.warnings[0]
    assert [kind_of(warning) for warning in verdict.warnings] == [SILENT]
    assert len(model.calls) == 4 + (strategy == "summarizer")
    # Its failed turn is not shown to the others.
    if strategy != "summarizer":
        assert "referee_1, round 1" in shown(model, "referee_1", 2)
    for agent in ("referee_1", "referee_2"):
        assert "referee_2, round 1" not in shown(model, agent, 2)


def test_all_may_be_silent_before_the_last_turn() -> None:
    everybody = [(f"referee_{n}", 1) for n in (1, 2)]
    verdict, _ = held(chateval, speaking(fails_in(*everybody)), strategy="simultaneous")
    assert verdict.score == 4
    assert len(verdict.details["silent"]) == 2


@pytest.mark.parametrize("order", [1, 2])
def test_a_referee_that_fails_in_one_order_has_no_vote(order: int) -> None:
    model = speaking(fails_in(("referee_1", 2), order=order))
    verdict, _ = held(chateval, model, COMPARE_TASK, referees=3)
    assert [*verdict.details["scores_by_referee"]] == ["referee_2", "referee_3"]
    assert [*verdict.details["missing"]] == ["referee_1"]
    # Without its vote in the other order, the two orders are balanced.
    assert verdict.scores == (6, 6)


def test_an_earlier_score_is_not_the_vote_of_a_missing_referee() -> None:
    def fails(about: Mapping[str, Any]) -> Any:
        if about["agent"] != "referee_2":
            return None
        return "Score: 1" if about["round"] == 1 else ""

    model = speaking(fails)
    verdict, transcript = held(chateval, model, referees=3, score_each_turn=True)
    assert verdict.score == 4
    assert verdict.details["scores_by_referee"] == {"referee_1": 4, "referee_3": 4}
    assert verdict.score_by_round == (4, 4)
    assert [t["value"] for t in transcript if t["agent"] == "referee_2"] == [1, None]


@pytest.mark.parametrize(
    ("referees", "failing", "quorum", "stands"),
    [
        (3, 1, "majority", True),
        (3, 2, "majority", False),
        (4, 2, "majority", False),
        (3, 2, 1, True),
        (3, 1, 3, False),
        (3, 1, "all", False),
        (3, 3, 1, False),
    ],
)
def test_the_quorum_of_the_last_turn(
    referees: int, failing: int, quorum: Any, stands: bool
) -> None:
    model = speaking(fails_in(*[(f"referee_{n}", 2) for n in range(1, failing + 1)]))
    settings: Any = {"referees": referees, "roles": "same", "quorum": quorum}
    if stands:
        verdict, _ = held(chateval, model, **settings)
        assert len(verdict.details["scores_by_referee"]) == referees - failing
        return
    with pytest.raises(ReplyError if quorum == "all" else QuorumError) as caught:
        held(chateval, model, **settings)
    assert "referee_1, round 2" in str(caught.value)


def test_with_a_quorum_of_all_a_failure_in_any_turn_is_raised() -> None:
    for place in (("referee_2", 1), ("referee_2", 2)):
        with pytest.raises(ReplyError, match=f"referee_2, round {place[1]}"):
            held(chateval, speaking(fails_in(place)), quorum="all")


def test_all_referees_fail() -> None:
    broken = speaking(lambda about: RuntimeError("no line"))
    with pytest.raises(ModelCallError, match="0 of 2 members of the panel voted"):
        held(chateval, broken)


def test_the_result_does_not_depend_on_the_order_of_the_referees() -> None:
    found = set()
    for scores in itertools.permutations(["Score: 2", "Score: 5", ""]):

        def fails(about: Mapping[str, Any], scores: Any = scores) -> Any:
            return None if about["round"] == 1 else scores[int(about["agent"][-1]) - 1]

        verdict, _ = held(chateval, speaking(fails), referees=3, strategy="simultaneous")
        found.add(verdict.score)
    assert found == {3.5}


def test_a_decided_vote_has_reached_its_quorum() -> None:
    def fails(about: Mapping[str, Any]) -> Any:
        if about["round"] == 1:
            return None
        return "" if about["agent"] == "referee_2" else "Score of answer 1: 9\nScore of answer 2: 2"

    settings: Any = {
        "referees": 5, "roles": "same", "stop": "decided", "position_calibration": False,
        "repair": 0,
    }  # fmt: skip
    verdict, _ = held(chateval, speaking(fails), COMPARE_TASK, **settings)
    assert (verdict.stop_reason, verdict.details["not_asked"]) == ("decided", ["referee_5"])
    verdict, _ = held(chateval, speaking(fails), COMPARE_TASK, quorum=4, **settings)
    assert (verdict.stop_reason, "not_asked" in verdict.details) == ("complete", False)


@pytest.mark.parametrize(
    ("module", "settings", "words"),
    [
        (chateval, {"quorum": 3}, "quorum=3, but there are only 2 referees"),
        (chateval, {"quorum": "most"}, "must be 'majority', 'all' or a whole number from 1"),
        (chateval, {"quorum": "all", "stop": "decided"}, "quorum=all needs the vote of each"),
        (more, {"quorum": 7}, "quorum=7, but there are only 6 advocates"),
        (more, {"quorum": 0}, "must be 'majority', 'all' or a whole number from 1"),
    ],
)
def test_a_quorum_that_no_panel_reaches_is_refused(module: Any, settings: Any, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        module.build(**settings)


# Replacements, which keep their seat


def answers(failing: Mapping[str, Any]) -> Callable[[Any], Any]:
    def answer(request: Any) -> Any:
        if request.model in failing:
            return failing[request.model]
        return "Fine.\nScore: 1" if request.model == "gpt-b" else "Fine.\nScore: 4"

    return answer


def test_a_replacement_keeps_its_seat_in_later_turns(provider: Provider) -> None:
    provider.play(by=answers({"gpt-x": GONE}))
    models = {"*": "openai:gpt-a", "referee_2": "openai:gpt-x"}
    settings: Any = {"turns": 3, "replacements": ["openai:gpt-b"], "structured": "off"}
    graph = chateval.build(models=models, **settings).compile()
    result = graph.invoke({"task": SCORE_TASK})
    verdict = Verdict.of(result)
    assert verdict.score == 2.5
    asked = [request.model for request in provider.requests]
    assert (asked.count("gpt-x"), asked.count("gpt-b"), asked.count("gpt-a")) == (1, 3, 3)
    seat = [turn for turn in result["transcript"] if turn["agent"] == "referee_2"]
    assert [(turn["round"], turn.get("replaces")) for turn in seat] == [
        (1, None), (1, "openai:gpt-x"), (2, "openai:gpt-x"), (3, "openai:gpt-x"),
    ]  # fmt: skip
    assert verdict.details["replaced"]["referee_2"]["model"] == "openai:gpt-b"
    assert "silent" not in verdict.details
    assert [kind_of(w) for w in verdict.warnings] == [REPLACED]


def test_a_replacement_that_fails_in_a_later_turn_is_missing_with_both_reasons(
    provider: Provider,
) -> None:
    turn_of_b = itertools.count(1)

    def answer(request: Any) -> Any:
        if request.model == "gpt-b" and next(turn_of_b) == 2:
            return Failure(400, "Too long.", code="context_length_exceeded")
        return answers({"gpt-x": GONE})(request)

    provider.play(by=answer)
    models = {"*": "openai:gpt-a", "referee_2": "openai:gpt-x"}
    settings: Any = {"replacements": ["openai:gpt-b"], "structured": "off", "referees": 3}
    graph = chateval.build(models=models, **settings).compile()
    verdict = Verdict.of(graph.invoke({"task": SCORE_TASK}))
    reason = verdict.details["missing"]["referee_2"]
    assert "does not exist" in reason
    assert "Too long" in reason
    assert "replaced" not in verdict.details


# MORE


@pytest.mark.parametrize("aggregate", ["llm", "concat", "best"])
@pytest.mark.parametrize("collaborate", [False, True])
def test_a_team_goes_on_without_an_advocate(aggregate: str, collaborate: bool) -> None:
    model = speaking(fails_in(("advocate_1_2", 1), ("advocate_2_1", 1)))
    settings: Any = {"aggregate": aggregate, "collaborate": collaborate, "repair": 0}
    verdict, transcript = held(more, model, COMPARE_TASK, **settings)
    assert (verdict.winner, verdict.scores) == ("1", (90, 60))
    assert sorted(verdict.details["missing"]) == ["advocate_1_2", "advocate_2_1"]
    told = [warning for warning in verdict.warnings if kind_of(warning) is SILENT]
    assert sorted(w.partition(":")[0] for w in told) == ["advocate_1_2", "advocate_2_1"]
    assert not any(kind_of(warning) is NO_VOTE for warning in verdict.warnings)
    asked = [call.metadata["agent"] for call in model.calls]
    judges = [name for name in asked if name.startswith("judge")]
    # A defence that was not given has no judge.
    best = ["judge_1_1", "judge_1_3", "judge_2_2", "judge_2_3"]
    assert sorted(judges) == (best if aggregate == "best" else ["judge"])
    for call in model.calls:
        assert "advocate_1_2, round" not in call.prompt
        assert "advocate_2_1, round" not in call.prompt
    assert sum("problem" in turn for turn in transcript) == 2


@pytest.mark.parametrize(
    ("failing", "quorum", "words"),
    [
        (("1_1", "1_2", "1_3"), 1, "3 of 6 .* none of them speaks for answer 1. advocate_1_1"),
        (("2_1", "2_2", "2_3"), 3, "3 of 6 .* none of them speaks for answer 2. "),
        (("1_1", "2_2", "2_3"), "majority", "3 of 6 .*, and quorum=majority needs 4. "),
        (("1_1", "1_2", "1_3", "2_1"), "majority", "answer 1, and quorum=majority needs 4. "),
        (("1_1",), "all", "advocate_1_1, round 1"),
        (("1_1", "1_2"), "majority", None),
        (("1_1", "1_2", "2_1", "2_3"), 2, None),
    ],
)
def test_the_quorum_of_the_advocates(failing: Any, quorum: Any, words: str | None) -> None:
    model = speaking(fails_in(*[(f"advocate_{name}", 1) for name in failing]))
    settings: Any = {"quorum": quorum, "aggregate": "concat", "repair": 0}
    if words is None:
        verdict, _ = held(more, model, COMPARE_TASK, **settings)
        assert len(verdict.details["missing"]) == len(failing)
        return
    with pytest.raises(ReplyError, match=words):
        held(more, model, COMPARE_TASK, **settings)
    # The judge is not paid for a one-sided case.
    assert not any(call.metadata["role"] == "judge" for call in model.calls)


@pytest.mark.parametrize(("side", "level"), [(1, "high"), (2, "low")])
def test_a_rating_needs_an_advocate_for_each_side(side: int, level: str) -> None:
    failing = [(f"advocate_{side}_{number}", 1) for number in (1, 2, 3)]
    model = speaking(fails_in(*failing))
    with pytest.raises(ReplyError, match=f"none of them speaks for a {level} score"):
        held(more, model, quorum=3, repair=0)
    assert not any(call.metadata["role"] == "judge" for call in model.calls)
    model = speaking(fails_in(*failing[:2]))
    with_one = Verdict.of(
        more.build(models={"*": model}, structured="off", repair=0, aggregate="concat")
        .compile()
        .invoke({"task": {**SCORE_TASK, "aspect": {**WIDE, "high": 100}}})
    )
    assert sorted(with_one.details["missing"]) == sorted(name for name, _ in failing[:2])


def test_advocates_fail_in_rounds_of_their_own() -> None:
    places = [("advocate_1_1", 1), ("advocate_2_2", 1), ("advocate_1_2", 2), ("advocate_2_3", 2)]
    for collaborate in (False, True):
        settings: Any = {"rounds": 2, "repair": 0, "collaborate": collaborate}
        verdict, _ = held(more, speaking(fails_in(*places)), COMPARE_TASK, **settings)
        assert [*verdict.details["silent"]] == ["advocate_1_1, round 1", "advocate_2_2, round 1"]
        assert [*verdict.details["missing"]] == ["advocate_1_2", "advocate_2_3"]
    with pytest.raises(QuorumError, match=r"3 of 6 .* advocate_1_1, round 1"):
        early = [(f"advocate_1_{n}", 1) for n in (1, 2)] + [("advocate_2_1", 1)]
        held(more, speaking(fails_in(*early)), COMPARE_TASK, rounds=2, repair=0)


def test_one_advocate_for_each_answer_cannot_be_spared() -> None:
    with pytest.raises(QuorumError, match="none of them speaks for answer 2"):
        held(more, speaking(fails_in(("advocate_2_1", 1))), COMPARE_TASK, advocates=1)


# Juries


def test_a_replacement_takes_a_juror_s_seat(provider: Provider) -> None:
    def answer(request: Any) -> Any:
        if request.model == "gpt-x":
            return GONE
        if request.model == "gpt-b":
            return "Vote: 2"
        return "Vote: 1" if "Vote:" in request.user[-300:] else ruling(90, 60)

    provider.play(by=answer)
    models = {"*": "openai:gpt-a", "juror_2": "openai:gpt-x"}
    settings: Any = {"jurors": 3, "max_rounds": 1, "structured": "off"}
    graph = samre.build(models=models, replacements=["openai:gpt-b"], **settings).compile()
    details = graph.invoke({"task": COMPARE_TASK})["verdict"]["details"]
    assert details["votes"] == {"1": 2, "2": 1}
    assert details["void_votes"] == 0
    assert details["replaced"]["juror_2"]["model"] == "openai:gpt-b"


def test_a_jury_has_no_quorum_larger_than_itself() -> None:
    with pytest.raises(UsageError, match="quorum=4, but there are only 3 jurors"):
        samre.build(jurors=3, quorum=4)


# Threads and runs


@pytest.mark.parametrize(
    ("module", "agent", "task"),
    [(chateval, "referee_2", SCORE_TASK), (more, "advocate_1_2", COMPARE_TASK)],
)
def test_a_resumed_thread_asks_only_the_member_that_failed(
    module: Any, agent: str, task: Any
) -> None:
    failing = [agent]

    def fails(about: Mapping[str, Any]) -> Any:
        return RuntimeError("no line") if about["agent"] in failing else None

    model = speaking(fails)
    settings: Any = {"quorum": "all", "structured": "off"}
    graph = module.build(models={"*": model}, **settings).compile(checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "t"}}
    with pytest.raises(ModelCallError, match=agent):
        graph.invoke({"task": task}, thread)
    failing.clear()
    paid = [call.metadata["agent"] for call in model.calls]
    verdict = Verdict.of(graph.invoke(None, thread))
    whole, _ = held(module, speaking(), task)
    assert (verdict.score, verdict.scores) == (whole.score, whole.scores)
    assert len(model.calls) == whole.calls + paid.count(agent)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["one_by_one", "simultaneous"])
def test_a_resumed_run_pays_nothing_twice(
    provider: Provider, tmp_path: Path, strategy: str
) -> None:
    data = dataset(tmp_path, 2)
    settings: Any = {**PLAIN, "referees": 3, "strategy": strategy}
    models = {"*": "openai:gpt-4o-mini", "referee_2": "openai:gpt-shy"}
    options: dict[str, Any] = {"models": models, "settings": settings, "concurrency": 1}

    def answer(request: Any) -> Any:
        return "I cannot help with that." if request.model == "gpt-shy" else "Fine.\nScore: 4"

    provider.play(by=answer)
    whole = evaluate("chateval", data, **options, out=tmp_path / "whole")
    paid = len(provider.requests)
    assert all([*result.details["missing"]] == ["referee_2"] for result in whole.results)
    for stop in range(1, paid // 2 + 1):
        provider.requests.clear()
        out = tmp_path / f"stopped-{stop}"
        stopped = evaluate("chateval", data, **options, out=out, max_calls=stop)
        assert stopped.stopped == "budget"
        assert results(evaluate("chateval", data, **options, out=out)) == results(whole)
        assert len(provider.requests) == paid
