"""Test the review of a verdict by a human: rules, pause, answers, and results."""

import json
from typing import Any

import pytest
from jurygraph.graphs import (
    baseline,
    calibrated,
    cascade,
    chateval,
    debate,
    ensemble,
    repeated,
    review,
    samre,
    single,
)
from jurygraph.graphs.engine.registry import find_protocol
from jurygraph.nodes import human
from jurygraph.nodes.human_answers import HumanAnswer, read_answer
from jurygraph.nodes.human_requests import read_reply
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.state import CompareTask, InputError, ReplyError, ScoreTask, UsageError, Verdict
from jurygraph.state.review_rules import Rule, reasons
from langchain.agents.middleware.human_in_the_loop import HITLRequest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.pregel.remote import RemoteGraph
from langgraph.types import Command
from pydantic import TypeAdapter

from .sample_data import COMPARE_TASK as COMPARE
from .sample_data import SCORE_TASK as SCORE
from .sample_data import THREAD, goes_on


def says(*values: Any, objections: int = 0) -> ScriptedModel:
    """Make a judge whose scorers give these scores (or pairs as shown); the last one repeats."""
    left = list(values)
    objecting = [True] * objections

    def script(metadata: Any, _prompt: str) -> dict[str, Any]:
        if metadata["form"] == "critique":
            return {"feedback": "Too high.", "no_issue": not (objecting and objecting.pop())}
        if metadata["form"] == "vote":
            return {"reasoning": "So.", "winner": "12"[int(metadata["agent"][-1]) % 2]}
        value = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(value, int | float):
            return {"reasoning": "So.", "score": value}
        return {"reasoning": "So.", "score_1": value[0], "score_2": value[1]}

    return ScriptedModel(script=script)


def paused(graph: Any, task: dict[str, Any]) -> tuple[Any, list[Any]]:
    held = graph.compile(checkpointer=InMemorySaver())
    return held, list(held.invoke({"task": task}, THREAD).get("__interrupt__", ()))


def resumed(graph: Any, answer: Any) -> tuple[Verdict, list[dict[str, Any]]]:
    result = graph.invoke(Command(resume=answer), THREAD)
    return Verdict.of(result), result["transcript"]


# -- the pause
def test_it_asks_where_a_rule_holds_and_shows_the_debate() -> None:
    model = says(5, objections=9)
    graph, [pause] = paused(review(debate.build(models={"*": model}, n=1)), SCORE)
    shown = pause.value
    assert shown["why"] == ["unresolved: the debate ended at its last round without agreement"]
    assert "a score from 1 to 5, or let it stand" in shown["question"]
    assert (shown["low"], shown["high"], shown["scores"], shown["verdict"]["score"]) == (
        1,
        5,
        [5, 5],
        5,
    )
    assert shown["task"]["candidate"] == SCORE["candidate"]
    speakers = [line["agent"] for line in shown["log"] if line["agent"] != "commander"]
    assert speakers == ["scorer", "critic", "scorer"]
    assert json.loads(json.dumps(shown)) == shown
    calls = len(model.calls)
    verdict, transcript = resumed(graph, {"score": 2, "reason": "1781 is no typo.", "name": "Ann"})
    assert (verdict.score, verdict.stop_reason, verdict.protocol) == (2, "human", "debate")
    assert (verdict.explanation, verdict.explained_by) == ("1781 is no typo.", "human:1")
    expected = {"agent": "human", "content": "1781 is no typo.", "value": 2, "name": "Ann"}
    assert transcript[-1].items() >= expected.items()
    about = verdict.details["review"]
    assert (about["name"], about["answer"], about["judge"]["score"]) == ("Ann", 2, 5)
    assert about["judge"]["stop_reason"] == "max_rounds"
    assert len(model.calls) == calls, "the debate is not held again"


@pytest.mark.parametrize("is_async", [True, False])
def test_an_answer_off_the_scale_is_asked_again_and_the_debate_kept(is_async: bool) -> None:
    model = says(5, objections=9)
    graph = review(debate.build(models={"*": model}, n=1)).compile(checkpointer=InMemorySaver())

    goes_on(graph, {"task": SCORE}, is_async)
    calls = len(model.calls)
    wrong: Any
    for wrong, problem in (
        (9, "off the scale 1 to 5"),
        ("no idea", "states no score"),
        ([], "not an answer"),
    ):
        [again] = goes_on(graph, Command(resume=wrong), is_async)["__interrupt__"]
        assert problem in again.value["problem"]
        assert "a score from 1 to 5" in again.value["problem"]
    result = goes_on(graph, Command(resume="3 because the year is wrong"), is_async)
    assert result["verdict"]["score"] == 3
    assert result["transcript"][-1]["content"] == "because the year is wrong"
    assert len(model.calls) == calls


def test_let_it_stand() -> None:
    graph, _ = paused(review(debate.build(models={"*": says(5, 4, objections=9)}, n=1)), SCORE)
    verdict, transcript = resumed(graph, {"stands": True, "name": "Bo"})
    assert (verdict.score, verdict.stop_reason) == (4, "human")
    assert verdict.explained_by == "scorer:2", "the judge's words carry the verdict"
    assert (transcript[-1]["content"], transcript[-1]["value"]) == ("Let it stand.", 4)
    assert verdict.details["review"]["answer"] == "let it stand"
    graph, _ = paused(review(debate.build(models={"*": says(5, 4, objections=9)}, n=1)), SCORE)
    verdict, _ = resumed(graph, "let it stand: the year hardly matters")
    assert (verdict.score, verdict.explained_by) == (4, "human:1")
    assert verdict.explanation == "Let it stand: the year hardly matters"


@pytest.mark.parametrize(("answer", "scores", "winner"), [
    ("tie", (6, 5), "tie"), (2, (6, 5), "2"), ({"winner": "2"}, (6, 5), "2"), ([3, 8], (3, 8), "2"),
    ({"score_1": 9, "score_2": 9}, (9, 9), "tie"), ("let it stand", (6, 5), "1"),
])  # fmt: skip
def test_a_comparison_is_decided(answer: Any, scores: tuple[float, float], winner: str) -> None:
    graph, [pause] = paused(review(debate.build(models={"*": says((6, 5))}), when="gap<2"), COMPARE)
    assert pause.value["why"] == ["gap<2: the scores of the two answers are 1 apart"]
    verdict, transcript = resumed(graph, answer)
    assert (verdict.scores, verdict.winner, verdict.stop_reason) == (scores, winner, "human")
    assert transcript[-1]["id"] == "human:1"


def test_its_turn_is_streamed_with_the_name() -> None:
    graph, _ = paused(review(single.build(models={"*": says((6, 5))}), when="gap<2"), COMPARE)
    answer: Any = Command(resume={"answer": "tie", "name": "Ann"})
    turns = [event["turn"] for event in graph.stream(answer, THREAD, stream_mode="custom")]
    assert [(turn["agent"], turn["value"], turn["name"]) for turn in turns] == [
        ("human", "tie", "Ann")
    ]


# -- several pauses, and wrappers
def test_two_pauses_in_one_wrapper_are_told_apart() -> None:
    judge = debate.build(models={"*": says((6, 5), objections=9)}, n=1, on_unresolved="human")
    graph, pauses = paused(calibrated(judge), COMPARE)
    pauses.sort(key=lambda pause: str(pause.value["place"]["id"]))
    first, second = (pause.value for pause in pauses)
    assert [first["place"]["id"], second["place"]["id"]] == ["straight/human", "swapped/human"]
    assert [first["place"]["order"], second["place"]["order"]] == [1, 2]
    assert "answer 1 here is the task's answer 2" in second["question"]
    assert (first["task"]["answer_1"], second["task"]["answer_2"]) == (COMPARE["answer_1"],) * 2
    verdict, transcript = resumed(graph, {pauses[0].id: "1", pauses[1].id: "1"})
    assert verdict.details["winner_by_order"] == ["1", "2"], (
        "the second person saw the answers swapped"
    )
    people = {turn["id"]: turn["value"] for turn in transcript if turn["agent"] == "human"}
    assert people == {"straight/human:1": "1", "swapped/human:1": "2"}


def test_the_place_in_wrappers_of_wrappers() -> None:
    inner = review(single.build(models={"*": says((6, 5))}), when="always")
    _, pauses = paused(cascade(single.build(), calibrated(repeated(inner, 2)), gap=99), COMPARE)
    places = {pause.value["place"]["id"]: pause.value["place"]["where"] for pause in pauses}
    assert len(places) == 4
    assert places["expensive/swapped/repeat_1/human"] == (
        "expensive, run 2 of 2, order 2, answers swapped: answer 1 here is the task's answer 2"
    )


def test_runs_inside_runs_are_numbered_in_the_question() -> None:
    inner = review(single.build(models={"*": says((6, 5))}), when="always")
    _, pauses = paused(repeated(repeated(inner, 2), 2), COMPARE)
    where = sorted(pause.value["place"]["where"] for pause in pauses)
    assert where == [f"run {number} of 4" for number in (1, 2, 3, 4)]


def test_on_unresolved_human_reads_the_same_answers() -> None:
    judge = debate.build(models={"*": says((6, 5), objections=9)}, n=1, on_unresolved="human")
    graph, [pause] = paused(judge, COMPARE)
    assert pause.value["why"] == ["unresolved: Scorer and Critic do not agree"]
    verdict, transcript = resumed(graph, {"answer": "tie", "reason": "Both guess.", "name": "Al"})
    assert (verdict.winner, verdict.scores, verdict.explanation) == ("tie", (6, 5), "Both guess.")
    assert (transcript[-1]["name"], transcript[-1]["value"]) == ("Al", "tie")
    graph, _ = paused(judge, COMPARE)
    verdict, transcript = resumed(graph, "let it stand: fine")
    assert (verdict.winner, verdict.stop_reason, verdict.explained_by) == ("1", "human", "human:1")
    assert transcript[-1]["content"] == "Let it stand: fine"


def test_a_review_of_a_person_numbers_the_turns() -> None:
    judge = debate.build(models={"*": says(4, objections=9)}, n=1, on_unresolved="human")
    graph, _ = paused(review(judge, when="always"), SCORE)
    [second] = graph.invoke(Command(resume=3), THREAD)["__interrupt__"]
    assert second.value["verdict"]["stop_reason"] == "human"
    verdict, _ = resumed(graph, {"score": 1, "reason": "No."})
    assert (verdict.score, verdict.explained_by) == (1, "human:2")


def test_by_name() -> None:
    protocol = find_protocol("review")
    graph, _ = paused(
        protocol.build(of="single", when="gap<2", models={"*": says((6, 5))}), COMPARE
    )
    verdict, _ = resumed(graph, "2")
    assert (verdict.protocol, verdict.details["of"], verdict.winner) == ("review", "single", "2")
    changed = protocol.build(of="single").compile(checkpointer=InMemorySaver())
    result = changed.invoke({"task": COMPARE}, THREAD, context={"when": "always"})
    assert result["__interrupt__"][0].value["why"] == ["always: every verdict is reviewed"]
    with pytest.raises(UsageError, match="unresolved never matches single"):
        protocol.build(of="single").compile().invoke(
            {"task": COMPARE}, context={"when": "unresolved"}
        )


# -- chat clients
def edited(**fields: str) -> dict[str, Any]:
    """A decision of agent-chat-ui, whose fields are all texts."""
    args = {"answer": "let it stand", "reason": "", "name": "", **fields}
    return {"type": "edit", "edited_action": {"name": "verdict", "args": args}}


def test_a_pause_has_the_form_of_langchain() -> None:
    task = {**SCORE, "candidate": "![](http://example.org/seen) ````", "source": "It opened."}
    _, [pause] = paused(review(debate.build(models={"*": says(5, objections=9)}, n=1)), task)
    request = {key: pause.value[key] for key in HITLRequest.__annotations__}
    TypeAdapter(HITLRequest).validate_python(request)
    [action] = request["action_requests"]
    [config] = request["review_configs"]
    assert action["name"] == config["action_name"]
    assert config["allowed_decisions"] == ["approve", "edit", "respond"]
    # The middleware names the fields ``args``, but Agent Inbox reads ``arguments``.
    assert (
        action["args"]
        == action["arguments"]
        == {
            "answer": "let it stand",
            "reason": "",
            "name": "",
        }
    )
    told = action["description"]
    assert told.startswith(pause.value["question"])
    assert pause.value["why"][0] in told
    assert "**scorer, round 1**" in told and "**The judge's verdict:** 5" in told
    # A text loads no image in a client that shows Markdown.
    assert f"`````text\n{task['candidate']}\n`````" in told


@pytest.mark.parametrize("judge", ["review", "on_unresolved"])
@pytest.mark.parametrize(
    ("reply", "score", "content", "name"),
    [
        ({"decisions": [{"type": "approve"}]}, 5, "Let it stand.", None),
        (
            {"decisions": [edited(answer="2", reason="No.", name="Ann")]},
            2,
            "No.",
            "Ann",
        ),
        ({"decisions": [edited(reason="It is fine.")]}, 5, "Let it stand: It is fine.", None),
        (
            {"decisions": [{"type": "respond", "message": "3: too kind"}]},
            3,
            "too kind",
            None,
        ),
        ([{"type": "accept", "args": None}], 5, "Let it stand.", None),
        (
            [{"type": "accept", "args": {"action": "verdict", "args": {"answer": "let it stand"}}}],
            5,
            "Let it stand.",
            None,
        ),
        (
            [
                {
                    "type": "edit",
                    "args": {"action": "verdict", "args": {"answer": "1", "name": "Bo"}},
                }
            ],
            1,
            "1",
            "Bo",
        ),
        ([{"type": "response", "args": "4: fine"}], 4, "fine", None),
    ],
    ids=[
        "approve",
        "edit",
        "edit without a score",
        "respond",
        "inbox accept",
        "inbox accept with fields",
        "inbox edit",
        "inbox response",
    ],
)
def test_a_decision_of_a_chat_client_gives_a_verdict(
    judge: str, reply: Any, score: float, content: str, name: str | None
) -> None:
    settings: dict[str, Any] = {"on_unresolved": "human"} if judge == "on_unresolved" else {}
    inner = debate.build(models={"*": says(5, objections=9)}, n=1, **settings)
    graph, [pause] = paused(inner if settings else review(inner), SCORE)
    assert pause.value["action_requests"]
    verdict, transcript = resumed(graph, reply)
    assert (verdict.score, verdict.stop_reason) == (score, "human")
    assert (transcript[-1]["content"], transcript[-1].get("name")) == (content, name)


@pytest.mark.parametrize("reply", [3, {"decisions": [edited(answer="3")]}], ids=["plain", "edit"])
def test_a_thread_that_paused_without_the_form_is_answered(
    reply: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr(human, "request_of", lambda _question: {})
        judge = review(debate.build(models={"*": says(5, objections=9)}, n=1))
        graph, [pause] = paused(judge, SCORE)
    assert "action_requests" not in pause.value
    verdict, _ = resumed(graph, reply)
    assert verdict.score == 3


def test_a_decision_that_cannot_be_read_is_asked_again_with_the_problem() -> None:
    graph, _ = paused(review(debate.build(models={"*": says(5, objections=9)}, n=1)), SCORE)
    reply = {"decisions": [edited(answer="9")]}
    [again] = graph.invoke(Command(resume=reply), THREAD)["__interrupt__"]
    assert "off the scale 1 to 5" in again.value["problem"]
    assert again.value["problem"] in again.value["action_requests"][0]["description"]
    verdict, _ = resumed(graph, {"decisions": [edited(answer="2")]})
    assert verdict.score == 2


@pytest.mark.parametrize(("reply", "problem"), [
    ({"decisions": []}, "One decision is needed"), ({"decisions": "approve"}, "One decision is needed"),
    ({"decisions": [{"type": "approve"}] * 2}, "One decision is needed"),
    ({"decisions": [{"type": "approve"}], "score": 3}, "also 'score'"),
    ({"decisions": [{"type": "approve", "message": "3"}]}, "does not take 'message'"),
    ({"decisions": [{"type": "reject", "message": "No."}]}, "not 'reject'"),
    ({"decisions": [{"type": "respond"}]}, "not an answer"),
    ({"decisions": [{"type": "edit", "edited_action": {"name": "verdict"}}]}, "args"),
    ({"decisions": [{"type": "edit", "edited_action": {"name": "delete", "args": {"answer": "2"}}}]}, "verdict"),
    ({"decisions": [edited(score="3")]}, "only one counts"), ({"decisions": [edited(mark="3")]}, "no 'mark'"),
    ([{"type": "ignore", "args": None}], "not 'ignore'"), ([{"type": "accept"}] * 2, "One decision is needed"),
    ([{"type": "edit", "args": "3"}], "args"), ([{"score": 3}], "not None"),
])  # fmt: skip
def test_a_decision_is_not_guessed(reply: Any, problem: str) -> None:
    with pytest.raises(ReplyError) as caught:
        read_reply(reply, ScoreTask.model_validate(SCORE))
    assert problem in caught.value.problem


# -- the rules
@pytest.mark.parametrize(
    "text", ["", "never", "gap>1", "gap<", "wide<2", "gap<1.2.3", "always<1", "gap<-1"]
)
def test_unknown_rules_are_refused_with_those_there_are(text: str) -> None:
    with pytest.raises(
        UsageError, match=r"unresolved, orders_differ, split, gap<x, wide>x, always"
    ):
        Rule.parse(text)
    with pytest.raises(InputError, match="when"):
        review(debate.build(), when=[text])


@pytest.mark.parametrize(("rule", "judge"), [
    ("unresolved", single.build()), ("unresolved", debate.build(tie_breaker=True)),
    ("orders_differ", debate.build()), ("orders_differ", single.build(position_calibration=False)),
    ("split", debate.build()), ("split", samre.build(jurors=0)), ("split", samre.build(jurors=1)),
    ("gap", find_protocol("geval").build()), ("wide", ensemble.build()),
    ("split", cascade(single.build(), debate.build())),
])  # fmt: skip
def test_a_rule_that_never_holds_is_refused_at_build(rule: str, judge: Any) -> None:
    with pytest.raises(UsageError, match=f"the rule {rule}.* never matches"):
        review(judge, when=rule)
    # The judge is named by its protocol.
    with pytest.raises(UsageError, match="never matches debate, which"):
        review(debate.build(), when="split")


@pytest.mark.parametrize(("rule", "judge"), [
    ("unresolved", calibrated(debate.build())), ("unresolved", cascade(single.build(), debate.build())),
    ("orders_differ", calibrated(baseline.build())), ("orders_differ", repeated(single.build())),
    ("split", chateval.build()), ("split", repeated(single.build())), ("split", samre.build(jurors=3)),
    ("gap<3", calibrated(debate.build())), ("wide>0.5", find_protocol("repeated").build(of="debate")),
    ("wide", review(repeated(single.build()))), ("wide", RemoteGraph("unknown", url="http://127.0.0.1:9")),
])  # fmt: skip
def test_a_rule_that_may_hold_is_taken(rule: str, judge: Any) -> None:
    review(judge, when=[rule, "always"])
    # Without a choice nothing is refused.
    review(find_protocol("geval").build())


def panel(*values: Any, **settings: Any) -> Any:
    return ensemble.build(models={"*": says(*values)}, **settings)


def alone(*values: Any, **settings: Any) -> Any:
    return single.build(models={"*": says(*values)}, **settings)


def thrice() -> Any:
    return repeated(alone(1, 5, 3), 3)


ONE_ORDER: dict[str, Any] = {"position_calibration": False}
TORN = panel((9, 3), (3, 9), (9, 3), **ONE_ORDER)
SURE = panel((9, 1), **ONE_ORDER)
JURY = samre.build(models={"*": says((60, 40))}, jurors=3, max_rounds=1)
PARTLY = calibrated(debate.build(models={"*": says((6, 5), objections=1)}, n=1))
TWICE = repeated(alone((9, 3), (3, 9), **ONE_ORDER), 2)
WHY: list[tuple[Any, dict[str, Any], str, list[str]]] = [
    (
        alone((9, 3)),
        COMPARE,
        "orders_differ",
        ["the two orders of the answers have different winners"],
    ),
    (alone((9, 3), (3, 9)), COMPARE, "orders_differ", []),
    # One order that is unresolved is enough.
    (PARTLY, COMPARE, "unresolved", ["the debate ended at its last round without agreement"]),
    (JURY, COMPARE, "split", ["jurors disagree, 2 of 3 for answer 2, 1 of 3 for answer 1"]),
    (panel((6, 5), **ONE_ORDER), COMPARE, "split", []),
    (
        panel(2, 3, 4),
        SCORE,
        "split",
        ["referees disagree, 1 of 3 for 2, 1 of 3 for 3, 1 of 3 for 4"],
    ),
    (panel(2, 3, 3), SCORE, "split", []),
    # A jury that was overruled is not split.
    (cascade(TORN, SURE, when=lambda _: True), COMPARE, "split", []),
    (thrice(), SCORE, "wide>1.9", ["scores of repeated runs have a standard deviation of 2"]),
    (thrice(), SCORE, "wide>2", []),
    (TWICE, COMPARE, "split", ["runs disagree, 1 of 2 for answer 1, 1 of 2 for answer 2"]),
]


@pytest.mark.parametrize(("judge", "task", "rule", "told"), WHY)
def test_a_rule_asks_where_it_holds_and_says_why(
    judge: Any, task: dict[str, Any], rule: str, told: list[str]
) -> None:
    graph, pauses = paused(review(judge, when=[rule]), task)
    assert [reason for pause in pauses for reason in pause.value["why"]] == [
        f"{rule}: {why}" for why in told
    ]
    if not pauses:
        verdict = Verdict.of(graph.get_state(THREAD).values)
        assert verdict.stop_reason != "human" and "review" not in verdict.details


def test_reasons_are_told_in_the_order_of_the_rules() -> None:
    verdict = Verdict(
        protocol="debate", kind="compare", scores=(6, 6), stop_reason="max_rounds", rounds=1
    )
    rules = [Rule.parse(text) for text in ("gap", "always", "unresolved", "wide")]
    told = reasons(rules, verdict, [], lambda turn: "scores")
    assert [reason.partition(":")[0] for reason in told] == ["gap<1", "always", "unresolved"]


# -- reading an answer
RATING = ScoreTask.model_validate(SCORE)
PAIR = CompareTask.model_validate(COMPARE)


@pytest.mark.parametrize(("reply", "value", "reason"), [
    (2.5, 2.5, ""), ("4.", 4, ""), ("4: 2 of 3 dates are wrong", 4, "2 of 3 dates are wrong"),
    ("4 - fine", 4, "fine"), ("I looked twice.\nScore: 2", 2, "I looked twice.\nScore: 2"),
    ("Let it stand", None, ""), ("stands; no more to say", None, "no more to say"),
    ("Rating: [[4]]", 4, "Rating: [[4]]"), ({"answer": "3: short", "reason": "Long."}, 3, "Long."),
    ({"score": "4"}, 4, ""), ({"score": 4, "stands": False, "reason": None, "name": ""}, 4, ""),
])  # fmt: skip
def test_a_rating_is_read(reply: Any, value: Any, reason: str) -> None:
    assert read_answer(reply, RATING) == HumanAnswer(value, reason)


@pytest.mark.parametrize(("reply", "value"), [
    (2.0, "2"), ("TIE", "tie"), ("tie: both are short", "tie"), ("answer 2", "2"),
    ("(8, 6)", [8, 6]), ("8 : 6.5 because it is longer", [8, 6.5]), ((8, 6), [8, 6]),
    ({"scores": [1, 10]}, [1, 10]),
])  # fmt: skip
def test_a_preference_is_read(reply: Any, value: Any) -> None:
    assert read_answer(reply, PAIR).value == value


@pytest.mark.parametrize(("reply", "task", "problem"), [
    (6, RATING, "off the scale"), (float("nan"), RATING, "states no score"),
    (True, RATING, "not an answer"), ("", RATING, "empty"), ("tie", RATING, "states no score"),
    ([3, 4], RATING, "score"), ({"reason": "Hm."}, RATING, "missing"), ({"scor": 3}, RATING, "no 'scor'"),
    ({"score": 3, "stands": True}, RATING, "only one counts"),
    (7, PAIR, "Please give 1, 2, tie, two scores"), ("8, 60", PAIR, "off the scale"),
    ([1, 2, 3], PAIR, "not an answer"), ([None, 3], PAIR, "Please give"),
    ("maybe", PAIR, "Please give 1, 2, tie"), ({"score_1": 3}, PAIR, "Please give"),
    ("3 " * 50_000, RATING, "score"),
])  # fmt: skip
def test_what_cannot_be_read_says_what_can(reply: Any, task: Any, problem: str) -> None:
    with pytest.raises(ReplyError) as caught:
        read_answer(reply, task)
    assert problem in caught.value.problem
