"""Call OpenAI's chat completions with less CPU per call than the usual client.

``FastChatOpenAI`` is a ``ChatOpenAI`` that posts plain chat completions itself over aiohttp. If
several servers, or several keys, serve one model, it spreads its calls over them, and each debate
stays on one. Only the model resolver imports this module, when a model of OpenAI is named; a
program without such models does not need aiohttp.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import ssl
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from math import inf
from typing import Any
from urllib.request import getproxies, proxy_bypass

import aiohttp
import certifi
import orjson
from aiohttp import ClientResponse, ClientSession, ClientTimeout, DummyCookieJar, TCPConnector
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult
from langchain_core.prompt_values import ChatPromptValue
from langchain_openai import ChatOpenAI
from pydantic import PrivateAttr
from yarl import URL

from ...state.errors import UsageError
from ...state.redaction import redact
from .call import asked_in, session_key
from .connections import (
    MOST_REDIRECTS,
    SESSIONS,
    Messages,
    RunManager,
    Stop,
    hold_connections,
    redirect_to_follow,
    request_handler,
)
from .httpx_bodies import LARGEST_BODY
from .provider_errors import ResponseError
from .providers import is_openai_host, request_body
from .responses import replace_surrogates, token_count
from .retry import loop_time

log = logging.getLogger("jurygraph.notices")

Post = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
"""Sends the payload of a request and returns the chat completion; raises like ``Server.post``."""


class FastChatOpenAI(ChatOpenAI):
    """Make the same requests and results as ``ChatOpenAI`` at a fraction of the work.

    ``ChatOpenAI`` itself builds the request and makes the result. The ``openai`` client between the
    two is left out: aiohttp calls the provider, and no typed object is made for each field of a
    reply (log-probabilities have thousands). ``ChatOpenAI`` determines key, address, organization
    and headers from its arguments and the environment. Requests that need more than one JSON body
    each way (streams, the Responses API, headers of a single call) go through the ``openai`` client
    as usual.
    """

    _post: Post | None = PrivateAttr(default=None)
    _takes_cache_key: bool = PrivateAttr(default=False)
    _session_header: str | None = PrivateAttr(default=None)

    def prepare(
        self,
        proxied: bool = True,
        others: Sequence[tuple[str, str]] = (),
        at_once: int | None = None,
        session_header: str | None = None,
    ) -> None:
        """Prepare the first call; without this, calls go through the ``openai`` client. Blocking.

        Args:
            proxied: whether to use a proxy from the environment.
            others: address and key of each further server for the model; calls are spread over all.
            at_once: the maximum concurrent calls of each server, if there are several.
            session_header: the name of the header with the key of a call's item.
        """
        # Read and cache certificates now, since the first request is made on the event loop.
        tls()
        client = self.root_async_client
        given = {"Authorization": f"Bearer {client.api_key}", **client.default_headers}
        # Unset headers have a marker object as value.
        headers = {name: value for name, value in given.items() if isinstance(value, str)}
        places = [(str(client.base_url), headers)]
        places += [
            (address, {**headers, "Authorization": f"Bearer {key}"}) for address, key in others
        ]
        servers = []
        for n, (address, sent) in enumerate(places, start=1):
            # ``encoded``: the client has already quoted the address, so aiohttp must not quote it
            # again.
            url = URL(f"{address.rstrip('/')}/chat/completions", encoded=True)
            proxy = (self.openai_proxy or proxy_for(str(url))) if proxied else None
            name = f"{url.origin()} ({n} of {len(places)})"
            servers.append(Server(name, url, sent, proxy, session_header))
        self._session_header = session_header
        # Other servers may refuse a field that they do not know.
        self._takes_cache_key = all(is_openai_host(server.url.host or "") for server in servers)
        # aiohttp supports HTTP proxies only. SOCKS, and requests that need the client, go through
        # it.
        plain = all(server.proxy is None or server.proxy.startswith("http") for server in servers)
        if plain and not client.default_query and not self.include_response_headers:
            self._post = Servers(servers, at_once) if others else servers[0].post

    async def complete(self, messages: Sequence[BaseMessage], **kwargs: Any) -> list[BaseMessage]:
        """Return all replies to one request like ``agenerate``, without callbacks and tracers.

        Args:
            messages: the conversation.
            kwargs: parameters of this call, as for ``bind``.
        """
        result = await self._agenerate(list(messages), **kwargs)
        # As in ``agenerate``: metadata of the whole result goes to the message only if there is
        # one.
        shared = result.llm_output if len(result.generations) == 1 else None
        for generation in result.generations:
            message = generation.message
            own = generation.generation_info or {}
            message.response_metadata = {**(shared or {}), **own, **message.response_metadata}
        return [generation.message for generation in result.generations]

    async def _agenerate(
        self, messages: Messages, stop: Stop = None, run_manager: RunManager = None, **kwargs: Any
    ) -> ChatResult:
        # Wrapped as a prompt without conversion, since they are messages already.
        prompt = ChatPromptValue.model_construct(messages=messages)
        payload = self._get_request_payload(prompt, stop=stop, **kwargs)
        handler = request_handler.get()
        post = self._post
        # Requests that need the client itself, such as a stream. The Responses API has no messages.
        special = (
            "messages" not in payload or payload.get("stream") or _CLIENT_SIDE & payload.keys()
        )
        if handler and special:
            raise UsageError(
                f"{self.model_name} does not use plain chat completions, which this needs"
            )
        if (key := session_key.get()) and not handler:
            if self._takes_cache_key and CACHE_KEY not in payload:
                kwargs[CACHE_KEY] = payload[CACHE_KEY] = key
            if self._session_header and (post is None or special):
                own = kwargs.get("extra_headers") or {}
                kwargs["extra_headers"] = {self._session_header: key, **own}
        if handler:
            body = await handler(self, request_body(payload))
        elif post is None or special:
            return await super()._agenerate(messages, stop, run_manager, **kwargs)
        else:
            body = await post(payload)
        result = self._create_chat_result({**body, "usage": _counted(body.get("usage"))})
        # ``_create_chat_result`` copies the refusal only from the client's typed reply, not from a
        # dict.
        for choice, generation in zip(body["choices"], result.generations, strict=True):
            generation.message.additional_kwargs["refusal"] = choice["message"].get("refusal")
        return result


CACHE_KEY = "prompt_cache_key"
"""OpenAI's parameter by which calls with a common prefix reach the same machine."""


def _counted(usage: object) -> dict[str, Any] | None:
    """Return the usage fields that are token counts, because ``ChatOpenAI`` does sums with them."""
    if not isinstance(usage, dict):
        return None
    return {
        name: _counted(n) if isinstance(n, dict) else token_count(n) for name, n in usage.items()
    }


_CLIENT_SIDE = {"extra_headers", "extra_query", "timeout", "response_format"}
"""Keys of a payload that the ``openai`` client handles itself, such as a class in
``response_format``, which it converts to a schema."""


# Servers


@dataclass(eq=False)
class Server:
    """Post chat completions to one server, and track its state.

    Attributes:
        name: its address and its number, for messages.
        url: the address of the endpoint.
        headers: the headers of every request, including the key.
        proxy: the proxy's address, if there is one.
        session_header: the name of the header with the key of a call's item, if it has one.
        in_flight: the number of calls in flight.
        made: calls so far.
        failures: the number of consecutive failures.
        closed_until: the event loop's time until which the server is skipped.
    """

    name: str
    url: URL
    headers: Mapping[str, str]
    proxy: str | None
    session_header: str | None = None
    in_flight: int = 0
    made: int = 0
    failures: int = 0
    closed_until: float = 0.0

    async def post(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Post a request and return the chat completion.

        Raises:
            ResponseError: an error status, or a body that is not a chat completion.
            aiohttp.ClientError: the connection failed.
        """
        http = await session()
        url = self.url
        data = orjson.dumps(request_body(payload))
        headers = self.headers
        if self.session_header and (key := session_key.get()):
            headers = {**headers, self.session_header: key}
        for _ in range(MOST_REDIRECTS + 1):
            given: dict[str, Any] = {
                "headers": headers,
                "proxy": self.proxy,
                "allow_redirects": False,
            }
            async with http.post(url, data=data, **given) as response:
                following = redirect_to_follow(response.status, url, response.headers)
                if following is None:
                    return completion(response.status, response.headers, await _read(response))
            url = following
        raise ResponseError(f"more than {MOST_REDIRECTS} redirects", response.status)


FAILURES = 3
"""Consecutive failures after which a server is skipped."""

LEFT_OUT_SECONDS = 60.0
"""Seconds to skip a server; then one call tests whether it works again."""

HANGS_SECONDS = 30.0
"""A call that was abandoned after this many seconds counts as a failure of its server."""

MOST_DEBATES = 10_000
"""The number of debates to remember; servers no longer cache the prompts of older ones."""


class Servers:
    """Send each debate's calls to one server, and new debates to the least busy one.

    A server's prefix cache then pays for most of a debate. A server that is unreachable or fails
    several times in a row is skipped for a while, and its debates continue on others. While all
    servers fail, all are tried.

    Args:
        servers: the servers of one model, or one server with several keys.
        at_once: the maximum concurrent calls of each; further ones wait. ``None``: no limit.
    """

    def __init__(self, servers: Sequence[Server], at_once: int | None = None) -> None:
        self._servers = servers
        self._chosen: OrderedDict[bytes, Server] = OrderedDict()
        self._room = asyncio.Condition()
        self._at_once = at_once

    async def __call__(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Send a request to the server of its debate, or to another if that one is now skipped.

        Raises:
            ResponseError, aiohttp.ClientError: like the server's own ``post``.
        """
        messages, repeated = asked_in.get()
        asked = "".join(message.text for message in messages if message.type == "human")
        # The common beginning of all prompts of a debate identifies it.
        shared = asked[: repeated[0]] if repeated else asked
        debate = blake2b(shared.encode(errors="replace"), digest_size=16).digest()
        while True:
            while (server := self._server_of(debate)).in_flight >= (self._at_once or inf):
                async with self._room:
                    await self._room.wait()
            server.in_flight += 1
            server.made += 1
            started = loop_time()
            try:
                body = await server.post(payload)
            except (aiohttp.ClientError, ResponseError, OSError) as error:
                if not self._is_left_out(server, error):
                    raise
            except asyncio.CancelledError as error:
                # The caller that waited for the reply has given up.
                if loop_time() - started >= HANGS_SECONDS:
                    self._is_left_out(server, error)
                raise
            else:
                server.failures = 0
                return body
            finally:
                server.in_flight -= 1
                if self._at_once is not None:
                    async with self._room:
                        self._room.notify_all()

    def _server_of(self, debate: bytes) -> Server:
        known = self._chosen.get(debate)
        if known is None or loop_time() < known.closed_until:
            known = min(
                self._open() or self._servers, key=lambda server: (server.in_flight, server.made)
            )
            self._chosen[debate] = known
        self._chosen.move_to_end(debate)
        if len(self._chosen) > MOST_DEBATES:
            self._chosen.popitem(last=False)
        return known

    def _open(self) -> list[Server]:
        return [server for server in self._servers if loop_time() >= server.closed_until]

    def _is_left_out(self, server: Server, error: BaseException) -> bool:
        """Count a failure of the server; return whether it is now skipped while another is not."""
        status = error.status_code if isinstance(error, ResponseError) else None
        at_once = status in (401, 403, 404) or isinstance(error, aiohttp.ClientConnectorError)
        # With any other status the server has answered, and every server would answer the same.
        if status is None or at_once or status == 429 or status >= 500:
            server.failures = FAILURES if at_once else server.failures + 1
        if server.failures < FAILURES:
            return False
        was_open = loop_time() >= server.closed_until
        server.closed_until = loop_time() + LEFT_OUT_SECONDS
        others = len(self._open())
        # Calls that were in flight fail too; they do not count again.
        if was_open:
            noted = {"endpoint": server.name, "reason": redact(str(error))[:300], "others": others}
            log.warning("endpoint left out", extra=noted)
        return others > 0


# Responses


async def _read(response: ClientResponse) -> bytes:
    chunks = []
    size = 0
    async for chunk in response.content.iter_any():
        chunks.append(chunk)
        size += len(chunk)
        if size > LARGEST_BODY:
            response.close()
            raise ResponseError(f"the body is larger than {LARGEST_BODY} bytes", response.status)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def completion(status: int, headers: Mapping[str, str], content: bytes) -> dict[str, Any]:
    """Parse a response and return the chat completion in it.

    Raises:
        ResponseError: an error status, or a body that is not a chat completion.
    """
    try:
        body = _json(content)
        problem = ""
    except (ValueError, RecursionError):
        body = None
        problem = "not JSON"
    fields: dict[str, Any] = body if isinstance(body, dict) else {}
    choices = fields.get("choices")
    error = fields.get("error")
    # Some servers answer with status 200 and an error in the body.
    if status >= 300 or error:
        message = error.get("message") if isinstance(error, dict) else error
        raise ResponseError(
            f"Error code: {status} - {message or _shown(content)}", status, headers, body
        )
    if not isinstance(body, dict):
        problem = problem or "not a JSON object"
    elif not isinstance(choices, list) or not choices:
        problem = "not a chat completion, because it has no choices"
    elif not all(
        isinstance(choice, dict) and isinstance(choice.get("message"), dict) for choice in choices
    ):
        problem = "not a chat completion, because a choice has no message"
    if problem:
        raise ResponseError(f"the response is {problem}: {_shown(content)}", status, headers, body)
    return fields


def _json(content: bytes) -> Any:
    """Parse a body; replace lone surrogates, which the fast parser refuses."""
    try:
        return orjson.loads(content)
    except ValueError:
        return replace_surrogates(json.loads(content))


def _shown(content: bytes) -> str:
    # Redacted before cutting, since half a key is not recognized.
    return repr(redact(content[:10_000].decode(errors="replace"))[:200])


# Connections

IDLE_SECONDS = 60.0
"""Seconds to keep an unused connection."""

CONNECT_SECONDS = 30.0
"""Seconds to wait for a connection; the caller sets the time limit of a reply (``retry.py``)."""


async def session() -> ClientSession:
    """Return the session of the running event loop; connections cannot be shared between loops.

    The session does not queue requests: the rate limiter bounds those in flight, and each has a
    connection.
    """
    loop = asyncio.get_running_loop()
    http: ClientSession | None = SESSIONS.get(loop)
    if http is None or http.closed:
        # ``limit=0``: any number of connections; aiohttp's default queues requests beyond 100.
        connector = TCPConnector(
            limit=0, keepalive_timeout=IDLE_SECONDS, ttl_dns_cache=300, ssl=tls()
        )
        timeout = ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)
        http = ClientSession(connector=connector, cookie_jar=DummyCookieJar(), timeout=timeout)
        SESSIONS[loop] = http
        await hold_connections()
    return http


@cache
def tls() -> ssl.SSLContext:
    """Return the trusted certificates. Blocking.

    They come from SSL_CERT_FILE and SSL_CERT_DIR, else from the system and certifi.
    """
    context = ssl.create_default_context()
    if not (os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR")):
        context.load_verify_locations(certifi.where())
    return context


def proxy_for(url: str) -> str | None:
    """Return the proxy for an address, from the environment or the system.

    The variables are HTTPS_PROXY, ALL_PROXY, NO_PROXY and so on.
    """
    address = URL(url)
    proxies = getproxies()
    if proxy_bypass(address.host or ""):
        return None
    return proxies.get(address.scheme) or proxies.get("all")
