"""Moonshot AI (Kimi)."""

from __future__ import annotations

from .provider import Provider

MOONSHOT = Provider(title="Moonshot AI", reasoning_models="kimi-k2")
