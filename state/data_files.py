"""Reads and checks the data files of this package; errors name the file and the line."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from .errors import DataError

T = TypeVar("T")


def _one_word(text: str) -> str:
    if not text or text != " ".join(text.split()):
        raise ValueError("must be a word, or words with single spaces between them")
    return text


def _no_doubles(words: list[str]) -> list[str]:
    if double := next((word for word in words if words.count(word) > 1), None):
        raise ValueError(f"must not have {double!r} twice")
    return words


Word = Annotated[str, AfterValidator(_one_word)]
"""A word, or several with single spaces between them."""

Words = Annotated[list[Word], Field(min_length=1), AfterValidator(_no_doubles)]
"""Different words."""

Place = tuple[str | int, ...]
"""The names and indices that lead to a value."""


def read_toml(path: Path, kind: type[T]) -> T:
    """Return the content of a TOML file of this package, checked against a type.

    Args:
        path: the file.
        kind: the type of its content. Keys that the type does not have are refused.

    Raises:
        DataError: a misspelt key or an impossible value; the message has the file and the line.

    >>> from pathlib import Path
    >>> read_toml(Path(__file__).with_name("aspects.toml"), dict[str, Any])["summeval/coherence"]["low"]
    1
    """
    text = path.read_text("utf-8")
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{path}: {error}") from error
    return check_data(path, content, kind, lambda place, value: line_in_toml(path, place, value))


_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
"""Pydantic's types of errors for an unknown key, in a model and in a dataclass."""


def check_data(
    path: Path, content: Any, kind: type[T], line_of: Callable[[Place, object], int]
) -> T:
    """Return the content of a data file if it fits a type.

    Args:
        path: the file, for messages.
        content: its content.
        kind: the type; keys that it does not have are refused.
        line_of: returns the line of a value in the file.

    Raises:
        DataError: it does not fit; the message has the file and the line of the first mistake.
    """
    try:
        return TypeAdapter[T](kind).validate_python(content, extra="forbid")
    except ValidationError as error:
        found = error.errors(include_url=False)
        missing = [str(one["loc"][-1]) for one in found if one["type"] == "missing"]
        # A misspelt key comes first: it is also the reason why another key is missing.
        first = min(found, key=lambda one: one["type"] not in _UNKNOWN)
        known = _known_part(content, first["loc"])
        line = line_of(known, first["input"])
        where = ".".join(map(str, known))
        problem = first["msg"]
        if first["type"] in _UNKNOWN:
            close = difflib.get_close_matches(str(known[-1]), missing, 1)
            problem = f"is an unknown key{f'; did you mean {close[0]}?' if close else ''}"
        elif first["type"] == "missing":
            problem = f"the key {first['loc'][-1]} is missing"
        raise DataError(f"{path}, line {line}: {where}: {problem}") from None


def _known_part(content: Any, place: Sequence[str | int]) -> Place:
    """Return the part of a place that exists in the content.

    Pydantic adds the types that it tried, and names that are missing.
    """
    known: list[str | int] = []
    for part in place:
        is_key = isinstance(content, Mapping) and part in content
        is_index = isinstance(content, list) and isinstance(part, int) and part < len(content)
        if is_key or is_index:
            content = content[part]
            known.append(part)
    return tuple(known)


def line_in_toml(path: Path, place: Place, value: object) -> int:
    """Return the line of a value in a TOML file.

    A text in a list has its own line, if it is on a line of its own.
    """
    text = path.read_text("utf-8")
    keys = dict(_toml_keys(text))
    depth = next((end for end in range(len(place), 0, -1) if place[:end] in keys), 0)
    line = keys.get(place[:depth], 1)
    if depth == len(place) or not isinstance(value, str):
        return line
    following = enumerate(text.splitlines()[line - 1 :], start=line)
    return next((number for number, words in following if value in words), line)


def _toml_keys(text: str) -> Iterator[tuple[Place, int]]:
    """Yield the place of each table and each key, with its line."""
    table: Place = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if re.match(r"\[[^\[]", line):
            table = _path_in(line)
            yield table, number
        # Lines inside of a list or a text are indented, or begin with a quotation mark.
        elif key := re.match(r"([\w-]+)(?:\s*=)", line):
            yield (*table, key[1]), number


def _path_in(heading: str) -> Place:
    """Return the path in the heading of a table.

    >>> _path_in('[a."b.c"]  # why')
    ('a', 'b.c')
    """
    path: list[str] = []
    inner = tomllib.loads(heading)
    while inner:
        [(name, inner)] = inner.items()
        path.append(name)
    return tuple(path)
