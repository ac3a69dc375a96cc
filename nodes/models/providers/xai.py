"""xAI."""

from __future__ import annotations

from .provider import Provider

# Its client derives from OpenAI's.
XAI = Provider(
    title="xAI",
    names=("xai",),
    price_list="x-ai",
    reasoning_models=r"grok-(?:3-mini|[4-9])",
)
