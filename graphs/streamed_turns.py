"""Stream turns to the stream of the judge's own graph, to those of the wrappers around it, and to a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from langchain_core.runnables.config import set_config_context
from langgraph.config import get_config
from langgraph.runtime import get_runtime

from ..nodes.human import marks_of_wrappers
from ..state.transcript import Turn

Publish = Callable[[Any], None]

_outer: ContextVar[Publish | None] = ContextVar("outer", default=None)
"""Where the turns of a judge inside a wrapper or a run go, beside its own stream."""


def publisher(own: Publish) -> Publish:
    """Return what streams to ``own``, and to the wrappers and the run round the judge."""
    outer = _outer.get()
    if outer is None:
        return own

    def publish(event: Any) -> None:
        own(event)
        outer(event)

    return publish


@contextmanager
def heard_by(hear: Publish) -> Iterator[None]:
    """Hand the events of all judges that are run in this block to a function, as soon as they are there.

    ``stream_mode="custom"`` has a task of the event loop wait for such events at every step, which costs more than the
    steps themselves.
    """
    token = _outer.set(hear)
    try:
        yield
    finally:
        _outer.reset(token)


@contextmanager
def forwarded(mark: Callable[[Turn], Turn]) -> Iterator[None]:
    """Stream the turns of a judge that is run in this block from the graph whose node this is, each marked."""
    publish, here = publisher(get_runtime().stream_writer), get_config()

    def from_here(event: Any) -> None:
        # LangGraph finds out from the config at hand whose event it is, and the speaker's is that of the judge inside.
        with set_config_context(here) as context:
            context.run(publish, {**event, "turn": mark(event["turn"])})

    marks = marks_of_wrappers.set((mark, *marks_of_wrappers.get()))
    token = _outer.set(from_here)
    try:
        yield
    finally:
        _outer.reset(token)
        marks_of_wrappers.reset(marks)


def forward(event: Any) -> None:
    """Stream an event of a judge that is not in this process from the graph whose node it is asked by."""
    if outer := _outer.get():
        outer(event)
