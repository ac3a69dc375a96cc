"""Test by the paired bootstrap whether one judge agrees better with people than another; compute gains over a base.

Accuracy, kappa and correlations of two judges are taken from the same resamples, and subtracted one by one. Whole
groups are drawn, so this holds also where several items share a source; tests that assume independent items do not.
Source: Efron and Tibshirani 1993, An introduction to the bootstrap.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np

from .alignment import AlignedRows, Floats, Reasons, align_rows
from .chance_corrected import accuracies, kappas
from .correlation import STATISTICS, correlation, correlations_within, resampled_correlation
from .resampling import (
    Resampling,
    Statistic,
    Weights,
    mean_or_none,
    none_if_nan,
    resampled_means,
    two_sided_p,
)
from .tie_policy import Ties, confusion_tables, counted_votes, sum_by_unit

TIE = "tie"


@dataclass(frozen=True)
class PairedBootstrap:
    """Tells whether two judges agree with people to a different degree.

    Attributes:
        what: ``accuracy``, ``kappa`` or a correlation's name.
        n: rows that both judges and people judged; ``groups``: units drawn; ``left_out``: other rows, by reason.
        first, second: either judge's agreement over these rows; ``None`` where it does not exist.
        difference: first - second, with its interval.
        p: two-sided bootstrap p-value (see ``two_sided_p``); ``None`` where there is no interval, and of few groups.
        skipped: for correlations within groups, groups in which either judge has none; they count for neither.
        resampling: how the interval was made.
    """

    what: str
    n: int
    groups: int
    left_out: Reasons
    first: float | None
    second: float | None
    difference: Statistic
    p: float | None
    skipped: int
    resampling: Resampling


def compare_correlations(
    name: str,
    first: Sequence[float | None],
    second: Sequence[float | None],
    human: Sequence[float | None],
    groups: Sequence[Hashable | None] | None = None,
    resampling: Resampling | None = None,
) -> PairedBootstrap:
    """Compare two judges' correlations with people, by the paired bootstrap.

    Args:
        name: ``pearson``, ``spearman`` or ``kendall``.
        first, second, human: scores of the same rows; ``None`` where one is missing.
        groups: of each row; drawn as one.
        resampling: how the interval is made.

    Raises:
        ValueError: an unknown name, or columns of different length.

    >>> human = [1, 2, 3, 4, 5, 6]
    >>> found = compare_correlations("spearman", human, [2, 1, 4, 3, 6, 5], human)
    >>> round(found.difference.value, 3), found.n
    (0.171, 6)
    """
    resampling = resampling or Resampling()
    rows = _scores(name, first, second, human, groups)
    x, y, shared = rows.columns.values()
    values = correlation(name, x, shared), correlation(name, y, shared)
    # The same units, seed and number of resamples: both judges are measured in the same draws, hence the pairing.
    drawn = [resampled_correlation(name, judge, shared, rows.units, resampling) for judge in (x, y)]
    return _comparison(name, rows, values, drawn[0] - drawn[1], resampling)


def compare_correlations_within(
    name: str,
    first: Sequence[float | None],
    second: Sequence[float | None],
    human: Sequence[float | None],
    groups: Sequence[Hashable],
    resampling: Resampling | None = None,
) -> PairedBootstrap:
    """Compare two judges' means over groups of the correlation with people within each.

    Both means are over the same groups: those in which both judges have a correlation (see ``skipped``).

    Args and errors are those of ``compare_correlations``; every row needs a group.

    >>> human, groups = [1, 2, 3, 1, 2, 3, 4, 4], list("aaabbbcc")
    >>> found = compare_correlations_within("kendall", human, [1, 3, 2, 3, 2, 1, 1, 2], human, groups)
    >>> round(found.difference.value, 3), found.groups, found.skipped
    (1.333, 2, 1)
    """
    if any(group is None for group in groups):
        raise ValueError("correlations within groups need a group for every row")
    resampling = resampling or Resampling()
    rows = _scores(name, first, second, human, groups)
    x, y, shared = rows.columns.values()
    by_group = [correlations_within(name, judge, shared, rows.units) for judge in (x, y)]
    # A difference is NaN where either side is.
    in_both = ~np.isnan(by_group[0] - by_group[1])
    first_known, second_known = (values[in_both] for values in by_group)
    drawn = resampled_means(first_known - second_known, np.arange(len(first_known)), resampling)
    comparison = _comparison(
        *(name, rows, (mean_or_none(first_known), mean_or_none(second_known)), drawn, resampling),
        units=len(first_known),
    )
    return replace(comparison, skipped=int((~in_both).sum()))


def compare_accuracies(
    first: Sequence[str | None],
    second: Sequence[str | None],
    human: Sequence[str | None],
    groups: Sequence[Hashable | None] | None = None,
    *,
    ties: Ties = "class",
    resampling: Resampling | None = None,
) -> PairedBootstrap:
    """Compare two judges' accuracies against people's preferences, by the paired bootstrap.

    Args:
        first, second, human: ``1``, ``2`` or ``tie``; ``None`` where there is none.
        groups: of each row; drawn as one.
        ties: people's ties are a ``class`` of their own, ``left_out``, or count ``half`` whatever a judge says.
        resampling: how the interval is made.

    >>> found = compare_accuracies(["1", "2", "1", "2"], ["1", "1", "1", "1"], ["1", "2", "1", "tie"])
    >>> found.first, found.second
    (0.75, 0.5)
    """
    resampling = resampling or Resampling()
    rows = _verdicts(first, second, human, groups, ties)
    x, y, truth = rows.columns.values()
    # Half for a human tie whatever the judge says; else right is 1 and wrong is 0.
    agreed = [np.where((truth == _CODES[TIE]) & (ties == "half"), 0.5, judge == truth) for judge in (x, y)]
    drawn = resampled_means(agreed[0] - agreed[1], rows.units, resampling)
    return _comparison(
        "accuracy", rows, (mean_or_none(agreed[0]), mean_or_none(agreed[1])), drawn, resampling
    )


def compare_kappas(
    first: Sequence[str | None],
    second: Sequence[str | None],
    human: Sequence[str | None],
    groups: Sequence[Hashable | None] | None = None,
    *,
    resampling: Resampling | None = None,
) -> PairedBootstrap:
    """Compare two judges' Cohen's kappa with people's preferences, by the paired bootstrap.

    Args and result are those of ``compare_accuracies``; ties are a class of their own.

    >>> found = compare_kappas(["1", "2", "1", "2"], ["1", "1", "2", "2"], ["1", "2", "1", "2"])
    >>> found.first, found.second
    (1.0, 0.0)
    """
    resampling = resampling or Resampling()
    rows = _verdicts(first, second, human, groups, "class")
    x, y, truth = rows.columns.values()
    # A label as one vote: the row of the unit matrix that its code names.
    votes = np.eye(3)[truth.astype(np.intp)]
    return _compare_tables(
        "kappa", rows, [confusion_tables(judge, votes, "class") for judge in (x, y)], resampling
    )


def compare_on_votes(
    first: Sequence[str],
    second: Sequence[str],
    votes: Sequence[Sequence[int]],
    groups: Sequence[Hashable | None] | None = None,
    *,
    ties: Ties = "class",
    resampling: Resampling | None = None,
) -> dict[str, PairedBootstrap]:
    """Compare two judges' ``accuracy`` and ``kappa`` where people cast several votes on each row.

    Args:
        first, second: ``1``, ``2`` or ``tie``.
        votes: of each row how often people said 1, 2 and tie; rows without a vote that counts are left out.
        groups: of each row; drawn as one.
        ties: what a human tie is, as in ``compare_accuracies``.
        resampling: how the intervals are made.

    >>> found = compare_on_votes(["1", "2"], ["1", "1"], [(2, 1, 0), (0, 3, 1)], ties="left_out")["accuracy"]
    >>> round(found.first, 3), round(found.second, 3), found.n
    (0.833, 0.333, 2)
    """
    resampling = resampling or Resampling()
    counted = counted_votes(np.array(votes, dtype=np.float64).reshape(-1, 3), ties)
    # Any verdict stands for "people voted": the column only says which rows count, the votes themselves are in counted.
    voted = ["1" if total else None for total in counted.sum(axis=1)]
    rows = _verdicts(first, second, voted, groups, "class")
    x, y, _ = rows.columns.values()
    tables = [confusion_tables(judge, counted[rows.kept], ties) for judge in (x, y)]
    return {what: _compare_tables(what, rows, tables, resampling) for what in _TABLE_FIGURES}


_TABLE_FIGURES = {"accuracy": accuracies, "kappa": kappas}


def _compare_tables(
    what: str, rows: AlignedRows, row_tables: Sequence[Floats], resampling: Resampling
) -> PairedBootstrap:
    """Compare two judges by how often, in each row, each of them said one thing and people another."""
    tables = [sum_by_unit(counts, rows.units).reshape(-1, 9) for counts in row_tables]

    def figure_of(sums: Floats) -> Floats:
        return _TABLE_FIGURES[what](sums.reshape(-1, 3, 3))

    def difference(weights: Weights) -> Floats:
        differences: Floats = figure_of(weights @ tables[0]) - figure_of(weights @ tables[1])
        return differences

    first, second = (none_if_nan(figure_of(table.sum(axis=0))[0]) for table in tables)
    return _comparison(
        what, rows, (first, second), resampling.figures(len(tables[0]), difference), resampling
    )


def _scores(
    name: str,
    first: Sequence[float | None],
    second: Sequence[float | None],
    human: Sequence[float | None],
    groups: Sequence[Hashable | None] | None,
) -> AlignedRows:
    if name not in STATISTICS:
        raise ValueError(f"no correlation {name!r}: there are {', '.join(STATISTICS)}")
    return align_rows({"first": first, "second": second, "human": human}, groups)


_CODES = {"1": 0.0, "2": 1.0, TIE: 2.0}


def _verdicts(
    first: Sequence[str | None],
    second: Sequence[str | None],
    human: Sequence[str | None],
    groups: Sequence[Hashable | None] | None,
    ties: Ties,
) -> AlignedRows:
    if ties not in get_args(Ties):
        raise ValueError(f"ties may be 'class', 'left_out' or 'half', not {ties!r}")
    given = {"first": first, "second": second, "human": human}
    coded = {
        name: [_code(name, at, verdict) for at, verdict in enumerate(column)]
        for name, column in given.items()
    }
    if ties != "left_out":
        return align_rows(coded, groups)
    tied = sum(verdict == TIE for verdict in human)
    coded["human"] = [None if value == _CODES[TIE] else value for value in coded["human"]]
    # People's column first: a row is counted under the first column that lacks a value, so every tie is among these.
    rows = align_rows({"human": coded["human"], "first": coded["first"], "second": coded["second"]}, groups)
    # Ties were made to look like missing labels above; the two reasons are told apart again.
    missing = rows.left_out.get("no human", 0) - tied
    reasons = {**rows.left_out, "no human": missing, "human tie": tied}
    return replace(
        rows,
        columns={name: rows.columns[name] for name in given},
        left_out={why: count for why, count in reasons.items() if count},
    )


def _code(name: str, at: int, verdict: str | None) -> float | None:
    if verdict is not None and verdict not in _CODES:
        raise ValueError(f"row {at + 1:,} of {name}: {verdict!r} is not '1', '2' or 'tie'")
    return None if verdict is None else _CODES[verdict]


def _comparison(
    what: str,
    rows: AlignedRows,
    figures: tuple[float | None, float | None],
    drawn: Floats,
    resampling: Resampling,
    units: int | None = None,
) -> PairedBootstrap:
    """Make the result; ``units`` is how many were drawn from, where these are not all groups."""
    first, second = figures
    drawn_from = rows.groups if units is None else units
    difference = None if first is None or second is None else first - second
    interval = resampling.interval(difference, drawn)
    return PairedBootstrap(
        what=what,
        n=len(rows),
        groups=drawn_from,
        left_out=rows.left_out,
        first=first,
        second=second,
        difference=interval,
        p=None if interval.low is None else two_sided_p(drawn, drawn_from),
        skipped=0,
        resampling=resampling,
    )


AVERAGE = "average"
"""The column that holds the mean over aspects."""


@dataclass(frozen=True)
class Gain:
    """Says how much a figure exceeds that of the base.

    Attributes:
        value: the figure itself.
        base: that of the base.
        absolute: value - base; ``None`` where either is missing.
        relative: absolute / base, as a share; ``None`` also where the base is not above 0, of which nothing is a share.

    >>> round(gain(0.89, 0.82).relative, 3)
    0.085
    """

    value: float | None
    base: float | None
    absolute: float | None
    relative: float | None


def gain(value: float | None, base: float | None) -> Gain:
    """Return how much a figure exceeds that of the base, absolutely and relatively."""
    if value is None or base is None:
        return Gain(value, base, None, None)
    return Gain(value, base, value - base, (value - base) / base if base > 0 else None)


def average(values: Mapping[str, float | None]) -> float | None:
    """Average over aspects; ``None`` where any is missing, since means over different aspects cannot be compared.

    >>> average({"fluency": 0.4, "coherence": 0.6}), average({"fluency": 0.4, "coherence": None})
    (0.5, None)
    """
    known = [value for value in values.values() if value is not None]
    return math.fsum(known) / len(known) if known and len(known) == len(values) else None


def gains(figures: Mapping[str, Mapping[str, float | None]], base: str) -> dict[str, dict[str, Gain]]:
    """Return the gains of protocols over a base protocol, by aspect and on average.

    Args:
        figures: by protocol, then by aspect; the same statistic throughout, of which more is better.
        base: the protocol to hold the others against.

    Returns:
        by protocol (without the base), then by aspect of the base and, where it has several, ``average``: the gain
        of the mean over aspects.

    Raises:
        ValueError: the base is not among the protocols.

    >>> table = gains({"single": {"wit": 0.4, "tact": 0.2}, "debate": {"wit": 0.5, "tact": 0.2}}, base="single")
    >>> {aspect: round(found.absolute, 3) for aspect, found in table["debate"].items()}
    {'wit': 0.1, 'tact': 0.0, 'average': 0.05}
    """
    if base not in figures:
        raise ValueError(f"no protocol {base!r} to compare with; there are {', '.join(figures) or 'none'}")
    base_figures = _with_average(figures[base], figures[base])
    return {
        name: {
            aspect: gain(value, base_figures[aspect])
            for aspect, value in _with_average(by_aspect, figures[base]).items()
        }
        for name, by_aspect in figures.items()
        if name != base
    }


def _with_average(
    figures: Mapping[str, float | None], aspects: Mapping[str, object]
) -> dict[str, float | None]:
    shared = {aspect: figures.get(aspect) for aspect in aspects}
    return {**shared, AVERAGE: average(shared)} if len(shared) > 1 else shared
