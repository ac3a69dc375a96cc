"""Connections to providers: one session for all models on an event loop, closed when that loop ends."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import ssl
from functools import cache
from urllib.request import getproxies, proxy_bypass

import certifi
from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector
from yarl import URL

from .loops import on_loop_end

IDLE_SECONDS = 60.0
"""So long a connection that nobody uses is kept."""

CONNECT_SECONDS = 30.0
"""So long a provider may take to accept a connection; how long for a reply is for the caller to say."""

_SESSIONS: dict[asyncio.AbstractEventLoop, ClientSession] = {}


async def session() -> ClientSession:
    """The session of the running event loop.

    It queues nothing: how many requests are in flight is for others to limit, and there are as many connections.
    """
    loop = asyncio.get_running_loop()
    kept = _SESSIONS.get(loop)
    if kept is None or kept.closed:
        kept = _SESSIONS[loop] = _opened()
        await on_loop_end(lambda: _closed(loop))
    return kept


@cache
def tls() -> ssl.SSLContext:
    """Whom to trust: SSL_CERT_FILE and SSL_CERT_DIR, else the system's and certifi's. Reads files: blocking."""
    context = ssl.create_default_context()
    if not (os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR")):
        context.load_verify_locations(certifi.where())
    return context


def proxy_for(url: str) -> str | None:
    """The proxy that the environment (HTTPS_PROXY, ALL_PROXY, NO_PROXY, ...) or the system names for an address."""
    address, proxies = URL(url), getproxies()
    if proxy_bypass(address.host or ""):
        return None
    return proxies.get(address.scheme) or proxies.get("all")


def _opened() -> ClientSession:
    connector = TCPConnector(limit=0, keepalive_timeout=IDLE_SECONDS, ttl_dns_cache=300, ssl=tls())
    patience = ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)
    return ClientSession(connector=connector, cookie_jar=DummyCookieJar(), timeout=patience)


async def _closed(loop: asyncio.AbstractEventLoop) -> None:
    if (kept := _SESSIONS.pop(loop, None)) is not None:
        await kept.close()


@atexit.register
def _close_at_exit() -> None:
    """Those of loops that run for as long as the program does, in threads of their own."""
    for loop in list(_SESSIONS):
        if loop.is_running():
            with contextlib.suppress(TimeoutError):
                asyncio.run_coroutine_threadsafe(_closed(loop), loop).result(timeout=2)
