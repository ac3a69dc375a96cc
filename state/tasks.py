"""Define what is judged: one text on one aspect (a score task), or two answers to one question (a compare task)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from .aspects import ASPECTS, Aspect, find_aspect
from .schema import Described, Text, alternative

TaskKind = Literal["score", "compare"]

DEFAULT_CRITERIA = ("helpfulness", "relevance", "accuracy", "level of detail")
"""The criteria on which two answers are compared unless the task says otherwise (ChatEval, section 3.1)."""


def _aspect_names() -> list[str]:
    """Return the known aspects' full names, then the bare ones."""
    return list(dict.fromkeys([*ASPECTS, *(name.partition("/")[2] for name in ASPECTS)]))


AspectName = Annotated[str, Field(title="A known aspect", json_schema_extra={"enum": [*_aspect_names()]})]
"""Used in the JSON schema only: validation looks a name up in any case, and says which names there are."""


def _aspect(value: Any) -> Any:
    return find_aspect(value) if isinstance(value, str) else value


class ScoreTask(BaseModel):
    """Rate one candidate text on one aspect (pointwise).

    >>> task = ScoreTask(source="It rained all day.", candidate="It rained.", aspect="consistency")
    >>> task.aspect.low, task.aspect.high
    (1.0, 5.0)
    """

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra=alternative)

    kind: Literal["score"] = Field(default="score", description="Rate one text on one aspect.")
    source: Text = Field(description="What the candidate was made from: an article, or the dialogue so far.")
    candidate: Text = Field(description="The text to be rated.")
    aspect: Annotated[
        Aspect,
        BeforeValidator(_aspect, json_schema_input_type=AspectName | Annotated[Aspect, Described]),
    ] = Field(
        description="The name of a known aspect, such as `coherence` or `topical-chat/naturalness`, "
        "or an aspect of your own: name, criteria, low, high and optional steps."
    )
    fact: Text | None = Field(default=None, description="A fact the candidate was to make use of, if any.")


class CompareTask(BaseModel):
    """Compare two answers to one question (pairwise).

    >>> CompareTask(question="Why is the sky blue?", answer_1="Scattering.", answer_2="The sea.").criteria
    ('helpfulness', 'relevance', 'accuracy', 'level of detail')
    """

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra=alternative)

    kind: Literal["compare"] = Field(default="compare", description="Compare two answers to one question.")
    question: Text = Field(min_length=1, description="The question both answers reply to.")
    answer_1: Text = Field(description="The answer shown first.")
    answer_2: Text = Field(description="The answer shown second.")
    criteria: tuple[str, ...] = Field(
        default=DEFAULT_CRITERIA, min_length=1, description="What the answers are compared on."
    )
    reference: Text | None = Field(
        default=None, description="A correct answer to compare with, if there is one."
    )
    low: float = Field(default=1, description="Lowest score an answer can get.")
    high: float = Field(default=10, description="Highest score an answer can get.")

    @model_validator(mode="after")
    def _scale_runs_upwards(self) -> CompareTask:
        if not self.low < self.high:
            raise ValueError(f"low must be below high, got low={self.low:g} and high={self.high:g}")
        return self


Task = Annotated[ScoreTask | CompareTask, Field(discriminator="kind")]


class _Input(BaseModel):
    # Holds the union of both kinds, so that errors name the place of a fault from ``task`` on.
    task: Task


def parse_task(value: Any) -> ScoreTask | CompareTask:
    """Validate a dict as a task of the kind that it names; a task object passes through.

    Raises:
        pydantic.ValidationError: names the field that is wrong.

    >>> parse_task({"kind": "score", "source": "a", "candidate": "b", "aspect": "fluency"}).aspect.name
    'fluency'
    """
    return _Input.model_validate({"task": value}).task
