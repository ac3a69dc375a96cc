"""Compare two judges by their means over the aspects of a dataset: the papers' ``average`` column."""

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

JudgedSubject = tuple[PairwiseComparator, Mapping[str, Side]]
"""The comparator of a subject, and the judges that judged it, by their labels."""


def average_comparisons(subjects: Sequence[JudgedSubject], base: str | None) -> tuple[AverageComparison, ...]:
    """Compare all pairs of the judges that judged every score subject of one dataset.

    Args:
        subjects: of one dataset.
        base: the label of the dataset's base judge, if it has one.

    Returns:
        the pairs with the base first; none where the dataset has fewer than two score subjects.
    """
    scored = [(comparator, sides) for comparator, sides in subjects if comparator.kind == "score"]
    if len(scored) < 2:
        return ()
    labels = [label for label in scored[0][1] if all(label in sides for _, sides in scored)]
    others = [label for label in labels if label != base]
    pairs = [(label, base) for label in others if base in labels and base is not None]
    pairs += list(combinations(others, 2))
    return _adjusted([_compare(scored, first, second, base) for first, second in pairs])


def _compare(
    subjects: Sequence[JudgedSubject], first: str, second: str, base: str | None
) -> AverageComparison:
    samples = list(_sample_pairs(subjects, first, second))
    # Subjects share resamples only if the same units are drawn in the same order on each of them.
    units = samples[0][0].units
    paired = all(np.array_equal(sample.units, units) for pair in samples for sample in pair)
    target = subjects[0][0].subject
    return AverageComparison(
        data=target.data,
        digest=target.digest,
        first=first,
        second=second,
        differences={name: _difference(name, samples, paired) for name in OVER_ROWS},
        units=len(np.unique(units)) if paired else 0,
        with_base=second == base,
    )


def _sample_pairs(
    subjects: Sequence[JudgedSubject], first: str, second: str
) -> Iterator[tuple[Sample, Sample]]:
    """Yield both judges' samples on the rows that they share, subject by subject."""
    for comparator, sides in subjects:
        mine, theirs = comparator.shared(sides[first], sides[second])
        yield comparator.sample(first, mine), comparator.sample(second, theirs)


def _difference(name: str, samples: Sequence[tuple[Sample, Sample]], paired: bool) -> Difference:
    """Subtract the second judge's mean from the first's; interval and p only where all subjects share resamples."""
    first, second = (
        _mean_or_none([sample.value(name) for sample in one_judge])
        for one_judge in zip(*samples, strict=True)
    )
    value = None if first is None or second is None else first - second
    if not paired or value is None:
        return Difference(name, first, second, Statistic(value))
    # Differences are averaged resample by resample, and not figures: subjects and judges share their draws.
    resampled = np.mean([mine.drawn(name) - theirs.drawn(name) for mine, theirs in samples], axis=0)
    interval = samples[0][0].resampling.interval(value, resampled)
    p = None if interval.low is None else two_sided_p(resampled, len(np.unique(samples[0][0].units)))
    return Difference(name, first, second, interval, p)


def _mean_or_none(values: Sequence[float | None]) -> float | None:
    """Average the values; ``None`` where one is missing, since means over different aspects cannot be compared."""
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


def _adjusted(pairs: Sequence[AverageComparison]) -> tuple[AverageComparison, ...]:
    """Add p-values that hold for all pairs together, adjusted as those of single subjects are."""
    adjusted = list(pairs)
    for name in OVER_ROWS:
        p_values = [pair.differences[name].p for pair in pairs]
        among_all = holm(p_values)
        to_base = holm([p if pair.with_base else None for pair, p in zip(pairs, p_values, strict=True)])
        for number, pair in enumerate(adjusted):
            difference = replace(
                pair.differences[name], adjusted=among_all[number], adjusted_to_base=to_base[number]
            )
            adjusted[number] = replace(pair, differences={**pair.differences, name: difference})
    return tuple(adjusted)
