"""Know the words of providers: how they refuse a parameter, fail, and end replies (``provider_words.toml``)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

WORDS: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
"""The words, by what they say."""


def any_of(patterns: Sequence[str], flags: int = 0) -> re.Pattern[str]:
    """Compile several patterns to one that matches where one of them does."""
    return re.compile("|".join(patterns), flags)
