"""The names of the bundled protocols and of their settings, for type checkers and editors.

Each class lists the settings of a class in ``state/settings/``, with the types in which callers
give them. If a setting takes known names as well as any text, ``OwnText`` marks the free text, so
that a type checker still finds a misspelt name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, Literal, NewType, TypeAlias, TypedDict

from ...nodes.runtime.bound_judge import Model, Models
from ...state.settings import Role, SettingsT
from ...state.settings.protocol_settings import Persona, StopRule
from ...state.settings.wrapper_settings import Reason
from .registry import AnyGraph

_WithoutTalk = Literal[
    "baseline", "checklist", "commit_first", "ensemble", "faireval", "geval", "single"
]
_Debates = Literal["chateval", "debate", "more", "multiagent", "samre"]
_Wrappers = Literal["calibrated", "cascade", "repeated", "review"]
ProtocolName = Literal[_WithoutTalk, _Debates, _Wrappers]
"""The bundled protocols; ``load_graph`` takes a name that is known only at run time."""

AnyJudge = ProtocolName | ModuleType | AnyGraph
"""A judge for type checkers: a bundled protocol's name, a protocol's module, or a graph."""

AnyJudges = AnyJudge | Sequence[AnyJudge] | Mapping[str, AnyJudge]
"""One judge, several, or several with names of the caller's choice."""

Bound: TypeAlias = SettingsT | Mapping[str, Any] | None
"""The settings that ``build`` binds: an object, a dict, or none."""

OwnText = NewType("OwnText", str)
"""Your own persona, or the name of a file of roles: ``persona=OwnText("You are a nurse.")``."""

RoleGroup = Literal["diverse", "same", "auto", "generic", "knowledge", "writing", "coding"]
RoleName = (
    Literal["general_public", "critic", "news_author", "psychologist", "scientist"]
    | Literal["encyclopedist", "fact_checker", "teacher"]
    | Literal["novelist", "copy_editor", "literary_critic"]
    | Literal["guido_van_rossum", "code_reviewer", "test_engineer"]
)
"""The known referees, listed by the group that introduces them."""


# Written by benchmarks/make_options.py from state/settings. Do not edit below this line.


class CommonOptions(TypedDict, total=False):
    """The settings of every protocol; ``models`` is a separate argument of ``build``."""

    model: Model
    structured: Literal["auto", "off"]
    prompts: str | None
    layout: Literal["shared_prefix", "papers"]
    fences: Literal["on", "off"]
    trusted_texts: bool
    temperature: float | None
    max_tokens: int | None
    repair: int


class CalibratedOptions(CommonOptions, total=False):
    """The settings of ``calibrated``."""

    of: ProtocolName | OwnText
    inner: InnerOptions


class CascadeOptions(CommonOptions, total=False):
    """The settings of ``cascade``."""

    cheap: ProtocolName | OwnText
    cheap_settings: InnerOptions
    expensive: ProtocolName | OwnText
    expensive_settings: InnerOptions
    when: Reason | Sequence[Reason]
    gap: float
    confidence: float


class ChatEvalOptions(CommonOptions, total=False):
    """The settings of ``chateval``."""

    juror_tools: str | Sequence[Any]
    tool_rounds: int
    tool_timeout: float
    replacements: str | Sequence[Model]
    recuse: Literal["none", "family"]
    position_calibration: bool
    referees: int
    roles: RoleGroup | RoleName | OwnText | Sequence[RoleName | Role | Mapping[str, str]]
    turns: int
    strategy: Literal["one_by_one", "simultaneous", "summarizer"]
    summary: Literal["replace", "append"]
    summarize_last: bool
    score_each_turn: bool
    stop: StopRule | Sequence[StopRule]
    quorum: Literal["majority", "all"] | int
    budget_tokens: int | None


class ChecklistOptions(CommonOptions, total=False):
    """The settings of ``checklist``."""

    group: Literal["all"] | int


class DebateOptions(CommonOptions, total=False):
    """The settings of ``debate`` and ``multiagent``."""

    juror_tools: str | Sequence[Any]
    tool_rounds: int
    tool_timeout: float
    n: int | Literal["auto"]
    persona: Persona | OwnText
    tie_breaker: bool
    on_unresolved: Literal["last", "tie_breaker", "human"]
    commander: Literal["relay", "llm"]
    termination: Literal["declared", "substring"]
    on_overflow: Literal["last", "error"]
    stop: StopRule | Sequence[StopRule]
    eps: float
    budget_tokens: int | None
    risk: float
    prior: str | Sequence[float]


class EnsembleOptions(CommonOptions, total=False):
    """The settings of ``ensemble``."""

    juror_tools: str | Sequence[Any]
    tool_rounds: int
    tool_timeout: float
    replacements: str | Sequence[Model]
    recuse: Literal["none", "family"]
    position_calibration: bool
    referees: int
    roles: RoleGroup | RoleName | OwnText | Sequence[RoleName | Role | Mapping[str, str]]
    quorum: Literal["majority", "all"] | int
    combine: Literal["mean", "median", "trimmed", "geometric_median", "majority", "weighted"]
    weights: Mapping[str, float] | None
    stop: StopRule | Sequence[StopRule]


class FairEvalOptions(CommonOptions, total=False):
    """The settings of ``faireval``."""

    position_calibration: bool
    k: int


class GEvalOptions(CommonOptions, total=False):
    """The settings of ``geval``."""

    weighting: Literal["auto", "logprobs", "sampling"]
    samples: int
    steps: str | Sequence[str]


class MoreOptions(CommonOptions, total=False):
    """The settings of ``more``."""

    replacements: str | Sequence[Model]
    advocates: int
    rounds: int
    aggregate: Literal["llm", "concat", "best"]
    collaborate: bool
    tau: float
    quorum: Literal["majority", "all"] | int
    budget_tokens: int | None


class RepeatedOptions(CommonOptions, total=False):
    """The settings of ``repeated``."""

    of: ProtocolName | OwnText
    inner: InnerOptions
    k: int
    by: Literal["average", "vote"]


class ReviewOptions(CommonOptions, total=False):
    """The settings of ``review``."""

    of: ProtocolName | OwnText
    inner: InnerOptions
    when: str | Sequence[str]


class SamreOptions(CommonOptions, total=False):
    """The settings of ``samre``."""

    juror_tools: str | Sequence[Any]
    tool_rounds: int
    tool_timeout: float
    replacements: str | Sequence[Model]
    recuse: Literal["none", "family"]
    max_rounds: int
    jurors: int
    backgrounds: str | Sequence[str]
    ballot: Literal["vote", "score"]
    memory: Literal["full", "summary"]
    cross_examine: bool
    stop: StopRule | Sequence[StopRule]
    eps: float
    risk: float
    prior: str | Sequence[float]
    budget_tokens: int | None
    quorum: Literal["majority", "all"] | int


class SingleOptions(CommonOptions, total=False):
    """The settings of ``single``."""

    juror_tools: str | Sequence[Any]
    tool_rounds: int
    tool_timeout: float
    position_calibration: bool


class InnerOptions(
    ChatEvalOptions,
    ChecklistOptions,
    DebateOptions,
    EnsembleOptions,
    FairEvalOptions,
    GEvalOptions,
    MoreOptions,
    SamreOptions,
    SingleOptions,
    total=False,
):
    """Settings of a protocol inside a wrapper. Give those of an inner wrapper as a dict."""

    models: Models


class RunSettings(InnerOptions, CalibratedOptions, CascadeOptions, RepeatedOptions, total=False):
    """The settings of a run: those of all its protocols, and those of one under its name."""

    baseline: CommonOptions
    calibrated: CalibratedOptions
    cascade: CascadeOptions
    chateval: ChatEvalOptions
    checklist: ChecklistOptions
    commit_first: CommonOptions
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


# End of what benchmarks/make_options.py writes.
