"""OpenAI's models on Microsoft Azure."""

from __future__ import annotations

from dataclasses import replace

from .openai import CHAT_COMPLETIONS
from .provider import Provider

AZURE = Provider(
    title="Azure OpenAI",
    names=("azure_openai", "azure_ai"),
    # OpenAI's models accept no ranges.
    clients=(
        replace(
            CHAT_COMPLETIONS, class_name="AzureChatOpenAI", bounds="lists", names_deployments=True
        ),
    ),
    price_list="azure",
    telemetry={"azure_openai": "azure.ai.openai"},
)
