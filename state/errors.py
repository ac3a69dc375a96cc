"""Define the errors of jurygraph, split by who can fix them.

    JurygraphError
    ├── UsageError           the caller: a setting, a model name, a key, a file
    │   └── DataError        ... a line of a dataset; names file, line and field
    ├── ReplyError           the model: a reply that cannot be read, with its raw text
    ├── ModelCallError       the provider: a call that failed for good
    └── StoppedError         nobody needs to: the run was asked to end before this call

They are also ``ValueError`` or ``RuntimeError``: servers pass on the messages of built-in kinds of errors only.
Bad tasks and settings given from Python raise pydantic's own ``ValidationError``, which names the field. Keys and
control characters are taken out of every message (``redaction.py``), since it may quote what a provider has said.
"""

from __future__ import annotations

from typing import Literal

from .redaction import redact
from .transcript import Turn

ReplyFault = Literal["empty", "missing", "off_scale", "contradictory", "refused", "cut_off"]
"""Why a reply cannot be read; ``missing``: it does not state the value that was asked for."""


class JurygraphError(Exception):
    """Serve as the base of every error that jurygraph raises itself; its message holds no keys."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*(redact(one) if isinstance(one, str) else one for one in arguments))


class UsageError(JurygraphError, ValueError):
    """Raised for a mistake in what the caller gave, found before any model is called."""


class DataError(UsageError):
    """Raised for a dataset that cannot be used; the message names file, line and field."""


class ReplyError(JurygraphError, ValueError):
    """Raised for a model's reply that holds no usable value.

    Attributes:
        reply: the raw text of the reply.
        fault: what is wrong with it, in one word.
        problem: the same as one sentence, which a repair request quotes to the model.
        agent: the agent that gave the reply, where known.
        round: the round in which it did, where known.
        turn: the agent's turn without a value, where known; it holds what the reply cost.
    """

    def __init__(self, problem: str, reply: str, fault: ReplyFault = "missing") -> None:
        super().__init__(problem)
        self.problem = redact(problem)
        self.reply = reply
        self.fault: ReplyFault = fault
        self.agent: str | None = None
        self.round: int | None = None
        self.turn: Turn | None = None

    def __str__(self) -> str:
        who = f"{self.agent}, round {self.round}: " if self.agent is not None else ""
        # Both ends: a verdict stands at the end of a reply, a refusal at its beginning.
        # Redacted before it is cut, since half a key is no longer known for one.
        reply = redact(self.reply)
        shown = reply if len(reply) <= 400 else f"{reply[:200]} ... {reply[-180:]}"
        return f"{who}{self.problem} Raw reply: {shown!r}"


class ModelCallError(JurygraphError, RuntimeError):
    """Raised for a model call that the provider refused or that failed for good.

    Attributes:
        retryable: whether the same call may succeed later (rate limit, server error, lost connection, time-out).
        rate_limited: whether the provider asked for fewer calls.
        retry_after: seconds that the provider asked to wait for, where it did.
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
    """Raised where a run makes no more calls: its budget is spent, or it was interrupted.

    The item that was being judged has not failed; a resumed run goes on with it where it stopped.
    """
