"""Look up paths in nested data, such as ``outputs.messages.0.content``.

Columns of files and inputs of judges use the same paths.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class PathError(LookupError):
    """Raised for a path that leads to no value.

    Attributes:
        at: the first part of the path that is missing.
        known: the keys that exist instead.
    """

    def __init__(self, at: str, known: Sequence[str]) -> None:
        super().__init__(at)
        self.at = at
        self.known = tuple(known)


def look_up(path: str, given: Any) -> Any:
    """Return the value that a path leads to.

    A step is a key of an object or an index in a list: 0 is the first, -1 the last. A key that
    contains dots is found by its full name.

    Raises:
        PathError: a step is missing, or its value is ``None``.

    >>> chat = {"turns": [{"content": "Why?"}, {"content": "Rain."}], "a.b": 1}
    >>> look_up("turns.0.content", chat), look_up("turns.-1.content", chat), look_up("a.b", chat)
    ('Why?', 'Rain.', 1)
    """
    value = given
    steps = path.split(".")
    for place, key in enumerate(steps):
        rest = ".".join(steps[place:])
        if isinstance(value, Mapping) and value.get(rest) is not None:
            return value[rest]
        in_list = (
            isinstance(value, Sequence)
            and not isinstance(value, str)
            and key.lstrip("-").isdecimal()
        )
        try:
            inner = value[int(key) if in_list else key]
        except (KeyError, IndexError, TypeError):
            inner = None
        if inner is None:
            known = (
                [str(name) for name in value if value[name] is not None]
                if isinstance(value, Mapping)
                else []
            )
            raise PathError(".".join(steps[: place + 1]), known)
        value = inner
    return value


def find(path: str, given: Any) -> Any:
    """Return the value that a path leads to; ``None`` if there is none."""
    try:
        return look_up(path, given)
    except PathError:
        return None
