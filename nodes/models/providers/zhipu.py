"""Zhipu AI (GLM)."""

from __future__ import annotations

from .provider import Provider

ZHIPU = Provider(
    title="Zhipu AI",
    finish_reasons={
        "complete": ("stop", "tool_calls"),
        "cut_off": ("length", "model_context_window_exceeded"),
        "filtered": ("sensitive",),
        "failed": ("network_error",),
    },
    reasoning_models=r"glm-(?:4\.[5-9]|[5-9])",
)
