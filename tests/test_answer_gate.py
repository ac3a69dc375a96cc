"""Test the gate of an agent's final answers, and how it ends if the judge rejects or fails."""

from collections.abc import Sequence
from typing import Any

import pytest
from jurygraph import Aspect, create_async_judge, create_judge
from jurygraph.eval.judges.answer_gate import AnswerGate
from jurygraph.graphs import repeated, single
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.state import AnswerRejectedError, LimitError, ReplyError, UsageError
from langchain.agents import create_agent
from langchain.agents.middleware import (
    ModelCallLimitMiddleware,
    ModelRetryMiddleware,
    ToolCallLimitMiddleware,
)
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from .sample_data import THREAD, goes_on

SOURCE = "The bridge opened in 1932, after eight years of work."
FALSE = "Forty cooks were never seen near Oslo."
ASKED = {"messages": [("user", f"Repeat: {SOURCE}")]}
IMAGE = {"type": "image", "url": "data:,"}
MODEL: Any = {"model": "offline"}


class Talker(GenericFakeChatModel):
    """Says the given messages, and takes tools."""

    def bind_tools(self, tools: Sequence[Any], **more: Any) -> Any:
        return self


def talker(*answers: Any) -> Talker:
    said = (answer if isinstance(answer, AIMessage) else AIMessage(answer) for answer in answers)
    return Talker(messages=iter(said))


def agent(*answers: Any, checkpointer: Any = None, judge: Any = "debate", **gate: Any) -> Any:
    options = {"aspect": "consistency", **({} if "model" in gate else MODEL), **gate}
    middleware = [AnswerGate(judge, **options)]
    return create_agent(talker(*answers), middleware=middleware, checkpointer=checkpointer)


def scored(*scores: float | str) -> dict[str, Any]:
    """Return the options of a judge that gives these scores; a text cannot be read."""
    lines = [f"Fine.\nScore: {score}" if score != "?" else "Nothing." for score in scores]
    model = ScriptedModel(script={"scorer": lines})
    return {"judge": "single", "model": model, "structured": "off", "repair": 0}


@pytest.mark.parametrize("is_async", [False, True])
def test_an_agent_answers_again_below_the_bar(is_async: bool) -> None:
    outcome = goes_on(agent(FALSE, SOURCE), ASKED, is_async)
    said = [(message.type, message.name) for message in outcome["messages"]]
    assert said == [("human", None), ("ai", None), ("human", "judge"), ("ai", None)]
    assert outcome["messages"][-1].text == SOURCE
    assert outcome["judged"][0]["verdict"]["explanation"][:40] in outcome["messages"][2].text
    assert [one["candidate"] for one in outcome["judged"]] == [FALSE, SOURCE]


@pytest.mark.parametrize("subgraphs", [False, True])
def test_what_the_judge_of_a_gate_says_is_streamed_once(subgraphs: bool) -> None:
    graph = agent(SOURCE, **scored(5))
    events = list(graph.stream(ASKED, stream_mode="custom", subgraphs=subgraphs))
    assert [(event[-1] if subgraphs else event)["turn"]["id"] for event in events] == ["scorer:1"]


# The end of a gate


@pytest.mark.parametrize("is_async", [False, True])
def test_after_the_last_try_an_error_is_raised_by_default(is_async: bool) -> None:
    graph = agent("A.", "B.", tries=2, **scored(2, 3))
    with pytest.raises(AnswerRejectedError, match=r"scores: 2, 3; needed: 4 or more") as caught:
        goes_on(graph, ASKED, is_async)
    assert [one["candidate"] for one in caught.value.judged] == ["A.", "B."]


def test_after_the_last_try_the_best_answer_may_pass() -> None:
    outcome = agent("A.", "B.", "C.", after_tries="pass", **scored(2, 3, 1)).invoke(ASKED)
    assert outcome["messages"][-1].text == "B."
    assert [one["verdict"]["score"] for one in outcome["judged"]] == [2, 3, 1]
    equal = agent("A.", "B.", tries=2, after_tries="pass", **scored(2, 2))
    assert equal.invoke(ASKED)["messages"][-1].text == "B."


def test_after_the_last_try_the_answer_may_be_replaced() -> None:
    ends: Any = {"tries": 2, "after_tries": "replace", "replacement": "Please ask a person."}
    outcome = agent("A.", "B.", **ends, **scored(2, 3)).invoke(ASKED)
    assert outcome["messages"][-1].text == "Please ask a person."
    assert [one["candidate"] for one in outcome["judged"]] == ["A.", "B."]


def test_a_rejected_answer_may_be_replaced_raised_or_passed_at_once() -> None:
    instead: Any = lambda attempt: f"Not sure: {attempt['candidate']}"  # noqa: E731
    outcome = agent("A.", on_reject="replace", replacement=instead, **scored(2)).invoke(ASKED)
    assert outcome["messages"][-1].text == "Not sure: A."
    with pytest.raises(AnswerRejectedError, match="scores: 2"):
        agent("A.", on_reject="raise", **scored(2)).invoke(ASKED)
    outcome = agent("A.", on_reject="pass", **scored(2)).invoke(ASKED)
    assert (outcome["messages"][-1].text, outcome["judged"][0]["verdict"]["score"]) == ("A.", 2)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_judge_that_fails_raises_unless_its_owner_lets_answers_pass(is_async: bool) -> None:
    with pytest.raises(ReplyError):
        goes_on(agent("A.", **scored("?")), ASKED, is_async)
    outcome = goes_on(agent("A.", "B.", on_error="pass", **scored(2, "?")), ASKED, is_async)
    assert outcome["messages"][-1].text == "B."
    failed = outcome["judged"][1]
    assert (failed["verdict"], "Nothing." in failed["error"]) == (None, True)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_gate_keeps_to_the_limits_of_its_judge(is_async: bool) -> None:
    options = scored(2, 2, 2)
    gate = AnswerGate(options.pop("judge"), "consistency", max_calls=1, **options)
    graph = create_agent(talker("A.", "B."), middleware=[gate])
    with pytest.raises(LimitError, match="at most 1 calls"):
        goes_on(graph, ASKED, is_async)
    assert gate.judge.usage.calls == 1
    outcome = goes_on(
        agent("A.", "B.", max_calls=1, on_error="pass", **scored(2, 2)), ASKED, is_async
    )
    assert outcome["messages"][-1].text == "B."
    assert "at most 1 calls" in outcome["judged"][1]["error"]


# What is judged


def test_every_turn_of_a_conversation_has_its_tries() -> None:
    graph = agent(
        "A.", "B.", "C.", "D.", tries=2, checkpointer=InMemorySaver(), **scored(2, 5, 1, 4)
    )
    assert len(graph.invoke(ASKED, THREAD)["judged"]) == 2
    second = graph.invoke({"messages": [("user", "And now?")]}, THREAD)
    assert [one["candidate"] for one in second["judged"]] == ["C.", "D."]


def test_the_judge_is_shown_the_conversation_without_objections() -> None:
    before = [("user", "Who?"), ("ai", "Ann."), ("user", "When?")]
    graph = agent("A.", "B.", tries=2, after_tries="pass", **scored(2, 2))
    outcome = graph.invoke({"messages": before})
    task: Any = AnswerGate("single", "consistency", model="offline")._input(outcome)["task"]
    assert task["source"] == "Human: Who?\nAI: Ann.\nHuman: When?"


@pytest.mark.parametrize("is_async", [False, True])
def test_a_gate_refuses_images_of_questions_before_the_agent_is_asked_and_of_answers(
    is_async: bool,
) -> None:
    model = ScriptedModel(script=lambda _about, _prompt: "It is a ferry.")
    gate = AnswerGate("single", "consistency", model="offline")
    graph: Any = create_agent(model, middleware=[gate])
    asked = {"messages": [HumanMessage([{"type": "text", "text": "What is this?"}, IMAGE])]}
    with pytest.raises(UsageError, match=r"messages\[0\] holds an image \(image\)"):
        goes_on(graph, asked, is_async)
    assert not model.calls
    contents: list[Any] = [[SOURCE, IMAGE], [IMAGE]]
    for content in contents:
        with pytest.raises(UsageError, match=r"messages\[1\] holds an image \(image\)"):
            goes_on(agent(AIMessage(content)), ASKED, is_async)


def test_a_gate_judges_the_answer_of_an_agent_that_used_tools_and_thought() -> None:
    call = AIMessage("I look.", tool_calls=[{"name": "search", "args": {}, "id": "1"}])
    result = ToolMessage("moorings", tool_call_id="1")
    thoughts: list[Any] = [
        {"type": "reasoning", "reasoning": "Hm."},
        {"type": "text", "text": SOURCE},
    ]
    outcome = agent(AIMessage(thoughts)).invoke({"messages": [*ASKED["messages"], call, result]})
    assert [answer["candidate"] for answer in outcome["judged"]] == [SOURCE]
    task: Any = AnswerGate("single", "consistency", model="offline")._input(outcome)["task"]
    assert "\nAI calls search (call 1): {}\nResult of search (call 1): moorings" in task["source"]
    assert "Hm." not in task["source"]


@tool(return_direct=True)
def search(what: str) -> str:
    """Search."""
    return f"Nothing about {what}."


CALL = AIMessage("I look.", tool_calls=[{"name": "search", "args": {"what": "it"}, "id": "1"}])


class Broken(Talker):
    """A model whose calls fail."""

    def _generate(self, *given: Any, **more: Any) -> Any:
        raise ConnectionError("no route to the model")


@pytest.mark.parametrize(
    ("model", "more", "last"),
    [
        (talker("A."), [ModelCallLimitMiddleware(thread_limit=0)], "Model call limits exceeded"),
        (
            talker(CALL, "A."),
            [ToolCallLimitMiddleware(run_limit=0, exit_behavior="end")],
            "call limit reached",
        ),
        (
            Broken(messages=iter(())),
            [ModelRetryMiddleware(max_retries=0, on_failure="continue")],
            "Model call failed after 1 attempt",
        ),
        (talker(CALL), [], "Nothing about it."),
        (talker(""), [], ""),
    ],
    ids=["model call limit", "tool call limit", "failed model", "tool's result", "empty"],
)
def test_what_is_no_answer_is_not_judged(model: Any, more: Any, last: str) -> None:
    options = scored()  # A judge that is asked has no line to say.
    gate = AnswerGate(options.pop("judge"), "consistency", **options)
    graph: Any = create_agent(model, [search], middleware=[gate, *more])
    outcome = graph.invoke(ASKED)
    assert last in outcome["messages"][-1].text
    assert not outcome.get("judged")
    assert gate.judge.usage.calls == 0


def test_a_models_own_answer_about_limits_is_judged() -> None:
    words = "Model call limits exceeded: that is what the log says."
    answer = AIMessage(words, response_metadata={"model_name": "m"})
    assert len(agent(answer, **scored(5)).invoke(ASKED)["judged"]) == 1


# The judge of a gate


def test_a_judge_comes_with_its_settings_by_name_or_made() -> None:
    gate = AnswerGate("debate", "consistency", model="offline", n=2, temperature=0)
    assert gate.judge.name == "debate"
    for make in (create_judge, create_async_judge):
        judge: Any = make("single", aspect="fluency", model="offline")
        assert AnswerGate(judge, until=3).judge.key == "fluency"
    assert AnswerGate(single.build(model="offline"), "fluency").judge.name == "single"
    wit = Aspect(name="wit", criteria="Does it amuse?", low=0, high=1)
    assert AnswerGate("single", wit, until=0.5, model="offline").judge.key == "wit"


MADE = create_judge("single", aspect="fluency", model="offline")


@pytest.mark.parametrize(("options", "told"), [
    ({"until": 9}, "rated from 1 to 5"), ({"tries": 0}, "1 or more"),
    ({"aspect": "nope"}, "unknown aspect"), ({"aspect": None}, "name an aspect"),
    ({"judge": "samre"}, "only compares"), ({"nn": 2}, "nn"),
    ({"model": None}, "no model"), ({"judge": single, "model": None}, "no model"),
    ({"judge": repeated(single.build(), k=2), "model": None}, r"\(judge\) has no model"),
    ({"judge": create_judge("single", aspect="fluency"), "aspect": None, "model": None}, "no model"),
    ({"on_reject": "ignore"}, "on_reject must be one of retry, replace, raise, pass, got 'ignore'"),
    ({"on_error": "replace"}, "on_error must be one of raise, pass"),
    ({"on_reject": "pass", "after_tries": "replace"}, "belongs to on_reject='retry'"),
    ({"on_reject": "replace"}, "replacement is the text"), ({"replacement": "So."}, "only then"),
    ({"normalize": True}, "normalize is for calls"),
    ({"judge": MADE, "model": None}, "aspect: a judge from create_judge has its own"),
    ({"judge": MADE, "aspect": None, "model": None, "n": 2}, "n: a judge from create_judge"),
])  # fmt: skip
def test_mistakes_of_a_gate_are_told(options: dict[str, Any], told: str) -> None:
    given = {"judge": "debate", "aspect": "consistency", "model": "offline", **options}
    judge = given.pop("judge")
    given = {name: value for name, value in given.items() if value is not None}
    with pytest.raises(UsageError, match=told):
        AnswerGate(judge, **given)
