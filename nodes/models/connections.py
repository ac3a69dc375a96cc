"""Give chat models the connections that their calls go over: those of the running event loop, or of a batch.

The connections of an async client belong to the event loop on which they were opened, and used on another one they
fail or hang. ``.invoke()`` runs on a loop of its own in the background, every ``asyncio.run`` makes a new one, and a
notebook has one more; LangChain's clients of OpenAI and Anthropic even share connections among all objects. So each
loop gets connections of its own (``for_running_loop``), which are closed when it ends. The requests of a batch go to a
handler and not to the network (``request_handler``). Redirects are followed only where judged texts and key stay
with the same host (``redirect_to_follow``).
"""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from contextvars import ContextVar, copy_context
from functools import lru_cache, partial
from importlib import import_module
from types import new_class
from typing import Any
from weakref import WeakKeyDictionary, WeakSet, finalize, ref

import orjson
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult
from yarl import URL

from ...state.errors import UsageError
from .capabilities import is_a


def for_running_loop(chat: BaseChatModel, made_for_it: bool = False) -> BaseChatModel:
    """Return a chat model with the same parameters that can be called on the running event loop.

    Of OpenAI's, Anthropic's and Groq's clients every loop gets a copy with connections of its own. Where the caller
    has used any other one before cannot be known, so its sync client is called, in threads.

    Args:
        chat: the chat model.
        made_for_it: whether its own async client, unless shared, is used on this loop alone.
    """
    if (client := _provider_client(chat)) is not None:
        proxy = getattr(chat, "openai_proxy", None) or getattr(chat, "anthropic_proxy", None)
        loop = asyncio.get_running_loop()
        with _LOCK:
            copies = _OWN.setdefault(client, WeakKeyDictionary())
            if loop not in copies:
                package = import_module(type(client).__module__.partition(".")[0])
                options: dict[str, Any] = {"timeout": client.timeout, "event_hooks": REDIRECT_HOOKS}
                http = package.DefaultAsyncHttpxClient(**options, **({"proxy": proxy} if proxy else {}))
                copies[loop] = client.copy(http_client=http)
                close_with_loop(loop, http)
                finalize(client, _close_later, ref(loop), http).atexit = False
            own = copies[loop]
        if "_async_client" in chat.__dict__:
            # Of ChatAnthropic: a cached property, which stands among the object's attributes once it was made.
            copied = chat.model_copy()
            copied.__dict__["_async_client"] = own
            return copied
        update = {"root_async_client": own} if hasattr(chat, "root_async_client") else {}
        return chat.model_copy(update={**update, "async_client": own.chat.completions})
    # Without an async client at all, LangChain would queue its calls for the few threads of asyncio.
    if made_for_it and type(chat)._agenerate is not BaseChatModel._agenerate:
        return chat
    # LangChain's own ``_astream`` takes the sync stream in a thread.
    copied = _with_methods(chat, _agenerate=_generate_in_thread, _astream=BaseChatModel._astream)
    # What answers is the object itself, which may count its calls or hold other state.
    object.__setattr__(copied, _ORIGINAL, chat)
    return copied


def http_clients(chat: BaseChatModel) -> list[Any]:
    """Return the async HTTP clients that are a chat model's own: httpx itself, or inside of a provider's client.

    From now on they follow no redirect that they should not. There are none where every loop has connections of its
    own.
    """
    if _provider_client(chat) is not None:
        return []
    # Gemini's client has its asynchronous half inside.
    clients: list[Any] = [getattr(getattr(chat, "client", None), "aio", None)]
    clients += [getattr(chat, name, None) for name in ("async_client", "_async_client")]
    clients += [getattr(client, "_client", None) for client in clients]
    own = [client for client in clients if hasattr(client, "aclose")]
    for client in own:
        if (hooks := getattr(client, "event_hooks", None)) is not None:
            client.event_hooks = {**hooks, "response": [*hooks.get("response", ()), _stop_redirect]}
    return own


def _provider_client(chat: BaseChatModel) -> Any | None:
    """Return the async client of OpenAI, Anthropic or Groq behind a chat model, of which copies can be made."""
    # A caller's own HTTP client may do what a new one would not, such as authenticate.
    if getattr(chat, "http_async_client", None) is not None and not getattr(chat, "openai_proxy", None):
        return None
    if is_a(chat, "BaseChatOpenAI"):
        return getattr(chat, "root_async_client", None)
    if is_a(chat, "ChatAnthropic"):
        return getattr(chat, "_async_client", None)
    return getattr(getattr(chat, "async_client", None), "_client", None) if is_a(chat, "ChatGroq") else None


_OWN: WeakKeyDictionary[Any, WeakKeyDictionary[asyncio.AbstractEventLoop, Any]] = WeakKeyDictionary()
"""Of each provider's client (``AsyncOpenAI`` and its like) the copies, one for each loop, made when first needed."""
# Reentrant, since what is made is registered inside; models are loaded in threads, and called on several loops.
_LOCK = threading.RLock()


def _close_later(loop: ref[asyncio.AbstractEventLoop], http: Any) -> None:
    """Close connections whose chat model is gone, on the loop that they belong to, if it still runs."""
    running = loop()
    if running is not None and running.is_running():
        asyncio.run_coroutine_threadsafe(http.aclose(), running)


# Closing with the loop


_TO_CLOSE: WeakKeyDictionary[Any, WeakSet[Any]] = WeakKeyDictionary()
SESSIONS: dict[asyncio.AbstractEventLoop, Any] = {}
"""The session of ``openai_fast`` that each loop has."""
HELD: dict[asyncio.AbstractEventLoop, AsyncGenerator[None, None]] = {}
"""The loops whose clients are closed when they end, each with the generator that does so.

A loop itself refers to its generators weakly: without these references they would be collected, and so finalized,
long before the loop ends.
"""


def close_with_loop(loop: object, *clients: Any) -> None:
    """Have clients closed (``aclose``) when their event loop ends, as far as they still exist.

    Those of httpx are as soon as they have sent something. To close one that has not loads modules; and a program in
    which modules load after an unhandled Ctrl-C does not end by that signal (Python 3.11 forgets it).
    """
    for client in clients:
        if (hooks := getattr(client, "event_hooks", None)) is None:
            _close_at_the_end_of(loop, client)
        else:
            on_request = [*hooks.get("request", ()), partial(_once_used, loop, ref(client))]
            client.event_hooks = {**hooks, "request": on_request}


async def _once_used(loop: object, client: ref[Any], _request: object) -> None:
    _close_at_the_end_of(loop, client())


def _close_at_the_end_of(loop: object, client: object) -> None:
    with _LOCK:
        _TO_CLOSE.setdefault(loop, WeakSet()).add(client)


async def hold_connections() -> None:
    """Have the clients of the running event loop closed when it ends, and not after it; repeated calls do nothing."""
    loop = asyncio.get_running_loop()
    if loop not in HELD:
        HELD[loop] = _until_the_end(loop)
        await anext(HELD[loop])


async def _until_the_end(loop: asyncio.AbstractEventLoop) -> AsyncGenerator[None, None]:
    # asyncio has no hook for its end. But before a loop closes, it finalizes the async generators that have been
    # started on it (``shutdown_asyncgens``), and their ``finally`` may still await.
    try:
        yield
    finally:
        HELD.pop(loop, None)
        await _close_all(loop)


async def _close_all(loop: asyncio.AbstractEventLoop) -> None:
    if (session := SESSIONS.pop(loop, None)) is not None:
        await session.close()
    for client in list(_TO_CLOSE.pop(loop, ())):
        await client.aclose()


@atexit.register
def _close_at_exit() -> None:
    """Close the clients of loops that run in threads of their own for as long as the program does."""
    for loop in list(HELD):
        if loop.is_running():
            with suppress(TimeoutError):
                asyncio.run_coroutine_threadsafe(_close_all(loop), loop).result(timeout=2)


# Sync clients in threads


_ORIGINAL = "_original"


def _with_methods(chat: BaseChatModel, **methods: Callable[..., Any]) -> BaseChatModel:
    """Return a copy of a chat model with these methods in the place of its own."""
    copied = chat.model_copy()
    object.__setattr__(copied, "__class__", _subclass(type(chat), **methods))
    return copied


@lru_cache
def _subclass(kind: type[BaseChatModel], **methods: Callable[..., Any]) -> type[BaseChatModel]:
    members = {**methods, "__module__": kind.__module__}
    made: type[BaseChatModel] = new_class(kind.__name__, (kind,), exec_body=lambda body: body.update(members))
    return made


Messages = list[BaseMessage]
Stop = list[str] | None
RunManager = AsyncCallbackManagerForLLMRun | None
"""What LangChain passes to a chat model's ``_agenerate``."""


_Request = tuple[int, str]
"""Identifies what a model object was asked: the object and the request."""

LEFT_KEPT = 256
"""So many different requests that were left by their graph keep their replies; beyond, the earliest are forgotten."""
# With each reply its model, so that no other one has its identity.
_LEFT: OrderedDict[_Request, list[tuple[Future[ChatResult], BaseChatModel]]] = OrderedDict()

time_limit: ContextVar[asyncio.Timeout | None] = ContextVar("time_limit", default=None)
"""The limit on the attempt that is made here: a request that took too long is sent again, and not waited for."""


async def _generate_in_thread(
    self: BaseChatModel, messages: Messages, stop: Stop = None, run_manager: RunManager = None, **kwargs: Any
) -> ChatResult:
    """Call the sync client in a thread that ends with it, and with the program; as many at a time as there are calls.

    A thread cannot be ended. Where the graph that waits for it is cancelled, its reply is kept for the next who asks
    the model the same: the graph when it is resumed, so that nothing is paid for twice.
    """
    chat: BaseChatModel = vars(self)[_ORIGINAL]
    manager = run_manager.get_sync() if run_manager else None
    asked = [(message.type, message.content) for message in messages]
    request: _Request = id(chat), repr((asked, stop, sorted(kwargs.items())))
    with _LOCK:
        left = _LEFT.get(request, [])
        future = left.pop()[0] if left else None
        if not left:
            _LEFT.pop(request, None)
    if future is None or (future.done() and future.exception() is not None):
        future = _begun(lambda: chat._generate(messages, stop=stop, run_manager=manager, **kwargs))
    try:
        return await asyncio.wrap_future(future)
    except NotImplementedError:  # a class that can be called asynchronously alone
        return await chat._agenerate(messages, stop=stop, run_manager=run_manager, **kwargs)
    except asyncio.CancelledError:
        if (limit := time_limit.get()) is None or not limit.expired():
            with _LOCK:
                _LEFT.setdefault(request, []).append((future, chat))
                if len(_LEFT) > LEFT_KEPT:
                    _LEFT.popitem(last=False)
        raise


def _begun(work: Callable[[], ChatResult]) -> Future[ChatResult]:
    future: Future[ChatResult] = Future()
    # Otherwise who stops waiting would cancel it for all.
    future.set_running_or_notify_cancel()
    context = copy_context()

    def run() -> None:
        try:
            result = context.run(work)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    # No pool: that of ``concurrent.futures`` would keep the program from ending before the last reply has come.
    threading.Thread(target=run, name="jurygraph call", daemon=True).start()
    return future


# Requests that a handler answers

RequestHandler = Callable[[BaseChatModel, dict[str, Any]], Awaitable[dict[str, Any]]]
"""Takes the body of a request; returns that of the response, or raises what the network would."""
request_handler: ContextVar[RequestHandler | None] = ContextVar("request_handler", default=None)
"""The handler of all requests made here; None where they go to the network. Batches set one for each call's task."""


def handled(chat: BaseChatModel) -> BaseChatModel:
    """Return a copy of Anthropic's or Gemini's chat model that asks the handler, where there is one here.

    Its requests and replies are made and read by the class itself; OpenAI's asks the handler anyway.
    """
    # By a class's name, so that no provider's package needs to be imported for it.
    for name, ask in (("ChatAnthropic", _ask_anthropic), ("ChatGoogleGenerativeAI", _ask_gemini)):
        if request_handler.get() is not None and is_a(chat, name):
            # A stream would go past the handler.
            return _with_methods(chat.model_copy(update={"disable_streaming": True}), _agenerate=ask)
    return chat


def request_body(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a request; a copy, since the request may go to another server of the model as well."""
    # ``extra_body`` is no field of the API: the client merges it into the body, and so does this.
    body = {key: value for key, value in payload.items() if key != "extra_body"}
    return body | (payload.get("extra_body") or {})


async def _answer(chat: BaseChatModel, body: dict[str, Any]) -> dict[str, Any]:
    handler = request_handler.get()
    assert handler is not None
    return await handler(chat, body)


async def _ask_anthropic(self: Any, messages: Messages, stop: Stop = None, **kwargs: Any) -> ChatResult:
    from anthropic.types import Message

    body = request_body(self._get_request_payload(messages, stop=stop, **kwargs))
    body.pop("stream", None)
    if other := sorted(body.keys() & {"betas", "extra_headers", "extra_query", "timeout"}):
        raise UsageError(f"{self.model} is used with {', '.join(other)}, which a batch request cannot have")
    result: ChatResult = self._format_output(Message.construct(**await _answer(self, body)), **kwargs)
    return result


async def _ask_gemini(self: Any, messages: Messages, stop: Stop = None, **kwargs: Any) -> ChatResult:
    from google.genai.types import GenerateContentResponse, InlinedRequest
    from langchain_google_genai.chat_models import _response_to_result

    request = self._prepare_request(messages, stop=stop, **{"cached_content": self.cached_content, **kwargs})
    # How the client is to send it is no part of the request.
    request["config"] = request["config"].model_copy(update={"http_options": None})
    body = await _answer(self, InlinedRequest(**request).model_dump(mode="json", exclude_none=True))
    # As JSON, since bytes are text in it.
    return _response_to_result(GenerateContentResponse.model_validate_json(orjson.dumps(body)))


# Redirects

MOST_REDIRECTS = 3
"""Redirects of one request, at most."""


def redirect_to_follow(status: int, asked: URL, headers: Mapping[str, str]) -> URL | None:
    """Return the address that a redirect leads to where it may be followed, else None.

    A 301, 302 or 303 turns a POST into a GET, whose answer is no reply to what was asked; on another host, nobody has
    chosen who reads the texts. Where a redirect is not followed, the response is an error with its status.

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


async def _stop_redirect(response: Any) -> None:
    """Take the address out of a response that redirects where it may not, so that its client sees an error."""
    if response.has_redirect_location:
        asked = URL(str(response.request.url))
        if redirect_to_follow(response.status_code, asked, response.headers) is None:
            del response.headers["location"]


REDIRECT_HOOKS: Mapping[str, Any] = {"response": [_stop_redirect]}
"""For ``httpx.AsyncClient(event_hooks=...)``."""
