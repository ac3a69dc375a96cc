"""The errors of jurygraph, split by who can mend them.

    JurygraphError
    ├── UsageError           the caller: a setting, a model name, a key, a file
    │   └── DataError        ... a line of a dataset; names file, line and field
    ├── ReplyError           the model: a reply that cannot be read, with its raw text
    ├── ModelCallError       the provider: a call that failed for good
    └── StoppedError         nobody: the run was to end before this call

They are also ``ValueError`` or ``RuntimeError``: servers show people the messages of the built-in kinds alone.
Bad tasks and settings given from Python raise pydantic's own ``ValidationError``, which names the field.
"""

from __future__ import annotations

from typing import Literal

from .transcript import Turn

ReplyFault = Literal["empty", "missing", "off_scale", "contradictory", "refused", "cut_off"]


class JurygraphError(Exception):
    """Base of every error that jurygraph raises itself."""


class UsageError(JurygraphError, ValueError):
    """Something the caller can mend before any model is called."""


class DataError(UsageError):
    """A dataset that cannot be used; the message names file, line and field."""


class ReplyError(JurygraphError, ValueError):
    """A model's reply that holds no usable value.

    Attributes:
        reply: the raw text of the reply.
        fault: what is wrong with it, one word.
        problem: the same as one sentence, fit to be quoted back to the model.
        agent: who gave the reply, where known.
        round: in which round, where known.
        turn: the agent's turn as it stands, where known: what was paid for it is not lost.
    """

    def __init__(self, problem: str, reply: str, fault: ReplyFault = "missing") -> None:
        super().__init__(problem)
        self.problem = problem
        self.reply = reply
        self.fault: ReplyFault = fault
        self.agent: str | None = None
        self.round: int | None = None
        self.turn: Turn | None = None

    def __str__(self) -> str:
        who = f"{self.agent}, round {self.round}: " if self.agent is not None else ""
        shown = self.reply if len(self.reply) <= 400 else f"{self.reply[:200]} ... {self.reply[-180:]}"
        return f"{who}{self.problem} Raw reply: {shown!r}"


class ModelCallError(JurygraphError, RuntimeError):
    """A model call that the provider refused or that failed for good.

    Attributes:
        retryable: whether the same call may succeed later: rate limits, server errors, lost connections, time-outs.
        rate_limited: whether the provider asked for fewer calls.
        retry_after: seconds after which it wants to be asked again, where it said so.
    """

    def __init__(
        self,
        message: str,
        *,
        retryable: bool = False,
        rate_limited: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.rate_limited = rate_limited
        self.retry_after = retry_after


class StoppedError(JurygraphError, RuntimeError):
    """No call is made any more, since the run is to stop: a budget is spent, or somebody wants it to end.

    Nothing is wrong with the item that was being judged: it goes on where it stood when the run is taken up again.
    """
