"""The early end of a run: no new calls begin; calls in flight finish and are stored."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Collection, Coroutine, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Literal

from ....state.errors import StoppedError
from ....state.redaction import redact

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

Reason = Literal["budget", "interrupted", "provider", "journal", "disk", "worker"]


class StopSignal:
    """Contains whether a run is to end early, and why.

    Attributes:
        reason: ``None`` while the run continues.
        explanation: the reason as a sentence for humans.
    """

    def __init__(self) -> None:
        self.reason: Reason | None = None
        self.explanation = ""
        self._asked = asyncio.Event()
        self._at_once = asyncio.Event()

    def ask(self, reason: Reason, explanation: str) -> None:
        """Request the end of the run; only the first reason is stored."""
        if self.reason is None:
            self.reason = reason
            self.explanation = redact(explanation)
            self._asked.set()

    def ask_for(self, error: OSError, where: object) -> None:
        """Request the end of the run since something could not be written."""
        self.ask("disk", f"{error.filename or where}: {error.strerror or error}")

    def take_back(self) -> None:
        """Withdraw the request to end: its work has ended, and the next work has its own budget."""
        self.reason = None
        self.explanation = ""
        self._asked.clear()

    def at_once(self) -> None:
        """Request the end of the run without waiting for calls in flight."""
        self._at_once.set()

    @property
    def is_asked(self) -> bool:
        """Whether the end of the run was requested, so that nothing new may begin."""
        return self.reason is not None

    def check(self) -> None:
        """Check that a call may still be made.

        Raises:
            StoppedError: the end of the run was requested.
        """
        if self.reason is not None:
            raise StoppedError(self.explanation)

    async def asked(self) -> None:
        """Wait until the end of the run is requested."""
        await self._asked.wait()

    async def cut_short(self, work: Coroutine[Any, Any, None]) -> None:
        """Do the work; cancel it as soon as the end of the run is requested."""
        task = asyncio.ensure_future(work)
        await _first_of(task, self.asked())
        # Awaited in any case, so that an error of the work is raised here.
        with suppress(asyncio.CancelledError):
            await task

    async def let_finish(self, work: Collection[asyncio.Task[Any]], seconds: float) -> None:
        """Wait until the work is done, the seconds have passed, or the run must end at once."""
        # Only the waiting is cancelled: `asyncio.wait` leaves the work itself running.
        await _first_of(asyncio.wait(work), self._at_once.wait(), seconds=seconds)


async def _first_of(*awaited: Awaitable[Any], seconds: float | None = None) -> None:
    """Wait until one of these has ended, at most this number of seconds; cancel the others."""
    either = {*map(asyncio.ensure_future, awaited)}
    try:
        await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for waiting in either:
            waiting.cancel()


@contextmanager
def signals_interrupt() -> Iterator[None]:
    """Make Ctrl-C and SIGTERM raise ``KeyboardInterrupt``, for code outside of an event loop."""
    with ExitStack() as stack:
        for number in _SIGNALS:
            stack.callback(signal.signal, number, before := signal.getsignal(number))
            if before != signal.SIG_IGN:
                # Python's own handler of SIGINT raises exactly this; asyncio replaces no other
                # handler.
                signal.signal(number, signal.default_int_handler)
        yield


@contextmanager
def signals_stop(stop: StopSignal) -> Iterator[None]:
    """Make Ctrl-C and SIGTERM request the end of the run; the second time, at once.

    The third time they kill the process, in case even this takes long: the run waits for a journal
    that cannot be written.
    """
    loop = asyncio.get_running_loop()

    def on_signal(name: str) -> None:
        again = stop.is_asked
        stop.ask("interrupted", f"stopped by {name}")
        if again:
            stop.at_once()
            for number in _SIGNALS:
                # For SIGINT the loop restores Python's handler, which raises KeyboardInterrupt and
                # kills nothing.
                loop.remove_signal_handler(number)
                signal.signal(number, signal.SIG_DFL)

    with ExitStack() as stack:
        for number in _SIGNALS:
            stack.callback(signal.signal, number, signal.getsignal(number))
            loop.add_signal_handler(number, on_signal, number.name)
            stack.callback(loop.remove_signal_handler, number)
        yield
