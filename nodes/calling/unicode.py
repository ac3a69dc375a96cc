"""Text that can be written down: models break off in the middle of a character, and JSON lets half of one pass."""

from __future__ import annotations

from typing import Any


def well_formed(value: Any) -> Any:
    """JSON as it came, with the replacement character in place of what is half of one.

    >>> well_formed({"said": ["fine", chr(0xD83D)]}) == {"said": ["fine", chr(0xFFFD)]}
    True
    """
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict):
        return {_text(str(name)): well_formed(held) for name, held in value.items()}
    return [well_formed(held) for held in value] if isinstance(value, list) else value


def _text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
