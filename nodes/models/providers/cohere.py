"""Cohere."""

from __future__ import annotations

from .provider import Provider

COHERE = Provider(
    title="Cohere",
    names=("cohere",),
    finish_reasons={
        "complete": ("complete", "stop_sequence", "tool_call"),
        "cut_off": ("max_tokens", "error_limit"),
        "filtered": ("error_toxic",),
        "failed": ("error", "timeout", "user_cancel"),
    },
)
