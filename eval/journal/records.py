"""What a journal holds, and replies as it keeps them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any

import orjson

from ...nodes.models.call import Reply
from ...state.errors import JurygraphError


@dataclass(frozen=True, slots=True)
class Entry:
    """One finished call.

    Attributes:
        model: the name of the model.
        reply: the whole reply, as JSON.
        requests: how many requests it took at the provider.
        input_tokens: tokens sent, those from the provider's cache among them.
        cached_input_tokens: how many of them came from the provider's cache.
        output_tokens: tokens received, those of reasoning among them.
        reasoning_tokens: how many of them were reasoning.
        cost_usd: its price; ``None`` where it is unknown.
        seconds: how long it took.
    """

    model: str
    reply: bytes
    requests: int
    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cost_usd: float | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Totals:
    """What calls cost together; ``cost_usd`` is ``None`` as soon as one call's price is unknown.

    >>> call = Entry("m", b"{}", 1, 100, 0, 20, 0, 0.002, 1.5)
    >>> Totals().plus(call).plus(call).cost_usd
    0.004
    """

    calls: int = 0
    requests: int = 0
    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float | None = 0.0

    def plus(self, entry: Entry) -> Totals:
        """The totals with one more call."""
        unknown = self.cost_usd is None or entry.cost_usd is None
        return Totals(
            self.calls + 1,
            self.requests + entry.requests,
            self.input_tokens + entry.input_tokens,
            self.cached_input_tokens + entry.cached_input_tokens,
            self.output_tokens + entry.output_tokens,
            self.reasoning_tokens + entry.reasoning_tokens,
            None if unknown else (self.cost_usd or 0.0) + (entry.cost_usd or 0.0),
        )


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of calls that a provider has, and that may outlive the process which sent it.

    Attributes:
        id: the provider's name for it.
        run: the run that sent it.
        settled: whether all its replies are in the journal, or given up.
        created: seconds since 1970, by the database's clock.
        about: whatever its sender needs to go on with it.
    """

    id: str
    run: str
    settled: bool
    created: int
    about: Mapping[str, Any]


class JournalError(JurygraphError, RuntimeError):
    """A journal that cannot be read or written any more: disk full, database gone, locked or damaged.

    What was kept before is safe. No call should be made after it, since its reply could not be kept.
    """


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
