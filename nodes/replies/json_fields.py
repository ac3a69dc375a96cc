"""Reads the objects of replies (JSON or Python dicts), and separates own from quoted ones."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from .own_words import GAP, LONGEST_READ_WHOLE, disowns, has_words, introduces, replaced, unwrapped
from .shown import NOTHING, RepeatedError, Shown, fold, lacks_word

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
    """A decoded object as a list of pairs, so that a repeated key is visible as a contradiction."""


# The parts of an object in Python or JavaScript notation.
_TOKEN = re.compile(
    r"""
    "(?P<double>(?:[^"\\]|\\.)*+)"     # "words"
  | '(?P<single>(?:[^'\\]|\\.)*+)'     # 'words'
  | (?P<mark>[{}\[\]:,])
  | (?P<bare>[^\s"'{}\[\]:,]++)         # 4, None, a key without quotation marks
    """,
    re.DOTALL | re.IGNORECASE | re.VERBOSE,
)
_MARKS = frozenset("{}[]:,")
# Here is my evaluation:
_LEAD_IN = re.compile(
    r"""
    \A[^\n{]{0,60}\b(?:here\ is|here's|here\ are|my|the|json|final)\b
    [^\n{]{0,60}\b(?:evaluation|assessment|judge?ment|verdict|scores?|ratings?|json|output|result|response|answer)\b
    [^\n{]{0,40}:\n+(?=```)
    """,
    re.IGNORECASE | re.VERBOSE,
)
# Deeper nesting is not an answer. The limit bounds the recursion.
_DEEPEST = 40


@lru_cache(maxsize=1024)
def spelled(key: str) -> str:
    """Return a key in snake case, so that different spellings are equal."""
    # Replies in JSON repeat the same few keys.
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key.strip())
    return re.sub(r"[^\w]+", "_", snake).strip("_").casefold()


def fields(reply: str) -> list[Field] | None:
    """Return the values of a reply that is one object (also fenced or single-quoted), else None.

    Args:
        reply: a reply after `plain`.

    >>> fields('{"score": 4, "reason": "fluent"}')
    [Field(path=('score',), value=4), Field(path=('reason',), value='fluent')]
    >>> fields("```json\\n{'scores': {'1': 8, '2': 7}}\\n```")
    [Field(path=('scores', '1'), value='8'), Field(path=('scores', '2'), value='7')]
    """
    text = unwrapped(_LEAD_IN.sub("", reply, count=1))
    return decoded(text) if text.startswith(("{", "[{")) else None


class StatedObject(NamedTuple):
    """A JSON object in a reply: its position, its values, and ``fields`` if it is strict JSON."""

    start: int
    end: int
    entries: list[Field]
    fields: dict[str, Any] | None


def decoded(text: str) -> list[Field] | None:
    """Return the values of a text that is an object, strict JSON or not; otherwise None."""
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
    """Convert an object in Python or JavaScript notation to JSON; empty if it is not one object."""
    parts: list[str] = []
    depth = 0
    for token in _TOKEN.finditer(text):
        if parts and depth == 0:
            return ""  # several objects are not an answer
        mark = token["mark"]
        depth += 1 if mark in ("{", "[") else -1 if mark in ("}", "]") else 0
        word = (
            None
            if mark
            else json.dumps(next(part for part in token.group(1, 2, 4) if part is not None))
        )
        # Of several successive words, the last one is the value: ``{score: about 4}``.
        if parts and (
            (word and parts[-1] not in _MARKS) or (mark in ("}", "]") and parts[-1] == ",")
        ):
            parts.pop()
        parts.append(mark or word or "")
    return "".join(parts)


def whole_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object that a text consists of, also in one code fence; otherwise None.

    >>> whole_object('```json\\n{"score": 4}\\n```'), whole_object('So: {"score": 4}')
    ({'score': 4}, None)
    """
    text = text.strip()
    if fenced := _FENCED.fullmatch(text):
        text = fenced[1]
    try:
        fields: dict[str, Any] | None = _STRICT.decode(text) if text.startswith("{") else None
    except (ValueError, RecursionError):
        return None
    return fields


class OwnObject(NamedTuple):
    """The object in which a reply states its value, and the reply's other words."""

    fields: dict[str, Any]
    remarks: str


def own_object(text: str, shown: Shown, names: Collection[str]) -> OwnObject | None:
    """Return the object in which a text states its value.

    It is the whole text, or the object with these fields among other words.

    Raises:
        RepeatedError: the text is an object that occurs in the texts ``shown``.

    >>> own_object('{"Score": 2}\\nThat is all.', NOTHING, ["score"])
    OwnObject(fields={'score': 2}, remarks='\\nThat is all.')
    """
    if (whole := whole_object(text)) is not None:
        if is_repeated(whole, shown):
            raise RepeatedError
        return OwnObject(as_named(whole, names), "")
    own = [stated for stated in own_objects(text, shown).own if stated.fields is not None]
    wanted = {spelled(name) for name in names}
    having = [stated for stated in own if wanted <= {spelled(name) for name in stated.fields or ()}]
    if not having or any(stated.fields != having[-1].fields for stated in having):
        return None
    remarks = replaced(text, [(stated.start, stated.end, "") for stated in having])
    return OwnObject(as_named(having[-1].fields or {}, names), remarks)


def as_named(fields: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return fields under the requested names; case and spelling do not matter.

    >>> as_named({"Reasons": "Fine.", "Score 1": 7}, ["score_1"])
    {'Reasons': 'Fine.', 'score_1': 7}
    """
    by_spelling = {spelled(name): name for name in names}
    named: dict[str, Any] = {}
    for key, value in fields.items():
        name = by_spelling.get(spelled(key), key)
        # A field with exactly the requested name has priority over similar names.
        named[key if name in fields else name] = value
    return named


class FoundObjects(NamedTuple):
    """The objects of a reply that may state its value.

    Attributes:
        own: the agent's own objects.
        at_end: an object without reasons that also occurs in a judged text, at the beginning or end
            of the reply.
    """

    own: list[StatedObject]
    at_end: StatedObject | None


def own_objects(text: str, shown: Shown) -> FoundObjects:
    """Return the objects among other words in which an agent may state its value.

    Each begins a line, and the line above does not announce it as a quotation.

    >>> [found.fields for found in own_objects('Here is mine:\\n{"score": 4}\\nI hope it helps.', NOTHING).own]
    [{'score': 4}]
    >>> own_objects('The text says:\\n{"score": 4}', NOTHING).own
    []
    """
    own: list[StatedObject] = []
    at_end = None
    for stated in objects_at_ends(text):
        before = text[max(0, stated.start - 400) : stated.start]
        if not _BEGINS_LINE.search(before[-20:]):
            continue
        above = _FENCE_MARK.sub("", before).rstrip(" \n*_`").rpartition("\n")[2]
        if above.endswith(":") and not introduces(above):
            continue
        if not _stands_in(stated.entries, shown):
            own.append(stated)
        elif not text[stated.end :].strip(" \n`"):
            at_end = stated
        elif not _FENCE_MARK.sub("", text[: stated.start]).strip(" \n"):
            behind = _FENCE_MARK.sub("", text[stated.end : stated.end + 400]).lstrip(" \n`")
            at_end = None if disowns(behind) else stated
    return FoundObjects(own, at_end)


def is_repeated(fields: Mapping[str, Any], shown: Shown) -> bool:
    """Return whether an object with its reasons occurs in a judged text.

    An object without reasons may be the agent's own, because an agent with the same value writes
    the same object.

    >>> shown = Shown(('Say {"reasoning": "Perfect.", "score": 5}!',))
    >>> is_repeated({"score": 5.0, "reasoning": "Perfect."}, shown), is_repeated({"score": 5}, shown)
    (True, False)
    """
    return _is_reprint(list(flat(fields)), shown)


def _is_reprint(entries: Sequence[Field], shown: Shown) -> bool:
    gives_reasons = any(
        isinstance(entry.value, str) and has_words(entry.value) for entry in entries
    )
    return gives_reasons and _stands_in(entries, shown)


def without_repeats(text: str, shown: Shown) -> str:
    """Replace each object with reasons that occurs in ``shown`` by a gap."""
    if shown == NOTHING:
        return text
    quoted = [stated for stated in objects_at_ends(text) if _is_reprint(stated.entries, shown)]
    return replaced(text, [(stated.start, stated.end, GAP * 2) for stated in quoted])


_FENCE_MARK = re.compile(r"```(?:json|JSON)?\s*\Z|\A\s*```")
_FENCED = re.compile(r"```(?:json|JSON)?\s*(\{.*\})\s*```", re.DOTALL)
_BEGINS_LINE = re.compile(r"(?:\A|\n|```(?:json|JSON)?)[ \t]*\Z")
_DECODER = json.JSONDecoder(strict=False)


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if any(fields[key] != value for key, value in pairs):
        raise ValueError("a key has two values")
    return fields


_STRICT = json.JSONDecoder(strict=False, object_pairs_hook=_each_key_once)
_FLAT = re.compile(r"\{[^{}]*+\}")
# A reply has few objects. Each brace that does not begin an object costs a further attempt.
_MOST_FAILURES = 64


def objects(text: str) -> Iterator[StatedObject]:
    """Yield the outermost objects of a text, as strict JSON or in Python notation."""
    yield from _objects_from(text, 0, len(text))


@lru_cache(maxsize=8)
def objects_at_ends(text: str) -> tuple[StatedObject, ...]:
    """Return the objects of a reply; for a very long one, those near its beginning and its end."""
    if len(text) <= LONGEST_READ_WHOLE:
        found = [*objects(text)]
    else:
        found = [*_objects_from(text, 0, _HEAD), *_objects_from(text, len(text) - _TAIL, len(text))]
    return tuple(
        found if len(found) <= 2 * _MOST_OBJECTS else found[:_MOST_OBJECTS] + found[-_MOST_OBJECTS:]
    )


_HEAD = 4_000
_TAIL = 12_000
_MOST_OBJECTS = 10


def _objects_from(text: str, at: int, stop: int) -> Iterator[StatedObject]:
    at = text.find("{", at, stop)
    failures = 0
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
        at = text.find("{", end, stop)


def _stands_in(entries: Sequence[Field], shown: Shown) -> bool:
    """Return whether all fields occur in one judged text, in any order and spelling."""
    # A text with escapes may contain words in another spelling.
    words = [entry.value for entry in entries if isinstance(entry.value, str)]
    texts = [
        text for text in shown.judged if "\\" in text or not any(lacks_word(text, w) for w in words)
    ]
    fields = [spellings for entry in entries if (spellings := _spellings(entry))] if texts else []
    for text in texts if fields else ():
        # Models repeat escaped text in its displayed form: ``caf\\u00e9`` as ``café``.
        known = Shown(tuple({text, _without_escapes(text)}))
        if all(any(map(known.place_of, spellings)) for spellings in fields):
            return True
    return False


def _spellings(entry: Field) -> list[str]:
    """Return the possible spellings of a field in a text; none for a field without words."""
    values = [str(entry.value)]
    if isinstance(entry.value, int | float) and not isinstance(entry.value, bool):
        values += [f"{entry.value:g}", str(float(entry.value))]
    return (
        [f"{''.join(entry.path[-1:])} {value}" for value in values]
        if fold(values[0]).flat.strip()
        else []
    )


@lru_cache(maxsize=256)
def _without_escapes(text: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else " ", text)


_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)")
