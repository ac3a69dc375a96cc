"""Bootstrap resamples, and intervals and p-values of resampled statistics, means and shares.

Clusters are the independent units of the data: groups (such as the candidates of one source text),
or single rows without groups. The *weights* of a resample are how often it drew each cluster. Most
statistics of a resample are therefore sums that a matrix product computes without copying rows.
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
"""Computes a statistic in each of some resamples."""
ByteWeights = NDArray[np.uint8]
"""How often each resample drew each cluster, in one byte each."""
AnyWeights = TypeVar("AnyWeights", Weights, ByteWeights)
AT_ONCE = 1 << 18
"""The number of values in memory at a time (2 MB); all resamples together may take gigabytes."""
_BYTES = 1 << 27
"""The size of a block of weights in bytes."""
_CACHED_BYTES = 1 << 26
"""The bytes of cached resamples, which hundreds of statistics of a study share."""


@dataclass(frozen=True)
class Resampling:
    """The settings of intervals, as a part of every result that has intervals.

    Statistics without a formula for their standard error get it from bootstrap resamples (Efron
    1979). Two statistics of the same clusters with the same settings use the same resamples one by
    one, so their differences are paired.

    Attributes:
        resamples: the number of resamples; 0 for no intervals.
        confidence: the confidence level of intervals.
        seed: the seed of the generator, which is used only here.

    Raises:
        ValueError: a negative number of resamples or seed, or a confidence that is not between 0
            and 1.

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
        """Yield how often each resample drew each cluster, in parts of shape (some, clusters).

        Each row sums to ``clusters``. The rows are the same for the same seed and number of
        clusters.
        """
        for block in self.blocks(clusters):
            for part in split_resamples(block, clusters):
                # Callers add and multiply weights as integers, which would overflow in bytes.
                yield part.astype(np.int64)

    def blocks(self, clusters: int) -> Iterator[ByteWeights]:
        """Yield the same weights in one byte each, with many more at a time.

        For example, 1,000 resamples of 100,000 clusters are one array. The chance that a resample
        draws a cluster more than 255 times is below 1e-500 for any number of clusters. An array
        with all resamples is read-only, because all callers share it. The latest such arrays are
        cached.
        """
        key = self.seed, self.resamples, clusters
        if self.resamples * clusters > _CACHED_BYTES:
            return _draw_blocks(*key)
        # Remove and insert it again, so that the first entry is the least recently used one.
        weights = _kept.pop(key, None)
        if weights is None:
            # The cached array is one block. For 0 resamples there is no block.
            weights = next(_draw_blocks(*key), np.empty((0, clusters), dtype=np.uint8))
            weights.flags.writeable = False
        while (
            _kept and sum(drawn.nbytes for drawn in _kept.values()) + weights.nbytes > _CACHED_BYTES
        ):
            del _kept[next(iter(_kept))]
        _kept[key] = weights
        return iter([weights])

    def figures(self, clusters: int, figure: Figure) -> Floats:
        """Compute a statistic in each resample.

        Args:
            clusters: the number of clusters. With fewer than two, all resamples are equal and have
                no information, so all results are NaN.
            figure: computes the statistic from weights of shape (some, clusters): of shape (some,),
                or (some, figures) for several; NaN if it does not exist.

        Returns:
            shape (resamples,), or (resamples, figures).
        """
        if clusters < 2 or not self.resamples:
            return np.full(self.resamples, np.nan)
        return np.concatenate([figure(weights) for weights in self.weights(clusters)])

    def statistic(self, clusters: int, figure: Figure, bounded: bool = False) -> Statistic:
        """Return a statistic over all clusters, with its interval from ``studentised``.

        Args:
            clusters, figure: as in ``figures``.
            bounded: as in ``studentised``.
        """
        value = none_if_nan(float(figure(np.ones((1, clusters), dtype=np.int64))[0]))
        return self.studentised(value, self.figures(clusters, figure), clusters, bounded)[0]

    def studentised(
        self,
        value: float | None,
        resampled: Floats,
        clusters: float,
        bounded: bool = False,
        least_error: float = 0.0,
    ) -> tuple[Statistic, float | None]:
        """Return a statistic with Student's interval from its resamples, and its p-value.

        The standard error is that of the resamples. Percentiles of the resamples alone would be too
        narrow: their spread is too small by (n - 1) / n, and the uncertainty of a spread from few
        clusters is missing (Efron and Tibshirani 1993, section 12).

        Args:
            value: the statistic over all clusters; ``None`` if it does not exist.
            resampled: the statistic in each resample; NaN if it does not exist.
            clusters: the number of clusters, or of effective ones (``effective_clusters``).
            bounded: whether the statistic lies between -1 and 1: the interval is then computed on
                Fisher's scale, atanh.
            least_error: the least standard error, on Fisher's scale if bounded, for statistics that
                vary less between the resamples than between samples.

        Returns:
            the statistic with its interval, and the two-sided p-value that it is 0; both ``None``
            with fewer than ``FEWEST_CLUSTERS`` clusters, or if the statistic exists in less than
            half of the resamples.
        """
        known = without_nan(resampled)
        if value is None or is_few(clusters) or len(known) < 2 or 2 * len(known) < len(resampled):
            return Statistic(value), None
        if bounded and 1 - abs(value) < 1e-9:
            # All resamples are perfect too.
            perfect = self.no_point(Statistic(value, value, value), int(clusters))
            bounds = max(-1.0, perfect.low or 0.0), min(1.0, perfect.high or 0.0)
            return Statistic(value, *bounds), student_interval(
                value, 0.0, clusters - 1, self.confidence
            )[2]
        centre = value
        spread = known
        if bounded:
            # Perfect resamples would be infinite on this scale.
            centre = math.atanh(value)
            spread = np.arctanh(np.clip(known, -0.999, 0.999))
        error = float(spread.std(ddof=1)) * math.sqrt(clusters / (clusters - 1))
        error = max(error, least_error)
        low, high, p = student_interval(centre, error, clusters - 1, self.confidence)
        return Statistic(value, *((math.tanh(low), math.tanh(high)) if bounded else (low, high))), p

    def no_point(self, figure: Statistic, clusters: int, reach: float = 2.0) -> Statistic:
        """Return a statistic whose interval is not a point, even if all clusters are equal.

        The spread of equal clusters has no information. Unseen clusters may differ: as many as the
        score interval allows for a share of 100 %.

        Args:
            figure: the statistic with its interval; without an interval, it is unchanged.
            clusters: the number of clusters.
            reach: how far the unseen clusters may move the statistic: 2 for the range from -1 to 1,
                1 for differences of shares.
        """
        value = figure.value
        low = figure.low
        high = figure.high
        # Rounding may leave a very small width.
        if value is None or low is None or high is None or high - low > 1e-12:
            return figure
        unseen = share_interval(np.zeros(clusters), np.ones(clusters), self).high or 0.0
        return Statistic(value, value - reach * unseen, value + reach * unseen)

    def mean_interval(
        self, values: Floats, clusters: Ints | None = None
    ) -> tuple[Statistic, float | None]:
        """Return the mean over rows with Student's interval over clusters, and its p-value.

        The two-sided p-value is against a mean of 0.

        With fewer than ``FEWEST_CLUSTERS`` effective clusters there is neither. The standard error
        is that of a ratio of two sums over clusters (``ratio_variance``). For single rows it is the
        usual one.

        Args:
            values: the value of each row.
            clusters: the cluster number of each row; by default, each row is a cluster.
        """
        mean = mean_or_none(values)
        n = len(values)
        clusters = np.arange(n) if clusters is None else number_groups(clusters)
        sizes = np.bincount(clusters).astype(float)
        count = effective_clusters(sizes)
        if mean is None or not count or is_few(count) or not self.resamples:
            return Statistic(mean), None
        error = math.sqrt(ratio_variance(np.bincount(clusters, values).astype(float), sizes))
        low, high, p = student_interval(mean, error, count - 1, self.confidence)
        return Statistic(mean, low, high), p


@dataclass(frozen=True)
class Statistic:
    """A statistic and its confidence interval.

    Attributes:
        value: the statistic; ``None`` if it does not exist, such as a correlation with a constant.
        low, high: the ends of its interval, in the statistic's unit; ``None`` if there is none. The
        result that contains the statistic has the settings of the interval (resamples, confidence,
        seed).

    >>> Statistic(0.51, 0.43, 0.58).high
    0.58
    """

    value: float | None
    low: float | None = None
    high: float | None = None

    def times(self, factor: float) -> Statistic:
        """Return the statistic times a factor; a negative factor swaps the ends of the interval.

        >>> Statistic(0.25, 0.125, None).times(-1)
        Statistic(value=-0.25, low=None, high=-0.125)
        """
        low, high = (self.low, self.high) if factor > 0 else (self.high, self.low)
        return Statistic(
            *(None if end is None else factor * end for end in (self.value, low, high))
        )


def split_resamples(weights: AnyWeights, rows: int) -> Iterator[AnyWeights]:
    """Yield the resamples in parts of at most ``AT_ONCE`` numbers, with ``rows`` per resample."""
    at_once = max(1, AT_ONCE // max(1, rows))
    return (weights[start : start + at_once] for start in range(0, len(weights), at_once))


def _draw_blocks(seed: int, resamples: int, clusters: int) -> Iterator[ByteWeights]:
    random = np.random.default_rng(seed)
    at_once = max(1, _BYTES // max(1, clusters))
    for start in range(0, resamples, at_once):
        block = np.empty((min(at_once, resamples - start), clusters), dtype=np.uint8)
        # The resamples come from one generator one by one, so the block size does not change any
        # draw.
        for weights in block:
            weights[:] = np.bincount(random.integers(0, clusters, clusters), minlength=clusters)
        yield block


_kept: dict[tuple[int, int, int], ByteWeights] = {}
"""The latest resamples, by seed, number of resamples and number of clusters."""


def student_interval(
    value: float, error: float, df: float, confidence: float
) -> tuple[float, float, float]:
    """Return the ends of Student's interval for a value and its standard error, and the p-value."""
    # A local import, because scipy takes longer to load than numpy.
    from scipy.special import stdtr, stdtrit

    margin = float(stdtrit(df, (1 + confidence) / 2)) * error
    # If all clusters are equal, use the sign test's p-value of a difference in all of them.
    p = 1.0 if abs(value) <= 1e-12 else 2.0**-df
    if error > 1e-15:
        p = 2 * float(stdtr(df, -abs(value) / error))
    return value - margin, value + margin, p


def share_interval(right: Floats, votes: Floats, resampling: Resampling) -> Statistic:
    """Return a share with its score interval (Wilson 1927), which is never a point.

    With several or half votes in a cluster, n is the effective number of votes: the number of
    independent votes with the variance of the share between clusters (Korn and Graubard 1998), and
    at most their actual number. If the share is 0 or 1, no variance is visible, and each cluster
    counts as one vote. Clusters of very different sizes count as fewer equal ones
    (``effective_clusters``). With fewer than two of them there is no interval.

    Args:
        right: the votes of each cluster that count for the share.
        votes: all votes of each cluster.
        resampling: its confidence; with 0 resamples there are no intervals.

    >>> share_interval(np.ones(20), np.ones(20), Resampling())
    Statistic(value=1.0, low=0.8388748419471806, high=1.0)
    """
    from scipy.special import ndtri, stdtrit

    right = right[votes > 0]
    votes = votes[votes > 0]
    n = float(votes.sum())
    if not n:
        return Statistic(None)
    share = float(right.sum()) / n
    clusters = effective_clusters(votes)
    if clusters < 2 or not resampling.resamples:
        return Statistic(share)
    z = float(ndtri((1 + resampling.confidence) / 2))
    if not ((votes == 1).all() and np.isin(right, (0, 1)).all()):
        variance = ratio_variance(right, votes)
        if share in (0.0, 1.0):
            n = float(clusters)
        elif variance > 0:
            n = min(n, share * (1 - share) / variance)
        # The variance between few clusters is uncertain.
        n *= (z / float(stdtrit(clusters - 1, (1 + resampling.confidence) / 2))) ** 2
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    margin = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # Rounding may put the end of a perfect share next to it.
    low = min(share, max(0.0, centre - margin))
    high = max(share, min(1.0, centre + margin))
    return Statistic(share, 0.0 if low < 1e-12 else low, 1.0 if high > 1 - 1e-12 else high)


def effective_clusters(sizes: Floats) -> float:
    """Return the effective number of equal clusters by Kish's formula: (sum n)^2 / sum n^2.

    Source: Kish 1965, Survey Sampling, section 11.7.

    Args:
        sizes: the number of rows or votes of each cluster.

    >>> effective_clusters(np.array([5.0, 5, 5])), effective_clusters(np.array([100.0, 1, 1]))
    (3.0, 1.040191962)
    """
    total = float(sizes.sum())
    return round(total**2 / float((sizes**2).sum()), 9) if total else 0.0


def ratio_variance(sums: Floats, sizes: Floats) -> float:
    """Return the variance of a ratio of two sums over clusters, of their values and their rows.

    Each cluster's squared residual is divided by 1 - h, where h is the cluster's share of the rows.
    For clusters of one size, this is the usual n / (n - 1) (Cochran 1977, section 6.3). Without it,
    a cluster with most of the rows would pull the mean towards itself and hide its own variation
    (Bell and McCaffrey 2002).

    Args:
        sums: the sum of the values of each cluster.
        sizes: the number of rows of each cluster.
    """
    total = float(sizes.sum())
    residuals = sums - float(sums.sum()) / total * sizes
    return float((residuals**2 / (1 - sizes / total)).sum()) / total**2


def share_of_rows(
    right: NDArray[np.bool_] | Floats, clusters: Ints, resampling: Resampling
) -> Statistic:
    """Return the share of rows that are 1 (0.5: half), with the interval over clusters."""
    clusters = number_groups(clusters)
    sums = np.bincount(clusters, right)
    sizes = np.bincount(clusters)
    return share_interval(sums.astype(float), sizes.astype(float), resampling)


def mean_statistic(values: NDArray[Any], clusters: Ints, resampling: Resampling) -> Statistic:
    """Return a mean over rows with its interval.

    The interval of a share if all values are 0 or 1.
    """
    if np.isin(values, (0, 1)).all():
        return share_of_rows(values.astype(bool), clusters, resampling)
    return resampling.mean_interval(values.astype(float), clusters)[0]


FEWEST_CLUSTERS = 10
"""With fewer clusters, there is no p-value and nothing is significant.

The bootstrap only knows the variation between the given clusters. With n clusters there are few
distinct resamples (3 for two clusters, 35 for four). Their spread is too small by the factor (n -
1) / n, and by more in the tails: a p-value may be 0.003 instead of the exact 0.98. With about ten
clusters or more, it is close to the nominal level.
"""


def caution(clusters: Mapping[str, int]) -> Iterator[str]:
    """Yield the caution about too few clusters, by the name of the judged aspect.

    >>> print(*caution({"wit": 4, "tact": 80}))
    fewer than 10 groups or items to resample on wit (4): only shares have an interval there, and no p-value is given
    """
    if few := ", ".join(f"{name} ({count})" for name, count in clusters.items() if is_few(count)):
        no_figures = "only shares have an interval there, and no p-value is given"
        yield f"fewer than {FEWEST_CLUSTERS} groups or items to resample on {few}: {no_figures}"


def is_few(clusters: float) -> bool:
    """Return whether there are too few clusters for a p-value.

    Without clusters there is no metric.
    """
    # Ten groups of almost one size count as ten.
    return 0 < clusters < FEWEST_CLUSTERS - 0.5


def mean_or_none(values: Floats) -> float | None:
    """Return the mean; ``None`` without values."""
    return float(values.mean()) if len(values) else None


def none_if_nan(value: float) -> float | None:
    """Return a value for results: ``None`` instead of NaN."""
    return None if np.isnan(value) else float(value)


def without_nan(values: Floats) -> Floats:
    """Return the values that are not NaN."""
    return values[~np.isnan(values)]
