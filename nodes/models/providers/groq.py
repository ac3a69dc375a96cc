"""Groq."""

from __future__ import annotations

from .provider import (
    CHAT_COMPLETIONS_OBJECT,
    Client,
    JsonSchema,
    Options,
    Provider,
    chat_completions_schema,
)


def _json_schema(asked: JsonSchema) -> Options:
    # It enforces a schema strictly for a few models only, and refuses to try with others.
    return chat_completions_schema(asked, strict="gpt-oss" in asked.model)


GROQ = Provider(
    title="Groq",
    names=("groq",),
    clients=(
        Client(
            class_name="ChatGroq",
            json_schema=_json_schema,
            json_object=CHAT_COMPLETIONS_OBJECT,
            async_client="async_client._client",
        ),
    ),
    package="langchain_groq",
    extra="groq",
    finish_reasons={
        "complete": ("stop", "tool_calls"),
        "cut_off": ("length",),
    },
    # It parses the model's output before it sends it on. A retry may give a valid reply.
    error_codes={"misformed": ("json_validate_failed", "tool_use_failed", "output_parse_failed")},
)
