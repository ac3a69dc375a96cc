"""Draw bootstrap resamples; make intervals and p-values: of resampled figures, of means and of shares.

Clusters are what was drawn from the world independently of each other: groups (the candidates of one source text belong
together), or single rows where there are no groups. A resample is described by how often it drew each cluster, its
*weights*, so that most figures of a resample are sums that a matrix product computes without copying any row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .alignment import Floats, Ints, number_groups

Weights = NDArray[np.int64]
"""How often each resample drew each cluster: (resamples, clusters)."""
Figure = Callable[[Weights], Floats]
"""Computes a figure in each of some resamples."""
ByteWeights = NDArray[np.uint8]
"""How often each resample drew each cluster, in a byte each."""
AnyWeights = TypeVar("AnyWeights", Weights, ByteWeights)
AT_ONCE = 1 << 18
"""So many numbers are laid out at a time, which are 2 MB: those of all resamples together may be gigabytes."""
_BYTES = 1 << 27
"""A block of weights as bytes."""
_CACHED_BYTES = 1 << 26
"""So many bytes of resamples are kept for the next figures of as many clusters: a study has hundreds of these."""


@dataclass(frozen=True)
class Resampling:
    """Sets how intervals are made. Part of every result that has some.

    Figures without a formula for their standard error have it from bootstrap resamples (Efron 1979). Two figures of the
    same clusters under the same resampling are taken from the same resamples, one by one: their differences are paired.

    Attributes:
        resamples: how many are drawn; 0 for no intervals.
        confidence: the level of intervals.
        seed: of the generator, which nobody else uses.

    Raises:
        ValueError: fewer than 0 resamples, a confidence that is not between 0 and 1, a negative seed.

    >>> scores = np.arange(20.0)
    >>> resampling = Resampling(resamples=500)
    >>> means = resampling.figures(len(scores), lambda weights: weights @ scores / 20)
    >>> resampled, formula = resampling.studentised(9.5, means, 20)[0], resampling.mean_interval(scores)[0]
    >>> round(resampled.low, 1), round(formula.low, 1)
    (6.9, 6.7)
    """

    resamples: int = 1000
    confidence: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        if self.resamples < 0:
            raise ValueError(f"resamples must be 0 or more, got {self.resamples}")
        if not 0 < self.confidence < 1:
            raise ValueError(f"confidence must lie between 0 and 1, got {self.confidence}")
        if self.seed < 0:
            raise ValueError(f"seed must be 0 or more, got {self.seed}")

    def weights(self, clusters: int) -> Iterator[Weights]:
        """Yield how often each resample drew each cluster, some resamples at a time: arrays of shape (some, clusters).

        Each row sums to ``clusters``. The rows are the same for the same seed and number of clusters.
        """
        for block in self.blocks(clusters):
            for part in split_resamples(block, clusters):
                # Figures may add and multiply weights as whole numbers, which would overflow in bytes.
                yield part.astype(np.int64)

    def blocks(self, clusters: int) -> Iterator[ByteWeights]:
        """Yield the same weights in a byte each, many more at a time: 1,000 resamples of 100,000 clusters in one array.

        That a resample draws a cluster more than 255 times has a chance below 1e-500, however many there are. An array
        that all resamples fit into is read-only, since all callers share it; the latest such arrays are kept.
        """
        key = self.seed, self.resamples, clusters
        if self.resamples * clusters > _CACHED_BYTES:
            return _draw_blocks(*key)
        # Taken out and put in again: the first in the dict is the one that nobody has asked for longest.
        weights = _kept.pop(key, None)
        if weights is None:
            # What may be kept is one block, and of 0 resamples there is none.
            weights = next(_draw_blocks(*key), np.empty((0, clusters), dtype=np.uint8))
            weights.flags.writeable = False
        while _kept and sum(drawn.nbytes for drawn in _kept.values()) + weights.nbytes > _CACHED_BYTES:
            del _kept[next(iter(_kept))]
        _kept[key] = weights
        return iter([weights])

    def figures(self, clusters: int, figure: Figure) -> Floats:
        """Compute a figure in each resample.

        Args:
            clusters: how many there are. Of fewer than two, all resamples are alike: they say nothing, and are all NaN.
            figure: of weights of shape (some, clusters), the figure in each, of shape (some,), or several in each, of
                shape (some, figures); NaN where there is none.

        Returns:
            shape (resamples,), or (resamples, figures).
        """
        if clusters < 2 or not self.resamples:
            return np.full(self.resamples, np.nan)
        return np.concatenate([figure(weights) for weights in self.weights(clusters)])

    def statistic(self, clusters: int, figure: Figure, bounded: bool = False) -> Statistic:
        """Return a figure over all clusters, as of a resample that drew each once, with its interval (``studentised``).

        Args:
            clusters, figure: as in ``figures``.
            bounded: as in ``studentised``.
        """
        value = none_if_nan(float(figure(np.ones((1, clusters), dtype=np.int64))[0]))
        return self.studentised(value, self.figures(clusters, figure), clusters, bounded)[0]

    def studentised(
        self, value: float | None, resampled: Floats, clusters: int, bounded: bool = False
    ) -> tuple[Statistic, float | None]:
        """Add to a figure Student's interval with the standard error of its resamples; return it with its p-value.

        Percentiles of the resamples alone are too narrow: their spread is that of the clusters at hand, which is too
        small by (n - 1) / n, and few clusters do not say how well it is known (Efron and Tibshirani 1993, section 12).

        Args:
            value: the figure over all clusters; ``None`` where it does not exist.
            resampled: the figure in each resample; NaN where it does not exist.
            clusters: how many are drawn.
            bounded: whether the figure lies between -1 and 1: then the interval is made on Fisher's scale, atanh.

        Returns:
            the figure with its interval, and the two-sided p-value that it is 0; both ``None`` where there are fewer
            than ``FEWEST_CLUSTERS`` clusters, or the figure exists in less than half of the resamples.
        """
        known = without_nan(resampled)
        if value is None or clusters < FEWEST_CLUSTERS or len(known) < 2 or 2 * len(known) < len(resampled):
            return Statistic(value), None
        if bounded and 1 - abs(value) < 1e-9:
            # All resamples are perfect, too.
            perfect = self.no_point(Statistic(value, value, value), clusters)
            return Statistic(value, max(-1.0, perfect.low or 0.0), min(1.0, perfect.high or 0.0)), None
        centre, spread = value, known
        if bounded:
            # Perfect resamples would lie infinitely far out.
            centre, spread = math.atanh(value), np.arctanh(np.clip(known, -0.999, 0.999))
        error = float(spread.std(ddof=1)) * math.sqrt(clusters / (clusters - 1))
        low, high, p = student_interval(centre, error, clusters - 1, self.confidence)
        return Statistic(value, *((math.tanh(low), math.tanh(high)) if bounded else (low, high))), p

    def no_point(self, figure: Statistic, clusters: int, reach: float = 2.0) -> Statistic:
        """Return a figure with an interval that is no point, even where all clusters say the same.

        Their spread tells nothing there. What none of them has may hold of some of the others: of as many as the score
        interval says of a share of which all are right.

        Args:
            figure: with its interval, or without one, which it stays.
            clusters: how many were seen.
            reach: how far those others may move the figure: from -1 to 1, or by 1 in differences of shares.
        """
        value, low, high = figure.value, figure.low, figure.high
        # Rounding may leave a little more than nothing.
        if value is None or low is None or high is None or high - low > 1e-12:
            return figure
        unseen = share_interval(np.zeros(clusters), np.ones(clusters), self).high or 0.0
        return Statistic(value, value - reach * unseen, value + reach * unseen)

    def mean_interval(self, values: Floats, clusters: Ints | None = None) -> tuple[Statistic, float | None]:
        """Return the mean over rows with Student's interval over clusters, and the two-sided p-value that it is 0.

        Of fewer than ``FEWEST_CLUSTERS`` there is neither. The standard error is that of a ratio of two sums over
        clusters, their values and their rows (Cochran 1977, section 6.3); of single rows it is the usual one.

        Args:
            values: of each row.
            clusters: of each row, a number that rows of one cluster share; by default each row stands alone.
        """
        mean, n = mean_or_none(values), len(values)
        clusters = np.arange(n) if clusters is None else number_groups(clusters)
        sizes = np.bincount(clusters).astype(float)
        count = len(sizes)
        if mean is None or count < FEWEST_CLUSTERS or not self.resamples:
            return Statistic(mean), None
        sums = np.bincount(clusters, values)
        error = math.sqrt(count / (count - 1) * float(((sums - mean * sizes) ** 2).sum())) / n
        low, high, p = student_interval(mean, error, count - 1, self.confidence)
        return Statistic(mean, low, high), p


@dataclass(frozen=True)
class Statistic:
    """A figure and its confidence interval.

    Attributes:
        value: the figure; ``None`` where it does not exist, as a correlation with a constant.
        low, high: the ends of its interval, in the figure's own unit; ``None`` where there is none. How the interval
            was made (resamples, confidence, seed) is said by the result that holds the figure.

    >>> Statistic(0.51, 0.43, 0.58).high
    0.58
    """

    value: float | None
    low: float | None = None
    high: float | None = None

    def times(self, factor: float) -> Statistic:
        """Return the figure in another unit, or turned round by a negative factor: the low end becomes the high one.

        >>> Statistic(0.25, 0.125, None).times(-1)
        Statistic(value=-0.25, low=None, high=-0.125)
        """
        low, high = (self.low, self.high) if factor > 0 else (self.high, self.low)
        return Statistic(*(None if end is None else factor * end for end in (self.value, low, high)))


def split_resamples(weights: AnyWeights, rows: int) -> Iterator[AnyWeights]:
    """Yield the resamples a few at a time, so that ``AT_ONCE`` numbers are held at most, ``rows`` for each resample."""
    at_once = max(1, AT_ONCE // max(1, rows))
    return (weights[start : start + at_once] for start in range(0, len(weights), at_once))


def _draw_blocks(seed: int, resamples: int, clusters: int) -> Iterator[ByteWeights]:
    random = np.random.default_rng(seed)
    at_once = max(1, _BYTES // max(1, clusters))
    for start in range(0, resamples, at_once):
        block = np.empty((min(at_once, resamples - start), clusters), dtype=np.uint8)
        # One resample after the other from one generator: the size of the blocks changes no draw.
        for weights in block:
            weights[:] = np.bincount(random.integers(0, clusters, clusters), minlength=clusters)
        yield block


_kept: dict[tuple[int, int, int], ByteWeights] = {}
"""The latest resamples, by seed, number and clusters."""


def student_interval(value: float, error: float, df: int, confidence: float) -> tuple[float, float, float]:
    """Return the ends of Student's interval of a value with this standard error, and the p-value that it is 0."""
    # Imported where it is needed: scipy takes longer to load than numpy.
    from scipy.special import stdtr, stdtrit

    margin = float(stdtrit(df, (1 + confidence) / 2)) * error
    # Where every cluster says the same: of a difference that is there in all of them, the sign test's p-value.
    p = 1.0 if abs(value) <= 1e-12 else 2.0**-df
    if error > 1e-15:
        p = 2 * float(stdtr(df, -abs(value) / error))
    return value - margin, value + margin, p


def share_interval(right: Floats, votes: Floats, resampling: Resampling) -> Statistic:
    """Return a share with its score interval (Wilson 1927), which is no point even where all are right, or all wrong.

    With several votes in a cluster, or half votes, n is the effective number of votes: as many independent ones as
    have the variance of the share between clusters (Korn and Graubard 1998), and no more than there are. Where all
    clusters are right, or all wrong, no variance can be seen, and each cluster counts as one vote.

    Args:
        right: of each cluster the votes that count for the share.
        votes: of each cluster all votes.
        resampling: its confidence; with 0 resamples there are no intervals.

    >>> share_interval(np.ones(20), np.ones(20), Resampling())
    Statistic(value=1.0, low=0.8388748419471806, high=1.0)
    """
    from scipy.special import ndtri, stdtrit

    right, votes = right[votes > 0], votes[votes > 0]
    n, clusters = float(votes.sum()), len(votes)
    if not n:
        return Statistic(None)
    share = float(right.sum()) / n
    if clusters < 2 or not resampling.resamples:
        return Statistic(share)
    z = float(ndtri((1 + resampling.confidence) / 2))
    if not ((votes == 1).all() and np.isin(right, (0, 1)).all()):
        variance = clusters / (clusters - 1) * float(((right - share * votes) ** 2).sum()) / n**2
        if share in (0.0, 1.0):
            n = float(clusters)
        elif variance > 0:
            n = min(n, share * (1 - share) / variance)
        # Few clusters do not say well how much they differ.
        n *= (z / float(stdtrit(clusters - 1, (1 + resampling.confidence) / 2))) ** 2
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    margin = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # Rounding may leave the end of a perfect share beside it.
    low, high = min(share, max(0.0, centre - margin)), max(share, min(1.0, centre + margin))
    return Statistic(share, 0.0 if low < 1e-12 else low, 1.0 if high > 1 - 1e-12 else high)


def share_of_rows(right: NDArray[np.bool_] | Floats, clusters: Ints, resampling: Resampling) -> Statistic:
    """Return the share of rows of which something holds, or half of it, with the score interval over clusters."""
    clusters = number_groups(clusters)
    sums, sizes = np.bincount(clusters, right), np.bincount(clusters)
    return share_interval(sums.astype(float), sizes.astype(float), resampling)


def mean_statistic(values: NDArray[Any], clusters: Ints, resampling: Resampling) -> Statistic:
    """Return a mean over rows with its interval over clusters, that of a share where all values are 0 or 1."""
    if np.isin(values, (0, 1)).all():
        return share_of_rows(values.astype(bool), clusters, resampling)
    return resampling.mean_interval(values.astype(float), clusters)[0]


FEWEST_CLUSTERS = 10
"""Of fewer clusters no p-value is made and nothing is called significant.

The bootstrap knows chance only from how the clusters at hand differ. Of n of them there are few distinct resamples (3
of two clusters, 35 of four), whose spread is too small by the factor (n - 1) / n and by more in the tails: a p-value of
0.003 may stand where the exact one is 0.98. From about ten clusters on it comes near the nominal level.
"""


def caution(clusters: Mapping[str, int]) -> Iterator[str]:
    """Yield the caution for figures of too few clusters, by the name of what was judged, unless there are enough.

    >>> print(*caution({"wit": 4, "tact": 80}))
    fewer than 10 groups or items to resample on wit (4): only shares have an interval there, and no p-value is given
    """
    if few := ", ".join(f"{name} ({count})" for name, count in clusters.items() if is_few(count)):
        no_figures = "only shares have an interval there, and no p-value is given"
        yield f"fewer than {FEWEST_CLUSTERS} groups or items to resample on {few}: {no_figures}"


def is_few(clusters: int) -> bool:
    """Tell whether there are too few clusters to tell a difference from chance; of none there is no figure at all."""
    return 0 < clusters < FEWEST_CLUSTERS


def mean_or_none(values: Floats) -> float | None:
    """Return the mean; ``None`` of no values."""
    return float(values.mean()) if len(values) else None


def none_if_nan(value: float) -> float | None:
    """Return a figure as results hold it: ``None``, not NaN, where it does not exist."""
    return None if np.isnan(value) else float(value)


def without_nan(values: Floats) -> Floats:
    """Return the values that exist."""
    return values[~np.isnan(values)]
