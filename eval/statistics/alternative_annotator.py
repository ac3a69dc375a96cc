"""Test whether a judge could take the place of one of the people who label (alternative annotator test).

Calderon, Reichart and Dror, "The Alternative Annotator Test for LLM-as-a-Judge", ACL 2025: each annotator is left out
in turn, and both the annotator and the judge are compared with the others, item by item.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import numpy as np

from ...state.errors import UsageError
from .resampling import mean_or_none

Item = TypeVar("Item", bound=Hashable)
Closeness = Literal["accuracy", "rmse"]
"""How close one label is to those of others: the share of them that are equal, or the root mean squared difference."""

FEWEST_ITEMS = 30
"""Annotators with fewer items are left out of the test, as in the authors' code: Student's t needs about so many."""
FALSE_DISCOVERIES = 0.05
"""The rate of annotators wrongly found replaceable that is accepted (Benjamini and Yekutieli 2001)."""


@dataclass(frozen=True)
class AnnotatorLeftOut:
    """Compares a judge with one annotator who is left out.

    Attributes:
        annotator: the name.
        n: the items that the annotator, another one and the judge have all labelled.
        judge_wins, annotator_wins: the shares of items on which the one is at least as close to the others' labels as
            the other one; items on which both are count for both.
        p: one-sided: the judge wins at least as often as the annotator, less epsilon.
        beaten: whether that holds after correction over annotators.
    """

    annotator: str
    n: int
    judge_wins: float
    annotator_wins: float
    p: float
    beaten: bool = False


@dataclass(frozen=True)
class AlternativeAnnotatorTest:
    """Says whether a judge could replace an annotator.

    Attributes:
        epsilon: how much less often the judge may win, for its labels cost less: the authors take .2 for experts, .15
            for trained people, .1 for crowd workers.
        annotators: those with ``FEWEST_ITEMS`` items or more.
    """

    epsilon: float
    annotators: tuple[AnnotatorLeftOut, ...]

    @property
    def winning_rate(self) -> float | None:
        """The share of annotators whom the judge could replace; ``None`` where none has items enough."""
        return mean_or_none(np.array([annotator.beaten for annotator in self.annotators]))

    @property
    def advantage(self) -> float | None:
        """The mean chance that the judge is at least as close to the others as a random annotator."""
        return mean_or_none(np.array([annotator.judge_wins for annotator in self.annotators]))

    @property
    def passed(self) -> bool | None:
        """Whether the judge could replace half of the annotators or more."""
        return None if self.winning_rate is None else self.winning_rate >= 0.5


def alternative_annotator_test(
    judged: Mapping[Item, float | str],
    annotations: Mapping[str, Mapping[Item, float | str]],
    closeness: Closeness = "accuracy",
    epsilon: float = 0.1,
) -> AlternativeAnnotatorTest:
    """Test whether a judge could replace annotators.

    Args:
        judged: the judge's label of each item.
        annotations: of each annotator the label of each item that he or she labelled.
        closeness: how close a label is to others: ``accuracy`` for classes, ``rmse`` for numbers on one scale.
        epsilon: how much less often the judge may win.

    Raises:
        UsageError: an epsilon that is not between 0 and 1.

    >>> people = {name: {item: item % 3 for item in range(40)} for name in ("Ann", "Bob", "Cem")}
    >>> result = alternative_annotator_test({item: item % 3 for item in range(40)}, people)
    >>> result.winning_rate, result.advantage, result.passed
    (1.0, 1.0, True)
    """
    from scipy import stats

    if not 0 <= epsilon < 1:
        raise UsageError(f"epsilon must be at least 0 and below 1, got {epsilon}")
    compared = []
    for name, own in annotations.items():
        wins = []
        for item, label in own.items():
            others = [
                labels[item] for other, labels in annotations.items() if other != name and item in labels
            ]
            if others and item in judged:
                of_judge, of_annotator = (_close(given, others, closeness) for given in (judged[item], label))
                wins.append((of_judge >= of_annotator, of_annotator >= of_judge))
        if len(wins) >= FEWEST_ITEMS:
            judge_wins, annotator_wins = np.array(wins, dtype=float).T
            excess = annotator_wins - judge_wins
            # Without variation Student's t does not exist, and the mean is all there is to know.
            p = float(excess[0] >= epsilon)
            if np.ptp(excess):
                p = float(stats.ttest_1samp(excess, epsilon, alternative="less").pvalue)
            shares = float(judge_wins.mean()), float(annotator_wins.mean())
            compared.append(AnnotatorLeftOut(name, len(wins), *shares, p))
    p_values = [annotator.p for annotator in compared]
    adjusted = stats.false_discovery_control(p_values, method="by") if compared else ()
    beaten = [bool(p <= FALSE_DISCOVERIES) for p in adjusted]
    tested = (replace(annotator, beaten=is_) for annotator, is_ in zip(compared, beaten, strict=True))
    return AlternativeAnnotatorTest(epsilon, tuple(tested))


def _close(label: float | str, others: Sequence[float | str], closeness: Closeness) -> float:
    """Return how close a label is to others: the higher the closer."""
    if closeness == "accuracy":
        return float(np.mean([label == other for other in others]))
    return -float(np.sqrt(np.mean(np.subtract(float(label), np.asarray(others, dtype=float)) ** 2)))
