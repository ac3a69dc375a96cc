"""Figures beside agreement with people, computed from what verdicts keep of how they came about."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import fsum
from typing import Any, Literal

from ..statistics.reliability import krippendorff_alpha
from ..statistics.resampling import Resampling
from ..statistics.statistic import Statistic
from .result import CellResult

Extra = Literal["alpha", "spread", "weight"]


@dataclass(frozen=True)
class Further:
    """A figure of a cell.

    Attributes:
        name: its heading.
        about: what it is, in a sentence.
        compute: of a cell.
        digits: decimals.
    """

    name: str
    about: str
    compute: Callable[[CellResult], Statistic]
    digits: int = 3


def advocates_alpha(one: CellResult) -> Statistic:
    """Krippendorff's alpha (interval) of the totals that the defences of one answer got, each scored alone.

    1: all defences of an answer are worth the same; 0: no more alike than defences of different answers.
    Resampled are items.
    """
    units = [(item, totals) for item, side in _sides(one) for totals in [side["totals"]]]
    found = krippendorff_alpha(
        [totals for _, totals in units], groups=[item for item, _ in units], resampling=Resampling()
    )
    return found.alpha


def advocates_spread(one: CellResult) -> Statistic:
    """By how many points the best defence of an answer exceeds the worst one, on average."""
    return _mean([max(side["totals"]) - min(side["totals"]) for _, side in _sides(one)])


def picked_weight(one: CellResult) -> Statistic:
    """The softmax weight of the defence that represents its answer, on average."""
    return _mean([max(side["weights"]) for _, side in _sides(one)])


EXTRAS: Mapping[Extra, Further] = {
    "alpha": Further("alpha", "Krippendorff's alpha between the defences of an answer", advocates_alpha),
    "spread": Further(
        "spread", "points between an answer's best and worst defence", advocates_spread, digits=1
    ),
    "weight": Further("weight of the best", "softmax weight of the defence that is picked", picked_weight),
}


def _sides(one: CellResult) -> Iterator[tuple[str, dict[str, Any]]]:
    """Of each verdict, round and side: the item, and the totals and weights of the side's defences."""
    for result in one.evaluation.results:
        for round in result.details.get("best", ()):
            for totals, weights in zip(round["totals"], round["weights"], strict=True):
                yield result.item, {"totals": totals, "weights": weights}


def _mean(values: list[float]) -> Statistic:
    return Statistic(fsum(values) / len(values) if values else None)
