"""Compare two judges by their means over the aspects of a dataset: the papers' ``average`` column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from ..statistics.metrics import of_kind
from ..statistics.sample import same_clusters
from .comparison import AverageComparison, Difference, PairwiseComparator, Side, adjusted_by_name

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
    compared = [_compare(scored, first, second, base) for first, second in pairs]
    differences = adjusted_by_name(
        [pair.differences for pair in compared], [pair.with_base for pair in compared]
    )
    return tuple(
        replace(pair, differences=of_pair) for pair, of_pair in zip(compared, differences, strict=True)
    )


def _compare(
    subjects: Sequence[JudgedSubject], first: str, second: str, base: str | None
) -> AverageComparison:
    """Compare two judges on the rows that they share, subject by subject."""
    pairs = [comparator.samples(sides[first], sides[second]) for comparator, sides in subjects]
    shared = all(same_clusters(sample, pairs[0][0]) for pair in pairs for sample in pair)
    target = subjects[0][0].subject
    return AverageComparison(
        data=target.data,
        digest=target.digest,
        first=first,
        second=second,
        differences={name: Difference.of(name, pairs) for name in of_kind("score")},
        units=pairs[0][0].count if shared else 0,
        with_base=second == base,
    )
