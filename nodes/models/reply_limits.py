"""Decide how long a reply may be where nobody says, and for which models that holds: those that do not reason.

The tokens that a model reasons with count into the limit of its reply at most providers, so that a limit which is
generous for the words of a debate would end before the first of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...state.settings import REPLY_LIMITS


def reply_limit(form: str) -> int:
    """Return the tokens that a reply of this form may have by default."""
    return REPLY_LIMITS.get(form, REPLY_LIMITS["*"])


def default_limits() -> str:
    """Return the default limits in words.

    >>> default_limits()
    '2,048 tokens (steps, vote: 1,024)'
    """
    others = sorted(form for form in REPLY_LIMITS if form != "*")
    return f"{REPLY_LIMITS['*']:,} tokens ({', '.join(others)}: {REPLY_LIMITS[others[0]]:,})"


def is_limited_by_default(identity: Mapping[str, Any]) -> bool:
    """Tell whether replies of a model have the default limit: it has none of its own and does not reason.

    Args:
        identity: its name and parameters.

    >>> is_limited_by_default({"name": "openai:gpt-4o-mini", "temperature": 0})
    True
    >>> is_limited_by_default({"name": "openai:gpt-4o-mini", "max_tokens": 500})
    False
    >>> is_limited_by_default({"name": "openai:gpt-5-mini"}), is_limited_by_default({"name": "ollama:qwen3:8b"})
    (False, False)
    >>> is_limited_by_default({"name": "google_genai:gemini-2.5-flash", "thinking_budget": 0})
    True
    """
    name, parameters = str(identity["name"]), dict(_inside(identity))
    if name == "offline" or _LIMITS & parameters.keys():
        return False
    switches = [value not in _OFF for name, value in parameters.items() if _SWITCH.search(name)]
    return not (any(switches) if switches else _REASONS.search(name.lower()))


def _inside(parameters: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield all parameters with their names, at any depth; for an object stands its ``type``, if it has one."""
    for name, value in parameters.items():
        yield str(name), (value.get("type", bool(value)) if isinstance(value, Mapping) else value)
        if isinstance(value, Mapping):
            yield from _inside(value)


_LIMITS = {
    *("max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens", "num_predict"),
    *("maxTokens", "maxOutputTokens", "max_tokens_to_sample", "max_length"),
}
"""The names that classes and servers have for a limit of a reply's length."""

_SWITCH = re.compile(r"think|reasoning|budget_tokens", re.IGNORECASE)
"""Finds parameters that turn reasoning on or off."""
_OFF = (None, False, 0, "none", "off", "disabled", "false")

_REASONS = re.compile(
    r"(?:^|[:/.])(?:o\d|gpt-(?:[5-9]|oss))|deepseek.*(?:reasoner|-r\d)|(?:^|[^a-z])(?:r1|qwq|qwen-?3|magistral)"
    r"|gemini-(?:2\.5|[3-9]|flash-latest|pro-latest)|grok-(?:3-mini|[4-9])|glm-(?:4\.[5-9]|[5-9])|minimax-m\d|kimi-k2"
    r"|think|reason"
)
"""Finds names of models that reason unless they are told not to; one that is not known here is told by its replies."""
