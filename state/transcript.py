"""Define turns: what an agent has said, what was read from it, and what it took (calls, tokens, money, time)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from operator import add, attrgetter, itemgetter, not_
from typing import Annotated, Any, Literal, NotRequired, cast

from pydantic import Field
from typing_extensions import TypedDict


@dataclass(frozen=True)
class Usage:
    """Hold what calls to models took: how many there were, their tokens, their cost and their duration.

    Turns, verdicts and the lines of ``results.jsonl`` have these as fields of their own, beside others;
    :meth:`of_fields` reads them there, and :meth:`flat` writes them. Usages are added with ``+``, many of them
    with :func:`total_usage`. One unknown cost makes the sum unknown: counted as zero, it would pass for cheap. A sum of
    tokens some of which are not known is the least that they can be, and ``uncounted`` says so.

    >>> usage = Usage(calls=1, input_tokens=900, output_tokens=100, cost_usd=0.002, seconds=1.5)
    >>> (usage + usage).tokens, (usage + Usage(calls=1, cost_usd=None)).cost_usd
    (2000, None)
    >>> unknown = Usage(calls=1).told()
    >>> (unknown + unknown).shown_tokens(), (usage + unknown).shown_tokens()
    ('unknown', 'at least 1,000')
    """

    # A plain dataclass, since one is made for every call and a pydantic model takes twice as long to make. The
    # docstrings go into the JSON schema of `Verdict`, which inherits these fields.
    calls: int = 0
    """Model calls, repair requests included."""
    input_tokens: int = 0
    """Tokens sent."""
    cached_input_tokens: int = 0
    """Of these, tokens that the provider had cached."""
    output_tokens: int = 0
    """Tokens received."""
    reasoning_tokens: int = 0
    """Of these, hidden reasoning tokens."""
    cost_usd: float | None = 0.0
    """US dollars; null where a price is unknown."""
    seconds: float = 0.0
    """Seconds spent waiting for models, added up over calls."""
    uncounted: Annotated[int, Field(exclude_if=not_)] = 0
    """Of the calls, those whose tokens the provider did not tell."""

    @classmethod
    def of_fields(cls, holder: Mapping[str, Any]) -> Usage:
        """Read a usage from the flat fields of a turn or a result; other fields beside them are ignored."""
        usage = Usage(*_from_mapping(holder))
        uncounted = holder.get("uncounted", 0)
        return replace(usage, uncounted=uncounted) if uncounted else usage.told()

    def told(self) -> Usage:
        """Return the same usage, its calls uncounted where they have no tokens: every prompt has some."""
        return replace(self, uncounted=self.calls) if self.calls and not self.input_tokens else self

    def flat(self) -> dict[str, Any]:
        """Return the usage as flat fields by name, in the order of :data:`USAGE_FIELDS`; then what is uncounted."""
        known = dict(zip(USAGE_FIELDS, _from_object(self), strict=True))
        return {**known, "uncounted": self.uncounted} if self.uncounted else known

    def shown_tokens(self, number: Callable[[int], str] = "{:,}".format) -> str:
        """Return the tokens as a number, or in words where not all of them are known."""
        if not self.uncounted:
            return number(self.tokens)
        return f"at least {number(self.tokens)}" if self.tokens else "unknown"

    def discounted(self, share: float) -> Usage:
        """Return the same usage at a share of its cost, as where a provider takes less for batches."""
        return self if self.cost_usd is None else replace(self, cost_usd=self.cost_usd * share)

    @property
    def tokens(self) -> int:
        """The tokens sent and received."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        if self is NO_USAGE:
            return other
        unknown = self.cost_usd is None or other.cost_usd is None
        cost = None if unknown else (self.cost_usd or 0.0) + (other.cost_usd or 0.0)
        *tokens, seconds, uncounted = map(add, _numbers_of(self), _numbers_of(other))
        sums: list[Any] = [*tokens, cost, seconds, uncounted]
        return Usage(*sums)


NO_USAGE = Usage()
"""The usage of no call at all: nothing, at a known price."""

USAGE_FIELDS = tuple(field.name for field in fields(Usage) if field.name != "uncounted")
"""The names of the fields in their order, which columns of the journal and keys of a turn follow.

``uncounted`` is none of them: a call has it where it has no tokens, and a sum where it is not zero.
"""

# They get all fields in one call into C, since usages are read and written with every turn.
_from_object = attrgetter(*USAGE_FIELDS)
_numbers_of = attrgetter(*(name for name in USAGE_FIELDS if name != "cost_usd"), "uncounted")
_from_mapping = itemgetter(*USAGE_FIELDS)


def total_usage(usages: Iterable[Usage]) -> Usage:
    """Add up usages; none at all come to :data:`NO_USAGE`.

    >>> total_usage([]) == NO_USAGE
    True
    """
    return sum(usages, NO_USAGE)


Score = float | list[float]
"""A score on an aspect's scale, or a pair ``[score_1, score_2]``."""


RoleKind = Literal["scores", "panel", "objects", "argues", "decides", "votes", "assists", "plans"]
"""The ways in which the turns of a role can bear on the verdict.

- ``scores``: gives the score that stands after a round; so does a role of which nothing is said.
- ``panel``: the same, as one of several agents whose scores are averaged or voted on.
- ``objects``: disputes the latest score (value ``False``) or accepts it (``True``); the next score answers it.
- ``argues``: speaks for one side and gives no score.
- ``decides``: gives the last word on what the rounds left open.
- ``votes``: one of several who vote when the rounds are over.
- ``assists``: passes on or sums up; what it says is no judgement.
- ``plans``: writes once in a run what all verdicts on an aspect share.
"""


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
