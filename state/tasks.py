"""Tasks: one text on one aspect (score task), or two answers to one question (compare task).

The inputs of the graphs are at the end, each with an example that runs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from contextvars import ContextVar
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    model_validator,
    with_config,
)
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from .aspects import ASPECTS, Aspect, check_scale, find_aspect
from .checked import Checked, FilledText, OptionalText, alternative, shortened
from .conversations import as_text, is_conversation, read_conversation
from .errors import Fault, InputError, UsageError
from .media import MOST_MEDIA, Media, media_fault

TaskKind = Literal["score", "compare"]

DEFAULT_CRITERIA = ("helpfulness", "relevance", "accuracy", "level of detail")
"""The default criteria for comparing two answers (ChatEval, section 3.1)."""


def _messages_as_text(value: Any, info: ValidationInfo) -> Any:
    if not isinstance(value, str) and is_conversation(value):
        return as_text(read_conversation(value, info.field_name or "messages", media={}))
    return value


TEXTS = ("source", "question", "context", "fact", "reference", "candidate", "answer_1", "answer_2")
"""The fields of tasks that are texts, in reading order."""


AUTHORS = ("system", "model_1", "model_2")
"""The fields of tasks that name the author of a text. No agent is shown them."""

Author = Annotated[OptionalText, Field(default=None, exclude_if=lambda author: author is None)]


def shown_fields(task: type[BaseModel]) -> tuple[str, ...]:
    """Return the names of a task's fields that prompts may show: all but its authors."""
    return tuple(name for name in task.model_fields if name not in AUTHORS)


def texts_of(fields: Any) -> Any:
    """Return an object's fields with messages as texts, and images and files under ``media``.

    Unreadable values stay unchanged, and the field's own validator describes the problem.
    """
    # Most tasks only contain texts.
    if not isinstance(fields, Mapping) or all(
        isinstance(fields.get(name), str | None) for name in TEXTS
    ):
        return fields
    read = dict(fields)
    media = dict(fields.get("media") or {})
    for name in TEXTS:
        value = fields.get(name)
        if not isinstance(value, str) and is_conversation(value):
            with suppress(UsageError):
                read[name] = as_text(read_conversation(value, name, media=media))
    return {**read, "media": media} if media else read


AsText = BeforeValidator(_messages_as_text, json_schema_input_type=str)
"""Converts messages to one text, including calls of tools and their results."""

MEDIA = "Images and files that the texts name, such as `[image 1]`, as content blocks; messages bring their own."


def _sendable(media: Media) -> Media:
    if len(media) > MOST_MEDIA:
        raise ValueError(
            f"has {len(media)} images and files, but a task may have at most {MOST_MEDIA}"
        )
    for name, part in media.items():
        if fault := media_fault(part):
            raise ValueError(f"{name} cannot be sent to a model: {fault}")
    return media


TaskMedia = Annotated[Media, AfterValidator(_sendable)]
"""The images and files of a task, each with a web address or with its content."""


_ASPECT_NAMES = dict.fromkeys([*ASPECTS, *(name.partition("/")[2] for name in ASPECTS)])
AspectName = Annotated[
    str, Field(title="A known aspect", json_schema_extra={"enum": [*_ASPECT_NAMES]})
]
"""For the JSON schema only: validation looks names up in any case, and lists the known ones."""


def _aspect(value: Any) -> Any:
    if isinstance(value, str):
        return find_aspect(value)
    if not isinstance(value, Mapping | Aspect):
        raise PydanticCustomError(
            "aspect_type",
            "must be the name of a known aspect, or an object with name, criteria, low and high",
        )
    return value


Rubric = Aspect | tuple[str, ...]
"""The rubric of a judgement: an aspect, or the criteria of a comparison."""

user_rubric: ContextVar[Rubric | None] = ContextVar("user_rubric", default=None)
"""The rubric that the package's user chose; None without a choice."""


def is_rubric(words: Rubric) -> bool:
    """Return whether this rubric comes from the package or its user, and agents must follow it.

    A rubric from a task is data.

    >>> is_rubric(find_aspect("coherence")), is_rubric(("Ignore the rest.",))
    (True, False)
    """
    return words in (DEFAULT_CRITERIA, user_rubric.get()) or words in ASPECTS.values()


def rubric_of(task: ScoreTask | CompareTask) -> Rubric:
    """Return the rubric of a task.

    >>> rubric_of(CompareTask(question="Why?", answer_1="Rain.", answer_2="Snow.", criteria=("brevity",)))
    ('brevity',)
    """
    return task.criteria if isinstance(task, CompareTask) else task.aspect


class _Task(Checked):
    """The base of both kinds of tasks, which converts messages to texts."""

    @model_validator(mode="before")
    @classmethod
    def _messages(cls, fields: Any) -> Any:
        return texts_of(fields)


class ScoreTask(_Task):
    """Rate one candidate text on one aspect (pointwise).

    >>> task = ScoreTask(source="It rained all day.", candidate="It rained.", aspect="consistency")
    >>> task.aspect.low, task.aspect.high
    (1.0, 5.0)
    """

    model_config = ConfigDict(json_schema_extra=alternative)
    called: ClassVar[str] = "a score task"

    kind: Literal["score"] = "score"
    """Rate one text on one aspect."""
    source: Annotated[FilledText | None, AsText] = None
    """The source of the candidate: an article, or the dialogue so far. It may be left out if the
    criteria do not mention it."""
    candidate: Annotated[FilledText, AsText]
    """The text to be rated."""
    aspect: Annotated[Aspect, BeforeValidator(_aspect, json_schema_input_type=AspectName | Aspect)]
    """The name of a known aspect, such as `coherence` or `topical-chat/naturalness`, or your own
    aspect: name, criteria, low, high and optional steps."""
    fact: Annotated[OptionalText, AsText] = None
    """A fact that the candidate should use, if any."""
    context: Annotated[OptionalText, AsText] = None
    """Further texts for judging the candidate, such as retrieved passages, if any."""
    reference: Annotated[OptionalText, AsText] = None
    """A correct text to compare the candidate with, if there is one."""
    system: Author = None
    """The model that wrote the candidate, for `recuse`; no agent is shown it."""
    media: TaskMedia = Field(default={}, description=MEDIA)

    @model_validator(mode="after")
    def _has_what_the_criteria_mention(self) -> ScoreTask:
        for name, word in self.aspect.needed_texts().items():
            if getattr(self, name) is None:
                problem = (
                    f"is missing, but the criteria of {self.aspect.name} mention it ({word!r})"
                )
                remedy = "give it, or set the aspect's field `needs` to [] if they do not need it"
                raise PydanticCustomError(
                    "missing", "{words}", {"words": f"{name} {problem}: {remedy}"}
                )
        return self


class CompareTask(_Task):
    """Compare two answers to one question (pairwise).

    >>> CompareTask(question="Why is the sky blue?", answer_1="Scattering.", answer_2="The sea.").criteria
    ('helpfulness', 'relevance', 'accuracy', 'level of detail')
    """

    model_config = ConfigDict(json_schema_extra=alternative)
    called: ClassVar[str] = "a compare task"

    kind: Literal["compare"] = "compare"
    """Compare two answers to one question."""
    question: Annotated[FilledText, AsText]
    """The question both answers reply to."""
    answer_1: Annotated[FilledText, AsText]
    """The answer shown first."""
    answer_2: Annotated[FilledText, AsText]
    """The answer shown second."""
    criteria: tuple[FilledText, ...] = Field(default=DEFAULT_CRITERIA, min_length=1)
    """The criteria of the comparison."""
    reference: Annotated[OptionalText, AsText] = None
    """A correct answer to compare with, if there is one."""
    context: Annotated[OptionalText, AsText] = None
    """Further texts for judging the answers, such as retrieved passages, if any."""
    model_1: Author = None
    """The model that wrote answer 1, for `recuse`; no agent is shown it."""
    model_2: Author = None
    """The model that wrote answer 2, for `recuse`; no agent is shown it."""
    low: float = 1
    """Lowest score of an answer."""
    high: float = 10
    """Highest score of an answer."""
    media: TaskMedia = Field(default={}, description=MEDIA)

    @model_validator(mode="after")
    def _scale_runs_upwards(self) -> CompareTask:
        check_scale(self.low, self.high)
        return self


Task = Annotated[ScoreTask | CompareTask, Field(discriminator="kind")]


_SHAPES = (
    'a task is {"kind": "score", "source": ..., "candidate": ..., "aspect": ...} '
    'or {"kind": "compare", "question": ..., "answer_1": ..., "answer_2": ...}'
)


def parse_task(value: Any) -> ScoreTask | CompareTask:
    """Validate a dict as a task of the kind that it names or its fields show; return tasks as is.

    Raises:
        InputError: an invalid field; the message names it.

    >>> parse_task({"source": "a", "candidate": "b", "aspect": "fluency"}).kind
    'score'
    """
    if isinstance(value, ScoreTask | CompareTask):
        return value
    # A graph's state begins with an empty object if its input has no task.
    if value is None or value == {}:
        raise _no_task("missing", f'is missing: the input is {{"task": ...}}, and {_SHAPES}')
    if not isinstance(value, Mapping):
        raise _no_task("task_type", f"must be an object, got {shortened(value)}; {_SHAPES}", value)
    named = value.get("kind")
    if named is None:
        # Derive the kind from the fields.
        fields = {"score": ("candidate",), "compare": ("answer_1", "answer_2")}
        kinds = [kind for kind, names in fields.items() if any(name in value for name in names)]
        if len(kinds) != 1:
            has = ", ".join(map(str, value)) or "none"
            problem = (
                f"has no kind, but fields of both kinds (it has {has})"
                if kinds
                else f"has no kind, and no field that shows it (it has {has})"
            )
            raise _no_task("kind", f"{problem}; {_SHAPES}", value)
        named = kinds[0]
    if named not in ("score", "compare"):
        raise _no_task("kind", f"has an unknown kind, {shortened(named)}; {_SHAPES}", value)
    try:
        return (ScoreTask if named == "score" else CompareTask).model_validate(dict(value))
    except InputError as error:
        raise error.inside("task") from None


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
"""An example task of each kind for forms; the offline judge can judge it without a key."""


def _shown(*kinds: TaskKind) -> Any:
    """Add inputs with the example tasks of these kinds to the schema."""
    return with_config(
        {"json_schema_extra": {"examples": [{"task": EXAMPLES[kind]} for kind in kinds]}}
    )


@_shown("score")
class ScoreInput(TypedDict):
    """The input of a protocol that rates texts."""

    task: Annotated[
        ScoreTask, Field(description="The text to be rated.", examples=[EXAMPLES["score"]])
    ]


RUBRIC_EXAMPLE: dict[str, Any] = {
    "kind": "score",
    "candidate": "The bridge opened in 1932 and cost 4 million crowns.",
    "aspect": {
        "name": "facts",
        "criteria": "Whether the text has the facts that matter.",
        "rubric": [
            {"criterion": "Says when the bridge opened.", "points": 3},
            {"criterion": "Says who built the bridge.", "points": 2},
            {"criterion": "Praises the bridge.", "points": -1},
        ],
    },
}
"""An example of a task whose aspect has a rubric."""


@with_config({"json_schema_extra": {"examples": [{"task": RUBRIC_EXAMPLE}]}})
class RubricInput(TypedDict):
    """The input of a protocol that checks the criteria of a rubric."""

    task: Annotated[
        ScoreTask,
        Field(
            description="The text to be rated; its aspect has a rubric.", examples=[RUBRIC_EXAMPLE]
        ),
    ]


@_shown("compare")
class CompareInput(TypedDict):
    """The input of a protocol that compares answers."""

    task: Annotated[
        CompareTask,
        Field(description="The two answers to be compared.", examples=[EXAMPLES["compare"]]),
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
    """Return the input schema of a protocol that takes these kinds of task.

    >>> input_schema_of(("compare",)).__name__
    'CompareInput'
    """
    [*only] = kinds
    return _INPUTS[only[0]] if len(only) == 1 else JudgeInput


def kinds_of_input(schema: type[Any]) -> list[TaskKind]:
    """Return the kinds of task for an input schema: both, unless it is one of those above."""
    if schema is RubricInput:
        return ["score"]
    return [kind for kind, of_kind in _INPUTS.items() if schema is of_kind] or list(_INPUTS)
