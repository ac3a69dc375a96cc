"""Run async code from sync code, also where an event loop is already running (notebooks); set context for a block.

This is how ``graph.invoke()`` works although every node is an async function.
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
    """Set a context variable for the length of a ``with`` block; tasks that are started inside inherit it."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def run_blocking(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on an event loop in a background thread, wait for it, and return its result.

    One loop serves the whole process, so that clients keep their connections between calls. The caller's
    context variables hold inside.

    Raises:
        RuntimeError: the caller itself runs on that loop.

    >>> async def answer() -> int:
    ...     return 42
    >>> run_blocking(answer())
    42
    """
    loop = _background_loop()
    running = None
    with suppress(RuntimeError):  # no loop runs
        running = asyncio.get_running_loop()
    if running is loop:
        # A coroutine that is never awaited would warn of that when it is collected.
        work.close()
        problem = "a sync call inside an async call on the same loop would wait for itself"
        raise RuntimeError(f"{problem}: await it")
    future = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return future.result()
    except BaseException:
        # Ctrl-C, for example. The work must release what it holds before the caller goes on; so it is cancelled and
        # waited for. A second Ctrl-C ends the wait.
        if future.cancel():
            asyncio.run_coroutine_threadsafe(_end_of(work), loop).result()
        raise


async def _end_of(work: Coroutine[Any, Any, Any]) -> None:
    """Wait until the task of a cancelled coroutine has ended."""
    if tasks := [task for task in asyncio.all_tasks() if task.get_coro() is work]:
        await asyncio.wait(tasks)


@lru_cache(maxsize=1)
def _background_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="jurygraph", daemon=True).start()
    return loop
