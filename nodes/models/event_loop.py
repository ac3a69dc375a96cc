"""Close connections when an event loop ends, while that loop can still run the closing."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable


async def on_loop_end(close: Callable[[], Awaitable[None]]) -> None:
    """Register a function that is awaited when the running event loop ends."""
    # asyncio offers no such hook. But before a loop closes, it finalizes the async generators that have been started
    # on it (``shutdown_asyncgens``), and their ``finally`` may still await.

    async def finish() -> None:
        _WAITING.discard(waiting)
        await close()

    waiting = _until_the_end(finish)
    _WAITING.add(waiting)
    await anext(waiting)


# The loop itself refers to its generators weakly: without these references they would be collected, and so finalized,
# long before the loop ends.
_WAITING: set[AsyncGenerator[None, None]] = set()


async def _until_the_end(close: Callable[[], Awaitable[None]]) -> AsyncGenerator[None, None]:
    """Wait at the ``yield`` until the loop shuts its generators down, then close."""
    try:
        yield
    finally:
        await close()
