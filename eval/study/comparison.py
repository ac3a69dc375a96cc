"""The fair comparison: two contenders on the same items, with paired intervals and tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .contenders import Bill

if TYPE_CHECKING:
    from ..statistics.statistic import Statistic

FEW = 10
"""Units below which the bootstrap promises more than it can hold."""


@dataclass(frozen=True)
class Difference:
    """One measure of two contenders on the same rows.

    Attributes:
        measure: its name, as in ``leaderboard.Standing``.
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
    """A test of two contenders' difference that needs no resamples.

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
class Duel:
    """Two contenders on one subject, on the rows (item and repeat) that both judged and people labelled.

    Attributes:
        subject, first, second: their labels. Positive differences are in the first's favour, except for ``t_errors``.
        shared: rows that counted.
        only_first, only_second: rows on which the one has a verdict and the other none.
        unlabelled: rows both judged that have no label.
        differences: by measure.
        tests: by name.
        first_bill, second_bill: what the shared rows took each of them.
        with_base: whether the second is the base.
        units: what resamples were drawn from: groups, or items where there are none. Of few (see ``FEW``), intervals
            are too narrow and p-values too small.
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
    first_bill: Bill
    second_bill: Bill
    with_base: bool = False
    units: int = 0


@dataclass(frozen=True)
class AverageDuel:
    """Two contenders' means over all score subjects of one dataset, on the rows that both judged and people labelled.

    Attributes:
        data, digest: of the dataset; ``first``, ``second``: the contenders' labels.
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
    """All pairs of contenders on all subjects that two have judged.

    Attributes:
        duels: by subject; pairs with the base first, and the base second in each of them.
        family: which tests were adjusted together, in a sentence.
        notes: what a reader should know.
        averages: of datasets with several score subjects the same pairs' means over them.
    """

    duels: tuple[Duel, ...]
    family: str
    notes: tuple[str, ...] = ()
    averages: tuple[AverageDuel, ...] = ()

    def with_base(self) -> tuple[Duel, ...]:
        """The pairs whose second is the base."""
        return tuple(duel for duel in self.duels if duel.with_base)

    def duel(self, subject: str, first: str, second: str) -> Duel | None:
        """Of two contenders on one subject, in this order, if there is one."""
        wanted = (subject, first, second)
        return next((duel for duel in self.duels if (duel.subject, duel.first, duel.second) == wanted), None)

    def average(self, digest: str, first: str, second: str) -> AverageDuel | None:
        """Of two contenders' means over one dataset, in this order, if there is one."""
        wanted = (digest, first, second)
        return next((one for one in self.averages if (one.digest, one.first, one.second) == wanted), None)
