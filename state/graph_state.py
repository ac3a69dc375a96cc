"""Define the output and the state that all protocols' graphs have, and the reducers of the state.

Everything in the state is plain JSON: checkpointers warn about pydantic objects and may refuse them.
"""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from pydantic import BaseModel, Field, WithJsonSchema
from typing_extensions import TypedDict

from .transcript import Score, Turn, append, merge_turns
from .verdict import Verdict


def as_json(_before: Any, new: Any) -> Any:
    """Reduce to the new value, with a pydantic object turned into plain JSON."""
    return new.model_dump(mode="json") if isinstance(new, BaseModel) else new


def merge(before: dict[str, Any] | None, new: dict[str, Any] | None) -> dict[str, Any]:
    """Reduce to a dict of both arguments' entries, the new ones winning; ``None`` empties it.

    >>> merge({"a": 1}, {"b": 2}), merge({"a": 1}, None)
    ({'a': 1, 'b': 2}, {})
    """
    return {} if new is None else {**(before or {}), **new}


def latest(before: int | None, new: int | None) -> int:
    """Reduce to the higher number, since several agents of a round may count it at once; ``None`` begins anew at 0.

    >>> latest(1, 2), latest(2, 1), latest(3, None)
    (2, 2, 0)
    """
    return 0 if new is None else max(before or 0, new)


class JudgeOutput(TypedDict):
    """The output of every protocol.

    It is narrow on purpose: a sub-graph that returned a key with a reducer which its parent shares would double the
    parent's history.
    """

    verdict: Annotated[dict[str, Any], WithJsonSchema(Verdict.model_json_schema())]
    transcript: Annotated[list[Turn], Field(description="Every agent's turns, in order.")]


class JudgeState(TypedDict):
    """The state of a protocol's graph while it judges.

    The transcript is what counts: ``scores`` (the score or pair after each round) and ``round`` follow from it, and are
    brought up to date before every node and behind it, so that an edited turn counts. ``orders`` are the orders
    in which the answers are shown: ``[1]`` as in the task, ``[1, 2]`` where a comparison is held in both. ``settings``
    are those that the run's context set: a thread that is resumed without a context goes on with them. ``details``
    holds what only this protocol has. ``prepare`` sets all keys; ``conclude`` makes ``verdict`` of the others.
    """

    task: Annotated[dict[str, Any], as_json]
    settings: NotRequired[dict[str, Any]]
    orders: list[int]
    transcript: Annotated[list[Turn], merge_turns]
    scores: list[Score]
    round: Annotated[int, latest]
    warnings: Annotated[list[str], append]
    details: Annotated[dict[str, Any], merge]
    verdict: NotRequired[dict[str, Any]]


class AgentState(JudgeState):
    """What an agent sees that is asked side by side with others: its name, and the state in its order of the answers.

    ``order`` is set where there are two.
    """

    agent: str
    order: NotRequired[int]
