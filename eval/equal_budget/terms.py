"""Define the terms on which a protocol is compared with what its budget buys of a single judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Literal, TypedDict, get_args

from ...state.errors import UsageError
from ..results.config import option
from ..statistics.metrics import METRICS
from ..statistics.resampling import Resampling

Unit = Literal["tokens", "cost", "calls"]
UNITS: tuple[Unit, ...] = get_args(Unit)

WORTH = 0.05
"""The smallest gain in the metric that counts as worth having, unless the user names another."""


_term = partial(option, panel="The comparison")


@dataclass(frozen=True, kw_only=True)
class Terms:
    """Says what a protocol is compared with, and how.

    Attributes:
        against: names of the opponents, also in one text with commas; none are samples of a single judge and an
            ensemble of such.
        by: what is spent equally.
        metric: what is compared; ``None`` for what belongs to the data.
        worth: the smallest gain in it that would be worth having.
        taken_from: the folder of a run of the protocol, which is not judged again.
        resampling: how intervals are made.

    Raises:
        UsageError: a unit or metric that does not exist, or a gain that is none.

    >>> Terms(by="euros")
    Traceback (most recent call last):
    ...
    jurygraph.state.errors.UsageError: by 'euros': what is spent equally is one of tokens, cost, calls
    """

    against: str | Sequence[str] | None = _term(metavar="NAME,...")
    """The opponents. Default: single,ensemble: samples of a single judge, and as many judges who are all alike."""
    by: Unit = _term(metavar="tokens|cost|calls", default="tokens")  # noqa: RUF009 - likewise
    """What is spent equally."""
    taken_from: str | Path | None = _term(metavar="DIR", name="--from")  # noqa: RUF009 - a field like the others
    """Take up a run of the protocol, which is not judged again."""
    worth: float = _term(metavar="GAIN", default=WORTH)
    """The smallest gain in the metric that would be worth having."""
    metric: str | None = _term(metavar="NAME")
    """What is compared. Default: what belongs to the data."""
    resampling: Resampling = field(default_factory=Resampling)

    @property
    def opponents(self) -> list[str]:
        """The names of the opponents that were chosen."""
        names = self.against.split(",") if isinstance(self.against, str) else self.against or ()
        return [name.strip() for name in names if name.strip()]

    def __post_init__(self) -> None:
        if self.by not in UNITS:
            raise UsageError(f"by {self.by!r}: what is spent equally is one of {', '.join(UNITS)}")
        if self.metric not in (None, *METRICS):
            raise UsageError(f"metric {self.metric!r} is unknown; it is one of {', '.join(METRICS)}")
        if not (isfinite(self.worth) and self.worth >= 0):
            raise UsageError(f"worth must be 0 or more, a gain in the metric, got {self.worth:g}")


class TermsByName(TypedDict, total=False):
    """Names the fields of ``Terms`` for type checkers."""

    against: str | Sequence[str] | None
    by: Unit
    metric: str | None
    worth: float
    taken_from: str | Path | None
    resampling: Resampling
