"""Test whether a judge could take the place of one of the people who label (alternative annotator test).

Calderon, Reichart and Dror, "The Alternative Annotator Test for LLM-as-a-Judge", ACL 2025: each annotator is left out
in turn, and both the annotator and the judge are compared with the others, item by item.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ...state.errors import UsageError
from .alignment import Floats
from .resampling import mean_or_none

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
    judged: Floats,
    labels: Floats,
    names: Sequence[str],
    closeness: Closeness = "accuracy",
    epsilon: float = 0.1,
) -> AlternativeAnnotatorTest:
    """Test whether a judge could replace annotators.

    Args:
        judged: the judge's label of each item, or the label's code; NaN where there is none.
        labels: those of the annotators likewise, of shape (items, annotators).
        names: of the annotators.
        closeness: how close a label is to others: ``accuracy`` for classes, ``rmse`` for numbers on one scale.
        epsilon: how much less often the judge may win.

    Raises:
        UsageError: an epsilon that is not between 0 and 1.

    >>> items = np.arange(40.0) % 3
    >>> result = alternative_annotator_test(items, np.stack([items] * 3, axis=1), ["Ann", "Bob", "Cem"])
    >>> result.winning_rate, result.advantage, result.passed
    (1.0, 1.0, True)
    """
    from scipy import stats

    if not 0 <= epsilon < 1:
        raise UsageError(f"epsilon must be at least 0 and below 1, got {epsilon}")
    compared = []
    for place, name in enumerate(names):
        own, others = labels[:, place], np.delete(labels, place, axis=1)
        both = ~np.isnan(own + judged) & ~np.isnan(others).all(axis=1)
        if both.sum() < FEWEST_ITEMS:
            continue
        of_judge, of_annotator = (_close(given[both], others[both], closeness) for given in (judged, own))
        judge_wins, annotator_wins = of_judge >= of_annotator, of_annotator >= of_judge
        excess = annotator_wins.astype(float) - judge_wins
        # Without variation Student's t does not exist, and the mean is all there is to know.
        p = float(excess[0] >= epsilon)
        if np.ptp(excess):
            p = float(stats.ttest_1samp(excess, epsilon, alternative="less").pvalue)
        shares = float(judge_wins.mean()), float(annotator_wins.mean())
        compared.append(AnnotatorLeftOut(name, len(excess), *shares, p))
    p_values = [annotator.p for annotator in compared]
    adjusted = stats.false_discovery_control(p_values, method="by") if compared else ()
    tested = (
        replace(annotator, beaten=bool(p <= FALSE_DISCOVERIES))
        for annotator, p in zip(compared, adjusted, strict=True)
    )
    return AlternativeAnnotatorTest(epsilon, tuple(tested))


def _close(labels: Floats, others: Floats, closeness: Closeness) -> Floats:
    """Return how close each label is to those of others that there are: the higher the closer."""
    if closeness == "accuracy":
        close: Floats = np.nanmean(np.where(np.isnan(others), np.nan, others == labels[:, None]), axis=1)
    else:
        close = -np.sqrt(np.nanmean((others - labels[:, None]) ** 2, axis=1))
    return close
