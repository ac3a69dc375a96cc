"""Test the number of groups needed: a lower bound with Holm's correction, none for noise."""

from pathlib import Path

import numpy as np
import pytest
from jurygraph.eval.analysis import Study
from jurygraph.eval.experiments.equal_spending import Terms
from jurygraph.eval.experiments.finding import items_needed
from jurygraph.eval.statistics.resampling import Resampling, Statistic
from jurygraph.eval.statistics.sample import clusters_needed
from scipy import stats

from .run_folders import noisy, run_folder


def test_so_many_clusters_have_the_power(tmp_path: Path) -> None:
    needed = clusters_needed(1.5, 100, tests=3)
    assert needed is not None
    # The power of the normal test at that size, for the difference that was seen.
    shift = 1.5 * np.sqrt(needed / 100)
    power = stats.norm.sf(stats.norm.isf(0.05 / 6) - shift)
    assert power == pytest.approx(0.8, abs=0.005)


def test_a_difference_below_its_standard_error_shows_no_number() -> None:
    assert clusters_needed(0.99, 50) is None
    assert clusters_needed(-1.01, 50) is not None
    assert clusters_needed(None, 50) is None
    # Both ends are within one standard error: no gain, and no gain worth having.
    assert items_needed([Statistic(0.01, -0.05, 0.07)], 100, 100, Terms(worth=0.02)) is None
    assert items_needed([Statistic(0.04, -0.02, 0.10)], 100, 100, Terms(worth=0.02)) is not None


def test_holms_correction_raises_the_number(tmp_path: Path) -> None:
    judges = {"single": 1.0, "debate": 2.2, "geval": 1.6, "ensemble": 1.1}
    two = [*noisy("single", 1.0), *noisy("debate", 2.2)]
    four = [result for name, noise in judges.items() for result in noisy(name, noise)]
    found = []
    for name, results in (("two", two), ("four", four)):
        study = Study.of(run_folder(tmp_path / name, results), resampling=Resampling(resamples=200))
        pair = study.comparison.of_pair("wit", "debate", "single")
        assert pair is not None
        difference = pair.differences["spearman"]
        assert difference.t is not None and abs(difference.t) > 1
        found.append(difference.needed)
    assert found[0] is not None and found[1] is not None and found[1] > 1.2 * found[0]
