"""The difference of two dependent correlations: against published figures, simulation, and itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from jurygraph.eval.statistics.significance import compare_dependent, difference_of_correlations
from scipy import stats

# The R package cocor (Diedenhofen and Musch 2015), cocor.dep.groups.overlap(r.jk, r.jh, r.kh, n), as it prints:
# Williams' t and Steiger's Z. The inputs were printed with four digits, hence the tolerance.
COCOR = [
    ((0.8065821, 0.2383, 0.2255, 177), 9.3823, 8.5460),
    ((-0.1741, 0.2015, 0.3734, 646), -9.0340, -8.6124),
]


def test_against_published_figures() -> None:
    # Howell, Statistical methods for psychology (6th ed., p. 262), as computed in SPSS by Weaver and Wuensch (2013):
    # r12 = .80, r13 = .72, r23 = .89, n = 26 gives t(23) = 1.361, p = .187.
    found = difference_of_correlations(0.80, 0.72, 0.89, 26)
    assert (round(found.williams.statistic or 0, 3), round(found.williams.p or 0, 3)) == (1.361, 0.187)
    for given_r, t, z in COCOR:
        found = difference_of_correlations(*given_r)
        assert (found.williams.statistic, found.steiger.statistic) == pytest.approx((t, z), rel=2e-4)


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
    found = compare_dependent("pearson", *data.T)
    t, p = williams(data)
    assert found.williams.statistic == pytest.approx(t, abs=1e-9)
    assert found.williams.p == pytest.approx(p, abs=1e-9)
    first, second, between = (np.atleast_2d(np.corrcoef(data.T))[pair] for pair in ((0, 2), (1, 2), (0, 1)))
    fisher = (math.atanh(first) - math.atanh(second)) * math.sqrt(57)
    squared = ((first + second) / 2) ** 2
    covariance = between * (1 - 2 * squared) - 0.5 * squared * (1 - 2 * squared - between**2)
    z = fisher / math.sqrt(2 - 2 * covariance / (1 - squared) ** 2)
    assert found.steiger.statistic == pytest.approx(z, abs=1e-9)
    assert found.steiger.p == pytest.approx(2 * stats.norm.sf(abs(z)), abs=1e-9)


def test_spearman_is_the_same_on_ranks() -> None:
    random = np.random.default_rng(2)
    human = random.integers(1, 6, 50).astype(float)
    judges = [human + random.integers(-1, 2, 50).astype(float) for _ in range(2)]
    found = compare_dependent("spearman", judges[0], judges[1], human)
    first, second, labels = (stats.rankdata(column) for column in (*judges, human))
    on_ranks = compare_dependent("pearson", first, second, labels)
    assert found.williams.statistic == pytest.approx(on_ranks.williams.statistic, abs=1e-9)
    assert found.steiger.statistic == pytest.approx(on_ranks.steiger.statistic, abs=1e-9)


def test_level_under_the_null_hypothesis() -> None:
    """Of 2000 samples in which both judges are equally good, about 5 % are called different."""
    random = np.random.default_rng(11)
    p_values = np.empty((2000, 2))
    for sample in range(2000):
        shared, human = random.normal(size=(2, 40))
        first, second = (0.6 * human + 0.5 * shared + random.normal(0, 0.6, 40) for _ in range(2))
        r = np.corrcoef([first, second, human])
        found = difference_of_correlations(r[0, 2], r[1, 2], r[0, 1], 40)
        p_values[sample] = found.williams.p, found.steiger.p
    rejected = (p_values < 0.05).mean(axis=0)
    assert ((rejected > 0.03) & (rejected < 0.07)).all(), rejected


correlations = st.floats(-0.95, 0.95)


@given(correlations, correlations, correlations)
def test_swapping_the_judges_changes_the_sign_alone(r_1: float, r_2: float, r_between: float) -> None:
    # No data have three correlations whose matrix has a determinant below 0.
    assume(1 - r_1**2 - r_2**2 - r_between**2 + 2 * r_1 * r_2 * r_between > 0)
    one, other = (difference_of_correlations(*pair, r_between, 30) for pair in ((r_1, r_2), (r_2, r_1)))
    if one.williams.statistic is None or other.williams.statistic is None:
        return
    assert one.williams.statistic == pytest.approx(-other.williams.statistic)
    assert one.steiger.statistic == pytest.approx(-(other.steiger.statistic or 0))


def test_degenerate_cases_have_no_figure() -> None:
    human, some = np.array([1.0, 2, 3, 4, 5, 3]), np.array([1.0, 3, 2, 4, 5, 5])
    constant = compare_dependent("pearson", np.full(6, 2.0), human, human)
    assert (constant.williams, constant.steiger) == ((None, None), (None, None))
    twins = compare_dependent("pearson", some, 2 * some, human)
    assert (twins.williams, twins.steiger) == ((None, None), (None, None))
    perfect = compare_dependent("pearson", human, some, human)
    assert perfect.steiger.statistic is None
    few = compare_dependent("pearson", some[:3], some[2::-1], human[:3])
    assert few.williams.statistic is None
