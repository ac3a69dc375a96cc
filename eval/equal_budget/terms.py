"""Define the terms on which a protocol is compared with what its budget buys of a single judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

SPENT_FIELD: Mapping[Unit, str] = {"tokens": "tokens", "cost": "cost_usd", "calls": "calls"}
"""The field of a usage, and of a result, that has what is spent."""

_term = partial(option, panel="Comparison")


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
    jurygraph.state.errors.UsageError: by 'euros' is unknown; budgets are counted by tokens, cost, calls
    """

    against: str | Sequence[str] | None = _term(metavar="NAME,...")
    """Opponents. Default: single,ensemble: samples of a single judge, and an ensemble of identical judges."""
    by: Unit = _term(metavar="tokens|cost|calls", default="tokens")  # noqa: RUF009 - likewise
    """What the protocol and its opponents spend equal amounts of."""
    taken_from: str | Path | None = _term(metavar="DIR", name="--from")  # noqa: RUF009 - a field like the others
    """Folder of a finished run of the protocol, to use instead of judging again."""
    worth: float = _term(metavar="GAIN", default=WORTH)
    """Smallest gain in the metric that would be worth having."""
    metric: str | None = _term(metavar="NAME")
    """Metric to compare by. Default: depends on the data."""
    resampling: Resampling = field(default_factory=Resampling)

    @property
    def opponents(self) -> list[str]:
        """The names of the opponents that were chosen."""
        names = self.against.split(",") if isinstance(self.against, str) else self.against or ()
        return [name.strip() for name in names if name.strip()]

    def __post_init__(self) -> None:
        if self.by not in UNITS:
            raise UsageError(f"by {self.by!r} is unknown; budgets are counted by {', '.join(UNITS)}")
        if self.metric not in (None, *METRICS):
            raise UsageError(f"metric {self.metric!r} is unknown; metrics are {', '.join(METRICS)}")
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
