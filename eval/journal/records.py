"""Define what a journal holds, finished calls and batches, and how it stores a reply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from operator import attrgetter
from typing import Any

import orjson

from ...nodes.models.call import Reply
from ...state.errors import JurygraphError
from ...state.usage import USAGE_FIELDS, Usage


@dataclass(frozen=True, slots=True)
class Entry:
    """Describes a finished call: its model, its reply and what it took.

    Attributes:
        model: the name of the model.
        reply: the whole reply, as JSON.
        usage: what it took; its ``calls`` are the requests that the provider answered.
    """

    model: str
    reply: bytes
    usage: Usage


@dataclass(frozen=True, slots=True)
class Batch:
    """Describes a batch of calls at a provider, which may outlive the process that sent it.

    Attributes:
        id: the name that the provider gave it.
        run: the run that sent it.
        settled: whether all its replies are in the journal or were given up.
        created: seconds since 1970, by the database's clock.
        about: what its sender needs to continue with it, as plain JSON.
    """

    id: str
    run: str
    settled: bool
    created: int
    about: Mapping[str, Any]


class JournalError(JurygraphError, RuntimeError):
    """Raised where a journal cannot be read or written any more: disk full, database gone, locked or damaged.

    What was written before is safe. No call should be made after it, since its reply would be lost.
    """


def to_bytes(reply: Reply) -> bytes:
    """Return a whole reply as JSON; fields with their default value are left out."""
    return orjson.dumps(_plain(reply))


def from_bytes(kept: bytes) -> Reply:
    """Read a reply from the JSON of :func:`to_bytes`; it is equal to the one that was written."""
    return _reply(orjson.loads(kept))


USAGE_NAMES = ("requests", *USAGE_FIELDS[1:])
"""The names of the fields of a usage in a journal's columns and replies, where its calls are ``requests``."""

usage_values = attrgetter(*USAGE_FIELDS)
"""The values of a usage in the order of :data:`USAGE_NAMES`."""

_DEFAULTS = {
    "fields": None,
    "cut_off": False,
    "refused": False,
    "requests": 1,
    "cached_input_tokens": 0,
    "reasoning_tokens": 0,
    **{field.name: field.default for field in fields(Reply) if field.default is not MISSING},
}


def _plain(reply: Reply) -> dict[str, Any]:
    # Journals written before replies had a usage of their own hold its fields beside the others, and so do these.
    held = {**vars(reply), **dict(zip(USAGE_NAMES, usage_values(reply.usage), strict=True))}
    del held["usage"]
    plain = {name: value for name, value in held.items() if _DEFAULTS.get(name, MISSING) != value}
    if reply.tokens is not None:
        plain["tokens"] = [_token(token) for token in reply.tokens]
    if reply.others:
        plain["others"] = [_plain(other) for other in reply.others]
    return plain


def _reply(plain: dict[str, Any]) -> Reply:
    given = {**_DEFAULTS, **plain}
    given["usage"] = Usage(*map(given.pop, USAGE_NAMES))
    given["dropped"] = tuple(given["dropped"])
    given["others"] = tuple(_reply(other) for other in given["others"])
    if given["tokens"] is not None:
        given["tokens"] = [_whole_token(token) for token in given["tokens"]]
    return Reply(**given)


def _token(token: Mapping[str, Any]) -> tuple[str, float, list[tuple[str, float]]]:
    """Return a token with its log-probability and alternatives, without what can be told from the rest."""
    # Providers send each alternative as text and as a list of bytes, which would be most of a stored reply.
    likely: Sequence[Mapping[str, Any]] = token.get("top_logprobs") or ()
    return token["token"], token["logprob"], [(one["token"], one["logprob"]) for one in likely]


def _whole_token(kept: Sequence[Any]) -> dict[str, Any]:
    token, logprob, likely = kept
    top = [{"token": one, "logprob": value} for one, value in likely]
    return {"token": token, "logprob": logprob, "top_logprobs": top}
