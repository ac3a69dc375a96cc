"""Compute the courtroom paper's score gap analysis (appendices A, B) and test its Theorems 1 and 2.

The gap after round i is delta_i = abs(s1 - s2) / (high - low), from 0 to 1; w_i of the rounds up to i made it grow (the
first counts if its gap is above 0). The paper models delta_i ~ Beta(alpha + w_i, beta + i - w_i) and bounds the chance
of a gap of 1 - eps or more from below by 1 - 4 Var / eps^2. Its proof needs the mean to exceed 1 - eps / 2, which more
rounds do not bring about by themselves (after 1000 rounds without growth the mean is 1 / 1002), so each bound says
whether it applies; the exact chance stands beside it.

The theorems: many advocates separate two answers' scores further (score differentiation), and sooner (iteration
complexity). Protocols are compared on the items that all of them judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..statistics.alignment import Floats, Ints
from ..statistics.resampling import Resampling, Statistic, share_of_rows
from ..statistics.significance import binomial_test, holm, paired_t_test
from ..tables.grid import Column, counts, text_column

BOUND = (
    "the paper's bound on that probability, 1 - 4 Var / eps^2: it does not apply if the model's mean is not above "
    "1 - eps / 2, and is vacuous if it is not above 0"
)

_FEWEST_DEBATES = 10
"""Of fewer debates two parameters are not fitted: their figures would have too few clusters for an interval, too."""

_EQUAL = 1e-12
"""Gaps closer than this are equal: divisions of the same scores may differ in the last digit."""


class RoundOfGaps(NamedTuple):
    """Holds the gap after one round, over the debates that lasted so long.

    Attributes:
        round: its number, from 1; ``n``: debates that had it.
        gap: mean gap, as a share of the widest; ``growths``: mean number of rounds in which it had grown.
        tail: mean exact chance of a gap of 1 - eps or more, under the paper's model.
        holds, vacuous, not_applying: in how many debates the paper's bound of that chance does so: it does not apply
            where the mean is not above 1 - eps / 2, and is vacuous where it is not above 0.
    """

    round: Annotated[int, Column("round")]
    n: Annotated[int, Column("cases")]
    """cases that lasted this long"""
    # Totals of six criteria, 1 to 20 each, lie between 6 and 120: 114 points apart at most.
    gap: Annotated[Statistic, Column("gap")]
    """mean difference of the two answers' scores, as a share of the largest possible one (114 points)"""
    growths: Annotated[Statistic, Column("growths", 2)]
    """mean number of rounds in which the gap grew"""
    tail: Statistic
    holds: Annotated[int, Column("bound holds", about=BOUND)]
    vacuous: Annotated[int, Column("vacuous")]
    not_applying: Annotated[int, Column("does not apply")]


def gaps_by_round(
    gaps: Floats, clusters: Ints, eps: float, resampling: Resampling, prior: tuple[float, float] = (1, 1)
) -> tuple[RoundOfGaps, ...]:
    """Run the gap analysis over the debates of one protocol.

    Args:
        gaps: of each debate the gap after each round, of shape (debates, rounds); NaN after its last round.
        clusters: what each debate is drawn with.
        eps: the tolerance, above 0 and at most 1.
        resampling: how intervals are made.
        prior: alpha and beta.

    >>> rounds = gaps_by_round(np.array([[0.0, 0.167, 0.088], [0.1, np.nan, np.nan]]), np.arange(2), 0.5, Resampling())
    >>> [(round.n, round.growths.value) for round in rounds]
    [(2, 0.5), (1, 1.0), (1, 1.0)]
    """
    # Imported where it is needed: scipy.special takes longer to load than numpy.
    from scipy.special import betaincc

    by_round = []
    for number, lasted, observed, grown_in in rounds_of(gaps):
        a, b = prior[0] + grown_in, prior[1] + number - grown_in
        mean, variance = a / (a + b), a * b / ((a + b) ** 2 * (a + b + 1))
        applies, positive = mean > 1 - eps / 2, 1 - 4 * variance / eps**2 > 0
        # betaincc and not 1 - betainc, so that a very small tail keeps its digits.
        columns = observed, grown_in.astype(float), betaincc(a, b, 1 - eps).astype(float)
        gap, grown, tail = (resampling.mean_interval(column, clusters[lasted])[0] for column in columns)
        bound = [int(which.sum()) for which in (applies & positive, applies & ~positive, ~applies)]
        by_round.append(RoundOfGaps(number, len(a), gap, grown, tail, *bound))
    return tuple(by_round)


def rounds_of(gaps: Floats) -> Iterator[tuple[int, NDArray[np.bool_], Floats, Ints]]:
    """Yield each round's number, which debates lasted so long, their gaps, and in how many rounds these had grown."""
    growths = growths_of(gaps)
    for place in range(gaps.shape[1]):
        lasted = ~np.isnan(gaps[:, place])
        yield place + 1, lasted, gaps[lasted, place], growths[lasted, place]


def growths_of(gaps: Floats) -> Ints:
    """Count up to each round the rounds in which each debate's gap grew; the first counts if its gap is above 0.

    >>> growths_of(np.array([[0.1, 0.1, 0.3, 0.2, 0.4]])).tolist()
    [[1, 1, 2, 2, 3]]
    """
    return np.cumsum(np.diff(gaps, prepend=0.0, axis=1) > _EQUAL, axis=1)


class FinalGap(NamedTuple):
    """Holds the mean absolute gap of a protocol's final scores, on the items that all protocols judged (Theorem 1).

    Attributes:
        judge: the protocol's name.
        n: the items.
        gap: as a share of the widest possible one, with the interval of groups.
        less: the first protocol's gap less this one's, with the interval of the paired t-test. This and its p, also
            after Holm's correction, are ``None`` of the first, which the others are tested against.
    """

    judge: Annotated[str, text_column("judge")]
    n: Annotated[int, Column("items")]
    """items that all protocols judged"""
    gap: Annotated[Statistic, Column("gap", best="high")]
    """mean gap, as a share of the largest possible"""
    less: Statistic | None
    p: Annotated[float | None, Column("p t", form="p")]
    """paired t-test"""
    adjusted: Annotated[float | None, Column("p (Holm)", form="p")]


def score_differentiation(
    gaps: Mapping[str, Floats], clusters: Ints, resampling: Resampling
) -> tuple[FinalGap, ...]:
    """Compare the mean gap of the first protocol with those of others, on the same items.

    Args:
        gaps: of each protocol the final gap on each item.
        clusters: what each item is drawn with.
        resampling: how intervals are made.
    """
    first, *others = gaps.values()
    compared = [paired_t_test(first, other, resampling.confidence) for other in others]
    p_values = [test.p for _, test in compared]
    differences = [None, *(less for less, _ in compared)]
    tested = zip(gaps.items(), differences, (None, *p_values), (None, *holm(p_values)), strict=True)
    return tuple(
        FinalGap(judge, len(clusters), resampling.mean_interval(own, clusters)[0], less, p, adjusted)
        for (judge, own), less, p, adjusted in tested
    )


class RoundsNeeded(NamedTuple):
    """Says how soon a protocol's gap reaches the threshold, on the items that all protocols judged (Theorem 2).

    Attributes:
        judge: the protocol's name.
        n: the items.
        share: of items on which it did, with its interval; ``never``: items on which it did not.
        rounds: mean round, of these items alone: compare it with care, the others would have taken longer.
        after: items by the round after which it first did.
        sooner, later, same: items on which the first protocol reached it sooner or later (never is later). These and
            the exact two-sided p-value of the sign test, also after Holm's correction, are ``None`` of the first
            itself; without items there is no p-value either.
    """

    judge: Annotated[str, text_column("judge")]
    n: Annotated[int, Column("items")]
    share: Annotated[Statistic, Column("reached", 0, form="percent")]
    never: Annotated[int, Column("never")]
    rounds: Annotated[Statistic, Column("mean round", 2)]
    """over the items that reached it"""
    after: Annotated[Mapping[int, int], text_column("items by round", of=counts)]
    sooner: int | None = None
    later: Annotated[int | None, Column("later")] = None
    same: Annotated[int | None, Column("same")] = None
    p: Annotated[float | None, Column("p", form="p")] = None
    """sign test"""
    adjusted: Annotated[float | None, Column("p (Holm)", form="p")] = None


def iteration_complexity(
    rounds: Mapping[str, Floats], clusters: Ints, resampling: Resampling
) -> tuple[RoundsNeeded, ...]:
    """Compare the rounds that protocols take until their gap reaches a threshold, on the same items.

    Args:
        rounds: of each protocol the round after which each item's gap first did (``rounds_until``).
        clusters, resampling: as in ``score_differentiation``.
    """
    first, needed = next(iter(rounds.values())), list[RoundsNeeded]()
    for judge, own in rounds.items():
        reached = np.isfinite(own)
        of_judge = RoundsNeeded(
            judge,
            n=len(clusters),
            share=share_of_rows(reached, clusters, resampling),
            never=int((~reached).sum()),
            rounds=resampling.mean_interval(own[reached], clusters[reached])[0],
            after=dict(sorted(Counter(own[reached].astype(int).tolist()).items())),
        )
        if needed:
            # Compared, not subtracted: infinity less infinity is no number.
            sooner, later, same = (int(of.sum()) for of in (first < own, first > own, first == own))
            p = binomial_test(sooner, later) if len(clusters) else None
            of_judge = of_judge._replace(sooner=sooner, later=later, same=same, p=p)
        needed.append(of_judge)
    adjusted = holm([of_judge.p for of_judge in needed])
    return tuple(of_judge._replace(adjusted=p) for of_judge, p in zip(needed, adjusted, strict=True))


def rounds_until(gaps: Floats, eps: float) -> Floats:
    """Return the first round after which each debate's gap is at least ``eps``; infinity where it never is.

    Args:
        gaps: as in ``gaps_by_round``.
        eps: the threshold.

    >>> rounds_until(np.array([[0.1, 0.3, 0.2], [0.1, np.nan, np.nan]]), eps=0.2).tolist()
    [2.0, inf]
    """
    reached = gaps >= eps - _EQUAL
    return np.where(reached.any(axis=1), reached.argmax(axis=1) + 1.0, np.inf)


def fit_prior(gaps: Floats) -> tuple[float, float] | None:
    """Fit alpha and beta of the paper's model by maximum likelihood to the gaps after each round of some debates.

    Gaps of 0 and 1, of which a Beta distribution knows nothing, are moved inwards (Smithson and Verkuilen 2006).
    ``None`` of fewer than ten debates, and where the likelihood has no maximum within bounds.

    Args:
        gaps: of each debate the gap after each round, of shape (debates, rounds); NaN after its last round.

    >>> drawn = np.random.default_rng(1).beta(3, 5, size=(400, 1))  # 2 + one growth, 5 + none without
    >>> alpha, beta = fit_prior(drawn)
    >>> round(alpha), round(beta)
    (2, 5)
    """
    from scipy.optimize import minimize
    from scipy.stats import beta as beta_distribution

    lasted = ~np.isnan(gaps)
    if lasted.any(axis=1).sum() < _FEWEST_DEBATES:
        return None
    values, growths = gaps[lasted], growths_of(gaps)[lasted]
    values = (values * (len(values) - 1) + 0.5) / len(values)
    without = (np.arange(1, gaps.shape[1] + 1) * lasted)[lasted] - growths

    def surprise(logs: Floats) -> float:
        alpha, beta = np.exp(logs)
        return -float(beta_distribution.logpdf(values, alpha + growths, beta + without).sum())

    best = minimize(surprise, np.zeros(2), method="L-BFGS-B", bounds=[(-7, 7)] * 2)
    return tuple(np.exp(best.x).tolist()) if best.success and (np.abs(best.x) < 7).all() else None
