"""OpenAI's chat client on a shorter way, and its connections.

Imported by the model resolver alone, when a model of OpenAI is named.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import json
import os
import ssl
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.request import getproxies, proxy_bypass

import certifi
import orjson
from aiohttp import ClientResponse, ClientSession, ClientTimeout, DummyCookieJar, TCPConnector
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult
from langchain_openai import ChatOpenAI
from pydantic import PrivateAttr
from yarl import URL

from ...state.errors import UsageError
from .event_loop import on_loop_end
from .provider_errors import ResponseError
from .response_parsing import replace_surrogates

LARGEST_BODY = 64 * 2**20
"""Bytes; no chat completion is as large, and what is shall not fill the memory."""

Taker = Callable[["FastChatOpenAI", dict[str, Any]], Awaitable[dict[str, Any]]]
"""Who is given the body of a request, and gives back a chat completion or raises what the network would."""
_taker: ContextVar[Taker | None] = ContextVar("_taker", default=None)


@contextmanager
def requests_taken_by(taker: Taker) -> Iterator[None]:
    """While inside, requests go to somebody who has another way for them than the network."""
    token = _taker.set(taker)
    try:
        yield
    finally:
        _taker.reset(token)


@dataclass(frozen=True)
class _Post:
    """Where chat completions are asked for, and what goes along with every request."""

    url: URL
    headers: Mapping[str, str]
    proxy: str | None
    enough: bool

    @classmethod
    def as_of(cls, chat: ChatOpenAI) -> _Post:
        """As the client has it. Reads files: blocking."""
        tls()
        client = chat.root_async_client
        url = URL(f"{str(client.base_url).rstrip('/')}/chat/completions", encoded=True)
        given = {"Authorization": f"Bearer {client.api_key}", **client.default_headers}
        headers = {name: value for name, value in given.items() if isinstance(value, str)}
        proxy = chat.openai_proxy or proxy_for(str(url))
        plain = proxy is None or proxy.startswith("http")
        enough = plain and not client.default_query and not chat.include_response_headers
        return cls(url, headers, proxy, enough)

    def can_send(self, payload: Mapping[str, Any]) -> bool:
        """Whether nothing in it is for the client itself, or for a stream."""
        return self.enough and not _client_side(payload)

    async def __call__(self, payload: dict[str, Any]) -> dict[str, Any]:
        """The chat completion.

        Raises:
            ResponseError: an error status, or a body that is no chat completion.
            aiohttp.ClientError: the connection failed.
        """
        http = await session()
        async with http.post(
            self.url, data=orjson.dumps(_body(payload)), headers=self.headers, proxy=self.proxy
        ) as response:
            return completion(response.status, response.headers, await _read(response))


class FastChatOpenAI(ChatOpenAI):
    """``ChatOpenAI`` with the same requests and results at a fraction of the work.

    The request is built and the result made by ``ChatOpenAI`` itself; between the two there are no typed objects for
    every field of a reply, of which log-probabilities have thousands, and aiohttp is what talks to the provider.
    Key, address, organization and headers are those of the client that ``ChatOpenAI`` has made of its arguments and
    the environment; whatever asks for more than one JSON body out and one in (streams, the Responses API, headers of
    one call) goes that client's way.
    """

    _post: _Post | None = PrivateAttr(default=None)

    def prepare(self) -> None:
        """Make ready what the first call needs. Reads files: blocking."""
        self._post = _Post.as_of(self)

    async def complete(self, messages: Sequence[BaseMessage], **kwargs: Any) -> list[BaseMessage]:
        """All replies to one request, as ``agenerate`` would give them, but heard by no callback and no tracer.

        Args:
            messages: the conversation.
            kwargs: parameters of this call, as for ``bind``.
        """
        result = await self._agenerate(list(messages), **kwargs)
        of_all = result.llm_output if len(result.generations) == 1 else None
        for generation in result.generations:
            message, about = generation.message, generation.generation_info or {}
            message.response_metadata = {**(of_all or {}), **about, **message.response_metadata}
        return [generation.message for generation in result.generations]

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        payload = self._get_request_payload(messages, stop=stop, **kwargs)
        if taker := _taker.get():
            return self._result(await taker(self, self._plain_body(payload)))
        post = self._post
        if post is None or not post.can_send(payload) or self._use_responses_api(payload):
            return await super()._agenerate(messages, stop, run_manager, **kwargs)
        return self._result(await post(payload))

    def _plain_body(self, payload: dict[str, Any]) -> dict[str, Any]:
        if _client_side(payload) or self._use_responses_api(payload):
            raise UsageError(f"{self.model_name} is not asked by plain chat completions, which this needs")
        return _body(payload)

    def _result(self, body: dict[str, Any]) -> ChatResult:
        result = self._create_chat_result(body)
        # Of a plain dict it does not take this along.
        for choice, generation in zip(body["choices"], result.generations, strict=True):
            generation.message.additional_kwargs["refusal"] = choice["message"].get("refusal")
        return result


_CLIENT_SIDE = {"extra_headers", "extra_query", "timeout", "response_format"}
"""What stands in a payload for the client itself; in ``response_format`` it makes a schema of a class."""


def _client_side(payload: Mapping[str, Any]) -> bool:
    return bool(payload.get("stream") or _CLIENT_SIDE & payload.keys())


def _body(payload: dict[str, Any]) -> dict[str, Any]:
    more = payload.pop("extra_body", None)
    return {**payload, **more} if more else payload


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
    """The chat completion in a response.

    Raises:
        ResponseError: an error status, or a body that is no chat completion.
    """
    try:
        body = _json(content)
        problem = _problem(body)
    except (ValueError, RecursionError):
        body, problem = None, "not JSON"
    error = body.get("error") if isinstance(body, dict) else None
    if status >= 400 or error:
        raise ResponseError(f"Error code: {status} - {_words(error, content)}", status, headers, body)
    if problem:
        raise ResponseError(f"the response is {problem}: {_shown(content)}", status, headers, body)
    found: dict[str, Any] = body
    return found


def _json(content: bytes) -> Any:
    """What a body says; half a character, which the fast parser does not let pass, is mended."""
    try:
        return orjson.loads(content)
    except ValueError:
        return replace_surrogates(json.loads(content))


def _problem(body: object) -> str | None:
    """What keeps a body from being a chat completion."""
    if not isinstance(body, dict):
        return "no JSON object"
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices:
        return "no chat completion, for it has no choices"
    if not all(isinstance(choice, dict) and isinstance(choice.get("message"), dict) for choice in choices):
        return "no chat completion, for a choice has no message"
    return None


def _words(error: object, content: bytes) -> str:
    message = error.get("message") if isinstance(error, dict) else error
    return str(message) if message else _shown(content)


def _shown(content: bytes) -> str:
    return repr(content[:200].decode(errors="replace"))


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
    retry_policy = ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)
    return ClientSession(connector=connector, cookie_jar=DummyCookieJar(), timeout=retry_policy)


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
