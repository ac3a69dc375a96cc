"""Compute the courtroom paper's score gap analysis (appendices A, B) and test its Theorems 1 and 2.

The gap after round i is delta_i = abs(s1 - s2) / (high - low), from 0 to 1. In w_i of the rounds up
to i it grew (the first counts if its gap is above 0). The paper models delta_i ~ Beta(alpha + w_i,
beta + i - w_i). It bounds the chance of a gap of 1 - eps or more from below by 1 - 4 Var / eps^2.
Its proof needs a mean above 1 - eps / 2, which more rounds alone do not ensure (after 1000 rounds
without growth the mean is 1 / 1002). So each bound states whether it applies, and the exact chance
is given as well.

The theorems state that several advocates separate two answers' scores further (score
differentiation), and sooner (iteration complexity). Protocols are compared on the items that all of
them judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..statistics.alignment import Floats, Ints
from ..statistics.resampling import Resampling, Statistic, is_few, share_of_rows
from ..statistics.significance import LEVEL, clustered_sign_test
from ..tables.grid import Column, counts, text_column

BOUND = (
    "the paper's bound on that probability, 1 - 4 Var / eps^2: it does not apply if the model's mean is not above "
    "1 - eps / 2, and is vacuous if it is not above 0"
)

HOLM = "adjusted by Holm's method over all tests of the score gap on this subject"

Direction = Literal["wider", "smaller", "no significant difference"]

FEWEST_DEBATES = 10
"""The minimum number of debates for fitting two parameters.

With fewer, there are also too few clusters for an interval.
"""

_EQUAL = 1e-12
"""Gaps closer than this are equal.

Divisions of the same scores may differ in the last digit.
"""


class RoundOfGaps(NamedTuple):
    """The gap after one round, over the debates with that round.

    Attributes:
        round: its number, from 1; ``n``: the number of debates that had it.
        gap: mean gap, as a share of the widest; ``growths``: mean number of rounds in which it had
            grown.
        tail: mean exact chance of a gap of 1 - eps or more, under the paper's model.
        holds, vacuous, not_applying: the number of debates in which the paper's bound of that
            chance holds, is vacuous, or does not apply. It does not apply if the mean is not above
            1 - eps / 2. It is vacuous if it is not above 0.
    """

    round: Annotated[int, Column("round")]
    n: Annotated[int, Column("cases")]
    """cases that lasted this long"""
    # Totals of six criteria, 1 to 20 each, are between 6 and 120, so at most 114 points apart.
    gap: Annotated[Statistic, Column("gap")]
    """mean difference of the two answers' scores, as a share of the largest possible one (114
    points)"""
    growths: Annotated[Statistic, Column("growths", 2)]
    """mean number of rounds in which the gap grew"""
    tail: Statistic
    holds: Annotated[int, Column("bound holds", about=BOUND)]
    vacuous: Annotated[int, Column("vacuous")]
    not_applying: Annotated[int, Column("does not apply")]


def gaps_by_round(
    gaps: Floats,
    clusters: Ints,
    eps: float,
    resampling: Resampling,
    prior: tuple[float, float] = (1, 1),
) -> tuple[RoundOfGaps, ...]:
    """Run the gap analysis over the debates of one protocol.

    Args:
        gaps: for each debate the gap after each round, of shape (debates, rounds); NaN after its
            last round.
        clusters: for each debate, the cluster with which it is resampled.
        eps: the tolerance, above 0 and at most 1.
        resampling: how intervals are computed.
        prior: alpha and beta.

    >>> rounds = gaps_by_round(np.array([[0.0, 0.167, 0.088], [0.1, np.nan, np.nan]]), np.arange(2), 0.5, Resampling())
    >>> [(round.n, round.growths.value) for round in rounds]
    [(2, 0.5), (1, 1.0), (1, 1.0)]
    """
    # Imported here, because scipy.special takes longer to load than numpy.
    from scipy.special import betaincc

    by_round = []
    for number, lasted, observed, grown_in in rounds_of(gaps):
        a = prior[0] + grown_in
        b = prior[1] + number - grown_in
        mean = a / (a + b)
        variance = a * b / ((a + b) ** 2 * (a + b + 1))
        applies = mean > 1 - eps / 2
        positive = 1 - 4 * variance / eps**2 > 0
        # betaincc instead of 1 - betainc, for the digits of a very small tail.
        columns = observed, grown_in.astype(float), betaincc(a, b, 1 - eps).astype(float)
        gap, grown, tail = (
            resampling.mean_interval(column, clusters[lasted])[0] for column in columns
        )
        bound = [int(which.sum()) for which in (applies & positive, applies & ~positive, ~applies)]
        by_round.append(RoundOfGaps(number, len(a), gap, grown, tail, *bound))
    return tuple(by_round)


def rounds_of(gaps: Floats) -> Iterator[tuple[int, NDArray[np.bool_], Floats, Ints]]:
    """Yield each round's number, its debates, their gaps, and the number of growths so far."""
    growths = growths_of(gaps)
    for place in range(gaps.shape[1]):
        lasted = ~np.isnan(gaps[:, place])
        yield place + 1, lasted, gaps[lasted, place], growths[lasted, place]


def growths_of(gaps: Floats) -> Ints:
    """Count up to each round the rounds in which each debate's gap grew.

    The first round counts if its gap is above 0.

    >>> growths_of(np.array([[0.1, 0.1, 0.3, 0.2, 0.4]])).tolist()
    [[1, 1, 2, 2, 3]]
    """
    return np.cumsum(np.diff(gaps, prepend=0.0, axis=1) > _EQUAL, axis=1)


class FinalGap(NamedTuple):
    """The mean absolute gap of a protocol's final scores, on the shared items (Theorem 1).

    Attributes:
        judge: the protocol's name. The shared items were judged by all protocols.
        n: the number of items.
        clusters: the number of groups, or of items without a group.
        gap: the mean gap as a share of the widest possible one, with its interval over groups.
        difference: this protocol's gap minus that of the first protocol, with its interval over
            groups; ``None`` for the first protocol, which is the base of all tests.
        p: two-sided, over groups; ``None`` for the base, and for too few groups.
        adjusted: ``p`` after Holm's correction over all tests of the score gap on this subject.
    """

    judge: Annotated[str, text_column("judge")]
    n: Annotated[int, Column("items")]
    """items that all protocols judged"""
    gap: Annotated[Statistic, Column("gap", best="high")]
    """mean gap, as a share of the largest possible"""
    clusters: int
    difference: Statistic | None = None
    p: Annotated[float | None, Column("p", form="p")] = None
    """paired t-test over groups"""
    adjusted: Annotated[float | None, Column("p (Holm)", form="p", about=HOLM)] = None

    @property
    def direction(self) -> Direction | None:
        """The direction of the difference to the base's gap.

        It is ``None`` for the base, and for too few groups.
        """
        if self.difference is None or self.difference.value is None or is_few(self.clusters):
            return None
        if self.adjusted is None or self.adjusted >= LEVEL:
            return "no significant difference"
        return "wider" if self.difference.value > 0 else "smaller"


def score_differentiation(
    gaps: Mapping[str, Floats], clusters: Ints, resampling: Resampling
) -> tuple[FinalGap, ...]:
    """Compare the mean gap of each protocol with that of the first one, on the same items.

    Intervals and p-values are over groups, as in every other comparison. The p-values are not
    adjusted yet.

    Args:
        gaps: for each protocol the final gap on each item.
        clusters: for each item, the cluster with which it is resampled.
        resampling: how intervals are computed.
    """
    count = len(np.unique(clusters))
    base: Floats | None = None
    compared = []
    for judge, own in gaps.items():
        gap, _ = resampling.mean_interval(own, clusters)
        of_judge = FinalGap(judge, len(own), gap, count)
        if base is None:
            base = own
        else:
            difference, p = resampling.mean_interval(own - base, clusters)
            difference = resampling.no_point(difference, count, reach=1.0)
            of_judge = of_judge._replace(difference=difference, p=p)
        compared.append(of_judge)
    return tuple(compared)


class RoundsNeeded(NamedTuple):
    """How soon a protocol's gap reaches the threshold, on the shared items (Theorem 2).

    Attributes:
        judge: the protocol's name. The shared items were judged by all protocols.
        n: the number of items.
        share: the share of items on which it reached the threshold, with its interval; ``never``:
            the number of the others.
        rounds: mean round over these items alone. Compare it with care, because the others would
            have taken longer.
        after: items by the round after which it first reached the threshold.
        clusters: the number of groups, or of items without a group.
        sooner, later, same: the number of items on which the first protocol reached it sooner or
            later (never is later); ``None`` for the first protocol.
        p: the exact two-sided p-value of the sign test over groups; ``None`` for the first
            protocol, and for too few groups.
        adjusted: ``p`` after Holm's correction over all tests of the score gap on this subject.
    """

    judge: Annotated[str, text_column("judge")]
    n: Annotated[int, Column("items")]
    share: Annotated[Statistic, Column("reached", 0, form="percent")]
    never: Annotated[int, Column("never")]
    rounds: Annotated[Statistic, Column("mean round", 2)]
    """over the items that reached it"""
    after: Annotated[Mapping[int, int], text_column("items by round", of=counts)]
    clusters: int
    sooner: int | None = None
    later: Annotated[int | None, Column("later")] = None
    same: Annotated[int | None, Column("same")] = None
    p: Annotated[float | None, Column("p", form="p")] = None
    """sign test over groups, by whether the first protocol reached it sooner on more items of a
    group, or on fewer"""
    adjusted: Annotated[float | None, Column("p (Holm)", form="p", about=HOLM)] = None


def iteration_complexity(
    rounds: Mapping[str, Floats], clusters: Ints, resampling: Resampling
) -> tuple[RoundsNeeded, ...]:
    """Compare the rounds until protocols' gaps reach a threshold, on the same items.

    The p-values are not adjusted yet.

    Args:
        rounds: for each protocol the round after which each item's gap first reached it
            (``rounds_until``).
        clusters, resampling: as in ``score_differentiation``.
    """
    first = next(iter(rounds.values()))
    needed = list[RoundsNeeded]()
    for judge, own in rounds.items():
        reached = np.isfinite(own)
        of_judge = RoundsNeeded(
            judge,
            n=len(clusters),
            share=share_of_rows(reached, clusters, resampling),
            never=int((~reached).sum()),
            rounds=resampling.mean_interval(own[reached], clusters[reached])[0],
            after=dict(sorted(Counter(own[reached].astype(int).tolist()).items())),
            clusters=len(np.unique(clusters)),
        )
        if needed:
            # Compared instead of subtracted, because infinity minus infinity is not a number.
            is_sooner = first < own
            is_later = first > own
            of_judge = of_judge._replace(
                sooner=int(is_sooner.sum()),
                later=int(is_later.sum()),
                same=int((first == own).sum()),
                p=clustered_sign_test(is_sooner.astype(int) - is_later, clusters),
            )
        needed.append(of_judge)
    return tuple(needed)


def rounds_until(gaps: Floats, eps: float) -> Floats:
    """Return the first round after which each debate's gap is at least ``eps``, or infinity.

    Args:
        gaps: as in ``gaps_by_round``.
        eps: the threshold.

    >>> rounds_until(np.array([[0.1, 0.3, 0.2], [0.1, np.nan, np.nan]]), eps=0.2).tolist()
    [2.0, inf]
    """
    reached = gaps >= eps - _EQUAL
    return np.where(reached.any(axis=1), reached.argmax(axis=1) + 1.0, np.inf)


def fit_prior(gaps: Floats) -> tuple[float, float] | None:
    """Fit alpha and beta of the paper's model to the gaps of some debates by maximum likelihood.

    Gaps of 0 and 1 are moved inwards, because a Beta distribution excludes them (Smithson and
    Verkuilen 2006). Return ``None`` with fewer than ten debates, and if the likelihood has no
    maximum within bounds.

    Args:
        gaps: for each debate the gap after each round, of shape (debates, rounds); NaN after its
            last round.

    >>> drawn = np.random.default_rng(1).beta(3, 5, size=(400, 1))  # 2 + one growth, 5 + none without
    >>> alpha, beta = fit_prior(drawn)
    >>> round(alpha), round(beta)
    (2, 5)
    """
    from scipy.optimize import minimize
    from scipy.stats import beta as beta_distribution

    lasted = ~np.isnan(gaps)
    if lasted.any(axis=1).sum() < FEWEST_DEBATES:
        return None
    values = gaps[lasted]
    growths = growths_of(gaps)[lasted]
    values = (values * (len(values) - 1) + 0.5) / len(values)
    without = (np.arange(1, gaps.shape[1] + 1) * lasted)[lasted] - growths

    def surprise(logs: Floats) -> float:
        alpha, beta = np.exp(logs)
        return -float(beta_distribution.logpdf(values, alpha + growths, beta + without).sum())

    best = minimize(surprise, np.zeros(2), method="L-BFGS-B", bounds=[(-7, 7)] * 2)
    return tuple(np.exp(best.x).tolist()) if best.success and (np.abs(best.x) < 7).all() else None
