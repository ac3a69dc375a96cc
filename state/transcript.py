"""Turns: an agent's words, the value read from them, and the usage (calls, tokens, cost)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from operator import add, attrgetter, itemgetter, not_
from typing import Annotated, Any, Literal, NotRequired, cast

from pydantic import Field
from typing_extensions import TypedDict

from .evidence import Citations, Evidence


@dataclass(frozen=True)
class Usage:
    """The usage of model calls: their number, tokens, cost and duration.

    Turns, verdicts and the lines of ``results.jsonl`` have these as fields; :meth:`of_fields` reads
    them, and :meth:`flat` writes them. Usages are added with ``+``, or many with
    :func:`total_usage`. One unknown cost makes the sum unknown, because zero would be wrong. If
    some tokens are unknown, a sum of tokens is a lower bound, and ``uncounted`` shows it.

    >>> usage = Usage(calls=1, input_tokens=900, output_tokens=100, cost_usd=0.002, seconds=1.5)
    >>> (usage + usage).tokens, (usage + Usage(calls=1, cost_usd=None)).cost_usd
    (2000, None)
    >>> unknown = Usage(calls=1).told()
    >>> (unknown + unknown).shown_tokens(), (usage + unknown).shown_tokens()
    ('unknown', 'at least 1,000')
    """

    # A plain dataclass, because one is made for every call and a pydantic model takes twice as
    # long. The docstrings go into the JSON schema of `Verdict`, which inherits these fields.
    calls: int = 0
    """Model calls, including repair requests."""
    input_tokens: int = 0
    """Tokens sent."""
    cached_input_tokens: int = 0
    """Input tokens that the provider had cached."""
    output_tokens: int = 0
    """Tokens received."""
    reasoning_tokens: int = 0
    """Output tokens for hidden reasoning."""
    cost_usd: float | None = 0.0
    """US dollars; null if a price is unknown."""
    seconds: float = 0.0
    """Seconds spent waiting for models, added up over calls."""
    uncounted: Annotated[int, Field(exclude_if=not_)] = 0
    """Calls for which the provider did not report tokens."""

    @classmethod
    def of_fields(cls, holder: Mapping[str, Any]) -> Usage:
        """Read a usage from the fields of a turn or a result; other fields are ignored."""
        usage = Usage(*_from_mapping(holder))
        uncounted = holder.get("uncounted", 0)
        return replace(usage, uncounted=uncounted) if uncounted else usage.told()

    def told(self) -> Usage:
        """Return the usage with its calls marked as uncounted if they have no tokens.

        Every prompt has tokens, so zero means that they are unknown.
        """
        return replace(self, uncounted=self.calls) if self.calls and not self.input_tokens else self

    def flat(self) -> dict[str, Any]:
        """Return the usage as fields in the order of :data:`USAGE_FIELDS`, then ``uncounted``."""
        known = dict(zip(USAGE_FIELDS, _from_object(self), strict=True))
        return {**known, "uncounted": self.uncounted} if self.uncounted else known

    def shown_tokens(self, number: Callable[[int], str] = "{:,}".format) -> str:
        """Return the tokens as a number, or in words if some of them are unknown."""
        if not self.uncounted:
            return number(self.tokens)
        return f"at least {number(self.tokens)}" if self.tokens else "unknown"

    def discounted(self, share: float) -> Usage:
        """Return the usage at a share of its cost, for example for discounted batches."""
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
"""The usage of no call, at a known price."""

USAGE_FIELDS = tuple(field.name for field in fields(Usage) if field.name != "uncounted")
"""The names of the fields in order, for columns of the journal and keys of a turn.

``uncounted`` is not included: a call has it if it has no tokens, and a sum if it is not zero.
"""

# Usages are read and written with every turn, so get all fields in one call into C.
_from_object = attrgetter(*USAGE_FIELDS)
_numbers_of = attrgetter(*(name for name in USAGE_FIELDS if name != "cost_usd"), "uncounted")
_from_mapping = itemgetter(*USAGE_FIELDS)


def total_usage(usages: Iterable[Usage]) -> Usage:
    """Add up usages; no usages give :data:`NO_USAGE`.

    >>> total_usage([]) == NO_USAGE
    True
    """
    return sum(usages, NO_USAGE)


Score = float | list[float]
"""A score on an aspect's scale, or a pair ``[score_1, score_2]``."""


RoleKind = Literal["scores", "panel", "objects", "argues", "decides", "votes", "assists", "plans"]
"""The effects that the turns of a role can have on the verdict.

- ``scores``: gives the score of a round; the default for unlisted roles.
- ``panel``: the same, as one of several agents whose scores are averaged or voted on.
- ``objects``: disputes the latest score (value ``False``) or accepts it (``True``); the next score
  answers it.
- ``argues``: speaks for one side and gives no score.
- ``decides``: gives the final decision if the rounds leave it open.
- ``votes``: one of several that vote after the rounds.
- ``assists``: relays or summarizes; its words are not a judgement.
- ``plans``: writes once per run what all verdicts on an aspect share.
"""


class Turn(TypedDict):
    """One agent's contribution, as plain JSON.

    ``value`` is the value read from the reply: a score, a pair, ``True`` for "no issue", or
    ``None`` if only the words count. ``model`` is ``None`` for words without a model call. The keys
    from ``calls`` to ``seconds`` are those of :class:`Usage`, over all calls of the turn, including
    repairs.

    In a comparison in both orders, ``order`` is 1 as in the task, or 2 with the answers swapped.
    Values always refer to the task's order, and words to the order that the agent was shown. If an
    agent was asked several times, ``sample`` counts its answers from 1, and the first one has the
    usage of a shared request. If a whole protocol was run several times, ``repeat`` is the number
    of the run, from 0, and ``repeats`` the number of runs. ``stage`` is ``cheap`` or ``expensive``
    in a cascade. ``name`` is the name of a human, if given. ``problem`` is the reason why a member
    of a panel has no vote, and ``fault`` its keyword: a fault of ``ReplyError``, or
    ``call_failed``.
    ``replaces`` is the model whose seat this turn's model has taken, because its call failed.
    With ``juror_tools``, ``evidence`` has the results of the agent's tool calls, and ``citations``
    what its reply cites of them.

    ``id`` is the agent's name and the number of its turn, such as ``critic:2``, after ``swapped/``
    for swapped answers and after the marks of wrappers. A turn that is added to the state under the
    id of an earlier one replaces it, and has ``edited`` if its content or value differs. ``scale``
    has the lowest and the highest possible number of ``value``.
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
    repeats: NotRequired[int]
    stage: NotRequired[str]
    name: NotRequired[str]
    problem: NotRequired[str]
    fault: NotRequired[str]
    replaces: NotRequired[str]
    evidence: NotRequired[list[Evidence]]
    citations: NotRequired[Citations]


NO_CALLS = {"model": None, **NO_USAGE.flat()}


def turn_without_model(round: int, agent: str, role: str, content: str, value: Any = None) -> Turn:
    """Return a turn without a call: a relayed message, or a human's words.

    >>> turn_without_model(1, "commander", "commander", "Please review.")["calls"]
    0
    """
    words = {"round": round, "agent": agent, "role": role, "content": content, "value": value}
    return cast("Turn", {**words, **NO_CALLS})


def usage_of_turns(turns: Iterable[Turn]) -> Usage:
    """Add up the usage of turns."""
    return total_usage(map(Usage.of_fields, turns))


def turn_id(agent: str, number: int, order: int | None = None) -> str:
    """Return the id of an agent's turn: its name and the number of the turn, from 1.

    >>> turn_id("critic", 2), turn_id("scorer", 1, order=2)
    ('critic:2', 'swapped/scorer:1')
    """
    return f"{'swapped/' if order == 2 else ''}{agent}:{number}"


@dataclass
class TurnIds:
    """Numbers the turns of each agent, after those in an existing transcript.

    Attributes:
        transcript: the turns so far.
        order: the order in which the answers are shown, if there are two.
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
