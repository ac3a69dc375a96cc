"""What ``create_judge`` takes for each bundled protocol: how outputs are judged, and the protocol's own settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, Literal, Protocol, TypedDict, TypeVar, Unpack, overload

from ...graphs import options
from ...graphs.registry import AnyGraph
from ...nodes.bound_judge import Models
from ...state.aspects import Aspect

Made = TypeVar("Made")
Made_co = TypeVar("Made_co", covariant=True)


class JudgeOptions(TypedDict, total=False):
    """Names what is judged and how the score is given; see ``create_judge``."""

    aspect: str | Aspect | Mapping[str, Any] | None
    criteria: Sequence[str] | None
    variable_mapping: Mapping[str, str] | None
    key: str | None
    normalize: bool


class WithModels(JudgeOptions, total=False):
    """Names the models besides, which a graph has already."""

    models: Models | None


class BaselineJudge(WithModels, options.CommonOptions):
    """The same and the settings of ``baseline``."""


class CalibratedJudge(WithModels, options.CalibratedOptions):
    """The same and the settings of ``calibrated``."""


class CascadeJudge(WithModels, options.CascadeOptions):
    """The same and the settings of ``cascade``."""


class ChatEvalJudge(WithModels, options.ChatEvalOptions):
    """The same and the settings of ``chateval``."""


class DebateJudge(WithModels, options.DebateOptions):
    """The same and the settings of ``debate`` and ``multiagent``."""


class EnsembleJudge(WithModels, options.EnsembleOptions):
    """The same and the settings of ``ensemble``."""


class FairEvalJudge(WithModels, options.FairEvalOptions):
    """The same and the settings of ``faireval``."""


class GEvalJudge(WithModels, options.GEvalOptions):
    """The same and the settings of ``geval``."""


class MoreJudge(WithModels, options.MoreOptions):
    """The same and the settings of ``more``."""


class RepeatedJudge(WithModels, options.RepeatedOptions):
    """The same and the settings of ``repeated``."""


class ReviewJudge(WithModels, options.ReviewOptions):
    """The same and the settings of ``review``."""


class SamreJudge(WithModels, options.SamreOptions):
    """The same and the settings of ``samre``."""


class SingleJudge(WithModels, options.SingleOptions):
    """The same and the settings of ``single``."""


class MakesJudge(Protocol[Made_co]):
    """Takes what ``create_judge`` takes: of a bundled protocol its own settings, of a graph none, for it has them."""

    @overload
    def __call__(self, judge: Literal["baseline"], **options: Unpack[BaselineJudge]) -> Made_co: ...
    @overload
    def __call__(self, judge: Literal["calibrated"], **options: Unpack[CalibratedJudge]) -> Made_co: ...
    @overload
    def __call__(self, judge: Literal["cascade"], **options: Unpack[CascadeJudge]) -> Made_co: ...
    @overload
    def __call__(self, judge: Literal["chateval"], **options: Unpack[ChatEvalJudge]) -> Made_co: ...
    @overload
    def __call__(self, judge: Literal["debate", "multiagent"], **options: Unpack[DebateJudge]) -> Made_co: ...
    @overload
    def __call__(self, judge: Literal["ensemble"], **options: Unpack[EnsembleJudge]) -> Made_co: ...
    @overload
    def __call__(self, judge: Literal["faireval"], **options: Unpack[FairEvalJudge]) -> Made_co: ...
    @overload
    def __call__(self, judge: Literal["geval"], **options: Unpack[GEvalJudge]) -> Made_co: ...
    @overload
    def __call__(self, judge: Literal["more"], **options: Unpack[MoreJudge]) -> Made_co: ...
    @overload
    def __call__(self, judge: Literal["repeated"], **options: Unpack[RepeatedJudge]) -> Made_co: ...
    @overload
    def __call__(self, judge: Literal["review"], **options: Unpack[ReviewJudge]) -> Made_co: ...
    @overload
    def __call__(self, judge: Literal["samre"], **options: Unpack[SamreJudge]) -> Made_co: ...
    @overload
    def __call__(self, judge: Literal["single"], **options: Unpack[SingleJudge]) -> Made_co: ...
    @overload
    def __call__(self, judge: ModuleType | AnyGraph, **options: Unpack[JudgeOptions]) -> Made_co: ...


def checked_by_protocol(make: Callable[..., Made]) -> MakesJudge[Made]:
    """Have type checkers compare the arguments of a function that makes judges with the settings of the protocol."""
    return make
