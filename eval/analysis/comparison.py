"""Compare two judges on the same rows: differences of agreement, paired tests, Holm's p-values.

The module has the results first, then ``compare`` and ``PairwiseComparator``, then the single
tests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import chain, combinations
from typing import NamedTuple

import numpy as np

from ..statistics.alignment import Floats, Ints, grouped
from ..statistics.metrics import of_kind
from ..statistics.resampling import Resampling, caution
from ..statistics.sample import (
    Difference,
    Pair,
    Sample,
    clusters_needed,
    paired_difference,
    same_clusters,
)
from ..statistics.significance import (
    TESTED_CORRELATIONS,
    binomial_test,
    compare_dependent,
    holm,
    independent,
    paired_t_test,
)
from .judges import Subject
from .loading import JudgeAspectData
from .verdict_columns import Side, Verdicts, close, sample


class PairedTest(NamedTuple):
    """A test of two judges' difference without resamples: its description and its p-value.

    The tests of scores are ``williams_pearson``, ``steiger_pearson``, ``williams_spearman``,
    ``steiger_spearman`` and ``t_errors``; those of preferences are ``mcnemar`` and ``t_right``. The
    p-value is two-sided; ``None`` without a test.
    """

    about: str
    p: float | None


@dataclass(frozen=True)
class PairwiseComparison:
    """The comparison of two judges on the rows that both judged and humans labelled.

    Attributes:
        subject, first, second: their labels. For means over the score subjects of a dataset, the
            subject is the dataset's digest. Positive differences favour the first judge.
        differences: by metric. Means have no interval and no p-value if subjects have labels on
            different items, because they share no resamples.
        units: the number of resampled units: groups, or items if there are no groups. With few
            units (``FEWEST_CLUSTERS``), there is no p-value. For means without common resamples it
            is 0.
        with_base: whether the second is the base.
        shared: the number of rows (item and repeat) that counted. This and the following attributes
            are for a single subject.
        only_first, only_second: the number of rows with a verdict of only this judge.
        tests: by name.
        identical: whether both judges give the same verdict on every row.
    """

    subject: str
    first: str
    second: str
    differences: Mapping[str, Difference]
    units: int = 0
    with_base: bool = False
    shared: int = 0
    only_first: int = 0
    only_second: int = 0
    tests: Mapping[str, PairedTest] = field(default_factory=dict)
    identical: bool = False


@dataclass(frozen=True)
class Comparison:
    """All pairs of judges on all subjects that two judges judged.

    Attributes:
        pairwise: by subject; pairs with the base come first, with the base as second judge.
        notes: the notes for readers.
        averages: the means of the same pairs over the score subjects of each dataset with several.
    """

    pairwise: tuple[PairwiseComparison, ...]
    notes: tuple[str, ...] = ()
    averages: tuple[PairwiseComparison, ...] = ()

    @property
    def caution(self) -> tuple[str, ...]:
        """The note on subjects with too few groups for p-values; empty without any."""
        return tuple(caution({pair.subject: pair.units for pair in self.pairwise}))

    def with_base(self) -> tuple[PairwiseComparison, ...]:
        """Return the pairs whose second judge is the base, for the notebook on trust."""
        return tuple(pair for pair in self.pairwise if pair.with_base)

    def of_pair(self, subject: str, first: str, second: str) -> PairwiseComparison | None:
        """Return the comparison of two judges, in this order, on a subject or a dataset, if any."""
        wanted = (subject, first, second)
        pairs = (*self.pairwise, *self.averages)
        return next(
            (pair for pair in pairs if (pair.subject, pair.first, pair.second) == wanted), None
        )


@dataclass
class PairwiseComparator:
    """Compares sides on one subject, and caches the resamples of each side.

    Comparisons on the same rows reuse the resamples.

    Attributes:
        subject: the subject.
        resampling: how intervals are computed.
        data: by judge, in the judges' order.
        items: the items that count for every judge (``shared_items``), so that no judge is measured
            on easier items than another; ``None`` for all.
        skip_one_score: leave out the groups in which a judge gives every item one score, as the
            papers' tables do.
    """

    subject: Subject
    resampling: Resampling
    data: list[JudgeAspectData] = field(default_factory=list)
    items: Ints | None = None
    skip_one_score: bool = False
    _samples: dict[tuple[str, bytes], Sample] = field(default_factory=dict)

    @property
    def sides(self) -> dict[str, Side]:
        """The labels of the judges of this subject."""
        return {data.judge.label: data.side for data in self.data}

    @property
    def averaged(self) -> bool:
        """Whether the figures count for means over the subjects of the dataset."""
        return self.subject.kind == "score" and self.subject.labels_differ

    def compare(self, first: Side, second: Side) -> PairwiseComparison:
        """Compare two sides on the rows that both judged and humans labelled."""
        both = int(np.isin(first.rows.keys, second.rows.keys).sum())
        mine = self.rows(first, second)
        theirs = self.rows(second, first)
        pair = self.pair(first, second)
        return PairwiseComparison(
            subject=self.subject.label,
            first=first.label,
            second=second.label,
            shared=len(mine),
            only_first=len(first.rows) - both,
            only_second=len(second.rows) - both,
            differences={
                name: paired_difference([pair], name) for name in of_kind(self.subject.kind)
            },
            tests=dict(self._tests(pair, first.distances and second.distances)),
            units=len(np.unique(mine.clusters)),
            identical=len(mine) > 0 and bool(close(mine.judged, theirs.judged).all()),
        )

    def rows(self, side: Side, *others: Side, own: bool = False) -> Verdicts:
        """Return the labelled verdicts of a side, ordered by item and repeat.

        Args:
            side: the side with the verdicts.
            others: return only the rows that these sides also judged.
            own: return all labelled rows of the side, instead of those on items that all compared
                judges judged.
        """
        wanted = side.rows.labelled
        if self.items is not None and not own:
            wanted = wanted & np.isin(side.rows.item, self.items)
        for other in others:
            wanted = wanted & np.isin(side.rows.keys, other.rows.keys)
        return side.rows.take(wanted).in_order()

    def sample(self, side: Side, *others: Side, own: bool = False) -> Sample:
        """Return the verdicts of ``rows`` with labels, the basis of all figures of agreement."""
        rows = self.rows(side, *others, own=own)
        # A digest replaces the rows: storing their keys for each pair of judges would need more
        # memory than the verdicts.
        key = side.label, blake2b(rows.keys.tobytes(), digest_size=16).digest()
        if key not in self._samples:
            skip = self.skip_one_score
            self._samples[key] = sample(self.subject, rows, self.resampling, skip_one_score=skip)
        return self._samples[key]

    def pair(self, first: Side, second: Side) -> Pair:
        """Return the samples of both sides on the rows that both judged."""
        return self.sample(first, second), self.sample(second, first)

    def _tests(self, pair: Pair, distances: bool) -> Iterator[tuple[str, PairedTest]]:
        rule, (mine, theirs) = self.subject.rule, pair
        if not len(mine):
            return
        # The test assumes independent rows. If rows share a group, it finds far too many
        # differences.
        alone = independent(mine.clusters)
        if self.subject.kind == "compare":
            # Several votes on one item are not independent either, and half a vote is neither right
            # nor wrong.
            if alone and rule.votes == "majority" and rule.ties != "half":
                # McNemar's exact test (1947): are the rows that only one judge has right split as
                # by a fair coin?
                first, second = (sample.right == 1 for sample in pair)
                p = binomial_test(int((first & ~second).sum()), int((~first & second).sum()))
                yield "mcnemar", PairedTest("verdicts that only one got right", p)
            about = "mean of correct (1) and wrong (0)"
            if rule.votes == "each":
                about = "mean share of human votes that agree"
            yield "t_right", _t_test(about, mine, mine.right, theirs.right)
            return
        for name in TESTED_CORRELATIONS if alone else ():
            tests = compare_dependent(name, mine.judged, theirs.judged, mine.human)
            on_ranks = " (made for Pearson's r, here of ranks)" if name == "spearman" else ""
            about = f"the two {name} correlations with humans, assuming independent rows{on_ranks}"
            for kind, test in tests._asdict().items():
                yield f"{kind}_{name}", PairedTest(about, test.p)
        if distances:
            errors = np.abs(mine.judged - mine.human), np.abs(theirs.judged - theirs.human)
            yield "t_errors", _t_test("mean distance to the human score", mine, *errors)


def compare(comparators: Sequence[PairwiseComparator], bases: Mapping[str, str]) -> Comparison:
    """Compare all pairs of judges on every subject, and their means over each dataset's subjects.

    The means are over score subjects.

    Args:
        comparators: one for each subject, in their order.
        bases: the label of the base judge by dataset digest.
    """
    pairwise: list[PairwiseComparison] = []
    for comparator in comparators:
        base = bases.get(comparator.subject.digest)
        sides = comparator.sides
        pairs = [
            comparator.compare(sides[first], sides[second])
            for first, second in _pairs([*sides], base)
        ]
        pairwise += adjusted(pairs, base)
    averages: list[PairwiseComparison] = []
    for digest, of_dataset in grouped(
        (of.subject.digest, of) for of in comparators if of.averaged
    ).items():
        # The judges that judged every score subject of the dataset.
        of_subjects = [comparator.sides for comparator in of_dataset]
        labels = [label for label in of_subjects[0] if all(label in sides for sides in of_subjects)]
        compared = []
        base = bases.get(digest)
        for first, second in _pairs(labels, base) if len(of_dataset) > 1 else ():
            parts = zip(of_dataset, of_subjects, strict=True)
            samples = [comparator.pair(sides[first], sides[second]) for comparator, sides in parts]
            differences = {name: paired_difference(samples, name) for name in of_kind("score")}
            clusters = samples[0][0].count if same_clusters(chain(*samples)) else 0
            compared.append(PairwiseComparison(digest, first, second, differences, clusters))
        averages += adjusted(compared, base)
    return Comparison(tuple(pairwise), tuple(_notes(pairwise)), tuple(averages))


def _pairs(labels: Sequence[str], base: str | None) -> list[tuple[str, str]]:
    """Return the pairs; those with the base come first, with the base as second judge."""
    others = [label for label in labels if label != base]
    with_base = [(label, base) for label in others if base is not None and base in labels]
    return [*with_base, *combinations(others, 2)]


def adjusted(
    pairs: Sequence[PairwiseComparison], base: str | None = None
) -> list[PairwiseComparison]:
    """Add Holm's p-values over all pairs on one subject, for each metric separately.

    The pairs with the base are also a family of their own.
    """
    differences = [dict(pair.differences) for pair in pairs]
    for name in differences[0] if pairs else ():
        p_values = [of_pair[name].p for of_pair in differences]
        # Pairs without the base are ``None`` in the second family, and Holm's method ignores these.
        to_base = [
            p if pair.second == base else None for p, pair in zip(p_values, pairs, strict=True)
        ]
        for of_pair, p, p_to_base in zip(differences, holm(p_values), holm(to_base), strict=True):
            needed = clusters_needed(of_pair[name].t, of_pair[name].clusters, tests=len(pairs))
            of_pair[name] = replace(
                of_pair[name], adjusted=p, adjusted_to_base=p_to_base, needed=needed
            )
    both = zip(pairs, differences, strict=True)
    return [
        replace(pair, differences=of_pair, with_base=pair.second == base) for pair, of_pair in both
    ]


def _t_test(about: str, sample: Sample, first: Floats, second: Floats) -> PairedTest:
    by_what = "group by group" if sample.grouped else "item by item"
    # Rows of a cluster (a group or an item) are not independent, so each cluster counts by its
    # mean.
    rows = np.bincount(sample.clusters)
    first, second = (np.bincount(sample.clusters, figure) / rows for figure in (first, second))
    return PairedTest(f"{about}, {by_what}", paired_t_test(first, second)[1].p)


def _notes(pairwise: Sequence[PairwiseComparison]) -> Iterator[str]:
    if unshared := [pair for pair in pairwise if pair.only_first or pair.only_second]:
        pairs = f"{len(unshared)} of {len(pairwise)} pairs have rows that only one of them judged"
        yield f"{pairs}: judges are compared on the items that all of them judged"
    yield from caution({pair.subject: pair.units for pair in pairwise})
    if empty := sum(not pair.shared for pair in pairwise):
        yield f"{empty} of {len(pairwise)} pairs have no labelled row in common and cannot be compared"
