"""The settings of the wrappers: the protocols inside, their settings, and how verdicts combine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field

from ..checked import parts
from ..review_rules import IN_DOUBT, Rule
from .base_settings import MOST_WRAPPERS, Samples, Settings, explicitly_set
from .caller_rules import ForCallers
from .option_types import TypedAs

Reason = Literal["unresolved", "inconsistent", "gap", "confidence"]
"""Why a cascade also asks its expensive protocol."""
REASONS: tuple[Reason, ...] = ("unresolved", "inconsistent", "gap")
"""The reasons that count by default."""


def _from_text(value: Any) -> Any:
    """Parse a JSON object from one line of a command line or a form."""
    if not isinstance(value, str):
        return {} if value is None else value
    try:
        return json.loads(value) if value.strip() else {}
    except ValueError as error:
        raise ValueError(f"not a JSON object: {error}") from None


def _not_too_deep(given: Any, left: int = MOST_WRAPPERS) -> Any:
    """Refuse deeply nested settings, because each wrapper multiplies the calls inside it."""
    if isinstance(given, Mapping):
        if not left:
            raise ValueError(
                f"is nested too deeply: at most {MOST_WRAPPERS} protocols may be nested"
            )
        for value in given.values():
            _not_too_deep(value, left - 1)
    return given


Given = Annotated[
    dict[str, Any],
    BeforeValidator(_from_text, json_schema_input_type=dict[str, Any]),
    AfterValidator(_not_too_deep),
    TypedAs("InnerOptions"),
]
Reasons = Annotated[
    tuple[Reason, ...],
    BeforeValidator(parts(","), json_schema_input_type=list[Reason]),
    TypedAs("Reason | Sequence[Reason]"),
]
ProtocolInside = Annotated[str, TypedAs("ProtocolName | OwnText")]
"""A protocol by name; a file's path is text of one's own."""


ReviewRules = Annotated[
    tuple[Annotated[str, AfterValidator(lambda text: str(Rule.parse(text))), ForCallers()], ...],
    BeforeValidator(parts(","), json_schema_input_type=list[str]),
    TypedAs("str | Sequence[str]"),
]


class WrapperSettings(Settings):
    """Settings of a wrapper; settings that all protocols share are passed on to those inside.

    >>> bound = RepeatedSettings(of="debate", inner={"n": 2}, structured="off")
    >>> bound.handed_to("of")
    {'structured': 'off', 'n': 2}
    >>> RepeatedSettings(inner={"persona": "weak"}).over(bound).inner
    {'n': 2, 'persona': 'weak'}
    >>> RepeatedSettings(of="chateval").over(bound).inner
    {}
    """

    places: ClassVar[Mapping[str, str]] = {}
    """The setting with a protocol's own settings, by the setting that names the protocol inside."""

    def over(self, base: Self) -> Self:
        """Return ``base`` overridden by these settings.

        Settings of a protocol inside combine one by one.

        If another protocol replaces one inside, the settings that were bound for it are dropped.
        """
        merged = super().over(base)
        inner = {}
        for place, field in self.places.items():
            new = getattr(self, field)
            old = getattr(base, field)
            same = getattr(merged, place) == getattr(base, place)
            inner[field] = {**old, **new, **_models(old, new)} if same else new
        # A copy is not validated, so the dicts stay as given. They are checked when the protocol is
        # built.
        return merged.model_copy(update=inner)

    def handed_to(self, place: str) -> dict[str, Any]:
        """Return the settings of the protocol in this place; its own override the shared ones."""
        own = getattr(self, self.places[place])
        chosen = explicitly_set(self)
        shared = {name: value for name, value in chosen.items() if name in Settings.model_fields}
        return {**shared, **own, **_models(shared, own)}


def _models(shared: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Combine the models of both by role, with priority for the second; empty without roles."""
    chosen = [given["models"] for given in (shared, own) if given.get("models")]
    if not all(isinstance(models, Mapping) for models in chosen):
        return {}
    return (
        {"models": {role: model for models in chosen for role, model in models.items()}}
        if chosen
        else {}
    )


class CalibratedSettings(WrapperSettings):
    """Settings of both answer orders around a protocol that compares (FairEval, section 3)."""

    places: ClassVar[Mapping[str, str]] = {"of": "inner"}

    of: ProtocolInside = "debate"
    """The protocol inside, by name."""
    inner: Given = Field(default_factory=dict, examples=[{"n": 2, "persona": "moderate"}])
    """Settings of the protocol inside (on a command line: `inner.n=2`)."""


class ChatSettings(CalibratedSettings):
    """Settings of one protocol that is asked in a chat."""


class RepeatedSettings(CalibratedSettings):
    """Settings of several independent runs of one protocol."""

    k: Samples = 3
    """The number of runs."""
    by: Literal["average", "vote"] = "average"
    """`average`: the mean of the scores; `vote`: the outcome of more than half of the runs,
    otherwise the mean."""


class CascadeSettings(WrapperSettings):
    """Settings of a cheap protocol, and an expensive one for its doubtful verdicts.

    >>> CascadeSettings(when="gap,unresolved").when
    ('gap', 'unresolved')
    """

    places: ClassVar[Mapping[str, str]] = {
        "cheap": "cheap_settings",
        "expensive": "expensive_settings",
    }

    cheap: ProtocolInside = "single"
    """The protocol that is always asked, by name."""
    cheap_settings: Given = Field(default_factory=dict, examples=[{"position_calibration": False}])
    """Its settings (on a command line: `cheap_settings.repair=0`)."""
    expensive: ProtocolInside = "debate"
    """The protocol that is asked in doubt, by name."""
    expensive_settings: Given = Field(default_factory=dict, examples=[{"n": 2}])
    """Its settings (on a command line: `expensive_settings.n=2`)."""
    when: Reasons = REASONS
    """What counts as doubt: `unresolved` (it ended at its last round), `inconsistent` (the two
    orders of the answers disagree), `gap` (the scores of the two answers are too close),
    `confidence` (too few votes of a panel for its verdict, or too little probability). None:
    nothing does."""
    gap: float = Field(default=1.0, ge=0)
    """Two answers are too close if their scores differ by less."""
    confidence: float = Field(default=0.6, gt=0, le=1)
    """With `when=confidence`, the share of votes, or of probability, below which a verdict is in
    doubt."""

    newer: ClassVar[frozenset[str]] = frozenset({"confidence"})


class ReviewSettings(CalibratedSettings):
    """Settings of one protocol with a human review of verdicts that match a rule.

    >>> ReviewSettings(when="gap<2,split").when
    ('gap<2', 'split')
    """

    when: ReviewRules = Field(default=IN_DOUBT, min_length=1, examples=[["unresolved", "gap<2"]])
    """The rules for asking a human: `unresolved`, `orders_differ`, `split` (a jury), `gap<x`,
    `wide>x` (repeated runs), `always`."""

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The parsed rules."""
        return tuple(map(Rule.parse, self.when))
