"""Let one chat model object serve several event loops, and sync and async code side by side.

The connections of an async client belong to the event loop on which they were opened, and used on another one they
fail or hang. ``.invoke()`` runs on a loop of its own in the background, every ``asyncio.run`` makes a new one, and a
notebook has one more; LangChain's clients of OpenAI and Anthropic even share connections among all objects.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from functools import lru_cache
from importlib import import_module
from types import new_class
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, WeakSet, finalize, ref

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult

from .event_loop import on_loop_end
from .redirects import HOOKS, stop_redirect

T = TypeVar("T")


def for_running_loop(chat: BaseChatModel, made_for_it: bool = False) -> BaseChatModel:
    """Return a chat model with the same parameters that can be called on the running event loop.

    Of OpenAI's, Anthropic's and Groq's clients every loop gets a copy with connections of its own. Where the caller
    has used any other one before cannot be known, so its sync client is called, in threads.

    Args:
        chat: the chat model.
        made_for_it: whether its own async client, unless shared, is used on this loop alone.
    """
    if (copied := _with_own_connections(chat, asyncio.get_running_loop())) is not None:
        return copied
    # Without an async client at all, LangChain would queue its calls for the few threads of asyncio.
    asynchronous = type(chat)._agenerate is not BaseChatModel._agenerate
    return chat if made_for_it and asynchronous else _in_threads(chat)


_LOCK = threading.Lock()


async def close(chat: BaseChatModel) -> None:
    """Close the connections of a chat model's own async client, unless every loop has connections of its own."""
    if _provider_client(chat) is None:
        for client in _http_clients(chat):
            await client.aclose()


def stop_redirects(chat: BaseChatModel) -> None:
    """Have a chat model's own async client follow no redirect that it should not; see ``redirects.py``."""
    for client in _http_clients(chat):
        if (hooks := getattr(client, "event_hooks", None)) is not None:
            client.event_hooks = {**hooks, "response": [*hooks.get("response", ()), stop_redirect]}


def _http_clients(chat: BaseChatModel) -> list[Any]:
    """Return the HTTP clients behind a chat model: httpx itself, or inside of a provider's client."""
    found = [getattr(chat, name, None) for name in ("async_client", "_async_client")]
    return [c for one in found for c in (one, getattr(one, "_client", None)) if hasattr(c, "aclose")]


def _provider_client(chat: BaseChatModel) -> Any | None:
    """Return the async client of OpenAI, Anthropic or Groq behind a chat model, of which copies can be made."""
    # A caller's own HTTP client may do what a new one would not, such as authenticate.
    if getattr(chat, "http_async_client", None) is not None and not getattr(chat, "openai_proxy", None):
        return None
    bases = {base.__name__ for base in type(chat).__mro__}
    if "BaseChatOpenAI" in bases:
        return getattr(chat, "root_async_client", None)
    if "ChatAnthropic" in bases:
        return getattr(chat, "_async_client", None)
    return getattr(getattr(chat, "async_client", None), "_client", None) if "ChatGroq" in bases else None


def _with_own_connections(chat: BaseChatModel, loop: asyncio.AbstractEventLoop) -> BaseChatModel | None:
    """Return a copy whose async client has connections of this loop alone, or None for classes not known."""
    client = _provider_client(chat)
    if client is None:
        return None
    proxy = getattr(chat, "openai_proxy", None) or getattr(chat, "anthropic_proxy", None)
    own = _own_client(client, loop, proxy)
    if "_async_client" in chat.__dict__:
        # Of ChatAnthropic: a cached property, which stands among the object's attributes once it was made.
        copied = chat.model_copy()
        copied.__dict__["_async_client"] = own
        return copied
    update = {"root_async_client": own} if hasattr(chat, "root_async_client") else {}
    return chat.model_copy(update={**update, "async_client": own.chat.completions})


_OWN: WeakKeyDictionary[Any, WeakKeyDictionary[asyncio.AbstractEventLoop, Any]] = WeakKeyDictionary()
_TO_CLOSE: WeakKeyDictionary[asyncio.AbstractEventLoop, WeakSet[Any]] = WeakKeyDictionary()


def _own_client(client: Any, loop: asyncio.AbstractEventLoop, proxy: str | None) -> Any:
    """Return the copy of a provider's client (``AsyncOpenAI`` and its like) for this loop, made when first needed."""
    with _LOCK:
        kept = _OWN.setdefault(client, WeakKeyDictionary())
        if loop not in kept:
            package = import_module(type(client).__module__.partition(".")[0])
            options = {"proxy": proxy} if proxy else {}
            http = package.DefaultAsyncHttpxClient(timeout=client.timeout, event_hooks=HOOKS, **options)
            kept[loop] = client.copy(http_client=http)
            _TO_CLOSE.setdefault(loop, WeakSet()).add(http)
            finalize(client, _close_later, ref(loop), http).atexit = False
        return kept[loop]


def _close_later(loop: ref[asyncio.AbstractEventLoop], http: Any) -> None:
    """Close connections whose chat model is gone, on the loop that they belong to, if it still runs."""
    running = loop()
    if running is not None and running.is_running():
        asyncio.run_coroutine_threadsafe(http.aclose(), running)


_CLOSING: WeakSet[asyncio.AbstractEventLoop] = WeakSet()


async def hold_connections() -> None:
    """Have the connections that were made for the running event loop closed when it ends; repeated calls do nothing."""
    loop = asyncio.get_running_loop()
    if loop not in _CLOSING:
        _CLOSING.add(loop)
        await on_loop_end(_close_own)


async def _close_own() -> None:
    for http in list(_TO_CLOSE.pop(asyncio.get_running_loop(), ())):
        await http.aclose()


def _in_threads(chat: BaseChatModel) -> BaseChatModel:
    copied = chat.model_copy()
    object.__setattr__(copied, "__class__", _threaded(type(chat)))
    # What answers is the object itself, which may count its calls or hold other state.
    object.__setattr__(copied, _ORIGINAL, chat)
    return copied


_ORIGINAL = "_original"


@lru_cache
def _threaded(kind: type[BaseChatModel]) -> type[BaseChatModel]:
    """Return a subclass whose async calls are the class's sync calls, each in a thread of its own."""

    async def _agenerate(
        self: BaseChatModel,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        chat: BaseChatModel = vars(self)[_ORIGINAL]
        told = run_manager.get_sync() if run_manager else None
        try:
            return await _in_thread(lambda: chat._generate(messages, stop=stop, run_manager=told, **kwargs))
        except NotImplementedError:  # a class that can be called asynchronously alone
            return await chat._agenerate(messages, stop=stop, run_manager=run_manager, **kwargs)

    # LangChain's own ``_astream`` takes the sync stream in a thread.
    members = {"_agenerate": _agenerate, "_astream": BaseChatModel._astream, "__module__": kind.__module__}
    made: type[BaseChatModel] = new_class(kind.__name__, (kind,), exec_body=lambda body: body.update(members))
    return made


async def _in_thread(work: Callable[[], T]) -> T:
    """Run a function in a thread that ends with it, and with the program; as many at a time as there are calls."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = copy_context()

    def settle(settled: Callable[[], None]) -> None:
        # Nobody waits any longer where the call was cancelled, or its loop has ended.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(lambda: None if future.done() else settled())

    def run() -> None:
        try:
            result = context.run(work)
        except BaseException as error:
            problem = error
            settle(lambda: future.set_exception(problem))
        else:
            settle(lambda: future.set_result(result))

    # No pool: that of ``concurrent.futures`` would keep the program from ending before the last reply has come.
    threading.Thread(target=run, name="jurygraph call", daemon=True).start()
    return await future
