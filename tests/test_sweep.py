"""Test sweeps: separate results per cell, shared calls paid once, no loss at any end."""

import asyncio
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from jurygraph.eval import evaluate
from jurygraph.eval.analysis import Study
from jurygraph.eval.datasets.dataset import Dataset, load_dataset
from jurygraph.eval.datasets.items import ScoreItem
from jurygraph.eval.experiments import Axis, Sweep, asweep, plan_sweep, sweep
from jurygraph.eval.experiments.cell_metrics import MetricKey, leading, metric_keys
from jurygraph.eval.experiments.cells import Cell, CellResult
from jurygraph.eval.experiments.shared_calls import bounds, expected_calls, sample_call_shares
from jurygraph.eval.experiments.sweep_result import aspect_grid, cell_grid, pivot_grid
from jurygraph.eval.report.labels import interval_note
from jurygraph.eval.results.evaluation import Evaluation
from jurygraph.eval.results.results import Result
from jurygraph.eval.tables import Grid, to_csv
from jurygraph.state.errors import UsageError

from .loopback import Provider, Text

ASPECT: Any = {"aspects": ["consistency"]}


def verdicts(results: Iterable[Result]) -> list[dict[str, Any]]:
    """Return each result without the parts that differ between runs."""
    plain = [result.model_dump(mode="json", exclude={"seconds"}) for result in results]
    for result in plain:
        for turn in result["transcript"]:
            turn.pop("seconds", None)
    return plain


def same_verdicts(one: Sweep, other: Sweep) -> bool:
    pairs = zip(one.cells, other.cells, strict=True)
    return all(verdicts(a.evaluation.results) == verdicts(b.evaluation.results) for a, b in pairs)


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "axes", "data"), [
    ("debate", {"n": [1, 2, 3], "persona": ["strict", "plain"], "tie_breaker": [False, True]}, "demo"),
    ("chateval", {"strategy": ["one_by_one", "summarizer"], "turns": [1, 2]}, "demo-pairs"),
    ("samre", {"jurors": [5, 0]}, "demo-pairs"),
    ("debate", {"protocol": ["debate", "multiagent", "geval"]}, "demo"),
])  # fmt: skip
def test_each_cell_judges_as_it_does_alone(
    protocol: str, axes: dict[str, list[Any]], data: str
) -> None:
    options: Any = {"limit": 4, **(ASPECT if data == "demo" else {})}
    done = sweep(protocol, axes, data, **options)
    for one in done.cells:
        judge: Any = one.protocol
        settings: Any = {
            name: value for name, value in one.cell.change.items() if name != "protocol"
        }
        alone = evaluate(judge, data, settings=settings, **options)
        assert verdicts(one.evaluation.results) == verdicts(alone.results), one.cell.title
    assert done.calls_made < done.calls_alone


def test_what_is_nested_is_paid_once() -> None:
    """A debate of n rounds contains all shorter ones, and a trial with jurors the one without."""
    done = sweep("debate", {"n": [1, 2, 3, 4]}, "demo", limit=6, **ASPECT)
    assert done.calls_made == done.cells[-1].usage.total.calls < done.calls_alone
    twice = sweep("debate", {"n": [1, 4]}, "demo", limit=6, repeats=2, **ASPECT)
    assert twice.calls_made == 2 * done.calls_made, "repeats are paid for in every cell once"
    trial = sweep("samre", {"jurors": [0, 5]}, "demo-pairs", limit=4)
    assert trial.calls_made == trial.cells[-1].usage.total.calls


def test_the_rehearsal_counts_what_the_sweep_makes() -> None:
    """Over all items, and with the final judge, it is exact."""
    axes = {"n": [1, 2, 3], "tie_breaker": [False, True]}
    planned = plan_sweep("debate", axes, "demo", limit=4, aspects=["fluency"])
    done = sweep("debate", axes, "demo", limit=4, aspects=["fluency"])
    known = asyncio.run(expected_calls(planned, [0] * 6))
    assert (known.sampled, known.played.distinct) == (4, done.calls_made)
    assert known.played.calls == done.calls_alone
    assert known.alone.calls.least <= done.calls_alone <= known.alone.calls.most
    assert known.bounds.least <= done.calls_made <= known.bounds.most
    assert known.drawn_out.calls == known.alone.calls.most
    assert known.together.most == known.drawn_out.distinct == 4 * (4 + 3 + 3)


def test_calls_that_serve_a_whole_run_are_not_scaled_up_with_its_items() -> None:
    sampling: Any = {"aspects": ["fluency"], "settings": {"weighting": "sampling"}}
    planned = plan_sweep("geval", {"samples": [2, 3]}, "demo", **sampling)
    item: Any = planned.first.dataset.items[0]
    task = item.task(planned.first.aspects[0]).model_dump(mode="json")
    heard = asyncio.run(sample_call_shares(planned.cells, [task]))
    assert (heard.calls, heard.distinct) == (5, 3)
    assert (
        asyncio.run(bounds(planned, [0, 0])).alone.calls.most == 5 * len(planned.first.dataset) + 2
    )


def run(out: Path, **more: Any) -> Sweep:
    axes = {"n": [1, 3], "persona": ["strict", "weak"]}
    return sweep("debate", axes, "demo", limit=4, out=out, **ASPECT, **more)


@pytest.mark.slow
def test_a_budget_holds_for_the_whole_sweep_and_the_same_again_goes_on(tmp_path: Path) -> None:
    whole = run(tmp_path / "whole")
    first = run(tmp_path / "out", max_calls=10)
    assert (first.stopped, first.calls_made) == ("budget", 10)
    assert len(first.cells) < 4
    again = run(tmp_path / "out")
    assert (again.stopped, again.calls_made) == (None, whole.calls_made)
    assert same_verdicts(whole, again)
    assert run(tmp_path / "out").calls_made == whole.calls_made


def test_more_cells_are_added_to_those_that_are_there(tmp_path: Path) -> None:
    options: Any = {"limit": 4, "out": tmp_path, **ASPECT}
    few = sweep("debate", {"n": [1, 2]}, "demo", **options)
    more = sweep("debate", {"n": [1, 2, 3]}, "demo", **options)
    alone = sweep("debate", {"n": [3]}, "demo", limit=4, **ASPECT)
    assert more.calls_made == alone.calls_made > few.calls_made
    record = json.loads((tmp_path / "sweep.json").read_text())
    assert [cell["folder"] for cell in record["cells"]] == ["cells/n=1", "cells/n=2", "cells/n=3"]
    assert record["axes"] == {"n": {"1": {"n": 1}, "2": {"n": 2}, "3": {"n": 3}}}


def test_what_cannot_be_swept_in_a_folder_is_refused(tmp_path: Path) -> None:
    run(tmp_path, max_calls=3)
    with pytest.raises(UsageError, match="belongs to another run: debate: repair was 1, is 2"):
        run(tmp_path, settings={"repair": 2})
    for option in ("fresh", "overwrite", "batch"):
        with pytest.raises(UsageError, match="a sweep has no fresh, overwrite or batch"):
            run(tmp_path, **{option: True})
    other = Dataset.of("other", load_dataset("demo").items[:4])
    with pytest.raises(UsageError, match=r"holds a sweep over demo@.*, not over other@"):
        plan_sweep("debate", {"n": [1]}, other, out=tmp_path)
    with (
        FileLock(tmp_path / "sweep.lock"),
        pytest.raises(UsageError, match="in use by another sweep"),
    ):
        run(tmp_path)


async def test_a_provider_is_asked_each_thing_once(provider: Provider) -> None:
    """Two cells with different models share nothing; equal requests to one model are shared."""
    provider.play(by=lambda request: Text("It is true to its source.\nScore: 4"))
    options: Any = {"limit": 2, **ASPECT, "settings": {"structured": "off"}}
    axes = {"model": ["openai:gpt-4o-mini", "openai:gpt-4o"]}
    done = await asweep("single", axes, "demo", **options)
    assert (len(provider.requests), done.calls_made) == (4, 4)
    done = await asweep("single", {"repair": [0, 1]}, "demo", limit=2, **ASPECT)
    assert (done.folder, done.calls_made, done.calls_alone) == (None, 2, 4)


RHO = MetricKey("average", "spearman")
WIT, TACT = (MetricKey(aspect, "spearman") for aspect in ("wit", "tact"))
DEBATES: Any = {"data": "demo", "aspects": ["consistency", "relevance"]}


def rated(
    scores: Sequence[float | None], aspect: str = "wit", prefix: str = "", **of: Any
) -> list[Result]:
    """Items 0, 1, 2, ..., which people score 0, 1, 2, ...; ``None`` where judging failed."""
    about: Any = {"aspect": aspect, "protocol": "single", "calls": 1, **of}
    judged = [{"score": score, "status": "failed" if score is None else "ok"} for score in scores]
    return [
        Result(item=f"{prefix}{n}", human=float(n), **about, **one) for n, one in enumerate(judged)
    ]


def swept(*cells: Iterable[Result], wanted: int = 2, stopped: str | None = None) -> Sweep:
    """A sweep over judges a, b, ... with these results."""
    made = [
        CellResult(Cell({"judge": name}), "single", Evaluation(tuple(results), {"note": None}))
        for name, results in zip("ab", cells, strict=False)
    ]
    axis = Axis.of("judge", {"a": {}, "b": {}})
    calls = sum(cell.usage.total.calls for cell in made)
    return Sweep((axis,), tuple(made), wanted, calls, stopped=stopped)


def names(grid: Grid) -> list[str]:
    return [column.name for column in grid.columns]


def test_gains_are_over_the_rows_that_both_have() -> None:
    """The second judge failed where the first was right: on the other rows, both are perfect."""
    _, found = swept(rated([0, 1, 2, 3, 9, 4]), rated([0, 1, 2, 3, None, 4])).measured()
    assert (found.gains[WIT].value, found.figures[WIT].value, found.rows) == (0.0, 1.0, {"wit": 5})


def test_the_gain_of_an_average_is_the_average_gain() -> None:
    worse = [3.0, 1, 2, 0, 4, 5, 6, 7, 8, 9]
    better = [0.0, 1, 2, 3, 4, 5, 7, 6, 8, 9]
    both = swept(*([*rated(wit), *rated(better, "tact")] for wit in (worse, better)))
    base, found = both.measured()
    wit = found.gains[WIT]
    average = found.gains[RHO]
    assert (average.value, average.low) == pytest.approx((wit.value / 2, wit.low / 2))  # type: ignore[operator]
    assert found.gains[TACT].value == 0.0
    assert base.gains == {}


@pytest.mark.parametrize("scores", [[None] * 4, [2.0] * 4], ids=["failed", "constant"])
def test_no_average_where_an_aspect_has_no_figure(scores: list[float | None]) -> None:
    """It would be an average over other aspects than the other cell's."""
    wit = rated([0.0, 1, 3, 2])
    whole, part = swept(
        [*wit, *rated([0.0, 1, 2, 3], "tact")], [*wit, *rated(scores, "tact")]
    ).measured()
    assert whole.figures[RHO].value == pytest.approx(0.9)
    assert part.figures[WIT].value == pytest.approx(0.8)
    assert part.figures[RHO].value is None and part.gains[RHO].value is None
    assert ("tact" in part.rows) == (None not in scores)


@pytest.mark.parametrize(("groups", "leads"), [(9, "spearman"), (10, "group_spearman")])
def test_correlations_are_within_groups_where_ten_can_tell_judges_apart(
    groups: int, leads: str
) -> None:
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
    cells = cell_grid(done)
    aspects = aspect_grid(done)
    across = pivot_grid(done, "n", "Rounds")
    assert names(cells)[:5] == ["n", "persona", "average rho", "average tau", "gain in rho"]
    assert [row[:2] for row in cells.rows] == [
        (n, persona) for n in "12" for persona in ("strict", "plain")
    ]
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
