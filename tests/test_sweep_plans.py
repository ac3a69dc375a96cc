"""Test the axes and cells of a sweep, and each ready-made plan from end to end."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import evaluate
from jurygraph.eval.cli.app import app
from jurygraph.eval.datasets.dataset import Dataset, load_dataset
from jurygraph.eval.datasets.items import CompareItem
from jurygraph.eval.experiments import Axis, Sweep, plan_ablation, plan_sweep, sweep
from jurygraph.eval.experiments.cell_metrics import EXTRAS
from jurygraph.eval.experiments.cells import cells
from jurygraph.eval.experiments.presets import ablations, fair
from jurygraph.eval.experiments.sweep_result import grids
from jurygraph.graphs.engine.options import RunSettings
from jurygraph.state.errors import UsageError
from typer.testing import CliRunner


def test_an_axis_is_parsed() -> None:
    nurse = '[{"name": "Nurse", "description": "You nurse."}]'
    axis = Axis.parse(f'roles=["coding", ["critic", "scientist"], {nurse}]')
    assert axis.labels == ("coding", "critic+scientist", "Nurse")
    assert axis.values["critic+scientist"] == {"roles": ["critic", "scientist"]}
    assert (Axis.parse("tau=0.1,1").numbers, Axis.parse("persona=strict,plain").numbers) == (
        (0.1, 1.0),
        None,
    )


@pytest.mark.parametrize(("text", "words"), [
    ("n", "not of the form KEY=V1,V2"), ("=1,2", "not of the form KEY=V1,V2"),
    ("n=1,,2", "a value is empty"), ("n=1,1", "the axis n has the value 1 twice"),
    ("n=[]", "the axis n has no values"), ("n=[1,", "not a JSON list"),
])  # fmt: skip
def test_bad_axes_say_what_is_wrong(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Axis.parse(text)


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        ([Axis.of("n", [1]), Axis.of("n", [2])], "given twice"),
        (
            [Axis.of("n", [1]), Axis.of("judge", {"short": {"n": 1}})],
            "n is set by the axis judge and by another one",
        ),
        (
            [Axis.of("n", range(1, 101)), Axis.of("max_tokens", range(1, 101))],
            r"10,000 cells \(100 n x 100 max_tokens\), .* at most 1,000",
        ),
    ],
)
def test_axes_that_make_no_sweep_are_refused_before_any_cell_is_planned(
    axes: list[Axis], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        next(cells(axes))


VARIED_AND_SET = r"n is varied by the axis .* and set for all cells"
BAD: list[tuple[dict[str, Any], Any, str]] = [
    ({"n": [1, 2]}, {"n": 3}, VARIED_AND_SET),
    ({"n": [1, 2]}, {"debate": {"n": 3}}, VARIED_AND_SET),
    ({"inner.n": [1, 2]}, {"inner": {"n": 3}}, VARIED_AND_SET),
    ({"length": {"short": {"n": 1}, "long": {"n": 4}}}, {"n": 3}, VARIED_AND_SET),
    ({"n": [1]}, {"geval": {"samples": 2}}, "settings are given for geval"),
    ({"n": [1, 0]}, {}, r"^n=0: debate: n must be greater than or equal to 1 or 'auto', got 0"),
    (
        {"protocol": ["debate", "geval"], "n": [1]},
        {},
        "protocol=geval, n=1: geval: n is not a setting of geval",
    ),
]


@pytest.mark.parametrize(("axes", "settings", "words"), BAD)
def test_every_cell_is_checked_before_any_is_begun(
    axes: dict[str, Any], settings: RunSettings, words: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=words):
        plan_sweep("debate", axes, "demo", settings=settings, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("common", [{"n": 2}, {"debate": {"n": 2}}])
def test_a_cell_changes_what_is_set_for_all_and_for_its_protocol(common: Any) -> None:
    judges = {"ours": {}, "patient": {"n": 9}}
    planned = plan_sweep("debate", {"judge": judges}, "demo", settings=common)
    signatures = [one.plan.manifest["signatures"]["debate"] for one in planned.cells]
    assert ["|n:2|" in signatures[0], "|n:9|" in signatures[1]] == [True, True]


def test_a_setting_may_be_one_protocols_alone() -> None:
    axes = {"protocol": ["debate", "multiagent", "single"]}
    planned = plan_sweep("debate", axes, "demo", settings={"debate": {"n": 2}})
    bound = [one.plan.manifest["protocols"][one.protocol] for one in planned.cells]
    assert [fields.get("n") for fields in bound] == [2, 4, None]


def test_axes_reach_all_kinds_of_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    (tmp_path / "mine" / "debate").mkdir(parents=True)
    (tmp_path / "mine" / "debate" / "critic_plain.md").write_text("Say what is wrong.")
    axes = {
        "protocol": ["debate", "multiagent"],
        "model.critic": ["offline", "openai:gpt-4o-mini"],
        "prompts": ["", str(tmp_path / "mine")],
    }
    planned = plan_sweep("debate", axes, "demo", settings={"n": 1})
    labels = {"protocol": "debate", "model.critic": "offline", "prompts": "mine"}
    assert planned.cells[1].cell.labels == labels
    manifests = [one.plan.manifest for one in planned.cells]
    assert len({one.plan.manifest["signatures"][one.protocol] for one in planned.cells}) == 8
    assert manifests[2]["models"]["debate"]["critic"].startswith("openai:gpt-4o-mini")
    held = plan_sweep(
        "repeated", {"inner.n": ["1", "2"], "of": ["debate"]}, "demo", settings={"k": 2}
    )
    assert [one.plan.manifest["protocols"]["repeated"]["inner"]["n"] for one in held.cells] == [
        1,
        2,
    ]


def test_folders_have_the_cells_names_and_never_the_same_one(tmp_path: Path) -> None:
    judges = {"a:b": {"n": 1}, "a/b": {"n": 2}, "c" * 200: {"n": 3}}
    planned = plan_sweep("debate", {"judge": judges}, "demo", out=tmp_path)
    names = [one.plan.folder.name for one in planned.cells if one.plan.folder]
    assert names[:2] == ["judge=a-b", "judge=a-b~2"]
    assert len(names[2]) <= 100


def test_a_folder_with_a_run_and_shards_are_refused(tmp_path: Path) -> None:
    evaluate("single", "demo", limit=1, out=tmp_path / "run")
    (tmp_path / "sweep.json").write_text("{")
    given: list[tuple[Any, str]] = [
        ({"out": tmp_path / "run"}, "holds a run, not a sweep"),
        ({"out": tmp_path}, r"sweep\.json: not a record of a sweep"),
        ({"shard": "1/2"}, "a sweep has no shards"),
    ]
    for options, words in given:
        with pytest.raises(UsageError, match=words):
            plan_sweep("debate", {"n": [1]}, "demo", **options)


# Ready-made plans: each is for one kind of data, and varies what its source varies
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
    data = "faireval" if name in COMPARING else "topical-chat"
    out = tmp_path / "out"
    few = [
        "--limit",
        LIMITS.get(name, 3),
        *(["--aspect", "coherence"] if data == "topical-chat" else []),
    ]
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
    bare = CompareItem(
        id="a", question="How long?", answer_1="Nine days.", answer_2="No idea.", human="1"
    )
    with pytest.raises(
        UsageError, match="the plan experts compares categories of items, but bare has none"
    ):
        plan_ablation("experts", Dataset.of("bare", [bare]))


def test_axes_of_ones_own_replace_those_of_a_plan_or_come_before_them() -> None:
    axes = [Axis.of("n", [2, 3]), Axis.of("temperature", [0.0, 1.0])]
    ablation, planned = plan_ablation("rounds", "demo", axes, limit=1)
    assert [axis.name for axis in planned.axes] == ["temperature", "n"]
    assert [one.cell.title for one in planned.cells][-1] == "temperature=1, n=3"
    assert (planned.name, ablation.axes) == ("rounds", planned.axes)


@pytest.mark.parametrize(("protocol", "kind", "settings", "referees"), [
    ("debate", "score", {"n": 2}, 5), ("debate", "compare", {"n": 4}, 5),
    ("more", "compare", {"advocates": 5}, 7), ("chateval", "compare", {"referees": 3, "turns": 2}, 6),
])  # fmt: skip
def test_a_fair_ensemble_has_as_many_calls_as_the_debate_may_take(
    protocol: str, kind: Any, settings: dict[str, Any], referees: int
) -> None:
    *_, ensemble = fair(protocol, kind, settings).axes[0].values.values()
    assert (ensemble["referees"], ensemble["roles"]) == (referees, "same")


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
    grid = grids(done, ablation)["cells"]
    return [([column.name for column in grid.columns], row) for row in grid.rows]


def test_agreement_among_advocates_is_alpha_over_the_defences_of_a_side() -> None:
    import krippendorff
    import numpy as np

    done = sweep("more", {"aggregate": ["best"]}, "demo-pairs", limit=6)
    rounds = [
        round for result in done.cells[0].evaluation.results for round in result.details["best"]
    ]
    sides = [totals for round in rounds for totals in round["totals"]]
    expected = krippendorff.alpha(
        reliability_data=np.array(sides).T, level_of_measurement="interval"
    )
    further: Any = EXTRAS
    alpha, spread = (further[name].of(done.cells[0]) for name in ("alpha", "spread"))
    # An interval of alpha is withheld below ten units.
    assert (alpha.value, alpha.low) == (pytest.approx(expected), None)
    assert spread.value == pytest.approx(np.mean([max(side) - min(side) for side in sides]))


def test_a_table_by_category_is_what_each_category_comes_to_alone(shared_data: Path) -> None:
    def of(name: str, *categories: str) -> Dataset:
        items = [
            item for item in data if isinstance(item, CompareItem) and item.category in categories
        ]
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
