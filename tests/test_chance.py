"""Few groups: nothing is called significant, and every output says why; enough groups are tested as ever."""

from __future__ import annotations

import csv
import random
from pathlib import Path

import pytest
from jurygraph.eval import sweep
from jurygraph.eval.analysis import Study
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


@pytest.mark.parametrize(("groups", "starred"), [(4, False), (12, True)])
def test_screen_page_and_exports_say_the_same(tmp_path: Path, groups: int, starred: bool) -> None:
    folder_of(tmp_path / "run", groups, aspects=("wit", "tact"))
    forms = ("--html", "page.html", "--markdown", "tables.md", "--csv", "csv", "--latex", "tables.tex")
    said = in_this_process("report", "run", "--all", *forms, "--resamples", "300", cwd=tmp_path)
    assert said.returncode == 0, said.stderr
    texts = {name: (tmp_path / name).read_text() for name in ("page.html", "tables.md", "tables.tex")}
    screen = " ".join(said.stdout.split())
    for name, text in {**texts, "screen": screen}.items():
        assert (CAUTION in " ".join(text.split())) is not starred, name
    assert ("groups are too few to claim anything" in screen) is not starred
    tables = [csv.DictReader(path.read_text().splitlines()) for path in (tmp_path / "csv").rglob("*.csv")]
    p_values = [row["p"] for table in tables for row in table if "Δ" in row and "p" in row]
    assert p_values
    assert all(bool(p) is starred for p in p_values)
    brief = in_this_process("report", "run", "--resamples", "300", cwd=tmp_path).stdout
    assert ("*" in brief.replace("* p <", "").replace("**", "")) is starred


def test_a_sweep_and_an_average_over_aspects_say_it_too(tmp_path: Path) -> None:
    few = sweep("debate", {"n": [1, 2]}, "demo", aspects=["consistency"], limit=8)
    for grid in grids(few).values():
        assert any(CAUTION in note for note in grid.notes)
    study = Study.of(folder_of(tmp_path / "run", 4, aspects=("wit", "tact")))
    assert study.comparison.averages
    for pair in study.comparison.averages:
        assert {found.p for found in pair.differences.values()} == {None}
