"""The options of ``AnswerGate`` for each bundled protocol, including its own settings."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Literal, TypeAlias, TypedDict, Unpack, overload

from ...graphs.engine.registry import AnyGraph
from ...graphs.wrappers.refine import Try
from ...state.aspects import Aspect
from . import judge_options as options
from .judge import AsyncJudge, Judge

Rated: TypeAlias = str | Aspect | Mapping[str, Any] | None
OnReject = Literal["retry", "replace", "raise", "pass"]
AfterTries = Literal["raise", "replace", "pass"]
OnError = Literal["raise", "pass"]


class GateOptions(TypedDict, total=False):
    """The options of every gate; see ``AnswerGate``."""

    until: float
    tries: int
    on_reject: OnReject
    after_tries: AfterTries
    on_error: OnError
    replacement: str | Callable[[Try], str] | None


class GraphGate(GateOptions, options.JudgeOptions):
    """The arguments of a gate whose judge is a graph, which has its own settings."""


# Written by benchmarks/make_options.py from state/settings. Do not edit below this line.


class BaselineGate(GateOptions, options.BaselineJudge):
    """The arguments of all gates and the settings of ``baseline`` and ``commit_first``."""


class CalibratedGate(GateOptions, options.CalibratedJudge):
    """The arguments of all gates and the settings of ``calibrated``."""


class CascadeGate(GateOptions, options.CascadeJudge):
    """The arguments of all gates and the settings of ``cascade``."""


class ChatEvalGate(GateOptions, options.ChatEvalJudge):
    """The arguments of all gates and the settings of ``chateval``."""


class ChecklistGate(GateOptions, options.ChecklistJudge):
    """The arguments of all gates and the settings of ``checklist``."""


class DebateGate(GateOptions, options.DebateJudge):
    """The arguments of all gates and the settings of ``debate`` and ``multiagent``."""


class EnsembleGate(GateOptions, options.EnsembleJudge):
    """The arguments of all gates and the settings of ``ensemble``."""


class FairEvalGate(GateOptions, options.FairEvalJudge):
    """The arguments of all gates and the settings of ``faireval``."""


class GEvalGate(GateOptions, options.GEvalJudge):
    """The arguments of all gates and the settings of ``geval``."""


class MoreGate(GateOptions, options.MoreJudge):
    """The arguments of all gates and the settings of ``more``."""


class RepeatedGate(GateOptions, options.RepeatedJudge):
    """The arguments of all gates and the settings of ``repeated``."""


class ReviewGate(GateOptions, options.ReviewJudge):
    """The arguments of all gates and the settings of ``review``."""


class SamreGate(GateOptions, options.SamreJudge):
    """The arguments of all gates and the settings of ``samre``."""


class SingleGate(GateOptions, options.SingleJudge):
    """The arguments of all gates and the settings of ``single``."""


class TakesGateOptions:
    """Takes the arguments of ``AnswerGate``; a graph has its settings already."""

    @overload
    def __init__(
        self,
        judge: Literal["baseline", "commit_first"],
        aspect: Rated = None,
        /,
        **options: Unpack[BaselineGate],
    ) -> None: ...
    @overload
    def __init__(
        self,
        judge: Literal["calibrated"],
        aspect: Rated = None,
        /,
        **options: Unpack[CalibratedGate],
    ) -> None: ...
    @overload
    def __init__(
        self, judge: Literal["cascade"], aspect: Rated = None, /, **options: Unpack[CascadeGate]
    ) -> None: ...
    @overload
    def __init__(
        self, judge: Literal["chateval"], aspect: Rated = None, /, **options: Unpack[ChatEvalGate]
    ) -> None: ...
    @overload
    def __init__(
        self, judge: Literal["checklist"], aspect: Rated = None, /, **options: Unpack[ChecklistGate]
    ) -> None: ...
    @overload
    def __init__(
        self,
        judge: Literal["debate", "multiagent"],
        aspect: Rated = None,
        /,
        **options: Unpack[DebateGate],
    ) -> None: ...
    @overload
    def __init__(
        self, judge: Literal["ensemble"], aspect: Rated = None, /, **options: Unpack[EnsembleGate]
    ) -> None: ...
    @overload
    def __init__(
        self, judge: Literal["faireval"], aspect: Rated = None, /, **options: Unpack[FairEvalGate]
    ) -> None: ...
    @overload
    def __init__(
        self, judge: Literal["geval"], aspect: Rated = None, /, **options: Unpack[GEvalGate]
    ) -> None: ...
    @overload
    def __init__(
        self, judge: Literal["more"], aspect: Rated = None, /, **options: Unpack[MoreGate]
    ) -> None: ...
    @overload
    def __init__(
        self, judge: Literal["repeated"], aspect: Rated = None, /, **options: Unpack[RepeatedGate]
    ) -> None: ...
    @overload
    def __init__(
        self, judge: Literal["review"], aspect: Rated = None, /, **options: Unpack[ReviewGate]
    ) -> None: ...
    @overload
    def __init__(
        self, judge: Literal["samre"], aspect: Rated = None, /, **options: Unpack[SamreGate]
    ) -> None: ...
    @overload
    def __init__(
        self, judge: Literal["single"], aspect: Rated = None, /, **options: Unpack[SingleGate]
    ) -> None:
        ...

        # End of what benchmarks/make_options.py writes.

    @overload
    def __init__(
        self, judge: ModuleType | AnyGraph, aspect: Rated = None, /, **options: Unpack[GraphGate]
    ) -> None: ...
    @overload
    def __init__(self, judge: Judge | AsyncJudge, /, **options: Unpack[GateOptions]) -> None: ...
    def __init__(self, judge: Any, aspect: Rated = None, **options: Any) -> None:
        super().__init__()
        self._set_up(judge, aspect, **options)

    @abstractmethod
    def _set_up(self, judge: Any, aspect: Rated, **options: Any) -> None:
        """Check the arguments and make the judge."""
