"""Recorded replies scored again: a past run's own words, changed rules, and what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import Evaluation, evaluate
from jurygraph.eval.cli.app import app
from jurygraph.eval.plan.estimator import estimate
from jurygraph.eval.plan.plan import plan, read_recording
from jurygraph.eval.results.results import Key
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.state.call_counts import Range, exactly
from jurygraph.state.errors import DataError, UsageError
from jurygraph.state.transcript import USAGE_FIELDS
from typer.testing import CliRunner

from .sample_data import write_lines

SPENT = {*USAGE_FIELDS, "uncounted", "details", "warnings", "transcript"}
PROTOCOLS: Any = {
    "geval": {"samples": 3},
    "single": {},
    "faireval": {"k": 2},
    "baseline": {},
    "ensemble": {},
    "chateval": {"strategy": "summarizer"},
    "debate": {"n": 2, "commander": "llm"},
    "multiagent": {},
    "samre": {},
    "more": {"rounds": 2, "aggregate": "best", "collaborate": True},
    "calibrated": {"of": "chateval"},
    "repeated": {"of": "chateval", "k": 2},
    "cascade": {},
}


def outcomes(evaluation: Evaluation) -> list[dict[str, Any]]:
    return [result.model_dump(exclude=SPENT) for result in evaluation.results]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_run_replayed_is_the_run(protocol: Any, tmp_path: Path) -> None:
    data = "demo" if protocol == "geval" else "demo-pairs"
    run = evaluate(
        protocol, data, limit=2, repeats=2, settings=PROTOCOLS[protocol], out=tmp_path / "run",
        aspects=["consistency"] if data == "demo" else [],
    )  # fmt: skip
    again = evaluate(protocol, replies=tmp_path / "run", repeats=2, out=tmp_path / "again")
    assert outcomes(again) == outcomes(run)
    assert not run.failed
    for result in again.results:
        assert (result.calls, result.cost_usd, result.input_tokens) == (0, 0.0, 0)
        assert {turn["model"] for turn in result.transcript} <= {"offline", None}


def debate_run(out: Path, critic: str, **settings: Any) -> Evaluation:
    """Two rounds in which the critic says the same, and the scorer raises its score by one a round."""

    def line(metadata: Any, _prompt: str) -> str:
        return critic if metadata["role"] == "critic" else f"Score: {2 + metadata['round']}"

    model = ScriptedModel(script=line)
    given: Any = {"n": 2, "structured": "off", **settings}
    return evaluate(
        "debate", "demo", aspects=["fluency"], limit=1, settings=given, models={"*": model}, out=out
    )


def test_a_stop_rule_is_changed_over_an_old_run(tmp_path: Path) -> None:
    literal = "There is NO ISSUE with the grammar, but the commas are wrong."
    [before] = debate_run(tmp_path / "run", literal).results
    assert (before.score, before.stop_reason) == (4.0, "max_rounds")
    [after] = evaluate("debate", replies=tmp_path / "run", settings={"termination": "substring"}).results
    assert (after.score, after.stop_reason, after.rounds) == (2.0, "no_issue", 1)


def test_a_recording_that_is_changed_meanwhile(tmp_path: Path) -> None:
    evaluate("single", "demo", aspects=["fluency"], limit=2, out=tmp_path / "run")
    recording = read_recording(tmp_path / "run")
    [first, _] = [Key(item.id, "fluency", "single", 0) for item in recording.dataset]
    assert recording.of(first)
    path = tmp_path / "run" / "results.jsonl"
    path.write_text("".join(reversed(path.read_text().splitlines(keepends=True))))
    with pytest.raises(DataError, match="has changed since it was read"):
        recording.of(first)


def test_a_vote_rule_is_changed_over_an_old_run(tmp_path: Path) -> None:
    def line(metadata: Any, _prompt: str) -> str:
        return f"Score: {(2, 4, 4)[metadata['repeat']]}"

    one_item: Any = {"data": "demo", "aspects": ["fluency"], "limit": 1, "out": tmp_path / "run"}
    settings: Any = {"of": "single", "k": 3, "structured": "off"}
    run = evaluate("repeated", **one_item, settings=settings, models={"*": ScriptedModel(script=line)})
    assert run.results[0].score == pytest.approx(10 / 3)
    for changed, score in (({"by": "vote"}, 4.0), ({"k": 2}, 3.0), ({"k": 4}, None)):
        [again] = evaluate("repeated", replies=tmp_path / "run", settings=changed).results  # type: ignore[arg-type]
        assert again.score == score
    assert "no reply is recorded for scorer, round 1, run 4" in str(again.error)


def test_fewer_rounds_are_replayed_and_what_is_missing_is_named(tmp_path: Path) -> None:
    first = debate_run(tmp_path / "run", "The commas are wrong.")
    expected = estimate(plan("debate", replies=tmp_path / "run"))
    assert expected.verdicts == {"debate": 1}
    assert (expected.total.calls, expected.total.cost_usd) == (exactly(0), Range(0.0, 0.0))
    [fewer] = evaluate("debate", replies=tmp_path / "run", settings={"n": 1}).results
    assert (fewer.status, fewer.score) == ("ok", 3.0)
    for settings, missing in (
        ({"n": 3}, "critic, round 3; it has replies in round 1, 2"),
        ({"tie_breaker": True}, "tie_breaker, round 2; there are replies of critic, scorer"),
    ):
        [more] = evaluate("debate", replies=tmp_path / "run", settings=settings).results  # type: ignore[arg-type]
        assert (more.status, more.score) == ("failed", None)
        assert more.error == f"NotRecordedError: no reply is recorded for {missing}"
    # A replay can be replayed, and says that it is one.
    once = evaluate("debate", replies=tmp_path / "run", out=tmp_path / "once").manifest
    told = "Replayed: no model was called; the replies were recorded in run by scriptedmodel:ScriptedModel."
    assert once["note"].startswith(told)
    assert f"|replies:run@{once['replies']['digest']}|" in once["signatures"]["debate"]
    again = evaluate("debate", replies=tmp_path / "once")
    assert outcomes(again) == outcomes(first)
    assert again.manifest["replies"]["models"] == ["scriptedmodel:ScriptedModel"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        *(
            ({"settings": setting}, "there would have been other replies")
            for setting in ({"persona": "weak"}, {"commander": "llm"}, {"temperature": "0.7"})
        ),
        *(({option: True}, "or leave out --replies") for option in ("batch", "journal")),
        ({"protocol": "single"}, "a run of debate, with no replies recorded for single"),
        ({"out": "run"}, "is the run to replay: choose another --out"),
        ({"models": {"*": "offline"}}, "give no model with --replies"),
        ({"replies": None}, r"give a dataset .--data., or recorded replies .--replies."),
        ({"replies": "none.jsonl"}, "there is no file or folder"),
        ({"replies": "."}, "holds no run"),
    ],
)
def test_what_cannot_be_replayed_is_refused(
    options: dict[str, Any], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    debate_run(tmp_path / "run", "NO ISSUE")
    given: Any = {"replies": "run", **options}
    with pytest.raises((DataError, UsageError), match=problem):
        evaluate(given.pop("protocol", "debate"), **given)
    # Settings that change no reply are free.
    plan("debate", replies=tmp_path / "run", settings={"persona": "strict", "commander": "relay"})


def test_what_could_not_be_read_is_read_by_another_reader(tmp_path: Path) -> None:
    replies = tmp_path / "replies.jsonl"
    replies.write_text('{"item": "a", "aspect": "fluency", "reply": "Score: 7"}\n')
    narrow = evaluate("single", replies=replies)
    assert "off the scale" in str(narrow.results[0].error)
    aspect = tmp_path / "wide.yaml"
    aspect.write_text("name: fluency\ncriteria: How well it reads.\nlow: 1\nhigh: 10\n")
    wide = evaluate("single", replies=replies, aspects=[str(aspect)])
    assert wide.results[0].score == 7.0


def test_a_failed_comparison_in_both_orders_is_not_guessed_at(tmp_path: Path) -> None:
    """Turns of a failed verdict do not say in which order the answers were shown."""

    def line(metadata: Any, _prompt: str) -> str:
        return "no score" if metadata["role"] == "scorer" else ""

    model = ScriptedModel(script=line)
    run = evaluate("single", "demo-pairs", limit=1, models={"*": model}, out=tmp_path / "run")
    assert run.failed
    [result] = evaluate("single", replies=tmp_path / "run").results
    assert "no replies are recorded for this item" in str(result.error)


def test_the_command(tmp_path: Path) -> None:
    rows = [
        {"item": f"i{n}", "aspect": "fluency", "replies": ["4", "5"], "human": n, "model": "m"}
        for n in (1, 2)
    ]
    recorded = write_lines(tmp_path / "mine.jsonl", rows)
    out = tmp_path / "out"
    dry = CliRunner().invoke(
        app, ["run", "geval", "--replies", str(recorded), "--out", str(out), "--dry-run"]
    )
    assert (dry.exit_code, "2 verdicts to judge, no model call" in dry.output) == (0, True)
    done = CliRunner().invoke(app, ["run", "geval", "--replies", str(recorded), "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "total usage: 0 calls" in done.output
    shown = CliRunner().invoke(app, ["show", str(out), "i1"])
    assert "Replayed: no model was called" in shown.output
    assert "4.5" in shown.output
