"""Define the settings that every protocol has, and how those of ``build`` and of a run's context are combined."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from contextvars import ContextVar
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import BeforeValidator, ConfigDict, Field, field_validator, model_validator

from ..checked import Checked, fields_in, shortened
from ..errors import Fault, InputError
from ..redaction import names_a_secret


class ModelSpec(Checked):
    """The name of a chat model, with parameters of its own.

    Besides those below, any parameter of the LangChain class behind the name may be given; they are checked when the
    model is made. After ``?`` a dot reaches into an object, and values are read as JSON where they are JSON.

    >>> ModelSpec.parse("openai:gpt-4o-mini?temperature=0.7&seed=3").temperature
    0.7
    >>> ModelSpec.parse("anthropic:claude-sonnet-4-5?thinking.type=enabled&thinking.budget_tokens=2000").more
    {'thinking': {'type': 'enabled', 'budget_tokens': 2000}}
    """

    model_config = ConfigDict(extra="allow")
    called: ClassVar[str] = "a model"
    part: ClassVar[str] = "parameter"

    name: str = Field(min_length=1)
    """`offline`, or `provider:model`, such as `openai:gpt-4o-mini`."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    """Sampling temperature."""
    top_p: float | None = Field(default=None, gt=0, le=1)
    """Nucleus sampling mass."""
    seed: int | None = None
    """Seed, where the provider takes one."""
    max_tokens: int | None = Field(default=None, ge=0)
    """Most tokens a reply may have; 0: as many as the provider lets it."""
    base_url: str | None = None
    """Another address that speaks the same protocol; several of one model, with commas between."""
    identity: str | None = Field(default=None, min_length=1)
    """What its calls and runs are known by in place of the address: an earlier address of the same model, or a name for
    what is served, so that nothing is paid for again when the host changes."""
    key_env: str | None = None
    """The environment variable with the key, where it is not the provider's own; also several."""
    at_once: int | None = Field(default=None, ge=1)
    """Of several addresses or keys: most calls under way at each."""
    max_wait: float | None = Field(default=None, ge=0)
    """Most seconds that a call waits for another attempt, in all; a run has a limit of its own."""
    context_window: int | None = Field(default=None, ge=1)
    """Tokens of prompt and reply together, where neither list nor server tells."""
    price_in: float | None = Field(default=None, ge=0)
    """US$ for a million input tokens, where the price list has none."""
    price_out: float | None = Field(default=None, ge=0)
    """The same for output tokens."""

    @property
    def more(self) -> dict[str, Any]:
        """Parameters of the model's class that are no fields of this one."""
        return dict(self.model_extra or {})

    @property
    def addresses(self) -> list[str]:
        """The addresses of the servers that serve it."""
        return [part.strip() for part in (self.base_url or "").split(",") if part.strip()]

    @property
    def identified(self) -> Self:
        """The same model with ``identity``, where that is given, in place of its address, and without ``max_wait``.

        With ``*`` it has no address, as one of several servers.
        """
        address = None if self.identity == "*" else self.identity
        known = {"base_url": address, "identity": None} if self.identity else {}
        return self.model_copy(update={"max_wait": None, **known})

    @property
    def key_names(self) -> list[str]:
        """The environment variables with the keys."""
        return [part.strip() for part in (self.key_env or "").split(",") if part.strip()]

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if (self.price_in is None) != (self.price_out is None):
            raise ValueError("give both prices, price_in and price_out, in US$ per million tokens")
        if secret := next((name for name, _ in fields_in(self.more) if names_a_secret(name)), None):
            remedy = "set the provider's environment variable, or name one of your own: key_env=NAME"
            raise ValueError(f"{secret} must not be in a model's name, which is recorded; {remedy}")
        return self

    @classmethod
    def parse(cls, value: Any) -> Any:
        """Read ``name?key=value&key=value``; anything but a string passes through."""
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
            # A provider's own parameter is JSON, or else the text that it is.
            if key not in cls.model_fields:
                with suppress(ValueError):
                    inner[last] = json.loads(text)
        return cls.model_validate({"name": name, **given})

    def __str__(self) -> str:
        fields = self.model_dump(exclude={"name"}, exclude_none=True)
        texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in fields.items()}
        query = "&".join(f"{key}={text}" for key, text in texts.items())
        return f"{self.name}?{query}" if query else self.name


ModelName = Annotated[ModelSpec, BeforeValidator(ModelSpec.parse, json_schema_input_type=str | ModelSpec)]


# The most that each size may be set to, here and in every protocol: far beyond what any paper has tried, so that a slip
# of the finger is told at once. What a caller of a server may ask for in all is in ``nodes/server_rules.py``.

MOST_WRAPPERS = 8
"""Protocols inside each other."""

Rounds = Annotated[int, Field(ge=1, le=100)]
Agents = Annotated[int, Field(ge=1, le=100)]
Samples = Annotated[int, Field(ge=1, le=1000)]
"""Several replies to one question, or several runs of one protocol."""

Layout = Literal["shared_prefix", "papers"]
"""Where a prompt says who the agent is."""

PAPERS = "papers"
"""The bundled templates with the structure of the papers' prompts, as a value of ``prompts``."""

REPLY_LIMITS: Mapping[str, int] = {"*": 2048, "vote": 1024, "steps": 1024}
"""The tokens that a reply may have where nobody says, by its form: over five times what the prompts ask for."""


unknown_keys: ContextVar[tuple[str, ...]] = ContextVar("unknown_keys", default=())
"""What a server has looked for in the schema of a run's settings, and not found."""


class _Properties(dict[str, Any]):
    """The fields in a schema. LangGraph's server drops what a run's context has besides, and tells nobody."""

    def __contains__(self, name: object) -> bool:
        known = super().__contains__(name)
        if not known:
            unknown_keys.set((*unknown_keys.get(), str(name)))
        return known


class Settings(Checked):
    """Settings that every protocol has; a protocol's own class adds to them.

    For each field the run's context wins over what was given to ``build``, and that over the default. In messages
    the settings are those of ``called``: the protocol, or until there is one the name of the class.
    """

    called: ClassVar[str] = "a protocol"
    part: ClassVar[str] = "setting"

    models: dict[str, ModelName] = Field(default_factory=dict, examples=[{"*": "openai:gpt-4o-mini"}])
    """Which model plays which role, such as {"critic": "openai:gpt-4o-mini"}; `*` stands for all others.
    Nobody chosen: the offline judge, which is no language model."""
    structured: Literal["auto", "off"] = "auto"
    """`auto`: JSON replies where the model can; `off`: plain text in and out."""
    prompts: str | None = None
    """A folder whose templates replace those of the same name; `papers`: templates with the structure of the
    papers' own prompts, and `layout=papers` unless that is set."""
    layout: Layout = "shared_prefix"
    """Where agents are told who they are: `shared_prefix`: after what all of them are shown, so that
    providers' caches discount most of a prompt; `papers`: in the system message, as papers have it."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    """Sampling temperature; empty: the protocol's own, 0 unless it samples."""
    max_tokens: int | None = Field(
        default=None,
        ge=0,
        description=f"Most tokens a reply may have; empty: {REPLY_LIMITS['*']:,}, of a vote or a plan "
        f"{REPLY_LIMITS['vote']:,}, and no limit for models that reason; 0: no limit but the provider's.",
    )
    repair: int = Field(default=1, ge=0, le=10)
    """How often a reply that cannot be read is asked for again."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.called = cls.__dict__.get("called") or cls.__name__.removesuffix("Settings").lower()

    @classmethod
    def model_json_schema(cls, *args: Any, **options: Any) -> dict[str, Any]:
        """Return the schema as pydantic does, with fields that note which others were looked for.

        A form has its fields in this order: what the protocol is about comes before what all of them have.
        """
        schema = super().model_json_schema(*args, **options)
        properties = {name: schema["properties"][name] for name in cls.names()}
        return {**schema, "properties": _Properties(properties)}

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of the settings, those that every protocol has at the end."""
        return sorted(cls.model_fields, key=lambda name: name in Settings.model_fields)

    @model_validator(mode="before")
    @classmethod
    def _papers_have_their_layout(cls, given: Any) -> Any:
        papers = isinstance(given, Mapping) and given.get("prompts") == PAPERS
        return {"layout": PAPERS, **given} if papers else given

    @field_validator("models", mode="before")
    @classmethod
    def _one_for_all(cls, models: Any) -> Any:
        """Take one model alone, a name or one with parameters, as that of all roles."""
        alone = isinstance(models, str | ModelSpec) or (isinstance(models, Mapping) and "name" in models)
        return {"*": models} if alone else models

    def over(self, base: Self) -> Self:
        """Return ``base`` with the fields that were set explicitly here; ``models`` are combined role by role."""
        # Validated anew, and from set fields only: checks of two fields together see the combination, and the result
        # still tells what was set from what is a default.
        fields = {**self._inherited(base), **explicitly_set(self), "models": {**base.models, **self.models}}
        return type(base).model_validate(fields)

    def _inherited(self, base: Self) -> dict[str, Any]:
        """Return the fields of ``base`` that ``over`` keeps where these settings do not set them."""
        return explicitly_set(base)


SettingsT = TypeVar("SettingsT", bound=Settings)


def make_settings(
    cls: type[SettingsT], given: SettingsT | Mapping[str, Any] | None, fields: Mapping[str, Any]
) -> SettingsT:
    """Make the settings that ``build(settings, **fields)`` asks for; fields win.

    Raises:
        InputError: names the setting, and what values it takes.
    """
    if not isinstance(given, Settings | Mapping | None):
        words = f"the settings of {cls.called} must be an object of names and values, got {shortened(given)}"
        raise InputError.from_faults(cls.called, [Fault("dict_type", (), words, given)])
    start = given if isinstance(given, cls) else cls.model_validate(dict(given or {}))
    return cls.model_validate(dict(fields)).over(start) if fields else start


def resolve_settings(bound: SettingsT, context: object) -> SettingsT:
    """Return the settings of a run: what its context sets, over what was bound by ``build``.

    A context of any other class belongs to a bigger graph and says nothing about this protocol.
    """
    # LangGraph hands a sub-graph its parent's context object as it is, whatever the sub-graph's own context schema;
    # the exact class is compared, since the settings of one protocol may inherit from those of another.
    return context.over(bound) if type(context) is type(bound) else bound


def explicitly_set(settings: Settings) -> dict[str, Any]:
    """Return the fields that were set on purpose.

    A form (Studio's) sends every field that it shows, touched or not. Settings with all of these fields are therefore
    taken to come from a form, and count as set only where they differ from the default.
    """
    defaults = {n: f.get_default(call_default_factory=True) for n, f in type(settings).model_fields.items()}
    # A form may leave out a field that is empty by default (None, a list, a dict), so those are no sign of one.
    shown_by_forms = {name for name, default in defaults.items() if isinstance(default, str | int | float)}
    values = {name: getattr(settings, name) for name in settings.model_fields_set}
    if not shown_by_forms <= values.keys():
        return values
    return {name: value for name, value in values.items() if value != defaults[name]}
