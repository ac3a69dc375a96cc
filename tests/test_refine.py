"""A text refined by a judge's objections."""

from collections.abc import Sequence
from typing import Any

import pytest
from jurygraph.graphs import debate, refine, repeated, review, single
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.state import JudgeState, ReplyError, UsageError
from jurygraph.state.aspects import find_aspect
from langchain.agents import create_agent
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command
from typing_extensions import TypedDict

from .loopback import Provider, Request, Text
from .sample_data import THREAD, goes_on

SOURCE = "The bridge opened in 1932, after eight years of work."
TASK = {"source": SOURCE, "aspect": "consistency"}
FALSE = "Forty cooks were never seen near Oslo."
VERSIONS = (FALSE, "The bridge opened with forty cooks.", SOURCE)


class Writer:
    """Writes the given versions one after the other, and keeps what it was given."""

    def __init__(self, versions: Sequence[str] = VERSIONS) -> None:
        self.given: list[dict[str, Any]] = []
        self.versions = versions

    def __call__(self, given: dict[str, Any]) -> str:
        self.given.append(given)
        return self.versions[len(self.given) - 1]


def scored(*scores: Any) -> Any:
    """A judge that gives these scores one after the other; an exception is raised."""
    left = iter(scores)

    def judge(state: JudgeState) -> dict[str, Any]:
        if isinstance(score := next(left), Exception):
            raise score
        outcome: dict[str, Any] = single.graph.invoke({"task": state["task"]})
        outcome["verdict"] |= {"score": score, "explanation": f"Worth {score}."}
        return outcome

    return StateGraph(JudgeState).add_node("judge", judge).add_edge(START, "judge").compile()


def test_objections_lead_to_a_better_text() -> None:
    writer = Writer()
    outcome = refine(writer, debate.build(n=1), until=4.5, tries=5).compile().invoke({"task": TASK})
    scores = [one["verdict"]["score"] for one in outcome["tries"]]
    assert (outcome["candidate"], outcome["ended"], outcome["error"]) == (
        SOURCE,
        "good_enough",
        None,
    )
    assert scores[-1] == max(scores) >= 4.5 > max(scores[:-1])
    told = outcome["verdict"]["details"]["refine"]
    assert told == {"try": 3, "tries": 3, "until": 4.5, "scores": scores, "ended": "good_enough"}
    critic = next(turn for turn in outcome["transcript"] if turn["id"] == "try_1/critic:1")
    first, second, third = writer.given
    assert (first["objections"], first["candidate"], "candidate" in first["task"]) == (
        "",
        None,
        False,
    )
    assert critic["content"] in second["objections"]
    assert outcome["tries"][0]["verdict"]["explanation"].strip() in second["objections"]
    assert critic["content"] not in third["objections"], "only what was said of the last version"
    assert [message.type for message in second["messages"]] == ["system", "human", "ai", "human"]
    assert outcome["verdict"]["calls"] == sum(turn["calls"] for turn in outcome["transcript"])
    assert outcome["verdict"]["explained_by"] in {turn["id"] for turn in outcome["transcript"]}


@pytest.mark.parametrize(("scores", "best", "ended"), [
    ((2, 3, 1), 2, "out_of_tries"), ((2, 2, 2), 3, "out_of_tries"), ((4,), 1, "good_enough"),
    ((1, 4), 2, "good_enough"), ((3, ReplyError("Nothing.", "?")), 1, "judge_failed"),
])  # fmt: skip
@pytest.mark.parametrize("is_async", [False, True])
def test_the_best_try_is_returned(
    is_async: bool, scores: tuple[Any, ...], best: int, ended: str
) -> None:
    graph = refine(Writer(), scored(*scores)).compile()
    outcome = goes_on(graph, {"task": TASK}, is_async)
    assert (outcome["ended"], len(outcome["tries"])) == (ended, len(scores))
    assert outcome["candidate"] == VERSIONS[best - 1]
    assert outcome["verdict"]["score"] == scores[best - 1]
    assert outcome["verdict"]["details"]["refine"]["try"] == best


def test_a_judge_that_fails_at_once_leaves_the_text_and_the_error() -> None:
    broken = single.build(model=ScriptedModel(script={"scorer": ["No.", "No."]}))
    outcome = refine(Writer(), broken).compile().invoke({"task": TASK})
    assert (outcome["candidate"], outcome["verdict"], outcome["ended"]) == (
        FALSE,
        None,
        "judge_failed",
    )
    assert "No." in outcome["error"]
    assert [turn["agent"] for turn in outcome["transcript"]] == ["writer"]


def test_a_writer_that_fails_leaves_what_was_judged(provider: Provider) -> None:
    provider.play(Text(FALSE), *[Text("", refusal="No more.", finish="stop")] * 2)
    graph = refine("openai:gpt-4o-mini", "single").compile()
    outcome = graph.invoke({"task": TASK})
    assert (outcome["ended"], outcome["candidate"], len(outcome["tries"])) == (
        "writer_failed",
        FALSE,
        1,
    )
    assert "refusal" in outcome["error"]
    provider.play(*[Text("", refusal="Never.")] * 2)
    with pytest.raises(ReplyError, match=r"writer, round 0.*refusal"):
        graph.invoke({"task": TASK})


def test_a_model_is_shown_source_criteria_and_objections(provider: Provider) -> None:
    def by(request: Request) -> Text:
        return Text(SOURCE if "objections" in request.user else FALSE)

    provider.play(by=by)
    outcome = refine("openai:gpt-4o-mini", "debate").compile().invoke({"task": TASK})
    first, second = provider.requests
    assert (outcome["ended"], outcome["candidate"]) == ("good_enough", SOURCE)
    assert SOURCE in first.user
    assert f"by these criteria: {find_aspect('consistency').criteria}" in first.user
    assert "<<<last version" in second.user
    assert outcome["tries"][0]["verdict"]["explanation"][:40] in second.user
    writer = [turn for turn in outcome["transcript"] if turn["role"] == "writer"]
    assert [turn["calls"] for turn in writer] == [1, 1]
    assert first.parameters["max_completion_tokens"] == 2048


def texts_by_messages() -> Any:
    def answer(state: MessagesState) -> dict[str, Any]:
        asked = sum(message.type == "human" for message in state["messages"])
        return {"messages": [AIMessage(VERSIONS[asked - 1])]}

    return StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")


async def later(given: dict[str, Any]) -> str:
    return f"On {given['task']['aspect']['name']}."


@pytest.mark.parametrize(("writer", "text"), [
    (FakeListChatModel(responses=["One.", "Two."]), "One."),
    (FakeListChatModel(responses=["One.", "Two."]).with_retry(), "One."), (later, "On consistency."),
    (RunnableLambda(later), "On consistency."),
    (RunnableLambda(lambda given: {"candidate": "A dict."}), "A dict."),
    (RunnableLambda(lambda given: AIMessage("A message.")), "A message."), (texts_by_messages(), FALSE),
    (texts_by_messages().compile(), FALSE),
    (create_agent(FakeListChatModel(responses=["An agent."])), "An agent."),
], ids=["model", "with_retry", "function", "text", "dict", "message", "builder", "graph", "agent"])  # fmt: skip
async def test_whatever_writes_a_text_is_a_writer(writer: Any, text: str) -> None:
    graph: Any = refine(writer, scored(5)).compile()
    assert (await graph.ainvoke({"task": TASK}))["candidate"] == text


def test_a_draft_is_the_first_try() -> None:
    writer = Writer([SOURCE])
    outcome = refine(writer, "debate").compile().invoke({"task": {**TASK, "candidate": FALSE}})
    assert [one["candidate"] for one in outcome["tries"]] == [FALSE, SOURCE]
    assert writer.given[0]["candidate"] == FALSE


def test_it_is_a_sub_graph_under_a_checkpointer_and_streamed() -> None:
    class Desk(TypedDict):
        task: dict[str, Any]
        candidate: str
        verdict: dict[str, Any]

    inside = refine(Writer(VERSIONS * 2), repeated(debate.build(n=1), k=2)).compile()
    desk = StateGraph(Desk).add_node("refine", inside).add_edge(START, "refine")
    graph: Any = desk.compile(checkpointer=InMemorySaver())
    seen = [
        event["turn"]["id"]
        for where, event in graph.stream(
            {"task": TASK}, THREAD, stream_mode="custom", subgraphs=True
        )
        if len(where) == 1
    ]
    assert seen[0] == "writer:1"
    assert {"try_1/repeat_0/critic:1", "try_3/repeat_1/scorer:1", "writer:3"} <= set(seen)
    assert graph.get_state(THREAD).values["candidate"] == SOURCE
    again = graph.invoke({"task": TASK}, THREAD)
    assert again["candidate"] == SOURCE, "an earlier run on the thread counts no more"


def test_a_person_in_the_judge_is_asked_and_nothing_is_written_twice() -> None:
    writer = Writer()
    graph = refine(writer, review(single.build(), when="always")).compile(
        checkpointer=InMemorySaver()
    )
    assert graph.invoke({"task": TASK}, THREAD)["__interrupt__"]
    paused = graph.invoke(Command(resume={"answer": 2, "reason": "No cooks."}), THREAD)
    assert "No cooks." in writer.given[1]["objections"]
    assert paused["__interrupt__"]
    outcome = graph.invoke(Command(resume={"answer": 5, "reason": "Fine."}), THREAD)
    assert (outcome["ended"], outcome["verdict"]["explanation"]) == ("good_enough", "Fine.")
    assert len(writer.given) == 2


def test_edges_bear_their_outcomes() -> None:
    drawn = refine(Writer(), "debate").compile().get_graph()
    edges = {(edge.source, edge.target): edge.data for edge in drawn.edges}
    assert edges["judge", "write"] == "objection"
    assert edges["judge", "conclude"] == "good_enough / out_of_tries / judge_failed"
    assert edges["prepare", "judge"] == "draft_given"


@pytest.mark.parametrize(("task", "options", "told"), [
    ({**TASK, "kind": "compare"}, {}, "two answers"), ({**TASK, "aspect": "nope"}, {}, "unknown aspect"),
    ({"aspect": "consistency"}, {}, "source is missing"), ({**TASK, "candidate": " "}, {}, "candidate"),
    (TASK, {"until": 6}, "rated from 1 to 5"), (TASK, {"until": 1}, "rated from 1 to 5"),
    (TASK, {"tries": 0}, "1 or more"), (TASK, {"judge": "nobody"}, "nobody"),
    (TASK, {"judge": "faireval"}, "score tasks"), (TASK, {"judge": 3}, "a judge must be"),
    (TASK, {"writer": 3}, "a writer must be"), (TASK, {"writer": "offline"}, "writes nothing"),
    (TASK, {"writer": lambda given: {"text": 3}}, "returned no text"),
    (TASK, {"writer": lambda given: "  "}, "returned no text"),
])  # fmt: skip
def test_mistakes_are_told(task: dict[str, Any], options: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        refine(**{"writer": Writer(), "judge": "debate", **options}).compile().invoke(
            {"task": task}
        )


IMAGE = {"type": "image", "url": "data:,"}
CALLS = AIMessage(SOURCE, tool_calls=[{"name": "search", "args": {}, "id": "1"}])


@pytest.mark.parametrize(
    ("message", "told"),
    [(AIMessage([SOURCE, IMAGE]), "holds an image"), (CALLS, "has no text yet .AI calls search")],
)
def test_a_writer_that_returns_more_than_text_is_refused(message: AIMessage, told: str) -> None:
    writer: Any = lambda given: {"messages": [message]}  # noqa: E731
    with pytest.raises(UsageError, match=f"the writer's message {told}"):
        refine(writer, "debate").compile().invoke({"task": TASK})
