"""Measure what a judge gives for a feature of a text, such as its length, beyond the quality that
humans see.

Labels are noisy. A judge that sees quality better than they do follows everything that goes with
quality further than they do: length, or the model that wrote the text. A comparison with the labels
would call that a bias. Two halves of the annotators with independent noise show how large the noise
is, and the effect can be corrected for it (Fuller 1987, Measurement error models, section 1.2;
Spearman 1904 for correlations).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .alignment import Floats, Ints, number_groups
from .resampling import FEWEST_CLUSTERS, Resampling, Statistic, Weights


class GivenQuality(NamedTuple):
    """The effect of a feature on verdicts, with quality held constant, with its interval and
    two-sided p-value.
    """

    effect: Statistic
    p: float | None


MOST_UNDEFINED = 0.01
"""With more resamples than this share without a figure, labels say too little of quality to correct
for it."""


def effect_given_quality(
    judged: Floats,
    feature: Floats,
    halves: Floats,
    clusters: Ints,
    resampling: Resampling,
    *,
    within: bool = False,
) -> GivenQuality:
    """Return the slope of verdicts on a feature, with the true quality of the texts held constant.

    With J the verdict, X the feature, A and B the labels of both halves and Q the quality that they
    share, cov(A, B) is var(Q), and the mean of cov(J, A) and cov(J, B) is cov(J, Q). The slope of J
    on X, given Q, is

        (cov(J, X) var(Q) - cov(J, Q) cov(X, Q)) / (var(X) var(Q) - cov(X, Q)^2).

    If J follows from Q alone, up to noise and a linear scale, it is 0, however noisy the labels
    are.

    Args:
        judged: of each text the judge's verdict.
        feature: of each text its feature.
        halves: of each text the mean label of either half of its annotators, of shape (texts, 2).
        clusters: of each text a number that texts drawn together share.
        resampling: how intervals are made.
        within: compare the texts of a cluster with each other alone, not those of different
            sources.

    Returns:
        the slope; without a value where it does not exist, and without interval and p-value where
        the labels of both halves agree too little, or there are fewer than ``FEWEST_CLUSTERS``
        clusters.

    >>> random = np.random.default_rng(0)
    >>> quality, noise = random.normal(size=400), random.normal(size=(400, 2))
    >>> length = quality + random.normal(size=400)
    >>> labels = quality[:, None] + noise
    >>> fair = effect_given_quality(quality, length, labels, np.arange(400), Resampling())
    >>> biased = effect_given_quality(quality + 0.5 * length, length, labels, np.arange(400), Resampling())
    >>> abs(fair.effect.value) < 0.05, round(biased.effect.value, 1), fair.p > 0.05, biased.p < 0.05
    (True, 0.5, True, True)
    """
    clusters = number_groups(clusters)
    count = int(clusters.max(initial=-1)) + 1
    columns = np.column_stack([np.ones(len(judged)), judged, feature, halves])
    if within:
        sizes = np.bincount(clusters)
        means = np.stack(
            [np.bincount(clusters, column) / sizes for column in columns[:, 1:].T], axis=1
        )
        columns[:, 1:] -= means[clusters]
    products = columns[:, :, None] * columns[:, None, :]
    sums = np.zeros((count, 25))
    np.add.at(sums, clusters, products.reshape(-1, 25))

    def slope(weights: Weights) -> Floats:
        moments = (weights @ sums).reshape(-1, 5, 5)
        rows = np.maximum(moments[:, 0, 0], 1e-12)[:, None, None]
        means = moments[:, 0, :] / rows[:, 0]
        covariances = moments / rows - means[:, :, None] * means[:, None, :]
        of_judge = covariances[:, 1, 3:].mean(axis=1)
        of_feature = covariances[:, 2, 3:].mean(axis=1)
        quality = covariances[:, 3, 4]
        left = covariances[:, 2, 2] * quality - of_feature**2
        known = (quality > 1e-12) & (left > 1e-12)
        result: Floats = np.full(len(quality), np.nan)
        above = covariances[:, 1, 2] * quality - of_judge * of_feature
        np.divide(above, left, out=result, where=known)
        return result

    if not count:
        return GivenQuality(Statistic(None), None)
    value = float(slope(np.ones((1, count), dtype=np.int64))[0])
    if np.isnan(value):
        return GivenQuality(Statistic(None), None)
    drawn = resampling.figures(count, slope)
    if count < FEWEST_CLUSTERS or not len(drawn) or np.isnan(drawn).mean() > MOST_UNDEFINED:
        return GivenQuality(Statistic(value), None)
    return GivenQuality(*resampling.studentised(value, drawn, count))


def halves_of(labels: Floats) -> Floats:
    """Return the mean label of either half of the annotators, of shape (texts, 2); NaN where a half
    gave none.

    Each text's annotators are divided among themselves, in the order of their columns: the first,
    third and so on are one half. So a text that only the first and the fifth have labelled has two
    halves, too.

    Args:
        labels: of shape (texts, annotators); NaN where one gave none.

    >>> halves_of(np.array([[1.0, np.nan, 2.0, 3.0], [4.0, np.nan, np.nan, np.nan]])).tolist()
    [[2.0, 2.0], [4.0, nan]]
    """
    given = ~np.isnan(labels)
    places = given.cumsum(axis=1)
    halves = []
    for half in (1, 0):
        chosen = given & (places % 2 == half)
        counts = chosen.sum(axis=1)
        sums = np.where(chosen, labels, 0.0).sum(axis=1)
        halves.append(np.where(counts > 0, sums / np.maximum(counts, 1), np.nan))
    return np.column_stack(halves)
