"""Together."""

from __future__ import annotations

from .provider import Provider

TOGETHER = Provider(title="Together", names=("together",))
