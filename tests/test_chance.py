"""Test whether judges agree better than chance, with Holm's correction over the judges."""

from pathlib import Path

import numpy as np
import pytest
from jurygraph.eval.analysis import Study
from jurygraph.eval.results.results import Result
from jurygraph.eval.statistics.resampling import Resampling
from jurygraph.eval.statistics.significance import holm

from .run_folders import run_folder, scored

QUICK = Resampling(resamples=100)
WIDE = {"name": "wit", "low": -500, "high": 500}


def verdicts(name: str, rows: range, noise: float) -> list[Result]:
    found = []
    for number in rows:
        random = np.random.default_rng([len(name), number])
        human = float(1 + number % 5)
        found.append(scored(f"i{number}", name, score=human + random.normal(0, noise), human=human))
    return found


def test_each_judge_is_tested_over_its_own_rows(tmp_path: Path) -> None:
    """They share 14 rows."""
    results = [*verdicts("early", range(110), 1.0), *verdicts("late", range(96, 200), 2.0)]
    study = Study.of(run_folder(tmp_path, results, aspects=[WIDE]), resampling=QUICK)
    early, late = study.leaderboard.standings
    assert early.chance is not None and late.chance is not None
    assert (early.chance.rows, late.chance.rows) == (110, 104)
    assert early.agreement is not None and early.agreement.n == 14
    assert early.chance.better and late.chance.better
    [pair] = study.comparison.pairwise
    assert pair.shared == 14


def test_chance_is_corrected_by_holm_over_the_judges_and_a_constant_judge_is_not_tested(
    tmp_path: Path,
) -> None:
    judges = [("a", 4.0), ("bb", 8.0), ("ccc", 16.0), ("dddd", 32.0)]
    results = [one for name, noise in judges for one in verdicts(name, range(60), noise)]
    results += [scored(f"i{n}", "constant", score=3.0, human=float(1 + n % 5)) for n in range(60)]
    *tested, constant = Study.of(
        run_folder(tmp_path, results, aspects=[WIDE]), resampling=QUICK
    ).leaderboard.standings
    assert constant.chance is None
    chances = [entry.chance for entry in tested if entry.chance]
    assert [chance.adjusted for chance in chances] == list(holm([chance.p for chance in chances]))
    smallest = min(chances, key=lambda chance: chance.p or 0.0)
    assert smallest.p is not None and smallest.adjusted == pytest.approx(4 * smallest.p)
