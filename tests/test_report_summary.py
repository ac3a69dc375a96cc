"""The few tables that a terminal shows, the courtroom's gaps, and files that outlive whoever reads the head alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval.analysis import Study
from jurygraph.eval.analysis.equal_cost import EnsembleOf, EqualCostComparison, EqualCostMatch
from jurygraph.eval.cli import report as command
from jurygraph.eval.cli.app import app
from jurygraph.eval.report.debate_tables import gaps
from jurygraph.eval.report.sections import grids
from jurygraph.eval.report.summary_tables import summary
from jurygraph.eval.results.evaluation import UsageTotals
from jurygraph.eval.statistics.resampling import Resampling, Statistic
from jurygraph.eval.tables import Grid
from jurygraph.state.transcript import Usage
from rich.console import Console
from typer.testing import CliRunner

from .run_folders import compared, run_folder
from .sample_study import pairwise, study


def table(found: Iterator[Grid], title: str) -> tuple[list[list[str]], Grid]:
    """A table's cells as they are read."""
    grid = next(grid for grid in found if title in grid.title)
    return [[cell.text for cell in row] for row in grid.written()], grid


def test_a_row_a_judge_and_a_column_an_aspect_with_marks_where_holm_allows() -> None:
    cells, grid = table(summary(study(), "spearman"), "difference vs. single")
    assert [column.name for column in grid.columns] == ["judge", "average", "coherence", "fluency"]
    assert cells == [["debate", "0.120*", "0.120*", "0.120*"], ["chateval", "0.080*", "0.080*", "0.080*"]]
    assert grid.notes == ("* p < 0.05, paired, Holm-adjusted over the judges in a column",)


def test_where_nothing_is_sure_that_is_said() -> None:
    compared = study().comparison
    unsure = [
        replace(one, differences={n: replace(d, adjusted_to_base=0.05) for n, d in one.differences.items()})
        for one in compared.pairwise
    ]
    made = study(comparison=replace(compared, pairwise=tuple(unsure), averages=()))
    cells, grid = table(summary(made, "spearman"), "difference vs. single")
    assert cells[0] == ["debate", "0.120", "0.120"]
    assert grid.notes[0].startswith("no difference is significant (p < 0.05")


def test_at_the_same_price_says_of_how_many() -> None:
    usage, figure = UsageTotals(12, Usage(48)), Statistic(0.3)
    ensemble = EnsembleOf("ensemble, 4 of 9", "ensemble", "coherence", 4, usage, "spearman", figure)
    pair = pairwise("debate", "coherence")
    match = EqualCostMatch("debate", "coherence", ensemble, "calls", 4.4, 4.0, pair)
    made = study(matching=EqualCostComparison((ensemble,), (match,), ()))
    cells, _ = table(summary(made, "spearman"), "equal-cost baseline")
    assert cells == [["debate", "0.120* (k=4)", "-"]]


@pytest.fixture(scope="module")
def courtroom(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MORE's gap grows to 2/3 in a round, SAMRE's in two, the baseline's stays small."""
    rounds: dict[str, Any] = {
        "more": ((100.0, 24.0),),
        "samre": ((80.0, 80.0), (100.0, 43.0)),
        "baseline": ((70.0, 60.0),),
    }
    results = [
        compared(f"p{n}", name, winner="1", human="12"[n % 2], scores=pairs[-1], score_by_round=pairs)
        for name, pairs in rounds.items()
        for n in range(6)
    ]
    return run_folder(tmp_path_factory.mktemp("gaps") / "run", results, kind="compare")


def report(*arguments: object) -> Any:
    words = ["report", *map(str, arguments), "--resamples", "20"]
    return CliRunner().invoke(app, words, env={"COLUMNS": "150"})


def test_all_shows_what_the_short_form_leaves_out(courtroom: Path) -> None:
    short, full = report(courtroom).output, report(courtroom, "--all").output
    assert "Theorem 2" in full and "Theorem 2" not in short
    assert "pairwise differences" in short
    assert short.count("#") == full.count("#") == 3
    notes = [note for grid in summary(study(), "spearman") for note in grid.notes]
    assert not any(note.startswith(("config hash", "[ ]")) for note in notes), "said once, under all tables"
    assert len(list(summary(study(), "spearman"))) <= 5 < len(list(grids(study(), "spearman")))


def test_gaps_are_shown_with_what_becomes_of_the_bound(courtroom: Path) -> None:
    made = Study.of(courtroom, resampling=Resampling(resamples=50, seed=1))
    cells, grid = table(gaps(made), "score gap by round")
    assert [column.name for column in grid.columns][-3:] == ["bound holds", "vacuous", "does not apply"]
    rounds = [
        ("more", "1", "0.667"),
        ("samre", "1", "0.000"),
        ("samre", "2", "0.500"),
        ("baseline", "1", "0.088"),
    ]
    assert [(*row[:4], *row[-3:]) for row in cells] == [
        (name, number, "6", gap, "0", "0", "6") for name, number, gap in rounds
    ]
    assert "distributed as Beta(1 + w, 1 + i - w)" in " ".join(grid.notes)
    apart, _ = table(gaps(made), "Theorem 1")
    wanted = [
        ["more", "6", "0.667", "-"],
        ["samre", "6", "0.500", "0.167"],
        ["baseline", "6", "0.088", "0.579"],
    ]
    assert [row[:4] for row in apart] == wanted
    sooner, _ = table(gaps(made), "Theorem 2")
    wanted = [["more", "1: 6", "-", "-", "-"], ["samre", "2: 6", "6", "0", "0"]]
    assert [row[:1] + row[5:9] for row in sooner] == wanted
    assert not list(gaps(study()))


class Closed(StringIO):
    """What whoever read the first lines has closed."""

    def write(self, _: str) -> int:
        raise BrokenPipeError


def test_files_are_there_before_anything_is_printed(
    courtroom: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "console", lambda: Console(file=Closed()))
    wanted = {f"--{form}": tmp_path / form for form in ("html", "markdown", "latex", "csv")}
    done = report(courtroom, *(word for option in wanted.items() for word in option))
    assert done.exit_code != 0
    assert all(path.exists() for path in wanted.values())
