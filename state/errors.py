"""Define the errors of jurygraph, split by who can fix them.

    JurygraphError
    ├── UsageError           the caller: a setting, a model name, a key, a file
    │   ├── InputError       ... a task, an aspect or a setting that cannot be so; names the field
    │   └── DataError        ... a line of a dataset; names file, line and field
    ├── ReplyError           the model: a reply that cannot be read, with its raw text
    ├── ModelCallError       the provider: a call that failed for good
    │   ├── ContextOverflowError ... since the prompt does not fit into the model's context
    │   └── TransientCallError   ... or that may succeed later
    └── StoppedError         nobody needs to: the run was asked to end before this call

They are also ``ValueError`` or ``RuntimeError``: servers pass on the messages of built-in kinds of errors only.
What may succeed later is a ``ConnectionError`` too, which LangGraph's ``RetryPolicy`` tries again by default.
``InputError`` is pydantic's ``ValidationError`` as well, and has its ``errors()``.
Keys and control characters are taken out of every message (``redaction.py``), since it may quote what others have said.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from .redaction import redact, redact_all
from .transcript import Turn

ReplyFault = Literal["empty", "missing", "off_scale", "contradictory", "refused", "filtered", "cut_off"]
"""Why a reply cannot be read; ``missing``: it does not state the value that was asked for."""


class JurygraphError(Exception):
    """Serve as the base of every error that jurygraph raises itself; its message holds no keys."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*(redact(given) if isinstance(given, str) else given for given in arguments))


class UsageError(JurygraphError, ValueError):
    """Raised for a mistake in what the caller gave, found before any model is called."""


class Fault(NamedTuple):
    """Says what is wrong with one field of what the caller gave.

    Attributes:
        kind: pydantic's name for this type of fault, such as ``missing``.
        where: the names and indices that lead to the field; empty for the whole.
        words: what is wrong; they follow the field's name.
        value: what was given.
    """

    kind: str
    where: tuple[str | int, ...]
    words: str
    value: Any = None

    def redacted(self) -> Fault:
        """Return the same fault without keys, whose fields may be named like one."""
        name = str(self.where[-1]) if self.where else ""
        return self._replace(words=redact(self.words), value=redact_all({name: self.value})[name])

    def __str__(self) -> str:
        # A check of our own that pydantic called has a whole sentence to say.
        stop = ": " if self.kind == "value_error" else " "
        return f"{'.'.join(map(str, self.where))}{stop}{self.words}" if self.where else self.words


class InputError(UsageError, ValidationError):
    """Raised for a task, an aspect or a setting that cannot be so; names the field and the values that it takes.

    Attributes:
        faults: what is wrong, field by field.
    """

    faults: tuple[Fault, ...] = ()

    @classmethod
    def from_faults(cls, title: str, faults: Iterable[Fault]) -> InputError:
        """Make the error of some faults of one object; ``title`` is what the object is called."""
        redacted = tuple(fault.redacted() for fault in faults)
        kinds = [PydanticCustomError(fault.kind, "{words}", {"words": fault.words}) for fault in redacted]
        pairs = zip(kinds, redacted, strict=True)
        lines = [InitErrorDetails(type=kind, loc=fault.where, input=fault.value) for kind, fault in pairs]
        error: InputError = cls.from_exception_data(title, lines)
        error.faults = redacted
        return error

    def inside(self, *outer: str) -> InputError:
        """Return the same error with its fields named as part of the fields ``outer`` that hold the object."""
        faults = [fault._replace(where=(*outer, *fault.where)) for fault in self.faults]
        return InputError.from_faults(self.title, faults)

    def __str__(self) -> str:
        return "\n".join(map(str, self.faults))

    def __reduce__(self) -> Any:
        return InputError.from_faults, (self.title, self.faults)


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
        self.problem = str(self.args[0])
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

    def __reduce__(self) -> tuple[Any, ...]:
        # By default an error is made again of what ``Exception`` got, here the problem alone.
        return type(self), (self.problem, self.reply, self.fault), self.__dict__


class ModelCallError(JurygraphError, RuntimeError):
    """Raised for a model call that the provider refused or that failed for good.

    Attributes:
        retryable: whether the same call may succeed later.
        rate_limited: whether the provider asked for fewer calls.
        retry_after: seconds that the provider asked to wait for, where it did.
        may_be_billed: whether the request was sent and its reply not waited for, or lost on the way.
    """

    retryable = False

    def __init__(
        self,
        message: str,
        *,
        rate_limited: bool = False,
        retry_after: float | None = None,
        may_be_billed: bool = False,
    ) -> None:
        super().__init__(message)
        self.rate_limited = rate_limited
        self.retry_after = retry_after
        self.may_be_billed = may_be_billed


class ContextOverflowError(ModelCallError):
    """Raised for a call whose prompt does not fit into the model's context."""


class TransientCallError(ModelCallError, ConnectionError):
    """Raised for a model call that may succeed later: rate limit, server error, lost connection, time-out."""

    retryable = True


class StoppedError(JurygraphError, RuntimeError):
    """Raised where a run makes no more calls: its budget is spent, or it was interrupted.

    The item that was being judged has not failed; a resumed run goes on with it where it stopped.
    """
