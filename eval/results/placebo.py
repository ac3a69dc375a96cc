"""Whether a repeated judgement may differ although nothing has changed.

An experiment that changes something compares with a placebo: the same judgement repeated. A
language model sometimes gives another reply, regardless of the change, even at temperature 0: a
server decodes requests together, and their number changes its arithmetic. Only the offline judge
repeats its replies. Its placebo is zero, and needs no call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...state.settings import OFFLINE

PLACEBO_REPEAT = 1
"""The repeat number that marks the calls of a placebo, so that they get their own replies."""


def may_vary(manifest: Mapping[str, Any], protocol: str) -> bool:
    """Return whether a judge's verdict on the same item may differ when it is repeated.

    Args:
        manifest: the manifest of the run, or of its plan.
        protocol: the judge's name in it.

    >>> may_vary({"models": {"debate": {"*": "openai:gpt-4o?temperature=0.0"}}}, "debate")
    True
    >>> may_vary({"models": {"debate": {"*": "offline"}}}, "debate")
    False
    """
    return set((manifest.get("models") or {}).get(protocol, {}).values()) != {OFFLINE.name}
