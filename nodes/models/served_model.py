"""Tell which model a provider says that it answered with, and whether that is another one than was asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# A dated or numbered version of what was asked for: -2024-07-18, -20250514, -0613, -001, @20240620, :latest, -v1:0.
_VERSION = re.compile(
    r"(?:[-@.]?(?:v\d+(?::\d+)?|\d{4}-\d\d-\d\d|\d{8}|\d{6}|\d{3,4})|-0|:[\w.-]+|[-:]latest|-preview(?:-[\d-]+)?|-exp)$"
)
# us.anthropic.claude-..., as Bedrock names models
_BEDROCK = re.compile(r"^(?:[a-z]{2,6}\.)?(?:anthropic|amazon|meta|mistral|cohere)\.")


def served_name(metadata: Mapping[str, Any]) -> str | None:
    """Return the name of the model in a response's metadata, as LangChain's clients keep it, or None."""
    named = (metadata.get(key) for key in ("model_name", "model", "model_id"))
    return next((name for name in named if isinstance(name, str) and name), None)


def is_another(asked: str, served: str) -> bool:
    """Tell whether a provider answered with another model; a dated version or an alias of one is the same.

    >>> is_another("gpt-4o-mini", "gpt-4o-mini-2024-07-18"), is_another("gpt-4o", "gpt-4o-mini")
    (False, True)
    >>> is_another("claude-sonnet-4-0", "claude-sonnet-4-20250514"), is_another("gemini-flash-latest", "gemini-3")
    (False, False)
    """
    # What an alias such as ``gemini-flash-latest`` stands for is the provider's to say.
    if asked == served or asked.endswith("latest"):
        return False
    return _family(asked) != _family(served)


def _family(name: str) -> str:
    """Return a model's name without the provider before it (``models/``, ``openai/``) and without its version."""
    shortened = _BEDROCK.sub("", name.lower().rpartition("/")[2])
    while (shorter := _VERSION.sub("", shortened)) not in ("", shortened):
        shortened = shorter
    return shortened
