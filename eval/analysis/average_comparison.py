"""Means over the aspects of a dataset, held against each other: what the papers' ``average`` column says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from statistics import fmean

import numpy as np

from ..statistics.resampling import Statistic, two_sided_p
from ..statistics.significance import holm
from .comparison import AverageComparison, Difference, PairwiseComparator, Side
from .measures import OVER_ROWS, Sample

There = tuple[PairwiseComparator, Mapping[str, Side]]
"""A subject, with those who judged it by their labels."""


def average_comparisons(subjects: Sequence[There], base: str | None) -> tuple[AverageComparison, ...]:
    """All pairs of those who judged all of a dataset's score subjects; none where there are fewer than two of these.

    Args:
        subjects: of one dataset.
        base: the label of its base, if it has one.
    """
    scores = [(comparator, there) for comparator, there in subjects if comparator.kind == "score"]
    if len(scores) < 2:
        return ()
    labels = [label for label in scores[0][1] if all(label in there for _, there in scores)]
    others = [label for label in labels if label != base]
    pairs = [(label, base) for label in others if base in labels and base is not None]
    pairs += list(combinations(others, 2))
    return _adjusted([_pairwise(scores, first, second, base) for first, second in pairs])


def _pairwise(subjects: Sequence[There], first: str, second: str, base: str | None) -> AverageComparison:
    samples = list(_samples(subjects, first, second))
    units = samples[0][0].units
    paired = all(np.array_equal(each.units, units) for pair in samples for each in pair)
    return AverageComparison(
        data=subjects[0][0].subject.data,
        digest=subjects[0][0].subject.digest,
        first=first,
        second=second,
        differences={name: _difference(name, samples, paired) for name in OVER_ROWS},
        units=len(np.unique(units)) if paired else 0,
        with_base=second == base,
    )


def _samples(subjects: Sequence[There], first: str, second: str) -> Iterator[tuple[Sample, Sample]]:
    for comparator, there in subjects:
        one, other = there[first], there[second]
        shared = comparator.shared(one, other)
        yield comparator.sample(one, shared), comparator.sample(other, shared)


def _difference(name: str, samples: Sequence[tuple[Sample, Sample]], paired: bool) -> Difference:
    """Of the means; its interval and p from resamples that all subjects share, none where they draw different units."""
    first, second = (_mean([each.value(name) for each in side]) for side in zip(*samples, strict=True))
    value = None if first is None or second is None else first - second
    if not paired or value is None:
        return Difference(name, first, second, Statistic(value))
    drawn = np.mean([one.drawn(name) - other.drawn(name) for one, other in samples], axis=0)
    found = samples[0][0].resampling.interval(value, drawn)
    return Difference(name, first, second, found, None if found.low is None else two_sided_p(drawn))


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


def _adjusted(pairwise: Sequence[AverageComparison]) -> tuple[AverageComparison, ...]:
    """With p-values that hold for all of them together, as those of single subjects are adjusted."""
    found = list(pairwise)
    for name in OVER_ROWS:
        values = [pair.differences[name].p for pair in pairwise]
        of_all = holm(values)
        to_base = holm([p if pair.with_base else None for pair, p in zip(pairwise, values, strict=True)])
        for at, pair in enumerate(found):
            one = replace(pair.differences[name], adjusted=of_all[at], adjusted_to_base=to_base[at])
            found[at] = replace(pair, differences={**pair.differences, name: one})
    return tuple(found)
