"""A call whose graph is cancelled is ended, or its reply is kept for the graph when it is resumed.

In plain LangGraph a call in a thread is lost, and paid for twice, and so is what a node got before
it ended early.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest
from jurygraph.graphs import debate, ensemble, geval, single
from jurygraph.nodes.models.connections import for_running_loop
from jurygraph.nodes.models.send import NoReplyInTimeError, with_timeout
from jurygraph.state import ModelCallError, ReplyError
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from pydantic import PrivateAttr
from typing_extensions import TypedDict

from .loopback import Failure, Hang, Provider
from .loopback_debate import OPENAI, SCORE_TASK
from .processes import HANG_GUARD, reached

GIVEN: Any = {"task": SCORE_TASK}
THREAD: Any = {"configurable": {"thread_id": "a"}}


class Held(BaseChatModel):
    """Replies when it is let: a call in a thread, which cannot be ended."""

    first_let: int = 0
    _let: threading.Event = PrivateAttr(default_factory=threading.Event)
    _begun: list[str] = PrivateAttr(default_factory=list)
    _ended: list[str] = PrivateAttr(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "held"

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        self._begun.append(str(messages[-1].content))
        if len(self._begun) > self.first_let:
            self._let.wait(HANG_GUARD)
        self._ended.append(str(messages[-1].content))
        return ChatResult(generations=[ChatGeneration(message=AIMessage("It is poor.\nScore: 3"))])


class HeldAsync(Held):
    """The same with an async call; a caller's own model is called in sync, free of loops."""

    async def _agenerate(self, *_: Any, **__: Any) -> ChatResult:
        raise AssertionError("The async call is made.")


class State(TypedDict, total=False):
    """Of a graph round a judge."""

    said: str
    task: dict[str, Any]
    verdict: dict[str, Any]


async def cancelled(work: Coroutine[Any, Any, Any], holds: Callable[[], bool]) -> None:
    running = asyncio.create_task(work)
    await reached(holds, running)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


@pytest.mark.parametrize("kind", [Held, HeldAsync])
@pytest.mark.parametrize("call", [1, 2])
@pytest.mark.parametrize("resumed", ["at once", "later"])
async def test_a_call_is_kept_for_the_resumed_debate(
    kind: type[Held], call: int, resumed: str
) -> None:
    model = kind(first_let=call - 1)
    graph = debate.build(models=model, n=1, structured="off").compile(checkpointer=InMemorySaver())
    await cancelled(graph.ainvoke(GIVEN, THREAD), lambda: len(model._begun) == call)
    if resumed == "later":
        model._let.set()
        await reached(lambda: len(model._ended) == call)
    going_on = asyncio.ensure_future(graph.ainvoke(None, THREAD))
    await asyncio.sleep(0.05)
    model._let.set()
    verdict = (await going_on)["verdict"]
    assert len(model._begun) == verdict["calls"] == 3


async def test_of_agents_side_by_side_nobody_is_asked_twice() -> None:
    # One of three has replied; their prompts are the same but for their roles.
    model = Held(first_let=1)
    graph = ensemble.build(models=model, referees=3, roles="same", structured="off").compile(
        checkpointer=InMemorySaver()
    )

    def one_has_spoken() -> bool:
        # Stored by the checkpointer. A reply on its way there is requested again, as in plain
        # LangGraph.
        return len(model._begun) == 3 and any(task.result for task in graph.get_state(THREAD).tasks)

    await cancelled(graph.ainvoke(GIVEN, THREAD), one_has_spoken)
    model._let.set()
    assert (await graph.ainvoke(None, THREAD))["verdict"]["calls"] == 3
    assert len(model._begun) == 3


@pytest.mark.parametrize("how", ["a sibling fails", "the parent has no more time"])
async def test_a_graph_round_the_judge_that_gives_up_loses_no_call(how: str) -> None:
    model = Held(first_let=1)
    fails = how == "a sibling fails"

    async def sibling(_state: State) -> State:
        if fails:
            await reached(lambda: len(model._begun) == 2)
            raise ValueError("The sibling has failed.")
        return {"said": "nothing"}

    builder: Any = StateGraph(State)
    builder.add_node("judge", debate.build(models=model, n=1, structured="off").compile())
    if fails:
        builder.add_node("sibling", sibling)
        builder.add_edge(START, "sibling")
    builder.add_edge(START, "judge")
    graph = builder.compile(checkpointer=InMemorySaver())
    if fails:
        with pytest.raises(ValueError, match="The sibling has failed"):
            await graph.ainvoke(GIVEN, THREAD)
    else:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await graph.ainvoke(GIVEN, THREAD)
    model._let.set()
    fails = False
    verdict = (await graph.ainvoke(None, THREAD))["verdict"]
    assert len(model._begun) == verdict["calls"] == 3


async def test_a_call_that_took_too_long_is_sent_again() -> None:
    model = Held()
    chat = for_running_loop(model)
    call: Any = SimpleNamespace(model=SimpleNamespace(label="held"))

    async def attempt(_call: Any) -> Any:
        return await chat.agenerate([[AIMessage("Score it.")]])

    for _ in range(2):
        with pytest.raises(NoReplyInTimeError):
            await with_timeout(attempt, 0.05)(call)
    assert len(model._begun) == 2
    model._let.set()


# Nodes of several calls


class Replies(BaseCallbackHandler):
    """Counts replies that have arrived."""

    number = 0

    def on_llm_end(self, *_: Any, **__: Any) -> None:
        self.number += 1


@pytest.mark.parametrize("end", ["cancelled", "failed"])
async def test_what_a_node_got_before_it_ended_is_there_on_resuming(
    provider: Provider, end: str
) -> None:
    settings: Any = {
        "models": {"*": OPENAI},
        "samples": 4,
        "weighting": "sampling",
        "steps": ["Read."],
    }
    graph = geval.build(**settings).compile(checkpointer=InMemorySaver())
    # All four are asked for in one request first.
    last = Hang(3600) if end == "cancelled" else Failure(400, "No.")
    provider.play(*[Failure(400, "n must be 1")] * 4, *["4"] * 3, last)
    replies = Replies()
    config: Any = {**THREAD, "callbacks": [replies]}
    running = asyncio.create_task(graph.ainvoke(GIVEN, config))
    await reached(lambda: len(provider.requests) == 5, running)
    if end == "cancelled":
        await reached(lambda: replies.number == 3, running)
        await asyncio.sleep(0.2)
        running.cancel()
    with pytest.raises(asyncio.CancelledError if end == "cancelled" else ModelCallError):
        await running
    provider.play(by=lambda _: "2")
    verdict = (await graph.ainvoke(None, THREAD))["verdict"]
    assert (verdict["calls"], verdict["score"], len(provider.requests)) == (4, 3.5, 6)
    # Each is used once: another run on the thread makes new calls.
    await graph.ainvoke(GIVEN, THREAD)
    assert len(provider.requests) == 10


async def test_an_unreadable_reply_is_kept_only_if_a_repair_was_asked_for(
    provider: Provider,
) -> None:
    graph = single.build(models={"*": OPENAI}, structured="off").compile(
        checkpointer=InMemorySaver()
    )
    provider.play("No idea.", Hang(3600))
    await cancelled(graph.ainvoke(GIVEN, THREAD), lambda: len(provider.requests) == 2)
    provider.play("None either.")
    with pytest.raises(ReplyError):
        await graph.ainvoke(None, THREAD)
    # Only the repair was repeated, since the first reply was stored; both could not be read.
    assert len(provider.requests) == 3
    provider.play("Score: 4")
    assert (await graph.ainvoke(None, THREAD))["verdict"]["calls"] == 1
    assert len(provider.requests) == 4
