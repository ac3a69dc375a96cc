"""What ``create_judge`` takes for each bundled protocol: how outputs are judged, and the protocol's own settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from ...graphs import options
from ...nodes.bound_judge import Models
from ...state.aspects import Aspect


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


class AnyOptions(
    JudgeOptions, options.InnerOptions, options.RepeatedOptions, options.CascadeOptions, total=False
):
    """The same and the settings of any protocol."""
