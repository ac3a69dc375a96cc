"""Checks whether images, audio, video and files of a task can be sent to a model."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any

from .checked import fields_in, shortened

Media = dict[str, dict[str, Any]]
"""Images and files by their names in a text, such as ``[image 1]``, each as in its message."""

MOST_MEDIA = 50
LARGEST_MEDIUM = 30_000_000
"""The maximum number of images and files of a task, and of base64 characters of each.

Providers accept less.
"""

_ADDRESSES = ("url", "image_url", "file_url", "uri", "file_id")
_CONTENTS = ("base64", "data", "file_data", "bytes")


_LONGEST_PATH = 4096
"""In characters, on Linux; other systems allow fewer."""
_IMAGE_STARTS = ("iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR", "Qk", "SUkq", "TU0AK")
"""The beginnings of PNG, JPEG, GIF, WebP, BMP and TIFF files in base64."""


def media_of_caller_fault(part: Mapping[str, Any]) -> str:
    """Return why a server cannot accept an image or a file from its callers; empty if it can.

    Some clients fetch an address in the server's process, and some read a file if the content is
    also a path.

    >>> media_of_caller_fault({"type": "image", "url": "https://example.org/cat.png"})
    'has an address'
    >>> media_of_caller_fault({"type": "image", "base64": "iVBORw0KGgo="})
    ''
    """
    given = [(name, value) for name, value in fields_in(part) if isinstance(value, str)]
    if any(name in _ADDRESSES and not value.startswith("data:") for name, value in given):
        return "has an address"
    sources = [value for name, value in given if name in (*_ADDRESSES, *_CONTENTS)]
    contents = [
        value.partition(",")[2] if value.startswith("data:") else value for value in sources
    ]
    is_image = any(
        "image" in name or (name == "type" and "image" in value) for name, value in given
    )
    is_image = is_image or "image_url" in part
    short = (content for content in contents if len(content) < _LONGEST_PATH)
    if is_image and any(not content.startswith(_IMAGE_STARTS) for content in short):
        return "is not an image in a known format (PNG, JPEG, GIF, WebP, BMP, TIFF)"
    return ""


def media_fault(part: Mapping[str, Any]) -> str:
    """Return the problem with an image or a file; empty if there is none."""
    sources = [
        (name, value) for name, value in fields_in(part) if name in (*_ADDRESSES, *_CONTENTS)
    ]
    given = [
        (name, value)
        for name, value in sources
        if value is not None and not isinstance(value, Mapping)
    ]
    faults = [_fault_of(name, value) for name, value in given] or [
        "it has neither address nor content"
    ]
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
