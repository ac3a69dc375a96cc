"""Ollama."""

from __future__ import annotations

from .provider import Client, JsonSchema, Options, Provider


def _json_schema(asked: JsonSchema) -> Options:
    return {"format": asked.schema}


OLLAMA = Provider(
    title="Ollama",
    names=("ollama",),
    clients=(
        Client(
            class_name="ChatOllama",
            json_schema=_json_schema,
            json_object={"format": "json"},
            any_schema=True,
        ),
    ),
    package="langchain_ollama",
    extra="ollama",
    finish_reasons={
        "complete": ("stop",),
        "cut_off": ("length",),
    },
)
