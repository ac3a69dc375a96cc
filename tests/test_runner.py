"""Test batches: results, resuming, and single failures."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import evaluate
from jurygraph.eval.datasets.dataset import load_dataset
from jurygraph.eval.results.results import digests_of
from jurygraph.eval.run.plan.plan import Plan, plan
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.state import DataError, UsageError

from .sample_data import numbered, read_lines
from .virtual_time import InFlight

RESULT_KEYS = """
    item group aspect protocol status score scores winner human rounds stop_reason score_by_round repeat calls
    input_tokens cached_input_tokens output_tokens reasoning_tokens cost_usd seconds uncounted error
    position_consistent systems category lengths annotations annotators explained_by details warnings transcript
""".split()  # noqa: SIM905


def dataset(folder: Path, count: int = 6) -> Path:
    return numbered(folder, count, human={"fluency": 4}, group="g1")


def agreeable(metadata: Mapping[str, Any], prompt: str) -> dict[str, Any]:
    if metadata["role"] == "critic":
        return {"feedback": "Yes.", "no_issue": True}
    return {"reasoning": "So.", "score": 4}


def test_results_and_manifest(tmp_path: Path) -> None:
    out = tmp_path / "out"
    evaluation = evaluate(
        "debate", dataset(tmp_path), models={"*": ScriptedModel(script=agreeable)}, out=out
    )
    written = read_lines(out)
    assert [list(line) for line in written] == [RESULT_KEYS] * 6
    assert {line["item"] for line in written} == {f"i{n}" for n in range(6)}
    first = next(line for line in written if line["item"] == "i3")
    assert (first["status"], first["score"], first["human"], first["group"]) == (
        "ok",
        4.0,
        4.0,
        "g1",
    )
    assert [turn["agent"] for turn in first["transcript"]] == [
        "commander",
        "scorer",
        "commander",
        "critic",
    ]
    manifest = json.loads((out / "run.json").read_text())
    assert manifest["data"]["items"] == 6
    assert manifest["signatures"]["debate"] == evaluation.manifest["signatures"]["debate"]
    assert "|n:4|persona:strict|" in manifest["signatures"]["debate"]


@pytest.mark.parametrize(
    ("score", "fault"), [("99", r"score: 99 is off the scale of \w+, 1 to 5"), ("null", "")]
)
def test_a_score_that_cannot_be_is_told_by_its_line(tmp_path: Path, score: str, fault: str) -> None:
    data = dataset(tmp_path)
    out = tmp_path / "out"
    evaluate("debate", data, out=out, limit=2)
    file = out / "results.jsonl"
    file.write_text(re.sub(r'"score":[^,]*', f'"score":{score}', file.read_text(), count=1))
    with pytest.raises(DataError, match=rf"results\.jsonl, line 1: {fault}"):
        evaluate("debate", data, out=out, limit=2)


@pytest.mark.parametrize("concurrency", [1, 3, 50])
def test_never_more_calls_in_flight_than_allowed(tmp_path: Path, concurrency: int) -> None:
    model = InFlight(script=agreeable)
    evaluate("debate", dataset(tmp_path, 12), models={"*": model}, concurrency=concurrency)
    assert model.most_at_once == min(concurrency, 12)


@pytest.mark.parametrize(("options", "words"), [
    ({"settings": {"debate": {"n": 1}}}, "given for debate, but only single"),
    ({"settings": {"single": 1}}, "single.temperature=1"), ({"limit": 0}, "must be 1 or more"),
    ({"repeats": 0}, "must be 1 or more"),
])  # fmt: skip
def test_options_that_cannot_be_are_refused(tmp_path: Path, options: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        evaluate("single", dataset(tmp_path, 1), **options)


def test_a_run_with_nothing_left_to_judge_does_not_read_its_data_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again: dict[str, Any] = {"models": {"*": ScriptedModel(script=agreeable)}}
    data = dataset(tmp_path)
    first = evaluate("debate", data, out=tmp_path / "out", **again)
    read = list[int]()
    jobs = Plan.jobs

    def counted(planned: Plan) -> Any:
        read.append(1)
        yield from jobs(planned)

    monkeypatch.setattr(Plan, "jobs", counted)
    second = evaluate("debate", data, out=tmp_path / "out", **again)
    assert [*second.results] == [*first.results]
    assert not read


@pytest.mark.parametrize("options", [
    {}, {"limit": 5}, {"repeats": 2, "aspects": ["fluency", "coherence"]}, {"shard": "2/3"},
], ids=["all", "limit", "repeats", "shard"])  # fmt: skip
def test_the_digests_of_a_plan_are_those_of_its_jobs(tmp_path: Path, options: Any) -> None:
    data = load_dataset("demo").sample(20, seed=1)
    planned = plan(["single", "debate"], data, out=tmp_path / "out", **options)
    keys = [key for key, *_ in planned.jobs()]
    assert planned.key_digests().tolist() == digests_of(keys).tolist()
    of_debate = [key for key in keys if key.protocol == "debate"]
    assert planned.key_digests(["debate"]).tolist() == digests_of(of_debate).tolist()
    some = replace(planned, only={keys[0][:2], keys[-1][:2]})
    assert some.key_digests().tolist() == digests_of(key for key, *_ in some.jobs()).tolist()
    assert 0 < len(some.key_digests()) < len(keys)
