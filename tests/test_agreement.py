"""Agreement statistics and their intervals: against other tools, definitions, and resamples that are made."""

from __future__ import annotations

import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jurygraph.eval import agreement
from jurygraph.eval.results.agreement import (
    PreferenceAgreement,
    RowsByAspect,
    ScoreAgreement,
)
from jurygraph.eval.statistics.alignment import Floats
from jurygraph.eval.statistics.correlation import (
    STATISTICS,
    correlation,
    correlations_within,
    resampled_correlations,
)
from jurygraph.eval.statistics.resampling import Resampling, Statistic
from jurygraph.eval.statistics.sample import GroupedCorrelation
from scipy import stats

from .agreement_columns import (
    SCIPY,
    agree_on_preferences,
    agree_on_scores,
    cohen_kappa,
    correlate,
    correlate_within,
)

NAMES = tuple(SCIPY)


@given(
    st.sampled_from(NAMES), st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=2, max_size=25)
)
def test_against_scipy_with_ties_on_either_side(name: str, rows: list[tuple[int, int]]) -> None:
    x, y = zip(*rows, strict=True)
    constant = len(set(x)) == 1 or len(set(y)) == 1
    wanted = None if constant else pytest.approx(SCIPY[name](x, y), abs=1e-9)
    assert correlate(name, x, y).value == wanted


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [2, 3, 10, 2_000])
@pytest.mark.parametrize("levels", [2, 5, 10**9])
def test_against_scipy(name: str, size: int, levels: int) -> None:
    """Few levels, as people give them, and hardly any ties, as weighted scores have them."""
    random = np.random.default_rng([size, levels])
    x = random.integers(0, levels, size) / 7
    y = np.where(random.random(size) < 0.5, x, random.integers(0, levels, size) / 7)
    x[0], x[1], y[0], y[1] = 0, 1, 1, 0
    wanted = SCIPY[name](x, y)
    assert correlate(name, x, y).value == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1, 1e160, 1e300])
def test_the_unit_does_not_matter(name: str, scale: float) -> None:
    x, y = [1.0, 2.0, 4.0, 4.5, 7.0], [3.0, 1.0, 4.0, 6.0, 5.0]
    scaled = correlate(name, [scale * value for value in x], y).value
    assert scaled == pytest.approx(correlate(name, x, y).value, abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_nearly_constant_columns_are_still_data(name: str) -> None:
    x = [1.0, math.nextafter(1.0, 2.0), math.nextafter(1.0, 0.0)]
    assert correlate(name, x, [2, 3, 1]).value == pytest.approx(1.0, abs=0.15)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("x", "y"), [([1, 1, 1], [1, 2, 3]), ([1, 2, 3], [2, 2, 2]), ([1], [1]), ([], [])])
def test_no_correlation_where_none_exists(name: str, x: list[float], y: list[float]) -> None:
    assert correlate(name, x, y).value is None


def test_constant_groups_are_skipped_and_counted() -> None:
    columns = [1, 2, 3, 3, 3, 1], [1, 2, 3, 3, 1, 1]
    found = correlate_within("pearson", *columns, ["a", "a", "a", "b", "b", "c"])
    assert found.value == pytest.approx(1.0)
    assert (found.groups, found.skipped) == (1, 2)
    alone = correlate_within("kendall", [1, 1], [1, 2], ["a", "a"])
    assert alone == GroupedCorrelation(None, groups=0, skipped=1)
    ungrouped = agree_on_scores([1, 2, 3], [1, 2, 3], [None, None, None])
    assert (ungrouped.groups, ungrouped.per_group) == (0, {})


choices = st.sampled_from(["1", "2", "tie"])


@given(st.lists(st.tuples(choices, choices), min_size=1, max_size=40))
# Two readers of 50 grant proposals: 20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no gives kappa 0.4.
@example([("1", "1")] * 20 + [("1", "2")] * 5 + [("2", "1")] * 10 + [("2", "2")] * 15)
def test_kappa_against_its_definition(rows: list[tuple[str, str]]) -> None:
    first, second = [a for a, _ in rows], [b for _, b in rows]
    found = agree_on_preferences(first, second, Resampling(resamples=0)).kappa.value
    assert found == pytest.approx(0.4 if len(rows) == 50 else cohen_kappa(first, second), abs=1e-9)


def test_rows_are_told_apart_by_aspect_and_kind() -> None:
    """An aspect may be called preference where nothing is compared."""
    scores = [{"aspect": name, "score": 1.0, "human": 2.0} for name in ("wit", "wit", "preference")]
    comparisons = [{"aspect": name, "winner": "1", "human": "1"} for name in ("tact", None)]
    found = agreement([*scores[:2], *comparisons, {"aspect": None, "winner": None, "human": "2"}])
    assert {name: one.n for name, one in found.items()} == {"wit": 2, "tact": 1, "preference": 1}
    assert isinstance(found["wit"], ScoreAgreement)
    assert found["preference"].left_out == {"not judged": 1}
    assert isinstance(agreement(scores)["preference"], ScoreAgreement)


def test_of_many_rows_only_numbers_are_kept() -> None:
    """Six megabytes of rows, ten of which make a group."""
    rows = RowsByAspect()
    tracemalloc.start()
    for n in range(3_000):
        rows.add(
            {"score": n % 5, "human": n % 7, "group": f"g{n // 10}", "transcript": "x" * (2_000 + n % 2)}
        )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    found = rows.agreement()["score"]
    assert isinstance(found, ScoreAgreement)
    assert (found.n, found.groups) == (3_000, 300)
    assert peak < 1_000_000


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
def test_resamples_against_scipy_on_made_ones(size: int, rows: int, x_levels: int, y_levels: int) -> None:
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
    state = np.random.get_state()[1].copy()  # type: ignore[index]
    one, again, other = (
        correlate("pearson", x, y, resampling=Resampling(100, seed=seed)) for seed in (1, 1, 2)
    )
    assert one == again
    assert one.value == other.value
    assert (one.low, one.high) != (other.low, other.high)
    assert (np.random.get_state()[1] == state).all()  # type: ignore[index]
    bad: dict[str, Any] = {"resamples": -1, "confidence": 1.0, "seed": -2}
    for name, wrong in bad.items():
        with pytest.raises(ValueError, match=name):
            Resampling(**{name: wrong})


def test_two_rows_are_not_sure_of_a_perfect_correlation() -> None:
    two, ten = (list(map(float, range(n))) for n in (2, 10))
    assert correlate("spearman", two, two) == Statistic(1.0)
    assert (correlate("spearman", ten, ten).low or 1.0) < 0.5


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
    assert alone.value == pytest.approx(1 / 3)
    assert (alone.low, alone.high) == (None, None)
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
