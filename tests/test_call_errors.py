"""Errors of model calls: what LangGraph retries by default, and that errors survive pickling and copying."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from jurygraph.graphs import single
from jurygraph.nodes.models.call import UnsupportedParameterError
from jurygraph.state import DataError, JurygraphError, ModelCallError, ReplyError, StoppedError, UsageError
from jurygraph.state.errors import TransientCallError
from langgraph.graph import END, START, StateGraph
from langgraph.types import RetryPolicy
from typing_extensions import TypedDict

from .loopback import Failure, Provider
from .loopback_debate import OPENAI, SCORE_TASK

GOOD: dict[str, Any] = {"reasoning": "All claims hold.", "score": 4}
RETRY = RetryPolicy(initial_interval=0.001, jitter=False)


class State(TypedDict):
    task: dict[str, Any]
    verdict: dict[str, Any]


def judge_with_retry() -> Any:
    """A LangGraph graph of the caller's with a judge as a node, and LangGraph's own retries around it."""
    parent = StateGraph(State)
    judge = single.build(models={"*": OPENAI}).compile()
    parent.add_node("judge", judge, retry_policy=RETRY)
    parent.add_edge(START, "judge")
    parent.add_edge("judge", END)
    return parent.compile()


@pytest.mark.usefixtures("one_attempt")
@pytest.mark.parametrize("failure", [Failure(503, "Overloaded."), Failure(429, "Slow down.")])
def test_langgraph_retries_what_may_pass(provider: Provider, failure: Failure) -> None:
    provider.play(failure, GOOD)
    assert judge_with_retry().invoke({"task": SCORE_TASK})["verdict"]["score"] == 4
    assert len(provider.requests) == 2


@pytest.mark.usefixtures("one_attempt")
async def test_langgraph_retries_what_may_pass_in_async_code(provider: Provider) -> None:
    provider.play(Failure(503, "Overloaded."), GOOD)
    assert (await judge_with_retry().ainvoke({"task": SCORE_TASK}))["verdict"]["score"] == 4


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_langgraph_does_not_retry_what_will_not_pass(provider: Provider, status: int) -> None:
    provider.play(Failure(status, "No."), GOOD)
    with pytest.raises(ModelCallError):
        judge_with_retry().invoke({"task": SCORE_TASK})
    assert len(provider.requests) == 1


def test_langgraph_does_not_retry_an_unreadable_reply(provider: Provider) -> None:
    provider.play(*["I would rather not say."] * 9)
    with pytest.raises(ReplyError):
        judge_with_retry().invoke({"task": SCORE_TASK})
    assert len(provider.requests) == 2  # the second is the repair request


def unreadable() -> ReplyError:
    error = ReplyError("It states no score.", "I would rather not say.", "missing")
    error.agent, error.round = "critic", 2
    return error


ERRORS = [
    UsageError("no such role"),
    DataError("items.jsonl, line 3"),
    unreadable(),
    ModelCallError("the key was refused"),
    TransientCallError("overloaded", rate_limited=True, retry_after=2.5),
    StoppedError("the budget is spent"),
    UnsupportedParameterError("no logprobs here", "logprobs"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_errors_can_be_pickled_and_copied(error: JurygraphError, again: Any) -> None:
    found = again(error)
    assert type(found) is type(error)
    assert (str(found), vars(found)) == (str(error), vars(error))
