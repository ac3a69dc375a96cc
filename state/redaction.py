"""Take keys and control characters out of text that is printed, logged, stored or raised.

Every error of jurygraph passes through here when it is made (``errors.py``), and so do logs, traces, manifests and
results. What models and people have written, replies and judged texts, is data and is kept as it is.
"""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from functools import lru_cache
from string import ascii_letters, digits
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel, SecretStr

from .word_files import words_beside

HIDDEN = "***"

_FORMS: dict[str, Any] = words_beside(__file__)


def _filled(form: str) -> str:
    return re.sub(r"\{([a-z]+)\}", lambda part: str(_FORMS["parts"][part[1]]), form)


_SHAPES = [re.compile(_filled(form)) for form in _FORMS["shapes"].values()]
# OPENAI_API_KEY, HF_TOKEN, AWS_CREDENTIALS, PGPASSWORD
_SECRET_VARIABLE = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)$", re.IGNORECASE)
_SECRET_PARAMETER = re.compile(_filled("{names}|^(?:x[-_])?(?:key|token|auth)$"), re.IGNORECASE)
# Shorter values occur in ordinary words, which hiding them would make unreadable.
_SHORTEST_SECRET = 8
# Parts of a key are hidden from this length on.
_PART = 12
_PATH = re.compile(r"[~.]{0,2}/|[A-Za-z]:\\")
_ENCODED = frozenset(f"{ascii_letters}{digits}+/-_=")
_REMEMBERED: set[str] = set()
# Parameters of clients may hold objects that hold each other.
_DEEPEST = 6
# What every match of one of the shapes holds.
_HINT = re.compile(_FORMS["hint"])


def redact(text: str) -> str:
    """Return a text without keys, and with its control characters spelled out (see ``spelled_out``).

    Hidden are the values of environment variables and of parameters of models that are named like secrets, keys in
    URLs and headers, and whatever has the form of a provider's key.

    >>> redact("no such key: sk-abcdefgh12345678")
    'no such key: ***'
    >>> redact('{"Authorization": "Bearer abc"} at http://me:pw@host/v1?api_key=def&n=1')
    '{"Authorization": "Bearer ***"} at http://me:***@host/v1?api_key=***&n=1'
    """
    named = {os.environ.get(name, "") for name in list(os.environ) if _is_secret_variable(name)}
    known = frozenset(value for value in named | _REMEMBERED if len(value) >= _SHORTEST_SECRET)
    text = _without_known(text, known)
    # Most messages quote nothing, and errors are made often: one look tells whether any shape can match.
    for shape in _SHAPES if _HINT.search(text) else ():
        text = shape.sub(lambda match: f"{match.groupdict().get('name') or ''}{HIDDEN}", text)
    return spelled_out(text)


def spelled_out(text: str) -> str:
    """Spell out characters that do something rather than show something: terminal escapes, changes of direction.

    Ends of lines and tabs stay.

    >>> print(spelled_out("fine\\x1b[31mERROR"))
    fine\\x1b[31mERROR
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in "\n\t" else repr(char)[1:-1] for char in text)


def one_line(text: str) -> str:
    """Redact a text and spell out its ends of lines too.

    >>> print(one_line("fine\\nERROR"))
    fine\\nERROR
    """
    return redact(text).replace("\n", "\\n").replace("\t", "\\t")


def redact_all(value: Any) -> Any:
    """Redact all text in plain data; what stands under the name of a secret is hidden, whatever it is.

    >>> redact_all({"model": "m?base_url=http://me:pw@host", "api_key": "abc", "n": 2})
    {'model': 'm?base_url=http://me:***@host', 'api_key': '***', 'n': 2}
    """
    if isinstance(value, Mapping):
        hidden = {name for name, inner in value.items() if inner is not None and names_a_secret(name)}
        return {name: HIDDEN if name in hidden else redact_all(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [redact_all(inner) for inner in value]
    return redact(value) if isinstance(value, str) else value


def remember_secrets(parameters: Any) -> None:
    """Have the secrets among these parameters hidden from now on: ``SecretStr``, and what is named like a secret."""
    _REMEMBERED.update(value for value in _secrets(parameters) if len(value) >= _SHORTEST_SECRET)


def _secrets(value: Any, is_named: bool = False, depth: int = 0) -> Iterator[str]:
    if depth > _DEEPEST:
        return
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, str):
        # ``Bearer abc`` is the value of a header, and ``abc`` what must not be seen.
        yield from value.split()[-1:] if is_named else ()
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _secrets(inner, is_named or names_a_secret(name), depth + 1)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _secrets(inner, is_named, depth + 1)
    elif isinstance(value, BaseModel):
        yield from _secrets(vars(value), is_named, depth + 1)


def names_a_secret(name: object) -> bool:
    """Tell whether a parameter of this name holds a secret, such as ``api_key``."""
    return isinstance(name, str) and bool(_SECRET_PARAMETER.search(name))


@lru_cache(maxsize=4)
def _forms(known: frozenset[str]) -> tuple[tuple[str, ...], Mapping[str, bool]]:
    """Return what is hidden whole, and the parts of keys that are hidden, each with whether it is encoded."""
    wholes: list[str] = []
    parts: dict[str, bool] = {}
    for value in known:
        for form, is_encoded in _written(value):
            # A folder is no secret, though a file with credentials lies in it.
            if len(form) < _PART or _PATH.match(value):
                wholes.append(form)
            else:
                parts.update((form[at : at + _PART], is_encoded) for at in range(len(form) - _PART + 1))
    # The longest first, since one key may begin with another.
    return tuple(sorted(wholes, key=len, reverse=True)), parts


def _written(value: str) -> Iterator[tuple[str, bool]]:
    """Yield a key as it is, quoted in a URL, in hex, and in base64 behind a text of any length (``user:key``)."""
    key = value.encode(errors="surrogatepass")
    yield from ((value, False), (quote(key, safe=""), False), (key.hex(), True), (key.hex().upper(), True))
    for before in range(3):
        # Without the characters that hold bits of what stands before and after.
        inner = b64encode(bytes(before) + key).decode()[-(-before * 8 // 6) : (before + len(key)) * 8 // 6]
        yield from ((inner, True), (inner.replace("+", "-").replace("/", "_"), True))


def _without_known(text: str, known: frozenset[str]) -> str:
    wholes, parts = _forms(known)
    for whole in wholes:
        text = text.replace(whole, HIDDEN)
    shown, end = list[str](), 0
    for start in [at for at in range(len(text) - _PART + 1) if text[at : at + _PART] in parts]:
        if start < end:
            continue
        before, end = end, start + _PART
        while text[end - _PART + 1 : end + 1] in parts:
            end += 1
        if parts[text[start : start + _PART]]:
            # With what else was encoded: the bits at both ends, and the name of a user.
            while start > before and text[start - 1] in _ENCODED:
                start -= 1  # noqa: PLW2901
            while end < len(text) and text[end] in _ENCODED:
                end += 1
        shown += [text[before:start], HIDDEN]
    return "".join([*shown, text[end:]])


@lru_cache
def _is_secret_variable(name: str) -> bool:
    return bool(_SECRET_VARIABLE.search(name))
