"""A figure with its confidence interval."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Statistic:
    """A figure and its confidence interval.

    Attributes:
        value: the figure; ``None`` where it does not exist, as a correlation with a constant.
        low, high: the ends of its interval, in the figure's own unit; ``None`` where there is none. How the interval
            was made (resamples, confidence, seed) is said by the result that holds the figure.

    >>> Statistic(0.51, 0.43, 0.58).high
    0.58
    """

    value: float | None
    low: float | None = None
    high: float | None = None
