"""Measure what a method gains over the base within each level, a model on a dataset, and pool that over the levels.

A gain over another model's base would mix two things: what the method does, and which model it has. Pooled are the
differences on shared rows, by a random-effects model: the levels' true gains vary with a standard deviation tau
(DerSimonian and Laird 1986), and the interval of their mean allows for that (Hartung and Knapp 2001), never narrower
than without it (Roever, Knapp and Friede 2015).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Annotated, NamedTuple

import numpy as np

from ..results.folder import signature_parts
from ..statistics.resampling import Resampling, Statistic, student_interval
from ..statistics.sample import Pair, paired_difference
from ..tables import Column, text_column
from .comparison import PairwiseComparator
from .judges import Labelled, judge_labels
from .loading import LoadedJudge

POOLED = "pooled"
_OF_LEVEL = ("models", "replies", "data", "aspects", "rule")
"""The parts of a signature that say nothing of the method."""


class LevelGain(NamedTuple):
    """Holds the gain of a method over the base of the same model on one dataset, or over all of them.

    Attributes:
        method: its protocol, with what tells it from others of that protocol.
        level: dataset and model; ``POOLED`` for the mean over levels.
        base: the base's figure there.
        gain: the method's figure less the base's, on the rows of both, averaged over aspects.
        between: of the pooled gain, the standard deviation of the true gains between levels (tau).
    """

    method: Annotated[str, text_column("method")]
    level: Annotated[str, text_column("level")]
    base: Annotated[float | None, Column("base")]
    gain: Annotated[Statistic, Column("gain", best="high")]
    """gain over the base of the same model"""
    between: Annotated[float | None, Column("sd between levels")] = None
    """of the true gains (tau)"""


class PooledGains(NamedTuple):
    """Holds the gains in one metric over one base protocol; ``rows`` are method by method, the pooled gain last."""

    base: str
    metric: str
    rows: tuple[LevelGain, ...]


def pooled_gains(
    comparators: Sequence[PairwiseComparator], bases: Mapping[str, str], resampling: Resampling
) -> tuple[PooledGains, ...]:
    """Pool gains over levels; empty unless some method has a base of its own model on two levels or more."""
    judges = {data.judge.label: data.judge for comparator in comparators for data in comparator.data}
    protocols = {judges[label].protocol for label in bases.values() if label in judges}
    metrics = {comparator.subject.metric for comparator in comparators}
    # Gains in different metrics have no common mean.
    if len(protocols) != 1 or len(metrics) != 1:
        return ()
    (base_protocol,), (metric,) = protocols, metrics
    # Judges without their models, so that those of one method have one label.
    methods = {}
    for judge in judges.values():
        parts = signature_parts(judge.signature).items()
        of_method = "|".join(f"{key}:{value}" for key, value in parts if key not in _OF_LEVEL)
        methods[judge.label] = Labelled(judge.protocol, of_method)
    different = list(dict.fromkeys(methods[label] for label, judge in judges.items() if judge.models))
    pairs: defaultdict[Labelled, defaultdict[str, list[Pair]]] = defaultdict(lambda: defaultdict(list))
    for comparator in comparators:
        with_models = [(data, _models(data.judge)) for data in comparator.data if data.judge.models]
        # Backwards, so that of several bases of a model the first one stays.
        bases_of = {model: of for of, model in reversed(with_models) if of.judge.protocol == base_protocol}
        for data, model in with_models:
            if model in bases_of and data.judge.protocol != base_protocol:
                of_level = pairs[methods[data.judge.label]][f"{data.subject.data}, {model}"]
                of_level.append(comparator.samples(data.side, bases_of[model].side))
    rows: list[LevelGain] = []
    for method, name in zip(different, judge_labels(different), strict=True):
        levels = []
        for level, samples in pairs[method].items():
            apart = paired_difference(samples, metric)
            levels.append(LevelGain(name, level, apart.second, apart.difference))
        if len(levels) > 1:
            rows += [*levels, _pooled(name, levels, resampling.confidence)]
    return (PooledGains(base_protocol, metric, tuple(rows)),) if rows else ()


def _models(judge: LoadedJudge) -> str:
    return " + ".join(dict.fromkeys(label.partition("?")[0] for label in judge.models.values()))


def _pooled(method: str, levels: Sequence[LevelGain], confidence: float) -> LevelGain:
    """Pool the gains that have an interval; the others say nothing of their own error."""
    known = [
        (gain.value, (gain.high - gain.low) / 2)
        for gain in (level.gain for level in levels)
        if gain.value is not None and gain.low is not None and gain.high is not None and gain.high > gain.low
    ]
    if len(known) < 2:
        return LevelGain(method, POOLED, None, Statistic(None))
    from scipy.stats import norm

    gains = np.array([gain for gain, _ in known])
    variances = (np.array([margin for _, margin in known]) / norm.ppf((1 + confidence) / 2)) ** 2
    weights, free = 1 / variances, len(known) - 1
    fixed = float((weights * gains).sum() / weights.sum())
    excess = float((weights * (gains - fixed) ** 2).sum()) - free
    # Tau squared by the method of moments, which would be negative where levels differ less than chance makes them.
    between = max(0.0, excess / float(weights.sum() - (weights**2).sum() / weights.sum()))
    weights = 1 / (variances + between)
    mean = float((weights * gains).sum() / weights.sum())
    spread = float((weights * (gains - mean) ** 2).sum()) / free
    # Not below 1: with levels that happen to agree, the interval would be narrower than without the correction.
    error = math.sqrt(max(1.0, spread) / float(weights.sum()))
    low, high, _ = student_interval(mean, error, free, confidence)
    return LevelGain(method, POOLED, None, Statistic(mean, low, high), math.sqrt(between))
