"""How well a judge agrees with people. Every statistic validates, computes, and returns a frozen result."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .digests import digest

Floats = NDArray[np.float64]
Groups = NDArray[np.uint64]
Ranks = NDArray[np.intp]


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
    return float(np.clip(_standardized(x) @ _standardized(y), -1, 1))


def spearman(x: Floats, y: Floats) -> float:
    """Spearman's rho: Pearson's r of the ranks, ties ranked by their mean."""
    return pearson(_mean_ranks(x), _mean_ranks(y))


def kendall(x: Floats, y: Floats) -> float:
    """Kendall's tau-b: (C - D) / sqrt((P - X)(P - Y)) over P pairs of rows.

    C are in the same order on both sides, D in opposite order, X tied in ``x``, Y tied in ``y``. D is what is out of
    order in ``y`` once the rows are sorted by ``x`` and then ``y`` (Knight 1966), and C all that is neither D nor tied.
    """
    xs, ys = np.unique(x, return_inverse=True)[1], np.unique(y, return_inverse=True)[1]
    pairs = len(x) * (len(x) - 1) // 2
    tied_x, tied_y, tied_both = _tied_pairs(xs), _tied_pairs(ys), _tied_pairs(xs * len(ys) + ys)
    discordant = _inversions(ys[np.lexsort((ys, xs))])
    concordant = pairs - tied_x - tied_y + tied_both - discordant
    return (concordant - discordant) / math.sqrt((pairs - tied_x) * (pairs - tied_y))


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
    numbers: dict[Hashable, int] = {}
    numbered = (numbers.setdefault(group, len(numbers)) for group in groups)
    return _within(name, first, second, np.fromiter(numbered, dtype=np.uint64))


def agree_on_scores(
    judged: Sequence[float | None], human: Sequence[float | None], groups: Sequence[Hashable | None]
) -> ScoreAgreement:
    """Correlations of a judge's scores with people's, over rows and within groups.

    Rows that lack either score are left out and counted.
    """
    if not len(judged) == len(human) == len(groups):
        raise ValueError("judged, human and groups must be equally long")
    columns = _ScoreColumns()
    for j, h, g in zip(judged, human, groups, strict=True):
        columns.add(j, h, g)
    return columns.agreement()


def agree_on_preferences(judged: Sequence[str | None], human: Sequence[str | None]) -> PreferenceAgreement:
    """Accuracy and Cohen's kappa of a judge's preferences against people's; ``ties`` counts the judge's.

    >>> agree_on_preferences(["1", "2", "tie", None], ["1", "2", "1", "2"])
    PreferenceAgreement(n=3, left_out=1, accuracy=0.6666666666666666, kappa=0.5, ties=1)
    """
    if len(judged) != len(human):
        raise ValueError("judged and human must be equally long")
    table = _PreferenceTable()
    for j, h in zip(judged, human, strict=True):
        table.add(j, h)
    return table.agreement()


def cohen_kappa(first: Sequence[Hashable], second: Sequence[Hashable]) -> float | None:
    """Cohen's kappa, (p_o - p_e) / (1 - p_e), of two raters over the classes that either uses.

    ``None`` where both always say the same one thing (p_e = 1). Source: Cohen 1960.

    >>> cohen_kappa(["a", "b", "a", "b"], ["a", "b", "b", "a"])
    0.0
    """
    if len(first) != len(second) or not first:
        raise ValueError("kappa needs two equally long, non-empty columns")
    return _kappa(Counter(zip(first, second, strict=True)))


def agreement(rows: Iterable[Mapping[str, Any]]) -> dict[str, ScoreAgreement | PreferenceAgreement]:
    """Agreement of result rows with people, by aspect; comparisons are under ``preference``.

    Args:
        rows: as in ``results.jsonl``: ``score`` or ``winner``, ``human``, and ``group``, ``aspect`` if any.

    >>> rows = [{"aspect": "wit", "score": s, "human": h} for s, h in [(1, 2), (2, 3), (4, 5)]]
    >>> agreement(rows)["wit"].over_rows["spearman"].value
    1.0
    """
    found = RowsByAspect()
    for row in rows:
        found.add(row)
    return found.agreement()


class RowsByAspect:
    """Gathers result rows one at a time; of each it keeps no more than two numbers and a digest of its group."""

    def __init__(self) -> None:
        self._scores: dict[str, _ScoreColumns] = {}
        self._preferences: dict[str, _PreferenceTable] = {}

    def add(self, row: Mapping[str, Any]) -> None:
        """Take in a row as in ``results.jsonl``."""
        winner, human = row.get("winner"), row.get("human")
        if winner is not None or isinstance(human, str):
            self._preferences.setdefault("preference", _PreferenceTable()).add(winner, human)
        else:
            columns = self._scores.setdefault(row.get("aspect") or "score", _ScoreColumns())
            columns.add(row.get("score"), human, row.get("group"))

    def agreement(self) -> dict[str, ScoreAgreement | PreferenceAgreement]:
        """Of the rows so far: scores by aspect, in the order in which they came up, then preferences."""
        found: dict[str, ScoreAgreement | PreferenceAgreement] = {}
        found.update((name, columns.agreement()) for name, columns in self._scores.items())
        found.update((name, table.agreement()) for name, table in self._preferences.items())
        return found


class _ScoreColumns:
    """Scores of a judge and of people, beside each other."""

    def __init__(self) -> None:
        self._judged = array("d")
        self._human = array("d")
        self._groups = array("Q")
        self._left_out = 0
        self._grouped = True

    def add(self, judged: float | None, human: float | None, group: Hashable | None) -> None:
        if judged is None or human is None:
            self._left_out += 1
            return
        self._judged.append(judged)
        self._human.append(human)
        self._groups.append(digest(group))
        self._grouped = self._grouped and group is not None

    def agreement(self) -> ScoreAgreement:
        x, y = _columns(self._judged, self._human)
        groups = np.array(self._groups, dtype=np.uint64)
        grouped = self._grouped and len(groups) > 0
        return ScoreAgreement(
            n=len(x),
            left_out=self._left_out,
            groups=len(np.unique(groups)) if grouped else 0,
            over_rows={name: Correlation(_correlation(name, x, y)) for name in STATISTICS},
            per_group={name: _within(name, x, y, groups) for name in STATISTICS} if grouped else {},
        )


class _PreferenceTable:
    """How often a judge said one thing and people another, or the same."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[Hashable, Hashable]] = Counter()
        self._left_out = 0

    def add(self, judged: str | None, human: str | None) -> None:
        if judged is None or human is None:
            self._left_out += 1
        else:
            self._counts[judged, human] += 1

    def agreement(self) -> PreferenceAgreement:
        n = self._counts.total()
        return PreferenceAgreement(
            n=n,
            left_out=self._left_out,
            accuracy=_agreeing(self._counts) / n if n else None,
            kappa=_kappa(self._counts) if n else None,
            ties=sum(count for (judged, _), count in self._counts.items() if judged == "tie"),
        )


def _agreeing(counts: Counter[tuple[Hashable, Hashable]]) -> int:
    return sum(count for (first, second), count in counts.items() if first == second)


def _kappa(counts: Counter[tuple[Hashable, Hashable]]) -> float | None:
    n = counts.total()
    first: Counter[Hashable] = Counter()
    second: Counter[Hashable] = Counter()
    for (one, other), count in counts.items():
        first[one] += count
        second[other] += count
    chance = math.fsum(first[c] * second[c] for c in first) / n**2
    return None if chance == 1 else (_agreeing(counts) / n - chance) / (1 - chance)


def _within(name: str, x: Floats, y: Floats, groups: Groups) -> GroupedCorrelation:
    values = [_correlation(name, x[rows], y[rows]) for rows in _rows_of_groups(groups)]
    known = [value for value in values if value is not None]
    return GroupedCorrelation(
        value=math.fsum(known) / len(known) if known else None,
        groups=len(known),
        skipped=len(values) - len(known),
    )


def _rows_of_groups(groups: Groups) -> Iterator[NDArray[np.intp]]:
    order = np.argsort(groups, kind="stable")
    end = 0
    for count in np.unique(groups, return_counts=True)[1]:
        end += int(count)
        yield order[end - count : end]


def _columns(x: Iterable[float], y: Iterable[float]) -> tuple[Floats, Floats]:
    first, second = np.fromiter(x, dtype=float), np.fromiter(y, dtype=float)
    if first.shape != second.shape:
        raise ValueError(f"columns of different length: {len(first)} and {len(second)}")
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise ValueError("not a number, or infinite, in a column")
    return first, second


def _correlation(name: str, x: Floats, y: Floats) -> float | None:
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    return STATISTICS[name](x, y)


def _standardized(x: Floats) -> Floats:
    """Centred, of length 1; scaled first, since squares of very small or large numbers are none."""
    centred = np.ldexp(x, -np.frexp(np.abs(x).max())[1])
    centred -= centred.mean()
    centred /= np.abs(centred).max()
    standardized: Floats = centred / np.linalg.norm(centred)
    return standardized


def _mean_ranks(x: Floats) -> Floats:
    _, places, counts = np.unique(x, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - (counts - 1) / 2)[places]
    return ranks


def _tied_pairs(x: Ranks) -> int:
    counts = np.unique(x, return_counts=True)[1]
    return int((counts * (counts - 1) // 2).sum())


def _inversions(ranks: Ranks) -> int:
    """Pairs of which the greater one stands first.

    Two ranks differ first in some bit, the highest of them. So for each bit, from the highest down, among those that
    are alike in the bits above it: how many that have the bit stand before each one that has not.
    """
    found = 0
    for bit in reversed(range(int(ranks.max()).bit_length())):
        above, ones = ranks >> (bit + 1), (ranks >> bit) & 1
        starts = np.flatnonzero(np.diff(above, prepend=-1))
        before = np.cumsum(ones) - ones
        before -= np.repeat(before[starts], np.diff(starts, append=len(ranks)))
        found += int(before[ones == 0].sum())
        ranks = ranks[np.argsort(ranks >> bit, kind="stable")]
    return found
