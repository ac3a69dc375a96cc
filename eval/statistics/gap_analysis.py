"""Compute the courtroom paper's score gap analysis (appendices A, B): how far a protocol separates two answers' scores.

The gap after round i is delta_i = abs(s1 - s2) / (high - low), from 0 to 1; w_i of the rounds up to i made it grow (the
first counts if its gap is above 0). The paper models delta_i ~ Beta(alpha + w_i, beta + i - w_i) and bounds the chance
of a gap of 1 - eps or more from below by 1 - 4 Var / eps^2. Its proof needs the mean to exceed 1 - eps / 2, which more
rounds do not bring about by themselves (after 1000 rounds without growth the mean is 1 / 1002), so each bound says
whether it applies; the exact chance stands beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ...state.errors import UsageError

Pair = Sequence[float]
Bound = Literal["holds", "vacuous", "does not apply"]
LOW, HIGH = 6.0, 120.0
"""Totals of MORE, SAMRE and baseline: six criteria, 1 to 20 each."""
_EQUAL = 1e-12
"""Gaps closer than this are equal: divisions of the same scores may differ in the last digit."""


@dataclass(frozen=True)
class GapPosterior:
    """Holds the Beta model of the gap after some rounds.

    Attributes:
        rounds: how many (i); ``growths``: in how many of them the gap grew (w_i).
        mean, variance: of Beta(alpha + w, beta + i - w).
        eps: the tolerance; ``tail``: the exact chance of a gap of 1 - eps or more.
        bound: the paper's lower bound of that chance, 1 - 4 variance / eps^2; ``None`` where its proof does not apply.
        status: whether the bound ``holds``; is ``vacuous``, since it is not above 0 (which takes a beta below 1); or
            ``does not apply``, since the mean is not above 1 - eps / 2.
    """

    rounds: int
    growths: int
    mean: float
    variance: float
    eps: float
    tail: float
    bound: float | None
    status: Bound


@dataclass(frozen=True)
class GapRound:
    """Holds the gap after one round, as a share of the widest possible one, and its model."""

    round: int
    gap: float
    posterior: GapPosterior


def gap_posterior(rounds: int, growths: int, eps: float, alpha: float = 1, beta: float = 1) -> GapPosterior:
    """Model the gap after ``rounds`` rounds, ``growths`` of which made it grow, by a Beta distribution.

    Raises:
        UsageError: ``eps`` not above 0 and at most 1, parameters not above 0, or not 0 <= growths <= rounds.

    >>> model = gap_posterior(rounds=1000, growths=0, eps=0.1)
    >>> model.bound, model.status
    (None, 'does not apply')
    >>> model = gap_posterior(rounds=1000, growths=1000, eps=0.1)
    >>> round(model.bound, 4), round(model.tail, 4), model.status
    (0.9996, 1.0, 'holds')
    """
    # Imported where it is needed: scipy.special takes longer to load than numpy.
    from scipy.special import betaincc

    if not 0 < eps <= 1:
        raise UsageError(f"eps must be above 0 and at most 1, not {eps}")
    if not (alpha > 0 and beta > 0):
        raise UsageError(f"alpha and beta must be above 0, not {alpha} and {beta}")
    if not 0 <= growths <= rounds:
        raise UsageError(f"of {rounds} rounds, {growths} cannot have made the gap grow")
    a, b = alpha + growths, beta + rounds - growths
    mean, variance = a / (a + b), a * b / ((a + b) ** 2 * (a + b + 1))
    bound, status = _bound(mean, variance, eps)
    # betaincc and not 1 - betainc, so that a very small tail keeps its digits.
    return GapPosterior(rounds, growths, mean, variance, eps, float(betaincc(a, b, 1 - eps)), bound, status)


def gap_analysis(
    score_by_round: Sequence[Pair],
    eps: float,
    scale: tuple[float, float] = (LOW, HIGH),
    prior: tuple[float, float] = (1, 1),
) -> tuple[GapRound, ...]:
    """Return the gap after each round of one debate, with its model.

    Args:
        score_by_round: the pair of scores after each round.
        eps: the tolerance.
        scale: the lowest and highest score; 6 to 120 for the totals of MORE, SAMRE and baseline.
        prior: alpha and beta.

    Raises:
        UsageError: as ``gap_posterior``; or what is no pair of scores on the scale.

    >>> rounds = gap_analysis([(60, 60), (80, 61), (70, 60)], eps=0.5)
    >>> [(each.round, round(each.gap, 3), each.posterior.growths) for each in rounds]
    [(1, 0.0, 0), (2, 0.167, 1), (3, 0.088, 1)]
    """
    gaps = gaps_of(score_by_round, scale)
    return tuple(
        GapRound(number, gap, gap_posterior(number, growths, eps, *prior))
        for number, (gap, growths) in enumerate(zip(gaps, growths_of(gaps), strict=True), start=1)
    )


def gaps_of(score_by_round: Sequence[Pair], scale: tuple[float, float] = (LOW, HIGH)) -> tuple[float, ...]:
    """Return the gap after each round, as a share of the widest possible one.

    Raises:
        UsageError: a scale that does not run upwards, or what is no pair of scores on it.

    >>> gaps_of([(120, 6), (63, 63)])
    (1.0, 0.0)
    """
    low, high = scale
    if not low < high:
        raise UsageError(f"the scale must run upwards, not from {low:g} to {high:g}")
    for number, pair in enumerate(score_by_round, start=1):
        # A protocol that rates one text has plain numbers here, which have no length.
        if not isinstance(pair, Sequence) or len(pair) != 2:
            raise UsageError(f"round {number}: {pair!r} is no pair of scores")
        if not all(low <= score <= high for score in pair):
            raise UsageError(f"round {number}: {list(pair)} is off the scale from {low:g} to {high:g}")
    return tuple(abs(first - second) / (high - low) for first, second in score_by_round)


def growths_of(gaps: Sequence[float]) -> tuple[int, ...]:
    """Count, up to each round, the rounds in which the gap grew; the first counts if its gap is above 0.

    >>> growths_of([0.1, 0.1, 0.3, 0.2, 0.4])
    (1, 1, 2, 2, 3)
    """
    growths, grown, before = [], 0, 0.0
    for gap in gaps:
        grown += gap > before + _EQUAL
        growths.append(grown)
        before = gap
    return tuple(growths)


def rounds_until(gaps: Sequence[float], eps: float) -> int | None:
    """Return the first round after which the gap is at least ``eps``; ``None`` where it never is (Theorem 2).

    >>> rounds_until([0.1, 0.3, 0.2], eps=0.2), rounds_until([0.1], eps=0.2)
    (2, None)
    """
    return next((number for number, gap in enumerate(gaps, start=1) if gap >= eps - _EQUAL), None)


def _bound(mean: float, variance: float, eps: float) -> tuple[float | None, Bound]:
    if not mean > 1 - eps / 2:
        return None, "does not apply"
    bound = 1 - 4 * variance / eps**2
    return bound, "holds" if bound > 0 else "vacuous"
