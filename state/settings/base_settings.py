"""The settings of every protocol, and the rules for combining those of ``build`` and of a run."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from contextvars import ContextVar
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    field_validator,
    model_validator,
)

from ..checked import Checked, fields_in, shortened
from ..errors import Fault, InputError
from ..redaction import names_a_secret
from .caller_rules import ForCallers, one_of


def _names_no_place(name: str) -> bool:
    """Return whether a model's name is neither a path nor an address, which may load weights."""
    return not re.search(
        r"(?:^|[:\s])[/~.]"  # a path from the root, the home folder or this folder
        r"|\.\."  # a path upwards
        r"|\\"  # a path of Windows
        r"|://",  # an address
        name,
    )


class ModelSpec(Checked):
    """The name of a chat model, with its parameters.

    Besides those below, any parameter of the LangChain class behind the name can be given. These
    are checked when the model is created. After ``?``, a dot reaches into an object, and values are
    read as JSON if possible.

    >>> ModelSpec.parse("openai:gpt-4o-mini?temperature=0.7&seed=3").temperature
    0.7
    >>> ModelSpec.parse("anthropic:claude-sonnet-4-5?thinking.type=enabled&thinking.budget_tokens=2000").more
    {'thinking': {'type': 'enabled', 'budget_tokens': 2000}}
    """

    model_config = ConfigDict(extra="allow")
    called: ClassVar[str] = "a model"
    part: ClassVar[str] = "parameter"
    for_callers: ClassVar[frozenset[str] | None] = frozenset(
        {
            *("name", "temperature", "top_p", "top_k", "seed", "max_tokens"),
            *("reasoning_effort", "thinking_level", "thinking_budget", "verbosity"),
        }
    )
    """Other parameters may contain an address, the name of a variable with a key, or a price.

    Such a price would defeat a budget. Only the model's class knows some of the parameters."""

    name: Annotated[str, ForCallers(_names_no_place)] = Field(min_length=1)
    """`offline`, or `provider:model`, such as `openai:gpt-4o-mini`."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    """Sampling temperature."""
    top_p: float | None = Field(default=None, gt=0, le=1)
    """Nucleus sampling mass."""
    seed: int | None = None
    """Seed, if the provider supports it."""
    max_tokens: int | None = Field(default=None, ge=0)
    """Maximum tokens of a reply; 0: the provider's limit."""
    base_url: str | None = None
    """Another address with the same API; several of one model, separated by commas."""
    identity: str | None = Field(default=None, min_length=1)
    """The name of the model in its calls and runs instead of the address: an earlier address of the
    same model, or a name for the served model. With it, nothing is paid for again when the host
    changes."""
    key_env: str | None = None
    """The environment variable with the key, if it is not the provider's own; also several."""
    at_once: int | None = Field(default=None, ge=1)
    """With several addresses or keys: maximum simultaneous calls for each."""
    max_wait: float | None = Field(default=None, ge=0)
    """Maximum seconds that a call waits for other attempts, in all; a run has its own limit."""
    context_window: int | None = Field(default=None, ge=1)
    """Tokens of prompt and reply together, if neither the model list nor the server knows them."""
    session_header: str | None = Field(default=None, pattern=r"^[A-Za-z0-9-]+$")
    """Header with a key for each item of a run, such as `x-session-id`, by which a router keeps an
    item on one server."""
    price_in: float | None = Field(default=None, ge=0)
    """US$ per million input tokens, if the price list has none."""
    price_out: float | None = Field(default=None, ge=0)
    """US$ per million output tokens, if the price list has none."""

    @property
    def more(self) -> dict[str, Any]:
        """Parameters of the model's class that are not fields of this one."""
        return dict(self.model_extra or {})

    @property
    def addresses(self) -> list[str]:
        """The addresses of the servers for the model."""
        return [part.strip() for part in (self.base_url or "").split(",") if part.strip()]

    @property
    def identified(self) -> Self:
        """The same model with ``identity`` (if given) instead of its address.

        It has no ``max_wait`` and no ``session_header``, which change no reply. With ``*`` it has
        no address, like one of several servers.
        """
        address = None if self.identity == "*" else self.identity
        known = {"base_url": address, "identity": None} if self.identity else {}
        return self.model_copy(update={"max_wait": None, "session_header": None, **known})

    @property
    def key_names(self) -> list[str]:
        """The environment variables with the keys."""
        return [part.strip() for part in (self.key_env or "").split(",") if part.strip()]

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if (self.price_in is None) != (self.price_out is None):
            raise ValueError("give both prices, price_in and price_out, in US$ per million tokens")
        if secret := next((name for name, _ in fields_in(self.more) if names_a_secret(name)), None):
            raise ValueError(
                f"{secret} must not be in a model's name, which is recorded; "
                "set the provider's environment variable, or name one of your own: key_env=NAME"
            )
        return self

    @classmethod
    def parse(cls, value: Any) -> Any:
        """Read ``name?key=value&key=value``; other types are returned unchanged."""
        if not isinstance(value, str):
            return value
        name, _, query = value.partition("?")
        given: dict[str, Any] = {}
        for key, _, text in (pair.partition("=") for pair in query.split("&") if pair):
            *outer, last = key.split(".")
            inner = given
            for part in outer:
                inner = inner.setdefault(part, {})
                if not isinstance(inner, dict):
                    raise ValueError(f"{part} is given both as a value and as an object")
            inner[last] = text
            # A provider's own parameter is JSON if possible, otherwise text.
            if key not in cls.model_fields:
                with suppress(ValueError):
                    inner[last] = json.loads(text)
        return cls.model_validate({"name": name, **given})

    def __str__(self) -> str:
        fields = self.model_dump(exclude={"name"}, exclude_none=True)
        texts = {
            key: value if isinstance(value, str) else json.dumps(value)
            for key, value in fields.items()
        }
        query = "&".join(f"{key}={text}" for key, text in texts.items())
        return f"{self.name}?{query}" if query else self.name


OFFLINE = ModelSpec(name="offline")
"""The model of the demo mode: scores come from word counts, not from a language model."""

OFFLINE = ModelSpec(name="offline")
"""The model of the demo mode: scores come from word counts, not from a language model."""

ModelName = Annotated[
    ModelSpec, BeforeValidator(ModelSpec.parse, json_schema_input_type=str | ModelSpec)
]


# The maximum of each size, here and in every protocol: far beyond the papers' values, so that a
# typing error is found at once. ``nodes/common/server_rules.py`` has the limits for a server's
# callers.

MOST_WRAPPERS = 8
"""Nested protocols."""

Rounds = Annotated[int, Field(ge=1, le=100)]
Agents = Annotated[int, Field(ge=1, le=100)]
Samples = Annotated[int, Field(ge=1, le=1000)]
"""Several replies to one question, or several runs of one protocol."""

Layout = Literal["shared_prefix", "papers"]
"""The place of the agent's role in a prompt."""

Fences = Literal["on", "off"]
"""Whether lines mark the texts in a prompt as data."""

PAPERS = "papers"
"""The value of ``prompts`` for the bundled templates with the structure of the papers' prompts."""

IMPLIED_BY_PAPERS: Mapping[str, Any] = {"layout": PAPERS, "structured": "off"}
"""The default settings with ``prompts=papers``: the papers' prompts request text."""

REPLY_LIMITS: Mapping[str, int] = {"*": 2048, "vote": 1024, "steps": 1024}
"""The default maximum of tokens by the form of a reply: over five times the requested length."""


unknown_keys: ContextVar[tuple[str, ...]] = ContextVar("unknown_keys", default=())
"""The keys that a server did not find in the schema of a run's settings."""


class _Properties(dict[str, Any]):
    """The fields in a schema; it notes unknown keys, which LangGraph's server drops silently."""

    def __contains__(self, name: object) -> bool:
        known = super().__contains__(name)
        if not known:
            unknown_keys.set((*unknown_keys.get(), str(name)))
        return known


class Settings(Checked):
    """Settings that every protocol has; a protocol's own class adds to them.

    For each field, the run's context overrides ``build``, and ``build`` overrides the default.
    Messages name the settings by ``called``: the protocol, or the class name if there is none.
    """

    called: ClassVar[str] = "a protocol"
    part: ClassVar[str] = "setting"
    newer: ClassVar[frozenset[str]] = frozenset({"fences", "trusted_texts"})
    """Settings that a run's signature leaves out at their default. They were added later, so the
    signatures of earlier runs do not name them."""

    models: dict[Annotated[str, ForCallers()], ModelName] = Field(
        default_factory=dict, examples=[{"*": "openai:gpt-4o-mini"}]
    )
    """The model of each role, such as {"critic": "openai:gpt-4o-mini"}; `*` is for all others.
    Default: the offline judge, which does not use a language model."""
    structured: Literal["auto", "off"] = "auto"
    """`auto`: JSON replies if the model supports them; `off`: plain text in and out."""
    prompts: Annotated[str | None, one_of(PAPERS)] = None
    """A folder whose templates replace those of the same name; `papers`: templates with the
    structure of the papers' prompts, with `layout=papers` and `structured=off` unless these are
    set."""
    layout: Layout = "shared_prefix"
    """The place of an agent's role in the prompt: `shared_prefix`: after the text for all agents,
    so that providers' caches discount most of a prompt; `papers`: in the system message, as in the
    papers."""
    fences: Fences = "on"
    """`off`: texts stand in the prompt without the lines that mark them as data, as in the papers'
    prompts. A text can then give orders to the judge, so this also needs `trusted_texts`."""
    trusted_texts: bool = False
    """You have read the texts under judgement, or trust their authors: allows `fences=off`."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    """Sampling temperature; empty: the protocol's own, 0 unless it samples."""
    max_tokens: int | None = Field(
        default=None,
        ge=0,
        description=f"Most tokens a reply may have; empty: {REPLY_LIMITS['*']:,}, of a vote or a plan "
        f"{REPLY_LIMITS['vote']:,}, and no limit for models that reason; 0: no limit but the provider's.",
    )
    repair: int = Field(default=1, ge=0, le=10)
    """How often an unreadable reply is requested again."""
    _implied: frozenset[str] = PrivateAttr(default=frozenset())

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.called = cls.__dict__.get("called") or cls.__name__.removesuffix("Settings").lower()

    @classmethod
    def model_json_schema(cls, *args: Any, **options: Any) -> dict[str, Any]:
        """Return pydantic's schema, with fields that note which unknown keys were looked up.

        The protocol's own settings come before those of all protocols, as forms show them.
        """
        schema = super().model_json_schema(*args, **options)
        properties = {name: schema["properties"][name] for name in cls.names()}
        return {**schema, "properties": _Properties(properties)}

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of the settings, with those of every protocol at the end."""
        return sorted(cls.model_fields, key=lambda name: name in Settings.model_fields)

    @model_validator(mode="after")
    def _papers_imply_layout_and_text(self) -> Self:
        if self.prompts == PAPERS:
            chosen = explicitly_set(self)
            implied = {
                name: value for name, value in IMPLIED_BY_PAPERS.items() if name not in chosen
            }
            for name, value in implied.items():
                # pydantic's own method refuses frozen models and would count the field as set.
                object.__setattr__(self, name, value)
            self._implied = frozenset(implied)
        return self

    @property
    def unchanged_newer(self) -> frozenset[str]:
        """The names of the newer settings at their default, which signatures leave out."""
        fields = type(self).model_fields
        return frozenset(
            name for name in self.all_newer() if getattr(self, name) == fields[name].default
        )

    @classmethod
    def all_newer(cls) -> set[str]:
        """The names of the newer settings of this class and of its base classes."""
        return {name for kind in cls.__mro__ for name in getattr(kind, "newer", ())}

    @property
    def implied(self) -> frozenset[str]:
        """The names of the settings that follow from others and were not set."""
        return self._implied

    @field_validator("models", mode="before")
    @classmethod
    def _one_for_all(cls, models: Any) -> Any:
        """Use a single model, a name or one with parameters, for all roles."""
        alone = isinstance(models, str | ModelSpec) or (
            isinstance(models, Mapping) and "name" in models
        )
        return {"*": models} if alone else models

    def over(self, base: Self) -> Self:
        """Return ``base`` overridden by the explicitly set fields; models are combined by role."""
        # Validate again, and from set fields only: checks of two fields see the combination, and
        # the result still distinguishes set fields from defaults.
        fields = {
            **self._inherited(base),
            **explicitly_set(self),
            "models": {**base.models, **self.models},
        }
        return type(base).model_validate(fields)

    def _inherited(self, base: Self) -> dict[str, Any]:
        """Return the fields of ``base`` that ``over`` uses unless these settings set them."""
        return explicitly_set(base)


SettingsT = TypeVar("SettingsT", bound=Settings)


def make_settings(
    cls: type[SettingsT], given: SettingsT | Mapping[str, Any] | None, fields: Mapping[str, Any]
) -> SettingsT:
    """Return the settings for ``build(settings, **fields)``; fields override settings.

    Raises:
        InputError: an invalid setting; the message names it and its allowed values.
    """
    if not isinstance(given, Settings | Mapping | None):
        words = f"the settings of {cls.called} must be an object of names and values, got {shortened(given)}"
        raise InputError.from_faults(cls.called, [Fault("dict_type", (), words, given)])
    start = given if isinstance(given, cls) else cls.model_validate(dict(given or {}))
    return cls.model_validate(dict(fields)).over(start) if fields else start


def resolve_settings(bound: SettingsT, context: object) -> SettingsT:
    """Return the settings of a run: its context's settings over the bound ones.

    A context of another class belongs to an outer graph and does not affect this protocol.
    """
    # LangGraph passes the parent's context object to a sub-graph, regardless of the sub-graph's
    # context schema. Compare the exact class, because settings of one protocol may inherit from
    # those of another.
    return context.over(bound) if type(context) is type(bound) else bound


def explicitly_set(settings: Settings) -> dict[str, Any]:
    """Return the fields that were set on purpose.

    A form (Studio's) sends every field that it shows. Settings with all of these fields are
    therefore assumed to come from a form, and their fields count as set only if they differ from
    the default. Values that follow from other settings (``prompts=papers``) do not count.
    """
    defaults = {
        n: f.get_default(call_default_factory=True) for n, f in type(settings).model_fields.items()
    }
    # A form may leave out fields with empty defaults (None, a list, a dict), so these do not
    # matter. A form that was saved by an earlier version lacks the newer fields.
    shown_by_forms = {
        name for name, default in defaults.items() if isinstance(default, str | int | float)
    } - type(settings).all_newer()
    is_form = shown_by_forms <= settings.model_fields_set
    values = {
        n: getattr(settings, n) for n in settings.model_fields_set if n not in settings.implied
    }
    return {name: value for name, value in values.items() if not is_form or value != defaults[name]}
