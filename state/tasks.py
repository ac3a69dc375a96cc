"""Define what is judged: one text on one aspect (a score task), or two answers to one question (a compare task).

The inputs of the graphs, at the end, hold one or the other, each with an example that runs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, ConfigDict, Field, model_validator, with_config
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from .aspects import ASPECTS, Aspect, check_scale, find_aspect
from .checked import Checked, Described, FilledText, OptionalText, alternative, shortened
from .errors import Fault, InputError

TaskKind = Literal["score", "compare"]

DEFAULT_CRITERIA = ("helpfulness", "relevance", "accuracy", "level of detail")
"""The criteria on which two answers are compared unless the task says otherwise (ChatEval, section 3.1)."""


def _aspect_names() -> list[str]:
    """Return the known aspects' full names, then the bare ones."""
    return list(dict.fromkeys([*ASPECTS, *(name.partition("/")[2] for name in ASPECTS)]))


AspectName = Annotated[str, Field(title="A known aspect", json_schema_extra={"enum": [*_aspect_names()]})]
"""Used in the JSON schema only: validation looks a name up in any case, and says which names there are."""


def _aspect(value: Any) -> Any:
    if isinstance(value, str):
        return find_aspect(value)
    if not isinstance(value, Mapping | Aspect):
        raise PydanticCustomError(
            "aspect_type",
            "must be the name of a known aspect, or an object with name, criteria, low and high",
        )
    return value


def is_ready_made(rubric: Aspect | tuple[str, ...]) -> bool:
    """Whether an aspect, or the criteria of a comparison, are of this package and not of the task's own.

    >>> is_ready_made(find_aspect("coherence")), is_ready_made(("Ignore the rest.",))
    (True, False)
    """
    return rubric == DEFAULT_CRITERIA if isinstance(rubric, tuple) else rubric in ASPECTS.values()


class ScoreTask(Checked):
    """Rate one candidate text on one aspect (pointwise).

    >>> task = ScoreTask(source="It rained all day.", candidate="It rained.", aspect="consistency")
    >>> task.aspect.low, task.aspect.high
    (1.0, 5.0)
    """

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra=alternative)
    called: ClassVar[str] = "a score task"

    kind: Literal["score"] = Field(default="score", description="Rate one text on one aspect.")
    source: FilledText = Field(
        description="What the candidate was made from: an article, or the dialogue so far."
    )
    candidate: FilledText = Field(description="The text to be rated.")
    aspect: Annotated[
        Aspect,
        BeforeValidator(_aspect, json_schema_input_type=AspectName | Annotated[Aspect, Described]),
    ] = Field(
        description="The name of a known aspect, such as `coherence` or `topical-chat/naturalness`, "
        "or an aspect of your own: name, criteria, low, high and optional steps."
    )
    fact: OptionalText = Field(default=None, description="A fact the candidate was to make use of, if any.")


class CompareTask(Checked):
    """Compare two answers to one question (pairwise).

    >>> CompareTask(question="Why is the sky blue?", answer_1="Scattering.", answer_2="The sea.").criteria
    ('helpfulness', 'relevance', 'accuracy', 'level of detail')
    """

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra=alternative)
    called: ClassVar[str] = "a compare task"

    kind: Literal["compare"] = Field(default="compare", description="Compare two answers to one question.")
    question: FilledText = Field(description="The question both answers reply to.")
    answer_1: FilledText = Field(description="The answer shown first.")
    answer_2: FilledText = Field(description="The answer shown second.")
    criteria: tuple[FilledText, ...] = Field(
        default=DEFAULT_CRITERIA, min_length=1, description="What the answers are compared on."
    )
    reference: OptionalText = Field(
        default=None, description="A correct answer to compare with, if there is one."
    )
    low: float = Field(default=1, description="Lowest score an answer can get.")
    high: float = Field(default=10, description="Highest score an answer can get.")

    @model_validator(mode="after")
    def _scale_runs_upwards(self) -> CompareTask:
        check_scale(self.low, self.high)
        return self


Task = Annotated[ScoreTask | CompareTask, Field(discriminator="kind")]


_CLASSES: dict[TaskKind, type[ScoreTask] | type[CompareTask]] = {"score": ScoreTask, "compare": CompareTask}
_SHAPES = (
    'a task is {"kind": "score", "source": ..., "candidate": ..., "aspect": ...} '
    'or {"kind": "compare", "question": ..., "answer_1": ..., "answer_2": ...}'
)
_TELLTALE_FIELDS: dict[TaskKind, tuple[str, ...]] = {
    "score": ("candidate",),
    "compare": ("answer_1", "answer_2"),
}
"""The fields by which a task without ``kind`` is told."""


def parse_task(value: Any) -> ScoreTask | CompareTask:
    """Check a dict and make a task of it, of the kind that it names or that its fields tell; a task passes through.

    Raises:
        InputError: names the field that is wrong.

    >>> parse_task({"source": "a", "candidate": "b", "aspect": "fluency"}).kind
    'score'
    """
    if isinstance(value, ScoreTask | CompareTask):
        return value
    # Left out of the input of a graph, the task is the empty object that its state begins with.
    if value is None or value == {}:
        raise _no_task("missing", f'is missing: the input is {{"task": ...}}, and {_SHAPES}')
    if not isinstance(value, Mapping):
        raise _no_task("task_type", f"must be an object, got {shortened(value)}; {_SHAPES}", value)
    chosen = _CLASSES[_kind_of(value)]
    try:
        return chosen.model_validate(dict(value))
    except InputError as error:
        raise error.inside("task") from None


def _kind_of(value: Mapping[str, Any]) -> TaskKind:
    named = value.get("kind")
    for kind in _CLASSES:
        if named == kind:
            return kind
    if named is not None:
        raise _no_task("kind", f"has an unknown kind, {shortened(named)}; {_SHAPES}", value)
    kinds = [kind for kind, names in _TELLTALE_FIELDS.items() if any(name in value for name in names)]
    if len(kinds) != 1:
        has = ", ".join(map(str, value)) or "none"
        fault = (
            "has no kind, and fields of both kinds" if kinds else "has no kind, and no field that tells it"
        )
        raise _no_task("kind", f"{fault} (it has {has}); {_SHAPES}", value)
    return kinds[0]


def _no_task(kind: str, words: str, value: Any = None) -> InputError:
    return InputError.from_faults("task", [Fault(kind, ("task",), words, value)])


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


_INPUTS: dict[TaskKind, type[Any]] = {"score": ScoreInput, "compare": CompareInput}


def input_schema_of(kinds: Collection[TaskKind]) -> type[Any]:
    """Return the input of a protocol that takes tasks of these kinds.

    >>> input_schema_of(("compare",)).__name__
    'CompareInput'
    """
    [*only] = kinds
    return _INPUTS[only[0]] if len(only) == 1 else JudgeInput


def kinds_of_input(schema: type[Any]) -> list[TaskKind]:
    """Return the kinds of task that a graph with this input takes: both, where it is none of those above."""
    return [kind for kind, of_kind in _INPUTS.items() if schema is of_kind] or list(_INPUTS)
