"""Define the input, output and state that all protocols' graphs have, and the reducers of the state.

Everything in the state is plain JSON: checkpointers warn about pydantic objects and may refuse them.
"""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from .tasks import CompareTask, ScoreTask
from .transcript import Score, Turn, append
from .verdict import Winner


def as_json(_before: Any, new: Any) -> Any:
    """Reduce to the new value, with a pydantic object turned into plain JSON."""
    return new.model_dump(mode="json") if isinstance(new, BaseModel) else new


def merge(before: dict[str, Any] | None, new: dict[str, Any] | None) -> dict[str, Any]:
    """Reduce to a dict of both arguments' entries, the new ones winning; neither argument is changed.

    >>> merge({"a": 1}, {"b": 2})
    {'a': 1, 'b': 2}
    """
    return {**(before or {}), **(new or {})}


class JudgeInput(TypedDict):
    """The input of every protocol."""

    task: Annotated[
        ScoreTask | CompareTask,
        Field(discriminator="kind", description="The text to be rated, or the two answers to be compared."),
    ]


class JudgeOutput(TypedDict):
    """The output of every protocol.

    It is narrow on purpose: a sub-graph that returned a key with a reducer which its parent shares would double the
    parent's history.
    """

    verdict: Annotated[dict[str, Any], Field(description="The outcome; see `Verdict`.")]
    transcript: Annotated[list[Turn], Field(description="Every agent's turns, in order.")]


class JudgeState(TypedDict):
    """The state of a protocol's graph while it judges.

    ``scores`` holds the score (or pair) after each round. ``final`` is set where a tie-breaker or a human overrules
    the last of them, ``winner`` where something other than the higher score decides a comparison. ``details`` holds
    what only this protocol has. ``prepare`` sets all keys but ``verdict``, which ``conclude`` makes of the others.
    """

    task: Annotated[dict[str, Any], as_json]
    transcript: Annotated[list[Turn], append]
    scores: Annotated[list[Score], append]
    round: int
    warnings: Annotated[list[str], append]
    details: Annotated[dict[str, Any], merge]
    final: NotRequired[Score | None]
    winner: NotRequired[Winner | None]
    verdict: NotRequired[dict[str, Any]]
