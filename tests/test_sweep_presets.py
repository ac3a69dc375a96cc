"""The ready-made plans: each runs from end to end, on data that it is for, and is what its source varies."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval.cli.app import app
from jurygraph.eval.datasets.dataset import Dataset, load_dataset
from jurygraph.eval.datasets.items import CompareItem
from jurygraph.eval.sweeps import Axis, Sweep, plan_ablation, sweep
from jurygraph.eval.sweeps.cell_metrics import EXTRAS
from jurygraph.eval.sweeps.presets import ablations, fair
from jurygraph.eval.sweeps.sweep_result import grids
from jurygraph.state.errors import UsageError
from typer.testing import CliRunner

PLANS = [*ablations(), "fair"]
QUICK = ("rounds", "aggregation", "fair")
LIMITS = {"referees": 1, "turns": 1, "rounds": 6, "personas": 6}
COMPARING = {name for name, plan in ablations().items() if plan.data[0] in ("faireval", "mt-bench")}


def command(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["sweep", *map(str, arguments)], catch_exceptions=False)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name not in QUICK)) for name in PLANS]
)
def test_every_plan_runs_from_end_to_end(name: str, shared_data: Path, tmp_path: Path) -> None:
    data, out = "faireval" if name in COMPARING else "topical-chat", tmp_path / "out"
    few = ["--limit", LIMITS.get(name, 3), *(["--aspect", "coherence"] if data == "topical-chat" else [])]
    done = command("--plan", name, "--data", data, "--data-dir", shared_data, *few, "--out", out)
    assert done.exit_code == 0, done.output
    record = json.loads((out / "sweep.json").read_text())
    assert record["plan"] == name
    assert all((out / cell["folder"] / "results.jsonl").stat().st_size for cell in record["cells"])
    with (out / "tables" / "cells.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(record["cells"]) and all(float(row["calls each"]) >= 1 for row in rows)
    drawn = {path.name for path in (out / "figures").iterdir()}
    assert {"agreement.svg", "agreement.png", "agreement.pdf"} <= drawn


def test_plans_are_listed_with_their_sources_and_refuse_other_data() -> None:
    listed = command("--plans")
    assert listed.exit_code == 0
    for word in (*PLANS, "Figure 2", "Table 1", "faireval"):
        assert word in listed.output
    bare = CompareItem(id="a", question="How long?", answer_1="Nine days.", answer_2="No idea.", human="1")
    for plan, data, words in (
        ("jury", "demo", r"the plan jury is for pairs of answers.*mt-bench, faireval"),
        (
            "experts",
            Dataset.of("bare", [bare]),
            "the plan experts compares categories of items, but bare has none",
        ),
        ("cheese", "demo", "no plan 'cheese'; plans are rounds, personas"),
    ):
        with pytest.raises(UsageError, match=words):
            plan_ablation(plan, data)


def test_axes_of_ones_own_replace_those_of_a_plan_or_come_before_them() -> None:
    axes = [Axis.of("n", [2, 3]), Axis.of("temperature", [0.0, 1.0])]
    ablation, planned = plan_ablation("rounds", "demo", axes, limit=1)
    assert [axis.name for axis in planned.axes] == ["temperature", "n"]
    assert [one.cell.title for one in planned.cells][-1] == "temperature=1, n=3"
    assert (planned.name, ablation.axes) == ("rounds", planned.axes)


@pytest.mark.parametrize(
    ("protocol", "kind", "settings", "referees"),
    [
        ("debate", "score", {"n": 2}, 5),
        ("debate", "compare", {"n": 4}, 5),
        ("more", "compare", {"advocates": 5}, 7),
        ("chateval", "compare", {"referees": 3, "turns": 2}, 6),
    ],
)
def test_a_fair_ensemble_has_as_many_calls_as_the_debate_may_take(
    protocol: str, kind: Any, settings: dict[str, Any], referees: int
) -> None:
    *_, ensemble = fair(protocol, kind, settings).axes[0].values
    assert (ensemble.change["referees"], ensemble.change["roles"]) == (referees, "same")


def test_the_temperature_of_the_softmax_changes_weights_and_nothing_else() -> None:
    ablation = ablations()["tau"]
    done = sweep("more", ablation.axes, "demo-pairs", limit=4)
    rows: Any = [dict(zip(names, row, strict=True)) for names, row in table(done, ablation)]
    weights = [row["weight of the best"].value for row in rows]
    assert weights == sorted(weights, reverse=True) and weights[0] > 0.8 > weights[-1]
    assert len({row["accuracy"].value for row in rows}) == 1
    assert done.calls_made == done.cells[0].usage.total.calls


def table(done: Sweep, ablation: Any = None) -> list[tuple[list[str], Any]]:
    """Each cell's row, with the names of its columns."""
    cells = grids(done, ablation)["cells"]
    return [([column.name for column in cells.columns], row) for row in cells.rows]


def test_agreement_among_advocates_is_alpha_over_the_defences_of_a_side() -> None:
    import krippendorff
    import numpy as np

    done = sweep("more", {"aggregate": ["best"]}, "demo-pairs", limit=6)
    rounds = [round for result in done.cells[0].evaluation.results for round in result.details["best"]]
    sides = [totals for round in rounds for totals in round["totals"]]
    expected = krippendorff.alpha(reliability_data=np.array(sides).T, level_of_measurement="interval")
    further: Any = EXTRAS
    alpha, spread = (further[name].of(done.cells[0]) for name in ("alpha", "spread"))
    # An interval of alpha is withheld below ten units.
    assert (alpha.value, alpha.low) == (pytest.approx(expected), None)
    assert spread.value == pytest.approx(np.mean([max(side) - min(side) for side in sides]))


def test_a_table_by_category_is_what_each_category_comes_to_alone(shared_data: Path) -> None:
    def of(name: str, *categories: str) -> Dataset:
        items = [item for item in data if isinstance(item, CompareItem) and item.category in categories]
        return Dataset.of(name, items[:4] + items[4:][-4:])

    data = load_dataset("faireval", shared_data)
    data = of("few", "generic", "knowledge", "writing")
    axes = {"position_calibration": [True]}
    paper = grids(sweep("single", axes, data), ablations()["experts"])["paper"]
    for column, cell in list(zip(paper.columns, paper.rows[0], strict=True))[1:]:
        alone = sweep("single", axes, of("part", column.name))
        (accuracy, *_) = alone.measured()[0].figures.values()
        assert cell == accuracy


def test_flips_are_verdicts_that_differ_from_the_first_cells() -> None:
    done = sweep("single", {"position_calibration": [True, False]}, "demo-pairs", limit=16)
    first, second = ([result.winner for result in cell.evaluation.results] for cell in done.cells)
    differ = sum(one != other for one, other in zip(first, second, strict=True))
    before, after = (measured.flips for measured in done.measured())
    assert before is None and after is not None
    assert after.value == pytest.approx(differ / 16)
    assert all("flips" in names for names, _ in table(done))


@pytest.mark.parametrize("protocol", ["more", "geval", "chateval"])
def test_wording_is_varied_in_any_protocol(protocol: str) -> None:
    data = "demo" if protocol == "geval" else "demo-pairs"
    _, planned = plan_ablation("wording", data, protocol=protocol, limit=1)
    assert {cell.protocol for cell in planned.cells} == {protocol}
    assert len({cell.plan.manifest["signatures"][protocol] for cell in planned.cells}) == 3
