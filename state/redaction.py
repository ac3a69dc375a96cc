"""Remove keys and control characters from text that is printed, logged, stored or raised.

Every error of jurygraph passes through here when it is made (``errors.py``), and so do logs,
traces, manifests and results. Replies and judged texts are data and stay unchanged.
"""

from __future__ import annotations

import os
import re
import shlex
from base64 import b64encode
from collections.abc import Iterator, Mapping
from functools import lru_cache
from string import ascii_letters, digits
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel, SecretStr

HIDDEN = "***"

# Matches the name of a parameter, header or field that is a secret.
_NAME = r"""
    (?:
        (?:api|access|secret|private|subscription)[-_]?key
      | (?:access|auth|refresh|security|session|id)[-_]?token
      | secret
      | passw(?:or)?d
      | authorization
      | credentials?
      | cookie
    )
"""
# Between name and value in headers and URLs, and in quotes of JSON (also inside a string) and
# Python.
_IS = r"""["'\\]* \s* (?:=>|[:=]) \s*"""
# The beginning of a string in Python or JSON, also inside another string.
_QUOTE = r"""b? \\* ["']"""
_WORD = r"""[^\s"'\\&,;<>{}()\[\]]+"""
_QUOTED = r"""[^"'\\]+"""
# The text that may come before the key in a header.
_SCHEME = r"""
    (?:
        (?:
            bearer
          | basic
          | digest
          | token
          | apikey
          | negotiate
          | aws4-hmac-sha256
        )
        \s+
    )?
"""

_ANY_CASE = re.VERBOSE | re.IGNORECASE

# In each pattern the group ``name`` stays and the rest is hidden.
_SHAPES = (
    # postgresql://me:secret@host; there is none in postgresql://me@host
    re.compile(r"""(?P<name> :// [^/\s@:"']* : ) [^/\s@"']+ (?=@)""", re.VERBOSE),
    # https://secret@host
    re.compile(r"""(?P<name> \b https?:// ) [^/\s@:"']+ (?=@)""", _ANY_CASE),
    # Cookie: session=abc; other=def
    re.compile(rf"""(?P<name> \b cookie {_IS} ) [^"'\r\n]+""", _ANY_CASE),
    # {"Authorization": "Bearer eyJhbGci"}, {"x-api-key": "abc"}
    re.compile(rf"""(?P<name> {_NAME} {_IS} {_QUOTE} {_SCHEME} ) {_QUOTED}""", _ANY_CASE),
    # Authorization: Bearer eyJhbGci, also with an unknown scheme
    re.compile(
        rf"""(?P<name> authorization {_IS} {_SCHEME} ) {_WORD} (?: [ ]+ {_WORD} )?""", _ANY_CASE
    ),
    # x-api-key: abc, ?api_key=abc
    re.compile(rf"""(?P<name> {_NAME} {_IS} {_SCHEME} ) {_WORD}""", _ANY_CASE),
    # (b'x-goog-api-key', b'abc')
    re.compile(
        rf"""(?P<name> {_NAME} ['"],\s*b?['"] {_SCHEME} ) {_QUOTED} (?=['"][)\]])""", _ANY_CASE
    ),
    # https://host/v1beta/models?key=abc
    re.compile(rf"""(?P<name> [?&;] (?:key|token|auth|sig|code) = ) {_WORD}""", _ANY_CASE),
    # Bearer eyJhbGci
    re.compile(r"""(?<=\bbearer[ ]) [\w.~+/=-]+""", _ANY_CASE),
)
_OTHER_KEYS = re.compile(
    r"""
      \b AIza [\w-]{10,}                    # Google
    | \b hf [-_] \w{16,}                    # Hugging Face
    | \b r8 [-_] \w{16,}                    # Replicate
    | \b (?:ghp|gho|ghs) [-_] \w{16,}       # GitHub: personal, OAuth and server tokens
    | \b github_pat [-_] \w{16,}            # GitHub: fine-grained tokens
    | \b glpat [-_] \w{16,}                 # GitLab
    | \b A[KS]IA [A-Z0-9]{12,}              # AWS
    | \b eyJ [\w-]{8,} \. [\w-]{8,} (?: \. [\w-]* )?  # a JSON web token
    """,
    re.VERBOSE,
)
_PREFIXES = (
    "sk",  # OpenAI, Anthropic, DeepSeek and many others
    "pk",  # Langfuse: public keys
    "rk",  # Stripe: restricted keys
    "lsv2",  # LangSmith
    "csk",  # Cerebras
    "fw",  # Fireworks
    "gsk",  # Groq
    "nvapi",  # NVIDIA
    "pplx",  # Perplexity
    "tgp",  # Together
    "xai",  # xAI
)
"""The beginnings of keys before ``-`` or ``_``. They are here, and not in the records of the
providers, because errors may show keys before any record is imported."""
_ANY_PREFIX = "|".join(_PREFIXES)
# Keys without digits are long: ``runs/sk-evaluation`` is a folder.
_KEY = re.compile(
    rf"\b (?:{_ANY_PREFIX}) [-_] (?= [\w-]*\d | [\w-]{{20}} ) [\w-]{{8,}}", re.VERBOSE
)
# Matches wherever any of the patterns can match.
_HINT = re.compile(
    rf"""
        [:=]       # after a name, in a URL
      | ['"],      # in a pair
      | bearer[ ]
      | AIza | eyJ | A[KS]IA
      | (?:{_ANY_PREFIX} | hf | r8 | ghp | gho | ghs | glpat | github_pat) [-_]
    """,
    _ANY_CASE,
)

# OPENAI_API_KEY, HF_TOKEN, AWS_CREDENTIALS, PGPASSWORD
_SECRET_VARIABLE = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)$", re.IGNORECASE)
_SECRET_PARAMETER = re.compile(
    rf"""
      {_NAME}
    | ^ (?:x[-_])? (?:key|token|auth) $
    """,
    _ANY_CASE,
)
# Shorter values occur in ordinary words; hiding them would make text unreadable.
_SHORTEST_SECRET = 8
# Parts of a key are hidden from this length on.
_PART = 12
_PATH = re.compile(r"[~.]{0,2}/|[A-Za-z]:\\")
_ENCODED = frozenset(f"{ascii_letters}{digits}+/-_=")
_REMEMBERED: set[str] = set()
# Parameters of clients may contain objects that refer to each other.
_DEEPEST = 6


def redact(text: str) -> str:
    """Return a text without keys and with control characters escaped (see ``spelled_out``).

    It hides the values of environment variables and of model parameters with names of secrets, keys
    in URLs and headers, and all text in the format of a provider's key.

    >>> redact("no such key: sk-abcdefgh12345678")
    'no such key: ***'
    >>> redact('{"Authorization": "Bearer abc"} at http://me:pw@host/v1?api_key=def&n=1')
    '{"Authorization": "Bearer ***"} at http://me:***@host/v1?api_key=***&n=1'
    """
    named = {os.environ.get(name, "") for name in list(os.environ) if _is_secret_variable(name)}
    known = frozenset(value for value in named | _REMEMBERED if len(value) >= _SHORTEST_SECRET)
    text = _without_known(text, known)
    # Most messages quote nothing, and errors are made often, so one search excludes most texts.
    is_suspect = _HINT.search(text)
    for shape in (*_SHAPES, _KEY, _OTHER_KEYS) if is_suspect else ():
        text = shape.sub(lambda match: f"{match.groupdict().get('name') or ''}{HIDDEN}", text)
    return spelled_out(text)


def spelled_out(text: str) -> str:
    """Escape control characters, such as terminal escapes and changes of direction.

    Line breaks and tabs stay.

    >>> print(spelled_out("fine\\x1b[31mERROR"))
    fine\\x1b[31mERROR
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in "\n\t" else repr(char)[1:-1] for char in text
    )


def one_line(text: str) -> str:
    """Redact a text and escape its line breaks too.

    >>> print(one_line("fine\\nERROR"))
    fine\\nERROR
    """
    return redact(text).replace("\n", "\\n").replace("\t", "\\t")


def shell_line(*words: object) -> str:
    """Return a command in printable characters that can be pasted into a shell.

    A word with control characters is written as ``$'...'``, which bash and zsh parse.

    >>> print(shell_line("show", "runs/my run"))
    show 'runs/my run'
    >>> print(shell_line("show", "i0 \\x1b[2J"))
    show $'i0 \\x1b[2J'
    """
    return " ".join(_shell_word(str(word)) for word in words)


def _shell_word(word: str) -> str:
    if word.isprintable():
        return shlex.quote(word)
    quoted = word.replace("\\", "\\\\").replace("'", "\\'")
    return f"$'{''.join(char if char.isprintable() else _shell_bytes(char) for char in quoted)}'"


def _shell_bytes(char: str) -> str:
    # Bytes mean the same to every shell, whatever its locale.
    return "".join(f"\\x{byte:02x}" for byte in char.encode(errors="surrogateescape"))


def redact_all(value: Any) -> Any:
    """Redact all text in plain data; hide every value under the name of a secret.

    >>> redact_all({"model": "m?base_url=http://me:pw@host", "api_key": "abc", "n": 2})
    {'model': 'm?base_url=http://me:***@host', 'api_key': '***', 'n': 2}
    """
    if isinstance(value, Mapping):
        hidden = {
            name for name, inner in value.items() if inner is not None and names_a_secret(name)
        }
        return {
            name: HIDDEN if name in hidden else redact_all(inner) for name, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [redact_all(inner) for inner in value]
    return redact(value) if isinstance(value, str) else value


def remember_secrets(parameters: Any) -> None:
    """Hide the secrets among these parameters from now on.

    Secrets are ``SecretStr`` values, and values under the name of a secret.
    """
    _REMEMBERED.update(value for value in _secrets(parameters) if len(value) >= _SHORTEST_SECRET)


def _secrets(value: Any, is_named: bool = False, depth: int = 0) -> Iterator[str]:
    if depth > _DEEPEST:
        return
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, str):
        # The value of a header is ``Bearer abc``; only ``abc`` is secret.
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
    """Return whether a parameter of this name is a secret, such as ``api_key``."""
    return isinstance(name, str) and bool(_SECRET_PARAMETER.search(name))


@lru_cache(maxsize=4)
def _forms(known: frozenset[str]) -> tuple[tuple[str, ...], Mapping[str, bool]]:
    """Return the values to hide as a whole, and parts of keys with whether they are encoded."""
    wholes: list[str] = []
    parts: dict[str, bool] = {}
    for value in known:
        for form, is_encoded in _written(value):
            # A folder is not a secret, even if it contains a file with credentials.
            if len(form) < _PART or _PATH.match(value):
                wholes.append(form)
            else:
                parts.update(
                    (form[at : at + _PART], is_encoded) for at in range(len(form) - _PART + 1)
                )
    # Longest first, because one key may begin with another.
    return tuple(sorted(wholes, key=len, reverse=True)), parts


def _written(value: str) -> Iterator[tuple[str, bool]]:
    """Yield a key in its encodings: as is, URL-quoted, hex, and base64.

    The base64 forms also match after a text of any length (``user:key``).
    """
    key = value.encode(errors="surrogatepass")
    yield from (
        (value, False),
        (quote(key, safe=""), False),
        (key.hex(), True),
        (key.hex().upper(), True),
    )
    for before in range(3):
        # Without the characters that include bits of the text before and after.
        inner = b64encode(bytes(before) + key).decode()[
            -(-before * 8 // 6) : (before + len(key)) * 8 // 6
        ]
        yield from ((inner, True), (inner.replace("+", "-").replace("/", "_"), True))


def _without_known(text: str, known: frozenset[str]) -> str:
    wholes, parts = _forms(known)
    for whole in wholes:
        text = text.replace(whole, HIDDEN)
    shown = list[str]()
    end = 0
    for start in [at for at in range(len(text) - _PART + 1) if text[at : at + _PART] in parts]:
        if start < end:
            continue
        before = end
        end = start + _PART
        while text[end - _PART + 1 : end + 1] in parts:
            end += 1
        if parts[text[start : start + _PART]]:
            # Together with its encoded context: the bits at both ends, and a user name.
            while start > before and text[start - 1] in _ENCODED:
                start -= 1  # noqa: PLW2901
            while end < len(text) and text[end] in _ENCODED:
                end += 1
        shown += [text[before:start], HIDDEN]
    return "".join([*shown, text[end:]])


@lru_cache
def _is_secret_variable(name: str) -> bool:
    return bool(_SECRET_VARIABLE.search(name))
