"""Compare two judges on the same rows: differences of agreement, paired tests, p-values adjusted by Holm's method.

The results first; then ``compare`` and the ``PairwiseComparator`` that make them; then the single tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, compress, groupby
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

from ...state.tasks import TaskKind
from ..run.evaluation import UsageTotals
from ..statistics.resampling import Resampling, caution
from ..statistics.significance import TESTED_CORRELATIONS, compare_dependent, holm, mcnemar, paired_t_test
from .judges import EvaluationTarget
from .measures import MEASURES, Sample, difference, distance, right, sample, votes_on
from .result_rows import ResultRow, RowKey

if TYPE_CHECKING:
    from ..statistics.resampling import Statistic


@dataclass(frozen=True)
class Difference:
    """Compares two judges by one measure on the same rows.

    Attributes:
        measure: its name, as in ``LeaderboardEntry``.
        first, second: each one's figure on the shared rows.
        difference: the first's less the second's, with its interval from paired resamples.
        p: two-sided, of the paired bootstrap: how often a resample's difference falls on the other side of zero.
        adjusted: ``p`` by Holm's method among all pairs on this subject and measure.
        adjusted_to_base: ``p`` by Holm's method among the pairs with the base on this subject and measure;
            ``None`` where neither is the base.
    """

    measure: str
    first: float | None
    second: float | None
    difference: Statistic
    p: float | None = None
    adjusted: float | None = None
    adjusted_to_base: float | None = None


@dataclass(frozen=True)
class PairedTest:
    """Holds a test of two judges' difference that needs no resamples.

    Attributes:
        name: of scores ``williams_pearson``, ``steiger_pearson``, ``williams_spearman``, ``steiger_spearman``,
            ``t_scores``, ``t_errors``; of preferences ``mcnemar``, ``t_right``.
        about: what is compared, in a few words.
        n: rows (for the t-tests: items) that counted.
        statistic: t or z; ``None`` for McNemar's test, which is exact, and where a test does not exist.
        p: two-sided.
        adjusted, adjusted_to_base: ``p`` by Holm's method, as in ``Difference``.
        counts: for McNemar, how many rows ``both`` had right, the ``first`` alone, the ``second`` alone, ``neither``.
        effect: the difference that is tested, first less second, with the test's own interval where there is one.
    """

    name: str
    about: str
    n: int
    statistic: float | None
    p: float | None
    adjusted: float | None = None
    adjusted_to_base: float | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    effect: Statistic | None = None


@dataclass(frozen=True)
class PairwiseComparison:
    """Compares two judges on one subject, on the rows (item and repeat) that both judged and people labelled.

    Attributes:
        subject, first, second: their labels. Positive differences are in the first's favour, except for ``t_errors``.
        shared: rows that counted.
        only_first, only_second: rows on which the one has a verdict and the other none.
        unlabelled: rows both judged that have no label.
        differences: by measure.
        tests: by name.
        first_usage, second_usage: calls, tokens and cost of the shared rows for each of them.
        with_base: whether the second is the base.
        units: what resamples were drawn from: groups, or items where there are none. Of few (``FEWEST_UNITS``),
            intervals are too narrow, and there is no p-value.
    """

    subject: str
    first: str
    second: str
    shared: int
    only_first: int
    only_second: int
    unlabelled: int
    differences: Mapping[str, Difference]
    tests: Mapping[str, PairedTest]
    first_usage: UsageTotals
    second_usage: UsageTotals
    with_base: bool = False
    units: int = 0


@dataclass(frozen=True)
class AverageComparison:
    """Compares two judges' means over the score subjects of a dataset, on rows that both judged and people labelled.

    Attributes:
        data, digest: of the dataset; ``first``, ``second``: the judges' labels.
        differences: by measure (over rows), adjusted as those of a single subject are; no interval and no p where
            subjects have labels on different items, so that they share no resamples.
        units: what resamples were drawn from; 0 where there are none.
        with_base: whether the second is the base.
    """

    data: str
    digest: str
    first: str
    second: str
    differences: Mapping[str, Difference]
    units: int = 0
    with_base: bool = False


@dataclass(frozen=True)
class Comparison:
    """Holds all pairs of judges on all subjects that two have judged.

    Attributes:
        pairwise: by subject; pairs with the base first, and the base second in each of them.
        family: which tests were adjusted together, in a sentence.
        notes: what a reader should know.
        averages: the means of the same pairs over all score subjects of a dataset that has several.
    """

    pairwise: tuple[PairwiseComparison, ...]
    family: str
    notes: tuple[str, ...] = ()
    averages: tuple[AverageComparison, ...] = ()

    @property
    def caution(self) -> tuple[str, ...]:
        """The note on subjects with too few groups for p-values; empty where there is none."""
        few = _caution(self.pairwise)
        return (few,) if few else ()

    def with_base(self) -> tuple[PairwiseComparison, ...]:
        """Return the pairs whose second judge is the base."""
        return tuple(pair for pair in self.pairwise if pair.with_base)

    def of_pair(self, subject: str, first: str, second: str) -> PairwiseComparison | None:
        """Return the comparison of two judges on one subject, in this order, if there is one."""
        wanted = (subject, first, second)
        return next(
            (pair for pair in self.pairwise if (pair.subject, pair.first, pair.second) == wanted),
            None,
        )

    def average(self, digest: str, first: str, second: str) -> AverageComparison | None:
        """Return the comparison of two judges' means over one dataset, in this order, if there is one."""
        wanted = (digest, first, second)
        return next(
            (pair for pair in self.averages if (pair.digest, pair.first, pair.second) == wanted),
            None,
        )


FAMILY = (
    "p (Holm): adjusted over all pairs of judges on one subject, for each measure and each test separately; "
    "in a table of differences vs. the base, over the pairs with the base"
)


class Side(NamedTuple):
    """Names one of two that are compared on a subject: a judge, or an ensemble of single judges.

    Attributes:
        label: its name.
        rows: its verdicts by item and repeat.
        distances: whether its scores and the labels are on one scale.
    """

    label: str
    rows: Mapping[RowKey, ResultRow]
    distances: bool


@dataclass
class PairwiseComparator:
    """Compares sides on one subject. The resamples of a side are kept for the next comparison on the same rows."""

    subject: EvaluationTarget
    resampling: Resampling

    def __post_init__(self) -> None:
        self._samples: dict[tuple[str, int], Sample] = {}
        self._row_sets: dict[tuple[RowKey, ...], int] = {}

    @property
    def kind(self) -> TaskKind:
        """Whether scores (``score``) or preferences (``compare``) are compared."""
        return self.subject.kind

    def compare(self, first: Side, second: Side, with_base: bool = False) -> PairwiseComparison:
        """Compare two sides on the rows that both judged and people labelled."""
        both = [key for key in first.rows if key in second.rows]
        shared = self.shared(first, second)
        mine, theirs = ([side.rows[key] for key in shared] for side in (first, second))
        return PairwiseComparison(
            subject=self.subject.label,
            first=first.label,
            second=second.label,
            shared=len(shared),
            only_first=len(first.rows) - len(both),
            only_second=len(second.rows) - len(both),
            unlabelled=len(both) - len(shared),
            differences=self._differences(first, second, shared),
            tests={
                test.name: test for test in self._tests(mine, theirs, first.distances and second.distances)
            },
            first_usage=UsageTotals.of(row.usage for row in mine),
            second_usage=UsageTotals.of(row.usage for row in theirs),
            with_base=with_base,
            units=len({row.unit for row in mine}),
        )

    def shared(self, first: Side, second: Side) -> tuple[RowKey, ...]:
        """Return the rows that both judged and people labelled."""
        return tuple(key for key, row in first.rows.items() if key in second.rows and row.human is not None)

    def _differences(self, first: Side, second: Side, shared: tuple[RowKey, ...]) -> dict[str, Difference]:
        mine, theirs = self.sample(first, shared), self.sample(second, shared)
        differences = {}
        for measure in MEASURES[self.kind]:
            statistic, p = difference(mine, theirs, measure)
            differences[measure] = Difference(
                measure, mine.value(measure), theirs.value(measure), statistic, p
            )
        return differences

    def sample(self, side: Side, keys: tuple[RowKey, ...] | None = None) -> Sample:
        """Return one side's verdicts beside people's, on these rows; by default on all of its labelled rows."""
        wanted = (
            tuple(key for key, row in side.rows.items() if row.human is not None) if keys is None else keys
        )
        # A set of rows is numbered once, so that the cache holds a number and not thousands of keys for each side.
        row_set = self._row_sets.setdefault(wanted, len(self._row_sets))
        if (side.label, row_set) not in self._samples:
            rows = [side.rows[key] for key in wanted]
            self._samples[side.label, row_set] = sample(
                self.kind, rows, self.resampling, rule=self.subject.rule
            )
        return self._samples[side.label, row_set]

    def _tests(
        self, mine: Sequence[ResultRow], theirs: Sequence[ResultRow], distances: bool
    ) -> Iterator[PairedTest]:
        if not mine:
            return
        if self.kind == "compare":
            yield from self._preference_tests(mine, theirs)
            return
        yield from _correlation_tests(mine, theirs, self.resampling.confidence)
        if distances:
            yield self._t_test("t_scores", "mean score, item by item", _score, mine, theirs)
            yield self._t_test(
                "t_errors", "mean distance to people's score, item by item", _error, mine, theirs
            )

    def _preference_tests(
        self, mine: Sequence[ResultRow], theirs: Sequence[ResultRow]
    ) -> Iterator[PairedTest]:
        rule = self.subject.rule
        voted = [any(votes_on(row, rule)) for row in mine]
        if not any(voted):
            return
        mine, theirs = list(compress(mine, voted)), list(compress(theirs, voted))
        # Several votes on one thing are not independent, and half a vote is neither right nor wrong.
        if rule.votes == "majority" and rule.ties != "half":
            yield _mcnemar(mine, theirs)
        about = "mean of right (1) and wrong (0), item by item"
        if rule.votes == "each":
            about = "mean share of people's votes agreed with, item by item"
        # Rows without a vote that counts are gone by now: the 0.0 is for the type checker.
        yield self._t_test("t_right", about, lambda row: right(row, rule) or 0.0, mine, theirs)

    def _t_test(
        self,
        name: str,
        about: str,
        figure: Callable[[ResultRow], float],
        mine: Sequence[ResultRow],
        theirs: Sequence[ResultRow],
    ) -> PairedTest:
        # Only Student's interval is shown, which takes the confidence and needs no resamples.
        no_resamples = replace(self.resampling, resamples=0)
        test = paired_t_test(_by_item(mine, figure), _by_item(theirs, figure), resampling=no_resamples)
        return PairedTest(name, about, test.n, test.t, test.p, effect=test.difference)


def compare(sides: Sequence[tuple[PairwiseComparator, Sequence[Side], str | None]]) -> Comparison:
    """Compare all pairs of sides on every subject.

    Args:
        sides: of each subject the comparator, all sides in their order, and the label of the base, if it has one there.
    """
    pairwise = [
        pair
        for comparator, of_subject, base in sides
        for pair in adjusted(list(_pairs(comparator, of_subject, base)))
    ]
    return Comparison(tuple(pairwise), FAMILY, tuple(_notes(pairwise)))


def _pairs(
    comparator: PairwiseComparator, sides: Sequence[Side], base: str | None
) -> Iterator[PairwiseComparison]:
    """Yield the pairs with the base first, the base being second in each."""
    bases = [side for side in sides if side.label == base]
    others = [side for side in sides if side.label != base]
    for side in others:
        for base_side in bases:
            yield comparator.compare(side, base_side, with_base=True)
    for first, second in combinations(others, 2):
        yield comparator.compare(first, second)


def adjusted(pairs: Sequence[PairwiseComparison]) -> list[PairwiseComparison]:
    """Add p-values that hold for all pairs on one subject together, for each measure and each test by itself."""
    measures = list(dict.fromkeys(name for pair in pairs for name in pair.differences))
    tests = list(dict.fromkeys(name for pair in pairs for name in pair.tests))
    of_measures = {name: _adjust(pairs, [pair.differences[name].p for pair in pairs]) for name in measures}
    of_tests = {
        # A pair may lack a test, for example where only one of the two has distances to people's scores.
        name: _adjust(pairs, [pair.tests[name].p if name in pair.tests else None for pair in pairs])
        for name in tests
    }
    return [
        replace(
            pair,
            differences={
                name: _with_adjusted(difference, of_measures[name][index])
                for name, difference in pair.differences.items()
            },
            tests={name: _with_adjusted(test, of_tests[name][index]) for name, test in pair.tests.items()},
        )
        for index, pair in enumerate(pairs)
    ]


def _adjust(pairs: Sequence[PairwiseComparison], p_values: Sequence[float | None]) -> list[AdjustedP]:
    """Adjust each pair's p-value among all pairs, and among those with the base."""
    to_base = [p if pair.with_base else None for pair, p in zip(pairs, p_values, strict=True)]
    # Pairs without the base are ``None`` in the second family, which Holm's method does not count.
    return list(zip(holm(p_values), holm(to_base), strict=True))


AdjustedP = tuple[float | None, float | None]
Tested = TypeVar("Tested", Difference, PairedTest)


def _with_adjusted(result: Tested, p_values: AdjustedP) -> Tested:
    among_all, among_base = p_values
    return replace(result, adjusted=among_all, adjusted_to_base=among_base)


def _correlation_tests(
    mine: Sequence[ResultRow], theirs: Sequence[ResultRow], confidence: float
) -> Iterator[PairedTest]:
    first, second = ([cast("float", row.judged) for row in rows] for rows in (mine, theirs))
    human = [cast("float", row.human) for row in mine]
    for name in TESTED_CORRELATIONS:
        result = compare_dependent(name, first, second, human, confidence=confidence)
        on_ranks = " (made for Pearson's r, here of ranks)" if result.approximate else ""
        about = f"the two {name} correlations with people, rows taken for independent{on_ranks}"
        for test, value, p in (
            ("williams", result.williams_t, result.williams_p),
            ("steiger", result.steiger_z, result.steiger_p),
        ):
            yield PairedTest(f"{test}_{name}", about, result.n, value, p, effect=result.difference)


def _mcnemar(mine: Sequence[ResultRow], theirs: Sequence[ResultRow]) -> PairedTest:
    first, second = ([row.judged == row.human for row in rows] for rows in (mine, theirs))
    test = mcnemar(first, second, resampling=Resampling(resamples=0))
    counts = {
        "both": test.both,
        "first": test.only_first,
        "second": test.only_second,
        "neither": test.neither,
    }
    return PairedTest("mcnemar", "verdicts that one alone had right", test.n, None, test.p, counts=counts)


def _score(row: ResultRow) -> float:
    return cast("float", row.judged)


def _error(row: ResultRow) -> float:
    return distance(row.judged, row.human)


def _by_item(rows: Iterable[ResultRow], figure: Callable[[ResultRow], float]) -> list[float]:
    """Average each item over its repeats, which are not independent of each other. Rows come sorted by item."""
    return [fmean(map(figure, repeats)) for _, repeats in groupby(rows, key=lambda row: row.item)]


def _caution(pairwise: Sequence[PairwiseComparison]) -> str | None:
    return caution({pair.subject: pair.units for pair in pairwise})


def _notes(pairwise: Sequence[PairwiseComparison]) -> Iterator[str]:
    unshared = [pair for pair in pairwise if pair.only_first or pair.only_second]
    if unshared:
        yield (
            f"{len(unshared)} of {len(pairwise)} pairs have rows that only one of them judged: "
            "pairs are compared on the rows that both judged"
        )
    if few := _caution(pairwise):
        yield few
    if any(not pair.shared for pair in pairwise):
        empty = sum(not pair.shared for pair in pairwise)
        yield f"{empty} of {len(pairwise)} pairs have no labelled row in common and cannot be compared"
