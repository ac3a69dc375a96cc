"""When a run is to end before its work is done: nothing new begins, and what is in flight comes home."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any, Literal

from ...state.errors import StoppedError

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

Reason = Literal["budget", "interrupted", "provider", "journal", "disk"]


class StopSignal:
    """Whether a run is to end, and why.

    Attributes:
        reason: ``None`` as long as it goes on.
        explanation: the same in a sentence.
    """

    def __init__(self) -> None:
        self.reason: Reason | None = None
        self.explanation = ""
        self._asked = asyncio.Event()
        self._at_once = asyncio.Event()

    def ask(self, reason: Reason, explanation: str) -> None:
        """Have the run end; the first reason counts."""
        if self.reason is None:
            self.reason, self.explanation = reason, explanation
            self._asked.set()

    def ask_for(self, error: OSError, where: object) -> None:
        """Have the run end since something could not be written."""
        self.ask("disk", f"{error.filename or where}: {error.strerror or error}")

    def at_once(self) -> None:
        """Have it end without waiting for what is in flight."""
        self._at_once.set()

    @property
    def is_asked(self) -> bool:
        """Whether nothing new is to begin."""
        return self.reason is not None

    def check(self) -> None:
        """Before every call.

        Raises:
            StoppedError: it is not to be made.
        """
        if self.reason is not None:
            raise StoppedError(self.explanation)

    async def asked(self) -> None:
        """Wait until the run is to end."""
        await self._asked.wait()

    async def let_finish(self, work: Collection[asyncio.Task[Any]], seconds: float) -> None:
        """Wait for work that is under way; for so long at most, and not once it is to end at once."""
        at_once = asyncio.ensure_future(self._at_once.wait())
        finished = asyncio.ensure_future(asyncio.wait(work))
        either: set[asyncio.Future[Any]] = {at_once, finished}
        try:
            await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for waiting in either:
                waiting.cancel()


@contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """While inside, and no run is on, SIGTERM is what Ctrl-C is: ``KeyboardInterrupt``."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def signals_stop(stop: StopSignal) -> Iterator[None]:
    """While inside, Ctrl-C and SIGTERM end the run gently; the second time, at once.

    Should even that take long (a journal that cannot be written is waited for), the third time kills the process.
    """
    loop = asyncio.get_running_loop()

    def heard(name: str) -> None:
        again = stop.is_asked
        stop.ask("interrupted", f"stopped by {name}")
        if again:
            stop.at_once()
            for number in _SIGNALS:
                loop.remove_signal_handler(number)
                signal.signal(number, signal.SIG_DFL)

    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number in _SIGNALS:
        loop.add_signal_handler(number, heard, number.name)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)
