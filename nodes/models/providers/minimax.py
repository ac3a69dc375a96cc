"""MiniMax."""

from __future__ import annotations

from .provider import Provider

MINIMAX = Provider(
    title="MiniMax",
    finish_reasons={
        "complete": ("stop", "tool_calls"),
        "cut_off": ("length",),
        "filtered": ("input_sensitive", "output_sensitive"),
    },
    reasoning_models=r"minimax-m\d",
)
