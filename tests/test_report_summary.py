"""The few tables that a terminal shows, the courtroom's gaps, and files that outlive whoever reads the head alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path

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
from jurygraph.state.usage import Usage
from rich.console import Console
from typer.testing import CliRunner

from .sample_run import debate, write_run
from .sample_study import pairwise, study

QUICK = Resampling(resamples=50, seed=1)


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
    made = study()
    unsure = tuple(
        replace(
            one,
            differences={n: replace(d, adjusted_to_base=0.05) for n, d in one.differences.items()},
        )
        for one in made.comparison.pairwise
    )
    made = replace(made, comparison=replace(made.comparison, pairwise=unsure, averages=()))
    cells, grid = table(summary(made, "spearman"), "difference vs. single")
    assert cells[0] == ["debate", "0.120", "0.120"]
    assert grid.notes[0].startswith("no difference is significant (p < 0.05")


def test_at_the_same_price_says_of_how_many() -> None:
    ensemble = EnsembleOf(
        "ensemble, 4 of 9", "ensemble", "coherence", 4, UsageTotals(12, Usage(48)), "spearman", Statistic(0.3)
    )
    match = EqualCostMatch(
        "debate", "coherence", ensemble, "calls", 4.4, 4.0, pairwise("debate", "coherence")
    )
    cells, _ = table(
        summary(study(matching=EqualCostComparison((ensemble,), (match,), ())), "spearman"),
        "equal-cost baseline",
    )
    assert cells == [["debate", "0.120* (k=4)", "-"]]


def test_what_is_the_same_under_every_table_is_said_once() -> None:
    notes = [note for grid in summary(study(), "spearman") for note in grid.notes]
    assert not any(note.startswith(("config hash", "[ ]")) for note in notes)
    assert len(list(summary(study(), "spearman"))) <= 5 < len(list(grids(study(), "spearman")))


@pytest.fixture(scope="module")
def courtroom(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MORE's gap grows to 2/3 in a round, SAMRE's in two, the baseline's stays small."""
    rounds = {
        "more": ((100.0, 24.0),),
        "samre": ((80.0, 80.0), (100.0, 43.0)),
        "baseline": ((70.0, 60.0),),
    }
    results = [
        debate(
            f"p{number}",
            protocol,
            aspect=None,
            score=None,
            scores=pairs[-1],
            score_by_round=pairs,
            winner="1",
            human="12"[number % 2],
            transcript=(),
        )
        for protocol, pairs in rounds.items()
        for number in range(6)
    ]
    data = {"name": "wit", "digest": "abc", "kind": "compare", "labels": "people", "items": 6}
    return write_run(tmp_path_factory.mktemp("gaps") / "run", results, data=data, aspects=[])


def test_gaps_are_shown_with_what_becomes_of_the_bound(courtroom: Path) -> None:
    made = Study.of(courtroom, resampling=QUICK)
    cells, grid = table(gaps(made), "score gap by round")
    assert [column.name for column in grid.columns][-3:] == ["bound holds", "vacuous", "does not apply"]
    assert [row[:4] for row in cells] == [
        ["more", "1", "6", "0.667"],
        ["samre", "1", "6", "0.000"],
        ["samre", "2", "6", "0.500"],
        ["baseline", "1", "6", "0.088"],
    ]
    assert all(row[-3:] == ["0", "0", "6"] for row in cells)
    assert "distributed as Beta(1 + w, 1 + i - w)" in " ".join(grid.notes)
    apart, _ = table(gaps(made), "Theorem 1")
    assert [row[:4] for row in apart] == [
        ["more", "6", "0.667", "-"],
        ["samre", "6", "0.500", "0.167"],
        ["baseline", "6", "0.088", "0.579"],
    ]
    sooner, _ = table(gaps(made), "Theorem 2")
    assert [row[:1] + row[5:9] for row in sooner] == [
        ["more", "1: 6", "-", "-", "-"],
        ["samre", "2: 6", "6", "0", "0"],
    ]
    assert not list(gaps(study()))


def test_all_shows_what_the_short_form_leaves_out(courtroom: Path) -> None:
    short, full = (
        CliRunner().invoke(
            app, ["report", str(courtroom), "--resamples", "20", *more], env={"COLUMNS": "150"}
        )
        for more in ([], ["--all"])
    )
    assert "Theorem 2" in full.output
    assert "Theorem 2" not in short.output
    assert "pairwise differences" in short.output
    assert short.output.count("#") == full.output.count("#") == 3


class Closed(StringIO):
    """What whoever read the first lines has closed."""

    def write(self, _: str) -> int:
        raise BrokenPipeError


def test_files_are_there_before_anything_is_printed(
    courtroom: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "console", lambda: Console(file=Closed()))
    wanted = [tmp_path / name for name in ("r.html", "r.md", "r.tex", "csv")]
    options = zip(("--html", "--markdown", "--latex", "--csv"), wanted, strict=True)
    done = CliRunner().invoke(
        app,
        ["report", str(courtroom), "--resamples", "20", *(str(word) for pair in options for word in pair)],
    )
    assert done.exit_code != 0
    assert all(path.exists() for path in wanted)
