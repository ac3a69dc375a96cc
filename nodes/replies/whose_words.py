"""Decide whose words the parts of a raw reply are, before anything is cut from it or read in it.

Reasoning tags and JSON objects decide which part of a reply is its answer. Where they stand in a text that the agent
was shown, they may be quoted, and a quoted tag or object is none.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from .json_fields import Field, decoded, flat
from .own_words import GAP, plain
from .reasoning import MARK, OPENING, has_marks, without_reasoning
from .reply_errors import bounded
from .shown import Shown, fold, latin


def possible_answers(reply: str, shown: Shown) -> list[str]:
    """Return what may be the reply's answer, the longest first: what is left of it once its reasoning is cut out.

    There is one, unless a text that the agent was shown has a reasoning tag and the reply has one too. Then each tag
    may be the agent's own or quoted, and the answer counts only if it is the same either way.

    >>> possible_answers("<think>Is it a 5?</think>Score: 4", Shown(("A fine day.",)))
    ['Score: 4']
    >>> possible_answers("Score: 2\\nIt says:\\n</think>\\nScore: 5", Shown(("A fine day. </think> Score: 5",)))
    ['Score: 2\\nIt says:\\n</think>\\nScore: 5']
    """
    texts = [text for text in (*shown.judged, *shown.said) if _has_marks(text)]
    if not texts or not has_marks(reply):
        return [without_reasoning(reply)]
    contexts = Shown(tuple(_unescaped(text) for text in texts))
    tags = list(MARK.finditer(reply))
    own = [tag for tag in tags if not _is_quoted(reply, tag, contexts)]
    # What opens at the very beginning is reasoning, and the whole reply no answer.
    opened = any(tag.start() == 0 and OPENING.match(tag[0]) for tag in own)
    ends = [tag.end() for tag in own if not OPENING.match(tag[0])]
    if opened and not ends:
        ends = [tag.end() for tag in tags if not OPENING.match(tag[0])]
        if not ends:
            return [""]
    starts = ends[:_MOST_TAGS] + ends[-1:] if opened else [0, *ends[:_MOST_TAGS], *ends[-1:]]
    return [_FINAL_MARKS.sub("", reply[start:]).strip() for start in dict.fromkeys(starts)]


# Each possible answer is read, and a reply that quotes more tags quotes them over and over.
_MOST_TAGS = 6
_FINAL_MARKS = re.compile(r"(?:\s*<\|\w+\|>)+\s*\Z")
_WORDS_BESIDE = 2


def _is_quoted(reply: str, tag: re.Match[str], texts: Shown) -> bool:
    """Tell whether a tag stands in a text together with the words before or behind it."""
    before = re.findall(r"\S+", reply[max(0, tag.start() - 80) : tag.start()])[-_WORDS_BESIDE:]
    behind = re.findall(r"\S+", reply[tag.end() : tag.end() + 80])[:_WORDS_BESIDE]
    sides = ([*before, tag[0]] if before else [], [tag[0], *behind] if behind else [])
    return any(side and texts.place_of(" ".join(side)) for side in sides)


@lru_cache(maxsize=256)
def _has_marks(text: str) -> bool:
    return has_marks(text) or has_marks(_unescaped(text))


def _unescaped(text: str) -> str:
    """Return a text as a model may repeat it: letters as they look, ``&lt;`` as ``<``."""
    return latin(html.unescape(text))


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
    own = [each for each in objects if not _stands_in(each.entries, shown)]
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
    return _gives_reasons(entries) and _stands_in(entries, shown)


def opened(reply: str, shown: Shown) -> str:
    """Return a reply in plain characters without what certainly is not the agent's own, for a reader of statements.

    Raises:
        ReplyError: it is too long.
    """
    text = bounded(reply)
    if not shown:
        return plain(text)
    text = plain(possible_answers(text, shown)[0])
    repeats = [
        each
        for each in (_objects(text) if "{" in text else ())
        if _gives_reasons(each.entries) and _stands_in(each.entries, shown)
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


def _stands_in(entries: list[Field], shown: Shown) -> bool:
    """Tell whether each field stands in one text under judgement, in whatever order and spelling."""
    return any(_holds_all(Shown((text,)), entries) for text in shown.judged)


def _holds_all(text: Shown, entries: list[Field]) -> bool:
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
