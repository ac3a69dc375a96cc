"""The errors of jurygraph, divided by who can fix them.

    JurygraphError
    ├── UsageError           the caller: a setting, a model name, a key, a file
    │   ├── InputError       ... an invalid task, aspect or setting; names the field
    │   └── DataError        ... a line of a dataset; names file, line and field
    ├── ReplyError           the model: an unreadable reply, with its raw text
    │   └── QuorumError      ... of too many members of a panel, so that votes are missing
    ├── ModelCallError       the provider: a call that failed permanently
    │   ├── ContextOverflowError ... because the prompt exceeds the model's context
    │   └── TransientCallError   ... or that may succeed later
    ├── AnswerRejectedError  an agent: its judge did not accept its answers
    └── StoppedError         nobody: the run was asked to end before this call
        ├── RunTimeoutError  ... or took longer than a server's operator allows
        └── LimitError       ... or a judge has reached a limit of its owner
            └── JudgeTimeoutError ... on the time of one judgement

They are also ``ValueError`` or ``RuntimeError``, because servers only pass on the messages of
built-in errors. Errors that may succeed later are also ``ConnectionError``, which LangGraph's
``RetryPolicy`` retries by default. ``InputError`` is also pydantic's ``ValidationError``, with its
``errors()``. Keys and control characters are removed from every message (``redaction.py``), because
it may quote text from elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast

from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from .redaction import redact, redact_all
from .transcript import Turn

ReplyFault = Literal[
    "empty", "missing", "off_scale", "contradictory", "refused", "filtered", "cut_off"
]
"""Why a reply cannot be read; ``missing``: it does not state the requested value."""


class JurygraphError(Exception):
    """The base of all errors of jurygraph; its message contains no keys."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(
            *(redact(given) if isinstance(given, str) else given for given in arguments)
        )


class UsageError(JurygraphError, ValueError):
    """A mistake in the caller's input, found before any model is called."""


class Fault(NamedTuple):
    """The problem with one field of the caller's input.

    Attributes:
        kind: pydantic's name for this type of fault, such as ``missing``.
        where: the names and indices that lead to the field; empty for the whole object.
        words: the problem, as text after the field's name.
        value: the given value.
    """

    kind: str
    where: tuple[str | int, ...]
    words: str
    value: Any = None

    def redacted(self) -> Fault:
        """Return the same fault without keys, also if a field's name marks its value as one."""
        name = str(self.where[-1]) if self.where else ""
        return self._replace(words=redact(self.words), value=redact_all({name: self.value})[name])

    def __str__(self) -> str:
        # A check of ours that pydantic called gives a whole sentence.
        stop = ": " if self.kind == "value_error" else " "
        return f"{'.'.join(map(str, self.where))}{stop}{self.words}" if self.where else self.words


class InputError(UsageError, ValidationError):
    """An invalid task, aspect or setting; the message names the field and its allowed values.

    Attributes:
        faults: the problems, field by field.
    """

    faults: tuple[Fault, ...] = ()

    @classmethod
    def from_faults(cls, title: str, faults: Iterable[Fault]) -> InputError:
        """Return the error for some faults of one object with the name ``title``."""
        redacted = tuple(fault.redacted() for fault in faults)
        kinds = [
            PydanticCustomError(fault.kind, "{words}", {"words": fault.words}) for fault in redacted
        ]
        pairs = zip(kinds, redacted, strict=True)
        lines = [
            InitErrorDetails(type=kind, loc=fault.where, input=fault.value) for kind, fault in pairs
        ]
        error: InputError = cls.from_exception_data(title, lines)
        error.faults = redacted
        return error

    def inside(self, *outer: str) -> InputError:
        """Return the same error with its fields named as parts of the fields ``outer``."""
        faults = [fault._replace(where=(*outer, *fault.where)) for fault in self.faults]
        return InputError.from_faults(self.title, faults)

    def __str__(self) -> str:
        return "\n".join(map(str, self.faults))

    def __reduce__(self) -> Any:
        return InputError.from_faults, (self.title, self.faults)


class DataError(UsageError):
    """A dataset that cannot be used; the message names file, line and field."""


_LONGEST_KEY = 50_000
"""Characters; a private key of 16,384 bits has 13,000."""


class ReplyError(JurygraphError, ValueError):
    """A model's reply without a usable value.

    Attributes:
        reply: the raw text of the reply.
        fault: the kind of problem, in one word.
        problem: the problem as one sentence, which a repair request quotes to the model.
        agent: the agent that gave the reply, if known.
        round: the round of the reply, if known.
        turn: the agent's turn without a value, if known; it contains the cost of the reply.
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
        # Show both ends: a verdict is at the end of a reply, a refusal at its beginning. Redact
        # before cutting, because a part of a key would not be recognised. No key reaches from the
        # middle of a very long reply to what is shown.
        reply = self.reply
        if len(reply) > 2 * _LONGEST_KEY:
            reply = reply[:_LONGEST_KEY] + reply[-_LONGEST_KEY:]
        reply = redact(reply)
        shown = reply if len(reply) <= 400 else f"{reply[:200]} ... {reply[-180:]}"
        return f"{who}{self.problem} Raw reply: {shown!r}"

    def __reduce__(self) -> tuple[Any, ...]:
        # By default, an error is unpickled from ``Exception``'s arguments, here only the problem.
        return type(self), (self.problem, self.reply, self.fault), self.__dict__


class QuorumError(ReplyError):
    """A panel with too few votes, because members' replies cannot be read.

    The message contains the reason and the raw reply of each member without a vote. The attributes
    are those of the first.
    """

    @classmethod
    def of_turn(cls, problem: str, turn: Turn) -> QuorumError:
        """Return the error; ``turn`` is the turn of the first member with an unreadable reply."""
        error = cls(problem, turn["content"], cast("ReplyFault", turn.get("fault", "missing")))
        error.agent = turn["agent"]
        error.round = turn["round"]
        error.turn = turn
        return error

    def __str__(self) -> str:
        return self.problem


class ModelCallError(JurygraphError, RuntimeError):
    """A model call that the provider refused or that failed permanently.

    Attributes:
        retryable: whether the same call may succeed later.
        rate_limited: whether the provider asked for fewer calls.
        retry_after: the seconds that the provider asked to wait, if any.
        may_be_billed: whether the request was sent, but its reply was abandoned or lost.
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


class RecusedError(ModelCallError):
    """A member of a panel that does not vote, because its family wrote a text under judgement.

    No call was made.
    """


class ContextOverflowError(ModelCallError):
    """A call whose prompt exceeds the model's context."""


class TransientCallError(ModelCallError, ConnectionError):
    """A model call that may succeed later: rate limit, server error, lost connection, time-out."""

    retryable = True


class AnswerRejectedError(JurygraphError, RuntimeError):
    """An agent's answer that its gate rejects.

    Attributes:
        judged: every answer with its verdict, in order, as in the agent's state.
    """

    def __init__(self, message: str, judged: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(message)
        self.judged = tuple(judged)


class StoppedError(JurygraphError, RuntimeError):
    """A run makes no more calls: its budget is spent, or it was interrupted.

    The current item has not failed. A resumed run continues it.
    """


class RunTimeoutError(StoppedError, TimeoutError):
    """A run on a server took longer than its operator allows."""


class LimitError(StoppedError):
    """A judge has reached a limit that ``create_judge`` was given, so there is no verdict."""


class JudgeTimeoutError(LimitError, TimeoutError):
    """A judgement took longer than its ``timeout``."""
