"""Mistral."""

from __future__ import annotations

from typing import Any

from .provider import CHAT_COMPLETIONS_OBJECT, Client, Provider, chat_completions_schema


def _tool_choice(_chat: Any, _title: str) -> str | None:
    # The client has no value for a specific tool. With a single tool, "any" means the same.
    return "any"


MISTRAL = Provider(
    title="Mistral",
    names=("mistralai",),
    clients=(
        Client(
            class_name="ChatMistralAI",
            json_schema=chat_completions_schema,
            json_object=CHAT_COMPLETIONS_OBJECT,
            tool_choice=_tool_choice,
        ),
    ),
    package="langchain_mistralai",
    extra="mistral",
    variable_prefix="MISTRAL",
    price_list="mistral",
    telemetry={"mistralai": "mistral_ai"},
    finish_reasons={
        "complete": ("stop", "tool_calls"),
        "cut_off": ("length", "model_length"),
        "failed": ("error",),
    },
    reasoning_models=r"(?:^|[^a-z])magistral",
)
