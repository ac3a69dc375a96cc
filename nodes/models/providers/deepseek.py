"""DeepSeek."""

from __future__ import annotations

from .provider import Provider

# Its client derives from OpenAI's.
DEEPSEEK = Provider(
    title="DeepSeek",
    names=("deepseek",),
    package="langchain_deepseek",
    extra="deepseek",
    finish_reasons={
        "complete": ("stop", "tool_calls"),
        "cut_off": ("length",),
        "filtered": ("content_filter",),
        "failed": ("insufficient_system_resource",),
    },
    reasoning_models=r"deepseek.*(?:reasoner|-r\d)",
)
