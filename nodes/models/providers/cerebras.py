"""Cerebras."""

from __future__ import annotations

from .provider import Provider

CEREBRAS = Provider(title="Cerebras", names=("cerebras",))
