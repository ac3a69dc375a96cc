"""Few groups: nothing is called significant, and every output says why; enough groups are tested as ever."""

from __future__ import annotations

import csv
import random
from pathlib import Path

import numpy as np
import pytest
from jurygraph.eval import sweep
from jurygraph.eval.analysis import Study
from jurygraph.eval.statistics.paired_bootstrap import compare_correlations, compare_correlations_within
from jurygraph.eval.statistics.resampling import FEWEST_UNITS, caution, two_sided_p
from jurygraph.eval.sweeps.sweep_result import grids

from .processes import in_this_process
from .run_folders import run_folder, scored

CAUTION = "fewer than 10 groups or items to resample"


def folder_of(path: Path, groups: int, rows: int = 4, aspects: tuple[str, ...] = ("wit",)) -> Path:
    """Two judges, one of which is much the better one in every group."""
    draw, results = random.Random(1), []
    for aspect in aspects:
        for number in range(groups * rows):
            human = 1 + number % rows
            about = {"group": f"g{number // rows}", "human": human, "aspect": aspect}
            for protocol, noise in (("debate", 0.2), ("single", 2.0)):
                score = min(5.0, max(1.0, human + draw.gauss(0, noise)))
                results.append(scored(f"i{number}", protocol, score=score, **about))
    named = [{"name": aspect, "low": 1, "high": 5} for aspect in aspects]
    return run_folder(path, results, aspects=named)


def test_four_rows_in_two_groups_have_no_p_value() -> None:
    human, first, second = [1, 2, 3, 4], [1, 2, 3.5, 3.4], [1, 2.2, 2.1, 4]
    found = compare_correlations("pearson", first, second, human, ["a", "a", "b", "b"])
    assert (found.groups, found.p) == (2, None)
    assert found.difference.value is not None


@pytest.mark.parametrize("groups", [2, 9, 10, 40])
def test_from_ten_groups_on_there_is_a_p_value(groups: int) -> None:
    draw = np.random.default_rng(7)
    units = np.repeat(np.arange(groups), 4)
    human = np.tile([1.0, 2.0, 3.0, 4.0], groups)
    first, second = human + draw.normal(0, 0.3, human.shape), human + draw.normal(0, 3, human.shape)
    over = compare_correlations("spearman", [*first], [*second], [*human], [*units])
    within = compare_correlations_within("spearman", [*first], [*second], [*human], [*units])
    assert [found.p is not None for found in (over, within)] == [groups >= FEWEST_UNITS] * 2


def test_a_p_value_needs_units_whatever_the_resamples_say() -> None:
    differences = np.full(1000, 0.1)
    assert two_sided_p(differences, FEWEST_UNITS - 1) is None
    assert two_sided_p(differences, FEWEST_UNITS) == pytest.approx(2 / 1001)


def test_the_bootstrap_of_few_groups_finds_differences_where_there_are_none() -> None:
    """Why the bound is there: of 300 comparisons of equal judges, many more than 5 % would be called different."""
    draw = np.random.default_rng(3)

    def share_below(units: int) -> float:
        apart = draw.normal(size=(300, units))
        picks = draw.integers(0, units, size=(300, 400, units))
        means = np.take_along_axis(apart[:, None, :].repeat(400, 1), picks, 2).mean(axis=2)
        p = [two_sided_p(one, FEWEST_UNITS) or 0.0 for one in means]
        return float(np.mean([value < 0.05 for value in p]))

    assert share_below(3) > 0.15
    assert share_below(FEWEST_UNITS) < 0.15


@pytest.mark.parametrize(("groups", "starred"), [(4, False), (12, True)])
def test_screen_page_and_exports_say_the_same(tmp_path: Path, groups: int, starred: bool) -> None:
    folder_of(tmp_path / "run", groups, aspects=("wit", "tact"))
    said = in_this_process(
        *("report", "run", "--all", "--html", "page.html", "--markdown", "tables.md", "--csv", "csv"),
        *("--latex", "tables.tex", "--resamples", "300"),
        cwd=tmp_path,
    )
    assert said.returncode == 0, said.stderr
    texts = {name: (tmp_path / name).read_text() for name in ("page.html", "tables.md", "tables.tex")} | {
        "screen": " ".join(said.stdout.split())
    }
    for name, text in texts.items():
        assert (CAUTION in " ".join(text.split())) is not starred, name
    assert ("the data is too little to tell" in texts["screen"]) is not starred
    p_values = [
        row["p"]
        for path in (tmp_path / "csv").rglob("*.csv")
        for row in csv.DictReader(path.read_text().splitlines())
        if "Δ" in row and "p" in row
    ]
    assert p_values
    assert all(bool(p) is starred for p in p_values)
    brief = in_this_process("report", "run", "--resamples", "300", cwd=tmp_path).stdout
    assert ("*" in brief.replace("* p <", "").replace("**", "")) is starred


def test_a_sweep_says_it_too(tmp_path: Path) -> None:
    few = sweep("debate", {"n": [1, 2]}, "demo", aspects=["consistency"], limit=8)
    for grid in grids(few).values():
        assert any(CAUTION in note for note in grid.notes)


def test_enough_units_need_no_caution() -> None:
    assert caution({"wit": 10, "tact": 200}) is None
    assert caution({"wit": 0}) is None


def test_an_average_of_few_groups_has_no_p_value_either(tmp_path: Path) -> None:
    study = Study.of(folder_of(tmp_path / "run", 4, aspects=("wit", "tact")))
    assert study.comparison.averages
    for pair in study.comparison.averages:
        assert {found.p for found in pair.differences.values()} == {None}
