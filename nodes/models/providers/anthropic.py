"""Anthropic."""

from __future__ import annotations

from typing import Any

from ....state.errors import UsageError
from .provider import Client, JsonSchema, Marks, Options, Provider, SendBody, is_a, request_body


def _json_schema(asked: JsonSchema) -> Options:
    return {"output_config": {"format": {"type": "json_schema", "schema": asked.schema}}}


def _cache_marks(chat: Any) -> Marks | None:
    return "cache_control" if is_a(chat, CHAT_ANTHROPIC.class_name) else None


async def _ask_through(
    chat: Any, send: SendBody, messages: Any, stop: Any = None, **options: Any
) -> Any:
    from anthropic.types import Message

    body = request_body(chat._get_request_payload(messages, stop=stop, **options))
    body.pop("stream", None)
    if other := sorted(body.keys() & {"betas", "extra_headers", "extra_query", "timeout"}):
        raise UsageError(
            f"{chat.model} is used with {', '.join(other)}, which a batch request cannot have"
        )
    return chat._format_output(Message.construct(**await send(body)), **options)


CHAT_ANTHROPIC = Client(
    class_name="ChatAnthropic",
    json_schema=_json_schema,
    bounds="lists",  # it accepts no ranges
    async_client="_async_client",
    proxy="anthropic_proxy",
    ask_through=_ask_through,
)

ANTHROPIC = Provider(
    title="Anthropic",
    names=("anthropic",),
    clients=(CHAT_ANTHROPIC,),
    package="langchain_anthropic",
    extra="anthropic",
    finish_reasons={
        "complete": ("end_turn", "stop_sequence", "tool_use"),
        "cut_off": ("max_tokens", "pause_turn", "model_context_window_exceeded"),
        "refused": ("refusal",),
    },
    refusals={
        "too_much": (
            "schema is too complex",
            "grammar is too large",
        ),
        # Servers that speak Anthropic's dialect refuse marks for a prompt cache.
        "cache": ("cache_control",),
    },
    error_codes={
        "spent": ("billing_error",),
        "too_many": ("rate_limit_error", "overloaded_error"),
    },
    statuses={
        400: ("invalid_request_error",),
        401: ("authentication_error",),
        403: ("permission_error",),
        404: ("not_found_error",),
        413: ("request_too_large",),
    },
    parameters={"response_format": ("output_config", "output_format")},
    cache_marks=_cache_marks,
    batch_client=CHAT_ANTHROPIC.class_name,
)
