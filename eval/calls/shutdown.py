"""End a run early: nothing new begins, and calls in flight finish and are kept."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Collection, Coroutine, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Literal

from ...state.errors import StoppedError
from ...state.redaction import redact

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

Reason = Literal["budget", "interrupted", "provider", "journal", "disk", "worker"]


class StopSignal:
    """Holds whether a run is to end early, and why.

    Attributes:
        reason: ``None`` while the run goes on.
        explanation: the reason as a sentence for people.
    """

    def __init__(self) -> None:
        self.reason: Reason | None = None
        self.explanation = ""
        self._asked = asyncio.Event()
        self._at_once = asyncio.Event()

    def ask(self, reason: Reason, explanation: str) -> None:
        """Ask the run to end; only the first reason is kept."""
        if self.reason is None:
            self.reason, self.explanation = reason, redact(explanation)
            self._asked.set()

    def ask_for(self, error: OSError, where: object) -> None:
        """Ask the run to end since something could not be written."""
        self.ask("disk", f"{error.filename or where}: {error.strerror or error}")

    def take_back(self) -> None:
        """Take back that the run is to end: what it was for has ended, and what follows has a budget of its own."""
        self.reason, self.explanation = None, ""
        self._asked.clear()

    def at_once(self) -> None:
        """Ask the run to end without waiting for calls in flight."""
        self._at_once.set()

    @property
    def is_asked(self) -> bool:
        """Whether the run was asked to end, so that nothing new may begin."""
        return self.reason is not None

    def check(self) -> None:
        """Check that a call may still be made.

        Raises:
            StoppedError: the run was asked to end.
        """
        if self.reason is not None:
            raise StoppedError(self.explanation)

    async def asked(self) -> None:
        """Wait until the run is asked to end."""
        await self._asked.wait()

    async def cut_short(self, work: Coroutine[Any, Any, None]) -> None:
        """Do the work; cancel it as soon as the run is asked to end."""
        task = asyncio.ensure_future(work)
        await _first_of(task, self.asked())
        # Awaited in any case, so that an error of the work is raised here.
        with suppress(asyncio.CancelledError):
            await task

    async def let_finish(self, work: Collection[asyncio.Task[Any]], seconds: float) -> None:
        """Wait until the work is done, for so many seconds, or until the run is asked to end at once."""
        # Only the waiting is cancelled: `asyncio.wait` leaves the work itself running.
        await _first_of(asyncio.wait(work), self._at_once.wait(), seconds=seconds)


async def _first_of(*awaited: Awaitable[Any], seconds: float | None = None) -> None:
    """Wait until one of these has ended, for so many seconds at most, and cancel the others."""
    either = {*map(asyncio.ensure_future, awaited)}
    try:
        await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for waiting in either:
            waiting.cancel()


@contextmanager
def signals_interrupt() -> Iterator[None]:
    """Make Ctrl-C and SIGTERM raise ``KeyboardInterrupt``, for code that runs outside of an event loop."""
    with ExitStack() as stack:
        for number in _SIGNALS:
            stack.callback(signal.signal, number, before := signal.getsignal(number))
            if before != signal.SIG_IGN:
                # Python's own for SIGINT, which raises just that; asyncio replaces no other.
                signal.signal(number, signal.default_int_handler)
        yield


@contextmanager
def signals_stop(stop: StopSignal) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM ask the run to end; the second time, at once.

    The third time they kill the process, in case even that takes long: a journal that cannot be written is waited for.
    """
    loop = asyncio.get_running_loop()

    def on_signal(name: str) -> None:
        again = stop.is_asked
        stop.ask("interrupted", f"stopped by {name}")
        if again:
            stop.at_once()
            for number in _SIGNALS:
                # For SIGINT the loop puts back Python's handler, which raises KeyboardInterrupt and kills nothing.
                loop.remove_signal_handler(number)
                signal.signal(number, signal.SIG_DFL)

    with ExitStack() as stack:
        for number in _SIGNALS:
            stack.callback(signal.signal, number, signal.getsignal(number))
            loop.add_signal_handler(number, on_signal, number.name)
            stack.callback(loop.remove_signal_handler, number)
        yield
