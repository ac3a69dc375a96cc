"""Text as people and providers can take it: valid Unicode."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator


def _encodable(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(f"not valid Unicode at character {error.start} ({error.reason})") from error
    return text


Text = Annotated[str, AfterValidator(_encodable)]
"""A string that can be sent: no lone surrogates."""
