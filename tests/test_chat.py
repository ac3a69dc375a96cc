"""Test the chat around protocols: messages in, turns and the verdict as messages out."""

import json
from typing import Any

import pytest
from jurygraph.graphs import calibrated, chat, debate, ensemble, single
from jurygraph.graphs.wrappers.chat import FORM, task_in
from jurygraph.graphs.wrappers.chat import graph as served
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.state import UsageError
from jurygraph.state.tasks import parse_task
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from .sample_data import COMPARE_TASK, SCORE_TASK, THREAD

RATE = "Aspect: consistency\nSource: The bridge opened in 1932.\nCandidate: It opened in 1923."
PREFER = "Question: Why is the sky blue?\nAnswer 1: Air scatters blue light.\nAnswer 2: The sea."


def names(messages: list[AnyMessage]) -> list[str | None]:
    return [message.name for message in messages]


def critical(call: Any, _prompt: str) -> Any:
    if call["role"] == "critic":
        return {"feedback": "Too high.", "no_issue": False}
    return {"reasoning": "So.", "score": 4}


@pytest.mark.parametrize("is_async", [True, False])
async def test_each_turn_is_a_message_of_its_agent_and_the_last_one_is_the_verdict(
    is_async: bool,
) -> None:
    graph = chat(debate.build(models={"*": ScriptedModel(script=critical)}, n=1)).compile()
    given = {"messages": [("user", RATE)]}
    result = await graph.ainvoke(given) if is_async else graph.invoke(given)
    messages = result["messages"]
    assert names(messages) == [
        None,
        *("commander", "scorer", "commander", "critic", "commander", "scorer"),
        "verdict",
    ]
    assert messages[4].text == "Too high."
    about = messages[4].additional_kwargs
    assert (about["turn"], about["round"], about["value"]) == ("critic:1", 1, False)
    assert messages[-1].text.startswith("consistency: 4 on a scale from 1 to 5.")
    assert messages[-1].additional_kwargs["verdict"] == result["verdict"]
    assert set(result) == {"messages", "verdict"}


async def test_turns_are_streamed_when_they_are_made_and_once() -> None:
    judge = debate.build(models={"*": ScriptedModel(script=critical)}, n=1)
    graph: Any = chat(judge).compile()
    given = {"messages": [HumanMessage(RATE, id="asked")]}
    heard: list[tuple[str, Any]] = []
    for mode, event in graph.stream(given, stream_mode=["messages", "updates"]):
        heard.append((mode, event[0].id if mode == "messages" else [*event]))
    said = [f"asked/{turn}" for turn in ("commander:1", "scorer:1", "commander:2", "critic:1")]
    said += ["asked/commander:3", "asked/scorer:2", "asked/verdict"]
    streamed = [("messages", one) for one in said]
    assert heard == [("updates", ["prepare"]), *streamed, ("updates", ["judge"])]
    stream = graph.astream(given, stream_mode="messages")
    assert [message.id async for message, _ in stream] == said
    assert [message.id for message in graph.invoke(given)["messages"]] == ["asked", *said]


@pytest.mark.parametrize("is_async", [True, False])
async def test_the_state_of_the_judge_is_not_streamed_so_that_clients_keep_the_messages(
    is_async: bool,
) -> None:
    graph: Any = served.builder.compile(checkpointer=InMemorySaver())
    how: Any = {"stream_mode": ["values", "updates", "messages"], "subgraphs": True}
    # The settings of a run go through the judge's config, too.
    how["context"] = {"inner": {"n": 1, "on_unresolved": "human"}}
    given = {"messages": [("user", PREFER)]}
    if is_async:
        events = [event async for event in graph.astream(given, THREAD, **how)]
    else:
        events = list(graph.stream(given, THREAD, **how))
    values = [(place, state) for place, mode, state in events if mode == "values"]
    assert [place for place, _ in values] == [()] * len(values)
    assert [len(state["messages"]) for _, state in values] == [1] * len(values)
    assert "action_requests" in values[-1][1]["__interrupt__"][0].value
    assert {mode for place, mode, _ in events if place} >= {"updates"}


def test_a_turn_is_streamed_before_the_next_agent_is_asked() -> None:
    model = ScriptedModel(script=critical)
    graph: Any = chat(debate.build(models={"*": model}, n=1)).compile()
    events = graph.stream({"messages": [("user", RATE)]}, stream_mode="messages")
    asked = {message.name: len(model.calls) for message, _ in events if message.name == "critic"}
    assert asked == {"critic": 2}


def test_only_the_reply_that_was_read_is_a_message() -> None:
    replies = ["Hm.", "Score: 3"]
    model = ScriptedModel(script=lambda _call, _prompt: replies.pop(0))
    judge = single.build(models={"*": model}, structured="off")
    graph: Any = chat(judge).compile()
    events = graph.stream({"messages": [("user", RATE)]}, stream_mode="messages")
    said = [message.text for message, _ in events if message.name == "scorer"]
    assert said == ["Score: 3"]


def test_a_missing_member_says_why() -> None:
    def one_ill(call: Any, _prompt: str) -> Any:
        if call["agent"] == "referee_2":
            return RuntimeError("referee_2 is indisposed")
        return {"reasoning": "So.", "score": 3}

    judge = ensemble.build(models={"*": ScriptedModel(script=one_ill)}, referees=3)
    messages = chat(judge).compile().invoke({"messages": RATE})["messages"]
    [missing] = [message for message in messages if message.name == "referee_2"]
    assert "referee_2 is indisposed" in missing.text
    assert "referee_2" in messages[-1].text


def test_a_thread_continues_and_each_message_is_a_task_of_its_own() -> None:
    graph = chat("single").compile(checkpointer=InMemorySaver())
    first = graph.invoke({"messages": [("user", RATE)]}, THREAD)
    unread = graph.invoke({"messages": [("user", "Why?")]}, THREAD)
    assert unread["verdict"] is None
    assert unread["messages"][: len(first["messages"])] == first["messages"]
    assert names(unread["messages"][-2:]) == [None, "verdict"]
    second = graph.invoke({"messages": [("user", PREFER)]}, THREAD)
    assert second["verdict"]["kind"] == "compare"
    assert second["messages"][: len(unread["messages"])] == unread["messages"]
    ids = [message.id for message in second["messages"]]
    assert len(ids) == len(set(ids))
    assert "Answer 1 is better" in second["messages"][-1].text
    assert graph.get_state(THREAD).values["task"]["question"] == "Why is the sky blue?"


@pytest.mark.parametrize("task", [SCORE_TASK, COMPARE_TASK], ids=["score", "compare"])
@pytest.mark.parametrize("form", ["{}", '{{"task": {}}}', "```json\n{}\n```"])
def test_a_task_as_json_is_read_whole(task: dict[str, Any], form: str) -> None:
    message = HumanMessage(form.format(json.dumps(task)))
    assert parse_task(task_in([message])) == parse_task(task)


def test_sections_hold_any_text_that_is_not_a_section() -> None:
    text = (
        "question: Why?\nIn short.\n\nAnswer 1:\nSource: a book.\n  Answer 2: is wrong.\n\n"
        "ANSWER 2: It rained. Question: none."
    )
    assert task_in([HumanMessage(text)]) == {
        "question": "Why?\nIn short.",
        "answer_1": "Source: a book.\n  Answer 2: is wrong.",
        "answer_2": "It rained. Question: none.",
    }
    assert task_in([HumanMessage("Aspect: fluency\nCandidate: Rain.")]) == {
        "aspect": "fluency",
        "candidate": "Rain.",
    }


def test_only_the_last_human_message_is_the_task() -> None:
    earlier = [HumanMessage(RATE), AIMessage("3"), HumanMessage(PREFER), AIMessage("Of course.")]
    assert task_in(earlier)["answer_2"] == "The sea."


def test_images_of_a_message_are_media_of_the_task() -> None:
    image = {"type": "image", "base64": "iVBORw0KGgo=", "mime_type": "image/png"}
    words = {"type": "text", "text": "Aspect: fluency\nCandidate: See the picture."}
    task = parse_task(task_in([HumanMessage([words, image])]))
    assert [*task.media] == ["[image 1]"]
    assert "[image 1]" in task.candidate  # type: ignore[union-attr]


@pytest.mark.parametrize(("text", "problem"), [
    ("Which is better?", "does not begin with a section"), ("", "does not begin with a section"),
    (f"Please judge:\n{PREFER}", "does not begin with a section"),
    (f"{PREFER}\nAnswer 2: Another.", "sections Question, Answer 1, Answer 2, Answer 2"),
    ("Question: Why?\nAnswer 2: Snow.\nAnswer 1: Rain.", "once and in order"),
    ("Question: Why?\nAnswer 1: Rain.", "sections Question, Answer 1."),
    ("Aspect: fluency\nCandidate: Rain.\nSource: It rained.", "once and in order"),
    ("Question:\nAnswer 1: Rain.\nAnswer 2: Snow.", "task.question"),
    ("Aspect: beauty\nSource: Rain.\nCandidate: Rain.", "beauty"),
    ("Aspect: consistency\nCandidate: Rain.", "source is missing"),
    ('{"candidate": "Rain."', "not one JSON object"), ('So: {"candidate": "Rain."}', "does not begin"),
    ('{"candidate": "Rain.", "aspect": "fluency", "judge": 3}', "judge"), ('{"task": 3}', "no kind"),
    ('{"answer_1": "Rain.", "answer_1": "Snow."}', "not one JSON object"),
])  # fmt: skip
def test_a_message_in_no_form_is_answered_with_the_forms(text: str, problem: str) -> None:
    model = ScriptedModel(script=critical)
    result = (
        chat(debate.build(models={"*": model})).compile().invoke({"messages": [("user", text)]})
    )
    asked, answer = result["messages"]
    assert asked.text == text and answer.name == "verdict"
    assert answer.text.startswith("Nothing was judged: ") and answer.text.endswith(FORM)
    assert problem in answer.text.removesuffix(FORM)
    assert result["verdict"] is None and model.calls == []


def test_the_examples_of_the_form_can_be_sent() -> None:
    for example in FORM.split("```text\n")[1:]:
        assert parse_task(task_in([HumanMessage(example.partition("```")[0])]))


def test_without_a_human_message_nothing_is_judged() -> None:
    answer = chat("single").compile().invoke({"messages": [("ai", RATE)]})["messages"][-1]
    assert "no message of a human" in answer.text


def test_keys_of_a_client_are_refused_unless_they_are_empty() -> None:
    graph = chat("single").compile()
    message = {"messages": [("user", RATE)]}
    assert graph.invoke({**message, "tools": [], "context": None, "state": {}})["verdict"]
    with pytest.raises(UsageError, match="tools is not in the input of this graph; its keys are"):
        graph.invoke({**message, "tools": [{"name": "search"}]})


def test_a_human_is_asked_and_answers_in_the_chat_clients_form() -> None:
    judge = debate.build(models={"*": ScriptedModel(script=critical)}, n=1, on_unresolved="human")
    graph = chat(judge).compile(checkpointer=InMemorySaver())
    [pause] = graph.invoke({"messages": [("user", RATE)]}, THREAD)["__interrupt__"]
    assert pause.value["action_requests"][0]["name"] == "verdict"
    reply = {"decisions": [{"type": "respond", "message": "2: the year is wrong"}]}
    result = graph.invoke(Command(resume=reply), THREAD)
    assert result["verdict"]["score"] == 2
    assert names(result["messages"][-3:]) == ["scorer", "human", "verdict"]
    assert result["messages"][-1].text.startswith("consistency: 2 ")


def test_the_context_of_the_served_graph_names_the_protocol() -> None:
    given = {"messages": [("user", PREFER)]}
    context = {"of": "repeated", "inner": {"of": "single", "k": 2}}
    result = served.invoke(given, context=context)
    assert result["verdict"]["details"]["repeated"] == 2
    turns = [message.additional_kwargs["turn"] for message in result["messages"][1:-1]]
    assert "repeat_1/scorer:1" in turns
    with pytest.raises(UsageError, match="nn"):
        served.invoke(given, context={"inner": {"nn": 1}})
    with pytest.raises(UsageError, match="geval takes no task of the kind 'compare'"):
        served.invoke(given, context={"of": "geval"})


def test_a_wrapper_can_be_asked_in_a_chat() -> None:
    judge = calibrated(debate.build(models={"*": "offline"}, n=1))
    result = chat(judge).compile().invoke({"messages": [("user", PREFER)]})
    turns = {message.additional_kwargs["turn"] for message in result["messages"][1:-1]}
    assert {"straight/critic:1", "swapped/critic:1"} <= turns


@pytest.mark.parametrize(
    ("context", "refused"),
    [
        ({"of": "/etc/judge.py"}, "'of' as a file or a module"),
        ({"inner": {"prompts": "/etc"}}, "'prompts'"),
    ],
)
def test_callers_of_a_server_choose_no_file_in_a_chat(
    context: dict[str, Any], refused: str
) -> None:
    config: Any = {"configurable": {"assistant_id": "a", "graph_id": "chat"}}
    with pytest.raises(UsageError, match=f"may not choose {refused}"):
        served.invoke({"messages": [("user", RATE)]}, config, context=context)
    image = {"type": "image", "url": "http://127.0.0.1:9/a.png"}
    message = HumanMessage([{"type": "text", "text": RATE}, image])
    with pytest.raises(UsageError, match="base64"):
        served.invoke({"messages": [message]}, config)
