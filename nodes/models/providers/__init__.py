"""List all providers, and combine their facts for look-ups.

Code outside this folder does not name providers. It asks for the record of a name or a client, or
for the words of all providers together: a model behind a gateway replies in the words of a provider
that its name does not reveal.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from .anthropic import ANTHROPIC
from .azure import AZURE
from .bedrock import BEDROCK
from .cerebras import CEREBRAS
from .cohere import COHERE
from .deepseek import DEEPSEEK
from .fireworks import FIREWORKS
from .google import GOOGLE
from .groq import GROQ
from .minimax import MINIMAX
from .mistral import MISTRAL
from .moonshot import MOONSHOT
from .nvidia import NVIDIA
from .ollama import OLLAMA
from .open_servers import OPEN_SERVERS
from .openai import (
    OPENAI,
    is_of_openai,
    is_on_compatible_server,
    is_openai_host,
    speaks_chat_completions,
)
from .openrouter import OPENROUTER
from .own_models import OWN_MODELS
from .perplexity import PERPLEXITY
from .provider import (
    Bounds,
    Client,
    Ending,
    ErrorKind,
    JsonSchema,
    Marks,
    Options,
    Parameter,
    Provider,
    Refusal,
    class_names,
    is_a,
    request_body,
)
from .together import TOGETHER
from .vertex import VERTEX
from .watsonx import WATSONX
from .xai import XAI
from .zhipu import ZHIPU

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

__all__ = [
    "ANTHROPIC",
    "CODES",
    "CODE_STATUSES",
    "FINISH_REASONS",
    "GOOGLE",
    "MODEL_PREFIXES",
    "OPENAI",
    "PARAMETERS",
    "PROVIDERS",
    "REASONING_MODELS",
    "Bounds",
    "Client",
    "Ending",
    "JsonSchema",
    "Marks",
    "Options",
    "Provider",
    "Refusal",
    "class_names",
    "client_of",
    "is_a",
    "is_of_openai",
    "is_on_compatible_server",
    "is_openai_host",
    "provider_of",
    "refusals_about",
    "request_body",
    "speaks_chat_completions",
]

PROVIDERS = (
    OPENAI,
    GOOGLE,
    ANTHROPIC,
    AZURE,
    BEDROCK,
    CEREBRAS,
    COHERE,
    DEEPSEEK,
    FIREWORKS,
    GROQ,
    MINIMAX,
    MISTRAL,
    MOONSHOT,
    NVIDIA,
    OLLAMA,
    OPENROUTER,
    PERPLEXITY,
    TOGETHER,
    VERTEX,
    WATSONX,
    XAI,
    ZHIPU,
    OPEN_SERVERS,
    OWN_MODELS,
)
"""All records; those whose key is checked before a model is created come first in lists."""

_BY_NAME = {name: provider for provider in PROVIDERS for name in provider.names}
_CLIENTS = {client.class_name: client for provider in PROVIDERS for client in provider.clients}
_UNKNOWN_CLIENT = Client(class_name="")

FINISH_REASONS: Mapping[str, Ending] = {
    word: ending
    for provider in PROVIDERS
    for ending, words in provider.finish_reasons.items()
    for word in words
}
"""Maps the finish reasons of all providers to how a reply ended."""

CODES: Mapping[str, ErrorKind] = {
    code: kind
    for provider in PROVIDERS
    for kind, codes in provider.error_codes.items()
    for code in codes
}
"""Maps the error codes of all providers to their meaning."""

CODE_STATUSES: Mapping[str, int] = {
    **{
        code: status
        for provider in PROVIDERS
        for status, codes in provider.statuses.items()
        for code in codes
    },
    **{code: 429 for code, kind in CODES.items() if kind != "misformed"},
}
"""Maps error codes in a batch, or in a response with status 200, to their HTTP status."""

PARAMETERS: Mapping[str, Parameter] = {
    name: parameter
    for provider in PROVIDERS
    for parameter, names in provider.parameters.items()
    for name in names
}
"""Maps the providers' names of parameters to ours."""

REASONING_MODELS = "|".join(
    provider.reasoning_models for provider in PROVIDERS if provider.reasoning_models
)
"""Matches the names of models that reason by default."""

MODEL_PREFIXES = re.compile(
    "|".join(provider.model_prefix for provider in PROVIDERS if provider.model_prefix)
)
"""Matches the providers' prefixes of model names."""


def provider_of(name: str) -> Provider | None:
    """Return the record of a provider by its name before the colon of a model, or None.

    >>> provider_of("mistralai").extra
    'mistral'
    """
    return _BY_NAME.get(name)


@cache
def client_of(kind: type[BaseChatModel]) -> Client:
    """Return the record of a chat model class, or of its nearest base class with one."""
    known = (_CLIENTS[name] for name in class_names(kind) if name in _CLIENTS)
    return next(known, _UNKNOWN_CLIENT)


def refusals_about(about: Refusal) -> list[str]:
    """Return the patterns of single providers for a refusal, in addition to the common ones."""
    return [pattern for provider in PROVIDERS for pattern in provider.refusals.get(about, ())]
