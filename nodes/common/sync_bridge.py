"""Runs async code from sync code, even if an event loop is running, as in notebooks.

With this module, ``graph.invoke()`` works although every node is an async function.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, TypeVar

T = TypeVar("T")


@contextmanager
def set_for_block(variable: ContextVar[T], value: T) -> Iterator[None]:
    """Set a context variable for a ``with`` block; tasks that start inside inherit it."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def run_blocking(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on an event loop in a background thread and return its result.

    The whole process uses one loop, so that clients can reuse connections between calls. The
    caller's context variables apply inside.

    Raises:
        RuntimeError: the caller itself runs on that loop.

    >>> async def answer() -> int:
    ...     return 42
    >>> run_blocking(answer())
    42
    """
    loop = background_loop()
    running = None
    with suppress(RuntimeError):  # no loop runs
        running = asyncio.get_running_loop()
    if running is loop:
        # A coroutine that is never awaited would cause a warning when it is collected.
        work.close()
        raise RuntimeError(
            "a sync call inside an async call on the same loop would wait for itself: await it"
        )
    future = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return future.result()
    except BaseException:
        # Ctrl-C, for example. Cancel the work and wait for it, because it must release its
        # resources before the caller continues. A second Ctrl-C ends the wait.
        if future.cancel():
            asyncio.run_coroutine_threadsafe(_end_of(work), loop).result()
        raise


async def _end_of(work: Coroutine[Any, Any, Any]) -> None:
    """Wait until the task of a cancelled coroutine has ended."""
    if tasks := [task for task in asyncio.all_tasks() if task.get_coro() is work]:
        await asyncio.wait(tasks)


async def on_background_loop(work: Coroutine[Any, Any, T]) -> T:
    """Await a coroutine that runs on the loop of ``run_blocking``, from any event loop.

    The caller's context variables apply inside. If the caller is cancelled, so is the work.
    """
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, background_loop()))


@lru_cache(maxsize=1)
def background_loop() -> asyncio.AbstractEventLoop:
    """Return the event loop in a background thread that the whole process uses."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="jurygraph", daemon=True).start()
    return loop
