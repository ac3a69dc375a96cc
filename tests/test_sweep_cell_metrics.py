"""Figures of a sweep: those of each cell by itself, and gains over the same items."""

from __future__ import annotations

from collections.abc import Sequence
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
from jurygraph.eval.sweeps.cell_metrics import MetricKey, leading, measure, metric_keys
from jurygraph.eval.sweeps.cells import Cell, CellResult
from jurygraph.eval.sweeps.sweep_result import aspect_grid, cell_grid, pivot_grid
from jurygraph.eval.tables import Grid, to_csv

RHO = MetricKey("average", "spearman")


def cell(name: str, scores: Sequence[float | None], aspect: str = "wit", **fields: Any) -> CellResult:
    """Items 0, 1, 2, ..., which people score 0, 1, 2, ...; ``None`` where judging failed."""
    return CellResult(
        Cell({"judge": name}), "single", Evaluation(results(scores, aspect, **fields), {"note": None})
    )


def results(
    scores: Sequence[float | None], aspect: str, prefix: str = "", **fields: Any
) -> tuple[Result, ...]:
    return tuple(
        Result(
            item=f"{prefix}{number}",
            aspect=aspect,
            protocol="single",
            status="failed" if score is None else "ok",
            score=score,
            human=float(number),
            **{"calls": 1, **fields},
        )
        for number, score in enumerate(scores)
    )


def names(grid: Grid) -> list[str]:
    return [column.name for column in grid.columns]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    """Debates of one round and of three about the demo data."""
    out = tmp_path_factory.mktemp("sweep")
    return sweep("debate", {"n": [1, 3]}, "demo", aspects=["consistency", "relevance"], out=out)


@pytest.mark.slow
def test_figures_are_those_of_each_cell_by_itself(done: Sweep) -> None:
    for one, found in zip(done.cells, done.measured(), strict=True):
        for aspect, agreement in one.evaluation.agreement().items():
            rho = agreement.per_group["spearman"]  # type: ignore[union-attr]
            figure = found.figures[MetricKey(aspect, "group_spearman")]
            assert (figure.value, figure.low, figure.high) == pytest.approx((rho.value, rho.low, rho.high))
            assert found.rows[aspect] == agreement.n
        values = [
            found.figures[MetricKey(aspect, "group_spearman")].value
            for aspect in ("consistency", "relevance")
        ]
        average = found.figures[MetricKey("average", "group_spearman")]
        assert average.value == pytest.approx(sum(values) / 2)  # type: ignore[arg-type]


def test_gains_are_over_the_rows_that_both_have() -> None:
    """The second judge failed where the first one was right: on what is left, both are perfect."""
    first = cell("first", [0, 1, 2, 3, 9, 4])
    second = cell("second", [0, 1, 2, 3, None, 4])
    _, found = measure([first, second])
    assert found.gains[MetricKey("wit", "spearman")].value == 0.0
    assert found.figures[MetricKey("wit", "spearman")].value == 1.0
    assert found.rows == {"wit": 5}


def test_the_gain_of_an_average_is_the_average_gain() -> None:
    worse, better = [3.0, 1, 2, 0, 4, 5, 6, 7, 8, 9], [0.0, 1, 2, 3, 4, 5, 7, 6, 8, 9]
    both = [
        CellResult(
            Cell({"judge": name}),
            "single",
            Evaluation((*results(wit, "wit"), *results(tact, "tact")), {"note": None}),
        )
        for name, wit, tact in (("a", worse, better), ("b", better, better))
    ]
    resampling = Resampling(resamples=200)
    base, found = measure(both, resampling)
    wit = found.gains[MetricKey("wit", "spearman")]
    average = found.gains[RHO]
    assert average.value == pytest.approx(wit.value / 2)  # type: ignore[operator]
    assert average.low == pytest.approx(wit.low / 2)  # type: ignore[operator]
    assert found.gains[MetricKey("tact", "spearman")].value == 0.0
    assert base.gains == {}


def test_no_average_over_other_aspects_than_those_of_the_other_cells() -> None:
    """One judge failed on all of an aspect: its average would be of the other aspect alone."""
    wit, tact = results([0.0, 1, 3, 2], "wit"), results([0.0, 1, 2, 3], "tact")
    failed = results([None] * 4, "tact")
    both = [
        CellResult(Cell({"judge": name}), "single", Evaluation((*wit, *rest), {"note": None}))
        for name, rest in (("a", tact), ("b", failed))
    ]
    whole, part = measure(both)
    assert whole.figures[RHO].value == pytest.approx(0.9)
    assert part.figures[MetricKey("wit", "spearman")].value == pytest.approx(0.8)
    assert part.figures[RHO].value is None and part.gains[RHO].value is None
    assert part.rows == {"wit": 4}


def test_no_average_where_an_aspect_has_no_figure() -> None:
    constant = results([2.0] * 4, "tact")
    one = CellResult(
        Cell({"judge": "a"}), "single", Evaluation((*results([0, 1, 2, 3], "wit"), *constant), {"note": None})
    )
    (found,) = measure([one])
    assert found.figures[MetricKey("wit", "spearman")].value == 1.0
    assert found.figures[MetricKey("tact", "spearman")].value is None
    assert found.figures[RHO].value is None


def in_groups(name: str, scores: Sequence[float], groups: int) -> CellResult:
    """Three items a group, which humans score 0, 1 and 2."""
    rows = tuple(
        row for group in range(groups) for row in results(scores, "wit", prefix=f"{group}-", group=str(group))
    )
    return CellResult(Cell({"judge": name}), "single", Evaluation(rows, {"note": None}))


def test_correlations_are_within_groups_where_ten_of_them_can_tell_judges_apart() -> None:
    (over,) = measure([in_groups("a", [0, 1, 2], groups=9)])
    (within,) = measure([in_groups("a", [0, 1, 2], groups=10)])
    leads = [leading(metric_keys([measured]))[0].statistic for measured in (over, within)]
    assert leads == ["spearman", "group_spearman"]


@pytest.mark.slow
def test_a_sweep_and_a_report_on_its_cells_say_the_same(done: Sweep) -> None:
    """The same metric leads, with the same figures and the same gain over the first cell."""
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
    axes = {"n": [1, 2], "persona": ["strict", "plain"]}
    done = sweep("debate", axes, "demo", aspects=["consistency", "relevance"], limit=12)
    cells, aspects, across = cell_grid(done), aspect_grid(done), pivot_grid(done, "n", "Rounds")
    assert [column.name for column in cells.columns][:5] == [
        "n",
        "persona",
        "average rho",
        "average tau",
        "gain in rho",
    ]
    assert [row[:2] for row in cells.rows] == [
        ("1", "strict"),
        ("1", "plain"),
        ("2", "strict"),
        ("2", "plain"),
    ]
    assert [column.name for column in aspects.columns] == [
        "n",
        "persona",
        "figure",
        "average",
        "consistency",
        "relevance",
    ]
    assert [column.name for column in across.columns] == ["persona", "figure", "n=1", "n=2"]
    assert across.rows[0][2] == cells.rows[0][2] and across.rows[2][3] == cells.rows[3][2]
    assert "average rho low" in to_csv(cells).splitlines()[0]
    assert any("saved" in note for note in cells.notes)


def test_an_unfinished_sweep_says_so() -> None:
    one = cell("a", [0, 1, 2])
    done = Sweep((Axis.of("judge", {"a": {}, "b": {}}),), (one,), 2, None, 3, 0.0, "budget")
    assert "Unfinished (budget): 1 of 2 cells started, 3 verdicts." in cell_grid(done).notes


def test_items_that_failed_are_counted_in_the_table() -> None:
    bad = ScoreItem(id="bad", source="It rained.", candidate="Rain.", human={"fluency": 3.0})
    done = sweep("single", {"repair": [0, 1]}, Dataset.of("mine", [bad]), aspects=["fluency"])
    assert "failed" not in names(cell_grid(done))
    axes = (Axis.of("judge", {"a": {}, "b": {}}),)
    failing = Sweep(axes, (cell("a", [0, 1, None]), cell("b", [0, 1, 2])), 2, None, 6, 0.0)
    grid = cell_grid(failing)
    place = names(grid).index("failed")
    assert [row[place] for row in grid.rows] == [1, 0]
