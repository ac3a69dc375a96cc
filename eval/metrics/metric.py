"""Define a metric: a function from a text to a number, with a signature that says how it is computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import SupportsFloat

from ..datasets.items import ScoreItem

Scored = float | Mapping[str, float] | None
"""One number for all aspects, or one for each that the metric knows; none where it has nothing to say."""

Score = Callable[[ScoreItem, Sequence[str]], Scored]
"""A function from an item and the names of the wanted aspects to what is scored."""


@dataclass(frozen=True)
class Metric:
    """Computes a number of a text; it is a row of the table.

    Attributes:
        name: as on the command line and in results.
        signature: everything that changes a number, as ``name:value`` parts with bars between.
        score: the number of an item.
        needs_references: whether an item without references is left out.
    """

    name: str
    signature: str
    score: Score
    needs_references: bool = False

    @classmethod
    def of(cls, name: str, function: Callable[[ScoreItem], SupportsFloat | None]) -> Metric:
        """Make a metric of any function from an item to a number.

        >>> from jurygraph.eval.datasets.items import ScoreItem
        >>> words = Metric.of("words", lambda item: len(item.candidate.split()))
        >>> words.score(ScoreItem(id="a", source="", candidate="It rained."), ["fluency"])
        2.0
        """

        def score(item: ScoreItem, _aspects: Sequence[str]) -> float | None:
            number = function(item)
            return None if number is None else float(number)

        # An object with __call__ has no qualified name: its class is named instead.
        module, called = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
        return cls(name, f"function:{module}.{called or type(function).__qualname__}", score)


def mean_over_references(pair: Callable[[str, str], float]) -> Score:
    """Make a function that scores an item against each of its references and returns the mean.

    Args:
        pair: the score of a candidate against one reference.

    >>> from jurygraph.eval.datasets.items import ScoreItem
    >>> score = mean_over_references(lambda candidate, reference: float(candidate == reference))
    >>> score(ScoreItem(id="a", source="", candidate="x", references=("x", "y")), ["fluency"])
    0.5
    """

    def score(item: ScoreItem, _aspects: Sequence[str]) -> float:
        return fmean(pair(item.candidate, reference) for reference in item.references)

    return score


def number_of(scored: Scored, aspect: str) -> float:
    """Return the number for an aspect.

    Raises:
        ValueError: there is none, or it is none that can be counted with.
    """
    number = scored.get(aspect) if isinstance(scored, Mapping) else scored
    if number is None:
        raise ValueError(f"no score for {aspect}")
    if not math.isfinite(number):
        raise ValueError(f"the score is {number}")
    return number
