"""Correlations by another library, and Cohen's kappa straight from its definition."""

from collections.abc import Callable, Sequence

from scipy import stats

SCIPY: dict[str, Callable[..., float]] = {
    "pearson": lambda x, y: float(stats.pearsonr(x, y)[0]),
    "spearman": lambda x, y: float(stats.spearmanr(x, y)[0]),
    "kendall": lambda x, y: float(stats.kendalltau(x, y)[0]),
}


def cohen_kappa(first: Sequence[str], second: Sequence[str]) -> float | None:
    """Cohen's kappa from the shares of both columns."""
    n = len(first)
    observed = sum(a == b for a, b in zip(first, second, strict=True)) / n
    chance = sum(first.count(name) * second.count(name) / n**2 for name in set(first) | set(second))
    return None if chance > 1 - 1e-12 else (observed - chance) / (1 - chance)
