"""Agreement of columns, for tests: as rows, or as a sample, and Cohen's kappa straight from its definition."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from jurygraph.eval import agreement
from jurygraph.eval.results.agreement import PreferenceAgreement, ScoreAgreement
from jurygraph.eval.statistics.alignment import number_groups, number_units
from jurygraph.eval.statistics.resampling import Resampling, Statistic
from jurygraph.eval.statistics.sample import GroupedCorrelation, Sample
from scipy import stats

SCIPY: dict[str, Callable[..., float]] = {
    "pearson": lambda x, y: float(stats.pearsonr(x, y)[0]),
    "spearman": lambda x, y: float(stats.spearmanr(x, y)[0]),
    "kendall": lambda x, y: float(stats.kendalltau(x, y)[0]),
}
"""Correlations of two columns by another library."""


def correlate(
    name: str,
    x: Any,
    y: Any,
    groups: Sequence[Hashable | None] | None = None,
    resampling: Resampling | None = None,
) -> Statistic:
    """Correlate two columns over all rows."""
    first, second = np.array(x, dtype=float), np.array(y, dtype=float)
    units = np.arange(len(first)) if groups is None else number_units(groups)
    return Sample("score", first, second, units, False, resampling or Resampling()).statistic(name)


def correlate_within(name: str, x: Any, y: Any, groups: Sequence[Hashable]) -> GroupedCorrelation:
    """Average over groups the correlation within each."""
    first, second = np.array(x, dtype=float), np.array(y, dtype=float)
    units = number_groups(groups)
    return Sample("score", first, second, units, True, Resampling()).within_groups(name)


def agree_on_scores(judged: Any, human: Any, groups: Any) -> ScoreAgreement:
    """Measure the agreement of a column of scores with another."""
    columns = zip(judged, human, groups, strict=True)
    found = agreement([{"score": score, "human": label, "group": group} for score, label, group in columns])
    assert isinstance(found["score"], ScoreAgreement)
    return found["score"]


def agree_on_preferences(
    judged: Any, human: Any, resampling: Resampling | None = None
) -> PreferenceAgreement:
    """Measure the agreement of a column of winners with another."""
    rows = [{"winner": winner, "human": label} for winner, label in zip(judged, human, strict=True)]
    found = agreement(rows, resampling)["preference"]
    assert isinstance(found, PreferenceAgreement)
    return found


def cohen_kappa(first: Sequence[str], second: Sequence[str]) -> float | None:
    """Cohen's kappa from the shares of both columns."""
    n = len(first)
    observed = sum(a == b for a, b in zip(first, second, strict=True)) / n
    chance = sum(first.count(name) * second.count(name) / n**2 for name in set(first) | set(second))
    return None if chance > 1 - 1e-12 else (observed - chance) / (1 - chance)
