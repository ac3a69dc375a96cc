"""Call OpenAI's chat completions with less work for each call than the usual client, and keep the connections.

``FastChatOpenAI`` is a ``ChatOpenAI`` that posts plain chat completions itself, over aiohttp. Imported by the model
resolver alone, when a model of OpenAI is named: a program without it need not import aiohttp.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any
from urllib.request import getproxies, proxy_bypass

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
from .connections import (
    MOST_REDIRECTS,
    SESSIONS,
    Messages,
    RunManager,
    Stop,
    hold_connections,
    redirect_to_follow,
    request_body,
    request_handler,
)
from .endpoints import Endpoint, Endpoints
from .provider_errors import ResponseError
from .responses import replace_surrogates, token_count

LARGEST_BODY = 64 * 2**20
"""Bytes. No chat completion is as large; a body that is must not fill the memory."""


Server = tuple[str, str]
"""Address and key of a server."""


@dataclass(frozen=True)
class _Post:
    """Posts chat completions for one client.

    Attributes:
        url: where to.
        headers: of every request, the key among them.
        proxy: the proxy's address, if there is one.
        enough: whether nothing in the client's set-up needs the client itself.
    """

    url: URL
    headers: Mapping[str, str]
    proxy: str | None
    enough: bool

    @classmethod
    def of(cls, chat: ChatOpenAI) -> _Post:
        """Take address, key, headers and proxy over from a client. Reads files: blocking."""
        # Certificates are read now and cached, since the first request is made on the event loop.
        tls()
        client = chat.root_async_client
        # ``encoded``: the client has quoted the address already, and aiohttp must not quote it again.
        url = URL(f"{str(client.base_url).rstrip('/')}/chat/completions", encoded=True)
        given = {"Authorization": f"Bearer {client.api_key}", **client.default_headers}
        # Headers that are not set have a marker object as value.
        headers = {name: value for name, value in given.items() if isinstance(value, str)}
        proxy = chat.openai_proxy or proxy_for(str(url))
        # aiohttp speaks to HTTP proxies only; SOCKS is left to the client.
        plain = proxy is None or proxy.startswith("http")
        enough = plain and not client.default_query and not chat.include_response_headers
        return cls(url, headers, proxy, enough)

    def elsewhere(self, address: str, key: str) -> _Post:
        """Return the same for another server, or another key."""
        url = URL(f"{address.rstrip('/')}/chat/completions", encoded=True)
        proxy = self.proxy and proxy_for(str(url))
        return replace(self, url=url, headers={**self.headers, "Authorization": f"Bearer {key}"}, proxy=proxy)

    async def __call__(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Post a request and return the chat completion.

        Raises:
            ResponseError: an error status, or a body that is no chat completion.
            aiohttp.ClientError: the connection failed.
        """
        http, url, data = await session(), self.url, orjson.dumps(request_body(payload))
        for _ in range(MOST_REDIRECTS + 1):
            given: dict[str, Any] = {"headers": self.headers, "proxy": self.proxy, "allow_redirects": False}
            async with http.post(url, data=data, **given) as response:
                following = redirect_to_follow(response.status, url, response.headers)
                if following is None:
                    return completion(response.status, response.headers, await _read(response))
            url = following
        raise ResponseError(f"more than {MOST_REDIRECTS} redirects", response.status)


class FastChatOpenAI(ChatOpenAI):
    """Make the same requests and results as ``ChatOpenAI`` at a fraction of the work.

    ``ChatOpenAI`` itself builds the request and makes the result. Between the two, the ``openai`` client is left out:
    aiohttp talks to the provider, and no typed object is made for each field of a reply, of which log-probabilities
    have thousands. Key, address, organization and headers are those that ``ChatOpenAI`` found in its arguments and the
    environment. Whatever takes more than one JSON body out and one in (streams, the Responses API, headers of a
    single call) goes through the ``openai`` client as usual.
    """

    _post: _Post | None = PrivateAttr(default=None)
    _endpoints: Endpoints | None = PrivateAttr(default=None)

    def prepare(
        self, proxied: bool = True, others: Sequence[Server] = (), at_once: int | None = None
    ) -> None:
        """Prepare what the first call needs; without it, calls go through the ``openai`` client. Blocking.

        Args:
            proxied: whether a proxy of the environment is used.
            others: address and key of each further server that serves the model; its calls are shared among all.
            at_once: how many calls each of several servers may have under way.
        """
        self._post = _Post.of(self) if proxied else replace(_Post.of(self), proxy=None)
        if others:
            posts = [self._post, *(self._post.elsewhere(*other) for other in others)]
            names = [f"{each.url.origin()} ({n} of {len(posts)})" for n, each in enumerate(posts, start=1)]
            self._endpoints = Endpoints([*map(Endpoint, names, posts)], at_once)

    async def complete(self, messages: Sequence[BaseMessage], **kwargs: Any) -> list[BaseMessage]:
        """Return all replies to one request as ``agenerate`` would, but without callbacks and tracers.

        Args:
            messages: the conversation.
            kwargs: parameters of this call, as for ``bind``.
        """
        result = await self._agenerate(list(messages), **kwargs)
        # As ``agenerate`` does: what is known of the whole result goes to the message only if there is just one.
        shared = result.llm_output if len(result.generations) == 1 else None
        for generation in result.generations:
            message, own = generation.message, generation.generation_info or {}
            message.response_metadata = {**(shared or {}), **own, **message.response_metadata}
        return [generation.message for generation in result.generations]

    async def _agenerate(
        self, messages: Messages, stop: Stop = None, run_manager: RunManager = None, **kwargs: Any
    ) -> ChatResult:
        # As a prompt, which is not converted: they are messages already.
        prompt = ChatPromptValue.model_construct(messages=messages)
        payload = self._get_request_payload(prompt, stop=stop, **kwargs)
        handler, post = request_handler.get(), self._post
        # What only the client itself can do, such as a stream. The Responses API has no messages.
        special = "messages" not in payload or payload.get("stream") or _CLIENT_SIDE & payload.keys()
        if handler and special:
            raise UsageError(f"{self.model_name} does not use plain chat completions, which this needs")
        if handler:
            return self._result(await handler(self, request_body(payload)))
        if post is None or special or not post.enough:
            return await super()._agenerate(messages, stop, run_manager, **kwargs)
        return self._result(await (self._endpoints or post)(payload))

    def _result(self, body: dict[str, Any]) -> ChatResult:
        result = self._create_chat_result({**body, "usage": _counted(body.get("usage"))})
        # ``_create_chat_result`` takes the refusal over from the client's typed reply only, not from a dict.
        for choice, generation in zip(body["choices"], result.generations, strict=True):
            generation.message.additional_kwargs["refusal"] = choice["message"].get("refusal")
        return result


def _counted(usage: object) -> dict[str, Any] | None:
    """Return the numbers of a response's usage that are numbers of tokens, on which ``ChatOpenAI`` calculates."""
    if not isinstance(usage, dict):
        return None
    return {name: _counted(n) if isinstance(n, dict) else token_count(n) for name, n in usage.items()}


_CLIENT_SIDE = {"extra_headers", "extra_query", "timeout", "response_format"}
"""Keys of a payload that the ``openai`` client itself acts on; of a class in ``response_format`` it makes a schema."""


async def _read(response: ClientResponse) -> bytes:
    chunks, size = [], 0
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
        ResponseError: an error status, or a body that is no chat completion.
    """
    try:
        body = _json(content)
        problem = _problem(body)
    except (ValueError, RecursionError):
        body, problem = None, "not JSON"
    error = body.get("error") if isinstance(body, dict) else None
    # Some servers answer with status 200 and an error in the body.
    if status >= 300 or error:
        message = error.get("message") if isinstance(error, dict) else error
        raise ResponseError(f"Error code: {status} - {message or _shown(content)}", status, headers, body)
    if problem:
        raise ResponseError(f"the response is {problem}: {_shown(content)}", status, headers, body)
    parsed: dict[str, Any] = body
    return parsed


def _json(content: bytes) -> Any:
    """Parse a body; half a character (a lone surrogate), which the fast parser refuses, is replaced."""
    try:
        return orjson.loads(content)
    except ValueError:
        return replace_surrogates(json.loads(content))


def _problem(body: object) -> str | None:
    """Return why a body is no chat completion; None if it is one."""
    if not isinstance(body, dict):
        return "not a JSON object"
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices:
        return "not a chat completion, because it has no choices"
    if all(isinstance(choice, dict) and isinstance(choice.get("message"), dict) for choice in choices):
        return None
    return "not a chat completion, because a choice has no message"


def _shown(content: bytes) -> str:
    # Redacted before it is cut, since half a key is no longer known for one.
    return repr(redact(content[:10_000].decode(errors="replace"))[:200])


IDLE_SECONDS = 60.0
"""The time for which an unused connection is kept."""

CONNECT_SECONDS = 30.0
"""The time a provider may take to accept a connection; the time limit of a reply is the caller's (``retry.py``)."""


async def session() -> ClientSession:
    """Return the session of the running event loop; connections of one loop do not work on another.

    The session queues no requests: the rate limiter bounds those in flight, and each has a connection.
    """
    loop = asyncio.get_running_loop()
    http: ClientSession | None = SESSIONS.get(loop)
    if http is None or http.closed:
        # ``limit=0``: any number of connections, where aiohttp's default would queue requests beyond 100.
        connector = TCPConnector(limit=0, keepalive_timeout=IDLE_SECONDS, ttl_dns_cache=300, ssl=tls())
        timeout = ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)
        http = ClientSession(connector=connector, cookie_jar=DummyCookieJar(), timeout=timeout)
        SESSIONS[loop] = http
        await hold_connections()
    return http


@cache
def tls() -> ssl.SSLContext:
    """Return the trusted certificates: SSL_CERT_FILE and SSL_CERT_DIR, else the system's and certifi's. Blocking."""
    context = ssl.create_default_context()
    if not (os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR")):
        context.load_verify_locations(certifi.where())
    return context


def proxy_for(url: str) -> str | None:
    """Return the proxy for an address by the environment (HTTPS_PROXY, ALL_PROXY, NO_PROXY, ...) or the system."""
    address, proxies = URL(url), getproxies()
    if proxy_bypass(address.host or ""):
        return None
    return proxies.get(address.scheme) or proxies.get("all")
