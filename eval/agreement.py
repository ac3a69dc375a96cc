"""How well a judge agrees with people. Every statistic validates, computes, and returns a frozen result."""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Correlation:
    """A correlation; ``value`` is ``None`` where none exists (either side constant, or fewer than two rows)."""

    value: float | None


@dataclass(frozen=True)
class GroupedCorrelation:
    """The mean over groups of the correlation within each.

    Attributes:
        value: the mean, or ``None`` where no group has a correlation.
        groups: groups that counted.
        skipped: groups left out, since either side is constant in them or they have a single row.
    """

    value: float | None
    groups: int
    skipped: int


@dataclass(frozen=True)
class ScoreAgreement:
    """Agreement on scores: over all rows, and within groups (the candidates of one source).

    ``per_group`` is empty where rows have no groups. ``n`` counts the rows that have both a judge's and
    people's score; ``left_out`` those that lack one.
    """

    n: int
    left_out: int
    groups: int
    over_rows: Mapping[str, Correlation]
    per_group: Mapping[str, GroupedCorrelation]


@dataclass(frozen=True)
class PreferenceAgreement:
    """Agreement on preferences, ties being a class of their own (ChatEval, section 3.4).

    ``accuracy`` and ``kappa`` are ``None`` without rows; ``kappa`` also where chance agreement is certain.
    """

    n: int
    left_out: int
    accuracy: float | None
    kappa: float | None
    ties: int


def pearson(x: Floats, y: Floats) -> float:
    """Pearson's r."""
    return float(stats.pearsonr(x, y).statistic)


def spearman(x: Floats, y: Floats) -> float:
    """Spearman's rho, ties ranked by their mean."""
    return float(stats.spearmanr(x, y).statistic)


def kendall(x: Floats, y: Floats) -> float:
    """Kendall's tau-b."""
    return float(stats.kendalltau(x, y).statistic)


STATISTICS: dict[str, Callable[[Floats, Floats], float]] = {
    "pearson": pearson,
    "spearman": spearman,
    "kendall": kendall,
}


def correlate(name: str, x: Iterable[float], y: Iterable[float]) -> Correlation:
    """One correlation of two columns.

    Args:
        name: ``pearson``, ``spearman`` or ``kendall``.
        x, y: numbers, equally many.

    >>> correlate("kendall", [1, 2, 3], [1, 3, 2]).value
    0.3333333333333333
    >>> correlate("pearson", [1, 1, 1], [1, 3, 2]).value is None
    True
    """
    first, second = _columns(x, y)
    return Correlation(_correlation(name, first, second))


def correlate_within(
    name: str, x: Iterable[float], y: Iterable[float], groups: Sequence[Hashable]
) -> GroupedCorrelation:
    """The mean over groups of the correlation within each (DEBATE, appendix E.5).

    >>> correlate_within("spearman", [1, 2, 5, 5], [3, 4, 1, 2], ["a", "a", "b", "b"])
    GroupedCorrelation(value=1.0, groups=1, skipped=1)
    """
    first, second = _columns(x, y)
    if len(groups) != len(first):
        raise ValueError(f"{len(groups)} groups for {len(first)} rows")
    rows: dict[Hashable, list[int]] = defaultdict(list)
    for index, group in enumerate(groups):
        rows[group].append(index)
    values = [_correlation(name, first[index], second[index]) for index in rows.values()]
    known = [value for value in values if value is not None]
    return GroupedCorrelation(
        value=math.fsum(known) / len(known) if known else None,
        groups=len(known),
        skipped=len(values) - len(known),
    )


def agree_on_scores(
    judged: Sequence[float | None], human: Sequence[float | None], groups: Sequence[Hashable | None]
) -> ScoreAgreement:
    """Correlations of a judge's scores with people's, over rows and within groups.

    Rows that lack either score are left out and counted.
    """
    if not len(judged) == len(human) == len(groups):
        raise ValueError("judged, human and groups must be equally long")
    kept = [
        (j, h, g) for j, h, g in zip(judged, human, groups, strict=True) if j is not None and h is not None
    ]
    x, y = [row[0] for row in kept], [row[1] for row in kept]
    names = [row[2] for row in kept]
    grouped = bool(names) and None not in names
    return ScoreAgreement(
        n=len(kept),
        left_out=len(judged) - len(kept),
        groups=len(set(names)) if grouped else 0,
        over_rows={name: correlate(name, x, y) for name in STATISTICS},
        per_group={name: correlate_within(name, x, y, names) for name in STATISTICS} if grouped else {},
    )


def agree_on_preferences(judged: Sequence[str | None], human: Sequence[str | None]) -> PreferenceAgreement:
    """Accuracy and Cohen's kappa of a judge's preferences against people's; ``ties`` counts the judge's.

    >>> agree_on_preferences(["1", "2", "tie", None], ["1", "2", "1", "2"])
    PreferenceAgreement(n=3, left_out=1, accuracy=0.6666666666666666, kappa=0.5, ties=1)
    """
    if len(judged) != len(human):
        raise ValueError("judged and human must be equally long")
    kept = [(j, h) for j, h in zip(judged, human, strict=True) if j is not None and h is not None]
    return PreferenceAgreement(
        n=len(kept),
        left_out=len(judged) - len(kept),
        accuracy=sum(j == h for j, h in kept) / len(kept) if kept else None,
        kappa=cohen_kappa([j for j, _ in kept], [h for _, h in kept]) if kept else None,
        ties=sum(j == "tie" for j, _ in kept),
    )


def cohen_kappa(first: Sequence[Hashable], second: Sequence[Hashable]) -> float | None:
    """Cohen's kappa, (p_o - p_e) / (1 - p_e), of two raters over the classes that either uses.

    ``None`` where both always say the same one thing (p_e = 1). Source: Cohen 1960.

    >>> cohen_kappa(["a", "b", "a", "b"], ["a", "b", "b", "a"])
    0.0
    """
    if len(first) != len(second) or not first:
        raise ValueError("kappa needs two equally long, non-empty columns")
    n = len(first)
    observed = sum(a == b for a, b in zip(first, second, strict=True)) / n
    classes = {*first, *second}
    chance = math.fsum(first.count(c) * second.count(c) for c in classes) / n**2
    return None if chance == 1 else (observed - chance) / (1 - chance)


def agreement(rows: Iterable[Mapping[str, Any]]) -> dict[str, ScoreAgreement | PreferenceAgreement]:
    """Agreement of result rows with people, by aspect; comparisons are under ``preference``.

    Args:
        rows: as in ``results.jsonl``: ``score`` or ``winner``, ``human``, and ``group``, ``aspect`` if any.

    >>> rows = [{"aspect": "wit", "score": s, "human": h} for s, h in [(1, 2), (2, 3), (4, 5)]]
    >>> agreement(rows)["wit"].over_rows["spearman"].value
    1.0
    """
    by_aspect: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        by_aspect["preference" if _is_preference(row) else row.get("aspect") or "score"].append(row)
    return {name: _agree(name, chosen) for name, chosen in by_aspect.items()}


def _is_preference(row: Mapping[str, Any]) -> bool:
    return row.get("winner") is not None or isinstance(row.get("human"), str)


def _agree(name: str, rows: Sequence[Mapping[str, Any]]) -> ScoreAgreement | PreferenceAgreement:
    human = [row.get("human") for row in rows]
    if name == "preference":
        return agree_on_preferences([row.get("winner") for row in rows], human)
    return agree_on_scores([row.get("score") for row in rows], human, [row.get("group") for row in rows])


def _columns(x: Iterable[float], y: Iterable[float]) -> tuple[Floats, Floats]:
    first, second = np.asarray(list(x), dtype=float), np.asarray(list(y), dtype=float)
    if first.shape != second.shape:
        raise ValueError(f"columns of different length: {len(first)} and {len(second)}")
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise ValueError("not a number, or infinite, in a column")
    return first, second


def _correlation(name: str, x: Floats, y: Floats) -> float | None:
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    with warnings.catch_warnings():
        # Constant columns are dealt with above; nearly constant ones are still data.
        warnings.simplefilter("ignore", stats.ConstantInputWarning)
        warnings.simplefilter("ignore", stats.NearConstantInputWarning)
        return STATISTICS[name](x, y)
