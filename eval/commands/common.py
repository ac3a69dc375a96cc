"""What the commands share: where they print, how they read options, how they end."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any

from rich.console import Console

from ...state.errors import UsageError
from ...state.settings import ModelSpec

ALL_JUDGED, SOME_FAILED, BAD_USAGE, BUDGET_REACHED, INTERRUPTED = 0, 3, 2, 4, 130
PIPED_WIDTH = 120


def console() -> Console:
    """Where results are printed; wide enough for the tables where it is no terminal."""
    found = Console()
    return found if found.is_terminal or "COLUMNS" in os.environ else Console(width=PIPED_WIDTH)


def program() -> str:
    """The program as its user can call it again: by its name, or by the path it was called with."""
    return "jurygraph" if shutil.which("jurygraph") else sys.argv[0]


def settings_of(pairs: list[str]) -> dict[str, Any]:
    """Settings by name; ``inner.n=2`` sets one of those that a setting holds."""
    settings: dict[str, Any] = {}
    for key, value in (_pair(pair, "--set KEY=VALUE") for pair in pairs):
        *outer, name = key.split(".")
        held = settings
        for part in outer:
            held = held.setdefault(part, {})
            if not isinstance(held, dict):
                raise UsageError(f"--set {key}={value}: {part} was given as a whole before; give one of them")
        held[name] = value
    return settings


def models_of(everybody: str | None, pairs: list[str]) -> dict[str, ModelSpec]:
    """Role to model; ``"*"`` for all."""
    named = {"*": everybody} if everybody else {}
    named.update(_pair(pair, "--role-model ROLE=NAME") for pair in pairs)
    return {role: ModelSpec.parse(name) for role, name in named.items()}


def _pair(text: str, form: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise UsageError(f"{text!r} is not of the form {form}")
    return key.strip(), value
