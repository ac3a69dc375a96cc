"""How many model calls a verdict takes, told before any is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from .settings import SettingsT
from .tasks import TaskKind

Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class Range(Generic[Number]):
    """At least so much, at most so much: calls, tokens, dollars.

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
"""Requests that are answered and so paid for; one that brings several replies is one."""

CallsByRole = Mapping[str, CallRange]
"""The calls of each role. All roles reach their least together, and their most: the sums are those of the verdict."""

Can = Callable[[str, str], bool]
"""Whether a role's model can be asked for several replies at once (``"n"``), or for ``"logprobs"``."""

CountCalls = Callable[[SettingsT, TaskKind, Can], CallsByRole]
"""The settings as they are bound, the kind of task and what the models can do, to the calls of each role."""


def exactly(number: int) -> CallRange:
    """A number of calls that is known.

    >>> exactly(3)
    Range(least=3, most=3)
    """
    return CallRange(number, number)


def sampled(size: int, several: bool) -> CallRange:
    """The calls for so many replies to one question.

    Args:
        size: how many replies.
        several: whether the model can be asked for all of them at once. Some servers that can be asked give fewer,
            or one, and the rest takes calls of its own.

    >>> sampled(20, several=True), sampled(20, several=False)
    (Range(least=1, most=20), Range(least=20, most=20))
    """
    return CallRange(1 if several else size, size)


def total(calls: Iterable[CallRange]) -> CallRange:
    """All of them together.

    >>> total([exactly(2), CallRange(0, 1)])
    Range(least=2, most=3)
    """
    return sum(calls, start=exactly(0))
