"""Several replies to one question: by one request where the provider can, else by as many side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..state.transcript import Turn
from .calling.calls import Call, NotTakenError, Reply
from .calling.models import SEVERAL
from .calling.sending import send

TEMPERATURE = 1.0
"""Of a method that samples, where nobody set another (G-Eval, section 3.1; FairEval, section 3.1)."""


@dataclass(frozen=True)
class Samples:
    """The answers to one question that was asked several times; the value of one that cannot be read is None."""

    turns: tuple[Turn, ...]
    warnings: tuple[str, ...]

    @property
    def read(self) -> list[Turn]:
        """Those that count."""
        return [turn for turn in self.turns if turn["value"] is not None]

    @property
    def unread(self) -> int:
        """How many do not."""
        return len(self.turns) - len(self.read)


class Drawn(NamedTuple):
    """A reply, and the call that it answers."""

    call: Call
    reply: Reply


async def draw(call: Call, size: int) -> list[Drawn]:
    """So many replies to one call, each with an index of its own, which is part of what identifies it.

    Raises:
        ModelCallError: as ``send``, the first in order, and only when all are through.
    """
    drawn = await _at_once(call, size) if size > 1 and call.model.gives(SEVERAL) else []
    return [*drawn, *await _side_by_side(call, range(len(drawn) + 1, size + 1))]


async def _at_once(call: Call, size: int) -> list[Drawn]:
    """What one request yields: all of them, some, or none where the provider refuses."""
    asked = _numbered(replace(call, parameters={**call.parameters, SEVERAL: size}), 1)
    try:
        first = await send(asked)
    except NotTakenError:
        return []
    if not first.others:
        call.model.drop(SEVERAL, asked.parameters)
    elif len(first.others) + 1 < size:
        call.model.warn(
            f"{call.model.label} gave fewer replies to one request than asked for; the rest was asked for"
        )
    return [Drawn(asked, reply) for reply in [first, *first.others][:size]]


async def _side_by_side(call: Call, numbers: Iterable[int]) -> list[Drawn]:
    calls = [_numbered(_reseeded(call, number), number) for number in numbers]
    replies = await asyncio.gather(*map(send, calls), return_exceptions=True)
    for reply in replies:
        if isinstance(reply, BaseException):
            raise reply
    return [
        Drawn(sent, reply) for sent, reply in zip(calls, replies, strict=True) if isinstance(reply, Reply)
    ]


def _numbered(call: Call, number: int) -> Call:
    return replace(call, metadata={**call.metadata, "sample": number})


def _reseeded(call: Call, number: int) -> Call:
    """One seed for all would make one sample of them."""
    seed = call.model.seed
    return call if seed is None else replace(call, parameters={**call.parameters, "seed": seed + number - 1})
