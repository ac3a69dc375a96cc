"""The names of the bundled protocols and of their settings, for type checkers and editors.

Each class lists what a settings class of ``state/settings/`` takes, in the forms in which callers give it; a test holds
the two together. Where any text will do but a misspelt name would, too, a text of one's own is marked as ``OwnText``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, Literal, NewType, TypeAlias, TypedDict

from ..nodes.bound_judge import Model, Models
from ..state.settings import Layout, Role, SettingsT
from ..state.settings.protocol_settings import Fallback, Persona
from ..state.settings.wrapper_settings import Reason
from .registry import AnyGraph

_WithoutTalk = Literal["baseline", "ensemble", "faireval", "geval", "single"]
_Debates = Literal["chateval", "debate", "more", "multiagent", "samre"]
_Wrappers = Literal["calibrated", "cascade", "repeated", "review"]
ProtocolName = Literal[_WithoutTalk, _Debates, _Wrappers]
"""The bundled protocols; a name that is known only at run time goes through ``load_graph``."""

AnyJudge = ProtocolName | ModuleType | AnyGraph
"""What type checkers let through as a judge: a bundled protocol's name, a protocol's module, or a graph."""

AnyJudges = AnyJudge | Sequence[AnyJudge] | Mapping[str, AnyJudge]
"""One judge, several, or several by names of the caller's choice."""

Bound: TypeAlias = SettingsT | Mapping[str, Any] | None
"""Settings as ``build`` binds them: an object, a dict, or none."""

OwnText = NewType("OwnText", str)
"""A persona in one's own words, or the name of a file of roles: ``persona=OwnText("You are a nurse.")``."""

RoleGroup = Literal["diverse", "same", "auto", "generic", "knowledge", "writing", "coding"]
RoleName = (
    Literal["general_public", "critic", "news_author", "psychologist", "scientist"]
    | Literal["encyclopedist", "fact_checker", "teacher"]
    | Literal["novelist", "copy_editor", "literary_critic"]
    | Literal["guido_van_rossum", "code_reviewer", "test_engineer"]
)
"""The known referees, by the groups in which they are new."""


class CommonOptions(TypedDict, total=False):
    """Names the settings that every protocol has; ``models`` is an argument of its own where a graph is built."""

    model: Model
    structured: Literal["auto", "off"]
    prompts: str | None
    layout: Layout
    temperature: float | None
    max_tokens: int | None
    repair: int


class DebateOptions(CommonOptions, total=False):
    """Names the settings of ``debate`` and ``multiagent``."""

    n: int
    persona: Persona | OwnText
    tie_breaker: bool
    on_unresolved: Fallback
    commander: Literal["relay", "llm"]
    termination: Literal["declared", "substring"]
    on_overflow: Literal["last", "error"]


class SingleOptions(CommonOptions, total=False):
    """Names the settings of ``single``."""

    position_calibration: bool


class EnsembleOptions(SingleOptions, total=False):
    """Names the settings of ``ensemble``."""

    referees: int
    roles: RoleGroup | RoleName | OwnText | Sequence[RoleName | Role | Mapping[str, str]]


class ChatEvalOptions(EnsembleOptions, total=False):
    """Names the settings of ``chateval``."""

    turns: int
    strategy: Literal["one_by_one", "simultaneous", "summarizer"]
    summary: Literal["replace", "append"]
    summarize_last: bool
    score_each_turn: bool


class FairEvalOptions(SingleOptions, total=False):
    """Names the settings of ``faireval``."""

    k: int


class GEvalOptions(CommonOptions, total=False):
    """Names the settings of ``geval``."""

    weighting: Literal["auto", "logprobs", "sampling"]
    samples: int
    steps: str | Sequence[str]


class MoreOptions(CommonOptions, total=False):
    """Names the settings of ``more``."""

    advocates: int
    rounds: int
    aggregate: Literal["llm", "concat", "best"]
    collaborate: bool
    tau: float


class SamreOptions(CommonOptions, total=False):
    """Names the settings of ``samre``."""

    max_rounds: int
    jurors: int
    backgrounds: str | Sequence[str]
    ballot: Literal["vote", "score"]
    memory: Literal["full", "summary"]


class InnerOptions(DebateOptions, ChatEvalOptions, GEvalOptions, MoreOptions, SamreOptions, total=False):
    """Names the settings of any protocol inside a wrapper; one that wraps others itself is given as a dict."""

    k: int
    models: Models


class CalibratedOptions(CommonOptions, total=False):
    """Names the settings of ``calibrated``."""

    of: ProtocolName | OwnText
    inner: InnerOptions


class RepeatedOptions(CalibratedOptions, total=False):
    """Names the settings of ``repeated``."""

    k: int
    by: Literal["average", "vote"]


class ReviewOptions(CalibratedOptions, total=False):
    """Names the settings of ``review``; a rule such as ``gap<2`` is any text."""

    when: str | Sequence[str]


class CascadeOptions(CommonOptions, total=False):
    """Names the settings of ``cascade``."""

    cheap: ProtocolName | OwnText
    cheap_settings: InnerOptions
    expensive: ProtocolName | OwnText
    expensive_settings: InnerOptions
    when: Reason | Sequence[Reason]
    gap: float


class RunSettings(InnerOptions, RepeatedOptions, CascadeOptions, total=False):
    """Names the settings of a run: those of all its protocols that have them, and those of one under its name."""

    baseline: CommonOptions
    calibrated: CalibratedOptions
    cascade: CascadeOptions
    chateval: ChatEvalOptions
    debate: DebateOptions
    ensemble: EnsembleOptions
    faireval: FairEvalOptions
    geval: GEvalOptions
    more: MoreOptions
    multiagent: DebateOptions
    repeated: RepeatedOptions
    review: ReviewOptions
    samre: SamreOptions
    single: SingleOptions
