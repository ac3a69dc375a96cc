"""Define what a journal holds, finished calls and batches, and how it stores a reply."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from operator import add, attrgetter, sub
from typing import Any, NamedTuple

import orjson
from langchain_core.messages import messages_from_dict, messages_to_dict

from ...nodes.models.call import Reply, UnreadResponseError
from ...nodes.models.responses import read_response
from ...state.errors import JurygraphError
from ...state.transcript import USAGE_FIELDS, Usage


class Entry(NamedTuple):
    """Describes a finished call: its model, its reply and what it took.

    Attributes:
        model: the name of the model.
        reply: the whole reply, as JSON.
        usage: what it took; its ``calls`` are the requests that the provider answered.
    """

    model: str
    reply: bytes
    usage: Usage


class Spent(NamedTuple):
    """Says what a run's calls took before it was opened again.

    Attributes:
        usage: all that is known; its cost is unknown if that of one call is.
        known_cost: US dollars of the calls whose cost is known.
        unpriced: how many calls there are whose cost is not known.
    """

    usage: Usage
    known_cost: float = 0.0
    unpriced: int = 0


class Batch(NamedTuple):
    """Describes a batch of calls at a provider, which may outlive the process that sent it.

    Attributes:
        id: the name that the provider gave it.
        settled: whether all its replies are in the journal or were given up.
        about: what its sender needs to continue with it, as plain JSON.
    """

    id: str
    settled: bool
    about: Mapping[str, Any]


class Amounts(NamedTuple):
    """Says how many calls, tokens and US dollars there are of something."""

    calls: float = 0
    tokens: float = 0.0
    cost: float = 0.0

    def plus(self, other: Amounts) -> Amounts:
        """Add other amounts."""
        return Amounts(*map(add, self, other))

    def minus(self, other: Amounts) -> Amounts:
        """Take other amounts off."""
        return Amounts(*map(sub, self, other))


class GrantRequest(NamedTuple):
    """Asks for a share of what a run may use.

    Attributes:
        limits: what all processes of the run may use together; infinite where there is no limit.
        spent: what this opening has used, as far as it knows.
        in_flight: what its calls in flight are estimated to take.
        waiting: what its waiting calls are estimated to take.
        next_call: what the first of these is estimated to take.
    """

    limits: Amounts
    spent: Amounts
    in_flight: Amounts
    waiting: Amounts
    next_call: Amounts


class Grant(NamedTuple):
    """Says what an opening may use.

    Attributes:
        allowed: in all, what it has spent included.
        reached: the limit that leaves no room for one call even if no call in flight took anything: ``calls``,
            ``tokens`` or ``cost``; empty where there is room, or may come to be.
    """

    allowed: Amounts
    reached: str


class Notice(NamedTuple):
    """Says what other processes of a run have noted.

    Attributes:
        others_wait: whether one waits for a grant, so that unneeded ones are to be given back.
        stop_reason: why this process is to stop; ``None`` where it is not.
        explanation: the same as a sentence.
    """

    others_wait: bool = False
    stop_reason: str | None = None
    explanation: str | None = None


class JournalError(JurygraphError, RuntimeError):
    """Raised where a journal cannot be read or written any more: disk full, database gone, locked or damaged.

    What was written before is safe. No call should be made after it, since its reply would be lost.
    """


def to_bytes(reply: Reply) -> bytes:
    """Return a whole reply as JSON; fields with their default value are left out."""
    plain = _plain(reply)
    try:
        return orjson.dumps(plain)
    except TypeError:
        # Numbers of more than 64 bits and deep nesting, which models write, are too much for orjson.
        return json.dumps(plain).encode()


def from_bytes(kept: bytes, label: str = "") -> Reply:
    """Read a reply from the JSON of :func:`to_bytes`; it is equal to the one that was written.

    Args:
        kept: what was written.
        label: the name of the model that was called, for a response that is yet to be read.

    Raises:
        UnreadResponseError: a response that could not be read when it came, and still cannot.
    """
    if kept.startswith(_UNREAD):
        plain = json.loads(kept)
        return read_response(messages_from_dict(plain["unread"]), label, plain["seconds"], plain.get("tool"))
    return _reply(orjson.loads(kept))


_UNREAD = b'{"unread": '


def unread_to_bytes(error: UnreadResponseError) -> bytes:
    """Return a response that could not be read as JSON, so that a later version reads it and nobody pays again."""
    plain = {"unread": messages_to_dict(error.messages), "seconds": error.seconds, "tool": error.tool}
    # Not orjson: what could not be read may well hold what orjson does not take, such as halves of characters.
    return json.dumps(plain, default=str).encode()


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
    values = {**vars(reply), **dict(zip(USAGE_NAMES, usage_values(reply.usage), strict=True))}
    del values["usage"]
    plain = {name: value for name, value in values.items() if _DEFAULTS.get(name, MISSING) != value}
    if reply.tokens is not None:
        plain["tokens"] = [_token(token) for token in reply.tokens]
    if reply.others:
        plain["others"] = [_plain(other) for other in reply.others]
    return plain


def _reply(plain: dict[str, Any]) -> Reply:
    given = {**_DEFAULTS, **plain}
    given["usage"] = Usage(*map(given.pop, USAGE_NAMES)).told()
    given["dropped"] = tuple(given["dropped"])
    given["others"] = tuple(_reply(other) for other in given["others"])
    if given["tokens"] is not None:
        given["tokens"] = [_whole_token(token) for token in given["tokens"]]
    return Reply(**given)


def _token(token: Mapping[str, Any]) -> tuple[str, float, list[tuple[str, float]]]:
    """Return a token with its log-probability and alternatives, without what can be told from the rest."""
    # Providers send each alternative as text and as a list of bytes, which would be most of a stored reply.
    likely: Sequence[Mapping[str, Any]] = token.get("top_logprobs") or ()
    return token["token"], token["logprob"], [(other["token"], other["logprob"]) for other in likely]


def _whole_token(kept: Sequence[Any]) -> dict[str, Any]:
    token, logprob, likely = kept
    top = [{"token": text, "logprob": value} for text, value in likely]
    return {"token": token, "logprob": logprob, "top_logprobs": top}
