"""Stream turns to the stream of the judge's own graph, and to those of the wrappers around it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from langchain_core.runnables.config import set_config_context
from langgraph.config import get_config
from langgraph.runtime import get_runtime

from ..state.transcript import Turn

Publish = Callable[[Any], None]

_outer: ContextVar[Publish | None] = ContextVar("outer", default=None)
"""Where the turns of a judge inside a wrapper go, beside its own stream."""


def publisher(own: Publish) -> Publish:
    """Return what streams to ``own``, and to the wrappers round the judge."""
    outer = _outer.get()
    if outer is None:
        return own

    def publish(event: Any) -> None:
        own(event)
        outer(event)

    return publish


@contextmanager
def forwarded(mark: Callable[[Turn], Turn]) -> Iterator[None]:
    """Stream the turns of a judge that is run in this block from the graph whose node this is, each marked."""
    publish, here = publisher(get_runtime().stream_writer), get_config()

    def from_here(event: Any) -> None:
        # LangGraph finds out from the config at hand whose event it is, and the speaker's is that of the judge inside.
        with set_config_context(here) as context:
            context.run(publish, {**event, "turn": mark(event["turn"])})

    token = _outer.set(from_here)
    try:
        yield
    finally:
        _outer.reset(token)


def forward(event: Any) -> None:
    """Stream an event of a judge that is not in this process from the graph whose node it is asked by."""
    if outer := _outer.get():
        outer(event)
