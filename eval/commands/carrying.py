"""What commands that carry out runs have in common: the event loop, Ctrl-C, how to go on, exit codes."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import typer
from rich.console import Console

from ..running.stopping import sigterm_interrupts
from .common import ALL_JUDGED, BUDGET_REACHED, INTERRUPTED, SOME_FAILED

T = TypeVar("T")

GOES_ON = {
    "budget": "goes on with a higher limit",
    "provider": "goes on when that is mended",
    "journal": "goes on when that is mended",
    "disk": "goes on when there is room",
}


def run_async(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """On a fast event loop where there is one; what has been loaded by now is no garbage."""
    gc.collect()
    gc.freeze()
    with asyncio.Runner(loop_factory=_new_loop) as runner:
        return runner.run(work())


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


@contextmanager
def interruptible(told: str) -> Iterator[None]:
    """What Ctrl-C and SIGTERM are answered with as long as no loop is there to hear them."""
    try:
        with sigterm_interrupts():
            yield
    except KeyboardInterrupt:
        Console(stderr=True).print(told, soft_wrap=True)
        raise typer.Exit(INTERRUPTED) from None


def exit_code(stopped: str | None, failed: int) -> int:
    """How a command ends, by why it stopped and how many items have no verdict."""
    codes = {"budget": BUDGET_REACHED, "interrupted": INTERRUPTED}
    if stopped in codes:
        return codes[stopped]
    return SOME_FAILED if stopped or failed else ALL_JUDGED
