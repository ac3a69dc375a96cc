"""OpenRouter, a gateway to the models of other providers."""

from __future__ import annotations

from typing import Any

from .provider import Marks, Provider, is_a


def _cache_marks(chat: Any) -> Marks | None:
    # It passes marks on to Claude, whichever client is used.
    is_asked = is_a(chat, "ChatOpenRouter") or "openrouter.ai" in str(
        getattr(chat, "openai_api_base", "")
    )
    is_claude = str(getattr(chat, "model_name", "")).startswith("anthropic/")
    return "cache_control" if is_asked and is_claude else None


OPENROUTER = Provider(
    title="OpenRouter",
    names=("openrouter",),
    finish_reasons={"failed": ("error",)},
    refusals={
        "unexplained": ("provider returned error",),
        "not_built": ("no endpoints found",),
        "form": ("handle the requested parameters",),
    },
    cache_marks=_cache_marks,
)
