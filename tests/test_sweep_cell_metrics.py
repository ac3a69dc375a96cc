"""Figures of a sweep: those of each cell by itself, and gains over the same items."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval.analysis import Study
from jurygraph.eval.datasets.dataset import Dataset
from jurygraph.eval.datasets.items import ScoreItem
from jurygraph.eval.report.labels import interval_note
from jurygraph.eval.results.evaluation import Evaluation
from jurygraph.eval.results.results import Result
from jurygraph.eval.statistics.resampling import Resampling
from jurygraph.eval.sweeps import Axis, Sweep, sweep
from jurygraph.eval.sweeps.cell_metrics import MetricKey, leading, metric_keys
from jurygraph.eval.sweeps.cells import Cell, CellResult
from jurygraph.eval.sweeps.sweep_result import aspect_grid, cell_grid, pivot_grid
from jurygraph.eval.tables import Grid, to_csv

RHO = MetricKey("average", "spearman")
WIT, TACT = (MetricKey(aspect, "spearman") for aspect in ("wit", "tact"))
DEBATES: Any = {"data": "demo", "aspects": ["consistency", "relevance"]}


def rated(scores: Sequence[float | None], aspect: str = "wit", prefix: str = "", **of: Any) -> list[Result]:
    """Items 0, 1, 2, ..., which people score 0, 1, 2, ...; ``None`` where judging failed."""
    about: Any = {"aspect": aspect, "protocol": "single", "calls": 1, **of}
    judged = [{"score": score, "status": "failed" if score is None else "ok"} for score in scores]
    return [Result(item=f"{prefix}{n}", human=float(n), **about, **one) for n, one in enumerate(judged)]


def swept(*cells: Iterable[Result], wanted: int = 2, stopped: str | None = None) -> Sweep:
    """A sweep over judges a, b, ... with these results."""
    made = [
        CellResult(Cell({"judge": name}), "single", Evaluation(tuple(results), {"note": None}))
        for name, results in zip("ab", cells, strict=False)
    ]
    axis = Axis.of("judge", {"a": {}, "b": {}})
    return Sweep(
        (axis,), tuple(made), wanted, None, sum(cell.usage.total.calls for cell in made), 0.0, stopped
    )


def names(grid: Grid) -> list[str]:
    return [column.name for column in grid.columns]


def test_gains_are_over_the_rows_that_both_have() -> None:
    """The second judge failed where the first one was right: on what is left, both are perfect."""
    _, found = swept(rated([0, 1, 2, 3, 9, 4]), rated([0, 1, 2, 3, None, 4])).measured()
    assert (found.gains[WIT].value, found.figures[WIT].value, found.rows) == (0.0, 1.0, {"wit": 5})


def test_the_gain_of_an_average_is_the_average_gain() -> None:
    worse, better = [3.0, 1, 2, 0, 4, 5, 6, 7, 8, 9], [0.0, 1, 2, 3, 4, 5, 7, 6, 8, 9]
    both = swept(*([*rated(wit), *rated(better, "tact")] for wit in (worse, better)))
    base, found = both.measured(Resampling(resamples=200))
    wit, average = found.gains[WIT], found.gains[RHO]
    assert (average.value, average.low) == pytest.approx((wit.value / 2, wit.low / 2))  # type: ignore[operator]
    assert found.gains[TACT].value == 0.0
    assert base.gains == {}


@pytest.mark.parametrize("scores", [[None] * 4, [2.0] * 4], ids=["failed", "constant"])
def test_no_average_where_an_aspect_has_no_figure(scores: list[float | None]) -> None:
    """It would be of another aspect alone than the other cell's."""
    wit = rated([0.0, 1, 3, 2])
    whole, part = swept([*wit, *rated([0.0, 1, 2, 3], "tact")], [*wit, *rated(scores, "tact")]).measured()
    assert whole.figures[RHO].value == pytest.approx(0.9)
    assert part.figures[WIT].value == pytest.approx(0.8)
    assert part.figures[RHO].value is None and part.gains[RHO].value is None
    assert ("tact" in part.rows) == (None not in scores)


@pytest.mark.parametrize(("groups", "leads"), [(9, "spearman"), (10, "group_spearman")])
def test_correlations_are_within_groups_where_ten_can_tell_judges_apart(groups: int, leads: str) -> None:
    rows = [row for n in range(groups) for row in rated([0, 1, 2], prefix=f"{n}-", group=str(n))]
    assert leading(metric_keys(swept(rows).measured()))[0].statistic == leads


@pytest.mark.slow
def test_a_sweep_and_a_report_on_its_cells_say_the_same(tmp_path: Path) -> None:
    done = sweep("debate", {"n": [1, 3]}, **DEBATES, out=tmp_path)
    folders = [cell.evaluation.folder for cell in done.cells if cell.evaluation.folder]
    study = Study.of(folders)
    assert study.base and study.base.endswith("(n=1)")
    # As the sweep's last line has it, which names the cell's folder.
    assert Study.of(folders, base=f"debate ({folders[1].name})").base == "debate (n=3)"
    assert {subject.metric for subject in study.subjects} == {"group_spearman"}
    lead = MetricKey("average", "group_spearman")
    measured = done.measured()
    for metrics, average in zip(measured, study.leaderboard.averages, strict=True):
        assert metrics.figures[lead] == average.measures["group_spearman"]
        assert leading(metric_keys(measured))[0] == lead
    assert interval_note(study.resampling) in cell_grid(done).notes
    (pair,) = study.comparison.averages
    assert measured[1].gains[lead] == pair.differences["group_spearman"].difference
    assert pair.differences["group_spearman"].difference.low is not None


def test_tables_lay_out_cells_aspects_and_an_axis_across() -> None:
    done = sweep("debate", {"n": [1, 2], "persona": ["strict", "plain"]}, **DEBATES, limit=12)
    cells, aspects, across = cell_grid(done), aspect_grid(done), pivot_grid(done, "n", "Rounds")
    assert names(cells)[:5] == ["n", "persona", "average rho", "average tau", "gain in rho"]
    assert [row[:2] for row in cells.rows] == [(n, persona) for n in "12" for persona in ("strict", "plain")]
    assert names(aspects) == ["n", "persona", "figure", "average", "consistency", "relevance"]
    assert names(across) == ["persona", "figure", "n=1", "n=2"]
    assert across.rows[0][2] == cells.rows[0][2] and across.rows[2][3] == cells.rows[3][2]
    assert "average rho low" in to_csv(cells).splitlines()[0]
    assert any("saved" in note for note in cells.notes)


def test_what_failed_or_was_not_begun_is_told() -> None:
    unfinished = cell_grid(swept(rated([0, 1, 2]), stopped="budget"))
    assert "Unfinished (budget): 1 of 2 cells started, 3 verdicts." in unfinished.notes
    assert any("fewer than 10 groups or items to resample" in note for note in unfinished.notes)
    bad = ScoreItem(id="bad", source="It rained.", candidate="Rain.", human={"fluency": 3.0})
    whole = sweep("single", {"repair": [0, 1]}, Dataset.of("mine", [bad]), aspects=["fluency"])
    assert "failed" not in names(cell_grid(whole))
    failing = cell_grid(swept(rated([0, 1, None]), rated([0, 1, 2])))
    assert [row[names(failing).index("failed")] for row in failing.rows] == [1, 0]
