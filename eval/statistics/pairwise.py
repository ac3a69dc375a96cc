"""Accuracy of a judge's pairwise orders, with calibrated ties: of texts in a group, or of systems.

A judge orders a pair of texts correctly if humans have the same order, or if both call the pair a
tie. Scores with many decimals are almost never equal, so a judge's pair counts as a tie if its
scores differ by at most a threshold. Without a threshold, a judge with few steps would gain or lose
by its ties alone. Sources: Deutsch, Foster and Freitag 2023, Ties Matter, section 5 (accuracy and
threshold); Thompson, Mathur, Deutsch and Khayrallah 2024, Improving Statistical Significance in
Human Evaluation of Automatic Metrics via Soft Pairwise Accuracy.

The published threshold is the one with the highest accuracy on the scored pairs themselves. This
favours judges with many different scores, because they have more thresholds to choose from.
``GroupPairs.cross_fitted`` therefore fits the threshold of each group on other groups.
``GroupPairs.fitted`` is the published value.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .alignment import Floats, Ints, code_count
from .resampling import AT_ONCE

FOLDS = 20
"""Groups are split into so many parts; the threshold of a part is fitted on the other parts."""
_MOST_PAIRS = 1 << 22
"""A threshold is fitted on groups with at most about so many pairs: more have no effect on it."""
_MOST_ROWS = 4096
"""Larger groups do not count, because the number of pairs grows with the square."""
_ROUNDING = 1e-12
"""The part of the widest difference up to which two differences are equal: sums of floats vary."""


@dataclass(frozen=True)
class Fit:
    """A tie threshold and the accuracy on the pairs that it was fitted on.

    Attributes:
        threshold: the largest difference of a judge's scores that counts as a tie.
        accuracy: the mean over groups, between 0 and 1; NaN without pairs.
    """

    threshold: float
    accuracy: float


@dataclass(frozen=True)
class _Pairs:
    """The pairs of some groups.

    Attributes:
        group: the code of each pair's group.
        gap: the absolute difference of the judge's scores.
        same_order: whether judge and humans have the same order, if the pair is no tie.
        human_tie: whether the human scores are equal.
        weight: the part of each pair in the mean of its group.
    """

    group: Ints
    gap: Floats
    same_order: NDArray[np.bool_]
    human_tie: NDArray[np.bool_]
    weight: Floats


class GroupPairs:
    """All pairs of texts of a group, for the accuracy of a judge's orders.

    Args:
        judged: the judge's score of each row.
        human: the human score of each row.
        groups: the code of each row's group, from 0 without gaps.
        repeats: the number of each row's repeat, if a judge scored texts several times. Only rows
            of one repeat form pairs, because a text is no pair with itself.

    >>> pairs = GroupPairs(np.array([0.0, 2, 6, 8]), np.array([1.0, 1, 1, 4]), np.zeros(4, dtype=int))
    >>> pairs.fitted()
    Fit(threshold=4.0, accuracy=0.6666666666666666)
    """

    def __init__(
        self, judged: Floats, human: Floats, groups: Ints, repeats: Ints | None = None
    ) -> None:
        self._judged = judged
        self._human = human
        self._groups = groups
        self._count = code_count(groups)
        blocks = groups if repeats is None else groups * (code_count(repeats) or 1) + repeats
        order = np.argsort(blocks, kind="stable")
        starts = np.flatnonzero(np.diff(blocks[order], prepend=-1))
        rows = np.split(order, starts[1:]) if len(order) else []
        self._blocks = [block for block in rows if 1 < len(block) <= _MOST_ROWS]
        self._blocks_of_group = np.bincount(
            [int(groups[block[0]]) for block in self._blocks], minlength=self._count
        )

    def accuracies(self, thresholds: Floats) -> Floats:
        """Return the accuracy of each group with its own threshold; NaN for groups without pairs.

        Args:
            thresholds: one per group.
        """
        right = np.zeros(self._count)
        for start in range(0, len(self._blocks), self._at_once):
            pairs = self._pairs(self._blocks[start : start + self._at_once])
            tied = pairs.gap <= thresholds[pairs.group] + self._rounding
            correct = np.where(tied, pairs.human_tie, pairs.same_order)
            right += np.bincount(pairs.group, pairs.weight * correct, minlength=self._count)
        return np.where(self._blocks_of_group > 0, right, np.nan)

    def fitted(self) -> Fit:
        """Return the threshold with the highest mean accuracy on all groups, and this accuracy.

        This is the published value (Deutsch, Foster and Freitag 2023). The smallest of equally good
        thresholds counts.
        """
        return self._fit(np.ones(self._count, dtype=bool))

    def cross_fitted(self) -> Floats:
        """Return the accuracy of each group, with a threshold fitted on other groups.

        A single group has no others: its threshold is 0.
        """
        folds = np.arange(self._count) % FOLDS
        thresholds = np.zeros(self._count)
        for fold in range(min(FOLDS, self._count)):
            others = self._fit(folds != fold)
            thresholds[folds == fold] = others.threshold
        return self.accuracies(thresholds)

    @cached_property
    def _rounding(self) -> float:
        return _ROUNDING * float(np.ptp(self._judged)) if len(self._judged) else 0.0

    @cached_property
    def _at_once(self) -> int:
        largest = max(map(len, self._blocks), default=2)
        return max(1, 2 * _MOST_PAIRS // (largest * (largest - 1)))

    @cached_property
    def _sorted_pairs(self) -> _Pairs:
        """The pairs for fits, by gap; of many groups, a systematic sample."""
        sizes = np.array([len(block) for block in self._blocks], dtype=float)
        every = max(1, int(np.ceil((sizes * (sizes - 1) / 2).sum() / _MOST_PAIRS)))
        pairs = self._pairs(self._blocks[::every])
        order = np.argsort(pairs.gap, kind="stable")
        return _Pairs(
            pairs.group[order],
            pairs.gap[order],
            pairs.same_order[order],
            pairs.human_tie[order],
            pairs.weight[order],
        )

    def _pairs(self, blocks: list[Ints]) -> _Pairs:
        judged_apart = [np.zeros(0)]
        human_apart = [np.zeros(0)]
        group = [np.zeros(0, dtype=np.intp)]
        weight = [np.zeros(0)]
        for size in {len(block) for block in blocks}:
            table = np.stack([block for block in blocks if len(block) == size])
            first, second = np.triu_indices(size, 1)
            for column, apart in ((self._judged, judged_apart), (self._human, human_apart)):
                apart.append((column[table][:, first] - column[table][:, second]).ravel())
            of_block = self._groups[table[:, 0]]
            group.append(np.repeat(of_block, len(first)))
            weight.append(1 / len(first) / self._blocks_of_group[group[-1]])
        judged = np.concatenate(judged_apart)
        human = np.concatenate(human_apart)
        human_tie = np.abs(human) <= _ROUNDING * (np.ptp(self._human) if len(self._human) else 0)
        same_order = (np.sign(judged) == np.sign(human)) & ~human_tie
        return _Pairs(
            np.concatenate(group), np.abs(judged), same_order, human_tie, np.concatenate(weight)
        )

    def _fit(self, used: NDArray[np.bool_]) -> Fit:
        pairs = self._sorted_pairs
        weight = np.where(used[pairs.group], pairs.weight, 0.0)
        groups = len(np.unique(pairs.group[weight > 0]))
        if not groups:
            return Fit(0.0, float("nan"))
        # With a growing threshold, one pair after the other becomes a tie.
        ordered = float(weight @ pairs.same_order)
        gain = np.cumsum(weight * (pairs.human_tie.astype(float) - pairs.same_order))
        gaps = pairs.gap
        last = np.append(np.diff(gaps) > self._rounding, True)
        thresholds = np.append(0.0, gaps[last])
        accuracy = (ordered + np.append(0.0, gain[last])) / groups
        if gaps[0] <= self._rounding:
            # Equal scores are always ties.
            thresholds = thresholds[1:]
            accuracy = accuracy[1:]
        best = int(np.argmax(accuracy >= accuracy.max() - _ROUNDING))
        return Fit(float(thresholds[best]), float(accuracy[best]))


def same_orders(judged: Floats, human: Floats) -> float | None:
    """Return the share of pairs of systems that the judge's and the human values order alike.

    A pair that both call equal counts as ordered alike (Kocmi et al. 2021, To Ship or Not to Ship,
    section 4).

    Args:
        judged, human: the value of each system.

    Returns:
        the share; ``None`` for fewer than two systems.

    >>> same_orders(np.array([1.0, 2, 3]), np.array([1.0, 3, 2]))
    0.6666666666666666
    """
    if len(judged) < 2:
        return None
    return float(np.mean(_signs(judged) == _signs(human)))


def _signs(values: Floats) -> Floats:
    first, second = np.triu_indices(len(values), 1)
    apart = values[first] - values[second]
    signs: Floats = np.where(np.abs(apart) <= _ROUNDING * np.ptp(values), 0.0, np.sign(apart))
    return signs


PERMUTATIONS = 1000
"""The number of random permutations behind a p-value of soft pairwise accuracy, as published."""


def random_signs(clusters: int, seed: int = 0) -> NDArray[np.int8]:
    """Return random permutations of the two systems of a pair: 1 keeps a cluster, -1 swaps it.

    Args:
        clusters: the number of clusters.
        seed: the seed of the generator.

    Returns:
        signs of shape (permutations, clusters).
    """
    drawn = np.random.default_rng(seed).integers(0, 2, (PERMUTATIONS, clusters), dtype=np.int8)
    return 2 * drawn - 1


def soft_agreement(
    judged: Floats, human: Floats, signs: NDArray[np.int8] | None = None
) -> float | None:
    """Return soft pairwise accuracy: 1 minus the mean difference of both sides' p-values.

    For each pair of systems, a side's p-value comes from a paired permutation test that the first
    system is better. Two certain and opposite conclusions count 0, two certain and equal ones 1,
    and a certain and an uncertain one about a half (Thompson et al. 2024, section 3).

    Args:
        judged, human: mean scores, of shape (clusters, systems); NaN where a cluster has no text of
            a system.
        signs: the permutations, of shape (permutations, clusters); ``random_signs`` by default.

    Returns:
        the accuracy; ``None`` for fewer than two systems, or if two systems share fewer than two
        clusters, because there is no standard error then.

    >>> human = np.arange(40.0)[:, None] % 7 + np.array([0.0, 1, 2])
    >>> soft_agreement(human, human), round(soft_agreement(-human, human), 3)
    (1.0, 0.0)
    """
    known = ~np.isnan(judged + human)
    shared = known.T.astype(np.int64) @ known
    systems = judged.shape[1]
    if systems < 2 or shared[np.triu_indices(systems, 1)].min() < 2:
        return None
    signs = random_signs(len(judged)) if signs is None else signs
    apart = np.abs(_p_values(judged, known, signs) - _p_values(human, known, signs))
    return 1 - float(apart.mean())


def _p_values(scores: Floats, known: NDArray[np.bool_], signs: NDArray[np.int8]) -> Floats:
    """Return for each pair the share of permutations in which the first leads at least as much."""
    values = np.where(known, scores, 0.0)
    rounding = _ROUNDING * max(1.0, float(np.abs(values).sum()))
    by_first = []
    for first in range(values.shape[1] - 1):
        # Only clusters with texts of both systems count.
        both = known[:, [first]] & known[:, first + 1 :]
        by_first.append(np.where(both, values[:, [first]] - values[:, first + 1 :], 0.0))
    apart = np.concatenate(by_first, axis=1)
    least = apart.sum(axis=0) - rounding
    leading = np.zeros(apart.shape[1], dtype=np.int64)
    # All permutations at once would need 8 KB for each cluster.
    some = max(1, AT_ONCE // len(apart))
    for start in range(0, len(signs), some):
        null = signs[start : start + some].astype(float) @ apart
        leading += (null >= least).sum(axis=0)
    return leading / len(signs)
