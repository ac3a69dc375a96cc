"""Make chat models from model names, and import a provider's package only when needed.

OpenAI's models use this package's own client. Other names are resolved by ``init_chat_model`` of
the ``langchain`` package, which is imported at first use, or by another package's provider.
"""

from __future__ import annotations

import difflib
import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from langchain_core.language_models import BaseChatModel
from pydantic import ConfigDict, SecretStr, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo

from ...state.errors import UsageError
from ...state.redaction import remember_secrets
from ...state.settings import ModelSpec
from ...state.verdict_warnings import LOCAL_DISCLOSURE
from ..common.plugins import Group, load_plugin, plugins
from ..offline import OfflineJudge
from . import local_model, prices
from .capabilities import field_of
from .connections import HOOKS, close_with_loop, http_clients
from .loaded_model import LoadedModel, Serving
from .model_chains import Chain, identity_of_chain, identity_of_name
from .provider_errors import shown_cause
from .providers import OPENAI, PROVIDERS, client_of, provider_of

if TYPE_CHECKING:
    from .openai_fast import FastChatOpenAI

MakeChatModel = Callable[[ModelSpec], BaseChatModel]
"""A function from a name and its parameters to a chat model.

A package registers it under ``jurygraph.providers``. The name includes the provider
(``acme:large``). Parameters that nobody set are ``None``. The model should make one request per
call without a time limit, because the run handles retries and time-outs. A missing key raises
``UsageError``.
"""

_GROUP: Group = "jurygraph.providers"


def load(spec: ModelSpec, loop: object) -> LoadedModel:
    """Return the model of that name for calls on this event loop. Blocking.

    The first call reads files. Clients are cached per event loop, since their connections belong to
    it, and recreated when a key or an address in the environment changes.

    Raises:
        UsageError: an unknown provider or a missing key; the message says what to do.
    """
    with _LOADING:
        # A closed loop that is still referenced would keep its clients.
        for ended in [known for known in _LOADED if getattr(known, "is_closed", bool)()]:
            del _LOADED[ended]
        models = _LOADED.setdefault(loop, {})
        key = _key(spec)
        if key not in models:
            models[key], clients = check(spec)()
            close_with_loop(loop, *clients)
        return models[key]


def loaded(spec: ModelSpec, loop: object) -> LoadedModel | None:
    """Return the model of this name if it is loaded, else None. Never blocks."""
    return _LOADED.get(loop, {}).get(_key(spec))


def wrap(model: Chain) -> LoadedModel:
    """Wrap the caller's own model object; it can be called on any event loop."""
    return LoadedModel(model, identity_of_chain(model), Serving(), shared=True)


_Made = tuple[LoadedModel, Sequence[Any]]
"""A model, and its HTTP clients, to be closed with the event loop."""


def _made(spec: ModelSpec, chat: BaseChatModel, *clients: Any) -> _Made:
    """Load a chat model without retries and time limit, which ``retry.py`` handles."""
    serving = Serving(context=spec.context_window, max_wait=spec.max_wait)
    return LoadedModel(chat, identity_of_name(spec), serving), clients


def check(spec: ModelSpec) -> Callable[[], _Made]:
    """Check a model's provider, parameters and key without calling it.

    Returns:
        A function that returns the model, which may exist already if the check had to create it.

    Raises:
        UsageError: something is missing; the message names it in one sentence.
    """
    provider, _, name = spec.name.partition(":")
    if spec.price_in is not None and spec.price_out is not None:
        prices.give(spec.name, spec.price_in, spec.price_out)
    if spec.name == "offline":
        if spec.more:
            raise UsageError(f"the model offline has no parameter {next(iter(spec.more))!r}")
        return lambda: _made(spec, OfflineJudge())
    if spec.name == "local":
        own = local_model.check(spec)
        others = local_model.further(spec)
        _further_parameters(others, _openai_class())
        return lambda: _local(own, others)
    is_built_in = provider in OPENAI.names
    record = provider_of(provider)
    if not is_built_in and max(len(spec.addresses), len(spec.key_names)) > 1:
        raise UsageError(
            f"{spec.name}: several addresses or keys only work with OpenAI's protocol: openai:NAME?base_url=A,B"
        )
    if not is_built_in and spec.session_header is not None:
        raise UsageError(
            f"{spec.name}: session_header only works with OpenAI's protocol: openai:NAME?base_url=..."
        )
    if wrong := [part for part in spec.addresses if not part.startswith(("http://", "https://"))]:
        raise UsageError(
            f"{spec.name}: an address begins with http:// or https://, got base_url={wrong[0]}"
        )
    if record is not None and record.key_variables and name:
        _check_key(spec, record.key_variables)
    if is_built_in and name:
        if spec.more:
            _further_parameters(spec, _openai_class())
        return lambda: _made(spec, *_openai(spec, name))
    if provider in plugins(_GROUP) and name:
        chat = _registered(spec)
        return lambda: _made(spec, chat)
    if provider in _langchain_providers() and name:
        known = _made_by_langchain(spec)
        return lambda: _made(spec, known, *http_clients(known))
    raise _unknown_model(spec.name, provider, name)


def _unknown_model(given: str, provider: str, name: str) -> UsageError:
    names = ", ".join(f"`{known}:<name>`" for known in provider_names())
    kinds = f"A model is `offline`, `local`, or one of {names}"
    close = difflib.get_close_matches(provider, provider_names(), 1, 0.7)
    if close:
        return UsageError(
            f"unknown model {given!r}; did you mean `{close[0]}:{name or '<name>'}`? {kinds}"
        )
    if not name:
        return UsageError(
            f"unknown model {given!r}; name its provider, too, as in `openai:gpt-4o-mini`. {kinds}"
        )
    return UsageError(f"unknown model {given!r}. {kinds}")


def _check_key(spec: ModelSpec, keys: Sequence[str]) -> None:
    if missing := [key for key in spec.key_names if not os.environ.get(key)]:
        keys = missing
    if missing or not (spec.key_names or any(os.environ.get(key) for key in keys)):
        others = "".join(f" or {key}" for key in keys[1:] if not missing)
        is_openai = spec.name.partition(":")[0] in OPENAI.names
        local = " (for a local server any value will do)" if is_openai else ""
        raise UsageError(
            f"{keys[0]} is not set, and the model {spec.name} cannot be called without it; "
            f"set it{others}{local}, or choose the model `offline`"
        )


def provider_names() -> tuple[str, ...]:
    """Return the names before the colon of a model: built-in, registered, then LangChain's.

    >>> provider_names()[:2]
    ('openai', 'google_genai')
    """
    return tuple(dict.fromkeys([*_checked_names(), *plugins(_GROUP), *_langchain_providers()]))


def _checked_names() -> list[str]:
    """Return the providers whose keys are checked early, for a better message."""
    return [name for provider in PROVIDERS if provider.key_variables for name in provider.names]


def _registered(spec: ModelSpec) -> BaseChatModel:
    """Create a chat model with another package's provider.

    Raises:
        UsageError: the provider cannot be loaded, fails, or returns something else.
    """
    provider = spec.name.partition(":")[0]
    make: MakeChatModel = load_plugin(_GROUP, provider)
    try:
        chat = make(spec)
    except UsageError:
        raise
    except Exception as error:  # another package's client may raise anything about a name or a key
        problem = f"the provider {provider!r} cannot create {spec}: {type(error).__name__}: {error}"
        raise UsageError(problem) from shown_cause(error)
    if not isinstance(chat, BaseChatModel):
        raise UsageError(
            f"the provider {provider!r} made a {type(chat).__name__}, not a LangChain chat model "
            "(BaseChatModel)"
        )
    _further_parameters(spec, type(chat))
    return chat


_Key = tuple[ModelSpec, tuple[str | None, ...]]
# ``load`` runs in threads (``asyncio.to_thread``), so two nodes may request a model at once.
_LOADED: WeakKeyDictionary[object, dict[_Key, LoadedModel]] = WeakKeyDictionary()
_LOADING = threading.Lock()


def _key(spec: ModelSpec) -> _Key:
    # The environment is part of the key, because a changed key or address needs a new client.
    return spec, tuple(map(os.environ.get, _environment(spec.name.partition(":")[0], spec.key_env)))


@lru_cache
def _environment(provider: str, key_env: str | None) -> tuple[str, ...]:
    """Return the environment variables that a provider's client may read."""
    own = tuple(key_env.split(",")) if key_env else ()
    record = provider_of(provider)
    if record is not None and record.key_variables:
        return own + record.key_variables + record.address_variables
    prefix = provider.upper()
    if record is not None and record.variable_prefix:
        prefix = record.variable_prefix
    return own + tuple(
        f"{prefix}_{part}" for part in ("API_KEY", "BASE_URL", "API_BASE", "ENDPOINT", "HOST")
    )


def _local(own: local_model.LocalParameters, others: ModelSpec) -> _Made:
    """Start the server of this process, if necessary, and create a client for it."""
    server = local_model.server(own)
    address = {"base_url": server.url, "api_key": SecretStr(server.key)}
    warning = None if own.model_path else LOCAL_DISCLOSURE
    serving = Serving(warning, at_once=own.slots, context=own.context, max_wait=others.max_wait)
    weights = own.weights
    # Name and size identify the weights, whatever folder they are in.
    known = {"weights": f"{weights.name}, {weights.stat().st_size} bytes"}
    chat, http = _openai(others, weights.stem, address)
    return LoadedModel(chat, {**identity_of_name(others), **known}, serving), [http]


# OpenAI serves these by its Responses API only. LangChain itself handles ``gpt-5-pro`` and codex.
_RESPONSES_ONLY = re.compile(
    r"o\d+-pro|o\d(-mini)?-deep-research|computer-use|gpt-[\d.]+-pro|.*codex"
)


def _openai(
    spec: ModelSpec, name: str, here: Mapping[str, Any] | None = None
) -> tuple[FastChatOpenAI, Any]:
    """Create a client of OpenAI's protocol and an HTTP client.

    ``here`` has the address and key of this process's server.

    Raises:
        UsageError: the numbers of addresses and keys differ, or a parameter does not fit.
    """
    from openai import DefaultAsyncHttpxClient

    kind = _openai_class()
    addresses: list[str | None] = [*spec.addresses] or [None]
    names: list[str | None] = [*spec.key_names] or [None]
    if len(addresses) > 1 and len(names) > 1 and len(addresses) != len(names):
        raise UsageError(
            f"{spec.name}: {len(addresses)} addresses and {len(names)} keys: "
            "name one key for all, or one for each"
        )
    # One address is used with all keys, and one key with all addresses.
    size = max(len(addresses), len(names))
    pairs = zip(addresses * (size // len(addresses)), names * (size // len(names)), strict=True)
    (address, key), *others = pairs
    first = spec.model_copy(update={"base_url": address, "key_env": key})
    given: dict[str, Any] = {"max_retries": 0, **_class_parameters(first, kind), **(here or {})}
    if _RESPONSES_ONLY.match(name):
        given.setdefault("use_responses_api", True)
    # Otherwise it would share an HTTP client with all event loops and lose it when the first loop
    # ends. A server of this process is reached without a proxy.
    http = DefaultAsyncHttpxClient(timeout=None, event_hooks=HOOKS, trust_env=not here)
    chat = kind(model=name, http_async_client=http, **given)
    known = os.environ
    usual = str(chat.root_async_client.base_url)
    keys = [
        (address or usual, known.get(key or OPENAI.key_variables[0], "")) for address, key in others
    ]
    chat.prepare(not here, keys, spec.at_once, spec.session_header)
    return chat, http


def _openai_class() -> type[FastChatOpenAI]:
    from .openai_fast import FastChatOpenAI

    return FastChatOpenAI


# LangChain's classes


def _langchain_providers() -> tuple[str, ...]:
    """Return the providers that ``init_chat_model`` knows, installed or not."""
    from langchain.chat_models.base import _BUILTIN_PROVIDERS

    return tuple(_BUILTIN_PROVIDERS)


def _made_by_langchain(spec: ModelSpec) -> BaseChatModel:
    """Create the chat model of a name that ``init_chat_model`` supports. Blocking.

    It imports the provider's package.

    Raises:
        UsageError: a package or key is missing, or the class does not accept a parameter; the
            message says what to do.
    """
    from langchain.chat_models.base import _BUILTIN_PROVIDERS, _get_chat_model_creator

    provider, _, name = spec.name.partition(":")
    try:
        made: Any = _get_chat_model_creator(provider)
    except ImportError as error:
        package = _BUILTIN_PROVIDERS[provider][0].partition(".")[0]
        extra = next((record.extra for record in PROVIDERS if record.package == package), "")
        wanted = f'"jurygraph[{extra}]"' if extra else package.replace("_", "-")
        raise UsageError(
            f"the model {spec.name} needs a package that is not installed: pip install {wanted} "
            f"({error.__cause__ or error})"
        ) from error
    kind: type[BaseChatModel] = made.keywords["cls"]
    given = _class_parameters(spec, kind)
    client = client_of(kind)
    # retry.py handles retries, so the client's own are switched off.
    if "max_retries" in kind.model_fields:
        given.setdefault("max_retries", client.retries)
    for field, fixed in client.arguments.items():
        given[field] = {**given.get(field, {}), **fixed}
    try:
        chat: BaseChatModel = made(model=name, **given)
    except Exception as error:  # another package's class may raise anything about a name or a key
        reason = " ".join(str(error).split())
        if isinstance(error, ValidationError):
            parts = [
                (*map(str, e["loc"]), e["msg"].removeprefix("Value error, "))
                for e in error.errors()
            ]
            reason = "; ".join(map(": ".join, parts))
        raise UsageError(f"the model {spec.name} cannot be created: {reason}") from shown_cause(
            error
        )
    _check_secret(spec, chat)
    return chat


def _class_parameters(spec: ModelSpec, kind: type[BaseChatModel]) -> dict[str, Any]:
    """Return the parameters of a model's name under the names and with the types of the class.

    A temperature or length limit that the class lacks is left out with a warning, because it may be
    a default.

    Raises:
        UsageError: a parameter that the class does not have, or a value that it rejects.
    """
    fields = _fields(kind)
    given: dict[str, Any] = {}
    for parameter in ("temperature", "top_p", "seed", "max_tokens", "base_url"):
        value = getattr(spec, parameter)
        field = field_of(parameter, fields)
        # A limit of 0 means no limit, not even our default.
        if value is None or (parameter == "max_tokens" and not value):
            continue
        if field is not None:
            given[field] = value
        elif parameter in ("top_p", "seed") and "model_kwargs" in fields:
            given.setdefault("model_kwargs", {})[parameter] = value
        elif parameter not in ("temperature", "max_tokens"):
            raise UsageError(
                f"{spec.name} has no parameter {parameter!r}{_advice(parameter, fields)}"
            )
    if spec.key_env is not None:
        if not os.environ.get(spec.key_env):
            raise UsageError(f"{spec.key_env}, which key_env of {spec.name} names, is not set")
        given["api_key"] = SecretStr(os.environ[spec.key_env])
        # Registered before the class can quote it in an error.
        remember_secrets(given)
    return {**given, **_further_parameters(spec, kind)}


def _further_parameters(spec: ModelSpec, kind: type[BaseChatModel]) -> dict[str, Any]:
    """Return the parameters that only this class has; otherwise like ``_class_parameters``."""
    fields = _fields(kind)
    given = {}
    for name, value in spec.more.items():
        if name not in fields:
            raise UsageError(f"{spec.name} has no parameter {name!r}{_advice(name, fields)}")
        given[name] = _typed(spec, name, value, fields[name])
    return given


def _fields(kind: type[BaseChatModel]) -> dict[str, FieldInfo]:
    """Return the fields of a class by their names and by their aliases."""
    return {**kind.model_fields, **{f.alias: f for f in kind.model_fields.values() if f.alias}}


def _advice(name: str, fields: Mapping[str, FieldInfo]) -> str:
    """Return a hint with similar parameters, and how to pass on an unknown one."""
    close = difflib.get_close_matches(name, fields, 4, 0.5)
    meant = f"; similar ones are {', '.join(close)}" if close else ""
    through = next((field for field in ("extra_body", "model_kwargs") if field in fields), None)
    return f"{meant}; {through}.{name}=... passes it on unchanged" if through else meant


def _typed(spec: ModelSpec, name: str, value: Any, field: FieldInfo) -> Any:
    """Return a value with the type of the class's field; a number may be meant as text."""
    try:
        wanted: Any = Any if field.annotation is None else field.annotation
        adapter = TypeAdapter[Any](wanted, config=ConfigDict(arbitrary_types_allowed=True))
    except PydanticUserError:
        return value
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        if isinstance(value, int | float):
            with suppress(ValidationError):
                return adapter.validate_python(str(value))
        problem = error.errors()[0]["msg"]
        raise UsageError(f"{spec.name}: {name}={value!r} is not valid: {problem}") from error


def _check_secret(spec: ModelSpec, chat: BaseChatModel) -> None:
    """Raise UsageError if a key is missing and the class does not report that itself."""
    secrets = chat.lc_secrets
    # The client looks for other secrets, such as those of AWS, in further places.
    if any(field.startswith("aws_") for field in secrets):
        return
    keys = [field for field in secrets if field.endswith("api_key")]
    given = [getattr(chat, field, None) for field in keys]
    if keys and not any(
        key.get_secret_value() if isinstance(key, SecretStr) else key for key in given
    ):
        variable = secrets[keys[0]]
        raise UsageError(
            f"{variable} is not set, and the model {spec.name} cannot be called without it"
        )
