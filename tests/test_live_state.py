"""Test each protocol's graph while it runs: its visible state, and edits of it."""

import asyncio
import json
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
from jurygraph.graphs import debate, more, repeated, samre
from jurygraph.graphs.engine._langgraph import has_short_steps
from jurygraph.graphs.engine.judge_graph import SideBySide
from jurygraph.graphs.engine.registry import built, find_protocol
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.nodes.runtime import bound_judge
from jurygraph.state import UsageError
from jurygraph.state.graph_state import JudgeState
from jurygraph.state.settings import DebateSettings
from jurygraph.testing.scripted_judges import objecting_reply
from langchain_core.callbacks import AsyncCallbackHandler
from langgraph._internal._runnable import RunnableSeq
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.pregel._read import ChannelRead
from pydantic import BaseModel, Field

from .loopback import Provider, Request
from .sample_data import TASKS
from .test_given_graphs import VERDICT

TEXT = {**TASKS["score"], "source": "It opened in 1932.", "candidate": "In 1923 it fell."}


def thread(name: str = "t") -> Any:
    return {"configurable": {"thread_id": name}}


async def goes(graph: Any, given: Any, config: Any, is_async: bool) -> Any:
    return await graph.ainvoke(given, config) if is_async else graph.invoke(given, config)


def saved(name: str, **settings: Any) -> Any:
    return find_protocol(name).build(**settings).compile(checkpointer=InMemorySaver(), name=name)


def ids(turns: list[Any]) -> list[str]:
    return [turn["id"] for turn in turns]


def test_an_update_behind_a_node_that_is_not_there_or_without_a_task_is_refused() -> None:
    graph = saved("samre")
    edit = {"warnings": ["Edited."]}
    with pytest.raises(UsageError, match="this thread has no task yet"):
        graph.update_state(thread(), edit, as_node="prepare")
    graph.invoke({"task": TASKS["compare"]}, thread())
    with pytest.raises(Exception, match="jury"):
        graph.update_state(thread(), edit, as_node="jury")


def objecting(metadata: Any, prompt: str) -> Any:
    if metadata["form"] == "critique":
        return {"feedback": "Too high.", "no_issue": False}
    return {"reasoning": "So.", "score": 4 - metadata["round"]}


def test_the_critics_words_are_edited_and_the_debate_goes_on() -> None:
    model = ScriptedModel(script=objecting)
    graph = debate.build(models={"*": model}, n=2).compile(checkpointer=InMemorySaver())
    before = graph.invoke({"task": TASKS["score"]}, thread())["verdict"]
    then = next(
        state
        for state in graph.get_state_history(thread())
        if state.next == ("commander",) and ids(state.values["transcript"])[-1] == "critic:1"
    )
    edit = {"id": "critic:1", "content": "NO ISSUE", "value": True}
    forked = graph.update_state(then.config, {"transcript": [edit]}, as_node="critic")
    asked = len(model.calls)
    after = graph.invoke(None, forked)["verdict"]
    assert (before["stop_reason"], before["score"]) == ("max_rounds", 2.0)
    assert (after["stop_reason"], after["score"]) == ("no_issue", 4.0)
    assert len(model.calls) == asked


@pytest.mark.parametrize(("edit", "fault"), [
    ({"id": "scorer:1", "value": 9}, "scorer:1 cannot have the value 9: it takes a number from 1 to 5"),
    ({"id": "scorer:1", "value": "4"}, "it takes a number from 1 to 5"),
    ({"id": "critic:1", "value": 3}, "it takes true or false"),
    ({"id": "critic:7", "value": True}, "no turn has the id 'critic:7'; the ids are commander:1, sc"),
    ({"id": "critic:1", "contents": "So."}, "contents of the turn critic:1 cannot be edited"),
    ({"id": "critic:1", "round": "so"}, "round of the turn critic:1 cannot be edited"),
    ({"id": "critic:1", "content": None}, "the content of the turn critic:1 must be text, got None"),
    ("So.", "transcript takes a list of turns"),
])  # fmt: skip
def test_an_edit_that_cannot_be_is_refused(edit: Any, fault: str) -> None:
    graph = saved("debate", models={"*": ScriptedModel(script=objecting)}, n=1)
    graph.invoke({"task": TASKS["score"]}, thread())
    with pytest.raises(ValueError, match=fault):
        graph.update_state(
            thread(), {"transcript": edit if edit == "So." else [edit]}, as_node="critic"
        )


class Failing(ScriptedModel):
    """Answers all agents except those that fail the first time; all wait for the last one."""

    failing: tuple[str, ...] = ()
    asked: list[str] = Field(default_factory=list)

    async def _agenerate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Any:
        agent = run_manager.metadata["agent"]
        first = agent not in self.asked
        self.asked.append(agent)
        if first and agent in self.failing:
            raise RuntimeError(f"{agent} is indisposed")
        await asyncio.sleep(0.05)
        return await super()._agenerate(messages, stop, run_manager, **kwargs)


FAN_OUTS = [
    (samre, {"max_rounds": 1, "quorum": "all"}, "juror_3"), (samre, {"max_rounds": 1}, "advocate_1"),
    (more, {"quorum": "all"}, "advocate_2_2"), (more, {}, "aggregator_1"),
    (more, {"aggregate": "best"}, "judge_1_3"),
    (find_protocol("ensemble"), {"quorum": "all"}, "referee_2"),
    (find_protocol("chateval"), {"strategy": "simultaneous", "turns": 1, "quorum": "all"}, "referee_1"),
]  # fmt: skip


@pytest.mark.parametrize(("module", "settings", "agent"), FAN_OUTS)
@pytest.mark.parametrize("is_async", [False, True])
async def test_a_failed_agent_alone_is_asked(
    module: Any, settings: Any, agent: str, is_async: bool
) -> None:
    model = Failing(script=objecting_reply, failing=(agent,), asked=[])
    graph = module.build(models={"*": model}, **settings).compile(checkpointer=InMemorySaver())
    with pytest.raises(RuntimeError, match="indisposed"):
        await goes(graph, {"task": TASKS["compare"]}, thread(), is_async)
    told = Counter(model.asked)
    verdict = (await goes(graph, None, thread(), is_async))["verdict"]
    again = Counter(model.asked) - told
    orders = 2 if verdict["position_consistent"] is not None else 1
    assert told[agent] == orders
    # With two orders the agent failed at its first request, and answered in the other order.
    assert again[agent] == 1
    assert not {other for other in again if other != agent and told[other]}


def test_a_thread_goes_on_with_the_settings_that_it_was_begun_with() -> None:
    model = Failing(script=objecting_reply, failing=("juror_2",), asked=[])
    graph = samre.build(models={"*": model}, max_rounds=1, quorum="all").compile(
        checkpointer=InMemorySaver()
    )
    with pytest.raises(RuntimeError, match="indisposed"):
        graph.invoke({"task": TASKS["compare"]}, thread(), context={"jurors": 2})
    told = len(model.asked)
    with pytest.raises(UsageError, match="started with jurors=2, but resumed with jurors=4"):
        graph.invoke(None, thread(), context={"jurors": 4})
    assert len(model.asked) == told
    verdict = graph.invoke(None, thread())["verdict"]
    assert sum(verdict["details"]["votes"].values()) == 2


async def test_runs_at_the_same_time_keep_each_its_own_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also if there are more of them than the cache remembers."""
    monkeypatch.setattr(bound_judge, "RUNS_KEPT", 2)

    graph = debate.build(models={"*": Failing(script=objecting)}, n=3).compile(
        checkpointer=InMemorySaver()
    )
    contexts: list[Any] = [None, {"n": 1}, {"n": 2}, None, {"n": 1}, {"n": 2}]
    runs = [
        graph.ainvoke({"task": TASKS["score"]}, thread(str(number)), context=context)
        for number, context in enumerate(contexts)
    ]
    results = await asyncio.gather(*runs)
    assert [result["verdict"]["rounds"] for result in results] == [3, 1, 2, 3, 1, 2]


async def test_a_key_changed_meanwhile_is_used(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bound_judge, "KEY_CACHE_SECONDS", 0.0)

    def answer(request: Request) -> str:
        monkeypatch.setenv("OPENAI_API_KEY", f"key-{len(provider.requests)}")
        return (
            "NO ISSUE" if len(provider.requests) == 4 else "It is fine as it is, I think.\nScore: 4"
        )

    provider.play(by=answer)
    graph = debate.build(model="openai:gpt-4o-mini", structured="off").compile()
    await graph.ainvoke({"task": TASKS["score"]})
    keys = [request.headers["authorization"] for request in provider.requests]
    assert keys == ["Bearer test-key", "Bearer key-1", "Bearer key-2", "Bearer key-3"]


async def test_a_debate_that_goes_on_in_another_process_ends_as_it_was_begun() -> None:
    """The graph that goes on knows nothing of the run but its checkpoint."""
    saver = InMemorySaver()

    def graph(**settings: Any) -> Any:
        model = ScriptedModel(script=objecting)
        return debate.build(models={"*": model}, n=3).compile(checkpointer=saver, **settings)

    await graph(interrupt_after=["critic"]).ainvoke(
        {"task": TASKS["score"]}, thread(), context={"n": 2}
    )
    verdict = (await graph().ainvoke(None, thread()))["verdict"]
    assert (verdict["rounds"], verdict["score_by_round"]) == (2, [4, 3, 2])


def test_a_secret_in_an_address_is_not_kept_in_the_state() -> None:
    graph = saved("single")
    address = "openai:x?base_url=http://me:open-sesame@127.0.0.1:9/v1"
    config = thread()
    # Nobody answers there: what is looked at is the state that was begun.
    with pytest.raises(Exception, match=r"OPENAI_API_KEY|connection|Connection"):
        graph.invoke({"task": TASKS["score"]}, config, context={"models": {"*": address}})
    history = [*graph.get_state_history(config)]
    assert history
    assert "open-sesame" not in json.dumps([snapshot.values for snapshot in history])
    with pytest.raises(UsageError, match="resume it with the same context"):
        graph.invoke(None, config)
    # The context of a graph round judges.
    graph = built("repeated").compile(checkpointer=InMemorySaver(), interrupt_before=["judge"])
    secret = {
        "of": "single",
        "inner": {"models": {"*": "openai:m?base_url=http://me:pw@127.0.0.1:9/v1"}},
    }
    graph.invoke({"task": TEXT}, thread(), context=secret)
    assert "pw@" not in str(graph.get_state(thread()).metadata)
    with pytest.raises(UsageError, match="resume it with the same context"):
        graph.invoke(None, thread())
    # An edit asks no model, and needs no address.
    assert graph.update_state(thread(), {"task": TEXT})


def test_nobody_waits_for_a_thread_that_was_interrupted() -> None:
    runtime: Any = SimpleNamespace(execution_info=SimpleNamespace(checkpoint_id="step"))
    for error in (KeyboardInterrupt("first"), ValueError("alone")):
        with pytest.raises(type(error), match=str(error)), SideBySide(runtime):
            raise error


@pytest.mark.skipif(
    not has_short_steps(), reason="LangGraph's own steps serve observers in any case"
)
async def test_without_observers_nothing_is_done_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    class Names(AsyncCallbackHandler):
        def __init__(self) -> None:
            self.runs: Counter[str] = Counter()

        async def on_chain_start(self, *_: Any, name: str = "", **__: Any) -> None:
            self.runs[name] += 1

    def for_observers(*_: Any, **__: Any) -> Any:
        raise AssertionError(
            "LangGraph's own way was taken: what it keeps private is not as expected"
        )

    observed = debate.build(n=1).compile()
    names = Names()
    told = await observed.ainvoke({"task": TEXT}, {"callbacks": [names]})
    assert names.runs >= Counter(prepare=1, commander=3, scorer=2, critic=1, conclude=1)
    assert names.runs >= Counter(after_commander=3, after_scorer=2, after_critic=1)
    # These run a node with its writers, and copy the whole state for a router.
    monkeypatch.setattr(RunnableSeq, "ainvoke", for_observers)
    monkeypatch.setattr(ChannelRead, "do_read", for_observers)
    alone = await debate.build(n=1).compile().ainvoke({"task": TEXT})
    assert ids(alone["transcript"]) == ids(told["transcript"])


REPEATED: dict[str, Any] = {"k": 2, "of": "debate", "inner": {"n": 1}}


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("edited", [False, True])
@pytest.mark.parametrize(
    ("name", "context", "calls"),
    [("debate", {"n": 1, "persona": "weak"}, 3), ("repeated", REPEATED, 6)],
)
async def test_a_run_keeps_its_context_wherever_it_is_resumed(
    name: str, context: dict[str, Any], calls: int, edited: bool, is_async: bool
) -> None:
    graph = built(name).compile(checkpointer=InMemorySaver())
    assert graph.invoke({"task": TEXT}, thread(), context=context)["verdict"]["calls"] == calls
    *after, second, oldest = unfinished = [s for s in graph.get_state_history(thread()) if s.next]
    assert (second.next, oldest.next) == (("prepare",), ("__start__",))
    assert name == "debate" or [found.next[0] for found in after] == ["weigh", "judge"]
    for found in unfinished if name == "repeated" else (second, oldest):
        config = found.config
        edit = {"task": TEXT}
        if edited:
            config = (
                await graph.aupdate_state(config, edit)
                if is_async
                else graph.update_state(config, edit)
            )
        again = (await goes(graph, None, config, is_async))["verdict"]
        assert (again["calls"], again["details"].get("of", "debate")) == (calls, "debate"), (
            found.next
        )
    # A context at hand goes before.
    other = {"n": 2} if name == "debate" else {**context, "k": 3}
    assert graph.invoke(None, oldest.config, context=other)["verdict"]["calls"] > calls
    # Another run on the thread is another one, and so are its forks.
    usual = graph.invoke({"task": TEXT}, thread())["verdict"]["calls"]
    own = next(
        s for s in graph.get_state_history(thread()) if (s.metadata or {})["source"] == "input"
    )
    assert graph.invoke(None, own.config)["verdict"]["calls"] == usual > calls


async def test_a_wrong_setting_is_told_where_no_file_may_be_read() -> None:
    """As on the event loop of LangGraph's server."""
    blocking = pytest.importorskip("blockbuster").BlockBuster()
    blocking.activate()
    try:
        with pytest.raises(
            UsageError, match=r"rounds is not a setting of debate; did you mean n\?"
        ):
            DebateSettings(rounds=2)  # type: ignore[call-arg]
        schema: Any = debate.graph.get_context_jsonschema()
        assert schema["properties"]["n"]["description"]
    finally:
        blocking.deactivate()


class Handle(BaseModel):
    """The context of another graph, with a connection that is not JSON, and a private key."""

    connection: Any
    api_key: str


def test_the_context_of_somebody_elses_graph_is_not_written() -> None:
    def judge(_state: Any) -> Any:
        return {"verdict": {**VERDICT, "score_by_round": [2.0]}, "transcript": []}

    theirs: Any = StateGraph(JudgeState, context_schema=Handle)
    inside = theirs.add_node("judge", judge).add_edge(START, "judge").compile()
    graph = repeated(inside, k=2).compile(checkpointer=InMemorySaver())
    context = Handle(connection=object(), api_key="open-sesame")
    assert graph.invoke({"task": TEXT}, thread(), context=context)["verdict"]["score"] == 2.0
    assert "open-sesame" not in str([found.metadata for found in graph.get_state_history(thread())])
