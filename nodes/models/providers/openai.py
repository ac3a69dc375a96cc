"""OpenAI, and servers that speak its chat completions API."""

from __future__ import annotations

import os
from typing import Any

from .provider import CHAT_COMPLETIONS_OBJECT, Client, Provider, chat_completions_schema, is_a

HOST = "api.openai.com"


def _is_before_schemas(name: str) -> bool:
    """Return whether a model is older than schemas as reply format.

    Such models are ``gpt-3.5-turbo``, ``gpt-4`` and ``gpt-4-turbo``. They support functions.
    """
    return name.startswith(("gpt-3", "gpt-4-")) or name == "gpt-4"


# ``BaseChatOpenAI`` is also the base class of the clients of DeepSeek, xAI, OpenRouter and others.
CHAT_COMPLETIONS = Client(
    class_name="BaseChatOpenAI",
    json_schema=chat_completions_schema,
    json_object=CHAT_COMPLETIONS_OBJECT,
    without_schemas=_is_before_schemas,
    async_client="root_async_client",
    proxy="openai_proxy",
)

OPENAI = Provider(
    title="OpenAI",
    names=("openai",),
    clients=(CHAT_COMPLETIONS,),
    key_variables=("OPENAI_API_KEY",),
    address_variables=(
        "OPENAI_BASE_URL",
        "OPENAI_API_BASE",
        "OPENAI_ORG_ID",
        "OPENAI_PROJECT_ID",
        "OPENAI_PROXY",
    ),
    finish_reasons={
        # ``completed`` and the like are statuses of the Responses API.
        "complete": ("stop", "tool_calls", "function_call", "completed"),
        "cut_off": ("length", "max_output_tokens", "incomplete"),
        "filtered": ("content_filter",),
        "failed": ("failed", "cancelled", "in_progress", "queued"),
    },
    error_codes={
        "spent": ("insufficient_quota", "billing_hard_limit_reached", "billing_not_active"),
        "too_many": ("rate_limit_exceeded", "slow_down"),
    },
    statuses={
        400: (
            "invalid_request_error",
            "content_filter",
            "context_length_exceeded",
            "content_policy_violation",
        ),
        401: ("invalid_api_key",),
        404: ("model_not_found",),
    },
    parameters={
        "response_format": ("tools", "tool_choice", "text", "json_schema"),
        "max_tokens": ("max_completion_tokens", "max_output_tokens"),
    },
    reasoning_models=r"(?:^|[:/.])(?:o\d|gpt-(?:[5-9]|oss))",
    batch_client="FastChatOpenAI",
)


def speaks_chat_completions(chat: Any) -> bool:
    """Return whether a chat model uses the chat completions API, not the Responses API."""
    if not is_a(chat, CHAT_COMPLETIONS.class_name):
        return False
    uses_responses = getattr(chat, "_use_responses_api", None)
    return uses_responses is None or not uses_responses({})


def is_of_openai(chat: Any) -> bool:
    """Return whether a model is OpenAI's own, at its service or behind a gateway."""
    if not is_a(chat, "ChatOpenAI"):
        return False
    name = str(getattr(chat, "model_name", ""))
    address = getattr(chat, "openai_api_base", None)
    named = (
        name.rpartition("/")[2].startswith(("gpt-", "chatgpt-", "o1", "o3", "o4"))
        and "gpt-oss" not in name
    )
    return named or is_openai_host(address or os.environ.get("OPENAI_BASE_URL") or HOST)


def is_on_compatible_server(chat: Any) -> bool:
    """Return whether a compatible server serves another company's model."""
    return is_a(chat, "ChatOpenAI") and speaks_chat_completions(chat) and not is_of_openai(chat)


def is_openai_host(address: str) -> bool:
    """Return whether an address belongs to OpenAI's own service."""
    return HOST in address
