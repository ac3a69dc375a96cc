"""Compare two judges on the same rows: differences of agreement, paired tests, p-values adjusted by Holm's method.

The results first; then ``compare`` and the ``PairwiseComparator`` that make them; then the single tests.
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
from ..statistics.sample import Difference, Pair, Sample, paired_difference, same_clusters
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
    """Holds a test of two judges' difference that needs no resamples: what it compares, in words, and its p-value.

    There are of scores ``williams_pearson``, ``steiger_pearson``, ``williams_spearman``, ``steiger_spearman`` and
    ``t_errors``; of preferences ``mcnemar`` and ``t_right``. The p-value is two-sided; ``None`` without a test.
    """

    about: str
    p: float | None


@dataclass(frozen=True)
class PairwiseComparison:
    """Compares two judges on the rows (item and repeat) that both judged and people labelled.

    Attributes:
        subject, first, second: their labels; of means over the score subjects of a dataset, the dataset's digest.
            Positive differences are in the first's favour.
        differences: by measure; of means without interval and p where subjects have labels on different items, so that
            they share no resamples.
        units: what resamples were drawn from: groups, or items where there are none. Of few (``FEWEST_CLUSTERS``),
            there is no p-value. Of means without common resamples it is 0.
        with_base: whether the second is the base.
        shared: rows that counted. This and what follows is of a single subject.
        only_first, only_second: rows on which the one has a verdict and the other none.
        tests: by name.
        identical: whether both say the same of every row.
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
    """Holds all pairs of judges on all subjects that two have judged.

    Attributes:
        pairwise: by subject; pairs with the base first, and the base second in each of them.
        notes: what a reader should know.
        averages: the means of the same pairs over all score subjects of a dataset that has several.
    """

    pairwise: tuple[PairwiseComparison, ...]
    notes: tuple[str, ...] = ()
    averages: tuple[PairwiseComparison, ...] = ()

    @property
    def caution(self) -> tuple[str, ...]:
        """The note on subjects with too few groups for p-values; empty where there is none."""
        return tuple(caution({pair.subject: pair.units for pair in self.pairwise}))

    def with_base(self) -> tuple[PairwiseComparison, ...]:
        """Return the pairs whose second judge is the base; the notebook on trust lists them."""
        return tuple(pair for pair in self.pairwise if pair.with_base)

    def of_pair(self, subject: str, first: str, second: str) -> PairwiseComparison | None:
        """Return the comparison of two judges, in this order, on a subject or over a dataset, if there is one."""
        wanted = (subject, first, second)
        pairs = (*self.pairwise, *self.averages)
        return next((pair for pair in pairs if (pair.subject, pair.first, pair.second) == wanted), None)


@dataclass
class PairwiseComparator:
    """Compares sides on one subject. The resamples of a side are kept for the next comparison on the same rows.

    Attributes:
        subject: what was judged.
        resampling: how intervals are made.
        data: of each judge that judged it, in their order.
        items: the items that count (``shared_items``): of others a judge's figures would be of easier items, say, than
            another's. ``None`` for all.
    """

    subject: Subject
    resampling: Resampling
    data: list[JudgeAspectData] = field(default_factory=list)
    items: Ints | None = None
    _samples: dict[tuple[str, bytes], Sample] = field(default_factory=dict)

    @property
    def sides(self) -> dict[str, Side]:
        """The judges that judged it, by their labels."""
        return {data.judge.label: data.side for data in self.data}

    @property
    def averaged(self) -> bool:
        """Whether its figures count for means over the subjects of the dataset."""
        return self.subject.kind == "score" and self.subject.labels_differ

    def compare(self, first: Side, second: Side) -> PairwiseComparison:
        """Compare two sides on the rows that both judged and people labelled."""
        both = int(np.isin(first.rows.keys, second.rows.keys).sum())
        mine, theirs = self.shared(first, second)
        pair = self.sample(first.label, mine), self.sample(second.label, theirs)
        return PairwiseComparison(
            subject=self.subject.label,
            first=first.label,
            second=second.label,
            shared=len(mine),
            only_first=len(first.rows) - both,
            only_second=len(second.rows) - both,
            differences={name: paired_difference([pair], name) for name in of_kind(self.subject.kind)},
            tests=dict(self._tests(pair, first.distances and second.distances)),
            units=len(np.unique(mine.clusters)),
            identical=len(mine) > 0 and bool(close(mine.judged, theirs.judged).all()),
        )

    def counted(self, rows: Verdicts) -> Verdicts:
        """Return the verdicts that count: those with a label, on an item that all compared judges judged."""
        known = rows.labelled
        return rows.take(known if self.items is None else known & np.isin(rows.item, self.items))

    def shared(self, first: Side, second: Side) -> tuple[Verdicts, Verdicts]:
        """Return the verdicts of both sides on the rows that both judged and people labelled, in the first's order."""
        counted = self.counted(first.rows)
        mine = counted.take(np.isin(counted.keys, second.rows.keys))
        order = np.argsort(second.rows.keys, kind="stable")
        places = order[np.searchsorted(second.rows.keys, mine.keys, sorter=order)]
        return mine, second.rows.take(places)

    def samples(self, first: Side, second: Side) -> Pair:
        """Return the samples of both sides on the rows that they share."""
        mine, theirs = self.shared(first, second)
        return self.sample(first.label, mine), self.sample(second.label, theirs)

    def sample(self, label: str, rows: Verdicts) -> Sample:
        """Return some of the verdicts of the side of this label beside people's; all of them must have a label."""
        # A digest stands for the rows: their keys, kept for each pair of judges, would outgrow the verdicts.
        key = label, blake2b(rows.keys.tobytes(), digest_size=16).digest()
        if key not in self._samples:
            self._samples[key] = sample(self.subject, rows, self.resampling)
        return self._samples[key]

    def labelled_sample(self, side: Side) -> Sample:
        """Return all of a side's verdicts that count, beside people's."""
        return self.sample(side.label, self.counted(side.rows))

    def _tests(self, pair: Pair, distances: bool) -> Iterator[tuple[str, PairedTest]]:
        rule, (mine, theirs) = self.subject.rule, pair
        if not len(mine):
            return
        # Made for independent rows: where rows share a group, they find far too many differences.
        alone = independent(mine.clusters)
        if self.subject.kind == "compare":
            # Several votes on one thing are not independent, either; half a vote is neither right nor wrong.
            if alone and rule.votes == "majority" and rule.ties != "half":
                # McNemar's exact test (1947): are the rows that one judge alone has right split as by a fair coin?
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
    """Compare all pairs of judges on every subject, and their means over the score subjects of each dataset.

    Args:
        comparators: of the subjects, in their order.
        bases: by dataset's digest, the label of its base judge.
    """
    pairwise: list[PairwiseComparison] = []
    for comparator in comparators:
        base, sides = bases.get(comparator.subject.digest), comparator.sides
        pairs = [comparator.compare(sides[first], sides[second]) for first, second in _pairs([*sides], base)]
        pairwise += adjusted(pairs, base)
    averages: list[PairwiseComparison] = []
    for digest, of_dataset in grouped((of.subject.digest, of) for of in comparators if of.averaged).items():
        # The judges that judged every score subject of the dataset.
        of_subjects = [comparator.sides for comparator in of_dataset]
        labels = [label for label in of_subjects[0] if all(label in sides for sides in of_subjects)]
        compared, base = [], bases.get(digest)
        for first, second in _pairs(labels, base) if len(of_dataset) > 1 else ():
            parts = zip(of_dataset, of_subjects, strict=True)
            samples = [comparator.samples(sides[first], sides[second]) for comparator, sides in parts]
            differences = {name: paired_difference(samples, name) for name in of_kind("score")}
            clusters = samples[0][0].count if same_clusters(chain(*samples)) else 0
            compared.append(PairwiseComparison(digest, first, second, differences, clusters))
        averages += adjusted(compared, base)
    return Comparison(tuple(pairwise), tuple(_notes(pairwise)), tuple(averages))


def _pairs(labels: Sequence[str], base: str | None) -> list[tuple[str, str]]:
    """Return the pairs with the base first, the base being second in each."""
    others = [label for label in labels if label != base]
    with_base = [(label, base) for label in others if base is not None and base in labels]
    return [*with_base, *combinations(others, 2)]


def adjusted(pairs: Sequence[PairwiseComparison], base: str | None = None) -> list[PairwiseComparison]:
    """Add Holm's p-values, which hold for all pairs on one subject together, for each metric by itself.

    Those with the base are a family of their own, too.
    """
    differences = [dict(pair.differences) for pair in pairs]
    for name in differences[0] if pairs else ():
        p_values = [of_pair[name].p for of_pair in differences]
        # Pairs without the base are ``None`` in the second family, which Holm's method does not count.
        to_base = [p if pair.second == base else None for p, pair in zip(p_values, pairs, strict=True)]
        for of_pair, p, p_to_base in zip(differences, holm(p_values), holm(to_base), strict=True):
            of_pair[name] = replace(of_pair[name], adjusted=p, adjusted_to_base=p_to_base)
    both = zip(pairs, differences, strict=True)
    return [replace(pair, differences=of_pair, with_base=pair.second == base) for pair, of_pair in both]


def _t_test(about: str, sample: Sample, first: Floats, second: Floats) -> PairedTest:
    by_what = "group by group" if sample.grouped else "item by item"
    # Rows of a cluster, a group or an item, are not independent of each other: each counts by its mean.
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
