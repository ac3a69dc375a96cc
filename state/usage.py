"""Add up the usage of models (calls, tokens, money, time), and read and write it as flat fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from operator import attrgetter, itemgetter
from typing import Annotated, Any

from pydantic import Field


@dataclass(frozen=True)
class Usage:
    """Hold what calls to models took: how many there were, their tokens, their cost and their duration.

    Turns, verdicts and the lines of ``results.jsonl`` have these as fields of their own, beside others;
    :meth:`of_fields` reads them there, and :meth:`flat` writes them. Usages are added with ``+``, many of them
    with :func:`total_usage`. One unknown cost makes the sum unknown: counted as zero, it would pass for cheap.

    >>> usage = Usage(calls=1, input_tokens=900, output_tokens=100, cost_usd=0.002, seconds=1.5)
    >>> (usage + usage).tokens, (usage + Usage(calls=1, cost_usd=None)).cost_usd
    (2000, None)
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

    @classmethod
    def of_fields(cls, holder: Mapping[str, Any]) -> Usage:
        """Read a usage from the flat fields of a turn or a result; other fields beside them are ignored."""
        return Usage(*_from_mapping(holder))

    def flat(self) -> dict[str, Any]:
        """Return the usage as flat fields by name, in the order of :data:`USAGE_FIELDS`."""
        return dict(zip(USAGE_FIELDS, _from_object(self), strict=True))

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
        )


NO_USAGE = Usage()
"""The usage of no call at all: nothing, at a known price."""

USAGE_FIELDS = tuple(field.name for field in fields(Usage))
"""The names of the fields in their order, which columns of the journal and keys of a turn follow."""

# Both get all fields in one call into C, since usages are read and written with every turn.
_from_object = attrgetter(*USAGE_FIELDS)
_from_mapping = itemgetter(*USAGE_FIELDS)


def total_usage(usages: Iterable[Usage]) -> Usage:
    """Add up usages; none at all come to :data:`NO_USAGE`.

    >>> total_usage([]) == NO_USAGE
    True
    """
    return sum(usages, NO_USAGE)
