"""Intervals of agreement: resamples that were never made are computed as if they had been."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jurygraph.eval import agreement
from jurygraph.eval.results.agreement import PreferenceAgreement
from jurygraph.eval.statistics import coefficients
from jurygraph.eval.statistics.alignment import Floats
from jurygraph.eval.statistics.correlation import (
    STATISTICS,
    correlation,
    correlations_within,
    resampled_correlations,
)
from jurygraph.eval.statistics.resampling import Resampling, Statistic
from scipy import stats

from .agreement_columns import SCIPY, agree_on_preferences, agree_on_scores, correlate, correlate_within


def columns(rows: int, x_levels: int, y_levels: int) -> tuple[Floats, Floats]:
    """Two columns that go together, with as many distinct values as asked for."""
    random = np.random.default_rng([rows, x_levels, y_levels])
    both = random.random(rows)
    x, y = ((both + random.random(rows)) / 2 for _ in range(2))
    return np.floor(x * x_levels) / 7, np.floor(y * y_levels) / 3


def check_resamples(x: Floats, y: Floats, units: Any, how: Resampling) -> None:
    """Of each resample whose rows are made one by one, as often as they were drawn, the correlation is the same."""
    weights = np.concatenate(list(how.weights(int(units.max()) + 1)))
    chosen = [np.repeat(np.arange(len(units)), weight[units]) for weight in weights]
    for name, found in resampled_correlations(tuple(STATISTICS), x, y, units, how).items():
        values = [correlation(name, x[rows], y[rows]) if units.max() else None for rows in chosen]
        wanted = [math.nan if value is None else value for value in values]
        assert found == pytest.approx(wanted, abs=1e-9, nan_ok=True), name
        for rows, value in zip(chosen, values, strict=True):
            assert value is None or value == pytest.approx(SCIPY[name](x[rows], y[rows]), abs=1e-9), name


@pytest.mark.parametrize("size", [1, 7])
@pytest.mark.parametrize(
    ("rows", "x_levels", "y_levels"),
    [
        (2, 9, 9),
        (40, 5, 5),
        (500, 10**9, 10**9),
        (600, 10**9, 4),
        (3_000, 10**9, 10**9),
        (3_000, 5, 60),
        (3_000, 4, 5),
    ],
)
def test_resamples_against_scipy_on_made_resamples(
    size: int, rows: int, x_levels: int, y_levels: int
) -> None:
    """Few rows and many, none tied, heavily tied, tied on one side; rows by themselves and in groups."""
    units = np.arange(rows) // size
    check_resamples(*columns(rows, x_levels, y_levels), units, Resampling(resamples=12, seed=rows))


def test_a_few_distant_values_leave_the_resamples_without_them_exact() -> None:
    """Of twenty-four rows one is a million away: a third of the resamples do not have it."""
    x, y = columns(24, 10**9, 10**9)
    x[3], y[3] = 1e12, -1e9
    check_resamples(x, y, np.arange(24), Resampling(resamples=200))


def test_a_heavy_unit_is_counted_in_full() -> None:
    """One group has nearly all the rows, and may be drawn several times."""
    units = np.maximum(np.arange(4_000) - 3_990, 0)
    check_resamples(*columns(4_000, 10**9, 10**9), units, Resampling(resamples=10))


@settings(max_examples=60)
@given(
    st.sampled_from(list(STATISTICS)),
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=30),
)
def test_within_groups_against_each_group_by_itself(name: str, rows: list[tuple[int, int, int]]) -> None:
    groups, x, y = (np.array(column) for column in zip(*rows, strict=True))
    numbers = np.unique(groups, return_inverse=True)[1]
    wanted = [correlation(name, x[groups == g] / 7, y[groups == g] / 3) for g in np.unique(groups)]
    each = correlations_within(name, x / 7, y / 3, numbers)
    assert each == pytest.approx(
        [np.nan if value is None else value for value in wanted], abs=1e-12, nan_ok=True
    )


def test_large_groups_are_computed_as_small_ones_are() -> None:
    x, y = columns(300, 10**9, 12)
    groups = np.repeat([0, 1, 2], [30, 70, 200])
    for name in STATISTICS:
        wanted = [SCIPY[name](x[groups == g], y[groups == g]) for g in range(3)]
        assert correlations_within(name, x, y, groups) == pytest.approx(wanted, abs=1e-12)


def test_weights_are_what_drawing_with_replacement_gives() -> None:
    """Each resample has as many units as there are, each unit once on average, Poisson-like around it."""
    weights = np.concatenate(list(Resampling(resamples=2_000).weights(50)))
    assert weights.shape == (2_000, 50)
    assert (weights.sum(axis=1) == 50).all()
    assert weights.mean(axis=0) == pytest.approx(np.ones(50), abs=0.12)
    assert (weights == 0).mean() == pytest.approx((1 - 1 / 50) ** 50, abs=0.005)


def test_the_seed_decides_and_nobody_elses_generator() -> None:
    x, y = columns(30, 10**9, 10**9)
    one, again, other = (
        correlate("pearson", x, y, resampling=Resampling(100, seed=seed)) for seed in (1, 1, 2)
    )
    state = np.random.get_state()[1].copy()  # type: ignore[index]
    assert one == again
    assert one.value == other.value
    assert (one.low, one.high) != (other.low, other.high)
    assert (np.random.get_state()[1] == state).all()  # type: ignore[index]


def test_groups_that_repeat_themselves_are_no_more_rows_than_groups() -> None:
    """Each row ten times: the interval is that of the rows once, if the copies are drawn together."""
    x, y = columns(30, 10**9, 10**9)
    once = correlate("spearman", x, y)
    copies = correlate(
        "spearman", np.repeat(x, 10), np.repeat(y, 10), groups=list(np.repeat(np.arange(30), 10))
    )
    assert (copies.low, copies.high) == pytest.approx((once.low, once.high), abs=1e-9)


def test_one_unit_and_no_resamples_have_no_interval() -> None:
    alone = correlate("kendall", [1, 2, 3], [1, 3, 2], groups=["a"] * 3)
    assert alone == Statistic(pytest.approx(1 / 3))
    within = correlate_within("kendall", [1, 2, 3, 1], [1, 3, 2, 1], ["a", "a", "a", "b"])
    assert (within.low, within.high, within.groups, within.skipped) == (None, None, 1, 1)
    none = Resampling(resamples=0)
    assert correlate("pearson", [1, 2, 4], [1, 2, 3], resampling=none).low is None
    assert agree_on_preferences(["1", "2"], ["1", "2"], none).accuracy == Statistic(1.0)


def test_resamples_without_a_figure_are_left_out_unless_most_are() -> None:
    how = Resampling(resamples=4)
    some, most = np.array([0.4, 0.6, np.nan, np.nan]), np.array([0.4, np.nan, np.nan, np.nan])
    assert how.studentised(0.5, some, 20) == how.studentised(0.5, some[:2], 20)
    assert how.studentised(0.5, some, 20)[0].low is not None
    assert how.studentised(0.5, most, 20) == (Statistic(0.5), None)
    assert how.studentised(None, some, 20) == (Statistic(None), None)
    assert how.studentised(0.5, some, 9) == (Statistic(0.5), None), "too few clusters"


@pytest.mark.parametrize(
    ("fields", "problem"),
    [({"resamples": -1}, "resamples"), ({"confidence": 1.0}, "confidence"), ({"seed": -2}, "seed")],
)
def test_bad_resampling_is_refused(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Resampling(**fields)


@pytest.mark.parametrize("size", [1, 8])
@pytest.mark.parametrize("limit", ["_TABLE_CELLS", None])  # which way the pairs are counted
def test_few_values_come_out_the_same_as_row_by_row(
    size: int, limit: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(3)
    x = random.integers(2, 11, 2_000) / 2
    y = np.clip(np.round(x + random.normal(0, 1, len(x))), 1, 5)
    units = np.arange(len(x)) // size
    names, resampling = ("pearson", "spearman", "kendall"), Resampling(resamples=60, seed=1)
    if limit:
        monkeypatch.setattr(coefficients, limit, 0)
    counted = resampled_correlations(names, x, y, units, resampling)
    monkeypatch.setattr(coefficients, "_ROWS_A_PAIR", len(x))
    row_by_row = resampled_correlations(names, x, y, units, resampling)
    for name in names:
        assert counted[name].tolist() == row_by_row[name].tolist()


@pytest.mark.parametrize(("right", "n"), [(20, 20), (0, 7), (13, 31)])
def test_accuracy_has_the_score_interval_of_a_share(right: int, n: int) -> None:
    """20 of 20 right is not certain to be right: against scipy's Wilson interval."""
    judged = ["1"] * right + ["2"] * (n - right)
    found = agree_on_preferences(judged, ["1"] * n).accuracy
    expected = stats.binomtest(right, n).proportion_ci(0.95, method="wilson")
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_a_share_of_rows_that_share_clusters_is_as_sure_as_of_fewer_rows() -> None:
    rows = [{"item": f"{n}", "group": f"g{n // 5}", "winner": "1", "human": "12"[n < 50]} for n in range(100)]
    alone = agreement([{**row, "group": None} for row in rows])["preference"]
    grouped = agreement(rows)["preference"]
    assert isinstance(alone, PreferenceAgreement) and isinstance(grouped, PreferenceAgreement)
    assert grouped.accuracy.value == alone.accuracy.value == 0.5
    assert (grouped.accuracy.low or 0) < (alone.accuracy.low or 0) - 0.05


def test_two_rows_are_not_sure_of_a_perfect_correlation() -> None:
    found = agree_on_scores([1.0, 2.0], [1.0, 2.0], [None, None])
    assert found.over_rows["spearman"] == Statistic(1.0)
    ten = agree_on_scores(list(map(float, range(10))), list(map(float, range(10))), [None] * 10)
    assert (ten.over_rows["spearman"].low or 1.0) < 0.5
