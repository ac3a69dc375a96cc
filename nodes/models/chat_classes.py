"""Find the LangChain class behind a provider's name, and make a chat model of it from a name and parameters.

The names are those of ``init_chat_model`` in the ``langchain`` package, which is imported when one is first asked for.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from langchain_core.language_models import BaseChatModel
from pydantic import ConfigDict, SecretStr, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo

from ...state.errors import UsageError
from ...state.redaction import remember_secrets
from ...state.settings import ModelSpec
from .capabilities import field_of
from .provider_errors import shown_cause

EXTRAS = {f"langchain_{name}": name for name in ("anthropic", "deepseek", "groq", "ollama")}
EXTRAS |= {"langchain_aws": "bedrock", "langchain_mistralai": "mistral"}
"""From a provider's package to the extra of ours that installs it."""


def known_providers() -> tuple[str, ...]:
    """Return the providers whose names ``init_chat_model`` takes, whether their packages are installed or not."""
    from langchain.chat_models.base import _BUILTIN_PROVIDERS

    return tuple(_BUILTIN_PROVIDERS)


def make_chat_model(spec: ModelSpec) -> BaseChatModel:
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
        wanted = f'"jurygraph[{EXTRAS[package]}]"' if package in EXTRAS else package.replace("_", "-")
        lacking = f"the model {spec.name} needs a package that is not installed: pip install {wanted}"
        raise UsageError(f"{lacking} ({error.__cause__ or error})") from error
    kind: type[BaseChatModel] = made.keywords["cls"]
    given = class_parameters(spec, kind)
    # Retries are retry.py's: switch off the client's own.
    if "max_retries" in kind.model_fields:
        given.setdefault("max_retries", 0)
    try:
        chat: BaseChatModel = made(model=name, **given)
    except Exception as error:  # whatever somebody else's class raises about a name or a key
        reason = " ".join(str(error).split())
        if isinstance(error, ValidationError):
            parts = [(*map(str, e["loc"]), e["msg"].removeprefix("Value error, ")) for e in error.errors()]
            reason = "; ".join(map(": ".join, parts))
        raise UsageError(f"the model {spec.name} cannot be created: {reason}") from shown_cause(error)
    _check_key(spec, chat)
    return chat


def class_parameters(spec: ModelSpec, kind: type[BaseChatModel]) -> dict[str, Any]:
    """Return the parameters of a name as the class takes them, each of the type that the class declares.

    Raises:
        UsageError: a parameter that the class does not have, or a value that it does not take.
    """
    return {**_common(spec, _fields(kind)), **further_parameters(spec, kind)}


def further_parameters(spec: ModelSpec, kind: type[BaseChatModel]) -> dict[str, Any]:
    """Return the parameters that are the class's own, not those that every name may have; as ``class_parameters``."""
    fields, given = _fields(kind), {}
    for name, value in spec.more.items():
        if name not in fields:
            raise UsageError(f"{spec.name} has no parameter {name!r}{_advice(name, fields)}")
        given[name] = _typed(spec, name, value, fields[name])
    return given


def _fields(kind: type[BaseChatModel]) -> dict[str, FieldInfo]:
    """Return the fields of a class under their names and under those that its arguments have."""
    return {**kind.model_fields, **{f.alias: f for f in kind.model_fields.values() if f.alias}}


def _common(spec: ModelSpec, fields: Mapping[str, FieldInfo]) -> dict[str, Any]:
    """Return the parameters that every name may have under the class's own names.

    A temperature or length limit that the class does not have is left out: they may be defaults, and a warning tells.
    """
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
    return given


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


def _check_key(spec: ModelSpec, chat: BaseChatModel) -> None:
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
