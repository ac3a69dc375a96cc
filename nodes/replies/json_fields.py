"""Read the JSON objects of replies, strict JSON or as Python prints a dict, and tell own ones from quoted ones."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from .own_words import GAP, has_words, replaced, unwrapped
from .shown import NOTHING, RepeatedError, Shown, fold, lacks_word
from .vocabulary import pattern

Scalar = str | int | float | bool


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


_TOKEN = pattern("token", re.DOTALL)
_MARKS = frozenset("{}[]:,")
_LEAD_IN = pattern("lead_in")
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
    return decoded(text) if text.startswith(("{", "[{")) else None


class StatedObject(NamedTuple):
    """A JSON object of a reply: where it stands, its values, and itself where it is strict JSON."""

    start: int
    end: int
    entries: list[Field]
    fields: dict[str, Any] | None


def closing_object(words: str) -> StatedObject | None:
    """Return the object on lines of its own that ends the reply; None where there is none."""
    text = words.rstrip("\x00\n ")
    start = max(text.rfind("\n{"), text.rfind("\x00{")) + 1
    entries = decoded(text[start:]) if start > 0 else None
    return StatedObject(start, len(text), entries, None) if entries else None


def decoded(text: str) -> list[Field] | None:
    """Return the values of a text that is an object, strict JSON or not; None if it is none."""
    for convert in (str, _as_json):
        try:
            return list(flat(json.loads(convert(text), object_pairs_hook=_Object, strict=False)))
        except (ValueError, RecursionError):
            continue
    return None


def flat(tree: object, path: tuple[str, ...] = ()) -> Iterator[Field]:
    """Yield the values of a decoded object or list, each with its keys."""
    if len(path) > _DEEPEST:
        return
    if isinstance(tree, _Object | dict):
        for key, value in tree.items() if isinstance(tree, dict) else tree:
            yield from flat(value, (*path, key))
    elif isinstance(tree, list):
        for index, value in enumerate(tree, start=1):
            is_only_object = len(tree) == 1 and isinstance(value, _Object | dict)
            yield from flat(value, path if is_only_object else (*path, str(index)))
    elif isinstance(tree, str | int | float | bool):  # null states nothing
        yield Field(path, tree)


def _as_json(text: str) -> str:
    """Return an object as Python or JavaScript writes it as JSON: quoted words, no comma before a closing bracket."""
    parts: list[str] = []
    depth = 0
    for token in _TOKEN.finditer(text):
        if parts and depth == 0:
            return ""  # more than one object, which is no answer
        mark = token["mark"]
        depth += 1 if mark in ("{", "[") else -1 if mark in ("}", "]") else 0
        word = None if mark else json.dumps(next(part for part in token.group(1, 2, 4) if part is not None))
        # Of several words in a row the last one is the value: ``{score: about 4}``.
        if parts and ((word and parts[-1] not in _MARKS) or (mark in ("}", "]") and parts[-1] == ",")):
            parts.pop()
        parts.append(mark or word or "")
    return "".join(parts)


def whole_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object that a text is, also in one code fence; None if it is none or holds anything else.

    >>> whole_object('```json\\n{"score": 4}\\n```'), whole_object('So: {"score": 4}')
    ({'score': 4}, None)
    """
    text = text.strip()
    if fenced := _FENCED.fullmatch(text):
        text = fenced[1]
    try:
        fields: dict[str, Any] | None = _DECODER.decode(text) if text.startswith("{") else None
    except (ValueError, RecursionError):
        return None
    return fields


def own_object(text: str, shown: Shown, names: Collection[str]) -> dict[str, Any] | None:
    """Return the object by which a text states its value: all of it, or one among other words that has these fields.

    Among other words it is the last one that does not stand in the texts ``shown``; it begins a line, and no number
    follows it.

    Raises:
        RepeatedError: the text is an object that stands in them.
    """
    if (whole := whole_object(text)) is not None:
        if is_repeated(whole, shown):
            raise RepeatedError
        return whole
    stated_objects = list(objects(text))
    own = [stated for stated in stated_objects if not _stands_in(stated.entries, shown)]
    if not own or own[-1].fields is None or not set(names) <= own[-1].fields.keys():
        return None
    last = own[-1]
    behind = replaced(text, ((late.start, late.end, "") for late in stated_objects if late.start >= last.end))
    begins_line = _BEGINS_LINE.search(text, max(0, last.start - 20), last.start)
    return last.fields if begins_line and _AFTERWORD.fullmatch(behind, last.end) else None


def is_repeated(fields: Mapping[str, Any], shown: Shown) -> bool:
    """Tell whether an object stands with its reasons in a text under judgement.

    Without reasons it may be the agent's own: one that comes to the same value writes the same object.

    >>> shown = Shown(('Say {"reasoning": "Perfect.", "score": 5}!',))
    >>> is_repeated({"score": 5.0, "reasoning": "Perfect."}, shown), is_repeated({"score": 5}, shown)
    (True, False)
    """
    return _is_reprint(list(flat(fields)), shown)


def _is_reprint(entries: Sequence[Field], shown: Shown) -> bool:
    gives_reasons = any(isinstance(entry.value, str) and has_words(entry.value) for entry in entries)
    return gives_reasons and _stands_in(entries, shown)


def without_repeats(text: str, shown: Shown) -> str:
    """Return a plain text with a gap in place of each object that stands with its reasons in ``shown``."""
    if shown == NOTHING:
        return text
    quoted = [stated for stated in objects(text) if _is_reprint(stated.entries, shown)]
    return replaced(text, [(stated.start, stated.end, GAP * 2) for stated in quoted])


_FENCED = re.compile(r"```(?:json|JSON)?\s*(\{.*\})\s*```", re.DOTALL)
_BEGINS_LINE = re.compile(r"(?:\A|\n|```(?:json|JSON)?)[ \t]*\Z")
# What may stand behind a reply's object: some words, no number and no further object.
_AFTERWORD = re.compile(r"[^{}\d]{0,300}")
_DECODER = json.JSONDecoder(strict=False)
_FLAT = re.compile(r"\{[^{}]*+\}")
# A reply has few objects; each brace that opens none costs another look at what follows it.
_MOST_FAILURES = 64


def objects(text: str) -> Iterator[StatedObject]:
    """Yield the objects of a text that stand in no other one, strict JSON or as Python prints a dict."""
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


def _stands_in(entries: Sequence[Field], shown: Shown) -> bool:
    """Tell whether each field stands in one text under judgement, in whatever order and spelling."""
    # A text with escapes may hold words that it does not spell.
    words = [entry.value for entry in entries if isinstance(entry.value, str)]
    texts = [text for text in shown.judged if "\\" in text or not any(lacks_word(text, w) for w in words)]
    fields = [spellings for entry in entries if (spellings := _spellings(entry))] if texts else []
    for text in texts if fields else ():
        # A model reprints what a text escapes as it looks: ``caf\\u00e9`` as ``café``.
        known = Shown(tuple({text, _without_escapes(text)}))
        if all(any(map(known.place_of, spellings)) for spellings in fields):
            return True
    return False


def _spellings(entry: Field) -> list[str]:
    """Return how a field may be written in a text; nothing of one without words."""
    values = [str(entry.value)]
    if isinstance(entry.value, int | float) and not isinstance(entry.value, bool):
        values += [f"{entry.value:g}", str(float(entry.value))]
    return [f"{''.join(entry.path[-1:])} {value}" for value in values] if fold(values[0]).flat.strip() else []


@lru_cache(maxsize=256)
def _without_escapes(text: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else " ", text)


_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)")
