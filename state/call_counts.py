"""Predict how many model calls a verdict takes, as ranges by role, before any call is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from .settings import SettingsT
from .tasks import TaskKind

Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class Range(Generic[Number]):
    """Hold a lower and an upper bound of a quantity: calls, tokens, dollars.

    >>> Range(1, 5) + Range(1, 4)
    Range(least=2, most=9)
    >>> Range(2, 9) * 2
    Range(least=4, most=18)
    """

    least: Number
    most: Number

    def __add__(self, other: Range[Number]) -> Range[Number]:
        return Range(self.least + other.least, self.most + other.most)

    def __mul__(self, times: Number) -> Range[Number]:
        return Range(self.least * times, self.most * times)

    def __contains__(self, number: float) -> bool:
        return self.least <= number <= self.most


CallRange = Range[int]
"""Answered, and so paid, requests; a request that returns several replies counts once."""

CallsByRole = Mapping[str, CallRange]
"""The calls of each role.

All roles reach their lower bounds in the same verdict, and their upper ones too: so sums of the bounds are exact.
"""

Can = Callable[[str, str], bool]
"""``can(role, what)``: whether the role's model returns several replies to a request (``"n"``), or ``"logprobs"``."""

CountCalls = Callable[[SettingsT, TaskKind, Can], CallsByRole]
"""A function from the bound settings, the kind of task, and what the models can do, to the calls of each role."""


def exactly(number: int) -> CallRange:
    """Return the range of a number of calls that is known.

    >>> exactly(3)
    Range(least=3, most=3)
    """
    return CallRange(number, number)


def sampled(size: int, several: bool) -> CallRange:
    """Return the number of calls that it takes to get several replies to one question.

    Args:
        size: how many replies.
        several: whether the model can be asked for all of them in one request. Some servers then return fewer, and
            the rest takes calls of its own: hence the upper bound.

    >>> sampled(20, several=True), sampled(20, several=False)
    (Range(least=1, most=20), Range(least=20, most=20))
    """
    return CallRange(1 if several else size, size)


def total(calls: Iterable[CallRange]) -> CallRange:
    """Return the sum of ranges.

    >>> total([exactly(2), CallRange(0, 1)])
    Range(least=2, most=3)
    """
    # ``sum`` would start from the number 0, to which no range can be added.
    return sum(calls, start=exactly(0))
