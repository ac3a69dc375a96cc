"""The records of a journal, finished calls and batches, and the storage format of replies."""

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
    """A finished call: its model, its reply and its usage.

    Attributes:
        model: the name of the model.
        reply: the whole reply, as JSON.
        usage: its usage; ``calls`` are the requests that the provider answered.
    """

    model: str
    reply: bytes
    usage: Usage


class Spent(NamedTuple):
    """The usage of a run's calls before it was opened again.

    Attributes:
        usage: all known usage; its cost is unknown if the cost of one call is.
        known_cost: US dollars of the calls with a known cost.
        unpriced: the number of calls without a known cost.
    """

    usage: Usage
    known_cost: float = 0.0
    unpriced: int = 0


class Batch(NamedTuple):
    """A batch of calls at a provider, which may outlive the process that sent it.

    Attributes:
        id: the provider's name for it.
        settled: whether all its replies are in the journal or were given up.
        about: the data that its sender needs to continue it, as plain JSON.
    """

    id: str
    settled: bool
    about: Mapping[str, Any]


class Amounts(NamedTuple):
    """A number of calls, tokens and US dollars."""

    calls: float = 0
    tokens: float = 0.0
    cost: float = 0.0

    def plus(self, other: Amounts) -> Amounts:
        """Add other amounts."""
        return Amounts(*map(add, self, other))

    def minus(self, other: Amounts) -> Amounts:
        """Subtract other amounts."""
        return Amounts(*map(sub, self, other))


class GrantRequest(NamedTuple):
    """A request for a share of a run's limits.

    Attributes:
        limits: the limits of all processes of the run together; infinite without a limit.
        spent: the usage of this opening, as far as known.
        in_flight: the estimated usage of its calls in flight.
        waiting: the estimated usage of its waiting calls.
        next_call: the estimated usage of the first waiting call.
    """

    limits: Amounts
    spent: Amounts
    in_flight: Amounts
    waiting: Amounts
    next_call: Amounts


class Grant(NamedTuple):
    """The share of a run's limits that an opening may use.

    Attributes:
        allowed: the total, including its usage so far.
        reached: the limit that leaves no room for one call even if the calls in flight used
            nothing: ``calls``, ``tokens`` or ``cost``; empty if there is room, or may be later.
    """

    allowed: Amounts
    reached: str


class Notice(NamedTuple):
    """The notices of other processes of a run.

    Attributes:
        others_wait: whether one waits for a grant, so that unneeded ones should be returned.
        stop_reason: why this process has to stop; ``None`` if it does not.
        explanation: the same as a sentence.
    """

    others_wait: bool = False
    stop_reason: str | None = None
    explanation: str | None = None


class JournalError(JurygraphError, RuntimeError):
    """A journal can no longer be read or written: disk full, database gone, locked or damaged.

    Everything written before is safe. Do not make further calls, because their replies would be
    lost.
    """


def to_bytes(reply: Reply) -> bytes:
    """Return a whole reply as JSON; fields with their default value are left out."""
    plain = _plain(reply)
    try:
        return orjson.dumps(plain)
    except TypeError:
        # Models write numbers of more than 64 bits and deep nesting, which orjson cannot handle.
        return json.dumps(plain).encode()


def from_bytes(kept: bytes, label: str = "") -> Reply:
    """Read a reply from the JSON of :func:`to_bytes`; it is equal to the written one.

    Args:
        kept: the written bytes.
        label: the name of the called model, for a response that has not been read yet.

    Raises:
        UnreadResponseError: a response that could not be read when it came, and still cannot.
    """
    if kept.startswith(_UNREAD):
        plain = json.loads(kept)
        return read_response(
            messages_from_dict(plain["unread"]),
            label,
            plain["seconds"],
            plain.get("tool"),
            with_tools=plain.get("with_tools", False),
        )
    return _reply(orjson.loads(kept))


_UNREAD = b'{"unread": '


def unread_to_bytes(error: UnreadResponseError) -> bytes:
    """Return an unreadable response as JSON, for a later version to read without a new call."""
    plain = {
        "unread": messages_to_dict(error.messages),
        "seconds": error.seconds,
        "tool": error.tool,
        **({"with_tools": True} if error.with_tools else {}),
    }
    # Not orjson: an unreadable response may contain values that orjson refuses, such as lone
    # surrogates.
    return json.dumps(plain, default=str).encode()


USAGE_NAMES = ("requests", *USAGE_FIELDS[1:])
"""The names of a usage's fields in columns and replies, where its calls are ``requests``."""

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
    # Older journals have the fields of a usage among the others, so new replies have them there
    # too.
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
    given["tool_calls"] = tuple(given["tool_calls"])
    given["others"] = tuple(_reply(other) for other in given["others"])
    if given["tokens"] is not None:
        given["tokens"] = [_whole_token(token) for token in given["tokens"]]
    return Reply(**given)


def _token(token: Mapping[str, Any]) -> tuple[str, float, list[tuple[str, float]]]:
    """Return a token with its log-probability and alternatives, without redundant data."""
    # Providers send each alternative as text and as a list of bytes, which would be most of a
    # stored reply.
    likely: Sequence[Mapping[str, Any]] = token.get("top_logprobs") or ()
    return (
        token["token"],
        token["logprob"],
        [(other["token"], other["logprob"]) for other in likely],
    )


def _whole_token(kept: Sequence[Any]) -> dict[str, Any]:
    token, logprob, likely = kept
    top = [{"token": text, "logprob": value} for text, value in likely]
    return {"token": token, "logprob": logprob, "top_logprobs": top}
