"""Find the chat models inside a wrapped runnable, and compute its identity.

LangChain's ``.bind()``, ``.with_retry()``, ``.with_fallbacks()``, ``.configurable_fields()`` and
``.configurable_alternatives()`` wrap a chat model, in any nesting. ``init_chat_model`` can leave
the choice to the run's config. The identity contains everything that influences a model's replies,
but no secrets and no addresses.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import (
    Runnable,
    RunnableBinding,
    RunnableConfig,
    RunnableLambda,
    RunnableWithFallbacks,
)
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.configurable import DynamicRunnable
from langchain_core.runnables.retry import RunnableRetry
from pydantic import BaseModel

from ...state.errors import UsageError
from ...state.settings import ModelSpec
from ..offline import OfflineJudge

Chain = Runnable[Any, Any]
"""A chat model, or a runnable made of chat models."""

Identity = Mapping[str, Any]
"""Plain JSON, the same in every process."""


def check_chain(model: object) -> Chain:
    """Return the model if it is a chat model or made of chat models.

    Raises:
        UsageError: it is anything else.
    """
    inner = _inner(model)
    if not isinstance(model, Runnable) or not (
        inner or isinstance(model, BaseChatModel) or _is_open(model)
    ):
        raise UsageError(
            f"{type(model).__name__} is not a model; "
            "a model is a name such as `openai:gpt-4o-mini`, a LangChain chat model, or one with "
            ".bind(), .with_retry(), .with_fallbacks() or configurable fields"
        )
    for chain in inner:
        check_chain(chain)
    return model


def is_chain(model: object) -> bool:
    """Return whether something is a chat model, or made of chat models."""
    inner = _inner(model)
    return (
        all(map(is_chain, inner)) if inner else isinstance(model, BaseChatModel) or _is_open(model)
    )


def _inner(chain: object) -> list[Chain]:
    """Return the runnables that a chain wraps, the first choice before its fallbacks."""
    match chain:
        case DynamicRunnable():
            return [chain.default]
        case RunnableWithFallbacks():
            return [chain.runnable, *chain.fallbacks]
        case RunnableBindingBase():
            return [chain.bound]
    return []


def chats_in(chain: Chain) -> Iterator[BaseChatModel]:
    """Yield the chat models of a resolved chain, the first choice before its fallbacks."""
    if isinstance(chain, BaseChatModel):
        yield chain
    for inner in _inner(chain):
        yield from chats_in(inner)


def fallbacks_in(chain: Chain) -> list[Chain]:
    """Return the fallbacks of the first chat model, in order."""
    inner = _inner(chain)
    return [*fallbacks_in(inner[0]), *inner[1:]] if inner else []


def parameters_in(chain: Chain) -> dict[str, Any]:
    """Return the parameters that are bound to the first chat model."""
    inner = _inner(chain)
    bound = parameters_in(inner[0]) if inner else {}
    return {**bound, **chain.kwargs} if isinstance(chain, RunnableBindingBase) else bound


def _with_inner(chain: Chain, change: Callable[[Chain], Chain]) -> Chain:
    """Return a chain with each runnable that it wraps changed."""
    match chain:
        case RunnableWithFallbacks():
            fallbacks = [change(fallback) for fallback in chain.fallbacks]
            return chain.model_copy(
                update={"runnable": change(chain.runnable), "fallbacks": fallbacks}
            )
        case RunnableBindingBase():
            return chain.model_copy(update={"bound": change(chain.bound)})
    return chain


def with_each(chain: Chain, change: Callable[[BaseChatModel], Chain]) -> Chain:
    """Return the chain with each chat model replaced; the replacement's parameters win."""
    match chain:
        case BaseChatModel():
            return change(chain)
        case RunnableRetry() | RunnableWithFallbacks():
            return _with_inner(chain, lambda inner: with_each(inner, change))
        case RunnableBindingBase():
            inner = with_each(chain.bound, change)
            given = chain.kwargs
            own: Mapping[str, Any] = inner.kwargs if isinstance(inner, RunnableBinding) else {}
            merged = {**given, **own}
            for name in given.keys() & own.keys():
                # Both may have a body: the caller's parameters, and the form of the reply.
                if isinstance(given[name], Mapping) and isinstance(own[name], Mapping):
                    merged[name] = {**given[name], **own[name]}
            bound = inner.bind(**merged)
            return bound.with_config(chain.config) if chain.config else bound
    raise TypeError(f"{type(chain).__name__} contains no chat models")


# Choices that the run's config makes


def resolved(chain: Chain, config: RunnableConfig) -> Chain:
    """Return the chain with all choices made according to the config.

    Raises:
        UsageError: the config does not make all choices.
    """
    if isinstance(chain, DynamicRunnable):
        return resolved(chain.prepare(config)[0], config)
    if not _is_open(chain):
        return _with_inner(chain, lambda inner: resolved(inner, config))
    model: Any = chain
    try:
        return resolved(check_chain(model._model(config)), config)
    except UsageError:
        raise
    # LangChain or a provider's class may raise any exception about a name, a key or a package.
    except Exception as error:
        raise UsageError(
            f"the run's config chooses no model that can be created ({error}); set it: "
            'config={"configurable": {"model": "openai:gpt-4o-mini"}}'
        ) from error


def choices(chain: Chain, config: RunnableConfig) -> str:
    """Return the part of a config that chooses models and parameters, as a key.

    The key is empty for a chain without choices.
    """
    if isinstance(chain, DynamicRunnable):
        chosen = config.get("configurable") or {}
        return repr(sorted((spec.id, repr(chosen.get(spec.id))) for spec in chain.config_specs))
    if _is_open(chain):
        return repr(sorted(chain._model_params(config).items()))  # type: ignore[attr-defined]
    return "".join(choices(inner, config) for inner in _inner(chain))


def _is_open(runnable: object) -> bool:
    """Return whether ``init_chat_model`` left this model open; its class is not public."""
    return type(runnable).__name__ == "_ConfigurableModel"


# Who answered

WRITER = "jurygraph_model"
"""The metadata key of a reply for the model that wrote it, which may be a fallback."""


def naming_writer(chain: Chain, label: str) -> Chain:
    """Add the name of the model that wrote it to each reply."""

    async def name(message: BaseMessage) -> BaseMessage:
        message.response_metadata[WRITER] = label
        return message

    return chain | RunnableLambda(name)


def label_of(chat: BaseChatModel) -> str:
    """Return the name of a chat model object: provider and model."""
    if isinstance(chat, OfflineJudge):
        return "offline"
    # LangSmith's names for provider and model, which every client provides in the same format.
    known = chat._get_ls_params()
    name = known.get("ls_model_name") or getattr(chat, "model_name", None) or type(chat).__name__
    provider = known.get("ls_provider")
    return f"{provider}:{name}" if provider else str(name)


# Identity


def identity_of_name(spec: ModelSpec) -> Identity:
    """Return the identity of a model chosen by name: the name and its parameters.

    >>> identity_of_name(ModelSpec.parse("ollama:llama3.2?num_ctx=4096&reasoning=false&price_in=0&price_out=0"))
    {'name': 'ollama:llama3.2', 'num_ctx': 4096, 'reasoning': False}
    """
    spec = spec.identified
    known = spec.model_dump(mode="json", exclude_none=True, exclude=_NO_IDENTITY)
    # Several servers of one model are interchangeable; a single address may identify the model.
    if len(spec.addresses) > 1:
        del known["base_url"]
    return {
        name: value for name, value in known.items() if name not in spec.more or _may_matter(name)
    }


def identity_of_chain(chain: Chain) -> Identity:
    """Return the identity of a chat model, with the parameters bound to it, and of its fallbacks.

    The object's own identity is its class and every plain parameter that may influence a reply.

    >>> from langchain_openai import ChatOpenAI
    >>> chat = ChatOpenAI(model="gpt-4o-mini", temperature=0.5, api_key="sk-1", base_url="http://127.0.0.1/v1")
    >>> identity = identity_of_chain(chat)
    >>> identity["name"], identity["class"]
    ('openai:gpt-4o-mini', 'langchain_openai.chat_models.base.ChatOpenAI')
    >>> identity["parameters"]
    {'model': 'gpt-4o-mini', 'model_name': 'gpt-4o-mini', 'temperature': 0.5}
    """
    chat = next(chats_in(chain))
    kind = type(chat)
    secret = chat.lc_secrets
    known = {
        **chat._identifying_params,
        **{name: getattr(chat, name, None) for name in kind.model_fields},
    }
    parameters = _plain({name: value for name, value in known.items() if name not in secret})
    identity: dict[str, Any] = {
        "name": label_of(chat),
        "class": f"{kind.__module__}.{kind.__qualname__}",
    }
    identity["parameters"] = parameters
    if bound := _plain(parameters_in(chain)):
        identity["bound"] = bound
    if others := fallbacks_in(chain):
        identity["fallbacks"] = [*map(identity_of_chain, others)]
    return identity


_NO_IDENTITY = {"key_env", "price_in", "price_out", "context_window", "at_once"}
_LEFT_OUT = re.compile(
    r"""
      # Secrets; not ``max_tokens``.
      key
    | secret
    | password
    | credential
    | auth
    | (?:^|_)token$
    | access_token
      # The address and the account.
    | url
    | uri
    | endpoint
    | api_base
    | host
    | proxy
    | header
    | query
    | project
    | location
    | organi[sz]ation
      # How a request is sent.
    | client
    | http
    | socket
    | timeout
    | retries
    | rate_limit
    | stream
      # What LangChain does around a call.
    | ^(?:name|cache|verbose|callbacks|tags|metadata|profile|labels)$
    | custom_get_token_ids
    | default_metadata
    | tiktoken
    | lc_
    """,
    re.VERBOSE,
)
"""Matches parameters that an identity omits because they are secret or do not change a reply."""


def _plain(value: Any) -> Any:
    """Return a value as plain JSON, without unset, empty or secret values or other objects."""
    if isinstance(value, Enum | BaseModel):
        return _plain(value.value if isinstance(value, Enum) else value.model_dump(mode="json"))
    if isinstance(value, Mapping):
        kept = {str(_plain(name)): _plain(inner) for name, inner in value.items()}
        # Not a plain truth test, which would omit ``temperature=0``.
        unset = {
            name for name, value in kept.items() if value in (None, "", [], {}) or value is False
        }
        return {
            name: kept[name] for name in sorted(kept) if name not in unset and _may_matter(name)
        }
    if isinstance(value, list | tuple):
        return [plain for inner in value if (plain := _plain(inner)) is not None]
    if isinstance(value, str | int | float):
        return str(value) if isinstance(value, float) and not math.isfinite(value) else value
    if isinstance(value, set | frozenset):
        return ", ".join(sorted(map(str, value)))
    # The text of any other object may contain its memory address, which differs between processes.
    has_name = callable(value) and hasattr(value, "__qualname__")
    return f"{value.__module__}.{value.__qualname__}" if has_name else None


def _may_matter(name: str) -> bool:
    """Return whether a parameter of this name may change a reply and is not secret."""
    return not _LEFT_OUT.search(name.lower())
