"""Check images, audio, video and files that are judged beside the texts: whether each can be sent to a model."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any

from .checked import fields_in, shortened

Media = dict[str, dict[str, Any]]
"""Images and files by the names that a text has for them, such as ``[image 1]``, each as it stood in its message."""

MOST_MEDIA, LARGEST_MEDIUM = 50, 30_000_000
"""How many images and files a task may have, and how many characters of base64 each of them; providers take fewer."""

_ADDRESSES = ("url", "image_url", "file_url", "uri", "file_id")
_CONTENTS = ("base64", "data", "file_data", "bytes")


def media_fault(part: Mapping[str, Any]) -> str:
    """Say what is wrong with an image or a file; empty where nothing is."""
    sources = [(name, value) for name, value in fields_in(part) if name in (*_ADDRESSES, *_CONTENTS)]
    given = [(name, value) for name, value in sources if value is not None and not isinstance(value, Mapping)]
    faults = [_fault_of(name, value) for name, value in given] or ["it has neither address nor content"]
    return next(filter(None, faults), "")


def _fault_of(key: str, value: Any) -> str:
    if not isinstance(value, str):
        return "its bytes must be base64"
    is_data = value.startswith("data:")
    if key in _ADDRESSES and not is_data:
        known = key == "file_id" or re.match(r"(https?|gs|s3)://[^\s/]", value)
        return "" if known else f"its address {shortened(value)} is not a web address"
    content = value.partition(",")[2] if is_data else value
    if len(content) > LARGEST_MEDIUM:
        return f"it has {len(content):,} characters, more than {LARGEST_MEDIUM:,}"
    try:
        return "" if base64.b64decode(content, validate=True) else "it is empty"
    except (binascii.Error, ValueError):
        return "its content is not base64"
