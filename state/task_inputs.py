"""Define the inputs of the graphs: a score task, a compare task, or either, each with an example that runs."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any

from pydantic import Field, with_config
from typing_extensions import TypedDict

from .tasks import CompareTask, ScoreTask, TaskKind

EXAMPLES: dict[TaskKind, dict[str, Any]] = {
    "score": {
        "kind": "score",
        "source": "The bridge opened in 1932 after six years of work. It cost 4 million crowns.",
        "candidate": "The bridge opened in 1923 and cost 4 million crowns.",
        "aspect": "consistency",
    },
    "compare": {
        "kind": "compare",
        "question": "Why is the sky blue?",
        "answer_1": "Air scatters blue light more than red light, so blue reaches us from all sides.",
        "answer_2": "It mirrors the sea.",
    },
}
"""A task of each kind, which forms may offer; the offline judge, which nobody needs a key for, can judge it."""


def _shown(*kinds: TaskKind) -> Any:
    """Put inputs with the example tasks of these kinds into the schema."""
    return with_config({"json_schema_extra": {"examples": [{"task": EXAMPLES[kind]} for kind in kinds]}})


@_shown("score")
class ScoreInput(TypedDict):
    """The input of a protocol that rates texts."""

    task: Annotated[ScoreTask, Field(description="The text to be rated.", examples=[EXAMPLES["score"]])]


@_shown("compare")
class CompareInput(TypedDict):
    """The input of a protocol that compares answers."""

    task: Annotated[
        CompareTask, Field(description="The two answers to be compared.", examples=[EXAMPLES["compare"]])
    ]


@_shown("score", "compare")
class JudgeInput(TypedDict):
    """The input of a protocol that rates texts and compares answers."""

    task: Annotated[
        ScoreTask | CompareTask,
        Field(
            discriminator="kind",
            description="The text to be rated, or the two answers to be compared.",
            examples=list(EXAMPLES.values()),
        ),
    ]


_OF_ONE_KIND: dict[TaskKind, type[Any]] = {"score": ScoreInput, "compare": CompareInput}


def input_schema_of(kinds: Collection[TaskKind]) -> type[Any]:
    """Return the input of a protocol that takes tasks of these kinds.

    >>> input_schema_of(("compare",)).__name__
    'CompareInput'
    """
    [*only] = kinds
    return _OF_ONE_KIND[only[0]] if len(only) == 1 else JudgeInput


def kinds_of_input(schema: type[Any]) -> list[TaskKind]:
    """Return the kinds of task that a graph with this input takes: both, where it is none of those above."""
    return [kind for kind, of_kind in _OF_ONE_KIND.items() if schema is of_kind] or list(_OF_ONE_KIND)
