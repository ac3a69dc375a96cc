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
GIVEN: Any = {"task": SCORE_TASK}


class State(TypedDict):
    task: dict[str, Any]
    verdict: dict[str, Any]


def judge_with_retry() -> Any:
    """A LangGraph graph of the caller's with a judge as a node, and LangGraph's own retries around it."""
    parent = StateGraph(State)
    judge = single.build(models={"*": OPENAI}).compile()
    parent.add_node("judge", judge, retry_policy=RetryPolicy(initial_interval=0.001, jitter=False))
    parent.add_edge(START, "judge")
    parent.add_edge("judge", END)
    return parent.compile()


@pytest.mark.usefixtures("one_attempt")
@pytest.mark.parametrize("failure", [Failure(503, "Overloaded."), Failure(429, "Slow down.")])
async def test_langgraph_retries_what_may_pass(provider: Provider, failure: Failure) -> None:
    provider.play(failure, GOOD, failure, GOOD)
    for result in (judge_with_retry().invoke(GIVEN), await judge_with_retry().ainvoke(GIVEN)):
        assert result["verdict"]["score"] == 4
    assert len(provider.requests) == 4


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_langgraph_does_not_retry_what_will_not_pass(provider: Provider, status: int) -> None:
    provider.play(Failure(status, "No."), GOOD)
    with pytest.raises(ModelCallError):
        judge_with_retry().invoke(GIVEN)
    assert len(provider.requests) == 1


def test_langgraph_does_not_retry_an_unreadable_reply(provider: Provider) -> None:
    provider.play(*["I would rather not say."] * 9)
    with pytest.raises(ReplyError):
        judge_with_retry().invoke(GIVEN)
    assert len(provider.requests) == 2  # the second is the repair request


UNREADABLE = ReplyError("It states no score.", "I would rather not say.", "missing")
UNREADABLE.agent, UNREADABLE.round = "critic", 2
ERRORS = [
    UsageError("no such role"),
    DataError("items.jsonl, line 3"),
    UNREADABLE,
    ModelCallError("the key was refused"),
    TransientCallError("overloaded", rate_limited=True, retry_after=2.5),
    StoppedError("the budget is spent"),
    UnsupportedParameterError("no logprobs here", "logprobs"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_errors_can_be_pickled_and_copied(error: JurygraphError, again: Any) -> None:
    copied = again(error)
    assert type(copied) is type(error)
    assert (str(copied), vars(copied)) == (str(error), vars(error))
