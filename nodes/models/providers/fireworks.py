"""Fireworks."""

from __future__ import annotations

from .provider import Provider

FIREWORKS = Provider(title="Fireworks", names=("fireworks",))
