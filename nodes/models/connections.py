"""Give chat models the connections of the running event loop, or of a batch.

The connections of an async client belong to the event loop on which they were opened. On another
loop they fail or hang. ``.invoke()`` runs on its own loop in the background, every ``asyncio.run``
makes a new one, and a notebook has one more. LangChain's clients of OpenAI and Anthropic even share
connections among all objects. So each loop gets its own connections (``for_running_loop``), which
are closed when it ends. The requests of a batch go to a handler instead of the network
(``request_handler``). Redirects are followed only if judged texts and key stay with the same host
(``redirect_to_follow``).
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

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult
from yarl import URL

from .providers import client_of


def for_running_loop(chat: BaseChatModel, made_for_it: bool = False) -> BaseChatModel:
    """Return a chat model with the same parameters that can be called on the running event loop.

    For clients of OpenAI, Anthropic and Groq, each loop gets a copy with its own connections. Other
    clients may have been used on another loop, so their sync client is called in threads.

    Args:
        chat: the chat model.
        made_for_it: whether its own async client, unless shared, is used on this loop only.
    """
    if (client := _provider_client(chat)) is not None:
        proxy = _proxy(chat)
        loop = asyncio.get_running_loop()
        with _LOCK:
            copies = _OWN.setdefault(client, WeakKeyDictionary())
            if loop not in copies:
                package = import_module(type(client).__module__.partition(".")[0])
                options: dict[str, Any] = {"timeout": client.timeout, "event_hooks": HOOKS}
                http = package.DefaultAsyncHttpxClient(
                    **options, **({"proxy": proxy} if proxy else {})
                )
                copies[loop] = client.copy(http_client=http)
                close_with_loop(loop, http)
                finalize(client, _close_later, ref(loop), http).atexit = False
            own = copies[loop]
        if "_async_client" in chat.__dict__:
            # ChatAnthropic caches this property among the object's attributes.
            copied = chat.model_copy()
            copied.__dict__["_async_client"] = own
            return copied
        update = {"root_async_client": own} if hasattr(chat, "root_async_client") else {}
        return chat.model_copy(update={**update, "async_client": own.chat.completions})
    # Without an async client, LangChain would queue its calls for asyncio's few threads.
    if made_for_it and type(chat)._agenerate is not BaseChatModel._agenerate:
        return chat
    # LangChain's own ``_astream`` takes the sync stream in a thread.
    copied = _with_methods(chat, _agenerate=_generate_in_thread, _astream=BaseChatModel._astream)
    # The original object answers, because it may count its calls or have other state.
    object.__setattr__(copied, _ORIGINAL, chat)
    return copied


def http_clients(chat: BaseChatModel) -> list[Any]:
    """Return a chat model's own async HTTP clients (httpx), including a provider client's.

    From now on they follow only permitted redirects. The list is empty if every loop has its own
    connections.
    """
    if _provider_client(chat) is not None:
        return []
    # Gemini's client contains its async client.
    clients: list[Any] = [getattr(getattr(chat, "client", None), "aio", None)]
    clients += [getattr(chat, name, None) for name in ("async_client", "_async_client")]
    clients += [getattr(client, "_client", None) for client in clients]
    own = [client for client in clients if hasattr(client, "aclose")]
    for client in own:
        if (hooks := getattr(client, "event_hooks", None)) is not None:
            client.event_hooks = {kind: [*hooks.get(kind, ()), *HOOKS[kind]] for kind in HOOKS}
    return own


def _proxy(chat: BaseChatModel) -> str | None:
    field = client_of(type(chat)).proxy
    return getattr(chat, field, None) if field else None


def _provider_client(chat: BaseChatModel) -> Any | None:
    """Return the async provider client behind a chat model, if it can be copied."""
    # A caller's own HTTP client may do more than a new one, such as authenticate.
    if getattr(chat, "http_async_client", None) is not None and not _proxy(chat):
        return None
    client: Any = chat
    path = client_of(type(chat)).async_client
    if not path:
        return None
    for name in path.split("."):
        client = getattr(client, name, None)
    return client


_OWN: WeakKeyDictionary[Any, WeakKeyDictionary[asyncio.AbstractEventLoop, Any]] = (
    WeakKeyDictionary()
)
"""The copies of each provider's client (such as ``AsyncOpenAI``), one per loop, made when first
needed."""
# Reentrant, because making a client also registers it. Models are loaded in threads and called on
# several loops.
_LOCK = threading.RLock()


def _close_later(loop: ref[asyncio.AbstractEventLoop], http: Any) -> None:
    """Close the connections of a deleted chat model on their loop, if it still runs."""
    running = loop()
    if running is not None and running.is_running():
        asyncio.run_coroutine_threadsafe(http.aclose(), running)


# Closing with the loop


_TO_CLOSE: WeakKeyDictionary[Any, WeakSet[Any]] = WeakKeyDictionary()
SESSIONS: dict[asyncio.AbstractEventLoop, Any] = {}
"""The session of ``openai_fast`` for each loop."""
HELD: dict[asyncio.AbstractEventLoop, AsyncGenerator[None, None]] = {}
"""The loops whose clients are closed when they end, each with the generator that closes them.

A loop refers to its generators weakly. Without these references they would be collected, and so
finalized, long before the loop ends.
"""


def close_with_loop(loop: object, *clients: Any) -> None:
    """Close clients (``aclose``) when their event loop ends, if they still exist.

    Clients of httpx are registered once they have sent something. Closing an unused one loads
    modules, and a program in which modules load after an unhandled Ctrl-C does not end by that
    signal (Python 3.11 forgets it).
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
    """Have the clients of the running event loop closed when it ends; repeated calls do nothing."""
    loop = asyncio.get_running_loop()
    if loop not in HELD:
        HELD[loop] = _until_the_end(loop)
        await anext(HELD[loop])


async def _until_the_end(loop: asyncio.AbstractEventLoop) -> AsyncGenerator[None, None]:
    # asyncio has no hook for the end of a loop. But before a loop closes, it finalizes the async
    # generators started on it (``shutdown_asyncgens``), and their ``finally`` may still await.
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
    """Close the clients of loops that run in threads of their own until the program ends."""
    for loop in list(HELD):
        if loop.is_running():
            with suppress(TimeoutError):
                asyncio.run_coroutine_threadsafe(_close_all(loop), loop).result(timeout=2)


# Sync clients in threads


_ORIGINAL = "_original"


def _with_methods(chat: BaseChatModel, **methods: Callable[..., Any]) -> BaseChatModel:
    """Return a copy of a chat model with these methods replaced."""
    copied = chat.model_copy()
    object.__setattr__(copied, "__class__", _subclass(type(chat), **methods))
    return copied


@lru_cache
def _subclass(kind: type[BaseChatModel], **methods: Callable[..., Any]) -> type[BaseChatModel]:
    members = {**methods, "__module__": kind.__module__}
    made: type[BaseChatModel] = new_class(
        kind.__name__, (kind,), exec_body=lambda body: body.update(members)
    )
    return made


Messages = list[BaseMessage]
Stop = list[str] | None
RunManager = AsyncCallbackManagerForLLMRun | None
"""The arguments that LangChain passes to a chat model's ``_agenerate``."""


_Request = tuple[int, str]
"""The identity of a request: the model object and its input."""

LEFT_KEPT = 256
"""The number of abandoned requests that keep their replies; the oldest are forgotten first."""
# Each reply refers to its model, so that no new object gets the same identity.
_LEFT: OrderedDict[_Request, list[tuple[Future[ChatResult], BaseChatModel]]] = OrderedDict()

time_limit: ContextVar[asyncio.Timeout | None] = ContextVar("time_limit", default=None)
"""The time limit of the current attempt; a request that took too long is sent again."""


async def _generate_in_thread(
    self: BaseChatModel,
    messages: Messages,
    stop: Stop = None,
    run_manager: RunManager = None,
    **kwargs: Any,
) -> ChatResult:
    """Call the sync client in a daemon thread; there is no limit on concurrent threads.

    A thread cannot be ended. If the waiting graph is cancelled, the reply is stored for the next
    request with the same model and input, so that a resumed graph does not pay twice.
    """
    chat: BaseChatModel = vars(self)[_ORIGINAL]
    _bound_sync_clients(chat)
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
    except NotImplementedError:  # a class with async calls only
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
    # Otherwise a caller that stops waiting would cancel the request for all.
    future.set_running_or_notify_cancel()
    context = copy_context()
    context.run(_is_bounded.set, True)

    def run() -> None:
        try:
            result = context.run(work)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    # No pool: one of ``concurrent.futures`` would block the program's exit until the last reply.
    threading.Thread(target=run, name="jurygraph call", daemon=True).start()
    return future


# Requests that a handler answers

RequestHandler = Callable[[BaseChatModel, dict[str, Any]], Awaitable[dict[str, Any]]]
"""A function from the body of a request to that of its response; raises on network errors."""
request_handler: ContextVar[RequestHandler | None] = ContextVar("request_handler", default=None)
"""The handler of requests in this context; None for the network. A batch sets one for each task
that makes a call."""


def handled(chat: BaseChatModel) -> BaseChatModel:
    """Return a copy of a chat model whose requests go to the handler, if a handler is set.

    The class itself builds the requests and reads the replies.
    """
    if request_handler.get() is None or client_of(type(chat)).ask_through is None:
        return chat
    # A stream would bypass the handler.
    return _with_methods(
        chat.model_copy(update={"disable_streaming": True}), _agenerate=_ask_handler
    )


async def _answer(chat: BaseChatModel, body: dict[str, Any]) -> dict[str, Any]:
    handler = request_handler.get()
    assert handler is not None
    return await handler(chat, body)


async def _ask_handler(
    self: Any, messages: Messages, stop: Stop = None, **kwargs: Any
) -> ChatResult:
    kind: type[BaseChatModel] = type(self)
    ask_through = client_of(kind).ask_through
    assert ask_through is not None
    return await ask_through(self, partial(_answer, self), messages, stop, **kwargs)


# Redirects

MOST_REDIRECTS = 3
"""The maximum number of redirects of one request."""


def redirect_to_follow(status: int, asked: URL, headers: Mapping[str, str]) -> URL | None:
    """Return the address that a redirect leads to if it may be followed, else None.

    A 301, 302 or 303 turns a POST into a GET, whose answer is not a reply to the request. Another
    host is not the one that the user chose to read the texts. A redirect that is not followed is an
    error with its status.

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
    """Remove the address of a forbidden redirect, so that the client reports an error."""
    if response.has_redirect_location:
        asked = URL(str(response.request.url))
        if redirect_to_follow(response.status_code, asked, response.headers) is None:
            del response.headers["location"]


# The bodies of responses


async def _accept_bounded(request: Any) -> None:
    from .httpx_bodies import accept_bounded

    accept_bounded(request)


async def _bound_body(response: Any) -> None:
    from .httpx_bodies import bound_body

    bound_body(response)


HOOKS: Mapping[str, Any] = {"request": [_accept_bounded], "response": [_stop_redirect, _bound_body]}
"""For ``httpx.AsyncClient(event_hooks=...)``: restricts redirects and the size of bodies."""

_is_bounded: ContextVar[bool] = ContextVar("is_bounded", default=False)
"""Whether a request belongs to one of our calls; callers may use their client for other things."""


def _accept_bounded_in_call(request: Any) -> None:
    from .httpx_bodies import accept_bounded

    if _is_bounded.get():
        accept_bounded(request)


def _bound_body_in_call(response: Any) -> None:
    from .httpx_bodies import bound_body

    if _is_bounded.get():
        bound_body(response)


def _bound_sync_clients(chat: BaseChatModel) -> None:
    """Limit the size of response bodies in our calls through a caller's httpx client."""
    names = ("root_client", "client", "_client", "http_client", "_api_client", "_httpx_client")
    found: list[Any] = [chat]
    # From the chat model to the provider's client, from there to its HTTP client.
    for _ in range(3):
        found += [getattr(holder, name, None) for holder in found for name in names]
        found = [*{id(client): client for client in found if client is not None}.values()]
    for client in found:
        # By name, because httpx and httpx2 are different packages and neither is loaded here.
        if any(
            (kind.__name__, kind.__module__[:5]) == ("Client", "httpx")
            for kind in type(client).__mro__
        ):
            hooks = client.event_hooks
            if _bound_body_in_call not in hooks["response"]:
                asked = [*hooks["request"], _accept_bounded_in_call]
                client.event_hooks = {
                    "request": asked,
                    "response": [*hooks["response"], _bound_body_in_call],
                }
