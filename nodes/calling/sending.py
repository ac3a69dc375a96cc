"""Sending a call: through whatever a run has set up around its calls, else straight to the provider."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar

from .attempts import attempt
from .calls import Call, Reply, Send
from .persevering import PATIENCE, persevere, timed


class Around:
    """What every model call of a run passes through: a journal, a limiter, a budget. This one does nothing."""

    async def __call__(self, call: Call, send: Send) -> Reply:
        """Answer the call; ``send`` is one attempt at the provider."""
        return await persevere(call, timed(send, PATIENCE.timeout))

    def disown(self, calls: Sequence[Call]) -> None:
        """Hear that the replies to these calls could not be used: who asks again wants another one."""


around_calls: ContextVar[Around | None] = ContextVar("around_calls", default=None)
"""Set by whoever runs many graphs; holds for all that is called inside."""

_ALONE = Around()


async def send(call: Call) -> Reply:
    """Call the model.

    Raises:
        NotTakenError: the provider gives no log-probabilities, or no several replies to one request.
        ModelCallError: the provider refused the call, or it failed for good.
        StoppedError: the run is to make no calls any more.
    """
    return await (around_calls.get() or _ALONE)(call, attempt)


def disown(calls: Sequence[Call]) -> None:
    """Say that the replies to these calls could not be used."""
    (around_calls.get() or _ALONE).disown(calls)
