"""What a page carries, made small: lists of JSON in compressed blocks that the page unpacks when they are read."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any, NamedTuple

import orjson

FULL = 1 << 18
"""So many bytes of JSON fill a block: small enough to be unpacked at once, big enough to be compressed well."""


class Place(NamedTuple):
    """Where something is to be found: which block, and the how-manieth in it."""

    block: int
    place: int


class Block(NamedTuple):
    """A compressed block, as text."""

    id: str
    text: str


def as_json(value: Any) -> bytes:
    """JSON in UTF-8; half a character, which UTF-8 has no form for, becomes a question mark.

    >>> as_json({"said": "\\ud83d!"})
    b'{"said":"?!"}'
    """
    try:
        return orjson.dumps(value)
    except (TypeError, ValueError):
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
        return text.encode(errors="replace")


def for_script(value: Any) -> str:
    """JSON as a ``script`` element can hold it: nothing in it ends the element or begins a comment.

    >>> for_script("</script>")
    '"\\\\u003c/script>"'
    """
    return as_json(value).decode().replace("<", "\\u003c")


def packed(content: bytes) -> str:
    """Compressed, in letters; the same content gives the same letters."""
    return base64.b64encode(gzip.compress(content, compresslevel=6, mtime=0)).decode("ascii")


class Packer:
    """Gathers values into blocks. Take the block whenever it is ``full``, and the last one at the end."""

    def __init__(self, prefix: str) -> None:
        self.count = 0
        self._prefix = prefix
        self._held: list[bytes] = []
        self._size = 0

    @property
    def full(self) -> bool:
        """Whether the block that is being filled should be taken."""
        return self._size >= FULL

    def add(self, value: Any) -> Place:
        """Put in a value; gives where it is to be found."""
        content = as_json(value)
        self._held.append(content)
        self._size += len(content)
        return Place(self.count, len(self._held) - 1)

    def take(self) -> list[Block]:
        """The block that was being filled: one, or none where nothing was put in."""
        if not self._held:
            return []
        block = Block(f"{self._prefix}{self.count}", packed(b"[" + b",".join(self._held) + b"]"))
        self.count += 1
        self._held, self._size = [], 0
        return [block]
