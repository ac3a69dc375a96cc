"""NVIDIA."""

from __future__ import annotations

from .provider import Provider

NVIDIA = Provider(title="NVIDIA", names=("nvidia",))
