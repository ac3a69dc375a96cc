"""Make chat models from model names; a provider's package is imported only when one of its models is named.

OpenAI's models have a client of this package's own. Other names are those of ``init_chat_model`` in the ``langchain``
package, which is imported when one is first asked for, or of a package's own provider.
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
from ..offline import OfflineJudge
from ..plugins import Group, load_plugin, plugins
from . import local_model, prices
from .capabilities import field_of
from .connections import REDIRECT_HOOKS, close_with_loop, http_clients
from .loaded_model import LoadedModel, Serving
from .model_chains import Chain, identity_of_chain, identity_of_name
from .provider_errors import shown_cause
from .provider_words import WORDS

if TYPE_CHECKING:
    from .openai_fast import FastChatOpenAI

OFFLINE = ModelSpec(name="offline")

MakeChatModel = Callable[[ModelSpec], BaseChatModel]
"""A function from a name and its parameters to a chat model, which a package registers under ``jurygraph.providers``.

The name is the whole one, provider and all (``acme:large``); parameters are ``None`` where nobody set them. The model
should ask once for each call and set no time limit, since retries and time-outs are those of the run. A missing key is
told by a ``UsageError``.
"""

_GROUP: Group = "jurygraph.providers"


def load(spec: ModelSpec, loop: object) -> LoadedModel:
    """Return the model of that name, for calls on this event loop. Reads files the first time: blocking.

    Clients are kept for each loop, since their connections belong to it, and made anew when a key or an address
    in the environment changes.

    Raises:
        UsageError: an unknown provider, or a key that is missing; the message says what to do.
    """
    with _LOADING:
        # A closed loop that somebody still refers to would keep its clients.
        for ended in [known for known in _LOADED if getattr(known, "is_closed", bool)()]:
            del _LOADED[ended]
        models, key = _LOADED.setdefault(loop, {}), _key(spec)
        if key not in models:
            models[key], clients = check(spec)()
            close_with_loop(loop, *clients)
        return models[key]


def loaded(spec: ModelSpec, loop: object) -> LoadedModel | None:
    """Return the model of that name if ``load`` has loaded it before, else None. Never blocks."""
    return _LOADED.get(loop, {}).get(_key(spec))


def wrap(model: Chain) -> LoadedModel:
    """Make a loaded model of a model object of the caller's own, to be called on any event loop."""
    return LoadedModel(model, identity_of_chain(model), Serving(), shared=True)


_Made = tuple[LoadedModel, Sequence[Any]]
"""A model, and its HTTP clients, which are closed when the event loop ends."""


def _made(spec: ModelSpec, chat: BaseChatModel, *clients: Any) -> _Made:
    """Load a chat model that asks once and waits as long as it takes: retries and time limits are ``retry.py``'s."""
    serving = Serving(context=spec.context_window, max_wait=spec.max_wait)
    return LoadedModel(chat, identity_of_name(spec), serving), clients


def check(spec: ModelSpec) -> Callable[[], _Made]:
    """Check that the model can be called: its provider is known and installed, its parameters fit, and a key is set.

    Returns:
        A function that gives the model; where only making it could tell, it is made already.

    Raises:
        UsageError: something is missing; the message says in one sentence what.
    """
    provider, _, name = spec.name.partition(":")
    if spec.price_in is not None and spec.price_out is not None:
        prices.give(spec.name, spec.price_in, spec.price_out)
    if spec.name == "offline":
        if spec.more:
            raise UsageError(f"the model offline has no parameter {next(iter(spec.more))!r}")
        return lambda: _made(spec, OfflineJudge())
    if spec.name == "local":
        own, others = local_model.check(spec), local_model.further(spec)
        _further_parameters(others, _openai_class())
        return lambda: _local(own, others)
    if provider != "openai" and max(len(spec.addresses), len(spec.key_names)) > 1:
        openai = "OpenAI's protocol: openai:NAME?base_url=A,B"
        raise UsageError(f"{spec.name}: several addresses or keys only work with {openai}")
    if wrong := [part for part in spec.addresses if not part.startswith(("http://", "https://"))]:
        raise UsageError(f"{spec.name}: an address begins with http:// or https://, got base_url={wrong[0]}")
    if provider in _KEYS and name:
        _check_key(spec, _KEYS[provider])
    if provider == "openai" and name:
        if spec.more:
            _further_parameters(spec, _openai_class())
        return lambda: _made(spec, *_openai(spec, name))
    if provider in plugins(_GROUP) and name:
        chat = _registered(spec)
        return lambda: _made(spec, chat)
    if provider in _langchain_providers() and name:
        known = _made_by_langchain(spec)
        return lambda: _made(spec, known, *http_clients(known))
    close = difflib.get_close_matches(provider, provider_names(), 1, 0.7)
    meant = f"did you mean `{close[0]}:{name or '<name>'}`? A" if close else "a"
    if not (close or name):
        meant = "name its provider, too, as in `openai:gpt-4o-mini`. A"
    problem = f"unknown model {spec.name!r}; {meant} model is `offline`, `local`"
    raise UsageError(f"{problem}, or one of {', '.join(f'`{known}:<name>`' for known in provider_names())}")


def _check_key(spec: ModelSpec, keys: Sequence[str]) -> None:
    if missing := [key for key in spec.key_names if not os.environ.get(key)]:
        keys = missing
    if missing or not (spec.key_names or any(os.environ.get(key) for key in keys)):
        problem = f"{keys[0]} is not set, and the model {spec.name} cannot be called without it"
        others = "".join(f" or {key}" for key in keys[1:] if not missing)
        local = " (for a local server any value will do)" if spec.name.startswith("openai:") else ""
        raise UsageError(f"{problem}; set it{others}{local}, or choose the model `offline`")


def provider_names() -> tuple[str, ...]:
    """Give the names that may stand before the colon of a model: built-in, registered and LangChain's, in this order.

    >>> provider_names()[:2]
    ('openai', 'google_genai')
    """
    return tuple(dict.fromkeys([*_KEYS, *plugins(_GROUP), *_langchain_providers()]))


def _registered(spec: ModelSpec) -> BaseChatModel:
    """Have another package's provider make a chat model.

    Raises:
        UsageError: the provider cannot be loaded, fails, or makes something else.
    """
    provider = spec.name.partition(":")[0]
    make: MakeChatModel = load_plugin(_GROUP, provider)
    try:
        chat = make(spec)
    except UsageError:
        raise
    except Exception as error:  # whatever somebody else's client raises about a name or a key
        problem = f"the provider {provider!r} cannot create {spec}: {type(error).__name__}: {error}"
        raise UsageError(problem) from shown_cause(error)
    if not isinstance(chat, BaseChatModel):
        made = f"{type(chat).__name__}, not a LangChain chat model (BaseChatModel)"
        raise UsageError(f"the provider {provider!r} made a {made}")
    _further_parameters(spec, type(chat))
    return chat


_Key = tuple[ModelSpec, tuple[str | None, ...]]
# ``load`` runs in threads (``asyncio.to_thread``), so that two nodes may ask for one model at the same time.
_LOADED: WeakKeyDictionary[object, dict[_Key, LoadedModel]] = WeakKeyDictionary()
_LOADING = threading.Lock()


def _key(spec: ModelSpec) -> _Key:
    # The environment is part of the key: a changed key or address makes a new client.
    return spec, tuple(map(os.environ.get, _environment(spec.name.partition(":")[0], spec.key_env)))


@lru_cache
def _environment(provider: str, key_env: str | None) -> tuple[str, ...]:
    """Name the environment variables that a provider's client may read."""
    own = tuple(key_env.split(",")) if key_env else ()
    if provider in _KEYS:
        return own + _KEYS[provider] + tuple(WORDS["addresses"][provider].split())
    prefix = WORDS["prefixes"].get(provider, provider.upper())
    return own + tuple(f"{prefix}_{part}" for part in ("API_KEY", "BASE_URL", "API_BASE", "ENDPOINT", "HOST"))


_KEYS = {provider: tuple(names.split()) for provider, names in WORDS["keys"].items()}
"""Of the providers whose keys are looked for before a model is made, which would say less of a missing one."""


def _local(own: local_model.LocalParameters, others: ModelSpec) -> _Made:
    """Start the server of this process, if that has not been done, and make a client of it."""
    server = local_model.server(own)
    address = {"base_url": server.url, "api_key": SecretStr(server.key)}
    warning = None if own.model_path else local_model.DISCLOSURE
    serving = Serving(warning, at_once=own.slots, context=own.context, max_wait=others.max_wait)
    weights = own.weights
    # Name and size tell other weights, wherever they lie.
    known = {"weights": f"{weights.name}, {weights.stat().st_size} bytes"}
    chat, http = _openai(others, weights.stem, address)
    return LoadedModel(chat, {**identity_of_name(others), **known}, serving), [http]


# OpenAI serves these by its Responses API alone. LangChain itself knows of ``gpt-5-pro`` and codex.
_RESPONSES_ONLY = re.compile(r"o\d+-pro|o\d(-mini)?-deep-research|computer-use|gpt-[\d.]+-pro|.*codex")


def _openai(spec: ModelSpec, name: str, here: Mapping[str, Any] | None = None) -> tuple[FastChatOpenAI, Any]:
    """Make a client of OpenAI's protocol, and one of HTTP; ``here`` is address and key of a server of this process.

    Raises:
        UsageError: so many addresses do not go with so many keys, or a parameter does not fit.
    """
    from openai import DefaultAsyncHttpxClient

    kind = _openai_class()
    addresses: list[str | None] = [*spec.addresses] or [None]
    names: list[str | None] = [*spec.key_names] or [None]
    if len(addresses) > 1 and len(names) > 1 and len(addresses) != len(names):
        given_here = f"{len(addresses)} addresses and {len(names)} keys"
        raise UsageError(f"{spec.name}: {given_here}: name one key for all, or one for each")
    # One address goes with all keys, and one key with all addresses.
    size = max(len(addresses), len(names))
    pairs = zip(addresses * (size // len(addresses)), names * (size // len(names)), strict=True)
    (address, key), *others = pairs
    first = spec.model_copy(update={"base_url": address, "key_env": key})
    given: dict[str, Any] = {"max_retries": 0, **_class_parameters(first, kind), **(here or {})}
    if _RESPONSES_ONLY.match(name):
        given.setdefault("use_responses_api", True)
    # Without a client of its own it would share one with all event loops, whose connections die with the first.
    # What is served by this process is reached by no proxy.
    http = DefaultAsyncHttpxClient(timeout=None, event_hooks=REDIRECT_HOOKS, trust_env=not here)
    chat = kind(model=name, http_async_client=http, **given)
    known, usual = os.environ, str(chat.root_async_client.base_url)
    keys = [(address or usual, known.get(key or "OPENAI_API_KEY", "")) for address, key in others]
    chat.prepare(not here, keys, spec.at_once)
    return chat, http


def _openai_class() -> type[FastChatOpenAI]:
    from .openai_fast import FastChatOpenAI

    return FastChatOpenAI


# LangChain's classes


def _langchain_providers() -> tuple[str, ...]:
    """Return the providers whose names ``init_chat_model`` takes, whether their packages are installed or not."""
    from langchain.chat_models.base import _BUILTIN_PROVIDERS

    return tuple(_BUILTIN_PROVIDERS)


def _made_by_langchain(spec: ModelSpec) -> BaseChatModel:
    """Make the chat model of a name that ``init_chat_model`` knows. Imports the provider's package: blocking.

    Raises:
        UsageError: a package or key is missing, or the class does not accept a parameter; the message says what to do.
    """
    from langchain.chat_models.base import _BUILTIN_PROVIDERS, _get_chat_model_creator

    provider, _, name = spec.name.partition(":")
    try:
        made: Any = _get_chat_model_creator(provider)
    except ImportError as error:
        package = _BUILTIN_PROVIDERS[provider][0].partition(".")[0]
        extra = WORDS["extras"].get(package)
        wanted = f'"jurygraph[{extra}]"' if extra else package.replace("_", "-")
        lacking = f"the model {spec.name} needs a package that is not installed: pip install {wanted}"
        raise UsageError(f"{lacking} ({error.__cause__ or error})") from error
    kind: type[BaseChatModel] = made.keywords["cls"]
    given = _class_parameters(spec, kind)
    is_google = kind.__name__ == "ChatGoogleGenerativeAI"
    # Retries are retry.py's: switch off the client's own. Google's counts the first attempt as one of them.
    if "max_retries" in kind.model_fields:
        given.setdefault("max_retries", int(is_google))
    if is_google:
        # Its two HTTP clients name differently what neither of them shall do.
        unfollowed = {"allow_redirects": False, "follow_redirects": False}
        given["client_args"] = {**given.get("client_args", {}), **unfollowed}
    try:
        chat: BaseChatModel = made(model=name, **given)
    except Exception as error:  # whatever somebody else's class raises about a name or a key
        reason = " ".join(str(error).split())
        if isinstance(error, ValidationError):
            parts = [(*map(str, e["loc"]), e["msg"].removeprefix("Value error, ")) for e in error.errors()]
            reason = "; ".join(map(": ".join, parts))
        raise UsageError(f"the model {spec.name} cannot be created: {reason}") from shown_cause(error)
    _check_secret(spec, chat)
    return chat


def _class_parameters(spec: ModelSpec, kind: type[BaseChatModel]) -> dict[str, Any]:
    """Return the parameters of a name as the class takes them, each of the type that the class declares.

    A temperature or length limit that the class does not have is left out: they may be defaults, and a warning tells.

    Raises:
        UsageError: a parameter that the class does not have, or a value that it does not take.
    """
    fields = _fields(kind)
    given: dict[str, Any] = {}
    for parameter in ("temperature", "top_p", "seed", "max_tokens", "base_url"):
        value, field = getattr(spec, parameter), field_of(parameter, fields)
        # A limit of 0 asks for none, ours included.
        if value is None or (parameter == "max_tokens" and not value):
            continue
        if field is not None:
            given[field] = value
        elif parameter in ("top_p", "seed") and "model_kwargs" in fields:
            given.setdefault("model_kwargs", {})[parameter] = value
        elif parameter not in ("temperature", "max_tokens"):
            raise UsageError(f"{spec.name} has no parameter {parameter!r}{_advice(parameter, fields)}")
    if spec.key_env is not None:
        if not os.environ.get(spec.key_env):
            raise UsageError(f"{spec.key_env}, which key_env of {spec.name} names, is not set")
        given["api_key"] = SecretStr(os.environ[spec.key_env])
        # Known before the class can quote it in a complaint.
        remember_secrets(given)
    return {**given, **_further_parameters(spec, kind)}


def _further_parameters(spec: ModelSpec, kind: type[BaseChatModel]) -> dict[str, Any]:
    """Return the parameters that are the class's own, not those that every name may have; as ``_class_parameters``."""
    fields, given = _fields(kind), {}
    for name, value in spec.more.items():
        if name not in fields:
            raise UsageError(f"{spec.name} has no parameter {name!r}{_advice(name, fields)}")
        given[name] = _typed(spec, name, value, fields[name])
    return given


def _fields(kind: type[BaseChatModel]) -> dict[str, FieldInfo]:
    """Return the fields of a class under their names and under those that its arguments have."""
    return {**kind.model_fields, **{f.alias: f for f in kind.model_fields.values() if f.alias}}


def _advice(name: str, fields: Mapping[str, FieldInfo]) -> str:
    """Name the parameters that may have been meant, and how one is passed on that the class does not know."""
    close = difflib.get_close_matches(name, fields, 4, 0.5)
    meant = f"; similar ones are {', '.join(close)}" if close else ""
    through = next((field for field in ("extra_body", "model_kwargs") if field in fields), None)
    return f"{meant}; {through}.{name}=... passes it on unchanged" if through else meant


def _typed(spec: ModelSpec, name: str, value: Any, field: FieldInfo) -> Any:
    """Check a value by the type of the class's field; text that looked like a number may have been meant as text."""
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
    """Raise UsageError where the class takes a key, none is there, and it does not say so itself."""
    secrets = chat.lc_secrets
    # Where there are other secrets to sign in with, such as those of AWS, the client looks for them in further places.
    if any(field.startswith("aws_") for field in secrets):
        return
    keys = [field for field in secrets if field.endswith("api_key")]
    given = [getattr(chat, field, None) for field in keys]
    if keys and not any(key.get_secret_value() if isinstance(key, SecretStr) else key for key in given):
        variable = secrets[keys[0]]
        raise UsageError(f"{variable} is not set, and the model {spec.name} cannot be called without it")
