"""Perplexity."""

from __future__ import annotations

from .provider import Provider

PERPLEXITY = Provider(title="Perplexity", names=("perplexity",))
