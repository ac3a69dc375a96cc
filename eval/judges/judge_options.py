"""The options of ``create_judge`` for each bundled protocol, including its own settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, Protocol, TypedDict, TypeVar, Unpack, overload

from ...graphs.engine import options
from ...graphs.engine.registry import AnyGraph
from ...nodes.runtime.bound_judge import Models
from ...state.aspects import Aspect

Made = TypeVar("Made")
Made_co = TypeVar("Made_co", covariant=True)


class JudgeOptions(TypedDict, total=False):
    """The options for the task and the form of the score; see ``create_judge``."""

    aspect: str | Aspect | Mapping[str, Any] | None
    criteria: Sequence[str] | None
    variable_mapping: Mapping[str, str] | None
    ignore: Sequence[str]
    key: str | None
    feedback_key: str | None
    normalize: bool
    output_schema: Any
    max_cost: float | None
    max_calls: int | None
    timeout: float | None
    cache: str | Path | None
    prompt: str
    system: str | None
    choices: Sequence[float] | Mapping[str, float] | None
    continuous: bool
    low: float | None
    high: float | None
    few_shot: Sequence[Mapping[str, Any]] | None
    few_shot_examples: Sequence[Mapping[str, Any]] | None
    use_reasoning: bool


class WithModels(JudgeOptions, total=False):
    """The options for the models, which a graph already has."""

    models: Models | None


# Written by benchmarks/make_options.py from state/settings. Do not edit below this line.


class BaselineJudge(WithModels, options.CommonOptions):
    """The arguments of all judges and the settings of ``baseline`` and ``commit_first``."""


class CalibratedJudge(WithModels, options.CalibratedOptions):
    """The arguments of all judges and the settings of ``calibrated``."""


class CascadeJudge(WithModels, options.CascadeOptions):
    """The arguments of all judges and the settings of ``cascade``."""


class ChatEvalJudge(WithModels, options.ChatEvalOptions):
    """The arguments of all judges and the settings of ``chateval``."""


class ChecklistJudge(WithModels, options.ChecklistOptions):
    """The arguments of all judges and the settings of ``checklist``."""


class DebateJudge(WithModels, options.DebateOptions):
    """The arguments of all judges and the settings of ``debate`` and ``multiagent``."""


class EnsembleJudge(WithModels, options.EnsembleOptions):
    """The arguments of all judges and the settings of ``ensemble``."""


class FairEvalJudge(WithModels, options.FairEvalOptions):
    """The arguments of all judges and the settings of ``faireval``."""


class GEvalJudge(WithModels, options.GEvalOptions):
    """The arguments of all judges and the settings of ``geval``."""


class MoreJudge(WithModels, options.MoreOptions):
    """The arguments of all judges and the settings of ``more``."""


class RepeatedJudge(WithModels, options.RepeatedOptions):
    """The arguments of all judges and the settings of ``repeated``."""


class ReviewJudge(WithModels, options.ReviewOptions):
    """The arguments of all judges and the settings of ``review``."""


class SamreJudge(WithModels, options.SamreOptions):
    """The arguments of all judges and the settings of ``samre``."""


class SingleJudge(WithModels, options.SingleOptions):
    """The arguments of all judges and the settings of ``single``."""


class MakesJudge(Protocol[Made_co]):
    """Takes the arguments of ``create_judge``; a graph has its settings already."""

    @overload
    def __call__(self, judge: None = None, /, **options: Unpack[SingleJudge]) -> Made_co: ...
    @overload
    def __call__(
        self, judge: Literal["baseline", "commit_first"], /, **options: Unpack[BaselineJudge]
    ) -> Made_co: ...
    @overload
    def __call__(
        self, judge: Literal["calibrated"], /, **options: Unpack[CalibratedJudge]
    ) -> Made_co: ...
    @overload
    def __call__(
        self, judge: Literal["cascade"], /, **options: Unpack[CascadeJudge]
    ) -> Made_co: ...
    @overload
    def __call__(
        self, judge: Literal["chateval"], /, **options: Unpack[ChatEvalJudge]
    ) -> Made_co: ...
    @overload
    def __call__(
        self, judge: Literal["checklist"], /, **options: Unpack[ChecklistJudge]
    ) -> Made_co: ...
    @overload
    def __call__(
        self, judge: Literal["debate", "multiagent"], /, **options: Unpack[DebateJudge]
    ) -> Made_co: ...
    @overload
    def __call__(
        self, judge: Literal["ensemble"], /, **options: Unpack[EnsembleJudge]
    ) -> Made_co: ...
    @overload
    def __call__(
        self, judge: Literal["faireval"], /, **options: Unpack[FairEvalJudge]
    ) -> Made_co: ...
    @overload
    def __call__(self, judge: Literal["geval"], /, **options: Unpack[GEvalJudge]) -> Made_co: ...
    @overload
    def __call__(self, judge: Literal["more"], /, **options: Unpack[MoreJudge]) -> Made_co: ...
    @overload
    def __call__(
        self, judge: Literal["repeated"], /, **options: Unpack[RepeatedJudge]
    ) -> Made_co: ...
    @overload
    def __call__(self, judge: Literal["review"], /, **options: Unpack[ReviewJudge]) -> Made_co: ...
    @overload
    def __call__(self, judge: Literal["samre"], /, **options: Unpack[SamreJudge]) -> Made_co: ...
    @overload
    def __call__(self, judge: Literal["single"], /, **options: Unpack[SingleJudge]) -> Made_co: ...
    @overload
    def __call__(
        self, judge: ModuleType | AnyGraph, /, **options: Unpack[JudgeOptions]
    ) -> Made_co: ...


# End of what benchmarks/make_options.py writes.


def checked_by_protocol(make: Callable[..., Made]) -> MakesJudge[Made]:
    """Let type checkers compare a judge factory's arguments with the settings of the protocol."""
    return make
