"""How a run is to be carried out: how fast, how patiently, for how much, and where it is kept."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

from ...nodes.models.rate_limiter import RateLimits
from ...nodes.models.retry import DEFAULT_RETRY_POLICY, RetryPolicy
from ...state.errors import UsageError
from .budget import Budget


class Limits(TypedDict, total=False):
    """How a run is to be carried out, by name.

    Attributes:
        concurrency: model calls in flight, at most.
        requests_per_minute: to one model, at most.
        tokens_per_minute: to and from one model, at most, as far as they can be foreseen.
        timeout: seconds that one attempt at a call may take.
        attempts: at most so many for one call.
        grace: seconds for calls in flight to finish when the run is interrupted.
        max_calls: answered calls that the run may take, from its first start to its end.
        max_tokens: the same, tokens.
        max_cost: the same, US dollars.
        journal: where finished calls are kept: a file, or the URL of a Postgres database; default: in the run's folder.
        fresh: judge everything anew; no reply from before this run is used.
        replace: let the folder's earlier results, be they of another run, make way (they are renamed).
        batch: send calls through the provider's batches: half the price, and replies within a day.
    """

    concurrency: int
    requests_per_minute: float | None
    tokens_per_minute: float | None
    timeout: float
    attempts: int
    grace: float
    max_calls: int | None
    max_tokens: int | None
    max_cost: float | None
    journal: str | Path | None
    fresh: bool
    replace: bool
    batch: bool


@dataclass(frozen=True)
class RunConfig:
    """The same, checked and sorted by who keeps to it."""

    rate_limits: RateLimits = field(default_factory=RateLimits)
    retry_policy: RetryPolicy = DEFAULT_RETRY_POLICY
    budget: Budget = field(default_factory=Budget)
    grace: float = 30.0
    journal: str | Path | None = None
    fresh: bool = False
    replace: bool = False
    batch: bool = False

    @classmethod
    def of(cls, limits: Limits) -> RunConfig:
        """Sort limits.

        Raises:
            UsageError: one that is not above 0, or that there is no such thing as.
        """
        given: dict[str, Any] = {name: value for name, value in limits.items() if value is not None}
        for name, value in given.items():
            if name not in Limits.__annotations__:
                raise UsageError(f"no option {name!r}; there are {', '.join(Limits.__annotations__)}")
            if isinstance(value, int | float) and not isinstance(value, bool):
                _check(name, value)
        if "concurrency" in given:
            given["in_flight"] = given.pop("concurrency")
        parts = {"rate_limits": RateLimits, "retry_policy": RetryPolicy, "budget": Budget}
        sorted_: dict[str, Any] = {
            part: kind(**{name: given.pop(name) for name in list(given) if name in kind.__annotations__})
            for part, kind in parts.items()
        }
        return cls(**sorted_, **given)


def _check(name: str, value: float) -> None:
    if not math.isfinite(value):
        raise UsageError(f"{name} must be a number, got {value:g}")
    if name == "grace" and value < 0:
        raise UsageError(f"grace must be 0 or more, got {value:g}")
    if name != "grace" and value <= 0:
        raise UsageError(f"{name} must be above 0, got {value:g}")
