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


def test_an_axis_is_parsed() -> None:
    nurse = '[{"name": "Nurse", "description": "You nurse."}]'
    axis = Axis.parse(f'roles=["coding", ["critic", "scientist"], {nurse}]')
    assert axis.labels == ("coding", "critic+scientist", "Nurse")
    assert axis.values[1].change == {"roles": ["critic", "scientist"]}
    assert (Axis.parse("tau=0.1,1").numbers, Axis.parse("persona=strict,plain").numbers) == ((0.1, 1.0), None)


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


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        ([Axis.of("n", [1]), Axis.of("n", [2])], "given twice"),
        (
            [Axis.of("n", [1]), Axis.of("judge", {"short": {"n": 1}})],
            "n is set by the axis judge and by another one",
        ),
        ([], "a sweep needs an axis"),
        (
            [Axis.of("n", range(1, 101)), Axis.of("max_tokens", range(1, 101))],
            r"10,000 cells \(100 n x 100 max_tokens\), .* at most 1,000",
        ),
    ],
)
def test_axes_that_make_no_sweep_are_refused_before_any_cell_is_planned(axes: list[Axis], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        next(cells(axes))


VARIED_AND_SET = r"n is varied by the axis .* and also set for all cells"
BAD: list[tuple[dict[str, Any], Any, str]] = [
    ({"n": [1, 2]}, {"n": 3}, VARIED_AND_SET),
    ({"n": [1, 2]}, {"debate": {"n": 3}}, VARIED_AND_SET),
    ({"inner.n": [1, 2]}, {"inner": {"n": 3}}, VARIED_AND_SET),
    ({"length": {"short": {"n": 1}, "long": {"n": 4}}}, {"n": 3}, VARIED_AND_SET),
    ({"n": [1]}, {"geval": {"samples": 2}}, "settings are given for geval"),
    ({"n": [1, 0]}, {}, r"^n=0: debate: n must be greater than or equal to 1, got 0"),
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


def test_axes_reach_protocols_models_prompts_and_settings_inside_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    held = plan_sweep("repeated", {"inner.n": ["1", "2"], "of": ["debate"]}, "demo", settings={"k": 2})
    assert [one.plan.manifest["protocols"]["repeated"]["inner"]["n"] for one in held.cells] == [1, 2]


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
