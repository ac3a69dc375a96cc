"""Replies as the journal keeps them: JSON, short where a provider is long-winded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any

import orjson

from ...nodes.models.call import Reply


def to_bytes(reply: Reply) -> bytes:
    """A whole reply, without what is as it is by default."""
    return orjson.dumps(_plain(reply))


def from_bytes(kept: bytes) -> Reply:
    """The reply again, word for word and figure for figure."""
    return _reply(orjson.loads(kept))


_DEFAULTS = {
    "fields": None,
    "cut_off": False,
    "refused": False,
    "cached_input_tokens": 0,
    "reasoning_tokens": 0,
    **{field.name: field.default for field in fields(Reply) if field.default is not MISSING},
}


def _plain(reply: Reply) -> dict[str, Any]:
    plain = {name: value for name, value in vars(reply).items() if _DEFAULTS.get(name, MISSING) != value}
    if reply.tokens is not None:
        plain["tokens"] = [_token(token) for token in reply.tokens]
    if reply.others:
        plain["others"] = [_plain(other) for other in reply.others]
    return plain


def _reply(plain: dict[str, Any]) -> Reply:
    given = {**_DEFAULTS, **plain}
    given["dropped"] = tuple(given["dropped"])
    given["others"] = tuple(_reply(other) for other in given["others"])
    if given["tokens"] is not None:
        given["tokens"] = [_whole_token(token) for token in given["tokens"]]
    return Reply(**given)


def _token(token: Mapping[str, Any]) -> tuple[str, float, list[tuple[str, float]]]:
    """Providers send each likely token as text and as a list of bytes, which is most of a reply."""
    likely: Sequence[Mapping[str, Any]] = token.get("top_logprobs") or ()
    return token["token"], token["logprob"], [(one["token"], one["logprob"]) for one in likely]


def _whole_token(kept: Sequence[Any]) -> dict[str, Any]:
    token, logprob, likely = kept
    top = [{"token": one, "logprob": value} for one, value in likely]
    return {"token": token, "logprob": logprob, "top_logprobs": top}
