"""Add up the usage of models (calls, tokens, money, time), and read and write it as flat fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from operator import attrgetter, itemgetter, not_
from typing import Annotated, Any

from pydantic import Field


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
    # descriptions are for the JSON schema of `Verdict`, which inherits these fields.
    calls: Annotated[int, Field(description="Model calls, repair requests included.")] = 0
    input_tokens: Annotated[int, Field(description="Tokens sent.")] = 0
    cached_input_tokens: Annotated[
        int, Field(description="Of these, tokens that the provider had cached.")
    ] = 0
    output_tokens: Annotated[int, Field(description="Tokens received.")] = 0
    reasoning_tokens: Annotated[int, Field(description="Of these, hidden reasoning tokens.")] = 0
    cost_usd: Annotated[float | None, Field(description="US dollars; null where a price is unknown.")] = 0.0
    seconds: Annotated[float, Field(description="Seconds spent waiting for models, added up over calls.")] = (
        0.0
    )
    uncounted: Annotated[
        int,
        Field(description="Of the calls, those whose tokens the provider did not tell.", exclude_if=not_),
    ] = 0

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
        unknown = self.cost_usd is None or other.cost_usd is None
        return Usage(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.cached_input_tokens + other.cached_input_tokens,
            self.output_tokens + other.output_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            None if unknown else (self.cost_usd or 0.0) + (other.cost_usd or 0.0),
            self.seconds + other.seconds,
            self.uncounted + other.uncounted,
        )


NO_USAGE = Usage()
"""The usage of no call at all: nothing, at a known price."""

USAGE_FIELDS = tuple(field.name for field in fields(Usage) if field.name != "uncounted")
"""The names of the fields in their order, which columns of the journal and keys of a turn follow.

``uncounted`` is none of them: a call has it where it has no tokens, and a sum where it is not zero.
"""

# Both get all fields in one call into C, since usages are read and written with every turn.
_from_object = attrgetter(*USAGE_FIELDS)
_from_mapping = itemgetter(*USAGE_FIELDS)


def total_usage(usages: Iterable[Usage]) -> Usage:
    """Add up usages; none at all come to :data:`NO_USAGE`.

    >>> total_usage([]) == NO_USAGE
    True
    """
    return sum(usages, NO_USAGE)
