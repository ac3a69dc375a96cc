"""Which verdict is being made: known to whatever is called on the way, however deep inside."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from ..results import Key


@dataclass
class UnderJudgement:
    """A verdict that is being made.

    Attributes:
        key: what of.
        notes: of whoever answers the calls of this verdict; thrown away with it.
    """

    key: Key
    notes: dict[Any, Any] = field(default_factory=dict)


under_judgement: ContextVar[UnderJudgement | None] = ContextVar("under_judgement", default=None)
"""The verdict that a call is made for. Tasks that are begun inside know it as well."""


@contextmanager
def judging(key: Key) -> Iterator[None]:
    """Mark all that is called inside as made for this verdict."""
    token = under_judgement.set(UnderJudgement(key))
    try:
        yield
    finally:
        under_judgement.reset(token)
