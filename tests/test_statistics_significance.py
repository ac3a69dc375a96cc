"""Paired tests, Holm's correction and gains: against other tools, against theory, against themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jurygraph.eval.analysis.leaderboard import gain
from jurygraph.eval.statistics.resampling import Resampling, Statistic
from jurygraph.eval.statistics.significance import binomial_test, holm, paired_t_test
from scipy import stats

Printed = tuple[float, float]
QUICK = Resampling(resamples=200)
p_values = st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=12)


def test_t_test_against_scipy() -> None:
    random = np.random.default_rng(4)
    first, second = random.normal(0.3, 1, 40), random.normal(0, 1, 40)
    wanted = stats.ttest_rel(first, second)
    difference, found = paired_t_test(first, second, confidence=0.9)
    assert found.statistic == pytest.approx(wanted.statistic, abs=1e-9)
    assert found.p == pytest.approx(wanted.pvalue, abs=1e-9)
    interval = wanted.confidence_interval(0.9)
    assert (difference.low, difference.high) == pytest.approx(tuple(interval), abs=1e-9)


def test_t_test_without_a_spread_has_no_t() -> None:
    same = paired_t_test(np.array([1.0, 2, 3]), np.array([0.0, 1, 2]))
    assert same == (Statistic(1.0), (None, None))
    assert paired_t_test(np.array([1.0]), np.array([0.5])) == (Statistic(0.5), (None, None))
    assert paired_t_test(np.array([]), np.array([])) == (Statistic(None), (None, None))


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_against_scipy(b: int, c: int) -> None:
    wanted = stats.binomtest(b, b + c).pvalue if b + c else 1.0
    assert binomial_test(b, c) == pytest.approx(wanted, abs=1e-9)


def test_holm_against_statsmodels() -> None:
    # from statsmodels.stats.multitest import multipletests; multipletests(p, method="holm")[1]
    p = [0.01, 0.04, 0.03, 0.005, 0.2, 0.04, 0.9]
    assert holm(p) == pytest.approx([0.06, 0.16, 0.15, 0.035, 0.4, 0.16, 0.9], abs=1e-12)


@given(p_values)
def test_holm_keeps_order_lies_between_p_and_bonferroni_and_passes_none_through(
    given_p: list[float | None],
) -> None:
    found = holm(given_p)
    both = zip(given_p, found, strict=True)
    known = [(p, adjusted) for p, adjusted in both if p is not None and adjusted is not None]
    assert [adjusted is None for adjusted in found] == [p is None for p in given_p]
    assert all(p <= adjusted <= min(1, len(known) * p) for p, adjusted in known)
    ordered = [adjusted for _, adjusted in sorted(known)]
    assert ordered == sorted(ordered)


@pytest.mark.parametrize("wrong", [-0.1, 1.1, math.nan])
def test_holm_refuses_what_is_no_p_value(wrong: float) -> None:
    with pytest.raises(ValueError, match=r"p-value 2 is .* not between 0 and 1"):
        holm([0.5, wrong])


def test_a_mean_over_clusters_against_scipy() -> None:
    """Clusters of one size: as if each were one value, its mean. Of other sizes: as resamples of clusters spread."""
    random = np.random.default_rng(3)
    codes = np.repeat(np.arange(30), 4)
    values = random.normal(0.2, 1, 120) + random.normal(0, 1, 30)[codes]
    figure, p = QUICK.mean_interval(values, codes)
    wanted = stats.ttest_1samp(values.reshape(30, 4).mean(axis=1), 0)
    assert (figure.low, figure.high) == pytest.approx(tuple(wanted.confidence_interval(0.95)))
    assert p == pytest.approx(wanted.pvalue)
    some = random.random(120) < 0.6
    kept, units = values[some], np.unique(codes[some], return_inverse=True)[1]
    sums, sizes = np.bincount(units, kept), np.bincount(units)
    drawn = [
        (weights @ sums) / (weights @ sizes)
        for weights in random.multinomial(len(sums), np.full(len(sums), 1 / len(sums)), 5000)
    ]
    figure = QUICK.mean_interval(kept, units)[0]
    assert figure.high is not None and figure.low is not None
    assert (figure.high - figure.low) / 2 / stats.t.ppf(0.975, 29) == pytest.approx(np.std(drawn), rel=0.06)


# The courtroom paper, Tables 1 and 2: baseline, MORE, SAMRE without juries; gains as printed.
PAPER = [
    ("Llama-3-8B", 0.82, 0.85, 0.89, (0.03, 3.7), (0.07, 8.5)),
    ("Qwen", 0.83, 0.86, 0.91, (0.03, 3.6), (0.08, 9.6)),
    ("Gemini", 0.84, 0.88, 0.92, (0.04, 4.8), (0.08, 9.5)),
    ("GPT-3.5-turbo", 0.83, 0.87, 0.92, (0.04, 4.8), (0.09, 10.8)),
]


@pytest.mark.parametrize(("model", "base", "more", "samre", "of_more", "of_samre"), PAPER)
def test_gains_against_the_paper(
    model: str, base: float, more: float, samre: float, of_more: Printed, of_samre: Printed
) -> None:
    for value, (absolute, percent) in ((more, of_more), (samre, of_samre)):
        found = gain(value, base)
        assert round(found.absolute or 0, 2) == absolute
        assert round(100 * (found.relative or 0), 1) == percent


def test_gains_are_none_where_a_figure_is_missing() -> None:
    assert gain(None, 0.5).absolute is None
    assert (gain(0.1, -0.2).absolute, gain(0.1, -0.2).relative) == (pytest.approx(0.3), None)
    assert gain(0.1, 0).relative is None
