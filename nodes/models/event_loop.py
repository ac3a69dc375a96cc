"""What is to be closed when an event loop ends, while that loop still can run something."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable


async def on_loop_end(close: Callable[[], Awaitable[None]]) -> None:
    """Have this awaited when the running event loop ends."""

    async def finish() -> None:
        _WAITING.discard(waiting)
        await close()

    waiting = _until_the_end(finish)
    _WAITING.add(waiting)
    await anext(waiting)


_WAITING: set[AsyncGenerator[None, None]] = set()


async def _until_the_end(close: Callable[[], Awaitable[None]]) -> AsyncGenerator[None, None]:
    """Once started, it waits at its ``yield`` until the loop shuts its generators down, which is when it closes."""
    try:
        yield
    finally:
        await close()
