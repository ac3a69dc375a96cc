"""Run coroutines on a virtual clock, so that waiting takes no time and load has no effect."""

import asyncio
import functools
import selectors
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

from jurygraph.nodes.models.scripted_model import ScriptedModel
from langchain_core.outputs import ChatResult
from pydantic import Field

from .processes import reached

P = ParamSpec("P")


async def others_have_begun() -> None:
    """Let everything that is ready on this event loop run, however long it takes."""
    for _ in range(200):
        await asyncio.sleep(0)


class InFlight(ScriptedModel):
    """Counts concurrent calls; each lasts until the expected number has begun."""

    expected: int = 1
    under_way: Counter[str] = Field(default_factory=Counter)
    most: Counter[str] = Field(default_factory=Counter)
    """By role."""
    most_at_once: int = 0

    async def _agenerate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        role = run_manager.metadata["role"]
        self.under_way[role] += 1
        self.most |= self.under_way
        self.most_at_once = max(self.most_at_once, self.under_way.total())
        # Sync runs have a thread and an event loop for each branch, so yielding to others is not
        # enough.
        await reached(lambda: self.most_at_once >= self.expected)
        await others_have_begun()
        self.under_way[role] -= 1
        return await super()._agenerate(messages, stop, run_manager, **kwargs)


class _SkippingSelector(selectors.DefaultSelector):
    """Moves the clock forward instead of waiting for the next timer."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        # Without a timer there is only a thread or a socket to wait for, and these need real time.
        ready = super().select(None if timeout is None else 0)
        if not ready and timeout:
            self.now += timeout
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer as soon as nothing else is left to do."""

    def __init__(self) -> None:
        self._skipping = _SkippingSelector()
        super().__init__(self._skipping)

    def time(self) -> float:
        """The seconds that the coroutines of this loop have waited."""
        return self._skipping.now


def in_virtual_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Make an asynchronous test that runs on such a loop."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            runner.run(test(*args, **kwargs))

    return run
