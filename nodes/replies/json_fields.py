"""Read replies that are one JSON object, be it strict JSON or as Python prints a dict."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from .own_words import unwrapped

Scalar = str | int | float | bool | None


class Field(NamedTuple):
    """One value of a reply's JSON object, with its keys from the outside in."""

    path: tuple[str, ...]
    value: Scalar

    @property
    def name(self) -> str:
        """The innermost key in one spelling: ``"Final Score"`` is ``"final_score"``."""
        return spelled(self.path[-1]) if self.path else ""


class _Object(list[tuple[str, object]]):
    """A decoded object as a list of pairs, so that a key given twice is seen twice and may contradict itself."""


_TOKEN = re.compile(
    r"""
    "(?P<double>(?:[^"\\]|\\.)*+)"
    | '(?P<single>(?:[^'\\]|\\.)*+)'
    | (?P<mark>[{}\[\]:,])
    | (?P<bare>[^\s"'{}\[\]:,]++)
    """,
    re.VERBOSE | re.DOTALL,
)
_LEAD_IN = re.compile(
    r"\A[^\n{]{0,60}\b(?:here is|here's|here are|my|the|json|final)\b[^\n{]{0,60}"
    r"\b(?:evaluation|assessment|judge?ment|verdict|score|scores|rating|ratings|json|output|result|response"
    r"|answer)\b"
    r"[^\n{]{0,40}:\n+(?=```)",
    re.IGNORECASE,
)
# Nesting as deep as this is no answer; the limit keeps recursion short.
_DEEPEST = 40


def spelled(key: str) -> str:
    """Return a key in snake case, so that different spellings of it are the same."""
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key.strip())
    return re.sub(r"[^\w]+", "_", snake).strip("_").casefold()


def fields(reply: str) -> list[Field] | None:
    """Return the values of a reply that is one object (also in a code fence, also single-quoted); else None.

    Args:
        reply: a reply that went through `plain`.

    >>> fields('{"score": 4, "reason": "fluent"}')
    [Field(path=('score',), value=4), Field(path=('reason',), value='fluent')]
    >>> fields("```json\\n{'scores': {'1': 8, '2': 7}}\\n```")
    [Field(path=('scores', '1'), value='8'), Field(path=('scores', '2'), value='7')]
    """
    text = unwrapped(_LEAD_IN.sub("", reply, count=1))
    if not text.startswith(("{", "[{")):
        return None
    return decoded(text)


class ClosingFields(NamedTuple):
    """The values of an object on lines of its own that ends a reply, and where it stands there."""

    at: int
    end: int
    entries: list[Field]


def closing_fields(words: str) -> ClosingFields | None:
    """Return the object on lines of its own that ends the reply; None where there is none."""
    text = words.rstrip("\x00\n ")
    if not text.endswith("}"):
        return None
    start = max(text.rfind("\n{"), text.rfind("\x00{")) + 1
    found = decoded(text[start:]) if start > 0 else None
    return ClosingFields(start, len(text), found) if found else None


def decoded(text: str) -> list[Field] | None:
    """Return the values of a text that is an object, strict JSON or not; None if it is none."""
    try:
        tree: object = json.loads(text, object_pairs_hook=_Object, strict=False)
    except (ValueError, RecursionError):
        return _scanned(text)
    return list(flat(tree))


def flat(tree: object, path: tuple[str, ...] = ()) -> Iterator[Field]:
    """Yield the values of a decoded object or list, each with its keys."""
    if len(path) > _DEEPEST:
        return
    if isinstance(tree, _Object | dict):
        for key, value in tree.items() if isinstance(tree, dict) else tree:
            yield from flat(value, (*path, key))
    elif isinstance(tree, list):
        for index, value in enumerate(tree, start=1):
            yield from flat(
                value, (*path, str(index)) if len(tree) > 1 or not isinstance(value, _Object | dict) else path
            )
    elif tree is None or isinstance(tree, str | int | float | bool):
        yield Field(path, tree)


def _scanned(text: str) -> list[Field] | None:
    """Return the values of an object that is not strict JSON, token by token; None unless it is closed.

    ``path`` holds the keys of the open objects and lists, ``counts`` the position in each list (-1 for an object).
    """
    path: list[str] = []
    counts: list[int] = []
    key: str | None = None
    found: list[Field] = []
    last: str | None = None
    closed = False
    for token in _TOKEN.finditer(text):
        mark = token["mark"]
        word = next(
            (part for part in (token["double"], token["single"], token["bare"]) if part is not None), None
        )
        if closed or len(path) > _DEEPEST:
            return None
        if mark is None:
            last = word
            continue
        if mark == ":":
            key, last = last or "", None
            continue
        if last is not None:
            found.append(Field((*path[1:], *_step(key, counts)), last))
        if mark in "{[":
            path.append("".join(_step(key, counts)))
            counts.append(0 if mark == "[" else -1)
        elif mark == "," and counts and counts[-1] >= 0:
            counts[-1] += 1
        elif mark in "}]" and path:
            path.pop()
            counts.pop()
            closed = not path
        key = last = None
    return found if closed else None


def _step(key: str | None, counts: list[int]) -> tuple[str, ...]:
    if key is not None:
        return (key,)
    return (str(counts[-1] + 1),) if counts and counts[-1] >= 0 else ()
