"""Follow a provider's redirects only where judged texts and key stay with the same host and the request stays a POST.

A 301, 302 or 303 turns a POST into a GET, whose answer is no reply to what was asked; on another host, nobody has
chosen who reads the texts. Where a redirect is not followed, the response is an error with its status.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from yarl import URL

MOST = 3
"""Redirects of one request, at most."""


def redirect_to_follow(status: int, asked: URL, headers: Mapping[str, str]) -> URL | None:
    """Return the address that a redirect leads to where it may be followed, else None.

    >>> asked = URL("http://host/v1/chat")
    >>> redirect_to_follow(307, asked, {"location": "/v2/chat"})
    URL('http://host/v2/chat')
    >>> redirect_to_follow(302, asked, {"location": "/v2/chat"})
    >>> redirect_to_follow(307, asked, {"location": "http://elsewhere/v1/chat"})
    """
    location = headers.get("location")
    if status not in (307, 308) or not location:
        return None
    target = asked.join(URL(location))
    to_tls = (asked.scheme, target.scheme, asked.host) == ("http", "https", target.host)
    return target if target.origin() == asked.origin() or to_tls else None


async def stop_redirect(response: Any) -> None:
    """Take the address out of a response that redirects where it may not, so that its client sees an error.

    An event hook of an ``httpx.AsyncClient``, for ``response``.
    """
    if response.has_redirect_location:
        asked = URL(str(response.request.url))
        if redirect_to_follow(response.status_code, asked, response.headers) is None:
            del response.headers["location"]


HOOKS: Mapping[str, Any] = {"response": [stop_redirect]}
"""For ``httpx.AsyncClient(event_hooks=...)``."""
