"""Define the settings of the wrappers: the protocols inside, the settings of these, and how verdicts are combined."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import AfterValidator, BeforeValidator, Field

from ..checked import parts
from ..review_rules import IN_DOUBT, Rule
from .base_settings import MOST_WRAPPERS, Samples, Settings, explicitly_set

Reason = Literal["unresolved", "inconsistent", "gap"]
"""Why a cascade asks its expensive protocol as well."""
REASONS: tuple[Reason, ...] = get_args(Reason)


def _from_text(value: Any) -> Any:
    """Parse a JSON object in one line, as a command line and a form give it."""
    if not isinstance(value, str):
        return {} if value is None else value
    try:
        return json.loads(value) if value.strip() else {}
    except ValueError as error:
        raise ValueError(f"not a JSON object: {error}") from None


def _not_too_deep(given: Any, left: int = MOST_WRAPPERS) -> Any:
    """Refuse settings inside settings inside settings: each wrapper multiplies what the ones inside it take."""
    if isinstance(given, Mapping):
        if not left:
            raise ValueError(f"is nested too deeply: at most {MOST_WRAPPERS} protocols may be nested")
        for value in given.values():
            _not_too_deep(value, left - 1)
    return given


Given = Annotated[
    dict[str, Any],
    BeforeValidator(_from_text, json_schema_input_type=dict[str, Any]),
    AfterValidator(_not_too_deep),
]
Reasons = Annotated[tuple[Reason, ...], BeforeValidator(parts(","), json_schema_input_type=list[Reason])]


ReviewRules = Annotated[
    tuple[Annotated[str, AfterValidator(lambda text: str(Rule.parse(text)))], ...],
    BeforeValidator(parts(","), json_schema_input_type=list[str]),
]


class WrapperSettings(Settings):
    """Settings of a protocol that wraps others; those that all protocols share are passed on to the ones inside.

    >>> bound = RepeatedSettings(of="debate", inner={"n": 2}, structured="off")
    >>> bound.handed_to("of")
    {'structured': 'off', 'n': 2}
    >>> RepeatedSettings(inner={"persona": "weak"}).over(bound).inner
    {'n': 2, 'persona': 'weak'}
    >>> RepeatedSettings(of="chateval").over(bound).inner
    {}
    """

    places: ClassVar[Mapping[str, str]] = {}
    """Maps the setting that names a protocol inside to the setting that holds that protocol's own settings."""

    def over(self, base: Self) -> Self:
        """Return ``base`` with what was set here; the settings of a protocol inside are combined one by one.

        Where another protocol takes the place of one inside, the settings bound for that one are dropped.
        """
        merged = super().over(base)
        inner = {}
        for place, field in self.places.items():
            new, old = getattr(self, field), getattr(base, field)
            same = getattr(merged, place) == getattr(base, place)
            inner[field] = {**old, **new, **_models(old, new)} if same else new
        # A copy is not validated, so that the dicts stay as given; they are checked when the protocol is built.
        return merged.model_copy(update=inner)

    def handed_to(self, place: str) -> dict[str, Any]:
        """Return the settings of the protocol in this place; its own win over those that all share."""
        own = getattr(self, self.places[place])
        chosen = explicitly_set(self)
        shared = {name: value for name, value in chosen.items() if name in Settings.model_fields}
        return {**shared, **own, **_models(shared, own)}


def _models(shared: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Combine the models of both role by role, the second winning; empty where either is no mapping of roles."""
    chosen = [given["models"] for given in (shared, own) if given.get("models")]
    if not all(isinstance(models, Mapping) for models in chosen):
        return {}
    return {"models": {role: model for models in chosen for role, model in models.items()}} if chosen else {}


class CalibratedSettings(WrapperSettings):
    """Settings of both answer orders around a protocol that compares (FairEval, section 3)."""

    places: ClassVar[Mapping[str, str]] = {"of": "inner"}

    of: str = "debate"
    """The protocol inside, by name."""
    inner: Given = Field(default_factory=dict, examples=[{"n": 2, "persona": "moderate"}])
    """Settings of the protocol inside (on a command line: `inner.n=2`)."""


class RepeatedSettings(CalibratedSettings):
    """Settings of several independent runs of one protocol."""

    k: Samples = 3
    """How many runs."""
    by: Literal["average", "vote"] = "average"
    """`average`: the mean of the scores; `vote`: what more than half of the runs say, else the mean."""


class CascadeSettings(WrapperSettings):
    """Settings of a cheap protocol, and an expensive one for what the cheap one leaves in doubt.

    >>> CascadeSettings(when="gap,unresolved").when
    ('gap', 'unresolved')
    """

    places: ClassVar[Mapping[str, str]] = {"cheap": "cheap_settings", "expensive": "expensive_settings"}

    cheap: str = "single"
    """The protocol that is always asked, by name."""
    cheap_settings: Given = Field(default_factory=dict, examples=[{"position_calibration": False}])
    """Its settings (on a command line: `cheap_settings.repair=0`)."""
    expensive: str = "debate"
    """The protocol that is asked in doubt, by name."""
    expensive_settings: Given = Field(default_factory=dict, examples=[{"n": 2}])
    """Its settings (on a command line: `expensive_settings.n=2`)."""
    when: Reasons = REASONS
    """What counts as doubt: `unresolved` (it ended at its last round), `inconsistent` (the two orders of the
    answers disagree), `gap` (the scores of the two answers are too close). None: nothing does."""
    gap: float = Field(default=1.0, ge=0)
    """Two answers whose scores differ by less are too close to each other."""


class ReviewSettings(CalibratedSettings):
    """Settings of one protocol whose verdicts a person reviews where a rule holds.

    >>> ReviewSettings(when="gap<2,split").when
    ('gap<2', 'split')
    """

    when: ReviewRules = Field(default=IN_DOUBT, min_length=1, examples=[["unresolved", "gap<2"]])
    """The rules by which a person is asked: `unresolved`, `orders_differ`, `split` (a jury), `gap<x`,
    `wide>x` (repeated runs), `always`."""

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules, read."""
        return tuple(map(Rule.parse, self.when))
