"""The difference of two dependent correlations: against published figures, simulation, and itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jurygraph.eval.statistics.significance import (
    DependentCorrelations,
    compare_dependent,
    difference_of_correlations,
)
from scipy import stats

# Howell, Statistical methods for psychology (6th ed., p. 262), as computed in SPSS by Weaver and Wuensch (2013):
# r12 = .80, r13 = .72, r23 = .89, n = 26 gives t(23) = 1.361, p = .187.
HOWELL = (0.80, 0.72, 0.89, 26)

# The R package cocor (Diedenhofen and Musch 2015), cocor.dep.groups.overlap(r.jk, r.jh, r.kh, n), as it prints:
# Williams' t, Steiger's Z, Zou's interval. The inputs were printed with four digits, hence the tolerance.
COCOR = [
    ((0.8065821, 0.2383, 0.2255, 177), 9.3823, 8.5460, (0.4288, 0.7139)),
    ((-0.1741, 0.2015, 0.3734, 646), -9.0340, -8.6124, None),
]


def test_against_howell() -> None:
    found = difference_of_correlations(*HOWELL)
    assert (round(found.williams_t or 0, 3), found.df, round(found.williams_p or 0, 3)) == (1.361, 23, 0.187)


@pytest.mark.parametrize(("given_r", "t", "z", "interval"), COCOR)
def test_against_cocor(
    given_r: tuple[float, float, float, int], t: float, z: float, interval: tuple[float, float] | None
) -> None:
    found = difference_of_correlations(*given_r)
    assert found.williams_t == pytest.approx(t, rel=2e-4)
    assert found.steiger_z == pytest.approx(z, rel=2e-4)
    if interval is not None:
        assert (found.difference.low, found.difference.high) == pytest.approx(interval, abs=6e-5)


def williams(data: np.ndarray) -> tuple[float, float]:
    """Williams' t and p-value of three columns (two judges, people), from numpy's correlations and determinant."""
    r = np.corrcoef(data.T)
    n = len(data)
    mean = r[2, :2].mean()
    variance = 2 * np.linalg.det(r) / (n - 3) * (n - 1) + mean**2 * (1 - r[0, 1]) ** 3
    t = (r[2, 0] - r[2, 1]) * np.sqrt((n - 1) * (1 + r[0, 1]) / variance)
    return t, 2 * stats.t.sf(abs(t), n - 3)


@pytest.mark.parametrize("seed", range(5))
def test_against_a_second_computation(seed: int) -> None:
    random = np.random.default_rng(seed)
    human = random.normal(size=60)
    data = np.column_stack([human + random.normal(size=60), human + random.normal(0, 2, 60), human])
    found = compare_dependent("pearson", *data.T.tolist())
    t, p = williams(data)
    assert found.williams_t == pytest.approx(t, abs=1e-9)
    assert found.williams_p == pytest.approx(p, abs=1e-9)
    assert found.first == pytest.approx(stats.pearsonr(data[:, 0], human).statistic, abs=1e-9)
    fisher = (math.atanh(found.first or 0) - math.atanh(found.second or 0)) * math.sqrt(57)
    between, squared = found.between or 0, (((found.first or 0) + (found.second or 0)) / 2) ** 2
    covariance = between * (1 - 2 * squared) - 0.5 * squared * (1 - 2 * squared - between**2)
    z = fisher / math.sqrt(2 - 2 * covariance / (1 - squared) ** 2)
    assert found.steiger_z == pytest.approx(z, abs=1e-9)
    assert found.steiger_p == pytest.approx(2 * stats.norm.sf(abs(z)), abs=1e-9)


def test_spearman_is_the_same_on_ranks_and_says_that_it_is_approximate() -> None:
    random = np.random.default_rng(2)
    human = random.integers(1, 6, 50)
    judges = [(human + random.integers(-1, 2, 50)).tolist() for _ in range(2)]
    found = compare_dependent("spearman", judges[0], judges[1], human.tolist())
    ranked = [stats.rankdata(column).tolist() for column in (*judges, human)]
    on_ranks = compare_dependent("pearson", *ranked)
    assert found.approximate
    assert not on_ranks.approximate
    assert found.williams_t == pytest.approx(on_ranks.williams_t, abs=1e-9)
    assert found.difference.low == pytest.approx(on_ranks.difference.low, abs=1e-9)


def test_level_and_coverage_under_the_null_hypothesis() -> None:
    """Of 2000 samples in which both judges are equally good, about 5 % are called different; 95 % intervals hold 0."""
    random = np.random.default_rng(11)
    rejected = dict.fromkeys(("williams", "steiger", "zou"), 0)
    for _ in range(2000):
        shared, human = random.normal(size=(2, 40))
        first, second = (0.6 * human + 0.5 * shared + random.normal(0, 0.6, 40) for _ in range(2))
        r = np.corrcoef([first, second, human])
        found = difference_of_correlations(r[0, 2], r[1, 2], r[0, 1], 40)
        assert found.williams_p is not None
        assert found.steiger_p is not None
        assert found.difference.low is not None
        assert found.difference.high is not None
        rejected["williams"] += found.williams_p < 0.05
        rejected["steiger"] += found.steiger_p < 0.05
        rejected["zou"] += not found.difference.low <= 0 <= found.difference.high
    assert all(0.03 < count / 2000 < 0.07 for count in rejected.values()), rejected


def _some(r_1: float, r_2: float, r_between: float) -> DependentCorrelations | None:
    try:
        return difference_of_correlations(r_1, r_2, r_between, 30)
    except ValueError:
        return None


correlations = st.floats(-0.95, 0.95)


@given(correlations, correlations, correlations)
def test_swapping_the_judges_changes_the_sign_alone(r_1: float, r_2: float, r_between: float) -> None:
    one, other = _some(r_1, r_2, r_between), _some(r_2, r_1, r_between)
    assert (one is None) == (other is None)
    if one is None or other is None or one.williams_t is None or other.williams_t is None:
        return
    assert one.williams_t == pytest.approx(-other.williams_t)
    assert one.steiger_z == pytest.approx(-(other.steiger_z or 0))
    assert one.difference.low == pytest.approx(-(other.difference.high or 0), abs=1e-9)


def test_degenerate_cases_have_no_figure() -> None:
    human = [1, 2, 3, 4, 5, 3]
    constant = compare_dependent("pearson", [2] * 6, human, human)
    assert (constant.first, constant.difference.value, constant.williams_t) == (None, None, None)
    twins = compare_dependent("pearson", [1, 3, 2, 4, 5, 5], [2, 6, 4, 8, 10, 10], human)
    assert twins.difference.value == pytest.approx(0)
    assert (twins.williams_t, twins.steiger_z, twins.difference.low) == (None, None, None)
    perfect = compare_dependent("pearson", human, [1, 3, 2, 4, 5, 5], human)
    assert perfect.steiger_z is None
    few = compare_dependent("pearson", [1, 2, 4], [3, 1, 2], [1, 2, 3])
    assert (few.n, few.williams_t, few.df) == (3, None, None)
    assert few.difference.value is not None


def test_rows_left_out_are_counted() -> None:
    found = compare_dependent("pearson", [1, 2, None, 4, 5, 2], [2, 1, 4, None, 5, 3], [1, 2, 3, 4, 5, None])
    assert (found.n, found.left_out) == (3, {"no first": 1, "no second": 1, "no human": 1})


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="no test for 'kendall': there is one for pearson and spearman"):
        compare_dependent("kendall", [1], [1], [1])
    with pytest.raises(ValueError, match=r"first is 1\.2: no correlation"):
        difference_of_correlations(1.2, 0, 0, 10)
    with pytest.raises(ValueError, match="no data have these three correlations"):
        difference_of_correlations(0.9, -0.9, 0.9, 10)
    with pytest.raises(ValueError, match="confidence must lie between 0 and 1"):
        difference_of_correlations(0.1, 0.2, 0.3, 10, confidence=95)
