"""The limits of a run: simultaneous calls, waiting times and cost, and where replies are stored."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, Self, TypedDict

from ...nodes.models import prices
from ...nodes.models.rate_limiter import RateLimits
from ...nodes.models.retry import DEFAULT_RETRY_POLICY, RetryPolicy
from ...state.checked import listed
from ...state.errors import UsageError

SPEED = "Concurrency and limits"
LIMITS = "Budget"
KEPT = "Output and cache"
"""Headings of options in the command line's help."""


def option(
    description: str = "", metavar: str | None = None, *, default: Any = None, **about: Any
) -> Any:
    """Declare an option: its help text, its placeholder, and its default.

    Args:
        description: the help text; for a field, the default is its docstring.
        metavar: the placeholder for the value in the help; none for a flag.
        default: the value; ``MISSING`` if the option is required.
        **about: ``name``, if it differs from the field's; ``panel`` of the help; ``min`` and
            ``max``; for a number of ``RunConfig``, whether it ``may_be_zero``.
    """
    return field(
        default=default, metadata={"description": description, "metavar": metavar, **about}
    )


_speed, _budget, _kept = (
    partial(option, panel=panel, may_be_zero=False) for panel in (SPEED, LIMITS, KEPT)
)


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """The settings of a run's execution.

    ``evaluate``, ``sweep`` and their commands take the fields.

    Limits apply to the whole run, from its first start to its end; ``None`` means no limit.

    Raises:
        UsageError: a number that is out of bounds, or not a number.

    >>> RunConfig(concurrency=4, max_cost=20).rate_limits.concurrency
    4
    >>> RunConfig(attempts=0)
    Traceback (most recent call last):
    ...
    jurygraph.state.errors.UsageError: attempts must be above 0, got 0
    """

    concurrency: int = _speed(default=16)
    """Maximum number of model calls in flight."""
    requests_per_minute: float | None = _speed()
    """Maximum number of requests per minute to one model."""
    tokens_per_minute: float | None = _speed()
    """Maximum number of tokens per minute to and from one model, if they can be estimated."""
    # Calls outside of a run wait equally long, so these defaults are those of the retry policy.
    timeout: float = _speed(metavar="SECONDS", default=DEFAULT_RETRY_POLICY.timeout)
    """Time limit for one attempt at a call, in seconds."""
    attempts: int = _speed(default=DEFAULT_RETRY_POLICY.attempts)
    """Maximum number of attempts at one call."""
    max_wait: float = _speed(metavar="SECONDS", default=DEFAULT_RETRY_POLICY.max_wait)
    """Maximum total wait between attempts at a call, in seconds, even if the provider asks more."""
    grace: float = _speed(metavar="SECONDS", default=30.0, may_be_zero=True)
    """Time that calls in flight get to finish after Ctrl-C, in seconds."""
    ignore_prefixes: bool = _speed(default=False)
    """Do not hold calls back until the provider has read the prompt's beginning that they share."""
    batch: bool = _budget(default=False)
    """Use the batch API of OpenAI, Anthropic or Gemini: half the price, replies within a day."""
    max_cost: float | None = _budget(metavar="USD")
    """Stop before the run costs more than this."""
    max_calls: int | None = _budget()
    """Stop before the run makes more requests than this; failed requests count too."""
    max_tokens: int | None = _budget()
    """Stop before the run uses more tokens than this, input and output together."""
    journal: str | Path | None = _kept(metavar="FILE|URL")  # noqa: RUF009 - a field like the others
    """Cache of finished calls, so that none is paid for twice: a file, or postgresql://... Default:
    a file in the results folder."""
    fresh: bool = _kept(default=False)
    """Ignore the cache and judge everything again."""
    overwrite: bool = _kept(default=False)
    """Start a new run in a folder that already contains one; the old results are renamed."""

    def __post_init__(self) -> None:
        for option in fields(self):
            value = getattr(self, option.name)
            # In Python, a bool is an int, but those fields have no bounds.
            if not isinstance(value, int | float) or isinstance(value, bool):
                continue
            if not math.isfinite(value):
                raise UsageError(f"{option.name} must be a number, got {value:g}")
            may_be_zero = option.metadata["may_be_zero"]
            if value < 0 or (value == 0 and not may_be_zero):
                if may_be_zero:
                    raise UsageError(f"{option.name} must be 0 or more, got {value:g}")
                raise UsageError(f"{option.name} must be above 0, got {value:g}")

    @classmethod
    def from_options(cls, options: Mapping[str, Any], others: Iterable[str] = ()) -> Self:
        """Return a config from options by name, without those that are ``None``.

        Args:
            options: limits by name; those among ``others`` are ignored.
            others: names of options that are not limits, such as ``aspects``.

        Raises:
            UsageError: an unknown name, or a value that is out of bounds.
        """
        known = [option.name for option in fields(cls)]
        others = tuple(others)
        if unknown := [name for name in options if name not in (*known, *others)]:
            names = listed((*others, *known), unknown[0])
            raise UsageError(f"unknown option {unknown[0]!r}; options are {names}")
        limits = {
            name: value
            for name, value in options.items()
            if name not in others and value is not None
        }
        return cls(**limits)

    @property
    def budget(self) -> dict[str, Any]:
        """The run's total limits by name; ``None`` without a limit."""
        return {name: getattr(self, name) for name in ("max_cost", "max_calls", "max_tokens")}

    @property
    def rate_limits(self) -> RateLimits:
        """The limits for one model at a time and per minute."""
        in_a_minute = self.requests_per_minute, self.tokens_per_minute
        return RateLimits(self.concurrency, *in_a_minute, self.retry_policy)

    @property
    def retry_policy(self) -> RetryPolicy:
        """The time limit of one attempt, the number of attempts, and the waits between them."""
        return RetryPolicy(attempts=self.attempts, timeout=self.timeout, max_wait=self.max_wait)

    def check_prices(self, models: Iterable[str]) -> None:
        """Check that a limit on cost can be applied.

        Args:
            models: the names of all models that the run calls.

        Raises:
            UsageError: the cost is limited, and the price of a model is unknown.
        """
        unpriced = [name for name in models if not prices.is_priced(name)]
        if self.max_cost is not None and unpriced:
            raise UsageError(
                f"the price of {unpriced[0]} is unknown, so the cost cannot be limited; "
                "limit calls or tokens instead (--max-calls, --max-tokens), or add the price in "
                "US$ per million tokens to the model's name: "
                "price_in=...&price_out=..., behind ? or &"
            )


class RunLimits(TypedDict, total=False):
    """The fields of ``RunConfig`` for type checkers; a test compares the two.

    Python has no way to derive one from the other that type checkers understand.
    """

    concurrency: int
    requests_per_minute: float | None
    tokens_per_minute: float | None
    timeout: float
    attempts: int
    max_wait: float
    grace: float
    ignore_prefixes: bool
    batch: bool
    max_cost: float | None
    max_calls: int | None
    max_tokens: int | None
    journal: str | Path | None
    fresh: bool
    overwrite: bool
