"""Let agents who are asked side by side end in peace: one that fails waits for the others before it says so.

LangGraph cancels all tasks of a step when one of them fails. Calls that are under way would be paid for and lost, and
asked again when the graph is resumed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime


class _Step:
    """Count the agents of one step of a graph that are still being asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.nobody_is_asked = asyncio.Event()

    def begin(self) -> None:
        self.asked += 1
        self.nobody_is_asked.clear()

    def end(self) -> None:
        self.asked -= 1
        if not self.asked:
            self.nobody_is_asked.set()


_STEPS: dict[str, _Step] = {}
"""The steps under way, by the checkpoint that each began with: its id is another one in every step of every run."""


@asynccontextmanager
async def side_by_side(runtime: Runtime[Any]) -> AsyncIterator[None]:
    """Hold back an exception of the block until all other blocks of the same step have ended."""
    key = runtime.execution_info.checkpoint_id if runtime.execution_info else ""
    step = _STEPS.setdefault(key, _Step())
    step.begin()
    failed: Exception | None = None
    try:
        yield
    except GraphBubbleUp:
        raise
    except Exception as error:
        failed = error
    finally:
        # The others of the step may not have begun yet, if this one failed without waiting for anything.
        if failed is not None and step.asked == 1:
            await asyncio.sleep(0)
        step.end()
        if not step.asked:
            _STEPS.pop(key, None)
    if failed is not None:
        await step.nobody_is_asked.wait()
        raise failed
