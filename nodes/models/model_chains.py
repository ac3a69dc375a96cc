"""See the chat models inside a runnable that was made of them: with parameters, retries, fallbacks or choices.

LangChain's ``.bind()``, ``.with_retry()``, ``.with_fallbacks()``, ``.configurable_fields()`` and
``.configurable_alternatives()`` wrap a chat model, and one another; ``init_chat_model`` makes one that the run's config
chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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

from ...state.errors import UsageError

Chain = Runnable[Any, Any]
"""A chat model, or a runnable made of chat models."""


def check_chain(model: object) -> Chain:
    """Return the model if it is a chat model or made of chat models.

    Raises:
        UsageError: it is anything else.
    """
    match model:
        case BaseChatModel():
            return model
        case DynamicRunnable():
            check_chain(model.default)
            return model
        case RunnableBindingBase():
            check_chain(model.bound)
            return model
        case RunnableWithFallbacks():
            for one in (model.runnable, *model.fallbacks):
                check_chain(one)
            return model
        case Runnable() if _is_configurable(model):
            return model
    raise UsageError(
        f"{type(model).__name__} is no model; a model is a name such as `openai:gpt-4o-mini`, a LangChain chat model, "
        "or one with .bind(), .with_retry(), .with_fallbacks() or configurable fields"
    )


def chats_in(chain: Chain) -> Iterator[BaseChatModel]:
    """Yield the chat models of a chain without open choices, the one that is asked first before its fallbacks."""
    match chain:
        case BaseChatModel():
            yield chain
        case RunnableWithFallbacks():
            for one in (chain.runnable, *chain.fallbacks):
                yield from chats_in(one)
        case RunnableBindingBase():
            yield from chats_in(chain.bound)


def parameters_in(chain: Chain) -> dict[str, Any]:
    """Return the parameters that are bound to the chat model that is asked first."""
    match chain:
        case RunnableWithFallbacks():
            return parameters_in(chain.runnable)
        case RunnableBindingBase():
            return {**parameters_in(chain.bound), **chain.kwargs}
    return {}


def fallbacks_in(chain: Chain) -> list[Chain]:
    """Return what is asked where the first chat model fails, in order."""
    match chain:
        case RunnableWithFallbacks():
            return [*fallbacks_in(chain.runnable), *chain.fallbacks]
        case RunnableBindingBase():
            return fallbacks_in(chain.bound)
    return []


def with_each(chain: Chain, change: Callable[[BaseChatModel], Chain]) -> Chain:
    """Return the same chain with every chat model replaced; where parameters collide, what replaces it wins."""
    match chain:
        case BaseChatModel():
            return change(chain)
        case RunnableWithFallbacks():
            others = [with_each(one, change) for one in chain.fallbacks]
            return chain.model_copy(
                update={"runnable": with_each(chain.runnable, change), "fallbacks": others}
            )
        case RunnableRetry():
            return chain.model_copy(update={"bound": with_each(chain.bound, change)})
        case RunnableBindingBase():
            bound = _bound(with_each(chain.bound, change), chain.kwargs)
            return bound.with_config(chain.config) if chain.config else bound
    raise TypeError(f"{type(chain).__name__} holds no chat models")


def _bound(chain: Chain, given: Mapping[str, Any]) -> Chain:
    if not isinstance(chain, RunnableBinding):
        return chain.bind(**given)
    own = chain.kwargs
    # Both may have a body of their own: the caller's parameters beside the form of the reply.
    both = {
        name: {**value, **own[name]} for name, value in given.items() if _are_objects(value, own.get(name))
    }
    return chain.bind(**{**given, **own, **both})


def _are_objects(one: object, other: object) -> bool:
    return isinstance(one, Mapping) and isinstance(other, Mapping)


def resolved(chain: Chain, config: RunnableConfig) -> Chain:
    """Return the chain with all choices made as the config says.

    Raises:
        UsageError: the config does not say enough.
    """
    match chain:
        case DynamicRunnable():
            return resolved(chain.prepare(config)[0], config)
        case RunnableWithFallbacks():
            others = [resolved(one, config) for one in chain.fallbacks]
            return chain.model_copy(
                update={"runnable": resolved(chain.runnable, config), "fallbacks": others}
            )
        case RunnableBindingBase():
            return chain.model_copy(update={"bound": resolved(chain.bound, config)})
        case Runnable() if _is_configurable(chain):
            return _chosen(chain, config)
    return chain


def choices(chain: Chain, config: RunnableConfig) -> str:
    """Return the part of a config that chooses among models and parameters, as a key; empty for a chain without."""
    match chain:
        case DynamicRunnable():
            said = config.get("configurable") or {}
            return repr(sorted((spec.id, repr(said.get(spec.id))) for spec in chain.config_specs))
        case RunnableWithFallbacks():
            return "".join(choices(one, config) for one in (chain.runnable, *chain.fallbacks))
        case RunnableBindingBase():
            return choices(chain.bound, config)
        case Runnable() if _is_configurable(chain):
            return repr(sorted(chain._model_params(config).items()))  # type: ignore[attr-defined]
    return ""


def _is_configurable(runnable: object) -> bool:
    """Tell whether this is what ``init_chat_model`` makes where the config is to choose; it has no public class."""
    return type(runnable).__name__ == "_ConfigurableModel"


def _chosen(runnable: Any, config: RunnableConfig) -> Chain:
    try:
        return resolved(check_chain(runnable._model(config)), config)
    except UsageError:
        raise
    except (
        Exception
    ) as error:  # whatever LangChain or a provider's class raises about a name, a key or a package
        raise UsageError(
            f"the run's config chooses no model that can be made ({error}); "
            'set it: config={"configurable": {"model": "openai:gpt-4o-mini"}}'
        ) from error


WRITER = "jurygraph_model"
"""The name under which a reply's metadata holds the model that wrote it, where a fallback may have."""


def naming_writer(chain: Chain, label: str) -> Chain:
    """Have each reply tell by which model it was written."""

    async def name(message: BaseMessage) -> BaseMessage:
        message.response_metadata[WRITER] = label
        return message

    return chain | RunnableLambda(name)
