"""Measure a method's gain over the base with each model on one dataset, and the mean over models.

A gain over another model's base would mix the effect of the method with that of the model. A
random-effects model averages the differences on shared rows: the models' true gains vary with a
standard deviation tau (DerSimonian and Laird 1986). The interval of their mean allows for that
(Hartung and Knapp 2001) and is never narrower than without it (Roever, Knapp and Friede 2015).
Nothing is averaged over datasets, because their labels, scales and leading metrics differ.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Annotated, NamedTuple

import numpy as np

from ..results.folder import signature_parts
from ..statistics.alignment import grouped
from ..statistics.resampling import Resampling, Statistic, student_interval
from ..statistics.sample import Pair, paired_difference
from ..tables import Column, text_column
from .comparison import PairwiseComparator
from .judges import Labelled, judge_labels
from .loading import LoadedJudge

POOLED = "pooled"
_OF_LEVEL = ("models", "replies", "data", "aspects", "rule")
"""The parts of a signature that do not describe the method."""


class LevelGain(NamedTuple):
    """The gain of a method over the base of the same model, or the mean over the models.

    Attributes:
        method: its protocol, with the settings that distinguish it from others of that protocol.
        level: the model; ``POOLED`` for the mean over models.
        base: the base's figure with this model.
        gain: the method's figure minus the base's, on the rows of both, averaged over aspects.
        between: for the pooled gain, the standard deviation of the true gains between models (tau).
    """

    method: Annotated[str, text_column("method")]
    level: Annotated[str, text_column("model")]
    base: Annotated[float | None, Column("base")]
    gain: Annotated[Statistic, Column("gain", best="high")]
    """gain over the base of the same model"""
    between: Annotated[float | None, Column("sd between models")] = None
    """of the true gains (tau)"""


class PooledGains(NamedTuple):
    """The gains on one dataset, in one metric, over one base protocol.

    Attributes:
        data: the dataset's name.
        base: the base's protocol.
        metric: its name.
        rows: method by method, the pooled gain last.
    """

    data: str
    base: str
    metric: str
    rows: tuple[LevelGain, ...]


def pooled_gains(
    comparators: Sequence[PairwiseComparator], bases: Mapping[str, str], resampling: Resampling
) -> tuple[PooledGains, ...]:
    """Average the gains over the models of each dataset.

    A dataset has gains only if some method has a base of the same model for two models or more.

    Args:
        comparators: the comparators of the subjects of one or more datasets.
        bases: the label of the base judge by dataset digest.
        resampling: how intervals are computed.
    """
    by_data = grouped((comparator.subject.digest, comparator) for comparator in comparators)
    found = (
        _of_dataset(of_data, bases.get(digest), resampling) for digest, of_data in by_data.items()
    )
    return tuple(filter(None, found))


def _of_dataset(
    comparators: Sequence[PairwiseComparator], base: str | None, resampling: Resampling
) -> PooledGains | None:
    judges = {
        data.judge.label: data.judge for comparator in comparators for data in comparator.data
    }
    metrics = {comparator.subject.metric for comparator in comparators}
    # Gains in different metrics have no common mean.
    if base not in judges or len(metrics) != 1:
        return None
    base_protocol = judges[base].protocol
    (metric,) = metrics
    # Judges without their models, so that judges of one method have one label.
    methods = {}
    for judge in judges.values():
        parts = signature_parts(judge.signature).items()
        of_method = "|".join(f"{key}:{value}" for key, value in parts if key not in _OF_LEVEL)
        methods[judge.label] = Labelled(judge.protocol, of_method)
    different = list(
        dict.fromkeys(methods[label] for label, judge in judges.items() if judge.models)
    )
    pairs: defaultdict[Labelled, defaultdict[str, list[Pair]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for comparator in comparators:
        with_models = [(data, _models(data.judge)) for data in comparator.data if data.judge.models]
        # Backwards, so that the first of several bases of a model stays.
        bases_of = {
            model: of for of, model in reversed(with_models) if of.judge.protocol == base_protocol
        }
        for data, model in with_models:
            if model in bases_of and data.judge.protocol != base_protocol:
                of_level = pairs[methods[data.judge.label]][model]
                of_level.append(comparator.pair(data.side, bases_of[model].side))
    rows: list[LevelGain] = []
    for method, name in zip(different, judge_labels(different), strict=True):
        levels = []
        for level, samples in pairs[method].items():
            apart = paired_difference(samples, metric)
            levels.append(LevelGain(name, level, apart.second, apart.difference))
        if len(levels) > 1:
            rows += [*levels, _pooled(name, levels, resampling.confidence)]
    name_of_data = comparators[0].subject.data
    return PooledGains(name_of_data, base_protocol, metric, tuple(rows)) if rows else None


def _models(judge: LoadedJudge) -> str:
    return " + ".join(dict.fromkeys(label.partition("?")[0] for label in judge.models.values()))


def _pooled(method: str, levels: Sequence[LevelGain], confidence: float) -> LevelGain:
    """Pool the gains with an interval, because the others have no known error."""
    known = [
        (gain.value, (gain.high - gain.low) / 2)
        for gain in (level.gain for level in levels)
        if gain.value is not None
        and gain.low is not None
        and gain.high is not None
        and gain.high > gain.low
    ]
    if len(known) < 2:
        return LevelGain(method, POOLED, None, Statistic(None))
    from scipy.stats import norm

    gains = np.array([gain for gain, _ in known])
    variances = (np.array([margin for _, margin in known]) / norm.ppf((1 + confidence) / 2)) ** 2
    weights = 1 / variances
    free = len(known) - 1
    fixed = float((weights * gains).sum() / weights.sum())
    excess = float((weights * (gains - fixed) ** 2).sum()) - free
    # Tau squared by the method of moments, which can be negative if levels differ less than by
    # chance.
    between = max(0.0, excess / float(weights.sum() - (weights**2).sum() / weights.sum()))
    weights = 1 / (variances + between)
    mean = float((weights * gains).sum() / weights.sum())
    spread = float((weights * (gains - mean) ** 2).sum()) / free
    # At least 1. If levels happen to agree, the interval would be narrower than without the
    # correction.
    error = math.sqrt(max(1.0, spread) / float(weights.sum()))
    low, high, _ = student_interval(mean, error, free, confidence)
    return LevelGain(method, POOLED, None, Statistic(mean, low, high), math.sqrt(between))
