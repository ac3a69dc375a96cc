"""Agreement statistics: against theory, against plain definitions, against their own symmetries."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jurygraph.eval import agreement
from jurygraph.eval.results.agreement import (
    Resampling,
    RowsByAspect,
    ScoreAgreement,
)
from jurygraph.eval.statistics.sample import GroupedCorrelation

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
def test_kappa_against_its_definition(rows: list[tuple[str, str]]) -> None:
    first, second = [a for a, _ in rows], [b for _, b in rows]
    found = agree_on_preferences(first, second, Resampling(resamples=0)).kappa.value
    assert found == pytest.approx(cohen_kappa(first, second), abs=1e-9)


def test_kappa_of_a_published_example() -> None:
    """Two readers of 50 grant proposals: 20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no gives kappa 0.4."""
    first = ["1"] * 25 + ["2"] * 25
    second = ["1"] * 20 + ["2"] * 5 + ["1"] * 10 + ["2"] * 15
    assert agree_on_preferences(first, second).kappa.value == pytest.approx(0.4)


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
