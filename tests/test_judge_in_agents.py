"""Test a judge among agents, as a tool and as a hand-over target, with the real packages."""

from typing import Any

import pytest
from jurygraph import UsageError, create_async_judge, create_judge
from jurygraph.graphs import debate
from jurygraph.nodes.models.scripted_model import ScriptedModel
from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command
from typing_extensions import TypedDict

from .sample_data import THREAD, goes_on
from .test_judge import SCORE_4, comparing, rating

ASKED = "Sum up: the ferry sank at its moorings on Monday. Nobody was aboard."
ANSWER = "The ferry sank on Monday with nobody aboard."


class Speaker(GenericFakeChatModel):
    """A chat model of an agent that says its lines one after the other, whatever tools it has."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self


def speaker(*lines: Any) -> Speaker:
    return Speaker(messages=iter(lines))


def agent_with(judge: Any, *lines: Any, **options: Any) -> Any:
    return create_agent(speaker(*lines), [judge.as_tool()], **options)


def calls(tool: str, **arguments: Any) -> AIMessage:
    call = {"name": tool, "args": arguments, "id": f"call-{tool}-{len(arguments)}"}
    return AIMessage("", tool_calls=[call])


VERDICT = "coherence: 4 on a scale from 1 to 5.\n\nIt holds together.\nScore: 4"
SAID: Any = {"messages": [("user", ASKED), ("ai", ANSWER)]}
ASKS = calls("judge_coherence", source=ASKED, candidate=ANSWER)
QUESTION: Any = {"messages": [("user", "Is it any good?")]}


def said_by(messages: list[AnyMessage], name: str) -> list[AnyMessage]:
    return [one for one in messages if one.name == name]


# A tool


def test_the_tool_has_flat_arguments_and_a_short_result() -> None:
    tool = rating().as_tool()
    assert set(tool.args) == {"source", "candidate", "context", "fact", "reference"}
    assert tool.args["candidate"]["type"] == "string" and tool.args["candidate"]["description"]
    assert "coherence, from 1 to 5" in tool.description
    called = {"type": "tool_call", "id": "1", "name": tool.name}
    message = tool.invoke({**called, "args": {"source": ASKED, "candidate": ANSWER}})
    assert message.content == VERDICT
    assert message.artifact["stop_reason"] == "no_issue"
    long = rating(
        script={"scorer": [f"{'word ' * 900}\nScore: 4"], "critic": ["NO ISSUE"]}
    ).as_tool()
    assert len(long.invoke({"source": "S", "candidate": "C"})) < 1100


async def test_the_tool_of_a_comparison() -> None:
    tool = create_async_judge("single", key="a / b").as_tool(description="Compare.")
    assert (tool.name, tool.description) == ("judge_a_b", "Compare.")
    told = await comparing().as_tool().ainvoke({"question": "Q", "answer_1": "A", "answer_2": "B"})
    assert told.startswith("Answer 1 is better (scores: 8.0 and 5.0).")


@pytest.mark.parametrize(("arguments", "words"), [
    ({}, "source is missing\ncandidate is missing"), ({"source": ASKED}, "candidate is missing"),
    ({"source": ASKED, "candidate": "   "}, "candidate is blank"),
    ({"source": ASKED, "candidate": ["a", "b"]}, "candidate must be text, got ['a', 'b']"),
    ({"source": None, "candidate": ANSWER}, "source must be text, got None"),
])  # fmt: skip
def test_nonsense_is_told_to_the_agent_that_calls(arguments: dict[str, Any], words: str) -> None:
    agent = agent_with(rating(), calls("judge_coherence", **arguments), "I see.")
    told = agent.invoke(QUESTION)["messages"][2]
    assert told.status == "error"
    assert words in told.content and "Correct this, and call the tool again." in told.content


async def test_the_tool_in_an_agent_sync_and_async() -> None:
    for judge in (
        rating(),
        rating(normalize=True, variable_mapping={"source": "inputs.elsewhere"}),
    ):
        agent = agent_with(judge, *[ASKS, "It is a 4."] * 2)
        for run in (agent.invoke(QUESTION), await agent.ainvoke(QUESTION)):
            assert [one.content for one in run["messages"]][2:] == [VERDICT, "It is a 4."]


def test_a_reply_that_cannot_be_read_is_told_to_the_agent_as_such() -> None:
    judge = rating(script={"scorer": ["I would rather not."] * 9})
    told = agent_with(judge, ASKS, "Then not.").invoke(QUESTION)["messages"][2]
    assert (told.status, "No verdict" in told.content) == ("error", True)


def test_turns_of_the_debate_are_streamed_from_inside_the_agent() -> None:
    agent = agent_with(rating(), ASKS, "It is a 4.")
    events = agent.stream(QUESTION, stream_mode="custom", subgraphs=True)
    assert [event["turn"]["agent"] for _, event in events] == [
        "commander",
        "scorer",
        "commander",
        "critic",
    ]


@pytest.mark.parametrize("outer", [None, InMemorySaver()])
async def test_a_graph_that_keeps_threads_keeps_none_as_a_judge(outer: Any) -> None:
    saver = InMemorySaver()
    model = ScriptedModel(script=SCORE_4)
    graph = debate.build(models=model, structured="off").compile(checkpointer=saver)
    judge = create_judge(graph, aspect="coherence")
    agent = agent_with(judge, ASKS, "It is a 4.", checkpointer=outer)
    said = (await agent.ainvoke(QUESTION, THREAD))["messages"]
    assert said[2].content.startswith("coherence: 4")
    assert judge.as_agent().invoke(SAID)["verdict"]["score"] == 4.0
    assert not [*saver.list(None)]


def test_an_agent_with_a_checkpointer_for_sync_code_alone_calls_the_tool() -> None:
    saver = InMemorySaver()
    saver.aget_tuple = BaseCheckpointSaver.aget_tuple.__get__(saver)  # type: ignore[method-assign]
    agent = agent_with(rating(), ASKS, "It is a 4.", checkpointer=saver)
    assert agent.invoke(QUESTION, THREAD)["messages"][2].content.startswith("coherence: 4")


# An agent


async def test_what_of_a_conversation_is_judged() -> None:
    model = ScriptedModel(script=SCORE_4)
    said = [
        HumanMessage(ASKED),
        AIMessage(
            "I shall ask.", tool_calls=[{"name": "transfer_to_writer", "args": {}, "id": "1"}]
        ),
        ToolMessage("Successfully transferred", tool_call_id="1"),
        AIMessage(ANSWER, name="writer"),
        AIMessage("coherence: 1", name="critic"),
    ]
    await rating(model=model).as_agent("critic").ainvoke({"messages": said})
    shown = model.calls[0].prompt
    way = f"Human: {ASKED}\nAI: I shall ask.\nAI calls transfer_to_writer (call 1): {{}}\nResult of transfer"
    assert way in shown and ANSWER in shown and "coherence: 1" not in shown


IMAGE = {"type": "image_url", "image_url": {"url": "data:,"}}


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            [HumanMessage([ASKED, IMAGE]), AIMessage(ANSWER)],
            "messages[0] holds an image (image_url)",
        ),
        (
            [HumanMessage(ASKED), AIMessage([ANSWER, IMAGE])],
            "messages[1] holds an image (image_url)",
        ),
        # An answer without a word is an answer, too: the one before it is not judged in its place.
        (
            [
                HumanMessage(ASKED),
                AIMessage(ANSWER),
                AIMessage("4", name="judge"),
                AIMessage([IMAGE]),
            ],
            "messages[3] holds an image (image_url)",
        ),
    ],
)
async def test_a_judge_among_agents_says_what_it_would_not_see(said: list[Any], words: str) -> None:
    model = ScriptedModel(script=SCORE_4)
    agent = rating(model=model).as_agent()
    for result in (agent.invoke({"messages": said}), await agent.ainvoke({"messages": said})):
        assert result["messages"][-1].content.startswith(f"Nothing was judged: {words}")
        assert result["verdict"] is None
    assert not model.calls


@pytest.mark.parametrize(("said", "words"), [
    ([("user", ASKED)], "the conversation has no answer to judge"),
    ([("ai", ANSWER)], "nothing is asked in the conversation"),
    ([("user", " "), ("ai", ANSWER)], "source is empty"),
])  # fmt: skip
def test_nothing_to_judge_is_said_and_no_score_given(said: list[Any], words: str) -> None:
    result = rating().as_agent().invoke({"messages": said})
    assert result["messages"][-1].content.startswith(f"Nothing was judged: {words}")
    assert result.get("verdict") is None
    assert "verdict" not in result["messages"][-1].additional_kwargs


def test_the_last_two_answers_are_compared() -> None:
    agent = comparing().as_agent()
    said = [HumanMessage("Why?"), AIMessage("Because.", name="ann"), AIMessage("So.", name="bob")]
    result = agent.invoke({"messages": said})
    assert result["messages"][-1].content.startswith("Answer 1 is better")
    assert result["verdict"]["winner"] == "1"
    assert "fewer than 2 answers" in agent.invoke({"messages": said[:2]})["messages"][-1].content


def test_a_second_judgement_on_a_thread_is_of_the_new_answer() -> None:
    agent = rating().as_agent()
    agent.checkpointer = InMemorySaver()
    assert agent.invoke(SAID, THREAD)["verdict"]["score"] == 4
    again = agent.invoke(
        {"messages": [("user", "And now?"), ("ai", "It still lies there.")]}, THREAD
    )
    assert len(said_by(again["messages"], "judge")) == 2


async def test_a_swarm_hands_over_to_a_judge_and_goes_on_with_the_writer() -> None:
    swarm = pytest.importorskip("langgraph_swarm")
    hand_over = swarm.create_handoff_tool(agent_name="judge", description="Have the answer judged.")
    lines = [ANSWER, calls("transfer_to_judge"), "It got a 4, so I leave it."]
    writer = create_agent(speaker(*lines), [hand_over], name="writer")
    builder = swarm.create_swarm(
        [writer, rating().as_agent(then="writer")], default_active_agent="writer"
    )
    team = builder.compile(checkpointer=InMemorySaver())
    await team.ainvoke({"messages": [("user", ASKED)]}, THREAD)
    result = await team.ainvoke({"messages": [("user", "Have it judged.")]}, THREAD)
    (verdict,) = said_by(result["messages"], "judge")
    assert verdict.additional_kwargs["verdict"]["score"] == 4.0
    assert result["messages"][-1].content == "It got a 4, so I leave it."
    assert result["active_agent"] == "writer"


# langgraph-supervisor still makes its agent as LangGraph 0 did.
@pytest.mark.filterwarnings("ignore:create_react_agent has been moved")
def test_a_supervisor_hands_over_to_a_judge_and_pauses_where_it_waits_for_a_person() -> None:
    supervisor = pytest.importorskip("langgraph_supervisor")
    script = {"scorer": ["Score: 4"] * 9, "critic": ["Too high."] * 9}
    judge = rating(script=script, n=1, on_unresolved="human")
    writer = create_agent(speaker(ANSWER), [], name="writer")
    leader = speaker(calls("transfer_to_writer"), calls("transfer_to_judge"), "Done.")
    team = supervisor.create_supervisor([writer, judge.as_agent()], model=leader)
    graph = team.compile(checkpointer=InMemorySaver())
    assert graph.invoke(QUESTION, THREAD)["__interrupt__"]
    said = graph.invoke(Command(resume={"score": 2, "reason": "It is too short."}), THREAD)[
        "messages"
    ]
    (verdict,) = [one for one in said_by(said, "judge") if "verdict" in one.additional_kwargs]
    assert (verdict.additional_kwargs["verdict"]["score"], said[-1].content) == (2.0, "Done.")


class Draft(TypedDict, total=False):
    """The state of a graph that has a judge in it."""

    article: str
    draft: str
    grade: float
    why: str


def drafting(**keys: Any) -> Any:
    judge = rating("fluency")
    builder: Any = StateGraph(Draft)
    builder.add_node("judge", judge.node(**{"source": "article", "candidate": "draft", **keys}))
    builder.add_edge(START, "judge")
    return builder.compile(checkpointer=InMemorySaver())


DRAFTED = {"article": "It rained.", "draft": "It rained."}


@pytest.mark.parametrize("is_async", [False, True])
def test_a_judge_is_a_node_that_maps_keys(is_async: bool) -> None:
    after = goes_on(drafting(score="grade", explanation="why"), DRAFTED, is_async)
    assert after == {**DRAFTED, "grade": 4.0, "why": "It holds together.\nScore: 4"}


def test_a_judge_that_is_a_node_shows_its_own_steps_and_checkpoints() -> None:
    graph = drafting(score="grade")
    updates = graph.stream(DRAFTED, THREAD, subgraphs=True, stream_mode="updates")
    assert [next(iter(part)) for path, part in updates if path][:3] == [
        "prepare",
        "commander",
        "scorer",
    ]
    assert "judge" in dict(graph.get_subgraphs())
    assert any("critic" in node for node in graph.get_graph(xray=True).nodes)


@pytest.mark.parametrize("subgraphs", [False, True])
def test_each_turn_of_a_judge_in_a_graph_is_streamed_once(subgraphs: bool) -> None:
    for graph, given in ((drafting(score="grade"), DRAFTED), (rating().as_agent(), SAID)):
        events = graph.stream(given, THREAD, stream_mode="custom", subgraphs=subgraphs)
        heard = [event[-1] if subgraphs else event for event in events]
        assert [one["turn"]["id"] for one in heard] == [
            "commander:1",
            "scorer:1",
            "commander:2",
            "critic:1",
        ]


def test_a_judge_that_is_a_node_names_the_key_that_is_not_there() -> None:
    judge = create_judge("debate", aspect="consistency")
    named: Any = {"candidate": "draft", "score": "grade"}
    for changed, told in (
        (
            {"candidat": "draft"},
            "candidat: the judge takes source, candidate, context, fact, reference and gives",
        ),
        ({"source": "draft", "score": None}, "name a key for what the judge gives"),
        ({}, "name a key of the state for source"),
        ({"candidate": "drafft"}, "candidate: Draft has no 'drafft', .* did you mean draft"),
        ({"score": "grades"}, "score: Draft has no 'grades'"),
    ):
        keys = {name: key for name, key in {**named, **changed}.items() if key}
        with pytest.raises(UsageError, match=told):
            judge.node(Draft, **keys)
    with pytest.raises(UsageError, match="source: there is no 'article' in the state, only draft"):
        drafting(score="grade").invoke({"draft": "It rained."}, THREAD)


def test_one_message_that_names_the_texts_is_judged() -> None:
    judge = rating().as_agent()
    handed = '```json\n{"source": "It rained.", "candidate": "It snowed."}\n```'
    assert judge.invoke({"messages": [("user", handed)]})["verdict"]["score"] == 4.0
    unknown = '{"source": "It rained.", "candidate": "It snowed.", "note": "for you"}'
    assert (
        "unknown argument 'note'"
        in judge.invoke({"messages": [("user", unknown)]})["messages"][-1].text
    )
    for said in ("Please judge: it rained.", '{"source": "It rained."}'):
        after = judge.invoke({"messages": [("user", said)]})
        assert after["verdict"] is None
        assert (
            "one JSON object, and nothing else, with the texts as source"
            in after["messages"][-1].text
        )
    two = comparing().as_agent()
    handed = '{"question": "Why?", "answer_1": "The tide.", "answer_2": "No idea."}'
    assert two.invoke({"messages": [("user", handed)]})["verdict"]["winner"] == "1"
