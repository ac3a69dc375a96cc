"""IBM watsonx."""

from __future__ import annotations

from .provider import Provider

WATSONX = Provider(
    title="IBM watsonx",
    names=("ibm",),
    finish_reasons={
        "complete": ("eos_token", "stop_sequence"),
        "cut_off": ("max_tokens", "token_limit", "time_limit", "not_finished"),
        "failed": ("cancelled", "error"),
    },
)
