"""Test what the courtroom paper's theory says on a run's own data: its model of the gap, and its proofs' premises.

The paper (appendices A and B) assumes that the gap after i rounds, in w of which it grew, follows Beta(alpha + w,
beta + i - w); that what an aggregator makes of a team's defences is worth at least as much as the best of them
(Theorem 2); that several advocates widen the gap towards the answer that is ahead anyway (Theorem 1); and that gaps
grow with the rounds (Theorem 3). It tests none of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Annotated, Literal, NamedTuple

import numpy as np

from ..statistics.alignment import Floats, Units
from ..statistics.resampling import Resampling, Statistic
from ..tables import Column, text_column
from .gap_analysis import growths_of, rounds_of
from .verdict_columns import Booleans, Verdicts

Outcome = Literal["holds", "refuted", "cannot be told"]

_FEWEST_DEBATES = 10
"""Of fewer debates two parameters are not fitted: the interval of their figures would have no units enough either."""


@dataclass(frozen=True)
class PredictedGap:
    """Sets the gap that the fitted model predicts after a round beside the one that was observed.

    Attributes:
        judge: whose debates these are.
        alpha, beta: of the prior that makes the observed gaps most likely, one for all rounds.
        round: from 1.
        n: debates that lasted this long.
        observed: the mean gap, as a share of the widest possible one.
        predicted: the model's mean.
        excess: observed less predicted, debate by debate: the model fits if its interval holds 0.
    """

    judge: Annotated[str, text_column("judge")]
    alpha: Annotated[float, Column("alpha", digits=2)]
    beta: Annotated[float, Column("beta", digits=2)]
    round: Annotated[int, Column("round")]
    n: Annotated[int, Column("cases")]
    observed: Annotated[Statistic, Column("observed gap")]
    predicted: Annotated[float, Column("predicted")]
    excess: Annotated[Statistic, Column("observed - predicted")]


@dataclass(frozen=True)
class Premise:
    """Says whether a premise of the paper holds on the data of a study.

    Attributes:
        claim: the premise, with the judges that it was tested on.
        n: debates, or pairs of them on one item.
        figure: above 0 where the premise holds, as a share of the scale of scores.
    """

    claim: Annotated[str, text_column("premise")]
    n: Annotated[int, Column("cases")]
    figure: Annotated[Statistic, Column("figure")]
    """above 0: the premise holds; a share of the scale"""

    @property
    def outcome(self) -> Outcome:
        """What the interval says; one that holds 0, or is not there, tells nothing."""
        low, high = self.figure.low, self.figure.high
        if low is None or high is None or low <= 0 <= high:
            return "cannot be told"
        return "holds" if low > 0 else "refuted"


class CourtroomSide(NamedTuple):
    """Holds a judge's debates and how they were held.

    Attributes:
        label: the judge's.
        rows: its verdicts.
        gaps: of each verdict the gap after each round, of shape (rows, rounds); NaN after its last round.
        totals: of each verdict both answers' totals, from 0 to 1 on the scale: shape (rows, 2).
        advocates: how many an answer has.
        aggregate: what is made of a team's defences; ``None`` where there are no teams.
        by_round: whether it scores in several rounds.
    """

    label: str
    rows: Verdicts
    gaps: Floats
    totals: Floats
    advocates: int
    aggregate: str | None
    by_round: bool

    def mean(self, values: Floats, chosen: Booleans | Units, resampling: Resampling) -> Statistic:
        """Return the mean of a figure of some of its verdicts."""
        return resampling.mean_interval(values, self.rows.take(chosen).clusters)[0]


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


def predicted_gaps(judges: Sequence[CourtroomSide], resampling: Resampling) -> Iterator[PredictedGap]:
    """Fit the model to each judge's debates and yield its prediction of every round, beside what was observed."""
    for judge in judges:
        prior = fit_prior(judge.gaps)
        if prior is None:
            continue
        alpha, beta = prior
        for number, lasted, observed, grown_in in rounds_of(judge.gaps):
            predicted = (alpha + grown_in) / (alpha + beta + number)
            gap = judge.mean(observed, lasted, resampling)
            excess = judge.mean(observed - predicted, lasted, resampling)
            n, mean = len(observed), float(predicted.mean())
            yield PredictedGap(judge.label, alpha, beta, number, n, gap, mean, excess)


def premises(judges: Sequence[CourtroomSide], resampling: Resampling) -> Iterator[Premise]:
    """Test each premise on which the runs of a study say something."""
    for first, second in permutations(judges, 2):
        _, mine, theirs = np.intersect1d(first.rows.keys, second.rows.keys, return_indices=True)
        own, other = first.totals[mine], second.totals[theirs]
        if not len(mine):
            continue
        if (first.aggregate, second.aggregate) == ("llm", "best") and first.advocates == second.advocates:
            figure = first.mean(own.mean(axis=1) - other.mean(axis=1), mine, resampling)
            claim = f"an aggregate scores no less than the best defence: {first.label} minus {second.label}"
            yield Premise(claim, len(mine), figure)
        if first.advocates > second.advocates:
            # Towards the answer that is ahead with fewer advocates: a lead that turns round is no growth.
            lead = np.sign(other[:, 0] - other[:, 1])
            wider = lead * (own[:, 0] - own[:, 1]) - np.abs(other[:, 0] - other[:, 1])
            figure = first.mean(wider[lead != 0], mine[lead != 0], resampling)
            claim = f"more advocates widen the leading answer's gap: {first.label} minus {second.label}"
            yield Premise(claim, int((lead != 0).sum()), figure)
    for judge in judges:
        several = np.flatnonzero((~np.isnan(judge.gaps)).sum(axis=1) > 1)
        if len(several):
            paths = judge.gaps[several]
            last = paths[np.arange(len(paths)), (~np.isnan(paths)).sum(axis=1) - 1]
            figure = judge.mean(last - paths[:, 0], several, resampling)
            claim = f"gaps grow with the rounds: {judge.label}, last round minus first"
            yield Premise(claim, len(several), figure)
