"""The typed state every protocol's graph has in common: plain JSON, so that any checkpointer can keep it."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from .tasks import CompareTask, ScoreTask
from .transcript import Score, Turn, append
from .verdict import Winner


def as_json(_before: Any, new: Any) -> Any:
    """Reducer: the new value, a pydantic object turned into plain JSON."""
    return new.model_dump(mode="json") if isinstance(new, BaseModel) else new


def merge(before: dict[str, Any] | None, new: dict[str, Any] | None) -> dict[str, Any]:
    """Reducer: the new entries over those before, neither argument changed.

    >>> merge({"a": 1}, {"b": 2})
    {'a': 1, 'b': 2}
    """
    return {**(before or {}), **(new or {})}


class JudgeInput(TypedDict):
    """What every protocol takes."""

    task: Annotated[
        ScoreTask | CompareTask,
        Field(discriminator="kind", description="The text to be rated, or the two answers to be compared."),
    ]


class JudgeOutput(TypedDict):
    """What every protocol gives; narrow on purpose, so that a parent graph's own keys stay its own."""

    verdict: Annotated[dict[str, Any], Field(description="The outcome; see `Verdict`.")]
    transcript: Annotated[list[Turn], Field(description="Every agent's turns, in order.")]


class JudgeState(TypedDict):
    """What a protocol remembers while it judges.

    ``scores`` gathers the score after each round; ``final`` is set where somebody overrules the last of them,
    ``winner`` where a comparison is not won by the higher score alone, ``details`` holds what is particular
    to the protocol.
    """

    task: Annotated[dict[str, Any], as_json]
    transcript: Annotated[list[Turn], append]
    scores: Annotated[list[Score], append]
    round: int
    warnings: Annotated[list[str], append]
    details: Annotated[dict[str, Any], merge]
    stop_reason: NotRequired[str | None]
    final: NotRequired[Score | None]
    winner: NotRequired[Winner | None]
    verdict: NotRequired[dict[str, Any]]
