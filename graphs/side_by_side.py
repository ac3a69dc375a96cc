"""Let those who are asked side by side end in peace: one that fails waits for the others before it says so.

LangGraph cancels all tasks of a step when one of them fails. Calls that are under way would be paid for and lost, and
asked again when the graph is resumed.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from uuid import uuid4

from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime

GRACE = 0.2
"""Seconds that a failure in a sync run is held back beyond the others' end, in which their threads hand in results."""

_TASKS: dict[str, set[asyncio.Task[Any]]] = {}
"""Tasks under way by step: by the id of the checkpoint that it began with, another one in every step of every run."""
_THREADS: dict[str, int] = {}
_threads_changed = threading.Condition()


def _step(runtime: Runtime[Any]) -> str:
    # Without a checkpoint there is nothing by which others of the step are known: each is by itself.
    return runtime.execution_info.checkpoint_id if runtime.execution_info else uuid4().hex


@asynccontextmanager
async def side_by_side(runtime: Runtime[Any]) -> AsyncIterator[None]:
    """Hold back an exception of the block until the tasks of the same step that have begun are done."""
    step, me = _step(runtime), asyncio.current_task()
    assert me is not None
    asked = _TASKS.setdefault(step, set())
    asked.add(me)
    me.add_done_callback(lambda task: _ended(step, task))
    try:
        yield
    except GraphBubbleUp:
        raise
    except Exception:
        # Who fails is waited for by nobody; the others of the step may not have begun yet.
        asked.discard(me)
        await asyncio.sleep(0)
        while waited_for := {task for task in asked if not task.done()}:
            await asyncio.wait(waited_for, return_when=asyncio.FIRST_COMPLETED)
        raise


def _ended(step: str, task: asyncio.Task[Any]) -> None:
    asked = _TASKS.get(step, set())
    asked.discard(task)
    if not asked:
        _TASKS.pop(step, None)


@contextmanager
def threads_side_by_side(runtime: Runtime[Any]) -> Iterator[None]:
    """Hold back an exception of the block, as ``side_by_side`` does, in a run whose tasks are threads."""
    step = _step(runtime)
    with _threads_changed:
        _THREADS[step] = _THREADS.get(step, 0) + 1
    try:
        try:
            yield
        finally:
            # Whatever ends the block: nobody must wait for a thread that is gone.
            _leave(step)
    except GraphBubbleUp:
        raise
    except Exception:
        with _threads_changed:
            _threads_changed.wait_for(lambda: step not in _THREADS)
        time.sleep(GRACE)
        raise


def _leave(step: str) -> None:
    with _threads_changed:
        _THREADS[step] -= 1
        if not _THREADS[step]:
            del _THREADS[step]
        _threads_changed.notify_all()
