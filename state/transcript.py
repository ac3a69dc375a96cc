"""Define turns: what an agent has said, what was read from it, and what it took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NotRequired, cast

from typing_extensions import TypedDict

from .usage import NO_USAGE, Usage, total_usage

Score = float | list[float]
"""A score on an aspect's scale, or a pair ``[score_1, score_2]``."""


class Turn(TypedDict):
    """One agent's contribution, as plain JSON.

    ``value`` is what was read from the reply (a score, a pair, ``True`` for "no issue", or ``None`` where the words
    alone count). ``model`` is ``None`` for words that no model wrote. The keys from ``calls`` to ``seconds`` are those
    of :class:`Usage`, over all calls that the turn took, a repaired reply included. Where a comparison was held in both
    orders, ``order`` tells them apart: 1 as in the task, 2 with the answers swapped; values always refer to the task's
    order, the words to the order that the agent was shown. Where an agent was asked several times, ``sample`` counts
    its answers from 1, and what one request for all of them took stands on the first; ``repeat`` counts from 0 where a
    whole protocol was run several times, and ``stage`` is ``cheap`` or ``expensive`` in a cascade. ``name`` is that of
    the person who spoke, where they gave it.

    ``id`` is the agent's name and the number of its turn, such as ``critic:2``, behind ``swapped/`` where the answers
    were swapped, and behind the marks of wrappers. A turn that is put into the state under the id of an earlier one
    takes its place, and has ``edited`` where it says or means something else. ``scale`` holds the lowest and the
    highest number that ``value`` can have.
    """

    id: NotRequired[str]
    round: int
    agent: str
    role: str
    content: str
    value: float | list[float] | bool | str | None
    model: str | None
    calls: int
    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cost_usd: float | None
    seconds: float
    uncounted: NotRequired[int]
    scale: NotRequired[list[float]]
    edited: NotRequired[bool]
    order: NotRequired[int]
    sample: NotRequired[int]
    repeat: NotRequired[int]
    stage: NotRequired[str]
    name: NotRequired[str]


NO_CALLS = {"model": None, **NO_USAGE.flat()}


def turn_without_model(round: int, agent: str, role: str, content: str, value: Any = None) -> Turn:
    """Make a turn that took no call: a relayed message, or what a person said.

    >>> turn_without_model(1, "commander", "commander", "Please review.")["calls"]
    0
    """
    words = {"round": round, "agent": agent, "role": role, "content": content, "value": value}
    return cast("Turn", {**words, **NO_CALLS})


def usage_of_turns(turns: Iterable[Turn]) -> Usage:
    """Add up the usage of turns."""
    return total_usage(map(Usage.of_fields, turns))


def turn_id(agent: str, number: int, order: int | None = None) -> str:
    """Return the id of an agent's turn: its name and which of its turns it is, from 1.

    >>> turn_id("critic", 2), turn_id("scorer", 1, order=2)
    ('critic:2', 'swapped/scorer:1')
    """
    return f"{'swapped/' if order == 2 else ''}{agent}:{number}"


@dataclass
class TurnIds:
    """Number the turns of each agent, behind those that a transcript holds of it already.

    Attributes:
        transcript: the turns so far.
        order: the order in which the answers are shown, where there are two.
    """

    transcript: Sequence[Turn] = ()
    order: int | None = None
    _new: Counter[str] = field(default_factory=Counter)

    def next(self, agent: str) -> str:
        """Return the id of the agent's next turn."""
        self._new[agent] += 1
        earlier = sum(turn["agent"] == agent for turn in self.transcript)
        return turn_id(agent, earlier + self._new[agent], self.order)


def last_turn(transcript: Sequence[Turn], role: str) -> Turn | None:
    """Return the latest turn of a role, or ``None``."""
    return next((turn for turn in reversed(transcript) if turn["role"] == role), None)
