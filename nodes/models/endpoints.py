"""Share one model's calls among several servers that serve it, or several keys: each debate stays with one of them."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from math import inf
from typing import Any

import aiohttp

from ...state.redaction import redact
from .call import asked_in
from .provider_errors import ResponseError

log = logging.getLogger("jurygraph.notices")

Post = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]

FAILURES = 3
"""After so many failures in a row a server is left out."""

LEFT_OUT_SECONDS = 60.0
"""So long it is; then one call finds out whether it is back."""

HANGS_SECONDS = 30.0
"""A call that was given up after so long is a failure of its server."""

MOST_DEBATES = 10_000
"""So many debates are remembered; a server has long lost the prompts of older ones from its cache."""


@dataclass
class Endpoint:
    """Hold what is known of one server.

    Attributes:
        name: its address, and which of all it is, as messages have it.
        post: sends a request there.
        in_flight: calls that are under way.
        made: calls so far.
        failures: how many have failed in a row.
        closed_until: the event loop's time before which it is left out.
    """

    name: str
    post: Post
    in_flight: int = 0
    made: int = 0
    failures: int = 0
    closed_until: float = 0.0


class Endpoints:
    """Send the calls of each debate to one server, and new debates to the one with the fewest calls under way.

    A server's prefix cache then pays for most of a debate. One that cannot be reached, or fails, several times in a row
    is left out for a while, and its debates go on elsewhere; while all of them fail, all are tried.

    Args:
        endpoints: the servers.
        at_once: how many calls each may have under way; further ones wait. ``None``: any number.
    """

    def __init__(self, endpoints: Sequence[Endpoint], at_once: int | None = None) -> None:
        self._endpoints = endpoints
        self._chosen: OrderedDict[bytes, Endpoint] = OrderedDict()
        self._room = asyncio.Condition()
        self._at_once = at_once

    async def __call__(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Send a request to the server of its debate, or to another where that one is left out from now on.

        Raises:
            ResponseError, aiohttp.ClientError: as the server's own post.
        """
        debate = _debate()
        while True:
            endpoint, started = await self._entered(debate), _now()
            try:
                body = await endpoint.post(payload)
            except (aiohttp.ClientError, ResponseError, OSError) as error:
                if not self._is_left_out(endpoint, error):
                    raise
            except asyncio.CancelledError as error:
                # Whoever waits for the reply has given it up.
                if _now() - started >= HANGS_SECONDS:
                    self._is_left_out(endpoint, error)
                raise
            else:
                endpoint.failures = 0
                return body
            finally:
                endpoint.in_flight -= 1
                if self._at_once is not None:
                    async with self._room:
                        self._room.notify_all()

    async def _entered(self, debate: bytes) -> Endpoint:
        """Choose the server of a debate, once it has room for the call."""
        while (endpoint := self._of(debate)).in_flight >= (self._at_once or inf):
            async with self._room:
                await self._room.wait()
        endpoint.in_flight += 1
        endpoint.made += 1
        return endpoint

    def _of(self, debate: bytes) -> Endpoint:
        known = self._chosen.get(debate)
        if known is None or _now() < known.closed_until:
            known = min(self._open() or self._endpoints, key=lambda one: (one.in_flight, one.made))
            self._chosen[debate] = known
        self._chosen.move_to_end(debate)
        if len(self._chosen) > MOST_DEBATES:
            self._chosen.popitem(last=False)
        return known

    def _open(self) -> list[Endpoint]:
        return [one for one in self._endpoints if _now() >= one.closed_until]

    def _is_left_out(self, endpoint: Endpoint, error: BaseException) -> bool:
        """Count a failure that is the server's own; return whether it is left out now, and another one is not."""
        status = error.status_code if isinstance(error, ResponseError) else None
        at_once = status in (401, 403, 404) or isinstance(error, aiohttp.ClientConnectorError)
        # With another status it has answered, and any server would answer this call so.
        if status is None or at_once or status == 429 or status >= 500:
            endpoint.failures = FAILURES if at_once else endpoint.failures + 1
        if endpoint.failures < FAILURES:
            return False
        was_open = _now() >= endpoint.closed_until
        endpoint.closed_until = _now() + LEFT_OUT_SECONDS
        others = len(self._open())
        # Calls that were under way there fail as well, and say nothing new.
        if was_open:
            noted = {"endpoint": endpoint.name, "reason": redact(str(error))[:300], "others": others}
            log.warning("endpoint left out", extra=noted)
        return others > 0


def _now() -> float:
    return asyncio.get_running_loop().time()


def _debate() -> bytes:
    """Return what tells the debate that asks from others: all that its prompts have in common."""
    messages, repeated = asked_in.get()
    asked = "".join(message.text for message in messages if message.type == "human")
    shared = asked[: repeated[0]] if repeated else asked
    return blake2b(shared.encode(errors="replace"), digest_size=16).digest()
