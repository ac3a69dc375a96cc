"""Amazon Bedrock."""

from __future__ import annotations

import json
from typing import Any

from .provider import Client, JsonSchema, Marks, Options, Provider, is_a


def _json_schema(asked: JsonSchema) -> Options:
    named = {"schema": json.dumps(asked.schema), "name": asked.title}
    return {
        "output_config": {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": named}}}
    }


def _tool_choice(chat: Any, _title: str) -> str | None:
    allowed = chat.supports_tool_choice_values or ()
    return next((way for way in ("any", "auto") if way in allowed), None)


def _cache_marks(chat: Any) -> Marks | None:
    if not is_a(chat, CHAT_BEDROCK.class_name):
        return None
    # Other models on Bedrock refuse marks.
    return "cachePoint" if "anthropic.claude" in str(getattr(chat, "model_id", "")) else None


CHAT_BEDROCK = Client(
    class_name="ChatBedrockConverse",
    json_schema=_json_schema,
    bounds="lists",
    tool_choice=_tool_choice,
)

BEDROCK = Provider(
    title="Amazon Bedrock",
    names=("bedrock", "bedrock_converse", "anthropic_bedrock", "amazon_bedrock"),
    clients=(CHAT_BEDROCK,),
    package="langchain_aws",
    extra="bedrock",
    variable_prefix="AWS",
    price_list="aws",
    telemetry={"bedrock": "aws.bedrock"},
    finish_reasons={
        # ``finish`` and ``length`` are Titan's.
        "complete": ("end_turn", "tool_use", "stop_sequence", "finish"),
        "cut_off": (
            "max_tokens",
            "length",
            "model_context_window_exceeded",
            "malformed_model_output",
            "malformed_tool_use",
        ),
        "filtered": ("guardrail_intervened", "content_filtered"),
    },
    refusals={
        "unsupported": (r"remove \S+ and try again",),
        "cache": (
            "cache_point",
            "prompt caching",
        ),
    },
    error_codes={"too_many": ("ThrottlingException",)},
    # us.anthropic.claude-...
    model_prefix=r"^(?:[a-z]{2,6}\.)?(?:anthropic|amazon|meta|mistral|cohere)\.",
    cache_marks=_cache_marks,
)
