"""Read the JSON objects of replies, strict JSON or as Python prints a dict, and tell own ones from quoted ones."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from .own_words import GAP, unwrapped
from .shown import Shown, fold

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
    r"|answer)\b[^\n{]{0,40}:\n+(?=```)",
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


class StatedObject(NamedTuple):
    """Hold a JSON object of a reply: where it stands, its values, and itself where it is strict JSON."""

    start: int
    end: int
    entries: list[Field]
    fields: dict[str, Any] | None


def whole_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object that a text is, also in one code fence; None if it is none or holds anything else.

    >>> whole_object('```json\\n{"score": 4}\\n```'), whole_object('So: {"score": 4}')
    ({'score': 4}, None)
    """
    text = text.strip()
    if fenced := _FENCED.fullmatch(text):
        text = fenced[1]
    if not text.startswith("{"):
        return None
    try:
        value = _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def stated_object(text: str, shown: Shown, names: Collection[str]) -> dict[str, Any] | None:
    """Return the object with these fields by which a text states its value among other words; None if there is none.

    It is the last one that does not stand in the texts ``shown``; it begins a line, and no number follows it.
    """
    objects = _objects(text) if "{" in text else []
    if not objects:
        return None
    own = [each for each in objects if not _stands_in(tuple(each.entries), shown)]
    if not own or own[-1].fields is None or not set(names) <= own[-1].fields.keys():
        return None
    last = own[-1]
    if not _BEGINS_LINE.search(text, max(0, last.start - 20), last.start):
        return None
    afterword = _blanked(text, [each for each in objects if each.start >= last.end], "")[last.end :]
    return last.fields if _AFTERWORD.fullmatch(afterword) else None


def is_repeated(fields: Mapping[str, Any], shown: Shown) -> bool:
    """Tell whether an object stands with its reasons in a text under judgement.

    Without reasons it may be the agent's own: one that comes to the same value writes the same object.

    >>> shown = Shown(('Say {"reasoning": "Perfect.", "score": 5}!',))
    >>> is_repeated({"score": 5.0, "reasoning": "Perfect."}, shown), is_repeated({"score": 5}, shown)
    (True, False)
    """
    entries = list(flat(fields))
    return _gives_reasons(entries) and _stands_in(tuple(entries), shown)


def without_repeats(text: str, shown: Shown) -> str:
    """Return a plain text with a gap in place of each object that stands with its reasons in ``shown``."""
    repeats = [
        each
        for each in (_objects(text) if shown and "{" in text else ())
        if _gives_reasons(each.entries) and _stands_in(tuple(each.entries), shown)
    ]
    return _blanked(text, repeats, GAP * 2)


def _blanked(text: str, objects: list[StatedObject], blank: str) -> str:
    for each in reversed(objects):
        text = text[: each.start] + blank + text[each.end :]
    return text


_FENCED = re.compile(r"```(?:json|JSON)?\s*(\{.*\})\s*```", re.DOTALL)
_BEGINS_LINE = re.compile(r"(?:\A|\n|```(?:json|JSON)?)[ \t]*\Z")
# What may stand behind a reply's object: some words, no number and no further object.
_AFTERWORD = re.compile(r"[^{}\d]{0,300}")
_DECODER = json.JSONDecoder(strict=False)
_FLAT = re.compile(r"\{[^{}]*+\}")
# A reply has few objects; each brace that opens none costs another look at what follows it.
_MOST_FAILURES = 64


def _objects(text: str) -> list[StatedObject]:
    """Return the objects of a text that stand in no other one, strict JSON or as Python prints a dict."""
    return list(_found_objects(text))


def _found_objects(text: str) -> Iterator[StatedObject]:
    at, failures = text.find("{"), 0
    while at >= 0 and failures < _MOST_FAILURES:
        end = at + 1
        try:
            value, end = _DECODER.raw_decode(text, at)
            yield StatedObject(at, end, list(flat(value)), value)
        except (ValueError, RecursionError):
            failures += 1
            loose = _FLAT.match(text, at)
            if loose is not None and (entries := decoded(loose[0])):
                end = loose.end()
                yield StatedObject(at, end, entries, None)
        at = text.find("{", end)


def _gives_reasons(entries: list[Field]) -> bool:
    return any(isinstance(entry.value, str) and _HAS_WORD.search(entry.value) for entry in entries)


_HAS_WORD = re.compile(r"[^\W\d_]{2}")


@lru_cache(maxsize=256)
def _stands_in(entries: tuple[Field, ...], shown: Shown) -> bool:
    """Tell whether each field stands in one text under judgement, in whatever order and spelling."""
    return any(_holds_all(Shown((text,)), entries) for text in shown.judged)


def _holds_all(text: Shown, entries: tuple[Field, ...]) -> bool:
    telling = [entry for entry in entries if fold(_written(entry.value)[0]).flat.strip()]
    variants = [text, *(Shown((_without_escapes(held),)) for held in text.judged if "\\" in held)]
    return bool(telling) and all(
        any(
            variant.place_of(f"{entry.path[-1] if entry.path else ''} {written}")
            for variant in variants
            for written in _written(entry.value)
        )
        for entry in telling
    )


def _written(value: object) -> tuple[str, ...]:
    """Return how a value may be written in a text."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ("",) if value is None else (str(value),)
    return (f"{value:g}", str(value), str(float(value)))


@lru_cache(maxsize=256)
def _without_escapes(text: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else " ", text)


_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)")
