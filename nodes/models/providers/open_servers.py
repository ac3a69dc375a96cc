"""Servers of open models (vLLM, SGLang, llama.cpp, TGI) and gateways to them."""

from __future__ import annotations

from .provider import Provider

# Most use OpenAI's API, so a name does not identify the server: its words apply to every model.
OPEN_SERVERS = Provider(
    title="servers of open models",
    finish_reasons={
        "complete": ("eos", "eos_token", "end", "finished", "normal"),
        "cut_off": ("limit", "max_length", "context_length_exceeded"),
        "filtered": ("guardrails",),
        "failed": ("abort", "aborted", "canceled", "overloaded"),
    },
    reasoning_models=r"(?:^|[^a-z])(?:r1|qwq|qwen-?3)",
)
