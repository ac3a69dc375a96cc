"""The value of a panel of judges: correlated errors, effective votes, and the best sub-panels.

A panel of n judges with independent errors gains from each vote. If the errors of two judges have
the correlation rho on average, the panel is worth n / (1 + (n - 1) rho) independent votes: the
number of members divided by Kish's design effect (Kish 1965, Survey Sampling, section 5.4), as
*Nine Judges, Two Effective Votes* (Kohli 2026, arXiv 2605.29800) uses it for judges.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ...state.tasks import TaskKind
from .alignment import Floats, Ints, ratio
from .resampling import Resampling, Statistic, effective_clusters
from .sample import information, share_of_others
from .tie_policy import TIE_CODE, count_votes

FOLDS = 5
"""The number of parts of the clusters for cross-fitting."""
MOST_LEFT_OUT = 1000
"""The most clusters that are left out one by one, for the standard error of the correlation."""
_OF_CLUSTERS = 0.4
"""The most of the clusters that counts for the interval of the correlation."""
MOST_TRIED = 6
"""The most judges for which every sub-panel is tried."""


@dataclass(frozen=True)
class ErrorCorrelation:
    """The correlation of the errors of a panel's members, and the votes that the panel is worth.

    Attributes:
        mean: the mean correlation over pairs of members, with its interval over clusters.
        effective: the effective number of votes, between 0 and the number of members, with the
            interval of the mean correlation.
        pairs: the correlation of each pair, of shape (members, members); NaN if a member of the
            pair has no variation of its errors, and on the diagonal.
        with_others: the mean correlation of each member with the others; NaN if it has none.
    """

    mean: Statistic
    effective: Statistic
    pairs: Floats
    with_others: Floats

    @property
    def undefined(self) -> int:
        """The number of pairs without a correlation."""
        return int(np.isnan(self.pairs[np.triu_indices(len(self.pairs), 1)]).sum())


def effective_votes(members: int, correlation: float) -> float:
    """Return the number of independent votes that a panel is worth: n / (1 + (n - 1) rho).

    A negative mean correlation counts as 0, so that a panel is never worth more votes than it has.

    Args:
        members: n, the number of members.
        correlation: rho, the mean correlation of the errors of two members.

    Source: Kish 1965, section 5.4; Kohli 2026, arXiv 2605.29800.

    >>> effective_votes(5, 0.0), effective_votes(5, 1.0), round(effective_votes(9, 0.44), 2)
    (5.0, 1.0, 1.99)
    """
    return members / (1 + (members - 1) * min(1.0, max(0.0, correlation)))


def error_correlation(errors: Floats, clusters: Ints, resampling: Resampling) -> ErrorCorrelation:
    """Correlate the errors of judges on the same rows, with intervals over clusters.

    The correlation of a pair is Pearson's r: for right (1) and wrong (0), this is phi.

    Args:
        errors: a column for each judge: 1 for right and 0 for wrong, or the score minus the label.
        clusters: the cluster of each row.
        resampling: how intervals are computed.

    >>> right = np.array([[1, 1, 0], [1, 1, 1], [0, 0, 1], [0, 0, 0]] * 5, dtype=float)
    >>> found = error_correlation(right, np.arange(20), Resampling())
    >>> round(found.mean.value, 3), round(found.effective.value, 3)
    (0.333, 1.8)
    """
    members = errors.shape[1]
    # In ascending order, so that the order of the rows does not change resamples.
    names, codes = np.unique(clusters, return_inverse=True)
    count = len(names)
    # Centred, because sums of squares of large numbers lose digits.
    centred = errors - errors.mean(axis=0)
    first, second = np.triu_indices(members)
    products = centred[:, first] * centred[:, second]
    columns = np.column_stack([np.ones(len(errors)), centred, products])
    sums: Floats = np.stack([np.bincount(codes, column, count) for column in columns.T], axis=1)

    def matrices(moments: Floats) -> Floats:
        rows = moments[:, :1]
        means = moments[:, 1 : members + 1] / rows
        covariances = np.empty((len(moments), members, members))
        covariances[:, first, second] = moments[:, members + 1 :] / rows
        covariances[:, second, first] = covariances[:, first, second]
        covariances -= means[:, :, None] * means[:, None, :]
        variances = np.einsum("rii->ri", covariances)
        # Rounding leaves a tiny variance to errors that are all equal.
        deviations = np.sqrt(np.where(variances > 1e-12, variances, np.nan))
        found: Floats = covariances / (deviations[:, :, None] * deviations[:, None, :])
        return np.clip(found, -1, 1)

    upper = np.triu_indices(members, 1)

    def means_of_pairs(moments: Floats) -> Floats:
        of_pairs = matrices(moments)[:, upper[0], upper[1]]
        known = ~np.isnan(of_pairs)
        return ratio(np.where(known, of_pairs, 0.0).sum(axis=1), known.sum(axis=1))

    total = sums.sum(axis=0, keepdims=True)
    pairs = matrices(total)[0]
    np.fill_diagonal(pairs, np.nan)
    value = float(means_of_pairs(total)[0])
    known = ~np.isnan(pairs)
    # Without common errors in the data, the resamples have none either. The correlation of
    # independent errors has this standard error.
    least_error = 1 / math.sqrt(max(1, len(errors) * int(known.sum()) // 2))
    if 1 < count <= MOST_LEFT_OUT:
        # With few clusters, resamples vary too little: common errors of a cluster are skewed.
        least_error = max(least_error, _jackknife_error(means_of_pairs(total - sums)))
    mean = resampling.studentised(
        None if math.isnan(value) else value,
        resampling.figures(count, lambda weights: means_of_pairs(weights @ sums)),
        _effective_clusters(errors, codes, count),
        bounded=True,
        least_error=least_error,
    )[0]
    with_others = ratio(np.where(known, pairs, 0.0).sum(axis=1), known.sum(axis=1))
    return ErrorCorrelation(mean, _effective(members, mean), pairs, with_others)


def _jackknife_error(left_out: Floats) -> float:
    """Return the standard error of correlations without each cluster, on Fisher's scale.

    Source: Efron and Tibshirani 1993, section 11.2.
    """
    values = np.arctanh(np.clip(left_out, -0.999, 0.999))
    count = len(values)
    error = math.sqrt((count - 1) / count * float(((values - values.mean()) ** 2).sum()))
    return 0.0 if math.isnan(error) else error


def _effective_clusters(errors: Floats, codes: Ints, count: int) -> float:
    """Return the number of clusters of one size that the clusters are worth for correlations.

    The standard error of a correlation of errors that a cluster has in common is uncertain, so two
    in five clusters count: with all of them, the intervals of 20 clusters covered the correlation
    in 90 % of simulations. If a median judge is hardly ever wrong (or right), few rows decide about the
    correlation, and fewer clusters count, as for other correlations over rows.
    """
    clusters = effective_clusters(np.bincount(codes, minlength=count).astype(float))
    others = [share_of_others(column) for column in errors.T]
    return clusters * min(_OF_CLUSTERS, information(float(np.median(others))))


def _effective(members: int, mean: Statistic) -> Statistic:
    """Return the effective votes of a mean correlation; the ends change places."""
    ends = (
        None if end is None else effective_votes(members, end)
        for end in (mean.value, mean.high, mean.low)
    )
    return Statistic(*ends)


def combined(values: Floats, kind: TaskKind) -> Floats:
    """Return the verdict of a panel on each row: the mean score, or the majority's winner.

    Without a winner that more than half of the members name, the verdict is a tie.

    Args:
        values: a column for each member: scores, or codes of winners.
        kind: whether these are scores or preferences.

    >>> combined(np.array([[4.0, 2.0], [1.0, 2.0]]), "score").tolist()
    [3.0, 1.5]
    >>> combined(np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 2.0]]), "compare").tolist()
    [0.0, 2.0]
    """
    if kind == "score":
        means: Floats = values.mean(axis=1)
        return means
    votes = count_votes(values)
    winners = votes.argmax(axis=1)
    has_majority = 2 * votes.max(axis=1) > values.shape[1]
    return np.where(has_majority, winners, TIE_CODE).astype(float)


def sub_panels(members: int) -> list[tuple[int, ...]]:
    """Return every sub-panel of some members, the smaller ones first.

    >>> sub_panels(2)
    [(0,), (1,), (0, 1)]
    """
    sizes = range(1, members + 1)
    return [chosen for size in sizes for chosen in combinations(range(members), size)]


Agree = Callable[[Floats, Ints], float]
"""Returns the agreement of verdicts on some rows with the labels; -inf if it does not exist."""


@dataclass(frozen=True)
class CrossFitted:
    """A sub-panel that is chosen on one part of the clusters and judged on the other part.

    Attributes:
        chosen: the sub-panel that is chosen on all rows.
        apparent: its agreement on the rows on which it is chosen, which is too optimistic.
        verdicts: on each row, the verdict of the sub-panel that is chosen without the row's fold.
            Scores are relative to the mean score of the sub-panel on the other folds.
        alike: whether every fold has the same choice.
    """

    chosen: tuple[int, ...]
    apparent: float
    verdicts: Floats
    alike: bool


class PanelSearch:
    """Finds the best sub-panels of judges on the same rows, by cross-fitting over clusters.

    The agreement of the best of several judges on the rows on which it is chosen is too optimistic
    (Varma and Simon 2006, Bias in error estimation when using cross-validation for model
    selection). Every fold is therefore judged by the choice of the other folds.

    With more than ``MOST_TRIED`` judges, only single judges and the panels of a forward selection
    are tried.

    Args:
        values: a column for each judge: scores, or codes of winners.
        kind: whether these are scores or preferences.
        clusters: the cluster of each row.
        agree: the agreement that the best sub-panel has most of.
        seed: of the assignment of clusters to folds.
    """

    def __init__(
        self, values: Floats, kind: TaskKind, clusters: Ints, agree: Agree, seed: int = 0
    ) -> None:
        self._values = values
        self._kind: TaskKind = kind
        self._agree = agree
        names, codes = np.unique(clusters, return_inverse=True)
        count = len(names)
        places = np.random.default_rng(seed).permutation(count)
        self._folds = (places % min(FOLDS, max(1, count)))[codes]
        self._verdicts: dict[tuple[int, ...], Floats] = {}
        everything = np.arange(len(values))
        parts = [np.flatnonzero(self._folds != fold) for fold in np.unique(self._folds)]
        self._all = self._tried(everything)
        self._of_folds = [self._tried(rows) for rows in parts] if len(parts) > 1 else []

    def best(self, allowed: Callable[[tuple[int, ...]], bool]) -> CrossFitted:
        """Return the best of the allowed sub-panels, for example of those below a price.

        Of equally good ones, the first and smallest one is chosen.

        Args:
            allowed: whether a sub-panel may be chosen; at least one single judge must be allowed.
        """
        chosen = self._best_of(self._all, allowed)
        choices = [self._best_of(tried, allowed) for tried in self._of_folds]
        verdicts = np.full(len(self._values), np.nan)
        for fold, choice in zip(np.unique(self._folds), choices, strict=False):
            here = self._folds == fold
            given = self._verdict(choice)
            # Two sub-panels may have different levels, which would look like disagreement.
            level = float(given[~here].mean()) if self._kind == "score" else 0.0
            verdicts[here] = given[here] - level
        alike = all(choice == chosen for choice in choices)
        return CrossFitted(chosen, self._all[chosen], verdicts, alike)

    def _verdict(self, members: tuple[int, ...]) -> Floats:
        if members not in self._verdicts:
            self._verdicts[members] = combined(self._values[:, members], self._kind)
        return self._verdicts[members]

    def _tried(self, rows: Ints) -> dict[tuple[int, ...], float]:
        """Return the agreement of each tried sub-panel on some rows."""
        count = self._values.shape[1]
        if count <= MOST_TRIED:
            return {of: self._agree(self._verdict(of)[rows], rows) for of in sub_panels(count)}
        tried: dict[tuple[int, ...], float] = {
            (one,): self._agree(self._verdict((one,))[rows], rows) for one in range(count)
        }
        panel = max(tried, key=lambda of: tried[of])
        while len(panel) < count:
            larger = [tuple(sorted({*panel, one})) for one in range(count) if one not in panel]
            found = {of: self._agree(self._verdict(of)[rows], rows) for of in larger}
            panel = max(found, key=lambda of: found[of])
            tried |= found
        return tried

    @staticmethod
    def _best_of(
        tried: dict[tuple[int, ...], float], allowed: Callable[[tuple[int, ...]], bool]
    ) -> tuple[int, ...]:
        # ``max`` returns the first of equal ones, and smaller sub-panels come first.
        return max(filter(allowed, tried), key=lambda members: tried[members])


def members_worth_it(correlation: float, worth: float, most: int = 50) -> int:
    """Return the size up to which each further member adds at least some effective votes.

    The errors of further members are taken to have the mean correlation of the given ones.

    Args:
        correlation: the mean correlation of the errors of two members.
        worth: the effective votes that a member must add.
        most: the largest panel that is considered.

    >>> members_worth_it(0.35, 0.25), members_worth_it(0.0, 0.25, most=9), members_worth_it(1.0, 0.25)
    (3, 9, 1)
    """
    for members in range(1, most):
        more = effective_votes(members + 1, correlation) - effective_votes(members, correlation)
        if more < worth:
            return members
    return most
