"""Axes of a sweep: how they are given, what cells come of them, and what is wrong with bad ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import evaluate
from jurygraph.eval.sweeps import Axis, plan_sweep
from jurygraph.eval.sweeps.cells import cells
from jurygraph.graphs.options import RunSettings
from jurygraph.state.errors import UsageError


def test_a_list_in_json_may_hold_lists() -> None:
    axis = Axis.parse(
        'roles=["coding", ["critic", "scientist"], [{"name": "Nurse", "description": "You nurse."}]]'
    )
    assert axis.labels == ("coding", "critic+scientist", "Nurse")
    assert axis.values[1].change == {"roles": ["critic", "scientist"]}


def test_values_that_are_numbers_are_known_as_such() -> None:
    assert Axis.parse("tau=0.1,1").numbers == (0.1, 1.0)
    assert Axis.parse("persona=strict,plain").numbers is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("n", "not of the form KEY=V1,V2"),
        ("=1,2", "not of the form KEY=V1,V2"),
        ("n=1,,2", "a value is empty"),
        ("n=1,1", "the axis n has the value 1 twice"),
        ("n=[]", "the axis n has no values"),
        ("n=[1,", "not a JSON list"),
    ],
)
def test_bad_axes_say_what_is_wrong(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Axis.parse(text)


def test_two_axes_may_not_set_the_same() -> None:
    with pytest.raises(UsageError, match="given twice"):
        list(cells([Axis.of("n", [1]), Axis.of("n", [2])]))
    with pytest.raises(UsageError, match="n is set by the axis judge and by another one"):
        list(cells([Axis.of("n", [1]), Axis.of("judge", {"short": {"n": 1}})]))
    with pytest.raises(UsageError, match="a sweep needs an axis"):
        list(cells([]))


def test_what_all_cells_have_in_common_is_not_what_varies() -> None:
    given: list[tuple[dict[str, Any], RunSettings]] = [
        ({"n": [1, 2]}, {"n": 3}),
        ({"n": [1, 2]}, {"debate": {"n": 3}}),
        ({"inner.n": [1, 2]}, {"inner": {"n": 3}}),
        ({"length": {"short": {"n": 1}, "long": {"n": 4}}}, {"n": 3}),
    ]
    for axes, settings in given:
        with pytest.raises(UsageError, match=r"n is varied by the axis .* and set for all cells"):
            plan_sweep("debate", axes, "demo", settings=settings)


@pytest.mark.parametrize("common", [{"n": 2}, {"debate": {"n": 2}}])
def test_a_cell_changes_what_is_set_for_all_and_for_its_protocol(common: Any) -> None:
    judges = {"ours": {}, "patient": {"n": 9}}
    planned = plan_sweep("debate", {"judge": judges}, "demo", settings=common)
    signatures = [one.plan.manifest["signatures"]["debate"] for one in planned.cells]
    assert ["|n:2|" in signatures[0], "|n:9|" in signatures[1]] == [True, True]


def test_more_cells_than_anybody_reads_are_refused_before_any_is_planned() -> None:
    many = [Axis.of("n", range(1, 101)), Axis.of("max_tokens", range(1, 101))]
    with pytest.raises(UsageError, match=r"10,000 cells \(100 n x 100 max_tokens\), .* at most 1,000"):
        next(cells(many))


def test_every_cell_is_checked_before_any_is_begun(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^n=0: debate: n must be greater than or equal to 1, got 0"):
        plan_sweep("debate", {"n": [1, 0]}, "demo", out=tmp_path / "out")
    with pytest.raises(UsageError, match="protocol=geval, n=1: geval: n is not a setting of geval"):
        plan_sweep("debate", {"protocol": ["debate", "geval"], "n": [1]}, "demo")
    assert not (tmp_path / "out").exists()


def test_axes_reach_protocols_models_prompts_and_settings_inside_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    (tmp_path / "mine" / "debate").mkdir(parents=True)
    (tmp_path / "mine" / "debate" / "critic_plain.md").write_text("Say what is wrong.")
    planned = plan_sweep(
        "debate",
        {
            "protocol": ["debate", "multiagent"],
            "model.critic": ["offline", "openai:gpt-4o-mini"],
            "prompts": ["", str(tmp_path / "mine")],
        },
        "demo",
        settings={"n": 1},
    )
    assert [one.cell.labels for one in planned.cells][1] == {
        "protocol": "debate",
        "model.critic": "offline",
        "prompts": "mine",
    }
    manifests = [one.plan.manifest for one in planned.cells]
    signatures = {one.plan.manifest["signatures"][one.protocol] for one in planned.cells}
    assert len(signatures) == 8
    assert manifests[2]["models"]["debate"]["critic"].startswith("openai:gpt-4o-mini")
    held = plan_sweep("repeated", {"inner.n": ["1", "2"], "of": ["debate"]}, "demo", settings={"k": 2})
    assert [one.plan.manifest["protocols"]["repeated"]["inner"]["n"] for one in held.cells] == [1, 2]


def test_a_setting_may_be_one_protocols_alone() -> None:
    planned = plan_sweep(
        "debate", {"protocol": ["debate", "multiagent", "single"]}, "demo", settings={"debate": {"n": 2}}
    )
    bound = [one.plan.manifest["protocols"][one.protocol] for one in planned.cells]
    assert [fields.get("n") for fields in bound] == [2, 4, None]
    with pytest.raises(UsageError, match="settings are given for geval"):
        plan_sweep("debate", {"n": [1]}, "demo", settings={"geval": {"samples": 2}})


def test_folders_have_the_cells_names_and_never_the_same_one(tmp_path: Path) -> None:
    planned = plan_sweep(
        "debate", {"judge": {"a:b": {"n": 1}, "a/b": {"n": 2}, "c" * 200: {"n": 3}}}, "demo", out=tmp_path
    )
    names = [one.plan.folder.name for one in planned.cells if one.plan.folder]
    assert names[:2] == ["judge=a-b", "judge=a-b~2"]
    assert len(names[2]) <= 100


def test_a_folder_with_a_run_is_not_taken_for_a_sweep(tmp_path: Path) -> None:
    evaluate("single", "demo", limit=1, out=tmp_path / "run")
    with pytest.raises(UsageError, match="holds a run, not a sweep"):
        plan_sweep("debate", {"n": [1]}, "demo", out=tmp_path / "run")
    (tmp_path / "sweep.json").write_text("{")
    with pytest.raises(UsageError, match=r"sweep\.json: not a record of a sweep"):
        plan_sweep("debate", {"n": [1]}, "demo", out=tmp_path)


def test_a_sweep_is_not_divided_into_shards() -> None:
    with pytest.raises(UsageError, match="a sweep has no shards"):
        plan_sweep("debate", {"n": [1]}, "demo", shard="1/2")
